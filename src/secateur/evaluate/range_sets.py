"""Sets of values as sorted disjoint ranges: what a column can take in some files, and which other files meet that.

    files of part        partkey         the set                     files of lineitem    l_partkey    meet it
    ------------------   ---------       -----------------------     ------------------   ----------   -------
    part-0               [1, 40]         {[1, 60], [200, 240]}       lineitem-0           [30, 90]     yes
    part-1               [35, 60]                                    lineitem-1           [61, 150]    no
    part-2               [200, 240]                                  lineitem-2           [5, 500]     yes

NULL and NaN are in no range, each has a flag. Ranges of whole numbers that touch are one: between 5 and 6 there is
nothing. Ends are numpy arrays for numbers and Arrow arrays for decimals and strings, as in
:class:`secateur.evaluate.value_range.Bound`; no step loops over files or ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.in_lists import Positions, at_most, plain, search, take
from secateur.evaluate.value_range import Numbers, ValueRange, flags_at
from secateur.evaluate.verdict import Flags
from secateur.plan.types import DataType
from secateur.stats.narrowest_ranges import gap_widths, largest

Ends: TypeAlias = Numbers | pa.Array

FEW = 8
"""If less than this part of the entries is wanted, sorting them is quicker than to look for them among all, sorted."""


@dataclass(frozen=True, slots=True, eq=False)
class RangeSet:
    """The values between ``low[i]`` and ``high[i]`` for any i, and NaN or NULL as flagged."""

    type: DataType
    low: Ends
    high: Ends
    nan: bool = False
    null: bool = False

    def __len__(self) -> int:
        return len(self.low)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it."""
        return not len(self) and not self.nan and not self.null

    def equals(self, other: RangeSet) -> bool:
        """Whether the other is of the same ranges and flags."""
        if (len(self), self.nan, self.null) != (len(other), other.nan, other.null):
            return False
        return all(
            np.array_equal(one, two) if isinstance(one, np.ndarray) else one.equals(two)
            for one, two in ((self.low, other.low), (self.high, other.high))
        )

    def pairs(self) -> list[tuple[Any, Any]]:
        """The ranges as Python values."""
        return list(zip(plain(self.low), plain(self.high), strict=True))


def range_set(type_: DataType, pairs: Sequence[tuple[Any, Any]], *, nan: bool = False, null: bool = False) -> RangeSet:
    """The set of these ranges, in any order.

    >>> from secateur.plan.types import parse_type
    >>> range_set(parse_type("int"), [(3000, 5000), (7, 9), (1000, 6000), (10, 12)]).pairs()
    [(7, 12), (1000, 6000)]
    """
    low, high = ([pair[i] for pair in pairs] for i in (0, 1))
    return merged(type_, _ends(low, type_), _ends(high, type_), nan=nan, null=null)


def values_in(found: ValueRange, at: Positions) -> RangeSet | None:
    """What the entries at some positions can hold, None if bounds of one that can hold a number are unknown (S1)."""
    null = _any(found.may_hold_null, at)
    nan = found.type.is_float and _any(found.may_hold_nan, at)
    if found.may_hold_number is not True:
        at = at[np.broadcast_to(flags_at(found.may_hold_number, at), len(at))]
    if _any(found.low.unknown, at) or _any(found.high.unknown, at):
        return None
    if isinstance(found.low.values, np.ndarray) and len(at) > len(found.low.values) // FEW:
        wanted = np.zeros(len(found.low.values), np.bool_)
        wanted[at] = True
        at = found.low.order[wanted[found.low.order]]
    low, high = take(found.low.values, at), take(found.high.values, at)
    return merged(found.type, low, high, nan=nan, null=null)


