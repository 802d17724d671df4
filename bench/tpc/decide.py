"""How long secateur takes to decide for the queries of TPC-DS and TPC-H, beside the rest of Spark's planning.

    python -m bench.tpc.decide --scale 1 --files 100000 --sets tpcds

Queries are planned, never run. Up to 10,000 files the fact tables are Parquet with range-sets. Of more files only the
Delta log is made, with the bounds of the rows that each file would hold: sorted by date, cut into equal parts, as many
as asked for or one for every ten rows. Dimensions are Parquet with range-sets, small ones known row by row.

Goals, stated before the numbers: the median at most 20 ms with 1,000 files a table, at most 150 ms with 100,000.
The first time that a query is planned, what is known of its columns is prepared; the other times are told on their own.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.report import report
from bench.tpc.data import FACTS, arguments, base, connect, laid_out
from bench.tpc.queries import queries
from bench.tpc.tables import register

MOST_REAL = 10_000
"""With more files than that they are not written."""
FEWEST_ROWS = 10
WHAT = ("deciding", "of it in Python", "in the JVM", "on the way", "the rest of planning")
TYPES = {"INTEGER": "integer", "BIGINT": "long", "DATE": "date", "VARCHAR": "string", "DOUBLE": "double"}


def write_log(path: Path, folder: Path, files: int) -> None:
    """The Delta log of a table that is cut into files; a log that is there stays."""
    log = folder / "_delta_log" / f"{0:020}.json"
    if log.exists():
        return
    log.parent.mkdir(parents=True, exist_ok=True)
    database = connect()
    columns = {
        name: TYPES.get(type_, type_.lower())
        for name, type_, *_ in database.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    }
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in columns.items()]
    metadata = {
        "id": path.stem,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    bounds = ", ".join(
        f"{what}: {{{', '.join(f'{name}: {made.format(name)}' for name in columns)}}}"
        for what, made in (("minValues", "min({})"), ("maxValues", "max({})"), ("nullCount", "count(*) - count({})"))
    )
    place = f"row_number() OVER (ORDER BY {FACTS[path.stem].date} NULLS FIRST) - 1"
    many = f"least({files}, count(*) OVER () // {FEWEST_ROWS})"
    added = database.execute(
        f"WITH cut AS (SELECT *, ({place}) * {many} // count(*) OVER () AS part FROM '{path}') "
        f"SELECT part, count(*), to_json({{numRecords: count(*), {bounds}}})::VARCHAR FROM cut "
        "GROUP BY part ORDER BY part"
    ).fetchall()
    with log.with_suffix(".tmp").open("w") as out:
        out.write(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
        out.write(json.dumps({"metaData": metadata}) + "\n")
        for part, rows, stats in added:
            add = {"path": f"part-{part:06}.parquet", "partitionValues": {}, "size": rows * 100, "dataChange": True}
            out.write(json.dumps({"add": {**add, "modificationTime": 1_700_000_000_000, "stats": stats}}) + "\n")
    log.with_suffix(".tmp").rename(log)


def register_logs(spark: SparkSession, name: str, scale: float, files: int, home: Path) -> None:
    """The fact tables of a set as Delta tables of which there is but the log."""
    for path in sorted(base(name, scale, home).glob("*.parquet")):
        if path.stem in FACTS:
            folder = home / f"{name}-{scale:g}" / f"logs-{files}" / path.stem
            write_log(path, folder, files)
            spark.read.format("delta").load(str(folder)).createOrReplaceTempView(path.stem)


def plan(spark: SparkSession, pruner: secateur.Pruner, text: str) -> tuple[float, ...]:
    """Milliseconds of deciding, what they are made of, and of the rest of optimizer and physical planning."""
    execution = spark.sql(text)._jdf.queryExecution()
    execution.analyzed()
    start = perf_counter()
    execution.executedPlan()
    ms = (perf_counter() - start) * 1000
    found = pruner.last
    if found is None or found.reasons:
        raise SystemExit(f"nothing was decided: {found and found.reasons}")
    took = found.planning
    return took.total, took.python, took.jvm, took.wire, ms - took.total


def main() -> None:
    parser = arguments("Measures how long deciding takes.", 0.1, "tpcds,tpch")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranges", type=int, default=20, help="ranges a file and column, 0 for bounds only")
    wanted = parser.parse_args()
    spark = local_session("decide", str(wanted.home), {"spark.driver.memory": "6g"})
    ranges = wanted.ranges or None
    store = {} if ranges else {"stats.dir": tempfile.mkdtemp()}  # of its own, since range-sets must not be there
    pruner = secateur.attach(spark, {"stats.auto": False, "budget.ms": 60_000, **store})
    results = {}
    for name in wanted.sets.split(","):
        written = wanted.files if wanted.files <= MOST_REAL else 1_000
        register(spark, laid_out(name, "date", wanted.scale, written, wanted.home), "parquet", wanted.home, ranges)
        if wanted.files > MOST_REAL:
            register_logs(spark, name, wanted.scale, wanted.files, wanted.home)
        for turn in range(wanted.repeats + 1):
            times = [plan(spark, pruner, text) for text in queries(name).values()]
            each = dict(zip(WHAT, zip(*times, strict=True), strict=True))
            shown = {what: f"{median(ms):.1f} (90th {quantiles(ms, n=10)[-1]:.1f})" for what, ms in each.items()}
            print(f"{name}, {wanted.files:,} files, {'again' if turn else 'first'}: {shown}", flush=True)
            results[name] = {what: [median(ms), quantiles(ms, n=10)[-1]] for what, ms in each.items()}
    report("tpc.decide", scale=wanted.scale, files=wanted.files, last=results)


if __name__ == "__main__":
    main()
