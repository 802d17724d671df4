"""Where statistics of Parquet files are kept between sessions: a folder of immutable, self-verifying segments.

A segment is named after the hash of its bytes and appears by a rename. So a damaged or half-written one is recognised
(and set aside, never believed), two sessions that write at once cannot overwrite each other, and to read needs no lock.
Statistics are keyed by path (relative to the table, so that a table can be moved), length and modification time.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from secateur.stats.collect.footers import FIXED, OPTIONAL, FileSystems, decode_key, split_path
from secateur.stats.listing import Listing
from secateur.stats.store.segment import Segment, digest, encode

LOG = logging.getLogger("secateur.store")
MAX_SEGMENTS = 16
DAY_MS = 86_400_000
# Hidden from Spark even where a pattern such as `t/*/*` reaches into the folder, and from others' `**/*.parquet`.
_STATS, _RANGES, _SUFFIX = "_stats-", "_ranges-", ".segment"
_PATIENCE = 0.05


class Store:
    """The statistics of the files below one directory.

    ``directory`` is where to keep them instead of in the table's own ``_secateur`` folder. Where nothing can be
    written, statistics live as long as this object: ``writable`` is False and ``problem`` says why.
    """

    def __init__(
        self, base: str, directory: str | None = None, prefix: str = _STATS, *, anywhere: bool = False
    ) -> None:
        self._prefix = prefix
        self._anywhere = anywhere
        self._ranges = Store(base, directory, _RANGES) if prefix == _STATS else self
        self._table_ranges = Store(base, directory, _RANGES, anywhere=True) if prefix == _STATS else self
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
        self._systems = FileSystems()
        self._loaded: dict[str, Segment] = {}
        self._memory: dict[str, Segment] = {}
        self._lock = threading.RLock()
        self._looking: threading.Thread | None = None

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

    def segments(self) -> tuple[Segment, ...]:
        """Every segment that can be believed, oldest first."""
        with self._lock:
            return self._segments()

    def look(self, seconds: float = _PATIENCE) -> None:
        """Reads what there is, for :attr:`at_hand`. It does not wait for storage that does not answer soon."""
        if split_path(self.home)[0] == "file":
            self.segments()
        elif self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self.segments, name="secateur-store", daemon=True)
            self._looking.start()
            self._looking.join(seconds)

    @property
    def at_hand(self) -> tuple[Segment, ...]:
        """The segments that were read by now."""
        loaded, memory = dict(self._loaded), dict(self._memory)
        return (*loaded.values(), *(s for n, s in memory.items() if n not in loaded))

    def _segments(self) -> tuple[Segment, ...]:
        for _ in range(5):
            try:
                names = self._list()
                # Segments that went away were merged into others: forget them.
                self._loaded = {n: s for n in names if (s := self._loaded.get(n) or self._load(n)) is not None}
                break
            except FileNotFoundError:  # merged by another session between the listing and the reading: look again
                continue
            except Exception as error:
                LOG.warning("statistics in %s cannot be read: %s", self.home, error)
                break
        return self.at_hand

    def append(self, table: pa.Table) -> int:
        """Adds what ``read_footers`` found of files below ``base``; returns for how many. Failed files are left out."""
        relative = self.relative(table["path"])
        table = table.set_column(0, "path", relative).filter(pc.and_(pc.is_null(table["error"]), pc.is_valid(relative)))
        if not table.num_rows:
            return 0
        content = encode(table)
        with self._lock:
            return len(self._write(content).file_rows)

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
            return self.writable and len(self._list()) > MAX_SEGMENTS and self._compact(listing)

    def _compact(self, listing: Listing) -> bool:
        merged = [s for s in self.segments() if s.name in self._loaded]
        tables = [s.read(_names(s)) for s in merged]
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
        new = self._write(encode(table.filter(self._worth_keeping(table, listing))))
        if not self.writable:
            return False
        system, home = self._systems.locate(f"{self.home}/v1")
        for segment in merged:
            if segment.name != new.name:
                try:
                    system.delete_file(f"{home}/{segment.name}")
                except OSError as error:  # another session merged it as well
                    LOG.debug("could not remove %s: %s", segment.name, error)
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

    def _list(self) -> list[str]:
        system, home = self._systems.locate(f"{self.home}/v1")
        infos = system.get_file_info(pafs.FileSelector(home, allow_not_found=True))
        found = [
            (i.mtime_ns or 0, i.base_name)
            for i in infos
            if i.type == pafs.FileType.File and i.base_name.startswith(self._prefix) and i.base_name.endswith(_SUFFIX)
        ]
        return [name for _, name in sorted(found)]

    def _load(self, name: str) -> Segment | None:
        system, home = self._systems.locate(f"{self.home}/v1")
        with system.open_input_stream(f"{home}/{name}") as source:
            content = pa.py_buffer(source.read())
        if f"{self._prefix}{digest(content)}{_SUFFIX}" != name:
            self._set_aside(name, "its content does not match its name")
            return None
        try:
            return Segment(name, content)
        except Exception as error:
            self._set_aside(name, str(error))
            return None

    def _set_aside(self, name: str, reason: str) -> None:
        LOG.warning("statistics segment %s in %s is damaged (%s): set aside, not used", name, self.home, reason)
        system, home = self._systems.locate(self.home)
        try:
            system.create_dir(f"{home}/damaged", recursive=True)
            system.move(f"{home}/v1/{name}", f"{home}/damaged/{name}")
        except OSError as error:
            LOG.debug("could not move %s: %s", name, error)

    def _write(self, content: pa.Buffer) -> Segment:
        name = f"{self._prefix}{digest(content)}{_SUFFIX}"
        segment = Segment(name, content)
        try:
            system, home = self._systems.locate(f"{self.home}/v1")
            system.create_dir(home, recursive=True)
            _publish(system, f"{home}/.{uuid.uuid4().hex}", f"{home}/{name}", content)
            self._loaded[name] = segment
            self.writable, self.problem = True, ""
        except Exception as error:
            if self.writable:
                LOG.warning("statistics cannot be kept in %s: %s", self.home, error)
            self.writable, self.problem = False, f"{self.home} cannot be written: {error}"
            self._memory[name] = segment
        return segment


def stores_for(roots: Sequence[str], directory: str | None = None, *, folders: bool = False) -> tuple[Store, ...]:
    """The stores that keep the statistics of a table with these roots, of which ``folders`` says that none is a file.

    A root that is the only one and a directory has its own; a file, or one root of several, is kept with its parent.
    """
    bases = [root.rstrip("/") for root in roots]
    known = len(bases) == 1 and (folders or (bases[0], directory or None) in _OPEN)
    if not known and (len(bases) != 1 or _is_file(bases[0])):
        bases = [base.rsplit("/", 1)[0] for base in bases]
    return tuple(_open(base, directory or None) for base in dict.fromkeys(bases))


# One object for one place: what it has read and verified serves every listing of the table.
_OPEN: OrderedDict[tuple[str, str | None], Store] = OrderedDict()
_OPENING = threading.Lock()


def _open(base: str, directory: str | None) -> Store:
    with _OPENING:
        store = _OPEN.setdefault((base, directory), Store(base, directory))
        _OPEN.move_to_end((base, directory))
        while len(_OPEN) > 64:
            _OPEN.popitem(last=False)
        return store


def _is_file(root: str) -> bool:
    try:
        system, path = FileSystems().locate(root)
        return bool(system.get_file_info(path).type == pafs.FileType.File)
    except Exception:  # then its store cannot be read either, wherever it is
        return False


def _spellings(path: str) -> tuple[str, ...]:
    """The ways in which Hadoop writes one path."""
    scheme, _, local = split_path(path)
    return (f"file:{local}", f"file://{local}", local) if scheme == "file" else (path,)


def _names(segment: Segment) -> list[str]:
    cells = sorted(name for name in segment.columns if decode_key(name) is not None)
    return [*FIXED, *(name for name in OPTIONAL if name in segment.columns), *cells]


def _publish(system: pafs.FileSystem, temporary: str, final: str, content: pa.Buffer) -> None:
    """Makes a file appear under its name only once all of it is on disk."""
    if not isinstance(system, pafs.LocalFileSystem):
        with system.open_output_stream(temporary) as sink:
            sink.write(content)
        system.move(temporary, final)
        return
    try:
        with open(temporary, "xb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        os.replace(temporary, final)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    directory = os.open(os.path.dirname(final), os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
