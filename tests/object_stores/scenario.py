"""What happens on a real S3 server, as facts on the last line of the output: run by test_s3.py in a process of its own.

Keys and endpoints are in Spark's configuration only. The environment has others, which lead to a server that must not
hear of anything.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from tools import connectors, s3_server
from tools.sessions import local_session

import secateur

ODD = "odd d%41=é ?#"
FILES = 8


class Stores:
    """The servers, the session and what was found."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.buckets = folder / "buckets"
        for name in ("lake", "frozen", "elsewhere"):
            (self.buckets / name).mkdir(parents=True)
        endpoint = stack.enter_context(s3_server.server(folder))
        self.proxy = stack.enter_context(s3_server.proxy(endpoint))
        self.decoy = stack.enter_context(s3_server.proxy(endpoint))
        frozen = stack.enter_context(s3_server.server(folder, readonly=True))
        os.environ.update(
            AWS_ACCESS_KEY_ID=s3_server.KEY,
            AWS_SECRET_ACCESS_KEY=s3_server.SECRET,
            AWS_ENDPOINT_URL=self.decoy.endpoint,
            AWS_ENDPOINT_URL_S3=self.decoy.endpoint,
            PYSPARK_PYTHON=sys.executable,
        )
        settings = connectors.settings(str(folder)) | s3_server.settings(self.proxy.endpoint)
        settings |= s3_server.settings(frozen, "frozen")
        settings |= s3_server.settings("http://127.0.0.1:1", "dead")
        settings |= s3_server.settings(self.proxy.endpoint, "denied")
        settings |= {
            "spark.jars.packages": f"{settings['spark.jars.packages']},{s3_server.hadoop_aws()}",
            "spark.hadoop.fs.s3a.bucket.denied.secret.key": "not-the-secret",
            # A dead server is told after a few seconds here; S3A's own patience is minutes.
            "spark.hadoop.fs.s3a.bucket.dead.attempts.maximum": "1",
            "spark.hadoop.fs.s3a.bucket.dead.retry.limit": "1",
            "spark.sql.catalog.ice.warehouse": "s3a://lake/ice",
        }
        self.spark: SparkSession = local_session("s3", str(folder), settings)
        self.pruner = secateur.attach(self.spark)
        self.facts: dict[str, Any] = {}

    def write(self, bucket: str, table: str, data: Callable[[int], dict[str, Any]]) -> str:
        """A table of small files, put into the server's folder as they are."""
        place = self.buckets / bucket / table
        place.mkdir(parents=True)
        for i in range(FILES):
            pq.write_table(pa.table(data(i)), place / f"part {i}%é.parquet", row_group_size=50)
        return f"s3a://{bucket}/{table}"

    def run(self, query: Callable[[], DataFrame]) -> dict[str, Any]:
        """Rows, requests, files and milliseconds of a query, and why it was not pruned."""
        with self.proxy.counted() as requests:
            rows = sorted(map(repr, query().collect()))
        summary = self.pruner.last
        scan = summary.scans[0] if summary is not None and summary.scans else None
        return {
            "rows": rows,
            "requests": dict(requests),
            "kept": None if scan is None else scan.files_kept,
            "reasons": [] if scan is None else [[r.code, r.text] for r in scan.reasons],
            "whole": [] if summary is None else [r.text for r in summary.reasons],
            "ms": None if summary is None else summary.to_dict()["planning_ms"]["total"],
        }

    def plain(self, query: Callable[[], DataFrame]) -> dict[str, Any]:
        with self.pruner.paused():
            return self.run(query)

    def objects(self, bucket: str) -> list[str]:
        """Every file below the server's folder; folders there are no objects."""
        root = self.buckets / bucket
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and ".sgwtmp" not in str(p))

    def folders_made(self) -> list[str]:
        """Requests that made an object for a folder."""
        return [
            path for method, path in self.proxy.requests if method == "PUT" and path.partition("?")[0].endswith("/")
        ]

    @contextmanager
    def option(self, name: str, value: str) -> Iterator[None]:
        self.spark.conf.set(f"spark.secateur.{name}", value)
        try:
            yield
        finally:
            self.spark.conf.unset(f"spark.secateur.{name}")


def numbers(i: int) -> dict[str, Any]:
    return {"id": list(range(i * 100, i * 100 + 100)), "name": [f"n{i}"] * 100}


def parquet(s: Stores, name: str) -> dict[str, Any]:
    path = s.write("lake", name, numbers)

    def query() -> DataFrame:
        return s.spark.read.parquet(path).where("id = 250")

    found: dict[str, Any] = {"plain": s.plain(query), "cold": s.run(query)}
    s.pruner.wait_for_statistics()
    found["collected"] = s.run(query)
    found["written by queries"] = [o for o in s.objects("lake") if "_secateur" in o]
    with s.proxy.counted() as requests:
        found["report"] = str(secateur.collect(s.spark, path))
    found["collect"] = dict(requests)
    found["written by collect"] = [o for o in s.objects("lake") if "_secateur" in o and name in o]
    found["ranges"] = str(secateur.collect(s.spark, path, ranges=5))
    found["warm"] = s.run(query)
    return found


