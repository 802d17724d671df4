"""What the footers of Parquet files say of their columns: the only reader of Parquet statistics.

This module imports nothing of secateur but its like: the collector pickles them by value, so that Spark's executors can
run them without secateur being installed there. Hence also no state at module level and no cached functions.

The result is one wide Arrow table: a row per file (``row_group`` is null), directly followed, for a file with more than
one row group, by one row per row group. A top-level column that is neither nested nor repeated gives six cells, named
``c:<name, percent-encoded>|<file type>|<min, max, nulls, nans, minexact or maxexact>``, null = unknown. So does a field
in a struct, also in one within another, as long as nothing on the way is repeated: ``n:<name>/<name>|…``. Its null
count has the rows in which the struct is NULL, too. What is believed of a file is in
:mod:`secateur.stats.collect.chunk_statistics`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.parquet as pq

from secateur.stats.collect.chunk_statistics import UNKNOWN, ChunkStatistics, Trust, chunk_statistics, merge

STATISTICS = ("min", "max", "nulls", "nans", "minexact", "maxexact")

# The name of a column, followed by those of the fields on the way into a struct
Path = tuple[str, ...]
# How a column is known: by its path, or by its field id in the file
Key = tuple["str | int", ...]


def encode_key(path: Key, family: str, statistic: str) -> str:
    """The name of a cell's column in the table.

    >>> encode_key(("a.b|c",), "int64", "min"), encode_key(("s", "x/y"), "int64", "max")
    ('c:a%2Eb%7Cc|int64|min', 'n:s/x%2Fy|int64|max')
    >>> encode_key((7,), "date", "lows")
    'i:7|date|lows'
    """
    names = "/".join(quote(str(name), safe="").replace(".", "%2E") for name in path)
    kind = "i" if isinstance(path[0], int) else "c" if len(path) == 1 else "n"
    return f"{kind}:{names}|{family}|{statistic}"


def decode_key(key: str) -> tuple[Key, str, str] | None:
    """The column, file type and statistic that a key names, None for the table's other columns.

    >>> decode_key("c:a%2Eb%7Cc|int64|min"), decode_key("n:s/x%2Fy|int64|max"), decode_key("rows")
    ((('a.b|c',), 'int64', 'min'), (('s', 'x/y'), 'int64', 'max'), None)
    >>> decode_key("i:7|date|lows")
    ((7,), 'date', 'lows')
    """
    if not key.startswith(("c:", "n:", "i:")):
        return None
    names, family, statistic = key[2:].split("|")
    path: Key = tuple(unquote(name) for name in names.split("/"))
    return (int(names),) if key.startswith("i:") else path, family, statistic


def domain(family: str) -> pa.DataType:
    """The Arrow type of a file type's bounds, as in ``secateur.plan.types``."""
    if family.startswith("decimal"):
        return pa.decimal128(38, int(family[:-1].split(",")[1]))
    if family == "string":
        return pa.binary()
    return pa.float64() if family in ("float", "double") else pa.int64()


def split_path(path: str) -> tuple[str, str, str]:
    """Scheme, authority and path of a Hadoop path string, which is not URL-encoded.

    >>> split_path("file:/tmp/a b%20"), split_path("/tmp/t"), split_path("s3a://bucket/t/x=1")
    (('file', '', '/tmp/a b%20'), ('file', '', '/tmp/t'), ('s3a', 'bucket', '/t/x=1'))
    """
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/|$)", path)
    if not found:
        return "file", "", path
    return found[1], found[2] or "", path[found.end() :]


def read_footers(
    files: Sequence[tuple[str, int, int]], metadata: Callable[[str, int, int], pq.FileMetaData] | None = None
) -> pa.Table:
    """The statistics of files given as (path, length, modification time in ms), as one wide table.

    ``metadata`` finds the footer of one; without it they are read from this machine's disks. A file that cannot be
    read, or that is not (or no longer) the one described, gives a row with an ``error`` only.
    """
    rows = _Rows()
    schemas: dict[str, FileSchema] = {}
    for path, length, mtime in files:
        try:
            footer = (metadata or read_metadata)(path, length, mtime)
            text = str(footer.schema).split("\n", 1)[1]  # Arrow's own equality ignores the names of groups
            schema = schemas.get(text)
            if schema is None:
                schema = schemas[text] = FileSchema(footer.schema)
            read = _file_rows(footer, schema)
        except Exception as error:  # whatever it is, the file is unknown and stays (rule S1)
            rows.add((path, length, mtime), error=f"{type(error).__name__}: {error}"[:500])
            continue
        for row_group, fixed, cells in read:
            rows.add((path, length, mtime), row_group, fixed, zip(schema.keys, cells, strict=True))
    return rows.table()


def read_partition(
    chunks: Iterable[Sequence[tuple[str, int, int]]], read: Callable[[Sequence[tuple[str, int, int]]], pa.Table]
) -> Iterator[bytes]:
    """``read_footers`` or its like as Spark's ``mapPartitions`` calls it: chunks in, Arrow IPC streams out."""
    for chunk in chunks:
        table = read(chunk)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        yield sink.getvalue().to_pybytes()


