"""Reads the values of Parquet columns and makes range-sets of them, file by file: the work of ``collect(ranges=…)``.

The collector pickles this module by value, with ``cells``, ``footers`` and ``widest``, so it imports nothing else of
secateur.

A row per file: its path, length and modification time, what was asked for in ``columns``, and for each top-level column
of a simple type four cells named as in ``footers``: ``lows`` and ``highs`` of the ranges, whether there is a ``null``
and whether there is a ``nan``. For tables that find their columns by field ids, so are the cells named. What Spark
would read as another value than Arrow does is left out, hence unknown (rule S1): INT96, unsigned 64-bit numbers beyond
int64, and dates and timestamps that Spark may shift between calendars. Of small tables there is a fifth cell,
``values``: the value of each row.

Each column is read once, a row group at a time; of a row group only the distinct values stay in memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from secateur.stats.collect.chunk_statistics import GREGORIAN_DAYS, MODERN_MICROS, Trust
from secateur.stats.collect.footers import (
    FIXED,
    FileSchema,
    Key,
    check_unchanged,
    domain,
    encode_key,
    local_path,
    read_metadata,
    state_of,
)
from secateur.stats.narrowest_ranges import narrowest_ranges

CELLS = ("lows", "highs", "null", "nan")
VALUES = "values"
TEXT = 64
"""Ends of strings are cut to so many bytes, downwards and upwards."""
LONG = 256
"""Strings are not listed if one of them has more bytes."""
_MANY = 2_000_000
"""So many values are looked through for those that were there before."""

# (the lows of ranges, their highs, may hold NULL, may hold NaN, the values if wanted)
Cell = tuple[pa.Array, pa.Array, bool, bool, pa.Array | None]
Cells = dict[tuple[Key, str], Cell]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to read: how many ranges at most, of which columns (None: of all), by their names in lower case or ids."""

    most: int
    columns: Collection[str] | Collection[int] | None = None
    by_id: bool = False
    dated: bool = True
    """If not, the length of files has to do, and that they do not change while they are read."""
    listed: bool = False
    """Whether every value is kept, too."""

    @property
    def text(self) -> str:
        """What a row of the table answers.

        >>> Wanted(20, {"b", "a"}).text, Wanted(20, {7}, by_id=True, listed=True).text
        ('[20, ["a", "b"]]', '[20, [7], "ids", "values"]')
        """
        marks = [mark for mark, wanted in (("ids", self.by_id), (VALUES, self.listed)) if wanted]
        return json.dumps([self.most, None if self.columns is None else sorted(self.columns), *marks])


def read_ranges(files: Sequence[tuple[str, int, int]], wanted: Wanted) -> pa.Table:
    """The range-sets of files given as (path, length, modification time in ms).

    A file that cannot be read, or that is not (or no longer) the one described, gives a row with an ``error`` only.
    """
    found = [_try_file(file, wanted) for file in files]
    return cells_table(files, [cells for cells, _ in found], [error for _, error in found], wanted)


def _try_file(file: tuple[str, int, int], wanted: Wanted) -> tuple[Cells, str | None]:
    try:
        path, length, time = file
        return _read_file((path, length, time if wanted.dated else state_of(path)[1]), wanted), None
    except Exception as error:  # whatever it is, the file is unknown and stays (rule S1)
        return {}, f"{type(error).__name__}: {error}"[:500]


def _read_file(file: tuple[str, int, int], wanted: Wanted) -> Cells:
    metadata = read_metadata(*file)
    trust = Trust(metadata.created_by or "", metadata.metadata or {})
    cells: Cells = {}
    with pa.OSFile(local_path(file[0])) as source:
        reader = pq.ParquetFile(source, metadata=metadata)
        for key, name, family, index in columns_of(metadata.schema, wanted):
            cell = _read_column(reader, index, name, family, trust, wanted)
            if cell is not None:
                cells[key, family] = cell
    # Once more after the last value was read: had the file been replaced meanwhile, it would show (rule S8).
    check_unchanged(*file)
    return cells


