"""The evaluator against Spark itself: what Spark says of every row may not contradict a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from secateur.evaluate.evaluator import evaluate
from secateur.plan.expressions import Expression
from tests.evaluate.generate import COLUMNS, Generator, Row, literal, sql, truth
from tests.evaluate.language import file_stats

FILES, PREDICATES = 60, 150


def spark_table(spark: SparkSession, files: Sequence[Sequence[Row]], folder: Path) -> DataFrame:
    """The rows as a table with a column ``file``; read back from Parquet, so that Spark generates code for it."""
    rows = [(at, number, row) for at, file in enumerate(files) for number, row in enumerate(file)]
    values = ", ".join(f"({at}, {n}, {', '.join(literal(row[c.id], c.type) for c in COLUMNS)})" for at, n, row in rows)
    names = ", ".join(c.name for c in COLUMNS)
    spark.sql(f"SELECT * FROM VALUES {values} AS t(file, row, {names})").coalesce(1).write.parquet(str(folder))
    return spark.read.parquet(str(folder))


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # collect() leaves its socket to the collector
@pytest.mark.parametrize("seed", [1, 2])
def test_spark_agrees(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = Generator(Random(seed))
    files = [draw.rows() for _ in range(FILES)]
    stats = file_stats([draw.entry(rows) for rows in files], COLUMNS)
    predicates: list[Expression] = [draw.predicate(depth=3) for _ in range(PREDICATES)]
    verdicts = [evaluate(p, stats, {c.id: c for c in COLUMNS}) for p in predicates]
    table = spark_table(spark, files, tmp_path / "table")
    columns = [f"{sql(p)} AS p{i}" for i, p in enumerate(predicates)]
    for found in table.selectExpr("file", "row", *columns).collect():
        for i, (predicate, verdict) in enumerate(zip(predicates, verdicts, strict=True)):
            at, result = found["file"], found[f"p{i}"]
            told = f"{sql(predicate)} is {result} on row {found['row']} of file {at}"
            assert result == truth(predicate, files[at][found["row"]]), f"the tests' own meaning of SQL is off: {told}"
            assert verdict.may[at] or result is not True, f"wrong skip: {told}"
            assert verdict.can_false[at] or result is not False, f"wrong 'never FALSE': {told}"
            assert verdict.can_null[at] or result is not None, f"wrong 'never NULL': {told}"
