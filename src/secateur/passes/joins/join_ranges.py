"""Data-induced predicates: what the files of one table hold tells which files of the tables that join with it matter.

Before and after, with a filter that left the first file of part and none of lineitem::

    Inner Join (partkey = l_partkey)       lineitem kept: [True, True, True]    ->    [True, False, False]
      Filter (brand = 'A')                                 l_partkey: 30..90, 61..150, 300..500
        Scan part [partkey, brand]         part kept:     [True, False]
      Scan lineitem [l_partkey]                            partkey: 1..40, 200..240

From the files that are kept of a scan follows the set of values that its join column can take, as ranges
(:mod:`secateur.evaluate.range_sets`); a kept file whose bounds are unknown can hold anything, and then nothing follows
(rule S1). Of a small table whose rows are known, the rows that may match tell it
(:mod:`secateur.passes.filter.surviving_rows`). Where the set may go is the business of
:mod:`secateur.passes.joins.links`, in which order that of :mod:`secateur.passes.joins.message_order`. Each message is
sound for the files that are left at that time, and files only become fewer, so it stays sound; it is enough that each
single one is.

Scans that read the same under the same conditions keep the same files in the end, so that Spark can still read once for
both; and so do Spark's own copies of one side of a join, by which it prunes the other at run time. Keeping more files
than the messages asked for is sound: sent once more, in the same order, they would lead to the same files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np

from secateur.decision.parts import Keep, Part
from secateur.decision.records import JoinRecord
from secateur.evaluate.evaluator import comparable, context_of
from secateur.evaluate.expression_ranges import EvalContext, column_source, range_of
from secateur.evaluate.range_sets import RangeSet, compact, holds_numbers, intersection, union, values_in
from secateur.evaluate.subfiles import Subfiles, files_meeting, finest, values_of
from secateur.evaluate.value_range import ValueRange
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.surviving_rows import SurvivingRows
from secateur.passes.joins.links import Endpoint, Link, Links, pruning_copies
from secateur.passes.joins.message_order import Cycle, Message, message_order
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import Filter, Plan, Project, Scan
from secateur.reasons import Reason

ROUNDS = 4
"""How often the tables of one cycle tell each other (κ in the paper)."""


def prune_by_join_ranges(known: PassInput) -> PassResult:
    """Keep of every scan the files that may hold a row with a partner in the tables that it joins with."""
    links = known.analysis.links
    if not links.found and not links.blocked:
        return ()
    exchange = Exchange(known, links)
    exchange.run()
    kept = exchange.narrowed()
    parts: list[tuple[int, Part]] = [
        (id_, Keep(mask, needs_scans_unchanged=frozenset(exchange.rests_on.get(id_, ())) - {id_}))
        for id_, mask in kept.items()
    ]
    return [*parts, *exchange.reasons(kept), *exchange.records]


@dataclass(slots=True)
class Exchange:
    """The exchange of messages over one query."""

    known: PassInput
    links: Links
    records: list[tuple[int, JoinRecord]] = field(default_factory=list)
    rests_on: dict[int, set[int]] = field(default_factory=dict)
    """The scans on whose files the choice of another's rests."""
    messages: int = 0
    _scans: dict[int, Scan] = field(default_factory=dict)
    _kept: dict[int, Mask] = field(default_factory=dict)
    _version: Counter[int] = field(default_factory=Counter)
    """How often fewer files or rows of each scan were left."""
    _contexts: dict[int, EvalContext] = field(default_factory=dict)
    _rows: dict[int, SurvivingRows | None] = field(default_factory=dict)
    _value_ranges: dict[Endpoint, ValueRange | None] = field(default_factory=dict)
    _fine: dict[Endpoint, tuple[ValueRange | None, Subfiles | None]] = field(default_factory=dict)
    _values: dict[Endpoint, tuple[int, RangeSet | None]] = field(default_factory=dict)
    _sent: dict[Link, tuple[int, ...]] = field(default_factory=dict)
    _received: dict[tuple[Endpoint, bool], _Received] = field(default_factory=dict)
    _unknown: set[int] = field(default_factory=set)
    _out_of_time: bool = False

    def __post_init__(self) -> None:
        scans = [scan for scan in self.known.query.scans() if scan.id in self.known.stats]
        times = Counter(scan.id for scan in scans)
        self._scans = {scan.id: scan for scan in scans if times[scan.id] == 1}
        self._kept = {id_: self.known.kept[id_] for id_ in self._scans}

    def run(self) -> None:
        """Sends every message, until nothing changes any more or time is up."""
        ways: dict[Message, list[Link]] = {}
        for link in self._usable():
            for origin in link.origins:
                ways.setdefault(Message(origin.scan, link.target.scan), []).append(link)
        edges = {(min(way.sender, way.receiver), max(way.sender, way.receiver)) for way in ways}
        deadline = perf_counter() + self.known.tuning.filter_seconds / 2
        for step in message_order(sorted(edges)):
            exchanges = step.exchanges if isinstance(step, Cycle) else (step,)
            for _ in range(ROUNDS if isinstance(step, Cycle) else 1):
                if perf_counter() > deadline:
                    self._out_of_time = True
                    return
                sent = [self._send(link) for exchange in exchanges for link in ways.get(exchange, ())]
                if not any(sent):
                    break

    def _usable(self) -> Iterator[Link]:
        order_sensitive = self.known.analysis.order_sensitive
        for link in dict.fromkeys(self.links.found):
            to, by = link.target.scan, {origin.scan for origin in link.origins}
            if to in self._scans and to not in order_sensitive and by <= self._scans.keys() and to not in by:
                yield link

    def narrowed(self) -> dict[int, Mask]:
        """The scans of which fewer files are left."""
        plan = self.known.query.plan
        copied = {scan.id for scan in pruning_copies(plan)} & self._scans.keys()
        together: dict[tuple[str, bytes], list[int]] = {}
        changed = {self._scans[id_].listing for id_, mask in self._kept.items() if mask is not self.known.kept[id_]}
        often = Counter(scan.listing for scan in self._scans.values())
        shared = {listing for listing in changed if often[listing] > 1}
        for id_, reading in _readings(plan, shared) if shared else ():
            if id_ in self._scans and id_ not in copied:
                together.setdefault((reading, np.packbits(self.known.kept[id_]).tobytes()), []).append(id_)
        for ids in together.values():
            if len(ids) > 1:
                mask = np.logical_or.reduce([self._kept[id_] for id_ in ids])
                rests_on = set().union(*(self.rests_on.get(id_, ()) for id_ in ids))
                for id_ in ids:
                    self._kept[id_], self.rests_on[id_] = mask, rests_on
        self._copy(copied)
        return {id_: mask for id_, mask in self._kept.items() if _count(mask) < _count(self.known.kept[id_])}

    def _copy(self, copied: set[int]) -> None:
        """What a copy reads is what its original reads."""
        originals = {(scan.listing, scan.instance_id): id_ for id_, scan in self._scans.items() if id_ not in copied}
        for id_ in copied - self.known.analysis.order_sensitive:
            original = originals.get((self._scans[id_].listing, self._scans[id_].instance_id))
            if original is not None and np.array_equal(self.known.kept[original], self.known.kept[id_]):
                self._kept[id_] = self._kept[original]
                self.rests_on[id_] = {*self.rests_on.get(original, ()), original}
                self.records += [(id_, record) for at, record in self.records if at == original]

    def _send(self, link: Link) -> bool:
        """Whether what the origins hold by now rules out files of the target."""
        token = tuple(self._version[origin.scan] for origin in link.origins)
        if self._sent.get(link) == token or not self._kept[link.target.scan].any():
            return False
        self._sent[link] = token
        self.messages += 1
        values = [self._held(origin) for origin in link.origins]
        found = self._found(link.target)
        known = [v for v in values if v is not None and found is not None and comparable(v.type, found.type)]
        if found is None or len(known) < len(values):
            self._unknown.add(link.target.scan)
            return False
        held = union(known) if len(known) > 1 else known[0]
        received = self._received.setdefault((link.target, link.null_safe), _Received())
        if holds_numbers(held, found):
            received.links[link] = None
            return False
        null = link.null_safe and (held.null or any(origin.filled for origin in link.origins))
        held = held if held.null == null else replace(held, null=null)
        # To look at rows takes longer than to look at files: only what rows tell is worth it.
        by_rows = any(self._fewer_rows(origin.scan) is not None for origin in link.origins)
        sent = compact(held, self.known.tuning.join_ranges)
        return received.take(link, sent, by_rows=by_rows) and self._narrow(link, found, received, len(sent), by_rows)

    def _narrow(self, link: Link, found: ValueRange, received: _Received, ranges: int, by_rows: bool) -> bool:
        id_, wanted = link.target.scan, received.wanted
        before = self._kept[id_]
        mask = files_meeting(found, *self._finest(link.target), wanted, before)
        rows = self._rows_left(id_) if by_rows else None
        fewer_rows = rows is not None and rows.narrow(link.target.expression, wanted, mask)
        alive, left = _count(before), _count(mask)
        if left == alive and not fewer_rows:
            return False
        self._kept[id_] = mask
        self._version[id_] += 1
        senders = {origin.scan for other in received.links for origin in other.origins}
        rests_on = self.rests_on.setdefault(id_, set())
        rests_on |= senders.union(*(self.rests_on.get(sender, ()) for sender in senders))
        if left < alive:
            tables = ", ".join(dict.fromkeys(self._scans[origin.scan].table for origin in link.origins))
            record = JoinRecord(tables, self._named(link.target), ranges, alive, left)
            self.records.append((id_, record))
        return True

    def _held(self, origin: Endpoint) -> RangeSet | None:
        """What an origin can hold in the files that are kept by now."""
        version = self._version[origin.scan]
        known = self._values.get(origin)
        if known is None or known[0] != version:
            known = self._values[origin] = (version, self._values_in(origin, self._kept[origin.scan]))
        return known[1]

    def _values_in(self, origin: Endpoint, kept: Mask) -> RangeSet | None:
        rows = self._fewer_rows(origin.scan)
        if rows is not None and (held := rows.values(origin.expression)) is not None:
            return held
        if isinstance(origin.expression, Column):
            context = self._context(origin.scan)
            column = column_source(origin.expression, context.columns)
            return None if column is None else values_of(context.stats, column, kept)
        found, parts = self._finest(origin)
        return None if found is None else values_in(found, np.flatnonzero(kept) if parts is None else parts.of(kept))

    def _finest(self, endpoint: Endpoint) -> tuple[ValueRange | None, Subfiles | None]:
        if endpoint not in self._fine:
            self._fine[endpoint] = finest(endpoint.expression, self._context(endpoint.scan))
        return self._fine[endpoint]

    def _found(self, endpoint: Endpoint) -> ValueRange | None:
        if endpoint not in self._value_ranges:
            self._value_ranges[endpoint] = range_of(endpoint.expression, self._context(endpoint.scan))
        return self._value_ranges[endpoint]

    def _context(self, id_: int) -> EvalContext:
        if id_ not in self._contexts:
            columns = {column.id: column for column in self._scans[id_].columns}
            self._contexts[id_] = context_of(self.known.stats[id_], columns, self.known.query.settings)
        return self._contexts[id_]

    def _fewer_rows(self, id_: int) -> SurvivingRows | None:
        """The rows of a small table that may still matter, None if they are all, as far as is known by now."""
        if id_ not in self._rows and not self.known.small_tables.informative_conjuncts(self._scans[id_]):
            return None
        rows = self._rows_left(id_)
        return None if rows is None or rows.is_whole else rows

    def _rows_left(self, id_: int) -> SurvivingRows | None:
        """The rows of a small table that may still matter."""
        if id_ not in self._rows:
            self._rows[id_] = self.known.small_tables.surviving_rows(self._scans[id_], self._kept[id_])
        return self._rows[id_]

    def _named(self, endpoint: Endpoint) -> str:
        """The columns of the scan that an endpoint is about: a union calls them by other names."""
        names = {column.id: column.name for column in self._scans[endpoint.scan].columns}
        columns = (part for part in parts_of(endpoint.expression) if isinstance(part, Column))
        return ", ".join(dict.fromkeys(".".join((names.get(c.id, c.name), *c.path)) for c in columns))

    def reasons(self, kept: Mapping[int, Mask]) -> Iterator[tuple[int, Reason]]:
        """For each scan that joins with others and that they could not narrow, one reason."""
        received = {target.scan: tables for tables, target in self._senders()}
        for id_, scan in self._scans.items():
            if id_ in kept or _count(self.known.kept[id_]) < 2:  # of a single file there is little to skip
                continue
            if self._out_of_time:
                yield id_, _no_time(scan)
            elif id_ in received:
                yield id_, _not_selective(scan, received[id_])
            elif id_ in self._unknown:
                yield id_, _no_statistics(scan)
            elif id_ in self.links.blocked:
                yield id_, _blocked(scan, self.links.blocked[id_])

    def _senders(self) -> Iterator[tuple[str, Endpoint]]:
        for (target, _), received in self._received.items():
            names = dict.fromkeys(self._scans[origin.scan].table for link in received.links for origin in link.origins)
            yield ", ".join(names), target


