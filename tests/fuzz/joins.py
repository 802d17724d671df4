"""Random join trees over small tables, with data-induced predicates and without: the same rows have to come out.

``python -m tests.fuzz.joins 300`` runs three hundred of them; the second argument is the seed. The trees have all kinds
of joins, cycles, the same table several times, keys of several types and widths, keys that are computed, NULLs, NaN and
-0.0 among them, and between the joins groups, unions, windows, limits, IN, EXISTS and NOT IN, scalar subqueries.
The tables are clustered, so that many of the trees do skip files; one file of one table has no statistics, one table
has a file of nothing but NULL keys, and one has no rows at all. Two of them are known row by row.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur.passes.joins import join_keys
from tests.fuzz.__main__ import session

_REFUSED = (PySparkException, Py4JJavaError)
_FILES = 8
_ROWS = 6
KINDS = {
    "k": "int",
    "l": "bigint",
    "h": "smallint",
    "d": "double",
    "s": "string",
    "t": "date",
    "m": "decimal(9,2)",
    "b": "boolean",
    "v": "int",
}
_INTEGERS = ("smallint", "int", "bigint")


@dataclass
class Tally:
    """What came of the trees of one campaign."""

    run: int = 0
    refused: int = 0
    narrowed: int = 0
    asked: int = 0
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.run} run, {self.narrowed} narrowed by joins, {self.asked} at run time, {self.refused} refused, "
            f"{len(self.wrong)} wrong"
        )


def write_tables(spark: SparkSession, folder: Path, seed: str) -> list[str]:
    """Five tables and their statistics."""
    random = Random(f"joins {seed}")
    names = ["one", "two", "three", "four", "none"]
    types = {
        "k": pa.int32(),
        "l": pa.int64(),
        "h": pa.int16(),
        "d": pa.float64(),
        "s": pa.string(),
        "t": pa.date32(),
        "m": pa.decimal128(9, 2),
        "b": pa.bool_(),
        "v": pa.int32(),
    }
    schema = pa.schema(list(types.items()))
    for name in names:
        (folder / name).mkdir()
        count = 1 if name == "none" else _FILES
        for i in range(count):
            rows = [_row(random, i) for _ in range(0 if name == "none" else _ROWS)]
            if name == "three" and i == 3:
                rows = [{**row, "k": None, "d": None, "s": None} for row in rows]
            table = pa.Table.from_pylist(rows, schema=schema)
            if name == "two" and i == 5:
                continue
            pq.write_table(table, folder / name / f"{i}.parquet")
        secateur.collect(spark, str(folder / name), ranges=3 if name in ("two", "three") else None)
        if name == "two":  # after its statistics were collected
            rows = [_row(random, 5) for _ in range(_ROWS)]
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / name / "late.parquet")
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    return names


def _row(random: Random, file: int) -> dict[str, Any]:
    """Keys near the number of the file, some of them NULL or odd; v is the number of the file."""

    def key(spread: int = 5) -> int | None:
        return None if random.random() < 0.08 else file * 10 + random.randrange(spread)

    number, text, day, cents = key(), key(), key(3), key()
    odd = {0: float("nan"), 1: -0.0, 2: 0.0}.get(random.randrange(50), None if number is None else number / 2)
    return {
        "k": key(),
        "l": key(),
        "h": key(8),
        "d": odd,
        "s": None if text is None else f"x{text:02}",
        "t": None if day is None else date(2024, 1, 1) + timedelta(day),
        "m": None if cents is None else Decimal(cents) + Decimal("0.50"),
        "b": None if number is None else file % 2 == 0,
        "v": file,
    }


@dataclass(frozen=True)
class Relation:
    """A subquery and its columns with their types."""

    sql: str
    columns: tuple[tuple[str, str], ...]


class Trees:
    """Makes one random query after the other."""

    def __init__(self, random: Random, tables: Sequence[str]) -> None:
        self.random, self.tables, self.names = random, tables, 0

    def query(self) -> str:
        """A whole query: its rows as a count and a sum of hashes, for there may be many."""
        tree = self.relation(self.random.choice((2, 2, 3, 3, 4)))
        columns = ", ".join(name for name, _ in tree.columns)
        return f"SELECT count(*), sum(CAST(xxhash64({columns}) AS decimal(38,0))) FROM ({tree.sql})"

    def relation(self, depth: int) -> Relation:
        if depth == 0:
            return self.leaf()
        make = self.random.choices(
            [self.join, self.chain, self.grouped, self.union, self.windowed, self.tested, self.limited, self.computed],
            [10, 4, 2, 2, 1, 3, 1, 2],
        )[0]
        return make(depth)

    def name(self) -> str:
        self.names += 1
        return f"c{self.names}"

    def leaf(self) -> Relation:
        chosen = self.random.sample(sorted(KINDS), self.random.randint(3, 5))
        columns = tuple((self.name(), KINDS[source], source) for source in chosen)
        selected = ", ".join(f"{source} AS {name}" for name, _, source in columns)
        table = self.random.choice([*(list(self.tables[:-1]) * 6), self.tables[-1]])
        at = self.random.randrange(8)
        tests = ["", "", f" WHERE v = {at}", f" WHERE v > {at}", f" WHERE v IN (1, {at})", " WHERE k < 30"]
        where = self.random.choice(tests)
        return Relation(f"SELECT {selected} FROM {table}{where}", tuple((n, t) for n, t, _ in columns))

    def pairs(self, left: Relation, right: Relation) -> list[tuple[str, str, str]]:
        """Columns of both sides that can be compared, and their type."""
        found = []
        for a, s in left.columns:
            for b, t in right.columns:
                if s == t or (s in _INTEGERS and t in _INTEGERS):
                    found.append((a, b, t))
        return found

    def equality(self, a: str, b: str, type_: str) -> str:
        op = self.random.choice(["="] * 9 + ["<=>"])
        if type_ in _INTEGERS and self.random.random() < 0.25:
            shift = self.random.choice([f"{a} + 10", f"{a} - 1", f"-{a}", f"coalesce({a}, 20)", f"CAST({a} AS bigint)"])
            return f"{shift} {op} {b}"
        if type_ == "double" and self.random.random() < 0.2:
            return f"{a} * 2 {op} {b} * 2"
        if type_ == "string" and self.random.random() < 0.2:
            return f"upper({a}) {op} upper({b})"
        return f"{a} {op} {b}"

    def join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(self.random.randrange(depth))
        kind = self.random.choices(
            ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"], [8, 3, 3, 2, 2, 2]
        )[0]
        pairs = self.pairs(left, right)
        if not pairs:
            return left
        on = [self.equality(*self.random.choice(pairs))]
        if self.random.random() < 0.3:
            on.append(self.equality(*self.random.choice(pairs)))
        if self.random.random() < 0.15:
            a, b, _ = self.random.choice(pairs)
            on.append(f"{a} <= {b}")
        sql = f"SELECT * FROM ({left.sql}) {kind} ({right.sql}) ON {' AND '.join(on)}"
        columns = left.columns if "SEMI" in kind or "ANTI" in kind else left.columns + right.columns
        return self.narrow(Relation(sql, columns))

    def chain(self, depth: int) -> Relation:
        """Several tables joined in one go, by a key that they share or around in a cycle."""
        leaves = [self.leaf() for _ in range(self.random.randint(3, 4))]
        sql, columns = f"({leaves[0].sql})", leaves[0].columns
        for i, leaf in enumerate(leaves[1:], 1):
            before = Relation("", columns if self.random.random() < 0.5 else leaves[i - 1].columns)
            pairs = self.pairs(before, leaf)
            on = [self.equality(*self.random.choice(pairs))] if pairs else ["true"]
            if i == len(leaves) - 1 and (closing := self.pairs(leaves[0], leaf)):
                on.append(self.equality(*self.random.choice(closing)))
            sql, columns = f"{sql} JOIN ({leaf.sql}) ON {' AND '.join(on)}", columns + leaf.columns
        return self.narrow(Relation(f"SELECT * FROM {sql}", columns))

    def narrow(self, wide: Relation) -> Relation:
        """Some of the columns, so that queries do not grow without end."""
        if len(wide.columns) <= 5 and self.random.random() < 0.5:
            return wide
        kept = tuple(sorted(self.random.sample(wide.columns, min(5, len(wide.columns)))))
        return Relation(f"SELECT {', '.join(n for n, _ in kept)} FROM ({wide.sql})", kept)

    def grouped(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        keys = self.random.sample(inner.columns, min(len(inner.columns), self.random.choice((0, 1, 1, 2))))
        value, type_ = self.random.choice(inner.columns)
        most, count = self.name(), self.name()
        selected = ", ".join([*(n for n, _ in keys), f"max({value}) AS {most}", f"count(*) AS {count}"])
        by = ", ".join(n for n, _ in keys)
        rollup = self.random.choice(["{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})"]).format(by)
        group = f" GROUP BY {rollup}" if keys else ""
        sql = f"SELECT {selected} FROM ({inner.sql}){group}"
        if not keys and self.random.random() < 0.5:
            sql += " HAVING count(*) >= 0"
        return Relation(sql, (*keys, (most, type_), (count, "bigint")))

    def union(self, depth: int) -> Relation:
        one, other = self.relation(depth - 1), self.relation(depth - 1)
        pairs = [(a, b, s) for a, s in one.columns for b, t in other.columns if s == t]
        if not pairs:
            return one
        chosen = self.random.sample(pairs, min(3, len(pairs)))
        names = [(self.name(), type_) for _, _, type_ in chosen]
        first = ", ".join(f"{a} AS {n}" for (a, _, _), (n, _) in zip(chosen, names, strict=True))
        second = ", ".join(b for _, b, _ in chosen)
        how = self.random.choices(["UNION ALL", "UNION", "INTERSECT", "EXCEPT"], [6, 2, 1, 1])[0]
        return Relation(f"SELECT {first} FROM ({one.sql}) {how} SELECT {second} FROM ({other.sql})", tuple(names))

    def windowed(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        key, _ = self.random.choice(inner.columns)
        name = self.name()
        sql = f"SELECT *, count(*) OVER (PARTITION BY {key}) AS {name} FROM ({inner.sql})"
        return Relation(sql, (*inner.columns, (name, "bigint")))

    def limited(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        order = ", ".join(n for n, _ in inner.columns)
        return Relation(
            f"SELECT * FROM ({inner.sql}) ORDER BY {order} LIMIT {self.random.choice((3, 20))}", inner.columns
        )

    def tested(self, depth: int) -> Relation:
        """IN, EXISTS, NOT IN, and scalar subqueries in a filter."""
        outer, inner = self.relation(depth - 1), self.relation(self.random.randrange(depth))
        pairs = self.pairs(outer, inner)
        if not pairs:
            return outer
        a, b, _ = self.random.choice(pairs)
        tests = [
            f"{a} IN (SELECT {b} FROM ({inner.sql}))",
            f"{a} NOT IN (SELECT {b} FROM ({inner.sql}))",
            f"EXISTS (SELECT 1 FROM ({inner.sql}) WHERE {b} = {a})",
            f"NOT EXISTS (SELECT 1 FROM ({inner.sql}) WHERE {b} = {a})",
            f"({a} IN (SELECT {b} FROM ({inner.sql})) OR {a} IS NULL)",
            f"{a} >= (SELECT min({b}) FROM ({inner.sql}))",
            f"(SELECT count(*) FROM ({inner.sql}) WHERE {b} = {a}) >= {self.random.randrange(2)}",
            f"{a} = (SELECT max({b}) FROM ({inner.sql}) WHERE {b} = {a})",
        ]
        return Relation(f"SELECT * FROM ({outer.sql}) WHERE {self.random.choice(tests)}", outer.columns)

    def computed(self, depth: int) -> Relation:
        """Columns that are computed, or exploded, from others."""
        inner = self.relation(depth - 1)
        whole = [n for n, t in inner.columns if t in _INTEGERS]
        if not whole:
            return inner
        source, name = self.random.choice(whole), self.name()
        makers = ["{} + 1", "coalesce({}, 7)", "CAST({} AS bigint) * 2", "7", "-{}", "explode(array({}, {} + 10))"]
        made = self.random.choice(makers).replace("{}", source)
        others = ", ".join(n for n, _ in inner.columns)
        below = f"SELECT {others}, {made} AS {name} FROM ({inner.sql})"
        sql = f"SELECT {others}, CAST({name} AS bigint) AS {name} FROM ({below})"
        return Relation(sql, (*inner.columns, (name, "bigint")))


def check(spark: SparkSession, pruner: secateur.Pruner, queries: Iterator[str], tally: Tally) -> None:
    """Adds the queries to the tally."""
    for sql in queries:
        with pruner.paused():
            try:
                expected = spark.sql(sql).collect()
            except _REFUSED as refused:
                tally.refused += 1
                if "PARSE" in str(refused) or "UNRESOLVED" in str(refused) or "MISMATCH" in str(refused):
                    raise
                continue
        tally.run += 1
        try:
            found = spark.sql(sql).collect()
        except _REFUSED as refused:
            tally.wrong.append(f"{sql}\n  {refused}")
            continue
        summary = pruner.last
        assert summary is not None
        tally.narrowed += any(scan.joins for scan in summary.scans)
        tally.asked += any(step.files_after != step.files_before for scan in summary.scans for step in scan.runtime)
        failed = [r.code for scan in summary.scans for r in scan.reasons if r.code.endswith("failed")]
        if found != expected or failed or any(r.code.endswith("failed") for r in summary.reasons):
            tally.wrong.append(f"{sql}\n  {expected} became {found} {failed}\n{summary}")


def trees(seed: str, tables: Sequence[str], count: int) -> Iterator[str]:
    """So many random queries."""
    made = Trees(Random(f"trees {seed}"), tables)
    for _ in range(count):
        yield made.query()


def main() -> None:
    count, seed = int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1"
    spark = session()
    pruner = secateur.attach(spark, {"stats.auto": False, "budget.ms": 60_000, "filter.budget.ms": 60_000})
    tally = Tally()
    join_keys.WORTH = 0  # these tables are too small for a subquery to pay
    with tempfile.TemporaryDirectory() as folder:
        tables = write_tables(spark, Path(folder), seed)
        for number in range(0, count, 10):
            check(spark, pruner, trees(f"{seed} {number}", tables, min(10, count - number)), tally)
            print(tally, flush=True)
    print("\n\n".join(tally.wrong[:10]))
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