def new_session_reads_the_store(s: Stores) -> dict[str, Any]:
    """Another application begins: nothing is in memory."""
    s.pruner.detach()
    s.pruner = secateur.attach(s.spark)
    return s.run(lambda: s.spark.read.parquet("s3a://lake/t").where("id = 350"))


def policies(s: Stores) -> dict[str, Any]:
    path = s.write("lake", "policies", numbers)

    def query() -> DataFrame:
        return s.spark.read.parquet(path).where("id = 250")

    with s.option("stats.write", "never"):
        never = str(secateur.collect(s.spark, path))
        pruned = s.run(query)
    after_never = [o for o in s.objects("lake") if "policies/_secateur" in o]
    with s.option("stats.dir", "s3a://elsewhere/statistics"):
        moved = str(secateur.collect(s.spark, path))
        there = s.objects("elsewhere")
        pruned_there = s.run(query)
    always = s.write("lake", "always", numbers)
    with s.option("stats.write", "always"):
        s.run(lambda: s.spark.read.parquet(always).where("id = 1"))
        s.pruner.wait_for_statistics()
    return {
        "never": never,
        "never kept": pruned["kept"],
        "never wrote": after_never,
        "moved": moved,
        "there": there,
        "moved kept": pruned_there["kept"],
        "still not here": [o for o in s.objects("lake") if "policies/_secateur" in o],
        "always wrote": len([o for o in s.objects("lake") if "always/_secateur" in o]),
    }


def read_only(s: Stores, log: list[str]) -> dict[str, Any]:
    path = s.write("frozen", "t", numbers)
    reports = [str(secateur.collect(s.spark, path)) for _ in range(2)]
    reports.append(str(secateur.collect(s.spark, path, ranges=3)))
    said = [line for line in log if "frozen" in line]
    query = s.run(lambda: s.spark.read.parquet(path).where("id = 250"))
    return {"reports": reports, "said": said, "kept": query["kept"], "objects": s.objects("frozen")}


def broken(s: Stores, bucket: str) -> dict[str, Any]:
    """Statistics are to be kept where nobody answers, or not to us."""
    path = s.write("lake", f"for {bucket}", numbers)

    def query() -> DataFrame:
        return s.spark.read.parquet(path).where("id = 250")

    plain = s.plain(query)
    with s.option("stats.dir", f"s3a://{bucket}/statistics"):
        s.run(query)
        time.sleep(8)  # until it is known that there is no answer
        s.pruner.wait_for_statistics()
        later = [s.run(query) for _ in range(5)]
        report = str(secateur.collect(s.spark, path))
    return {
        "same": all(each["rows"] == plain["rows"] for each in later),
        "reasons": later[-1]["reasons"],
        "ms": [each["ms"] for each in later],
        "report": report,
        "kept": later[-1]["kept"],
    }


def throttled(s: Stores) -> dict[str, Any]:
    path = s.write("lake", "throttled", numbers)
    s.proxy.throttle = 4
    try:
        report = secateur.collect(s.spark, path)
        query = s.run(lambda: s.spark.read.parquet(path).where("id = 250"))
    finally:
        s.proxy.throttle = 0
    return {"read": report.files_read, "problem": report.problem, "kept": query["kept"], "rows": query["rows"]}


def replaced(s: Stores) -> dict[str, Any]:
    path = s.write("lake", "replaced", numbers)
    frame = s.spark.read.parquet(path).where("id = 250 OR id < 0")
    first = s.buckets / "lake" / "replaced" / "part 2%é.parquet"
    pq.write_table(pa.table({"id": [-1] * 77, "name": ["x"] * 77}), first)
    report = secateur.collect(s.spark, frame)
    return {"failed": report.files_failed, "read": report.files_read, "failures": list(report.failures)}


def formats(s: Stores) -> dict[str, Any]:
    frame = s.spark.range(0, 800).selectExpr("id", "id * 2 as x", "concat('n', id % 5) as name")
    spread = frame.repartitionByRange(4, "id").sortWithinPartitions("id")
    spread.write.format("delta").save("s3a://lake/delta")
    s.spark.sql("CREATE TABLE ice.db.t (id bigint, x bigint, name string) USING iceberg")
    spread.writeTo("ice.db.t").append()
    found: dict[str, Any] = {}
    for name, table in (("delta", "delta.`s3a://lake/delta`"), ("iceberg", "ice.db.t")):

        def query(table: str = table) -> DataFrame:
            return s.spark.sql(f"SELECT * FROM {table} WHERE x = 701 OR id = 7")

        plain = s.plain(query)
        before = len([o for o in s.objects("lake") if "_secateur" in o])
        cold = s.run(query)
        wrote = len([o for o in s.objects("lake") if "_secateur" in o]) - before
        report = secateur.collect(s.spark, table, ranges=200)
        warm = s.run(query)
        found[name] = {
            "same": plain["rows"] == cold["rows"] == warm["rows"],
            "kept": [plain["kept"], cold["kept"], warm["kept"]],
            "wrote": wrote,
            "ranged": report.files_ranged,
            "report": str(report),
            "requests": [plain["requests"], warm["requests"]],
        }
    return found


