"""Delta tables: predicates on every type, and every table feature; the same rows, and the files that are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

import secateur
from secateur.session.runtime_answers import files_to_skip
from tests.fixtures import Same
from tests.formats.delta import FILES, Alone, append, create, out_of_reach, read, rows


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("delta") / "plain"
    append(rows(spark), path)
    return path


CASES = [
    ("id = 250", 1),
    ("i BETWEEN 150 AND 250", 2),
    ("d < 20", 1),
    ("f < 30", 1),
    ("m > 100", 1),
    ("s = concat('n000450', repeat('x', 40))", 1),
    ("s LIKE 'n0003%'", 1),
    ("day = DATE '2024-01-03'", 1),
    ("year(day) = 2026", 1),
    ("ts = timestamp_seconds(1704067200 + 399 * 3600) + INTERVAL '123456' MICROSECOND", 1),
    ("ntz >= TIMESTAMP_NTZ '2024-02-02 00:00:00'", 1),
    ("b", 8),
    ("n IS NULL AND id > 650", 2),
    ("n + 5 < 20", 1),
    ("st.x = 5", 1),
    ("id = 5 OR id = 405", 2),
    ("id > 10000", 0),
    ("id IS NULL", 0),
]


@pytest.mark.parametrize(("condition", "files"), CASES, ids=[c for c, _ in CASES])
def test_predicates(spark: SparkSession, alone: Alone, plain: Path, condition: str, files: int) -> None:
    found = alone(lambda: read(spark, plain, condition), plain)
    assert found.files == files
    scan = found.summary.scans[0]
    assert (scan.format, scan.files_total, scan.files_kept, scan.rows_total) == ("delta", FILES, files, 800)


def test_delta_does_not_plan_what_secateur_planned(spark: SparkSession, same: Same, plain: Path) -> None:
    assert same(lambda: read(spark, plain, "id = 250")).files == 1
    for condition, text in (("id = 250", "1 of 8 files"), ("true", "8 of 8 files")):
        plan = read(spark, plain, condition)._jdf.queryExecution().optimizedPlan()
        location = plan.collectLeaves().apply(0).relation().location()
        assert location.getClass().getSimpleName() == "DeltaIndex"
        assert text in location.toString()


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT count(*), min(id), max(i) FROM {t}", None),
        ("SELECT sum(id) FROM {t}", 8),
        ("SELECT count(*) FROM {t} WHERE id < 150", 2),
        ("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.i WHERE a.id < 50 AND b.id < 250", 4),
        ("SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {t} WHERE i < 120)", 8 + 2),
        ("SELECT id FROM {t} WHERE id < 5 UNION ALL SELECT count(*) FROM {t}", 1),
        ("SELECT id FROM {t} WHERE id IN (SELECT i FROM {t} WHERE d < 10)", 8 + 1),
    ],
)
def test_shapes_of_queries(spark: SparkSession, same: Same, plain: Path, query: str, files: int | None) -> None:
    table = f"delta.`{plain}`"
    found = same(lambda: spark.sql(query.format(t=table)))
    assert files is None or found.files <= files
    assert found.files <= found.plain_files


@pytest.mark.parametrize(
    "query", ["SELECT id, monotonically_increasing_id() FROM {}", "SELECT id FROM {} WHERE rand(7) < 0.1"]
)
def test_what_is_random_gets_the_files_in_the_order_of_delta(
    spark: SparkSession, same: Same, lake: Path, query: str
) -> None:
    append(spark.range(0, 800, 1, 1).toDF("id"), lake / "t")  # files of the same size: they are read as they are listed
    found = same(lambda: spark.sql(query.format(f"delta.`{lake / 't'}`")))
    assert found.files == FILES
    assert "non-deterministic" in [reason.code for reason in found.summary.scans[0].reasons]


@pytest.fixture(scope="module")
def partitioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven files, by a text with a NULL and one with odd letters, a date, and a timestamp."""
    path = tmp_path_factory.mktemp("delta") / "by"
    spark.sql(
        """SELECT * FROM VALUES
        (1, 'a', DATE '2024-01-01', TIMESTAMP '2024-01-01 00:30:00'), (2, 'a b/c=%:é', DATE '2024-01-02', NULL),
        (3, NULL, DATE '2024-01-03', TIMESTAMP '2024-01-03 12:00:00.123456'), (4, 'b', NULL, TIMESTAMP '1969-12-31'),
        (5, '', DATE '1500-01-01', NULL), (6, 'a', DATE '2024-01-01', TIMESTAMP '2024-06-01'),
        (7, '__HIVE_DEFAULT_PARTITION__', DATE '2024-01-01', NULL) AS t(id, p, pd, pt)"""
    ).coalesce(1).write.format("delta").partitionBy("p", "pd", "pt").save(str(path))
    return path


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("p = 'a'", 2),
        ("p = 'a b/c=%:é'", 1),
        ("p IS NULL", 3),
        ("p <=> NULL OR p = ''", 3),
        ("pd = DATE '2024-01-03'", 1),
        ("pd < DATE '1582-10-15'", 1),
        ("month(pd) = 1 AND pt > TIMESTAMP '2024-05-01'", 1),
        ("pt = TIMESTAMP '2024-01-03 12:00:00.123456'", 1),
        ("hour(pt) = 0", 3),
        ("id = 4 AND p > 'a'", 1),
        ("p = 'a' AND id = 6", 1),
        ("p = upper('A') OR id = 3", 1),
    ],
)
def test_partitions(spark: SparkSession, alone: Alone, partitioned: Path, condition: str, files: int) -> None:
    found = alone(lambda: read(spark, partitioned, condition), partitioned)
    assert found.files == files
    assert found.files <= found.plain_files


