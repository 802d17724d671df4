"""Why something was not pruned."""

from __future__ import annotations

from dataclasses import dataclass

OF_FILTERS = ("no-filter", "not-selective")
OF_BOUNDARIES = ("join-not-selective", "no-boundary", "boundary-not-selective")
"""Codes that say nothing any more once a scan is narrowed by something else, or at run time."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was not pruned: a stable code for programs, a sentence with the remedy for people.

    >>> [reason.code for reason in pruner.explain("SELECT * FROM trails").scans[0].reasons]
    ['no-filter']
    """

    code: str
    text: str
