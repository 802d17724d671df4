"""The algebra of range-sets: short sorted lists of disjoint closed ranges that hold every value of a column.

A zone map is a range-set of one range. More ranges remember gaps: a value in a gap does not occur. Ranges are pairs of
Arrow arrays in the domain of a type (see :mod:`secateur.query.types`); NULL and NaN are never in them.

With few ranges to spend, the best places to split are the largest gaps: the total width is the distance from the least
to the greatest value less the gaps that are left open, so no other choice covers less. Growing a range-set by a value
that it does not hold is the same thing: the value becomes a range of its own, and if that is one too many, the smallest
gap is closed, be it next to the value or elsewhere. Range-sets of two files can be joined but not optimally: within a
range it is forgotten where the values are.

This module imports nothing of secateur: the collector sends it to Spark's executors by value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RangeSet:
    """Sorted disjoint ranges, both ends included.

    >>> numbers = tightest(pa.array([3, 4, 5, 10, 20, 11]), 2)
    >>> numbers, len(numbers)
    ({[3, 11], [20, 20]}, 2)
    """

    lows: pa.Array
    highs: pa.Array

    def __len__(self) -> int:
        return len(self.lows)

    def __repr__(self) -> str:
        ends = zip(self.lows.to_pylist(), self.highs.to_pylist(), strict=True)
        return "{" + ", ".join(f"[{low}, {high}]" for low, high in ends) + "}"


def empty(domain: pa.DataType) -> RangeSet:
    """No values at all."""
    return RangeSet(pa.nulls(0, domain), pa.nulls(0, domain))


def tightest(values: pa.Array, most: int) -> RangeSet:
    """At most so many ranges that hold all values, the narrowest in total; neither NULL nor NaN may be among them.

    >>> tightest(pa.array([0, 11, 12, 14, 22]), 2), tightest(pa.array([0, 4, 5, 10, 24, 25]), 2)
    ({[0, 0], [11, 22]}, {[0, 10], [24, 25]})
    """
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # one zero
    distinct = values.unique()
    ordered = distinct.take(pc.sort_indices(distinct))
    return compacted(RangeSet(ordered, ordered), most)


def compacted(ranges: RangeSet, most: int) -> RangeSet:
    """The same ranges with the smallest gaps closed, until there are at most so many.

    >>> compacted(union(pa.array([1, 5, 20]), pa.array([2, 9, 30])), 2)
    {[1, 9], [20, 30]}
    """
    if not len(ranges):
        return ranges
    gaps = _gaps(ranges.highs[:-1], ranges.lows[1:])
    open_ = np.flatnonzero(gaps > 1) if pa.types.is_integer(ranges.lows.type) else np.arange(len(gaps))
    if len(open_) >= most:
        largest = np.argsort(gaps[open_], kind="stable")[len(open_) - most + 1 :]
        open_ = np.sort(open_[largest])
    elif len(open_) == len(gaps):
        return ranges
    starts, ends = np.append(0, open_ + 1), np.append(open_, len(gaps))
    return RangeSet(ranges.lows.take(pa.array(starts)), ranges.highs.take(pa.array(ends)))


def union(lows: pa.Array, highs: pa.Array) -> RangeSet:
    """The values of any ranges, given in any order, of which each has low <= high.

    >>> union(pa.array([10, 1, 4, 2]), pa.array([12, 3, 5, 2]))
    {[1, 5], [10, 12]}
    """
    if not len(lows):
        return RangeSet(lows, highs)
    low, high = _keys(lows, highs)
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    reach = np.maximum.accumulate(high)
    apart = low[1:] > reach[:-1]
    if pa.types.is_integer(lows.type):
        apart &= low[1:] - 1 != reach[:-1]  # next to each other is together
    starts = np.append(0, np.flatnonzero(apart) + 1)
    ends = np.append(starts[1:] - 1, len(low) - 1)
    # The value that the reach comes from: where the running maximum was last raised.
    raised = np.maximum.accumulate(np.where(high == reach, np.arange(len(high)), 0))
    return RangeSet(lows.take(pa.array(order[starts])), highs.take(pa.array(order[raised[ends]])))


def joined(a: RangeSet, b: RangeSet) -> RangeSet:
    """The values of either."""
    return union(pa.concat_arrays([a.lows, b.lows]), pa.concat_arrays([a.highs, b.highs]))


def common(a: RangeSet, b: RangeSet) -> RangeSet:
    """The values of both.

    >>> common(union(pa.array([1, 10]), pa.array([5, 20])), union(pa.array([4, 19]), pa.array([12, 30])))
    {[4, 5], [10, 12], [19, 20]}
    """
    if not len(a) or not len(b):
        return empty(a.lows.type)
    a_low, a_high, b_low, b_high = _keys(a.lows, a.highs, b.lows, b.highs)
    # Each range of a meets a run of ranges of b.
    first, stop = np.searchsorted(b_high, a_low, side="left"), np.searchsorted(b_low, a_high, side="right")
    counts = np.maximum(stop - first, 0)
    mine = np.repeat(np.arange(len(a)), counts)
    theirs = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    lows = _pick(a.lows, mine, b.lows, theirs, a_low[mine] >= b_low[theirs])
    highs = _pick(a.highs, mine, b.highs, theirs, a_high[mine] <= b_high[theirs])
    return RangeSet(lows, highs)


def meets(ranges: RangeSet, lows: pa.Array, highs: pa.Array) -> Mask:
    """Which of many ranges, each given by its ends, have a value in common with a range-set.

    >>> meets(union(pa.array([1, 10]), pa.array([5, 20])), pa.array([6, 5, 0, 21]), pa.array([9, 9, 30, 22])).tolist()
    [False, True, True, False]
    """
    if not len(ranges) or not len(lows):
        return np.zeros(len(lows), np.bool_)
    our_low, our_high, low, high = _keys(ranges.lows, ranges.highs, lows, highs)
    at = np.searchsorted(our_high, low, side="left")
    found: Mask = (at < len(ranges)) & (our_low[np.minimum(at, len(ranges) - 1)] <= high)
    return found


def grown(ranges: RangeSet, values: pa.Array, most: int) -> RangeSet:
    """A range-set that holds more values: each is taken in where that widens the whole least.

    >>> begin = union(pa.array([3, 10, 23]), pa.array([5, 20, 27]))
    >>> grown(begin, pa.array([6]), 3), grown(begin, pa.array([6, 13, 15, 52]), 3)
    ({[3, 6], [10, 20], [23, 27]}, {[3, 6], [10, 27], [52, 52]})
    """
    for at in range(len(values)):
        value = values[at : at + 1]
        if not meets(ranges, value, value)[0]:
            ranges = compacted(joined(ranges, RangeSet(value, value)), most)
    return ranges


def _keys(*arrays: pa.Array) -> list[npt.NDArray[Any]]:
    """Numbers that compare among each other as the values of all arrays do."""
    if pa.types.is_integer(arrays[0].type) or pa.types.is_floating(arrays[0].type):
        return [array.to_numpy(zero_copy_only=False) for array in arrays]
    coded = pa.concat_arrays(list(arrays)).dictionary_encode()
    rank = np.empty(len(coded.dictionary), np.int64)
    rank[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(coded.dictionary))
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    return np.split(rank[coded.indices.to_numpy()], ends)


def _gaps(highs: pa.Array, lows: pa.Array) -> npt.NDArray[Any]:
    """How far it is from the end of a range to the start of the next; that the choice is the best rests on it alone."""
    if pa.types.is_integer(lows.type):
        # Unsigned, because the distance may not fit in int64.
        unsigned: npt.NDArray[Any] = lows.to_numpy().view(np.uint64) - highs.to_numpy().view(np.uint64)
        return unsigned
    if pa.types.is_floating(lows.type):
        with np.errstate(over="ignore", invalid="ignore"):
            distance = lows.to_numpy() - highs.to_numpy()
        return np.where(np.isnan(distance), np.inf, distance)
    if pa.types.is_decimal(lows.type):
        wide = pa.decimal256(40, lows.type.scale)
        number: npt.NDArray[Any] = pc.subtract(lows.cast(wide), highs.cast(wide)).cast(pa.float64()).to_numpy()
        return number
    return _prefix_gaps(highs, lows)


def _prefix_gaps(highs: pa.Array, lows: pa.Array) -> npt.NDArray[Any]:
    """For strings, the eight bytes after those that all begin with, as numbers: they grow as the strings do."""
    if not len(lows):
        return np.zeros(0)
    first, last = highs[0].as_py(), lows[-1].as_py()
    alike = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    high, low = (
        np.array(pc.binary_slice(part, alike, alike + 8).to_pylist(), "S8").view(">u8").astype(np.uint64)
        for part in (highs, lows)
    )
    return low - high


def _pick(a: pa.Array, at: Positions, b: pa.Array, b_at: Positions, ours: Mask) -> pa.Array:
    """Of two arrays at some positions each, the first one's value where ``ours``."""
    both = pa.concat_arrays([a, b])
    return both.take(pa.array(np.where(ours, at, b_at + len(a))))
