"""Some random LIMITs, ORDER BYs and windows, with a fixed seed; ``make fuzz`` runs hundreds."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.ordered import Tally, round_of


def test_random_orders_and_limits_give_the_same_rows(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path
) -> None:
    for option in ("budget.ms", "filter.budget.ms"):
        spark.conf.set(f"spark.secateur.{option}", 60_000)
    tally = Tally()
    round_of(spark, pruner, tmp_path, "test", 2, 24, tally, files=6)
    assert tally.wrong == []
    assert tally.run >= 20
    assert len({"limit", "topk", "windows", "waves"} & set(tally.by)) >= 3, str(tally)
