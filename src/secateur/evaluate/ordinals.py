"""The values of a type in order, numbered by whole numbers, so that a search can halve any of them alike.

==========================  =================================================================================
type                        the number of a value
==========================  =================================================================================
integers, dates             the value
timestamps                  microseconds since 1970
decimals                    the unscaled value
floats                      the bits, which grow with the size of the number, with its sign; one for both zeros
==========================  =================================================================================

NULL and NaN are not on the axis. Strings have none: between two of them there is always another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from secateur.evaluate.rules.intervals import LIMITS
from secateur.evaluate.rules.spans import INT32, INT64, MICROS
from secateur.plan.expressions import Value
from secateur.plan.types import DataType

_ENDS = {**LIMITS, "date": INT32, "timestamp": INT64, "timestamp_ntz": INT64}
_USUAL = {"date": (-25_567, 84_006), "timestamp": (-2_208_988_800_000_000, 7_258_118_400_000_000)}
"""The years 1900 to 2199."""
_UNITS = (1, 1_000, 1_000_000, 60_000_000, 900_000_000, 3_600_000_000, 86_400_000_000)
_BITS: dict[str, tuple[Any, Any]] = {"float": (np.float32, np.int32), "double": (np.float64, np.int64)}


@dataclass(frozen=True, slots=True)
class Ordinals:
    """The ordered values of one type, from the number ``least`` to ``greatest``.

    >>> from decimal import Decimal
    >>> from secateur.plan.types import parse_type
    >>> axis = ordinals_of(parse_type("decimal(3,1)"))
    >>> axis.least, axis.greatest, axis.number(Decimal("1.5")), axis.value(16)
    (-999, 999, 15, Decimal('1.6'))
    """

    type: DataType
    least: int
    greatest: int

    def values(self, numbers: Sequence[int]) -> pa.Array:
        """The values in the type's domain."""
        if self.type.name == "decimal":
            words = b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)
            domain = self.type.domain
            return pa.Array.from_buffers(domain, len(numbers), [None, pa.py_buffer(words)])
        array = np.array(numbers, np.int64)
        return pa.array(_floats(array, self.type) if self.type.is_float else array)

    def value(self, number: int) -> Value:
        """One value as literals hold it."""
        found: Value = self.values([number])[0].as_py()
        return found

    def number(self, value: Value) -> int | None:
        """Where a number is, or a place next to it; None if it is not on the axis."""
        if isinstance(value, bytes) or value is None or math.isnan(value):
            return None
        if self.type.is_float:
            found = _bits(float(value), self.type)
        elif math.isinf(value):
            return None
        elif self.type.name == "decimal":
            found = int(Fraction(value) * 10**self.type.scale)
        else:
            found = int(value)
        return min(max(found, self.least), self.greatest)

    @property
    def usual(self) -> tuple[int, int]:
        """Where values are to be expected if nothing is known."""
        if self.type.is_float:
            return _bits(-1e9, self.type), _bits(1e9, self.type)
        return _USUAL.get(self.type.name.removesuffix("_ntz"), (self.least, self.greatest))

    def evenly(self, first: int, last: int, count: int) -> list[int]:
        """Places from first to last whose values are evenly spaced; the first is one of them."""
        if not self.type.is_float:
            return [first + (last - first) * i // count for i in range(count)]
        part = np.arange(1, count) / count
        values = self._finite(first) * (1 - part) + self._finite(last) * part
        real, whole = _BITS[self.type.name]
        sizes = np.abs(values).astype(real).view(whole).astype(np.int64)
        return [first, *np.where(values < 0, -sizes, sizes).tolist()]

    def share(self, part: tuple[int, int], whole: tuple[int, int]) -> float:
        """How much of a range another one covers, by value; 0 if they do not meet."""
        low, high = max(part[0], whole[0]), min(part[1], whole[1])
        if low > high:
            return 0.0
        if not self.type.is_float:
            return (high - low + 1) / (whole[1] - whole[0] + 1)
        ends = self._finite(low) / 2, self._finite(high) / 2, self._finite(whole[0]) / 2, self._finite(whole[1]) / 2
        return (ends[1] - ends[0]) / (ends[3] - ends[2]) if ends[3] > ends[2] else 1.0

    def _finite(self, number: int) -> float:
        value = float(_floats(np.array([number]), self.type)[0])
        most = float(np.finfo(_BITS[self.type.name][0]).max) / 2
        return min(max(value, -most), most)

    def unit(self, step: int) -> int:
        """A step of at least this size to values at which something is likely to change."""
        if not self.type.name.startswith("timestamp"):
            return step
        return next((unit for unit in _UNITS if unit >= step), -(-step // _UNITS[-1]) * _UNITS[-1])

    @property
    def modelled(self) -> tuple[int, ...]:
        """The first and last values that rules look at (see ``rules.spans``), if that is not all of them."""
        match self.type.name:
            case "date":
                return tuple(end // 86_400_000_000 for end in MICROS)
            case "timestamp" | "timestamp_ntz":
                # Local time is off by less than a day.
                return MICROS[0] + 86_400_000_000, MICROS[1] - 86_400_000_000
        return ()


def ordinals_of(type_: DataType) -> Ordinals | None:
    """The axis of a type, None if it has none."""
    if type_.is_float:
        end = _bits(np.inf, type_)
        return Ordinals(type_, -end, end)
    if type_.name == "decimal":
        end = 10**type_.precision - 1
        return Ordinals(type_, -end, end)
    return Ordinals(type_, *_ENDS[type_.name]) if type_.name in _ENDS and type_.name != "boolean" else None


def _floats(numbers: npt.NDArray[np.int64], type_: DataType) -> npt.NDArray[np.float64]:
    real, whole = _BITS[type_.name]
    sizes = np.abs(numbers).astype(whole).view(real).astype(np.float64)
    floats: npt.NDArray[np.float64] = np.copysign(sizes, np.where(numbers < 0, -1.0, 1.0))
    return floats


def _bits(value: float, type_: DataType) -> int:
    real, whole = _BITS[type_.name]
    with np.errstate(over="ignore"):
        size = int(np.abs(real(value)).view(whole))
    return -size if value < 0 else size
