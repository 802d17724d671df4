"""Requests go in, answers come out: what the planner asks for first, what it decides, and what it says of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secateur.report.history import History
from secateur.report.summary import ScanSummary
from secateur.session.planner import Planner
from secateur.stats.registry import Registry
from tests.stats.jvm_columns import as_sent, flags, longs
from tests.stats.lake import Lake

CONF = {"time_zone": "UTC", "ansi": True, "case_sensitive": False}
OPTIONS = {"spark.secateur.stats.auto": "false", "spark.secateur.filter.budget.ms": "60000"}
NAMES = {"a": 1, "b": 2, "c": 3}


def ref(name: str) -> dict[str, Any]:
    return {"a": NAMES[name], "n": name, "t": "bigint"}


def call(function: str, *children: Any, type_: str = "boolean") -> dict[str, Any]:
    return {"f": function, "t": type_, "c": list(children)}


def compared(function: str, name: str, value: int) -> dict[str, Any]:
    return call(function, ref(name), {"v": value, "t": "bigint"})


def scan(fingerprint: str, **more: Any) -> dict[str, Any]:
    columns = [[id_, name, "bigint", "data", 0] for name, id_ in NAMES.items()]
    return {"n": "Scan", "id": 0, "table": "t", "format": "f", "fp": fingerprint, "use": 1, "cols": columns} | more


def where(condition: dict[str, Any], child: dict[str, Any]) -> dict[str, Any]:
    return {"n": "Filter", "x": [condition], "c": [child]}


class Asked:
    """A planner with its history; what it answers comes as values."""

    def __init__(self) -> None:
        self.history = History(100)
        self._planner = Planner(Registry(None), self.history)
        self._calls = 0

    def raw(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._planner.answer(json.dumps(request)))
        return answer

    def decide(self, plan: dict[str, Any], options: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        self._calls += 1
        request = {"op": "decide", "query": 1, "call": self._calls, "stage": "early", "conf": CONF}
        return self.raw(request | {"options": OPTIONS | (options or {}), "plan": plan} | more)

    def summary(self, fingerprint: str) -> ScanSummary:
        """What is said of the last decision, once the JVM applied it."""
        recorded = {"id": 0, "use": 1, "table": "t", "format": "f", "files": 9, "bytes": 9, "fp": fingerprint}
        self.history.absorb([{"query": self._calls, "call": self._calls, "scans": [recorded]}])
        (found,) = self.history.summaries[-1].scans
        return found


def skipped(answer: dict[str, Any], count: int) -> list[int]:
    """The files that the only edit of an answer takes away."""
    (edit,) = answer["edits"]
    bits = np.unpackbits(np.frombuffer(base64.b64decode(edit["skip"]), np.uint8), bitorder="little")
    return [int(i) for i in np.flatnonzero(bits[:count])]


def listed(files: Lake) -> dict[str, Any]:
    """The listing of a table as the bridge sends it."""
    listing = files.listing()
    paths = [Path(p.removeprefix("file:")) for p in listing.paths.to_pylist()]
    return {
        "fp": "files",
        "roots": [f"file:{files.root}"],
        "dirs": [f"file:{files.root}"],
        "dir": [0] * len(paths),
        "names": [path.name for path in paths],
        "len": listing.lengths.tolist(),
        "mtime": listing.mtimes.tolist(),
        "pcols": [],
        "pvals": [[]],
    }


@pytest.fixture
def four(files: Lake) -> dict[str, Any]:
    """Four files of ten rows in two row groups each."""
    for i in range(4):
        table = {"a": list(range(i * 10, i * 10 + 10)), "b": [i] * 10}
        files.write(f"{i}.parquet", {name: pa.array(v, pa.int64()) for name, v in table.items()}, row_group_size=5)
    files.collect()
    return listed(files)


def test_a_listing_is_asked_for_and_kept(four: dict[str, Any]) -> None:
    asked, plan = Asked(), where(compared("EqualTo", "a", 15), scan("files"))
    assert asked.decide(plan) == {"need": ["files"], "have": []}
    assert skipped(asked.decide(plan, listings=[four]), 4) == [0, 2, 3]
    assert skipped(asked.decide(plan), 4) == [0, 2, 3]


DECISIONS: dict[str, tuple[dict[str, Any], list[int], tuple[int, int]]] = {
    # a condition, the files that are taken away, row groups of all files and those that may match
    "one row group of one file": (compared("EqualTo", "a", 15), [0, 2, 3], (8, 1)),
    "one file whole": (compared("EqualTo", "b", 1), [0, 2, 3], (8, 2)),
    "parts of two files": (compared("GreaterThan", "a", 26), [0, 1], (8, 3)),
    "no file": (compared("LessThan", "a", 0), [0, 1, 2, 3], (8, 0)),
    "a column that no file has": (compared("EqualTo", "c", 1), [0, 1, 2, 3], (8, 0)),
}


@pytest.mark.parametrize(("condition", "gone", "groups"), DECISIONS.values(), ids=DECISIONS)
def test_files_and_row_groups(
    four: dict[str, Any], condition: dict[str, Any], gone: list[int], groups: tuple[int, int]
) -> None:
    asked = Asked()
    answer = asked.decide(where(condition, scan("files")), listings=[four])
    assert skipped(answer, 4) == gone
    summary = asked.summary("files")
    assert (summary.row_groups_total, summary.row_groups_kept) == groups
    assert (summary.files_kept, summary.rows_kept, summary.rows_total) == (4 - len(gone), 10 * (4 - len(gone)), 40)


def test_row_groups_of_a_file_without_statistics_are_unknown(files: Lake, four: dict[str, Any]) -> None:
    files.write("4.parquet", {"a": [15]})
    asked = Asked()
    answer = asked.decide(where(compared("EqualTo", "a", 15), scan("files")), listings=[listed(files)])
    assert skipped(answer, 5) == [0, 2, 3]
    summary = asked.summary("files")
    assert (summary.row_groups_total, summary.row_groups_kept, summary.rows_kept) == (None, None, None)
    assert [reason.code for reason in summary.reasons] == ["no-statistics"]


def test_nothing_to_take_away_is_no_edit(four: dict[str, Any]) -> None:
    asked = Asked()
    assert asked.decide(scan("files"), listings=[four]) == {"edits": []}
    assert asked.decide(where(compared("GreaterThanOrEqual", "a", 0), scan("files"))) == {"edits": []}
    assert asked.decide(where(compared("EqualTo", "a", 15), scan("files")), {"spark.secateur.passes": ""}) == {
        "edits": []
    }


def snapshot(folder: Path) -> dict[str, Any]:
    """Three manifests of two files each, partitioned by ``b``, which is 0, 1 and 2 in them."""
    columns = {
        "files": pa.array([2, 2, 2], pa.int32()),
        "spec": pa.array([0, 0, 0], pa.int32()),
        "rows": longs(20, 20, 20),
        "low.0.0": longs(0, 1, 2),
        "high.0.0": longs(0, 1, 2),
        "null.0.0": flags(False, False, False),
        "nan.0.0": flags(False, False, False),
    }
    return {
        "kind": "iceberg",
        "fp": "ice",
        "roots": ["file:/ice"],
        "count": 6,
        "deletes": False,
        "fields": [[[name], id_, "long"] for name, id_ in NAMES.items()],
        "specs": {"0": [[NAMES["b"], "identity", "long"]]},
        "keys": [f"{folder}/{i}" for i in range(3)],
        "manifests": as_sent(folder, columns),
    }


def sort(name: str, child: dict[str, Any]) -> dict[str, Any]:
    key = {"f": "SortOrder", "t": "bigint", "o": [0, 1], "c": [ref(name)]}
    return {"n": "Sort", "g": 1, "x": [key], "c": [child]}


def first_of(name: str, by: str, child: dict[str, Any]) -> dict[str, Any]:
    key = {"f": "SortOrder", "t": "bigint", "o": [0, 1], "c": [ref(by)]}
    return {"n": "WindowGroupLimit", "f": "Rank", "k": 3, "g": 1, "x": [ref(name), key], "c": [child]}


def computing(name: str, child: dict[str, Any]) -> dict[str, Any]:
    alias = {"f": "Alias", "i": 9, "n": "x", "t": "bigint", "c": [call("Abs", ref(name), type_="bigint")]}
    return {"n": "Project", "x": [ref("c"), alias], "c": [child]}


OPENED: dict[str, tuple[dict[str, Any], list[int], list[int]]] = {
    # a plan, the manifests to open, the columns to read there
    "no condition": (scan("ice"), [0, 1, 2], []),
    "a condition": (where(compared("EqualTo", "a", 5), scan("ice")), [0, 1, 2], [1]),
    "a condition on the partition": (where(compared("EqualTo", "b", 1), scan("ice")), [1], [2]),
    "two conditions": (
        where(call("And", compared("LessThan", "b", 2), compared("EqualTo", "a", 5)), scan("ice")),
        [0, 1],
        [1, 2],
    ),
    "an order": (sort("a", scan("ice")), [0, 1, 2], [1]),
    "the first of a group": (first_of("a", "c", scan("ice")), [0, 1, 2], [1, 3]),
    "a computed column": (computing("a", scan("ice")), [0, 1, 2], [1]),
    "a condition that no file can satisfy": (where(compared("EqualTo", "b", 7), scan("ice")), [], []),
}


@pytest.mark.parametrize(("plan", "manifests", "columns"), OPENED.values(), ids=OPENED)
def test_only_what_a_query_can_use_is_asked_for(
    tmp_path: Path, plan: dict[str, Any], manifests: list[int], columns: list[int]
) -> None:
    answer = Asked().decide(plan, listings=[snapshot(tmp_path)])
    if not manifests:
        assert skipped(answer, 6) == list(range(6))
        return
    assert answer == {"need": [{"fp": "ice", "files": manifests, "columns": columns, "deletes": []}]}


def test_manifests_are_opened_one_and_all_if_nothing_may_judge_them(tmp_path: Path) -> None:
    plan = where(compared("EqualTo", "b", 1), scan("ice"))
    answer = Asked().decide(plan, {"spark.secateur.passes": "filter"}, listings=[snapshot(tmp_path)])
    assert answer["need"][0]["files"] == [0, 1, 2]


def test_what_was_asked_for_decides(tmp_path: Path) -> None:
    asked = Asked()
    condition = call("And", compared("LessThan", "b", 2), compared("EqualTo", "a", 5))
    plan = where(condition, scan("ice"))
    (need,) = asked.decide(plan, listings=[snapshot(tmp_path)])["need"]
    columns = {
        "rows": longs(10, 10, 10, 10),
        "sizes": longs(100, 100, 100, 100),
        "groups": pa.array([1, 1, 1, 1], pa.int32()),
        "orc": flags(False, False, False, False),
        "low.1": longs(0, 6, 0, None),
        "high.1": longs(4, 9, 9, None),
        "part.0.0": longs(0, 0, 1, 1),
    }
    sent = {"statistics": as_sent(tmp_path, columns), "deleted": as_sent(tmp_path, {"deleted": longs()})}
    assert skipped(asked.decide(plan, parts=[need | sent]), 6) == [0, 1, 4, 5]
    summary = asked.summary("ice")
    assert (summary.files_kept, summary.rows_kept, summary.rows_total) == (2, 20, 60)


FAILURES: dict[str, tuple[dict[str, Any], str, str]] = {
    # what is different in a request, the code, words of the sentence
    "an option": ({"options": {"spark.secateur.budget.ms": "soon"}}, "bad-option", "The query ran unpruned"),
    "a plan": ({"plan": {"n": "Scan"}}, "decode-failed", "the plan could not be decoded"),
    "a kind of table": (
        {"plan": scan("x"), "listings": [{"kind": "vortex"}]},
        "decode-failed",
        "of kind 'vortex', which is none of files, delta, iceberg",
    ),
    "no plan": ({"plan": None}, "decode-failed", "could not be decoded"),
    "columns that are not there": (
        {"plan": scan("ice"), "listings": [{"kind": "iceberg"}]},
        "decide-failed",
        "please report this: KeyError",
    ),
}


@pytest.mark.parametrize(("different", "code", "words"), FAILURES.values(), ids=FAILURES)
def test_what_is_wrong_is_an_answer(different: dict[str, Any], code: str, words: str) -> None:
    answer = Asked().decide(**{"plan": scan("files"), **different})
    assert answer["code"] == code
    assert words in answer["error"]


def test_an_option_is_checked_when_it_is_set() -> None:
    asked = Asked()
    assert asked.raw({"op": "set", "key": "spark.secateur.budget.ms", "value": "250"}) == {"refused": None}
    refused = asked.raw({"op": "set", "key": "spark.secateur.budget.ms", "value": "soon"})["refused"]
    assert "is not valid" in refused


def test_values_of_run_time_for_a_table_that_is_forgotten() -> None:
    asked = Asked()
    assert asked.raw({"op": "files", "fp": "gone", "lists": [], "conf": CONF}) == {}
    assert asked.raw({"op": "runtime", "fp": "gone", "id": "1", "values": {}})["code"] == "runtime-failed"
