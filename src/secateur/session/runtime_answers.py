"""Values that become known while a query runs: which files of a scan can hold one of them.

A join that broadcasts its small side hands the keys of it to the scan of the other side, before that opens a file; and
a scan may wait for a subquery whose row tells what the query needs of it (:class:`RuntimeAnswers`). The statistics are
those that the query was planned with.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from secateur.decision.runtime import Membership, RuntimePredicate
from secateur.errors import SecateurError
from secateur.evaluate.evaluator import context_of, evaluate
from secateur.evaluate.subfiles import files_where
from secateur.passes.filter.filter import narrow
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Column, In, Value
from secateur.plan.nodes import Scan, Settings
from secateur.plan.types import DataType, parse_type
from secateur.plan.values import decode_value
from secateur.plan.wording import in_words
from secateur.recent import Recent
from secateur.stats.file_stats import FileStats, sum_of

_DEFAULTS = Settings()
_REMEMBERED = 1000
_MOST_FLAGS = 50_000_000
"""How many flags of files all scans that wait may hold together."""


def files_holding(
    stats: FileStats, name: str, type_: DataType, values: Sequence[Value], settings: Settings = _DEFAULTS
) -> Mask:
    """The files that may hold one of the values in a column.

    >>> import pyarrow as pa
    >>> from secateur.stats.file_stats import ColumnStats
    >>> flags = np.ones(2, dtype=np.bool_)
    >>> known = ColumnStats(pa.array([1, 6]), pa.array([5, 9]), pa.array([0, 0]), pa.array([0, 0]), flags, flags)
    >>> stats = FileStats(pa.array([10, 10]), pa.array([1, 1]), load=lambda column: known)
    >>> files_holding(stats, "x", parse_type("int"), [3, 12]).tolist()
    [True, False]
    """
    column = ScanColumn(0, name, type_)
    predicate = In(Column(0, name, type_), tuple(values))
    return evaluate(predicate, stats, {0: column}, settings).may


def files_to_skip(stats: FileStats, lists: Sequence[Sequence[Any]], settings: Settings = _DEFAULTS) -> Mask:
    """The files that cannot match all of the lists, each ``[column, type, values]`` as the wire has them."""
    kept = np.ones(stats.count, np.bool_)
    for name, type_name, wire in lists:
        type_ = parse_type(type_name)
        kept &= files_holding(stats, name, type_, [decode_value(v, type_) for v in wire], settings)
    return ~kept


@dataclass(frozen=True, slots=True)
class _Pending:
    predicate: RuntimePredicate
    scan: Scan
    kept: Mask
    settings: Settings


def _weight(pending: _Pending) -> int:
    return max(len(pending.kept), _MOST_FLAGS // _REMEMBERED)


class RuntimeAnswers:
    """What scans of planned queries wait for, the latest of them: a query that runs late may find itself forgotten."""

    def __init__(self) -> None:
        self._waiting: Recent[str, _Pending] = Recent(_MOST_FLAGS, _weight)
        self._ids = count(1)

    def remember(self, predicate: RuntimePredicate, scan: Scan, kept: Mask, settings: Settings) -> str:
        """Keeps it under a name, which the JVM will ask by."""
        id_ = f"{predicate.name}-{next(self._ids)}"
        self._waiting.put(id_, _Pending(predicate, scan, kept, settings))
        return id_

    def fingerprint(self, id_: str) -> str:
        """The files that it is about."""
        return self._of(id_).scan.listing

    def answer(self, id_: str, values: Sequence[object], stats: FileStats) -> tuple[Mask, str]:
        """The files to skip now that the values are known, and what the summary is to tell, as JSON."""
        pending = self._of(id_)
        condition = pending.predicate.condition(values)
        if condition is None:
            return ~pending.kept, json.dumps({"values": values})
        if isinstance(condition, Membership):
            after, words = self._members(pending, condition, stats)
        else:
            columns = {column.id: column for column in pending.scan.columns}
            after = narrow((condition,), stats, columns, pending.kept, pending.settings)
            words = in_words(condition)
        found = {"condition": words, "bytes": sum_of(stats.sizes, after), "rows": sum_of(stats.rows, after)}
        return ~after, json.dumps(found)

    def _members(self, pending: _Pending, wanted: Membership, stats: FileStats) -> tuple[Mask, str]:
        columns = {column.id: column for column in pending.scan.columns}
        after = files_where(
            wanted.expression, wanted.values, context_of(stats, columns, pending.settings), pending.kept
        )
        many = f"{len(wanted.values):,} ranges" if len(wanted.values) > 1 else f"{len(wanted.values)} range"
        return after, f"{in_words(wanted.expression)} in {many}"

    def _of(self, id_: str) -> _Pending:
        found = self._waiting.peek(id_)
        if found is None:
            raise SecateurError("too many such queries were planned since, what this one waited for is forgotten")
        return found
