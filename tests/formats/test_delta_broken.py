"""Where something about a Delta table is not as it should be, its queries behave as without secateur."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Same
from tests.formats.delta import append, read, rows


@pytest.fixture
def table(spark: SparkSession, lake: Path) -> Path:
    append(rows(spark, 0, 3).select("id", "i"), lake / "t")
    append(rows(spark, 3, 1).select("id", "i"), lake / "t")
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    return lake / "t"


def outcome(query: Callable[[], DataFrame]) -> object:
    """The rows of a query, or what Spark says of it."""
    try:
        return sorted(map(repr, query().collect()))
    except Exception as problem:
        return type(problem), [re.sub(r"\bo\d+\.", "", line) for line in str(problem).splitlines()[:2]]


def edit(commit: Path, old: str, new: str) -> None:
    """Changes a commit of the log behind Delta's back."""
    text, times = commit.read_text(), commit.stat()
    assert old in text
    commit.write_text(text.replace(old, new, 1))
    os.utime(commit, ns=(times.st_atime_ns, times.st_mtime_ns))
    for crc in commit.parent.glob("*.crc"):
        crc.unlink()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('{"add"', '{"add"}{', id="no JSON"),
        pytest.param('"minReaderVersion":1', '"minReaderVersion":99', id="a protocol of the future"),
        pytest.param(
            '"minReaderVersion":1,"minWriterVersion":2',
            '"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["ofTheFuture"],'
            '"writerFeatures":["ofTheFuture"]',
            id="a feature of the future",
        ),
    ],
)
def test_a_log_that_cannot_be_read(
    spark: SparkSession, pruner: secateur.Pruner, table: Path, old: str, new: str
) -> None:
    edit(table / "_delta_log" / f"{0:020}.json", old, new)
    with pruner.paused():
        expected = outcome(lambda: read(spark, table, "id = 250"))
    assert isinstance(expected, tuple)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    assert outcome(lambda: read(spark, table, "id = 250")) == expected


def test_a_log_that_delta_has_read_and_secateur_cannot(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, table: Path
) -> None:
    with pruner.paused():
        read(spark, table, "id = 250").collect()  # Delta keeps the version that it has read
    edit(table / "_delta_log" / f"{0:020}.json", '{"add"', '{"adx}')
    found = same(lambda: read(spark, table, "id = 250"))
    assert found.files == found.plain_files == 1
    (reason,) = found.summary.reasons
    assert reason.code == "bridge-failed"
    assert "error while reading file" in reason.text
    assert f"{0:020}.json" in reason.text


def test_statistics_that_are_no_json(spark: SparkSession, same: Same, table: Path) -> None:
    edit(table / "_delta_log" / f"{1:020}.json", '"stats":"{', '"stats":"{[')
    found = same(lambda: read(spark, table, "i + 0 = 50"))
    assert (len(found.rows), found.files) == (1, 2)


def test_a_missing_file(spark: SparkSession, pruner: secateur.Pruner, table: Path) -> None:
    lost = read(spark, table, "id = 250").inputFiles()
    assert len(lost) == 1
    Path(lost[0].removeprefix("file:")).unlink()
    with pytest.raises(Exception, match="parquet"):
        read(spark, table, "id = 250").collect()
    with pruner.paused(), pytest.raises(Exception, match="parquet"):
        read(spark, table, "id = 250").collect()
    assert len(read(spark, table, "id = 50").collect()) == 1


def test_a_python_that_fails(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from secateur.session import planner

    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(planner, "run_passes", broken)
    found = same(lambda: read(spark, table, "id = 250"))
    assert found.files == found.plain_files == 1
    assert [r.code for r in found.summary.reasons] == ["decide-failed"]


def test_skipping_switched_off(spark: SparkSession, same: Same, table: Path) -> None:
    spark.conf.set("spark.databricks.delta.stats.skipping", "false")
    try:
        found = same(lambda: read(spark, table, "id = 250"))
    finally:
        spark.conf.unset("spark.databricks.delta.stats.skipping")
    assert "stats.skipping" in found.summary.scans[0].reasons[0].text


def test_a_rule_that_comes_after_delta(spark: SparkSession, same: Same, table: Path) -> None:
    """Where Spark keeps its rules elsewhere, Delta plans first, and what it leaves is pruned."""
    rules = spark._jsparkSession.extensions()
    field = rules.getClass().getDeclaredField("preCBORules")
    field.setAccessible(True)
    buffer = field.get(rules)
    buffer.append(buffer.remove(0))
    try:
        found = same(lambda: read(spark, table, "abs(i) + 0 = 250"))
        assert (found.files, found.plain_files) == (1, 4)
    finally:
        buffer.prepend(buffer.remove(buffer.length() - 1))
    assert same(lambda: read(spark, table, "abs(i) + 0 = 250")).files == 1
