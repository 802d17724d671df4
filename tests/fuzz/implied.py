"""Implied predicates against Spark: whatever satisfies a condition has to satisfy what secateur says that it implies.

``python -m tests.fuzz.implied 3000`` puts thousands of random conditions to Spark, over the tables and in the words of
the other campaigns; the second argument is the seed. Each is checked twice. In one query, row by row: is there a row
for which the condition is TRUE and the implied one is not? And for some of them as users see it: does the query give
the same rows with the implied predicate handed to Parquet as without?
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur import decide
from secateur.passes import run_passes
from secateur.query.expressions import Column, Compare, Expression, IsNull, Literal, Or
from tests.fuzz import numbers, test_strings, test_times
from tests.fuzz.campaign import Conf, settings
from tests.fuzz.harness import Bench


@dataclass
class Tally:
    """What came of the conditions of one campaign."""

    asked: int = 0
    implied: int = 0
    run: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.asked} asked, {self.implied} imply something, {self.run} run, {len(self.wrong)} wrong"


def check(bench: Bench, conditions: Sequence[str], tally: Tally, *, run: int) -> None:
    """Adds the conditions to the tally; ``run``: how many of them are run as queries."""
    bench.spark.conf.set("spark.secateur.passes", "implied")
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
        seen.extend(each.predicate for found in decision.implied.values() for each in found)
        return decision

    try:
        with patch.object(decide, "run_passes", watch):
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


Campaign = tuple[Callable[[Random], Sequence[pa.Table]], Callable[[Random], str], Sequence[Conf]]
_MODES = [{"spark.sql.ansi.enabled": "true"}, {"spark.sql.ansi.enabled": "false"}]


def _number(rng: Random) -> str:
    return numbers.Generator(rng.randrange(2**32)).predicate(rng.choice((1, 1, 2)))


CAMPAIGNS: dict[str, Campaign] = {
    "nasty numbers": (lambda rng: numbers.tables(rng.randrange(2**32), nasty=True), _number, _MODES),
    "mild numbers": (lambda rng: numbers.tables(rng.randrange(2**32), nasty=False), _number, _MODES),
    "times": (test_times.nasty, test_times.predicate, test_times.CONFS),
    "strings": (test_strings.nasty, test_strings.predicate, _MODES),
}


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    logging.getLogger("SQLQueryContextLogger").disabled = True
    pruner = secateur.attach(spark, {"stats.auto": False})
    total, rounds, wrong = Tally(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while total.asked < count:
            name = list(CAMPAIGNS)[rounds % len(CAMPAIGNS)]
            tables, generate, confs = CAMPAIGNS[name]
            rng, conf = Random(f"{seed}/{rounds}"), confs[rounds // len(CAMPAIGNS) % len(confs)]
            bench = Bench(spark, pruner, Path(folder) / f"r{rounds}", tables(rng))
            with settings(spark, conf):
                check(bench, [generate(rng) for _ in range(100)], total, run=10)
            rounds += 1
            print(f"seed {seed} round {rounds} {name} {dict(conf)}: {total}", flush=True)
            wrong += len(total.wrong)
            while total.wrong:
                print("WRONG", dict(conf), total.wrong.pop(), flush=True)
    spark.stop()
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
