"""Reasons and cut-offs on real tables: what the summary says of each condition, and that the answer stays the same."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.evaluate.expression_ranges import EvalContext
from secateur.evaluate.rules import RULES
from secateur.evaluate.value_range import ValueRange
from secateur.passes.filter import tree
from secateur.plan.expressions import Call
from tests.fixtures import Same


@pytest.fixture
def table(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> Path:
    path = lake / "t"
    path.mkdir()
    for i in range(40):
        data = {"a": [10 * i, 10 * i + 9], "s": [f"s{i}", f"t{i}"], "f": [0.5, float(i)]}
        pq.write_table(pa.table(data), path / f"{i:02}.parquet")
    secateur.collect(spark, str(path))
    return path


def test_each_condition_has_its_reason(spark: SparkSession, table: Path, same: Same) -> None:
    condition = "a >= 350 AND soundex(s) <> 'x' AND f < 1e9 AND f IS NOT NULL AND soundex(s) <> 'y' AND f > -1"
    done = same(lambda: spark.read.parquet(str(table)).where(condition))
    assert done.files == 5
    (scan,) = done.summary.scans
    # Both conditions with soundex have the same reason, which is told once.
    assert [reason.code for reason in scan.reasons] == ["unsupported-expression", "nan-unknown"]
    assert "soundex" in scan.reasons[0].text


def test_a_cut_off_is_told_and_changes_no_answer(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, same: Same, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(call: Call, context: EvalContext) -> ValueRange | None:
        start = thread_time()
        while thread_time() - start < 0.005:
            pass
        return None

    monkeypatch.setitem(RULES, "SoundEx", slow)
    monkeypatch.setattr(tree, "PROBES", (4, 8))
    monkeypatch.setattr(tree, "WORTH_CUTTING", 0.0)
    monkeypatch.setattr(tree, "RUN_SECONDS", 1e-9)
    condition = "soundex(s) <> 'x' AND a >= 200"
    done = same(lambda: spark.read.parquet(str(table)).where(condition))
    assert done.files == 20
    (reason,) = done.summary.scans[0].reasons
    assert reason.code == "cut-off"
    assert "soundex" in reason.text
    spark.sql("SET spark.secateur.filter.file.ms=1000000")
    done = same(lambda: spark.read.parquet(str(table)).where(condition))
    assert done.files == 20
    assert "cut-off" not in [reason.code for reason in done.summary.scans[0].reasons]
