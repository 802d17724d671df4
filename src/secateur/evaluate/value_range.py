"""A column's statistics, prepared for comparing: numpy views where possible, and what an entry may hold.

An entry holds rows of three kinds: NULL, NaN (floats only), and *numbers*, by which we mean every other value of any
type: those lie within the bounds. ``may_hold_*`` says which kinds are possible (rules S1 and S5):

=====================  ===============================================================================
may hold               unless
=====================  ===============================================================================
NULL                   nulls = 0, or rows = 0
NaN                    not a float, or nans = 0, or no value (see below)
a number               no value, or nulls + nans = rows and both bounds are unknown
a value (either)       rows = 0, or nulls = rows and both bounds are unknown
=====================  ===============================================================================

A bound next to "nulls = rows" contradicts it, so the entry counts as one that may hold values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.prefix_keys import COMPARE, PrefixKeys, prefix_keys_of
from secateur.evaluate.verdict import Flags, both, either, neither
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Value
from secateur.plan.types import DataType
from secateur.stats.arrays import null_mask, raw_values, to_mask
from secateur.stats.file_stats import ColumnStats, FileStats, Where

Numbers = npt.NDArray[Any]

_GARBLES_SLICES = int(pa.__version__.partition(".")[0]) < 24
"""Whether Arrow's if_else garbles slices of strings (apache/arrow#49410)."""

_ARROW: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


