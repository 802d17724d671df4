"""Where to split values into a few ranges: at the largest gaps between neighbours.

The total width of ranges that hold all values is the distance from the least to the greatest value less the gaps that
are left open. So leaving the largest gaps open covers least, and no other choice of as many ranges covers less.

This module imports nothing of secateur: the collector sends it to Spark's executors by value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]


def narrowest_ranges(values: pa.Array, most: int) -> tuple[pa.Array, pa.Array]:
    """The ends of at most so many ranges that hold all values, the narrowest in total; no NULL or NaN among them.

    >>> lows, highs = narrowest_ranges(pa.array([0, 11, 12, 14, 22]), 2)
    >>> lows.to_pylist(), highs.to_pylist()
    ([0, 11], [0, 22])
    """
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # one zero
    distinct = values.unique()
    ordered = distinct.take(pc.sort_indices(distinct))
    if not len(ordered):
        return ordered, ordered
    gaps = gap_widths(ordered[:-1], ordered[1:])
    open_ = largest(gaps, most)
    if pa.types.is_integer(values.type):
        open_ = open_[gaps[open_] > 1]  # between 5 and 6 there is nothing
    return ordered.take(pa.array(np.append(0, open_ + 1))), ordered.take(pa.array(np.append(open_, len(gaps))))


def largest(gaps: npt.NDArray[Any], most: int) -> Positions:
    """The gaps to leave open for at most so many ranges, in order.

    >>> largest(np.array([4, 9, 1, 9]), 3).tolist()
    [1, 3]
    """
    if len(gaps) < most:
        return np.arange(len(gaps))
    return np.sort(np.argsort(gaps, kind="stable")[len(gaps) - most + 1 :])


def gap_widths(highs: pa.Array, lows: pa.Array) -> npt.NDArray[Any]:
    """How far it is from each end of a range to the start of the next."""
    if not len(lows):
        return np.zeros(0)
    if pa.types.is_integer(lows.type):
        # Unsigned, because the distance may not fit in int64.
        distance: npt.NDArray[Any] = lows.to_numpy().view(np.uint64) - highs.to_numpy().view(np.uint64)
        return distance
    if pa.types.is_floating(lows.type):
        with np.errstate(over="ignore"):
            difference: npt.NDArray[Any] = lows.to_numpy() - highs.to_numpy()
        return difference
    if pa.types.is_decimal(lows.type):
        wide = pa.decimal256(40, lows.type.scale)
        number: npt.NDArray[Any] = pc.subtract(lows.cast(wide), highs.cast(wide)).cast(pa.float64()).to_numpy()
        return number
    return _prefix_gaps(highs, lows)


def _prefix_gaps(highs: pa.Array, lows: pa.Array) -> npt.NDArray[Any]:
    """For strings, the eight bytes after those that all begin with, as numbers: they grow as the strings do."""
    first, last = highs[0].as_py(), lows[-1].as_py()
    alike = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    high, low = (
        np.array(pc.binary_slice(part, alike, alike + 8).to_pylist(), "S8").view(">u8").astype(np.uint64)
        for part in (highs, lows)
    )
    return low - high
