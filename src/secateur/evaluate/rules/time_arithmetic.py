"""Sums and differences of dates, timestamps and intervals; see :mod:`secateur.evaluate.rules.times`.

================================================  ==============================================================
function                                          range of the result
================================================  ==============================================================
DateAdd, DateSub, AddMonths, DateAddYMInterval    grows with both (DateSub falls with the second); gives up if the
                                                  result may leave the dates, where Spark wraps around
DateDiff, SubtractDates, SubtractTimestamps       difference of both, of timestamps in local time; gives up on legacy
                                                  intervals
TimestampAddInterval, TimestampAddYMInterval,     grows with local time; gives up if what is added is no literal,
TimestampAdd, TimeAdd                             and on legacy intervals
TimestampDiff                                     grows with the end, falls with the start, one month wider for months
MonthsBetween                                     months and days / 31, a quarter of a month wider
================================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import calendar
from secateur.evaluate.rules.moments import HOUR, MINUTE, SECOND, TIMESTAMPS, local_of
from secateur.evaluate.rules.spans import DAY, INT32, Ints, Span, range_from, span_of, strict
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.expressions import Call, Expression, Literal
from secateur.plan.types import DAY_TIME, YEAR_MONTH

_DATE = ("date",)
_SMALL = ("tinyint", "smallint", "int")
_UNITS: dict[str, tuple[int, int, int]] = {
    "MICROSECOND": (0, 0, 1),
    "MILLISECOND": (0, 0, 1000),
    "SECOND": (0, 0, SECOND),
    "MINUTE": (0, 0, MINUTE),
    "HOUR": (0, 0, HOUR),
    "DAY": (0, 1, 0),
    "DAYOFYEAR": (0, 1, 0),
    "WEEK": (0, 7, 0),
    "MONTH": (1, 0, 0),
    "QUARTER": (3, 0, 0),
    "YEAR": (12, 0, 0),
}
"""The months, days and microseconds of a unit of TimestampAdd."""


def truncated(numbers: Ints, by: int) -> Ints:
    """Divided and rounded towards zero, as Java does."""
    towards_zero: Ints = np.sign(numbers) * (np.abs(numbers) // by)
    return towards_zero


def _shifted(call: Call, context: EvalContext, e: Expression, months: int, days: int, micros: int) -> ValueRange | None:
    """A timestamp plus months and days in local time, then microseconds."""
    found = local_of(e, call, context)
    if found is None or max(abs(months) * 31 + abs(days), abs(micros) // DAY) > 10_000_000:
        return None
    span, zone = found
    low, high = span.low, span.high
    if months or days:
        low, high = (_moved(bound, months) + days * DAY for bound in (low, high))
        low, high = zone.instants(low, high)
    else:
        # Not by way of local time, which would lose what is known in hours that clocks repeat.
        exact = span_of(e, context, TIMESTAMPS)
        assert exact is not None
        low, high = exact.low, exact.high
    return range_from(call.type, low + micros, high + micros, span.known, span.value_range)


def _moved(local: Ints, months: int) -> Ints:
    """A local time some months later."""
    return calendar.add_months(local // DAY, months) * DAY + local % DAY if months else local


def _add_interval(call: Call, context: EvalContext) -> ValueRange | None:
    match call.args:
        case (start, Literal(value=int(value), type=type_)) if type_.name in DAY_TIME:
            days = abs(value) // DAY * (1 if value > 0 else -1)
            return _shifted(call, context, start, 0, days, value - days * DAY)
        case (start, Literal(value=int(value), type=type_)) if type_.name in YEAR_MONTH:
            return _shifted(call, context, start, value, 0, 0)
    return None


def _add_units(call: Call, context: EvalContext) -> ValueRange | None:
    unit = _UNITS.get(call.unit.upper())
    match call.args:
        case (Literal(value=int(value)), start) if unit:
            months, days, micros = (value * part for part in unit)
            return _shifted(call, context, start, months, days, micros)
    return None


def _two(first: tuple[str, ...], second: tuple[str, ...], widen: Callable[[Span, Span], tuple[Ints, Ints]]) -> Rule:
    """A function of two arguments."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        a, b = span_of(call.args[0], context, first), span_of(call.args[1], context, second)
        if a is None or b is None or call.type.domain is None:
            return None
        known = a.known & b.known & a.within(INT32) & b.within(INT32)
        return range_from(call.type, *widen(a, b), known, a.value_range, b.value_range)

    return rule


