"""What a query really read, from Spark's own metrics: for tests, measurements and the demo."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def files_read(frame: DataFrame) -> int:
    """How many files the scans of a data frame opened when it last ran."""
    return sum(_files(scan) for scan in _scans(frame._jdf.queryExecution().executedPlan()))


def rows_read(frame: DataFrame) -> int:
    """How many rows its scans produced, after row-group skipping and before its filters."""
    return sum(_metric(scan, "numOutputRows") for scan in _scans(frame._jdf.queryExecution().executedPlan()))


def planned_files(frame: DataFrame) -> set[str]:
    """The locations of the files that its Iceberg scans would read, if nothing narrows them at run time."""
    scans = _scans(frame._jdf.queryExecution().executedPlan())
    batches = [scan for scan in scans if scan.getClass().getSimpleName() == "BatchScanExec"]
    return {location for scan in batches for location in _locations(_items(scan.inputPartitions()))}


def _files(scan: Any) -> int:
    if scan.getClass().getSimpleName() != "BatchScanExec":
        return _metric(scan, "numFiles")
    # Iceberg's own number of files is that before values known at run time narrowed the scan.
    partitions = _items(scan.filteredPartitions())
    return len(_locations([p for group in partitions for p in (_items(group) if _is_sequence(group) else [group])]))


def _locations(partitions: list[Any]) -> set[str]:
    ours = [p for p in partitions if p.getClass().getSimpleName() == "SparkInputPartition"]
    return {task.file().location() for p in ours for task in p.taskGroup().tasks().toArray()}


def _is_sequence(value: Any) -> bool:
    return bool(value.getClass().getName().startswith("scala."))


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
    if kind in ("FileSourceScanExec", "BatchScanExec"):
        # What a scan waits for may read files of its own; keys of a broadcast are read for the join in any case.
        first = [s for s in _items(plan.subqueries()) if s.getClass().getSimpleName() == "SubqueryExec"]
        return [plan, *(scan for subquery in first for scan in _scans(subquery))]
    if kind in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        return []
    below = _items(plan.children()) + _items(plan.subqueries())
    return [scan for child in below for scan in _scans(child)]


def _items(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]
