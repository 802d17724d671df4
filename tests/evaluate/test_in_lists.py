"""IN lists against bounds, compared with a search by hand."""

from __future__ import annotations

from bisect import bisect_left
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.evaluate import in_lists
from secateur.evaluate.in_lists import listed, search, some_outside, some_within
from secateur.evaluate.value_range import Bound
from secateur.plan.types import parse_type

thorough = settings(max_examples=400, suppress_health_check=list(HealthCheck))
randoms = st.integers(0, 2**64).map(Random)


def bounds(rng: Random, values: list[Any], domain: pa.DataType) -> tuple[list[tuple[Any, Any]], Bound, Bound]:
    pairs = [sorted(rng.choices(values, k=2)) for _ in range(30)]
    unknown = np.array([[rng.random() < 0.1 for _ in pairs] for _ in range(2)])
    ends = []
    for at in range(2):
        column = [pair[at] for pair in pairs]
        if domain == pa.binary():
            # A slice of something longer, with nulls where unknown.
            array = pa.array([None if u else v for u, v in zip(unknown[at], column, strict=True)], domain)
            array = pa.concat_arrays([pa.array([b"before"], domain), array]).slice(1)
            ends.append(Bound(array, unknown[at]))
        else:
            ends.append(Bound(np.array(column, np.int64), unknown[at]))
    known = [(None if a else x, None if b else y) for (x, y), a, b in zip(pairs, *unknown, strict=True)]
    return known, ends[0], ends[1]


def check(values: list[Any], pairs: list[tuple[Any, Any]], low: Bound, high: Bound, type_: str) -> None:
    prepared = listed(values, parse_type(type_))
    within = np.broadcast_to(some_within(prepared, low, high), len(pairs))
    with patch.object(in_lists, "_LITTLE", 0):
        assert (np.broadcast_to(some_within(prepared, low, high), len(pairs)) == within).all()
    outside = np.broadcast_to(some_outside(prepared, low, high), len(pairs))
    for at, (least, most) in enumerate(pairs):
        found = [v for v in values if (least is None or least <= v) and (most is None or v <= most)]
        assert within[at] == bool(found), f"{(least, most)} in {sorted(values)}"
        if not outside[at]:
            assert least is not None
            assert most is not None
            assert set(found) >= ({least, most} if type_ == "string" else set(range(least, most + 1)))


@thorough
@given(randoms)
def test_whole_numbers(rng: Random) -> None:
    spans = [range(-5, 60), range(-(10**6), 10**6, 997), [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1]]
    pool = [v for span in rng.sample(spans, rng.choice([1, 2])) for v in rng.choices(list(span), k=40)]
    values = rng.choices(pool, k=rng.choice([1, 2, 7, 60]))
    nearby = [v for v in pool if -(10**7) < v < 10**7] or [0]
    pairs, low, high = bounds(rng, pool if rng.random() < 0.3 else nearby, pa.int64())
    wide = any(x is not None and y is not None and y - x > 10**6 for x, y in pairs)
    if not wide:
        check(values, pairs, low, high, "bigint")
        return
    within = np.broadcast_to(some_within(listed(values, parse_type("bigint")), low, high), len(pairs))
    for at, (least, most) in enumerate(pairs):
        expected = any((least is None or least <= v) and (most is None or v <= most) for v in values)
        assert within[at] == expected


@thorough
@given(randoms)
def test_strings(rng: Random) -> None:
    prefix = rng.choice([b"", b"a", b"name-", "é-".encode(), b"12345678901"])

    def text() -> bytes:
        letters = rng.choice([b"\x00ab\xff", b"0123456789", "aé😀".encode(), b"a"])
        rest = bytes(rng.choices(letters, k=rng.choice([0, 1, 2, 7, 8, 9, 12])))
        return (prefix if rng.random() < 0.9 else b"") + rest

    pool = [text() for _ in range(40)]
    values = rng.choices(pool, k=rng.choice([1, 2, 7, 60]))
    pairs, low, high = bounds(rng, pool + [text() for _ in range(10)], pa.binary())
    check(values, pairs, low, high, "string")
    ordered, needles = sorted(set(values)), [*pool, b"", b"\x00", b"\xff" * 9]
    found = search(pa.array(ordered, pa.binary()), pa.array(needles, pa.binary()))
    assert found.tolist() == [bisect_left(ordered, needle) for needle in needles]
