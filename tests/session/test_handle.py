"""The handle, its options and its summary."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.spark_metrics import files_read

import secateur
from tests.fixtures import SparkProcess


@pytest.fixture
def table(lake: Path, spark: SparkSession, pruner: secateur.Pruner) -> str:
    folder = lake / "t"
    folder.mkdir()
    for i in range(4):
        data = pa.table({"a": list(range(i * 100, i * 100 + 10)), "s": [f"s{i}"] * 10})
        pq.write_table(data, folder / f"{i}.parquet", row_group_size=5)
    secateur.collect(spark, str(folder))
    spark.read.parquet(str(folder)).createOrReplaceTempView("t")
    return str(folder)


def test_attach_is_idempotent(spark: SparkSession, pruner: secateur.Pruner) -> None:
    assert secateur.attach(spark) is pruner
    assert secateur.attach(spark.newSession()) is pruner
    rules = spark._jsparkSession.experimental().extraOptimizations()
    assert sum("secateur" in rules.apply(i).ruleName() for i in range(rules.size())) == 1


def test_detach_and_attach_again(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    query = "SELECT * FROM t WHERE a = 5"
    frame = spark.sql(query)
    frame.collect()
    assert files_read(frame) == 1
    pruner.detach()
    pruner.detach()
    assert not pruner.attached
    frame = spark.sql(query)
    frame.collect()
    assert files_read(frame) == 4
    assert pruner.last is not None
    assert pruner.last.files_kept == 1, "summaries stay readable"
    again = secateur.attach(spark)
    assert again is not pruner
    frame = spark.sql(query)
    frame.collect()
    assert files_read(frame) == 1
    again.detach()


def test_other_rules_of_the_session_are_kept(spark: SparkSession, pruner: secateur.Pruner) -> None:
    methods = spark._jsparkSession.experimental()
    pruner.detach()
    before = methods.extraOptimizations().size()
    again = secateur.attach(spark)
    assert methods.extraOptimizations().size() == before + 1
    again.detach()
    assert methods.extraOptimizations().size() == before


def test_paused_nests_and_ends(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    def files() -> int:
        frame = spark.sql("SELECT * FROM t WHERE a = 5")
        frame.collect()
        return files_read(frame)

    with pruner.paused():
        with pruner.paused():
            assert files() == 4
        assert files() == 4
    assert files() == 1
    with pytest.raises(ZeroDivisionError), pruner.paused():
        raise ZeroDivisionError
    assert files() == 1


def test_the_sessions_switch(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    spark.sql("SET spark.secateur.enabled=false")
    frame = spark.sql("SELECT * FROM t WHERE a = 5")
    frame.collect()
    assert files_read(frame) == 4
    other = spark.newSession()
    frame = other.read.parquet(table).where("a = 5")
    frame.collect()
    assert files_read(frame) == 1, "another session is not concerned"


def test_a_derived_session_is_pruned_from_its_first_query(
    spark: SparkSession, pruner: secateur.Pruner, table: str
) -> None:
    fresh = spark.newSession()
    frame = fresh.read.parquet(table).where("a = 305")
    assert [r.a for r in frame.collect()] == [305]
    assert files_read(frame) == 1
    rules = fresh._jsparkSession.experimental().extraOptimizations()
    assert [rules.apply(i).ruleName() for i in range(rules.size())] == ["secateur.Late"]


def test_the_json_form(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    spark.sql("SELECT * FROM t WHERE a = 5").collect()
    assert pruner.last is not None
    plain = json.loads(json.dumps(pruner.last.to_dict()))
    assert set(plain) == {"query", "scans", "planning_ms", "reasons"}
    (scan,) = plain["scans"]
    assert {k: v for k, v in scan.items() if k not in ("passes", "bytes_kept", "bytes_total", "table")} == {
        "format": "parquet",
        "files_total": 4,
        "files_kept": 1,
        "rows_total": 40,
        "rows_kept": 10,
        "row_groups_total": 8,
        "row_groups_kept": 1,
        "reasons": [],
        "implied": [],
        "joins": [],
        "runtime": [],
    }
    assert scan["table"] == f"file:{table}"
    assert 0 < scan["bytes_kept"] < scan["bytes_total"]
    assert [{k: v for k, v in p.items() if k != "ms"} for p in scan["passes"]] == [
        {"name": "filter", "files_before": 4, "files_after": 1}
    ]
    times = plain["planning_ms"]
    assert set(times) == {"total", "jvm", "wire", "python"}
    assert times["total"] == pytest.approx(times["jvm"] + times["wire"] + times["python"], abs=0.01)
    assert all(t > 0 for t in times.values())


def test_the_text_form(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    spark.sql("SELECT * FROM t WHERE a = 5").collect()
    text = str(pruner.last)
    assert "reads 1 of 4 files" in text
    assert "filter: 4 → 1 files" in text
    assert "1 of 8 row groups" in text
    assert "<table>" in pruner.last._repr_html_()  # type: ignore[union-attr]


WHY_NOT = [
    ("SELECT * FROM t", "no-filter"),
    ("SELECT * FROM t WHERE a >= 0", "not-selective"),
    ("SELECT * FROM t WHERE reverse(CAST(a AS string)) = '1s'", "unsupported-expression"),
    ("SELECT a, rand(1) FROM t WHERE a = 5", "non-deterministic"),
]


@pytest.mark.parametrize(("query", "code"), WHY_NOT)
def test_a_query_that_was_not_pruned_says_why(
    spark: SparkSession, pruner: secateur.Pruner, table: str, query: str, code: str
) -> None:
    summary = pruner.explain(query)
    assert summary.files_kept == 4
    assert code in [r.code for r in summary.scans[0].reasons], summary
    assert len(str(summary).splitlines()) < 25


def test_a_scan_that_goes_with_an_empty_one_is_not_counted(
    spark: SparkSession, pruner: secateur.Pruner, table: str
) -> None:
    frame = spark.sql("SELECT * FROM t x JOIN t y ON x.s = y.s WHERE x.a > 5000")
    assert frame.collect() == []
    assert files_read(frame) == 0
    assert pruner.last is not None
    assert pruner.last.files_kept == 0
    assert not any(s.reasons for s in pruner.last.scans)  # of what is not read there is nothing to say
    union = spark.sql("SELECT a FROM t WHERE a > 5000 UNION ALL SELECT a FROM t WHERE a = 5")
    assert union.count() == 1
    assert [s.files_kept for s in pruner.last.scans] == [0, 1]


def test_other_formats_and_sources_say_that_they_are_left_alone(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    spark.range(10).write.json(str(lake / "j"))
    assert spark.read.json(str(lake / "j")).where("id = 5").count() == 1
    assert pruner.last is not None
    assert [r.code for r in pruner.last.scans[0].reasons] == ["unsupported-scan"]
    assert "json" in pruner.last.scans[0].reasons[0].text
    seen = len(pruner.history)
    spark.range(10).where("id = 5").collect()
    assert len(pruner.history) == seen, "a query that reads no table is none of our business"


def test_explain_runs_nothing(spark: SparkSession, pruner: secateur.Pruner, table: str, lake: Path) -> None:
    seen = len(pruner.history)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    summary = pruner.explain("SELECT * FROM t WHERE a = 5")
    assert (summary.files_kept, summary.files_total) == (1, 4)
    assert pruner.explain(spark.table("t").where("a = 105")).files_kept == 1
    command = f"INSERT OVERWRITE DIRECTORY '{lake / 'out'}' USING parquet SELECT * FROM t WHERE a = 5"
    assert pruner.explain(command).files_kept == 1
    assert not (lake / "out").exists()
    assert len(pruner.history) == seen
    assert spark.sparkContext.statusTracker().getJobIdsForGroup(None) == jobs


def test_history_is_bounded(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    spark.conf.set("spark.secateur.history", "3")
    for a in range(5):
        spark.sql(f"SELECT * FROM t WHERE a = {a}").collect()
    assert len(pruner.history) == 3
    assert pruner.history[-1] == pruner.last


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("spark.secateur.enabld", "true", "unknown option spark.secateur.enabld; did you mean spark.secateur.enabled"),
        (
            "spark.secateur.enabled",
            "perhaps",
            "spark.secateur.enabled = 'perhaps' is not valid: it takes true or false",
        ),
        ("spark.secateur.budget.ms", "-5", "it takes a whole number from 1"),
        ("spark.secateur.passes", "filter,join", "it takes names out of manifests, filter"),
    ],
)
def test_a_wrong_option_is_refused_everywhere(
    spark: SparkSession, pruner: secateur.Pruner, table: str, key: str, value: str, message: str
) -> None:
    with pytest.raises(secateur.OptionError) as by_attach:
        secateur.attach(spark, {key: value})
    assert message in str(by_attach.value)
    with pytest.raises(Exception, match=r"spark\.secateur") as by_sql:
        spark.sql(f"SET {key}={value}")
    assert message in str(by_sql.value)
    spark.conf.set(key, value)
    try:
        with pytest.raises(secateur.OptionError):
            secateur.collect(spark, table)
        assert len(spark.sql("SELECT * FROM t WHERE a = 5").collect()) == 1
        assert pruner.last is not None
        assert message in pruner.last.reasons[0].text
        assert pruner.last.reasons[0].code == "bad-option"
    finally:
        spark.conf.unset(key)


def test_passes_can_be_switched_off(spark: SparkSession, pruner: secateur.Pruner, table: str) -> None:
    spark.sql("SET spark.secateur.passes=")
    assert pruner.explain("SELECT * FROM t WHERE a = 5").files_kept == 4
    spark.sql("SET spark.secateur.passes=filter")
    assert pruner.explain("SELECT * FROM t WHERE a = 5").files_kept == 1


def test_statistics_in_a_directory_that_the_user_names(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    spark.range(10).write.parquet(str(lake / "t"))
    spark.conf.set("spark.secateur.stats.dir", str(lake / "statistics"))
    secateur.collect(spark, str(lake / "t"))
    assert not (lake / "t" / "_secateur").exists()
    assert list((lake / "statistics").rglob("*.segment"))
    assert pruner.explain(spark.read.parquet(str(lake / "t")).where("id > 100")).files_kept == 0


def test_things_that_cannot_be_attached_to() -> None:
    with pytest.raises(secateur.AttachError, match="not str"):
        secateur.attach("spark")  # type: ignore[arg-type]


def test_collect_says_when_there_is_nothing_to_collect(
    spark: SparkSession, pruner: secateur.Pruner, lake: Path
) -> None:
    spark.range(3).write.json(str(lake / "j"))
    with pytest.raises(secateur.SecateurError, match="json"):
        secateur.collect(spark, spark.read.json(str(lake / "j")))
    with pytest.raises(secateur.SecateurError, match="reads no files"):
        secateur.collect(spark, spark.range(3))


def test_a_spark_connect_client_is_pruned(
    spark: SparkSession, pruner: secateur.Pruner, table: str, connect_port: int, spark_process: SparkProcess
) -> None:
    code = f"""
        import warnings; warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
        import secateur
        spark = SparkSession.builder.remote("sc://127.0.0.1:{connect_port}").getOrCreate()
        print("ROWS", [r.a for r in spark.read.parquet({table!r}).where("a = 205").collect()])
        print("SOME", len(spark.read.parquet({table!r}).where("a >= 200").limit(3).collect()))
        try:
            secateur.attach(spark)
        except secateur.AttachError as problem:
            print("REFUSED", problem)
    """
    done = spark_process(code)
    assert "ROWS [205]" in done.stdout, done.stdout + done.stderr
    assert "REFUSED this is a Spark Connect session" in done.stdout
    assert "SOME 3" in done.stdout
    assert [summary.files_kept for summary in pruner.history[-2:]] == [1, 1]
    assert not pruner.history[-1].scans[0].runtime  # its server reads the rows of a LIMIT by a job


def test_importing_it_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        subprocess.run([sys.executable, "-W", "error", "-c", "import secateur"], check=True, timeout=60)
