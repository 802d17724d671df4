"""What tests ask of range-sets, and the program does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from secateur.evaluate.in_lists import at_most, search, take
from secateur.evaluate.range_sets import RangeSet, compact, range_set, union


def grown(values: RangeSet, more: Sequence[Any], most: int) -> RangeSet:
    """A set that holds more values, each taken in where that widens the whole least.

    A value that is in no range becomes one of its own; if that is one too many, the smallest gap is closed, be it next
    to the value or elsewhere. Values that are gone stay: a set may hold more than there is.
    """
    for value in more:
        values = compact(union([values, range_set(values.type, [(value, value)])]), most)
    return values


def covers(wanted: RangeSet, other: RangeSet) -> bool:
    """Whether everything in the other one is in ``wanted``."""
    if (other.nan and not wanted.nan) or (other.null and not wanted.null):
        return False
    if not len(other):
        return True
    if not len(wanted):
        return False
    first = search(wanted.high, other.high)
    inside = first < len(wanted)
    return bool(np.all(inside & at_most(take(wanted.low, np.minimum(first, len(wanted) - 1)), other.low)))
