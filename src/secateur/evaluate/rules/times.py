"""Dates and timestamps: the range of the result from the ranges of the arguments.

Every rule gives up on an entry unless all bounds are known and lie in the years 1 to 9999, and as a whole on arguments
of other types than listed here. *Local* times are those in the time zone of the expression (see
:mod:`secateur.plan.time_zones`), for a timestamp without time zone they are its own.

================================================  ==============================================================
function                                          range of the result
================================================  ==============================================================
Year, YearOfWeek                                  grows with the date
Quarter, Month, DayOfYear                         grows with the date within a year, else all of them
WeekOfYear                                        the same within a year of ISO weeks
DayOfMonth                                        grows with the date within a month, else 1 to 31
DayOfWeek, WeekDay                                grows with the date within a week, from Sunday or from Monday
Hour, Minute, Second, SecondWithFraction          grows with local time within a day, an hour, a minute
FromUTCTimestamp, ToUTCTimestamp                  to and from the local time of a zone; gives up if it is no literal
MakeDate                                          all of the years, or NULL
TruncDate, LastDay, NextDay                       grows with the date; gives up if the unit or day is no literal
TruncTimestamp                                    grows with local time; gives up if the unit is no literal
UnixTimestamp, ToUnixTimestamp                    of timestamps and dates, rounded towards zero; gives up on strings
UnixDate, UnixSeconds, UnixMillis, UnixMicros,    the number, rounded down
CastTimestampNTZToLong
SecondsToTimestamp, MillisToTimestamp,            the number times a constant; gives up where that overflows and on
MicrosToTimestamp, DateFromUnixDate               fractions
DateFormatClass, FromUnixTime                     formats that write larger units first; gives up on all others and
                                                  on legacy formats
================================================  ==============================================================

Sums and differences are in :mod:`secateur.evaluate.rules.time_arithmetic`. ``CASTS`` has the casts between dates,
timestamps and what they can be cast to.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules import calendar, texts, time_arithmetic
from secateur.evaluate.rules.moments import (
    HOUR,
    MINUTE,
    SECOND,
    TIMESTAMPS,
    Step,
    Widen,
    grows,
    local_of,
    of_local,
    rule_of,
    within,
    zone_of,
)
from secateur.evaluate.rules.spans import DAY, INT64, Ints, range_from, span_of, strict
from secateur.evaluate.rules.time_arithmetic import truncated
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.columns import Mask
from secateur.plan.expressions import Call, Expression, Literal
from secateur.plan.types import DAY_TIME, INTEGERS, YEAR_MONTH, DataType

_WEEKDAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def _same(numbers: Ints) -> Ints:
    return numbers


def _divided(by: int) -> Widen:
    return grows(lambda numbers: numbers // by)


def _times(factor: int) -> tuple[Widen, tuple[int, int]]:
    """A product, and what it can be of without overflow."""
    return grows(lambda numbers: numbers * factor), (-(INT64[1] // factor), INT64[1] // factor)


# Units and formats ----------------------------------------------------------------------------------------------------


def _word(e: Expression) -> str | None:
    """A literal keyword in capitals."""
    match e:
        case Literal(value=bytes(word)) if word.isascii():
            return word.decode().upper()
    return None


_DATE_UNITS: dict[str | None, Step] = {
    "WEEK": calendar.start_of_week,
    **dict.fromkeys(("MON", "MONTH", "MM"), calendar.start_of_month),
    "QUARTER": calendar.start_of_quarter,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), calendar.start_of_year),
}
_TIME_UNITS: dict[str | None, int] = {"MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY, "DD": DAY}
_FINE_UNITS: dict[str | None, int] = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": SECOND}


def _trunc_date(call: Call, context: EvalContext) -> ValueRange | None:
    step = _DATE_UNITS.get(_word(call.args[1]))
    return rule_of(("date",), grows(step))(call, context) if step else None


def _trunc_timestamp(call: Call, context: EvalContext) -> ValueRange | None:
    unit, e = _word(call.args[0]), call.args[1]
    if unit in _FINE_UNITS:
        # No zone is ahead by a fraction of a second.
        size = _FINE_UNITS[unit]
        span = span_of(e, context, ("timestamp",))
        if span is None:
            return None
        return range_from(call.type, span.low // size * size, span.high // size * size, span.known, span.value_range)
    found = local_of(e, call, context)
    if found is None or not (unit in _TIME_UNITS or unit in _DATE_UNITS):
        return None
    span, zone = found
    if unit in _TIME_UNITS:
        size = _TIME_UNITS[unit]
        low, high = span.low // size * size, span.high // size * size
    else:
        step = _DATE_UNITS[unit]
        low, high = step(span.low // DAY) * DAY, step(span.high // DAY) * DAY
    return range_from(call.type, *zone.instants(low, high), span.known, span.value_range)


def _next_day(call: Call, context: EvalContext) -> ValueRange | None:
    word = _word(call.args[1])
    days = [i for i, name in enumerate(_WEEKDAYS) if word in (name, name[:3], name[:2])]
    return rule_of(("date",), grows(lambda d: calendar.next_day(d, days[0])))(call, context) if days else None


def _unix_timestamp(call: Call, context: EvalContext) -> ValueRange | None:
    e = call.args[0]
    if e.type.name == "date":
        span, zone = span_of(e, context, ("date",)), zone_of(call, context)
        if span is None or zone is None:
            return None
        low, high = zone.instants(span.low * DAY, span.high * DAY)
    else:
        span = span_of(e, context, TIMESTAMPS)
        if span is None:
            return None
        low, high = span.low, span.high
    return range_from(call.type, truncated(low, SECOND), truncated(high, SECOND), span.known, span.value_range)


def _second_with_fraction(call: Call, context: EvalContext) -> ValueRange | None:
    """extract(SECOND FROM ts): grows with local time within a minute, else 0 to 59.999999."""
    found = local_of(call.args[0], call, context)
    if found is None or call.type != DataType("decimal", 8, 6):
        return None
    span, _ = found
    low, high = within(lambda t: t // MINUTE, lambda t: t % MINUTE, 0, MINUTE - 1)(span.low, span.high)
    least, most = (Bound(_millionths(values, span.known), ~span.known) for values in (low, high))
    return strict(call.type, least, most, ~span.known, span.value_range)


def _millionths(values: Ints, known: Mask) -> pa.Array:
    """Whole numbers as decimals with six digits behind the point."""
    whole = pa.array(values, mask=~known).cast(pa.decimal128(19, 0))
    return pc.multiply(whole, pa.scalar(Decimal("0.000001"), pa.decimal128(6, 6))).cast(pa.decimal128(38, 6))


def _from_utc(call: Call, context: EvalContext) -> ValueRange | None:
    """from_utc_timestamp(ts, zone): the local time in the zone, taken for UTC; gives up if the zone is no literal."""
    span, zone = span_of(call.args[0], context, _TIMESTAMP), context.settings.zones.get(call.zone)
    if span is None or zone is None:
        return None
    return range_from(call.type, *zone.local(span.low, span.high), span.known, span.value_range)


def _to_utc(call: Call, context: EvalContext) -> ValueRange | None:
    """to_utc_timestamp(ts, zone): the moment of a local time of the zone; gives up if the zone is no literal."""
    span, zone = span_of(call.args[0], context, _TIMESTAMP), context.settings.zones.get(call.zone)
    if span is None or zone is None:
        return None
    return range_from(call.type, *zone.instants(span.low, span.high), span.known, span.value_range)


def _make_date(call: Call, context: EvalContext) -> ValueRange | None:
    """make_date(year, month, day): within the years; NULL or an error for a month or a day that does not exist."""
    found = [span_of(arg, context, ("int",)) for arg in call.args]
    year, month, day = found
    if year is None or month is None or day is None or call.type.name != "date":
        return None
    known = year.within((1, 9999))
    first, last = (np.where(known, bound, 1970) - 1970 for bound in (year.low, year.high))
    low = first.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64)
    high = (last + 1).astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) - 1
    made = range_from(call.type, low, high, known, year.value_range, month.value_range, day.value_range)
    return replace(made, may_hold_null=True)


_TIMESTAMP = ("timestamp",)
_DATE = ("date",)
_SMALL = ("tinyint", "smallint", "int")


def _of_date(widen: Widen) -> Rule:
    return rule_of(_DATE, widen)


RULES: dict[str, Rule] = {
    **time_arithmetic.RULES,
    "Year": _of_date(grows(calendar.year)),
    "YearOfWeek": _of_date(grows(calendar.iso_year)),
    "Quarter": _of_date(within(calendar.year, calendar.quarter, 1, 4)),
    "Month": _of_date(within(calendar.year, calendar.month, 1, 12)),
    "DayOfYear": _of_date(within(calendar.year, calendar.day_of_year, 1, 366)),
    "WeekOfYear": _of_date(within(calendar.iso_year, calendar.iso_week, 1, 53)),
    "DayOfMonth": _of_date(within(calendar.months, calendar.day_of_month, 1, 31)),
    "DayOfWeek": _of_date(within(calendar.week_from_sunday, calendar.day_of_week, 1, 7)),
    "WeekDay": _of_date(within(calendar.week, calendar.weekday, 0, 6)),
    "Hour": of_local(within(lambda t: t // DAY, lambda t: t % DAY // HOUR, 0, 23)),
    "Minute": of_local(within(lambda t: t // HOUR, lambda t: t % HOUR // MINUTE, 0, 59)),
    "Second": of_local(within(lambda t: t // MINUTE, lambda t: t % MINUTE // SECOND, 0, 59)),
    "SecondWithFraction": _second_with_fraction,
    "FromUTCTimestamp": _from_utc,
    "ToUTCTimestamp": _to_utc,
    "MakeDate": _make_date,
    "TruncDate": _trunc_date,
    "TruncTimestamp": _trunc_timestamp,
    "LastDay": _of_date(grows(calendar.last_of_month)),
    "NextDay": _next_day,
    "UnixTimestamp": _unix_timestamp,
    "ToUnixTimestamp": _unix_timestamp,
    "UnixDate": _of_date(grows(_same)),
    "UnixSeconds": rule_of(("timestamp",), _divided(SECOND)),
    "UnixMillis": rule_of(("timestamp",), _divided(1000)),
    "UnixMicros": rule_of(("timestamp",), grows(_same)),
    "CastTimestampNTZToLong": rule_of(("timestamp_ntz",), _divided(SECOND)),
    "SecondsToTimestamp": rule_of(INTEGERS, *_times(SECOND)),
    "MillisToTimestamp": rule_of(INTEGERS, *_times(1000)),
    "MicrosToTimestamp": rule_of(INTEGERS, *_times(1)),
    "DateFromUnixDate": rule_of(("int",), grows(_same)),
    "DateFormatClass": texts.format_timestamp,
    "FromUnixTime": texts.format_seconds,
}


def _local_dates(call: Call, context: EvalContext) -> ValueRange | None:
    return of_local(_divided(DAY))(call, context)


def _instants_of(size: int) -> Rule:
    """Local times, in units of so many microseconds, to instants."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        span, zone = span_of(call.args[0], context, ("date", "timestamp_ntz")), zone_of(call, context)
        if span is None or zone is None:
            return None
        low, high = zone.instants(span.low * size, span.high * size)
        return range_from(call.type, low, high, span.known, span.value_range)

    return rule


