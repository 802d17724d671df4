"""Random plans over small tables, and a plain way to run them: what joins may skip, checked row by row without Spark.

A plan runs twice, over all rows and over those of the files that are kept; the same rows have to come out. Thousands of
plans a minute, deeper and odder than SQL would make them. Rows are dicts of values by column id, None is NULL; a table
is a list of files, a file a list of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from operator import eq, ge, gt, le, lt
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import (
    Alias,
    And,
    Call,
    Column,
    Compare,
    Expression,
    IsNotNull,
    IsNull,
    Literal,
    Opaque,
    Or,
)
from secateur.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    Plan,
    Project,
    Scan,
    Sort,
    SortKey,
    Transparent,
    Union,
    Window,
)
from secateur.plan.propagation import Propagation
from secateur.plan.types import parse_type
from secateur.stats.file_range_sets import FileRangeSets
from secateur.stats.file_stats import FileStats
from tests.evaluate.language import ColumnEntry, Entry, file_stats

INT = parse_type("int")
KINDS = ("Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
OPERATORS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
Row = Mapping[int, int | None]
Files = list[list[Row]]


@dataclass
class World:
    """A random plan with its tables."""

    random: Random
    by_row: bool = False
    """Whether some tables are known row by row."""
    plan: Plan = field(init=False)
    tables: dict[int, Files] = field(default_factory=dict)
    stats: dict[int, FileStats] = field(default_factory=dict)
    ids: int = 0

    def __post_init__(self) -> None:
        self.plan = self.make(self.random.choice((1, 2, 3, 3, 4)))[0]

    def new(self) -> Column:
        self.ids += 1
        return Column(self.ids, f"c{self.ids}", INT)

    def make(self, depth: int) -> tuple[Plan, list[Column]]:
        if depth == 0:
            return self.scan()
        makers = {self.join: 10, self.filter: 2, self.project: 2, self.aggregate: 2, self.union: 2, self.window: 1,
                  self.limit: 1, self.expand: 1, self.generate: 1}  # fmt: skip
        return self.random.choices(list(makers), list(makers.values()))[0](depth)

    def scan(self) -> tuple[Plan, list[Column]]:
        columns = [self.new() for _ in range(self.random.randint(1, 3))]
        files: Files = []
        for i in range(self.random.choice((1, 3, 4, 6))):
            at = {c.id: self.random.randrange(6) * 2 if self.random.random() < 0.3 else i * 2 for c in columns}
            gaps = 0.9 if self.random.random() < 0.05 else 0.1
            count = self.random.choice((0, 2, 3, 4))
            files.append([{id_: self.cell(low, gaps) for id_, low in at.items()} for _ in range(count)])
        read = tuple(ScanColumn(c.id, c.name, INT) for c in columns)
        scan = Scan(len(self.tables), f"t{len(self.tables)}", "parquet", "", read)
        self.tables[scan.id] = files
        self.stats[scan.id] = file_stats([self.entry(rows, columns) for rows in files], scan.columns)
        if self.by_row and self.random.random() < 0.7:
            self.stats[scan.id] = self.listed(self.stats[scan.id], files)
        plan: Plan = scan
        if self.random.random() < 0.4:
            plan = Filter(Compare(self.random.choice((">", "<=")), columns[0], self.literal()), plan)
        return plan, columns

    def cell(self, low: int, gaps: float) -> int | None:
        return None if self.random.random() < gaps else low + self.random.randrange(2)

    def entry(self, rows: list[Row], columns: list[Column]) -> Entry:
        known = {}
        for c in columns:
            values = [v for v in (row[c.id] for row in rows) if v is not None]
            if self.random.random() < 0.03:
                continue
            low, high = (min(values), max(values)) if values else (None, None)
            nulls = None if self.random.random() < 0.03 else sum(row[c.id] is None for row in rows)
            known[c.name] = ColumnEntry(low, high, nulls, None)
        return Entry(len(rows), known)

    def listed(self, stats: FileStats, files: Files) -> FileStats:
        """The same with the values of most files and columns."""
        columns = {id_ for rows in files for row in rows for id_ in row}
        lists = {
            id_: pa.array([self.cells(rows, id_) for rows in files], pa.list_(pa.int64())) for id_ in sorted(columns)
        }
        nothing = pa.nulls(len(files), pa.list_(pa.int64())), pa.nulls(len(files), pa.bool_())
        known = {
            id_: FileRangeSets.of_lists(*nothing[:1] * 2, *nothing[1:] * 2, values) for id_, values in lists.items()
        }
        return FileStats(stats.rows, stats.sizes, stats.column, ranges=lambda column: known.get(column.id))

    def cells(self, rows: list[Row], id_: int) -> list[int | None] | None:
        if self.random.random() < 0.05:
            return [0] if self.random.random() < 0.1 and len(rows) != 1 else None  # as many values as of another file
        return [row[id_] for row in rows]

    def literal(self) -> Literal:
        return Literal(self.random.randrange(12), INT)

    def key(self, columns: list[Column]) -> Expression:
        column = self.random.choice(columns)
        match self.random.randrange(12):
            case 0:
                return Call("Add", (column, Literal(self.random.choice((2, 4)), INT)), INT)
            case 1:
                return Call("Coalesce", (column, self.literal()), INT)
            case 2:
                return Call("Cast", (column,), parse_type("bigint"))
        return column

    def join(self, depth: int) -> tuple[Plan, list[Column]]:
        left, of_left = self.make(depth - 1)
        right, of_right = self.make(self.random.randrange(depth))
        kind = self.random.choice(("Inner",) * 5 + KINDS)
        parts: list[Expression] = []
        for _ in range(self.random.choice((1, 1, 1, 2))):
            op = self.random.choice(("=", "=", "=", "=", "<=>", "<"))
            one, other = self.key(of_left), self.key(of_right)
            test: Expression = Compare(op, one, other) if self.random.random() < 0.7 else Compare(op, other, one)
            if self.random.random() < 0.1:
                test = Or(test, IsNull(test))
            parts.append(test)
        condition = parts[0] if len(parts) == 1 else And(parts[0], parts[1])
        exists = self.new() if kind == "ExistenceJoin" else None
        join = Join(kind, condition, left, right, exists.id if exists else None)
        if kind in ("LeftSemi", "LeftAnti"):
            return join, of_left
        return join, [*of_left, exists] if exists else [*of_left, *of_right]

    def filter(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        column = self.random.choice(columns)
        tests = (
            IsNotNull(column),
            Compare(">=", column, self.literal()),
            Compare("<=>", column, self.random.choice(columns)),
        )
        return Filter(self.random.choice(tests), plan), columns

    def project(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        outputs: list[Expression] = []
        named: list[Column] = []
        for _ in range(self.random.randint(1, 3)):
            e: Expression = self.key(columns) if self.random.random() < 0.9 else self.literal()
            if isinstance(e, Column) and e not in named and self.random.random() < 0.5:
                outputs.append(e)
                named.append(e)
            else:
                made = self.new()
                outputs.append(Alias(made.id, made.name, e, INT))
                named.append(made)
        return Project(tuple(outputs), plan), named

    def aggregate(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        keys = tuple(self.random.sample(columns, min(len(columns), self.random.choice((0, 1, 1, 2)))))
        count, most = self.new(), self.new()
        value = self.random.choice(columns)
        outputs: list[Expression] = [*keys]
        named = [*keys, count, most]
        if keys and self.random.random() < 0.5:
            made = self.new()
            outputs.append(Alias(made.id, made.name, Call("Add", (keys[0], Literal(2, INT)), INT), INT))
            named.append(made)
        outputs.append(Alias(count.id, count.name, Opaque("Count", "an aggregate", INT), INT))
        outputs.append(Alias(most.id, most.name, Opaque("Max", "an aggregate", INT, (value,)), INT))
        return Aggregate(keys, tuple(outputs), plan), named

    def union(self, depth: int) -> tuple[Plan, list[Column]]:
        inputs = [self.make(self.random.randrange(depth)) for _ in range(self.random.choice((2, 2, 3)))]
        width = min(len(columns) for _, columns in inputs)
        made = [self.new() for _ in range(width)]
        ids = tuple(tuple(c.id for c in columns[:width]) for _, columns in inputs)
        return Union(tuple(c.id for c in made), ids, tuple(plan for plan, _ in inputs)), made

    def window(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        made = self.new()
        return Window((made.id,), tuple(self.random.sample(columns, self.random.randint(0, 1))), plan), [*columns, made]

    def limit(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        keys = tuple(SortKey(c, descending=False, nulls_first=True) for c in columns)
        return Limit(self.random.randint(1, 4), Sort(keys, plan)), columns

    def expand(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        kept = columns[: self.random.randint(1, 2)]
        made = [self.new() for _ in kept]
        null = Literal(None, INT)
        rows = (tuple(kept), tuple(c if self.random.random() < 0.5 else null for c in kept))
        return Expand(tuple(c.id for c in made), rows, plan), made

    def generate(self, depth: int) -> tuple[Plan, list[Column]]:
        plan, columns = self.make(depth - 1)
        if self.random.random() < 0.3:
            return Transparent("Repartition", plan), columns
        made = self.new()
        return Generate((made.id,), plan), [*columns, made]

    def rows(self, kept: Mapping[int, Mask] | None = None) -> list[str]:
        """What the plan gives, over all files or those that are kept."""
        tables = {
            id_: [row for i, rows in enumerate(files) if kept is None or kept[id_][i] for row in rows]
            for id_, files in self.tables.items()
        }
        return sorted(repr(sorted(row.items())) for row in run(self.plan, tables))

    def everything(self) -> dict[int, Mask]:
        return {id_: np.ones(len(files), np.bool_) for id_, files in self.tables.items()}


def value(e: Expression, row: Row) -> Any:
    """What an expression is for a row."""
    match e:
        case Column(id_):
            return row[id_]
        case Literal(constant):
            return constant
        case Alias(_, _, child) | Call("Cast", (child,)):
            return value(child, row)
        case IsNull(child):
            return value(child, row) is None
        case IsNotNull(child):
            return value(child, row) is not None
        case Call("Coalesce", args):
            return next((v for v in (value(a, row) for a in args) if v is not None), None)
        case And(left, right):
            a, b = value(left, row), value(right, row)
            return False if a is False or b is False else None if a is None or b is None else True
        case Or(left, right):
            a, b = value(left, row), value(right, row)
            return True if a is True or b is True else None if a is None or b is None else False
        case Compare("<=>", left, right):
            return value(left, row) == value(right, row)
        case Compare(op, left, right):
            a, b = value(left, row), value(right, row)
            return (
                None
                if a is None or b is None
                else {"=": a == b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]
            )
        case Call("Add", (left, right)):
            a, b = value(left, row), value(right, row)
            return None if a is None or b is None else a + b
    raise AssertionError(f"cannot evaluate {e}")


def run(plan: Plan, tables: Mapping[int, list[Row]]) -> list[Row]:
    """The rows of a plan, as SQL has it."""
    below = [run(child, tables) for child in plan.children]
    match plan:
        case Scan():
            return tables[plan.id]
        case Filter():
            return [row for row in below[0] if value(plan.condition, row) is True]
        case Project():
            return [{e.id: value(e, row) for e in plan.outputs if isinstance(e, Alias | Column)} for row in below[0]]
        case Transparent() | Sort():
            return sorted(below[0], key=_order)
        case Limit():
            return below[0][: plan.count]
        case Union():
            return [
                {out: row[id_] for out, id_ in zip(plan.outputs, ids, strict=True)}
                for ids, rows in zip(plan.inputs, below, strict=True)
                for row in rows
            ]
        case Generate():
            return [{**row, plan.generated[0]: i} for row in below[0] for i in range(1 + len(row) % 2)]
        case Expand():
            return [
                {out: value(e, row) for out, e in zip(plan.outputs, outputs, strict=True)}
                for row in below[0]
                for outputs in plan.projections
            ]
        case Window():
            counts: dict[Any, int] = {}
            for row in below[0]:
                key = tuple(value(e, row) for e in plan.partition)
                counts[key] = counts.get(key, 0) + 1
            return [{**row, plan.computed[0]: counts[tuple(value(e, row) for e in plan.partition)]} for row in below[0]]
        case Aggregate():
            return _aggregated(plan, below[0])
        case Join():
            return _joined(plan, *below)
    raise AssertionError(f"cannot run {plan}")


def _order(row: Row) -> list[tuple[bool, int]]:
    return [(v is not None, v or 0) for _, v in sorted(row.items())]


def _aggregated(plan: Aggregate, rows: list[Row]) -> list[Row]:
    groups: dict[Any, list[Row]] = {} if plan.grouping else {(): []}
    for row in rows:
        groups.setdefault(tuple(value(e, row) for e in plan.grouping), []).append(row)
    found: list[Row] = []
    for members in groups.values():
        out: dict[int, Any] = {}
        for e in plan.outputs:
            match e:
                case Alias(id_, _, Opaque("Count")):
                    out[id_] = len(members)
                case Alias(id_, _, Opaque("Max", _, _, (argument,))):
                    out[id_] = max((v for v in (value(argument, m) for m in members) if v is not None), default=None)
                case Alias(id_) | Column(id_):
                    out[id_] = value(e, members[0])
        found.append(out)
    return found


def _joined(join: Join, left: list[Row], right: list[Row]) -> list[Row]:
    assert join.condition is not None
    partners: dict[int, list[int]] = {i: [] for i in range(len(left))}
    for (i, a), (j, b) in product(enumerate(left), enumerate(right)):
        if value(join.condition, {**a, **b}) is True:
            partners[i].append(j)
    if join.kind == "LeftSemi":
        return [row for i, row in enumerate(left) if partners[i]]
    if join.kind == "LeftAnti":
        return [row for i, row in enumerate(left) if not partners[i]]
    if join.kind == "ExistenceJoin":
        assert join.exists is not None
        return [{**row, join.exists: int(bool(partners[i]))} for i, row in enumerate(left)]
    rows: list[Row] = [{**left[i], **right[j]} for i, js in partners.items() for j in js]
    if join.kind in ("LeftOuter", "FullOuter"):
        rows += [{**_nulls(join.right), **row} for i, row in enumerate(left) if not partners[i]]
    if join.kind in ("RightOuter", "FullOuter"):
        met = {j for js in partners.values() for j in js}
        rows += [{**_nulls(join.left), **row} for j, row in enumerate(right) if j not in met]
    return rows


def _nulls(plan: Plan) -> Row:
    return dict.fromkeys(Propagation().columns(plan), None)
