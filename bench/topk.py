"""LIMIT and ORDER BY … LIMIT against plain Spark in the same run: files, rows, and time from end to end.

    python -m bench.topk [--files 2000] [--layouts sorted days random] [--delta 10000] [--mix 120] [--repeats 7]

A count of 0 leaves that part out.

Goals, stated before the numbers:

* ``LIMIT 100`` on a Delta table of 10,000 files, without a condition and with one that some files match fully: 20
  times faster. Once the others do not match at all, so that Delta's own planner leaves them out; once they match with
  a row in a hundred; once no row of them matches, though the value lies within their bounds, so that plain Spark reads
  on and on;
* ``ORDER BY ts DESC LIMIT 10`` on 2,000 files, with a filter that one row in a hundred passes and without: at most 2
  percent of the files where the table is sorted by ``ts`` or its rows are shuffled within days; where they are in no
  order, at most 1.1 times slower than plain Spark;
* a mix of queries in the proportions of Snowflake's table 1, with what share of the files LIMIT and top-k pruning take
  away where they apply: beside Snowflake's 70 and 77 percent.

Both sides are taken in turns, each query has run before, and answers are compared. Files of a probe are counted
with those that are read after it. The last line is JSON with the context of the run.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tools.sessions import local_session
from tools.spark_metrics import files_read, rows_read

import secateur
from bench.report import report

ROWS = 1_000
WARM = 2
COLUMNS = (4, 30)
DAYS = 100
DAY = 86_400_000_000
START = 1_700_006_400_000_000
LAYOUTS = ("sorted", "days", "random")
QUERIES = {
    "filter": "SELECT * FROM {} WHERE y = 3 ORDER BY ts DESC LIMIT 10",
    "no filter": "SELECT * FROM {} ORDER BY ts DESC LIMIT 10",
}


def write_layout(folder: Path, layout: str, files: int) -> None:
    """Events of a hundred days, at times that never repeat: in order, shuffled within each day, or in no order."""
    if folder.exists():
        return
    folder.mkdir()
    rng = np.random.default_rng(3)
    n = files * ROWS
    times = START + np.arange(n) * (DAYS * DAY // n)
    if layout == "random":
        rng.shuffle(times)
    elif layout == "days":
        for part in np.array_split(np.arange(n), DAYS):
            rng.shuffle(times[part[0] : part[-1] + 1])
    for i in range(files):
        ts = times[i * ROWS : (i + 1) * ROWS]
        table = {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "y": pa.array(rng.integers(0, 100, ROWS), pa.int32()),
            "v": rng.random(ROWS),
            "name": [f"name-{v}" for v in ts.tolist()],
        }
        pq.write_table(pa.table(table), folder / f"part-{i:05}.parquet")


def write_delta(folder: Path, files: int, others: int = 0, rows: int = 100) -> None:
    """A table of many small files, sorted by id, with a log of one commit.

    In all rows of every 300th file state is 3, and so is topic, which is never 3 elsewhere. So many columns more are
    there for nobody to ask for, with statistics as all have.
    """
    if folder.exists():
        return
    (folder / "_delta_log").mkdir(parents=True)
    columns = {"id": "long", "v": "double", "state": "integer", "topic": "integer"}
    columns |= {f"other{i}": "double" for i in range(others)}
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()]
    metadata = {
        "id": "bench-topk",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    rng = np.random.default_rng(5)
    with (folder / "_delta_log" / f"{0:020}.json").open("w") as log:
        log.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        log.write(json.dumps({"metaData": metadata}) + "\n")
        for i in range(files):
            name = f"part-{i:06}.parquet"
            state, topic = rng.integers(0, 100, (2, rows), np.int32)
            topic[topic == 3] = 4
            if i % 300 == 150:
                state[:] = topic[:] = 3
            ids = np.arange(i * rows, (i + 1) * rows)
            table = {"id": ids, "v": rng.random(rows), "state": state, "topic": topic}
            table |= {f"other{j}": rng.random(rows) for j in range(others)}
            pq.write_table(pa.table(table), folder / name)
            stats = {
                "numRecords": rows,
                "minValues": {column: values.min().item() for column, values in table.items()},
                "maxValues": {column: values.max().item() for column, values in table.items()},
                "nullCount": dict.fromkeys(columns, 0),
            }
            size = (folder / name).stat().st_size
            add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1_700_000_000_000}
            log.write(json.dumps({"add": {**add, "dataChange": True, "stats": json.dumps(stats)}}) + "\n")


def both(
    spark: SparkSession, pruner: secateur.Pruner, sql: str, repeats: int, *, any_rows: bool = False
) -> dict[str, Any]:
    """Time, files and rows with and without secateur, in turns."""
    times: dict[bool, list[float]] = {True: [], False: []}
    facts: dict[bool, Any] = {}
    for n in range(repeats + WARM):
        for paused in (True, False) if n % 2 else (False, True):
            if paused:
                pruner._bridge.pause()  # type: ignore[union-attr]
            try:
                frame = spark.sql(sql)
                start = perf_counter()
                rows = frame.collect()
                ms = (perf_counter() - start) * 1000
            finally:
                if paused:
                    pruner._bridge.resume()  # type: ignore[union-attr]
            facts[paused] = (len(rows) if any_rows else rows, files_read(frame), rows_read(frame))
            if n >= WARM:
                times[paused].append(ms)
    if facts[True][0] != facts[False][0]:
        raise SystemExit(f"the answers differ: {sql}")
    plain, ours = median(times[True]), median(times[False])
    return {
        "plain_ms": plain,
        "secateur_ms": ours,
        "ratio": plain / ours,
        "plain_files": facts[True][1],
        "files": facts[False][1],
        "rows": facts[False][2],
    }


def limited(spark: SparkSession, pruner: secateur.Pruner, place: Path, files: int, repeats: int) -> dict[str, Any]:
    """LIMIT 100 on a table of four columns and on one of thirty, and what Spark takes in any case."""
    conditions = {
        "no condition": "true",
        "3 in 10 match fully": f"id >= {files * 30} AND id < {files * 60}",
        "1 in 300 matches fully, the others with a row or so": "state = 3",
        "1 in 300 matches fully, the others might, but do not": "topic = 3",
    }
    results: dict[str, Any] = {}
    write_delta(place / "one", 1)
    floors = {
        "a single Parquet file": f"parquet.`{next((place / 'one').glob('*.parquet'))}`",
        "a Delta table of one file": f"delta.`{place / 'one'}`",
    }
    for n, (which, table) in enumerate(floors.items()):
        sql = f"SELECT * FROM {table} WHERE id >= 0 LIMIT 100"
        if not n:
            both(spark, pruner, sql, 100)  # until the code is compiled that both sides run
        done = results[which] = both(spark, pruner, sql, repeats)
        print(f"LIMIT 100 on {which}   plain {done['plain_ms']:.0f} ms   secateur {done['secateur_ms']:.0f} ms")
    for columns in COLUMNS:
        folder = place / f"columns-{columns}"
        write_delta(folder, files, columns - 4)
        for n, (which, condition) in enumerate(conditions.items()):
            sql = f"SELECT * FROM delta.`{folder}` WHERE {condition} LIMIT 100"
            if not n:
                both(spark, pruner, sql, 2 * repeats, any_rows=True)
            done = results[f"{columns} columns, {which}"] = both(spark, pruner, sql, repeats, any_rows=True)
            print(
                f"LIMIT 100 on {files:,} files, {columns} columns, {which}   "
                f"plain {done['plain_ms']:.0f} ms, {done['plain_files']} files   "
                f"secateur {done['secateur_ms']:.0f} ms, {done['files']} file   "
                f"{done['ratio']:.1f} times faster (goal 20)"
            )
    return results


def topk(
    spark: SparkSession, pruner: secateur.Pruner, place: Path, layouts: list[str], files: int, repeats: int
) -> dict[str, Any]:
    results = {}
    for layout in layouts:
        write_layout(place / layout, layout, files)
        secateur.collect(spark, str(place / layout))
        spark.read.parquet(str(place / layout)).createOrReplaceTempView(layout)
        for name, query in QUERIES.items():
            done = both(spark, pruner, query.format(layout), repeats)
            goal = "at least 0.91 times" if layout == "random" else f"at most {files // 50} files"
            print(
                f"{layout:7} {name:10} plain {done['plain_ms']:6.0f} ms, {done['plain_files']:,} files   secateur "
                f"{done['secateur_ms']:5.0f} ms, {done['files']:5,} files, {done['rows']:9,} rows   "
                f"{done['ratio']:5.1f} times faster (goal: {goal})"
            )
            results[f"{layout}, {name}"] = done
    return results


def statements(layouts: list[str], count: int) -> list[tuple[str, str]]:
    """Queries of the kinds of Snowflake's table 1 in its proportions, over all layouts, and what prunes each kind."""
    rng = np.random.default_rng(11)
    shares = {"limit": 0.37, "limit where": 2.23, "top-k": 4.47, "groups": 0.12, "aggregates": 0.96}
    kinds = rng.choice(list(shares), count, p=np.array(list(shares.values())) / sum(shares.values()))
    made = []
    for kind in kinds:
        table = rng.choice(layouts)
        k = int(rng.choice([1, 1, 10, 10, 100, 1000, 5000]))
        day = f"timestamp_micros({START + int(rng.integers(0, DAYS)) * DAY})"
        where = str(
            rng.choice([f"WHERE ts >= {day}", f"WHERE ts < {day} AND y < 50", "WHERE y = 3", "WHERE v > 0.9", ""])
        )
        key, direction = rng.choice(["ts", "ts", "ts", "name", "v"]), rng.choice(["ASC", "DESC"])
        match kind:
            case "limit":
                made.append(("limit", f"SELECT * FROM {table} LIMIT {k}"))
            case "limit where":
                made.append(("limit", f"SELECT * FROM {table} {where or 'WHERE y >= 0'} LIMIT {k}"))
            case "top-k":
                made.append(("topk", f"SELECT * FROM {table} {where} ORDER BY {key} {direction} LIMIT {k}"))
            case "groups":
                by = f"GROUP BY {key} ORDER BY {key} {direction}"
                made.append(("topk", f"SELECT {key}, count(*) FROM {table} {where} {by} LIMIT {k}"))
            case _:
                made.append(("none", f"SELECT y, sum(v) AS s FROM {table} {where} GROUP BY y ORDER BY s LIMIT {k}"))
    return made


