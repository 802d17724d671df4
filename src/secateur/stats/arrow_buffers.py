"""Columns of many values from the JVM, through a temporary file: the other end of ``ArrowBuffers.java``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from secateur.errors import WireError

_TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
}


def read_arrow_buffers(wire: dict[str, Any]) -> dict[str, pa.Array]:
    """The columns by name; the file is read once and removed.

    A file that is not there or is shorter than it says is a :class:`WireError`, and the query runs unpruned.
    """
    path = Path(wire["file"])
    try:
        data = pa.py_buffer(path.read_bytes())
        path.unlink()
    except OSError as problem:
        raise WireError(f"the columns that the JVM wrote cannot be read: {problem}") from problem
    if data.size != wire["bytes"]:
        raise WireError(f"the columns that the JVM wrote are {data.size} bytes, not {wire['bytes']}")
    return {name: _array(data, type_, count, buffers) for name, type_, count, *buffers in wire["columns"]}


def _array(data: pa.Buffer, type_: str, count: int, buffers: list[list[int] | None]) -> pa.Array:
    slices = [None if b is None else data.slice(b[0], b[1]) for b in buffers]
    array = pa.Array.from_buffers(_TYPES[type_], count, slices)
    array.validate(full=True)  # strings that are not UTF-8, offsets that leave the buffer
    return array
