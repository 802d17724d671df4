"""Time zones: no local time and no instant lies outside the bounds, in zones wilder than any on earth."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from secateur.plan.time_zones import Zone

SECOND = 1_000_000
HOUR = 3600


def wild(rng: Random) -> Zone:
    """Up to eight changes, some only hours apart, some by a day."""
    changes, offsets = [], [rng.randint(-16 * HOUR, 16 * HOUR)]
    at = rng.randint(-(10**6), 10**6)
    for _ in range(rng.randint(0, 8)):
        changes.append(at)
        at += rng.choice((1, HOUR, 5 * HOUR, 30 * HOUR, 10**6))
        near = offsets[-1] + rng.choice((-HOUR, HOUR, 1800, -1800, 24 * HOUR, -24 * HOUR, 1, 0))
        offsets.append(max(-18 * HOUR, min(18 * HOUR, near)))
    end = changes[-1] + 10**6 if changes else at
    return Zone([*changes, end], offsets, [offsets[-1], offsets[-1]])


def offset_at(zone: Zone, instant: int) -> int:
    at = sum(change <= instant for change in zone.changes[:-1])
    return zone.offsets[at]


def resolved(zone: Zone, local: int) -> set[int]:
    """Every instant that Java may make of a local time: both of a repeated one, past or at the end of a gap."""
    found = {local - offset for offset in zone.offsets if offset_at(zone, local - offset) == offset}
    if found:
        return found
    for at, change in enumerate(zone.changes[:-1]):
        before, after = zone.offsets[at], zone.offsets[at + 1]
        if change + before <= local < change + after:
            return {local - before, change}
    raise AssertionError("every local time exists, or is in a gap")


@pytest.mark.parametrize("seed", range(10))
def test_the_bounds_hold_whatever_the_clocks_do(seed: int) -> None:
    rng = Random(seed)
    for _ in range(100):
        check(wild(rng), rng)


def check(zone: Zone, rng: Random) -> None:
    middle = rng.choice(zone.changes) + rng.randint(-40 * HOUR, 40 * HOUR)
    low = middle
    high = low + rng.choice((0, 1, HOUR, 3 * HOUR, 26 * HOUR, 10**6))
    bounds = np.array([low]) * SECOND, np.array([high]) * SECOND
    some = [low, high, *(rng.randint(low, high) for _ in range(60))]
    some += [near for change in zone.changes for near in (change - 1, change) if low <= near <= high]
    least, most = (int(bound[0]) // SECOND for bound in zone.local(*bounds))
    locals_ = [instant + offset_at(zone, instant) for instant in some]
    assert least <= min(locals_)
    assert max(locals_) <= most
    least, most = (int(bound[0]) // SECOND for bound in zone.instants(*bounds))
    edges = [change + offset for change in zone.changes for offset in zone.offsets]
    some += [near for edge in edges for near in (edge - 1, edge) if low <= near <= high]
    instants = [instant for local in some for instant in resolved(zone, local)]
    assert least <= min(instants)
    assert max(instants) <= most


def test_away_from_changes_nothing_is_lost() -> None:
    berlin = Zone([1_700_000_000, 4_102_444_800], [7200, 3600], [3600, 7200])
    moments = np.array([1_600_000_000, 1_800_000_000]) * SECOND
    low, high = berlin.local(moments, moments)
    assert (low == high).all()
    assert ((low - moments) // SECOND).tolist() == [7200, 3600]
    low, high = berlin.instants(moments, moments)
    assert ((moments - low) // SECOND).tolist() == ((moments - high) // SECOND).tolist() == [7200, 3600]


def test_after_the_table_ends_either_offset_is_possible() -> None:
    berlin = Zone([1_700_000_000, 4_102_444_800], [7200, 3600], [3600, 7200])
    moment = np.array([5_000_000_000]) * SECOND
    low, high = berlin.local(moment, moment)
    assert ((low - moment) // SECOND).tolist() == [3600]
    assert ((high - moment) // SECOND).tolist() == [7200]