def meets(found: ValueRange, wanted: RangeSet, at: Positions | None = None) -> Flags:
    """Where an entry may hold a value of the set; an unknown bound is as far out as it can be (S1).

    With ``at``, only for the entries at these positions.
    """
    flags = _or(wanted.null and flags_at(found.may_hold_null, at), wanted.nan and flags_at(found.may_hold_nan, at))
    number = flags_at(found.may_hold_number, at)
    if not len(wanted) or number is False:
        return flags
    # The first range that does not end before the entry begins has to begin before the entry ends.
    least, greatest = _at(wanted.low, 0), _at(wanted.high, -1)
    ends = found.high.known_entries(at, greatest)
    if len(wanted) == 1 and isinstance(ends, np.ndarray):
        within = (ends >= least) & (found.low.known_entries(at, least) <= greatest)
    else:
        first = search(wanted.high, found.low.known_entries(at, least))
        within = at_most(take(wanted.low, np.minimum(first, len(wanted) - 1)), ends)
        within &= first < len(wanted)
    return _or(flags, within if number is True else number & within)


def holds_numbers(wanted: RangeSet, found: ValueRange) -> bool:
    """Whether the set is one range that holds every number which any entry may hold: then it rules out no entry.

    >>> from secateur.plan.types import parse_type
    >>> from secateur.evaluate.value_range import Bound
    >>> low, high = (Bound(np.array(ends), unknown=False) for ends in ([1, 40], [7, 60]))
    >>> found = ValueRange(parse_type("int"), low, high, True, False, True, True)
    >>> [holds_numbers(range_set(found.type, pairs), found) for pairs in ([(1, 60)], [(2, 60)], [(1, 9), (30, 60)])]
    [True, False, False]
    """
    if len(wanted) != 1 or found.may_hold_number is not True:
        return False
    low, high = found.low.extremes, found.high.extremes
    return low is not None and high is not None and bool(wanted.low[0] <= low[0] and high[1] <= wanted.high[0])


def union(sets: Sequence[RangeSet]) -> RangeSet:
    """What is in one of them.

    >>> from secateur.plan.types import parse_type
    >>> a, b = (range_set(parse_type("double"), pairs) for pairs in ([(1.0, 2.0)], [(1.5, 3.0), (7.0, 7.0)]))
    >>> union([a, b]).pairs()
    [(1.0, 3.0), (7.0, 7.0)]
    """
    first = sets[0]
    low, high = _joined([s.low for s in sets]), _joined([s.high for s in sets])
    return merged(first.type, low, high, nan=any(s.nan for s in sets), null=any(s.null for s in sets))


def intersection(one: RangeSet, other: RangeSet) -> RangeSet:
    """What is in both of them.

    >>> from secateur.plan.types import parse_type
    >>> a, b = (range_set(parse_type("int"), pairs) for pairs in ([(1, 5), (8, 20)], [(4, 9), (12, 13), (20, 30)]))
    >>> intersection(a, b).pairs()
    [(4, 5), (8, 9), (12, 13), (20, 20)]
    """
    flags = {"nan": one.nan and other.nan, "null": one.null and other.null}
    if not len(one) or not len(other):
        return RangeSet(one.type, one.low[:0], one.high[:0], **flags)
    # Each range of the one meets those of the other from the first that ends in it or later to the last that begins.
    start = search(other.high, one.low)
    stop = _search_right(other.low, one.high)
    many = np.maximum(stop - start, 0)
    ours = np.repeat(np.arange(len(one)), many)
    theirs = np.arange(len(ours)) - np.repeat(np.cumsum(many) - many, many) + np.repeat(start, many)
    low = _extreme(take(one.low, ours), take(other.low, theirs), greatest=True)
    high = _extreme(take(one.high, ours), take(other.high, theirs), greatest=False)
    return RangeSet(one.type, low, high, **flags)


def compact(values: RangeSet, most: int) -> RangeSet:
    """At most so many ranges, by closing the smallest gaps between them.

    >>> from secateur.plan.types import parse_type
    >>> compact(range_set(parse_type("int"), [(1, 2), (5, 6), (100, 101), (103, 110)]), 2).pairs()
    [(1, 6), (100, 110)]
    """
    if len(values) <= most:
        return values
    open_ = largest(gap_widths(_arrow(values.high)[:-1], _arrow(values.low)[1:]), most)
    firsts, lasts = np.concatenate([[0], open_ + 1]), np.concatenate([open_, [len(values) - 1]])
    return replace(values, low=take(values.low, firsts), high=take(values.high, lasts))


