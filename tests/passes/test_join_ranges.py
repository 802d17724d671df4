"""Data-induced predicates on text fixtures, and the examples of the paper."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from secateur.decision.merge import Decision
from secateur.decision.records import JoinRecord
from secateur.evaluate.evaluator import context_of
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.range_sets import range_set, values_in
from secateur.passes import run_passes
from secateur.passes.contract import PassInput
from secateur.passes.joins import message_order as order
from secateur.passes.joins.join_ranges import ROUNDS, Exchange
from secateur.passes.joins.message_order import Cycle, Group, Message, message_order
from secateur.passes.tuning import Tuning
from secateur.plan.expressions import Alias, Column, Expression
from secateur.plan.nodes import (
    PRUNING_COPY,
    Aggregate,
    Filter,
    Join,
    Limit,
    Opaque,
    Plan,
    Query,
    Scan,
    Union,
    Window,
    walk,
)
from secateur.plan.types import parse_type
from secateur.report.summary import ScanSummary
from secateur.report.text import join_lines
from secateur.stats.file_stats import FileStats
from tests.evaluate.language import columns_of, entry, file_stats, predicate
from tests.passes.results import all_kept, kept, rests_on
from tests.passes.test_filter import Case, PlanReader, _indent, read_case

FIXTURES = Path(__file__).with_name("join_ranges")
JOINS = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")


def decide(query: Query, stats: Mapping[int, FileStats]) -> Decision:
    """With all the time that it takes."""
    return run_passes(query, stats, tuning=Tuning(filter_seconds=600))


def _joins(decision: Decision) -> dict[int, tuple[JoinRecord, ...]]:
    return {id_: scan.joins for id_, scan in decision.items() if scan.joins}


@dataclass
class JoinReader(PlanReader):
    """Reads joins and what lies around them as well."""

    def plan(self) -> tuple[Plan, dict[str, Column]]:
        word, _, rest = self.lines[self.at].strip().partition(" ")
        if word not in (*JOINS, "Aggregate", "Union", "Window", "Limit"):
            return super().plan()
        indent = _indent(self.lines[self.at])
        self.at += 1
        below = []
        while self.at < len(self.lines) and _indent(self.lines[self.at]) > indent:
            below.append(self.plan())
        plans, names = zip(*below, strict=True)
        outputs: dict[str, Column] = {name: column for known in names for name, column in known.items()}
        match word:
            case "Aggregate":
                grouping, _, computed = rest.partition(":")
                keys = tuple(predicate(key, outputs) for key in grouping.split(",") if key.strip())
                made: list[Expression] = [*keys]
                for part in computed.split(","):
                    source, _, name = part.strip().partition(" AS ")
                    self.next_id += 1
                    made.append(Alias(1000 + self.next_id, name, outputs[source], outputs[source].type))
                named = {e.name: Column(e.id, e.name, e.type) for e in made if isinstance(e, Alias | Column)}
                return Aggregate(keys, tuple(made), plans[0]), named
            case "Union":
                first = list(names[0].values())
                ids = tuple(2000 + column.id for column in first)
                inputs = tuple(tuple(column.id for column in known.values()) for known in names)
                return Union(ids, inputs, plans), {"u": replace(first[0], id=ids[0], name="u")}
            case "Window":
                return Window((3000 + self.at,), (outputs[rest],), plans[0]), outputs
            case "Limit":
                return Limit(5, plans[0]), outputs
        return Join(word, predicate(rest, outputs) if rest else None, *plans), outputs


def _cases() -> list[tuple[str, str]]:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*.txt")))
    parts = re.split(r"^== (.*)$", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def _read(text: str) -> tuple[Case, list[str]]:
    told = re.findall(r"^told (.*)$", text, flags=re.M)
    case = read_case(re.sub(r"^told .*\n", "", text, flags=re.M), JoinReader)
    return replace(case, query=replace(case.query, stage="late")), told


@pytest.mark.parametrize("text", [pytest.param(text, id=title) for title, text in _cases()])
def test_fixture(text: str) -> None:
    case, told = _read(text)
    decision = decide(case.query, case.stats)
    assert {id_: mask.tolist() for id_, mask in all_kept(decision).items()} == case.kept, str(case.query)
    names = {scan.id: scan.table for scan in case.query.scans()}
    summaries = [ScanSummary(names[id_], "parquet", joins=joins) for id_, joins in _joins(decision).items()]
    assert sorted(line for summary in summaries for line in join_lines(summary)) == sorted(told)
    reasons = [reason for scan in decision.values() for reason in scan.reasons]
    said = sorted((reason.code, reason.text) for reason in reasons)
    wanted = sorted(why.partition(": ")[::2] for why in case.why)
    assert [code for code, _ in said] == [code for code, _ in wanted], said
    for code, words in wanted:
        assert any(code == c and words in text for c, text in said), (code, words, said)


# The paper.

DATES = columns_of("date_sk int, year int")
DATE_DIM = (
    "date_sk: 3000..5000, year: 1995..2000",
    "date_sk: 1000..6000, year: 1990..2002",
    "date_sk: 7000..12000, year: 2005..2018",
)


@pytest.mark.parametrize(
    ("where", "satisfying", "ranges", "share"),
    [
        ("year <= 1995", [0, 1], [(1000, 6000)], 45),
        ("year >= 2003 AND year <= 2004", [], [], 0),
        ("year > 2010", [2], [(7000, 12000)], 45),
    ],
)
def test_table_2(where: str, satisfying: list[int], ranges: list[tuple[int, int]], share: int) -> None:
    names = {c.name: Column(c.id, c.name, c.type) for c in DATES}
    stats = file_stats([entry(text, DATES) for text in DATE_DIM], DATES)
    scan = Scan(1, "date_dim", "parquet", "", DATES)
    decision = run_passes(Query(1, "early", Filter(predicate(where, names), scan)), {1: stats})
    assert np.flatnonzero(kept(decision)).tolist() == satisfying
    found = range_of(names["date_sk"], context_of(stats, {c.id: c for c in DATES}))
    assert found is not None
    values = values_in(found, np.flatnonzero(kept(decision)))
    assert values is not None
    assert values.pairs() == ranges
    assert sum(high - low for low, high in ranges) * 100 // (12000 - 1000) == share


def test_figure_4_range_sets_give_a_smaller_set() -> None:
    """The ranges of partitions 1 and 2 of figure 4b cover 30 percent fewer values than their zone maps."""
    int_ = parse_type("double")  # whole numbers would make one range of [4000, 5000] and [5000, 6000] anyway
    finer = range_set(int_, [(3000.0, 3500.0), (4000.0, 5000.0), (1000.0, 2000.0), (5000.0, 6000.0)])
    assert finer.pairs() == [(1000, 2000), (3000, 3500), (4000, 6000)]
    assert sum(high - low for low, high in finer.pairs()) / (6000 - 1000) == pytest.approx(0.7)


def test_figure_8_two_tables_exchange_two_messages() -> None:
    assert len(message_order([(1, 2)])) == 2


def test_figure_8_a_star_exchanges_six_messages_in_two_epochs() -> None:
    steps = message_order([(1, 2), (2, 3), (2, 4)])
    assert len(steps) == 6
    assert set(steps[:3]) == {Message(i, 2) for i in (1, 3, 4)}
    assert set(steps[3:]) == {Message(2, i) for i in (1, 3, 4)}


def test_figure_8_two_cycles_become_a_tree_of_groups() -> None:
    edges = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 2), (4, 6), (5, 6), (6, 7)]
    groups = [{1}, {2, 3, 5}, {3, 4, 5}, {4, 5, 6}, {7}]
    assert [set(group) for group in _groups_of(edges)] == groups
    steps = message_order(edges)
    assert steps[:2] == [Message(1, 2), Message(7, 6)]
    assert steps[-2:] == [Message(6, 7), Message(2, 1)]
    among = [{e.sender for e in step.exchanges} for step in steps if isinstance(step, Cycle)]
    # Both outer groups, the root between them, and the outer ones once more on the way back.
    assert among == [{2, 3, 5}, {4, 5, 6}, {3, 4, 5}, {4, 5, 6}, {2, 3, 5}]


@pytest.mark.parametrize(
    "edges",
    [
        [(1, 2), (2, 3), (3, 4), (4, 5)],
        [(1, 2), (1, 3), (3, 4), (3, 5), (6, 7)],
        [(1, 2), (2, 3), (3, 1)],
        [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 1)],
        [(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 6), (6, 4)],
        [(a, b) for a in range(1, 6) for b in range(a + 1, 6)],
    ],
)
def test_every_join_is_used_in_both_directions(edges: list[tuple[int, int]]) -> None:
    steps = message_order(edges)
    told = {e for step in steps for e in (step.exchanges if isinstance(step, Cycle) else (step,))}
    assert told == {Message(a, b) for pair in edges for a, b in (pair, pair[::-1])}
    if not any(isinstance(step, Cycle) for step in steps):
        assert len(steps) == 2 * len(edges)


def _groups_of(edges: list[tuple[int, int]]) -> list[Group]:
    near = order._neighbours(edges)
    return [group for tables in order._components(near) for group in order._groups(tables, near)]


def talk_of(text: str) -> Exchange:
    case, _ = _read(text)
    everything = {id_: np.ones(stats.count, np.bool_) for id_, stats in case.stats.items()}
    known = PassInput.of(case.query, case.stats, everything, Tuning(filter_seconds=600))
    talk = Exchange(known, known.analysis.links)
    talk.run()
    return talk


def test_a_star_of_real_tables_needs_six_messages() -> None:
    talk = talk_of("""
