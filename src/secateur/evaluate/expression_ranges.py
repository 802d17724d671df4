"""Ranges of expressions: what an expression over columns can evaluate to, from what its inputs can.

The range of a column comes from statistics, that of a literal is the literal, and that of a function follows from those
of its arguments by the function's rule (see ``reason.rules``), vectorised over entries. No rule, or one that gives up:
None, that is, anything (rule S1). A rule has to be right about all three kinds of rows (see
:mod:`secateur.evaluate.value_range`): the bounds hold for every number that it yields, and whenever it can yield NULL
or NaN it says so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from secateur.evaluate.value_range import Bound, ValueRange, literal_of, value_range
from secateur.evaluate.verdict import Verdict, either
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import (
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
from secateur.plan.nodes import Settings
from secateur.plan.types import BOOLEAN, DataType
from secateur.stats.file_stats import FileStats

log = logging.getLogger("secateur")

Columns = Mapping[int, ScanColumn]
"""The columns of the scan by expression id."""


@dataclass(frozen=True, slots=True)
class EvalContext:
    """What an expression is looked at with: statistics, the scan's columns, settings, and the evaluator."""

    stats: FileStats
    columns: Columns
    settings: Settings
    verdict: Callable[[Expression, EvalContext], Verdict]
    rules: Mapping[str, Rule]
    """The rule of each function by the name of Spark's class for it (see ``reason.rules``)."""
    memo: dict[object, Any] = field(default_factory=dict)
    """What depends on the expression alone, so that it is worked out once for all parts of the entries."""

    @property
    def count(self) -> int:
        """How many entries there are."""
        return self.stats.count


Rule: TypeAlias = Callable[[Call, EvalContext], ValueRange | None]


def range_of(e: Expression, context: EvalContext) -> ValueRange | None:
    """What the expression can evaluate to on each entry, None if nothing is known."""
    match e:
        case Column():
            source = column_source(e, context.columns)
            return value_range(context.stats, source) if source else None
        case Literal(value, type_):
            return constant(value, type_, context.count)
        case Alias(_, _, child):
            return range_of(child, context)
        case Call(function):
            rule = context.rules.get(function)
            try:
                found = rule(e, context) if rule else None
                known = context.settings.evaluated.get(e.ref)
                return known.sharpened(found, context) if known else found
            except Exception:  # one rule that breaks must not spoil the other conjuncts (rule S1)
                log.warning("the rule of %s broke on %s", function, e, exc_info=True)
                return None
        case Compare() | And() | Or() | Not() | In() | IsNull() | IsNotNull() | StartsWith() | Like():
            return of_verdict(context.verdict(e, context))
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


def constant(value: object, type_: DataType, count: int) -> ValueRange | None:
    """The range of a literal."""
    domain = type_.domain
    if domain is None:
        return None
    if value is None:
        nothing = pa.nulls(count, domain)
        unknown = Bound(nothing, True)
        return ValueRange(type_, unknown, unknown, True, False, False, False)
    known = literal_of(value, type_)  # type: ignore[arg-type]
    if known is None:
        return None
    if isinstance(known, float) and math.isnan(known):
        unknown = Bound(np.zeros(count), True)
        return ValueRange(type_, unknown, unknown, False, True, False, True)
    if domain in (pa.int64(), pa.float64()):
        bound = Bound(np.broadcast_to(np.array(known), count), False)
    else:
        bound = Bound(pa.repeat(pa.scalar(known, domain), count), False)
    return ValueRange(type_, bound, bound, False, False, True, True)


def of_verdict(verdict: Verdict) -> ValueRange:
    """A predicate as a boolean value: 0 and 1 as far as FALSE and TRUE are possible."""
    low = Bound(np.where(verdict.can_false, 0, 1), False)
    high = Bound(np.where(verdict.can_true, 1, 0), False)
    some = either(verdict.can_true, verdict.can_false)
    return ValueRange(BOOLEAN, low, high, verdict.can_null, False, some, some)
