"""What secateur adds to the planning of small queries and of TPC-DS: time, calls and bytes on the wire.

    python -m bench.planning                       this tree
    python -m bench.planning --against HEAD~20     this tree and another revision, in turns within the same run

Each tree has a process with a Spark of its own. They plan the same queries in turns, round after round, and nothing is
read. The first round is a warm-up and does not count. A call is one question of the JVM to Python; bytes are those of
the questions and of the answers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SMALL = 200
FILES = 300
WHAT = ("total", "jvm", "wire", "python")


def small_queries(folder: str) -> list[str]:
    """Filters as dashboards send them, over a table of 300 files."""
    shapes = (
        "SELECT count(*) FROM parquet.`{t}` WHERE a = {n}",
        "SELECT b FROM parquet.`{t}` WHERE a BETWEEN {n} AND {n} + 9 AND b IS NOT NULL",
        "SELECT a, count(*) FROM parquet.`{t}` WHERE reverse(s) = '{n}n' GROUP BY a",
        "SELECT * FROM parquet.`{t}` WHERE a > {n} ORDER BY a LIMIT 10",
    )
    return [shapes[i % len(shapes)].format(t=folder, n=i * 7) for i in range(SMALL)]


def work(home: Path, store: Path, scale: float, files: int) -> None:
    """Plans a round of queries for every line that comes in, and writes what it took."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from tools.sessions import local_session

    import secateur
    from bench.tpc.data import laid_out
    from bench.tpc.queries import queries
    from bench.tpc.tables import register

    spark = local_session("planning", None, {"spark.driver.memory": "3g"})
    folder = home / "small"
    if not folder.exists():
        folder.mkdir(parents=True)
        for i in range(FILES):
            rows = range(i * 10, i * 10 + 10)
            data = {"a": list(rows), "b": [n % 7 for n in rows], "s": [f"n{i}"] * 10}
            pq.write_table(pa.table(data), folder / f"{i}.parquet")
    pruner = secateur.attach(spark, {"stats.auto": False, "stats.dir": str(store), "budget.ms": 60_000})
    secateur.collect(spark, str(folder))
    sets = {"small": small_queries(str(folder))}
    if scale:
        register(spark, laid_out("tpcds", "date", scale, files, home), "parquet", home, 20)
        sets["tpcds"] = list(queries("tpcds").values())
        sets["tpcds 64"] = [queries("tpcds")[64]]
    wire: list[tuple[int, int]] = []
    answer = pruner._callback._answer

    def noted(request: str) -> str:
        reply = answer(request)
        wire.append((len(request), len(reply)))
        return reply

    pruner._callback._answer = noted
    for name in sys.stdin:
        found: dict[str, list[float]] = {what: [] for what in (*WHAT, "calls", "sent", "received")}
        for text in sets[name.strip()]:
            wire.clear()
            spark.sql(text)._jdf.queryExecution().executedPlan()
            summary = pruner.last
            assert summary is not None
            for what in WHAT:
                found[what].append(getattr(summary.planning, what))
            found["calls"].append(len(wire))
            found["sent"].append(sum(sent for sent, _ in wire))
            found["received"].append(sum(received for _, received in wire))
        print(json.dumps(found), flush=True)


class Worker:
    """A process that plans with the package of one tree."""

    def __init__(self, source: Path, home: Path, store: Path, scale: float, files: int) -> None:
        path = os.pathsep.join((str(source / "src"), str(ROOT)))
        command = [sys.executable, "-m", "bench.planning", "--work", "--scale", str(scale)]
        command += ["--home", str(home), "--store", str(store), "--files", str(files)]
        self._process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def round(self, name: str) -> dict[str, list[float]]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(name + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith('{"total"'):
                found: dict[str, list[float]] = json.loads(line)
                return found
        raise SystemExit("a process that plans has ended, see above")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def tree_of(revision: str) -> Iterator[Path]:
    """Another revision, checked out for as long as it is needed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", str(place), revision], cwd=ROOT, check=True)
        try:
            yield place
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=True)


def figures(rounds: list[dict[str, list[float]]]) -> dict[str, float]:
    """Milliseconds are the median over queries and rounds; calls and bytes are means, the same in every round."""
    every = {what: [value for one in rounds for value in one[what]] for what in rounds[0]}
    return {what: round(median(v) if what in WHAT else mean(v), 2) for what, v in every.items()}


def compare(trees: dict[str, Path], home: Path, scale: float, repeats: int, files: int) -> dict[str, Any]:
    """The figures of every tree, by the set of queries."""
    stores = {name: home / f"store-{i}" for i, name in enumerate(trees)}
    workers = {name: Worker(source, home, stores[name], scale, files) for name, source in trees.items()}
    results: dict[str, Any] = {}
    for queries in ("small", *(("tpcds", "tpcds 64") if scale else ())):
        rounds: dict[str, list[dict[str, list[float]]]] = {name: [] for name in workers}
        for _ in range(repeats + 1):
            for name, worker in workers.items():
                rounds[name].append(worker.round(queries))
        results[queries] = {name: figures(found[1:]) for name, found in rounds.items()}
        for name, found in results[queries].items():
            print(f"{queries:10} {name:12} {found}", flush=True)
    for worker in workers.values():
        worker.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures what deciding adds to planning.")
    parser.add_argument("--against", help="a revision to compare with, in the same run")
    parser.add_argument("--scale", type=float, default=0.0, help="of TPC-DS, 0 for small queries alone")
    parser.add_argument("--files", type=int, default=100, help="of each fact table of TPC-DS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--home", type=Path, default=Path(tempfile.gettempdir()) / "secateur-planning")
    parser.add_argument("--store", type=Path, default=Path(), help=argparse.SUPPRESS)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.work:
        work(wanted.home, wanted.store, wanted.scale, wanted.files)
        return
    if wanted.against is None:
        results = compare({"this": ROOT}, wanted.home, wanted.scale, wanted.repeats, wanted.files)
    else:
        with tree_of(wanted.against) as other:
            results = compare(
                {wanted.against: other, "this": ROOT}, wanted.home, wanted.scale, wanted.repeats, wanted.files
            )
    print("\n" + json.dumps({"bench": "planning", "scale": wanted.scale, **results}))


if __name__ == "__main__":
    main()
