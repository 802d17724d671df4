"""Schemas that change: columns are known by their id, whatever name, place or type they have now."""

from __future__ import annotations

from tests.formats.conftest import Ice


def test_rename_add_drop_and_add_again(ice: Ice) -> None:
    name = ice.table("id bigint, a bigint, b bigint")
    ice.insert(name, "SELECT 1L AS id, 10L AS a, 100L AS b", "SELECT 2L AS id, 20L AS a, 200L AS b")
    before = ice.sql(f"SELECT max(snapshot_id) AS s FROM {name}.refs").collect()[0].s
    ice.sql(f"ALTER TABLE {name} RENAME COLUMN a TO old")
    ice.sql(f"ALTER TABLE {name} RENAME COLUMN b TO a")
    ice.sql(f"ALTER TABLE {name} ADD COLUMN c bigint")
    ice.insert(name, "SELECT 3L AS id, 30L AS old, 300L AS a, 7L AS c")
    assert ice.same(f"SELECT * FROM {name} WHERE a = 200", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE old = 10", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE c IS NULL", name).files == 2
    assert ice.same(f"SELECT * FROM {name} WHERE c = 7", name).files == 3  # the old files have nothing on it
    assert ice.same(f"SELECT * FROM {name} VERSION AS OF {before} WHERE a = 10", name).files == 1
    ice.sql(f"ALTER TABLE {name} DROP COLUMN old")
    ice.sql(f"ALTER TABLE {name} ADD COLUMN old bigint FIRST")
    ice.sql(f"ALTER TABLE {name} ALTER COLUMN c AFTER id")
    ice.insert(name, "SELECT 50L AS old, 4L AS id, 8L AS c, 400L AS a")
    assert len(ice.same(f"SELECT * FROM {name} WHERE old IS NULL", name).rows) == 3
    assert ice.same(f"SELECT * FROM {name} WHERE old = 10", name).rows == []
    assert ice.same(f"SELECT * FROM {name} WHERE id >= 4", name).files == 1


def test_initial_defaults(ice: Ice) -> None:
    """A file that is older than the column reads as the default, not as NULL."""
    name = ice.table("id bigint", format_version=3)
    ice.insert(name, "SELECT 1L AS id")
    jvm = ice.spark._jvm
    assert jvm is not None
    five = jvm.org.apache.iceberg.expressions.Literal.of(jvm.java.lang.Integer.valueOf("5"))
    kind = jvm.org.apache.iceberg.types.Types.IntegerType.get()
    ice.java(name).updateSchema().addColumn("k", kind, "five in old rows", five).commit()
    ice.sql(f"REFRESH TABLE {name}")
    ice.insert(name, "SELECT 2L AS id, 6 AS k", "SELECT 3L AS id, cast(NULL AS int) AS k")
    for condition, ids in (("k = 5", [1]), ("k IS NULL", [3]), ("k > 5", [2]), ("k IS NOT NULL", [1, 2])):
        compared = ice.same(f"SELECT id FROM {name} WHERE {condition} ORDER BY id", name)
        assert [row.id for row in compared.rows] == ids
    assert ice.same(f"SELECT * FROM {name} WHERE k = 6", name).files == 2


def test_promoted_types(ice: Ice) -> None:
    """Bounds of old files keep the narrow bytes of the type that was."""
    name = ice.table("i int, f float, p decimal(5,2)")
    ice.insert(name, *[f"SELECT {v} AS i, float({v}) AS f, cast({v} AS decimal(5,2)) AS p" for v in (-3, 0, 7)])
    for column, kind in (("i", "bigint"), ("f", "double"), ("p", "decimal(30,2)")):
        ice.sql(f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {kind}")
    ice.insert(name, "SELECT 5000000000L AS i, 1e300D AS f, cast(-9999999999999999999999.99 AS decimal(30,2)) AS p")
    for condition, files in (
        ("i = -3", 1), ("i > 6", 2), ("i = 5000000000", 1), ("f = 7", 1), ("f > 1e200", 1), ("f < 0", 1),
        ("p = 7", 1), ("p < -100", 1), ("p > -4 AND p < 8", 3),
    ):  # fmt: skip
        assert ice.same(f"SELECT * FROM {name} WHERE {condition}", name).files == files, condition


def test_a_promoted_partition_column(ice: Ice) -> None:
    name = ice.table("i int, v bigint", "i")
    ice.insert(name, "SELECT 1 AS i, 1L AS v", "SELECT 2 AS i, 2L AS v")
    before = ice.sql(f"SELECT max(snapshot_id) AS s FROM {name}.refs").collect()[0].s
    ice.sql(f"ALTER TABLE {name} ALTER COLUMN i TYPE bigint")
    ice.insert(name, "SELECT 3000000000L AS i, 3L AS v")
    assert ice.same(f"SELECT * FROM {name} WHERE i = 2", name).files == 1
    assert ice.same(f"SELECT * FROM {name} WHERE i > 2", name).files == 1
    compared = ice.same(f"SELECT * FROM {name} VERSION AS OF {before} WHERE i = 2", name)
    assert compared.files == 1  # by Iceberg itself
    assert "changed its type" in compared.summary.scans[0].reasons[0].text
