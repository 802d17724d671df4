"""Each unit of the Java half broken on purpose, in a Spark of its own: the others go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures import SparkProcess

BROKEN = """
import json, os, sys
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tools import connectors
import secateur
from secateur.bridge import jvm
from secateur.passes.limits import topk_probe

home, folder, name = sys.argv[1:]
sources = jvm.java_sources
def changed(of):
    return {n: t.replace(name, "nameOfAnotherVersion(") if of == folder else t for n, t in sources(of).items()}
jvm.java_sources = changed
topk_probe.WORTH = 0
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
for key, value in connectors.settings(home).items():
    builder = builder.config(key, value)
builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.databricks.delta.snapshotPartitions", "1")
spark = builder.config("spark.driver.memory", "1g").config("spark.ui.showConsoleProgress", "false").getOrCreate()
pruner = secateur.attach(spark, {"budget.ms": 20000})
found = {}

def run(what, query):
    plain = None
    with pruner.paused():
        plain = query().collect()
    rows = query().collect()
    scan = pruner.last.scans[0]
    found[what] = {
        "same": rows == plain,
        "kept": scan.files_kept,
        "total": scan.files_total,
        "reasons": " ".join(r.text for r in scan.reasons),
        "runtime": [step.name for step in scan.runtime],
    }

os.mkdir(f"{home}/plain")
for i in range(200):
    pq.write_table(pa.table({"id": list(range(i * 10, i * 10 + 10))}), f"{home}/plain/{i}.parquet")
spark.range(0, 1000, 1, 4).write.format("delta").save(f"{home}/delta")
spark.range(0, 1000, 1, 4).writeTo("ice.t").using("iceberg").create()
secateur.collect(spark, f"{home}/plain")
plain = lambda: spark.read.parquet(f"{home}/plain")
run("filters", lambda: plain().where("id = 250"))
run("delta", lambda: spark.read.format("delta").load(f"{home}/delta").where("id = 250"))
run("iceberg", lambda: spark.table("ice.t").where("id = 250"))
run("driver reads", lambda: plain().where("id BETWEEN 250 AND 259").limit(3))
run("run-time pruning", lambda: plain().where("id % 7 = 3").orderBy("id").limit(3))
reasons = {c.name: c.reason for c in pruner.capabilities}
print(json.dumps({"found": found, "capabilities": reasons, "text": repr(pruner)}))
"""
UNITS = {
    "runtime": ("run-time pruning", "toAggregateExpression("),
    "driver": ("driver reads", "markTaskCompleted("),
    "delta": ("delta", "loadActions("),
    "iceberg": ("iceberg", "partitionSpecId("),
}


@pytest.mark.parametrize("folder", UNITS)
def test_a_unit_that_does_not_compile_leaves_the_others_working(
    tmp_path: Path, spark_process: SparkProcess, folder: str
) -> None:
    broken, name = UNITS[folder]
    ran = spark_process(BROKEN, tmp_path, folder, name)
    assert ran.returncode == 0, ran.stderr[-2000:]
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    works = {name: not reason for name, reason in answer["capabilities"].items()}
    assert works == {n: n != broken for n in ("filters", "run-time pruning", "driver reads", "delta", "iceberg")}
    assert "nameOfAnotherVersion" in answer["capabilities"][broken]
    assert "nameOfAnotherVersion" in next(line for line in answer["text"].splitlines() if line.startswith(broken))
    found = answer["found"]
    assert all(each["same"] for each in found.values())
    assert found["filters"]["kept"] == 1
    for connector in ("delta", "iceberg"):
        if connector != broken:
            assert found[connector]["kept"] == 1
        else:
            assert found[connector]["kept"] == found[connector]["total"]
            assert f"does not fit this version of the {connector} connector" in found[connector]["reasons"]
            assert "nameOfAnotherVersion" in found[connector]["reasons"]
    assert found["driver reads"]["kept"] == 1
    assert found["driver reads"]["runtime"] == ([] if broken == "driver reads" else ["driver"])
    assert found["run-time pruning"]["runtime"] == ([] if broken == "run-time pruning" else ["topk_probe"])
