"""What the evaluator refuses to judge, and what the statistics refuse to take (rule S1)."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.evaluate import obstacles
from secateur.evaluate.evaluator import evaluate
from secateur.evaluate.value_range import Bound
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Call, Column, Compare, Expression, In, Literal, Opaque, StartsWith, Value
from secateur.plan.types import BOOLEAN, parse_type
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.evaluate.language import columns_of, entry, file_stats

COLUMNS = columns_of("i int, day date, at timestamp, d double, c decimal(10,2), s string, h int hidden")
FILE = "i: 1..2, day: 1..2, at: 1..2, d: 1..2, c: 1..2, s: '1'..'2', h: 1..2"
STATS = file_stats([entry(FILE, COLUMNS)], COLUMNS)
BY_ID = {c.id: c for c in COLUMNS}


def column(name: str, type_: str | None = None) -> Column:
    source = next(c for c in COLUMNS if c.name == name)
    return Column(source.id, name, parse_type(type_) if type_ else source.type)


def equals(left: Column, value: Value, type_: str) -> Expression:
    return Compare("=", left, Literal(value, parse_type(type_)))


REFUSED: list[Expression] = [
    equals(column("i"), 9, "date"),
    equals(column("i"), 9.0, "double"),
    equals(column("i"), 9.5, "int"),
    equals(column("i"), 2**70, "bigint"),
    equals(column("day"), 9, "int"),
    equals(column("day"), 9, "timestamp"),
    equals(column("at"), 9, "timestamp_ntz"),
    equals(column("d"), 9.0, "float"),
    equals(column("d"), 9, "int"),
    equals(column("c"), Decimal("9.0"), "decimal(10,1)"),
    equals(column("c"), Decimal("9.005"), "decimal(10,2)"),
    equals(column("c"), 9, "int"),
    equals(column("s"), b"9", "binary"),
    equals(column("i", "bigint"), 9, "bigint"),
    equals(column("h"), 9, "int"),
    equals(Column(99, "elsewhere", parse_type("int")), 9, "int"),
    Compare("!?", column("i"), Literal(9, parse_type("int"))),
    Compare("!?", column("d"), Literal(float("nan"), parse_type("double"))),
    Compare("!?", Literal(9, parse_type("int")), column("i")),
    In(column("i"), (9, b"9")),
    In(column("h"), (9,)),
    StartsWith(column("i"), b"9"),
    Opaque("rand", "non-deterministic", BOOLEAN),
    Literal(1, parse_type("int")),
    column("h"),
]


@pytest.mark.parametrize("predicate", REFUSED, ids=str)
def test_unknown_keeps(predicate: Expression) -> None:
    verdict = evaluate(predicate, STATS, BY_ID)
    assert verdict.may.all()
    assert not verdict.must.any()
    assert verdict.negated().may.all()


def test_accepted_neighbours() -> None:
    """The same comparisons with fitting types do prune, so the refusals above are about the types."""
    assert not evaluate(equals(column("i"), 9, "bigint"), STATS, BY_ID).may.any()
    assert not evaluate(equals(column("c"), Decimal(9), "decimal(12,2)"), STATS, BY_ID).may.any()
    assert not evaluate(equals(column("at"), 9, "timestamp"), STATS, BY_ID).may.any()


def loaded(low: pa.Array, high: pa.Array) -> FileStats:
    counts, exact = pa.array([0]), np.ones(1, np.bool_)
    return FileStats(counts, counts, lambda _: ColumnStats(low, high, counts, counts, exact, exact))


def test_bounds_of_another_type_are_an_error() -> None:
    with pytest.raises(TypeError, match="bounds of i are int32, but int needs int64"):
        loaded(pa.array([1], pa.int32()), pa.array([2], pa.int32())).column(COLUMNS[0])


def test_bounds_of_another_length_are_an_error() -> None:
    with pytest.raises(ValueError, match="statistics of i have 2 entries for 1 files"):
        loaded(pa.array([1, 2]), pa.array([2, 3])).column(COLUMNS[0])


def test_statistics_are_loaded_once_whatever_the_expression_id() -> None:
    calls = []

    def load(column: ScanColumn) -> None:
        calls.append(column.id)

    stats = FileStats(pa.array([1]), pa.array([1]), load)
    for id_ in (1, 2, 3):
        stats.column(ScanColumn(id_, "i", parse_type("int")))
    assert calls == [1]


def test_wrong_counts_do_not_add_up_to_a_right_one() -> None:
    """7 NULLs of 5 rows and 3 of 5 are not 10 of 10."""
    stats = file_stats(
        [entry("i: ?..? nulls=7 | rows=5", COLUMNS), entry("i: ?..? nulls=3 | rows=5", COLUMNS)], COLUMNS
    )
    assert evaluate(equals(column("i"), 9, "int"), stats.blocks, BY_ID).may.all()


def test_verdicts_are_read_only() -> None:
    verdict = evaluate(equals(column("i"), 9, "int"), STATS, BY_ID)
    for mask in (verdict.can_true, verdict.can_false, verdict.can_null):
        with pytest.raises(ValueError, match="read-only"):
            mask[0] = True


def test_impossible_bounds_leave_their_neighbours_alone() -> None:
    """Also in a slice, where Arrow's own if_else garbled strings until version 24."""
    low, high = (pa.array(list(text), pa.binary()).slice(2) for text in ("__adx", "__cbz"))
    known = ColumnStats(low, high, pa.array([0] * 3), pa.array([0] * 3), np.ones(3, np.bool_), np.ones(3, np.bool_))
    found = FileStats(pa.array([1] * 3), pa.array([1] * 3), lambda _: known).column(columns_of("s string")[0])
    assert found is not None
    assert found.low.to_pylist() == [b"a", None, b"x"]
    assert found.high.to_pylist() == [b"c", None, b"z"]


