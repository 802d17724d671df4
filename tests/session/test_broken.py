"""Broken on purpose: whatever fails inside secateur, the answer stays right and the summary says what happened."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import secateur
from secateur import passes
from secateur.bridge import jvm
from secateur.bridge.decode import decode_query
from secateur.decision.parts import Keep
from secateur.errors import AttachError
from secateur.passes import Pass
from secateur.passes.contract import PassInput, PassResult
from secateur.session import planner
from secateur.session.planner import Planner
from tests.fixtures import SparkProcess

EXPECTED = [5]


@pytest.fixture
def table(lake: Path, spark: SparkSession, pruner: secateur.Pruner) -> Path:
    folder = lake / "t"
    folder.mkdir()
    for i in range(4):
        pq.write_table(pa.table({"a": list(range(i * 100, i * 100 + 10))}), folder / f"{i}.parquet")
    secateur.collect(spark, str(folder))
    return folder


def ask(spark: SparkSession, table: Path) -> list[int]:
    return [row.a for row in spark.read.parquet(str(table)).where("a = 5").collect()]


def codes(pruner: secateur.Pruner) -> list[str]:
    summary = pruner.last
    assert summary is not None
    return [r.code for r in (*summary.reasons, *(r for s in summary.scans for r in s.reasons))]


def unpruned(pruner: secateur.Pruner) -> bool:
    summary = pruner.last
    assert summary is not None
    return summary.files_kept == summary.files_total == 4


def test_an_exception_in_a_pass(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(known: PassInput) -> PassResult:
        raise ZeroDivisionError("on purpose")

    real = passes.run_passes
    monkeypatch.setattr(planner, "run_passes", lambda *a, **k: real(*a, **k, passes=(Pass("filter", broken),)))
    assert ask(spark, table) == EXPECTED
    assert "pass-failed" in codes(pruner)
    assert unpruned(pruner)


def test_a_pass_that_brings_files_back_or_answers_nonsense(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nonsense(known: PassInput) -> PassResult:
        return [(0, Keep(np.zeros(2, dtype=np.bool_)))]

    real = passes.run_passes
    monkeypatch.setattr(planner, "run_passes", lambda *a, **k: real(*a, **k, passes=(Pass("filter", nonsense),)))
    assert ask(spark, table) == EXPECTED
    assert "pass-failed" in codes(pruner)


def test_an_exception_in_the_decoder(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: Any) -> Any:
        raise KeyError("on purpose")

    monkeypatch.setattr(planner, "decode_query", broken)
    assert ask(spark, table) == EXPECTED
    assert "decide-failed" in codes(pruner)
    assert unpruned(pruner)


def test_a_plan_that_cannot_be_decoded(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = decode_query
    monkeypatch.setattr(planner, "decode_query", lambda request: real({**request, "plan": {"n": "Filter"}}))
    assert ask(spark, table) == EXPECTED
    assert "decode-failed" in codes(pruner)


@pytest.mark.parametrize(
    "answer",
    [
        "not json",
        "[]",
        "{}",
        '{"edits": 5}',
        '{"edits": [{"scan": 99, "fp": "x", "skip": "AA==", "skipped": 0}]}',
        '{"edits": [{"scan": 0, "fp": "another listing", "skip": "Dw==", "skipped": 4}]}',
        '{"need": ["a listing that nobody has"]}',
    ],
)
def test_an_answer_that_breaks_java(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(pruner._callback, "_answer", lambda request: answer)
    assert ask(spark, table) == EXPECTED
    assert "bridge-failed" in codes(pruner)
    assert unpruned(pruner)


def test_an_edit_that_does_not_fit_its_listing_is_refused_by_java(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right fingerprint, but bits for more files than there are, or a count that does not match the bits."""
    real = pruner._callback._answer
    for change in ({"skip": "////"}, {"skipped": 1}):

        def tamper(request: str, change: dict[str, Any] = change) -> str:
            answer = json.loads(real(request))
            answer["edits"] = [{**edit, **change} for edit in answer.get("edits", ())]
            return json.dumps(answer)

        monkeypatch.setattr(pruner._callback, "_answer", tamper)
        assert ask(spark, table) == EXPECTED
        assert "bridge-failed" in codes(pruner)


