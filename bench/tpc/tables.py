"""The tables of a set in Spark, by name: as plain Parquet, or the very same files as Delta and Iceberg tables."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

import secateur


def register(spark: SparkSession, folder: Path, kind: str, home: Path, ranges: int | None = None) -> None:
    """Makes every table below a folder known by its name, with the statistics of its files at hand."""
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        match kind:
            case "parquet":
                secateur.collect(spark, str(path), ranges=ranges)
                spark.read.parquet(str(path)).createOrReplaceTempView(path.name)
            case "delta":
                target = home / "delta" / folder.parent.name / folder.name / path.name
                if not any(target.glob("_delta_log/*.json")):
                    _linked(path, target)
                    spark.sql(f"CONVERT TO DELTA parquet.`{target}`")
                spark.read.format("delta").load(str(target)).createOrReplaceTempView(path.name)
            case "iceberg":
                name = f"ice.{_name(folder)}.{path.name}"
                if not spark.catalog.tableExists(name):
                    spark.read.parquet(str(path)).limit(0).writeTo(name).using("iceberg").create()
                    spark.sql(f"CALL ice.system.add_files(table => '{name}', source_table => '`parquet`.`{path}`')")
                spark.table(name).createOrReplaceTempView(path.name)


def _name(folder: Path) -> str:
    return f"{folder.parent.name}_{folder.name}".replace("-", "_").replace(".", "_")


def _linked(source: Path, target: Path) -> None:
    """The same files under another name, so that a log beside them does no harm to the first."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in source.glob("*.parquet"):
        os.link(file, target / file.name)
