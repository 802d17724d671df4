"""Bounds as the log of a Delta table writes them, in their types' domains and widened by what the log leaves out."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.query.types import DataType

_TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_LOCAL = r"^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?)?$"
_DATE = r"^\d{4}-\d\d-\d\d$"
_ODD_OFFSETS_UNTIL = 63_072_000_000_000  # 1972-01-01: since then no zone's offset has seconds, in microseconds
_MINUTE = 60_000_000
_WIDE = Context(prec=80)


def unless(unknown: pa.Array, array: pa.Array) -> pa.Array:
    """The array with some entries made unknown.

    >>> unless(pa.array([True, False, False]), pa.array([1, 2, None])).to_pylist()
    [None, 2, None]
    """
    if not pc.any(unknown).as_py():
        return array
    # Not by if_else: before Arrow 24 it garbles slices of strings if the other side is null (apache/arrow#49410).
    flags = unknown.to_numpy(zero_copy_only=False)
    return array.take(pa.array(np.arange(len(array)), mask=flags))


def typed_bounds(type_: DataType, low: pa.Array, high: pa.Array, once_narrower: bool) -> tuple[pa.Array, pa.Array]:
    """The bounds in the type's domain, widened by what the log leaves out."""
    kind = type_.name
    if kind in ("float", "double"):
        if kind == "double" and not once_narrower:
            return low, high
        return _neighbour(low, -np.inf), _neighbour(high, np.inf)
    if kind == "string":
        return _strings(low), _strings(high)
    if kind == "decimal":
        return _decimals(low, type_), _decimals(high, type_)
    if kind == "date":
        first, last = (_parsed(t, _DATE, pa.date32()).cast(pa.int32()).cast(pa.int64()) for t in (low, high))
        return first, last
    if kind == "timestamp_ntz":
        first, last = (_parsed(t, _LOCAL, pa.timestamp("us")).cast(pa.int64()) for t in (low, high))
        return first, pc.add(last, 999)
    if kind == "timestamp":
        first, last = (_parsed(t, _TIMESTAMP, pa.timestamp("us", "UTC")).cast(pa.int64()) for t in (low, high))
        return pc.subtract(first, _offset_error(low, first)), pc.add(pc.add(last, 999), _offset_error(high, last))
    return low, high


def _parsed(texts: pa.Array, pattern: str, kind: pa.DataType) -> pa.Array:
    """Texts of one form as values, null where they are of another."""
    odd = pc.invert(pc.match_substring_regex(texts, pattern)).fill_null(False)
    try:
        return unless(odd, texts).cast(kind)
    except pa.ArrowInvalid:  # such as a 30th of February: the whole is not to be trusted
        return pa.nulls(len(texts), kind)


def _offset_error(texts: pa.Array, micros: pa.Array) -> pa.Array:
    """How far a timestamp may be off because its zone's offset at that time had seconds, which the log leaves out."""
    old = pc.and_(pc.less(micros, _ODD_OFFSETS_UNTIL), pc.invert(pc.ends_with(texts, "Z")))
    return pc.if_else(old.fill_null(False), pa.scalar(_MINUTE, pa.int64()), pa.scalar(0, pa.int64()))


def _neighbour(values: pa.Array, towards: float) -> pa.Array:
    """The next float from the float that a number with few digits stands for.

    >>> _neighbour(pa.array([0.1, None]), np.inf).to_pylist()
    [0.10000000894069672, None]
    """
    with np.errstate(over="ignore"):
        narrow = values.to_numpy(zero_copy_only=False).astype(np.float32)
    moved = np.nextafter(narrow, np.float32(towards)).astype(np.float64)
    return pa.array(moved, mask=values.is_null().to_numpy(zero_copy_only=False))


def _strings(texts: pa.Array) -> pa.Array:
    return unless(pc.match_substring(texts, "\ufffd").fill_null(False), texts).cast(pa.binary())


def _decimals(texts: pa.Array, kind: DataType) -> pa.Array:
    try:
        return texts.cast(kind.domain)
    except pa.ArrowInvalid:  # an exponent, or more digits than the column has
        return pa.array([_decimal(t, kind.scale) for t in texts.to_pylist()], kind.domain)


def _decimal(text: str | None, scale: int) -> Decimal | None:
    """
    >>> _decimal("1E+3", 2), _decimal("1.234", 2), _decimal("1E-2", 2)
    (Decimal('1000.00'), None, Decimal('0.01'))
    """
    if text is None:
        return None
    try:
        value = Decimal(text)
        fitted = value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        return None
    return fitted if fitted == value and len(fitted.as_tuple().digits) <= 38 else None
