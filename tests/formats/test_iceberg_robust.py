"""What happens when something is missing, broken, or changes meanwhile: the query behaves as without secateur."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import secateur
from secateur.stats.formats import iceberg
from tests.formats.conftest import Ice, away, local

ERRORS = (PySparkException, Py4JJavaError)


def three(ice: Ice) -> str:
    name = ice.table("id bigint, v string")
    ice.insert(name, *[f"SELECT id, concat('v', id) AS v FROM range({i * 10}, {i * 10 + 10})" for i in range(3)])
    return name


def test_a_manifest_that_cannot_be_read(ice: Ice) -> None:
    name = three(ice)
    (path,) = [local(r.path) for r in ice.sql(f"SELECT path FROM {name}.manifests ORDER BY path LIMIT 1").collect()]
    query = f"SELECT * FROM {name} WHERE id + 0 < 40"
    with away([path]):
        with ice.pruner.paused(), pytest.raises(ERRORS, match=path.name):
            ice.sql(query).collect()
        with pytest.raises(ERRORS, match=path.name):
            ice.sql(query).collect()
        texts = [reason.text for summary in ice.pruner.history for reason in summary.reasons]
        assert any(path.name in text for text in texts)
    assert len(ice.same(f"SELECT * FROM {name} WHERE id = 5", name).rows) == 1


def test_a_scan_that_fails_after_the_decision(ice: Ice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing had to be known of the files, so only the tasks need the manifest: the reason is with the query."""
    name = three(ice)
    (path,) = [local(r.path) for r in ice.sql(f"SELECT path FROM {name}.manifests ORDER BY path LIMIT 1").collect()]
    monkeypatch.setattr(iceberg, "_SMALL", 0)
    with away([path]), pytest.raises(ERRORS, match=path.name):
        ice.sql(f"SELECT v FROM {name}").collect()
    summary = ice.pruner.last
    assert summary is not None
    assert summary.query > 0
    assert path.name in summary.reasons[0].text
    assert [(s.files_total, s.files_kept, s.reasons[0].code) for s in summary.scans] == [(3, 3, "bridge-failed")]


def test_a_data_file_that_is_missing(ice: Ice) -> None:
    name = three(ice)
    kept = ice.same(f"SELECT * FROM {name} WHERE id = 15", name)
    assert kept.files == 1
    with away(ice.files(name)), pytest.raises(ERRORS):
        ice.sql(f"SELECT * FROM {name} WHERE id = 15").collect()


def test_files_that_were_added_by_a_procedure_have_sizes(ice: Ice, lake: Path) -> None:
    """The snapshot does not say how large the table is then."""
    ice.sql("SELECT id FROM range(0, 40, 1, 4)").write.parquet(f"{lake}/plain")
    name = ice.table("id bigint")
    ice.sql(f"CALL ice.system.add_files(table => '{name}', source_table => '`parquet`.`{lake}/plain`')")
    (scan,) = ice.same(f"SELECT * FROM {name} WHERE id = 15", name).summary.scans
    assert (scan.files_total, scan.files_kept) == (4, 1)
    assert scan.bytes_total == sum(file.stat().st_size for file in ice.files(name))
    assert scan.bytes_kept is not None
    assert 0 < scan.bytes_kept < scan.bytes_total


def test_an_answer_is_of_the_snapshot_that_the_query_pinned(ice: Ice) -> None:
    name = three(ice)
    frame = ice.sql(f"SELECT id FROM {name} WHERE id + 0 >= 20")
    frame._jdf.queryExecution().optimizedPlan()
    ice.insert(name, "SELECT 100L AS id, 'x' AS v")
    ice.sql(f"DELETE FROM {name} WHERE id >= 20 AND id < 30")
    assert len(frame.collect()) == 10
    assert [r.id for r in ice.same(f"SELECT id FROM {name} WHERE id + 0 >= 20", name).rows] == [100]


def test_a_writer_meanwhile(ice: Ice) -> None:
    """Each commit adds one row with the number of rows so far, so every snapshot says whether it was read whole."""
    name = ice.table("n bigint, total bigint")
    ice.insert(name, "SELECT 0L AS n, 1L AS total")
    stop = threading.Event()

    def write() -> None:
        for n in range(1, 1000):
            if stop.wait(0.2):
                return
            ice.sql(f"INSERT INTO {name} SELECT {n}L, {n + 1}L")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(50):
            row = ice.sql(f"SELECT count(*) AS c, max(total) AS t FROM {name} WHERE n + 0 >= 0").collect()[0]
            assert row.c == row.t
            row = ice.sql(f"SELECT max(n) AS m, max(total) AS t FROM {name} WHERE n + 0 > 1").collect()[0]
            assert row.m is None or row.t == row.m + 1
    finally:
        stop.set()
        writer.join()
    assert len(ice.pruner.history) >= 100
    assert not any(summary.reasons for summary in ice.pruner.history)
    assert len({summary.scans[0].files_total for summary in ice.pruner.history if summary.scans}) > 2


def test_collect_and_an_empty_table(ice: Ice) -> None:
    name = three(ice)
    report = secateur.collect(ice.spark, name)
    assert (report.files_total, report.files_read) == (3, 0)
    assert "metadata" in report.store_text
    empty = ice.table("id bigint")
    assert ice.same(f"SELECT * FROM {empty} WHERE id = 1", empty).rows == []


def test_the_pass_can_be_switched_off(ice: Ice) -> None:
    name = three(ice)
    ice.spark.conf.set("spark.secateur.passes", "")
    compared = ice.same(f"SELECT * FROM {name} WHERE id = 15", name)
    assert compared.files == 1  # Iceberg's own tests still count


CATALOGS = {
    "memory": {"catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog"},
    "jdbc": {"type": "jdbc", "uri": "jdbc:h2:mem:secateur;DB_CLOSE_DELAY=-1", "jdbc.schema-version": "V1"},
}


@pytest.mark.parametrize("kind", CATALOGS)
def test_another_catalog(ice: Ice, kind: str) -> None:
    location = ice.spark.conf.get("spark.sql.catalog.ice.warehouse")
    common = {"warehouse": f"{location}/{kind}", "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}
    ice.spark.conf.set(f"spark.sql.catalog.{kind}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in {**common, **CATALOGS[kind]}.items():
        ice.spark.conf.set(f"spark.sql.catalog.{kind}.{key}", value)
    ice.sql(f"CREATE NAMESPACE IF NOT EXISTS {kind}.db")
    ice.sql(f"CREATE TABLE {kind}.db.t (id bigint) USING iceberg LOCATION '{location}/{kind}/db-t'")
    ice.insert(f"{kind}.db.t", "SELECT 1L AS id", "SELECT 2L AS id")
    assert ice.same(f"SELECT * FROM {kind}.db.t WHERE id + 0 = 2", f"{kind}.db.t").files == 1
    ice.sql(f"DROP TABLE {kind}.db.t")
