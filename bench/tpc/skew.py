"""TPC-H with skew: foreign keys, dates and categories drawn by Zipf's law with exponent 2 instead of evenly.

Every key still has its partner, and the dates of an order keep their distances.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

EXPONENT = 2.0
CATEGORIES = {
    "part": ("p_brand", "p_type", "p_size", "p_container", "p_mfgr"),
    "customer": ("c_mktsegment", "c_nationkey"),
    "supplier": ("s_nationkey",),
    "orders": ("o_orderpriority", "o_clerk"),
    "lineitem": ("l_shipmode", "l_shipinstruct", "l_quantity", "l_discount"),
}
Ints = npt.NDArray[np.int64]


def write(source: Path, target: Path) -> None:
    """The tables of ``source``, one file each, with skew."""
    rng = np.random.default_rng(11)
    tables = {path.stem: plain(pq.read_table(path)) for path in source.glob("*.parquet")}
    orders, lineitem, partsupp = (tables[name] for name in ("orders", "lineitem", "partsupp"))
    orders = _replaced(orders, "o_custkey", tables["customer"]["c_custkey"], rng)
    days = _days(orders["o_orderdate"])
    shifted = np.sort(np.unique(days))[_zipf(len(np.unique(days)), len(days), rng)]
    tables["orders"] = _with(orders, "o_orderdate", pa.array(shifted, pa.int32()).cast(pa.date32()))
    moved = dict(zip(orders["o_orderkey"].to_numpy().tolist(), (shifted - days).tolist(), strict=True))
    by = np.array([moved[key] for key in lineitem["l_orderkey"].to_numpy().tolist()])
    for name in ("l_shipdate", "l_commitdate", "l_receiptdate"):
        lineitem = _with(lineitem, name, pa.array(_days(lineitem[name]) + by, pa.int32()).cast(pa.date32()))
    pairs = pa.array(_zipf(len(partsupp), len(lineitem), rng))
    for ours, theirs in (("l_partkey", "ps_partkey"), ("l_suppkey", "ps_suppkey")):
        lineitem = _with(lineitem, ours, partsupp[theirs].take(pairs))
    tables["lineitem"] = lineitem
    for table, columns in CATEGORIES.items():
        for column in columns:
            tables[table] = _replaced(tables[table], column, tables[table][column].unique(), rng)
    for name, made in tables.items():
        pq.write_table(made, target / f"{name}.parquet")


def plain(table: pa.Table) -> pa.Table:
    """The table with strings of the usual kind, which Arrow can sort."""
    kinds = (pa.string() if pa.types.is_string_view(field.type) else field.type for field in table.schema)
    fields = [pa.field(name, kind) for name, kind in zip(table.column_names, kinds, strict=True)]
    return table.cast(pa.schema(fields))


def _zipf(values: int, count: int, rng: np.random.Generator) -> Ints:
    """Positions below ``values``, the first of a random order by far the most frequent."""
    weights = np.arange(1, values + 1, dtype=np.float64) ** -EXPONENT
    drawn = np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(count))
    positions: Ints = rng.permutation(values)[np.minimum(drawn, values - 1)]
    return positions


def _replaced(table: pa.Table, name: str, values: pa.ChunkedArray | pa.Array, rng: np.random.Generator) -> pa.Table:
    return _with(table, name, values.take(pa.array(_zipf(len(values), len(table), rng))))


def _with(table: pa.Table, name: str, values: pa.ChunkedArray | pa.Array) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, table.field(name), values.cast(table.field(name).type))


def _days(column: pa.ChunkedArray) -> Ints:
    days: Ints = column.cast(pa.int32()).to_numpy().astype(np.int64)
    return days
