"""What secateur costs and saves on a real Spark, against plain Spark in the same run.

    python -m bench.spark

Goals, stated before the numbers:

* attached, but nothing to prune: the median of 200 small queries at most 5 ms slower than with secateur paused, the two
  taken in turns;
* a selective query over 5,000 files with warm statistics: at least 5 times faster end to end;
* collecting 5,000 footers: files per second, and none read the second time.

Hot: each query has run before, so that neither side pays for a cold JVM. Answers are compared, not only timed. The last
line is JSON with the context of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tools.sessions import local_session
from tools.spark_metrics import files_read

import secateur
from bench.report import report

FILES = 5_000
ROWS = 1_000
REPEATS = 9
SMALL = 200


def write_table(folder: Path) -> None:
    """5,000 files of ten columns, sorted by id."""
    folder.mkdir()
    rng = np.random.default_rng(7)
    base = {f"v{i}": rng.random(ROWS) for i in range(7)}
    for i in range(FILES):
        ids = np.arange(i * ROWS, (i + 1) * ROWS)
        names = pa.array([f"name-{v:09}" for v in ids.tolist()])
        seen = pa.array(ids * 1_000_000, pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": ids, "name": names, "seen": seen, **base}), folder / f"part-{i:05}.parquet")


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = perf_counter()
    result = work()
    return (perf_counter() - start) * 1000, result


def overhead(spark: SparkSession, pruner: secateur.Pruner, folder: Path) -> dict[str, Any]:
    """Small queries over a small table in which every file is needed, and over none at all."""
    spark.range(1000).selectExpr("id", "id % 10 AS k").coalesce(2).write.parquet(str(folder / "small"))
    secateur.collect(spark, str(folder / "small"))
    spark.read.parquet(str(folder / "small")).createOrReplaceTempView("small")
    queries = (
        "SELECT count(*) FROM small",
        "SELECT max(id) FROM small WHERE k >= 0",
        "SELECT a.id FROM small a JOIN small b ON a.id = b.id WHERE a.k < 10 LIMIT 5",
        "SELECT sum(id) FROM range(100)",
    )
    times: dict[bool, list[float]] = {True: [], False: []}
    for n in range(SMALL + 40):
        query = queries[n % len(queries)]
        for paused in (True, False) if n % 2 else (False, True):
            if paused:
                with pruner.paused():
                    ms, _ = timed(lambda: spark.sql(query).collect())  # noqa: B023
            else:
                ms, _ = timed(lambda: spark.sql(query).collect())  # noqa: B023
            if n >= 40:
                times[paused].append(ms)
    plain, attached = median(times[True]), median(times[False])
    slower = attached - plain
    print(f"{SMALL} small queries   plain {plain:.1f} ms   attached {attached:.1f} ms   {slower:+.1f} ms (goal 5)")
    spread = {
        name: [round(q, 2) for q in quantiles(times[key])] for name, key in (("plain", True), ("attached", False))
    }
    return {"plain_ms": plain, "attached_ms": attached, "slower_ms": slower, "quartiles_ms": spread}


def selective(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> dict[str, Any]:
    """One thousandth of the rows, out of 5,000 files, with and without listing the table anew."""
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    query = f"SELECT count(*), max(name) FROM t WHERE id BETWEEN {1234 * ROWS} AND {1238 * ROWS}"
    results: dict[str, Any] = {}
    for name, prepare in (
        ("listed before", lambda: None),
        ("listed anew", lambda: spark.read.parquet(str(table)).createOrReplaceTempView("t")),
    ):
        times: dict[bool, list[float]] = {True: [], False: []}
        files: dict[bool, int] = {}
        rows: dict[bool, Any] = {}
        for n in range(REPEATS + 2):
            for paused in (True, False) if n % 2 else (False, True):

                def run(prepare: Callable[[], None] = prepare) -> Any:
                    prepare()
                    frame = spark.sql(query)
                    return frame, frame.collect()

                if paused:
                    with pruner.paused():
                        ms, (frame, rows[paused]) = timed(run)
                else:
                    ms, (frame, rows[paused]) = timed(run)
                files[paused] = files_read(frame)
                if n >= 2:
                    times[paused].append(ms)
        if rows[True] != rows[False]:
            raise SystemExit(f"the answers differ: {rows}")
        plain, pruned = median(times[True]), median(times[False])
        print(
            f"{FILES:,} files, {name:13}   plain {plain:.0f} ms ({files[True]:,} files)   secateur {pruned:.0f} ms "
            f"({files[False]} files)   {plain / pruned:.1f} times faster (goal 5)"
        )
        results[name] = {"plain_ms": plain, "secateur_ms": pruned, "ratio": plain / pruned, "files": files[False]}
    return results


def collecting(spark: SparkSession, table: Path) -> dict[str, Any]:
    first = secateur.collect(spark, str(table), progress=True)
    second = secateur.collect(spark, str(table))
    if (first.files_read, second.files_read) != (FILES, 0):
        raise SystemExit(f"collected {first.files_read} files, then {second.files_read}")
    rate = first.files_read / first.seconds
    print(f"{FILES:,} footers   {first.seconds:.1f} s, {rate:,.0f} files/s   again: none read, {second.seconds:.2f} s")
    return {"seconds": first.seconds, "files_per_second": rate, "second_seconds": second.seconds}


def main() -> None:
    spark = local_session("secateur-bench", settings={"spark.driver.memory": "4g"})
    with tempfile.TemporaryDirectory(prefix="secateur-bench-") as place:
        folder = Path(place)
        write_table(folder / "t")
        pruner = secateur.attach(spark)
        results = {
            "collect": collecting(spark, folder / "t"),
            "selective": selective(spark, pruner, folder / "t"),
            "overhead": overhead(spark, pruner, folder),
        }
        decided = pruner.explain(f"SELECT * FROM t WHERE id = {77 * ROWS}")
        results["planning_ms"] = decided.to_dict()["planning_ms"]
        print(f"deciding over {FILES:,} files: {results['planning_ms']}")
    spark.stop()
    report("spark", results=results)


if __name__ == "__main__":
    main()
