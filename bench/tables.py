"""Writes the tables of docs/measurements.md that have a record: ``python -m bench.tables``.

A table stands between ``<!-- record: joins -->`` and ``<!-- end -->``. The newest record of that measurement is shown,
with when and on what it was taken.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.report import RECORDS

PAGE = Path(__file__).parent.parent / "docs" / "measurements.md"
_PLACE = re.compile(r"<!-- record: ([a-z.]+) -->\n.*?<!-- end -->", re.DOTALL)
Record = dict[str, Any]


def page(text: str, folder: Path = RECORDS) -> str:
    """The page with every table written anew."""

    def table(place: re.Match[str]) -> str:
        record = newest(place[1], folder)
        return f"<!-- record: {place[1]} -->\n{TABLES[place[1]](record)}\n\n{taken(record)}\n<!-- end -->"

    return _PLACE.sub(table, text)


def newest(bench: str, folder: Path = RECORDS) -> Record:
    """The last record of a measurement."""
    records = sorted(folder.glob(f"{bench}-*.json"))
    if not records:
        raise FileNotFoundError(f"{folder} has no record of {bench}: run RECORD=1 python -m bench.{bench}")
    found: Record = json.loads(records[-1].read_text())
    return found


def taken(record: Record) -> str:
    """When and on what.

    >>> c = {"date": "2026-05-01T10:00:00", "commit": "abc", "pyspark": "4.1.4", "java": "17", "python": "3.11.7"}
    >>> print(taken({"context": {**c, "pyarrow": "26.0.1", "cpus": 2, "load": 3.1}}))
    *Recorded 2026-05-01, commit abc, PySpark 4.1.4, Java 17, Python 3.11.7, pyarrow
    26.0.1, 2 cores, load 3.1.*
    """
    c = record["context"]
    return textwrap.fill(
        f"*Recorded {c['date'][:10]}, commit {c['commit']}, PySpark {c['pyspark']}, Java {c['java']}, "
        f"Python {c['python']}, pyarrow {c['pyarrow']}, {c['cpus']} cores, load {c['load']}.*",
        98,
    )


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _joins(record: Record) -> str:
    names = {
        "tpch_17": "TPC-H 17: two uses of lineitem, a group-by between",
        "star": "a star of a fact table with four dimensions",
        "snowflake": "a snowflake of five tables",
        "triangle": "a triangle",
        "strings": "three tables by strings",
    }
    few, many = record["ms"]["1000"], record["ms"]["100000"]
    rows = [(names[name], f"{few[name]:.1f}", f"{many[name]:.1f}") for name in few]
    rows.append(("median (goal: 20, 150)", f"{median(few.values()):.1f}", f"{median(many.values()):.1f}"))
    return _markdown(("query", "1,000 files a table, ms", "100,000 files a table, ms"), rows)


def _star(record: Record) -> str:
    names = {
        "correlated": "one in fifty, side by side",
        "uncorrelated": "one in a thousand, anywhere",
        "many": "one in fifty, anywhere",
        "tiny": "three rows",
        "shuffled": "one in a thousand, but the fact table is in no order",
    }
    rows = [
        (
            names.get(name, name),
            f"{record['files']:,} → {case['files']:,}",
            f"{case['spared']:.1%}",
            f"{case['times']:.1f}",
        )
        for name, case in record["cases"].items()
    ]
    rows.append(("average where it applies", "", f"{record['average']:.0%}", ""))
    return _markdown(("what the condition leaves of the dimension", "files", "skipped", "times as fast"), rows)


TABLES: dict[str, Callable[[Record], str]] = {"joins": _joins, "star": _star}

if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
