"""Dates and timestamps as text: formats that write larger units first sort as time does."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.query.expressions import Call, Literal
from secateur.reason.facts import Bound, Facts
from secateur.reason.ranges import Scope
from secateur.reason.rules.moments import SECOND, local_of, zone_of
from secateur.reason.rules.spans import DAY, MICROS, Ints, Span, span_of, strict
from secateur.stats.filestats import Mask

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


def to_text(call: Call, scope: Scope) -> Facts | None:
    """A cast: the fraction of a second comes last, if there is one; so whole seconds are below it, all digits above."""
    e = call.args[0]
    if e.type.name == "date":
        days = span_of(e, scope, ("date",))
        if days is None:
            return None
        midnight = Span(days.low * DAY, days.high * DAY, days.known, days.facts)
        return _formatted(call, scope, midnight, b"yyyy-MM-dd")
    found = local_of(e, call, scope)
    if found is None or scope.settings.legacy_formats:
        return None
    span, _ = found
    known = span.within(MICROS)
    return strict(call.type, _written(span.low, known, "s"), _written(span.high, known, "us"), ~known, span.facts)


def format_timestamp(call: Call, scope: Scope) -> Facts | None:
    """DateFormatClass(timestamp, pattern)."""
    found = local_of(call.args[0], call, scope)
    match call.args[1]:
        case Literal(value=bytes(pattern)) if found:
            span, _ = found
            return _formatted(call, scope, span, pattern)
    return None


def format_seconds(call: Call, scope: Scope) -> Facts | None:
    """FromUnixTime(seconds, pattern)."""
    span = span_of(call.args[0], scope, ("bigint",), (MICROS[0] // SECOND, MICROS[1] // SECOND))
    zone = zone_of(call, scope)
    match call.args[1]:
        case Literal(value=bytes(pattern)) if span and zone:
            low, high = zone.local(span.low * SECOND, span.high * SECOND)
            return _formatted(call, scope, Span(low, high, span.known, span.facts), pattern)
    return None


def _formatted(call: Call, scope: Scope, local: Span, pattern: bytes) -> Facts | None:
    if pattern not in _FORMATS or scope.settings.legacy_formats or call.type.name != "string":
        return None
    unit, dashes = _FORMATS[pattern]
    known = local.within(MICROS)
    low, high = (_written(bound, known, unit, dashes) for bound in (local.low, local.high))
    return strict(call.type, low, high, ~known, local.facts)


def _written(local: Ints, known: Mask, unit: Unit, dashes: bool = True) -> Bound:
    times: npt.NDArray[np.datetime64] = np.where(known, local, 0).astype("datetime64[us]")
    # Each period is written once, which is slow, and looked up for every entry.
    periods, at = np.unique(times.astype(f"datetime64[{unit}]"), return_inverse=True)
    text = pc.replace_substring(pa.array(np.datetime_as_string(periods, unit=unit)), "T", " ")
    text = text if dashes else pc.replace_substring(text, "-", "")
    return Bound(text.cast(pa.binary()).take(pa.array(at, mask=~known)), ~known)
