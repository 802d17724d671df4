"""Arithmetic on intervals of floats: rounded outward, with NaN wherever infinities can meet (rule S5).

A result is widened by one place for what IEEE rounds correctly, by sixteen for the functions of a mathematics library:
Java's and numpy's differ by a few. Bounds of a ``float`` are widened by places of a float.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from secateur.evaluate.rules.intervals import Interval, holds
from secateur.evaluate.value_range import Numbers
from secateur.plan.columns import Mask
from secateur.plan.types import DataType

Partial = tuple[Interval, Mask, Mask]
"""The interval, where the operation can yield NULL or fail, and where it can make a NaN of numbers."""

Monotone = Callable[[Numbers], Numbers]

_PLACES = 16
_TINIEST = np.nextafter(0.0, 1.0)


def outward(low: Numbers, high: Numbers, type_: DataType) -> Interval:
    """One place wider on both sides; NaN becomes infinite."""
    with np.errstate(all="ignore"):
        if type_.name == "float":
            low, high = low.astype(np.float32), high.astype(np.float32)
        step = low.dtype.type(np.inf)
        low, high = np.nextafter(low, -step), np.nextafter(high, step)
    return (
        np.where(np.isnan(low), -np.inf, low.astype(np.float64)),
        np.where(np.isnan(high), np.inf, high.astype(np.float64)),
    )


def far_outward(low: Numbers, high: Numbers, type_: DataType) -> Interval:
    """Sixteen places wider on both sides."""
    low, high = outward(low, high, type_)
    with np.errstate(all="ignore"):
        least, greatest = low - _PLACES * np.spacing(np.abs(low)), high + _PLACES * np.spacing(np.abs(high))
    return np.where(np.isnan(least), low, least), np.where(np.isnan(greatest), high, greatest)


def add(a: Interval, b: Interval, type_: DataType) -> Partial:
    with np.errstate(all="ignore"):
        low, high = a[0] + b[0], a[1] + b[1]
    nan = (holds(a, np.inf) & holds(b, -np.inf)) | (holds(a, -np.inf) & holds(b, np.inf))
    return outward(low, high, type_), _nowhere(a), nan


def subtract(a: Interval, b: Interval, type_: DataType) -> Partial:
    return add(a, (-b[1], -b[0]), type_)


def multiply(a: Interval, b: Interval, type_: DataType) -> Partial:
    nan = (holds(a, 0) & _infinite(b)) | (_infinite(a) & holds(b, 0))
    return outward(*_corners(np.multiply, a, b), type_), _nowhere(a), nan


def divide(a: Interval, b: Interval, type_: DataType) -> Partial:
    """``a / b``: NULL or an error at zero, and without bounds near it."""
    zero = holds(b, 0)
    low, high = _corners(np.divide, a, (np.where(zero, np.nan, b[0]), np.where(zero, np.nan, b[1])))
    return outward(low, high, type_), zero, _infinite(a) & _infinite(b)


def remainder(a: Interval, b: Interval, type_: DataType) -> Partial:
    """``a % b``: has the sign of a and is no larger than either; NaN for an infinite a."""
    reach = np.maximum(-b[0], b[1])
    low = np.where(a[0] >= 0, 0.0, np.maximum(a[0], -reach))
    high = np.where(a[1] <= 0, 0.0, np.minimum(a[1], reach))
    return (low, high), holds(b, 0), _infinite(a)


def positive_remainder(a: Interval, b: Interval, type_: DataType) -> Partial:
    """``pmod(a, b)``: adds b to a negative remainder, which makes NaN of an infinite b."""
    reach = np.maximum(-b[0], b[1])
    positive = b[0] > 0
    safe = positive & np.isfinite(b[1]) & ~_infinite(a)
    return (np.where(positive, 0.0, -reach), reach), holds(b, 0), ~safe


def negate(a: Interval, type_: DataType) -> Partial:
    return (-a[1], -a[0]), _nowhere(a), _nowhere(a)


def absolute(a: Interval, type_: DataType) -> Partial:
    low, high = a
    nearest = np.where(low > 0, low, np.where(high < 0, -high, 0.0))
    return (nearest, np.maximum(-low, high)), _nowhere(a), _nowhere(a)


def rounded(a: Interval, scale: int, type_: DataType) -> Partial:
    """``round(a, scale)``: at most half a unit of the last kept digit away."""
    half = 0.5 * 10.0**-scale
    with np.errstate(all="ignore"):
        return far_outward(a[0] - half, a[1] + half, type_), _nowhere(a), _nowhere(a)


def increasing(function: Monotone, a: Interval, type_: DataType) -> Partial:
    """A function that grows with its argument and is defined everywhere."""
    with np.errstate(all="ignore"):
        return far_outward(function(a[0]), function(a[1]), type_), _nowhere(a), _nowhere(a)


def exactly(function: Monotone, a: Interval, type_: DataType) -> Partial:
    """The same for one that Java and numpy agree on to the last bit."""
    return (function(a[0]), function(a[1])), _nowhere(a), _nowhere(a)


def square_root(a: Interval, type_: DataType) -> Partial:
    """NaN below zero."""
    return outward(np.sqrt(np.maximum(a[0], 0.0)), np.sqrt(np.maximum(a[1], 0.0)), type_), _nowhere(a), a[0] < 0


def logarithm(function: Monotone, above: float, a: Interval, type_: DataType) -> Partial:
    """NULL at and below ``above``, in every mode."""
    start = np.nextafter(above, np.inf)
    low, high = function(np.maximum(a[0], start)), function(np.maximum(a[1], start))
    return far_outward(low, high, type_), a[0] <= above, _nowhere(a)


def logarithm_to(base: Interval, a: Interval, type_: DataType) -> Partial:
    """``log(base, a)`` for bases above 1; anything for others."""
    usual = base[0] > 1
    bases = (np.where(usual, base[0], np.nan), np.where(usual, base[1], np.nan))
    logs = np.log(np.maximum(a[0], _TINIEST)), np.log(np.maximum(a[1], _TINIEST))
    with np.errstate(all="ignore"):
        low, high = _corners(np.divide, logs, (np.log(bases[0]), np.log(bases[1])))
    nan = ~usual | (np.isinf(a[1]) & np.isinf(base[1]))
    return far_outward(low, high, type_), (base[0] <= 0) | (a[0] <= 0), nan


def power(a: Interval, b: Interval, type_: DataType) -> Partial:
    """``pow(a, b)`` for a positive a, or an even whole number b; anything for others.

    Infinite exponents are left out, for Java says that 1 to the infinity is NaN. So is a zero to a negative power,
    which depends on the sign of zero.
    """
    low, high = a
    even = (b[0] == b[1]) & (np.mod(np.where(np.isfinite(b[0]), b[0], 1.0), 2.0) == 0) & (b[0] >= 0)
    (near, far), _, _ = absolute(a, type_)
    usual = ((low > 0) | even) & np.isfinite(b[0]) & np.isfinite(b[1])
    base = (np.where(even, near, low), np.where(even, far, high))
    base = (np.where(usual, base[0], np.nan), np.where(usual, base[1], np.nan))
    least, greatest = _corners(np.power, base, b)
    # A NaN to the power of anything is NaN, except to the power of zero; and no exponent makes numpy's NaN a number.
    return far_outward(np.where(usual, least, np.nan), np.where(usual, greatest, np.nan), type_), _nowhere(a), ~usual


def _corners(operation: Callable[[Numbers, Numbers], Numbers], a: Interval, b: Interval) -> Interval:
    """The extremes of an operation that is monotone in each argument; what is NaN at a corner does not count there.

    At such a corner zero meets infinity or infinity infinity. All numbers next to it lie between those of the corners
    next to it, and if there are none, the operation yields no number at all.
    """
    with np.errstate(all="ignore"):
        values = [operation(x, y) for x in _ends(a) for y in _ends(b)]
        return reduce(np.fmin, values), reduce(np.fmax, values)


def _ends(a: Interval) -> tuple[Numbers, ...]:
    """Both bounds, or the one that a constant has."""
    return a[:1] if a[0] is a[1] else a


def _infinite(a: Interval) -> Mask:
    unbounded: Mask = np.isinf(a[0]) | np.isinf(a[1])
    return unbounded


def _nowhere(a: Interval) -> Mask:
    return np.zeros(len(a[0]), np.bool_)
