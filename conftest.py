"""Marks what needs Spark, and gives the examples in docstrings the fixtures that they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, settings

import secateur

pytest_plugins = ["tests.fixtures", "tests.formats.delta"]

# A machine that runs tests is busy: how long an example takes says nothing of the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

STARTS_JAVA = {"spark", "spark_process"}
"""Every fixture that starts a JVM; what uses one of them, directly or through others, is marked ``spark``."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _needs_handle(item) or not STARTS_JAVA.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("spark")


def _needs_handle(item: pytest.Item) -> bool:
    """Whether this is a docstring with an example of the handle."""
    examples = getattr(getattr(item, "dtest", None), "examples", ())
    return any(name in example.source for example in examples for name in ("pruner", "secateur.collect"))


@pytest.fixture(autouse=True)
def _java_only_if_marked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that is not marked finds no Java, nor does a process that it starts."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setenv("JAVA_HOME", "/nowhere")


@pytest.fixture(autouse=True)
def _names_for_doctests(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """A session, an attached handle, and a table of ten files, for the examples that need them."""
    if not _needs_handle(request.node):
        return
    spark, pruner = request.getfixturevalue("spark"), request.getfixturevalue("pruner")
    lake: Path = request.getfixturevalue("lake")
    (lake / "trails").mkdir()
    for i in range(10):
        pq.write_table(pa.table({"altit": [i * 200, i * 200 + 10]}), lake / "trails" / f"{i}.parquet")
    secateur.collect(spark, str(lake / "trails"))
    spark.read.parquet(str(lake / "trails")).createOrReplaceTempView("trails")
    doctest_namespace.update(spark=spark, pruner=pruner, secateur=secateur, lake=lake)
