"""The rules for bits against brute force: every value of every pair of small ranges, and the edges of the types."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from secateur.evaluate.evaluator import verdict_of
from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.rules import RULES
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Call, Column, Literal
from secateur.plan.nodes import Settings
from secateur.plan.types import parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

INT = parse_type("int")
LEAST, MOST = -(2**31), 2**31 - 1


def wrapped(value: int) -> int:
    """As Java keeps an int."""
    return (value + 2**31) % 2**32 - 2**31


def shifted_right(places: int, a: int, _: int) -> int:
    return a >> (places % 32)


def shifted_left(places: int, a: int, _: int) -> int:
    return wrapped(a << (places % 32))


FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "BitwiseAnd": lambda a, b: a & b,
    "BitwiseOr": lambda a, b: a | b,
    "BitwiseXor": lambda a, b: a ^ b,
    "BitwiseNot": lambda a, _: ~a,
    "BitwiseCount": lambda a, _: bin(a % 2**64).count("1"),
    **{f"ShiftRight {n}": partial(shifted_right, n) for n in (0, 1, 31, 33)},
    **{f"ShiftLeft {n}": partial(shifted_left, n) for n in (0, 1, 5, 30, 33)},
}


def ranges() -> list[tuple[int, int]]:
    rng = random.Random(5)
    edges = [(LEAST, LEAST + 3), (MOST - 3, MOST), (-1, 0), (0, 0), (-1, -1), (7, 8), (0, 4), (-5, 5)]
    return edges + [(low, low + rng.randrange(6)) for low in rng.choices(range(-40, 40), k=12)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_result_is_within_the_range(name: str) -> None:
    pairs = list(itertools.product(ranges(), ranges()))
    columns = {i: ScanColumn(i, "ab"[i], INT) for i in (0, 1)}
    ones = np.ones(len(pairs), np.bool_)

    def load(column: ScanColumn) -> ColumnStats:
        at = "ab".index(column.name)
        low, high = (pa.array([pair[at][end] for pair in pairs], pa.int64()) for end in (0, 1))
        zero = pa.array([0] * len(pairs), pa.int64())
        return ColumnStats(low, high, zero, zero, ones, ones)

    stats = FileStats(pa.array([9] * len(pairs)), pa.array([1] * len(pairs)), load)
    function, _, places = name.partition(" ")
    a, b = Column(0, "a", INT), Column(1, "b", INT)
    args = (a, Literal(int(places), INT)) if places else (a,) if function in ("BitwiseNot", "BitwiseCount") else (a, b)
    found = range_of(Call(function, args, INT), EvalContext(stats, columns, Settings(), verdict_of, RULES))
    assert found is not None
    assert found.may_hold_null is False or not np.any(found.may_hold_null)
    for i, ((alow, ahigh), (blow, bhigh)) in enumerate(pairs):
        results = [FUNCTIONS[name](x, y) for x in range(alow, ahigh + 1) for y in range(blow, min(bhigh, blow + 6) + 1)]
        assert found.low.values[i] <= min(results), (name, pairs[i])
        assert found.high.values[i] >= max(results), (name, pairs[i])
