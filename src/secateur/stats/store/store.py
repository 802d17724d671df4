"""Where statistics of Parquet files are kept between sessions: a folder of immutable, self-verifying segments.

A segment is named after the hash of its bytes and appears by a rename. So a damaged or half-written one is recognised
(and set aside, never believed), two sessions that write at once cannot overwrite each other, and to read needs no lock.
Statistics are keyed by path (relative to the table, so that a table can be moved), length and modification time.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.recent import Recent
from secateur.stats.collect.footers import FIXED, OPTIONAL, decode_key, split_path
from secateur.stats.listing import Listing
from secateur.stats.remote_files import PatientFiles, StorageError
from secateur.stats.store.places import LocalPlace, RemotePlace, Stored, place_of
from secateur.stats.store.segment import Segment, digest, encode

LOG = logging.getLogger("secateur.store")
MAX_SEGMENTS = 16
DAY_MS = 86_400_000
# Hidden from Spark even where a pattern such as `t/*/*` reaches into the folder, and from others' `**/*.parquet`.
_STATS, _RANGES, _SUFFIX = "_stats-", "_ranges-", ".segment"
PATIENCE, _SHORT, _AGAIN = 0.5, 0.2, 10.0
"""Seconds that a query waits for a store elsewhere the first time (if it can do without: less), and after which it is
looked at again."""
_REMEDY = "set spark.secateur.stats.dir to a folder that can be"


class Store:
    """The statistics of the files below one directory.

    ``directory`` is where to keep them instead of in the table's own ``_secateur`` folder. Where nothing can be
    written, or nothing may be, statistics live as long as this object: ``writable`` is False and ``problem`` says why.
    """

    def __init__(
        self, base: str, directory: str | None = None, files: PatientFiles | None = None, *, of: Store | None = None
    ) -> None:
        self.base = base.rstrip("/")
        scheme, authority, path = split_path(self.base)
        if directory is None:
            self.home = f"{self.base}/_secateur"
        else:
            # One spelling for `/t`, `file:/t` and `file:///t`.
            name = hashlib.blake2b(f"{scheme}://{authority}{path}".encode(), digest_size=16).hexdigest()
            self.home = f"{directory.rstrip('/')}/{name}"
        self.writable = True
        self.problem = ""
        self.unreadable = ""
        """Why what is kept cannot be read, in the words of its file system."""
        self.revision = 0
        """Grows when there are other segments."""
        self._prefix, self._anywhere, self._merges = _STATS, False, True
        self._place: LocalPlace | RemotePlace = place_of(self.home, files) if of is None else of._place
        self._said: set[str] = set() if of is None else of._said
        self._loaded: dict[str, Segment] = {}
        self._memory: dict[str, Segment] = {}
        self._lock = threading.RLock()
        self._looking: threading.Thread | None = None
        self._looked = -math.inf
        self._ranges = self._table_ranges = self
        if of is None:
            self._ranges, self._table_ranges = (Store(base, directory, files, of=self) for _ in range(2))
            self._ranges._prefix = self._table_ranges._prefix = _RANGES
            self._table_ranges._anywhere = True

    @property
    def ranges(self) -> Store:
        """Where range-sets are kept: segments of their own in the same folder, since few files or columns have them."""
        return self._ranges

    @property
    def table_ranges(self) -> Store:
        """The same for a table whose own metadata lists its files: they are kept here wherever they lie."""
        return self._table_ranges

    @property
    def text(self) -> str:
        """Where the statistics are kept, in words."""
        return f"{self.home}/v1" if self.writable else f"in memory only ({self.problem})"

    def belongs_to(self, table: str) -> None:
        """The table of that fingerprint is read with settings of its own, and so is what lies beside it."""
        if isinstance(self._place, RemotePlace):
            self._place.table = table

    def segments(self) -> tuple[Segment, ...]:
        """Every segment that can be believed, oldest first; of storage elsewhere those that were read by now."""
        if isinstance(self._place, LocalPlace):
            self.refresh()
        return self.at_hand

    def refresh(self) -> None:
        """Reads what there is, however long that takes."""
        with self._lock:
            self._read()

    def look(self, seconds: float = _SHORT) -> None:
        """Reads what there is, for :attr:`at_hand`. For storage that does not answer soon nobody waits, nor twice."""
        if isinstance(self._place, LocalPlace):
            self.refresh()
        elif time.monotonic() - self._looked > _AGAIN and (self._looking is None or not self._looking.is_alive()):
            first = self._looking is None
            self._looking = threading.Thread(target=self.refresh, name="secateur-store", daemon=True)
            self._looking.start()
            if first:
                self._looking.join(max(0.0, seconds))

    @property
    def at_hand(self) -> tuple[Segment, ...]:
        """The segments that were read by now."""
        loaded, memory = dict(self._loaded), dict(self._memory)
        return (*loaded.values(), *(s for n, s in memory.items() if n not in loaded))

    def _read(self) -> None:
        try:
            for _ in range(5):
                try:
                    self._take(self._names())
                    break
                except FileNotFoundError:  # merged by another session between the listing and the reading: look again
                    continue
            self.unreadable = ""
        except Exception as error:
            if str(error) != self.unreadable:
                LOG.warning("statistics in %s cannot be read: %s", self.home, error)
            self.unreadable = str(error)
        self._looked = time.monotonic()

    def _names(self) -> list[Stored]:
        return [f for f in self._place.names() if f.name.startswith(self._prefix) and f.name.endswith(_SUFFIX)]

    def _take(self, found: Sequence[Stored]) -> None:
        """The segments that are there now; those that went away were merged into others and are forgotten."""
        news = [file for file in found if file.name not in self._loaded]
        read = {
            file.name: self._believed(file.name, each) for file, each in zip(news, self._place.read(news), strict=True)
        }
        known = {file.name: self._loaded.get(file.name) or read.get(file.name) for file in found}
        loaded = {name: segment for name, segment in known.items() if segment is not None}
        if loaded.keys() != self._loaded.keys():
            self._loaded = loaded
            self.revision += 1

    def _believed(self, name: str, content: pa.Buffer) -> Segment | None:
        if f"{self._prefix}{digest(content)}{_SUFFIX}" != name:
            self._set_aside(name, "its content does not match its name")
            return None
        try:
            return Segment(name, content)
        except Exception as error:
            self._set_aside(name, str(error))
            return None

    def _set_aside(self, name: str, reason: str) -> None:
        if name in self._said:
            return
        self._said.add(name)
        LOG.warning("statistics segment %s in %s is damaged (%s): set aside, not used", name, self.home, reason)
        try:
            self._place.set_aside(name)
        except OSError as error:
            LOG.debug("could not move %s: %s", name, error)

    def append(self, table: pa.Table, refused: str = "") -> int:
        """Adds what ``read_footers`` found of files below ``base``; returns for how many. Failed files are left out.

        ``refused`` says why it is not to be written.
        """
        relative = self.relative(table["path"])
        table = table.set_column(0, "path", relative).filter(pc.and_(pc.is_null(table["error"]), pc.is_valid(relative)))
        if not table.num_rows:
            return 0
        content = encode(table)
        with self._lock:
            return len(self._write(content, refused).file_rows)

    def persist(self, refused: str = "") -> None:
        """Writes what is in memory only, if it may be written."""
        with self._lock:
            for segment in () if refused else tuple(self._memory.values()):
                self._write(segment.content)

    def adopt(self, other: Store) -> None:
        """Takes over what another store of the same files has in memory only."""
        for mine, theirs in ((self, other), (self._ranges, other._ranges), (self._table_ranges, other._table_ranges)):
            mine._memory.update(theirs._memory)

    def relative(self, paths: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """Paths relative to ``base``; those outside are null, or whole if files may lie anywhere."""
        result = paths.cast(pa.string()) if self._anywhere else pa.nulls(len(paths), pa.string())
        for spelling in _spellings(self.base):
            inside = pc.starts_with(paths, f"{spelling}/")
            if pc.any(inside).as_py():
                found = pc.utf8_slice_codeunits(paths, len(spelling) + 1)
                if pc.all(inside).as_py():
                    return found
                result = pc.if_else(pc.fill_null(inside, False), found, result)
        return result

    def compact(self, listing: Listing) -> bool:
        """Merges the segments into one when there are many; returns whether it did.

        Superseded rows go, and so do those of files that are gone and older than a day, if the listing is of all of
        ``base``.
        """
        with self._lock:
            return self.writable and self._merges and len(self._names()) > MAX_SEGMENTS and self._compact(listing)

    def _compact(self, listing: Listing) -> bool:
        self._read()
        merged = list(self._loaded.values())
        tables = [s.read(_names(s)) for s in merged]
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        new = self._write(encode(table.filter(self._worth_keeping(table, listing))))
        if not self.writable:
            return False
        for segment in merged:
            if segment.name != new.name:
                try:
                    self._place.delete(segment.name)
                except (OSError, StorageError) as error:  # then there is no use in merging them again
                    LOG.warning("segments of %s were merged, but cannot be deleted: %s", self.home, error)
                    self._merges = False
                    break
                self._loaded.pop(segment.name, None)
        return True

    def _worth_keeping(self, table: pa.Table, listing: Listing) -> pa.Array:
        is_file = pc.is_null(table["row_group"]).to_numpy()
        files = table.filter(pa.array(is_file)).select(["path", "length", "mtime", "columns"])
        files = files.set_column(3, "columns", files["columns"].cast(pa.string()))
        ordered = files.append_column("at", pa.array(np.arange(len(files))))
        # Range-sets of other columns of the same file are not superseded.
        last = ordered.group_by(["path", "length", "mtime", "columns"]).aggregate([("at", "max")])["at_max"].to_numpy()
        keep = np.zeros(len(files), dtype=np.bool_)
        keep[last] = True
        if self.base in (root.rstrip("/") for root in listing.roots):
            position = pc.index_in(files["path"], value_set=self.relative(listing.paths))
            gone = pc.is_null(position).to_numpy()
            keep &= ~(gone & (files["mtime"].to_numpy() < time.time() * 1000 - DAY_MS))
        return pa.array(keep[np.cumsum(is_file) - 1])  # row groups follow their file

    def _write(self, content: pa.Buffer, refused: str = "") -> Segment:
        name = f"{self._prefix}{digest(content)}{_SUFFIX}"
        segment = Segment(name, content)
        try:
            if refused:
                raise _RefusedError(refused)
            self._place.write(name, content)
            self._loaded[name] = segment
            self._memory.pop(name, None)
            self.writable, self.problem = True, ""
        except Exception as error:
            self.writable, self.problem = False, str(error)
            if not isinstance(error, _RefusedError):
                self.problem = f"{self.home} cannot be written: {error}; {_REMEDY}"
                if self.home not in self._said:
                    LOG.warning("statistics are kept in memory only: %s", self.problem)
                self._said.add(self.home)
            self._memory[name] = segment
        self.revision += 1
        return segment


class _RefusedError(Exception):
    """Nothing may be written."""


def stores_for(
    roots: Sequence[str],
    directory: str | None = None,
    *,
    files: PatientFiles | None = None,
    is_file: Callable[[str], bool] = lambda _: False,
) -> tuple[Store, ...]:
    """The stores that keep the statistics of a table with these roots.

    A root that is the only one and a directory has its own; a file, or one root of several, is kept with its parent.
    """
    bases = [root.rstrip("/") for root in roots]
    if len(bases) != 1 or is_file(bases[0]):
        bases = [base.rsplit("/", 1)[0] for base in bases]
    return tuple(_open(base, directory or None, files) for base in dict.fromkeys(bases))


# One object for one place: what it has read and verified serves every listing of the table.
_OPEN: Recent[tuple[str, str | None, PatientFiles | None], Store] = Recent(64)


def _open(base: str, directory: str | None, files: PatientFiles | None) -> Store:
    return _OPEN.setdefault((base, directory, files), partial(Store, base, directory, files))


def _spellings(path: str) -> tuple[str, ...]:
    """The ways in which Hadoop writes one path."""
    scheme, _, local = split_path(path)
    return (f"file:{local}", f"file://{local}", local) if scheme == "file" else (path,)


def _names(segment: Segment) -> list[str]:
    cells = sorted(name for name in segment.columns if decode_key(name) is not None)
    return [*FIXED, *(name for name in OPTIONAL if name in segment.columns), *cells]