def _add_months(a: Span, b: Span) -> tuple[Ints, Ints]:
    return calendar.add_months(a.low, b.low), calendar.add_months(a.high, b.high)


def _subtract_timestamps(call: Call, context: EvalContext) -> ValueRange | None:
    found = [local_of(e, call, context) for e in call.args]
    if found[0] is None or found[1] is None or call.type.name not in DAY_TIME or call.args[0].type != call.args[1].type:
        return None
    (a, _), (b, _) = found[0], found[1]
    return range_from(call.type, a.low - b.high, a.high - b.low, a.known & b.known, a.value_range, b.value_range)


def _difference(call: Call, context: EvalContext) -> ValueRange | None:
    """TimestampDiff(start, end)."""
    unit = call.unit.upper()
    size = _UNITS.get(unit)
    start, end = (local_of(e, call, context) for e in call.args)
    if size is None or unit == "DAYOFYEAR" or start is None or end is None or call.args[0].type != call.args[1].type:
        return None
    a, b = start[0], end[0]
    months, days, micros = size
    if months:
        low = calendar.months(b.low // DAY) - calendar.months(a.high // DAY) - 1
        high = calendar.months(b.high // DAY) - calendar.months(a.low // DAY) + 1
        low, high = truncated(low, months), truncated(high, months)
    else:
        low, high = (truncated(n, days * DAY + micros) for n in (b.low - a.high, b.high - a.low))
    return range_from(call.type, low, high, a.known & b.known, a.value_range, b.value_range)


def _months_between(call: Call, context: EvalContext) -> ValueRange | None:
    """Whole months if the days of the month agree or are both the last, else days count 1 / 31."""
    end, start = (local_of(e, call, context) for e in call.args[:2])
    if end is None or start is None or not isinstance(call.args[2], Literal) or call.args[2].value is None:
        return None
    a, b = end[0], start[0]
    # Three days between the ends of months, and two for the time of day: some days in history had 48 hours.
    slack = 0.25
    low = _fractional_months(a.low) - _fractional_months(b.high) - slack
    high = _fractional_months(a.high) - _fractional_months(b.low) + slack
    known = a.known & b.known
    return strict(call.type, Bound(low, ~known), Bound(high, ~known), ~known, a.value_range, b.value_range)


def _fractional_months(local: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    days = local // DAY
    return np.asarray(calendar.months(days) + (calendar.day_of_month(days) - 1) / 31, np.float64)


RULES: dict[str, Rule] = {
    "DateAdd": _two(_DATE, _SMALL, lambda a, b: (a.low + b.low, a.high + b.high)),
    "DateSub": _two(_DATE, _SMALL, lambda a, b: (a.low - b.high, a.high - b.low)),
    "AddMonths": _two(_DATE, ("int",), _add_months),
    "DateAddYMInterval": _two(_DATE, YEAR_MONTH, _add_months),
    "DateDiff": _two(_DATE, _DATE, lambda a, b: (a.low - b.high, a.high - b.low)),
    "SubtractDates": _two(_DATE, _DATE, lambda a, b: ((a.low - b.high) * DAY, (a.high - b.low) * DAY)),
    "SubtractTimestamps": _subtract_timestamps,
    "TimestampAddInterval": _add_interval,
    "TimeAdd": _add_interval,
    "TimestampAddYMInterval": _add_interval,
    "TimestampAdd": _add_units,
    "TimestampDiff": _difference,
    "MonthsBetween": _months_between,
}
