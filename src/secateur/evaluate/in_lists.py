"""IN lists against bounds: is there a listed value within [low, high], is every value there a listed one?

Both are a sorted search per entry, never a loop over entries nor one over listed values, so a list of thousands costs
little more than a short one. The search runs only for entries that the range of the list leaves open, and mostly in a
table: whole numbers and the beginnings of strings have a *key*, an unsigned number that grows with the value, and the
table says for each run of keys how many listed values come before it. Only where listed values share the run is there
anything left to search for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.value_range import Bound, Numbers
from secateur.evaluate.verdict import Flags, both, either, neither
from secateur.plan.columns import Mask
from secateur.plan.types import DataType
from secateur.stats.arrays import to_mask

Positions = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]
SortedScan: TypeAlias = npt.NDArray[Any] | pa.Array

_RUNS = 20
"""A table has at most two to this power runs of keys."""
_SHORT, _LITTLE = 16, 1 << 14
"""Up to so many values, and pairs of a value and an entry, comparing one value after the other is quicker."""


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of listed values, in order, and how many come before each run of 2**shift keys from the first on."""

    keys: Keys
    shift: np.uint64
    before: npt.NDArray[np.int32]

    def search(self, needles: Keys) -> Positions:
        """For each needle, none outside of the keys, the position of the first key that is not below it."""
        run = ((needles - self.keys[0]) >> self.shift).astype(np.int64)
        first: Positions = self.before[run].astype(np.int64)
        shared = np.flatnonzero(first != self.before[run + 1])
        first[shared] = np.searchsorted(self.keys, needles[shared], side="left")
        return first


@dataclass(frozen=True, slots=True)
class InList:
    """Distinct values in order: numpy for int64 and float64, else Arrow (as in :class:`Bound`)."""

    values: SortedScan
    table: Table | None = None
    prefix: int = 0
    """How many bytes all strings of the list begin with alike: their keys are the eight that follow."""

    def __len__(self) -> int:
        return len(self.values)


def listed(values: Sequence[Any], type_: DataType) -> InList:
    """A list prepared for searching.

    >>> from secateur.plan.types import parse_type
    >>> listed([5, 3, 5], parse_type("int")).values.tolist()
    [3, 5]
    """
    domain = type_.domain
    if domain == pa.int64():
        numbers = np.unique(np.array(values, dtype=np.int64))
        return InList(numbers, _table(_number_keys(numbers)))
    if domain == pa.float64():
        return InList(np.unique(np.array(values, dtype=np.float64)))
    ordered = sorted(set(values))
    array = pa.array(ordered, type=domain)
    if domain != pa.binary() or len(ordered) < 2:
        return InList(array)
    prefix = common_prefix(ordered[0], ordered[-1])
    return InList(array, _table(string_keys(array, np.arange(len(array)), prefix)), prefix)


def some_within(listed: InList, low: Bound, high: Bound) -> Flags:
    """Where one of the values may lie within the bounds."""
    values = listed.values
    if not len(values):
        return False
    least, greatest = _at(values, 0), _at(values, -1)
    in_range = both(low.can("<=", greatest), high.can(">=", least))
    if len(values) == 1 or in_range is False:
        return in_range
    if len(values) <= _SHORT and len(values) * len(low.values) <= _LITTLE:
        return reduce(either, (both(low.can("<=", value), high.can(">=", value)) for value in plain(values)))
    # Where low is at most the least value (or unknown), that one is within.
    holds_least = low.can("<=", least)
    count = len(low.values)
    where = _indices(both(in_range, neither(holds_least, False)), count)
    mask = np.array(np.broadcast_to(both(in_range, holds_least), count))
    if len(where):
        mask[where] = _next_within(listed, low, high, where, greatest)
    return mask


def some_outside(listed: InList, low: Bound, high: Bound) -> Flags:
    """Where the bounds leave room for something that is not one of the values."""
    values = listed.values
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
    inside = _scatter(where, len(low.values), _covered(values, search(values, lows), lows, highs))
    return ~inside


def _next_within(listed: InList, low: Bound, high: Bound, where: Positions, greatest: Any) -> Mask:
    """For some entries, whose low is above the least value and at most the greatest: is the next value at most high?"""
    values, table = listed.values, listed.table
    if isinstance(values, np.ndarray):
        lows = low.known_entries(where, greatest)
        at = table.search(_number_keys(lows)) if table else np.searchsorted(values, lows, side="left")
        return at_most(values[at], high.known_entries(where, greatest))
    if table is None:
        lows, highs = low.known_entries(where, greatest), high.known_entries(where, greatest)
        return at_most(take(values, search(values, lows)), highs)
    keys = string_keys(low.values, where, listed.prefix)
    at = table.search(keys)
    tied = np.flatnonzero(table.keys[at] == keys)
    if len(tied):
        at[tied] = search(values, low.known_entries(where[tied], greatest))
    # A high bound above the greatest value, or an unknown one, holds whatever comes next; the others have a key.
    beyond = high.can(">", greatest)
    found = np.array(np.broadcast_to(beyond if isinstance(beyond, bool) else beyond[where], len(where)))
    keys, ours = string_keys(high.values, where, listed.prefix), table.keys[at]
    tied = np.flatnonzero(~found & (ours == keys))
    found |= ours < keys
    if len(tied):
        found[tied] = at_most(take(values, at[tied]), high.known_entries(where[tied], greatest))
    return found


