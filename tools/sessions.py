"""A Spark on this machine for tests, measurements and the demo."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tools import connectors

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
}
_NOTHING: Mapping[str, str] = {}


def local_session(name: str, warehouse: str | None = None, settings: Mapping[str, str] = _NOTHING) -> SparkSession:
    """A session on two cores; with a folder for their tables, one that has the Delta and Iceberg connectors."""
    builder = SparkSession.builder.master("local[2]").appName(name)
    formats = connectors.settings(warehouse) if warehouse else {}
    for key, value in {**_QUIET, **formats, **settings}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
