"""Values that become known while a query runs: which files of a scan can hold one of them.

A join that broadcasts its small side hands the keys of it to the scan of the other side, before that opens a file. The
statistics are those that the query was planned with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from secateur.query.expressions import Column, In, Value
from secateur.query.plan import Settings
from secateur.query.types import DataType, parse_type
from secateur.query.values import decode_value
from secateur.reason.evaluate import evaluate
from secateur.stats.filestats import FileStats, Mask, ScanColumn

_DEFAULTS = Settings()


def files_holding(
    stats: FileStats, name: str, type_: DataType, values: Sequence[Value], settings: Settings = _DEFAULTS
) -> Mask:
    """The files that may hold one of the values in a column.

    >>> import pyarrow as pa
    >>> from secateur.stats.filestats import ColumnStats
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
