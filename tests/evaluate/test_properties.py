"""No wrong skip, no wrong match, whatever the data: the evaluator against SQL's meaning, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secateur.evaluate.evaluator import evaluate
from secateur.passes.filter.filter import narrow
from secateur.plan.expressions import conjuncts
from tests.evaluate.generate import COLUMNS, Generator, truth
from tests.evaluate.language import file_stats

BY_ID = {c.id: c for c in COLUMNS}
thorough = settings(max_examples=200, suppress_health_check=list(HealthCheck))
randoms = st.integers(0, 2**64).map(Random)


@contextmanager
def stepping(block: int, sparse: float) -> Iterator[None]:
    """Blocks of this size, and entries picked out if at most this share is left."""
    with (
        patch("secateur.stats.file_stats.BLOCK", block),
        patch("secateur.passes.filter.filter.BLOCK", block),
        patch("secateur.passes.filter.tree.SPARSE", sparse),
    ):
        yield


@thorough
@given(randoms)
def test_verdicts_allow_what_happens(rng: Random) -> None:
    draw = Generator(rng)
    files = [draw.rows() for _ in range(12)]
    stats = file_stats([draw.entry(rows) for rows in files], COLUMNS)
    for _ in range(12):
        predicate = draw.predicate()
        verdict = evaluate(predicate, stats, BY_ID)
        for at, rows in enumerate(files):
            results = {truth(predicate, row) for row in rows}
            told = f"{predicate} on {[{c.name: row[c.id] for c in COLUMNS} for row in rows]}"
            assert verdict.may[at] or True not in results, f"wrong skip: {told}"
            assert verdict.can_false[at] or False not in results, f"wrong 'never FALSE': {told}"
            assert verdict.can_null[at] or None not in results, f"wrong 'never NULL': {told}"
            assert not verdict.must[at] or results <= {True}, f"wrong match: {told}"


@thorough
@given(randoms)
def test_blocks_rule_out_only_what_files_would(rng: Random) -> None:
    draw = Generator(rng)
    files = [draw.rows() for _ in range(23)]
    kept = np.array([draw.chance(0.9) for _ in files])
    for _ in range(6):
        # Fresh statistics each time, because blocks are kept with them.
        stats = file_stats([draw.entry(rows) for rows in files], COLUMNS)
        parts = tuple(part for _ in range(rng.choice([1, 2, 4])) for part in conjuncts(draw.predicate(depth=2)))
        expected = kept.copy()
        for part in parts:
            expected &= evaluate(part, stats, BY_ID).may
        with stepping(block=rng.choice([2, 3, 5]), sparse=rng.choice([0.0, 0.5, 0.95])):
            assert narrow(parts, stats, BY_ID, kept).tolist() == expected.tolist(), " AND ".join(map(str, parts))


@thorough
@given(randoms)
def test_a_subset_gets_the_same_verdicts(rng: Random) -> None:
    draw = Generator(rng)
    stats = file_stats([draw.entry(draw.rows()) for _ in range(20)], COLUMNS)
    some = np.array(sorted(rng.sample(range(20), 7)), dtype=np.int64)
    predicate = draw.predicate()
    whole, part = evaluate(predicate, stats, BY_ID), evaluate(predicate, stats.take(some), BY_ID)
    assert part.may.tolist() == whole.may[some].tolist()
    assert part.must.tolist() == whole.must[some].tolist()


def test_the_generator_reaches_every_outcome() -> None:
    """A property that never sees a skip or a match would prove nothing."""
    draw = Generator(Random(1))
    stats = file_stats([draw.entry(draw.rows()) for _ in range(200)], COLUMNS)
    verdicts = [evaluate(draw.predicate(), stats, BY_ID) for _ in range(200)]
    assert 0.1 < np.mean([~v.may for v in verdicts]) < 0.9
    assert 0.1 < np.mean([v.must for v in verdicts]) < 0.9
