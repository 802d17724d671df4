"""Decimals in int64 derive exactly what Arrow's decimals do, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from random import Random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.evaluate.rules import decimals, scaled
from secateur.evaluate.rules.intervals import Decimals, extreme, mask
from secateur.evaluate.value_range import Bound
from secateur.plan.types import DataType

thorough = settings(max_examples=300, suppress_health_check=list(HealthCheck))
randoms = st.integers(0, 2**64).map(Random)
EXACT = Context(prec=76)


def number(rng: Random, digits: int, scale: int) -> Decimal | None:
    size = rng.choice([0, 1, 5, 10 ** rng.randint(0, digits) - 1, rng.randrange(10 ** rng.randint(1, digits))])
    size = min(size, 10**digits - 1)
    return None if rng.random() < 0.1 else Decimal(rng.choice([-1, 1]) * size).scaleb(-scale, EXACT)


def interval(rng: Random, count: int) -> Decimals:
    """Mostly small numbers; some of 19 digits, at the edge of int64, and some far beyond."""
    digits = rng.choice([3, 9, 9, 18, 19, 38])
    scale = rng.randint(0, min(digits, 12))
    ends = []
    for _ in range(count):
        pair = [number(rng, digits, scale) for _ in range(2)]
        ends.append(pair if None in pair else sorted(pair))  # type: ignore[type-var]
    low, high = (pa.array([pair[i] for pair in ends], pa.decimal128(38, scale)) for i in range(2))
    if rng.random() < 0.3:
        low, high = low.slice(2), high.slice(2)
    else:
        low, high = low.slice(0, count - 2), high.slice(0, count - 2)
    return (low, low) if rng.random() < 0.2 else (low, high)


def result_type(rng: Random) -> DataType:
    precision = rng.choice([2, 9, 15, 18, 19, 25, 38])
    return DataType("decimal", precision, rng.randint(0, min(precision, 14)))


def told(done: decimals.Checked | None) -> object:
    if done is None:
        return None
    (low, high), fails = done
    return low.type, low.to_pylist(), high.to_pylist(), mask(fails, len(low)).tolist()


@thorough
@given(randoms)
def test_both_ways_derive_the_same(rng: Random) -> None:
    count = rng.choice([3, 8])
    a, b, type_ = interval(rng, count), interval(rng, count), result_type(rng)
    whole = np.array([rng.choice([0, -7, 2**31, 10**17, 2**63 - 1, -(2**63)]) for _ in range(6)])
    asks: dict[str, Callable[[], decimals.Checked | None]] = {
        "add": lambda: decimals.add(a, b, type_),
        "subtract": lambda: decimals.subtract(a, b, type_),
        "multiply": lambda: decimals.multiply(a, b, type_),
        "rescaled": lambda: decimals.rescaled(a, type_),
        "negate": lambda: decimals.negate(a, type_),
        "of_integers": lambda: decimals.of_integers((whole, whole), type_),
    }
    for name, ask in asks.items():
        fast = told(ask())
        with patch.object(scaled, "of_arrow", lambda _: None), patch.object(scaled, "of_numbers", lambda *_: None):
            assert fast == told(ask()), f"{name} of {a} and {b} as {type_}"


@thorough
@given(randoms)
def test_both_ways_choose_the_same(rng: Random) -> None:
    count = 8
    known = interval(rng, count)
    other = pa.array([number(rng, 9, known[0].type.scale) for _ in range(len(known[0]))], known[0].type)
    size = len(other)
    masks = [np.array([rng.random() < 0.6 for _ in range(size)]) for _ in range(2)]
    parts = [(Bound(known[0], False), masks[0]), (Bound(other, False), masks[1])]
    type_ = DataType("decimal", 38, known[0].type.scale)
    for least in (True, False):
        fast = extreme(parts, type_, size, least=least)
        with patch.object(scaled, "of_arrow", lambda _: None):
            slow = extreme(parts, type_, size, least=least)
        assert fast.values.to_pylist() == slow.values.to_pylist()  # type: ignore[union-attr]
        assert mask(fast.unknown, size).tolist() == mask(slow.unknown, size).tolist()


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63) + 1, 2**63, -(2**63), 2**64 + 5, -(2**64) + 5, 10**37])
def test_what_does_not_fit_is_refused(value: int) -> None:
    found = scaled.of_arrow(pa.array([Decimal(1), None, Decimal(value)], pa.decimal128(38, 0)))
    assert (found is not None) == (abs(value) < 2**63)
    if found is not None:
        assert found.values.tolist() == [1, 0, value]


def single(value: int, scale: int = 0) -> scaled.Scaled:
    found = scaled.of_numbers(np.array([value]), False, scale)
    assert found is not None
    return found


def test_what_could_overflow_is_refused() -> None:
    edge = 3_037_000_499  # its square is the last below 2**63
    assert single(edge).times(single(edge)) is not None
    assert single(edge + 1).times(single(edge + 1)) is None
    assert single(2**62).plus(single(2**62 - 1)) is not None
    assert single(2**62).plus(single(2**62)) is None
    assert single(1).plus(single(1, 1)) is None
    assert single(9_223_372_036_854_775_807).to_scale(1) is None
    assert single(922_337_203_685_477_580).to_scale(1) is not None
    assert single(2**63 - 3, 2).to_scale(1) is None
    assert single(1).to_scale(19) is None
