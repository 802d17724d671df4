"""Fields of structs prune as columns do: on and off over files of Spark and of pyarrow, with schemas that differ."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.stats.collect import footers
from secateur.stats.store.segment import encode
from tests.fixtures import Same
from tests.fuzz.regressions import settings

SCHEMA = (
    "s struct<a: int, n: struct<x: string, d: date, z: decimal(9,2)>, l: array<int>, m: map<string, int>, `p.q`: int>, "
    "`s.b` int, x int"  # not `s.a`: Parquet's own filter takes the one for the other, and Spark loses rows
)


def rows(file: int) -> list[tuple[Any, ...]]:
    """Four rows; in file 3 every struct is NULL, in file 4 some are, in file 5 the inner ones are."""
    made: list[tuple[Any, ...]] = []
    for i in range(4):
        a = 10 * file + i
        inner: Any = (f"k{file}{i}", None, None) if file != 5 else None
        outer: Any = (a, inner, [0, 999], {"a": -999}, a + 1000)
        made.append((None if file == 3 or (file == 4 and i % 2) else outer, -a, i))
    return made


@pytest.fixture(scope="module", params=["spark", "pyarrow"])
def structs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    path = tmp_path_factory.mktemp("lake") / "structs"
    frames = [spark.createDataFrame(rows(file), SCHEMA).coalesce(1) for file in range(8)]
    for i, frame in enumerate(frames):
        if request.param == "spark":
            frame.write.mode("append").parquet(str(path))
        else:
            path.mkdir(exist_ok=True)
            pq.write_table(frame.toArrow(), path / f"{i}.parquet", row_group_size=2)
    secateur.collect(spark, str(path))
    spark.read.parquet(str(path)).createOrReplaceTempView("structs")
    return "structs"


LINES = {
    "s.a > 65": 1,
    "s.a = 43 OR s.a = 42": 1,
    "s.a IS NULL": 2,
    "s.a IS NOT NULL": 7,
    "s.A + 1 < 3": 1,
    "s.n.x = 'k21'": 1,
    "s.n.x LIKE 'k6%'": 1,
    "s.N.X IN ('k11', 'k70')": 2,
    "s.n.x IS NULL": 3,
    "reverse(s.n.x) = '12k'": 8 - 2,  # in no file constant: only NULLs are ruled out
    "s.`p.q` > 1065": 1,
    "`s.b` < -65": 1,
    "s.a > 65 AND s.n.x < 'k2'": 0,
    "s.a > x + 73": 0,
    "NOT (s.a > 5)": 1,
    "s.a <=> 21": 1,
    "coalesce(s.a, 1000) > 100": 2,
}


@pytest.mark.parametrize("pruning", ["true", "false"])
def test_fields_prune_as_columns_do(spark: SparkSession, same: Same, structs: str, pruning: str) -> None:
    with settings(spark, {"spark.sql.optimizer.nestedSchemaPruning.enabled": pruning}):
        for select in ("*", "x") if pruning == "true" else ("s.n.x",):
            for sql, files in LINES.items():
                done = same(partial(spark.sql, f"SELECT {select} FROM {structs} WHERE {sql}"))
                assert done.files == files, (select, sql)
                assert done.rows or not files, (select, sql)


def test_aliases_projections_and_joins(spark: SparkSession, same: Same, structs: str) -> None:
    for sql, files in {
        f"SELECT v FROM (SELECT s.a AS v FROM {structs}) WHERE v > 65": 1,
        f"SELECT t.n.x FROM (SELECT s AS t FROM {structs}) WHERE t.a > 65": 1,
        f"SELECT n.x FROM (SELECT s.n AS n FROM {structs}) WHERE n.x > 'k65'": 1,
        f"SELECT count(*) FROM {structs} a JOIN {structs} b ON a.s.a = b.s.a WHERE a.s.a > 65 AND b.s.a > 65": 2,
        f"SELECT u.b FROM (SELECT named_struct('b', s.a + 1) AS u FROM {structs}) WHERE u.b > 66": 1,
    }.items():
        done = same(partial(spark.sql, sql))
        assert done.files == files, sql
        assert done.rows, sql


def test_elements_of_arrays_and_maps_are_not_taken_for_fields(spark: SparkSession, same: Same, structs: str) -> None:
    for sql in ("s.l[1] > 500", "s.m['a'] < -500", "exists(s.l, e -> e > 500)"):
        done = same(partial(spark.sql, f"SELECT x FROM {structs} WHERE {sql}"))
        assert done.files == done.plain_files == 8, sql


def test_files_that_lack_the_struct_or_the_field(spark: SparkSession, same: Same, lake: Path) -> None:
    files: list[dict[str, Any]] = [
        {"s": [{"a": 1, "b": {"c": 1}}], "x": [1]},
        {"s": [{"a": 9, "b": {"c": 9}}], "x": [1]},
        {"s": [{"b": {"c": 5}}], "x": [1]},
        {"s": [{"a": 9}], "x": [1]},
        {"x": [1]},
        {"s": [{"A": 9, "b": {"C": 9}}], "x": [1]},
        {"s": [{"a": 9, "b": {"d": 9}}], "x": [1]},
        {"s": [{"z": 1}], "x": [1]},
    ]
    (lake / "evolved").mkdir()
    for i, file in enumerate(files):
        pq.write_table(pa.table(file), lake / "evolved" / f"{i}.parquet")
    secateur.collect(spark, str(lake / "evolved"))
    frame = spark.read.schema("s struct<a: bigint, b: struct<c: bigint>>, x bigint").parquet(str(lake / "evolved"))
    # with how many files are read: without regard to case, and with
    for sql, files_read in {
        "s.a > 5": (4, 3),
        "s.a < 5": (1, 1),
        "s.a IS NULL": (3, 4),
        "s.b.c > 5": (2, 1),
        "s.b.c IS NULL": (4, 5),
        "s.b.c IS NULL AND s.a > 5": (2, 2),
    }.items():
        for sensitive, expected in zip(("false", "true"), files_read, strict=True):
            with settings(spark, {"spark.sql.caseSensitive": sensitive}):
                evolved = spark.read.schema(frame.schema).parquet(str(lake / "evolved"))
                assert same(partial(evolved.where, sql)).files == expected, sql


def test_names_that_are_not_clear_are_kept(spark: SparkSession, same: Same, lake: Path) -> None:
    two = pa.struct([pa.field("a", pa.int64()), pa.field("A", pa.int64())])
    (lake / "twice").mkdir()
    pq.write_table(pa.table({"s": pa.array([{"a": 1, "A": 2}], two)}), lake / "twice" / "1.parquet")
    with settings(spark, {"spark.sql.caseSensitive": "true"}):
        secateur.collect(spark, str(lake / "twice"))
        twice = spark.read.parquet(str(lake / "twice"))
        for sql, files in {"s.a > 1": 0, "s.A > 1": 1}.items():
            assert same(partial(twice.where, sql)).files == files, sql


def test_segments_without_fields_say_nothing_of_them(
    spark: SparkSession, same: Same, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier version collected is read as before, and merged with what this one collects."""
    path = lake / "old"
    path.mkdir()
    for i in range(3):
        pq.write_table(pa.table({"s": [{"a": i}], "x": [i]}), path / f"{i}.parquet")

    def as_before(table: pa.Table) -> pa.Buffer:
        names = [name for name in table.column_names if name != "fields" and not name.startswith("n:")]
        return encode(table.select(names))

    monkeypatch.setattr("secateur.stats.store.store.encode", as_before)
    secateur.collect(spark, str(path))
    monkeypatch.undo()
    assert same(lambda: spark.read.parquet(str(path)).where("s.a > 1")).files == 3
    assert same(lambda: spark.read.parquet(str(path)).where("s.a > 1 AND x > 1")).files == 1
    pq.write_table(pa.table({"s": [{"a": 0}], "x": [0]}), path / "3.parquet")
    secateur.collect(spark, str(path))
    assert same(lambda: spark.read.parquet(str(path)).where("s.a > 1")).files == 3
    assert footers.OPTIONAL.keys() == {"fields"}


def test_functions_of_constant_fields(spark: SparkSession, same: Same, lake: Path) -> None:
    (lake / "constant").mkdir()
    for i, text in enumerate(["ab", "ba", None]):
        inner = [{"t": {"u": text, "i": i}}] * 2
        kind = pa.struct([("t", pa.struct([("u", pa.string()), ("i", pa.int64())]))])
        pq.write_table(pa.table({"s": pa.array(inner, kind)}), lake / "constant" / f"{i}.parquet")
    secateur.collect(spark, str(lake / "constant"))
    for sql, files in {
        "reverse(s.t.u) = 'ab'": 1,
        "concat_ws('-', s.t.u, s.t.i) = 'ab-0'": 1,
        "reverse(s.t.u) IS NULL": 1,
        "concat_ws('-', s.t.u, s.t.i) = '2'": 1,
    }.items():
        assert same(partial(spark.read.parquet(str(lake / "constant")).where, sql)).files == files, sql
