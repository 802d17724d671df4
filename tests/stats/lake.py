"""A table of Parquet files on disk, as the statistics see it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from secateur.plan.columns import ScanColumn
from secateur.plan.types import parse_type
from secateur.stats.collect.collector import CollectReport, collect_listing
from secateur.stats.collect.footers import read_footers
from secateur.stats.file_stats import ColumnStats, FileStats
from secateur.stats.formats.parquet import ParquetTable
from secateur.stats.listing import Listing
from secateur.stats.store.store import Store

File = tuple[str, int, int]


def data(name: str, kind: str, where: OneOf["data", "partition", "hidden"] = "data", **options: Any) -> ScanColumn:
    return ScanColumn(1, name, parse_type(kind), where, **options)


def describe(path: Path) -> File:
    status = path.stat()
    return f"file:{path}", status.st_size, status.st_mtime_ns // 1_000_000


def list_files(root: Path, pcols: list[tuple[str, str]] | None = None, values: Any = None) -> Listing:
    """What the bridge would send of a directory; ``values`` are the partition values by directory name."""
    files = sorted(p for p in root.rglob("*.parquet") if "_secateur" not in p.parts)
    folders = sorted({p.parent for p in files})
    return Listing.from_wire(
        {
            "fp": "test",
            "roots": [f"file:{root}"],
            "dirs": [f"file:{folder}" for folder in folders],
            "dir": [folders.index(p.parent) for p in files],
            "names": [p.name for p in files],
            "len": [describe(p)[1] for p in files],
            "mtime": [describe(p)[2] for p in files],
            "pcols": pcols or [],
            "pvals": [(values or {}).get(folder.name, []) for folder in folders],
        }
    )


@dataclass
class Lake:
    """A directory of files; ``stats`` collects what is missing and loads what is known."""

    root: Path

    def write(self, name: str, table: pa.Table | dict[str, Any], **options: Any) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), path, **options)
        return path

    def listing(self, pcols: list[tuple[str, str]] | None = None, values: Any = None) -> Listing:
        return list_files(self.root, pcols, values)

    def collect(self, listing: Listing | None = None) -> CollectReport:
        return collect_listing(listing or self.listing(), [self.store()])

    def store(self) -> Store:
        """A store of its own each time, as another session would have."""
        return Store(f"file:{self.root}")

    def stats(self, listing: Listing | None = None) -> ParquetTable:
        listing = listing or self.listing()
        self.collect(listing)
        return ParquetTable.load(listing, [self.store()])


def cells(path: Path, column: str) -> dict[str, Any]:
    """The statistics of one column of one file, whatever its file type, with that type as ``family``."""
    row = read_footers([describe(path)]).slice(0, 1).to_pylist()[0]
    found = {k.split("|")[2]: v for k, v in row.items() if k.startswith(f"c:{column}|")}
    families = {k.split("|")[1] for k in row if k.startswith(f"c:{column}|")}
    return {"family": families.pop() if families else None, "error": row["error"], **found}


def column(stats: FileStats, scan: ScanColumn) -> ColumnStats:
    loaded = stats.column(scan)
    assert loaded is not None
    return loaded


def ordinals(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)