def merged(type_: DataType, low: Ends, high: Ends, *, nan: bool = False, null: bool = False) -> RangeSet:
    """Sorted, with ranges that overlap, or are whole numbers next to each other, made one."""
    if not len(low):
        return RangeSet(type_, low, high, nan, null)
    if isinstance(low, np.ndarray):
        if (low[1:] < low[:-1]).any():  # files are often in order
            order = np.argsort(low, kind="stable")
            low, high = low[order], high[order]
        high = np.maximum.accumulate(high)
        # Not high + 1, which may be too large for its type.
        apart = low[1:] - 1 > high[:-1] if low.dtype == np.int64 else low[1:] > high[:-1]
        # Where low - 1 overflowed, it is the least number and does not follow any.
        apart &= low[1:] > high[:-1]
    else:
        order = pc.sort_indices(low).to_numpy()
        low, high = take(low, order), take(high, order)
        # Where the greatest end so far is: ranks stand for values that numpy cannot compare.
        ranks = pc.rank(pa.concat_arrays([low, high]), tiebreaker="dense").to_numpy().astype(np.int64)
        lows, highs = ranks[: len(low)], ranks[len(low) :]
        furthest = np.maximum.accumulate(highs)
        apart = lows[1:] > furthest[:-1]
        reached = np.maximum.accumulate(np.where(highs == furthest, np.arange(len(highs)), 0))
        high = take(high, reached)
    firsts = np.concatenate([[True], apart]).nonzero()[0]
    lasts = np.concatenate([firsts[1:] - 1, [len(low) - 1]])
    return RangeSet(type_, take(low, firsts), take(high, lasts), nan, null)


def _search_right(values: Ends, needles: Ends) -> npt.NDArray[np.int64]:
    """For each needle the position of the first value above it; the values are distinct."""
    if isinstance(values, np.ndarray):
        return np.searchsorted(values, needles, side="right")
    at = search(values, needles)
    reached = np.minimum(at, len(values) - 1)
    return at + ((at < len(values)) & at_most(take(values, reached), needles))


def _extreme(one: Ends, other: Ends, *, greatest: bool) -> Ends:
    if isinstance(one, np.ndarray):
        return np.maximum(one, other) if greatest else np.minimum(one, other)
    ours = at_most(other, one) if greatest else at_most(one, other)
    # By position and not by if_else, which garbles slices of strings before Arrow 24 (apache/arrow#49410).
    at = np.where(ours, np.arange(len(one)), np.arange(len(one)) + len(one))
    return take(pa.concat_arrays([one, other]), at)


def _ends(values: Sequence[Any], type_: DataType) -> Ends:
    domain = type_.domain
    array = pa.array(values, domain)
    return array.to_numpy(zero_copy_only=False) if domain in (pa.int64(), pa.float64()) else array


def _joined(ends: Sequence[Ends]) -> Ends:
    if isinstance(ends[0], np.ndarray):
        return np.concatenate([np.asarray(each) for each in ends])
    return pa.concat_arrays(ends)


def _arrow(ends: Ends) -> pa.Array:
    return pa.array(ends) if isinstance(ends, np.ndarray) else ends


def _at(ends: Ends, position: int) -> Any:
    return ends[position] if isinstance(ends, np.ndarray) else ends[position].as_py()


def _any(flags: Flags, at: npt.NDArray[np.int64]) -> bool:
    return (flags and len(at) > 0) if isinstance(flags, bool) else bool(flags[at].any())


def _or(one: Flags, other: Flags) -> Flags:
    if one is True or other is True:
        return True
    return other if one is False else one if other is False else one | other
