"""Commands that change a table leave the same contents with secateur attached as without."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.formats.conftest import Ice, local

COMMANDS = [
    "DELETE FROM {t} WHERE id = 13",
    "DELETE FROM {t} WHERE id + 0 >= 20 AND id + 0 < 25",
    "DELETE FROM {t} WHERE part = 3",
    "UPDATE {t} SET v = -1 WHERE id IN (5, 41)",
    "UPDATE {t} SET v = v + 1 WHERE id IN (SELECT id FROM {s} WHERE id + 0 < 12)",
    "MERGE INTO {t} USING (SELECT * FROM {s} WHERE id + 0 < 60) s ON {t}.id = s.id "
    "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "INSERT INTO {t} SELECT id + 1000, v, part FROM {t} WHERE id + 0 < 5",
    "INSERT OVERWRITE {t} SELECT id, v * 2, part FROM {t} WHERE id + 0 >= 30",
    "CALL ice.system.rewrite_data_files(table => '{n}', options => map('min-input-files', '1'))",
    "DELETE FROM {t}",
]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_commands(ice: Ice, mode: str) -> None:
    modes = {f"write__{command}__mode": mode for command in ("delete", "update", "merge")}
    source = ice.table("id bigint, v bigint, part int")
    ice.insert(source, "SELECT id, id * 100 AS v, cast(id / 10 AS int) AS part FROM range(0, 80, 3)")
    tables = [ice.table("id bigint, v bigint, part int", "part", format_version=2, **modes) for _ in range(2)]
    for name in tables:
        ice.insert(name, "SELECT id, id AS v, cast(id / 10 AS int) AS part FROM range(50)")
    for command in COMMANDS:
        contents = []
        for name, paused in zip(tables, (True, False), strict=True):
            text = command.format(t=name, s=source, n=name.removeprefix("ice."))
            if paused:
                with ice.pruner.paused():
                    ice.sql(text).collect()
            else:
                ice.sql(text).collect()
            with ice.pruner.paused():
                contents.append(sorted(map(tuple, ice.sql(f"SELECT * FROM {name}").collect())))
        assert contents[0] == contents[1], command
    assert contents == [[], []]
    assert not any(summary.reasons for summary in ice.pruner.history)


@pytest.mark.long
def test_maintenance(ice: Ice) -> None:
    """What is compacted, expired and removed is the same with secateur as without: rows, results, files on disk."""
    outcomes = []
    for paused in (True, False):
        with ice.pruner.paused():
            name = ice.table(
                "id bigint, v bigint, part int", "part", format_version=2, write__delete__mode="merge-on-read"
            )
            for i in range(3):
                ice.insert(name, f"SELECT id, id AS v, cast(id / 10 AS int) AS part FROM range({i}, 50, 3)")
            ice.sql(f"DELETE FROM {name} WHERE id % 7 = 3")
            folder = local(ice.java(name).location())
            (folder / "data" / "orphan.parquet").write_bytes(b"nobody knows of this file")
        with ice.pruner.paused() if paused else nullcontext():
            calls = [
                f"CALL ice.system.rewrite_data_files(table => '{name[4:]}', where => 'id < 25', "
                "options => map('min-input-files', '1', 'remove-dangling-deletes', 'true'))",
                f"CALL ice.system.expire_snapshots(table => '{name[4:]}', older_than => TIMESTAMP '2100-01-01', "
                "retain_last => 1)",
                f"CALL ice.system.remove_orphan_files(table => '{name[4:]}', older_than => TIMESTAMP '2020-01-01')",
            ]
            results = []
            for call in calls:
                for path in folder.rglob("*"):
                    os.utime(path, (0, 0))  # so old that only what the table needs protects a file
                rows = ice.sql(call).collect()
                results.append(len(rows) if "orphan" in call else [_counts(row.asDict()) for row in rows])
        with ice.pruner.paused():
            contents = sorted(map(tuple, ice.sql(f"SELECT * FROM {name}").collect()))
        on_disk = len(list(folder.glob("data/**/*.parquet")))
        assert len(contents) == 43
        assert not (folder / "data" / "orphan.parquet").exists()
        outcomes.append((contents, results, on_disk))
    assert outcomes[0] == outcomes[1]


def _counts(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if "bytes" not in name}


def test_streaming(ice: Ice, tmp_path: Path) -> None:
    source, sink = (ice.table("id bigint, v bigint") for _ in range(2))
    ice.insert(source, *[f"SELECT id, id AS v FROM range({i * 10}, {i * 10 + 10})" for i in range(3)])
    stream = ice.spark.readStream.table(source).where("id + 0 > 15")
    query = stream.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).toTable(sink)
    query.awaitTermination()
    assert len(ice.same(f"SELECT * FROM {sink}", sink).rows) == 14


def test_incremental_reads_are_left_alone(ice: Ice) -> None:
    name = ice.table("id bigint")
    ice.insert(name, *[f"SELECT {i}L AS id" for i in range(3)])
    first = ice.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at").collect()[0][0]
    reader = ice.spark.read.option("start-snapshot-id", first)
    compared = ice.same(lambda: reader.table(name).where("id + 0 = 2"), name)
    assert len(compared.rows) == 1
    assert "start-snapshot-id" in compared.summary.scans[0].reasons[0].text
