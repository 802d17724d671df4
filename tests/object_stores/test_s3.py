"""Tables on a real S3 server: Spark's own access is all that is used, and what goes wrong costs nothing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.fixtures import SparkProcess
from tests.object_stores.scenario import FILES, ODD

pytestmark = pytest.mark.long  # it builds the server with Go, and loads Hadoop's part for S3
Facts = dict[str, Any]


@pytest.fixture(scope="module")
def facts(spark_process: SparkProcess, tmp_path_factory: pytest.TempPathFactory) -> Facts:
    folder = tmp_path_factory.mktemp("s3")
    code = "import pathlib, sys; from tests.object_stores.scenario import main; main(pathlib.Path(sys.argv[1]))"
    done = spark_process(code, folder)
    found = re.search(r"^FACTS (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout[-2000:] + done.stderr[-4000:]
    facts: Facts = json.loads(found[1])
    return facts


@pytest.mark.parametrize("table", ["t", "odd"])
def test_footers_and_the_store_are_read_as_spark_reads(facts: Facts, table: str) -> None:
    found = facts[table]
    for run in ("cold", "collected", "warm"):
        assert found[run]["rows"] == found["plain"]["rows"]
        assert found[run]["whole"] == []  # no time-out
    assert found["cold"]["reasons"][0][0] == "collecting"
    assert (found["collected"]["kept"], found["warm"]["kept"]) == (1, 1)
    assert found["warm"]["requests"]["GET"] * 3 < found["plain"]["requests"]["GET"]


@pytest.mark.parametrize("table", ["t", "odd"])
def test_queries_write_nothing_and_collect_does(facts: Facts, table: str) -> None:
    found = facts[table]
    assert [each for each in found["written by queries"] if each.startswith({"t": "t/", "odd": ODD}[table])] == []
    assert len(found["written by collect"]) == 1
    assert "/_secateur/v1/_stats-" in found["written by collect"][0]
    assert found["collect"]["PUT"] == 1
    assert f"range-sets made of {FILES}" in found["ranges"]


def test_nobody_else_is_asked_and_no_folders_are_made(facts: Facts) -> None:
    assert facts["decoy"] == []
    assert [folder for folder in facts["folders"] if "/_delta_log/" not in folder] == []  # those are Delta's own


def test_a_new_application_is_pruned_by_its_first_query(facts: Facts) -> None:
    assert facts["store"]["kept"] == 1
    assert facts["store"]["whole"] == []


def test_the_options_decide_where_and_whether_to_write(facts: Facts) -> None:
    found = facts["policies"]
    assert "in memory only (spark.secateur.stats.write=never)" in found["never"]
    assert (found["never kept"], found["never wrote"]) == (1, [])
    assert "s3a://elsewhere/statistics/" in found["moved"]
    assert [name.startswith("statistics/") for name in found["there"]] == [True]
    assert (found["moved kept"], found["still not here"]) == (1, [])
    assert found["always wrote"] == 1


def test_a_read_only_table_says_so_once_and_what_to_do(facts: Facts) -> None:
    found = facts["read only"]
    for report in found["reports"]:
        assert "in memory only (s3a://frozen/t/_secateur cannot be written: " in report
        assert "set spark.secateur.stats.dir to a folder that can be" in report
    assert len(found["said"]) == 1
    assert found["kept"] == 1
    assert not [name for name in found["objects"] if "_secateur" in name]


@pytest.mark.parametrize(("bucket", "cause"), [("dead", "Connection refused"), ("denied", "403")])
def test_a_store_that_does_not_answer_is_named_and_costs_nothing(facts: Facts, bucket: str, cause: str) -> None:
    found = facts[bucket]
    assert found["same"]
    assert found["kept"] == 1  # what was collected is in memory
    code, text = found["reasons"][0]
    assert code == "store-failed"
    assert f"s3a://{bucket}/statistics" in text
    assert cause in text
    assert "not-the-secret" not in json.dumps(facts)
    assert "\n" not in text
    assert f"s3a://{bucket}/statistics" in found["report"]


def test_a_bucket_that_throttles_is_read_all_the_same(facts: Facts) -> None:
    found = facts["throttled"]
    assert (found["read"], found["problem"], found["kept"]) == (FILES, "", 1)


def test_a_file_that_is_not_the_one_that_was_listed_is_unknown(facts: Facts) -> None:
    found = facts["replaced"]
    assert (found["read"], found["failed"]) == (FILES - 1, 1)
    assert "part 2%é.parquet" in found["failures"][0]


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_delta_and_iceberg(facts: Facts, name: str) -> None:
    found = facts["formats"][name]
    assert found["same"]
    assert found["wrote"] == 0
    assert found["ranged"] == 4
    _, cold, warm = found["kept"]
    assert cold == 2  # bounds do not tell odd numbers from even ones
    assert warm == 1


def test_every_way_to_name_a_table(facts: Facts) -> None:
    assert set(facts["names"].values()) == {FILES}


def test_range_sets_are_those_that_are_made_of_local_files(facts: Facts) -> None:
    found = facts["ranges"]
    assert found["differ"] == {}
    assert found["columns"] > 60