def test_a_callback_that_raises(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(request: str) -> str:
        raise MemoryError("on purpose")

    monkeypatch.setattr(pruner._callback, "_answer", broken)
    assert ask(spark, table) == EXPECTED
    assert "callback-failed" in codes(pruner)


def test_a_callback_that_never_returns(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleepy(request: str) -> str:
        time.sleep(20)
        return "{}"

    spark.conf.set("spark.secateur.budget.ms", "200")
    monkeypatch.setattr(pruner._callback, "_answer", sleepy)
    for _ in range(3):
        assert ask(spark, table) == EXPECTED
        assert "timeout" in codes(pruner)
    assert unpruned(pruner)
    start = time.monotonic()
    for _ in range(3):
        assert ask(spark, table) == EXPECTED
    assert "busy" in codes(pruner), "after three time-outs secateur asks no more for a while"
    assert time.monotonic() - start < 20, "as long as the callback sleeps"


def test_a_python_without_callback_server(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    """The JVM is told of a port on which nobody listens."""
    gateway: Any = spark.sparkContext._gateway
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    address, port = server.getCallbackClient().getAddress(), server.getCallbackClient().getPort()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        server.resetCallbackClient(address, nobody.getsockname()[1])
        try:
            assert ask(spark, table) == EXPECTED
            assert codes(pruner)[0] == "callback-failed"
            assert unpruned(pruner)
        finally:
            server.resetCallbackClient(address, port)
    assert ask(spark, table) == EXPECTED
    assert pruner.last is not None
    assert pruner.last.files_kept == 1


def test_a_store_with_flipped_bytes(table: Path, spark_process: SparkProcess) -> None:
    segments = list((table / "_secateur" / "v1").iterdir())
    assert segments
    for segment in segments:
        content = bytearray(segment.read_bytes())
        for at in range(4, len(content) - 8, 97):
            content[at] ^= 0xFF
        segment.write_bytes(content)
    code = f"""
        import logging; logging.disable(logging.CRITICAL)
        from pyspark.sql import SparkSession
        import secateur
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
            "spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").config(
            "spark.log.level", "ERROR").getOrCreate()
        pruner = secateur.attach(spark, {{"stats.auto": False}})
        rows = [r.a for r in spark.read.parquet({str(table)!r}).where("a = 5").collect()]
        first = pruner.last.to_dict()
        report = secateur.collect(spark, {str(table)!r})
        spark.read.parquet({str(table)!r}).where("a = 5").collect()
        print("RESULT", rows, first["scans"][0]["files_kept"], first["scans"][0]["reasons"][0]["code"],
              report.files_read, pruner.last.files_kept)
        # Here, for the session of the other tests has Delta's parser, which drops the arguments (4.4 with Spark 4.1).
        for sql, args in (("WHERE a > :low AND a < :high", {{"low": 204, "high": 300}}), ("LIMIT :few", {{"few": 3}}),
                          ("ORDER BY a DESC LIMIT ?", [3])):
            rows = spark.sql("SELECT a FROM parquet.`{table}` " + sql, args=args).collect()
            print("WITH", len(rows), max(rows).a % 100, pruner.last.files_kept)
    """
    done = spark_process(code)
    assert "RESULT [5] 4 no-statistics 4 1" in done.stdout, done.stdout + done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("WITH")] == [
        "WITH 5 9 1",
        "WITH 3 2 1",
        "WITH 3 9 1",
    ]
    assert [s.name for s in (table / "_secateur" / "damaged").iterdir()] == [s.name for s in segments]


def test_an_unknown_plan_node(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    rows = spark.sql(
        "SELECT a, g, sum(count(*)) OVER (PARTITION BY g ORDER BY a) FROM t LATERAL VIEW explode(array(1, 2)) x AS g "
        "WHERE a = 5 GROUP BY GROUPING SETS ((a, g), (a))"
    ).collect()
    assert len(rows) == 3
    assert pruner.last is not None
    assert pruner.last.files_kept == 1


def test_a_spark_whose_classes_differ(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruner.detach()
    sources = jvm.java_sources()
    changed = {
        **sources,
        "ParquetFormat.java": sources["ParquetFormat.java"].replace(
            "files.location()", "files.placeOfAnotherVersion()"
        ),
    }
    monkeypatch.setattr(jvm, "java_sources", lambda _: changed)
    monkeypatch.setattr(jvm.JvmBridge, "_known", type(jvm.JvmBridge._known)())
    with pytest.warns(UserWarning, match="placeOfAnotherVersion"):
        inert = secateur.attach(spark)
    assert not inert.attached
    assert ask(spark, table) == EXPECTED
    assert codes(inert) == ["bridge-failed"]
    assert "Spark 4" in str(inert.last)
    assert inert.explain("SELECT 1").reasons[0].code == "bridge-failed"
    with pytest.raises(AttachError, match="this is Spark 4"):
        secateur.collect(spark, str(table))
    with inert.paused():
        assert ask(spark, table) == EXPECTED
    assert not any(c.works for c in inert.capabilities)
    assert repr(inert).startswith("secateur, not attached to Spark")
    inert.detach()


def test_a_case_class_without_the_field_leaves_the_plan_alone(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The class loads, but a field has gone: found out while the plan is edited, in a bridge of its own."""
    pruner.detach()
    sources = jvm.java_sources()
    changed = {
        n: t.replace('"location", pruned', '"place", pruned').replace("package secateur.", "package secateur2.")
        for n, t in sources.items()
    }
    monkeypatch.setattr(jvm, "java_sources", lambda _: changed)
    monkeypatch.setattr(jvm, "UNITS", ())
    monkeypatch.setattr(jvm, "_CLASS", "secateur2.core.Bridge")
    monkeypatch.setattr(jvm, "_FILES", "secateur2.core.HadoopFiles")
    monkeypatch.setattr(jvm.JvmBridge, "_known", type(jvm.JvmBridge._known)())
    other = secateur.attach(spark, {"stats.auto": False})
    try:
        assert ask(spark, table) == EXPECTED
        assert "bridge-failed" in codes(other)
        assert "has no field place in this version of Spark" in str(other.last)
        assert unpruned(other)
    finally:
        other.detach()


def test_a_decider_answers_everything() -> None:
    decider = Planner(None, None)  # type: ignore[arg-type]
    for request in ("", "[]", "{}", '{"op": "dance"}', '{"op": "set"}', "null", '{"op": "decide", "options": 3}'):
        answer = json.loads(decider.answer(request))
        assert answer["code"] in ("decide-failed", "decode-failed")
        assert "ran unpruned" in answer["error"]