def names(s: Stores) -> dict[str, Any]:
    s.spark.read.parquet("s3a://lake/t").createOrReplaceTempView("`a view`")
    s.spark.sql("CREATE TABLE odd_name USING parquet LOCATION 's3a://lake/t'")
    tables = ["parquet.`s3a://lake/t`", "`a view`", "spark_catalog.default.`odd_name`", "s3a://lake/t", "s3a://lake/t/"]
    return {table: secateur.collect(s.spark, table).files_total for table in tables}


def values(i: int) -> dict[str, Any]:
    day = datetime.date(2024, 1, 1) + datetime.timedelta(days=i)
    moment = datetime.datetime(2024, 1, 1, i, tzinfo=datetime.timezone.utc)
    return {
        "b": pa.array([i, None, 100], pa.int8()),
        "ub": pa.array([i, 200, None], pa.uint8()),
        "us": pa.array([i, 60000, None], pa.uint16()),
        "s": pa.array([i, -5, 300], pa.int16()),
        "i": pa.array([i, -(2**31), 2**31 - 1], pa.int32()),
        "ui": pa.array([i, 2**32 - 1, 0], pa.uint32()),
        "l": pa.array([i, -(2**63), 2**63 - 1], pa.int64()),
        "ul": pa.array([i, 2**64 - 1, 0], pa.uint64()),
        "f": pa.array([i / 3, float("nan"), -0.0], pa.float32()),
        "d": pa.array([i / 3, float("inf"), None], pa.float64()),
        "day": pa.array([day, None, datetime.date(1500, 1, 1)], pa.date32()),
        "t": pa.array([moment, moment, None], pa.timestamp("us", "UTC")),
        "ntz": pa.array([moment.replace(tzinfo=None)] * 3, pa.timestamp("ms")),
        "small": pa.array([Decimal(i), None, Decimal("3.14")], pa.decimal128(7, 2)),
        "big": pa.array([Decimal(i), None, Decimal("3.14")], pa.decimal128(30, 2)),
        "text": pa.array([f"ü{i}", "", "z" * 100], pa.string()),
        "a.b`c": pa.array([i, None, None], pa.int64()),
        "none": pa.array([None] * 3, pa.int64()),
        "list": pa.array([[i], None, []], pa.list_(pa.int64())),
    }


def same_ranges(s: Stores, folder: Path) -> dict[str, Any]:
    """The range-sets that Spark's reader gives, and those that are read directly on this machine."""
    path = s.write("lake", "values", values)
    local = folder / "local" / "values"
    local.mkdir(parents=True)
    for file in (s.buckets / "lake" / "values").iterdir():
        (local / file.name).write_bytes(file.read_bytes())
    reports = [str(secateur.collect(s.spark, place, ranges=2)) for place in (path, str(local))]
    tables = []
    for place in (s.buckets / "lake" / "values", local):
        (segment,) = (place / "_secateur" / "v1").glob("_ranges-*")
        table = pq.read_table(segment).drop_columns(["mtime", "created_by"])
        tables.append({row["path"]: {k: repr(v) for k, v in row.items()} for row in table.to_pylist()})
    there, here = tables
    differ = {
        f"{path} {name}": [there[path].get(name), here[path].get(name)]
        for path in here
        for name in here[path].keys() | there[path].keys()
        if there[path].get(name) != here[path].get(name)
    }
    return {"reports": reports, "columns": len(here["part 0%é.parquet"]), "differ": differ}


def main(folder: Path, *only: str) -> None:
    log: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.append(record.getMessage())

    logging.getLogger("secateur").addHandler(Lines())
    with ExitStack() as stack:
        s = Stores(folder, stack)
        steps: dict[str, Callable[[], dict[str, Any]]] = {
            "t": lambda: parquet(s, "t"),
            "odd": lambda: parquet(s, ODD),
            "store": lambda: new_session_reads_the_store(s),
            "policies": lambda: policies(s),
            "read only": lambda: read_only(s, log),
            "dead": lambda: broken(s, "dead"),
            "denied": lambda: broken(s, "denied"),
            "throttled": lambda: throttled(s),
            "replaced": lambda: replaced(s),
            "formats": lambda: formats(s),
            "names": lambda: names(s),
            "ranges": lambda: same_ranges(s, folder),
        }
        for name, step in steps.items():
            if only and name not in only:
                continue
            started = time.monotonic()
            s.facts[name] = step()
            print(f"{name}, {time.monotonic() - started:.1f} s: {json.dumps(s.facts[name])}", flush=True)
        s.facts["decoy"] = s.decoy.requests
        s.facts["folders"] = s.folders_made()
        s.facts["log"] = log
        s.spark.stop()
        print("FACTS", json.dumps(s.facts), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
