"""A few hundred random conditions and what they imply, with a fixed seed."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.implied import Tally, round_of


def test_what_satisfies_a_condition_satisfies_what_it_implies(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path
) -> None:
    tally = Tally()
    for number in (0, 1, 2, 4):
        round_of(spark, pruner, tmp_path, "test", number, tally)
    assert tally.wrong == []
    assert tally.implied >= 30
