"""The summary of a query: one frozen model; renderers live beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something was not pruned: a stable code for programs, a sentence with the remedy for people."""

    code: str
    text: str
