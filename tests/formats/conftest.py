"""Tables written by the real connectors, and the comparison that fails if a skipped file is opened."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from pyspark.sql import DataFrame, SparkSession
from tools.spark_metrics import files_read, planned_files

import secateur
from tests.fixtures import Compared

_names = itertools.count()


@contextmanager
def away(paths: list[Path]) -> Iterator[None]:
    """These files are not there for a while: whoever opens one fails."""
    moved = [(path, path.with_name(path.name + ".away")) for path in paths if path.exists()]
    for path, place in moved:
        path.rename(place)
    try:
        yield
    finally:
        for path, place in moved:
            place.rename(path)


def local(location: str) -> Path:
    return Path(unquote(urlparse(location).path))


@dataclass
class IceTables:
    """Makes Iceberg tables in the catalog ``ice``."""

    spark: SparkSession

    def sql(self, text: str) -> DataFrame:
        return self.spark.sql(text)

    def table(self, columns: str, partitioned: str = "", **properties: object) -> str:
        """A new table's name."""
        name = f"ice.tests.t{next(_names)}"
        options = "".join(f", '{key.replace('__', '.').replace('_', '-')}'='{v}'" for key, v in properties.items())
        by = f"PARTITIONED BY ({partitioned})" if partitioned else ""
        self.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {by} TBLPROPERTIES ('made-by'='tests'{options})")
        return name

    def insert(self, name: str, *selects: str) -> None:
        """One commit, and mostly one file, for each query."""
        for select in selects:
            self.sql(select).coalesce(1).writeTo(name).append()

    def java(self, name: str) -> Any:
        """The table in Iceberg's Java API."""
        util = self.spark._jvm.org.apache.iceberg.spark.Spark3Util  # type: ignore[union-attr]
        return util.loadIcebergTable(self.spark._jsparkSession, name)

    def files(self, name: str) -> list[Path]:
        rows = self.sql(f"SELECT DISTINCT file_path FROM {name}.all_data_files").collect()
        return [local(row[0]) for row in rows]


@dataclass
class Ice(IceTables):
    """The same with secateur attached."""

    pruner: secateur.Pruner

    def same(self, query: str | Callable[[], DataFrame], *names: str) -> Compared:
        """Runs a query without and with secateur, with the skipped files of these tables moved away, and compares."""

        def frame() -> DataFrame:
            return self.sql(query) if isinstance(query, str) else query()

        with self.pruner.paused():
            plain = frame()
            expected = sorted(map(repr, plain.collect()))
            plain_files = files_read(plain)
            everything = [path for name in names for path in self.files(name)]
        pruned = frame()
        kept = {local(location) for location in planned_files(pruned)}
        summary = self.pruner.last
        with away([path for path in everything if path not in kept]):
            rows = pruned.collect()
            files = files_read(pruned)
        assert sorted(map(repr, rows)) == expected
        assert summary is not None
        assert not summary.reasons, summary.reasons
        return Compared(rows, files, plain_files, summary)


@pytest.fixture(scope="session")
def ice_tables(spark: SparkSession) -> IceTables:
    """For tables that several tests read."""
    return IceTables(spark)


@pytest.fixture
def ice(spark: SparkSession, pruner: secateur.Pruner) -> Ice:
    return Ice(spark, pruner)
