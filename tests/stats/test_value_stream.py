"""What Spark's tasks make of values: the same as what is made of the file, where secateur is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secateur.stats.collect.by_value import pack
from secateur.stats.collect.range_scan import Wanted, columns_of, read_ranges
from secateur.stats.collect.value_stream import Expected, gather
from tests.stats.lake import describe

WITHOUT_SECATEUR = """
import pickle, sys
sys.modules["secateur"] = None
with open(sys.argv[1], "rb") as source:
    work, files, wanted = pickle.load(source)
import pyarrow as pa
batches = pa.ipc.open_stream(sys.argv[2]).read_all().to_batches()
with open(sys.argv[3], "wb") as out:
    pickle.dump([part.column(0)[0].as_py() for part in work(iter(batches), files, wanted)], out)
"""

WANTED = Wanted(2, listed=True)


def expected(path: Path, rows: int | None = None) -> Expected:
    metadata = pq.read_metadata(path)
    keys = tuple((key, family) for key, _, family, _ in columns_of(metadata.schema, WANTED))
    return Expected(describe(path), metadata.num_rows if rows is None else rows, True, keys)


def batches(paths: list[Path], size: int) -> list[pa.RecordBatch]:
    """The rows of files as Spark sends them: the path in the first row of each, batches that know no files."""
    tables = []
    for path in paths:
        table = pq.ParquetFile(path).read()
        first = pa.array([f"file:{path}"] + [None] * (len(table) - 1), pa.string())
        tables.append(pa.table([first, *table.columns], ["path", *(f"c{i}" for i in range(table.num_columns))]))
    found: list[pa.RecordBatch] = pa.concat_tables(tables).combine_chunks().to_batches(max_chunksize=size)
    return found


def written(folder: Path) -> list[Path]:
    paths = []
    for i in range(3):
        data = {"n": [i, None, i + 50, 3], "t": ["a", f"b{i}", None, "z" * 99], "f": [0.5, float("nan"), i, None]}
        paths.append(folder / f"{i}.parquet")
        pq.write_table(pa.table(data), paths[-1])
    return paths


def comparable(table: pa.Table) -> dict[str, dict[str, str]]:
    return {row["path"]: {k: repr(v) for k, v in row.items() if k != "error"} for row in table.to_pylist()}


@pytest.mark.parametrize("size", [1, 3, 4, 100])
def test_range_sets_of_a_stream_are_those_of_the_files(tmp_path: Path, size: int) -> None:
    paths = written(tmp_path)
    known = {f"file:{path}": expected(path) for path in paths}
    parts = [part.column(0)[0].as_py() for part in gather(iter(batches(paths, size)), known, WANTED)]
    found = pa.concat_tables([pa.ipc.open_stream(part).read_all() for part in parts], promote_options="default")
    assert comparable(found) == comparable(read_ranges([describe(path) for path in paths], WANTED))


def test_executors_need_not_have_secateur(tmp_path: Path) -> None:
    paths = written(tmp_path)
    known = {f"file:{path}": expected(path) for path in paths}
    (tmp_path / "work").write_bytes(pack((gather, known, WANTED)))
    rows = batches(paths, 3)
    with pa.ipc.new_stream(str(tmp_path / "rows"), rows[0].schema) as out:
        for batch in rows:
            out.write_batch(batch)
    files = [str(tmp_path / name) for name in ("work", "rows", "parts")]
    done = subprocess.run([sys.executable, "-c", WITHOUT_SECATEUR, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "parts").stat().st_size > 1000


def test_a_file_of_which_rows_are_missing_is_unknown(tmp_path: Path) -> None:
    path = written(tmp_path)[0]
    (part,) = gather(iter(batches([path], 100)), {f"file:{path}": expected(path, rows=5)}, WANTED)
    table = pa.ipc.open_stream(part.column(0)[0].as_py()).read_all()
    assert table["error"].to_pylist() == ["5 rows by its footer, but 4 came"]
    assert not [name for name in table.column_names if name.startswith("c:")]


def test_rows_of_a_file_that_nobody_asked_for_are_passed_over(tmp_path: Path) -> None:
    paths = written(tmp_path)
    known = {f"file:{paths[1]}": expected(paths[1])}
    (part,) = gather(iter(batches(paths, 5)), known, WANTED)
    assert pa.ipc.open_stream(part.column(0)[0].as_py()).read_all()["path"].to_pylist() == [f"file:{paths[1]}"]
