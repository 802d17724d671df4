"""A few hundred random conditions and what they imply, with a fixed seed."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.implied import Tally, round_of


@pytest.mark.parametrize("rounds", [(0, 1), pytest.param((2, 4, 5, 6, 7), marks=pytest.mark.long)], ids=str)
def test_what_satisfies_a_condition_satisfies_what_it_implies(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, rounds: tuple[int, ...]
) -> None:
    tally = Tally()
    for number in rounds:
        round_of(spark, pruner, tmp_path, "test", number, tally)
    assert tally.wrong == []
    assert tally.implied >= 7.5 * len(rounds)
