"""Generated tables in several layouts, as Parquet files: what the queries of ``bench.tpc`` run on.

    python -m bench.tpc.data --home /tmp/tpc --scale 0.1

TPC-H comes from ``tpchgen-cli``, TPC-DS from DuckDB with its extension; TPC-H with skew, and the schema with cyclic
joins, are made here. Every set is laid out in several ways, the facts in about ``--files`` files each:

=========  ===========================================================================================
layout     rows of a fact table are
=========  ===========================================================================================
tuned      hash-clustered by date, within a cluster sorted by key; dimensions are sorted by key
date       sorted by date; dimensions by key
key        sorted by key; dimensions too
column     sorted by a column chosen at random, dimensions too
shuffled   in no order; not among those that are made unless asked for
=========  ===========================================================================================
"""

from __future__ import annotations

import argparse
import importlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.tpc import cyclic, skew

Ints = npt.NDArray[np.int64]
LAYOUTS = ("tuned", "date", "key", "column")
HOME = Path(tempfile.gettempdir()) / "secateur-tpc"


@dataclass(frozen=True, slots=True)
class Fact:
    """A large table: the column that queries filter by, directly or through a dimension, and the columns of its key."""

    date: str
    key: str


FACTS = {
    "lineitem": Fact("l_shipdate", "l_orderkey"),
    "orders": Fact("o_orderdate", "o_orderkey"),
    "partsupp": Fact("ps_partkey", "ps_partkey"),
    "store_sales": Fact("ss_sold_date_sk", "ss_item_sk"),
    "store_returns": Fact("sr_returned_date_sk", "sr_item_sk"),
    "catalog_sales": Fact("cs_sold_date_sk", "cs_item_sk"),
    "catalog_returns": Fact("cr_returned_date_sk", "cr_item_sk"),
    "web_sales": Fact("ws_sold_date_sk", "ws_item_sk"),
    "web_returns": Fact("wr_returned_date_sk", "wr_item_sk"),
    "inventory": Fact("inv_date_sk", "inv_item_sk"),
    **{name: Fact(date, key) for name, (date, key) in cyclic.FACTS.items()},
}
SETS = ("tpch", "tpch_skewed", "tpcds", "cyclic")
DIMENSION_FILES, DIMENSION_ROWS = 200, 100
"""Dimensions have so many files, if each has so many rows: about a year of ``date_dim``."""


def connect(*extensions: str) -> Any:
    """DuckDB with extensions that come as Python packages: nothing is loaded from elsewhere."""
    import duckdb

    connection = duckdb.connect()
    for name in extensions:
        package = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
        (library,) = package.glob(f"extensions/*/{name}.duckdb_extension")
        connection.load_extension(str(library))
    return connection


def base(name: str, scale: float, home: Path) -> Path:
    """A folder with one file a table, made if it is not there."""
    folder = home / f"{name}-{scale:g}" / "base"
    if not folder.exists():
        unfinished = folder.with_name("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        match name:
            case "tpch":
                tool = Path(sys.executable).parent / "tpchgen-cli"
                command = [tool, "parquet", "-s", f"{scale:g}", "-o", unfinished, "-q", "-n", "2"]
                subprocess.run(list(map(str, command)), check=True)
            case "tpch_skewed":
                skew.write(base("tpch", scale, home), unfinished)
            case "tpcds":
                tables = connect("tpcds")
                tables.execute(f"CALL dsdgen(sf={scale})")
                for (table,) in tables.execute("SELECT table_name FROM duckdb_tables()").fetchall():
                    tables.execute(f"COPY {table} TO '{unfinished / table}.parquet' (FORMAT parquet)")
            case "cyclic":
                cyclic.write(scale, unfinished)
        unfinished.rename(folder)
    return folder


def laid_out(name: str, layout: str, scale: float, files: int, home: Path = HOME) -> Path:
    """A folder with a folder of files a table, made if it is not there."""
    folder = home / f"{name}-{scale:g}" / f"{layout}-{files}"
    if folder.exists():
        return folder
    unfinished = folder.with_name("unfinished-layout")
    shutil.rmtree(unfinished, ignore_errors=True)
    for path in sorted(base(name, scale, home).glob("*.parquet")):
        table = skew.plain(pq.read_table(path))
        target = unfinished / path.stem
        target.mkdir(parents=True)
        for number, part in enumerate(_parts(path.stem, table, layout, files)):
            pq.write_table(part, target / f"part-{number:05}.parquet", compression="zstd", write_page_index=False)
    unfinished.rename(folder)
    return folder


def _parts(name: str, table: pa.Table, layout: str, files: int) -> Iterator[pa.Table]:
    fact = FACTS.get(name)
    count = files if fact else min(files, DIMENSION_FILES, -(-len(table) // DIMENSION_ROWS))
    count = max(1, min(count, len(table) // 20))
    cuts = np.linspace(0, len(table), count + 1).astype(np.int64)
    rng = np.random.default_rng([5, *name.encode()])
    match layout:
        case "shuffled":
            order = rng.permutation(len(table))
        case "tuned" if fact and fact.date != fact.key:
            cluster = _hashed(table[fact.date], count)
            order = np.lexsort((_ranks(table[fact.key]), cluster))
            cuts = _within(np.bincount(cluster, minlength=count), len(table) / count)
        case _:
            first = str(rng.choice(table.column_names)) if layout == "column" else table.column_names[0]
            by = fact.date if fact and layout == "date" else fact.key if fact and layout != "column" else first
            order = np.argsort(_ranks(table[by]), kind="stable")
    table = table.take(pa.array(order))
    for start, stop in pairwise(cuts.tolist()):
        if stop > start:
            yield table.slice(start, stop - start)


def _within(sizes: Ints, most: float) -> Ints:
    """Where files begin, if each is to be of one cluster and the large clusters have several.

    >>> _within(np.array([10, 45, 20]), 20).tolist()
    [0, 10, 32, 55, 75]
    """
    files = np.maximum(np.rint(sizes / most), 1).astype(np.int64)
    place = np.arange(files.sum()) - np.repeat(np.cumsum(files) - files, files)
    begin = np.repeat(np.cumsum(sizes) - sizes, files) + place * np.repeat(sizes, files) // np.repeat(files, files)
    return np.append(begin, sizes.sum())


def _ranks(column: pa.ChunkedArray) -> Ints:
    """Numbers that sort as the values do, NULL at one end."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    if not pa.types.is_integer(column.type):
        column = pc.rank(column.combine_chunks(), tiebreaker="dense")
    ranks: Ints = pc.fill_null(column.cast(pa.int64()), -1).to_numpy().astype(np.int64)
    return ranks


def _hashed(column: pa.ChunkedArray, count: int) -> Ints:
    return (_ranks(column) * 2_654_435_761 % 2**32 % count).astype(np.int64)


def arguments(description: str, scale: float = 1.0, sets: str = ",".join(SETS)) -> argparse.ArgumentParser:
    """What every measurement over these tables can be told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--home", type=Path, default=HOME)
    parser.add_argument("--scale", type=float, default=scale)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--sets", default=sets)
    return parser


def main() -> None:
    parser = arguments("Makes the tables of the benchmark.")
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    wanted = parser.parse_args()
    for name in wanted.sets.split(","):
        for layout in wanted.layouts.split(","):
            folder = laid_out(name, layout, wanted.scale, wanted.files, wanted.home)
            counts = {each.name: len(list(each.glob("*.parquet"))) for each in sorted(folder.iterdir())}
            print(name, layout, json.dumps(counts), flush=True)


if __name__ == "__main__":
    main()