def read_metadata(path: str, length: int, mtime: int | None) -> pq.FileMetaData:
    """The footer of a file on this machine, if it is the one described."""
    with pa.OSFile(local_path(path)) as source:
        metadata = pq.read_metadata(source)
    # Looked at after the footer was read: had the file been replaced meanwhile, it would show (rule S8).
    check_unchanged(path, length, mtime)
    return metadata


def footer_size(tail: bytes) -> int:
    """How many bytes at the end of a file its footer takes, by its last bytes.

    >>> footer_size(b"..." + (1000).to_bytes(4, "little") + b"PAR1")
    1008
    """
    if tail[-4:] != b"PAR1":
        raise ValueError(f"a file that ends with {tail[-4:]!r} is no Parquet file with a plain footer")
    return int.from_bytes(tail[-8:-4], "little") + 8


def parse_footer(tail: bytes) -> pq.FileMetaData:
    """The footer of which these are the last bytes."""
    if footer_size(tail) > len(tail):
        raise ValueError(f"a footer of {footer_size(tail)} bytes in a file or part of {len(tail)}")
    return pq.read_metadata(pa.BufferReader(tail))


def local_path(path: str) -> str:
    """The path on this machine, of files that are here."""
    scheme, _, local = split_path(path)
    if scheme != "file":
        raise ValueError(f"{path} is not on this machine")
    return local


def check_unchanged(path: str, length: int, mtime: int | None) -> None:
    """Raises if a file has another length or modification time than it is said to have."""
    same_state((length, mtime), state_of(path))


def same_state(expected: tuple[int, int | None], found: tuple[int, int | None], *, coarse: bool = False) -> None:
    """Raises if two lengths and times differ; ``coarse``: one of the times may be known to the second only.

    >>> same_state((5, 1_234), (5, 1_000), coarse=True)
    >>> same_state((5, 1_234), (5, 1_000))
    Traceback (most recent call last):
    ValueError: expected 5 bytes modified at 1234, found 5 bytes modified at 1000
    """
    (size, time), (size_now, time_now) = expected, found
    if coarse and time is not None and time_now is not None and 0 in (time % 1000, time_now % 1000):
        time, time_now = time // 1000, time_now // 1000
    if (size, time) != (size_now, time_now):
        raise ValueError(
            f"expected {expected[0]} bytes modified at {expected[1]}, found {found[0]} bytes modified at {found[1]}"
        )


def state_of(path: str) -> tuple[int, int]:
    """The length of a file on this machine and when it was modified, in ms."""
    status = os.stat(local_path(path))
    return status.st_size, status.st_mtime_ns // 1_000_000


class FileSchema:
    """The columns of one Parquet schema that have bounds worth keeping."""

    def __init__(self, schema: pq.ParquetSchema) -> None:
        self.names: str | None = None  # unknown: then no column can be said to be absent
        self.fields: str | None = None  # the same for fields of structs
        names: list[str] = []
        nested: list[Path | None] = []
        try:
            arrow = schema.to_arrow_schema()
            names = arrow.names
            self.names = json.dumps(names, ensure_ascii=False)
            nested = [leaf for field in arrow for leaf in _leaves(field.type, (field.name,))]
            if len(nested) == len(schema):
                self.fields = json.dumps([[f.name, _tree(f.type)] for f in arrow], ensure_ascii=False)
            else:
                nested = []
        except (pa.ArrowException, NotImplementedError):  # a type that Arrow does not have: names stay unknown (S1)
            pass
        self.keys: list[tuple[Path, str]] = []
        self.columns: list[tuple[int, str, str, int]] = []
        for index in range(len(schema)):
            column = schema.column(index)
            path: Path | None = (column.name,)
            # A path has more than one part exactly if it is longer than the name of its last part.
            if column.path != column.name:
                path = nested[index] if nested else None
                if path is None or ".".join(path) != column.path or nested.count(path) != 1:
                    continue
            if path is None or column.max_repetition_level or names.count(path[0]) != 1:
                continue
            family = _family(column)
            if family:
                self.keys.append((path, family))
                self.columns.append((index, family, column.physical_type, column.precision or 0))


