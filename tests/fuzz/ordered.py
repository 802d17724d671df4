"""Random LIMITs, ORDER BYs and windows over three formats, with secateur and without: no other rows may come out.

``python -m tests.fuzz.ordered 500`` runs five hundred of them; the second argument is the seed. Each round has a lake
(:mod:`tests.fuzz.formats`) and settings of its own, each query (:mod:`tests.fuzz.sorted_queries`) its own choice of
techniques. A probe is made wherever there can be one, whatever it costs.

Where ties leave open which rows come out, what is determined is compared (the sort keys, in order), and the rows
have to be among those that come out without the limit.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from secateur.passes.joins import join_keys
from secateur.passes.limits import topk_probe
from secateur.session.options import PASS_NAMES
from tests.fuzz.campaign import setting_of
from tests.fuzz.formats import write_lake
from tests.fuzz.generate import Generator
from tests.fuzz.regressions import settings
from tests.fuzz.sorted_queries import RANKS, Queries, Question
from tests.fuzz.tables import tables

_REFUSED = (PySparkException, Py4JJavaError)
_TECHNIQUES = ("", "", "", "filter,limit,topk,window_topk", "topk,window_topk,limit")
_FOR_ORDER = (*_TECHNIQUES, "filter,topk_probe", "topk_probe")
_SORTED = frozenset({"topk", "topk_probe"})
MEANT = {"limit": frozenset({"limit"}), "order": _SORTED, **dict.fromkeys(RANKS, _SORTED | {"window_topk"})}
"""Which techniques are meant for which kind of question; a window over all rows may become a LIMIT."""
_PER_LAKE = 40
_QUICK = {"spark.log.level": "OFF", "spark.databricks.delta.snapshotPartitions": "2", "spark.default.parallelism": "2"}


@dataclass
class Tally:
    """What came of the queries of one campaign."""

    run: int = 0
    refused: int = 0
    open: int = 0
    """How many left open which rows come out, and gave others."""
    narrowed: int = 0
    by: Counter[str] = field(default_factory=Counter)
    """How many each technique narrowed."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many there were of each kind of question,"""
    meant: Counter[str] = field(default_factory=Counter)
    """and how many of these were narrowed by a technique that is meant for them."""
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        by = ", ".join(f"{count} by {name}" for name, count in sorted(self.by.items()))
        kinds = ", ".join(f"{self.meant[kind]} of {count} {kind}" for kind, count in sorted(self.kinds.items()))
        return (
            f"{self.run} run, {self.narrowed} narrowed ({by}), by what is meant for them {kinds}, "
            f"{self.open} with other rows of equal rank, {self.refused} refused, {len(self.wrong)} wrong"
        )


# Comparing ------------------------------------------------------------------------------------------------------------


def check(spark: SparkSession, pruner: secateur.Pruner, question: Question, tally: Tally) -> None:
    """Adds a query to the tally."""
    with pruner.paused():
        try:
            expected = _rows(spark, question.sql)
        except _REFUSED as refused:
            tally.refused += 1
            if any(word in str(refused) for word in ("PARSE_SYNTAX", "UNRESOLVED", "AMBIGUOUS")):
                raise
            return
    tally.run += 1
    try:
        found = _rows(spark, question.sql)
    except _REFUSED as refused:
        tally.wrong.append(f"{question.sql}\n  {refused}")
        return
    summary = pruner.last
    assert summary is not None
    used = techniques(summary)
    tally.narrowed += bool(used)
    tally.by.update(used)
    tally.kinds[question.kind] += 1
    tally.meant[question.kind] += bool(used & MEANT[question.kind])
    problem = _problem(spark, pruner, question, expected, found, tally)
    reasons = [*summary.reasons, *(reason for scan in summary.scans for reason in scan.reasons)]
    failed = [reason.code for reason in reasons if reason.code.endswith("failed")]
    if problem or failed:
        tally.wrong.append(f"{question.sql}\n  {problem} {failed}\n  {expected[:20]} became\n  {found[:20]}\n{summary}")


