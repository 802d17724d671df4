"""Filter pruning by range-sets: no wrong skip whatever the data, and the gaps that it sees."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.decision.parts import Keep
from secateur.evaluate.evaluator import context_of
from secateur.evaluate.range_sets import range_set
from secateur.evaluate.subfiles import files_where, values_of
from secateur.passes.contract import PassInput
from secateur.passes.filter.filter import narrow
from secateur.passes.filter.range_sets import narrow_by_ranges, prune_by_range_sets
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Column, Compare, Expression, Literal, conjuncts
from secateur.plan.nodes import Filter, Query, Scan, Settings
from secateur.plan.types import parse_type
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import ColumnStats, FileStats
from secateur.stats.narrowest_ranges import narrowest_ranges
from tests.evaluate.generate import COLUMNS, Generator, Row, is_nan, truth
from tests.evaluate.language import file_stats
from tests.passes.results import parts

SCAN = Scan(0, "t", "parquet", "", COLUMNS)
BY_ID = {c.id: c for c in COLUMNS}
thorough = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
randoms = st.integers(0, 2**64).map(Random)


def with_ranges(draw: Generator, files: Sequence[Sequence[Row]], most: int, *, by_row: bool = False) -> FileStats:
    """Statistics of files, with range-sets for most files of most columns, or their values too."""
    known = {c.name: _ranges(draw, c, files, most, by_row=by_row) for c in COLUMNS if draw.chance(0.8)}
    bounds = file_stats([draw.entry(rows) for rows in files], COLUMNS)
    return FileStats(bounds.rows, bounds.sizes, bounds.column, ranges=lambda c: known.get(c.name))


def _ranges(
    draw: Generator, column: ScanColumn, files: Sequence[Sequence[Row]], most: int, *, by_row: bool
) -> FileRangeSets:
    domain = column.type.domain
    sets: list[tuple[pa.Array, pa.Array] | None] = []
    values = [[row[column.id] for row in rows] for rows in files]
    for each in values:
        numbers = pa.array([v for v in each if v is not None and not is_nan(v)], domain)
        sets.append(None if draw.chance(0.15) else narrowest_ranges(numbers, most))
    listed = pa.array([None if draw.chance(0.15) else each for each in values], pa.list_(domain)) if by_row else None
    return FileRangeSets.of_lists(
        pa.array([None if s is None else s[0].to_pylist() for s in sets], pa.list_(domain)),
        pa.array([None if s is None else s[1].to_pylist() for s in sets], pa.list_(domain)),
        pa.array([draw.forget(None in each) for each in values], pa.bool_()),
        pa.array([draw.forget(any(map(is_nan, each))) for each in values], pa.bool_()),
        listed,
    )


@thorough
@given(randoms)
def test_no_file_with_a_matching_row_is_skipped(rng: Random) -> None:
    draw = Generator(rng)
    files = [draw.rows() + draw.rows() for _ in range(12)]
    stats = with_ranges(draw, files, rng.choice([1, 2, 5]))
    kept = np.array([draw.chance(0.9) for _ in files])
    for _ in range(8):
        predicate = draw.predicate()
        check(files, predicate, kept, narrow_by_ranges(tuple(conjuncts(predicate)), stats, SCAN, kept))


def check(files: Sequence[Sequence[Row]], predicate: Expression, kept: Mask, after: Mask) -> None:
    assert not (after & ~kept).any()
    for at, rows in enumerate(files):
        matching = [row for row in rows if truth(predicate, row)]
        assert after[at] or not kept[at] or not matching, f"wrong skip: {predicate} on {matching}"


def by_pass(predicate: Expression, stats: FileStats, kept: Mask) -> Mask:
    """What the pass keeps of a table."""
    known = PassInput.of(Query(0, "early", Filter(predicate, SCAN)), {0: stats}, {0: kept})
    return parts(prune_by_range_sets(known), Keep).get(0, Keep(kept)).files


@thorough
@given(randoms)
def test_no_file_of_a_small_table_with_a_matching_row_is_skipped(rng: Random) -> None:
    draw = Generator(rng)
    files = [draw.rows() + draw.rows() for _ in range(12)]
    stats = with_ranges(draw, files, rng.choice([1, 2, 5]), by_row=True)
    kept = np.array([draw.chance(0.9) for _ in files])
    for _ in range(8):
        predicate = draw.predicate()
        check(files, predicate, kept, by_pass(predicate, stats, kept))


@thorough
@given(randoms)
def test_values_of_files_are_all_there_and_found_again(rng: Random) -> None:
    draw = Generator(rng)
    files = [draw.rows() for _ in range(6)]
    stats = with_ranges(draw, files, rng.choice([1, 2, 5]))
    kept = np.array([draw.chance(0.7) for _ in files])
    column = rng.choice(COLUMNS)
    held = values_of(stats, column, kept)
    if held is None:
        return
    found = held.pairs()
    values = [[row[column.id] for row in rows] for rows in files]
    for value in (v for each, keep in zip(values, kept, strict=True) if keep for v in each):
        if value is None or is_nan(value):
            assert held.null if value is None else held.nan
        else:
            assert any(low <= value <= high for low, high in found), value
    expression = Column(column.id, column.name, column.type)
    may = files_where(expression, held, context_of(stats, BY_ID, Settings()), np.ones(len(files), np.bool_))
    for at, each in enumerate(values):
        wanted = [v for v in each if v is not None and any(a <= v <= b for a, b in found)]
        assert may[at] or not (wanted or (held.null and None in each) or (held.nan and any(map(is_nan, each))))


def test_a_file_whose_least_value_is_wanted_is_kept_and_one_with_a_gap_there_is_not() -> None:
    column, flags, zeros = ScanColumn(1, "x", parse_type("int")), np.ones(3, np.bool_), pa.array([0, 0, 0])
    bounds = ColumnStats(pa.array([5, 1, 1]), pa.array([9, 9, 9]), zeros, zeros, flags, flags)
    ends = pa.array([[5, 9], [1, 9], [1, 6, 9]])
    ranges = FileRangeSets.of_lists(ends, ends, pa.array([False] * 3), pa.array([False] * 3))
    stats = FileStats(pa.array([2, 2, 3]), zeros, load=lambda _: bounds, ranges=lambda _: ranges)
    context, x = context_of(stats, {1: column}, Settings()), Column(1, "x", column.type)
    for pairs, expected in (([(4, 7)], [True, False, True]), ([(4, 5), (7, 8)], [True, False, False])):
        assert files_where(x, range_set(column.type, pairs), context, flags).tolist() == expected


def test_parts_see_more_than_bounds_do() -> None:
    """A property that never sees a skip would prove nothing."""
    draw = Generator(Random(1))
    files = [draw.rows() + draw.rows() for _ in range(300)]
    stats, every = with_ranges(draw, files, 5), np.ones(300, np.bool_)
    predicates = [tuple(conjuncts(draw.predicate())) for _ in range(100)]
    by_bounds = [narrow(p, stats, BY_ID, every) for p in predicates]
    by_both = [narrow_by_ranges(p, stats, SCAN, m) for p, m in zip(predicates, by_bounds, strict=True)]
    assert np.mean(by_both) < 0.9 * np.mean(by_bounds)


def test_rows_see_more_than_parts_do() -> None:
    draw = Generator(Random(1))
    files = [draw.rows() + draw.rows() for _ in range(300)]
    stats, every = with_ranges(draw, files, 5, by_row=True), np.ones(300, np.bool_)
    predicates = [draw.predicate() for _ in range(100)]
    by_parts = [narrow_by_ranges(tuple(conjuncts(p)), stats, SCAN, every) for p in predicates]
    by_rows = [by_pass(p, stats, every) for p in predicates]
    assert np.mean(by_rows) < 0.95 * np.mean(by_parts)


def test_ranges_are_looked_at_where_rows_are_not_known_one_by_one() -> None:
    """After a deletion the values of a file are more than its rows; that 3 lies in a gap is still known."""
    column, flags, zeros = ScanColumn(1, "x", parse_type("int")), np.ones(2, np.bool_), pa.array([0, 0])
    bounds = ColumnStats(pa.array([1, 1]), pa.array([5, 5]), zeros, zeros, flags, flags)
    ends = pa.array([[1, 5], [1, 5]])
    ranges = FileRangeSets.of_lists(
        ends, ends, pa.array([False] * 2), pa.array([False] * 2), pa.array([[1, 5], [1, 5]])
    )
    stats = FileStats(pa.array([1, 2]), zeros, load=lambda _: bounds, ranges=lambda _: ranges)
    x, scan = Column(1, "x", column.type), Scan(0, "t", "parquet", "", (column,))
    for value, expected in ((3, [False, False]), (5, [True, True])):
        query = Query(0, "early", Filter(Compare("=", x, Literal(value, column.type)), scan))
        kept = parts(prune_by_range_sets(PassInput.of(query, {0: stats}, {0: flags})), Keep).get(0, Keep(flags)).files
        assert kept.tolist() == expected


def test_a_test_that_breaks_keeps_the_files() -> None:
    draw = Generator(Random(2))
    files = [draw.rows() for _ in range(20)]
    stats, every = with_ranges(draw, files, 5), np.ones(20, np.bool_)
    with patch("secateur.passes.filter.tree.verdict_of", side_effect=RuntimeError("broken")):
        after = narrow_by_ranges(tuple(conjuncts(draw.predicate())), stats, SCAN, every)
    known = np.array([not rows for rows in files])  # without a row there is nothing to lose
    assert (after | known).all()
