"""One immutable piece of the store: a Parquet file in memory whose columns are read on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.stats.arrays import null_mask
from secateur.stats.collect.footers import FIXED, Key, decode_key

FORMAT = {"secateur.format": "1"}


def digest(content: bytes | pa.Buffer) -> str:
    """The name of some content: 32 hexadecimal digits of its BLAKE2b hash."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def encode(table: pa.Table) -> pa.Buffer:
    """A table of ``read_footers`` as the bytes of a segment."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata(FORMAT).combine_chunks(),
        sink,
        compression="zstd",
        row_group_size=max(1, table.num_rows),
        use_dictionary=["created_by", "columns", "fields"],
        write_statistics=False,
    )
    return sink.getvalue()


class Segment:
    """The statistics of some files, keyed by relative path, length and modification time.

    Rows come as ``read_footers`` gives them: a file, then its row groups if it has more than one. ``file_rows`` are the
    positions of the files' rows.
    """

    __slots__ = ("_metadata", "columns", "content", "count", "families", "file_rows", "name")

    def __init__(self, name: str, content: pa.Buffer) -> None:
        self.name = name
        self.content = content
        self._metadata = pq.read_metadata(pa.BufferReader(content))
        if (self._metadata.metadata or {}).get(b"secateur.format") != b"1":
            raise ValueError(f"{name} is not a statistics segment of format 1")
        self.count: int = self._metadata.num_rows
        self.columns = frozenset(self._metadata.schema.to_arrow_schema().names)
        missing = FIXED.keys() - self.columns
        if missing:
            raise ValueError(f"{name} has no columns {sorted(missing)}")
        # (column, file type) of every column with statistics
        self.families: frozenset[tuple[Key, str]] = frozenset(
            key[:2] for key in map(decode_key, self.columns) if key is not None
        )
        self.file_rows = self._layout()

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some of the columns, decoded now."""
        # A reader of its own for each call: readers are not safe to share between threads.
        source = pq.ParquetFile(pa.BufferReader(self.content), metadata=self._metadata)
        return source.read(columns=list(columns), use_threads=len(columns) > 1)

    def _layout(self) -> npt.NDArray[np.int64]:
        """The positions of file rows, after a check that each is followed by exactly its row groups."""
        table = self.read(["row_group", "row_groups"])
        groups = table["row_group"].combine_chunks()
        is_file = null_mask(groups)
        file_rows = np.flatnonzero(is_file)
        counts = table["row_groups"].to_numpy()[file_rows]
        spans = np.diff(file_rows, append=self.count) - 1
        owner = file_rows[np.cumsum(is_file) - 1] if len(file_rows) else file_rows
        ordinals = groups.fill_null(-1).to_numpy(zero_copy_only=False)
        expected = np.arange(self.count) - owner - 1 if len(file_rows) else np.arange(self.count)
        if (
            (self.count and not is_file[0])
            or not np.array_equal(spans, np.where(counts > 1, counts, 0))
            or not np.array_equal(ordinals, expected)
        ):
            raise ValueError(f"{self.name} does not list each file with its row groups")
        return file_rows
