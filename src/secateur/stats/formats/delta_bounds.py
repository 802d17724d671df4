"""Bounds as the log of a Delta table writes them, in their types' domains and widened by what the log leaves out."""

from __future__ import annotations

from decimal import Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.columns import Mask
from secateur.plan.types import DataType
from secateur.stats.arrays import null_mask

_TIMESTAMP = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_LOCAL = r"^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d{1,6})?)?$"
_DATE = r"^\d{4}-\d\d-\d\d$"
_ODD_OFFSETS_UNTIL = 63_072_000_000_000  # 1972-01-01: since then no zone's offset has seconds, in microseconds
_MINUTE = 60_000_000
_WIDE = Context(prec=80)
_LARGEST = 2**63 - 1
DOUBLE_DIGITS = 15
"""So many digits of a number survive if it is written as a double."""


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
        return _less_sure(_decimals(low, type_), type_, -1), _less_sure(_decimals(high, type_), type_, 1)
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
    return pa.array(moved, mask=null_mask(values))


def _strings(texts: pa.Array) -> pa.Array:
    return unless(pc.match_substring(texts, "\ufffd").fill_null(False), texts).cast(pa.binary())


def _decimals(texts: pa.Array, kind: DataType) -> pa.Array:
    try:
        return texts.cast(kind.domain)
    except pa.ArrowInvalid:  # an exponent, or more digits than the column has
        return pa.array([_decimal(t, kind.scale) for t in texts.to_pylist()], kind.domain)


def survives_doubles(bounds: pa.Array, kind: DataType) -> Mask:
    """The bounds of a decimal that are what they are even if their writer put them down as doubles, as delta-rs does.

    A number of at most 15 digits comes back unchanged, however many the type allows.

    >>> from secateur.plan.types import parse_type
    >>> bounds = pa.array([Decimal("9999999999999.99"), Decimal("-10000000000000.00"), None], pa.decimal128(38, 2))
    >>> survives_doubles(bounds, parse_type("decimal(20,2)")).tolist()
    [True, False, False]
    """
    if kind.precision <= DOUBLE_DIGITS:
        return np.ones(len(bounds), np.bool_)
    least = pa.scalar(_WIDE.scaleb(Decimal(1), DOUBLE_DIGITS - kind.scale), kind.domain)
    flags: Mask = pc.less(pc.abs(bounds), least).fill_null(False).to_numpy(zero_copy_only=False)
    return flags


def _less_sure(bounds: pa.Array, kind: DataType, sign: int) -> pa.Array:
    """The bounds moved outwards, where they may be doubles, by more than a double's last digit is worth.

    >>> from secateur.plan.types import parse_type
    >>> bounds = pa.array(map(Decimal, ["12345678901234567000.00", "3.07", str(-(2**63))]), pa.decimal128(38, 2))
    >>> _less_sure(bounds, parse_type("decimal(25,2)"), 1).to_pylist()
    [Decimal('12345678901234667000.00'), Decimal('3.07'), None]
    """
    if kind.precision - kind.scale >= len(str(_LARGEST)):  # what delta-rs has no room for becomes the largest integer
        saturated = pc.is_in(pc.abs(bounds), pa.array([_LARGEST, _LARGEST + 1], kind.domain))
        bounds = unless(saturated, bounds)
    unsure = ~null_mask(bounds) & ~survives_doubles(bounds, kind)
    if not unsure.any():
        return bounds
    error = np.where(unsure, np.abs(bounds.cast(pa.float64()).to_numpy(zero_copy_only=False)) * 1e-15, 0.0)
    # Upwards to a power of ten, which is more than enough and has few digits.
    steps = pa.array(sign * 10.0 ** np.ceil(np.log10(error, where=unsure, out=np.zeros(len(error)))) * unsure)
    wide = pa.decimal256(60, kind.scale)
    try:
        return pc.add(bounds.cast(wide), steps.cast(wide)).cast(kind.domain)
    except pa.ArrowInvalid:  # beyond what the type holds
        return unless(pa.array(unsure), bounds)


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
