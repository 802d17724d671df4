"""How long it takes that joining tables tell each other what they hold, before the query runs.

    python -m bench.joins

Goals, stated before the numbers: a median over the queries of at most 20 ms with 1,000 files a table, of 150 ms with
100,000. Hot: the statistics are in memory and have answered a query before. The queries: TPC-H 17, with a group-by
between; a star of a fact table with four dimensions; a snowflake; a triangle; and a chain by strings. The large tables
are clustered by one join key and spread over the others. The answer is checked, not only timed. The last line is JSON
with the context of the run. Times are the processor's, which other work on the machine disturbs less.
"""

from __future__ import annotations

from statistics import median
from time import process_time

import numpy as np
import pyarrow as pa

from bench.report import report
from secateur.decision.parts import Keep
from secateur.decision.records import JoinRecord
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.joins.join_ranges import prune_by_join_ranges
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Alias, And, Column, Compare, Expression
from secateur.plan.nodes import Aggregate, Join, Plan, Query, Scan
from secateur.plan.types import parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

COUNTS = (1_000, 100_000)
GOALS = {1_000: 20.0, 100_000: 150.0}
REPEATS = 15
BIGINT, STRING = parse_type("bigint"), parse_type("string")


class Tables:
    """Scans with made-up statistics; the first column of each is clustered, the others are spread by a fixed stride."""

    def __init__(self, files: int) -> None:
        self.files, self.next_id = files, 1
        self.stats: dict[int, FileStats] = {}
        self.kept: dict[int, Mask] = {}

    def scan(self, name: str, *columns: str, kept: float = 1.0, strings: bool = False) -> tuple[Scan, list[Column]]:
        """A table of which a share of the files was kept by filters."""
        type_ = STRING if strings else BIGINT
        read = tuple(ScanColumn(self.next_id + i, column, type_) for i, column in enumerate(columns))
        scan = Scan(self.next_id, name, "parquet", name, read, files=self.files)
        self.next_id += len(read)
        order = np.arange(self.files)
        lows = {c.name: (order if i == 0 else (order * 7919) % self.files) * 10 for i, c in enumerate(read)}
        nulls, exact = pa.array(np.zeros(self.files, np.int64)), np.ones(self.files, np.bool_)

        def load(column: ScanColumn) -> ColumnStats:
            ends = [pa.array(lows[column.name] + step) for step in (0, 9)]
            if strings:
                ends = [pa.array([b"key-%010d" % v for v in end.to_numpy()], pa.binary()) for end in ends]
            return ColumnStats(ends[0], ends[1], nulls, nulls, exact, exact)

        rows = pa.array(np.full(self.files, 1000))
        self.stats[scan.id] = FileStats(rows, rows, load)
        mask = np.zeros(self.files, np.bool_)
        mask[:: max(1, round(1 / kept))] = True
        self.kept[scan.id] = mask
        return scan, [Column(c.id, c.name, c.type) for c in read]

    def ask(self, plan: Plan) -> PassResult:
        return prune_by_join_ranges(PassInput.of(Query(1, "late", plan), self.stats, self.kept))


def inner(left: Plan, right: Plan, *pairs: tuple[Expression, Expression]) -> Join:
    first, *rest = (Compare("=", a, b) for a, b in pairs)
    condition: Expression = first
    for other in rest:
        condition = And(condition, other)
    return Join("Inner", condition, left, right)


def tpch_17(t: Tables) -> Plan:
    part, (partkey,) = t.scan("part", "p_partkey", kept=0.02)
    item, (key,) = t.scan("lineitem", "l_partkey")
    again, (key2,) = t.scan("lineitem again", "l_partkey")
    grouped = Aggregate((key2,), (Alias(900, "k", key2, BIGINT),), again)
    return inner(inner(item, part, (key, partkey)), grouped, (partkey, Column(900, "k", BIGINT)))


def star(t: Tables) -> Plan:
    fact, keys = t.scan("fact", "a", "b", "c", "d")
    plan: Plan = fact
    for i, key in enumerate(keys):
        dim, (primary,) = t.scan(f"dim{i}", "key", kept=(0.02, 1.0, 0.1, 1.0)[i])
        plan = inner(plan, dim, (key, primary))
    return plan


def snowflake(t: Tables) -> Plan:
    fact, (a, b) = t.scan("fact", "a", "b")
    orders, (o_key, o_cust) = t.scan("orders", "o", "c")
    customer, (c_key, c_nation) = t.scan("customer", "c", "n")
    nation, (n_key,) = t.scan("nation", "n", kept=0.02)
    part, (p_key,) = t.scan("part", "p", kept=0.1)
    plan: Plan = inner(inner(customer, nation, (c_nation, n_key)), orders, (c_key, o_cust))
    return inner(inner(fact, plan, (a, o_key)), part, (b, p_key))


def triangle(t: Tables) -> Plan:
    r, (ra, rc) = t.scan("r", "a", "c", kept=0.1)
    s, (sa, sb) = t.scan("s", "a", "b")
    u, (ub, uc) = t.scan("t", "b", "c")
    return inner(inner(r, s, (ra, sa)), u, (sb, ub), (rc, uc))


def strings(t: Tables) -> Plan:
    one, (a,) = t.scan("one", "name", kept=0.02, strings=True)
    two, (b,) = t.scan("two", "name", strings=True)
    three, (c,) = t.scan("three", "name", strings=True)
    return inner(inner(one, two, (a, b)), three, (b, c))


def _kept(outcome: PassResult) -> dict[int, Mask]:
    return {id_: part.files for id_, part in outcome if isinstance(part, Keep)}


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    for files in COUNTS:
        print(f"{files:,} files a table; goal for the median of the queries: {GOALS[files]:.0f} ms")
        times = found[str(files)] = {}
        for make in (tpch_17, star, snowflake, triangle, strings):
            tables = Tables(files)
            plan = make(tables)
            outcome = tables.ask(plan)
            assert any(mask.sum() < tables.kept[id_].sum() for id_, mask in _kept(outcome).items()), make.__name__
            runs = []
            for _ in range(REPEATS):
                start = process_time()
                tables.ask(plan)
                runs.append((process_time() - start) * 1000)
            times[make.__name__] = round(median(runs), 2)
            left = ", ".join(
                f"{join.sender} → {join.files_after:,}"
                for join in [part for _, part in outcome if isinstance(part, JoinRecord)][:3]
            )
            print(f"  {make.__name__:10} {median(runs):8.1f} ms   ({left})")
        print(f"  median     {median(times.values()):8.1f} ms")
    report("joins", ms=found)


if __name__ == "__main__":
    main()
