"""Commands that write Delta tables leave the same table with secateur attached as without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fixtures import _sorted
from tests.formats.delta import append, create, read, rows

COMMANDS = {
    "delete": ["DELETE FROM {t} WHERE id BETWEEN 150 AND 260"],
    "update": ["UPDATE {t} SET i = i + 1 WHERE id > 250 OR i = 3"],
    "merge": [
        """MERGE INTO {t} t USING (SELECT * FROM {u} WHERE k BETWEEN 90 AND 420) u ON t.id = u.k
        WHEN MATCHED AND u.k % 2 = 0 THEN UPDATE SET i = -1 WHEN MATCHED THEN DELETE
        WHEN NOT MATCHED THEN INSERT (id, i) VALUES (u.k, 7)""",
    ],
    "merge into itself": [
        "MERGE INTO {t} t USING (SELECT id + 1000 AS id, i FROM {t} WHERE id < 50) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *",
    ],
    "optimize": ["DELETE FROM {t} WHERE id = 5", "OPTIMIZE {t} ZORDER BY (i)", "DELETE FROM {t} WHERE id = 6"],
    "overwrite": ["INSERT OVERWRITE {t} SELECT id, i FROM {t} WHERE id > 180"],
    "insert from itself": ["INSERT INTO {t} SELECT id + 500, i FROM {t} WHERE id < 30"],
    "replace where": ["INSERT INTO {t} REPLACE WHERE id >= 300 SELECT id + 300, i FROM {t} WHERE id < 10"],
}
LONG = ("merge into itself", "insert from itself", "replace where")


def run(spark: SparkSession, folder: Path, commands: list[str], vectors: str) -> list[str]:
    tables = {"t": rows(spark, 0, 4).select("id", "i"), "u": spark.range(0, 500, 3, 1).toDF("k")}
    for name, frame in tables.items():
        if name == "u" and not any("{u}" in command for command in commands):
            continue
        create(spark, folder / name, ", ".join(f"{n} {t}" for n, t in frame.dtypes), "", enableDeletionVectors=vectors)
        append(frame, folder / name)
    for command in commands:
        spark.sql(command.format(t=f"delta.`{folder / 't'}`", u=f"delta.`{folder / 'u'}`")).collect()
    return _sorted(read(spark, folder / "t").collect())


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.long] if n in LONG else []) for n in COMMANDS])
def test_commands(spark: SparkSession, pruner: secateur.Pruner, lake: Path, name: str) -> None:
    vectors = "false" if name == "update" else "true"
    with pruner.paused():
        expected = run(spark, lake / "plain", COMMANDS[name], vectors)
    before = len(pruner.history)
    assert run(spark, lake / "pruned", COMMANDS[name], vectors) == expected
    with pruner.paused():
        assert _sorted(read(spark, lake / "pruned" / "t").collect()) == expected
    if name == "merge":  # is seen to be left alone
        texts = [r.text for s in pruner.history[before:] for scan in s.scans for r in scan.reasons]
        assert any("transaction" in text for text in texts)


def both(pruner: secateur.Pruner, lake: Path, work: Callable[[Path], list[str]]) -> list[str]:
    with pruner.paused():
        expected = work(lake / "plain")
    found = work(lake / "pruned")
    assert found == expected
    return found


@pytest.mark.long
def test_streams(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    def work(folder: Path) -> list[str]:
        append(rows(spark, 0, 3).select("id", "i"), folder / "in")
        for step in range(2):
            append(rows(spark, 3 + step, 1).select("id", "i"), folder / "in")
            stream = spark.readStream.format("delta").load(str(folder / "in")).where("id % 100 < 3 AND id > 100")
            query = (
                stream.writeStream.format("delta")
                .option("checkpointLocation", str(folder / "checkpoint"))
                .trigger(availableNow=True)
                .start(str(folder / "out"))
            )
            query.awaitTermination()
        return _sorted(read(spark, folder / "out").collect())

    assert len(both(pruner, lake, work)) == 11


@pytest.mark.long
def test_change_data_feed(spark: SparkSession, pruner: secateur.Pruner, lake: Path) -> None:
    def work(folder: Path) -> list[str]:
        path = folder / "t"
        create(spark, path, "id BIGINT, i INT", "", enableChangeDataFeed="true")
        append(rows(spark, 0, 2).select("id", "i"), path)
        spark.sql(f"UPDATE delta.`{path}` SET i = -1 WHERE id = 50").collect()
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id >= 190").collect()
        changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
        frame = changes.load(str(path)).where("id > 180 OR i < 0").drop("_commit_timestamp")
        return _sorted(frame.collect())

    assert both(pruner, lake, work)
