"""IN lists against bounds: is there a listed value within [low, high], is every value there a listed one?

Both are a sorted search per entry, never a loop over entries nor one over listed values, so a list of thousands costs
little more than a short one. The search runs only for entries that the range of the list leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.query.types import DataType
from secateur.reason.facts import Bound, Numbers, to_mask
from secateur.reason.verdict import Flags, both, neither
from secateur.stats.filestats import Mask

Positions = npt.NDArray[np.int64]
Sorted: TypeAlias = npt.NDArray[Any] | pa.Array


def sorted_values(values: Sequence[Any], type_: DataType) -> Sorted:
    """The distinct values in order: numpy for int64 and float64, else Arrow (as in :class:`Bound`)."""
    domain = type_.domain
    if domain == pa.int64():
        return np.unique(np.array(values, dtype=np.int64))
    if domain == pa.float64():
        return np.unique(np.array(values, dtype=np.float64))
    return pa.array(sorted(set(values)), type=domain)


def some_within(values: Sorted, low: Bound, high: Bound) -> Flags:
    """Where one of the values may lie within the bounds."""
    if not len(values):
        return False
    least, greatest = _at(values, 0), _at(values, -1)
    in_range = both(low.can("<=", greatest), high.can(">=", least))
    if len(values) == 1 or in_range is False:
        return in_range
    where = _indices(in_range, len(low.values))
    lows, highs = low.known_entries(where, least), high.known_entries(where, greatest)
    # An entry in range has low <= greatest, so there is a value at the position.
    return _scatter(where, len(low.values), _at_most(_take(values, _search(values, lows)), highs))


def some_outside(values: Sorted, low: Bound, high: Bound) -> Flags:
    """Where the bounds leave room for something that is not one of the values."""
    if not len(values):
        return True
    least, greatest = _at(values, 0), _at(values, -1)
    known = neither(low.unknown, high.unknown)
    # Within the range of the list, by negating "low < least or high > greatest".
    in_range = both(known, neither(low.can("<", least), high.can(">", greatest)))
    if in_range is False:
        return True
    where = _indices(in_range, len(low.values))
    lows, highs = low.known_entries(where, least), high.known_entries(where, greatest)
    first = _search(values, lows)
    inside = _scatter(where, len(low.values), _covered(values, first, lows, highs))
    return ~inside


def _covered(values: Sorted, first: Positions, lows: Numbers | pa.Array, highs: Numbers | pa.Array) -> Mask:
    """Where the values hold all of [low, high]; ``first`` is the position of the first value that is not below low."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        listed = np.searchsorted(values, highs, side="right") - first
        # Unsigned, because the width of a range of int64 may not fit in int64.
        width = np.asarray(highs).view(np.uint64) - np.asarray(lows).view(np.uint64)
        covered: Mask = (listed > 0) & ((listed - 1).view(np.uint64) == width)
        return covered
    constant = _at_most(highs, lows)
    return constant & _at_most(_take(values, first), lows)


def _search(values: Sorted, needles: Numbers | pa.Array) -> Positions:
    """For each needle the position of the first value that is not below it."""
    if isinstance(values, np.ndarray):
        return np.searchsorted(values, needles, side="left")
    # A binary search for all needles at once: older versions of Arrow have none.
    start = np.zeros(len(needles), dtype=np.int64)
    end = np.full(len(needles), len(values), dtype=np.int64)
    for _ in range(len(values).bit_length()):
        middle = (start + end) >> 1
        open_ = start < end
        below = to_mask(pc.less(_take(values, np.minimum(middle, len(values) - 1)), needles))
        start = np.where(open_ & below, middle + 1, start)
        end = np.where(open_ & ~below, middle, end)
    return start


def _at_most(left: Sorted, right: Sorted) -> Mask:
    if isinstance(left, np.ndarray):
        mask: Mask = left <= right
        return mask
    return to_mask(pc.less_equal(left, right))


def _at(values: Sorted, position: int) -> Any:
    return values[position] if isinstance(values, np.ndarray) else values[position].as_py()


def _take(values: Sorted, positions: Positions) -> Sorted:
    return values[positions] if isinstance(values, np.ndarray) else values.take(pa.array(positions))


def _indices(flags: Flags, count: int) -> Positions:
    return np.arange(count) if isinstance(flags, bool) else np.flatnonzero(flags)


def _scatter(where: Positions, count: int, flags: Mask) -> Mask:
    mask = np.zeros(count, dtype=np.bool_)
    mask[where] = flags
    return mask
