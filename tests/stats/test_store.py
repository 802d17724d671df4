"""A store is never believed when damaged, never loses what somebody wrote, and never stops a query."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from secateur.stats.collect.collector import collect_listing
from secateur.stats.collect.footers import read_footers
from secateur.stats.formats.parquet import ParquetTable
from secateur.stats.store import store as module
from secateur.stats.store.segment import digest
from secateur.stats.store.store import Store, stores_for
from tests.stats.lake import Lake, data, describe, list_files, ordinals

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def segments(root: Path) -> list[Path]:
    return sorted((root / "_secateur" / "v1").glob("_stats-*.segment"))


def test_the_next_session_starts_warm(files: Lake) -> None:
    files.write("1.parquet", {"c": [1]})
    assert files.collect().files_read == 1
    assert files.collect().files_read == 0
    files.write("2.parquet", {"c": [2]})
    report = files.collect()
    assert (report.files_total, report.files_read, report.files_failed) == (2, 1, 0)
    assert len(segments(files.root)) == 2
    assert not files.stats().missing.any()


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "other"])
def test_a_damaged_segment_is_set_aside_and_rebuilt(files: Lake, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    files.write("1.parquet", {"c": [1]})
    files.collect()
    files.write("2.parquet", {"c": [2]})
    files.collect()
    victim = segments(files.root)[0]
    content = bytearray(victim.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    elif damage == "truncate":
        del content[len(content) // 2 :]
    elif damage == "empty":
        content.clear()
    else:
        content[:] = segments(files.root)[1].read_bytes()
    victim.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert ParquetTable.load(files.listing(), [files.store()]).missing.sum() == 1
    assert "damaged" in caplog.text
    assert not victim.exists()
    assert [p.name for p in (files.root / "_secateur" / "damaged").iterdir()] == [victim.name]
    assert files.collect().files_read == 1
    assert not files.stats().missing.any()


def test_a_segment_that_is_no_segment_is_set_aside(files: Lake) -> None:
    """The right hash is not enough: rows must be laid out as this version writes them."""
    path = files.write("1.parquet", {"c": [1, 2, 3]}, row_group_size=1)
    files.collect()
    good = segments(files.root)[0]
    table = pq.read_table(good)
    wrong = [pa.table({"x": [1]}), table.slice(1), table.take([0, 2, 1, 3]), table.drop_columns(["rows"])]
    for bad in wrong:
        sink = pa.BufferOutputStream()
        pq.write_table(bad.replace_schema_metadata({"secateur.format": "1"}), sink)
        content = sink.getvalue().to_pybytes()
        (good.parent / f"_stats-{digest(content)}.segment").write_bytes(content)
    assert len(segments(files.root)) == 5
    assert len(files.store().segments()) == 1
    assert segments(files.root) == [good]
    assert path.exists()


@pytest.mark.parametrize("pattern", ["", "*", "*/*", "*/*/*", "*/*/*.parquet"])
def test_spark_never_takes_the_store_for_data(spark: SparkSession, files: Lake, pattern: str) -> None:
    files.write("a=1/b=1/1.parquet", {"c": [1]})
    files.write("a=1/b=2/1.parquet", {"c": [2]})
    place = Path(tempfile.mkdtemp(dir=files.root.parent)) / "t"  # Spark would take the fixture's name for a pattern
    files.root.rename(place)

    def read() -> list[int]:
        return sorted(row.c for row in spark.read.parquet(f"{place}/{pattern}").collect())

    before = read()
    lake = Lake(place)
    lake.collect()
    assert segments(place)
    assert read() == before == [1, 2]


def test_leftovers_of_a_crash_are_not_read(files: Lake) -> None:
    files.write("1.parquet", {"c": [1]})
    files.collect()
    (files.root / "_secateur" / "v1" / ".abc").write_bytes(b"half")
    assert len(files.store().segments()) == 1


def test_an_unwritable_place_keeps_statistics_in_memory(files: Lake, caplog: pytest.LogCaptureFixture) -> None:
    files.write("1.parquet", {"c": [1]})
    (files.root / "_secateur").write_text("a file where the folder should be")  # works for root as well
    store = files.store()
    with caplog.at_level(logging.WARNING):
        report = collect_listing(files.listing(), [store])
    assert report.files_read == 1
    assert not store.writable
    assert "in memory only" in report.store_text
    assert caplog.text.count("set spark.secateur.stats.dir to a folder that can be") == 1
    assert not ParquetTable.load(files.listing(), [store]).missing.any()
    assert ParquetTable.load(files.listing(), [files.store()]).missing.all()


def test_no_such_file_system(files: Lake) -> None:
    files.write("1.parquet", {"c": [1]})
    store = Store(f"file:{files.root}", "nothing://here/at/all")
    assert collect_listing(files.listing(), [store]).files_read == 1
    assert not store.writable
    assert not ParquetTable.load(files.listing(), [store]).missing.any()


def test_a_directory_named_by_the_user(files: Lake, tmp_path: Path) -> None:
    files.write("1.parquet", {"c": [1]})
    place = str(tmp_path / "elsewhere")
    collect_listing(files.listing(), [Store(f"file:{files.root}", place)])
    assert not (files.root / "_secateur").exists()
    for spelling in (f"file:{files.root}", f"{files.root}/", f"file://{files.root}"):
        assert not ParquetTable.load(files.listing(), [Store(spelling, place)]).missing.any()


def test_a_moved_table_keeps_its_statistics(files: Lake, tmp_path: Path) -> None:
    files.write("day=1/1.parquet", {"c": [1]})
    files.collect()
    shutil.move(files.root, tmp_path / "moved")
    moved = Lake(tmp_path / "moved")
    assert not ParquetTable.load(moved.listing(), [moved.store()]).missing.any()


def test_failed_files_are_tried_again(files: Lake) -> None:
    path = files.root / "1.parquet"
    path.write_bytes(b"not yet")
    report = files.collect()
    assert (report.files_read, report.files_failed) == (0, 1)
    assert "1.parquet" in report.failures[0]
    files.write("1.parquet", {"c": [1]})
    assert files.collect().files_read == 1


def test_two_threads_at_once(files: Lake) -> None:
    for i in range(20):
        files.write(f"{i}.parquet", {"c": [i]})
    listing = files.listing()
    threads = [threading.Thread(target=files.collect, args=(listing,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not ParquetTable.load(listing, [files.store()]).missing.any()


def _append_one_by_one(root: Path, numbers: range) -> None:
    lake = Lake(root)
    listing = lake.listing()
    for number in numbers:
        store = lake.store()
        store.append(read_footers([describe(root / f"{number}.parquet")]))
        store.compact(listing)


def test_processes_that_write_and_merge_at_once_lose_nothing(files: Lake) -> None:
    count = 60
    for i in range(count):
        files.write(f"{i}.parquet", {"c": [i, i + 1]}, row_group_size=1)
    context = multiprocessing.get_context("spawn")
    workers = [
        context.Process(target=_append_one_by_one, args=(files.root, range(start, count, 2))) for start in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    stats = ParquetTable.load(files.listing(), [files.store()])
    assert not stats.missing.any()
    assert stats.row_groups(ordinals(*range(count)))[0].count == 2 * count
    assert len(segments(files.root)) <= 2 * module.MAX_SEGMENTS
    assert not (files.root / "_secateur" / "damaged").exists()


def test_merging_drops_what_is_superseded_or_long_gone(files: Lake) -> None:
    for i in range(module.MAX_SEGMENTS + 1):
        path = files.write(f"{i}.parquet", {"c": [i, i]}, row_group_size=1)
        os.utime(path, (1_000_000 + i, 1_000_000 + i))
        files.store().append(read_footers([describe(path)]))
    for gone in range(3):
        (files.root / f"{gone}.parquet").unlink()
    store = files.store()
    before = sum(s.count for s in store.segments())
    assert store.compact(files.listing())
    after = store.segments()
    assert len(after) == len(segments(files.root)) == 1
    assert after[0].count == before - 3 * 3
    assert not ParquetTable.load(files.listing(), [files.store()]).missing.any()


def test_merging_after_a_partial_listing_keeps_the_rest(files: Lake) -> None:
    for i in range(module.MAX_SEGMENTS + 1):
        path = files.write(f"day={i}/f.parquet", {"c": [i]})
        os.utime(path, (1_000_000, 1_000_000))
        files.store().append(read_footers([describe(path)]))
    store = files.store()
    assert store.compact(list_files(files.root / "day=1"))
    assert not ParquetTable.load(files.listing(), [files.store()]).missing.any()


def test_where_statistics_are_kept(files: Lake) -> None:
    path = files.write("day=1/f.parquet", {"c": [1]})
    other = files.write("day=2/f.parquet", {"c": [1]})

    def bases(*roots: str) -> list[str]:
        return [store.base for store in stores_for(roots, is_file=lambda root: root == f"file:{path}")]

    assert bases(f"file:{files.root}/") == [f"file:{files.root}"]
    assert bases(f"file:{path}") == [f"file:{path.parent}"]
    assert bases(f"file:{path.parent}", f"file:{other.parent}") == [f"file:{files.root}"]
    assert bases(f"file:{path}", f"file:{other}") == [f"file:{path.parent}", f"file:{other.parent}"]
    assert stores_for([f"file:{files.root}"])[0] is stores_for([f"file:{files.root}"])[0]


def test_several_roots(files: Lake) -> None:
    files.write("a/f.parquet", {"c": [1]})
    files.write("b/f.parquet", {"c": [5]})
    listing = files.listing()
    stores = stores_for(listing.paths.to_pylist())
    assert len(stores) == 2
    assert collect_listing(listing, stores).files_read == 2
    stats = ParquetTable.load(listing, stores)
    found = stats.files.column(data("c", "bigint"))
    assert found is not None
    assert found.low.to_pylist() == [1, 5]
