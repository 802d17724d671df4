"""Columns as the JVM writes them into a temporary file, made from Arrow arrays."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

_NAMES = {
    pa.int64(): "int64",
    pa.int32(): "int32",
    pa.float64(): "double",
    pa.bool_(): "bool",
    pa.large_string(): "large_string",
    pa.large_binary(): "large_binary",
}
_numbers = itertools.count()


def as_sent(folder: Path, columns: Mapping[str, pa.Array]) -> dict[str, Any]:
    """The file of some columns, and what the request says of it: where each buffer begins and how long it is."""
    data = bytearray()
    described: list[list[Any]] = []
    for name, array in columns.items():
        buffers: list[list[int] | None] = []
        for buffer in array.buffers():
            buffers.append(None if buffer is None else [len(data), buffer.size])
            data += b"" if buffer is None else buffer.to_pybytes()
        described.append([name, _NAMES[array.type], len(array), *buffers])
    path = folder / f"columns-{next(_numbers)}"
    path.write_bytes(data)
    return {"file": str(path), "bytes": len(data), "columns": described}


def longs(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64())


def flags(*values: bool | None) -> pa.Array:
    return pa.array(values, pa.bool_())


def texts(*values: str | None) -> pa.Array:
    return pa.array(values, pa.large_string())