@dataclass(slots=True)
class _Received:
    """What one endpoint received over several links: the values that all of them allow."""

    links: dict[Link, None] = field(default_factory=dict)
    _wanted: RangeSet | None = None
    _by_rows: bool = False

    @property
    def wanted(self) -> RangeSet:
        assert self._wanted is not None
        return self._wanted

    def take(self, link: Link, values: RangeSet, *, by_rows: bool) -> bool:
        """Takes in what a link tells, the first time or again; False if no file or row is less wanted than before."""
        self.links[link] = None
        before, self._wanted = self._wanted, values if self._wanted is None else intersection(values, self._wanted)
        fewer = before is None or not before.equals(self._wanted) or (by_rows and not self._by_rows)
        self._by_rows = self._by_rows or by_rows
        return fewer


def _readings(plan: Plan, listings: set[str], above: tuple[Plan, ...] = ()) -> Iterator[tuple[int, str]]:
    """Each scan of some listings with what it reads, and what the Filters and Projects right above it make of that."""
    if isinstance(plan, Scan) and plan.listing in listings:
        columns = ",".join(column.name for column in plan.columns)
        yield plan.id, f"{plan.listing} {columns} " + re.sub(r"#\d+", "", "".join(node.describe() for node in above))
    for child in plan.children:
        chain = (*above, plan) if isinstance(plan, Filter | Project) and child is plan.child else ()
        yield from _readings(child, listings, chain)


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _not_selective(scan: Scan, senders: str) -> Reason:
    return Reason(
        "join-not-selective",
        f"Every file of {scan.table} may hold rows with a partner in {senders}. Cluster it by the columns that it is "
        "joined by, or add a condition.",
    )


def _no_statistics(scan: Scan) -> Reason:
    return Reason(
        "join-no-statistics",
        f"The tables that {scan.table} joins with cannot narrow it: some file has no bounds of a join column. Collect "
        "statistics of these columns; join by columns, or by functions that have a rule.",
    )


def _no_time(scan: Scan) -> Reason:
    return Reason(
        "out-of-time",
        f"The tables that {scan.table} joins with could narrow it only in part, for want of time; raise "
        "spark.secateur.filter.budget.ms.",
    )


def _blocked(scan: Scan, why: str) -> Reason:
    return Reason("join-blocked", f"The tables that {scan.table} joins with cannot narrow it: {why}.")
