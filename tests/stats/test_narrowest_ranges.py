"""Range-sets against brute force, and the examples of the paper on data-induced predicates."""

from __future__ import annotations

from decimal import Decimal
from itertools import combinations, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secateur.evaluate.range_sets import RangeSet, compact, intersection, range_set, union
from secateur.plan.types import parse_type
from secateur.stats.narrowest_ranges import narrowest_ranges
from tests.evaluate.range_set_relations import covers, grown

INT64 = st.integers(-(2**63), 2**63 - 1)
FEW = st.integers(-30, 30)
DECIMAL = pa.decimal128(38, 2)
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bigint": (pa.int64(), FEW | INT64),
    "double": (pa.float64(), st.floats(allow_nan=False) | FEW.map(float)),
    "decimal(38,2)": (DECIMAL, st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-2"))),
    "string": (pa.binary(), st.binary(max_size=12) | st.text(max_size=5).map(str.encode)),
}
PAIRS = st.lists(st.tuples(FEW, FEW).map(sorted), max_size=8)


def pairs(ends: tuple[pa.Array, pa.Array]) -> list[tuple[Any, Any]]:
    return list(zip(*(part.to_pylist() for part in ends), strict=True))


def of(*ends: tuple[Any, Any], kind: str = "bigint") -> RangeSet:
    return range_set(parse_type(kind), ends)


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
    found = pairs(narrowest_ranges(pa.array(values), most))
    assert len(found) <= most
    assert width(found) == narrowest(values, most)


def test_lemma_2_range_sets_of_parts_do_not_give_the_best_one_of_the_whole() -> None:
    first, second = [0, 11, 12, 14, 22], [0, 4, 5, 10, 24, 25]
    one, two = (of(*pairs(narrowest_ranges(pa.array(part), 2))) for part in (first, second))
    assert one.pairs() == [(0, 0), (11, 22)]
    assert two.pairs() == [(0, 10), (24, 25)]
    assert pairs(narrowest_ranges(pa.array(first + second), 2)) == [(0, 14), (22, 25)]
    merged = compact(union([one, two]), 2).pairs()
    assert merged == [(0, 22), (24, 25)]  # sound, but wider
    assert width(merged) > width([(0, 14), (22, 25)])


def test_figure_4_two_ranges_a_partition_give_narrower_predicates() -> None:
    date_sk = [
        of((3000, 3500), (4000, 5000)),
        of((1000, 2000), (5000, 6000)),
        of((7000, 10000), (11000, 12000)),
    ]
    # year <= 1995 is satisfied by partitions 1 and 2
    assert union(date_sk[:2]).pairs() == [(1000, 2000), (3000, 3500), (4000, 6000)]
    assert date_sk[2].pairs() == [(7000, 10000), (11000, 12000)]
    zones = [of((3000, 5000)), of((1000, 6000))]
    assert union(zones).pairs() == [(1000, 6000)]


def test_table_4_growing_by_updates() -> None:
    begin = of((3, 5), (10, 20), (23, 27))
    after = grown(begin, [6], 3)
    assert after.pairs() == [(3, 6), (10, 20), (23, 27)]
    after = grown(after, [13, 15], 3)  # the deletion of 20 is ignored
    assert after.pairs() == [(3, 6), (10, 20), (23, 27)]
    assert grown(after, [52], 3).pairs() == [(3, 6), (10, 27), (52, 52)]


@pytest.mark.parametrize("kind", VALUES)
@settings(max_examples=60)
@given(data=st.data())
def test_every_value_is_in_a_range_and_ranges_are_few_sorted_and_disjoint(kind: str, data: st.DataObject) -> None:
    type_, strategy = VALUES[kind]
    values, most = data.draw(st.lists(strategy, max_size=30)), data.draw(st.integers(1, 6))
    found = pairs(narrowest_ranges(pa.array(values, type_), most))
    assert len(found) <= most
    assert all(low <= high for low, high in found)
    assert all(a[1] < b[0] for a, b in pairwise(found))
    assert all(any(low <= v <= high for low, high in found) for v in values)
    assert {end for pair in found for end in pair} <= set(values)
    more = data.draw(st.lists(strategy, max_size=5))
    after = grown(of(*found, kind=kind), more, most)
    assert len(after) <= most
    assert all(any(low <= v <= high for low, high in after.pairs()) for v in values + more)
    assert covers(after, of(*found, kind=kind))


@given(PAIRS, PAIRS, st.integers(1, 4))
def test_the_algebra_is_that_of_sets(a: list[list[int]], b: list[list[int]], most: int) -> None:
    one, two = of(*((x, y) for x, y in a)), of(*((x, y) for x, y in b))
    first, second = _members(a), _members(b)
    assert _members(one.pairs()) == first
    assert _members(union([one, two]).pairs()) == first | second
    assert _members(intersection(one, two).pairs()) == first & second
    assert _members(compact(one, most).pairs()) >= first
    assert len(compact(one, most)) <= most
    assert covers(one, two) == (first >= second)


def _members(ranges: Any) -> set[int]:
    return {n for low, high in ranges for n in range(low, high + 1)}


def test_the_ends_of_int64_do_not_overflow() -> None:
    least, greatest = -(2**63), 2**63 - 1
    assert pairs(narrowest_ranges(pa.array([least, greatest, 0, 1]), 2)) == [(least, least), (0, greatest)]
    assert of((least, least), (greatest, greatest), (least + 1, 5)).pairs() == [(least, 5), (greatest, greatest)]
    # 2**62 apart and one more: as floats the gaps would be equal
    assert pairs(narrowest_ranges(pa.array([0, 2**62, 2**63 - 1 - 2, 2**63 - 1]), 2))[0] == (0, 0)


def test_zeros_are_one_and_infinities_are_ends() -> None:
    inf = float("inf")
    assert pairs(narrowest_ranges(pa.array([-0.0, 0.0, 1.0, inf, -inf]), 3)) == [(-inf, -inf), (0.0, 1.0), (inf, inf)]
    assert str(pairs(narrowest_ranges(pa.array([-0.0]), 1))) == "[(0.0, 0.0)]"


def test_strings_are_split_by_what_follows_their_common_beginning() -> None:
    names = [b"https://a/1", b"https://a/2", b"https://z/1"]
    assert pairs(narrowest_ranges(pa.array(names, pa.binary()), 2)) == [(names[0], names[1]), (names[2], names[2])]
