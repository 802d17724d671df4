"""Join pruning at run time: the keys that one side of a join really has choose the files of the other side.

Before and after, for a dimension of which a filter leaves few rows, scattered over all of its files::

    Inner Join (key = f_key)                 the subquery reads dim once more, for the keys that pass the filter:
      Filter (region LIKE '%north%')         {17, 4711}
        Scan dim [key, region]
      Scan fact [f_key]  (1..99, 100..199, …, 4700..4799, …)       ->   the scan reads two files

The subquery is a copy of that side of the join, which Spark runs before the scan. It tells the distinct keys where few
are expected, else a map of 32,768 bits over equal ranges of the numbers that the scan's files hold: 4 kB, whatever the
number of keys, and exact where there are no more numbers than bits. No key at all: no file is read.

Where it may go is the business of :mod:`secateur.passes.joins.links`, as for what ``join_ranges`` passes on before the
query runs. That side of the join has to give the same rows each time it runs: a LIMIT, a window or anything random in
it rules it out.

Whether it pays is reckoned beforehand: of each file it is known how many others share its range of keys, so a key that
is there hits it with about that probability. How many keys a condition leaves is a guess, though, and may be far too
high; where asking costs next to nothing beside what might be spared, it is tried.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from secateur.decision.parts import AskAtRuntime, Part
from secateur.decision.runtime import KeysRequest, Membership, RowFilter
from secateur.evaluate.evaluator import context_of
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.in_lists import search, take
from secateur.evaluate.range_sets import RangeSet, merged, range_set
from secateur.evaluate.value_range import ValueRange
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.joins.links import Side
from secateur.passes.limits.runtime_row_filter import row_filter
from secateur.passes.limits.sorted_scans import repeats
from secateur.passes.limits.topk import as_flags
from secateur.passes.limits.topk_probe import BYTES_A_SECOND, JOB_SECONDS, seconds
from secateur.plan.expressions import Call, Column, Expression, IsNotNull, children, conjuncts, with_children
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import Filter, Plan, Project, Scan, walk
from secateur.plan.values import decode_value
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.file_stats import sum_of

BITS = 32_768
FEW = 1_000
"""Up to so many expected keys are sent as they are."""
MOST_KEYS = 10_000
"""If there are more after all, a list of them tells nothing."""
MATCHING = 0.1
"""How many rows a condition is taken to leave; three conditions count."""
WORTH = 3
"""How many times its own cost it has to save."""
CHEAP = 0.1
"""What part of the other side's cost a mere hope may cost."""
_HOPES = (1.0, 0.1, 0.01, 0.001)
"""What part of the keys that are expected there may be in the end, each as likely as the others."""
MOST_SCANS = 4
"""How many scans of one query wait for keys at most, and how many a side may read."""
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "date", "timestamp")


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """The keys of one side of a join, as a list or a map over ``low`` to ``high``, found out while the query runs."""

    join: int
    left: bool
    """Whether it is the left side that tells."""
    key: Column
    target: Expression
    tables: str
    low: int | None = None
    high: int | None = None
    row_filter: RowFilter | None = None
    """How rows are compared with the least and the greatest of listed keys."""

    name = "join_keys"

    @property
    def width(self) -> int:
        """How many numbers share a bit."""
        return 0 if self.low is None or self.high is None else (self.high - self.low) // BITS + 1

    @property
    def request(self) -> KeysRequest:
        """The subquery that Spark runs first."""
        span = None if self.low is None or self.high is None else (self.low, self.high, self.width)
        about = repr(_by_names(self.target))
        return KeysRequest(self.join, self.left, self.key, about, MOST_KEYS, span, self.row_filter)

    def describe(self) -> str:
        return f"the keys of {self.tables} are read first, and choose files by {in_words(self.target)}"

    def condition(self, values: Sequence[object]) -> Membership | None:
        """The values that rows with a partner have, given how many keys there were, and the keys or the bits.

        >>> from secateur.plan.types import parse_type
        >>> key, target = Column(1, "k", parse_type("int")), Column(2, "f", parse_type("bigint"))
        >>> JoinKeys(0, True, key, target, "dim").condition([2, [17, 18]]).values.pairs()
        [(17, 18)]
        >>> bits = base64.b64encode(bytes([0b11, 0, 0b100])).decode()
        >>> JoinKeys(0, True, key, target, "dim", 1000, 1000 + 10 * BITS - 1).condition([3, bits]).values.pairs()
        [(-9223372036854775808, 1019), (1180, 1189), (328680, 9223372036854775807)]
        """
        match values:
            case [int(count), list(found), *_] if self.low is None and count == len(found) <= MOST_KEYS:
                keys = [decode_value(value, self.key.type) for value in found]
                if any(key is None for key in keys):
                    return None
                numbers = [key for key in keys if not (isinstance(key, float) and math.isnan(key))]
                points = range_set(self.target.type, [(key, key) for key in numbers])
                return Membership(self.target, replace(points, nan=len(numbers) < len(keys)))
            case [int(), str(found)] if self.low is not None:
                return Membership(self.target, self._ranges(base64.b64decode(found)))
            case _:
                return None

    def _ranges(self, found: bytes) -> RangeSet:
        """The map knows nothing of what lies beside it, where files without bounds may have their values (rule S1)."""
        assert self.low is not None
        assert self.high is not None
        at = np.flatnonzero(np.unpackbits(np.frombuffer(found, np.uint8), bitorder="little"))
        begin = at * self.width
        end = np.minimum(begin + (self.width - 1), self.high - self.low)  # no further: it need not fit in int64
        beside = [(low, high) for low, high in ((_LEAST, self.low - 1), (self.high + 1, _GREATEST)) if low <= high]
        lows = np.concatenate([self.low + begin, [low for low, _ in beside]]).astype(np.int64)
        highs = np.concatenate([self.low + end, [high for _, high in beside]]).astype(np.int64)
        return merged(self.target.type, lows, highs)


