"""Data-induced predicates on text fixtures, and the examples of the paper."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from secateur.passes import run_passes
from secateur.query.expressions import Alias, Column, Expression
from secateur.query.plan import (
    Aggregate,
    Join,
    Limit,
    Plan,
    Union,
    Window,
)
from secateur.report.summary import ScanSummary
from secateur.report.text import told_by_joins
from tests.passes.test_filter import Case, PlanReader, _indent, read_case
from tests.reason.language import predicate

FIXTURES = Path(__file__).with_name("dips")
JOINS = ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")


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
    decision = run_passes(case.query, case.stats)
    assert {id_: mask.tolist() for id_, mask in decision.kept.items()} == case.kept, str(case.query)
    names = {scan.id: scan.table for scan in case.query.scans()}
    summaries = [ScanSummary(names[id_], "parquet", joins=joins) for id_, joins in decision.joins.items()]
    assert sorted(line for summary in summaries for line in told_by_joins(summary)) == sorted(told)
    reasons = [reason for reasons in decision.reasons.values() for reason in reasons]
    said = sorted((reason.code, reason.text) for reason in reasons)
    wanted = sorted(why.partition(": ")[::2] for why in case.why)
    assert [code for code, _ in said] == [code for code, _ in wanted], said
    for code, words in wanted:
        assert any(code == c and words in text for c, text in said), (code, words, said)
