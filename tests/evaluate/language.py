r"""Predicates and statistics as short text, so that a test case is one line.

A predicate reads like SQL: ``x > 5 AND name LIKE 'a%'``, ``f(x) = 1``, ``x IS NOT NULL``. Literals take the type of the
column that they are compared with: ``5``, ``1.50``, ``NaN``, ``-inf``, ``'text'``, ``2024-01-31``,
``2024-01-31T10:00:00``, ``TRUE``, ``NULL``.

An entry (a file) reads ``x: 1..5 nulls=0, name: 'a'..? | rows=10``: bounds, then counts; ``?`` is unknown. What is not
said of an entry is ``rows=10``, of a column ``nulls=0 nans=0``; a column that is not named has no statistics there.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import pyarrow as pa

from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import (
    And,
    Call,
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
from secateur.plan.types import BOOLEAN, DataType, parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

_VALUE = r"'(?:[^']|'')*'|-?(?:\d[\dT:.eE+-]*|inf\b)|NaN\b|TRUE\b|FALSE\b|NULL\b"
_TOKEN = re.compile(rf"\s*({_VALUE}|<=>|<=|>=|<>|[=<>(),]|[A-Za-z_][\w.]*)")
_EPOCH = datetime.datetime(1970, 1, 1)


def columns_of(text: str) -> tuple[ScanColumn, ...]:
    """Scan columns from ``x int, p string partition``; ids count from 1."""
    parts = re.findall(r"(\w+) ([\w<>]+(?:\([\d,]+\))?)(?: (partition|hidden))?", text)
    kinds = {"": "data", "partition": "partition", "hidden": "hidden"}
    return tuple(
        ScanColumn(i, name, parse_type(type_), kinds[kind])  # type: ignore[arg-type]
        for i, (name, type_, kind) in enumerate(parts, 1)
    )


def value_of(text: str, type_: DataType) -> Value:
    """A literal in the domain of its type."""
    if text in ("NULL", "?"):
        return None
    if type_.name == "boolean":
        return {"TRUE": 1, "FALSE": 0}[text]
    if type_.is_float:
        return float(text)
    if type_.name == "decimal":
        return Decimal(text)
    if type_.name == "date" and "-" in text[1:]:
        return (datetime.datetime.fromisoformat(text) - _EPOCH).days
    if type_.name.startswith("timestamp") and "-" in text[1:]:
        return (datetime.datetime.fromisoformat(text) - _EPOCH) // datetime.timedelta(microseconds=1)
    if text.startswith("'"):
        return text[1:-1].replace("''", "'").encode()
    return int(text)


def predicate(text: str, columns: Mapping[str, Column]) -> Expression:
    """The expression that a text describes."""
    tokens = _TOKEN.findall(text)
    assert "".join(tokens).replace(" ", "") == text.replace(" ", ""), f"cannot read {text!r}"
    parser = _Parser(tokens, columns)
    parsed = parser.disjunction()
    assert parser.at == len(tokens), f"{text!r} has more than one predicate: {tokens[parser.at :]}"
    return parsed


@dataclass
class _Parser:
    tokens: list[str]
    columns: Mapping[str, Column]
    at: int = 0

    def accept(self, *expected: str) -> bool:
        """Whether these are the next tokens; if so they are consumed."""
        found = self.tokens[self.at : self.at + len(expected)] == list(expected)
        self.at += len(expected) * found
        return found

    def next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def disjunction(self) -> Expression:
        left = self.conjunction()
        while self.accept("OR"):
            left = Or(left, self.conjunction())
        return left

    def conjunction(self) -> Expression:
        left = self.negation()
        while self.accept("AND"):
            left = And(left, self.negation())
        return left

    def negation(self) -> Expression:
        return Not(self.negation()) if self.accept("NOT") else self.test()

    def test(self) -> Expression:
        if self.accept("("):
            inner = self.disjunction()
            assert self.accept(")")
            if not self.accept("IS", "NULL"):
                return inner
            return IsNull(inner)
        left = self.operand()
        if self.accept("IS", "NULL"):
            return IsNull(_typed(left, BOOLEAN))
        if self.accept("IS", "NOT", "NULL"):
            return IsNotNull(_typed(left, BOOLEAN))
        if self.accept("NOT", "IN"):
            return Not(self.listed(left))
        if self.accept("IN"):
            return self.listed(left)
        if self.accept("NOT", "LIKE"):
            return Not(self.like(left))
        if self.accept("LIKE"):
            return self.like(left)
        if self.at < len(self.tokens) and self.tokens[self.at] in ("=", "<", "<=", ">", ">=", "<=>", "<>"):
            op, right = self.next(), self.operand()
            type_ = right.type if isinstance(left, str) and not isinstance(right, str) else _type(left)
            compared = Compare("=" if op == "<>" else op, _typed(left, type_), _typed(right, type_))
            return Not(compared) if op == "<>" else compared
        return _typed(left, BOOLEAN)

    def operand(self) -> Expression | str:
        """A column, a call, or the text of a literal, whose type is known later."""
        token = self.next()
        if re.fullmatch(_VALUE, token):
            return token
        if not self.accept("("):
            return self.columns[token]
        args = [self.operand()]
        while self.accept(","):
            args.append(self.operand())
        assert self.accept(")")
        types = [a.type for a in args if not isinstance(a, str)]
        if token == "startswith" and isinstance(args[1], str):
            prefix = value_of(args[1], types[0])
            assert isinstance(prefix, bytes)
            return StartsWith(_typed(args[0], types[0]), prefix)
        return Call(token, tuple(_typed(a, types[0]) for a in args), types[0])

    def listed(self, child: Expression | str) -> Expression:
        assert not isinstance(child, str)
        assert self.accept("(")
        values = [] if self.tokens[self.at] == ")" else [value_of(self.next(), child.type)]
        while self.accept(","):
            values.append(value_of(self.next(), child.type))
        assert self.accept(")")
        return In(child, tuple(values))

    def like(self, child: Expression | str) -> Expression:
        assert not isinstance(child, str)
        pattern = self.next()[1:-1].replace("''", "'")
        return Like(child, pattern, self.next()[1:-1]) if self.accept("ESCAPE") else Like(child, pattern)


def _type(e: Expression | str) -> DataType:
    return BOOLEAN if isinstance(e, str) else e.type


def _typed(e: Expression | str, type_: DataType) -> Expression:
    return Literal(value_of(e, type_), type_) if isinstance(e, str) else e


@dataclass(frozen=True, slots=True)
class ColumnEntry:
    """What is known of a column in one file; None is unknown."""

    low: Value = None
    high: Value = None
    nulls: int | None = None
    nans: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one file."""

    rows: int | None = 10
    columns: Mapping[str, ColumnEntry] = field(default_factory=dict)


