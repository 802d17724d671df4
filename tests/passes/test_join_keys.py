"""What the keys of one side of a join tell, and never that a key that was seen or lies beside them is not there."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secateur.decision.parts import AskAtRuntime
from secateur.passes.contract import PassInput
from secateur.passes.joins.join_keys import BITS, MOST_KEYS, JoinKeys, ask_join_keys
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Call, Column, Compare
from secateur.plan.nodes import Filter, Join, Query, Scan
from secateur.plan.types import parse_type
from secateur.reasons import Reason
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.passes.results import parts

KEY, TARGET = (Column(at, name, parse_type("bigint")) for at, name in ((1, "k"), (2, "f")))
LIST = JoinKeys(0, True, KEY, TARGET, "dim")
WHOLE = st.integers(-(2**63), 2**63 - 1)


def bits_of(keys: JoinKeys, found: list[int]) -> str:
    """The map as the subquery makes it: of the keys inside, one bit each."""
    assert keys.low is not None
    assert keys.high is not None
    bits = np.zeros(BITS, np.bool_)
    for key in found:
        if keys.low <= key <= keys.high:
            bits[(key - keys.low) // keys.width] = True
    return base64.b64encode(np.packbits(bits, bitorder="little").tobytes()).decode()


@given(WHOLE, st.integers(0, 2**62 - 1) | st.integers(0, 100_000), st.lists(WHOLE), st.data())
def test_a_map_has_every_key_and_all_that_lies_beside_it(
    low: int, span: int, anywhere: list[int], data: st.DataObject
) -> None:
    high = min(low + span, 2**63 - 1)
    inside = data.draw(st.lists(st.integers(low, high)))
    asked = JoinKeys(0, True, KEY, TARGET, "dim", low, high)
    told = asked.condition([len(inside), bits_of(asked, inside + anywhere)])
    assert told is not None
    pairs = told.values.pairs()
    assert all(a <= b for a, b in pairs)
    for key in (*inside, *anywhere, -(2**63), 2**63 - 1):
        if key in inside or key in anywhere or not low <= key <= high:
            assert any(a <= key <= b for a, b in pairs), key


def test_a_map_is_exact_where_numbers_are_fewer_than_bits() -> None:
    asked = JoinKeys(0, True, KEY, TARGET, "dim", 100, 100 + BITS - 1)
    told = asked.condition([2, bits_of(asked, [105, 200])])
    assert told is not None
    assert told.values.pairs()[1:-1] == [(105, 105), (200, 200)]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [2],
        [MOST_KEYS + 1, list(range(MOST_KEYS + 1))],  # a list that was cut short
        [3, [1, 2]],
        [2, [1, None]],
        [1, "AAAA"],
        ["1", [1]],
        None,
    ],
    ids=str,
)
def test_what_is_no_whole_list_tells_nothing(values: list[object] | None) -> None:
    assert LIST.condition(values or ()) is None


def test_a_list_is_told_as_it_is_and_none_is_none() -> None:
    told, nothing = LIST.condition([3, [7, 5, 6]]), LIST.condition([0, []])
    assert told is not None
    assert nothing is not None
    assert told.values.pairs() == [(5, 7)]
    assert nothing.values.is_empty


@pytest.mark.parametrize(("files", "asked"), [(300, False), (5_000, True)])
def test_what_a_condition_leaves_is_tried_out_where_asking_is_cheap(files: int, asked: bool) -> None:
    """By the usual guess a tenth of 100,000 keys is left, and then every file would be hit."""
    outcome = ask_join_keys(_star(files, rows_of_dim=100_000, condition=True))
    assert (parts(outcome, AskAtRuntime).keys() == {2}) is asked
    assert not parts(ask_join_keys(_star(files, rows_of_dim=100_000, condition=False)), AskAtRuntime)


def test_why_nobody_is_asked() -> None:
    """It would spare more than it costs, but not three times as much; where it spares less, nothing is said of it."""
    outcome = ask_join_keys(_star(500, rows_of_dim=1_000, condition=True))
    assert not parts(outcome, AskAtRuntime)
    ((scan, reason),) = parts(outcome, Reason).items()
    assert (scan, reason.code) == (2, "join-keys-not-worth")
    assert "might skip 67% of the files of f" in reason.text
    assert not ask_join_keys(_star(100, rows_of_dim=1_000, condition=True))


def _star(files: int, rows_of_dim: int, *, condition: bool) -> PassInput:
    """A table in files sorted by its key, joined with a table of one file, with a condition that nobody understands."""
    dim, fact = (Scan(c.id, c.name, "parquet", c.name, (ScanColumn(c.id, c.name, c.type),)) for c in (KEY, TARGET))
    side = Filter(Call("Like", (KEY,), parse_type("boolean")), dim) if condition else dim
    plan = Join("Inner", Compare("=", KEY, TARGET), side, fact, ref=1)
    lows = np.arange(files) * (rows_of_dim // files)
    stats = {1: _stats(np.array([0]), rows_of_dim), 2: _stats(lows, rows_of_dim // files)}
    return PassInput.of(Query(1, "late", plan), stats, {id_: np.ones(s.count, np.bool_) for id_, s in stats.items()})


def _stats(lows: np.ndarray, rows: int) -> FileStats:
    exact, zeros = np.ones(len(lows), np.bool_), pa.array(np.zeros(len(lows), np.int64))
    column = ColumnStats(pa.array(lows), pa.array(lows + rows - 1), zeros, zeros, exact, exact)
    counts = pa.array(np.full(len(lows), rows))
    return FileStats(counts, counts, load=lambda _: column)
