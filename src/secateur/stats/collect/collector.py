"""Reads the footers of files that have no statistics yet: here if they are few, on Spark's executors if many.

Range-sets (see :mod:`secateur.stats.file_range_sets`) are made only where asked for, since all values have to be read:
by a Spark job whose tasks read the columns of some files each.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.pool import ThreadPool
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import SparkContext
from pyspark.sql import SparkSession

from secateur.stats.arrays import null_mask
from secateur.stats.collect import executor_job, footers, range_scan
from secateur.stats.collect.by_value import pack
from secateur.stats.collect.executor_job import cause_of
from secateur.stats.collect.progress import Progress
from secateur.stats.collect.remote_footers import read_remote_footers
from secateur.stats.collect.remote_ranges import read_remote_ranges
from secateur.stats.formats.parquet import Ints, ParquetTable
from secateur.stats.listing import Listing, Values
from secateur.stats.remote_files import PatientFiles, StorageError, is_local
from secateur.stats.store.range_set_segments import positions
from secateur.stats.store.store import Store

LOG = logging.getLogger("secateur.collect")

File = tuple[str, int, int]
Chunk = list[File]
Read = Callable[[Sequence[File]], pa.Table]
T = TypeVar("T")


@dataclass(slots=True)
class Found:
    """What was read of files, and what was in the way."""

    tables: list[pa.Table] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CollectReport:
    """What a collection did. ``problem`` says why it stopped early, ``failures`` why the first few files failed.

    >>> print(CollectReport(120, 3, 0, 0.25, "in /lake/trails/_secateur/v1"))
    3 of 120 files read in 0.2 s, kept in /lake/trails/_secateur/v1
    """

    files_total: int
    files_read: int
    files_failed: int
    seconds: float
    store_text: str
    problem: str = ""
    failures: tuple[str, ...] = ()
    files_ranged: int | None = None
    """Number of files whose values were read for range sets; None without ``ranges=``."""

    def __str__(self) -> str:
        text = f"{self.files_read} of {self.files_total} files read in {self.seconds:.1f} s, kept {self.store_text}"
        if self.files_ranged is not None:
            text += f"; range-sets made of {self.files_ranged}"
        failed = f"; {self.files_failed} failed, first: {self.failures[0]}" if self.failures else ""
        return text + failed + (f"; {self.problem}" if self.problem else "")

    def followed_by(self, ranges: CollectReport) -> CollectReport:
        """The report of footers with that of the range-sets of the same files; a file can fail at both."""
        return replace(
            self,
            files_failed=max(self.files_failed, ranges.files_failed),
            seconds=self.seconds + ranges.seconds,
            store_text=ranges.store_text if ranges.files_ranged else self.store_text,
            problem="; ".join(dict.fromkeys(p for p in (self.problem, ranges.problem) if p)),
            failures=tuple(dict.fromkeys(self.failures + ranges.failures))[:3],
            files_ranged=ranges.files_ranged,
        )


@dataclass(frozen=True, slots=True)
class Collector:
    """How a collection reads and what it may write."""

    spark: SparkSession | None = None
    """For files that are many, and for range-sets."""
    remote: PatientFiles | None = None
    """For files that are not on this machine."""
    table: str = ""
    """The fingerprint of the table, whose reader's settings count for its files."""
    refusal: Callable[[str], str] = lambda home: ""
    """Why nothing is to be written to a folder."""
    progress: bool | None = None


_DEFAULT = Collector()


def collect_listing(
    listing: Listing, stores: Sequence[Store], how: Collector = _DEFAULT, *, direct_limit: int = 64
) -> CollectReport:
    """Reads the footers of the listing's files that the stores do not know, and keeps what they say.

    Never raises: what could not be read stays unknown, and the report says why.
    """
    for store in stores:
        store.refresh()
    files = _described(listing, np.flatnonzero(ParquetTable(listing, stores).missing))
    bar = Progress(len(files), how.progress)

    def read() -> Found:
        here, there = _split(files)
        found = _read(here, footers.read_footers, how.spark, direct_limit, bar) if here else Found()
        if there:
            found.tables += read_remote_footers(there, _required(how.remote), how.table, bar)
        return found

    return _collected(read if files else Found, listing, stores, how, bar)


