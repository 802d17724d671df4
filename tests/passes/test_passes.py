"""The frame around the passes: the switch, the check, and what happens when one fails."""

from __future__ import annotations

import numpy as np
import pytest

from secateur.decision.merge import Decision
from secateur.decision.parts import Keep
from secateur.passes import PASSES, Pass, run_passes
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import filter_entries, prune_by_filter
from secateur.plan.expressions import And, Column, Expression, Not
from secateur.plan.nodes import Filter, Opaque, Project, Query, Scan, Settings
from secateur.plan.types import BOOLEAN
from secateur.reasons import Reason
from secateur.stats.file_stats import BLOCK
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references
from tests.passes.results import kept

COLUMNS = columns_of("x int")
SCAN = Scan(1, "t", "parquet", "", COLUMNS)
STATS = file_stats([entry(text, COLUMNS) for text in ("x: 1..5", "x: 6..9", "x: 3..7")], COLUMNS)


def query(condition: str, stage: str = "early") -> Query:
    return Query(1, stage, Filter(predicate(condition, references(COLUMNS)), SCAN))


def kept_by(*passes: Pass, enabled: tuple[str, ...] | None = None) -> Decision:
    return run_passes(query("x > 5"), {1: STATS}, enabled=enabled, passes=passes)


def test_the_passes_have_different_names() -> None:
    assert len({p.name for p in PASSES}) == len(PASSES)


def test_a_pass_is_recorded() -> None:
    decision = kept_by(*PASSES)
    (record,) = decision[1].records  # of the others none had anything to do
    assert (record.name, record.files_before, record.files_after) == ("filter", 3, 2)
    assert record.ms > 0
    assert decision[1].reasons == ()


def test_a_pass_that_is_not_enabled_does_not_run() -> None:
    decision = kept_by(*PASSES, enabled=())
    assert kept(decision).all()
    assert decision[1].records == ()


def test_a_pass_runs_in_its_stages_only() -> None:
    late = Pass("late", prune_by_filter, stages=("late",))
    assert kept(kept_by(late)).all()
    assert not kept(run_passes(query("x > 5", "late"), {1: STATS}, passes=(late,))).all()


def _raises(known: PassInput) -> PassResult:
    raise RecursionError("too deep")


def _brings_back(known: PassInput) -> PassResult:
    return [(1, Keep(np.ones(3, np.bool_)))]


def _wrong_length(known: PassInput) -> PassResult:
    return [(1, Keep(np.zeros(1, np.bool_)))]


def _wrong_type(known: PassInput) -> PassResult:
    return [(1, Keep(np.zeros(3, np.int64)))]


def _unknown_scan(known: PassInput) -> PassResult:
    return [(7, Keep(np.zeros(3, np.bool_)))]


def _unknown_reason(known: PassInput) -> PassResult:
    return [(7, Reason("x", "y"))]


def _writes_in_place(known: PassInput) -> PassResult:
    known.kept[1][:] = False
    return []


@pytest.mark.parametrize(
    "broken",
    [_raises, _brings_back, _wrong_length, _wrong_type, _unknown_scan, _unknown_reason, _writes_in_place],
)
def test_a_broken_pass_is_ignored_and_named(broken: object) -> None:
    decision = kept_by(Pass("filter", prune_by_filter), Pass("broken", broken), Pass("after", prune_by_filter))  # type: ignore[arg-type]
    assert kept(decision).tolist() == [False, True, True]
    assert [r.name for r in decision[1].records] == ["filter", "broken", "after"]
    failed = [r for r in decision[1].reasons if r.code == "pass-failed"]
    assert len(failed) == 1
    assert "broken" in failed[0].text


def test_a_pass_that_narrows_below_something_random_is_ignored() -> None:
    plan = Project((), query("x > 5").plan, order_sensitive=True)
    narrows = Pass("narrows", lambda known: [(1, Keep(np.zeros(3, np.bool_)))])
    decision = run_passes(Query(1, "early", plan), {1: STATS}, passes=(narrows,))
    assert kept(decision).all()
    assert [r.code for r in decision[1].reasons] == ["pass-failed"]


