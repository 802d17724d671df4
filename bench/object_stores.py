"""A filter over many files on S3: requests and seconds with and without secateur, with a delay for each request.

A real S3 server runs on this machine, with a proxy before it that counts requests and holds each back for a while, as
a network would. ``python -m bench.object_stores --files 100 --delay 30``
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tools import connectors, s3_server
from tools.sessions import local_session

import secateur

ROWS = 1000
Query = Callable[[], DataFrame]


def write(spark: SparkSession, files: int) -> dict[str, Query]:
    """The same rows as three tables of so many files, sorted by id, and a query for a few of them."""
    frame = spark.range(0, files * ROWS).selectExpr("id", "id * 7 as x", "concat('name ', id) as name")
    sorted_ = frame.repartitionByRange(files, "id").sortWithinPartitions("id")
    sorted_.write.parquet("s3a://lake/parquet")
    sorted_.write.format("delta").save("s3a://lake/delta")
    spark.sql("CREATE TABLE ice.db.t (id bigint, x bigint, name string) USING iceberg")
    sorted_.writeTo("ice.db.t").append()
    where = f"x * 2 BETWEEN {files * ROWS} AND {files * ROWS + 20}"
    return {
        "parquet": lambda: spark.read.parquet("s3a://lake/parquet").where(where),
        "delta": lambda: spark.read.format("delta").load("s3a://lake/delta").where(where),
        "iceberg": lambda: spark.table("ice.db.t").where(where),
    }


def measure(proxy: s3_server.Proxy, query: Query) -> tuple[list[str], float, int]:
    """Rows, seconds and requests."""
    with proxy.counted() as requests:
        start = time.perf_counter()
        rows = sorted(map(repr, query().collect()))
        seconds = time.perf_counter() - start
    return rows, seconds, sum(requests.values())


def report(name: str, what: str, runs: list[tuple[list[str], float, int]]) -> None:
    seconds, requests = statistics.median(r[1] for r in runs), statistics.median(r[2] for r in runs)
    print(f"| {name} | {what} | {seconds:.2f} | {requests:.0f} |", flush=True)


def faults(spark: SparkSession, proxy: s3_server.Proxy, query: Query, runs: int) -> None:
    """Statistics are to be kept where nobody answers, or where the key is wrong: what later queries lose."""
    plain = statistics.median(measure(proxy, query)[1] for _ in range(runs))
    print(f"\nWithout: {plain:.3f} s.\n\n| statistics in | first query, s | later, s | planning, ms | reason |")
    print("|---|---|---|---|---|")
    for bucket in ("lake", "dead", "denied"):
        pruner = secateur.attach(spark, {"stats.dir": f"s3a://{bucket}/statistics"})
        first = measure(proxy, query)[1]
        pruner.wait_for_statistics()
        while bucket != "lake" and "store-failed" not in codes(pruner):
            measure(proxy, query)
        later, planning = [], []
        for _ in range(runs):
            later.append(measure(proxy, query)[1])
            assert pruner.last is not None
            planning.append(pruner.last.to_dict()["planning_ms"]["total"])
        text = next((r.text for r in pruner.last.scans[0].reasons), "") if pruner.last else ""
        print(
            f"| {bucket} | {first:.3f} | {statistics.median(later):.3f} | {statistics.median(planning):.1f} | {text} |"
        )
        pruner.detach()


def codes(pruner: secateur.Pruner) -> list[str]:
    """Why the first scan of the last query was not narrowed further."""
    return [reason.code for reason in pruner.last.scans[0].reasons] if pruner.last else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--delay", type=float, default=30.0, help="milliseconds that each request is held back")
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="secateur-s3-"))
    (folder / "buckets" / "lake").mkdir(parents=True)
    with s3_server.server(folder) as endpoint, s3_server.proxy(endpoint) as proxy:
        settings = connectors.settings(str(folder)) | s3_server.settings(proxy.endpoint)
        settings["spark.jars.packages"] += f",{s3_server.hadoop_aws()}"
        settings["spark.sql.catalog.ice.warehouse"] = "s3a://lake/ice"
        settings |= s3_server.settings("http://127.0.0.1:1", "dead") | s3_server.settings(proxy.endpoint, "denied")
        settings["spark.hadoop.fs.s3a.bucket.denied.secret.key"] = "not-the-secret"
        spark = local_session("object-stores", str(folder), settings)
        queries = write(spark, arguments.files)
        proxy.delay = arguments.delay / 1000
        print("| table | run | seconds | requests |\n|---|---|---|---|")
        for name, query in queries.items():
            query().collect()
            plain = [measure(proxy, query) for _ in range(arguments.runs)]
            report(name, "without", plain)
            pruner = secateur.attach(spark)
            cold = [measure(proxy, query)]
            pruner.wait_for_statistics()
            report(name, "with, the first query", cold)
            if name == "parquet":
                with proxy.counted() as requests:
                    kept = secateur.collect(spark, "s3a://lake/parquet")
                print(f"| {name} | collect: {kept.store_text} | {kept.seconds:.2f} | {sum(requests.values())} |")
            warm = [measure(proxy, query) for _ in range(arguments.runs)]
            report(name, "with, later", warm)
            pruner.detach()
            assert all(run[0] == plain[0][0] for run in [*cold, *warm]), f"{name}: other rows"
        faults(spark, proxy, queries["parquet"], arguments.runs)
        spark.stop()


if __name__ == "__main__":
    main()
