"""The readers, one per table format: what the JVM says of a scan's files, made into statistics.

Adding a format is a module with a :class:`Source` and a :class:`Table`, an entry in :data:`READERS`, and on the JVM's
side the three classes that ``Format.java`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from secateur.errors import WireError
from secateur.plan.columns import Mask
from secateur.stats.file_stats import FileStats
from secateur.stats.formats.delta import DeltaSource, DeltaTable
from secateur.stats.formats.iceberg import IcebergTable
from secateur.stats.formats.iceberg_snapshot import Snapshot
from secateur.stats.formats.parquet import ParquetTable
from secateur.stats.listing import Listing, Values
from secateur.stats.store.store import Store

Ints = npt.NDArray[np.int64]


class Source(Protocol):
    """An exact set of files (rule S8): a listing of plain files, a version of a Delta table, an Iceberg snapshot."""

    @property
    def fingerprint(self) -> str:
        """Names this exact set."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Where the table lives, and with it the store of what was collected."""

    @property
    def count(self) -> int:
        """How many files."""


class Table(Protocol):
    """What is known of the files of a source, an entry per file in the source's order."""

    @property
    def files(self) -> FileStats:
        """The statistics of the files."""

    @property
    def missing(self) -> Mask:
        """The files of which nothing is known, and which a collection could help."""

    @property
    def uncollected(self) -> Listing | None:
        """The files whose footers a collection would read if the stores do not have them, None if none."""

    @property
    def partial(self) -> PartialTable | None:
        """Itself, if some of it may have to be asked for."""

    def values(self, columns: Collection[str] | None) -> Values | None:
        """The files whose values a collection of range-sets would read, None if they are not known here."""

    def row_groups(self, indices: Ints) -> tuple[FileStats, Ints]:
        """The statistics of the row groups of some files, and the ordinal of each one's file."""


@runtime_checkable
class PartialTable(Table, Protocol):
    """A table that is loaded in parts, as queries ask for them: of some groups of its files, or of some properties."""

    def lacks(self, names: Collection[str]) -> bool:
        """Whether something of these columns is not there, of whichever files."""

    def wanted(self, opened: Mask, names: Collection[str], *, filtered: bool) -> dict[str, Any] | None:
        """What the JVM has to send before the files of these groups can be judged by these columns, None if nothing."""

    def extend(self, wire: dict[str, Any]) -> None:
        """Takes in what the JVM sent for :meth:`wanted`."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How one format is read: the wire into a source, and a source with its stores into a table."""

    decode: Callable[[dict[str, Any]], Source]
    load: Callable[[Any, Sequence[Store]], Table]
    extend: Callable[[dict[str, Any], Any], Source] | None = None
    """For a wire that says what changed since another source."""
    lists_files: bool = False
    """The table's own metadata lists its files, which may lie anywhere; its root is a folder."""


READERS: dict[str, Reader] = {
    "files": Reader(Listing.from_wire, ParquetTable.load),
    "delta": Reader(DeltaSource.from_wire, DeltaTable.load, DeltaSource.from_wire, lists_files=True),
    "iceberg": Reader(Snapshot.from_wire, IcebergTable.load, lists_files=True),
}
"""By the ``kind`` that a file set has on the wire."""


def decode_source(
    wire: dict[str, Any], known: Callable[[str], Source | None] = lambda _: None
) -> tuple[Source, Reader]:
    """The source that the bridge sends, with the reader that knows it; ``known`` finds the one that it builds on."""
    reader = READERS.get(wire.get("kind", "files"))
    if reader is None:
        raise WireError(f"a table is of kind {wire['kind']!r}, which is none of {', '.join(READERS)}")
    if not wire.get("base") or reader.extend is None:
        return reader.decode(wire), reader
    base = known(wire["base"])
    if base is None:
        raise WireError(f"what changed since {wire['base']} is of no use without it")
    return reader.extend(wire, base), reader
