"""INPUTCUT: how many times fewer bytes a query reads, per query, layout and kind of statistics.

    python -m bench.inputcut --scale 0.1 --picture docs/inputcut.svg

The input of a query are the files of all its scans; a table that is read twice counts twice. Queries are planned, never
run. Three ways to prune are compared on the same tables, one after the other:

=================  =================================================================================================
filters only       each table by its own conditions (pass ``filter``) zone maps          and by what the files of
joining tables can hold by their bounds (passes ``filter`` and ``join_ranges``) range-sets         the same with up to
20 ranges a file and column (pass ``ranges`` as well), small tables row by row
=================  =================================================================================================

Goals, after the paper on data-induced predicates: over layouts half of the queries at 1.5 or more, 40 percent at 2 or
more. Its marks are those of its figure 14, over seven layouts of 100 GB to 1 TB.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

from pyspark.sql import SparkSession
from tools.sessions import local_session

import secateur
from bench.cdf import Panel, draw
from bench.report import report
from bench.tpc.data import LAYOUTS, SETS, arguments, laid_out
from bench.tpc.queries import queries
from bench.tpc.tables import register

WAYS = {
    "filters only": "manifests,filter",
    "zone maps": "manifests,filter,join_ranges",
    "range-sets": "manifests,filter,range_sets,join_ranges",
}
TITLES = {"tpch": "TPC-H", "tpch_skewed": "TPC-H, zipf 2", "tpcds": "TPC-DS", "cyclic": "cyclic joins"}
TPCH_MARKS = ((2.0, 0.40), (8.0, 0.20), (10.0, 0.19))
MARKS = {
    "tpch": TPCH_MARKS,
    "tpch_skewed": TPCH_MARKS,
    "tpcds": ((2.0, 0.40), (4.5, 0.20), (10.0, 0.05)),
    "cyclic": ((2.0, 0.40), (2.5, 0.20), (10.0, 0.02)),
}
"""How many of the paper's queries had an INPUTCUT of at least so much."""
PAPER = {"tpcds": (*range(1, 41), *range(90, 100))}
"""The queries that the paper chose of a set, if not all."""


def measure(spark: SparkSession, pruner: secateur.Pruner, way: str, name: str) -> tuple[list[float], list[float]]:
    """INPUTCUT and the milliseconds of deciding, for every query of a set; the first ones load what is known."""
    spark.conf.set("spark.secateur.passes", WAYS[way])
    cuts, times = [], []
    for text in queries(name).values():
        summary = pruner.explain(text)
        total = sum(scan.bytes_total or 0 for scan in summary.scans)
        kept = sum(scan.bytes_kept if scan.bytes_kept is not None else scan.bytes_total or 0 for scan in summary.scans)
        cuts.append(max(total, 1) / max(kept, 1))
        times.append(summary.planning.total)
    return cuts, times


def share(cuts: list[float], least: float) -> float:
    """How many of them are at least so much."""
    return sum(cut >= least for cut in cuts) / max(len(cuts), 1)


def shares(cuts: list[float]) -> str:
    """How many of them are at least 1.5, 2 and 10, in words."""
    return ", ".join(f"{share(cuts, least):4.0%} at {least:g} or more" for least in (1.5, 2, 10))


def main() -> None:
    parser = arguments("Measures how many bytes queries need not read.", 0.1)
    parser.add_argument("--layouts", default=",".join(LAYOUTS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--results", type=Path, help="a JSON file to which the results are added")
    parser.add_argument("--picture", type=Path, help="an SVG file to draw")
    wanted = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    if wanted.results and wanted.results.exists():
        found = json.loads(wanted.results.read_text())
    spark = local_session("inputcut")
    decide: dict[str, list[float]] = {way: [] for way in WAYS}
    for name in filter(None, wanted.sets.split(",")):
        for layout in wanted.layouts.split(","):
            folder = laid_out(name, layout, wanted.scale, wanted.files, wanted.home)
            store = tempfile.mkdtemp()  # of its own, since range-sets must not be there at first
            # Other work on the machine is not to decide what is pruned; how long it takes is told at the end.
            options = {"stats.auto": False, "stats.dir": store, "history": 10, "budget.ms": 60_000}
            pruner = secateur.attach(spark, {**options, "filter.budget.ms": 10_000})
            for way in wanted.ways.split(","):
                register(spark, folder, "parquet", wanted.home, 20 if way == "range-sets" else None)
                cuts, times = measure(spark, pruner, way, name)
                found.setdefault(name, {}).setdefault(layout, {})[way] = cuts
                decide[way] += times
                print(f"{name:12} {layout:9} {way:13} median {median(cuts):6.2f}; {shares(cuts)}", flush=True)
            pruner.detach()
            shutil.rmtree(store, ignore_errors=True)
            if wanted.results:
                wanted.results.write_text(json.dumps(found))
    spark.stop()
    print()
    for name, layouts in found.items():
        for way in WAYS:
            cuts = [cut for ways in layouts.values() for cut in ways[way]]
            print(f"{TITLES[name]:14} {len(layouts)} layouts, {way:13} {shares(cuts)}")
            if name in PAPER:
                cuts = [ways[way][number - 1] for ways in layouts.values() for number in PAPER[name]]
                print(f"{'':14} the paper's {len(PAPER[name])} of them, {shares(cuts)}")
    for way, times in decide.items():
        if len(times) > 1:
            print(f"deciding, {way:13} {median(times):6.1f} ms (median), {quantiles(times, n=10)[-1]:6.1f} ms (90th)")
    if wanted.picture:
        panels = []
        for name in (n for n in SETS if n in found):
            lines = {way: [c for ways in found[name].values() for c in ways[way]] for way in WAYS}
            panels.append(Panel(TITLES[name], lines, MARKS[name]))
        most = max(map(len, found.values()))
        title = f"INPUTCUT: queries that read at least so many times less, {most} layouts, scale {wanted.scale:g}"
        wanted.picture.write_text(draw(panels, title))
    report("inputcut", scale=wanted.scale, files=wanted.files, decide={w: median(t) for w, t in decide.items() if t})


if __name__ == "__main__":
    main()
