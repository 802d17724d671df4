"""One Spark session for the whole run, one attached pruner, and the comparison that every feature is tested with."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tools import connectors
from tools.sessions import local_session
from tools.spark_metrics import files_read

import secateur
from tests.stats.lake import Lake

# Without it Spark starts its workers with the first python3 on the PATH, which may be another version.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


@pytest.fixture(scope="session")
def connect_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# Most of what the JVM runs here it runs once: the second compiler takes a third of the time for nothing.
# Without it there is room for 48 MB of code only, unless asked for, and Spark's queries need more.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseParallelGC"


@contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Workers that download the connectors at the same time would spoil each other's files."""
    with (folder / "spark.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, connect_port: int) -> Iterator[SparkSession]:
    home = tmp_path_factory.mktemp("spark")
    with one_at_a_time(tmp_path_factory.getbasetemp().parent):
        session = local_session(
            "secateur-tests",
            str(home),
            {
                "spark.jars.packages": f"{connectors.settings(str(home))['spark.jars.packages']},{connectors.H2}",
                "spark.driver.extraJavaOptions": JAVA_OPTIONS,
                "spark.default.parallelism": "2",
                "spark.sql.warehouse.dir": str(home / "warehouse"),
                "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
                "spark.connect.grpc.binding.port": str(connect_port),
                "spark.databricks.delta.snapshotPartitions": "2",
            },
        )
    yield session
    session.stop()


ROOT = Path(__file__).parents[1]

SparkProcess = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def spark_process() -> SparkProcess:
    """Runs Python in a process of its own, which starts a Spark or is a client of one."""

    def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
        env = {**os.environ, "SPARK_SUBMIT_OPTS": JAVA_OPTIONS}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=900)

    return run


@pytest.fixture
def pruner(spark: SparkSession) -> Iterator[secateur.Pruner]:
    """Attached for one test, with the session's options as they were before.

    Deciding may take its time, since a machine that runs tests is busy; a test of the budget sets its own.
    """
    handle = secateur.attach(spark, {"stats.auto": False, "budget.ms": 60_000, "filter.budget.ms": 60_000})
    yield handle
    for key in dict(spark.conf.getAll):
        if key.startswith("spark.secateur."):
            spark.conf.unset(key)
    handle.detach()


@dataclass(frozen=True)
class Compared:
    """What a query gave with secateur, after it was found equal to what it gives without."""

    rows: list[Any]
    files: int
    plain_files: int
    summary: secateur.Summary


Same = Callable[[Callable[[], DataFrame]], Compared]


@pytest.fixture
def same(pruner: secateur.Pruner) -> Same:
    """Runs a query with pruning off and on and compares the rows: the test that every feature has to pass."""
    return partial(compare, pruner)


def compare(
    pruner: secateur.Pruner,
    query: Callable[[], DataFrame],
    meanwhile: Callable[[DataFrame], AbstractContextManager[object]] = nullcontext,
) -> Compared:
    """What a query gives with pruning on, checked against what it gives with pruning off; ``meanwhile`` it is on."""
    with pruner.paused():
        plain = query()
        expected = _sorted(plain.collect())
        plain_files = files_read(plain)
    before = len(pruner.history)
    pruned = query()
    with meanwhile(pruned):
        rows = pruned.collect()
    assert _sorted(rows) == expected
    assert before < len(pruner.history) or before == 100, "secateur did not see the query"
    summary = pruner.last
    assert summary is not None
    return Compared(rows, files_read(pruned), plain_files, summary)


def _sorted(rows: list[Any]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An empty directory for the tables of one test."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def files(tmp_path: Path) -> Lake:
    """An empty table of Parquet files, whose path needs every kind of care."""
    root = tmp_path / "a table, 100% ünï=1"
    root.mkdir()
    return Lake(root)
