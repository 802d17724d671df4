"""What complex conditions imply of single columns: the condition, what is known of the files, the outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from secateur.decision.merge import Decision
from secateur.decision.parts import AddPredicate
from secateur.passes import Pass, run_passes
from secateur.passes.contract import PassInput
from secateur.passes.filter.implied_predicates import COLUMNS, add_implied_predicates, is_plain
from secateur.plan.expressions import Call, Column, Compare, Expression, IsNotNull, Literal, conjuncts, walk
from secateur.plan.nodes import Filter, Opaque, Query, Scan, Settings
from secateur.plan.types import DataType, parse_type
from secateur.plan.wording import in_words
from secateur.stats.file_stats import FileStats
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references
from tests.passes import results

NUMBERS = "a int, b bigint, t tinyint, d double, r float, m decimal(9,2), w decimal(38,0)"
TIMES = "day date, ts timestamp, n timestamp_ntz"
TEXTS = "s string, u string, p int partition, h int hidden"
COLUMNS_OF_ALL = columns_of(f"{NUMBERS}, {TIMES}, {TEXTS}")
NAMED = references(COLUMNS_OF_ALL)
INT = parse_type("int")


def implied(condition: str | Expression, *files: str, stage: str = "early") -> Decision:
    """What comes of one condition above a scan of these files."""
    e = predicate(condition, NAMED) if isinstance(condition, str) else condition
    scan = Scan(1, "t", "parquet", "", COLUMNS_OF_ALL)
    stats = file_stats([entry(text, COLUMNS_OF_ALL) for text in files or ("",)], COLUMNS_OF_ALL)
    return run_passes(Query(1, stage, Filter(e, scan), Settings()), {1: stats})


def words(decision: Decision) -> list[str]:
    return [in_words(each.predicate) for each in results.implied(decision)]


def test_only_files_of_which_a_part_could_be_skipped_are_worth_a_condition() -> None:
    """One row group with few rows is one page; of an unknown number of row groups the size tells."""
    scan = Scan(1, "t", "parquet", "", COLUMNS_OF_ALL)
    known = file_stats([entry("a: 0..100", COLUMNS_OF_ALL)], COLUMNS_OF_ALL)
    query = Query(1, "early", Filter(predicate("Abs(a) < 50", NAMED), scan), Settings())
    for groups, rows, size, expected in (
        (1, 20_000, 10**9, False),
        (1, 20_001, 100, True),
        (2, 10, 100, True),
        (1, None, 100, True),
        (None, 10, 100, False),
        (None, 10, 10**9, True),
        (None, 10, None, True),
    ):
        stats = FileStats(pa.array([rows], pa.int64()), pa.array([size], pa.int64()), known.column)
        stats.row_groups = pa.array([groups], pa.int32())
        assert bool(results.implied(run_passes(query, {1: stats}))) is expected, (groups, rows, size)


FOUND = [
    # condition, files, implied
    ("Add(a, 5) < 10", "a: 0..100", ["a < 5 OR a > 2147483642"]),  # above it wraps around
    ("Add(a, 5) < 10", "", ["a < 5 OR a > 2147483642"]),  # nothing known of the files
    ("Add(a, 5) < 10 AND Add(a, 5) > 3", "a: -50..100", ["a > -2", "a < 5 OR a > 2147483642"]),
    ("Add(t, 100) > 120", "t: -128..100", ["t > 20"]),
    ("Multiply(b, 2) > 1000", "b: 0..5000", ["b < -1407374883553280000 OR b > 500"]),
    ("Abs(a) > 90", "a: -100..100", ["a < -90 OR a > 90"]),
    ("Abs(a) < 10", "a: -100..100", ["a < -2147483638 OR a > -10", "a < 10"]),  # the least integer stays negative
    ("NOT (Abs(a) < 90)", "a: -100..100", ["a < -89 OR a > 89"]),
    ("Abs(a) IN (3, 5)", "a: 0..100", ["a < -2 OR a > 2", "a < 4 OR a > 4", "a < 6"]),
    ("Abs(a) < 5 OR a = 90", "a: 0..100", ["a < 5 OR a > 89", "a < 91"]),
    ("Abs(a) < 5 AND a > -3", "a: 0..100", ["a < 5"]),
    ("Abs(a) < 5 AND a > 3", "a: 0..100", ["a < 5"]),  # and not once more what is said
    # NULL
    ("Coalesce(a, 0) < 5", "a: 0..100", ["a IS NULL OR a < 5"]),
    ("Coalesce(a, 50) < 5", "a: 0..100", ["a < 5"]),
    ("Coalesce(a, 0) < 5 AND a IS NOT NULL", "a: 0..100", ["a < 5"]),
    ("Abs(a) < 5 OR a IS NULL", "a: 0..100", ["a IS NULL OR a < 5"]),
    ("Abs(a) <=> 5", "a: 0..100", ["a < -4 OR a > 4", "a < 6"]),
    # floats
    ("Abs(d) < 5", "d: -100..100 nans=?", ["d > -5.0", "d < 5.0"]),
    ("Abs(d) > 5", "d: -100..100 nans=?", []),  # a NaN matches, and Parquet would lose it
    ("Abs(d) > 5", "d: -100..100 nans=3", []),
    ("Abs(d) > 5", "d: -100..100", ["d < -5.0 OR d > 5.0"]),
    ("Abs(d) > 5", "", []),
    ("Abs(d) < 5 OR isnan(d)", "d: -100..100 nans=?", []),
    ("Abs(d) < 90", "d: -inf..inf nans=?", ["d > -90.0", "d < 90.0"]),
    ("Abs(d) < 5", "", ["d > -5.0", "d < 5.0"]),
    ("Abs(r) < 0.1", "r: -1..1 nans=?", ["r > -0.10000000149011612", "r < 0.10000000149011612"]),
    ("Sqrt(d) > 10", "d: 0..1000", ["d IS NULL OR d < 0.0 OR d > 99.99999999999997"]),
    ("Abs(d) > 0", "d: 0..1000", []),
    ("Multiply(d, 2) > 0", "d: -1..1", ["d > -5e-324"]),  # products are taken one place wider
    # decimals
    ("Multiply(m, 2.00) > 100.00", "m: 0.00..1000.00", ["m < -9999899.98 OR m > 50.00"]),
    ("Abs(m) < 5.00", "m: -100.00..100.00", ["m > -5.00", "m < 5.00"]),
    ("Abs(m) < 5.00", "", []),  # by a writer that compared their bytes, perhaps
    (
        "Abs(w) < 5",
        "w: -10000000000000000000000..10000000000000000000000",
        ["w < -5497558138890000000000000000000000 OR w > -5", "w < 5 OR w > 5497558138890000000000000000000000"],
    ),
    # times
    (
        "LastDay(day) = 2024-02-29",
        "day: 2023-01-01..2025-01-01",
        ["day < 1582-10-15 OR day >= 2024-02-01", "day < 2024-03-01 OR day >= 2932897"],
    ),
    ("LastDay(day) < 1500-01-01", "day: 1400-01-01..2025-01-01", ["day < 1582-10-15 OR day >= 2932897"]),
    ("LastDay(day) > 1500-01-01", "day: 1400-01-01..2025-01-01", []),
    # strings
    ("s LIKE 'ab_d%'", "s: 'a'..'b'", ["s > 'aa\\U0010ffff'", "s < 'ac'"]),
    ("s LIKE 'ab_d%'", "s: 'ab'..'b'", ["s < 'ac'"]),
    ("s LIKE 'ab_d%'", "s: 'aba'..'abz'", []),  # nothing to gain
    ("s LIKE 'é_'", "", ["s > 'è\\U0010ffff'", "s < 'ê'"]),
    ("s LIKE '\U0010ffff_'", "", ["s > '\\U0010fffe\\U0010ffff'"]),
    ("s LIKE '\ud7ff_'", "", ["s > '\\ud7fe\\U0010ffff'", "s < '\\ue000'"]),
    ("s LIKE '\ue000_'", "", ["s > '\\ud7ff\\U0010ffff'", "s < '\\ue001'"]),
    ("Coalesce(s, 'ab') LIKE 'ab_d%'", "", ["s > 'aa\\U0010ffff'", "s < 'ac'"]),
    ("Coalesce(s, 'abcd') LIKE 'ab_d%'", "", ["s IS NULL OR s > 'aa\\U0010ffff'", "s IS NULL OR s < 'ac'"]),
    # nothing to say
    ("Abs(a) > 9 OR b = 3", "a: -100..100, b: 0..9", []),  # the other column could decide
    ("Coalesce(a, b) IS NULL AND Abs(a) < 5", "a: 0..100", []),  # no row at all matches
    ("Upper(s) = 'ABC'", "s: 'a'..'b'", []),  # no rule that knows
    ("sin(d) > 0 AND f(a) = 3", "a: 0..9", []),
    ("Abs(p) < 5", "p: 0..100", []),  # a partition column
    ("Abs(h) < 5", "", []),  # a hidden one
    ("a < 5 AND b > 3", "a: 0..100, b: 0..100", []),  # Spark hands these to Parquet as they are
    ("(a < 5 OR a IS NULL) AND NOT (b IN (1, 2))", "a: 0..100, b: 0..100", []),
    ("Abs(a) < 5", "a: 7..7", []),  # a constant: its files are out by themselves
    ("Abs(a) < 1000", "a: 0..100", []),  # no gap in what is there
]


@pytest.mark.parametrize(("condition", "files", "expected"), FOUND)
def test_what_is_implied(condition: str, files: str, expected: list[str]) -> None:
    decision = implied(condition, files)
    assert words(decision) == expected
    assert not {reason.code for reason in decision[1].reasons} & {"pass-failed", "too-complex"}


def test_only_files_that_are_left_count() -> None:
    decision = implied("Abs(a) < 50", "a: 0..10", "a: 5..40", "a: 60..100")
    assert results.kept(decision).tolist() == [True, True, False]
    assert words(decision) == []
    assert words(implied("Abs(a) < 50", "a: 0..10", "a: ?..? nulls=10", "a: 5..60")) == ["a < 50"]


def test_one_file_that_nothing_is_known_of_opens_the_window() -> None:
    assert words(implied("Abs(a) < 50", "a: 0..10", "")) == ["a < -2147483647 OR a > -50", "a < 50"]


def test_fractions_of_milliseconds_are_left_alone() -> None:
    """Spark rounds the literal down for a file that counts milliseconds, so that ``ts < 0.0005 s`` would lose 0 s."""
    ts = Column(9, "ts", parse_type("timestamp"))
    micros = Call("UnixMicros", (ts,), parse_type("bigint"))
    at = 1_700_000_000_000_001
    below = implied(predicate_of("<", micros, at), "")
    assert words(below) == ["ts < 2023-11-14 22:13:20.001000Z OR ts >= 9999-12-31 00:00:00Z"]
    above = implied(predicate_of(">", micros, at), "")
    assert words(above) == ["ts < 1901-01-01 00:00:00Z OR ts >= 2023-11-14 22:13:20.000002Z"]


def predicate_of(op: str, left: Expression, value: int) -> Expression:
    return Compare(op, left, Literal(value, left.type))


def test_what_is_there_already_is_not_said_again() -> None:
    first = implied("Coalesce(a, 0) < 5 AND Abs(b) < 7", "a: 0..100, b: 0..100")
    assert words(first) == ["a IS NULL OR a < 5", "b < 7"]
    scan = Scan(1, "t", "parquet", "", COLUMNS_OF_ALL)
    plan = Filter(predicate("Coalesce(a, 0) < 5 AND Abs(b) < 7", NAMED), scan)
    for each in results.implied(first):
        plan = Filter(each.predicate, plan)
    stats = file_stats([entry("a: 0..100, b: 0..100", COLUMNS_OF_ALL)], COLUMNS_OF_ALL)
    assert results.implied(run_passes(Query(1, "late", plan), {1: stats})) == ()


@pytest.mark.parametrize("state", ["declined", "decided", "random"])
def test_some_scans_are_left_alone(state: str) -> None:
    scan = Scan(1, "t", "parquet", "", COLUMNS_OF_ALL, declined="x" * (state == "declined"), decided=state == "decided")
    plan = Opaque("Sample", (Filter(predicate("Abs(a) < 5", NAMED), scan),), order_sensitive=state == "random")
    stats = file_stats([entry("a: 0..100", COLUMNS_OF_ALL)], COLUMNS_OF_ALL)
    query = Query(1, "early", plan)
    assert list(add_implied_predicates(PassInput.of(query, {1: stats}, {1: np.ones(1, np.bool_)}))) == []
    if state == "random":
        forced = run_passes(query, {1: stats}, passes=(_always(scan),))
        assert results.implied(forced) == ()
        assert [r.code for r in forced[1].reasons] == ["pass-failed"]


def _always(scan: Scan) -> Pass:
    return Pass("x", lambda known: [(scan.id, AddPredicate(IsNotNull(NAMED["a"])))])


def test_a_condition_that_is_too_large_is_named() -> None:
    long = " OR ".join(f"Abs(a) = {i}" for i in range(200))
    decision = implied(long, "a: 0..1000")
    assert results.implied(decision) == ()
    assert [r.code for r in decision[1].reasons if r.code == "too-complex"] == ["too-complex"]


def test_a_query_of_many_columns_is_cut_off() -> None:
    columns = tuple(replace(COLUMNS_OF_ALL[0], id=100 + i, name=f"c{i}") for i in range(COLUMNS + 3))
    condition = " AND ".join(f"Abs(c{i}) < 5" for i in range(COLUMNS + 3))
    scan = Scan(1, "t", "parquet", "", columns)
    stats = FileStats(*(file_stats([entry("", columns)], columns).rows,) * 2, lambda column: None)
    decision = run_passes(Query(1, "early", Filter(predicate(condition, references(columns)), scan)), {1: stats})
    assert (
        len({c.name for e in results.implied(decision) for c in walk(e.predicate) if isinstance(c, Column)}) == COLUMNS
    )
    assert "too-complex" in {r.code for r in decision[1].reasons}


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("a < 5", True),
        ("5 < a", True),
        ("NOT (a = 5 OR b IN (1, 2) AND s LIKE 'a%')", False),
        ("NOT (a = 5 OR b IN (1, 2) AND startswith(s, 'a'))", True),
        ("a IS NULL", True),
        ("a = b", False),
        ("Abs(a) = 5", False),
    ],
)
def test_what_spark_pushes_by_itself(condition: str, plain: bool) -> None:
    assert all(map(is_plain, conjuncts(predicate(condition, NAMED)))) == plain


def test_a_literal_of_another_type_is_not_plain() -> None:
    assert not is_plain(Compare("<", NAMED["a"], Literal(5, DataType("bigint"))))
    assert is_plain(Compare("<", NAMED["a"], Literal(5, INT)))
