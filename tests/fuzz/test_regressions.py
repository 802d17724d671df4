"""What was once found wrong is right, and stays so."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.regressions import Regression, parse, regressions, replay


@pytest.mark.parametrize("line", regressions(), ids=lambda line: line.sql)
def test_a_line_is_judged_right(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, line: Regression) -> None:
    judged = replay(spark, pruner, tmp_path, line)
    assert judged is not None, f"Spark refuses {line}"
    assert not judged.wrong, judged


def test_lines_are_read_as_they_are_written() -> None:
    for line in regressions():
        assert str(parse(str(line))) == str(line)