@pytest.mark.parametrize(
    ("condition", "count", "files"),
    [("true", 5, 5), ("p = 'a'", 1, 1), ("p = 'a'", 2, 2), ("p IS NULL OR p = 'b'", 9, 4), ("pd IS NULL", 1, 1)],
)
def test_limit(
    spark: SparkSession, pruner: secateur.Pruner, partitioned: Path, condition: str, count: int, files: int
) -> None:
    """Delta has a way of its own for these; it takes longer to plan."""
    frame = read(spark, partitioned, condition).limit(count)
    kept = {path.removeprefix("file:") for path in frame.inputFiles()}
    with out_of_reach(partitioned, kept):
        found = frame.collect()
    with pruner.paused():
        everything = read(spark, partitioned, condition).collect()
        assert len(found) == len(read(spark, partitioned, condition).limit(count).collect())
    assert {row.id for row in found} <= {row.id for row in everything}
    assert len(kept) == files
    location = frame._jdf.queryExecution().optimizedPlan().collectLeaves().apply(0).relation().location()
    assert location.getClass().getSimpleName() == "DeltaIndex"


def test_timestamp_partitions_go_by_the_zone_of_the_session(spark: SparkSession, same: Same, partitioned: Path) -> None:
    def query(zone: str) -> int:
        spark.conf.set("spark.sql.session.timeZone", zone)
        return same(lambda: read(spark, partitioned, "pt < TIMESTAMP '2024-01-01 00:00:00'")).files

    try:
        assert {query("UTC"), query("America/Los_Angeles"), query("UTC")} <= {1, 2}
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_dynamic_partition_pruning(spark: SparkSession, same: Same, lake: Path) -> None:
    append(rows(spark, files=4).selectExpr("id", "CAST(id DIV 100 AS INT) AS p").repartition("p"), lake / "t")
    spark.range(4).selectExpr("id AS k", "id * 10 AS w").write.format("delta").save(str(lake / "dim"))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW facts AS SELECT * FROM delta.`{lake / 't'}`")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW dim AS SELECT * FROM delta.`{lake / 'dim'}`")
    same(lambda: spark.sql("SELECT count(*) FROM facts JOIN dim ON p = k WHERE w = 20 AND facts.id > 50"))


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(spark: SparkSession, alone: Alone, lake: Path, mode: str) -> None:
    path = lake / mode
    create(spark, path, "id BIGINT, `a b` INT, c STRING, p INT", "PARTITIONED BY (p)", **{"columnMapping.mode": mode})
    for p in range(3):
        append(
            spark.range(p * 100, p * 100 + 100, 1, 1).selectExpr(
                "id", "CAST(id AS INT) AS `a b`", "lpad(id, 5, '0') AS c", f"{p} AS p"
            ),
            path,
        )
    assert alone(lambda: read(spark, path, "`a b` = 150"), path).files == 1
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN `a b` TO z").collect()
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN p TO q").collect()
    assert alone(lambda: read(spark, path, "z = 150"), path).files == 1
    assert alone(lambda: read(spark, path, "q = 2 AND z > 250"), path).files == 1
    # A new column under an old name has none of the old one's values.
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN z").collect()
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN z INT").collect()
    spark.sql(f"INSERT INTO delta.`{path}` (id, c, q, z) VALUES (500, 'x', 5, 150)").collect()
    found = alone(lambda: read(spark, path, "z = 150"), path)
    assert len(found.rows) == 1
    assert len(alone(lambda: read(spark, path, "z IS NULL"), path).rows) == 300


