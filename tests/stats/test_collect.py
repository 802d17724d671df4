"""Footers are read here or on executors with the same result, and never at the cost of the caller's session."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from secateur.stats.collect import executor_job
from secateur.stats.collect.collector import Collector, CollectReport, collect_listing
from secateur.stats.collect.progress import Progress
from secateur.stats.formats.parquet import ParquetTable
from tests.fixtures import SparkProcess
from tests.stats.lake import Lake, column, data

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def filled(files: Lake, count: int = 30) -> Lake:
    for i in range(count):
        files.write(f"p={i % 3}/{i}.parquet", {"c": [i, i + 1, None], "s": ["a", "b", "c"]}, row_group_size=2)
    return files


def test_executors_read_the_same_as_we_do(
    spark: SparkSession, files: Lake, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(files)
    python = "/nowhere/python3"
    monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
    (files.root / "broken.parquet").write_bytes(b"x")
    listing = files.listing()
    report = collect_listing(listing, [files.store()], Collector(spark), direct_limit=0)
    assert (report.files_total, report.files_read, report.files_failed, report.problem) == (31, 30, 1, "")
    assert not caplog.records  # such as that the executors could not do it
    assert spark.sparkContext.pythonExec == python
    there = ParquetTable.load(listing, [files.store()])
    here_store = type(files.store())(f"file:{files.root}", str(files.root / "_elsewhere"))
    collect_listing(listing, [here_store])
    here = ParquetTable.load(listing, [here_store])
    assert there.missing.tolist() == here.missing.tolist()
    for scan in (data("c", "bigint"), data("s", "string")):
        a, b = column(there.files, scan), column(here.files, scan)
        assert (a.low.to_pylist(), a.high.to_pylist()) == (b.low.to_pylist(), b.high.to_pylist())
        assert a.nulls.to_pylist() == b.nulls.to_pylist()


def test_the_callers_job_group_is_left_alone(spark: SparkSession, files: Lake) -> None:
    filled(files)
    context = spark.sparkContext
    context.setJobGroup("mine", "my job")
    try:
        collect_listing(files.listing(), [files.store()], Collector(spark), direct_limit=0)
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert not list(context.statusTracker().getJobIdsForGroup("mine"))
    finally:
        for key in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(key, None)  # type: ignore[arg-type]


def test_what_executors_lack_is_said_by_name_and_they_are_asked_again(
    spark: SparkSession, files: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(files)
    monkeypatch.setattr(executor_job, "NEEDS", ("pyarrow", "no_such_module"))
    report = collect_listing(files.listing(), [files.store()], Collector(spark), direct_limit=0)
    assert report.files_read == 30
    said = "executors have no module no_such_module: the driver read 30 files itself; install no_such_module there"
    assert report.problem == said
    monkeypatch.undo()
    files.write("new.parquet", {"c": [1]})
    report = collect_listing(files.listing(), [files.store()], Collector(spark), direct_limit=0)
    assert (report.files_read, report.problem) == (1, "")


def test_a_job_that_fails_is_a_problem_with_its_cause(
    spark: SparkSession, files: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(files)
    monkeypatch.setattr(executor_job, "NEEDS", (None,))
    report = collect_listing(files.listing(), [files.store()], Collector(spark), direct_limit=0)
    assert report.files_read == 30
    assert report.problem.startswith(
        "executors could not read the files, so the driver did: AttributeError: 'NoneType'"
    )


def test_two_collectors_at_once_in_the_background(spark: SparkSession, files: Lake) -> None:
    filled(files)
    listing = files.listing()
    reports: list[CollectReport] = []

    def run() -> None:
        reports.append(collect_listing(listing, [files.store()], Collector(spark), direct_limit=0))

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.problem for r in reports] == ["", ""]
    assert not ParquetTable.load(listing, [files.store()]).missing.any()


def test_progress_is_drawn_where_asked_for(
    spark: SparkSession, files: Lake, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(files)
    drawn: list[int] = []
    monkeypatch.setattr(Progress, "update", lambda self, done: drawn.append(done))
    collect_listing(files.listing(), [files.store()], Collector(spark, progress=True), direct_limit=0)
    assert all(0 <= done <= 30 for done in drawn)
    assert capsys.readouterr().err == ""


def test_the_report_reads_well(files: Lake) -> None:
    filled(files, 3)
    assert str(files.collect()).startswith("3 of 3 files read in 0.")


STOPPED = """
    import sys
    from pathlib import Path
    from pyspark.sql import SparkSession
    from tests.stats.lake import Lake
    from secateur.stats.collect.collector import Collector, collect_listing

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    lake = Lake(Path(sys.argv[1]))
    spark.stop()
    report = collect_listing(lake.listing(), [lake.store()], Collector(spark), direct_limit=0)
    assert report.problem.startswith("collecting stopped"), report
    assert report.files_read == 0
"""


def test_a_stopped_session_is_a_report_and_no_exception(files: Lake, spark_process: SparkProcess) -> None:
    filled(files)
    done = spark_process(STOPPED, files.root)
    assert done.returncode == 0, done.stderr
