"""The Java half compiles with javac too; Janino compiles it whenever a test attaches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import secateur
from secateur.bridge.jvm import UNITS, JvmBridge, java_sources, one_unit

LINT = (
    "-Werror",
    "-XDenableSunApiLintControl",
    "-Xlint:all,-cast,-rawtypes,-unchecked,-serial,-deprecation,-classfile,-processing,-path",
)
"""Janino has no generics, and Spark's own jars name others that are not there."""


@pytest.mark.skipif(shutil.which("javac") is None, reason="there is a Java runtime but no compiler on this machine")
def test_javac_compiles_every_unit_without_a_warning(spark: SparkSession, tmp_path: Path) -> None:
    """Unit by unit, as Janino does, on the jars of Spark and of the connectors that the tests use."""
    jvm: Any = spark._jvm
    jars = [str(Path(pyspark.__file__).parent / "jars" / "*")]
    for unit in UNITS:
        if unit.connector:
            source = (
                jvm.java.lang.Class.forName(unit.connector, False, _loader(jvm)).getProtectionDomain().getCodeSource()
            )
            jars.append(str(Path(source.getLocation().getPath()).parent / "*"))
    for folder in ("core", *(unit.folder for unit in UNITS)):
        sources = tmp_path / folder
        sources.mkdir()
        for name, text in java_sources(folder).items():
            (sources / name).write_text(text)
        classpath = ":".join([str(tmp_path / "out"), *jars])
        command = ["javac", *LINT, "-cp", classpath, "-d", str(tmp_path / "out"), *map(str, sources.glob("*.java"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def _loader(jvm: Any) -> Any:
    return jvm.java.lang.Thread.currentThread().getContextClassLoader()


def test_a_unit_has_one_package_and_each_import_once() -> None:
    for folder in ("core", *(unit.folder for unit in UNITS)):
        unit = one_unit(java_sources(folder))
        assert unit.startswith(f"package secateur.{folder};")
        assert unit.count("package secateur.") == 1
        imports = [line for line in unit.splitlines() if line.startswith("import ")]
        assert len(imports) == len(set(imports)) > 10


def test_long_questions_do_not_wait_for_an_acknowledgement(spark: SparkSession, pruner: secateur.Pruner) -> None:
    gateway: Any = spark.sparkContext._gateway
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("socketFactory")
    field.setAccessible(True)
    made = field.get(client)
    assert made.getClass().getName() == "secateur.core.NoDelaySockets"
    assert JvmBridge.of(spark)._bridge.hurry(client) is True
    assert field.get(client).equals(made)  # not one around the other
    assert JvmBridge.of(spark)._bridge.hurry(made) is False  # no client of Py4J, and no error


def test_the_plan_is_sent_once_a_call(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Python asks for goes to it alone, under the number of the call."""
    for i in range(4):
        pq.write_table(pa.table({"a": [f"x{i}", f"x{i}"]}), lake / f"{i}.parquet")
    requests: list[dict[str, Any]] = []
    real = pruner._callback._answer

    def noted(request: str) -> str:
        requests.append(json.loads(request))
        return real(request)

    monkeypatch.setattr(pruner._callback, "_answer", noted)
    secateur.collect(spark, str(lake))
    pq.write_table(pa.table({"a": ["y", "y"]}), lake / "new.parquet")
    rows = spark.read.parquet(str(lake)).where("reverse(a) = '2x'").collect()
    assert len(rows) == 2
    calls = {r["call"] for r in requests}
    assert [[r["op"] for r in requests if r["call"] == call] for call in sorted(calls)] == [
        ["decide", "continue", "continue"]
    ]
    assert [sorted(r) for r in requests[1:]] == [["call", "listings", "op", "parts"], ["call", "op", "values"]]
    assert pruner.last is not None
    assert pruner.last.files_kept == 2  # the new one has no statistics yet
