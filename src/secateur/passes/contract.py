"""What every pass takes and returns. A pass knows neither Spark nor file formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from secateur.decision.records import JoinRecord
from secateur.evaluate.range_sets import RangeSet
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression
from secateur.plan.nodes import Query
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats


@dataclass(frozen=True, slots=True)
class Limits:
    """How much time filtering may take, and what reading one file is reckoned at, both in seconds; and more such."""

    filter_seconds: float = 0.5
    file_seconds: float = 0.001
    ranges: int = 1000
    """How many ranges a predicate has at most that one table sends to another."""
    driver_bytes: int = 1 << 20
    """How large the files may be, together, that the driver reads itself for a LIMIT; 0: none is."""


@dataclass(frozen=True, slots=True)
class PassInput:
    """The statistics of each scan by its id, and which of its files earlier passes kept (one flag per file)."""

    query: Query
    stats: Mapping[int, FileStats]
    kept: Mapping[int, Mask]
    limits: Limits = Limits()
    shared: dict[object, Any] = field(default_factory=dict)
    """What one pass worked out and another may use."""


@dataclass(frozen=True, slots=True)
class Implied:
    """A predicate over one column that every row which the query needs of a scan makes TRUE."""

    predicate: Expression
    counted: bool = False
    """It rests on a count of the kept files (none has a NaN), so they have to be as they were listed."""


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """An expression takes one of some values."""

    expression: Expression
    values: RangeSet


class RuntimePredicate(Protocol):
    """Something that a subquery finds out while the query runs, and what it then tells of the rows of a scan."""

    @property
    def name(self) -> str:
        """The pass that asks."""

    def describe(self) -> str:
        """What is going to be done, in words."""

    def condition(self, values: Sequence[object]) -> Expression | Membership | None:
        """What every row that the query needs satisfies, given the subquery's values; None if they tell nothing."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """The scans that a pass narrowed, with their new masks, and a reason for each scan that it could not narrow.

    ``implied`` are predicates to be put right above a scan, for whoever reads its files.
    """

    kept: Mapping[int, Mask] = field(default_factory=dict)
    reasons: tuple[tuple[int, Reason], ...] = ()
    counted: frozenset[int] = frozenset()
    """Scans whose masks rest on the rows of the files that are kept: these have to be as they were listed."""
    implied: Mapping[int, tuple[Implied, ...]] = field(default_factory=dict)
    joins: tuple[tuple[int, JoinRecord], ...] = ()
    """What scans were told by those that they join with."""
    relies: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """For a narrowed scan, others whose files have to be as they were listed: its mask rests on what they hold."""
    first: Mapping[int, Mask] = field(default_factory=dict)
    """Files that are worth reading before the others, as long as not all rows are needed."""
    driver: frozenset[int] = frozenset()
    """Scans of which so little is left that the driver may read it itself, without a Spark job."""
    runtime: Mapping[int, RuntimePredicate] = field(default_factory=dict)
    """Scans that are to be narrowed once more while the query runs, by what a subquery tells."""
