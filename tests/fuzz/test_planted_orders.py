"""The campaign of LIMITs, ORDER BYs and windows can find mistakes: each of these, made on purpose, is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.bridge import wire
from secateur.passes import limit, topk, waves, windows
from secateur.passes.limited import Counts, Limited
from secateur.passes.sorted_scans import Sorted
from secateur.query.expressions import Compare, Expression, IsNull, Literal, Or
from secateur.query.plan import Limit, Opaque, Plan, SortKey
from tests.fuzz.ordered import Tally, round_of

Made = Callable[..., Any]


def _different_as_rows(real: Made) -> Made:
    return lambda known: (replace(limited, grouped=False) for limited in real(known))


def _strict(_: Made) -> Made:
    def beyond(key: SortKey, boundary: Literal) -> Expression:
        compared = Compare(">" if key.descending else "<", key.expression, boundary)
        return Or(compared, IsNull(key.expression)) if key.nulls_first else compared

    return beyond


def _ties_dropped(real: Made) -> Made:
    def ends(*args: Any) -> Any:
        reached, last = real(*args)
        return reached, last - 1

    return ends


def _other_nulls(real: Made) -> Made:
    return lambda key, boundary: real(replace(key, nulls_first=not key.nulls_first), boundary)


def _other_way(real: Made) -> Made:
    return lambda key, boundary: real(replace(key, descending=not key.descending), boundary)


def _of_first_key(**changed: bool) -> Callable[[Made], Made]:
    def make(real: Made) -> Made:
        def first(limited: Limited, *rest: Any) -> Any:
            key = limited.keys[0]
            other = replace(key, **{name: getattr(key, name) != flip for name, flip in changed.items()})
            return real(replace(limited, keys=(other, *limited.keys[1:])), *rest)

        return first

    return make


def _nans_in_front(real: Made) -> Made:
    return lambda key, *rest: real(replace(key, descending=True), *rest)


def _nulls_in_front(real: Made) -> Made:
    return lambda key, *rest: real(replace(key, nulls_first=True), *rest)


def _deleted_too(real: Made) -> Made:
    def rows(stats: Any, full: Any) -> Counts:
        counts: Counts = np.where(full, real(stats, full) + 3, 0)
        return counts

    return rows


def _half_below_offset(real: Made) -> Made:
    def decode(node: Any, settings: Any) -> Plan:
        plan: Plan = real(node, settings)
        if isinstance(plan, Opaque) and plan.what == "Offset" and isinstance(plan.children[0], Limit):
            below = plan.children[0]
            return replace(plan, children=(replace(below, count=below.count // 2), *plan.children[1:]))
        return plan

    return decode


def _one_less(real: Made) -> Made:
    def found(*args: Any, **named: Any) -> Iterator[Any]:
        for each in real(*args, **named):
            yield replace(each, count=max(each.count - 1, 1)) if isinstance(each, Limited | Sorted) else each

    return found


def _all_match(_: Made) -> Made:
    return lambda limited, stats, kept, settings: kept


MISTAKES = {
    # What is wrong, where, and how it is made so.
    "dense_rank counts rows": ((windows, "limited_windows", _different_as_rows),),
    "ties are dropped": ((topk, "at_or_beyond", _strict),),
    "ties are dropped at run time": ((waves, "at_or_beyond", _strict),),
    "ties are dropped in groups": ((windows, "_ends", _ties_dropped),),
    "NULLs at the other end": ((topk, "at_or_beyond", _other_nulls),),
    "NULLs at the other end at run time": ((waves, "at_or_beyond", _other_nulls),),
    "NULLs at the other end in groups": ((windows, "may_come_first", _of_first_key(nulls_first=True)),),
    "NULLs count as the first": ((topk, "_ranked_rows", _nulls_in_front),),
    "NaN counts as the least": ((topk, "_ranked_rows", _nans_in_front),),
    "deleted rows count": tuple((module, "sure_rows", _deleted_too) for module in (limit, topk, windows)),
    "OFFSET is ignored": ((wire, "decode_plan", _half_below_offset),),
    "one row too few": tuple((module, "limited_scans", _one_less) for module in (limit, topk)),
    "one row too few at run time": ((waves, "sorted_scans", _one_less),),
    "one row too few in groups": ((windows, "limited_windows", _one_less),),
    "descending for ascending": ((topk, "at_or_beyond", _other_way),),
    "descending for ascending at run time": ((waves, "at_or_beyond", _other_way),),
    "descending for ascending in groups": ((windows, "may_come_first", _of_first_key(descending=True)),),
    "any row counts as a match": tuple((module, "fully_matching", _all_match) for module in (limit, topk, windows)),
}


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    for option in ("budget.ms", "filter.budget.ms"):
        spark.conf.set(f"spark.secateur.{option}", 60_000)
    for module, name, make in MISTAKES[mistake]:
        monkeypatch.setattr(module, name, make(getattr(module, name)))
    tally = Tally()
    for number in (1, 3, 5, 7, 9, 11, 13, 15):
        round_of(spark, pruner, tmp_path, f"planted{list(MISTAKES).index(mistake)}", number, 20, tally)
        if tally.wrong:
            break
    assert tally.wrong, str(tally)
