"""Conditions in words for people: names without Spark's ids, times as times."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from secateur.plan.expressions import Column, Compare, Expression, IsNull, Literal, Or

_EPOCH = datetime(1970, 1, 1)


def in_words(e: Expression) -> str:
    """
    >>> from secateur.plan.types import parse_type
    >>> ts = Column(1, "ts", parse_type("timestamp"))
    >>> in_words(Or(IsNull(ts), Compare(">=", ts, Literal(1_704_067_200_000_000, ts.type))))
    'ts IS NULL OR ts >= 2024-01-01 00:00:00Z'
    """
    match e:
        case Or(left, right):
            return f"{in_words(left)} OR {in_words(right)}"
        case IsNull(child):
            return f"{in_words(child)} IS NULL"
        case Compare(op, left, right):
            return f"{in_words(left)} {op} {in_words(right)}"
        case Column(_, name):
            return name
        case Literal():
            return _value(e)
    return str(e)


def _value(literal: Literal) -> str:
    value, type_ = literal.value, literal.type.name
    try:
        if type_ == "date" and isinstance(value, int):
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if type_ in ("timestamp", "timestamp_ntz") and isinstance(value, int):
            return (_EPOCH + timedelta(microseconds=value)).isoformat(" ") + "Z" * (type_ == "timestamp")
    except OverflowError:
        pass
    if isinstance(value, bytes):
        text = value.decode("utf-8", "backslashreplace")
        return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + "'"
    return str(value)
