"""Implied predicates against Spark: whatever satisfies a condition has to satisfy what secateur says that it implies.

``python -m tests.fuzz.implied 3000`` puts thousands of random conditions to Spark, over the tables and in the words of
the long campaign; the second argument is the seed. Each is checked twice. In one query, row by row: is there a row
for which the condition is TRUE and the implied one is not? And for some of them as users see it: does the query give
the same rows with the implied predicate handed to Parquet as without?
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur.decision.parts import AddPredicate
from secateur.passes import run_passes
from secateur.passes.filter import implied_predicates
from secateur.plan.expressions import Column, Compare, Expression, IsNull, Literal, Or
from secateur.session import planner
from tests.fuzz.__main__ import session
from tests.fuzz.campaign import setting_of
from tests.fuzz.generate import Generator
from tests.fuzz.harness import Bench
from tests.fuzz.regressions import Setting, bench_of
from tests.fuzz.tables import tables


@dataclass
class Tally:
    """What came of the conditions of one campaign."""

    asked: int = 0
    implied: int = 0
    run: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.asked} asked, {self.implied} imply something, {self.run} run, {len(self.wrong)} wrong"


@patch.object(implied_predicates, "PAGE_ROWS", -1)  # also of small files, in which there is nothing to skip
def check(bench: Bench, conditions: Sequence[str], tally: Tally, *, run: int) -> None:
    """Adds the conditions to the tally; ``run``: how many of them are run as queries."""
    bench.spark.conf.set("spark.secateur.passes", "implied_predicates")
    told: list[tuple[str, str]] = []
    for condition in conditions:
        tally.asked += 1
        if implied := _implied(bench, condition):
            told.append((condition, " AND ".join(f"({as_sql(e)})" for e in implied)))
    tally.implied += len(told)
    tally.wrong += _broken(bench, told)
    for condition, implied_sql in told[:run]:
        tally.run += 1
        with bench.pruner.paused():
            expected = _rows(bench, condition)
        if expected is not None and _rows(bench, condition) != expected:
            tally.wrong.append(f"other rows: {condition}   implied {implied_sql}")


_TYPED = {
    "date": "date_from_unix_date({})",
    "timestamp": "timestamp_micros({})",
    "timestamp_ntz": "timestampadd(MICROSECOND, {}, timestamp_ntz'1970-01-01')",
}


def as_sql(e: Expression) -> str:
    """A plain condition in SQL."""
    match e:
        case Or(left, right):
            return f"({as_sql(left)} OR {as_sql(right)})"
        case IsNull(child):
            return f"{as_sql(child)} IS NULL"
        case Compare(op, left, right):
            return f"{as_sql(left)} {op} {as_sql(right)}"
        case Column(_, name):
            return name
        case Literal(bytes(text)):
            return f"CAST(unhex('{text.hex()}') AS STRING)"
        case Literal(value, type_):
            return _TYPED.get(type_.name, "CAST('{}' AS " + str(type_) + ")").format(str(value))
    raise AssertionError(f"{e} is not plain")


def _implied(bench: Bench, condition: str) -> list[Expression]:
    seen: list[Expression] = []

    def watch(*args: Any, **more: Any) -> Any:
        decision = run_passes(*args, **more)
        seen.extend(each.predicate for scan in decision.values() for each in scan.all(AddPredicate))
        return decision

    try:
        with patch.object(planner, "run_passes", watch):
            bench.pruner.explain(f"SELECT * FROM {bench.view} WHERE {condition}")
    except PySparkException:
        return []
    return seen


def _broken(bench: Bench, told: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Those of which Spark finds a row that satisfies the condition and not what is implied."""
    if not told:
        return
    columns = ", ".join(
        f"max(coalesce({condition}, false) AND NOT coalesce({implied}, false)) AS b{i}"
        for i, (condition, implied) in enumerate(told)
    )
    try:
        with bench.pruner.paused():
            (row,) = bench.spark.sql(f"SELECT {columns} FROM {bench.view}").collect()
    except PySparkException:  # an error on some row, which is no verdict
        if len(told) > 1:
            middle = len(told) // 2
            yield from _broken(bench, told[:middle])
            yield from _broken(bench, told[middle:])
        return
    for i, (condition, implied) in enumerate(told):
        if row[i]:
            yield f"not implied: {condition}   said {implied}"


def _rows(bench: Bench, condition: str) -> list[Any] | None:
    """How many rows each file gives, None if the query fails."""
    query = f"SELECT f, count(*) FROM {bench.view} WHERE {condition} GROUP BY f ORDER BY f"
    try:
        return bench.spark.sql(query).collect()
    except PySparkException:
        return None


def round_of(
    spark: SparkSession, pruner: secateur.Pruner, folder: Path, seed: str, number: int, tally: Tally
) -> Setting:
    """Checks a hundred conditions over a table and in a setting of their own."""
    rng = Random(f"implied {seed}/{number}")
    setting, nasty = setting_of(number)
    setting = replace(setting, lens="plain")  # what is implied goes to Parquet, which has the files' own statistics
    files = tables(rng, nasty=nasty)
    conditions = [str(p) for p in Generator(rng, files, nasty=nasty).predicates(100)]
    with setting.of(spark):
        check(bench_of(spark, pruner, folder, files, setting), conditions, tally, run=10)
    return setting


def main() -> None:
    count, seed = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "0"
    spark = session()
    pruner = secateur.attach(spark, {"stats.auto": False})
    total, number, wrong = Tally(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while total.asked < count:
            setting = round_of(spark, pruner, Path(folder), seed, number, total)
            print(f"implied: seed {seed} round {number} {setting}: {total}", flush=True)
            wrong += len(total.wrong)
            while total.wrong:
                print("WRONG", setting, total.wrong.pop(), flush=True)
            number += 1
    spark.stop()
    print(f"implied: {'FAILED' if wrong else 'passed'}: {total}, {wrong} wrong in all")
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