@dataclass(frozen=True)
class Bound:
    """One side of the bounds: ``values`` is numpy for int64 and float64, else Arrow; unknown entries hold anything."""

    values: Numbers | pa.Array
    unknown: Flags
    prefix_keys: PrefixKeys | None = None
    """Of texts, to compare them faster."""

    @cached_property
    def order(self) -> npt.NDArray[np.int64]:
        """Of numbers, the entries from the least bound to the greatest, unknown ones anywhere."""
        return np.argsort(np.asarray(self.values), kind="stable")

    @cached_property
    def extremes(self) -> tuple[Any, Any] | None:
        """Of numbers that are all known, the least and the greatest."""
        if not isinstance(self.values, np.ndarray) or self.unknown is not False or not len(self.values):
            return None
        return self.values.min(), self.values.max()

    def can(self, op: str, value: Any) -> Flags:
        """Where ``bound op value`` holds or the bound is unknown."""
        if isinstance(self.values, np.ndarray):
            return either(COMPARE[op](self.values, value), self.unknown)
        if self.prefix_keys is not None:
            texts = self.values
            holds = self.prefix_keys.compare(
                op, value, lambda places: _compare(op, texts.take(pa.array(places)), value)
            )
            return either(holds, self.unknown)
        return either(_compare(op, self.values, value), self.unknown)

    def can_against(self, op: str, other: Bound) -> Flags:
        """Where ``bound op other`` holds, entry by entry, or one of the two is unknown."""
        if isinstance(self.values, np.ndarray) and isinstance(other.values, np.ndarray):
            return either(COMPARE[op](self.values, other.values), either(self.unknown, other.unknown))
        if isinstance(self.values, np.ndarray) or isinstance(other.values, np.ndarray):
            return True
        return either(
            to_mask(_ARROW[op](self.values, other.values).fill_null(True)), either(self.unknown, other.unknown)
        )

    def at(self, where: Where) -> Bound:
        """The same for some of the entries."""
        heads = self.prefix_keys and self.prefix_keys.at(where)
        return Bound(_at(self.values, where), flags_at(self.unknown, where), heads)

    def known_entries(self, where: npt.NDArray[np.int64] | None, instead: Any) -> Numbers | pa.Array:
        """The bounds of some entries (None: of all), with ``instead`` for the unknown ones."""
        unknown = flags_at(self.unknown, where)
        if isinstance(self.values, np.ndarray):
            values = self.values if where is None else self.values[where]
            return values if unknown is False else np.where(unknown, instead, values)
        if unknown is False and where is None:
            return self.values
        where = np.arange(len(self.values)) if where is None else where
        hidden = None if unknown is False else np.broadcast_to(unknown, len(where))
        return self.values.take(pa.array(where, mask=hidden)).fill_null(pa.scalar(instead, self.values.type))


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What is known of one column, over all entries."""

    type: DataType
    low: Bound
    high: Bound
    may_hold_null: Flags
    may_hold_nan: Flags
    may_hold_number: Flags
    may_hold_value: Flags

    def at(self, where: Where) -> ValueRange:
        """The same for some of the entries."""
        low = self.low.at(where)
        return ValueRange(
            self.type,
            low,
            low if self.high is self.low else self.high.at(where),
            flags_at(self.may_hold_null, where),
            flags_at(self.may_hold_nan, where),
            flags_at(self.may_hold_number, where),
            flags_at(self.may_hold_value, where),
        )


def value_range(stats: FileStats, column: ScanColumn) -> ValueRange | None:
    """The prepared statistics of a column, None if nothing is known or its type has no domain."""
    if column.kind == "hidden" or column.type.domain is None:
        return None
    return stats.derive(column, _prepare)


def literal_of(value: Value, type_: DataType) -> Any:
    """The literal as the domain of a type compares it, None if it is not a value of that domain.

    >>> from secateur.plan.types import parse_type
    >>> literal_of(5, parse_type("int")), literal_of(2**70, parse_type("int")), literal_of(b"a", parse_type("int"))
    (5, None, None)
    """
    domain = type_.domain
    if domain == pa.int64():
        return int(value) if isinstance(value, int) and -(2**63) <= value < 2**63 else None
    if domain == pa.float64():
        return value if isinstance(value, float) else None
    if domain == pa.binary():
        return value if isinstance(value, bytes) else None
    if domain is None or not isinstance(value, Decimal):
        return None
    try:
        return pa.scalar(value, domain).as_py()
    except pa.ArrowInvalid:
        return None


def _prepare(stats: FileStats, column: ScanColumn) -> ValueRange | None:
    if stats.origin is not None:
        whole, where = stats.origin
        known = whole.derive(column, _prepare)
        return known.at(where) if known else None
    found = stats.column(column)
    if found is None:
        return None
    low, high = _bound(found.low), _bound(found.high)
    no_bounds = both(low.unknown, high.unknown)
    empty = _where(pc.equal(stats.rows, 0))
    no_null = either(_where(pc.equal(found.nulls, 0)), empty)
    no_value = either(empty, both(_where(pc.equal(found.nulls, stats.rows)), no_bounds))
    no_nan, no_number = _nan_facts(found, stats.rows, column.type, no_value, no_bounds)
    return ValueRange(
        type=column.type,
        low=low,
        high=high,
        may_hold_null=_constant(_not(no_null)),
        may_hold_nan=_constant(_not(no_nan)),
        may_hold_number=_constant(_not(no_number)),
        may_hold_value=_constant(_not(no_value)),
    )


def _nan_facts(
    found: ColumnStats, rows: pa.Array, type_: DataType, no_value: Flags, no_bounds: Flags
) -> tuple[Flags, Flags]:
    """Where no NaN and where no number is possible."""
    if not type_.is_float:
        return True, no_value
    no_nan = either(_where(pc.equal(found.nans, 0)), no_value)
    counted = pc.and_(pc.greater_equal(found.nulls, 0), pc.greater_equal(found.nans, 0))
    all_counted = pc.and_(pc.equal(pc.add(found.nulls, found.nans), rows), counted)
    return no_nan, either(no_value, both(_where(all_counted), no_bounds))


def _bound(array: pa.Array) -> Bound:
    unknown = _constant(null_mask(array)) if array.null_count else False
    if pa.types.is_int64(array.type) or pa.types.is_float64(array.type):
        dtype = np.int64 if pa.types.is_int64(array.type) else np.float64
        # Values under a null are arbitrary; ``unknown`` overrules them.
        return Bound(raw_values(array, dtype), unknown)
    return Bound(array, unknown, prefix_keys_of(array) if pa.types.is_binary(array.type) else None)


def _compare(op: str, values: pa.Array, value: Any) -> Mask:
    """Where ``values op value`` holds or a value is null."""
    holds = _ARROW[op](values, pa.scalar(value, values.type))
    return to_mask(holds.fill_null(True) if holds.null_count else holds)


def _at(values: Numbers | pa.Array, where: Where) -> Numbers | pa.Array:
    if isinstance(values, np.ndarray):
        return values[where]
    if not isinstance(where, slice):
        return values.take(pa.array(where))
    if _GARBLES_SLICES and pa.types.is_binary(values.type):
        return values.take(pa.array(np.arange(where.start, where.stop)))
    return values.slice(where.start, where.stop - where.start)


def flags_at(flags: Flags, where: Where | None) -> Flags:
    """The flags of some entries, None: of all."""
    return flags if where is None or isinstance(flags, bool) else flags[where]


def _where(holds: pa.BooleanArray) -> Flags:
    """Where a comparison holds for sure: null, a missing count, is no."""
    return _constant(to_mask(holds.fill_null(False)))


def _not(flags: Flags) -> Flags:
    return neither(flags, False)


def _constant(flags: Flags) -> Flags:
    """One bool instead of a mask whose flags are all the same."""
    if isinstance(flags, bool):
        return flags
    if flags.all():
        return True
    return flags if flags.any() else False
