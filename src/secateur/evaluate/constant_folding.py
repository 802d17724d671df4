"""Expressions over constants: where columns have one value in a file, Spark itself says what an expression is there.

A column is *constant* in an entry if its bounds are equal and it holds neither NULL nor NaN, or if it holds nothing but
NULL. (Not exactly zero for floats, where -0.0 and 0.0 are equal but not the same.) No rule can know every function, but
Spark does: :func:`candidates` finds the parts of a predicate that rules are blunt about, :func:`distinct_rows` the
tuples of constants that their columns take, and :class:`Evaluated` holds what Spark made of them. It sharpens what the
rules say, in the entries where all columns are constant; an error of Spark's is "unknown" (rule S1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.expression_ranges import Columns, EvalContext, column_source
from secateur.evaluate.rules import RULES
from secateur.evaluate.rules.intervals import anything, choice, mask
from secateur.evaluate.rules.strings import RULES as STRINGS
from secateur.evaluate.value_range import Bound, ValueRange, value_range
from secateur.evaluate.verdict import neither
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import (
    NOT_EVALUABLE,
    Alias,
    And,
    Call,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    Value,
    children,
    walk,
)
from secateur.plan.types import DataType
from secateur.stats.arrays import to_mask
from secateur.stats.file_stats import FileStats

Ints = npt.NDArray[np.int64]
Row = tuple[Value, ...]
Evaluable = Compare | In | IsNull | IsNotNull | StartsWith | Like | Call

MOST_ROWS = 4096
"""No more tuples of constants than these are evaluated for one expression."""
_MOST_COLUMNS = 5
_REPEATS = 4
"""So often values have to come on average, for it to pay to look at each once."""
_DENSE = 1 << 16
_BLUNT = frozenset({*STRINGS, "DateFormatClass", "FromUnixTime", "MonthsBetween"})
"""Functions whose rules say less about constants than Spark can; those of strings know ASCII only."""


class Unknown:
    """The value of an expression that Spark could not evaluate."""


UNKNOWN = Unknown()


# What to ask ----------------------------------------------------------------------------------------------------------


def candidates(e: Expression) -> Iterator[Evaluable]:
    """The parts of a predicate worth asking Spark about: the largest that hold something which rules are blunt about.

    Below such a part only those count that have fewer columns, since more entries may have constants for these.
    """
    match e:
        case And() | Or() | Not() | Alias():
            for child in children(e):
                yield from candidates(child)
        case Compare() | In() | IsNull() | IsNotNull() | StartsWith() | Like():
            inputs = children(e)
            if any(child.type.domain is None or isinstance(child, Opaque) for child in inputs):
                if e.ref != NOT_EVALUABLE:
                    yield e
                return
            for child in inputs:
                yield from candidates(child)
        case Call():
            if not any(map(_is_blunt, walk(e))):
                return
            asked = e.ref != NOT_EVALUABLE and e.type.domain is not None
            if asked:
                yield e
            whole = columns_of(e)
            for child in e.args:
                if not asked or columns_of(child) != whole:
                    yield from candidates(child)
        case Column() | Literal() | Opaque():
            return


def _is_blunt(e: Expression) -> bool:
    match e:
        case Call("Cast", (child,), type_):
            return "string" in (child.type.name, type_.name) or None in (child.type.domain, type_.domain)
        case Call(function):
            return function not in RULES or function in _BLUNT
        case Compare() | In() | IsNull() | IsNotNull():
            return any(child.type.domain is None for child in children(e))
    return False


def columns_of(e: Expression) -> tuple[Column, ...]:
    """The columns that an expression reads, each once, in a fixed order."""
    found = {part for part in walk(e) if isinstance(part, Column)}
    return tuple(sorted(found, key=lambda column: (column.id, column.positions)))


def distinct_rows(wanted: Sequence[Column], stats: FileStats, columns: Columns) -> list[Row] | None:
    """The tuples that constant columns take, each once; None if there are none, or too many."""
    if not 0 < len(wanted) <= _MOST_COLUMNS:
        return None
    known = [_constants(column, stats, columns) for column in wanted]
    codes: Ints = np.zeros(stats.count, np.int64)
    for constants in known:
        if constants is None:
            return None
        if np.max(codes, initial=0) > MOST_ROWS**2:
            return None
        codes = np.where((codes < 0) | (constants.codes < 0), -1, codes * (len(constants.values) + 1) + constants.codes)
    codes = codes[codes >= 0]
    # Counting is faster than sorting, as long as there is little to count.
    dense = np.max(codes, initial=0) < _DENSE
    taken = np.flatnonzero(np.bincount(codes)) if dense and len(codes) else np.unique(codes)
    if not 0 < len(taken) <= MOST_ROWS:
        return None
    parts: list[list[Value]] = []
    for constants in reversed(known):
        assert constants is not None
        taken, at = np.divmod(taken, len(constants.values) + 1)
        values = constants.values.take(pa.array(at, mask=at == len(constants.values)))
        parts.append(values.to_pylist())
    rows = list(zip(*reversed(parts), strict=True))
    return [row for row in rows if all(map(_is_sound, row))] or None


def _is_sound(value: Value) -> bool:
    """Not a string that is cut within a character: Spark reads past the end of it, and finds whatever is there."""
    if not isinstance(value, bytes):
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


# Constants of a column ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Constants:
    """The distinct constants of a column, and the position of each entry's: their number for NULL, -1 for none."""

    values: pa.Array
    codes: Ints


def _constants(column: Column, stats: FileStats, columns: Columns) -> _Constants | None:
    source = column_source(column, columns)
    return stats.derive(source, _encode) if source else None


