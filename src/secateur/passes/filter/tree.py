"""The pruning tree: the ANDs and ORs of a predicate, evaluated part by part in an order that it learns.

A predicate is a tree whose inner nodes are AND and OR and whose leaves are tests. NOT is pushed down to the leaves, so
``NOT (a OR b)`` is an AND of ``NOT a`` and ``NOT b``; a negated leaf asks where the test can be FALSE. Entries (files,
mostly) are put to it in parts: a small sample from all over the table first, then run after run. Of every node the tree
keeps how long it took and how many entries it ruled out, and from part to part it

* *reorders*: below an AND what rules out most for its time comes first, for the rest need only look at what is left;
  below an OR what lets most through does, for the rest need only look at what is not yet kept;
* *cuts off* children of an AND that do not earn their time: those that took longer than reading the files would have
  that they ruled out (and one more). That keeps files, so it is always sound (rule S1). Below an OR it would lose
  files, so it is never done there; a node whose loss would be small is left alone, too.

========  ===================================  =======================================
node      an entry may match if                with a child that is cut off
========  ===================================  =======================================
AND       it may match every child             the others decide: more is kept
OR        it may match one of the children     cannot be: children of an OR are not cut
test      the evaluator says so (rule S2)
========  ===================================  =======================================

What comes out is what :func:`~secateur.evaluate.evaluator.evaluate` says of the whole predicate, but for what was cut
off. A test that breaks counts as unknown, hence as matching; the others go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter, thread_time
from typing import Any, TypeAlias
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt

from secateur.evaluate.constant_folding import distinct_entries
from secateur.evaluate.evaluator import verdict_of
from secateur.evaluate.expression_ranges import Columns, EvalContext, column_source
from secateur.evaluate.rules import RULES
from secateur.evaluate.value_range import value_range
from secateur.evaluate.verdict import Flags
from secateur.passes.filter.tree_nodes import Node, grow
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression, Literal
from secateur.plan.nodes import Settings
from secateur.plan.types import BOOLEAN
from secateur.stats.file_stats import BLOCK, FileStats

Positions = npt.NDArray[np.int64]
Kind: TypeAlias = OneOf["and", "or", "test"]

log = logging.getLogger("secateur")

PROBES = (4096, 16384)
"""How many entries the samples hold; the second is taken only if the first leaves a slow test in doubt."""
RUN_SECONDS = 0.01
"""About how long a run of entries should take: after each the order is looked at again."""
WORTH_CUTTING = 0.005
"""A test that would cost less than these seconds from here on is not cut off."""
PICKING_SECONDS = 50e-9
"""About what it costs to pick out an entry of a column of strings or decimals; numbers cost a fifth of it."""
SPARSE = 0.03
"""Picking out the entries that are left pays if they are at most this share, as long as costs are not known."""


class PruningTree:
    """The tree of a predicate given as conjuncts.

    >>> from secateur.plan.expressions import Column, Not, Or
    >>> from secateur.plan.types import BOOLEAN
    >>> a, b, c = (Column(i, name, BOOLEAN) for i, name in enumerate("abc"))
    >>> tree = PruningTree((a, Not(Or(b, Not(c)))), {})
    >>> [(node.kind, str(node.expression), node.negated) for node in tree.root.below() if not node.children]
    [('test', 'a#0', False), ('test', 'b#1', True), ('test', 'c#2', False)]
    """

    def __init__(
        self, conjuncts: Sequence[Expression], columns: Columns, settings: Settings | None = None,
        tuning: Tuning | None = None,
    ) -> None:  # fmt: skip
        self.predicate = tuple(conjuncts)
        nodes = tuple(grow(conjunct, negated=False) for conjunct in conjuncts)
        self.root = Node("and", Literal(1, BOOLEAN), negated=False, children=nodes)
        self.tuning = tuning or Tuning()
        self.out_of_time = 0
        """How many entries nobody looked at for lack of time."""
        self.seconds = 0.0
        self._clock = perf_counter
        """Quicker to ask than the time of the thread, which other work on the machine does not count in."""
        self._columns = columns
        self._settings = settings or Settings()
        self._memo: dict[object, Any] = {}

    @property
    def conjuncts(self) -> tuple[tuple[Expression, Node], ...]:
        """The conjuncts with their nodes, in the order of the query."""
        return tuple(zip(self.predicate, self.root.children, strict=True))

    def blocks(self, blocks: FileStats, alive: Mask) -> Mask:
        """The blocks that may hold an entry which matches. Nothing is learned of costs: they are too few."""
        after = self._may(self.root, self._context(blocks), alive)
        for node in self.root.below():
            node.blocks_dropped += node.dropped
            node.seconds, node.entries, node.looked, node.dropped = 0.0, 0, 0, 0
        return after

    def entries(self, stats: FileStats, alive: Mask) -> Mask:
        """The entries that are alive and may match."""
        left = int(np.count_nonzero(alive))
        if left <= 4 * PROBES[0] or self.root.static_cost * left < RUN_SECONDS:
            return self._run(stats, alive, 0, stats.count)
        self._clock = thread_time
        self._prepare(self.root, stats)
        start = perf_counter()
        mask: Mask = alive.copy()
        if self.root.cost * left > 2 * RUN_SECONDS:
            self._probe(stats, mask, left)
        at, size = 0, _run_length(1, self.root.cost)
        while at < stats.count:
            stop = min(stats.count, at + size)
            if perf_counter() - start > self.tuning.filter_seconds:
                self.out_of_time = int(np.count_nonzero(mask[at:]))
                break
            before = thread_time()
            mask[at:stop] = self._run(stats, mask, at, stop)
            took = thread_time() - before
            self._cut_off(self.root, left * (stats.count - stop) / stats.count)
            at, size = stop, _run_length(stop - at, took)
        self.seconds = perf_counter() - start
        return mask

    def _probe(self, stats: FileStats, mask: Mask, left: int) -> None:
        """Learns from samples of entries, evenly spread over all, and rules those out that it can."""
        for size in PROBES:
            if left <= 4 * size:
                break
            sample = np.arange(0, stats.count, left // size)
            sample = sample[mask[sample]]
            part = self._part(stats.take(sample), self.root)
            mask[sample], _ = self._timed(self.root, part, np.ones(len(sample), np.bool_), len(sample))
            self._cut_off(self.root, left)
            if not self._in_doubt(self.root, left):
                break

    def _run(self, stats: FileStats, alive: Mask, start: int, stop: int) -> Mask:
        """The same for a run of entries; the result has one flag for each of them."""
        here: Mask = alive[start:stop]
        left = int(np.count_nonzero(here))
        if not left:
            return here
        first, end = 0, len(here)
        if 2 * left < len(here):
            where = np.flatnonzero(here)
            first, end = int(where[0]), int(where[-1]) + 1
        part = stats if (first, end) == (0, stats.count) else stats.slice(start + first, start + end)
        after, _ = self._timed(self.root, self._context(part), here[first:end], left)
        if len(after) == len(here):
            return after
        whole = np.zeros(len(here), np.bool_)
        whole[first:end] = after
        return whole

    def _cut_off(self, node: Node, ahead: float) -> None:
        """Cuts off children of ANDs that took more time than they saved, if much more lies ahead."""
        for child in node.children:
            if child.cut:
                continue
            saved = (child.ruled_out + 1) * self.tuning.file_seconds
            if node.kind == "and" and child.seconds > saved and self._still_costs(child, ahead) > WORTH_CUTTING:
                child.cut = True
            else:
                self._cut_off(child, ahead)

    def _in_doubt(self, node: Node, ahead: float) -> bool:
        """Whether a test below has ruled out nothing and would cost much."""
        return any(
            not child.cut
            and (
                (not child.ruled_out and self._still_costs(child, ahead) > WORTH_CUTTING)
                or self._in_doubt(child, ahead)
            )
            for child in node.children
        )

    def _still_costs(self, node: Node, ahead: float) -> float:
        """Seconds for the entries ahead, if the node sees as large a share of them as so far."""
        return node.seconds * ahead / max(self.root.entries, 1)

    def _context(self, part: FileStats) -> EvalContext:
        return EvalContext(part, self._columns, self._settings, verdict_of, RULES, self._memo)

    def _may(self, node: Node, context: EvalContext, alive: Mask) -> Mask:
        """The entries of a part that are alive and may match."""
        match node.kind:
            case "and":
                return self._may_all(node, context, alive)
            case "or":
                return self._may_any(node, context, alive)
            case "test":
                return self._may_test(node, context, alive)

    def _may_all(self, node: Node, context: EvalContext, alive: Mask) -> Mask:
        where: Positions | None = None  # the entries that ``here`` holds, None if all
        here, left = context, int(np.count_nonzero(alive))
        for child in node.in_order():
            if not left:
                break
            if _worth_picking(child, left, len(alive)):
                picked = np.flatnonzero(alive)
                where = picked if where is None else where[picked]
                here, alive = self._part(context.stats.take(where), child), np.ones(left, np.bool_)
            elif where is not None:
                self._prepare(child, here.stats)
            alive, left = self._timed(child, here, alive, left)
        return alive if where is None else _spread(alive, where, context.count)

    def _may_any(self, node: Node, context: EvalContext, alive: Mask) -> Mask:
        kept = np.zeros(context.count, np.bool_)
        open_, left = alive, int(np.count_nonzero(alive))
        for child in node.in_order():
            if not left:
                break
            if _worth_picking(child, left, len(open_)):
                where = np.flatnonzero(open_)
                part = self._part(context.stats.take(where), child)
                found, _ = self._timed(child, part, np.ones(left, np.bool_), left)
                found = _spread(found, where, context.count)
            else:
                found, _ = self._timed(child, context, open_, left)
            kept = kept | found
            open_ = open_ & ~found
            left = int(np.count_nonzero(open_))
        return kept

    def _timed(self, node: Node, context: EvalContext, alive: Mask, left: int) -> tuple[Mask, int]:
        """The entries that may match and their number; takes note of it."""
        start = self._clock()
        after = self._may(node, context, alive)
        node.seconds += self._clock() - start
        kept = int(np.count_nonzero(after))
        node.entries += len(alive)
        node.looked += left
        node.dropped += left - kept
        return after, kept

    def _may_test(self, node: Node, context: EvalContext, alive: Mask) -> Mask:
        try:
            flags = self._flags(node, context)
        except Exception as error:  # one test that breaks must not spoil the others (rule S1)
            log.warning("%s broke", node.expression, exc_info=True)
            node.broken = f"{type(error).__name__}: {error}"
            return alive
        if isinstance(flags, bool):
            return alive if flags else np.zeros(len(alive), np.bool_)
        return alive & flags

    def _flags(self, node: Node, context: EvalContext) -> Flags:
        """Where the evaluator says that a test may match; of rows with the same value it is asked about one."""
        column = node.column if context.stats.are_rows or context.stats.origin else None
        source = None if column is None else column_source(column, self._columns)
        found = None if source is None else distinct_entries(context.stats, source)
        if found is None:
            return verdict_of(node.expression, context).flags(false=node.negated)
        values, like = found
        flags = verdict_of(node.expression, self._context(values)).flags(false=node.negated)
        return flags if isinstance(flags, bool) else flags[like]

    def _part(self, part: FileStats, node: Node) -> EvalContext:
        self._prepare(node, part)
        return self._context(part)

    def _prepare(self, node: Node, stats: FileStats) -> None:
        """Fetches what a node reads, so that this does not count as its cost."""
        for column in node.reads:
            source = column_source(column, self._columns)
            if source is not None:
                try:
                    value_range(stats, source)
                except Exception:
                    log.debug("the statistics of %s broke", column, exc_info=True)  # whoever reads them will say so


def _run_length(entries: int, seconds: float) -> int:
    """How many entries the next run should hold, if so many took so long; whole blocks."""
    return max(4, int(RUN_SECONDS * entries / max(seconds, 1e-9)) // BLOCK) * BLOCK


def _worth_picking(node: Node, left: int, count: int) -> bool:
    if not node.entries:
        return left <= SPARSE * count
    slow = sum(1.0 if column.type.name in ("string", "decimal") else 0.2 for column in set(node.reads))
    return left * (node.cost + slow * PICKING_SECONDS) < node.cost * count


def _spread(flags: Mask, where: Positions, count: int) -> Mask:
    whole = np.zeros(count, np.bool_)
    whole[where] = flags
    return whole
