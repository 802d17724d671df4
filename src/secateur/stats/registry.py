"""The statistics in use, by the fingerprint of the source they belong to, and the collections under way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from secateur.errors import WireError
from secateur.reasons import Reason
from secateur.recent import Recent
from secateur.stats.collect.collector import Collector, CollectReport, collect_listing, collect_ranges
from secateur.stats.file_range_sets import SMALL
from secateur.stats.formats.readers import PartialTable, Reader, Source, Table
from secateur.stats.listing import Listing
from secateur.stats.remote_files import PatientFiles, RemoteFiles, refusal
from secateur.stats.store.store import PATIENCE, Store, stores_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("secateur")

_TABLES = 64
_RELOAD_SECONDS = 10.0
_RETRY_SECONDS = 60.0
_REWRITE = "rewrite these files with a writer that records them"
_NOT_PARQUET = "files are not Parquet, so they have no range sets"
_NO_RANGES = "no range sets were made, since it is not known where the files are"


@dataclass(frozen=True, slots=True)
class StatisticsSettings:
    """How statistics are collected and kept, as far as the user decides it."""

    collect: bool = True
    """In the background, when a query first meets a table."""
    folder: str = ""
    """Where those of all tables are kept; empty: in a folder of each table."""
    write: str = "auto"
    """Who may write them: ``auto``, ``always`` or ``never``."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Which range-sets to make: how many ranges at most, of which columns (None: of all that can have them)."""

    most: int
    columns: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Entry:
    source: Source
    reader: Reader
    stores: tuple[Store, ...] = ()
    directory: str = ""
    revisions: tuple[int, ...] = ()
    table: Table | None = None
    loaded: float = 0.0
    collecting: bool = False
    collected: bool = False
    quiet_until: float = 0.0
    """When a collection in the background may be tried again."""
    problem: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Registry:
    """What is known of each source. A change of the table is a new source, so nothing here ever gets stale (S8)."""

    def __init__(self, spark: SparkSession | None, remote: RemoteFiles | None = None) -> None:
        self._spark = spark
        self._remote = None if remote is None else PatientFiles(remote)
        self._entries: Recent[str, _Entry] = Recent(_TABLES)
        self._one_collection = threading.Lock()

    def admit(self, sources: Iterable[tuple[Source, Reader]], needed: Collection[str]) -> set[str]:
        """Takes in sources, and returns which of the needed ones are still missing.

        Those that were not used for longest are forgotten, but none that is needed now.
        """
        new = list(sources)
        for source, reader in new:
            self._entries.setdefault(source.fingerprint, partial(_Entry, source, reader), least=_TABLES + len(new))
        missing = {fingerprint for fingerprint in needed if self._entries.get(fingerprint) is None}
        self._entries.trim(least=len(needed))
        return missing

    def source(self, fingerprint: str) -> Source | None:
        """The source of that fingerprint, if it is known."""
        entry = self._entries.peek(fingerprint)
        return None if entry is None else entry.source

    def relatives(self, needed: Collection[str]) -> list[str]:
        """The known sources that are other versions of the needed ones: alike up to an ``@`` in the fingerprint."""
        families = {fingerprint.partition("@")[0] for fingerprint in needed if "@" in fingerprint}
        return [known for known, _ in self._entries.items() if known.partition("@")[0] in families]

    def table(self, fingerprint: str, settings: StatisticsSettings) -> Table:
        """The statistics of a source; if some are missing and options allow, a collection starts in the background."""
        entry = self._entry(fingerprint)
        table = self._load(entry, settings)
        if settings.collect and table.missing.any():
            self._start(entry, settings)
        return table

    def _entry(self, fingerprint: str) -> _Entry:
        entry = self._entries.peek(fingerprint)
        if entry is None:
            raise WireError(f"so many tables are read at once that the statistics of {fingerprint} were forgotten")
        return entry

    def known(self, fingerprint: str) -> Table | None:
        """The statistics of a source, if they are loaded."""
        entry = self._entries.peek(fingerprint)
        return entry.table if entry is not None else None

    def extend(self, part: dict[str, Any], settings: StatisticsSettings) -> None:
        """Takes in a part of a table that was asked for."""
        table = self.table(part["fp"], settings)
        if isinstance(table, PartialTable):
            table.extend(part)

    def waiting(self, fingerprint: str, name: str) -> Reason | None:
        """Why files of the source have no statistics, None if all have."""
        entry = self._entries.peek(fingerprint)
        if entry is None or entry.table is None:
            return None
        missing = int(entry.table.missing.sum())
        unreadable = next(((s.home, s.unreadable) for s in entry.stores if s.unreadable), None)
        if unreadable is not None and (missing or entry.directory) and not entry.collecting:
            text = f"statistics of {name} in {unreadable[0]} cannot be read: {unreadable[1]}"
            remedy = "Correct its settings, or set spark.secateur.stats.dir; it is asked again after a minute."
            return Reason("store-failed", f"{text}{f'; {entry.problem}' if entry.problem else ''}. {remedy}")
        if not missing:
            return None
        some = f"{missing:,} of {len(entry.table.missing):,} files of {name}"
        if entry.collecting:
            return Reason(
                "collecting",
                f"{some} have no statistics yet: they are being collected in the background. Wait, or call "
                "pruner.wait_for_statistics().",
            )
        if entry.problem:
            return Reason("collect-failed", f"{some} have no statistics: {entry.problem}")
        if entry.table.uncollected is None:
            return Reason("no-statistics", f"{some} have no statistics in the table's own metadata: {_REWRITE}")
        remedy = "run secateur.collect(spark, ...) on it, or set spark.secateur.stats.auto=true"
        return Reason("no-statistics", f"{some} have no statistics: {remedy}")

    def collect(
        self,
        source: Source,
        reader: Reader,
        settings: StatisticsSettings,
        progress: bool | None = None,
        ranges: Ranges | None = None,
        part: dict[str, Any] | None = None,
    ) -> CollectReport:
        """Collects what is missing now, range-sets too if wanted, and waits for it.

        ``part`` is what the JVM says of the files of a table that is loaded in parts.
        """
        self.admit(((source, reader),), (source.fingerprint,))
        entry = self._entry(source.fingerprint)
        if self._remote is not None:
            self._remote.forgive()
        with entry.lock:
            self._place(entry, settings)
        return self._collect(entry, self._how(entry, settings, asked=True, progress=progress), ranges, part)

    def wait(self, seconds: float = 600.0) -> None:
        """Waits until no collection is under way."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not any(entry.collecting for entry in self._entries.values()):
                return
            time.sleep(0.02)

    def _place(self, entry: _Entry, settings: StatisticsSettings) -> bool:
        """Has the entry's statistics where the options say; returns whether that is elsewhere than before."""
        if entry.stores and entry.directory == settings.folder:
            return False
        files = {root for root in entry.source.roots if _is_file(entry.source, root)}
        stores = stores_for(
            entry.source.roots,
            settings.folder or None,
            files=self._remote,
            is_file=lambda root: root in files,
        )
        for old, new in zip(entry.stores, stores, strict=False):
            new.adopt(old)
        for store in stores:
            store.belongs_to("" if settings.folder else entry.source.fingerprint)
        entry.stores, entry.directory = stores, settings.folder
        entry.collected, entry.quiet_until = False, 0.0
        return True

    def _load(self, entry: _Entry, settings: StatisticsSettings) -> Table:
        with entry.lock:
            now = time.monotonic()
            moved = self._place(entry, settings)
            # Another session may have collected meanwhile, or what was read for long is there.
            stale = entry.table is not None and entry.table.missing.any() and now - entry.loaded > _RELOAD_SECONDS
            if (
                entry.table is None
                or moved
                or ((stale or entry.revisions != _revisions(entry)) and not entry.collecting)
            ):
                for store in entry.stores:
                    if entry.reader.lists_files:  # their range-sets they look for themselves
                        store.look()
                        continue
                    for each in (store, store.ranges):
                        each.look(now + PATIENCE - time.monotonic())
                self._take(entry)
            assert entry.table is not None
            return entry.table

    def _take(self, entry: _Entry) -> None:
        entry.revisions = _revisions(entry)
        entry.table = entry.reader.load(entry.source, entry.stores)
        entry.loaded = time.monotonic()

    def _how(self, entry: _Entry, settings: StatisticsSettings, *, asked: bool, progress: bool | None) -> Collector:
        may = partial(refusal, policy=settings.write, asked=asked)
        return Collector(self._spark, self._remote, entry.source.fingerprint, may, progress)

    def _start(self, entry: _Entry, settings: StatisticsSettings) -> None:
        with entry.lock:
            if entry.collecting or entry.collected or time.monotonic() < entry.quiet_until:
                return
            entry.collecting = True
        how = self._how(entry, settings, asked=False, progress=False)
        threading.Thread(target=self._background, args=(entry, how), name="secateur-collect", daemon=True).start()

    def _background(self, entry: _Entry, how: Collector) -> None:
        try:
            with self._one_collection:
                self._collect(entry, how)
        except Exception as problem:  # nothing catches what a thread raises; the summary says it
            log.warning("collecting statistics failed", exc_info=True)
            entry.problem = f"collecting them failed with {type(problem).__name__}: {problem}"
        finally:
            entry.quiet_until = time.monotonic() + _RETRY_SECONDS
            entry.collecting = False

    def _collect(
        self, entry: _Entry, how: Collector, ranges: Ranges | None = None, part: dict[str, Any] | None = None
    ) -> CollectReport:
        stores = entry.stores
        table = entry.table if entry.table is not None else entry.reader.load(entry.source, stores)
        files = table.uncollected
        if files is None:
            missing = int(table.missing.sum())
            problem = f"{missing} files have no statistics there: {_REWRITE}" if missing else ""
            report = CollectReport(entry.source.count, 0, 0, 0.0, "in the table's own metadata", problem)
        else:
            report = collect_listing(files, stores, how)
            report = replace(report, files_total=entry.source.count)
        if ranges is not None:
            if files is not None:  # by now it is known how many rows there are
                table = entry.reader.load(entry.source, stores)
            report = report.followed_by(self._made(table, entry, ranges, part, how))
        elif files is None:
            entry.collected = True
            return report
        with entry.lock:
            self._take(entry)
            entry.collected = not report.problem
            entry.problem = report.problem
        return report

    def _made(
        self, table: Table, entry: _Entry, ranges: Ranges, part: dict[str, Any] | None, how: Collector
    ) -> CollectReport:
        if part is not None and isinstance(table, PartialTable):
            table.extend(part)
        values = table.values(ranges.columns)
        if values is None:
            return CollectReport(entry.source.count, 0, 0, 0.0, "nowhere", _NO_RANGES)
        rows = table.files.rows
        small = not rows.null_count and (pc.sum(rows).as_py() or 0) <= SMALL
        made = collect_ranges(values, entry.stores, how, most=ranges.most, listed=small)
        if others := values.listing.paths.null_count:
            made = replace(made, problem="; ".join(p for p in (made.problem, f"{others} {_NOT_PARQUET}") if p))
        return made


def _revisions(entry: _Entry) -> tuple[int, ...]:
    return tuple(each.revision for store in entry.stores for each in (store, store.ranges, store.table_ranges))


def _is_file(source: Source, root: str) -> bool:
    """Whether a root is itself one of the files."""
    return isinstance(source, Listing) and source.count == 1 and source.paths[0].as_py() == root
