"""Random plans give the same rows over the files that are kept as over all of them; and a planted mistake is found."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from secateur.passes import PASSES, run_passes
from secateur.passes.joins import links
from secateur.passes.tuning import Tuning
from secateur.plan import propagation
from secateur.plan.join_kinds import JOIN_KINDS, JoinKind
from secateur.plan.nodes import Query
from tests.passes.plans import World
from tests.passes.results import all_kept

JOIN_RANGES = tuple(technique for technique in PASSES if technique.name == "join_ranges")


def wrong_plans(seed: str, count: int, *, by_row: bool = False) -> tuple[list[str], int]:
    """Plans whose rows differ, and how many plans skip files."""
    wrong, narrowed = [], 0
    for number in range(count):
        world = World(Random(f"{seed} {number}"), by_row)
        query = Query(number, "late", world.plan)
        decision = run_passes(query, world.stats, passes=JOIN_RANGES, tuning=Tuning(filter_seconds=600))
        failed = [r.text for scan in decision.values() for r in scan.reasons if r.code == "pass-failed"]
        if failed:
            wrong.append(f"{number}: {failed}\n{query}")
        if all(mask.all() for mask in all_kept(decision).values()):
            continue
        narrowed += 1
        kept = {**world.everything(), **all_kept(decision)}
        if world.rows(kept) != world.rows():
            shown = {id_: np.flatnonzero(~mask).tolist() for id_, mask in kept.items()}
            wrong.append(f"{number} skips {shown} of\n{query}\n{world.tables}")
    return wrong, narrowed


@pytest.mark.parametrize("count", [1500, pytest.param(6000, marks=pytest.mark.long)])
def test_the_same_rows_come_out(count: int) -> None:
    wrong, narrowed = wrong_plans("plans", count)
    assert not wrong, wrong[0]
    assert narrowed > count / 3


@pytest.mark.parametrize("count", [1000, pytest.param(4000, marks=pytest.mark.long)])
def test_the_same_rows_come_out_where_tables_are_known_row_by_row(count: int) -> None:
    wrong, narrowed = wrong_plans("rows", count, by_row=True)
    assert not wrong, wrong[0]
    assert narrowed > count * 0.45


def _but(kind: str, **sides: dict[str, bool]) -> JoinKind:
    """What is known of a kind of join, with some of it turned into a mistake."""
    right = JOIN_KINDS[kind]
    return replace(right, **{side: replace(getattr(right, side), **change) for side, change in sides.items()})


MISTAKES: dict[str, tuple[Any, str, object]] = {
    "a full outer join tells": (JOIN_KINDS, "FullOuter", _but("FullOuter", right={"partnered": True})),
    "the right side of a left outer join tells": (JOIN_KINDS, "LeftOuter", _but("LeftOuter", left={"partnered": True})),
    "the right side of an anti join tells": (JOIN_KINDS, "LeftAnti", _but("LeftAnti", left={"partnered": True})),
    "nothing is ever filled": (JOIN_KINDS, "LeftOuter", _but("LeftOuter", right={"filled": False})),
    "every expression is NULL with its columns": (links, "is_strict", lambda e: True),
    "partitions do not matter": (propagation, "is_made_of", lambda e, keys: True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, wrong = MISTAKES[mistake]
    if isinstance(where, dict):
        monkeypatch.setitem(where, name, wrong)
    else:
        monkeypatch.setattr(where, name, wrong)
    for start in range(20):
        if wrong_plans(f"planted {start}", 250)[0]:
            return
    pytest.fail(f"{mistake}, and nobody noticed")