def ask_join_keys(known: PassInput) -> PassResult:
    """Make scans wait for the keys of what they are joined with, where that pays."""
    best: dict[int, _Worth] = {}
    used: set[int] = set()
    reasons: dict[int, Reason] = {}
    order_sensitive, scans = known.analysis.order_sensitive, known.analysis.scans
    sent_before: dict[int, bool] = {}
    for side in known.analysis.links.sides:
        if side.null_safe or side.join.ref in used:  # NULL is no key here
            continue
        targets = [
            target for target in side.targets if target.scan not in order_sensitive and _is_open(target.scan, known)
        ]
        candidate = _Candidate.of(side, known, best) if targets else None
        if candidate is None:
            continue
        for target in targets:
            if target.scan in candidate.scans:
                continue
            found = candidate.keys(scans[target.scan], target.expression, known)
            if found is None or candidate.sent_keys_before(known, sent_before):
                continue
            if isinstance(found, Reason):
                reasons.setdefault(target.scan, found)
            elif target.scan not in best or best[target.scan].saved < found.saved:
                best[target.scan] = found
                used.add(side.join.ref)
    # Each join is asked in one direction, so that no side waits for one that waits for it.
    chosen = sorted(best.items(), key=lambda item: -item[1].saved)[:MOST_SCANS]
    parts: list[tuple[int, Part]] = [(id_, AskAtRuntime(worth.keys)) for id_, worth in chosen]
    asking = {id_ for id_, _ in chosen}
    return [*parts, *((id_, reason) for id_, reason in reasons.items() if id_ not in asking)]


