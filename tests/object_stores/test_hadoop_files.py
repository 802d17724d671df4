"""Tables by Hadoop's file systems in the session of the other tests: ViewFs, which gives local folders another name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.bridge.hadoop_files import HadoopFiles
from secateur.errors import SecateurError
from secateur.stats.remote_files import FileProblem, PatientFiles, StorageError
from tests.fixtures import Same

Mounted = Callable[[Path], str]
_numbers = itertools.count()


@pytest.fixture
def mounted(spark: SparkSession) -> Mounted:
    """Gives a folder a name that is not local."""

    def mount(folder: Path) -> str:
        authority = f"box{next(_numbers)}"
        spark.conf.set(f"fs.viewfs.mounttable.{authority}.link./lake", f"file://{folder}")
        return f"viewfs://{authority}/lake"

    return mount


def fill(folder: Path, count: int = 6, rows: int = 100) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        values = list(range(i * rows, i * rows + rows))
        pq.write_table(pa.table({"id": values, "half": [v * 2 for v in values]}), folder / f"part {i}%é=#.parquet")


def store(folder: Path) -> list[str]:
    """What kinds of segments there are; Hadoop's local files come with checksums."""
    return sorted(p.name.partition("-")[0] for p in folder.glob("_secateur/v1/*") if p.suffix != ".crc")


@pytest.mark.parametrize("name", ["t", "a b%41=é #", "day=1"])
def test_a_table_elsewhere_is_pruned_like_a_local_one(
    spark: SparkSession, same: Same, lake: Path, mounted: Mounted, name: str
) -> None:
    fill(lake / name)
    table = f"{mounted(lake)}/{name}"
    report = secateur.collect(spark, table)
    assert (report.files_read, report.files_failed, report.problem) == (6, 0, "")
    assert store(lake / name) == ["_stats"]
    assert same(lambda: spark.read.parquet(table).where("id = 250")).files == 1
    assert same(lambda: spark.read.parquet(table).where("half = 251")).files == 1
    report = secateur.collect(spark, table, ranges=100, columns=["half"])
    assert (report.files_ranged, report.files_failed, report.problem) == (6, 0, "")
    assert same(lambda: spark.read.parquet(table).where("half = 251")).files == 0
    assert secateur.collect(spark, table).files_read == 0


