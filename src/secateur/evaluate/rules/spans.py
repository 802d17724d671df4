"""Ranges of whole numbers, the common ground of the rules for dates and timestamps.

A :class:`Span` is known for an entry only if both bounds are known and lie within the limits that its reader sets;
elsewhere its numbers are 0, so that arithmetic on all entries at once neither overflows nor warns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.evaluate.verdict import Flags, both, either
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression
from secateur.plan.types import DataType

Ints = npt.NDArray[np.int64]

DAY = 86_400_000_000
"""Microseconds of a day."""
DAYS = (-719_162, 2_932_896)
"""The dates of the years 1 to 9999."""
MICROS = (DAYS[0] * DAY, DAYS[1] * DAY + DAY - 1)
"""The timestamps of the years 1 to 9999."""
INT32 = (-(2**31), 2**31 - 1)
INT64 = (-(2**63), 2**63 - 1)
_LIMITS = {"date": DAYS, "timestamp": MICROS, "timestamp_ntz": MICROS, "int": INT32}
"""What a value of a type can be at most, if Spark has not wrapped around; dates and times only as far as modelled."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of whole numbers for each entry, where it is known."""

    low: Ints
    high: Ints
    known: Mask
    value_range: ValueRange

    def within(self, limits: tuple[int, int]) -> Mask:
        """Where the range is known and within limits."""
        mask: Mask = self.known & (self.low >= limits[0]) & (self.high <= limits[1])
        return mask


def span_of(
    e: Expression, context: EvalContext, types: tuple[str, ...], limits: tuple[int, int] | None = None
) -> Span | None:
    """The range of an expression of one of these types, None if nothing is known of it."""
    if e.type.name not in types:
        return None
    found = range_of(e, context)
    if found is None or found.type != e.type:
        return None
    low, high = found.low.values, found.high.values
    if not isinstance(low, np.ndarray) or not isinstance(high, np.ndarray):
        return None
    least, most = limits or _LIMITS.get(e.type.name, INT64)
    known = ~_mask(either(found.low.unknown, found.high.unknown), context.count)
    known &= (least <= low) & (low <= high) & (high <= most)
    return Span(np.where(known, low, 0), np.where(known, high, 0), known, found)


def range_from(type_: DataType, low: Ints, high: Ints, known: Mask, *sources: ValueRange) -> ValueRange:
    """The range of a function that is NULL if an argument is, with values within low and high where known.

    Where nothing is known, an argument may be one that the function refuses: an error, or NULL for a ``try_`` function.
    """
    least, most = INT32 if type_.name == "date" else _LIMITS.get(type_.name, INT64)
    unknown = ~(known & (low >= least) & (high <= most))
    return strict(type_, Bound(low, unknown), Bound(high, unknown), unknown, *sources)


def strict(type_: DataType, low: Bound, high: Bound, null: Flags, *sources: ValueRange) -> ValueRange:
    """The range of a function that has a value only if all its arguments have one, and may be NULL where ``null``."""
    value: Flags = True
    for source in sources:
        null, value = either(null, source.may_hold_null), both(value, source.may_hold_value)
    return ValueRange(type_, low, high, null, False, value, value)


def _mask(flags: Flags, count: int) -> Mask:
    return np.full(count, flags) if isinstance(flags, bool) else flags
