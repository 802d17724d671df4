"""What becomes known only while a query runs: what Spark is to find out, and what follows from the answer.

A pass defines a :class:`RuntimePredicate`: its ``request`` says which subquery Spark runs before it opens the scan's
files, and ``condition`` turns that subquery's row into a condition on the scan. Requests are plain values, so that the
bridge need not know the pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeAlias

from secateur.evaluate.range_sets import RangeSet
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Expression


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A column that may be compared with a value found at run time, and the values that stand for none."""

    column: Column
    low: int | Decimal
    high: int | Decimal


@dataclass(frozen=True, slots=True, eq=False)
class BoundaryRequest:
    """Where the first ``count`` rows of a sort end in some of the files."""

    sort: int
    count: int
    values: int
    """How many of these rows must have a value before the last one is a boundary."""
    at_least: bool
    """The first rows are at least the boundary, else at most."""
    files: Mask
    row_filter: RowFilter | None = None


@dataclass(frozen=True, slots=True)
class KeysRequest:
    """The distinct keys of one side of a join, as a list of at most ``most``, or as a bit map over a range."""

    join: int
    left: bool
    """Whether they are those of the left side."""
    key: Column
    about: str
    """What the keys are compared with, in words that are the same wherever the table is read."""
    most: int
    bit_map: tuple[int, int, int] | None = None
    """Its least and greatest number, and how many numbers share a bit."""
    row_filter: RowFilter | None = None


RuntimeRequest: TypeAlias = BoundaryRequest | KeysRequest


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """An expression takes one of some values."""

    expression: Expression
    values: RangeSet


class RuntimePredicate(Protocol):
    """Something that a subquery finds out while the query runs, and what follows from it for the rows of a scan."""

    @property
    def name(self) -> str:
        """The pass that asks."""

    @property
    def request(self) -> RuntimeRequest:
        """What Spark has to find out."""

    def describe(self) -> str:
        """What is going to be done, in words."""

    def condition(self, values: Sequence[object]) -> Expression | Membership | None:
        """What every row that the query needs satisfies, given the subquery's values; None if nothing follows."""
