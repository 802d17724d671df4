"""Some random join trees, with a fixed seed; ``make fuzz`` runs hundreds."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.passes.joins import join_keys
from secateur.plan.join_kinds import JOIN_KINDS
from tests.fuzz.joins import Tally, check, trees, write_tables


def run(
    spark: SparkSession, pruner: secateur.Pruner, folder: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> Tally:
    tally = Tally()
    monkeypatch.setattr(join_keys, "WORTH", 0)  # these tables are too small for a subquery to pay
    check(spark, pruner, trees("test", write_tables(spark, folder, "test"), count), tally)
    return tally


@pytest.mark.parametrize("count", [14, pytest.param(120, marks=pytest.mark.long)])
def test_random_join_trees_give_the_same_rows(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    tally = run(spark, pruner, tmp_path, monkeypatch, count)
    assert tally.wrong == []
    assert tally.run >= count * 0.8
    assert tally.narrowed >= count / 4


@pytest.mark.long
def test_a_planted_mistake_is_found(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every join lets each side tell the other, as if all were inner joins."""
    for kind in JOIN_KINDS:
        monkeypatch.setitem(JOIN_KINDS, kind, JOIN_KINDS["Inner"])
    assert run(spark, pruner, tmp_path, monkeypatch, 60).wrong