def mix(spark: SparkSession, pruner: secateur.Pruner, layouts: list[str], count: int) -> dict[str, Any]:
    """The share of files that LIMIT and top-k pruning take away of those that filters left, where they apply."""
    ratios: dict[str, list[float]] = {"limit": [], "topk": [], "none": []}
    for kind, sql in statements(layouts, count):
        spark.sql(sql).collect()
        assert pruner.last is not None
        scan = pruner.last.scans[0]
        filtered = [p.files_after for p in scan.passes if p.name in ("manifests", "filter")]
        before = filtered[-1] if filtered else scan.files_total
        ratios[kind].append(1 - (scan.files_kept or 0) / before if before else 0.0)
    results: dict[str, Any] = {}
    for kind, paper in (("limit", 70), ("topk", 77)):
        applied = [r for r in ratios[kind] if r > 0]
        share = len(applied) / max(len(ratios[kind]), 1)
        results[kind] = {"queries": len(ratios[kind]), "applied": share, "ratio": mean(applied) if applied else 0.0}
        print(
            f"mix: {kind:5} {len(ratios[kind]):4} queries, applies to {share:.0%}, takes away "
            f"{results[kind]['ratio']:.0%} of the files that filters left there (Snowflake: {paper}%)"
        )
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--delta", type=int, default=10_000)
    parser.add_argument("--mix", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--layouts", nargs="*", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--place", type=Path, help="a folder for the tables, which are kept there for the next run")
    given, _ = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="secateur-bench-") as name:
        place = given.place or Path(name)
        spark = local_session("secateur-bench", name)
        pruner = secateur.attach(spark)
        results = {}
        if given.delta:
            results["limit"] = limited(spark, pruner, place, given.delta, given.repeats)
        if given.files:
            results["topk"] = topk(spark, pruner, place, given.layouts, given.files, given.repeats)
            results["mix"] = mix(spark, pruner, given.layouts, given.mix)
        spark.stop()
    report("topk", results=results)


if __name__ == "__main__":
    main()