def techniques(summary: secateur.Summary) -> set[str]:
    """What took files away, before the query ran or while it did."""
    passes = {p.name for scan in summary.scans for p in scan.passes if p.files_after < p.files_before}
    steps = [step for scan in summary.scans for step in scan.runtime if step.files_after is not None]
    return passes | {step.name for step in steps if step.files_after != step.files_before}


def _rows(spark: SparkSession, sql: str) -> list[tuple[str, ...]]:
    """The rows as text; which of the two zeros it is may hang on which of them came first."""
    return [tuple("0.0" if repr(v) == "-0.0" else repr(v) for v in row) for row in spark.sql(sql).collect()]


def _problem(
    spark: SparkSession, pruner: secateur.Pruner, question: Question, expected: Any, found: Any, tally: Tally
) -> str:
    if (expected == found) if question.ordered else (sorted(expected) == sorted(found)):
        return ""
    if not question.open:
        return "other rows" if sorted(expected) != sorted(found) else "another order"
    if len(expected) != len(found):
        return f"{len(found)} rows, not {len(expected)}"
    if [row[: question.first] for row in expected] != [row[: question.first] for row in found]:
        return "other keys"
    with pruner.paused():
        extra = Counter(found) - Counter(_rows(spark, question.whole))
    tally.open += 1
    return f"rows that there are not: {list(extra)[:5]}" if extra else ""


# Rounds ---------------------------------------------------------------------------------------------------------------


@contextmanager
def probes_always() -> Iterator[None]:
    """Whatever is asked at run time is worth it: these tables are small."""
    with patch.object(topk_probe, "WORTH", 0), patch.object(join_keys, "WORTH", 0):
        yield


def round_of(
    spark: SparkSession,
    pruner: secateur.Pruner,
    folder: Path,
    seed: str,
    number: int,
    count: int,
    tally: Tally,
    files: int = 20,
) -> str:
    """So many queries over a lake and in a setting of their own, which it returns."""
    rng = Random(f"ordered {seed}/{number}")
    setting, nasty = setting_of(number)
    setting = replace(setting, compiled=number % 6 == 0)  # for a few rows compiling takes longer than running
    adaptive, cased = rng.random() < 0.5, rng.random() < 0.3
    write_lake(spark, folder / f"lake_{seed}_{number}", rng, nasty=nasty, files=files)
    generator = Generator(rng, tables(rng, nasty=nasty), nasty=nasty)
    queries = Queries(rng, lambda: str(generator.predicates(1)[0]), any_case=not cased)
    more = {"spark.sql.adaptive.enabled": str(adaptive).lower(), "spark.sql.caseSensitive": str(cased).lower()}
    said = f"{setting}, nasty={nasty}, adaptive={adaptive}, cased={cased}"
    with setting.of(spark), settings(spark, more), probes_always():
        for _ in range(count):
            question, likely = queries.question(), rng.choice((0.01, 0.3, 1.0))
            chosen = rng.choice(_FOR_ORDER if question.kind == "order" else _TECHNIQUES)
            spark.conf.set("spark.secateur.passes", chosen or ",".join(PASS_NAMES))
            known = len(tally.wrong)
            with patch.object(topk_probe, "MATCHING", likely):
                check(spark, pruner, question, tally)
            if len(tally.wrong) > known:
                where = f"seed {seed} round {number}, {said}, passes {chosen or 'all'}, query {tally.run}"
                tally.wrong[-1] = f"{where}:\n{tally.wrong[-1]}"
    return said


def main() -> None:
    count, seed = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1"
    tally, number = Tally(), 0
    with tempfile.TemporaryDirectory() as folder:
        spark = local_session("fuzz", folder, _QUICK)
        pruner = secateur.attach(spark, {"stats.auto": False, "budget.ms": 60_000, "filter.budget.ms": 60_000})
        while tally.run < count:
            wrong = len(tally.wrong)
            said = round_of(spark, pruner, Path(folder), seed, number, min(_PER_LAKE, count - tally.run), tally)
            print(f"ordered: seed {seed} round {number} ({said}): {tally}", flush=True)
            for problem in tally.wrong[wrong:]:
                print(f"WRONG {problem}\n", flush=True)
            number += 1
        spark.stop()
    print(f"ordered: {'FAILED' if tally.wrong else 'passed'}: {tally}")
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
