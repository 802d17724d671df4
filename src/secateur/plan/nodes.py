"""A query as values: the plan nodes that secateur looks at, decoded from what the bridge saw in the JVM.

``print(query)`` gives a flat, numbered text, one node a line, children before parents, good for golden files::

    0 Scan lake.trails parquet files=120 [name#1 string, altit#2 int]
    1 Filter (altit#2 > 1500) <- 0
    2 Project name#1 <- 1

A node is *random* if what it computes for one row depends on which rows came before it, as ``rand(42)``,
``monotonically_increasing_id()`` and TABLESAMPLE do: fewer files below it would change its result (rule S9).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Expression
from secateur.plan.time_zones import Zone

Bits: TypeAlias = bytes
"""One bit per entry, the least significant first."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A table read from files. ``listing`` identifies the exact set of files (rule S8), empty if not listed."""

    id: int
    table: str
    format: str
    listing: str
    columns: tuple[ScanColumn, ...]
    """Those that the query speaks of."""
    files: int = 0
    bytes: int = 0
    declined: str = ""
    """Why the bridge leaves this scan alone, empty if it does not."""
    lossy: bool = False
    """Spark passes over files that are gone or damaged, so the rows of a file are not sure to arrive."""
    decided: bool = False
    """The early step of the same query has narrowed it already; with a listing, the late step may narrow it further."""
    skipped: Bits = b""
    """Of a scan that was decided before, one bit per file: the files that are skipped already."""
    instance_id: int = -1
    """The same for a scan and Spark's copies of it, and for no other use of the table."""

    @property
    def open(self) -> bool:
        """Whether its files can be narrowed in this step."""
        return bool(self.listing) and not self.declined

    def kept(self, count: int) -> Mask:
        """Which of its ``count`` files no earlier step skipped."""
        mask = np.ones(count, np.bool_)
        if self.skipped:
            bits = np.unpackbits(np.frombuffer(self.skipped, np.uint8), bitorder="little")[:count]
            mask[: len(bits)] = bits == 0
        return mask

    @property
    def children(self) -> tuple[Plan, ...]:
        return ()

    def describe(self) -> str:
        columns = ", ".join(f"{c.name}#{c.id} {c.type}" + _KINDS[c.kind] for c in self.columns)
        state = f" declined: {self.declined}" if self.declined else " decided" if self.decided else ""
        return f"Scan {self.table} {self.format} files={self.files} [{columns}]{state}"


_KINDS = {"data": "", "partition": " partition", "hidden": " hidden"}


class _OneInput:
    """What has one child, and subqueries in its expressions."""

    __slots__ = ()
    child: Plan
    subqueries: tuple[Plan, ...]

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child, *self.subqueries)


@dataclass(frozen=True, slots=True)
class Filter(_OneInput):
    condition: Expression
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        return f"Filter {self.condition}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Project(_OneInput):
    """``deterministic`` is False if a column is computed by something like ``rand()``: no predicate passes it (S9)."""

    outputs: tuple[Expression, ...]
    child: Plan
    deterministic: bool = True
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        return "Project " + ", ".join(map(str, self.outputs)) + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``count`` rows of its child are needed, whichever (Spark's LocalLimit: each partition may stop there)."""

    count: int
    child: Plan
    order_sensitive: bool = False

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)

    def describe(self) -> str:
        return f"Limit {self.count}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One expression of an ORDER BY."""

    expression: Expression
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expression} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