@dataclass(frozen=True, slots=True)
class _Worth:
    """What a scan may wait for, the seconds that this saves, and what part of its files is expected to be left."""

    saved: float
    keys: JoinKeys
    left: float


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A side of a join that can be read first, with what that takes and how many keys it may have."""

    side: Side
    key: Column
    scans: tuple[int, ...]
    tables: str
    cost: float
    expected: float
    guessed: bool
    """Whether conditions may leave far fewer keys than expected."""

    @staticmethod
    def of(side: Side, known: PassInput, waiting: Mapping[int, _Worth]) -> _Candidate | None:
        """None if it cannot be read first. Scans that wait for keys themselves read less, and so hold fewer keys."""
        key = _column(side.key)
        scans = list(islice((node for node in walk(side.plan) if isinstance(node, Scan)), MOST_SCANS + 1))
        if side.join.ref < 0 or key is None or not 0 < len(scans) <= MOST_SCANS:
            return None
        nodes = list(walk(side.plan))
        if not all(map(repeats, nodes)):
            return None
        if any(scan.lossy for scan in scans):  # a file that is passed over now may be read later
            return None
        cost, expected = JOB_SECONDS, np.inf
        for scan in scans:
            kept = known.kept.get(scan.id)
            if kept is None:
                cost += scan.bytes / BYTES_A_SECOND
                continue
            left = waiting[scan.id].left if scan.id in waiting else 1.0
            cost += seconds(known.stats[scan.id], kept, known) * left + (JOB_SECONDS if scan.id in waiting else 0.0)
            rows = sum_of(known.stats[scan.id].rows, kept, known=True)
            # A join gives at most the keys of the table that has the fewest, if keys of that are unique.
            expected = min(expected, float(rows or 0) * left)
        conditions = sum(map(_conditions, nodes))
        expected = max(expected * MATCHING ** min(conditions, 3), 1.0)
        tables = ", ".join(dict.fromkeys(scan.table for scan in scans))
        ids = tuple(scan.id for scan in scans)
        guessed = conditions > 0 or not waiting.keys().isdisjoint(ids)
        return _Candidate(side, key, ids, tables, cost, expected, guessed)

    def sent_keys_before(self, known: PassInput, seen: dict[int, bool]) -> bool:
        """Whether it is a small table that passes on its keys before the query runs; ``seen`` remembers those."""
        nodes = list(walk(self.side.plan))
        scans = [node for node in nodes if isinstance(node, Scan)]
        if len(scans) > 1 or not all(isinstance(node, Scan | Filter | Project) for node in nodes):
            return False
        return seen[id_] if (id_ := scans[0].id) in seen else seen.setdefault(id_, _sent_keys_before(scans[0], known))

    def keys(self, scan: Scan, target: Expression, known: PassInput) -> _Worth | Reason | None:
        """What the scan may wait for, or why it had better not."""
        columns = {column.id: column for column in scan.columns}
        if any(columns[c.id].kind == "partition" for c in parts_of(target) if isinstance(c, Column)):
            return None  # Spark does that itself
        stats, kept = known.stats[scan.id], known.kept[scan.id]
        found = range_of(target, context_of(stats, columns, known.query.settings))
        if found is None:
            return None
        places = np.flatnonzero(
            kept
            & as_flags(found.may_hold_number, stats.count)
            & ~as_flags(found.low.unknown | found.high.unknown, stats.count)
        )
        if len(places) < 2:
            return None
        spared = np.zeros(stats.count, np.bool_)
        spared[places] = True
        hit, whole = _hit(found, places), seconds(stats, spared, known)
        part = _missed(hit, [self.expected])
        if self.guessed and self.cost < CHEAP * whole:
            part = _missed(hit, [max(self.expected * hope, 1.0) for hope in _HOPES])
        saved = whole * part
        if saved < WORTH * self.cost:
            reason = Reason(
                "join-keys-not-worth",
                f"The keys of {self.tables} might skip {part:.0%} of the files of {scan.table} that are left, which is "
                f"not worth reading {self.tables} first.",
            )
            return reason if saved > self.cost else None
        side = self.side
        rows = row_filter(target, scan, stats, kept) if _widens(self.key.type.name, target.type.name) else None
        keys = JoinKeys(side.join.ref, side.left, self.key, target, self.tables, row_filter=rows)
        if self.expected > FEW and self.key.type.name in _NUMBERS and target.type.name in _NUMBERS:
            low, high = int(np.min(found.low.values[places])), int(np.max(found.high.values[places]))
            if high - low < 2**62:
                keys = replace(keys, low=low, high=high, row_filter=None)
        return _Worth(saved, keys, 1.0 - part)


def _is_open(id_: int, known: PassInput) -> bool:
    """Whether there are files of a scan to choose from."""
    return id_ in known.stats and int(np.count_nonzero(known.kept[id_])) > 1


def _sent_keys_before(scan: Scan, known: PassInput) -> bool:
    """Whether it is known which rows of a small table match: their keys were passed on before the query runs."""
    kept = known.kept.get(scan.id)
    if kept is None:
        return False
    rows = known.small_tables.surviving_rows(scan, kept)
    return rows is not None and len(rows.left) <= known.tuning.join_ranges and rows.is_certain


def _column(key: Expression) -> Column | None:
    """The column that a key is, behind a cast to a wider whole number."""
    match key:
        case Column(path=()):
            return key
        case Call("Cast", (Column(path=()) as column,)) if {column.type.name, key.type.name} <= set(_NUMBERS[:4]):
            return column if _widens(column.type.name, key.type.name) else None
    return None


def _by_names(e: Expression) -> Expression:
    return replace(e, id=0) if isinstance(e, Column) else with_children(e, list(map(_by_names, children(e))))


def _widens(from_: str, to: str) -> bool:
    """Whether a cast from one type to another keeps all values, among whole numbers."""
    whole = _NUMBERS[:4]
    return from_ == to or (from_ in whole and to in whole and whole.index(from_) <= whole.index(to))


def _conditions(node: Plan) -> int:
    return sum(not isinstance(c, IsNotNull) for c in conjuncts(node.condition)) if isinstance(node, Filter) else 0


def _hit(found: ValueRange, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """How likely one key hits each of the files, by how many files share its range."""
    low, high = take(found.low.values, places), take(found.high.values, places)
    return np.minimum((search(_ordered(low), high) - search(_ordered(high), low) + 1) / len(places), 1.0)


def _missed(hit: npt.NDArray[np.float64], keys: Sequence[float]) -> float:
    """What part of the files no key hits, if there are so many, on average over some numbers of keys.

    >>> _missed(np.array([0.5, 0.0]), [1.0]), _missed(np.array([0.5, 0.0]), [1.0, 2.0])
    (0.75, 0.6875)
    """
    return float(np.mean((1 - hit)[:, None] ** np.array(keys)))


def _ordered(ends: Any) -> Any:
    return np.sort(ends) if isinstance(ends, np.ndarray) else ends.take(pc.sort_indices(ends))
