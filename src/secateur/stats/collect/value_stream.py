"""Makes range-sets of the values of files as a task of Spark's gets them, one file after the other.

The collector pickles this module by value, so it imports nothing of secateur but others that travel with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from secateur.stats.collect.footers import Key
from secateur.stats.collect.range_scan import Cells, Gathered, Wanted, cells_table


@dataclass(frozen=True, slots=True)
class Expected:
    """A file to read: path, length and time, the rows that it has, and how its columns are known."""

    file: tuple[str, int, int]
    rows: int
    calendar: bool
    """Whether its dates are surely of the calendar of today."""
    keys: tuple[tuple[Key, str], ...]


class _Open:
    """The file whose rows are coming."""

    def __init__(self, expected: Expected | None, wanted: Wanted) -> None:
        self.expected = expected
        self.rows = 0
        self.columns = [Gathered(family, wanted) for _, family in expected.keys] if expected else []

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += batch.num_rows
        for at, column in enumerate(self.columns):
            column.add(pa.chunked_array([batch.column(at + 1)]))


def gather(
    batches: Iterable[pa.RecordBatch], files: Mapping[str, Expected], wanted: Wanted
) -> Iterator[pa.RecordBatch]:
    """Batches whose first column is the path in the first row of each file, and null below; out come Arrow streams."""
    current = _Open(None, wanted)
    for batch in batches:
        starts = np.flatnonzero(batch.column(0).is_valid().to_numpy(zero_copy_only=False))
        edges = [0, *(int(start) for start in starts if start), batch.num_rows]
        for begin, end in pairwise(edges):
            part = batch.slice(begin, end - begin)
            path = part.column(0)[0].as_py() if part.num_rows else None
            if path is not None:
                yield from _close(current, wanted)
                current = _Open(files.get(path), wanted)
            current.add(part)
    yield from _close(current, wanted)


def _close(done: _Open, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    if done.expected is None:
        return
    expected = done.expected
    cells: Cells = {}
    error = None
    if done.rows == expected.rows:
        for key, column in zip(expected.keys, done.columns, strict=True):
            cell = column.cell(expected.calendar)
            if cell is not None:
                cells[key] = cell
    else:
        error = f"{expected.rows} rows by its footer, but {done.rows} came"
    table = cells_table([expected.file], [cells], [error], wanted)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["part"])


def empty(files: Sequence[Expected], wanted: Wanted) -> pa.Table:
    """Files of which nothing has to be read: they have no rows, or none of the columns."""
    cells = [
        {}
        if each.rows
        else {key: cell for key in each.keys if (cell := Gathered(key[1], wanted).cell(True)) is not None}
        for each in files
    ]
    return cells_table([each.file for each in files], cells, [None] * len(files), wanted)


def refused(files: Sequence[Expected], error: str, wanted: Wanted) -> pa.Table:
    """Files of which nothing is known, and why."""
    return cells_table([each.file for each in files], [{}] * len(files), [error] * len(files), wanted)
