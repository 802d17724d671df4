"""Random tables and predicates with nasty values, their meaning row by row, and their SQL text.

The one generator serves the property test, where :func:`truth` is the judge, and the test against Spark, where Spark
is. Nothing here knows how the evaluator works.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import (
    And,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StartsWith,
    Value,
)
from secateur.plan.types import BOOLEAN, DataType
from tests.evaluate.language import ColumnEntry, Entry, columns_of

COLUMNS = columns_of(
    "i int, l bigint, f float, d double, c decimal(10,2), s string, b boolean, day date, at timestamp, j int"
)
_NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0, math.inf, -math.inf, math.nan, math.nan]
_TEXTS = [
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "B",
    "é",
    "é%",
    "ü",
    "z",
    "zz",
    "😀",
    "ﬀ",
    "a_c",
    "50%",
    "50%x",
    "日本",
    " ",
]
POOLS: Mapping[str, Sequence[Value]] = {
    "int": [*_NUMBERS, 2**31 - 1, -(2**31)],
    "bigint": [*_NUMBERS, 2**63 - 1, 2**63 - 2, -(2**63)],
    "float": [*_FLOATS, 2.0**127, 2.0**-140],
    "double": [*_FLOATS, 1.7976931348623157e308, 5e-324],
    "decimal": [Decimal(text) for text in ("0.00", "1.00", "-1.00", "1.50", "1.51", "99999999.99", "-99999999.99")],
    "string": [text.encode() for text in _TEXTS],
    "boolean": [0, 1],
    "date": [0, 1, -1, 19000, 19001, -700000, 2900000],
    "timestamp": [0, 1, -1, 999, 1000, 1_700_000_000_000_000, 1_700_000_000_000_001, -60_000_000_000_000_000],
}
_PATTERNS = ["a%", "ab%", "ab", "a_c", "%", "%b", "a%c", "é%", "é\\%", "50\\%%", "50\\%", "_", "", "z%%", "日_", "😀%"]

Row = Mapping[int, Value]


def is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


class Generator:
    """Draws values, files and predicates from a random source."""

    def __init__(self, rng: Random, columns: Sequence[ScanColumn] = COLUMNS) -> None:
        self.rng = rng
        self.columns = columns

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def value(self, type_: DataType) -> Value:
        return self.rng.choice(POOLS[type_.name])

    def rows(self) -> list[Row]:
        """The rows of one file; each column draws from a few values, so that bounds are narrow."""
        count = self.rng.choice([0, 1, 1, 2, 3])
        few = {c.id: [self.value(c.type) for _ in range(self.rng.choice([1, 1, 2, 3]))] for c in self.columns}
        nulls = {c.id: self.rng.choice([0.0, 0.0, 0.3, 1.0]) for c in self.columns}
        return [
            {c.id: None if self.chance(nulls[c.id]) else self.rng.choice(few[c.id]) for c in self.columns}
            for _ in range(count)
        ]

    def entry(self, rows: Sequence[Row]) -> Entry:
        """Statistics of the rows: at times loosened, forgotten, or impossible."""
        known = {c.name: self.column_entry(c, [row[c.id] for row in rows]) for c in self.columns if self.chance(0.9)}
        return Entry(self.forget(len(rows)), known)

    def column_entry(self, column: ScanColumn, values: Sequence[Value]) -> ColumnEntry:
        numbers: list[Any] = [v for v in values if v is not None and not is_nan(v)]
        nulls, nans = values.count(None), sum(is_nan(v) for v in values)
        low = min(numbers, default=None)
        high = max(numbers, default=None)
        if numbers and self.chance(0.2):
            low, high = min(low, self.bound(column.type, low)), max(high, self.bound(column.type, high))
        # An impossible pair is recognised only as a pair, so neither half of it may be forgotten.
        if numbers and low != high and self.chance(0.05):
            return ColumnEntry(high, low, self.forget(nulls), self.forget(nans))
        if numbers and column.type.is_float and self.chance(0.05):
            return ColumnEntry(math.nan, high, self.forget(nulls), self.forget(nans))
        return ColumnEntry(self.forget(low), self.forget(high), self.forget(nulls), self.forget(nans))

    def bound(self, type_: DataType, otherwise: Value) -> Any:
        value = self.value(type_)
        return otherwise if is_nan(value) else value

    def forget(self, known: Any) -> Any:
        return None if self.chance(0.12) else known

    def predicate(self, depth: int = 4) -> Expression:
        kind = self.rng.choice(["and", "or", "not", "test", "test", "test"]) if depth > 1 else "test"
        match kind:
            case "and":
                return And(self.predicate(depth - 1), self.predicate(depth - 1))
            case "or":
                return Or(self.predicate(depth - 1), self.predicate(depth - 1))
            case "not":
                return Not(self.predicate(depth - 1))
            case _:
                return self.test(depth)

    def test(self, depth: int) -> Expression:
        source = self.rng.choice(self.columns)
        column = Column(source.id, source.name, source.type)
        kinds = ["compare", "compare", "compare", "in", "in", "null", "constant", "nested"]
        kinds += ["prefix", "like"] * 2 if column.type.name == "string" else []
        kinds += ["flag"] * 3 if column.type.name == "boolean" else []
        match self.rng.choice(kinds):
            case "in":
                count = self.rng.choice([1, 2, 3, 14])
                return In(column, tuple(None if self.chance(0.08) else self.value(column.type) for _ in range(count)))
            case "null":
                return IsNull(column) if self.chance(0.5) else IsNotNull(column)
            case "constant":
                return Literal(self.rng.choice([None, 0, 1]), BOOLEAN)
            case "nested" if depth > 1:
                return IsNull(self.predicate(depth - 1))
            case "prefix":
                return StartsWith(column, self.rng.choice([b"", b"a", b"ab", "é".encode(), b"50%", "😀".encode()]))
            case "like":
                return Like(column, self.rng.choice(_PATTERNS))
            case "flag":
                return column
            case _:
                return self.comparison(column)

    def comparison(self, column: Column) -> Expression:
        op = self.rng.choice(["=", "<", "<=", ">", ">=", "<=>"])
        twins = [c for c in self.columns if c.type == column.type and c.id != column.id]
        if twins and self.chance(0.1):
            return Compare(op, column, Column(twins[0].id, twins[0].name, column.type))
        literal = Literal(None if self.chance(0.05) else self.value(column.type), column.type)
        return Compare(op, column, literal) if self.chance(0.7) else Compare(op, literal, column)


def truth(e: Expression, row: Row) -> bool | None:
    """What SQL says the predicate is on a row."""
    match e:
        case And(left, right):
            a, b = truth(left, row), truth(right, row)
            return False if a is False or b is False else None if a is None or b is None else True
        case Or(left, right):
            return truth(Not(And(Not(left), Not(right))), row)
        case Not(child):
            a = truth(child, row)
            return None if a is None else not a
        case IsNotNull(child):
            return not truth(IsNull(child), row)
        case IsNull(child):
            return (row[child.id] if isinstance(child, Column) else truth(child, row)) is None
        case Compare(op, left, right):
            return _compare(op, _operand(left, row), _operand(right, row))
        case In(child, values):
            found = [_compare("=", _operand(child, row), value) for value in values]
            return True if True in found else None if None in found else False
        case StartsWith(child, prefix):
            text = _operand(child, row)
            return None if text is None else text.startswith(prefix)
        case Like(child, pattern, escape):
            text = _operand(child, row)
            return None if text is None else re.fullmatch(_regex(pattern, escape), text.decode(), re.S) is not None
        case Column() | Literal():
            value = _operand(e, row)
            return None if value is None else bool(value)
    raise AssertionError(f"no meaning for {e}")


def _operand(e: Expression, row: Row) -> Any:
    assert isinstance(e, Column | Literal)
    return row[e.id] if isinstance(e, Column) else e.value


def _order(value: Any) -> Any:
    return (1, 0) if is_nan(value) else (0, value)


def _compare(op: str, a: Any, b: Any) -> bool | None:
    if op == "<=>":
        return (a is None and b is None) if a is None or b is None else _order(a) == _order(b)
    if a is None or b is None:
        return None
    a, b = _order(a), _order(b)
    return bool({"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def _regex(pattern: str, escape: str) -> str:
    parts = re.findall(re.escape(escape) + ".|.", pattern, re.S)
    return "".join({"%": ".*", "_": "."}.get(part, re.escape(part[-1])) for part in parts)


def sql(e: Expression) -> str:
    """The predicate as Spark reads it."""
    match e:
        case And(left, right):
            return f"({sql(left)} AND {sql(right)})"
        case Or(left, right):
            return f"({sql(left)} OR {sql(right)})"
        case Not(child):
            return f"(NOT {sql(child)})"
        case IsNull(child):
            return f"({sql(child)} IS NULL)"
        case IsNotNull(child):
            return f"({sql(child)} IS NOT NULL)"
        case Compare(op, left, right):
            return f"({sql(left)} {op} {sql(right)})"
        case In(child, values):
            return f"({sql(child)} IN ({', '.join(literal(v, child.type) for v in values)}))"
        case StartsWith(child, prefix):
            return f"startswith({sql(child)}, {literal(prefix, child.type)})"
        case Like(child, pattern):
            return f"({sql(child)} LIKE r'{pattern}')"
        case Column(_, name):
            return name
        case Literal(value, type_):
            return literal(value, type_)
    raise AssertionError(f"no SQL for {e}")


def literal(value: Value, type_: DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {type_})"
    if isinstance(value, bytes):
        return f"r'{value.decode()}'"
    match type_.name:
        case "boolean":
            return "true" if value else "false"
        case "date":
            return f"date_from_unix_date({value})"
        case "timestamp":
            return f"timestamp_micros({value})"
        case _:
            return f"CAST('{value}' AS {type_})"
