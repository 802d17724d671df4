"""The first rows of each group: what counts, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.decision.parts import Keep
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.value_range import ValueRange
from secateur.passes.contract import PassInput
from secateur.passes.limits import window_topk
from secateur.passes.limits.window_topk import prune_by_window_topk
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Column
from secateur.plan.nodes import GroupLimit, Query, Scan, SortKey
from secateur.plan.types import parse_type
from secateur.stats.file_stats import ColumnStats, FileStats
from tests.passes.results import parts

TEXT = parse_type("string")
S = Column(1, "s", TEXT)
SCAN = Scan(0, "t", "parquet", "fp", (ScanColumn(1, "s", TEXT),))
FIRST_TWO = Query(1, "late", GroupLimit("Rank", 2, (), (SortKey(S, descending=True, nulls_first=False),), SCAN))


def test_a_bound_that_is_null_is_unknown_whoever_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros, flags = pa.array([0] * 3), np.ones(3, np.bool_)
    low, high = pa.array([b"a", b"y", b"c"]), pa.array([b"b", b"z", b"d"])
    known = ColumnStats(low, high, zeros, zeros, flags, flags)
    stats = FileStats(pa.array([2] * 3), pa.array([9] * 3), lambda column: known)
    asked = PassInput.of(FIRST_TWO, {0: stats}, {0: np.ones(3, np.bool_)})
    assert parts(prune_by_window_topk(asked), Keep)[0].files.tolist() == [False, True, False]

    def careless(*args: Any) -> ValueRange | None:
        """A rule that leaves the upper bound of the last file NULL and does not say that it is unknown."""
        facts = range_of(*args)
        assert facts is not None
        return replace(facts, high=replace(facts.high, values=pa.array([b"b", b"z", None]), prefix_keys=None))

    monkeypatch.setattr(window_topk, "range_of", careless)
    assert parts(prune_by_window_topk(asked), Keep)[0].files.tolist() == [False, True, True]
