"""The measurements' own parts: a comparison that notices, layouts that lose nothing, skew that keeps every partner."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from bench.cdf import Panel, draw
from bench.report import context, keep
from bench.tables import newest, page
from bench.tpc import cyclic, skew
from bench.tpc.check import LIMIT, same
from bench.tpc.data import LAYOUTS, laid_out
from bench.tpc.decide import write_log
from bench.tpc.queries import in_spark


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")], True),
        ([(1, 0.1 + 0.2)], [(1, 0.3)], True),
        ([(1, float("nan"))], [(1, float("nan"))], True),
        ([(1, 1.0)], [(1, 1.001)], False),
        ([(1, "a")], [(1, "b")], False),
        ([(1, "a")], [(1, "a"), (1, "a")], False),
        ([(1, "a"), (1, "b")], [(1, "a"), (1, "a")], False),
        ([(1, None)], [(1, 0)], False),
    ],
)
def test_other_rows_are_noticed(one: list[tuple[object, ...]], other: list[tuple[object, ...]], equal: bool) -> None:
    assert same(one, other) is equal


def test_queries_are_put_into_sparks_dialect() -> None:
    assert in_spark("SELECT a AS \"30 days\" FROM t WHERE b = 'x' LIMIT 10;") == (
        "SELECT a AS `30 days` FROM t WHERE b = 'x' LIMIT 10"
    )
    assert LIMIT.sub("", "SELECT 1 limit 100\n").strip() == "SELECT 1"


def test_layouts_hold_the_same_rows(tmp_path: Path) -> None:
    base = tmp_path / "cyclic-0.001" / "base"
    base.mkdir(parents=True)
    cyclic.write(0.001, base)
    whole = pq.read_table(base / "movie_link.parquet").sort_by([("ml_movie", "ascending"), ("ml_linked", "ascending")])
    for layout in LAYOUTS:
        folder = laid_out("cyclic", layout, 0.001, 10, tmp_path) / "movie_link"
        files = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
        assert len(files) > 5
        rows = pa.concat_tables(files).sort_by([("ml_movie", "ascending"), ("ml_linked", "ascending")])
        assert rows.equals(whole)
        if layout == "date":
            bounds = [pc.min_max(file["ml_movie"]).as_py() for file in files]
            assert all(a["max"] <= b["min"] for a, b in zip(bounds, bounds[1:], strict=False))  # noqa: RUF007


def test_skewed_values_are_those_of_the_table(tmp_path: Path) -> None:
    drawn = skew._zipf(1000, 20_000, np.random.default_rng(1))
    assert (drawn.min() >= 0) & (drawn.max() < 1000)
    assert np.bincount(drawn).max() > 0.5 * 20_000


def test_a_picture_has_a_line_for_each_way() -> None:
    svg = draw([Panel("TPC-H", {"filters": [1.0, 2.0], "joins": [3.0, 200.0]}, [(2.0, 0.4)])], "INPUTCUT")
    assert svg.count("<polyline") == 4  # two in the legend
    assert svg.count("<circle") == 2


def test_a_made_up_log_tells_what_the_rows_are(tmp_path: Path) -> None:
    days = [3, None, 1, 2] * 20
    pq.write_table(pa.table({"inv_date_sk": days, "inv_item_sk": range(80)}), tmp_path / "inventory.parquet")
    write_log(tmp_path / "inventory.parquet", tmp_path / "log", 4)
    log = (tmp_path / "log" / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    added = [json.loads(json.loads(line)["add"]["stats"]) for line in log[2:]]
    assert [stats["numRecords"] for stats in added] == [20] * 4
    assert [stats["minValues"]["inv_date_sk"] for stats in added] == [None, 1, 2, 3]
    assert [stats["maxValues"]["inv_item_sk"] for stats in added] == [77, 78, 79, 76]
    assert [stats["nullCount"]["inv_date_sk"] for stats in added] == [20, 0, 0, 0]


def test_a_record_is_kept_and_becomes_a_table(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"RECORD=1 python -m bench\.star"):
        newest("star", tmp_path)
    found = context()
    assert all(found[key] for key in ("date", "python", "pyspark", "pyarrow", "cpus"))
    case = {"files": 61, "spared": 0.9797, "times": 2.45}
    record = {"bench": "star", "context": found, "files": 3000, "cases": {"correlated": case}, "average": 0.98}
    keep(record, tmp_path)
    assert newest("star", tmp_path) == record
    text = page("before\n<!-- record: star -->\nold\n<!-- end -->\nafter\n", tmp_path)
    assert "| one in fifty, side by side | 3,000 → 61 | 98.0% | 2.5 |" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
