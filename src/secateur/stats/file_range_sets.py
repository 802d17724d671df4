"""The range-sets of one column in many files, columnar: where its values lie in each file, as a few ranges.

Conventions: the ranges of an entry are sorted and disjoint, and every value that is neither NULL nor NaN lies in one of
them. An entry that is not ``known`` has none listed and may hold anything (rule S1); one that is known and has none
holds no such value.

Of small tables every value is kept as well, in the order of the rows: see :mod:`secateur.evaluate.known_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SMALL = 100_000
"""Of tables with at most so many rows every value is kept."""


@dataclass(frozen=True, slots=True, eq=False)
class FileRangeSets:
    """The ranges of entry ``i`` are those from ``offsets[i]`` to ``offsets[i + 1]``, in the domain of the type.

    >>> lows, highs = pa.array([[1, 9], None, []]), pa.array([[3, 9], None, []])
    >>> ranges = FileRangeSets.of_lists(lows, highs, pa.array([False, None, True]), pa.array([False] * 3))
    >>> ranges.offsets.tolist(), ranges.lows.to_pylist(), ranges.known.tolist(), ranges.null.tolist()
    ([0, 2, 2, 2], [1, 9], [True, False, True], [False, True, True])
    """

    offsets: Ints
    lows: pa.Array
    highs: pa.Array
    known: Mask
    null: Mask
    """Whether the entry may hold a NULL."""
    nan: Mask
    """Whether the entry may hold a NaN."""
    values: pa.ListArray | None = None
    """The value of each row, NULL and NaN among them, null where they are not known; None if they are known nowhere."""

    @staticmethod
    def of_lists(
        lows: pa.Array, highs: pa.Array, null: pa.Array, nan: pa.Array, values: pa.ListArray | None = None
    ) -> FileRangeSets:
        """From a list of ends and two flags for each entry; what contradicts the conventions is not known."""
        either = pc.or_(lows.is_null(), highs.is_null())
        wrong = pc.or_kleene(either, pc.not_equal(pc.list_value_length(lows), pc.list_value_length(highs)))
        lows, highs, known = _without(wrong.fill_null(True).to_numpy(zero_copy_only=False), lows, highs)
        owner = np.repeat(np.arange(len(lows)), _lengths(lows))
        disorder = _disorder(pc.list_flatten(lows), pc.list_flatten(highs), owner)
        if len(disorder):
            wrong_too = ~known
            wrong_too[disorder] = True
            lows, highs, known = _without(wrong_too, lows, highs)
        return FileRangeSets(
            np.append(0, np.cumsum(_lengths(lows))),
            pc.list_flatten(lows),
            pc.list_flatten(highs),
            known,
            null.fill_null(True).to_numpy(zero_copy_only=False) | ~known,
            nan.fill_null(True).to_numpy(zero_copy_only=False) | ~known,
            values,
        )

    @property
    def counts(self) -> Ints:
        """How many ranges each entry has."""
        return np.diff(self.offsets)

    def at(self, indices: Ints) -> tuple[Ints, Ints]:
        """The positions of the ranges of some entries, and for each the place of its entry among ``indices``."""
        counts = self.counts[indices]
        owner = np.repeat(np.arange(len(indices)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        return np.arange(len(owner)) - before + np.repeat(self.offsets[indices], counts), owner

    def take(self, indices: Ints) -> FileRangeSets:
        """The same for some of the entries."""
        where = pa.array(self.at(indices)[0])
        offsets = np.append(0, np.cumsum(self.counts[indices]))
        lows, highs = self.lows.take(where), self.highs.take(where)
        return FileRangeSets(offsets, lows, highs, self.known[indices], self.null[indices], self.nan[indices])


def _lengths(lists: pa.Array) -> Ints:
    lengths: Ints = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _without(wrong: Mask, lows: pa.Array, highs: pa.Array) -> tuple[pa.Array, pa.Array, Mask]:
    at = pa.array(np.arange(len(wrong)), mask=wrong)
    return lows.take(at), highs.take(at), ~wrong


def _disorder(lows: pa.Array, highs: pa.Array, owner: Ints) -> Ints:
    """The entries with a range that ends before it begins, begins before the one before it ends, or has no end.

    A comparison with NaN is false, so one with a NaN is among them.
    """
    if not len(lows):
        return np.zeros(0, np.int64)
    right = pc.less_equal(lows, highs).fill_null(False).to_numpy(zero_copy_only=False)
    after = pc.greater(lows[1:], highs[:-1]).fill_null(False).to_numpy(zero_copy_only=False)
    right[1:] &= after | (owner[1:] != owner[:-1])
    disorder: Ints = owner[~right]
    return disorder