Inner c = l_c
  Inner b = l_b
    Inner a = l_a
      Scan hub [l_a int, l_b int, l_c int]
      Scan one [a int]
    Scan two [b int]
  Scan three [c int]
files hub
  l_a: 1..5, l_b: 1..5, l_c: 1..5 -> kept
files one
  a: 1..5 -> kept
files two
  b: 1..5 -> kept
files three
  c: 1..5 -> kept
""")
    assert talk.messages == 6


def test_a_cycle_is_told_only_so_often() -> None:
    """Section 10.2: in a cycle each round may rule out one more file, and the number of rounds is bounded."""
    files = 40
    step = "\n".join(f"  {{0}}: {i}..{i}, {{1}}: {i}..{i} -> kept" for i in range(files))
    around = "\n".join(f"  {{0}}: {i}..{i}, {{1}}: {(i + 1)}..{(i + 1)} -> kept" for i in range(files))
    talk = talk_of(f"""
Inner t_c = r_c AND t_b = s_b
  Inner r_a = s_a
    Scan r [r_a int, r_c int]
    Scan s [s_a int, s_b int]
  Scan t [t_b int, t_c int]
files r
{around.format("r_a", "r_c")}
files s
{step.format("s_a", "s_b")}
files t
{step.format("t_b", "t_c")}
""")
    left = talk.narrowed()
    assert 6 * ROUNDS == talk.messages < 6 * files  # without the bound there would be a round for each file
    assert all(0 < np.count_nonzero(mask) < files for mask in left.values())


def test_figure_7_tpcds_35() -> None:
    """The dates tell the sales, their customers meet in a union and a semi join, and the address hears of it."""
    case, _ = _read("""
