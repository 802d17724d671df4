"""The summary of a query: one frozen model; ``text.py`` and ``html.py`` render it, ``to_dict`` is its JSON form.

The JSON form is a promise: names change only with a CHANGELOG entry, and the old ones keep working.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from secateur.decision.records import JoinRecord, PassRecord
from secateur.reasons import Reason
from secateur.report.html import render_html
from secateur.report.text import render_text


@dataclass(frozen=True, slots=True)
class RuntimeStep:
    """What one technique does to one scan while the query runs; None until it has run.

    >>> step = RuntimeStep("topk_probe", "the first 4 files are read", "ts >= 2024-05-01 00:00:00Z", 2000, 20, 1.5)
    >>> step.name, step.files_before, step.files_after
    ('topk_probe', 2000, 20)

    The step ``driver`` narrows nothing: its numbers of files stay None.
    """

    name: str
    plan: str
    """What is to be done, in words."""
    condition: str = ""
    """What was found out: the rows that the query needs satisfy it."""
    files_before: int | None = None
    files_after: int | None = None
    ms: float | None = None


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """One use of a table in the query; None means that nobody knows.

    >>> scan = pruner.explain("SELECT * FROM trails WHERE altit > 1500").scans[0]
    >>> scan.format, scan.files_kept, scan.rows_kept, scan.rows_total
    ('parquet', 2, 4, 20)
    """

    table: str
    format: str
    files_total: int | None = None
    files_kept: int | None = None
    bytes_total: int | None = None
    bytes_kept: int | None = None
    rows_total: int | None = None
    rows_kept: int | None = None
    row_groups_total: int | None = None
    row_groups_kept: int | None = None
    passes: tuple[PassRecord, ...] = ()
    reasons: tuple[Reason, ...] = ()
    implied: tuple[str, ...] = ()
    """Conditions that follow from the query's, given to Spark so that it can skip row groups and pages by them."""
    joins: tuple[JoinRecord, ...] = ()
    """What the tables that it joins with told it before the query ran."""
    runtime: tuple[RuntimeStep, ...] = ()
    """What is found out while the query runs, and what it did to the scan once the query ran."""


@dataclass(frozen=True, slots=True)
class PlanningTime:
    """Milliseconds that secateur added to planning: in the JVM, on the wire, in Python.

    >>> time = pruner.explain("SELECT * FROM trails WHERE altit > 1500").planning
    >>> time.total > time.python > 0
    True
    """

    total: float = 0.0
    jvm: float = 0.0
    wire: float = 0.0
    python: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """What secateur did for one query. ``print`` it, or take ``to_dict`` for programs.

    >>> scan = ScanSummary("lake.trails", "parquet", files_total=120, files_kept=3)
    >>> Summary(7, (scan,)).to_dict()["scans"][0]["files_kept"]
    3
    """

    query: int
    scans: tuple[ScanSummary, ...] = ()
    planning: PlanningTime = field(default_factory=PlanningTime)
    reasons: tuple[Reason, ...] = ()
    """What concerns the query as a whole, e.g. that deciding failed."""

    @property
    def files_total(self) -> int:
        """Files of all scans whose files are known."""
        return sum(s.files_total or 0 for s in self.scans)

    @property
    def files_kept(self) -> int:
        """Files that are left to read."""
        return sum(s.files_kept or 0 for s in self.scans)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: plain dicts, lists, strings, numbers and None."""
        plain = asdict(self)
        plain["planning_ms"] = plain.pop("planning")
        for scan in plain["scans"]:
            scan["passes"] = list(scan["passes"])
            scan["reasons"] = list(scan["reasons"])
            scan["implied"] = list(scan["implied"])
            scan["joins"] = list(scan["joins"])
            scan["runtime"] = list(scan["runtime"])
        return {**plain, "scans": list(plain["scans"]), "reasons": list(plain["reasons"])}

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return render_html(self)
