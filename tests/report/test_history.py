"""Summaries grow out of what was decided and what the JVM recorded: records go in, summaries come out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secateur.reasons import Reason
from secateur.report.history import Draft, History
from secateur.report.summary import PlanningTime, RuntimeStep, ScanSummary, Summary

MS = 1_000_000
PROBE = RuntimeStep("topk_probe", "the first 4 files are read")
BY_DRIVER = RuntimeStep("driver", "2 files of 1 kB, read by the driver itself, without a Spark job")


def wire(id_: int = 0, use: int = 1, table: str = "t", **more: Any) -> dict[str, Any]:
    """A scan as the JVM records it."""
    return {"id": id_, "use": use, "table": table, "format": "parquet", "files": 10, "bytes": 1000, **more}


def record(*scans: dict[str, Any], query: int = 1, call: int = 1, **more: Any) -> dict[str, Any]:
    return {"query": query, "call": call, "scans": list(scans), **more}


def pruned(kept: int = 3, **more: Any) -> ScanSummary:
    return ScanSummary("t", "parquet", 10, kept, 1000, 100 * kept, 100, 10 * kept, **more)


def history(drafts: dict[int, ScanSummary], *records: dict[str, Any], limit: int = 100) -> History:
    """The history after calls that decided about scan 0 as these drafts say, and after some records."""
    made = History(limit)
    for call, scan in drafts.items():
        made.note(call, Draft({0: scan}, 2 * MS))
    made.absorb(records)
    return made


def only(made: History) -> ScanSummary:
    (summary,) = made.summaries
    (scan,) = summary.scans
    return scan


def codes(scan: ScanSummary) -> list[str]:
    return [reason.code for reason in scan.reasons]


def test_a_decision_that_the_jvm_applied() -> None:
    made = history({1: pruned()}, record(wire(), total_ns=9 * MS, python_ns=5 * MS))
    (summary,) = made.summaries
    assert summary == Summary(1, (pruned(),), PlanningTime(total=9.0, jvm=4.0, wire=3.0, python=2.0))


def test_a_decision_without_a_record_is_not_told() -> None:
    assert history({1: pruned()}).summaries == ()


def test_python_takes_no_longer_than_the_jvm_waited_for_it() -> None:
    made = history({1: pruned()}, record(wire(), total_ns=3 * MS, python_ns=MS))
    assert made.summaries[0].planning == PlanningTime(total=3.0, jvm=2.0, wire=0.0, python=1.0)


NOT_APPLIED: dict[str, tuple[dict[str, Any], dict[str, Any], list[str], int | None]] = {
    # what the record says, what it says of the scan, reasons of the scan, files kept
    "too late": ({"code": "budget-exceeded", "text": "it took too long"}, {}, ["budget-exceeded"], 10),
    "nothing to say": ({}, {"id": 7}, [], 10),
    "left alone": ({}, {"id": 7, "declined": "a view of its own"}, ["unsupported-scan"], 10),
    "files unknown": ({}, {"id": 7, "files": None, "bytes": None}, [], None),
}


@pytest.mark.parametrize(("said", "of_scan", "reasons", "kept"), NOT_APPLIED.values(), ids=NOT_APPLIED)
def test_a_scan_that_is_read_as_ever(
    said: dict[str, Any], of_scan: dict[str, Any], reasons: list[str], kept: int | None
) -> None:
    made = history({1: pruned()}, record(wire() | of_scan, **said))
    assert (codes(only(made)), only(made).files_kept) == (reasons, kept)
    assert [r.code for r in made.summaries[0].reasons] == ([said["code"]] if said else [])


def test_a_failure_is_told_once_however_many_parts_of_the_query_failed() -> None:
    failed: dict[str, Any] = {"code": "decide-failed", "text": "broken"}
    made = history({}, record(wire(), **failed), record(wire(use=2), call=2, **failed))
    assert made.summaries[0].reasons == (Reason("decide-failed", "broken"),)
    assert len(made.summaries[0].scans) == 2


def test_parts_of_a_query_share_its_number_and_add_up() -> None:
    made = history(
        {1: pruned(), 2: pruned(5)},
        record(wire(use=1), call=1, total_ns=4 * MS, python_ns=3 * MS),
        record(wire(use=2), call=2, total_ns=6 * MS, python_ns=3 * MS),
    )
    (summary,) = made.summaries
    assert [scan.files_kept for scan in summary.scans] == [3, 5]
    assert summary.planning == PlanningTime(total=10.0, jvm=4.0, wire=2.0, python=4.0)


NO_FILTER, BOUNDARY = Reason("no-filter", "no filter"), Reason("no-boundary", "no boundary")
LATE: dict[str, tuple[ScanSummary, ScanSummary, list[str], int]] = {
    # what the early step decided, what the late one did, the reasons of both, files kept
    "nothing more": (pruned(reasons=(NO_FILTER,)), pruned(reasons=(BOUNDARY,)), ["no-filter", "no-boundary"], 3),
    "the same reason": (pruned(reasons=(NO_FILTER,)), pruned(reasons=(NO_FILTER,)), ["no-filter"], 3),
    "narrowed": (pruned(10, reasons=(NO_FILTER, BOUNDARY)), pruned(4), ["no-boundary"], 4),
    "asks at run time": (pruned(10, reasons=(NO_FILTER, BOUNDARY)), pruned(10, runtime=(PROBE,)), [], 10),
}


@pytest.mark.parametrize(("early", "late", "reasons", "kept"), LATE.values(), ids=LATE)
def test_the_late_step_goes_on_from_the_early_one(
    early: ScanSummary, late: ScanSummary, reasons: list[str], kept: int
) -> None:
    made = history({1: early, 2: late}, record(wire()), record(wire(decided=True), call=2, narrowed=[0]))
    assert (codes(only(made)), only(made).files_kept) == (reasons, kept)


def test_a_late_step_with_nothing_to_say_leaves_what_the_early_one_did() -> None:
    made = history({1: pruned()}, record(wire()), record(wire(id_=4, decided=True), call=2))
    assert only(made) == pruned()


CHANGED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what the record says beside the scan, what is then different
    "files are not as they were listed": ({"changed": [2]}, {"files_kept": 5, "bytes_kept": None, "rows_kept": None}),
    "conditions were not put in": ({"dropped": [0]}, {"implied": ()}),
    "of another scan": ({"dropped": [1], "changed": [0, 3]}, {}),
    "the scan is gone": ({"left": []}, {"files_kept": 0, "bytes_kept": 0, "rows_kept": 0, "implied": ()}),
    "the scan is there": ({"left": [1]}, {}),
}


@pytest.mark.parametrize(("said", "different"), CHANGED.values(), ids=CHANGED)
def test_the_jvm_has_the_last_word(said: dict[str, Any], different: dict[str, Any]) -> None:
    decided = pruned(implied=("a > 5",))
    found = only(history({1: decided}, record(wire(), **said)))
    for name in ("files_kept", "bytes_kept", "rows_kept", "implied"):
        assert getattr(found, name) == different.get(name, getattr(decided, name)), name
    assert len(found.reasons) == (1 if different and "dropped" not in said else 0)


def test_an_emptied_scan_stays_what_it_is_when_it_is_gone() -> None:
    assert codes(only(history({1: pruned(0)}, record(wire(), left=[])))) == []


@pytest.mark.parametrize(("step", "reasons"), [(PROBE, ["not-asked"]), (BY_DRIVER, [])], ids=["probe", "driver"])
def test_a_scan_that_cannot_ask_at_run_time(step: RuntimeStep, reasons: list[str]) -> None:
    found = only(history({1: pruned(runtime=(step,))}, record(wire())))
    assert (found.runtime, codes(found)) == ((), reasons)


def ran(**more: Any) -> dict[str, Any]:
    """What the JVM records once a scan asked."""
    told = json.dumps({"condition": "a > 5", "bytes": 200, "rows": 20})
    done = {"table": "t", "use": 1, "told": told, "kept": 2, "ns": 3 * MS, "changed": 0, "failed": ""}
    return {"query": 1, "runtime": done | more}


RAN: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # what was recorded, what the scan then says, its reasons
    "narrowed": (ran(), {"files_kept": 2, "bytes_kept": 200, "rows_kept": 20}, []),
    "too few rows": (ran(told="", kept=3), {"files_kept": 3, "bytes_kept": 300}, ["probe-too-few"]),
    "failed": (ran(told="", kept=3, failed="no time"), {"files_kept": 3}, ["runtime-failed"]),
    "files changed": (ran(changed=1), {"files_kept": 2, "bytes_kept": None}, ["files-changed"]),
}


@pytest.mark.parametrize(("done", "says", "reasons"), RAN.values(), ids=RAN)
def test_what_a_scan_was_told_at_run_time(done: dict[str, Any], says: dict[str, Any], reasons: list[str]) -> None:
    found = only(history({1: pruned(runtime=(PROBE,))}, record(wire(), narrowed=[0]), done))
    assert {name: getattr(found, name) for name in says} == says
    assert codes(found) == reasons
    assert (found.runtime[0].files_before, found.runtime[0].ms) == (3, 3.0)
    assert found.runtime[0].files_after == done["runtime"]["kept"]


def test_what_the_driver_read() -> None:
    both = pruned(runtime=(PROBE, BY_DRIVER))
    done = ran(driver=1, told="")
    found = only(history({1: both}, record(wire(), narrowed=[0]), done))
    assert ([step.ms for step in found.runtime], found.files_kept) == ([None, 3.0], 3)
    failed = ran(driver=1, told="", failed="not on this disk")
    found = only(history({1: both}, record(wire(), narrowed=[0]), failed))
    assert (found.runtime, codes(found)) == ((PROBE,), ["runtime-failed"])


@pytest.mark.parametrize("other", [{"use": 9}, {"table": "u"}])
def test_what_another_scan_was_told_changes_nothing(other: dict[str, Any]) -> None:
    decided = pruned(runtime=(PROBE,))
    assert only(history({1: decided}, record(wire(), narrowed=[0]), ran(**other))) == decided


def test_a_run_of_a_query_that_is_forgotten() -> None:
    assert history({}, ran()).summaries == ()


def test_the_oldest_are_forgotten() -> None:
    made = history({}, *[record(wire(), query=i, call=i) for i in range(1, 6)], limit=3)
    assert [summary.query for summary in made.summaries] == [3, 4, 5]
    made.absorb([record(wire(use=2), query=3, call=6), record(wire(), query=6, call=7)])
    assert [summary.query for summary in made.summaries] == [5, 3, 6]  # the third went on


def test_an_explained_query_is_told_once_and_is_not_in_the_history() -> None:
    made = history({1: pruned()}, record(wire(), explained=True))
    assert made.summaries == ()
    assert made.explained(1).scans == (pruned(),)
    assert made.explained(1) == Summary(1)


def test_a_summary_that_no_record_stands_for() -> None:
    made, reasons = History(10), (Reason("bridge-failed", "no way there"),)
    made.add(Summary(0, reasons=reasons))
    assert made.summaries == (Summary(0, reasons=reasons),)
