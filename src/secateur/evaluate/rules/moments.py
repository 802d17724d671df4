"""What the rules of dates and timestamps are made of: functions that grow, also within a period, and local time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules.spans import Ints, Span, range_from, span_of
from secateur.evaluate.value_range import ValueRange
from secateur.plan.expressions import Call, Expression
from secateur.plan.time_zones import UTC, Zone

Step: TypeAlias = Callable[[Ints], Ints]
Widen: TypeAlias = Callable[[Ints, Ints], tuple[Ints, Ints]]
"""From the bounds of the argument to those of the result."""

TIMESTAMPS = ("timestamp", "timestamp_ntz")
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000


def zone_of(call: Call, context: EvalContext, of: Expression | None = None) -> Zone | None:
    """The time zone that a call is evaluated in, for a timestamp without time zone UTC; None if it is not known."""
    if of is not None and of.type.name == "timestamp_ntz":
        return UTC
    name = call.zone or context.settings.time_zone
    return context.settings.zones.get(name) or (UTC if name == "UTC" else None)


def grows(step: Step) -> Widen:
    """A function that never falls."""
    return lambda low, high: (step(low), step(high))


def within(period: Step, step: Step, least: int, most: int) -> Widen:
    """A function that never falls within a period and takes all values from least to most over several."""

    def widen(low: Ints, high: Ints) -> tuple[Ints, Ints]:
        same = period(low) == period(high)
        return np.where(same, step(low), least), np.where(same, step(high), most)

    return widen


def rule_of(types: tuple[str, ...], widen: Widen, limits: tuple[int, int] | None = None) -> Rule:
    """A function of one argument."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        span = span_of(call.args[0], context, types, limits)
        return (
            None if span is None else range_from(call.type, *widen(span.low, span.high), span.known, span.value_range)
        )

    return rule


def local_of(e: Expression, call: Call, context: EvalContext) -> tuple[Span, Zone] | None:
    """The local times of an expression and the zone that they are of."""
    span, zone = span_of(e, context, TIMESTAMPS), zone_of(call, context, e)
    if span is None or zone is None:
        return None
    return Span(*zone.local(span.low, span.high), span.known, span.value_range), zone


def of_local(widen: Widen) -> Rule:
    """A function of the local time of a timestamp."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        found = local_of(call.args[0], call, context)
        if found is None:
            return None
        span, _ = found
        return range_from(call.type, *widen(span.low, span.high), span.known, span.value_range)

    return rule
