"""Literals of every kind: near to what the table holds, since mistakes show at the edges of ranges."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from tests.fuzz.tables import COLUMNS, DAY, EPOCH, LEAST, MOST, SECOND, Values, text, value

_TYPES = {
    "int": ("int", "bigint", "tinyint", "smallint"),
    "float": ("double", "float"),
    "decimal": ("decimal(9,2)", "decimal(18,4)", "decimal(38,10)"),
    "number": ("int", "int", "bigint", "double", "double", "decimal(9,2)", "decimal(18,4)"),
    "text": ("string",),
    "date": ("date",),
    "ts": ("timestamp",),
    "ntz": ("timestamp_ntz",),
}
_NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,10)", "decimal(3,0)")
_DECIMALS = ("decimal(9,2)", "decimal(18,4)", "decimal(38,10)", "decimal(5,3)", "decimal(38,30)", "decimal(1,1)")
_DAYTIMES = (
    *("interval '1' day", "interval '-1' day", "interval '90' minute", "interval '-25' hour", "interval '0' second"),
    *("interval '1 02:03:04.000005' day to second", "interval '-40 23:59:59.999999' day to second"),
)
_YEARMONTHS = ("interval '1' month", "interval '-1' month", "interval '13' month", "interval '-2-3' year to month")
_PERIODS = (
    *("year", "yyyy", "QUARTER", "month", "mon", "week", "day", "hour", "minute", "second", "millisecond", "mm"),
    *("microsecond", "dd", "x"),
)
_FORMATS = (
    *("yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyyMMdd", "yyyyMM", "yyyy-MM-dd HH:mm:ss", "MM-dd", "yyyy-MM-dd HH", "EEE"),
    *("yyyy-MM-dd HH:mm", "yyyy-MM-dd HH:mm:ss.SSSSSS", "HH:mm"),
)
_UNITS = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
_ZONES = ("UTC", "America/New_York", "Australia/Lord_Howe", "+05:30", "Pacific/Apia")
_FIELDS = (0, 1, 2, 3, 4, 5, 7, 10, 11, 12, 22, 23, 28, 29, 30, 31, 52, 53, 59, 60, 365, 366, -1, -31, -400, 1000)
_YEARS = (1, 999, 1582, 1883, 1899, 1900, 1969, 1970, 2000, 2019, 2021, 2023, 2024, 2025, 2150, 9999)
_SIMPLE = {
    **dict.fromkeys(("number", "int", "field", "epoch", "size"), ("0", "1", "2", "-1", "10", "100")),
    "float": ("0D", "1D", "-1D", "0.5D"),
    "decimal": ("0.0", "1.0", "0.5"),
    "text": ("''", "'a'", "'b'"),
    "date": ("date'1970-01-01'", "date'2024-03-01'"),
    "ts": ("timestamp_micros(0)", "timestamp_seconds(1710054000)"),
    "ntz": ("timestamp_ntz'1970-01-01 00:00:00'",),
    "daytime": ("interval '0' second", "interval '1' day"),
    "yearmonth": ("interval '1' month",),
    "bool": ("true", "false"),
    "numeric": ("int", "double", "bigint"),
    "decimals": ("decimal(9,2)",),
    "digits": ("0", "1"),
    "count": ("1", "2"),
    "start": ("1", "2"),
    "days": ("1", "0"),
    "pattern": ("'a%'", "'%a'", "'_'"),
    "regex": ("'^a'",),
}


def simpler(kind: str) -> tuple[str, ...]:
    """Plain literals to try in the place of another."""
    return _SIMPLE.get(kind, ())


class Literals:
    """Writes literals; ``files`` are what they should be near to."""

    def __init__(self, rng: Random, files: Sequence[Values], *, nasty: bool) -> None:
        self.rng, self.files, self.nasty = rng, files, nasty
        pick = rng.choice
        self._others: dict[str, Callable[[], str]] = {
            "digits": lambda: str(pick((0, 0, 1, 2, -1, -2, 3))),
            "power": lambda: pick(("2", "3", "0.5", "-1", "0", "1", "2D", "10")),
            "numeric": lambda: pick(_NUMERIC + _DECIMALS[3:]),
            "integer": lambda: pick(_NUMERIC[:4]),
            "decimals": lambda: pick(_DECIMALS),
            "unit": lambda: pick(_UNITS),
            "period": lambda: f"'{pick(_PERIODS)}'",
            "format": lambda: f"'{pick(_FORMATS)}'",
            "zone": lambda: f"'{pick(_ZONES)}'",
            "weekday": lambda: f"'{pick(('MON', 'tu', 'Sunday', 'FRI', 'xx'))}'",
            "days": lambda: str(pick((1, -1, 0, 3, 30, -31, 365, -1000, 100_000))),
            "count": lambda: str(pick((0, 1, 2, 3, 4, 5, 7, 10, 80, -1))),
            "start": lambda: str(pick((0, 1, 1, 2, 3, -2))),
            "trimmed": lambda: pick(("'x'", "'a '", "''", "'é'", "'cb'")),
            "escape": lambda: f"'{pick('%_!a')}'",
            "pattern": self._pattern,
            "regex": self._regex,
            "daytime": lambda: pick(_DAYTIMES),
            "yearmonth": lambda: pick(_YEARMONTHS),
            "field": lambda: str(pick(pick((_FIELDS, _FIELDS, _YEARS)))),
            "size": lambda: str(pick((0, 1, 2, 3, 5, 8, 70, 74))),
            "epoch": self._epoch,
            "bool": lambda: pick(("true", "false", "NULL")),
        }

    def literal(self, kind: str) -> str:
        """A literal in SQL."""
        if kind.startswith("many_"):
            return ", ".join(self.literal(kind.removeprefix("many_")) for _ in range(self.rng.choice((8, 40))))
        if kind in self._others:
            return self._others[kind]()
        if self.rng.random() < 0.03:
            return f"CAST(NULL AS {self.rng.choice(_TYPES[kind])})"
        type_ = self.rng.choice(_TYPES[kind])
        return sql(self._value(type_), type_)

    def _value(self, type_: str) -> Any:
        """A value that the table holds, one next to it, or any."""
        rng = self.rng
        names = [name for name, other in COLUMNS.items() if other == type_ and name in self.files[0]]
        held = rng.choice(rng.choice(self.files)[rng.choice(names)]) if names and rng.random() < 0.6 else None
        if held is None:
            return value(rng, type_, nasty=self.nasty)
        return _beside(rng, held, type_) if rng.random() < 0.4 else held

    def _epoch(self) -> str:
        moment = value(self.rng, "timestamp", nasty=self.nasty)
        return str(moment // self.rng.choice((SECOND, SECOND, 1000, 1)))

    def _pattern(self) -> str:
        rng = self.rng
        some = text(rng, nasty=self.nasty).decode("utf-8", "replace")[:3]
        parts = [rng.choice(("%", "_", "%%", "a", "ab", "abc", "c", "x", "\\%", "\\_", "\\\\", "é", " ", some))]
        parts += [rng.choice(("%", "_", "", "b", "c", "%c", "d%")) for _ in range(rng.randint(0, 3))]
        return quoted("".join(parts).encode())

    def _regex(self) -> str:
        rng = self.rng
        start = rng.choice(("^", "^", "^", "", "(?i)^", "\\\\A"))
        middle = rng.choice(("a", "ab", "abc", "x1", "é", "Abc", "", "a|b", "[ab]c", "a b", "2024-"))
        end = rng.choice(("", ".*", "$", "+", "*", "?", "{2}", "{0}", ".", "c", "|x", "\\\\d", "(b|c)", ".*x", ".*$"))
        return f"'{start}{middle}{end}'"


def _beside(rng: Random, held: Any, type_: str) -> Any:
    if type_ == "string":
        return rng.choice((held[:-1], held[:1], held[:2], held + b"\x00", held + b"a", held.upper(), held.strip()))
    if isinstance(held, Decimal):
        return held.next_plus() if abs(held) < 1 else held + rng.choice((1, -1)) if abs(held) < 10**6 else held
    if isinstance(held, float):
        return rng.choice((math.nextafter(held, math.inf), math.nextafter(held, -math.inf), -held))
    step = rng.choice((1, -1))
    return min(max(held + step, LEAST), MOST) if type_ in ("timestamp", "timestamp_ntz") else held + step


def sql(held: Any, type_: str) -> str:
    """A value as a literal of SQL.

    >>> sql(-5, "int"), sql(1.5, "double"), sql(float("nan"), "float"), sql(0, "date"), sql(b"a'", "string")
    ('-5', '1.5D', "CAST('NaN' AS float)", "date'1970-01-01'", "'a\\\\''")
    """
    match type_:
        case "string":
            return quoted(held)
        case "int" if abs(held) < 2**31:
            return str(held)
        case "double" if math.isfinite(held):
            return f"{held!r}D"
        case "float" | "double":
            named = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(held, repr(held))
            return f"CAST('{'NaN' if math.isnan(held) else named}' AS {type_})"
        case "date":
            return f"date'{_moment(held * DAY).date().isoformat()}'"
        case "timestamp":
            return f"timestamp_micros({held})"
        case "timestamp_ntz":
            return f"timestamp_ntz'{_moment(held).isoformat(sep=' ')}'"
    if type_.startswith("decimal"):
        return f"CAST('{held:f}' AS {type_})"
    return f"CAST({held} AS {type_})" if -(2**63) < held < 2**63 else "NULL"


def _moment(micros: int) -> dt.datetime:
    return EPOCH + dt.timedelta(microseconds=min(max(micros, LEAST - DAY), MOST + DAY))


def quoted(raw: bytes) -> str:
    """A string literal."""
    try:
        plain = raw.decode().replace("\\", "\\\\").replace("'", "\\'")
    except UnicodeDecodeError:
        return f"CAST(X'{raw.hex()}' AS STRING)"
    return "'" + "".join(c if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in plain) + "'"
