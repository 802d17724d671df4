"""Expressions in words for people: as SQL, names without Spark's ids, times as times."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from secateur.plan.expressions import (
    Alias,
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
    Opaque,
    Or,
    StartsWith,
)
from secateur.plan.types import DataType

_EPOCH = datetime(1970, 1, 1)
_SHOWN = 5
"""How many values of an IN list are written out."""
_OPERATORS = {"Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%"}


def in_words(e: Expression) -> str:
    """
    >>> from secateur.plan.types import parse_type
    >>> ts, n = Column(1, "ts", parse_type("timestamp")), Column(2, "n", parse_type("int"))
    >>> in_words(Or(IsNull(ts), Compare(">=", ts, Literal(1_704_067_200_000_000, ts.type))))
    'ts IS NULL OR ts >= 2024-01-01 00:00:00Z'
    >>> in_words(And(Or(IsNull(ts), IsNull(n)), Compare("=", Call("Reverse", (n,), n.type), Literal(5, n.type))))
    '(ts IS NULL OR n IS NULL) AND reverse(n) = 5'
    """
    match e:
        case Or(left, right):
            return f"{in_words(left)} OR {in_words(right)}"
        case And(left, right):
            return " AND ".join(
                f"({in_words(side)})" if isinstance(side, Or) else in_words(side) for side in (left, right)
            )
        case Not(child):
            return f"NOT {_operand(child)}"
        case IsNull(child):
            return f"{_operand(child)} IS NULL"
        case IsNotNull(child):
            return f"{_operand(child)} IS NOT NULL"
        case Compare(op, left, right):
            return f"{_operand(left)} {op} {_operand(right)}"
        case In(child, values):
            some = ", ".join(_value(Literal(value, child.type)) for value in values[:_SHOWN])
            return f"{_operand(child)} IN ({some}{f', … {len(values)} values' if len(values) > _SHOWN else ''})"
        case StartsWith(child, prefix):
            return f"startswith({in_words(child)}, {_value(Literal(prefix, DataType('string')))})"
        case Like(child, pattern):
            return f"{_operand(child)} LIKE '{pattern}'"
        case Alias(_, _, child):
            return in_words(child)
        case Call("Cast", (child,), type_):
            return f"CAST({in_words(child)} AS {type_})"
        case Call(function, (left, right)) if function in _OPERATORS:
            return f"{_operand(left)} {_OPERATORS[function]} {_operand(right)}"
        case Call(function, args):
            return f"{function.lower()}({', '.join(map(in_words, args))})"
        case Opaque(what, _, _, inputs):
            return f"{what}({', '.join(map(in_words, inputs))})"
        case Column():
            return e.full_name
    return _value(e)


def _operand(e: Expression) -> str:
    """An expression beside an operator."""
    composite = isinstance(e, And | Or | Not | Compare | In | Like | IsNull | IsNotNull)
    arithmetic = isinstance(e, Call) and e.function in _OPERATORS and len(e.args) == 2
    return f"({in_words(e)})" if composite or arithmetic else in_words(e)


def _value(literal: Literal) -> str:
    value, type_ = literal.value, literal.type.name
    try:
        if type_ == "date" and isinstance(value, int):
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if type_ in ("timestamp", "timestamp_ntz") and isinstance(value, int):
            return (_EPOCH + timedelta(microseconds=value)).isoformat(" ") + "Z" * (type_ == "timestamp")
    except OverflowError:
        pass
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
        return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "'"
    return str(value)
