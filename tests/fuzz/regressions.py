"""What was once found wrong: a table of lines, ``regressions.jsonl``, each a setting, a small file and a predicate.

A line is JSON: ``wrong`` says what the verdict was (``skip``: a file with a matching row was ruled out; ``must``: one
with another row was said to match as a whole; ``rows``: a query returned others), ``file`` the values of its columns
(whose types are those of :data:`tests.fuzz.tables.COLUMNS`), ``lens`` how its statistics were looked at. The shrinker
prints such lines; ``test_regressions.py`` puts every one to Spark again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.harness import Bench, Judged
from tests.fuzz.lenses import lens
from tests.fuzz.tables import Values, arrow, read, written

LINES = Path(__file__).with_name("regressions.jsonl")
_NUMBERS = count()


@dataclass(frozen=True)
class Setting:
    """What a campaign varies beside tables and predicates."""

    ansi: bool = False
    zone: str = "UTC"
    lens: str = "plain"
    compiled: bool = True
    """Whether Spark compiles expressions or interprets them."""

    @contextmanager
    def of(self, spark: SparkSession) -> Iterator[None]:
        """Spark's settings for a while."""
        wanted = {
            "spark.sql.ansi.enabled": str(self.ansi).lower(),
            "spark.sql.session.timeZone": self.zone,
            "spark.sql.codegen.wholeStage": str(self.compiled).lower(),
            "spark.sql.codegen.factoryMode": "FALLBACK" if self.compiled else "NO_CODEGEN",
        }
        with settings(spark, wanted):
            yield


@contextmanager
def settings(spark: SparkSession, wanted: dict[str, str]) -> Iterator[None]:
    """Settings of Spark for a while."""
    before = {key: spark.conf.get(key) for key in wanted}
    try:
        for key, value in wanted.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, str(old))


@dataclass(frozen=True)
class Regression:
    """A predicate that was judged wrongly, with all that it takes to see it."""

    wrong: str
    sql: str
    file: Values
    setting: Setting = Setting()

    def __str__(self) -> str:
        """
        >>> str(Regression("skip", "i > 1", {"i": [1, None]}))
        '{"wrong": "skip", "where": "i > 1", "file": {"i": ["1", null]}, "ansi": false, "zone": "UTC", "lens": "plain"}'
        """
        line: dict[str, object] = {"wrong": self.wrong, "where": self.sql, "file": written(self.file)}
        line |= {"ansi": self.setting.ansi, "zone": self.setting.zone, "lens": self.setting.lens}
        return json.dumps(line if self.setting.compiled else line | {"compiled": False})


def parse(line: str) -> Regression:
    """A line of the table.

    >>> parse('{"wrong": "skip", "where": "i > 1", "file": {"i": ["1", null]}, "zone": "Asia/Kolkata"}').setting.zone
    'Asia/Kolkata'
    """
    found = json.loads(line)
    rest = {key: value for key, value in found.items() if key not in ("wrong", "where", "file")}
    return Regression(found["wrong"], found["where"], read(found["file"]), Setting(**rest))


def regressions() -> list[Regression]:
    """All lines."""
    return [parse(line) for line in LINES.read_text().splitlines() if line]


def bench_of(
    spark: SparkSession, pruner: secateur.Pruner, folder: Path, files: list[Values], setting: Setting
) -> Bench:
    """A table of these files, in a folder of its own."""
    tables = [arrow(file) for file in files]
    return Bench(spark, pruner, folder / f"b{next(_NUMBERS)}", tables, lens(setting.lens, files))


def replay(spark: SparkSession, pruner: secateur.Pruner, folder: Path, line: Regression) -> Judged | None:
    """The predicate judged anew, None if Spark refuses it."""
    with line.setting.of(spark):
        bench = bench_of(spark, pruner, folder, [line.file], line.setting)
        judged = next(bench.judge([line.sql]), None)
        if judged is not None and line.wrong == "rows":
            assert bench.answers([line.sql]) == []
        return judged
