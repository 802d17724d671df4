"""Which functions and casts have a rule, and which of them no expression has reached."""

from __future__ import annotations

from collections.abc import Collection

from secateur.evaluate.rules import RULES, casts, times
from secateur.plan.types import DAY_TIME, YEAR_MONTH

NEVER_WRITTEN = {
    "CheckOverflow": "Spark 4 checks for overflow within the operators",
    "KnownNullable": "Spark puts it around the conditions of outer joins",
    "KnownNotNull": "Spark puts it into the deserializers of typed data sets",
    "KnownFloatingPointNormalized": "Spark puts it around the keys of joins and groups",
    "NormalizeNaNAndZero": "Spark puts it around the keys of joins and groups",
    "TimeAdd": "the name of TimestampAddInterval in Spark 4.0",
    "CastTimestampNTZToLong": "Spark puts it into window()",
    **{
        f"Cast {interval} to {target}": "only from a column of that type, which no writer but Spark has"
        for target, intervals in (("interval day to second", DAY_TIME), ("interval year to month", YEAR_MONTH))
        for interval in intervals
        if interval != "interval day"
    },
}
"""Names that no WHERE clause brings about, with where they come from; ``tests/evaluate`` has them."""


def expected() -> set[str]:
    """The names of all functions and casts that have a rule, as :func:`tests.fuzz.campaign.names_of` writes them."""
    pairs = [*casts.CASTS, *times.CASTS]
    return set(RULES) | {f"Cast {source} to {target}" for source, target in pairs}


def missing(reached: Collection[str]) -> set[str]:
    """Those that were not reached and could have been."""
    return expected() - set(reached) - set(NEVER_WRITTEN)