def collect_ranges(
    values: Values,
    stores: Sequence[Store],
    how: Collector = _DEFAULT,
    *,
    most: int,
    listed: bool = False,
    direct_limit: int = 1,
) -> CollectReport:
    """Makes range-sets of at most ``most`` ranges of the files that have none yet; ``listed``: keeps all values, too.

    Never raises either.
    """
    wanted = range_scan.Wanted(most, values.columns, values.by_id, values.dated, listed)
    stores = [store.table_ranges if values.of_table else store.ranges for store in stores]
    for store in stores:
        store.refresh()
    files = _without_ranges(values.listing, stores, wanted)
    bar = Progress(len(files), how.progress, "making range-sets")

    def read() -> Found:
        here, there = _split(files)
        reader = partial(range_scan.read_ranges, wanted=wanted)
        found = _read(here, reader, how.spark, direct_limit, bar) if here else Found()
        if there:
            found.tables += read_remote_ranges(there, wanted, how.spark, _required(how.remote), how.table, bar)
        return found

    report = _collected(read if files else Found, values.listing, stores, how, bar)
    return replace(report, files_ranged=report.files_read)


def _split(files: Chunk) -> tuple[Chunk, Chunk]:
    """The files on this machine, and the others."""
    return [file for file in files if is_local(file[0])], [file for file in files if not is_local(file[0])]


def _required(remote: PatientFiles | None) -> PatientFiles:
    if remote is None:
        raise StorageError("files that are not on this machine can only be read by Spark")
    return remote


def _collected(
    read: Callable[[], Found], listing: Listing, stores: Sequence[Store], how: Collector, bar: Progress
) -> CollectReport:
    started = time.monotonic()
    problem, found = "", Found()
    try:
        found = read()
        problem = found.problem
    except StorageError as error:
        problem = str(error)
        LOG.warning(problem)
    except Exception as error:
        problem = f"collecting stopped: {type(error).__name__}: {error}"[:500]
        LOG.warning(problem)
    finally:
        bar.close()
    failed, failures, table = 0, [], None
    if found.tables:
        table = pa.concat_tables(found.tables, promote_options="default")
        bad = table.filter(pc.is_valid(table["error"]))
        failed = len(bad)
        failures = [f"{r['path']}: {r['error']}" for r in bad.slice(0, 3).select(["path", "error"]).to_pylist()]
    kept = _keep(table, listing, stores, how)
    text = ", ".join(f"in {s.text}" if s.writable else s.text for s in stores)
    return CollectReport(listing.count, kept, failed, time.monotonic() - started, text, problem, tuple(failures))


def _without_ranges(listing: Listing, stores: Sequence[Store], wanted: range_scan.Wanted) -> Chunk:
    """The files of which no segment has as many ranges of as many columns."""
    done = np.zeros(listing.count, np.bool_)
    for store in stores:
        for segment in store.segments():
            table = segment.read(["columns"]).column(0).combine_chunks()
            answers = [_covers(json.loads(text), wanted) for text in table.dictionary.to_pylist()]
            covered = pa.array(answers, pa.bool_()).take(table.indices).to_numpy(zero_copy_only=False)
            position = positions(listing, store, segment)
            done[position[covered & (position >= 0)]] = True
    return _described(listing, np.flatnonzero(~done & ~null_mask(listing.paths)))


def _covers(asked: Sequence[Any], wanted: range_scan.Wanted) -> bool:
    ranges, columns, *marks = asked
    enough = columns is None or (wanted.columns is not None and set(wanted.columns) <= set(columns))
    listed = range_scan.VALUES in marks or not wanted.listed
    return ranges >= wanted.most and enough and ("ids" in marks) == wanted.by_id and listed


def _described(listing: Listing, at: Ints) -> Chunk:
    paths = listing.paths.take(pa.array(at)).to_pylist()
    return list(zip(paths, listing.lengths[at].tolist(), listing.mtimes[at].tolist(), strict=True))


def _keep(table: pa.Table | None, listing: Listing, stores: Sequence[Store], how: Collector) -> int:
    """Gives each file's rows to the first store that covers it, and merges small segments."""
    kept = 0
    for store in stores:
        refused = how.refusal(store.home)
        if table is not None:
            inside = pc.is_valid(store.relative(table["path"]))
            kept += store.append(table.filter(inside), refused)
            table = table.filter(pc.invert(inside))
        store.persist(refused)
        try:
            if not refused:
                store.compact(listing)
        except Exception as error:  # the segments are all still there
            LOG.warning("segments of %s could not be merged: %s", store.home, error)
    return kept