def test_deletion_vectors(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "dv"
    create(spark, path, "id BIGINT, n BIGINT, w DECIMAL(38, 10)", "", enableDeletionVectors="true")
    append(
        rows(spark, files=4).selectExpr(
            "id", "n", "CAST(id + 12345678901234567890.0123456789 AS DECIMAL(38, 10)) AS w"
        ),
        path,
    )
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (150, 199) OR (id < 100 AND n IS NOT NULL)").collect()
    found = alone(lambda: read(spark, path, "id BETWEEN 140 AND 160"), path)
    assert (len(found.rows), found.files) == (20, 1)
    assert found.summary.scans[0].rows_total == 400 - 92
    assert len(alone(lambda: read(spark, path, "n IS NULL"), path).rows) == 39
    assert len(alone(lambda: read(spark, path, "n IS NOT NULL AND id < 100"), path).rows) == 0
    assert len(alone(lambda: read(spark, path, "w >= 12345678901234568088.0123456789"), path).rows) == 201
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 151").collect()
    assert len(alone(lambda: read(spark, path, "id BETWEEN 140 AND 160"), path).rows) == 19
    spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)").collect()
    assert len(alone(lambda: read(spark, path, "id BETWEEN 140 AND 160"), path).rows) == 19


def test_row_tracking(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "tracked"
    create(spark, path, "id BIGINT, i INT", "", enableRowTracking="true")
    append(rows(spark, files=3).select("id", "i"), path)
    spark.sql(f"UPDATE delta.`{path}` SET i = -1 WHERE id = 150").collect()
    query = "id, i, _metadata.row_id, _metadata.row_commit_version, _metadata.file_name"
    found = alone(lambda: read(spark, path, "id BETWEEN 140 AND 160").selectExpr(*query.split(", ")), path)
    assert (len(found.rows), found.files <= 2) == (21, True)


def test_liquid_clustering(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "clustered"
    create(spark, path, "id BIGINT, s STRING", "CLUSTER BY (id)")
    append(rows(spark, files=4).select("id", "s"), path)
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1
    spark.sql(f"OPTIMIZE delta.`{path}`").collect()
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1


def test_generated_columns(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "generated"
    create(
        spark,
        path,
        "id BIGINT, ts TIMESTAMP, twice BIGINT GENERATED ALWAYS AS (id * 2), "
        "day DATE GENERATED ALWAYS AS (CAST(ts AS DATE))",
        "PARTITIONED BY (day)",
    )
    append(rows(spark, files=1).select("id", "ts"), path)
    found = alone(lambda: read(spark, path, "ts = timestamp_seconds(1704067200 + 360000) OR id = 30"), path)
    assert found.files <= found.plain_files
    assert alone(lambda: read(spark, path, "ts < TIMESTAMP '2024-01-02 00:00:00'"), path).files == 1
    assert alone(lambda: read(spark, path, "twice = 60"), path).files == 1


def test_type_widening(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "widened"
    create(
        spark,
        path,
        "id INT, f FLOAT, day DATE",
        "",
        **{"enableTypeWidening": "true", "feature.timestampNtz": "supported"},
    )
    append(rows(spark, files=2).selectExpr("i AS id", "CAST(id / 10 + 0.2 AS FLOAT) AS f", "day"), path)
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1
    for column, kind in (("id", "BIGINT"), ("f", "DOUBLE"), ("day", "TIMESTAMP_NTZ")):
        spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} TYPE {kind}").collect()
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (5000000000, 0.1D, TIMESTAMP_NTZ '2024-01-01 10:00:00')").collect()
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1
    assert alone(lambda: read(spark, path, "id > 4000000000"), path).files == 1
    # The file has the float nearest 10.1, which is greater than the double; its statistics say 10.1: Delta loses it.
    assert len(read(spark, path, "f > 10.1D AND id < 100").collect()) == 1
    assert len(alone(lambda: read(spark, path, "day < TIMESTAMP_NTZ '2024-01-01 12:00:00'"), path).rows) == 2


@pytest.mark.long
def test_checkpoints(spark: SparkSession, alone: Alone, lake: Path) -> None:
    for policy in ("v2", "classic"):
        path = lake / policy
        create(spark, path, "id BIGINT, i INT", "", checkpointPolicy=policy, checkpointInterval="2")
        for first in range(5):
            append(rows(spark, first, 1).select("id", "i"), path)
        assert list((path / "_delta_log").glob("*checkpoint*"))
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 400").collect()
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
        found = alone(lambda: read(spark, path, "id = 150"), path)  # noqa: B023
        assert (found.files, found.summary.scans[0].files_total) == (1, 4)


def test_names_paths_and_shallow_clones(spark: SparkSession, alone: Alone, plain: Path, lake: Path) -> None:
    spark.sql(f"CREATE TABLE delta_named USING delta LOCATION '{plain}'").collect()
    spark.sql(f"CREATE TABLE delta.`{lake / 'clone'}` SHALLOW CLONE delta.`{plain}`").collect()
    try:
        assert alone(lambda: spark.sql("SELECT * FROM delta_named WHERE id = 150"), plain).files == 1
        assert alone(lambda: spark.sql(f"SELECT * FROM delta.`{plain}` WHERE id = 150"), plain).files == 1
        append(rows(spark, 8, 1), lake / "clone")
        assert alone(lambda: read(spark, lake / "clone", "id = 150"), plain).files == 1
        assert alone(lambda: read(spark, lake / "clone", "id > 790"), plain).files == 2
    finally:
        spark.sql("DROP TABLE delta_named")


def test_columns_without_statistics(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "some"
    create(spark, path, "id BIGINT, i INT", "", dataSkippingNumIndexedCols="1")
    append(rows(spark, files=2).select("id", "i"), path)
    append(rows(spark, 2, 1).select("id", "i", "n"), path, mergeSchema="true")
    assert alone(lambda: read(spark, path, "id = 150"), path).files == 1
    assert alone(lambda: read(spark, path, "i = 150"), path).files == 3
    assert len(alone(lambda: read(spark, path, "n IS NULL"), path).rows) == 210
    spark.conf.set("spark.databricks.delta.stats.collect", "false")
    try:
        append(rows(spark, 3, 1).select("id", "i", "n"), path)
    finally:
        spark.conf.unset("spark.databricks.delta.stats.collect")
    found = alone(lambda: read(spark, path, "id = 150"), path)
    assert found.files == 2
    assert [r.code for r in found.summary.scans[0].reasons] == ["no-statistics"]


def test_only_the_first_32_columns_have_statistics(spark: SparkSession, alone: Alone, lake: Path) -> None:
    columns = [f"CAST(id + {i} AS INT) AS c{i}" for i in range(35)]
    append(spark.range(0, 200, 1, 1).selectExpr(*columns), lake / "wide")
    assert alone(lambda: read(spark, lake / "wide", "c31 = 181"), lake / "wide").files == 1
    assert alone(lambda: read(spark, lake / "wide", "c32 = 182"), lake / "wide").files == 2


def test_columns_that_have_counts_of_nulls_only(spark: SparkSession, alone: Alone, lake: Path) -> None:
    path = lake / "counts"
    made = {"b": "id % 2 = 0", "x": "CAST(CAST(id AS STRING) AS BINARY)", "a": "array(id)", "m": "map('k', id)"}
    for first in range(3):
        columns = [f"IF({first} = 1, NULL, {e}) AS {name}" for name, e in made.items()]
        append(spark.range(first * 10, first * 10 + 10, 1, 1).selectExpr("id", *columns), path)
    for condition, count, files in (
        ("b IS NOT NULL", 20, 2),
        ("b IS NULL", 10, 1),
        ("b", 10, 2),
        ("x IS NOT NULL", 20, 3),  # binary values are not looked at: Delta itself reads two files
        ("x IS NULL", 10, 3),
        ("x > CAST('25' AS BINARY)", 11, 3),
        ("a IS NULL", 10, 3),
        ("a[0] = 5", 1, 3),
        ("m IS NOT NULL", 20, 3),
        ("m['k'] = 25", 1, 3),
    ):
        found = alone(lambda c=condition: read(spark, path, c), path)  # type: ignore[misc]
        assert (len(found.rows), found.files) == (count, files), condition


def test_values_that_become_known_at_run_time(
    spark: SparkSession, pruner: secateur.Pruner, same: Same, plain: Path, partitioned: Path
) -> None:
    """Which files can hold one of some values: the question that a join asks when it runs."""
    same(lambda: read(spark, plain, "id = 250"))
    same(lambda: read(spark, partitioned, "id = 4"))
    tables = {e.source.roots[0].rsplit("/", 1)[-1]: e.table for e in pruner._registry._entries.values()}
    known, parts = tables["plain"], tables["by"]
    assert known is not None
    assert parts is not None

    def kept(name: str, type_: str, values: list[object]) -> list[int]:
        found: list[int] = np.flatnonzero(~files_to_skip(known.files, [[name, type_, values]])).tolist()
        return found

    assert len(kept("id", "bigint", [5, 250, 10_000])) == 2
    assert len(kept("s", "string", ["n000450" + "x" * 40])) == 1
    assert len(kept("i", "int", [None, 799])) == 1
    assert len(kept("b", "boolean", [True])) == 8
    assert np.count_nonzero(files_to_skip(parts.files, [["p", "string", ["a"]], ["id", "int", [6]]])) == 6
