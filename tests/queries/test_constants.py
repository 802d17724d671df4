"""Where columns are constant in a file, Spark itself evaluates any expression over them: on and off on real tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import secateur
from tests.fixtures import Same
from tests.fuzz.regressions import settings

CITIES = ["Berlin", "berlin", "Köln", "Ærø", None, "x-y-z", "2024-03-05", "17", "-0", " 8 ", "İstanbul", ""]


@pytest.fixture
def cities(spark: SparkSession, lake: Path) -> str:
    """A file per city, in which all is constant but x; two files more in which nothing is."""
    for i, city in enumerate([*CITIES, "mixed", "mixed too"]):
        mixed = i >= len(CITIES)
        when = dt.datetime(2024, 1 + i % 12, 5, i, 30, 0, 250_000)
        table = {
            "city": pa.array([city, f"{city}!" if mixed else city, city], pa.string()),
            "i": pa.array([i, i + mixed, i], pa.int32()),
            "d": pa.array([i / 4, i / 4, i / 4 + mixed], pa.float64()),
            "p": pa.array([Decimal(i) / 4, Decimal(i) / 4 + mixed, Decimal(i) / 4], pa.decimal128(9, 2)),
            "ts": pa.array([when, when + dt.timedelta(mixed), when], pa.timestamp("us", "UTC")),
            "b": pa.array([i % 2 == 0, not mixed and i % 2 == 0, i % 2 == 0], pa.bool_()),
            "x": pa.array([i, i + 10, i + 20], pa.int64()),
        }
        (lake / "cities").mkdir(exist_ok=True)
        pq.write_table(pa.table(table), lake / "cities" / f"{i:02}.parquet")
    secateur.collect(spark, str(lake / "cities"))
    spark.read.parquet(str(lake / "cities")).createOrReplaceTempView("cities")
    return "cities"


PREDICATES = [
    # the condition, and how many files are read: those that match, and the two that are mixed unless they cannot match
    ("reverse(city) = 'nilreB'", 3),
    ("md5(city) = md5('Köln')", 3),
    ("upper(city) = 'ÆRØ'", 3),
    ("lower(city) = 'berlin'", 4),
    ("initcap(city) = 'Berlin'", 4),
    ("regexp_extract(city, '^(.)-', 1) = 'x'", 3),
    ("get(split(city, '-'), 1) = 'y'", 3),
    ("size(split(city, '-')) = 3", 4),
    ("city RLIKE 'lin|ln'", 5),
    ("levenshtein(city, 'berlim') < 2", 3),
    ("get_json_object(concat('{\"a\": \"', city, '\"}'), '$.a') = '17'", 3),
    ("length(city) = 4 AND translate(city, 'K', 'c') = 'cöln'", 3),
    ("try_cast(city AS int) > 10", 3),
    ("try_cast(city AS int) IS NULL", 11),
    ("try_to_date(city, 'yyyy-MM-dd') >= '2024-01-01'", 3),
    ("concat_ws('-', city, i) = 'berlin-1'", 3),
    ("concat(city, '-', i, '-', p) = 'berlin-1-0.25'", 1),
    ("hash(city, i) = hash('berlin', 1)", 3),
    ("CAST(p AS string) = '1.50'", 3),
    ("CAST(p AS string) LIKE '%.75'", 5),
    ("date_format(ts, 'EEEE') = 'Friday'", 5),
    ("date_format(ts, 'MMM dd') = 'Feb 05'", 3),
    ("months_between(ts, timestamp'2024-02-05') = 0", 2),
    ("hex(CAST(city AS binary)) = '3137'", 3),
    ("CAST(city AS binary) = X'3137'", 3),
    ("unhex(city) IS NULL", 12),
    ("array_contains(array('Berlin', 'Köln'), city)", 4),
    ("coalesce(reverse(city), 'none') = 'none'", 3),
    ("reverse(city) IS NULL", 3),
    ("reverse(city) <=> NULL", 3),
    ("NOT (reverse(city) = 'nilreB')", 12),
    ("reverse(city) = 'nilreB' OR x > 30", 4),
    ("reverse(city) = 'nilreB' AND x > 30", 2),
    ("IF(b, reverse(city), city) = 'nilreb'", 1),
    ("CASE WHEN soundex(city) = 'B645' THEN x ELSE 0 END > 20", 3),
    ("isnan(try_cast(substring(city, 2, 1) AS double)) OR reverse(city) = '71'", 3),
    ("url_encode(city) = 'x-y-z'", 3),
    ("try_parse_url(concat('http://', city, '/a'), 'HOST') = 'x-y-z'", 3),
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_any_function_of_a_constant_prunes(spark: SparkSession, same: Same, cities: str, ansi: str) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        found = {sql: same(partial(spark.sql, f"SELECT * FROM {cities} WHERE {sql}")).files for sql, _ in PREDICATES}
    assert found == dict(PREDICATES)


def test_what_fails_on_a_constant_is_kept_and_the_error_stays(
    spark: SparkSession, same: Same, pruner: secateur.Pruner, cities: str
) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        frame = spark.sql("SELECT * FROM cities WHERE CAST(city AS int) = 17")
        with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
            frame.collect()
        assert pruner.last is not None
        # Those that can be cast, to something else, are gone; one that cannot is enough for the error.
        assert pruner.last.scans[0].files_kept == len(CITIES) + 2 - 3


def test_what_was_evaluated_once_is_not_asked_again(
    spark: SparkSession, pruner: secateur.Pruner, cities: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    from secateur.session.constant_folding import ConstantFolding

    real = ConstantFolding.ask

    def counted(self: ConstantFolding, call: int, questions: Any) -> Any:
        open_ = real(self, call, questions)
        asked.extend(len(q["rows"]) for q in open_)
        return open_

    monkeypatch.setattr(ConstantFolding, "ask", counted)
    query = "SELECT * FROM cities WHERE reverse(city) = 'nilreB'"
    assert len(spark.sql(query).collect()) == 3
    assert asked == [len(CITIES) - 1]
    assert len(spark.sql(query).collect()) == 3
    assert asked == [len(CITIES) - 1]
    spark.sql("SELECT * FROM cities WHERE reverse(city) = '71'").collect()
    assert asked == [len(CITIES) - 1]
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        spark.sql(query).collect()
    assert asked == [len(CITIES) - 1] * 2  # NULL is ruled out before


def test_functions_of_users_and_chance_are_not_evaluated(spark: SparkSession, same: Same, cities: str) -> None:
    spark.udf.register("reversed_by_python", udf(lambda s: s and s[::-1]))
    done = same(lambda: spark.sql("SELECT * FROM cities WHERE reversed_by_python(city) = 'nilreB'"))
    assert done.files == done.plain_files
    done = same(lambda: spark.sql("SELECT * FROM cities WHERE reverse(concat(city, round(rand() * 0))) = '0.071'"))
    assert done.files == done.plain_files
    done = same(lambda: spark.sql("SELECT * FROM cities WHERE exists(array(city), c -> reverse(c) = 'nilreB')"))
    assert done.files == done.plain_files


def test_partition_values_are_constants_null_among_them(spark: SparkSession, same: Same, lake: Path) -> None:
    rows = [(i, ["eu", "us", None][i % 3], 2023 + i % 2, i) for i in range(60)]
    frame = spark.createDataFrame(rows, "x int, region string, year int, y int")
    frame.write.partitionBy("region", "year").parquet(str(lake / "t"))
    secateur.collect(spark, str(lake / "t"))
    spark.read.parquet(str(lake / "t")).createOrReplaceTempView("t")
    total = same(lambda: spark.table("t").where("x >= 0")).files
    for sql in (
        "reverse(region) = 'ue' OR x < 0",
        "concat(year, '-', region) = '2024-us' OR x < 0",
        "reverse(region) IS NULL OR x < 0",
        "coalesce(reverse(region), 'none') = 'none' OR x < 0",
    ):
        done = same(partial(spark.table("t").where, sql))
        assert 0 < done.files < total, sql


def test_char_columns_are_compared_with_their_padding(spark: SparkSession, same: Same) -> None:
    spark.sql("DROP TABLE IF EXISTS padded")
    spark.sql("CREATE TABLE padded (c CHAR(5), v VARCHAR(5), x INT) USING parquet")
    try:
        for i, text in enumerate(["a", "ab", "b", "ü", None]):
            row = "NULL, NULL" if text is None else f"'{text}', '{text}'"
            spark.sql(f"INSERT INTO padded SELECT /*+ COALESCE(1) */ {row}, {i} FROM range(3)")
        secateur.collect(spark, "padded")
        for sql, files in (
            ("c = 'ab'", 1),
            ("c = 'ü'", 1),
            ("length(c) = 5 AND c > 'aa'", 3),
            ("reverse(c) = '   ba'", 1),
        ):
            done = same(partial(spark.sql, f"SELECT * FROM padded WHERE {sql}"))
            assert (done.files, done.plain_files) == (files, 5), sql
    finally:
        spark.sql("DROP TABLE padded")


def test_one_file_and_many_columns(spark: SparkSession, same: Same, lake: Path) -> None:
    columns = {f"c{i}": pa.array(["a", "a"]) for i in range(8)}
    pq.write_table(pa.table(columns), lake / "one.parquet")
    path = str(lake / "one.parquet")
    secateur.collect(spark, path)
    assert same(lambda: spark.read.parquet(path).where("reverse(c0) = 'b'")).files == 0
    five = " || ".join(f"c{i}" for i in range(5))
    assert same(lambda: spark.read.parquet(path).where(f"reverse({five}) = 'b'")).files == 0
    eight = " || ".join(f"c{i}" for i in range(8))
    assert same(lambda: spark.read.parquet(path).where(f"reverse({eight}) = 'b'")).files == 1


def test_a_regular_expression_that_takes_for_ever_does_not_hold_up_the_query(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    pq.write_table(pa.table({"s": ["a" * 26 + "!"] * 2, "x": [1, 2]}), lake / "one.parquet")
    path = str(lake / "one.parquet")
    secateur.collect(spark, path)
    spark.conf.set("spark.secateur.budget.ms", "4000")
    summary = pruner.explain(spark.read.parquet(path).where(r"s RLIKE '^(a+)+$'"))
    assert summary.scans[0].files_kept in (0, 1)  # none matches, if Java is fast enough to tell
    assert "timeout" not in {reason.code for reason in summary.reasons}
