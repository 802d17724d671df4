"""Tables of the connectors: the same rows with secateur as without, with the skipped files out of reach."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Compared, Same, _sorted

Alone = Callable[[Callable[[], DataFrame], Path], Compared]


@contextmanager
def out_of_reach(folder: Path, kept: set[str]) -> Iterator[int]:
    """Hides the table's data files that are not kept: reading one of them fails."""
    away = [f for f in folder.rglob("*.parquet") if "_delta_log" not in f.parts and str(f) not in kept]
    for file in away:
        os.rename(file, f"{file}.away")
    try:
        yield len(away)
    finally:
        for file in away:
            os.rename(f"{file}.away", file)


@pytest.fixture
def alone(spark: SparkSession, pruner: secateur.Pruner, same: Same) -> Alone:
    """Compares a query on and off, and runs it once more with every file that secateur skips moved away."""

    def compare(query: Callable[[], DataFrame], folder: Path) -> Compared:
        found = same(query)
        frame = query()
        kept = {unquote(urlparse(path).path) for path in frame.inputFiles()}
        with out_of_reach(folder, kept):
            assert _sorted(frame.collect()) == _sorted(found.rows)
        return found

    return compare
