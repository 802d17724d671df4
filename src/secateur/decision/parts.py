"""What a pass may decide about one scan: a small frozen value for each kind of edit.

A pass returns pairs of a scan's id and a part: an :class:`Edit`, a :class:`~secateur.reasons.Reason` why it did not do
more, or a record for the summary. They are merged and checked in :mod:`secateur.decision.merge`, encoded in
:mod:`secateur.bridge.encode` and summarised in :mod:`secateur.report.scan_summary`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from secateur.decision.records import JoinRecord
from secateur.decision.runtime import RuntimePredicate
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression
from secateur.reasons import Reason


class Edit:
    """A change to how a scan is read. Most kinds may be given several times; all of them then apply."""

    __slots__ = ()

    @property
    def masks(self) -> tuple[Mask, ...]:
        """The flags per file that it holds; each has to be a choice of the files that are left."""
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class Keep(Edit):
    """Read these files only."""

    files: Mask
    needs_kept_unchanged: bool = False
    """It rests on the rows of the files that are kept: void as soon as one of them is not as it was listed."""
    needs_scans_unchanged: frozenset[int] = frozenset()
    """It rests on what the files of these scans hold: void as soon as one of those is not as it was listed."""

    @property
    def masks(self) -> tuple[Mask, ...]:
        return (self.files,)


@dataclass(frozen=True, slots=True, eq=False)
class ReadFirst(Edit):
    """Read these files before the others: Spark reads on only until a LIMIT has enough rows."""

    files: Mask

    @property
    def masks(self) -> tuple[Mask, ...]:
        return (self.files,)


@dataclass(frozen=True, slots=True)
class ReadOnDriver(Edit):
    """The driver may read these few small files itself, without a Spark job."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class AddPredicate(Edit):
    """Put a predicate right above the scan, for its readers: every row that the query needs satisfies it."""

    predicate: Expression
    needs_kept_unchanged: bool = False
    """It rests on a count of the kept files (none has a NaN), so they have to be as they were listed."""


@dataclass(frozen=True, slots=True)
class AskAtRuntime(Edit):
    """Narrow the scan once more while the query runs, by the values that a subquery finds."""

    predicate: RuntimePredicate


Part: TypeAlias = Edit | Reason | JoinRecord
