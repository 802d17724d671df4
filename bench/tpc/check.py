"""All queries with and without secateur, on three formats: the same rows, and what it costs and saves.

    python -m bench.tpc.check --scale 1

Every query of TPC-H, TPC-DS and the cyclic schema runs twice on Parquet, a third of them on Delta and Iceberg. Rows are
compared, floats to nine digits, since the order of summation is Spark's choice; where the rows of a LIMIT differ, which
ties allow, all rows of the query without its LIMIT are. Exit status 1 if a query gives other rows, or fails.

A line a query: the files of its scans before and after, how many times fewer bytes (INPUTCUT), the milliseconds that
deciding took, and the time without secateur divided by that with it.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean, median, quantiles
from time import perf_counter
from typing import Any

from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.report import report
from bench.tpc.data import arguments, laid_out
from bench.tpc.queries import queries
from bench.tpc.tables import register

FORMATS = ("parquet", "delta", "iceberg")
LIMIT = re.compile(r"\blimit\s+\d+\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Result:
    """One query on one format: whether the rows are the same, and what was measured."""

    name: str
    problem: str = ""
    before: int = 0
    after: int = 0
    cut: float = 1.0
    decide: float = 0.0
    ratio: float = 1.0

    def __str__(self) -> str:
        if self.problem:
            return f"{self.name:32} WRONG  {self.problem}"
        files = f"{self.before:6} → {self.after:6} files"
        return f"{self.name:32} same   {files}, {self.cut:6.2f} x, {self.decide:6.1f} ms, {self.ratio:5.2f} x as fast"


def compare(
    spark: SparkSession, pruner: secateur.Pruner, name: str, text: str, *, plain_first: bool, repeats: int = 1
) -> Result:
    """Runs a query both ways, the fastest of some runs counts; as the second finds a warm JVM, let them take turns."""
    try:
        seen = pruner.last.query if pruner.last else 0
        fast, slow = math.inf, math.inf
        plain: list[Any] = []
        rows: list[Any] = []
        for at in range(2 * repeats):
            if plain_first == (at % 2 == 0):
                took, plain = _run_plain(spark, pruner, text)
                slow = min(slow, took)
            else:
                took, rows = _run(spark, text)
                fast = min(fast, took)
        summary = pruner.last
        if summary is None or summary.query == seen:
            return Result(name, "secateur did not see the query")
        reasons = [*summary.reasons, *(reason for scan in summary.scans for reason in scan.reasons)]
        failed = [reason for reason in reasons if reason.code.endswith("-failed")]
        if failed:
            return Result(name, f"secateur failed: {failed[0].text}"[:300])
        if not same(plain, rows):
            if not LIMIT.search(text):
                return Result(name, f"{len(plain)} rows against {len(rows)}, different: {first(plain, rows)}"[:300])
            whole = LIMIT.sub("", text)
            plain, rows = _run_plain(spark, pruner, whole)[1], _run(spark, whole)[1]
            if not same(plain, rows):
                return Result(name, f"without its LIMIT {len(plain)} rows against {len(rows)}")
        total = sum(scan.bytes_total or 0 for scan in summary.scans)
        kept = sum(scan.bytes_kept if scan.bytes_kept is not None else scan.bytes_total or 0 for scan in summary.scans)
        cut = max(total, 1) / max(kept, 1)
        return Result(name, "", summary.files_total, summary.files_kept, cut, summary.planning.total, slow / fast)
    except Exception as error:
        return Result(name, f"{type(error).__name__}: {str(error).splitlines()[0][:160]}")


def _run(spark: SparkSession, text: str) -> tuple[float, list[Any]]:
    start = perf_counter()
    rows = spark.sql(text).collect()
    return perf_counter() - start, rows


def _run_plain(spark: SparkSession, pruner: secateur.Pruner, text: str) -> tuple[float, list[Any]]:
    with pruner.paused():
        return _run(spark, text)


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two answers have the same rows, in any order."""
    return len(one) == len(other) and first(one, other) is None


def first(one: Sequence[Any], other: Sequence[Any]) -> tuple[Any, Any] | None:
    """The first rows that differ."""
    pairs = zip(sorted(map(tuple, one), key=_key), sorted(map(tuple, other), key=_key), strict=False)
    return next(((a, b) for a, b in pairs if not all(map(_close, a, b))), None)


def _key(row: tuple[Any, ...]) -> tuple[str, ...]:
    # Numbers that are computed come last, so that a last digit does not put rows in another order.
    exact = tuple(repr(value) for value in row if not isinstance(value, float | Decimal))
    return exact + tuple(f"{value:.6g}" for value in row if isinstance(value, float | Decimal))


def _close(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return bool(a == b)


def chosen(name: str, kind: str, only: set[int]) -> Iterator[tuple[int, str]]:
    """All queries on Parquet, a third of them on the others."""
    for place, (number, text) in enumerate(queries(name).items()):
        if (not only or number in only) and (kind == "parquet" or only or place % 3 == 0):
            yield number, text


def main() -> None:
    parser = arguments("Compares answers with and without secateur.")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--layouts", default="tuned")
    parser.add_argument("--only", default="", help="numbers of queries")
    parser.add_argument("--repeats", type=int, default=1, help="how often each query runs each way")
    parser.add_argument("--ranges", type=int, default=20, help="ranges a column and file of Parquet tables, 0: none")
    wanted = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    formats = wanted.formats.split(",")
    only = {int(number) for number in wanted.only.split(",") if number}
    # Plain Spark runs out of memory in query 10 of TPC-DS with 2 GB, when it broadcasts, and may in query 72 with 4 GB.
    memory = {"spark.driver.memory": "6g"}
    spark = local_session("tpc", str(wanted.home) if formats != ["parquet"] else None, memory)
    pruner = secateur.attach(spark, {"stats.auto": False})
    results: list[Result] = []
    for name in wanted.sets.split(","):
        for layout in wanted.layouts.split(","):
            folder = laid_out(name, layout, wanted.scale, wanted.files, wanted.home)
            for kind in formats:
                register(spark, folder, kind, wanted.home, wanted.ranges or None)
                for number, text in chosen(name, kind, only):
                    label, plain_first = f"{name} {number} {layout} {kind}", len(results) % 2 == 0
                    results.append(compare(spark, pruner, label, text, plain_first=plain_first, repeats=wanted.repeats))
                    print(results[-1], flush=True)
    wrong = [result.name for result in results if result.problem]
    good = [result for result in results if not result.problem]
    if good:
        decide = [result.decide for result in good]
        faster = math.exp(fmean(math.log(result.ratio) for result in good))
        late = quantiles(decide, n=10)[-1] if len(decide) > 1 else decide[0]
        print(f"\n{len(good)} the same, {len(wrong)} not; {faster:.2f} x as fast (geometric mean), deciding took")
        print(f"{median(decide):.1f} ms (median), {late:.1f} ms (90th percentile)")
        worst = min(good, key=lambda result: result.ratio)
        report("tpc", scale=wanted.scale, same=len(good), wrong=wrong, faster=faster, worst=[worst.name, worst.ratio])
    spark.stop()
    if wrong:
        sys.exit(f"other rows, or none: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
