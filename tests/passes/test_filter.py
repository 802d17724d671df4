"""The filter pass on text fixtures: the query, the files, what is kept, why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from secateur.passes import run_passes
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Alias, Column, Expression
from secateur.plan.nodes import Filter, Opaque, Plan, Project, Query, Scan
from secateur.stats.file_stats import FileStats
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references
from tests.passes.results import all_kept

FIXTURES = Path(__file__).with_name("filter")


@dataclass
class PlanReader:
    """Reads an indented plan; every column of every scan gets its own id."""

    lines: list[str]
    at: int = 0
    next_id: int = 1

    def plan(self) -> tuple[Plan, dict[str, Column]]:
        """The node at the current line with what it outputs."""
        line = self.lines[self.at]
        self.at += 1
        word, _, rest = line.strip().partition(" ")
        if word == "Scan":
            return self.scan(rest)
        below = []
        while self.at < len(self.lines) and _indent(self.lines[self.at]) > _indent(line):
            below.append(self.plan())
        plans, names = zip(*below, strict=True)
        outputs: dict[str, Column] = {name: column for known in names for name, column in known.items()}
        match word:
            case "Filter" | "Filter~":
                return Filter(predicate(rest, outputs), plans[0], order_sensitive=word[-1] == "~"), outputs
            case "Project" | "Project!" | "Project~":
                return self.project(rest, outputs, plans[0], word)
            case _:
                return Opaque(word, plans, order_sensitive=word[-1] == "~"), outputs

    def scan(self, text: str) -> tuple[Plan, dict[str, Column]]:
        name, columns, state = re.fullmatch(r"(\w+) \[(.*)\] ?(declined|decided|)", text).groups()  # type: ignore[union-attr]
        read = tuple(ScanColumn(self.next_id + i, c.name, c.type, c.kind) for i, c in enumerate(columns_of(columns)))
        declined = "not ours" if state == "declined" else ""
        scan = Scan(self.next_id, name, "parquet", "", read, declined=declined, decided=state == "decided")
        self.next_id += len(read)
        return scan, references(read)

    def project(self, text: str, known: Mapping[str, Column], child: Plan, word: str) -> tuple[Plan, dict[str, Column]]:
        outputs: list[Expression] = []
        names: dict[str, Column] = {}
        for part in re.split(r",\s*(?![^(]*\))", text):
            source, _, name = part.partition(" AS ")
            e = predicate(source, known)
            if name:
                self.next_id += 1
                e = Alias(1000 + self.next_id, name, e, e.type)
                names[name] = Column(e.id, name, e.type)
            elif isinstance(e, Column):
                names[source] = e
            outputs.append(e)
        return Project(tuple(outputs), child, word == "Project", order_sensitive=word[-1] == "~"), names


@dataclass(frozen=True)
class Case:
    query: Query
    stats: Mapping[int, FileStats]
    kept: Mapping[int, list[bool]]
    why: tuple[str, ...]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def read_case(text: str, reader: type[PlanReader] = PlanReader) -> Case:
    plan_lines, *tables = re.split(r"^files ", text, flags=re.M)
    whys = re.findall(r"^why (.*)$", text, flags=re.M)
    plan, _ = reader([line for line in plan_lines.splitlines() if line.strip()]).plan()
    query = Query(1, "early", plan)
    scans = {scan.table: scan for scan in query.scans()}
    stats, kept = {}, {}
    for table in tables:
        name, *lines = re.sub(r"^why .*$", "", table, flags=re.M).strip("\n").splitlines()
        files = [line.rpartition("->") for line in lines if "->" in line]
        scan = scans[name.strip()]
        stats[scan.id] = file_stats([entry(known, scan.columns) for known, _, _ in files], scan.columns)
        kept[scan.id] = [outcome.strip() == "kept" for _, _, outcome in files]
        assert {outcome.strip() for _, _, outcome in files} <= {"kept", "skipped"}
    return Case(query, stats, kept, tuple(whys))


def _cases() -> list[tuple[str, str]]:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*.txt")))
    parts = re.split(r"^== (.*)$", text, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("text", [pytest.param(text, id=title) for title, text in _cases()])
def test_fixture(text: str) -> None:
    case = read_case(text)
    decision = run_passes(case.query, case.stats)
    assert {id_: mask.tolist() for id_, mask in all_kept(decision).items()} == case.kept, str(case.query)
    told = [reason for scan in decision.values() for reason in scan.reasons]
    assert [reason.code for reason in told] == [why.partition(":")[0] for why in case.why]
    for reason, why in zip(told, case.why, strict=True):
        assert why.partition(": ")[2] in reason.text
