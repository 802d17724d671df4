"""Planning a selective query on a Delta table, with Delta's own planning beside it.

    python -m bench.delta [--files 1000 100000] [--memory]

The logs are made up: a checkpoint's worth of files with ten columns of statistics, and no data, since only planning is
measured (optimizer and physical planning together). Goals, stated before the numbers:

* warm, the median of 20: at 1,000 files at least 10 times faster than Delta's own, at 100,000 files at least 40 times;
* the first query on a cold table: not slower than Delta's own;
* loading 100,000 files: at most 1.5 s, one commit later at most 0.2 s.

``--memory`` instead tells how much memory a million files take in the JVM and in Python.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.report import heap_used, report
from secateur.stats.formats.delta import DeltaSource

REPEATS = 20
HELD = 200_000
ROWS = 1_000
COLUMNS = (("id", "long"), ("name", "string"), ("seen", "timestamp"), *((f"v{i}", "double") for i in range(7)))


def added(i: int) -> str:
    """The action that adds the i-th file, a range of its own in every column."""
    low, high = i * ROWS, i * ROWS + ROWS - 1

    def bounds(at: int, part: float) -> dict[str, object]:
        seen = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at))
        return {"id": at, "name": f"name-{at:012}", "seen": seen, **{f"v{k}": i + k / 10 + part for k in range(7)}}

    stats = {
        "numRecords": ROWS,
        "minValues": bounds(low, 0.0),
        "maxValues": bounds(high, 0.05),
        "nullCount": {name: 0 for name, _ in COLUMNS},
    }
    add = {
        "path": f"part-{i:07}-c000.snappy.parquet",
        "partitionValues": {},
        "size": 1_000_000 + i,
        "modificationTime": 1_700_000_000_000 + i,
        "dataChange": True,
        "stats": json.dumps(stats, separators=(",", ":")),
    }
    return json.dumps({"add": add}, separators=(",", ":"))


def make_table(folder: Path, files: int) -> None:
    """A log of one commit."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in COLUMNS]
    metadata = {
        "id": f"bench-{files}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {"delta.checkpointInterval": "1000000"},
        "createdTime": 1_700_000_000_000,
    }
    with (log / f"{0:020}.json").open("w") as out:
        out.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        out.write(json.dumps({"metaData": metadata}) + "\n")
        out.writelines(added(i) + "\n" for i in range(files))


def commit(folder: Path, version: int, file: int) -> None:
    """One more file, one version later."""
    place = folder / "_delta_log" / f"{version:020}.json"
    place.with_suffix(".tmp").write_text(added(file) + "\n")
    place.with_suffix(".tmp").rename(place)


def plan(spark: SparkSession, folder: Path, at: int) -> tuple[float, int]:
    """The milliseconds that optimizer and physical planning take, and how many files the scan reads."""
    frame = spark.read.format("delta").load(str(folder)).where(f"id BETWEEN {at} AND {at + 10}")
    execution = frame._jdf.queryExecution()
    execution.analyzed()
    start = perf_counter()
    execution.executedPlan()
    return (perf_counter() - start) * 1000, len(frame.inputFiles())


def forget(spark: SparkSession) -> None:
    """What Delta remembers of its tables."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]


def measure(spark: SparkSession, pruner: secateur.Pruner, folder: Path, files: int) -> dict[str, Any]:
    make_table(folder, files)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(folder)).checkpoint()  # type: ignore[union-attr]
    forget(spark)
    cold_own, _ = plan(spark, folder, 5 * ROWS)
    loaded = pruner.last
    forget(spark)
    with pruner.paused():
        cold_delta, _ = plan(spark, folder, 5 * ROWS)
    times: dict[bool, list[float]] = {True: [], False: []}
    for n in range(REPEATS + 3):
        for paused in (True, False) if n % 2 else (False, True):
            at = (n * 37 % files) * ROWS
            if paused:
                with pruner.paused():
                    ms, read = plan(spark, folder, at)
            else:
                ms, read = plan(spark, folder, at)
            if read != 1:
                raise SystemExit(f"{read} files are read instead of one")
            if n >= 3:
                times[paused].append(ms)
    later = []
    for version in range(1, 6):
        commit(folder, version, files + version)
        ms, read = plan(spark, folder, (files + version) * ROWS)
        if read != 1:
            raise SystemExit(f"{read} files are read instead of the one that was added")
        later.append(ms)
    own, delta = median(times[False]), median(times[True])
    print(
        f"{files:>9,} files   warm: secateur {own:.0f} ms, Delta {delta:.0f} ms, {delta / own:.0f} times   "
        f"cold: {cold_own:.0f} ms, Delta {cold_delta:.0f} ms   one commit later: {median(later):.0f} ms"
    )
    return {
        "files": files,
        "warm_ms": own,
        "delta_warm_ms": delta,
        "ratio": delta / own,
        "cold_ms": cold_own,
        "delta_cold_ms": cold_delta,
        "commit_later_ms": median(later),
        "first_decision": loaded.to_dict()["planning_ms"] if loaded else None,
    }


def memory(spark: SparkSession, pruner: secateur.Pruner, folder: Path) -> dict[str, float]:
    """What the JVM and Python hold of a table, for a million files."""
    make_table(folder, HELD)
    spark.conf.set("spark.secateur.budget.ms", "60000")
    heap = heap_used(spark)
    plan(spark, folder, 5 * ROWS)
    forget(spark)
    sources = [e.source for e in pruner._registry._entries.values() if e.source.count == HELD]
    held = {
        "jvm": heap_used(spark) - heap,
        "python": sum(s.facts.nbytes for s in sources if isinstance(s, DeltaSource)),
    }
    held = {what: size * 1_000_000 / HELD / 1e6 for what, size in held.items()}
    print(f"1,000,000 files, scaled up from {HELD:,}, MB: { ({what: round(size) for what, size in held.items()}) }")
    return held


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, nargs="*", default=[1_000, 100_000])
    parser.add_argument("--memory", action="store_true")
    given, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="secateur-bench-") as place:
        spark = local_session("secateur-bench", place, {"spark.driver.memory": "4g"})
        pruner = secateur.attach(spark)
        make_table(Path(place) / "first", 10)  # so that neither side pays for classes that are loaded once
        for paused in (True, False):
            if paused:
                with pruner.paused():
                    plan(spark, Path(place) / "first", 0)
            else:
                plan(spark, Path(place) / "first", 0)
        sizes = () if given.memory else given.files
        results = [measure(spark, pruner, Path(place) / f"t{n}", n) for n in sizes]
        held = memory(spark, pruner, Path(place) / "held") if given.memory else None
        spark.stop()
    report("delta", results=results, memory=held)


if __name__ == "__main__":
    main()
