"""The campaign can find mistakes: rules that are broken on purpose are found, and shrink to a line that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import RULES, moments
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.expressions import Call
from secateur.plan.time_zones import UTC
from tests.fuzz.campaign import Campaign
from tests.fuzz.regressions import parse, replay

Break = Callable[[ValueRange], ValueRange]


def _never_null(facts: ValueRange) -> ValueRange:
    return replace(facts, may_hold_null=False)


def _always_null(facts: ValueRange) -> ValueRange:
    return replace(facts, may_hold_value=False, may_hold_number=False)


def _never_nan(facts: ValueRange) -> ValueRange:
    return replace(facts, may_hold_nan=False, may_hold_value=facts.may_hold_number)


def _one_too_low(facts: ValueRange) -> ValueRange:
    return replace(facts, high=Bound(np.asarray(facts.high.values) - 1, facts.high.unknown))


def _surely(facts: ValueRange) -> ValueRange:
    """What may be TRUE is TRUE."""
    return replace(facts, low=facts.high)


PLANTED = [
    # the function, what its rule gets wrong, the line of the grammar that uses it
    ("Coalesce", _never_null, "coalesce({int}, {int})"),
    ("Length", _always_null, "length({text})"),
    ("Month", _one_too_low, "month({time})"),
    ("EndsWith", _surely, "endswith("),
    ("Sqrt", _never_nan, "sqrt("),
]


def _broken(rule: Rule, break_: Break) -> Rule:
    def broken(call: Call, scope: EvalContext) -> ValueRange | None:
        found = rule(call, scope)
        return break_(found) if found is not None else None

    return broken


@pytest.mark.long
@pytest.mark.parametrize(("function", "break_", "favour"), PLANTED, ids=lambda x: getattr(x, "__name__", str(x)))
def test_a_broken_rule_is_found(
    spark: SparkSession,
    pruner: secateur.Pruner,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    break_: Break,
    favour: str,
) -> None:
    monkeypatch.setitem(RULES, function, _broken(RULES[function], break_))
    _found(spark, pruner, tmp_path, monkeypatch, favour)


@pytest.mark.long
def test_a_forgotten_time_zone_is_found(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "zone_of", lambda call, scope, of=None: UTC)
    _found(spark, pruner, tmp_path, monkeypatch, "hour({moment})")


def _found(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, favour: str
) -> None:
    """The mistake is found within some rounds and shrinks to a line that is wrong with it and right without."""
    campaign = Campaign(spark, pruner, tmp_path, "planted")
    lines = []
    for number in (4, 14, 16, 28, 34):  # legacy mode, where little fails; several lenses and zones
        lines = campaign.round(number, 24, favour=favour, files=8, shrunk=1)
        if lines:
            break
    assert lines, f"{campaign.tally}"
    line = parse(str(lines[0]))
    assert len(line.sql) < 90, line
    assert len(line.file) <= 2, line
    assert len(next(iter(line.file.values()))) <= 2, line
    seen = replay(spark, pruner, tmp_path, line)
    assert seen is not None
    assert seen.wrong == line.wrong
    monkeypatch.undo()
    seen = replay(spark, pruner, tmp_path, line)
    assert seen is not None
    assert not seen.wrong
