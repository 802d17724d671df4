"""Where a join's sides have a column of the same id, it is the left side's: the other one is not told."""

from __future__ import annotations

import pytest

from secateur.passes.joins.links import Links
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Column, Compare
from secateur.plan.nodes import Join, Scan
from secateur.plan.types import parse_type

INT = parse_type("int")


def scan(id_: int, column: int) -> Scan:
    return Scan(id_, f"t{id_}", "parquet", f"f{id_}", (ScanColumn(column, f"c{column}", INT),))


@pytest.mark.parametrize("kind", ["Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"])
def test_only_the_left_of_two_columns_with_one_id_is_told(kind: str) -> None:
    both = Join(kind, None, scan(0, 1), scan(1, 1))
    joined = Join("Inner", Compare("=", Column(1, "c1", INT), Column(5, "c5", INT)), both, scan(2, 5))
    assert {link.target.scan for link in Links().of(joined).found} == {0, 2}