def _read(files: Chunk, reader: Read, spark: SparkSession | None, direct_limit: int, bar: Progress) -> Found:
    if spark is None or len(files) <= direct_limit:
        return Found(_read_here(files, reader, bar))
    try:
        context = spark.sparkContext
    except Exception:  # a Spark Connect session has none
        return Found(_read_here(files, reader, bar))
    try:
        return _read_on_executors(files, reader, context, bar)
    except Exception as error:
        if _stopped(context):
            raise
        problem = f"executors could not read the files, so the driver did: {cause_of(error)}"
        LOG.warning(problem)
        return Found(_read_here(files, reader, bar), problem)


def _chunks(files: Chunk, size: int) -> list[Chunk]:
    return [files[at : at + size] for at in range(0, len(files), size)]


def _read_here(files: Chunk, reader: Read, bar: Progress) -> list[pa.Table]:
    # Local footers are a matter of computing, where more threads only get in each other's way.
    threads = min(2, len(files))
    chunks = _chunks(files, max(1, min(200, len(files) // threads)))
    tables, done = [], 0
    # Its threads are daemons: unlike those of concurrent.futures they do not hold up the end of the program.
    with ThreadPool(threads) as pool:
        for table in pool.imap_unordered(reader, chunks):
            tables.append(table)
            done += pc.sum(pc.is_null(table["row_group"])).as_py()
            bar.update(done)
    return tables


def _read_on_executors(files: Chunk, reader: Read, context: SparkContext, bar: Progress) -> Found:
    size = max(1, min(500, len(files) // (4 * context.defaultParallelism)))
    chunks = _chunks(files, size)
    group = f"secateur-{uuid.uuid4().hex}"
    packed = pack(partial(footers.read_partition, read=reader))
    work = partial(executor_job.run, packed=packed, needs=executor_job.NEEDS)

    def run() -> list[executor_job.Part]:
        ours = _with_our_python(context)
        ours.setJobGroup(group, f"secateur: {bar.what}, {len(files)} files", interruptOnCancel=True)
        return ours.parallelize(list(enumerate(chunks)), len(chunks)).mapPartitions(work).collect()

    def poll() -> None:
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(s) for j in tracker.getJobIdsForGroup(group) for s in _stages(tracker, j)]
        bar.update(min(len(files), size * sum(s.numCompletedTasks for s in stages if s)))

    parts = _in_thread(run, poll if bar.show else None)
    tables = [pa.ipc.open_stream(part).read_all() for _, part, _ in parts if part]
    lacking = sorted({module for _, _, missing in parts for module in missing})
    left = [file for at, _, missing in parts if missing for file in chunks[at]]
    if not left:
        return Found(tables)
    names = " and ".join(lacking)
    problem = f"executors have no module {names}: the driver read {len(left)} files itself; install {names} there"
    LOG.warning(problem)
    return Found(tables + _read_here(left, reader, bar), problem)


def _with_our_python(context: SparkContext) -> SparkContext:
    """The context, or on one machine a view of it whose workers run this very Python.

    There ``python3`` on the path is the default, which need not have pyarrow, while the Python we run in has. A view,
    since the user's own jobs must go on with what they are configured for.
    """
    if not (context.master or "").startswith("local"):
        return context
    view = object.__new__(SparkContext)
    view.__dict__.update(context.__dict__)
    view.pythonExec = sys.executable
    return view


def _stages(tracker: object, job: int) -> list[int]:
    info = tracker.getJobInfo(job)  # type: ignore[attr-defined]
    return list(info.stageIds) if info else []


def _in_thread(run: Callable[[], list[T]], poll: Callable[[], None] | None) -> list[T]:
    """Runs in a thread of its own, whose job group and other local properties are not the caller's."""
    results: list[list[T]] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            results.append(run())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=target, name="secateur-collect", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.2 if poll else None)
        if poll and thread.is_alive():
            try:
                poll()
            except Exception:  # a bar is not worth a failure
                poll = None
    if errors:
        raise errors[0]
    return results[0]


def _stopped(context: SparkContext) -> bool:
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:
        return True
