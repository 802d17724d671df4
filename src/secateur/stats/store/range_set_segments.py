"""The range-sets that the stores have of a listing's files, read when a column is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.stats.arrays import null_mask
from secateur.stats.collect.footers import Key, encode_key
from secateur.stats.collect.range_scan import CELLS, VALUES
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.listing import Listing
from secateur.stats.store.segment import Segment
from secateur.stats.store.store import Store

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class RangeSegments:
    """The range-sets in the stores, for the files of a listing; read when a column is asked for."""

    def __init__(self, listing: Listing, stores: Sequence[Store], *, at_hand: bool = False) -> None:
        self._listing = listing
        known = ((store, store.at_hand if at_hand else store.segments()) for store in stores)
        self._segments = [(store, segment) for store, segments in known for segment in segments]
        self._positions: dict[str, Ints] = {}

    def __bool__(self) -> bool:
        return bool(self._segments)

    def load(
        self,
        keys: Sequence[tuple[Key, str]],
        domain: pa.DataType,
        here: Sequence[Mask] | None = None,
        absent: Mask | None = None,
    ) -> FileRangeSets | None:
        """The ranges of a column, known by each key (where ``here`` says so); ``absent`` marks files that lack it."""
        everywhere = np.ones(self._listing.count, np.bool_)
        lists = pa.list_(domain)
        parts: list[list[pa.Array]] = [[pa.nulls(0, t)] for t in (lists, lists, pa.bool_(), pa.bool_(), lists)]
        row, count = np.full(self._listing.count, -1, np.int64), 0
        for store, segment in self._segments:
            for key, mask in zip(keys, here or [everywhere] * len(keys), strict=True):
                if key not in segment.families:
                    continue
                names = [encode_key(*key, cell) for cell in (*CELLS, VALUES)]
                table = segment.read([name for name in names if name in segment.columns])
                arrays = [column.combine_chunks() for column in table.columns]
                arrays += [pa.nulls(segment.count, lists)] * (len(parts) - len(arrays))
                at = self._at(store, segment)
                fit = (at >= 0) & mask[at] & ~null_mask(arrays[0])
                row[at[fit]] = count + np.flatnonzero(fit)  # of several for one file, the last wins
                for part, array in zip(parts, arrays, strict=True):
                    part.append(array.cast(part[0].type))
                count += segment.count
        if not count:
            return None
        # A file without the column reads as NULL: no values at all.
        unlisted: tuple[Any, ...] = ([], [], True, False, None)
        for part, value in zip(parts, unlisted, strict=True):
            part.append(pa.array([value], part[0].type))
        row = row if absent is None else np.where(absent, count, row)
        where = pa.array(row, mask=row < 0)
        lows, highs, null, nan, values = (pa.concat_arrays(part).take(where) for part in parts)
        return FileRangeSets.of_lists(lows, highs, null, nan, None if values.null_count == len(values) else values)

    def _at(self, store: Store, segment: Segment) -> Ints:
        if segment.name not in self._positions:
            self._positions[segment.name] = positions(self._listing, store, segment)
        return self._positions[segment.name]


def positions(listing: Listing, store: Store, segment: Segment) -> Ints:
    """Where the files of a segment of range-sets are in a listing, -1 = nowhere."""
    return found_at(listing, store, segment.read(["path", "length", "mtime"]))


def found_at(listing: Listing, store: Store, key: pa.Table) -> Ints:
    """Where a store's files are in a listing: the same path, length and modification time (rule S8); -1 = nowhere."""
    if not listing.count:
        return np.full(len(key), -1, np.int64)
    relative = store.relative(listing.paths)
    position = pc.fill_null(pc.index_in(key["path"], value_set=relative, skip_nulls=True), -1).to_numpy()
    same = (
        (position >= 0)
        & (listing.lengths[position] == key["length"].to_numpy())
        & (listing.mtimes[position] == key["mtime"].to_numpy())
    )
    return np.where(same, position, -1)