def columns_of(schema: pq.ParquetSchema, wanted: Wanted) -> Iterator[tuple[Key, str, str, int]]:
    """The columns of a file to make range-sets of: how they are known, and their names, types and places there."""
    kept = FileSchema(schema)
    ids = _ids(schema) if wanted.by_id else {}
    for (path, family), (index, *_) in zip(kept.keys, kept.columns, strict=True):
        key: Key = (ids[path[0]],) if path[0] in ids else () if wanted.by_id else path
        named = key[0] if wanted.by_id and key else path[0].lower()
        if len(path) > 1 or not key or (wanted.columns is not None and named not in wanted.columns):
            continue
        if family.partition("(")[0] in CONVERT:
            yield key, path[0], family, index


def _ids(schema: pq.ParquetSchema) -> dict[str, int]:
    """The field ids of top-level columns by their names; one that several columns have is none."""
    found: dict[str, int] = {}
    for field in schema.to_arrow_schema():
        id_ = (field.metadata or {}).get(b"PARQUET:field_id")
        if id_ is not None and int(id_) >= 0:
            found[field.name] = int(id_)
    given = list(found.values())
    return {name: id_ for name, id_ in found.items() if given.count(id_) == 1}


def _read_column(
    reader: pq.ParquetFile,
    index: int,
    name: str,
    family: str,
    trust: Trust,
    wanted: Wanted,
) -> Cell | None:
    gathered = Gathered(family, wanted)
    for group in range(reader.metadata.num_row_groups):
        table = reader.reader.read_row_group(group, column_indices=[index], use_threads=False)
        if table.column_names != [name] or table.num_rows != reader.metadata.row_group(group).num_rows:
            return None
        gathered.add(table.column(0))
    return gathered.cell(trust.calendar)


class Gathered:
    """The values of one column of one file, while they come in."""

    def __init__(self, family: str, wanted: Wanted) -> None:
        self._family = family
        self._convert = CONVERT[family.partition("(")[0]]
        self._listed = wanted.listed
        self._most = wanted.most
        self._null = self._nan = self._unknown = False
        self._parts: list[pa.Array] = [pa.nulls(0, domain(family))]
        self._rows: list[pa.Array] = [pa.nulls(0, domain(family))]
        self._news = 0

    def add(self, column: pa.ChunkedArray) -> None:
        """More values, of which only the distinct ones are kept if they need not be listed."""
        self._null = self._null or column.null_count > 0
        try:
            values = self._convert(_plain(column).unique().drop_null())
            chunks = [self._convert(chunk) for chunk in _plain(column).chunks] if self._listed else []
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a value beyond the domain, or a type without order
            values, chunks = None, []
        if values is None or any(chunk is None for chunk in chunks):
            self._unknown = True
            return
        self._rows += (chunk.cast(domain(self._family)) for chunk in chunks if chunk is not None)
        values = values.cast(domain(self._family))
        if pa.types.is_floating(values.type):
            isnan = pc.is_nan(values)
            self._nan = self._nan or bool(pc.any(isnan).as_py())
            values = values.filter(pc.invert(isnan))
        self._parts.append(values)
        self._news += len(values)
        if self._news > _MANY:
            self._parts, self._news = [pa.concat_arrays(self._parts).unique()], 0

    def cell(self, calendar: bool) -> Cell | None:
        """What they say; None if nothing can be said. ``calendar``: dates are surely of the calendar of today."""
        if self._unknown:
            return None
        lows, highs = narrowest_ranges(pa.concat_arrays(self._parts), self._most)
        if len(lows) and not calendar:
            first, family = lows[0].as_py(), self._family
            old = family.startswith("timestamp") and first < MODERN_MICROS
            if old or (family == "date" and first < GREGORIAN_DAYS):
                return None
        listed = pa.concat_arrays(self._rows) if self._listed else None
        if self._family != "string":
            return lows, highs, self._null, self._nan, listed
        if listed is not None and (pc.max(pc.binary_length(listed)).as_py() or 0) > LONG:
            listed = None
        return *_shortened(lows, highs), self._null, self._nan, listed


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a type that Arrow can compute with, whatever a schema of Arrow's own in the file made of it."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _integers(values: pa.Array) -> pa.Array | None:
    return values.cast(pa.int64()) if pa.types.is_integer(values.type) else None


