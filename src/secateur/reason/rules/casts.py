"""Casts between types: the range of the result from the ranges of the arguments."""

from __future__ import annotations

from secateur.reason.ranges import Rule

RULES: dict[str, Rule] = {}
