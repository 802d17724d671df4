"""Which tests need Spark is read from their fixtures, and the others cannot start one."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from tests.fixtures import Same, SparkProcess

START = "from pyspark.sql import SparkSession; SparkSession.builder.master('local[1]').getOrCreate()"


def marked(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("spark") is not None


def test_a_fixture_that_uses_spark_marks_the_test(request: pytest.FixtureRequest, same: Same) -> None:
    assert marked(request)
    assert SparkSession.getActiveSession() is not None


def test_a_process_with_a_spark_of_its_own_marks_the_test(
    request: pytest.FixtureRequest, spark_process: SparkProcess
) -> None:
    assert marked(request)
    assert spark_process("import os; print(os.environ.get('JAVA_HOME'))").stdout != "/nowhere\n"


def test_what_is_not_marked_can_start_no_spark(request: pytest.FixtureRequest) -> None:
    assert not marked(request)
    started = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False, timeout=60)
    assert started.returncode != 0
    assert "/nowhere/bin/java" in started.stderr