def test_range_sets_need_no_python_of_the_path(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, mounted: Mounted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine the Python that runs this does the work, for it is known to have pyarrow."""
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    fill(lake / "t", 2)
    report = secateur.collect(spark, f"{mounted(lake)}/t", ranges=3)
    assert (report.files_ranged, report.problem) == (2, "")


def test_a_footer_longer_than_one_look(spark: SparkSession, same: Same, lake: Path, mounted: Mounted) -> None:
    (lake / "t").mkdir()
    for i in range(3):
        pq.write_table(pa.table({f"column {c}": [i] for c in range(1500)}), lake / "t" / f"{i}.parquet")
    table = f"{mounted(lake)}/t"
    assert secateur.collect(spark, table).files_read == 3
    assert same(lambda: spark.read.parquet(table).where("`column 1499` = 1").select("`column 0`")).files == 1


def test_what_is_no_parquet_file_is_a_failure_with_its_name(spark: SparkSession, lake: Path, mounted: Mounted) -> None:
    fill(lake / "t", 2)
    (lake / "t" / "x.parquet").write_bytes(b"PAR1 nothing PAR?")
    (lake / "t" / "y.parquet").write_bytes(b"")
    frame = spark.read.schema("id long").parquet(f"{mounted(lake)}/t")
    report = secateur.collect(spark, frame)
    assert (report.files_read, report.files_failed) == (2, 1)  # Spark does not list empty files
    assert "x.parquet: " in report.failures[0]


def test_a_file_that_changed_since_it_was_listed_is_unknown(
    spark: SparkSession, same: Same, lake: Path, mounted: Mounted
) -> None:
    fill(lake / "t")
    frame = spark.read.parquet(f"{mounted(lake)}/t")
    pq.write_table(pa.table({"id": [7], "half": [7]}), lake / "t" / "part 3%é=#.parquet")
    report = secateur.collect(spark, frame)
    assert (report.files_read, report.files_failed) == (5, 1)
    fresh = spark.read.parquet(f"{mounted(lake)}/t")
    assert same(lambda: fresh.where("id = 7")).rows


def test_the_folder_of_statistics_counts_at_once(
    spark: SparkSession, same: Same, lake: Path, tmp_path: Path, mounted: Mounted
) -> None:
    fill(lake / "t")
    table = f"{mounted(lake)}/t"
    secateur.collect(spark, table)
    spark.conf.set("spark.secateur.stats.dir", mounted(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    report = secateur.collect(spark, table)
    assert report.files_read == 6
    assert report.store_text.startswith("in viewfs://")
    assert len(list((tmp_path / "elsewhere").glob("*/v1/_stats-*"))) == 1
    assert same(lambda: spark.read.parquet(table).where("id = 250")).files == 1


def test_never_means_in_memory_until_it_may(spark: SparkSession, same: Same, lake: Path, mounted: Mounted) -> None:
    fill(lake / "t")
    table = f"{mounted(lake)}/t"
    spark.conf.set("spark.secateur.stats.write", "never")
    report = secateur.collect(spark, table)
    assert report.store_text == "in memory only (spark.secateur.stats.write=never)"
    assert same(lambda: spark.read.parquet(table).where("id = 250")).files == 1
    assert store(lake / "t") == []
    spark.conf.set("spark.secateur.stats.write", "auto")
    report = secateur.collect(spark, table)
    assert (report.files_read, store(lake / "t")) == (0, ["_stats"])


@pytest.mark.parametrize(
    ("place", "cause"),
    [("nothing://here", "UnsupportedFileSystemException"), ("viewfs://unknown/x", "viewfs")],
)
def test_a_place_that_cannot_be_read_is_named_and_costs_nothing(
    spark: SparkSession, same: Same, lake: Path, mounted: Mounted, place: str, cause: str
) -> None:
    fill(lake / "t")
    table = f"{mounted(lake)}/t"
    spark.conf.set("spark.secateur.stats.dir", place)
    first = same(lambda: spark.read.parquet(table).where("id = 250"))
    assert [r.code for r in first.summary.scans[0].reasons] == ["store-failed"]
    assert cause in first.summary.scans[0].reasons[0].text
    report = secateur.collect(spark, table)
    assert report.files_read == 6
    assert "in memory only" in report.store_text
    second = same(lambda: spark.read.parquet(table).where("id = 250"))
    assert second.files == 1
    assert cause in second.summary.scans[0].reasons[0].text


def test_a_file_system_that_failed_is_asked_again_after_a_while(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, mounted: Mounted
) -> None:
    now = [0.0]
    files = PatientFiles(HadoopFiles(spark), lambda: now[0])
    place = mounted(lake)
    authority = place.split("/")[2]
    spark.conf.unset(f"fs.viewfs.mounttable.{authority}.link./lake")
    with pytest.raises(StorageError, match="viewfs"):
        files.listed("", place)
    spark.conf.set(f"fs.viewfs.mounttable.{authority}.link./lake", f"file://{lake}")
    (lake / "x").write_bytes(b"12345")
    with pytest.raises(StorageError, match="viewfs"):
        files.listed("", place)
    assert files.contents("", [(f"{place}/x", 5)]) == [b"12345"]  # reading is another matter
    now[0] = 61.0
    assert [name for name, length, _ in files.listed("", place) if length == 5] == ["x"]


def test_files_are_read_written_and_deleted(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path, mounted: Mounted
) -> None:
    files = PatientFiles(HadoopFiles(spark))
    place = mounted(lake)
    assert files.listed("", f"{place}/none") == []
    content = bytes(range(256)) * 300
    for name in ("a", "b c%", "é"):
        files.write("", f"{place}/new/{name}", content)
    assert sorted(name for name, _, _ in files.listed("", f"{place}/new")) == ["a", "b c%", "é"]
    assert {p.name for p in (lake / "new").iterdir() if p.suffix != ".crc"} == {"a", "b c%", "é"}
    found = files.contents("", [(f"{place}/new/a", len(content)), (f"{place}/new/none", 3)])
    assert found[0] == content
    assert isinstance(found[1], FileProblem)
    assert found[1].kind == "missing"
    assert files.tails("", [(f"{place}/new/é", len(content))], 300) == [content[-300:]]
    (state, gone) = files.states("", [f"{place}/new/a", f"{place}/gone"])
    assert isinstance(state, tuple)
    assert state == (len(content), (lake / "new" / "a").stat().st_mtime_ns // 1_000_000)
    assert isinstance(gone, FileProblem)
    files.delete("", f"{place}/new/a")
    files.delete("", f"{place}/new/a")
    assert not (lake / "new" / "a").exists()


def test_names_that_sql_takes(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    fill(lake / "odd t")
    spark.range(10).write.format("delta").save(f"{lake}/d")
    spark.read.parquet(f"{lake}/odd t").createOrReplaceTempView("`odd view`")
    for name, files in ((f"parquet.`{lake}/odd t`", 6), ("`odd view`", 6), (f"{lake}/odd t", 6), (f"file:{lake}/d", 2)):
        assert secateur.collect(spark, name).files_total == files, name
    assert secateur.collect(spark, f"delta.`{lake}/d`").files_total == 2
    with pytest.raises(SecateurError, match="'odd view' is neither a table's name nor a path: in a name, put parts"):
        secateur.collect(spark, "odd view")
