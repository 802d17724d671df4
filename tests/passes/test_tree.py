"""The pruning tree: the files that plain evaluation keeps, whatever the order and the parts, and more only by a cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.evaluate.evaluator import evaluate, verdict_of
from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.rules import RULES
from secateur.evaluate.value_range import ValueRange
from secateur.passes import run_passes
from secateur.passes.filter import tree as tree_module
from secateur.passes.filter.filter import narrow, prune
from secateur.passes.filter.tree import PruningTree
from secateur.passes.filter.tree_nodes import Node
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask
from secateur.plan.expressions import And, Call, Expression, Literal, Not, Or, conjuncts
from secateur.plan.nodes import Filter, Query, Scan
from secateur.plan.types import BOOLEAN
from secateur.stats.file_stats import FileStats
from tests.evaluate.generate import COLUMNS, Generator
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references
from tests.passes.results import kept

BY_ID = {c.id: c for c in COLUMNS}
DEFAULT = Tuning()
NEVER = Tuning(filter_seconds=1e9, file_seconds=1e9)
thorough = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
randoms = st.integers(0, 2**64).map(Random)


@contextmanager
def steps(rng: Random, clock: Callable[[], float]) -> Iterator[None]:
    """Small blocks, probes and runs, a clock that makes up costs, and any threshold for picking entries out."""
    block = rng.choice([2, 3, 5])
    patches = {
        "secateur.stats.file_stats.BLOCK": block,
        "secateur.passes.filter.filter.BLOCK": block,
        "secateur.passes.filter.tree.BLOCK": block,
        "secateur.passes.filter.tree.PROBES": rng.choice([(1, 2), (2, 4), (3, 5), (100, 200)]),
        "secateur.passes.filter.tree.RUN_SECONDS": rng.choice([1e-12, 0.5, 2.0, 20.0]),
        "secateur.passes.filter.tree.WORTH_CUTTING": rng.choice([0.0, 1.0]),
        "secateur.passes.filter.tree.SPARSE": rng.choice([0.0, 0.5, 0.95]),
        "secateur.passes.filter.tree.PICKING_SECONDS": rng.choice([0.0, 0.1, 10.0]),
        "secateur.passes.filter.tree.thread_time": clock,
        "secateur.passes.filter.tree.perf_counter": clock,
    }
    with ExitStack() as stack:
        for name, value in patches.items():
            stack.enter_context(patch(name, value))
        yield


def jumping(rng: Random) -> Callable[[], float]:
    """A clock that moves by chance, so that every order and every cut comes about."""
    ticks = count()
    start = [0.0]

    def now() -> float:
        next(ticks)
        start[0] += rng.choice([0.0, 0.001, 0.1, 1.0])
        return start[0]

    return now


def plainly(parts: tuple[Expression, ...], stats: FileStats, kept: Mask) -> Mask:
    expected: Mask = kept.copy()
    for part in parts:
        expected = expected & evaluate(part, stats, BY_ID).may
    return expected


def cases(rng: Random) -> Iterator[tuple[tuple[Expression, ...], FileStats, Mask, Mask]]:
    """Conjuncts, files, those of them that are left, and those of these that plain evaluation keeps."""
    draw = Generator(rng)
    rows = [draw.rows() for _ in range(29)]
    kept = np.array([draw.chance(0.9) for _ in rows])
    for _ in range(4):
        stats = file_stats([draw.entry(r) for r in rows], COLUMNS)
        parts = tuple(draw.predicate(depth=4) for _ in range(rng.choice([1, 2, 4])))
        expected = plainly(parts, stats, kept)
        yield parts, stats, kept, expected


@thorough
@given(randoms)
def test_the_tree_keeps_what_plain_evaluation_keeps(rng: Random) -> None:
    for parts, stats, left, expected in cases(rng):
        with steps(rng, jumping(rng)):
            tree = PruningTree(parts, BY_ID, tuning=NEVER)
            assert prune(tree, stats, left).tolist() == expected.tolist(), " AND ".join(map(str, parts))


@thorough
@given(randoms)
def test_a_cut_keeps_more_and_never_less(rng: Random) -> None:
    for parts, stats, left, expected in cases(rng):
        tuning = Tuning(rng.choice([0.0, 1.0, 1e9]), rng.choice([0.0, 0.01, 1.0]))
        with steps(rng, jumping(rng)):
            tree = PruningTree(parts, BY_ID, tuning=tuning)
            after = prune(tree, stats, left)
        told = " AND ".join(map(str, parts))
        assert not (expected & ~after).any(), f"wrong skip: {told}"
        assert not (after & ~left).any(), f"brought back: {told}"
        cut = [node for node in tree.root.below() if node.cut]
        if not cut and not tree.out_of_time:
            assert after.tolist() == expected.tolist(), told
        for node in tree.root.below():
            assert node.kind == "and" or not any(child.cut for child in node.children), f"cut below an OR: {told}"


# What follows looks at single decisions, over files that differ in one way only.
FILES = 40_000
PLAIN = columns_of("x bigint, y bigint")
NAMES = references(PLAIN)


def numbered(count: int = FILES) -> FileStats:
    """x is less than 10 in every 400th file, in no order, so that no block can be ruled out; y is everything."""
    order = np.random.default_rng(3).permutation(count)
    return file_stats([entry(f"x: {i % 4000}..{i % 4000}, y: 0..9", PLAIN) for i in order.tolist()], PLAIN)


@pytest.fixture(scope="module")
def stats() -> FileStats:
    return numbered()


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tree_module, "thread_time", clock)
    monkeypatch.setattr(tree_module, "perf_counter", clock)
    return clock


@pytest.fixture
def costly(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], None]:
    """Gives a function a rule (the argument itself) that takes so many seconds for an entry."""

    def give(name: str, seconds: float) -> None:
        def rule(call: Call, context: EvalContext) -> ValueRange | None:
            clock.now += seconds * context.count
            return range_of(call.args[0], context)

        monkeypatch.setitem(RULES, name, rule)

    return give


def asked(text: str) -> Expression:
    return predicate(text, NAMES)


def grown(condition: Expression, tuning: Tuning = DEFAULT) -> PruningTree:
    return PruningTree(tuple(conjuncts(condition)), {c.id: c for c in PLAIN}, tuning=tuning)


def everything(stats: FileStats) -> Mask:
    return np.ones(stats.count, np.bool_)


def find(tree: PruningTree, text: str) -> Node:
    (found,) = [node for node in tree.root.below() if node.kind == "test" and text in str(node.expression)]
    return found


def test_a_slow_and_useless_conjunct_is_cut_off(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(y) >= 0 AND x < 3000"))
    assert np.count_nonzero(prune(tree, stats, everything(stats))) == 30_000
    slow = find(tree, "slow")
    assert slow.cut
    assert slow.looked < FILES / 4
    assert not find(tree, "x#").cut


def test_one_that_sees_little_is_not(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:  # fmt: skip
    costly("slow", 1e-6)
    tree = grown(asked("slow(y) >= 0 AND x < 10"))
    assert np.count_nonzero(prune(tree, stats, everything(stats))) == 100
    slow = find(tree, "slow")
    assert not slow.cut
    assert slow.looked < 200


def test_one_that_earns_its_time_is_not(stats: FileStats, clock: Clock, costly: Callable[[str, float], None]) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(x) < 10 AND y >= 0"))
    assert np.count_nonzero(prune(tree, stats, everything(stats))) == 100
    assert not any(node.cut for node in tree.root.below())


def test_what_a_file_costs_to_read_decides(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(y) >= 0"), replace(Tuning(), file_seconds=1.0))
    prune(tree, stats, everything(stats))
    assert not find(tree, "slow").cut


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("slow(y) >= 0 OR x < 3000", False),
        ("(slow(y) >= 0 AND x < 3000) OR x > 3900", True),
        ("NOT (slow(y) < 0 OR x >= 3000)", True),
        ("NOT (slow(y) < 0 AND x >= 3000)", False),
        ("NOT NOT (slow(y) >= 0 AND x < 3000)", True),
    ],
)
def test_only_children_of_an_and_are_cut_off(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None], text: str, cut: bool
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked(text))
    after = prune(tree, stats, everything(stats))
    plain = evaluate(asked(text), stats, {c.id: c for c in PLAIN}).may
    assert not (plain & ~after).any()
    # An OR as a whole is a child of the root, and may go.
    assert find(tree, "slow").cut is cut


def test_the_faster_of_two_equally_good_comes_first(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    costly("fast", 1e-8)
    tree = grown(asked("slow(x) < 10 AND fast(x) < 10"))
    prune(tree, stats, everything(stats))
    assert [str(node.expression)[1:5] for node in tree.root.in_order()] == ["fast", "slow"]
    assert find(tree, "slow").looked < FILES / 4


def test_the_more_selective_of_two_equally_fast_comes_first(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(x) < 3900 AND slow(x) < 10"))
    prune(tree, stats, everything(stats))
    assert "3900" in str(tree.root.in_order()[-1].expression)


def test_below_an_or_the_less_selective_comes_first(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(x) < 10 OR slow(x) < 3900"))
    assert np.count_nonzero(prune(tree, stats, everything(stats))) == 39000
    (either,) = tree.root.children
    assert "3900" in str(either.in_order()[0].expression)


def test_when_the_time_is_up_the_rest_is_kept(
    stats: FileStats, clock: Clock, costly: Callable[[str, float], None]
) -> None:
    costly("slow", 1e-6)
    tree = grown(asked("slow(x) < 10"), Tuning(filter_seconds=0.02))
    after = prune(tree, stats, everything(stats))
    assert 0 < tree.out_of_time < FILES
    assert 100 < np.count_nonzero(after) < FILES
    plain = evaluate(asked("x < 10"), stats, {c.id: c for c in PLAIN}).may
    assert not (plain & ~after).any()


def test_one_conjunct_that_breaks_does_not_spoil_the_others(stats: FileStats, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(e: Expression, context: EvalContext) -> object:
        if "7777" in str(e):
            raise ZeroDivisionError("on purpose")
        return verdict_of(e, context)

    monkeypatch.setattr(tree_module, "verdict_of", broken)
    condition = asked("y <> 7777 AND x < 10")
    decision = run_passes(Query(1, "early", Filter(condition, Scan(1, "t", "parquet", "", PLAIN))), {1: stats})
    assert np.count_nonzero(kept(decision)) == 100
    (reason,) = decision[1].reasons
    assert reason.code == "pass-failed"
    assert "7777" in reason.text
    assert "on purpose" in reason.text


def test_what_was_cut_off_is_said(stats: FileStats, clock: Clock, costly: Callable[[str, float], None]) -> None:
    costly("slow", 1e-6)
    query = Query(1, "early", Filter(asked("slow(y) >= 0 AND x < 3000"), Scan(1, "t", "parquet", "", PLAIN)))
    (reason,) = run_passes(query, {1: stats})[1].reasons
    assert reason.code == "cut-off"
    assert reason.text.startswith("slow(y) >= 0 was given up: it took ")
    assert " files and ruled out none" in reason.text
    assert run_passes(query, {1: stats}, tuning=Tuning(file_seconds=1.0))[1].reasons == ()


def test_that_the_time_was_up_is_said(stats: FileStats, clock: Clock, costly: Callable[[str, float], None]) -> None:
    costly("slow", 1e-6)
    query = Query(1, "early", Filter(asked("slow(x) < 10"), Scan(1, "t", "parquet", "", PLAIN)))
    decision = run_passes(query, {1: stats}, tuning=Tuning(filter_seconds=0.02))
    assert [reason.code for reason in decision[1].reasons] == ["out-of-time"]


def test_small_tables_are_never_cut(clock: Clock, costly: Callable[[str, float], None]) -> None:
    costly("slow", 1.0)
    small = numbered(5000)
    tree = grown(asked("slow(y) >= 0 AND slow(x) < 10"))
    assert np.count_nonzero(prune(tree, small, everything(small))) == 20
    assert not any(node.cut for node in tree.root.below())


def test_a_long_chain_is_one_node() -> None:
    x = asked("x < 10")
    chain = x
    for _ in range(5000):
        chain = Or(chain, x)
    (either,) = PruningTree((chain,), {}).root.children
    assert (either.kind, len(either.children)) == ("or", 5001)


def test_nested_connectives_come_apart() -> None:
    a, b, c = (Literal(i % 2, BOOLEAN) for i in range(3))
    (node,) = PruningTree((Not(Or(Not(And(a, b)), c)),), {}).root.children
    assert [(child.kind, child.negated) for child in node.children] == [
        ("test", False),
        ("test", False),
        ("test", True),
    ]


def test_no_conjunct_keeps_all(stats: FileStats) -> None:
    assert narrow((), stats, {}, everything(stats)).all()


def test_a_child_of_an_or_is_not_cut_whatever_it_cost() -> None:
    tree = grown(asked("x < 10 OR y < 10"))
    (either,) = tree.root.children
    tree.root.entries = 1
    either.children[0].seconds = either.children[1].seconds = 1e6
    tree._cut_off(tree.root, 1e6)
    assert not any(node.cut for node in tree.root.below())
    either.seconds = 2e6
    tree._cut_off(tree.root, 1e6)
    assert [node.kind for node in tree.root.below() if node.cut] == ["or"]
