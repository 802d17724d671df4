"""What Iceberg's statistics do not say: each pitfall with the rows that a wrong reading of them would lose."""

from __future__ import annotations

from typing import Any

import pytest

from secateur.bridge.jvm import JvmBridge
from tests.formats.conftest import Ice, IceTables


def test_strings_are_cut_to_sixteen_characters(ice: Ice) -> None:
    """The upper bound is raised after the cut, or missing where it cannot be raised."""
    name = ice.table("s string")
    long, high = "x" * 20, "\U0010ffff" * 20
    ice.insert(name, f"SELECT '{long}' AS s", f"SELECT '{high}' AS s", "SELECT 'short' AS s", "SELECT 'é' AS s")
    for value, files in ((long, 1), (high, 1), ("short", 1), ("x" * 16, 1), ("y", 0), ("é", 1)):
        assert ice.same(f"SELECT * FROM {name} WHERE s = '{value}'", name).files == files, value
    assert ice.same(f"SELECT * FROM {name} WHERE s > '{long[:19]}'", name).files == 3
    assert ice.same(f"SELECT * FROM {name} WHERE s >= '{high}'", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE length(s) = 20", name).files >= 2


def test_floats(ice: Ice) -> None:
    """NaN is in no bound, and -0.0 equals 0.0; where Iceberg loses such rows itself, the answer stays its own."""
    name = ice.table("id bigint, d double, f float")
    ice.insert(
        name,
        "SELECT 1L AS id, 1.0D AS d, 1.0F AS f UNION ALL SELECT 2L, double('NaN'), float('NaN')",
        "SELECT 3L AS id, -0.0D AS d, -0.0F AS f",
        "SELECT 4L AS id, 9.0D AS d, 9.0F AS f",
        "SELECT 5L AS id, double('NaN') AS d, float('NaN') AS f",
    )
    for column in "df":
        for condition in ("> 5", "= 0.0", "< 0.5", "= double('NaN')", "IS NULL"):
            ice.same(f"SELECT * FROM {name} WHERE {column} {condition}", name)
    # Through an expression Iceberg cannot get in between: NaN is above 5, and 0.0 is found.
    assert [r.id for r in ice.same(f"SELECT id FROM {name} WHERE d + 1 > 9 ORDER BY id", name).rows] == [2, 4, 5]
    assert [r.id for r in ice.same(f"SELECT id FROM {name} WHERE d * 1 = 0.0", name).rows] == [3]
    # The first file has 1.0, below 9, and NaN, above 5: alone neither rules it out, but what both imply does.
    assert ice.same(f"SELECT id FROM {name} WHERE d + 1 < 9 AND d + 1 > 5", name).files <= 2
    # What is implied is pushed into Iceberg, and must not make it lose a zero.
    assert [
        r.id for r in ice.same(f"SELECT id FROM {name} WHERE d * 1 >= 0.0 AND d * 1 < 9 ORDER BY id", name).rows
    ] == [1, 3]


@pytest.mark.parametrize("condition", ["d > 5", "d = 0.0", "d <= -0.0", "d >= double('NaN')"])
def test_a_limit_does_not_rest_on_rows_that_iceberg_loses(ice: Ice, condition: str) -> None:
    name = ice.table("d double")
    ice.insert(
        name,
        "SELECT double('NaN') AS d",
        "SELECT -0.0D AS d FROM range(3)",
        "SELECT 0.0D AS d FROM range(3)",
        "SELECT explode(array(9.0D, double('NaN'))) AS d",
    )
    for limit in (1, 2, 6):
        query = f"SELECT count(*) FROM (SELECT d FROM {name} WHERE {condition} LIMIT {limit})"
        with ice.pruner.paused():
            expected = ice.sql(query).collect()
        assert ice.sql(query).collect() == expected, limit


def test_columns_without_metrics(ice: Ice) -> None:
    name = ice.table(
        "a bigint, b bigint, c bigint",
        write__metadata__metrics__column__a="none",
        write__metadata__metrics__column__b="counts",
    )
    ice.insert(name, "SELECT 1L AS a, 1L AS b, 1L AS c", "SELECT 2L AS a, cast(NULL AS bigint) AS b, 2L AS c")
    assert ice.same(f"SELECT * FROM {name} WHERE a = 1", name).files == 2
    assert ice.same(f"SELECT * FROM {name} WHERE b = 7", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE b IS NULL", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE c = 1", name).files == 1


def test_only_the_first_hundred_columns_have_metrics(ice: Ice) -> None:
    columns = [f"c{i}" for i in range(105)]
    name = ice.table(", ".join(f"{c} int" for c in columns))
    ice.insert(name, *["SELECT " + ", ".join(f"{v} AS {c}" for c in columns) for v in (1, 2)])
    assert ice.same(f"SELECT c99 FROM {name} WHERE c99 = 1", name).files == 1
    assert ice.same(f"SELECT c104 FROM {name} WHERE c104 = 1", name).files == 2


def test_uuids_are_left_to_iceberg(ice: Ice) -> None:
    name = ice.table("id bigint")
    types = ice.spark._jvm.org.apache.iceberg.types.Types  # type: ignore[union-attr]
    ice.java(name).updateSchema().addColumn("u", types.UUIDType.get()).commit()
    ice.sql(f"REFRESH TABLE {name}")
    low, high = "00000000-0000-0000-0000-000000000001", "ffffffff-0000-0000-0000-000000000001"
    ice.insert(name, f"SELECT 1L AS id, '{low}' AS u", f"SELECT 2L AS id, '{high}' AS u")
    for condition in (f"u = '{high}'", f"u > '{low}'", f"u < '{high}'", f"concat(u, '') = '{low}'"):
        ice.same(f"SELECT * FROM {name} WHERE {condition}", name)


@pytest.mark.parametrize(("version", "mode"), [(2, "merge-on-read"), (3, "merge-on-read"), (2, "copy-on-write")])
def test_deletes(ice: Ice, version: int, mode: str) -> None:
    """Position deletes, deletion vectors: bounds stay, counts go."""
    name = ice.table("id bigint, v bigint", format_version=version, write__delete__mode=mode)
    ice.insert(
        name, *[f"SELECT id, if(id = {i * 10}, NULL, id) AS v FROM range({i * 10}, {i * 10 + 10})" for i in range(3)]
    )
    ice.sql(f"DELETE FROM {name} WHERE id IN (10, 11, 29)")
    for condition, files in (("id = 11", 1), ("id = 15", 1), ("id = 29", 1), ("v IS NULL", None), ("id < 5", 1)):
        compared = ice.same(f"SELECT * FROM {name} WHERE {condition}", name)
        assert compared.files <= (3 if files is None else files), condition
    (scan,) = ice.same(f"SELECT * FROM {name} WHERE id BETWEEN 12 AND 22", name).summary.scans
    # A deletion vector counts its rows; a file of positions may name a row twice.
    known = {(2, "merge-on-read"): None, (3, "merge-on-read"): 17, (2, "copy-on-write"): 17}[version, mode]
    assert scan.rows_kept == known


def test_equality_deletes(ice: Ice) -> None:
    """Written through the Java API, as Flink does."""
    name = ice.table("id int, v string", format_version=2)
    ice.insert(
        name, *[f"SELECT int(id) AS id, concat('v', id) AS v FROM range({i * 10}, {i * 10 + 10})" for i in range(3)]
    )
    write_equality_delete(ice, name, [5, 15])
    for condition, files in (("id = 15", 1), ("id = 5 OR id = 25", 2), ("id = 7", 1)):
        compared = ice.same(f"SELECT * FROM {name} WHERE {condition}", name)
        assert compared.files == files
        assert compared.summary.scans[0].rows_kept is None
    assert len(ice.same(f"SELECT * FROM {name}", name).rows) == 28


def write_equality_delete(ice: IceTables, name: str, ids: list[int]) -> None:
    jvm = ice.spark._jvm
    assert jvm is not None
    iceberg, gateway = jvm.org.apache.iceberg, ice.spark.sparkContext._gateway
    table = ice.java(name)
    names = jvm.java.util.ArrayList()
    names.add("id")
    schema = table.schema().select(names)
    ints = gateway.new_array(gateway.jvm.int, 1)  # type: ignore[union-attr]
    ints[0] = schema.findField("id").fieldId()
    builder = getattr(iceberg.data, "GenericFileWriterFactory$Builder")(table)
    factory = builder.equalityFieldIds(ints).equalityDeleteRowSchema(schema).build()
    output = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).format(iceberg.FileFormat.PARQUET).build()
    writer = factory.newEqualityDeleteWriter(output.newOutputFile(), table.spec(), None)
    for id_ in ids:
        record = iceberg.data.GenericRecord.create(schema)
        record.setField("id", id_)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
    ice.sql(f"REFRESH TABLE {name}")


