"""Some random LIMITs, ORDER BYs and windows, with a fixed seed; ``make fuzz`` runs hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.ordered import MEANT, Tally, round_of


def test_random_orders_and_limits_give_the_same_rows(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path
) -> None:
    tally = Tally()
    for number in (2, 4, 7):
        round_of(spark, pruner, tmp_path, "test", number, 12, tally, files=10)
        # What is not narrowed cannot be wrong: every technique, and every kind of question by what is meant for it.
        if tally.by.keys() >= {"limit", "topk", "topk_probe", "window_topk"} and all(
            tally.meant[kind] for kind in MEANT
        ):
            break
    else:
        pytest.fail(str(tally))
    assert tally.wrong == []
