"""Sets of ranges against sets of values: whatever is done to them, no value gets lost."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.evaluate.range_sets import RangeSet, compact, intersection, meets, range_set, union, values_in
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.types import parse_type
from tests.evaluate.range_set_relations import covers

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bigint": st.integers(-20, 20) | st.sampled_from([-(2**63), 2**63 - 1, 2**63 - 2]),
    "double": st.sampled_from([-1e308, -2.5, -0.0, 0.0, 0.5, 1.0, 1e-300, 7.25, 1e308, float("inf"), float("-inf")]),
    "decimal(9,2)": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "string": st.binary(max_size=3),
}
TYPES = sorted(VALUES)


def pairs_of(type_: str) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(st.tuples(VALUES[type_], VALUES[type_]).map(lambda p: (min(p), max(p))), max_size=8)


def holds(values: RangeSet, value: Any) -> bool:
    return any(low <= value <= high for low, high in values.pairs())


def within(pairs: list[tuple[Any, Any]], value: Any) -> bool:
    return any(low <= value <= high for low, high in pairs)


def facts(type_: str, pairs: list[tuple[Any, Any]], *, unknown: Any = False) -> ValueRange:
    domain = parse_type(type_).domain
    ends = []
    for side in (0, 1):
        array = pa.array([pair[side] for pair in pairs], domain)
        values = array.to_numpy(zero_copy_only=False) if domain in (pa.int64(), pa.float64()) else array
        ends.append(Bound(values, unknown))
    return ValueRange(parse_type(type_), ends[0], ends[1], False, False, True, True)


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_a_set_holds_what_its_ranges_hold_and_is_sorted(type_: str, data: st.DataObject) -> None:
    pairs, value = data.draw(pairs_of(type_)), data.draw(VALUES[type_])
    made = range_set(parse_type(type_), pairs)
    assert holds(made, value) == within(pairs, value)
    ends = [end for pair in made.pairs() for end in pair]
    assert all(a <= b for a, b in pairwise(ends))
    assert all(a[1] < b[0] for a, b in pairwise(made.pairs()))


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_union_and_intersection(type_: str, data: st.DataObject) -> None:
    one, other = data.draw(pairs_of(type_)), data.draw(pairs_of(type_))
    value = data.draw(VALUES[type_])
    a, b = (range_set(parse_type(type_), pairs) for pairs in (one, other))
    assert holds(union([a, b]), value) == (within(one, value) or within(other, value))
    both = intersection(a, b)
    assert holds(both, value) == (within(one, value) and within(other, value))
    assert covers(a, both)
    assert covers(union([a, b]), b)
    assert covers(a, b) or any(not holds(a, low) or not holds(a, high) or len(a) > 1 for low, high in b.pairs())


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data(), most=st.integers(1, 5))
def test_fewer_ranges_hold_at_least_as_much(type_: str, data: st.DataObject, most: int) -> None:
    made = range_set(parse_type(type_), data.draw(pairs_of(type_)))
    fewer = compact(made, most)
    assert len(fewer) == min(most, len(made))
    assert covers(fewer, made)


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_entries_meet_a_set_if_they_share_a_value(type_: str, data: st.DataObject) -> None:
    files, wanted = data.draw(pairs_of(type_)), data.draw(pairs_of(type_))
    made = range_set(parse_type(type_), wanted)
    found = np.broadcast_to(meets(facts(type_, files), made), len(files)).tolist()
    assert found == [any(low <= b and a <= high for a, b in wanted) for low, high in files]
    anything = meets(facts(type_, files, unknown=np.ones(len(files), np.bool_)), made)
    assert np.broadcast_to(anything, len(files)).tolist() == [bool(wanted)] * len(files)


@pytest.mark.parametrize("type_", TYPES)
@given(data=st.data())
def test_the_values_of_kept_entries(type_: str, data: st.DataObject) -> None:
    files = data.draw(pairs_of(type_))
    kept = np.array([data.draw(st.booleans()) for _ in files], np.bool_)
    value = data.draw(VALUES[type_])
    made = values_in(facts(type_, files), np.flatnonzero(kept))
    assert made is not None
    assert holds(made, value) == within([pair for pair, keep in zip(files, kept, strict=True) if keep], value)
    unknown = np.zeros(len(files), np.bool_)
    unknown[: len(files) // 2] = True
    made = values_in(facts(type_, files, unknown=unknown), np.flatnonzero(kept))
    assert (made is None) == bool((kept & unknown).any())


def test_the_widest_gaps_stay_open() -> None:
    made = range_set(parse_type("string"), [(b"aa", b"ab"), (b"ac", b"ad"), (b"m", b"n"), (b"z", b"zz")])
    assert compact(made, 3).pairs() == [(b"aa", b"ad"), (b"m", b"n"), (b"z", b"zz")]
    cents = [(Decimal("1.00"), Decimal("1.10")), (Decimal("1.20"), Decimal("1.30")), (Decimal("9.00"), Decimal("9.99"))]
    assert compact(range_set(parse_type("decimal(9,2)"), cents), 2).pairs() == [(cents[0][0], cents[1][1]), cents[2]]


def test_flags_of_null_and_nan() -> None:
    double = parse_type("double")
    nan, null = range_set(double, [], nan=True), range_set(double, [], null=True)
    assert not nan.is_empty
    assert union([nan, null]).nan
    assert intersection(nan, null).is_empty
    assert not covers(null, nan)
    assert covers(union([nan, null]), nan)