def _dates(values: pa.Array) -> pa.Array | None:
    return values.cast(pa.int32()) if pa.types.is_date32(values.type) else None


def _timestamps(values: pa.Array) -> pa.Array | None:
    if not pa.types.is_timestamp(values.type):
        return None
    return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())


def _floats(values: pa.Array) -> pa.Array | None:
    return values if pa.types.is_float32(values.type) or pa.types.is_float64(values.type) else None


def _decimals(values: pa.Array) -> pa.Array | None:
    return values if pa.types.is_decimal(values.type) else None


def _strings(values: pa.Array) -> pa.Array | None:
    return values if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) else None


# By the file type as ``footers`` names it. A schema of Arrow's own in the file may turn a column into something else.
CONVERT: dict[str, Callable[[pa.Array], pa.Array | None]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), _integers),
    **dict.fromkeys(("timestamp_ms", "timestamp_us", "timestamp_ms_utc", "timestamp_us_utc"), _timestamps),
    **dict.fromkeys(("float", "double"), _floats),
    "date": _dates,
    "decimal": _decimals,
    "string": _strings,
}


def _shortened(lows: pa.Array, highs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The ranges with long ends cut, to below and to above; those that then meet become one.

    >>> ends = pa.array([b"a" * 99, b"b" * 63 + b"\\xff" * 2], pa.binary())
    >>> [len(end) for end in _shortened(ends, ends)[1].to_pylist()]
    [64, 63]
    """
    short: list[list[bytes]] = []
    for low, high in zip(lows.to_pylist(), highs.to_pylist(), strict=True):
        begin, end = low[:TEXT], high if len(high) <= TEXT else _above(high)
        if short and begin <= short[-1][1]:
            short[-1][1] = max(end, short[-1][1])
        else:
            short.append([begin, end])
    return pa.array([low for low, _ in short], pa.binary()), pa.array([high for _, high in short], pa.binary())


def _above(text: bytes) -> bytes:
    """A short string above a long one, or the long one itself if there is none."""
    stem = text[:TEXT].rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else text


def cells_table(
    files: Sequence[tuple[str, int, int]],
    found: Sequence[Cells],
    errors: Sequence[str | None],
    wanted: Wanted,
) -> pa.Table:
    """What was found of files, or why nothing was, a row each."""
    count = len(files)
    known: dict[str, list[Any]] = {
        "path": [path for path, _, _ in files],
        "length": [length for _, length, _ in files],
        "mtime": [mtime for _, _, mtime in files],
        "row_groups": [1] * count,
        "columns": [wanted.text] * count,
        "error": list(errors),
    }
    arrays = {}
    for name, kind in FIXED.items():
        text = pa.types.is_dictionary(kind)
        array = pa.array(known.get(name, [None] * count), kind.value_type if text else kind)
        arrays[name] = array.dictionary_encode() if text else array
    for path, family in dict.fromkeys(key for cells in found for key in cells):
        cells = [each.get((path, family)) for each in found]
        bounds = pa.list_(domain(family))
        lows = [None if cell is None else cell[0].to_pylist() for cell in cells]
        highs = [None if cell is None else cell[1].to_pylist() for cell in cells]
        arrays[encode_key(path, family, "lows")] = pa.array(lows, bounds)
        arrays[encode_key(path, family, "highs")] = pa.array(highs, bounds)
        arrays[encode_key(path, family, "null")] = pa.array([cell and cell[2] for cell in cells], pa.bool_())
        arrays[encode_key(path, family, "nan")] = pa.array([cell and cell[3] for cell in cells], pa.bool_())
        if wanted.listed:
            listed = (None if cell is None else cell[4] for cell in cells)
            lists = [None if values is None else values.to_pylist() for values in listed]
            arrays[encode_key(path, family, VALUES)] = pa.array(lists, bounds)
    return pa.table(arrays)
