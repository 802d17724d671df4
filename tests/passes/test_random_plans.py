"""Random plans give the same rows over the files that are kept as over all of them; and a planted mistake is found."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from secateur.passes import PASSES, run_passes
from secateur.passes.contract import Limits
from secateur.passes.joins import links as movement
from secateur.plan.nodes import Query
from tests.passes.plans import World

DIPS = tuple(technique for technique in PASSES if technique.name == "join_ranges")


def wrong_plans(seed: str, count: int, *, by_row: bool = False) -> tuple[list[str], int]:
    """Plans whose rows differ, and how many plans skip files."""
    wrong, narrowed = [], 0
    for number in range(count):
        world = World(Random(f"{seed} {number}"), by_row)
        query = Query(number, "late", world.plan)
        decision = run_passes(query, world.stats, passes=DIPS, limits=Limits(filter_seconds=600))
        failed = [r.text for reasons in decision.reasons.values() for r in reasons if r.code == "pass-failed"]
        if failed:
            wrong.append(f"{number}: {failed}\n{query}")
        if all(mask.all() for mask in decision.kept.values()):
            continue
        narrowed += 1
        kept = {**world.everything(), **decision.kept}
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


MISTAKES = {
    "a full outer join tells": (movement, "_TO_RIGHT", movement._TO_RIGHT | {"FullOuter"}),
    "the right side of a left outer join tells": (movement, "_TO_LEFT", movement._TO_LEFT | {"LeftOuter"}),
    "the right side of an anti join tells": (movement, "_TO_LEFT", movement._TO_LEFT | {"LeftAnti"}),
    "nothing is ever filled": (movement, "_FILLS_RIGHT", frozenset()),
    "every expression is NULL with its columns": (movement, "is_strict", lambda e: True),
    "partitions do not matter": (movement, "is_made_of", lambda e, keys: True),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MISTAKES[mistake])
    for start in range(20):
        if wrong_plans(f"planted {start}", 250)[0]:
            return
    pytest.fail(f"{mistake}, and nobody noticed")
