"""A snapshot of an Iceberg table as the JVM sends it: its manifests, partition specs and the schema it is read by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.plan.types import DataType, parse_type
from secateur.stats.arrow_buffers import read_arrow_buffers

Columns = dict[str, pa.Array]

_SPARK = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "string": "string",
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


def spark_type(iceberg: str) -> DataType | None:
    """The Spark type that a type of Iceberg is read as; None if its values are not compared (those of UUIDs, say).

    >>> str(spark_type("decimal(9, 2)")), str(spark_type("timestamptz")), spark_type("uuid")
    ('decimal(9,2)', 'timestamp', None)
    """
    if decimal := _DECIMAL.fullmatch(iceberg):
        return DataType("decimal", int(decimal[1]), int(decimal[2]))
    return parse_type(_SPARK[iceberg]) if iceberg in _SPARK else None


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec."""

    source: int
    transform: str
    type: DataType | None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The manifests of one snapshot and the schema that it is read by."""

    fingerprint: str
    count: int
    has_deletes: bool
    fields: dict[tuple[str, ...], tuple[int, DataType | None]]
    """By name; fields of structs by the names on the way to them."""
    specs: dict[int, tuple[PartitionField, ...]]
    keys: tuple[str, ...]
    manifests: Columns
    roots: tuple[str, ...] = ()

    @staticmethod
    def from_wire(wire: dict[str, Any]) -> Snapshot:
        """The snapshot that the bridge sends."""
        specs = {
            int(id_): tuple(PartitionField(source, transform, spark_type(kind)) for source, transform, kind in fields)
            for id_, fields in wire["specs"].items()
        }
        fields = {tuple(path): (id_, spark_type(kind)) for path, id_, kind in wire["fields"]}
        keys, roots = tuple(wire["keys"]), tuple(wire["roots"])
        snapshot = Snapshot(wire["fp"], wire["count"], wire["deletes"], fields, specs, keys, {}, roots)
        snapshot.manifests.update(typed(read_arrow_buffers(wire["manifests"]), snapshot))
        return snapshot


def typed(columns: Columns, snapshot: Snapshot) -> Columns:
    """The columns of the wire in the domains of their types."""
    types = {str(id_): kind for id_, kind in snapshot.fields.values()}
    for id_, fields in snapshot.specs.items():
        types.update({f"{id_}.{position}": field.type for position, field in enumerate(fields)})
    out: Columns = {}
    for name, array in columns.items():
        what, _, which = name.partition(".")
        kind = types.get(which)
        if which.endswith(".high"):
            continue
        if what in ("low", "high", "part") and kind is not None and kind.domain is not None:
            if kind.name == "decimal":
                out[name] = _decimals(array, columns[f"{name}.high"], kind.domain)
            else:
                out[name] = array.cast(kind.domain)
        else:
            out[name] = array.cast(pa.int64()) if pa.types.is_int32(array.type) else array
    return out


def _decimals(low: pa.Array, high: pa.Array, domain: pa.DataType) -> pa.Array:
    """Two halves of 128 bits as decimals."""
    words = np.empty((len(low), 2), np.int64)
    words[:, 0] = pc.fill_null(low, 0).to_numpy(zero_copy_only=False)
    words[:, 1] = pc.fill_null(high, 0).to_numpy(zero_copy_only=False)
    return pa.Array.from_buffers(domain, len(low), [low.buffers()[0], pa.py_buffer(words.tobytes())])
