"""The calendar as arithmetic on arrays of days since 1970-01-01: the Gregorian one at all times, as in Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_MONDAY = 3
"""1970-01-01 was a Thursday, three days after a Monday."""


def year(days: Ints) -> Ints:
    """
    >>> year(np.array([-719162, -1, 0, 365, 2932896])).tolist()
    [1, 1969, 1970, 1971, 9999]
    """
    return _to(days, "D", "Y") + 1970


def months(days: Ints) -> Ints:
    """Months since January 1970."""
    return _to(days, "D", "M")


def month(days: Ints) -> Ints:
    return months(days) % 12 + 1


def quarter(days: Ints) -> Ints:
    return months(days) % 12 // 3 + 1


def day_of_month(days: Ints) -> Ints:
    return days - start_of_month(days) + 1


def day_of_year(days: Ints) -> Ints:
    return days - start_of_year(days) + 1


def week(days: Ints) -> Ints:
    """Weeks since the one of 1970-01-01; a week begins on Monday."""
    return (days + _MONDAY) // 7


def weekday(days: Ints) -> Ints:
    """0 for Monday to 6 for Sunday."""
    return (days + _MONDAY) % 7


def week_from_sunday(days: Ints) -> Ints:
    """The same as :func:`week` for weeks that begin on Sunday."""
    return (days + _MONDAY + 1) // 7


def day_of_week(days: Ints) -> Ints:
    """1 for Sunday to 7 for Saturday."""
    return (days + _MONDAY + 1) % 7 + 1


def iso_year(days: Ints) -> Ints:
    """The year that the Thursday of the week lies in.

    >>> iso_year(np.array([18261, 18262, 18263 + 365])).tolist()  # 2019-12-31, 2020-01-01, 2021-01-01
    [2020, 2020, 2020]
    """
    return year(_thursday(days))


def iso_week(days: Ints) -> Ints:
    """
    >>> iso_week(np.array([18261, 18262, 18263 + 365])).tolist()
    [1, 1, 53]
    """
    thursday = _thursday(days)
    return (day_of_year(thursday) - 1) // 7 + 1


def start_of_week(days: Ints) -> Ints:
    return days - weekday(days)


def start_of_month(days: Ints) -> Ints:
    return _to(months(days), "M", "D")


def start_of_quarter(days: Ints) -> Ints:
    return _to(months(days) // 3 * 3, "M", "D")


def start_of_year(days: Ints) -> Ints:
    return _to(_to(days, "D", "Y"), "Y", "D")


def last_of_month(days: Ints) -> Ints:
    return _to(months(days) + 1, "M", "D") - 1


def add_months(days: Ints, count: Any) -> Ints:
    """The same day of another month, or its last one if it is shorter.

    >>> add_months(np.array([18292, 18293]), 1).tolist()  # 2020-01-31 and 2020-02-01
    [18321, 18322]
    """
    target = months(days) + count
    start = _to(target, "M", "D")
    same: Ints = np.minimum(start + day_of_month(days) - 1, _to(target + 1, "M", "D") - 1)
    return same


def next_day(days: Ints, day: int) -> Ints:
    """The first date after this one that is such a day, 0 for Monday to 6 for Sunday."""
    return days + 1 + (day - weekday(days + 1)) % 7


def _thursday(days: Ints) -> Ints:
    return start_of_week(days) + 3


def _to(numbers: Ints, unit: str, other: str) -> Ints:
    return numbers.astype(f"datetime64[{unit}]").astype(f"datetime64[{other}]").astype(np.int64)