def test_a_deleted_entry_leaves_nothing_behind(ice: Ice) -> None:
    """Statistics are read before it is known whether the entry is live: those of a deleted one must not stay."""
    name = ice.table("id bigint, x bigint", commit__manifest__min_count_to_merge=2)
    ice.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.metadata.metrics.column.x'='none')")
    ice.insert(name, *[f"SELECT {i}L AS id, 7L AS x" for i in range(2)])
    ice.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('write.metadata.metrics.column.x')")
    ice.insert(name, "SELECT 2L AS id, 5L AS x")
    ice.sql(f"DELETE FROM {name} WHERE id = 2")
    entries = ice.sql(f"SELECT status FROM {name}.entries").collect()
    assert sorted(row[0] for row in entries) == [0, 0, 2]  # two that exist beside the deleted one, in one manifest
    compared = ice.same(f"SELECT * FROM {name} WHERE x + 0 = 7", name)
    assert len(compared.rows) == 2
    assert ice.same(f"SELECT * FROM {name} WHERE id + 0 = 1", name).files == 1


def test_statistics_are_read_without_maps(ice: Ice) -> None:
    """Manifests of this version of Iceberg take the short way; those of others are read by Iceberg's own reader."""
    name = ice.table("id bigint, s struct<x: double>, l array<int>")
    ice.insert(name, "SELECT 1L AS id, named_struct('x', 1.5D) AS s, array(1) AS l")
    ice.same(f"SELECT * FROM {name} WHERE id + 0 = 1 AND s.x < 2", name)
    loader: Any = JvmBridge.of(ice.spark).loaders["iceberg"]
    field = loader.loadClass("secateur.iceberg.IcebergFiles").getDeclaredField("MANIFESTS")
    field.setAccessible(True)
    for entry in field.get(None).asMap().values():
        direct = entry.getClass().getDeclaredField("direct")
        direct.setAccessible(True)
        assert direct.get(entry)


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz"])
def test_old_orc_files_have_times_in_milliseconds(ice: Ice, kind: str) -> None:
    """Their bounds are a millisecond too wide, so none of them is a value that a row is sure to have."""
    name = ice.table(f"ts {kind}", write__format__default="orc")
    ice.insert(name, f"SELECT CAST('2024-01-01 00:00:00.000100' AS {kind}) AS ts")
    widened(ice, name, micros=1_704_067_200_000_000)
    ice.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default'='parquet')")
    ice.insert(name, *[f"SELECT CAST('2024-01-01 00:00:00.000{v}' AS {kind}) AS ts" for v in ("050", "500")])
    for order, found in (("DESC", 500), ("ASC", 50)):
        rows = ice.same(f"SELECT ts FROM {name} ORDER BY ts {order} LIMIT 1", name).rows
        assert [row.ts.microsecond for row in rows] == [found]
    # Parquet has values as bounds, so they make a boundary, and it rules out what lies beyond it, ORC or not.
    ice.insert(name, f"SELECT CAST('2025-01-01' AS {kind}) AS ts")
    assert ice.same(f"SELECT ts FROM {name} ORDER BY ts DESC LIMIT 1", name).files == 1


def widened(ice: Ice, name: str, micros: int) -> None:
    """The only file, with bounds as Iceberg wrote them before ORC had anything finer than milliseconds."""
    jvm = ice.spark._jvm
    assert jvm is not None
    iceberg, table = jvm.org.apache.iceberg, ice.java(name)
    old = table.newScan().planFiles().iterator().next().file()
    field = table.schema().findField("ts")
    low, high = (
        {field.fieldId(): iceberg.types.Conversions.toByteBuffer(field.type(), value)}
        for value in (micros, micros + 1000)
    )
    metrics = iceberg.Metrics(1, None, None, None, None, low, high)
    new = iceberg.DataFiles.builder(table.spec()).copy(old).withMetrics(metrics).build()
    table.newOverwrite().deleteFile(old).addFile(new).commit()
    ice.sql(f"REFRESH TABLE {name}")
