"""The Java half compiles with javac too; Janino compiles it whenever a test attaches."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

import secateur
from secateur.bridge.jvm import CONNECTORS, JvmBridge, java_sources, one_unit


@pytest.mark.skipif(shutil.which("javac") is None, reason="there is a Java runtime but no compiler on this machine")
def test_javac_compiles_the_sources_that_janino_compiles(spark: SparkSession, tmp_path: Path) -> None:
    for name, text in java_sources(CONNECTORS).items():
        (tmp_path / name).write_text(text)
    connectors = str(spark.sparkContext.getConf().get("spark.jars")).replace("file://", "").split(",")
    jars = ":".join([str(Path(pyspark.__file__).parent / "jars" / "*"), *connectors])
    command = ["javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", str(tmp_path / "out")]
    done = subprocess.run([*command, *map(str, tmp_path.glob("*.java"))], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_unit_has_one_package_and_each_import_once() -> None:
    unit = one_unit(java_sources())
    assert unit.count("package secateur;") == 1
    imports = [line for line in unit.splitlines() if line.startswith("import ")]
    assert len(imports) == len(set(imports)) > 10


def test_long_questions_do_not_wait_for_an_acknowledgement(spark: SparkSession, pruner: secateur.Pruner) -> None:
    gateway: Any = spark.sparkContext._gateway
    client = JavaObject("GATEWAY_SERVER", gateway._gateway_client).getCallbackClient()
    field = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient").getDeclaredField("socketFactory")
    field.setAccessible(True)
    made = field.get(client)
    assert made.getClass().getName() == "secateur.Undelayed"
    assert JvmBridge.of(spark)._bridge.hurry(client) is True
    assert field.get(client).equals(made)  # not one around the other
    assert JvmBridge.of(spark)._bridge.hurry(made) is False  # no client of Py4J, and no error
