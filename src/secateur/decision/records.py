"""What the passes did, for the summary."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PassRecord:
    """What one technique did to one scan, and how long it took.

    >>> done = pruner.explain("SELECT * FROM trails WHERE altit > 1500").scans[0].passes[0]
    >>> done.name, done.files_before, done.files_after
    ('filter', 10, 2)
    """

    name: str
    files_before: int
    files_after: int
    ms: float


@dataclass(frozen=True, slots=True)
class JoinRecord:
    """What a table received from one that it joins with: rows matter only if the column lies in these ranges.

    >>> JoinRecord("part", "l_partkey", 14, 1000, 50).files_after
    50
    """

    sender: str
    column: str
    ranges: int
    files_before: int
    files_after: int
