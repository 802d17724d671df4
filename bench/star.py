"""Join pruning while the query runs: what the keys of a small side spare of a large one, beside the paper's 79 percent.

    python -m bench.star [--files 3000] [--repeats 5]

A fact table with a key into a dimension, in files sorted by that key. A condition on the dimension that no statistics
can judge leaves some of its rows:

=============  ======================================================================================
correlated     one in fifty, whose keys lie side by side: fact and dimension are laid out alike
uncorrelated   one in a thousand, their keys anywhere
many           one in fifty, their keys anywhere
tiny           three rows
=============  ======================================================================================

and *shuffled* is one in a thousand again, with the rows of the fact table in no order: nothing can be spared, and what
is measured is what asking for nothing costs. The paper is Snowflake's on pruning, whose figure is an average over the
queries to which it applies. Answers are compared, both sides take turns. The last line is JSON.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import mean, median
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.report import report

KEYS, ROWS = 100_000, 500
PAPER = 0.79
QUERY = "SELECT count(*), sum(v) FROM {} JOIN dim ON f_key = key WHERE {} LIKE '%yes'"
CASES = {
    "correlated": ("fact", "side_by_side"),
    "uncorrelated": ("fact", "few"),
    "many": ("fact", "many"),
    "tiny": ("fact", "three"),
    "shuffled": ("shuffled", "few"),
}


def write(home: Path, files: int) -> None:
    """The dimension and the fact table, once sorted by key and once in no order."""
    rng = np.random.default_rng(7)
    order = np.arange(KEYS)
    chosen = {
        "side_by_side": order // (KEYS // 50) == 17,
        "few": rng.permutation(KEYS) < KEYS // 1000,
        "many": rng.permutation(KEYS) < KEYS // 50,
        "three": rng.permutation(KEYS) < 3,
    }
    dim = pa.table({"key": order, **{name: _texts(is_one) for name, is_one in chosen.items()}})
    (home / "dim").mkdir()
    for at in range(20):
        pq.write_table(dim.slice(at * KEYS // 20, KEYS // 20), home / "dim" / f"{at:03}.parquet")
    keys = np.sort(rng.integers(0, KEYS, files * ROWS))
    for name, drawn in (("fact", keys), ("shuffled", rng.permutation(keys))):
        (home / name).mkdir()
        values = rng.integers(0, 1000, len(drawn))
        for at in range(files):
            part = slice(at * ROWS, (at + 1) * ROWS)
            table = {"f_key": drawn[part], "v": values[part], "note": [f"note {v}" for v in values[part]]}
            pq.write_table(pa.table(table), home / name / f"{at:05}.parquet")


def _texts(chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.str_]:
    """Texts whose bounds are the same in every file."""
    ends = np.arange(KEYS) % 100
    return np.where(chosen, "is yes", np.where(ends == 0, "a no", np.where(ends == 99, "z no", "is no")))


def measure(spark: SparkSession, pruner: secateur.Pruner, query: str, repeats: int) -> tuple[int, int, float]:
    """The files of the fact table before and after, and how many times faster the query is."""
    fast, slow = [], []
    for _ in range(repeats):
        start = perf_counter()
        rows = spark.sql(query).collect()
        fast.append(perf_counter() - start)
        with pruner.paused():
            start = perf_counter()
            plain = spark.sql(query).collect()
            slow.append(perf_counter() - start)
        assert rows == plain, query
    assert pruner.last is not None
    fact = max(pruner.last.scans, key=lambda scan: scan.files_total or 0)
    left = [fact.files_kept, *(step.files_after for step in fact.runtime)]
    return fact.files_total or 0, min(files for files in left if files is not None), median(slow) / median(fast)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures join pruning at run time.")
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=5)
    wanted = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as home:
        write(Path(home), wanted.files)
        spark = local_session("star")
        pruner = secateur.attach(spark, {"stats.auto": False})
        for name in ("dim", "fact", "shuffled"):
            secateur.collect(spark, f"{home}/{name}")
            spark.read.parquet(f"{home}/{name}").createOrReplaceTempView(name)
        for name, (table, column) in CASES.items():
            before, after, ratio = measure(spark, pruner, QUERY.format(table, column), wanted.repeats)
            spared = 1 - after / before
            found[name] = {"files": after, "spared": round(spared, 4), "times": round(ratio, 2)}
            print(
                f"{name:13} {before:6,} → {after:5,} files ({spared:6.1%} spared), {ratio:5.2f} x as fast", flush=True
            )
        spark.stop()
    average = mean(case["spared"] for name, case in found.items() if name != "shuffled")
    print(f"average where it applies: {average:.0%}; the paper: {PAPER:.0%}")
    report("star", files=wanted.files, cases=found, average=round(average, 4))


if __name__ == "__main__":
    main()