def _table(keys: Keys) -> Table | None:
    if not len(keys):
        return None
    spread = keys - keys[0]
    runs = min(_RUNS, len(keys).bit_length() + 4)
    shift = np.uint64(max(0, int(spread[-1]).bit_length() - runs))
    counts = np.bincount((spread >> shift).astype(np.int64))
    return Table(keys, shift, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))


def _number_keys(numbers: Numbers) -> Keys:
    """Whole numbers, shifted to where the least of int64 is 0."""
    keys: Keys = np.ascontiguousarray(numbers).view(np.uint64) ^ np.uint64(2**63)
    return keys


def string_keys(strings: pa.Array, where: Positions, skip: int) -> Keys:
    """The eight bytes after the first ``skip`` of some strings, as a number; zeros where a string is shorter."""
    _, offsets_buffer, data_buffer = strings.buffers()
    if data_buffer is None or not data_buffer.size:
        return np.zeros(len(where), np.uint64)
    offsets = np.frombuffer(offsets_buffer, np.int32, count=len(strings) + 1, offset=4 * strings.offset)
    data = np.frombuffer(data_buffer, np.uint8)
    if len(data) < 8:
        data = np.concatenate([data, np.zeros(8, np.uint8)])
    windows: npt.NDArray[Any] = np.ndarray((len(data) - 7,), ">u8", data, strides=(1,))
    start = offsets[where].astype(np.int64) + skip
    size = np.clip(offsets[where + 1] - start, 0, 8)
    # The last bytes have no full window of their own.
    readable = np.minimum(start, len(data) - 8)
    keys = windows[readable].astype(np.uint64)
    late = (readable < start).nonzero()[0]
    keys[late] <<= (8 * np.minimum(start[late] - readable[late], 7)).astype(np.uint64)
    short = (size < 8).nonzero()[0]
    # Shifted in two steps, because one of 64 bits is undefined.
    unused = (8 * (8 - size[short])).astype(np.uint64) >> np.uint64(1)
    keys[short] = keys[short] >> unused >> unused << unused << unused
    return keys


def _covered(values: SortedScan, first: Positions, lows: Numbers | pa.Array, highs: Numbers | pa.Array) -> Mask:
    """Where the values hold all of [low, high]; ``first`` is the position of the first value that is not below low."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        listed = np.searchsorted(values, highs, side="right") - first
        # Unsigned, because the width of a range of int64 may not fit in int64.
        width = np.asarray(highs).view(np.uint64) - np.asarray(lows).view(np.uint64)
        covered: Mask = (listed > 0) & ((listed - 1).view(np.uint64) == width)
        return covered
    constant = at_most(highs, lows)
    return constant & at_most(take(values, first), lows)


def search(values: SortedScan, needles: Numbers | pa.Array) -> Positions:
    """For each needle the position of the first value that is not below it."""
    if isinstance(values, np.ndarray):
        return values.searchsorted(needles)
    start, end = np.zeros(len(needles), np.int64), np.full(len(needles), len(values))
    if pa.types.is_binary(values.type) and len(values):
        start, end = _narrowed(values, needles)
    tied = (start < end).nonzero()[0]
    if not len(tied):
        return start
    # A binary search for all needles at once: older versions of Arrow have none.
    needles, first, last = take(needles, tied), start[tied], end[tied]
    for _ in range(int((last - first).max()).bit_length()):
        middle = (first + last) >> 1
        open_ = first < last
        below = to_mask(pc.less(take(values, np.minimum(middle, len(values) - 1)), needles))
        first = np.where(open_ & below, middle + 1, first)
        last = np.where(open_ & ~below, middle, last)
    start[tied] = first
    return start


def _narrowed(values: pa.BinaryArray, needles: pa.BinaryArray) -> tuple[Positions, Positions]:
    """Between which positions each needle belongs, by the eight bytes after what all values begin with."""
    skip = common_prefix(values[0].as_py(), values[-1].as_py())
    keys = string_keys(values, np.arange(len(values)), skip)
    wanted = string_keys(needles, np.arange(len(needles)), skip)
    start, end = keys.searchsorted(wanted), keys.searchsorted(wanted, side="right")
    # Only what lies between the first value and the last begins as they do.
    below, above = to_mask(pc.less_equal(needles, values[0])), to_mask(pc.greater(needles, values[-1]))
    start[below], end[below] = 0, 0
    start[above], end[above] = len(values), len(values)
    return start, end


def common_prefix(one: bytes, other: bytes) -> int:
    """With how many equal bytes two texts begin."""
    shorter = min(len(one), len(other))
    return next((i for i in range(shorter) if one[i] != other[i]), shorter)


def at_most(left: SortedScan, right: SortedScan) -> Mask:
    if isinstance(left, np.ndarray):
        mask: Mask = left <= right
        return mask
    return to_mask(pc.less_equal(left, right))


def _at(values: SortedScan, position: int) -> Any:
    return values[position] if isinstance(values, np.ndarray) else values[position].as_py()


def plain(values: SortedScan) -> list[Any]:
    """The same as Python values."""
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
    return found


def take(values: SortedScan, positions: Positions) -> SortedScan:
    return values[positions] if isinstance(values, np.ndarray) else values.take(pa.array(positions))


def _indices(flags: Flags, count: int) -> Positions:
    if isinstance(flags, bool):
        return np.arange(count if flags else 0)
    return np.flatnonzero(flags)


def _scatter(where: Positions, count: int, flags: Mask) -> Mask:
    mask = np.zeros(count, dtype=np.bool_)
    mask[where] = flags
    return mask
