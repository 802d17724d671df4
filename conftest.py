"""Makes the fixtures of the tests known to the doctests in src as well, and gives those of the handle a Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secateur

pytest_plugins = ["tests.fixtures", "tests.formats.delta"]


@pytest.fixture(autouse=True)
def _names_for_doctests(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """A session, an attached handle, and a table of ten files, for the examples that need them."""
    examples = getattr(getattr(request.node, "dtest", None), "examples", ())
    if not any(name in example.source for example in examples for name in ("pruner", "secateur.collect")):
        return
    spark, pruner = request.getfixturevalue("spark"), request.getfixturevalue("pruner")
    lake: Path = request.getfixturevalue("lake")
    (lake / "trails").mkdir()
    for i in range(10):
        pq.write_table(pa.table({"altit": [i * 200, i * 200 + 10]}), lake / "trails" / f"{i}.parquet")
    secateur.collect(spark, str(lake / "trails"))
    spark.read.parquet(str(lake / "trails")).createOrReplaceTempView("trails")
    doctest_namespace.update(spark=spark, pruner=pruner, secateur=secateur, lake=lake)
