"""A few hundred random conditions and what they imply, with a fixed seed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.campaign import settings
from tests.fuzz.harness import Bench
from tests.fuzz.implied import CAMPAIGNS, Tally, check


@pytest.mark.parametrize("name", list(CAMPAIGNS))
def test_what_satisfies_a_condition_satisfies_what_it_implies(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, name: str
) -> None:
    tables, generate, confs = CAMPAIGNS[name]
    rng, tally = Random(f"implied {name}"), Tally()
    bench = Bench(spark, pruner, tmp_path / name.replace(" ", "_"), tables(rng))
    with settings(spark, confs[-1]):
        check(bench, [generate(rng) for _ in range(100)], tally, run=8)
    assert tally.wrong == []
    assert tally.implied >= 10
