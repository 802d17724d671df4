"""In which steps scans are looked at: what the early one narrowed again in the late one, if the query has a join."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from tools.spark_metrics import files_read

import secateur
from secateur.decision.merge import Decision
from secateur.decision.parts import Keep
from secateur.passes import PASSES, Pass, run_passes
from secateur.passes.contract import PassInput, PassResult
from secateur.plan.nodes import Query
from secateur.session import planner
from secateur.stats.file_stats import FileStats


def only_the_first(known: PassInput) -> PassResult:
    """Of every scan of several files the first that is kept."""
    parts: list[tuple[int, Keep]] = []
    for scan in known.query.scans():
        if scan.id in known.kept and scan.files > 1:
            mask = np.zeros(scan.files, np.bool_)
            mask[np.flatnonzero(known.kept[scan.id])[:1]] = True
            parts.append((scan.id, Keep(mask)))
    return parts


@pytest.fixture(autouse=True)
def stages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps in which a query was looked at, as they come; with a late pass of its own."""
    seen: list[str] = []
    passes = (*PASSES, Pass("test", only_the_first, stages=("late",)))

    def run(query: Query, stats: Mapping[int, FileStats], **options: Any) -> Decision:
        seen.append(query.stage)
        return run_passes(query, stats, **{**options, "enabled": None, "passes": passes})

    monkeypatch.setattr(planner, "run_passes", run)
    return seen


@pytest.fixture(params=["parquet", "delta", "iceberg"])
def fact(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> str:
    """Eight files with ten ids each, which the first filter cuts to four."""
    frame = spark.range(0, 80, 1, 8)
    if request.param == "iceberg":
        name = f"ice.tests.late{abs(hash(tmp_path)) % 10**9}"
        frame.writeTo(name).tableProperty("write.distribution-mode", "none").create()
        return name
    frame.write.format(request.param).save(str(tmp_path / "fact"))
    return f"{request.param}.`{tmp_path / 'fact'}`"


def test_a_late_pass_narrows_what_the_early_step_left(spark: SparkSession, pruner: secateur.Pruner, fact: str) -> None:
    spark.range(1000).selectExpr("id AS key").createOrReplaceTempView("keys")
    secateur.collect(spark, spark.sql(f"SELECT * FROM {fact}"))
    frame = spark.sql(f"SELECT id FROM {fact} JOIN keys ON id = key WHERE id >= 40")
    rows = sorted(row.id for row in frame.collect())
    assert len(rows) == 10
    assert rows[0] in (40, 50, 60, 70)
    assert files_read(frame) == 1
    (scan,) = (s for s in pruner.last.scans if s.files_total == 8)  # type: ignore[union-attr]
    assert scan.files_kept == 1
    counts = {p.name: (p.files_before, p.files_after) for p in scan.passes}
    assert counts["filter"] == (8, 4)
    assert counts["test"] == (4, 1)


def test_without_a_join_it_is_decided_once(spark: SparkSession, pruner: secateur.Pruner, fact: str) -> None:
    secateur.collect(spark, spark.sql(f"SELECT * FROM {fact}"))
    assert spark.sql(f"SELECT id FROM {fact} WHERE id >= 40").count() == 40


@pytest.mark.parametrize("fact", ["parquet"], indirect=True)
@pytest.mark.parametrize(("by_cost", "expected"), [("false", ["late"]), ("true", ["early", "late"])])
def test_plain_files_of_a_join_are_looked_at_once_unless_spark_reorders_joins(
    spark: SparkSession, pruner: secateur.Pruner, fact: str, by_cost: str, expected: list[str], stages: list[str]
) -> None:
    spark.range(1000).selectExpr("id AS key").createOrReplaceTempView("keys")
    secateur.collect(spark, spark.sql(f"SELECT * FROM {fact}"))
    stages.clear()
    spark.conf.set("spark.sql.cbo.enabled", by_cost)
    try:
        frame = spark.sql(f"SELECT id FROM {fact} JOIN keys ON id = key WHERE id >= 40")
        assert len(frame.collect()) == 10
        assert files_read(frame) == 1
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")
    assert stages == expected