def test_a_subquery_of_something_random_is_left_alone_too() -> None:
    """Spark turns IN and EXISTS into joins: what they read decides in which order rows arrive."""
    x = references(COLUMNS)
    inner = Filter(predicate("x > 5", x), SCAN)
    plan = Filter(predicate("x > 5", x), Scan(9, "u", "parquet", "", ()), subqueries=(inner,), order_sensitive=True)
    assert kept(run_passes(Query(1, "early", plan), {1: STATS})).all()


def test_later_passes_see_what_earlier_ones_kept() -> None:
    def first_only(known: PassInput) -> PassResult:
        return [(1, Keep(np.array([True, False, False])))]

    decision = kept_by(Pass("first", first_only), Pass("filter", prune_by_filter))
    assert kept(decision).tolist() == [False, False, False]


def test_nothing_left_is_not_brought_back() -> None:
    def nothing(known: PassInput) -> PassResult:
        return [(1, Keep(np.zeros(3, np.bool_)))]

    decision = kept_by(Pass("nothing", nothing), Pass("filter", prune_by_filter))
    assert not kept(decision).any()
    assert [r.code for r in decision[1].reasons] == ["nothing-left"]


def test_a_scan_without_statistics_gets_a_reason() -> None:
    decision = run_passes(query("x > 5"), {})
    assert [r.code for r in decision[1].reasons] == ["no-statistics"]


def test_entries_of_any_kind_can_be_filtered() -> None:
    conjuncts = (predicate("x > 5", references(COLUMNS)),)
    assert filter_entries(conjuncts, SCAN, STATS, Settings()).tolist() == [False, True, True]


def test_a_scan_used_twice_keeps_what_either_use_needs() -> None:
    """Both uses are narrowed together, so only what both ask for may narrow."""
    x = references(COLUMNS)
    low, high, shared = (predicate(text, x) for text in ("x < 3", "x > 7", "x < 9"))
    plan = Opaque("Union", (Filter(And(low, shared), SCAN), Filter(And(shared, high), SCAN)))
    assert QueryAnalysis(Query(1, "early", plan)).predicate(SCAN) == (shared,)


def test_a_subquery_does_not_inherit_the_filter_around_it() -> None:
    inner = Scan(2, "inner", "parquet", "", ())
    outer = Filter(predicate("x > 5", references(COLUMNS)), SCAN, subqueries=(inner,))
    assert QueryAnalysis(Query(1, "early", outer)).predicate(inner) == ()


def test_a_column_that_the_projection_does_not_output_is_unknown() -> None:
    x, y = Column(1, "x", COLUMNS[0].type), Column(2, "y", BOOLEAN)
    plan = Filter(predicate("x > 5", {"x": x}), Project((y,), SCAN))
    (conjunct,) = QueryAnalysis(Query(1, "early", plan)).predicate(SCAN)
    assert "not an output" in repr(conjunct)


def test_predicates_that_double_at_every_projection_are_dropped() -> None:
    from secateur.plan.expressions import Alias, Or

    plan: Filter | Project | Scan = SCAN
    flag: Expression = Column(1, "b", BOOLEAN)
    for level in range(2, 40):
        plan = Project((Alias(level, "b", Or(flag, Not(flag)), BOOLEAN),), plan)
        flag = Column(level, "b", BOOLEAN)
    assert QueryAnalysis(Query(1, "early", Filter(flag, plan))).predicate(SCAN) == ()


def test_many_files_go_through_blocks() -> None:
    count = 5 * BLOCK + 17
    files = [entry(f"x: {i}..{i + 1}", COLUMNS) for i in range(count)]
    decision = run_passes(query("x > 9000 AND x <= 9003 OR x = 3"), {1: file_stats(files, COLUMNS)})
    assert np.flatnonzero(kept(decision)).tolist() == [2, 3, 9000, 9001, 9002, 9003]
