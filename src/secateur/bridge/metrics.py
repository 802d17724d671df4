"""What a query really read, from Spark's own metrics: for tests, measurements and the demo."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def files_read(frame: DataFrame) -> int:
    """How many files the scans of a data frame opened when it last ran."""
    return sum(_metric(scan, "numFiles") for scan in _scans(frame._jdf.queryExecution().executedPlan()))


def rows_read(frame: DataFrame) -> int:
    """How many rows its scans produced, after row-group skipping and before its filters."""
    return sum(_metric(scan, "numOutputRows") for scan in _scans(frame._jdf.queryExecution().executedPlan()))


def _metric(scan: Any, name: str) -> int:
    found = scan.metrics().get(name)
    return int(found.get().value()) if found.isDefined() else 0


def _scans(plan: Any) -> list[Any]:
    """The file scans of an executed plan, through adaptive stages, reused exchanges counted once, and subqueries."""
    kind = plan.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _scans(plan.executedPlan())
    if kind in ("ShuffleQueryStageExec", "BroadcastQueryStageExec", "TableCacheQueryStageExec", "ResultQueryStageExec"):
        return _scans(plan.plan())
    if kind == "FileSourceScanExec":
        return [plan]
    if kind in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        return []
    below = _items(plan.children()) + _items(plan.subqueries())
    return [scan for child in below for scan in _scans(child)]


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]
