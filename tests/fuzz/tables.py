r"""Tables to put predicates to: many small files whose columns hold what is awkward about their types.

A *mild* table holds small numbers and everyday texts and times, since whatever overflows is an error in ANSI mode, and
no test. A *nasty* one holds NULL, NaN, infinities, zeros of both signs, subnormals, the extremes of integers and
decimals, strings that are empty, long, beyond ASCII, beyond the BMP or not UTF-8 at all, dates before 1582, moments at
which clocks change in one of the zones, and microseconds next to all of them. In both, files differ in what they hold:
one value, only NULLs, a narrow range, anything.

A table is a dict from names to values, as Python has them: days and microseconds since 1970 for dates and timestamps,
bytes for strings. A name with a dot is a field of a struct, which is NULL where all of its fields are.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Values: TypeAlias = Mapping[str, Sequence[Any]]
"""The values of each column of one file."""

FILES, ROWS = 24, 5
COLUMNS = {
    **{"a": "tinyint", "b": "smallint", "i": "int", "j": "int", "l": "bigint", "k": "bigint"},
    **{"r": "float", "d": "double", "e": "double", "p": "decimal(9,2)", "q": "decimal(18,4)", "w": "decimal(38,10)"},
    **{"o": "boolean", "u": "boolean", "s": "string", "t": "string", "unit": "string"},
    **{"da": "date", "db": "date", "ts": "timestamp", "us": "timestamp", "n": "timestamp_ntz", "m": "timestamp_ntz"},
    **{"st.x": "int", "st.y": "string", "st.z": "timestamp"},
}
"""``k`` holds seconds since 1970, ``unit`` one of two words, as in the predicates that people write."""
ARROW = {
    **{"tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_()},
    **{"float": pa.float32(), "double": pa.float64(), "string": pa.string(), "date": pa.date32()},
    **{"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")},
}
BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
EPOCH = dt.datetime(1970, 1, 1)
SECOND, HOUR, DAY = 10**6, 3600 * 10**6, 86400 * 10**6
_ODD_FLOATS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1.7e308, 1e-300, 3.4e38, 2.0**53]


def micros(text: str) -> int:
    """Microseconds of a time in UTC."""
    since = dt.datetime.fromisoformat(text) - EPOCH
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds


MOMENTS = [
    micros(text)
    for text in (
        "0001-01-03T00:00:00",
        "0999-12-31T23:59:59.999999",
        "1582-10-04T12:00:00",
        "1582-10-15T00:00:00",
        "1883-11-18T17:00:00",  # New York leaves local mean time
        "1893-03-31T23:06:32",  # Berlin
        "1899-12-31T23:59:59.999999",
        "1900-03-01T00:00:00",
        "1916-04-30T22:00:00",
        "1941-10-01T00:00:00",
        "1945-05-24T00:00:00",
        "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00",
        "1981-02-28T14:00:00",  # Lord Howe
        "1999-12-31T23:59:59",
        "2000-02-29T00:00:00",
        "2008-10-04T15:30:00",  # Lord Howe, half an hour
        "2011-12-30T10:00:00",  # Apia skips a day
        "2012-02-29T12:00:00",
        "2018-11-04T03:00:00",  # São Paulo, at midnight
        "2019-02-17T02:00:00",
        "2021-03-21T20:30:00",  # Tehran, at midnight
        "2021-09-21T19:30:00",
        "2023-12-31T23:30:00",
        "2024-02-29T00:00:00",
        "2024-03-10T07:00:00",  # New York
        "2024-03-31T01:00:00",  # Berlin
        "2024-04-06T15:00:00",
        "2024-10-27T01:00:00",
        "2024-11-03T06:00:00",
        "2024-12-30T00:00:00",  # the first day of the ISO year 2025
        "2037-11-01T06:00:00",
        "2099-12-31T12:00:00",
        "2150-03-14T07:00:00",
        "9999-12-30T00:00:00",
    )
]
_RECENT = [m for m in MOMENTS if micros("1999-01-01") < m < micros("2025-01-01")]
_SPREADS = (0, 0, 1, SECOND, 60 * SECOND, HOUR, 3 * HOUR, DAY, 7 * DAY, 32 * DAY, 370 * DAY, 4000 * DAY)
LEAST, MOST = micros("0001-01-02T00:00:00"), micros("9999-12-30T23:59:59.999999")
_STEMS = [*"ab", "", "ab", "abc", "abd", "Abc", "ABC", "ba", "bcd", "x1", "x2", "x10", " a", "zz", "2024-03-10", "17"]
_ODD_STEMS = ["é", "abé", "日本", "😀", "-1.5", "1e3", "nan", "\x00", "z" * 70]
_ENDS = ["", "", "", "c", "d", "x", "X", " ", "  ", "_", "%", "\\", "0", "9"]
_ODD_ENDS = [
    *("\t", "\n", "\r", "\x00", "\x01", "\x7f", "\x80", "é", "ß", "İ", "ı", "Σ", "\u0301", "\u2028", "\u07ff"),
    *("\u0800", "\ud7ff", "\ue000", "\ufffd", "\uffff", "😀", "\U00010000", "\U0010ffff", "z" * 70, "long" * 300),
]
_NOT_TEXT = [b"\xff", b"\xfe\xff", b"\xc3", b"ab\xe6\x97", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xff\xff"]
"""No UTF-8: a byte that never occurs, a character that is cut off, a surrogate, one beyond the last."""


def arrow_type(type_: str) -> pa.DataType:
    """The Arrow type of one of Spark's.

    >>> arrow_type("decimal(9,2)"), arrow_type("timestamp")
    (Decimal128Type(decimal128(9, 2)), TimestampType(timestamp[us, tz=UTC]))
    """
    decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else ARROW[type_]


def tables(rng: Random, *, nasty: bool, files: int = FILES) -> list[Values]:
    """The files of a table."""
    return [_file(rng, nasty=nasty) for _ in range(files)]


def _file(rng: Random, *, nasty: bool) -> Values:
    moment, spread = rng.choice(MOMENTS if nasty else _RECENT), rng.choice(_SPREADS)
    stem = rng.choice(_STEMS)
    columns: dict[str, list[Any]] = {}
    for name, type_ in COLUMNS.items():
        if name == "unit":
            make = _words(rng)
        elif name == "k":
            make = [v // SECOND for v in _moments(rng, moment, spread)]
        elif type_ in ("date", "timestamp", "timestamp_ntz"):
            near = moment if rng.random() < 0.7 else rng.choice(MOMENTS if nasty else _RECENT)
            make = [v // DAY if type_ == "date" else v for v in _moments(rng, near, spread)]
        elif type_ == "string":
            of = stem if rng.random() < 0.75 else None
            make = [text(rng, of, nasty=nasty) for _ in range(ROWS)]
        else:
            start = value(rng, type_, nasty=nasty)
            keep = rng.random() < 0.4 and not isinstance(start, float)
            make = [start if keep and rng.random() < 0.6 else value(rng, type_, nasty=nasty) for _ in range(ROWS)]
        columns[name] = _shaped(rng, make)
    return columns


def _shaped(rng: Random, values: Sequence[Any]) -> list[Any]:
    """One value, only NULLs, or several, with NULLs or without."""
    shape = rng.random()
    if shape < 0.06:
        return [None] * ROWS
    if shape < 0.28:
        return [values[0]] * ROWS
    return [None if shape > 0.85 and rng.random() < 0.4 else v for v in values]


def _words(rng: Random) -> list[Any]:
    return [rng.choice((b"feet", b"metres")) for _ in range(ROWS)]


def _moments(rng: Random, moment: int, spread: int) -> list[int]:
    return [min(max(moment + rng.randint(-spread, spread), LEAST), MOST) for _ in range(ROWS)]


def value(rng: Random, type_: str, *, nasty: bool) -> Any:
    """A value of a type, never NULL."""
    if type_ in BITS:
        return _integer(rng, BITS[type_], nasty=nasty)
    if type_ in ("float", "double"):
        odd = nasty and rng.random() < 0.25
        plain = [rng.uniform(-20, 20), rng.uniform(0.1, 100), float(rng.randrange(-5, 20)), 0.5, 2.5]
        picked = rng.choice(_ODD_FLOATS) if odd else rng.choice(plain)
        return pa.scalar(picked, pa.float32()).as_py() if type_ == "float" else picked
    if type_.startswith("decimal"):
        precision, scale = map(int, re.findall(r"\d+", type_))
        unscaled = rng.randrange(-20 * 10**scale, 100 * 10**scale)
        if nasty and rng.random() < 0.2:
            unscaled = rng.choice([10**precision - 1, 1 - 10**precision, 1, -1, 0, rng.randrange(10**precision)])
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))
    if type_ == "boolean":
        return rng.random() < 0.5
    if type_ == "string":
        return text(rng, nasty=nasty)
    moment = rng.choice(MOMENTS if nasty else _RECENT) + rng.choice(
        (0, 0, 1, -1, HOUR, -HOUR, 5 * HOUR, -DAY, 31 * DAY)
    )
    moment = min(max(moment // DAY * DAY if rng.random() < 0.4 else moment, LEAST), MOST)
    return moment // DAY if type_ == "date" else moment


def _integer(rng: Random, bits: int, *, nasty: bool) -> int:
    largest: int = 2**bits
    if nasty and rng.random() < 0.15:
        return rng.choice([-largest, 1 - largest, largest - 1, largest - 2, 0, -1, 1])
    if nasty and rng.random() < 0.1:
        return rng.randrange(-largest, largest)
    return rng.randrange(-20, 21) if rng.random() < 0.6 else rng.randrange(1, 100)


def text(rng: Random, stem: str | None = None, *, nasty: bool) -> bytes:
    """A string, as bytes."""
    if nasty and rng.random() < 0.04:
        return rng.choice(_NOT_TEXT)
    begin = rng.choice(_STEMS + _ODD_STEMS if nasty else _STEMS) if stem is None else stem
    ends = _ENDS + _ODD_ENDS if nasty else _ENDS
    return (begin + "".join(rng.choice(ends) for _ in range(rng.choice((0, 0, 1, 1, 2, 3))))).encode()


# From values to Arrow and to a line of text and back ------------------------------------------------------------------


def column(values: Sequence[Any], type_: str) -> pa.Array:
    """An Arrow array; strings may hold bytes that are no UTF-8, as those in files can."""
    if type_ == "string":
        raw = pa.array(values, pa.binary())
        return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)
    if type_ in ("date", "timestamp", "timestamp_ntz"):
        return pa.array(values, pa.int32() if type_ == "date" else pa.int64()).cast(arrow_type(type_))
    return pa.array(values, arrow_type(type_))


def arrow(file: Values) -> pa.Table:
    """A file as an Arrow table, with the fields of structs in their places."""
    flat = {name: column(values, COLUMNS[name]) for name, values in file.items()}
    made = {name: array for name, array in flat.items() if "." not in name}
    for struct in dict.fromkeys(name.split(".")[0] for name in flat if "." in name):
        fields = {name.split(".")[1]: array for name, array in flat.items() if name.startswith(struct + ".")}
        empty = [all(row) for row in zip(*(array.is_null().to_pylist() for array in fields.values()), strict=True)]
        made[struct] = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=pa.array(empty))
    return pa.table(made)


def written(file: Values) -> dict[str, list[str | None]]:
    """Values as text, to be kept in a line of JSON.

    >>> written({"d": [float("nan"), None], "da": [0], "s": [b"a\\xff"]})
    {'d': ['nan', None], 'da': ['1970-01-01'], 's': ['a\\udcff']}
    """
    return {
        name: [None if v is None else v.decode("utf-8", "surrogateescape") for v in values]
        if COLUMNS[name] == "string"
        else column(values, COLUMNS[name]).cast(pa.string()).to_pylist()
        for name, values in file.items()
    }


def read(file: Mapping[str, Sequence[str | None]]) -> Values:
    """The values that :func:`written` wrote.

    >>> import json
    >>> read(json.loads('{"p": ["1.50", null], "ts": ["2024-03-10 07:00:00.000001Z"], "s": ["a\\\\udcff"]}'))
    {'p': [Decimal('1.50'), None], 'ts': [1710054000000001], 's': [b'a\\xff']}
    """
    found: dict[str, list[Any]] = {}
    for name, texts in file.items():
        type_ = COLUMNS[name]
        if type_ == "string":
            found[name] = [None if v is None else v.encode("utf-8", "surrogateescape") for v in texts]
            continue
        array = pa.array(texts, pa.string()).cast(arrow_type(type_))
        if type_ in ("date", "timestamp", "timestamp_ntz"):
            array = array.cast(pa.int32() if type_ == "date" else pa.int64())
        found[name] = array.to_pylist()
    return found


def nan_counts(file: Values, name: str) -> int:
    """How many NaNs a column holds."""
    return pc.sum(pc.is_nan(column(file[name], COLUMNS[name]))).as_py() or 0
