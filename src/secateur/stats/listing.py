"""The files of a table as Spark lists them: which exact files a decision is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.errors import WireError
from secateur.plan.types import DataType, parse_type
from secateur.plan.values import decode_value

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Paths, lengths and modification times (ms since 1970) of files, with the values of their Hive partitions.

    ``fingerprint`` names this exact set of files. Partition values are in their type's domain, null = SQL NULL; a
    column whose type has no domain is left out.
    """

    fingerprint: str
    roots: tuple[str, ...]
    paths: pa.Array
    lengths: Ints
    mtimes: Ints
    partitions: Mapping[str, tuple[DataType, pa.Array]]

    @property
    def count(self) -> int:
        return len(self.paths)

    @staticmethod
    def from_wire(wire: dict[str, Any]) -> Listing:
        """The listing that the bridge sends: directories once, files by the number of their directory.

        >>> listing = Listing.from_wire({
        ...     "fp": "f", "roots": ["file:/t"], "dirs": ["file:/t/day=1"], "dir": [0, 0], "names": ["a", "b"],
        ...     "len": [10, 20], "mtime": [1, 2], "pcols": [["day", "int"]], "pvals": [[1]]})
        >>> listing.paths.to_pylist(), listing.partitions["day"][1].to_pylist()
        (['file:/t/day=1/a', 'file:/t/day=1/b'], [1, 1])
        """
        directory = pa.array(wire["dir"], pa.int32())
        directories = pa.array([d.rstrip("/") for d in wire["dirs"]], pa.string())
        names = pa.array(wire["names"], pa.string())
        partitions = {}
        for position, (name, catalog_type) in enumerate(wire["pcols"]):
            kind = parse_type(catalog_type)
            values = partition_values([row[position] for row in wire["pvals"]], kind)
            if values is not None:
                partitions[name] = (kind, values.take(directory))
        return Listing(
            wire["fp"],
            tuple(wire["roots"]),
            pc.binary_join_element_wise(directories.take(directory), names, "/"),
            np.asarray(wire["len"], dtype=np.int64),
            np.asarray(wire["mtime"], dtype=np.int64),
            partitions,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Files whose values can be read, and how a scan of them finds the columns that are asked for (None: all)."""

    listing: Listing
    columns: frozenset[str] | frozenset[int] | None = None
    """By their names in the files, in lower case, or by their ids there."""
    by_id: bool = False
    dated: bool = True
    """``mtimes`` are those of the files. If not, they are numbers that name the commit which added each file."""
    of_table: bool = False
    """The table's own metadata lists them, so they may lie anywhere: they are kept with the table all the same."""


def partition_values(values: Sequence[Any], kind: DataType) -> pa.Array | None:
    """Partition values of the wire in the type's domain; None if it has none, or if a value is not of the type."""
    if kind.domain is None:
        return None
    try:
        return pa.array([decode_value(v, kind) for v in values], type=kind.domain)
    except (WireError, ArithmeticError, ValueError, pa.ArrowException):  # unknown, hence kept (rule S1)
        return None