def _encode(stats: FileStats, column: ScanColumn) -> _Constants | None:
    found = value_range(stats, column)
    if found is None:
        return None
    count = stats.count
    only_null = mask(found.may_hold_null, count) & ~mask(found.may_hold_value, count)
    possible = mask(found.may_hold_number, count) & mask(neither(found.may_hold_null, found.may_hold_nan), count)
    possible = possible & mask(neither(found.low.unknown, found.high.unknown), count)
    low, high = found.low.values, found.high.values
    if isinstance(low, np.ndarray) and isinstance(high, np.ndarray):
        same = possible & (low == high)
        if column.type.is_float:
            same &= low != 0.0
        values = pa.array(low, mask=~same)
    else:
        same = possible & to_mask(pc.equal(low, high).fill_null(False))
        assert not isinstance(low, np.ndarray)
        values = low.take(pa.array(np.arange(count), mask=~same))
    if not same.any() and not only_null.any():
        return None
    encoded = values.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return _Constants(encoded.dictionary, np.where(only_null, len(encoded.dictionary), codes))


def distinct_entries(stats: FileStats, column: ScanColumn) -> tuple[FileStats, Ints] | None:
    """One row for each value of a column, and for each row the one that it is like.

    What is known of the column is the same for both, so what is asked of this column alone need be asked once a value.
    None if entries are not rows, the value of one is not certain, or most values are different.
    """
    whole, where = stats.origin or (stats, None)
    if not whole.are_rows:
        return None
    found = whole.derive(column, _alike)
    if found is None or found[0].count * _REPEATS > stats.count:
        return None
    return found if where is None else (found[0], found[1][where])


def _alike(stats: FileStats, column: ScanColumn) -> tuple[FileStats, Ints] | None:
    constants = stats.derive(column, _encode)
    if constants is None or (constants.codes < 0).any():
        return None
    _, first, like = np.unique(constants.codes, return_index=True, return_inverse=True)
    return stats.take(first), like


# What Spark said ------------------------------------------------------------------------------------------------------


class Evaluated:
    """The values of an expression on tuples of constants.

    >>> from secateur.plan.types import parse_type
    >>> string = parse_type("string")
    >>> upper = Evaluated((Column(1, "s", string),), string, [(b"a",), (None,), (b"?",)], [b"A", None, UNKNOWN])
    >>> upper.values.to_pylist()
    [b'A', None]
    """

    def __init__(
        self, columns: tuple[Column, ...], type_: DataType, rows: Sequence[Row], results: Sequence[Value | Unknown]
    ) -> None:
        self.columns = columns
        self.type = type_
        known = [(row, value) for row, value in zip(rows, results, strict=True) if not isinstance(value, Unknown)]
        self.values = pa.array([value for _, value in known], type_.domain)
        self._sets: list[pa.Array] = []
        keys: Ints = np.zeros(len(known), np.int64)
        for at, column in enumerate(columns):
            members: dict[Any, int] = {}
            codes = [-1 if row[at] is None else members.setdefault(row[at], len(members)) for row, _ in known]
            self._sets.append(pa.array(list(members), column.type.domain))
            position = np.array(codes, np.int64)
            keys = keys * (len(members) + 1) + np.where(position < 0, len(members), position)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def sharpened(self, found: ValueRange | None, context: EvalContext) -> ValueRange | None:
        """What is known of the expression, its value where Spark evaluated it."""
        at = self._positions(context.stats, context.columns)
        if at is None or self.type.domain is None:
            return found
        taken = at >= 0
        exact = self._facts(np.where(taken, at, 0))
        if taken.all():
            return exact
        otherwise = found if found is not None and found.type.domain == self.type.domain else None
        otherwise = otherwise or anything(self.type, context.count)
        assert otherwise is not None
        return choice(self.type, [(exact, taken), (otherwise, ~taken)], context.count)

    def _positions(self, stats: FileStats, columns: Columns) -> Ints | None:
        """The position of each entry's value, -1 where there is none; None if there is none at all."""
        if not len(self._keys):
            return None
        keys: Ints = np.zeros(stats.count, np.int64)
        for column, members in zip(self.columns, self._sets, strict=True):
            constants = _constants(column, stats, columns)
            if constants is None:
                return None
            member = pc.index_in(constants.values, value_set=members).fill_null(-1).to_numpy(zero_copy_only=False)
            # NULL is one more member, and what is not constant comes last, where -1 finds it.
            member = np.concatenate([member, [len(members), -1]]).astype(np.int64)[constants.codes]
            keys = np.where((keys < 0) | (member < 0), -1, keys * (len(members) + 1) + member)
        positions = self._lookup(keys)
        return positions if (positions >= 0).any() else None

    def _lookup(self, keys: Ints) -> Ints:
        if self._keys[-1] < _DENSE and np.max(keys, initial=0) < _DENSE:
            table = np.full(max(self._keys[-1], np.max(keys, initial=0)) + 2, -1)  # the last one is for those without
            table[self._keys] = self._order
            return table[keys]
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._order[at], -1)

    def _facts(self, at: Ints) -> ValueRange:
        null = to_mask(self.values.is_null())[at]
        nan = np.zeros(len(at), np.bool_)
        if self.type.domain in (pa.int64(), pa.float64()):
            dtype = np.int64 if self.type.domain == pa.int64() else np.float64
            numbers = self.values.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype)[at]
            if self.type.is_float:
                nan = np.isnan(numbers)
            bound = Bound(numbers, null | nan)
        else:
            bound = Bound(self.values.take(pa.array(at)), null)
        return ValueRange(self.type, bound, bound, null, nan, ~null & ~nan, ~null)
