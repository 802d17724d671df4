"""Of rows with the same value of a column the evaluator is asked about one: it must say of each what it says of all."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import numpy as np
import pytest

from secateur.evaluate import constant_folding
from secateur.evaluate.known_rows import rows_by
from secateur.passes.filter.tree import PruningTree
from secateur.plan.expressions import conjuncts
from secateur.stats.file_stats import FileStats
from tests.evaluate.generate import COLUMNS, Generator, Row, truth
from tests.passes.test_range_sets import with_ranges

BY_ID = {c.id: c for c in COLUMNS}


def table(draw: Generator) -> tuple[list[Row], FileStats]:
    """The rows of a small table, most of them many times, and its statistics row by row where they are known."""
    files = [draw.rows() * draw.rng.choice([1, 9]) for _ in range(6)]
    parts = rows_by(with_ranges(draw, files, 3, by_row=True))
    assert parts is not None
    # A file that is not known row by row is an entry of its own, of which this test says nothing.
    rows = [row for at, each in enumerate(files) if not parts.whole[at] for row in each]
    return rows, parts.stats.take(np.flatnonzero(~parts.whole[parts.owner]))


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_judged_as_if_each_had_been_asked_about(seed: int) -> None:
    draw = Generator(Random(seed))
    rows, stats = table(draw)
    alive = np.array([draw.chance(0.9) for _ in rows], np.bool_)
    for _ in range(10):
        predicate = tuple(conjuncts(draw.predicate()))
        once = PruningTree(predicate, BY_ID).entries(stats, alive)
        with patch.object(constant_folding, "_REPEATS", len(rows) + 1):
            assert (PruningTree(predicate, BY_ID).entries(stats, alive) == once).all()
        assert all(once[at] for at, row in enumerate(rows) if alive[at] and all(truth(c, row) for c in predicate))


def test_many_rows_are_not_asked_about() -> None:
    draw, spared, all_ = Generator(Random("alike")), 0, 0
    for _ in range(20):
        rows, stats = table(draw)
        for column in COLUMNS:
            found = constant_folding.distinct_entries(stats, column)
            all_ += len(rows)
            spared += 0 if found is None else len(rows) - found[0].count
    assert spared > all_ / 4