@dataclass(frozen=True, slots=True)
class Sort(_OneInput):
    """All rows of its child in one order."""

    keys: tuple[SortKey, ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False
    ref: int = -1
    """The number by which the JVM knows it."""

    def describe(self) -> str:
        return "Sort " + ", ".join(map(str, self.keys)) + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Join:
    """Rows of ``left`` beside rows of ``right``; ``kind`` is Spark's: Inner, Cross, LeftOuter, RightOuter, FullOuter,
    LeftSemi, LeftAnti, ExistenceJoin (every row of the left side, and in the column ``exists`` whether it has a
    partner), LeftSingle (LeftOuter that fails if a row has two partners).
    """

    kind: str
    condition: Expression | None
    left: Plan
    right: Plan
    exists: int | None = None
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False
    ref: int = -1
    """The number by which the JVM finds it again."""

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.left, self.right, *self.subqueries)

    def describe(self) -> str:
        on = "" if self.condition is None else f" {self.condition}"
        exists = "" if self.exists is None else f" AS #{self.exists}"
        return f"{self.kind} Join{on}{exists}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Aggregate(_OneInput):
    """One row for each group. Without ``grouping`` there is one row, also if there is nothing below.

    What is computed over a group is an :class:`~secateur.plan.expressions.Opaque` in ``outputs``.
    """

    grouping: tuple[Expression, ...]
    outputs: tuple[Expression, ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        grouping, outputs = ", ".join(map(str, self.grouping)), ", ".join(map(str, self.outputs))
        return f"Aggregate [{grouping}] {outputs}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all inputs: the i-th of ``outputs`` is the i-th column of each input, all by their expression ids."""

    outputs: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    children: tuple[Plan, ...]
    order_sensitive: bool = False

    def describe(self) -> str:
        return "Union " + ", ".join(f"#{id_}" for id_ in self.outputs) + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Window(_OneInput):
    """Every row of its child with columns computed over the rows of the same ``partition``."""

    computed: tuple[int, ...]
    partition: tuple[Expression, ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        columns = ", ".join(f"#{id_}" for id_ in self.computed)
        return f"Window [{', '.join(map(str, self.partition))}] {columns}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class GroupLimit(_OneInput):
    """Of the rows of each ``partition`` the first in the order of ``keys``, up to ``count`` by Spark's ``function``:
    RowNumber, Rank or DenseRank. Spark puts it below a window that is asked for its first rows.
    """

    function: str
    count: int
    partition: tuple[Expression, ...]
    keys: tuple[SortKey, ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        groups, keys = ", ".join(map(str, self.partition)), ", ".join(map(str, self.keys))
        return f"GroupLimit {self.function} {self.count} [{groups}] {keys}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Expand(_OneInput):
    """For every row of its child one row for each of the ``projections``, as GROUPING SETS and ROLLUP need them."""

    outputs: tuple[int, ...]
    projections: tuple[tuple[Expression, ...], ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        rows = " | ".join(", ".join(map(str, row)) for row in self.projections)
        return f"Expand {', '.join(f'#{id_}' for id_ in self.outputs)}: {rows}" + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Generate(_OneInput):
    """Every row of its child any number of times, each with other values in the ``generated`` columns (explode)."""

    generated: tuple[int, ...]
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        return "Generate " + ", ".join(f"#{id_}" for id_ in self.generated) + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Transparent(_OneInput):
    """A node that lets all rows and columns through as they are, such as a repartitioning."""

    what: str
    child: Plan
    subqueries: tuple[Plan, ...] = field(default=())
    order_sensitive: bool = False

    def describe(self) -> str:
        return self.what + _order_sensitive(self.order_sensitive)


@dataclass(frozen=True, slots=True)
class Opaque:
    """Any other node; its subtrees are looked at, nothing moves through it."""

    what: str
    children: tuple[Plan, ...]
    order_sensitive: bool = False

    def describe(self) -> str:
        return f"?{self.what}" + _order_sensitive(self.order_sensitive)


def _order_sensitive(flag: bool) -> str:
    return " random" if flag else ""


Plan: TypeAlias = (
    Scan
    | Filter
    | Project
    | Limit
    | Sort
    | Join
    | Aggregate
    | Union
    | Window
    | GroupLimit
    | Expand
    | Generate
    | Transparent
    | Opaque
)

PRUNING_COPY = "DynamicPruning"
"""What an :class:`Opaque` is that holds Spark's own copy of one side of a join, by whose keys it prunes the other."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The session's settings that change what an expression means (rule S7)."""

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False
    zones: Mapping[str, Zone] = field(default_factory=dict, compare=False)
    """The time zones that expressions name."""
    legacy_formats: bool = False
    """Times are written as Spark 2 wrote them, by rules that are not modelled."""
    digest: str = ""
    """Stands for all of Spark's settings: what Spark evaluated under one digest holds under no other."""
    evaluated: Mapping[int, Any] = field(default_factory=dict, compare=False)
    """What Spark made of expressions over constants, by ``ref`` (see :mod:`secateur.evaluate.constant_folding`)."""


@dataclass(frozen=True, eq=False)
class Query:
    """One look at a plan: ``stage`` is ``early`` or ``late`` (see docs/how-it-works.md).

    Two looks are never the same one, so that what follows from a look can be remembered with it.
    """

    id: int
    stage: str
    plan: Plan
    settings: Settings = field(default_factory=Settings)

    @cached_property
    def nodes(self) -> tuple[Plan, ...]:
        """Every node of the plan, subqueries included, parents first."""
        return tuple(walk(self.plan))

    def scans(self) -> Iterator[Scan]:
        """Every scan of the plan, subqueries included."""
        return (node for node in self.nodes if isinstance(node, Scan))

    def __str__(self) -> str:
        lines: list[str] = []
        _render(self.plan, lines)
        return "\n".join(lines)


def walk(plan: Plan) -> Iterator[Plan]:
    """The node and everything below it, parents first."""
    left = [plan]
    while left:
        node = left.pop()
        yield node
        left.extend(reversed(node.children))


def _render(plan: Plan, lines: list[str]) -> int:
    inputs = [_render(child, lines) for child in plan.children]
    arrow = " <- " + ", ".join(map(str, inputs)) if inputs else ""
    lines.append(f"{len(lines)} {plan.describe()}{arrow}")
    return len(lines) - 1