def _leaves(kind: pa.DataType, path: Path | None) -> Iterator[Path | None]:
    """The path of each leaf below a type in the order of the file, None for those below something repeated."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(kind.storage_type, path)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(field.type, path and (*path, field.name))
    elif pa.types.is_map(kind):
        yield from _leaves(kind.key_type, None)
        yield from _leaves(kind.item_type, None)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(kind.value_type, None)
    else:
        yield path


def _tree(kind: pa.DataType) -> list[Any] | None:
    """The fields of a struct with theirs, None for any other type."""
    return [[field.name, _tree(field.type)] for field in kind] if pa.types.is_struct(kind) else None


def _family(column: pq.ColumnSchema) -> str | None:
    """The canonical name of a column's file type, None for types whose bounds are not kept."""
    physical = column.physical_type
    logical = column.logical_type
    match logical.type, physical:
        case "NONE", "BOOLEAN":
            return "bool"
        case "NONE", "INT32" | "INT64" | "FLOAT" | "DOUBLE" | "INT96":
            return str(physical).lower()
        case "STRING", "BYTE_ARRAY":
            return "string"
        case "DATE", "INT32":
            return "date"
        case "INT", "INT32" | "INT64":
            details = json.loads(logical.to_json())
            return f"{'' if details['isSigned'] else 'u'}int{details['bitWidth']}"
        case "TIMESTAMP", "INT64":
            details = json.loads(logical.to_json())
            unit = {"milliseconds": "ms", "microseconds": "us"}.get(details["timeUnit"])
            return f"timestamp_{unit}{'_utc' if details['isAdjustedToUTC'] else ''}" if unit else None
        case "DECIMAL", "INT32" | "INT64" | "FIXED_LEN_BYTE_ARRAY" | "BYTE_ARRAY":
            valid = 0 < column.precision <= 38 and 0 <= column.scale <= column.precision
            return f"decimal({column.precision},{column.scale})" if valid else None
    return None


# (row group or None for the file, (rows, bytes, row groups, writer, columns, fields), a cell per kept column)
_Row = tuple["int | None", tuple[Any, ...], list[ChunkStatistics]]


def _file_rows(metadata: pq.FileMetaData, schema: FileSchema) -> list[_Row]:
    writer = metadata.created_by or ""
    count = metadata.num_row_groups
    trust = Trust(writer, metadata.metadata or {})
    groups = [metadata.row_group(g) for g in range(count)]
    sizes = [group.num_rows for group in groups]
    if sum(sizes) != metadata.num_rows or min(sizes, default=0) < 0:
        raise ValueError(f"{metadata.num_rows} rows in the file, but {sizes} in its row groups")
    cells = [
        [chunk_statistics(group.column(column[0]), rows, column, trust) for column in schema.columns]
        for group, rows in zip(groups, sizes, strict=True)
    ]
    if count == 1:
        return [(None, (sizes[0], _bytes(groups[0]), 1, writer, schema.names, schema.fields), cells[0])]
    merged = [merge([row[at] for row in cells], sizes) for at in range(len(schema.columns))]
    total = [_bytes(group) for group in groups]
    whole: _Row = (None, (metadata.num_rows, sum(total), count, writer, schema.names, schema.fields), merged)
    parts = zip(range(count), sizes, total, cells, strict=True)
    return [whole, *((g, (rows, size, 1, writer, schema.names, schema.fields), row) for g, rows, size, row in parts)]


def _bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(c).total_compressed_size for c in range(group.num_columns))


class _Rows:
    """The table while it grows: the columns of files seen so far, filled up with unknowns."""

    def __init__(self) -> None:
        self.count = 0
        self.fixed: list[tuple[Any, ...]] = []
        self.cells: dict[tuple[Path, str], list[ChunkStatistics]] = {}

    def add(
        self,
        file: tuple[str, int, int],
        row_group: int | None = None,
        fixed: tuple[Any, ...] = (None,) * 6,
        cells: Iterable[tuple[tuple[Path, str], ChunkStatistics]] = (),
        error: str | None = None,
    ) -> None:
        self.fixed.append((*file, row_group, *fixed[:5], error, *fixed[5:]))
        for key, cell in cells:
            column = self.cells.setdefault(key, [])
            column.extend([UNKNOWN] * (self.count - len(column)))
            column.append(cell)
        self.count += 1

    def table(self) -> pa.Table:
        arrays: dict[str, pa.Array] = {}
        kinds = FIXED | OPTIONAL
        columns = zip(*self.fixed, strict=True) if self.fixed else [()] * len(kinds)
        for (name, kind), values in zip(kinds.items(), columns, strict=True):
            text = pa.types.is_dictionary(kind)
            array = pa.array(values, type=kind.value_type if text else kind)
            arrays[name] = array.dictionary_encode() if text else array
        for (path, family), cells in self.cells.items():
            cells.extend([UNKNOWN] * (self.count - len(cells)))
            bounds = domain(family)
            types = (bounds, bounds, pa.int64(), pa.int64(), pa.bool_(), pa.bool_())
            for statistic, kind, column in zip(STATISTICS, types, zip(*cells, strict=True), strict=True):
                values = column
                if pa.types.is_decimal(kind):  # from text, which is exact whatever the context's precision
                    values = tuple(None if v is None else Decimal(f"{v}E-{kind.scale}") for v in column)
                arrays[encode_key(path, family, statistic)] = pa.array(values, type=kind)
        return pa.table(arrays)


FIXED = {
    "path": pa.string(),
    "length": pa.int64(),
    "mtime": pa.int64(),
    "row_group": pa.int32(),
    "rows": pa.int64(),
    "bytes": pa.int64(),
    "row_groups": pa.int32(),
    "created_by": pa.dictionary(pa.int32(), pa.string()),
    "columns": pa.dictionary(pa.int32(), pa.string()),
    "error": pa.string(),
}
OPTIONAL = {"fields": pa.dictionary(pa.int32(), pa.string())}
"""What segments of earlier versions do not have: then nothing is known of fields in structs."""
