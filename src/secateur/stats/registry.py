"""The statistics in use, by the fingerprint of the listing they belong to, and the collections under way."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from secateur.options import Options
from secateur.report.summary import Reason
from secateur.stats.collect import CollectReport, collect_listing
from secateur.stats.listing import Listing
from secateur.stats.store import Store, stores_for
from secateur.stats.tablestats import TableStats

log = logging.getLogger("secateur")

_TABLES = 64
_RELOAD_SECONDS = 10.0


@dataclass(slots=True)
class _Entry:
    listing: Listing
    stores: tuple[Store, ...] = ()
    table: TableStats | None = None
    loaded: float = 0.0
    collecting: bool = False
    collected: bool = False
    problem: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Registry:
    """What is known of each listing. A change of the table is a new listing, so nothing here ever gets stale (S8)."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._one_collection = threading.Lock()

    def admit(self, listings: Iterable[Listing], needed: Collection[str]) -> set[str]:
        """Takes in listings, and tells which of the needed ones are still missing.

        Those that were not used for longest are forgotten, but none that is needed now.
        """
        with self._lock:
            for listing in listings:
                self._entries.setdefault(listing.fingerprint, _Entry(listing))
            for fingerprint in needed:
                if fingerprint in self._entries:
                    self._entries.move_to_end(fingerprint)
            while len(self._entries) > max(_TABLES, len(needed)):
                self._entries.popitem(last=False)
            return {fingerprint for fingerprint in needed if fingerprint not in self._entries}

    def table(self, fingerprint: str, options: Options) -> TableStats:
        """The statistics of a listing; if some are missing and options allow, a collection starts in the background."""
        with self._lock:
            entry = self._entries[fingerprint]
        table = self._load(entry, options)
        if options.stats_auto and table.missing.any():
            self._start(entry, options)
        return table

    def waiting(self, fingerprint: str, name: str, options: Options) -> Reason | None:
        """Why files of the listing have no statistics, None if all have."""
        with self._lock:
            entry = self._entries.get(fingerprint)
        if entry is None or entry.table is None or not (missing := int(entry.table.missing.sum())):
            return None
        some = f"{missing:,} of {len(entry.table.missing):,} files of {name}"
        if entry.collecting:
            return Reason("collecting", f"{some} have no statistics yet: they are being collected in the background")
        if entry.problem:
            return Reason("collect-failed", f"{some} have no statistics: {entry.problem}")
        remedy = "run secateur.collect(spark, ...) on it, or set spark.secateur.stats.auto=true"
        return Reason("no-statistics", f"{some} have no statistics: {remedy}")

    def collect(self, listing: Listing, options: Options, progress: bool | None = None) -> CollectReport:
        """Collects what is missing now, and waits for it."""
        self.admit((listing,), (listing.fingerprint,))
        with self._lock:
            entry = self._entries[listing.fingerprint]
        self._load(entry, options)
        return self._collect(entry, progress)

    def wait(self, seconds: float = 600.0) -> None:
        """Waits until no collection is under way."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self._lock:
                if not any(e.collecting for e in self._entries.values()):
                    return
            time.sleep(0.02)

    def _load(self, entry: _Entry, options: Options) -> TableStats:
        with entry.lock:
            now = time.monotonic()
            # Another session may have collected meanwhile.
            stale = entry.table is not None and entry.table.missing.any() and now - entry.loaded > _RELOAD_SECONDS
            if entry.table is None or (stale and not entry.collecting):
                entry.stores = stores_for(entry.listing.roots, options.stats_dir or None)
                entry.table = TableStats.load(entry.listing, entry.stores)
                entry.loaded = now
            return entry.table

    def _start(self, entry: _Entry, options: Options) -> None:
        with entry.lock:
            if entry.collecting or entry.collected:
                return
            entry.collecting = True
        threading.Thread(target=self._background, args=(entry,), name="secateur-collect", daemon=True).start()

    def _background(self, entry: _Entry) -> None:
        try:
            with self._one_collection:
                self._collect(entry, progress=False)
        except Exception as problem:  # the thread has nobody to raise to; the summary tells
            log.warning("collecting statistics failed", exc_info=True)
            entry.problem = f"collecting them failed with {type(problem).__name__}: {problem}"
        finally:
            entry.collecting = False

    def _collect(self, entry: _Entry, progress: bool | None) -> CollectReport:
        report = collect_listing(entry.listing, entry.stores, self._spark, progress=progress)
        with entry.lock:
            entry.table = TableStats.load(entry.listing, entry.stores)
            entry.loaded = time.monotonic()
            entry.collected = True
            entry.problem = report.problem
        return report
