"""A time zone as a table of offsets, and what it does to ranges of instants and of local times.

The table comes from the Java that runs the query, never from Python's own database, which may be of another release.
Instants and local times are microseconds since 1970-01-01, the latter as if it were UTC.

Local time is not monotone in time: when clocks go back, an hour repeats. Nor is the way back: Spark moves a local time
that clocks skipped to a later one, past others that were not skipped. So ranges are bounded as follows.

*Instants to local times.* From ``low`` on no local time is less than the least of ``low + offset`` and the first local
time of every later period; up to ``high`` none exceeds the greatest of ``high + offset`` and the last local time of
every earlier period. Both are looked up in two running extremes over the periods.

*Local times to instants.* Whatever Java makes of a local time, it subtracts the offset of a period that has begun by
then (``atZone`` takes the one before a gap, and either of two in a repeated hour), or it takes the moment of a change
(``atStartOfDay``). Near ``low`` and ``high``, which is as far as two offsets of the zone can differ and again as much,
the extreme offset of the periods there is taken. Farther off, no offset makes up for the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_SECOND = 1_000_000
_FIRST = -(2**62)
"""Before every instant that has a local time here."""


class Zone:
    """A time zone: ``offsets`` in seconds up to each of ``changes`` in turn, and the range of those after the last.

    >>> berlin = Zone([100, 3700, 10**9], [3600, 7200, 3600], [3600, 7200])  # an hour of summer time
    >>> low, high = berlin.local(np.array([99, 100, 3699, 3700]) * _SECOND, np.array([99, 100, 3699, 3700]) * _SECOND)
    >>> (low // _SECOND).tolist(), (high // _SECOND).tolist()
    ([3699, 7300, 7300, 7300], [3699, 7300, 10899, 10899])
    """

    def __init__(self, changes: Sequence[int], offsets: Sequence[int], rest: Sequence[int]) -> None:
        self.changes = changes
        self.offsets = offsets
        self.rest = rest

    @staticmethod
    def fixed(offset: int) -> Zone:
        """A zone that is always so many seconds ahead of UTC."""
        return Zone([0], [offset], [offset, offset])

    def local(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Bounds of the local times at the instants of each range."""
        starts, least, most = self._periods
        first, last = self._running
        at = np.searchsorted(starts, low, side="right") - 1
        below = np.minimum(low + least[at], first[at])
        at = np.searchsorted(starts, high, side="right") - 1
        return below, np.maximum(high + most[at], last[at])

    def instants(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Bounds of the instants that Spark makes of the local times of each range."""
        return low - self._near(low)[1], high - self._near(high)[0]

    @cached_property
    def _periods(self) -> tuple[Ints, Ints, Ints]:
        """The start of each period, and its least and greatest offset."""
        starts = np.array([_FIRST // _SECOND, *self.changes], np.int64) * _SECOND
        least = np.array([*self.offsets, min(self.rest)], np.int64) * _SECOND
        most = np.array([*self.offsets, max(self.rest)], np.int64) * _SECOND
        return starts, least, most

    @cached_property
    def _running(self) -> tuple[Ints, Ints]:
        """For each period the least local time of all later ones, and the greatest of all earlier ones."""
        starts, least, most = self._periods
        first = np.append((starts + least)[1:], -_FIRST)
        last = np.append(_FIRST, starts[1:] - 1 + most[:-1])
        return np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)

    def _near(self, local: Ints) -> tuple[Ints, Ints]:
        """The least and greatest offset of the periods around each local time."""
        starts, least, most = self._periods
        lowest, highest = least.min(), most.max()
        reach = highest - lowest
        i = np.searchsorted(starts, local - highest - reach, side="right") - 1
        j = np.searchsorted(starts, local - lowest + reach, side="right") - 1
        many = j > i + 1
        return (
            np.where(many, lowest, np.minimum(least[i], least[j])),
            np.where(many, highest, np.maximum(most[i], most[j])),
        )


UTC = Zone.fixed(0)
