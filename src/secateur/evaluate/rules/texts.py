"""Dates and timestamps as text: formats that write larger units first sort as time does."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.expression_ranges import EvalContext
from secateur.evaluate.rules.moments import SECOND, local_of, zone_of
from secateur.evaluate.rules.spans import DAY, MICROS, Ints, Span, span_of, strict
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.columns import Mask
from secateur.plan.expressions import Call, Literal

Unit: TypeAlias = OneOf["Y", "M", "D", "h", "m", "s", "us"]
_FORMATS: dict[bytes, tuple[Unit, bool]] = {
    b"yyyy": ("Y", True),
    b"yyyy-MM": ("M", True),
    b"yyyy-MM-dd": ("D", True),
    b"yyyyMM": ("M", False),
    b"yyyyMMdd": ("D", False),
    b"yyyy-MM-dd HH": ("h", True),
    b"yyyy-MM-dd HH:mm": ("m", True),
    b"yyyy-MM-dd HH:mm:ss": ("s", True),
}
"""Formats that sort like time: numpy's unit, and whether they have dashes."""


def to_text(call: Call, context: EvalContext) -> ValueRange | None:
    """A cast: the fraction of a second comes last, if there is one; so whole seconds are below it, all digits above."""
    e = call.args[0]
    if e.type.name == "date":
        days = span_of(e, context, ("date",))
        if days is None:
            return None
        midnight = Span(days.low * DAY, days.high * DAY, days.known, days.value_range)
        return _formatted(call, context, midnight, b"yyyy-MM-dd")
    found = local_of(e, call, context)
    if found is None or context.settings.legacy_formats:
        return None
    span, _ = found
    known = span.within(MICROS)
    return strict(call.type, _written(span.low, known, "s"), _written(span.high, known, "us"), ~known, span.value_range)


def format_timestamp(call: Call, context: EvalContext) -> ValueRange | None:
    """DateFormatClass(timestamp, pattern)."""
    found = local_of(call.args[0], call, context)
    match call.args[1]:
        case Literal(value=bytes(pattern)) if found:
            span, _ = found
            return _formatted(call, context, span, pattern)
    return None


def format_seconds(call: Call, context: EvalContext) -> ValueRange | None:
    """FromUnixTime(seconds, pattern)."""
    span = span_of(call.args[0], context, ("bigint",), (MICROS[0] // SECOND, MICROS[1] // SECOND))
    zone = zone_of(call, context)
    match call.args[1]:
        case Literal(value=bytes(pattern)) if span and zone:
            low, high = zone.local(span.low * SECOND, span.high * SECOND)
            return _formatted(call, context, Span(low, high, span.known, span.value_range), pattern)
    return None


def _formatted(call: Call, context: EvalContext, local: Span, pattern: bytes) -> ValueRange | None:
    if pattern not in _FORMATS or context.settings.legacy_formats or call.type.name != "string":
        return None
    unit, dashes = _FORMATS[pattern]
    known = local.within(MICROS)
    low, high = (_written(bound, known, unit, dashes) for bound in (local.low, local.high))
    return strict(call.type, low, high, ~known, local.value_range)


def _written(local: Ints, known: Mask, unit: Unit, dashes: bool = True) -> Bound:
    times: npt.NDArray[np.datetime64] = np.where(known, local, 0).astype("datetime64[us]")
    # Each period is written once, which is slow, and looked up for every entry.
    periods, at = np.unique(times.astype(f"datetime64[{unit}]"), return_inverse=True)
    text = pc.replace_substring(pa.array(np.datetime_as_string(periods, unit=unit)), "T", " ")
    text = text if dashes else pc.replace_substring(text, "-", "")
    return Bound(text.cast(pa.binary()).take(pa.array(at, mask=~known)), ~known)