Inner ca_sk = c_addr
  LeftSemi c_sk = k
    LeftSemi c_sk = ss_cust
      Scan customer [c_sk int, c_addr int]
      Inner ss_date = d1_sk
        Scan store_sales [ss_cust int, ss_date int]
        Filter d1_year = 2002
          Scan d1 [d1_sk int, d1_year int]
    Project u AS k
      Union
        Project ws_cust
          Inner ws_date = d2_sk
            Scan web_sales [ws_cust int, ws_date int]
            Filter d2_year = 2002
              Scan d2 [d2_sk int, d2_year int]
        Project cs_cust
          Inner cs_date = d3_sk
            Scan catalog_sales [cs_cust int, cs_date int]
            Filter d3_year = 2002
              Scan d3 [d3_sk int, d3_year int]
  Scan customer_address [ca_sk int]
files customer
  c_sk: 1..100, c_addr: 1..10        -> kept
  c_sk: 101..200, c_addr: 11..20     -> skipped
  c_sk: 201..300, c_addr: 21..30     -> kept
  c_sk: 301..400, c_addr: 31..40     -> skipped
files store_sales
  ss_cust: 1..90, ss_date: 10..12    -> kept
  ss_cust: 210..250, ss_date: 9..10  -> kept
  ss_cust: 1..999, ss_date: 1..9     -> skipped
  ss_cust: 301..310, ss_date: 10..11 -> skipped
files web_sales
  ws_cust: 50..60, ws_date: 10..19   -> kept
  ws_cust: 1..999, ws_date: 20..29   -> skipped
files catalog_sales
  cs_cust: 220..225, cs_date: 11..11 -> kept
  cs_cust: 1..999, cs_date: 20..29   -> skipped
