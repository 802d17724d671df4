"""Decimals as whole numbers of their last digit, in int64: many times faster than Arrow's decimals where they fit.

A :class:`Scaled` holds 12.34 of scale 2 as 1234. Which decimals fit is looked up, never assumed: an operation that
could leave int64 for one entry is refused for all of them (None), and done by Arrow instead (see ``decimals``).
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from secateur.evaluate.value_range import Numbers
from secateur.evaluate.verdict import Flags, either
from secateur.plan.columns import Mask
from secateur.plan.types import DataType
from secateur.stats.arrays import null_mask, raw_values

LIMIT = 2**63 - 1
_DIGITS = 18
"""Powers of ten up to this one fit."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Whole numbers of ``10**-scale``, none larger in size than ``reach``; unknown ones are 0."""

    values: Numbers
    unknown: Flags
    scale: int
    reach: int

    def times(self, other: Scaled) -> Scaled | None:
        """The product, None if it could overflow."""
        reach = self.reach * other.reach
        if reach > LIMIT:
            return None
        return Scaled(self.values * other.values, either(self.unknown, other.unknown), self.scale + other.scale, reach)

    def plus(self, other: Scaled, sign: int = 1) -> Scaled | None:
        """The sum (or difference) of two of one scale, None if it could overflow."""
        reach = self.reach + other.reach
        if reach > LIMIT or self.scale != other.scale:
            return None
        values = self.values + other.values if sign > 0 else self.values - other.values
        return Scaled(values, either(self.unknown, other.unknown), self.scale, reach)

    def to_scale(self, scale: int) -> Scaled | None:
        """With more or fewer digits behind the point, rounded half away from zero; None if it could overflow."""
        digits = abs(scale - self.scale)
        if not digits:
            return self
        if digits > _DIGITS:
            return None
        unit = 10**digits
        if scale > self.scale:
            reach = self.reach * unit
            return Scaled(self.values * unit, self.unknown, scale, reach) if reach <= LIMIT else None
        half = unit // 2
        if self.reach + half > LIMIT:
            return None
        size = (np.abs(self.values) + half) // unit
        return Scaled(np.where(self.values < 0, -size, size), self.unknown, scale, (self.reach + half) // unit)

    def within(self, precision: int) -> Scaled:
        """The same, unknown where it has more digits than that."""
        limit = 10**precision
        if self.reach < limit:
            return self
        over: Mask = np.abs(self.values) >= limit
        if not over.any():
            return Scaled(self.values, self.unknown, self.scale, limit - 1)
        return Scaled(np.where(over, 0, self.values), either(self.unknown, over), self.scale, limit - 1)

    def fit(self, type_: DataType) -> Scaled | None:
        """The same as a value of a decimal type: rounded to its scale, unknown where it has too many digits."""
        rounded = self.to_scale(type_.scale)
        return rounded.within(type_.precision) if rounded else None

    def to_arrow(self) -> pa.Array:
        """The same as Arrow's decimals.

        >>> of_arrow(Scaled(np.array([1234, -5]), np.array([False, True]), 2, 1234).to_arrow()).values.tolist()
        [1234, 0]
        """
        words = np.empty((len(self.values), 2), np.int64)
        words[:, 0] = self.values
        np.right_shift(self.values, 63, out=words[:, 1])
        valid = None
        if self.unknown is not False:
            known = ~np.broadcast_to(
                np.bool_(self.unknown) if isinstance(self.unknown, bool) else self.unknown, len(words)
            )
            valid = pa.py_buffer(np.packbits(known, bitorder="little"))
        array = pa.Array.from_buffers(pa.decimal128(38, self.scale), len(words), [valid, pa.py_buffer(words)])
        if self.unknown is False:
            _remember(array, self)
        return array


def of_arrow(values: pa.Array) -> Scaled | None:
    """Arrow's decimals as whole numbers, None if there is one that does not fit.

    >>> from decimal import Decimal
    >>> found = of_arrow(pa.array([Decimal("12.34"), None, Decimal("-0.01")], pa.decimal128(38, 2)))
    >>> found.values.tolist(), found.unknown.tolist(), found.reach
    ([1234, 0, -1], [False, True, False], 1234)
    >>> of_arrow(pa.array([Decimal(2**63)], pa.decimal128(38, 0))) is None
    True
    """
    known = _known.get(id(values))
    if known is not None and known[0]() is values:
        return known[1]
    found = _read(values)
    if found is not None:
        _remember(values, found)
    return found


_known: dict[int, tuple[weakref.ref[pa.Array], Scaled]] = {}
"""Arrays that are alive and were made of whole numbers, or read so before: rules hand them on to each other."""


def _remember(array: pa.Array, found: Scaled) -> None:
    key = id(array)
    _known[key] = weakref.ref(array, lambda _: _known.pop(key, None)), found


def _read(values: pa.Array) -> Scaled | None:
    if not pa.types.is_decimal128(values.type):
        return None
    count, buffer = len(values), values.buffers()[1]
    if values.null_count == count or buffer is None:
        return Scaled(np.zeros(count, np.int64), count > 0, values.type.scale, 0)
    # Two words each, the low one first; the high one only repeats the sign of a number that fits in the low one.
    words = raw_values(values, np.int64, 2).reshape(count, 2)
    low, high = np.ascontiguousarray(words[:, 0]), words[:, 1]
    unknown: Flags = null_mask(values) if values.null_count else False
    if unknown is not False:
        low, high = np.where(unknown, 0, low), np.where(unknown, 0, high)
    if not np.array_equal(low >> 63, high):
        return None
    return of_numbers(low, unknown, values.type.scale)


def of_numbers(values: Numbers, unknown: Flags, scale: int) -> Scaled | None:
    """Whole numbers of ``10**-scale``, None if one is the least of int64, which has no counterpart."""
    if not len(values):
        return Scaled(values, unknown, scale, 0)
    reach = max(-int(values.min()), int(values.max()))
    return Scaled(values, unknown, scale, reach) if reach <= LIMIT else None