def _to_double(call: Call, context: EvalContext) -> ValueRange | None:
    span = span_of(call.args[0], context, ("timestamp",))
    if span is None:
        return None
    low, high = (Bound(bound / 1e6, ~span.known) for bound in (span.low, span.high))
    return strict(call.type, low, high, ~span.known, span.value_range)


CASTS: dict[tuple[str, str], Rule] = {
    ("date", "timestamp"): _instants_of(DAY),
    ("date", "timestamp_ntz"): _of_date(grows(lambda days: days * DAY)),
    ("timestamp", "date"): _local_dates,
    ("timestamp_ntz", "date"): _local_dates,
    ("timestamp", "timestamp_ntz"): of_local(grows(_same)),
    ("timestamp_ntz", "timestamp"): _instants_of(1),
    ("timestamp", "bigint"): rule_of(("timestamp",), _divided(SECOND)),
    ("timestamp", "int"): rule_of(("timestamp",), _divided(SECOND)),
    ("timestamp", "double"): _to_double,
    **{(integer, "timestamp"): rule_of(INTEGERS, *_times(SECOND)) for integer in INTEGERS},
    **{(time, "string"): texts.to_text for time in ("date", *TIMESTAMPS)},
    **{(interval, "interval day to second"): rule_of(DAY_TIME, grows(_same)) for interval in DAY_TIME},
    **{(interval, "interval year to month"): rule_of(YEAR_MONTH, grows(_same)) for interval in YEAR_MONTH},
}
"""The rules of casts by the names of both types."""