def entry(text: str, columns: Sequence[ScanColumn]) -> Entry:
    """What a text says of a file."""
    about, _, rest = text.partition("|")
    counts = _counts(rest)
    types = {c.name: c.type for c in columns}
    found: dict[str, ColumnEntry] = {}
    for part in re.split(r",\s*(?=\w+:)", about.strip()) if about.strip() else ():
        name, _, known = part.partition(":")
        bounds = re.search(rf"({_VALUE}|\?)\.\.({_VALUE}|\?)", known.replace("..", " .. ").replace(" .. ", ".."))
        if bounds is None or not _splits(bounds):
            bounds = re.search(r"(\S+?)\.\.(\S+)", known)
        assert bounds, f"{part!r} has no bounds"
        known_counts = {"nulls": 0, "nans": 0} | _counts(known[bounds.end() :])
        low, high = (value_of(edge, types[name.strip()]) for edge in bounds.groups())
        found[name.strip()] = ColumnEntry(low, high, known_counts["nulls"], known_counts["nans"])
    return Entry(counts.get("rows", 10), found)


def _splits(bounds: re.Match[str]) -> bool:
    return ".." not in bounds[1] or bounds[1].startswith("'")


def _counts(text: str) -> dict[str, int | None]:
    return {k: None if v == "?" else int(v) for k, v in re.findall(r"(rows|nulls|nans)=(\?|-?\d+)", text)}


def file_stats(entries: Sequence[Entry], columns: Sequence[ScanColumn]) -> FileStats:
    """The statistics of these files; a column that no file knows has none at all."""
    named = {c.name for c in columns if any(c.name in e.columns for e in entries)}

    def load(column: ScanColumn) -> ColumnStats | None:
        if column.name not in named:
            return None
        known = [e.columns.get(column.name, ColumnEntry()) for e in entries]
        domain = column.type.domain
        exact = np.zeros(len(known), dtype=np.bool_)
        return ColumnStats(
            _array([k.low for k in known], domain),
            _array([k.high for k in known], domain),
            _array([k.nulls for k in known], pa.int64()),
            _array([k.nans for k in known], pa.int64()),
            exact,
            exact,
        )

    return FileStats(_array([e.rows for e in entries], pa.int64()), _array([1] * len(entries), pa.int64()), load)


def _array(values: Sequence[Value], type_: pa.DataType) -> pa.Array:
    """An Arrow array that is a slice of a longer one, as it may be in practice."""
    padding = [None, None, *[v for v in values if v is not None][:1]]
    return pa.array([*padding, *values, *padding], type_).slice(len(padding), len(values))


def references(columns: Sequence[ScanColumn]) -> dict[str, Column]:
    """Scan columns as a predicate refers to them."""
    return {c.name: Column(c.id, c.name, c.type) for c in columns}
