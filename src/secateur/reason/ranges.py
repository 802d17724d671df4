"""Ranges of expressions: what an expression over columns can evaluate to, from what its inputs can.

The range of a column comes from statistics, that of a literal is the literal, and that of a function follows from those
of its arguments by the function's rule (see ``reason.rules``), vectorised over entries. No rule, or one that gives up:
None, that is, anything (rule S1). A rule has to be right about all three kinds of rows (see
:mod:`secateur.reason.facts`): the bounds hold for every number that it yields, and whenever it can yield NULL or NaN it
says so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from secateur.query.expressions import (
    Alias,
    And,
    Call,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
)
from secateur.query.plan import Settings
from secateur.query.types import BOOLEAN, DataType
from secateur.reason.facts import Bound, Facts, facts, literal_of
from secateur.reason.verdict import Verdict, either
from secateur.stats.filestats import FileStats, ScanColumn

log = logging.getLogger("secateur")

Columns = Mapping[int, ScanColumn]
"""The columns of the scan by expression id."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression is looked at with: statistics, the scan's columns, settings, and the evaluator."""

    stats: FileStats
    columns: Columns
    settings: Settings
    verdict: Callable[[Expression, Scope], Verdict]
    rules: Mapping[str, Rule]
    """The rule of each function by the name of Spark's class for it (see ``reason.rules``)."""
    memo: dict[object, Any] = field(default_factory=dict)
    """What depends on the expression alone, so that it is worked out once for all parts of the entries."""

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self.stats.count


Rule: TypeAlias = Callable[[Call, Scope], Facts | None]


def facts_of(e: Expression, scope: Scope) -> Facts | None:
    """What the expression can evaluate to on each entry, None if nothing is known."""
    match e:
        case Column():
            source = column_source(e, scope.columns)
            return facts(scope.stats, source) if source else None
        case Literal(value, type_):
            return constant(value, type_, scope.count)
        case Alias(_, _, child):
            return facts_of(child, scope)
        case Call(function):
            rule = scope.rules.get(function)
            try:
                found = rule(e, scope) if rule else None
                known = scope.settings.evaluated.get(e.ref)
                return known.sharpened(found, scope) if known else found
            except Exception:  # one rule that breaks must not spoil the other conjuncts (rule S1)
                log.warning("the rule of %s broke on %s", function, e, exc_info=True)
                return None
        case Compare() | And() | Or() | Not() | In() | IsNull() | IsNotNull() | StartsWith() | Like():
            return of_verdict(scope.verdict(e, scope))
        case Opaque():
            return None


def column_source(column: Column, columns: Columns) -> ScanColumn | None:
    """The column of the scan that a reference reads, or the part of it that a field is; None if it is none."""
    source = columns.get(column.id)
    if source is None:
        return None
    if column.path:
        return replace(source, type=column.type, path=column.path) if source.kind == "data" else None
    return source if source.type == column.type else None


def constant(value: object, type_: DataType, count: int) -> Facts | None:
    """The facts of a literal."""
    domain = type_.domain
    if domain is None:
        return None
    if value is None:
        nothing = pa.nulls(count, domain)
        unknown = Bound(nothing, True)
        return Facts(type_, unknown, unknown, True, False, False, False)
    known = literal_of(value, type_)  # type: ignore[arg-type]
    if known is None:
        return None
    if isinstance(known, float) and math.isnan(known):
        unknown = Bound(np.zeros(count), True)
        return Facts(type_, unknown, unknown, False, True, False, True)
    if domain in (pa.int64(), pa.float64()):
        bound = Bound(np.broadcast_to(np.array(known), count), False)
    else:
        bound = Bound(pa.repeat(pa.scalar(known, domain), count), False)
    return Facts(type_, bound, bound, False, False, True, True)


def of_verdict(verdict: Verdict) -> Facts:
    """A predicate as a boolean value: 0 and 1 as far as FALSE and TRUE are possible."""
    low = Bound(np.where(verdict.can_false, 0, 1), False)
    high = Bound(np.where(verdict.can_true, 1, 0), False)
    some = either(verdict.can_true, verdict.can_false)
    return Facts(BOOLEAN, low, high, verdict.can_null, False, some, some)
