"""Some random join trees, with a fixed seed; ``make fuzz`` runs hundreds."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.joins import Tally, check, trees, write_tables


def test_random_join_trees_give_the_same_rows(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    for option in ("budget.ms", "filter.budget.ms"):
        spark.conf.set(f"spark.secateur.{option}", 60_000)
    tables = write_tables(spark, tmp_path, "test")
    tally = Tally()
    check(spark, pruner, trees("test", tables, 32), tally)
    assert tally.wrong == []
    assert tally.run >= 25
    assert tally.narrowed >= 8
