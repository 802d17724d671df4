"""Some hundreds of random predicates with a fixed seed; ``make fuzz`` runs tens of thousands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.campaign import Campaign


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2, 3))])
def test_no_verdict_is_wrong(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, first: int) -> None:
    campaign = Campaign(spark, pruner, tmp_path, "make test")
    for number in (first, first + 4, first + 8):
        assert [str(line) for line in campaign.round(number, 35, answers=2)] == []
    assert campaign.tally.judged > 75
    assert campaign.tally.share > 0.4
