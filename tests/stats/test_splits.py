"""Range-sets against brute force, and the examples of the paper on data-induced predicates."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secateur.stats.splits import RangeSet, common, compacted, empty, grown, joined, meets, tightest, union

INT64 = st.integers(-(2**63), 2**63 - 1)
FEW = st.integers(-30, 30)
DECIMAL = pa.decimal128(38, 2)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), FEW | INT64),
    "float64": (pa.float64(), st.floats(allow_nan=False) | FEW.map(float)),
    "decimal": (DECIMAL, st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))),
    "binary": (pa.binary(), st.binary(max_size=12) | st.text(max_size=5).map(str.encode)),
}
PAIRS = st.lists(st.tuples(FEW, FEW).map(sorted), max_size=8)


def pairs(ranges: RangeSet) -> list[tuple[Any, Any]]:
    return list(zip(ranges.lows.to_pylist(), ranges.highs.to_pylist(), strict=True))


def of(*ends: tuple[Any, Any], kind: pa.DataType = None) -> RangeSet:
    kind = kind or pa.int64()
    return union(pa.array([a for a, _ in ends], kind), pa.array([b for _, b in ends], kind))


def width(ranges: list[tuple[Any, Any]]) -> Any:
    return sum(high - low for low, high in ranges)


def narrowest(values: list[int], most: int) -> Any:
    """The least total width of at most so many ranges, by trying every way to split."""
    ordered = sorted(set(values))
    splits = range(1, len(ordered))
    return min(
        width([(part[0], part[-1]) for part in _parts(ordered, cut)])
        for count in range(min(most, len(ordered)))
        for cut in combinations(splits, count)
    )


def _parts(ordered: list[int], cut: tuple[int, ...]) -> list[list[int]]:
    return [ordered[a:b] for a, b in zip((0, *cut), (*cut, len(ordered)), strict=True)]


@given(st.lists(st.integers(-50, 50).map(lambda n: 2 * n), min_size=1, max_size=9), st.integers(1, 5))
def test_lemma_1_the_largest_gaps_give_the_least_width(values: list[int], most: int) -> None:
    found = pairs(tightest(pa.array(values), most))
    assert len(found) <= most
    assert width(found) == narrowest(values, most)


def test_lemma_2_range_sets_of_parts_do_not_give_the_best_one_of_the_whole() -> None:
    first, second = [0, 11, 12, 14, 22], [0, 4, 5, 10, 24, 25]
    one, two = tightest(pa.array(first), 2), tightest(pa.array(second), 2)
    assert pairs(one) == [(0, 0), (11, 22)]
    assert pairs(two) == [(0, 10), (24, 25)]
    assert pairs(tightest(pa.array(first + second), 2)) == [(0, 14), (22, 25)]
    merged = pairs(compacted(joined(one, two), 2))
    assert merged == [(0, 22), (24, 25)]  # sound, but wider
    assert width(merged) > width([(0, 14), (22, 25)])


def test_figure_4_two_ranges_a_partition_give_narrower_predicates() -> None:
    date_sk = [
        of((3000, 3500), (4000, 5000)),
        of((1000, 2000), (5000, 6000)),
        of((7000, 10000), (11000, 12000)),
    ]
    # year <= 1995 is satisfied by partitions 1 and 2
    assert pairs(joined(date_sk[0], date_sk[1])) == [(1000, 2000), (3000, 3500), (4000, 6000)]
    assert pairs(date_sk[2]) == [(7000, 10000), (11000, 12000)]
    zones = [of((3000, 5000)), of((1000, 6000))]
    assert pairs(joined(*zones)) == [(1000, 6000)]


def test_table_4_growing_by_updates() -> None:
    begin = of((3, 5), (10, 20), (23, 27))
    after = grown(begin, pa.array([6]), 3)
    assert pairs(after) == [(3, 6), (10, 20), (23, 27)]
    after = grown(after, pa.array([13, 15]), 3)  # the deletion of 20 is ignored
    assert pairs(after) == [(3, 6), (10, 20), (23, 27)]
    assert pairs(grown(after, pa.array([52]), 3)) == [(3, 6), (10, 27), (52, 52)]


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=60)
@given(data=st.data())
def test_every_value_is_in_a_range_and_ranges_are_few_sorted_and_disjoint(kind: str, data: st.DataObject) -> None:
    type_, strategy = VALUES[kind]
    values, most = data.draw(st.lists(strategy, max_size=30)), data.draw(st.integers(1, 6))
    ranges = tightest(pa.array(values, type_), most)
    found = pairs(ranges)
    assert len(found) <= most
    assert all(low <= high for low, high in found)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert all(any(low <= v <= high for low, high in found) for v in values)
    assert {end for pair in found for end in pair} <= set(values)
    array = pa.array(values, type_)
    assert meets(ranges, array, array).all()
    more = data.draw(st.lists(strategy, max_size=5))
    after = pairs(grown(ranges, pa.array(more, type_), most))
    assert len(after) <= most
    assert all(any(low <= v <= high for low, high in after) for v in values + more)


@given(PAIRS, PAIRS, st.integers(1, 4))
def test_the_algebra_is_that_of_sets(a: list[list[int]], b: list[list[int]], most: int) -> None:
    one, two = of(*((x, y) for x, y in a)), of(*((x, y) for x, y in b))
    first, second = _members(a), _members(b)
    assert _members(pairs(one)) == first
    assert _members(pairs(joined(one, two))) == first | second
    assert _members(pairs(common(one, two))) == first & second
    assert _members(pairs(compacted(one, most))) >= first
    assert len(compacted(one, most)) <= most
    lows, highs = pa.array([x for x, _ in b], pa.int64()), pa.array([y for _, y in b], pa.int64())
    assert meets(one, lows, highs).tolist() == [bool(first & set(range(x, y + 1))) for x, y in b]


def _members(ranges: Any) -> set[int]:
    return {n for low, high in ranges for n in range(low, high + 1)}


def test_the_ends_of_int64_do_not_overflow() -> None:
    least, greatest = -(2**63), 2**63 - 1
    assert pairs(tightest(pa.array([least, greatest, 0, 1]), 2)) == [(least, least), (0, greatest)]
    assert pairs(of((least, least), (greatest, greatest), (least + 1, 5))) == [(least, 5), (greatest, greatest)]


def test_zeros_are_one_and_infinities_are_ends() -> None:
    inf = float("inf")
    assert pairs(tightest(pa.array([-0.0, 0.0, 1.0, inf, -inf]), 3)) == [(-inf, -inf), (0.0, 1.0), (inf, inf)]
    assert str(tightest(pa.array([-0.0]), 1)) == "{[0.0, 0.0]}"


def test_strings_are_split_by_what_follows_their_common_beginning() -> None:
    names = [b"https://a/1", b"https://a/2", b"https://z/1"]
    assert pairs(tightest(pa.array(names, pa.binary()), 2)) == [(names[0], names[1]), (names[2], names[2])]


def test_nothing_is_in_an_empty_set() -> None:
    nothing = empty(pa.int64())
    assert len(tightest(pa.array([], pa.int64()), 3)) == 0
    assert not meets(nothing, pa.array([1]), pa.array([9])).any()
    assert len(common(nothing, of((1, 2)))) == 0
    assert pairs(joined(nothing, of((1, 2)))) == [(1, 2)]
