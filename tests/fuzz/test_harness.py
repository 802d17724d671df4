"""The harness itself: it finds what is there, and it notices a wrong verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.decision.merge import Decision, ScanDecision, merged
from secateur.decision.parts import Keep
from secateur.evaluate.verdict import Verdict
from secateur.passes import run_passes
from secateur.plan.nodes import Query
from secateur.stats.file_stats import FileStats
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


def _emptied(scan: ScanDecision) -> ScanDecision:
    assert scan.kept is not None
    return merged(scan, [Keep(np.zeros_like(scan.kept))])


def test_rows_that_a_query_loses_are_noticed(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(spark, pruner, tmp_path / "lost", [pa.table({"a": [i, i + 1]}) for i in range(4)])
    assert bench.answers(["a > 1", "a = 3"]) == []

    def too_eager(query: Query, stats: dict[int, FileStats], **more: Any) -> Decision:
        decision = run_passes(query, stats, **more)
        return {id_: _emptied(scan) for id_, scan in decision.items()}

    monkeypatch.setattr(harness, "run_passes", too_eager)
    assert bench.answers(["a > 1", "a > 99"]) == ["a > 1"]
