r"""What statistics can look like beyond what one writer writes: the same files, seen through a lens.

``nans``       the NaNs of every file are counted. Parquet does not, and then a float may always be one, which hides
               every mistake about the NaNs that functions make.
``truncated``  string bounds are cut off after three bytes, the upper one raised in its last byte that can be: what
               writers do to long ones, down to a maximum like ``\xff`` for a string of them.
``gaps``       a third of the bounds and counts are unknown, with other values under their nulls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np
import pyarrow as pa

from secateur.plan.columns import ScanColumn
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.fuzz.harness import Lens
from tests.fuzz.tables import Values, nan_counts

Change = Callable[[ColumnStats, ScanColumn, Sequence[int]], ColumnStats]


def lens(name: str, files: Sequence[Values]) -> Lens | None:
    """A lens by its name, None for ``plain``."""

    def counted(known: ColumnStats, column: ScanColumn, order: Sequence[int]) -> ColumnStats:
        if not column.type.is_float or column.name not in files[0]:
            return known
        return replace(known, nans=pa.array([nan_counts(files[f], column.name) for f in order], pa.int64()))

    change: dict[str, Change] = {"nans": counted, "truncated": _truncated, "gaps": _with_gaps}
    return _through(change[name]) if name != "plain" else None


def _through(change: Change) -> Lens:
    def look(stats: FileStats, order: Sequence[int]) -> FileStats:
        def load(column: ScanColumn) -> ColumnStats | None:
            known = stats.column(column)
            # The number of the file stays, the harness needs it.
            return known if known is None or column.name == "f" else change(known, column, order)

        return FileStats(stats.rows, stats.sizes, load)

    return look


def _truncated(known: ColumnStats, column: ScanColumn, order: Sequence[int]) -> ColumnStats:
    if column.type.name != "string":
        return known
    inexact = np.zeros(len(order), np.bool_)
    low = pa.array([None if v is None else v[:3] for v in known.low.to_pylist()], pa.binary())
    high = pa.array([None if v is None else _raised(v) for v in known.high.to_pylist()], pa.binary())
    return replace(known, low=low, high=high, low_exact=inexact, high_exact=inexact)


def _raised(text: bytes) -> bytes | None:
    r"""
    >>> _raised(b"abcd"), _raised(b"ab\xff\xff"), _raised(b"\xff\xff\xff\xff"), _raised(b"ab")
    (b'abd', b'ac', None, b'ab')
    """
    if len(text) <= 3:
        return text
    stem = text[:3].rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def _with_gaps(known: ColumnStats, column: ScanColumn, order: Sequence[int]) -> ColumnStats:
    def gap(part: str, array: pa.Array) -> pa.Array:
        values = array.to_pylist()
        # By what is there, so that it stays the same when the table gets smaller.
        missing = [crc32(f"{column.name} {part} {v!r}".encode()) % 3 == 0 for v in values]
        others = values[1:] + values[:1]
        kept = [o if gone and o is not None else v for v, o, gone in zip(values, others, missing, strict=True)]
        holes = np.array([gone or v is None for v, gone in zip(values, missing, strict=True)])
        return _with_nulls(pa.array(kept, array.type), holes)

    return replace(
        known,
        low=gap("low", known.low),
        high=gap("high", known.high),
        nulls=gap("nulls", known.nulls),
        low_exact=np.zeros(len(order), np.bool_),
        high_exact=np.zeros(len(order), np.bool_),
    )


def _with_nulls(array: pa.Array, holes: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    """The same array with nulls above values that stay where they are."""
    if not len(array):
        return array
    valid = pa.array(~holes).buffers()[1]
    return pa.Array.from_buffers(array.type, len(array), [valid, *array.buffers()[1:]])