INT, DOUBLE = parse_type("int"), parse_type("double")
BLAMED = [
    (Call("Add", (column("i"), Literal(1, INT)), INT), []),
    (
        Call("Hypot", (column("d"), column("d")), DOUBLE),
        ["unsupported-expression: hypot(d, d) uses the function hypot, which has no rule"],
    ),
    (
        Call("Add", (Call("Soundex", (column("s"),), INT), column("i")), INT),
        ["unsupported-expression: soundex(s) uses the function soundex"],
    ),
    (Call("Cast", (column("i"),), DOUBLE), []),
    (Call("Cast", (column("s"),), INT), ["unsupported-expression: CAST(s AS int) is a cast from string to int"]),
    (Call("Abs", (column("h"),), INT), ["hidden-column: h is made by Spark"]),
]


@pytest.mark.parametrize(("computed", "expected"), BLAMED, ids=str)
def test_only_what_has_no_rule_is_blamed(computed: Call, expected: list[str]) -> None:
    value: Value = 9.0 if computed.type == DOUBLE else 9
    found = obstacles(Compare(">", computed, Literal(value, computed.type)), STATS, BY_ID)
    said = [f"{reason.code}: {reason.text}" for reason in found]
    assert len(said) == len(expected)
    assert all(text.startswith(start) for text, start in zip(said, expected, strict=True)), said


@pytest.mark.parametrize("values", [pa.array([b"a", b"b"]), pa.array([Decimal("1.00"), Decimal("2.00")])])
def test_what_lies_under_an_unknown_bound_is_not_believed(values: pa.Array) -> None:
    """A rule may leave a value where it marks the bound as unknown (rule S1)."""
    greatest = values[1].as_py()
    bound = Bound(values, np.array([True, False]))
    assert np.broadcast_to(bound.can(">", greatest), 2).tolist() == [True, False]
    assert np.broadcast_to(Bound(values, True).can(">", greatest), 2).tolist() == [True, True]
    assert pa.array(bound.known_entries(np.array([0, 1]), greatest)).to_pylist() == [greatest, greatest]
    assert pa.array(Bound(values, True).known_entries(np.array([0]), greatest)).to_pylist() == [greatest]
