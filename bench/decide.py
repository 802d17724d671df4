"""How long deciding takes: a million files, through the real pass.

    python -m bench.decide

Goals, stated before the numbers: at most 25 ms if every block has to be looked at, at most 5 ms if one block in a
thousand (here: one) survives the first step; at most 150 ms for the predicate of ``trails``, with ``altit`` a double,
an int or a decimal, and at most 1.3 times that if something slow and useless is added to it. Hot: the statistics are in
memory and have answered a query before, as for every query on a table but the first; the first is shown beside it, and
the processor's time, which other work on the machine disturbs less. The answer is checked, not only timed. The last
line is JSON with the context of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench import trails
from bench.report import report
from secateur.decision.parts import Keep
from secateur.passes.contract import PassInput
from secateur.passes.filter.filter import prune_by_filter
from secateur.passes.tuning import Tuning
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import And, Column, Compare, Expression, In, Literal, Value
from secateur.plan.nodes import Filter, Query, Scan
from secateur.plan.types import parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

FILES = 1_000_000
REPEATS = 20
ID = ScanColumn(1, "id", parse_type("bigint"))
SEEN = ScanColumn(2, "seen", parse_type("timestamp"))
NAME = ScanColumn(3, "name", parse_type("string"))


@dataclass(frozen=True, slots=True)
class Case:
    """A predicate over the synthetic table, the number of files that it must keep, and how fast it should be."""

    name: str
    condition: Expression
    keeps: int
    goal_ms: float | None = None
    columns: tuple[ScanColumn, ...] = (ID, SEEN, NAME)


def table(order: npt.NDArray[np.int64]) -> FileStats:
    """Files in which each column's range starts at ``10 * order`` and spans five."""
    low = 10 * order

    def load(column: ScanColumn) -> ColumnStats:
        pairs = [pa.array(low), pa.array(low + 5)]
        if column.type.name == "string":
            pairs = [pa.array([b"name-%09d" % v for v in edge.to_numpy()], pa.binary()) for edge in pairs]
        zeros, ones = pa.array(np.zeros(len(low), np.int64)), np.ones(len(low), np.bool_)
        return ColumnStats(pairs[0], pairs[1], zeros, pa.nulls(len(low), pa.int64()), ones, ones)

    return FileStats(pa.array(np.full(len(low), 1000)), pa.array(np.full(len(low), 10**6)), load)


def at_least(column: ScanColumn, value: Value) -> Expression:
    return Compare(">=", Column(column.id, column.name, column.type), Literal(value, column.type))


def below(column: ScanColumn, value: Value) -> Expression:
    return Compare("<", Column(column.id, column.name, column.type), Literal(value, column.type))


def every(*parts: Expression) -> Expression:
    whole = parts[0]
    for part in parts[1:]:
        whole = And(whole, part)
    return whole


def one_of(column: ScanColumn, values: list[Value]) -> Expression:
    return In(Column(column.id, column.name, column.type), tuple(values))


def decide(stats: FileStats, case: Case) -> int:
    """The number of files that the filter pass keeps; it may take as long as it likes."""
    scan = Scan(0, "lake.events", "parquet", "bench", case.columns, files=stats.count)
    whole = np.ones(stats.count, np.bool_)
    query = Query(1, "early", Filter(case.condition, scan))
    outcome = prune_by_filter(PassInput.of(query, {0: stats}, {0: whole}, Tuning(filter_seconds=60)))
    kept = next((part.files for _, part in outcome if isinstance(part, Keep)), whole)
    return int(np.count_nonzero(kept))


def timed(run: Callable[[], int]) -> tuple[float, float, int]:
    """Milliseconds by the clock and of the processor, and the answer."""
    start, start_cpu = perf_counter(), process_time()
    answer = run()
    return (perf_counter() - start) * 1000, (process_time() - start_cpu) * 1000, answer


def trail_runs() -> list[tuple[FileStats, Case]]:
    """The trails above 1,500 metres, alone and with a slow and useless conjunct; the answer is checked by hand."""
    files = trails.trails(FILES)
    name, *pattern = trails.marked()
    runs = []
    for type_ in trails.ALTIT:
        asked = [name, trails.high_enough(type_), *pattern]
        plain = Case(f"trails, altit {type_}", every(*asked), trails.kept(FILES), 150, trails.COLUMNS)
        slow = every(*asked, trails.slow_and_useless())
        runs += [(files, plain), (files, replace(plain, name=f"{plain.name}, slow one added", condition=slow))]
    return runs


def main() -> None:
    rng = np.random.default_rng(7)
    shuffled, ordered = table(rng.permutation(FILES)), table(np.arange(FILES))
    half, few, many = 5 * FILES, 10 * FILES - 1000, 10 * FILES // 5000
    name = b"name-%09d"
    wide = every(at_least(ID, half), at_least(SEEN, half // 2), below(NAME, name % few))
    dense = every(at_least(ID, 1000), at_least(SEEN, 2000), below(NAME, name % few))
    narrow = every(at_least(ID, few), at_least(SEEN, few), at_least(NAME, name % few))
    runs: list[tuple[FileStats, Case]] = [
        (shuffled, Case("unsorted, half of the files match", wide, FILES // 2 - 100, 25)),
        (shuffled, Case("unsorted, nearly all files match", dense, FILES - 300, 25)),
        (shuffled, Case("unsorted, 100 files match", narrow, 100, 25)),
        (ordered, Case("sorted, one block survives", narrow, 100, 5)),
        (shuffled, Case("unsorted, IN of 5,000 integers", one_of(ID, list(range(0, 10 * FILES, many))), 5000)),
        (
            shuffled,
            Case("unsorted, IN of 1,000 strings", one_of(NAME, [name % (v * 10000) for v in range(1000)]), 1000),
        ),
    ]
    runs += trail_runs()
    results = []
    print(f"{FILES:,} files, hot is the median of {REPEATS}\n")
    print(f"{'case':44}{'kept':>10}{'first ms':>11}{'hot ms':>9}{'cpu ms':>9}{'goal':>7}")
    for stats, case in runs:
        for column in case.columns:
            stats.column(column)
        fresh = FileStats(stats.rows, stats.sizes, stats.column)
        first, _, answer = timed(lambda f=fresh, c=case: decide(f, c))  # type: ignore[misc]
        times = [timed(lambda f=fresh, c=case: decide(f, c)) for _ in range(REPEATS)]  # type: ignore[misc]
        hot, cpu = (median(time[i] for time in times) for i in range(2))
        if answer != case.keeps:
            raise SystemExit(f"{case.name}: kept {answer} files, not {case.keeps}")
        goal = "" if case.goal_ms is None else f"{case.goal_ms:.0f}"
        print(f"{case.name:44}{answer:>10,}{first:>11.1f}{hot:>9.2f}{cpu:>9.2f}{goal:>7}")
        results.append(
            {
                "case": case.name,
                "first_ms": round(first, 2),
                "hot_ms": round(hot, 3),
                "cpu_ms": round(cpu, 3),
                "goal_ms": case.goal_ms,
            }
        )
    report("decide", files=FILES, results=results)


if __name__ == "__main__":
    main()