files d1
  d1_sk: 1..9, d1_year: 2001..2001   -> skipped
  d1_sk: 10..19, d1_year: 2002..2002 -> kept
files d2
  d2_sk: 1..9, d2_year: 2001..2001   -> skipped
  d2_sk: 10..19, d2_year: 2002..2002 -> kept
files d3
  d3_sk: 1..9, d3_year: 2001..2001   -> skipped
  d3_sk: 10..19, d3_year: 2002..2002 -> kept
files customer_address
  ca_sk: 1..10                       -> kept
  ca_sk: 11..20                      -> skipped
  ca_sk: 21..30                      -> kept
  ca_sk: 31..40                      -> skipped
""")
    decision = decide(case.query, case.stats)
    assert {id_: mask.tolist() for id_, mask in all_kept(decision).items()} == case.kept
    names = {scan.id: scan.table for scan in case.query.scans()}
    told = {(join.sender, names[id_]) for id_, joins in _joins(decision).items() for join in joins}
    assert {("d1", "store_sales"), ("d2", "web_sales"), ("d3", "catalog_sales")} <= told
    assert ("customer", "customer_address") in told
    assert ("web_sales, catalog_sales", "customer") in told


# What Spark reads once.


def part_and_item() -> tuple[Scan, Scan, Join, dict[int, FileStats]]:
    columns = columns_of("k int"), columns_of("n int, k2 int")[1:]
    part, item = (Scan(i, name, "parquet", f"fp-{name}", c) for i, name, c in zip((1, 2), "pl", columns, strict=True))
    on = predicate("k = k2", {"k": Column(1, "k", parse_type("int")), "k2": Column(2, "k2", parse_type("int"))})
    stats = {
        1: file_stats([entry("k: 1..5", part.columns), entry("k: 50..60", part.columns)], part.columns),
        2: file_stats([entry("k2: 1..9", item.columns), entry("k2: 10..19", item.columns)], item.columns),
    }
    return part, item, Join("Inner", on, part, item), stats


def test_a_copy_that_spark_prunes_by_reads_what_its_original_reads() -> None:
    part, item, join, stats = part_and_item()
    copy = replace(part, id=3)
    filtered = Filter(
        predicate("n > 0", {"n": Column(2, "k2", parse_type("int"))}), item, (Opaque(PRUNING_COPY, (copy,)),)
    )
    query = Query(1, "late", replace(join, right=filtered))
    decision = decide(query, {**stats, 3: stats[1]})
    assert {id_: mask.tolist() for id_, mask in all_kept(decision).items()} == {
        1: [True, False],
        2: [True, False],
        3: [True, False],
    }
    assert rests_on(decision[3]) == {1, 2}
    assert decision[3].joins == decision[1].joins


def test_scans_that_read_the_same_keep_the_same_files() -> None:
    """One of the two uses is narrowed by more, but then Spark could not read once for both."""
    part, _, join, stats = part_and_item()
    again = replace(part, id=3, columns=(replace(part.columns[0], id=31),))
    query = Query(1, "late", Union((90,), ((1,), (31,)), (join, again)))
    decision = decide(query, {**stats, 3: stats[1]})
    assert {id_: mask.tolist() for id_, mask in all_kept(decision).items()} == {
        1: [True, True],
        2: [True, False],
        3: [True, True],
    }
    other = replace(again, listing="another version")
    decision = run_passes(replace(query, plan=Union((90,), ((1,), (31,)), (join, other))), {**stats, 3: stats[1]})
    assert kept(decision).tolist() == [True, False]


def test_what_a_choice_rests_on_is_told() -> None:
    _, _, join, stats = part_and_item()
    decision = decide(Query(1, "late", join), stats)
    assert {id_: rests_on(scan) for id_, scan in decision.items()} == {1: frozenset({2}), 2: frozenset({1})}


def test_the_early_step_does_not_look_at_joins() -> None:
    _, _, join, stats = part_and_item()
    decision = decide(Query(1, "early", join), stats)
    assert all(mask.all() for mask in all_kept(decision).values())
    assert isinstance(next(iter(walk(join))), Join)


def test_without_time_nothing_is_told() -> None:
    _, _, join, stats = part_and_item()
    decision = run_passes(Query(1, "late", join), stats, tuning=Tuning(filter_seconds=0))
    assert all(mask.all() for mask in all_kept(decision).values())
    assert "out-of-time" in {reason.code for scan in decision.values() for reason in scan.reasons}
