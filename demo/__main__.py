"""Runs the analyst's queries on three formats, without and with secateur, and shows what each read, side by side."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tools.sessions import local_session
from tools.spark_metrics import files_read

import secateur
from demo.lake import write_lake

QUERIES = (
    (
        "Where could an observation post stand? On a marked ridge trail, high up.",
        "SELECT * FROM trails\nWHERE IF(unit = 'feet', altit * 0.3048, altit) > 1500 AND name LIKE 'Marked-%-Ridge'",
    ),
    (
        "Which trails start at one of three peaks?",
        "SELECT name, altit FROM trails\n"
        "WHERE name LIKE 'Glacier-Peak007%' OR name LIKE 'Pass-Peak100%' OR name IN ('Steep-Peak042-Lake')",
    ),
    (
        "What was seen of alpine animals in one week of May?",
        "SELECT species, count(*), max(num_sightings) FROM tracking_data\n"
        "WHERE species LIKE 'Alpine%' AND s >= 50\n"
        "  AND month = '2024-05' AND seen_at BETWEEN '2024-05-06' AND '2024-05-12'\nGROUP BY species",
    ),
    (
        "Did anyone see a yeti?",
        "SELECT t.name, d.seen_at FROM trails t JOIN tracking_data d ON t.mountain = d.area\nWHERE d.species = 'Yeti'",
    ),
    (
        "Which ridge trails have many large animals?",
        "SELECT t.name, d.species, d.num_sightings FROM trails t JOIN tracking_data d ON t.mountain = d.area\n"
        "WHERE IF(unit = 'feet', altit * 0.3048, altit) > 1500 AND name LIKE 'Marked-%-Ridge'\n"
        "  AND species LIKE 'Alpine I%' AND s >= 100 AND d.num_sightings > 700\n"
        "ORDER BY d.num_sightings DESC, t.name, d.seen_at LIMIT 3",
    ),
    (
        "How many sightings hide behind a function that says nothing about order?",
        "SELECT count(*) FROM tracking_data WHERE reverse(species) = 'xoF'",
    ),
)


TABLES = ("trails", "tracking_data")
Views = dict[str, DataFrame]


@dataclass(frozen=True)
class Run:
    """One run of a query."""

    rows: list[str]
    files: int
    seconds: float


def run(spark: SparkSession, query: str) -> Run:
    """Runs it, and counts the files that Spark opened."""
    start = time.perf_counter()
    frame = spark.sql(query)
    rows: list[Any] = frame.collect()
    return Run(sorted(map(repr, rows)), files_read(frame), time.perf_counter() - start)


def as_parquet(spark: SparkSession, folder: str) -> Views:
    """The Parquet files as they were written."""
    return {table: spark.read.parquet(f"{folder}/{table}") for table in TABLES}


def as_delta(spark: SparkSession, folder: str) -> Views:
    """The same rows as Delta tables, with a similar layout."""
    for table, frame in laid_out(spark, folder).items():
        writer = frame.write.format("delta")
        if "month" in frame.columns:
            writer = writer.partitionBy("month")
        writer.save(f"{folder}/delta/{table}")
    return {table: spark.read.format("delta").load(f"{folder}/delta/{table}") for table in TABLES}


def as_iceberg(spark: SparkSession, folder: str) -> Views:
    """The same rows as Iceberg tables, with a similar layout."""
    for table, frame in laid_out(spark, folder).items():
        writer = frame.writeTo(f"ice.demo.{table}").tableProperty("write.distribution-mode", "none")
        if "month" in frame.columns:
            writer = writer.partitionedBy(frame["month"])
        writer.create()
    return {table: spark.table(f"ice.demo.{table}") for table in TABLES}


def laid_out(spark: SparkSession, folder: str) -> Views:
    """Both tables in as many tasks as they have files, each with a range of the column that they are sorted by."""
    frames = as_parquet(spark, folder)
    keys = {"trails": ["name"], "tracking_data": ["month", "species", "seen_at"]}
    return {
        table: frame.repartitionByRange(len(frame.inputFiles()), *keys[table]).sortWithinPartitions(*keys[table])
        for table, frame in frames.items()
    }


FORMATS = {"parquet": as_parquet, "delta": as_delta, "iceberg": as_iceberg}


def use(views: Views) -> None:
    """Makes the queries read these tables."""
    for table, frame in views.items():
        frame.createOrReplaceTempView(table)


def main() -> int:
    """The demo; fails if one answer differs."""
    with tempfile.TemporaryDirectory(prefix="secateur-demo-") as folder:
        spark = local_session("secateur-demo", folder)
        print("Writing a lake of trails and tracking data, in three formats …", flush=True)
        write_lake(Path(folder))
        frames = {name: make(spark, folder) for name, make in FORMATS.items()}
        pruner = secateur.attach(spark)
        for table in TABLES:
            print(f"{table}: {secateur.collect(spark, frames['parquet'][table])}")
        with pruner.paused():
            for views in frames.values():  # so that neither side pays for a cold JVM
                use(views)
                for _, query in QUERIES:
                    run(spark, query)
        different = 0
        for number, (question, query) in enumerate(QUERIES, 1):
            print(f"\n── {number}. {question}\n\n{query}\n")
            print("               plain Spark           with secateur")
            different += sum(not show(name, views, query, spark, pruner) for name, views in frames.items())
        spark.stop()
    return different


def show(name: str, views: Views, query: str, spark: SparkSession, pruner: secateur.Pruner) -> bool:
    """Runs one query both ways on one format, prints what happened, and returns whether the answers are the same."""
    use(views)
    with pruner.paused():
        plain = run(spark, query)
    pruned = run(spark, query)
    same = plain.rows == pruned.rows
    answer = f"{len(pruned.rows)} rows, " + ("the same answer" if same else "A DIFFERENT ANSWER: please report this")
    print(
        f"   {name:8} {plain.files:>4} files {plain.seconds:6.2f} s"
        f"   {pruned.files:>4} files {pruned.seconds:6.2f} s   {answer}",
        flush=True,
    )
    if name == "iceberg" or not same:
        print("\n" + "\n".join("   " + line for line in str(pruner.last).split("\n")) + "\n", flush=True)
    return same


if __name__ == "__main__":
    sys.exit(main())
