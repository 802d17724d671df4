"""Runs the analyst's queries one after the other, without and with secateur, and shows what each one read."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import secateur
from demo.lake import write_lake
from secateur.bridge.metrics import files_read

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


def main() -> int:
    """The demo; fails if one answer differs."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("secateur-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory(prefix="secateur-demo-") as folder:
        lake = Path(folder)
        print("Writing a lake of trails and tracking data …", flush=True)
        write_lake(lake)
        for table in ("trails", "tracking_data"):
            spark.read.parquet(str(lake / table)).createOrReplaceTempView(table)
        pruner = secateur.attach(spark)
        for table in ("trails", "tracking_data"):
            print(secateur.collect(spark, str(lake / table)))
        with pruner.paused():
            for _, query in QUERIES:  # so that neither side pays for a cold JVM
                run(spark, query)
        different = 0
        for number, (question, query) in enumerate(QUERIES, 1):
            different += not show(number, question, query, spark, pruner)
    spark.stop()
    return different


def show(number: int, question: str, query: str, spark: SparkSession, pruner: secateur.Pruner) -> bool:
    """Runs one query both ways, prints what happened, and returns whether the answers are the same."""
    with pruner.paused():
        plain = run(spark, query)
    pruned = run(spark, query)
    same = plain.rows == pruned.rows
    print(f"\n── {number}. {question}\n\n{query}\n")
    print(f"   plain Spark   {plain.files:>4} files  {plain.seconds:6.2f} s")
    print(f"   with secateur {pruned.files:>4} files  {pruned.seconds:6.2f} s")
    print(f"   {len(pruned.rows)} rows, " + ("the same answer" if same else "A DIFFERENT ANSWER: please report this"))
    print("\n" + "\n".join("   " + line for line in str(pruner.last).split("\n")), flush=True)
    return same


if __name__ == "__main__":
    sys.exit(main())
