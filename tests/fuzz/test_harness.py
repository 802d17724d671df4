"""The harness itself: it finds what is there, and it notices a wrong verdict."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.reason.verdict import Verdict
from tests.fuzz import harness
from tests.fuzz.harness import Bench


def test_truth_and_verdicts_are_compared_file_by_file(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [pa.table({"a": [i, i + 1, None], "b": [float(i), 2.0, -1.0]}) for i in range(0, 20, 2)]
    bench = Bench(spark, pruner, tmp_path / "small", files)
    predicates = ["a > 10", "a < b", "a <=> f", "nonsense(a)", "1 / (a - 3) > 0", "a IS NOT NULL OR b < 0"]
    judged = {j.sql: j for j in bench.judge(predicates)}
    assert {"a > 10", "a < b", "a <=> f", "a IS NOT NULL OR b < 0"} <= set(judged)
    assert judged["a > 10"].may.tolist() == [False] * 5 + [True] * 5
    assert judged["a > 10"].some_true.tolist() == [False] * 5 + [True] * 5
    assert not any(j.wrong_skip or j.wrong_must for j in judged.values())
    monkeypatch.setattr(harness, "evaluate", lambda predicate, stats, *more: Verdict(stats.count))
    (wrong,) = bench.judge(["a > 10"])
    assert wrong.wrong_skip
    assert wrong.wrong_must
