"""Where no value of a column can satisfy a predicate: the evaluator, asked about ranges that nobody stored.

The evaluator says of an entry whether some of its rows may make a predicate TRUE. Here the entries are made up: in each
the column lies in one range, and of all other columns nothing is known. If no row of such an entry can match, then no
row of any table with a value in that range can: a *gap*. So a gap follows from the query alone; statistics only say
where it is worth to look, the *window*. Every rule for a function serves this way, and there is no second set of rules
that could disagree with the first.

The search is a bisection in many parts at once. The ordinals is cut into cells, most of them in the window::

    year(ts) = 2024           window 2022 … 2026
    cells    |----|----|----|----|----|----|----|----|
    may       no   no   no   yes  yes  yes  no   no        two gaps
    then     the cells next to a gap are cut further:  no|no|yes…   until the gap's end is exact

Only what was tested counts, so it does no harm if a rule is vaguer on one range than on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from secateur.evaluate.evaluator import evaluate
from secateur.evaluate.like_patterns import literal_prefix
from secateur.evaluate.ordinals import Ordinals
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Expression, In, Like, Literal, StartsWith, Value, walk
from secateur.plan.nodes import Settings
from secateur.stats.file_stats import ColumnStats, FileStats

CELLS = 240
"""Cells in the window at first; a gap that is narrower than one is not worth much and may not be found."""
ENTRIES = 512
"""How many ranges a further round looks at."""
ROUNDS = 8
GAPS = 4
TEXTS = 40
"""Strings of a predicate that serve as ends of ranges."""

Range = tuple[int, int]
Text = tuple[bytes, bytes | None]
"""A range of strings, both ends included; None is no end."""


@dataclass(frozen=True, slots=True)
class ExcludedRanges:
    """Ranges of values of one column that cannot match, both ends included, and whether NULL and NaN may match."""

    ranges: tuple[tuple[Value, Value], ...]
    """None as an end: everything below, or above."""
    null: bool
    nan: bool


Oracle = Callable[[pa.Array, pa.Array], Mask]
"""Of which ranges a value may match."""


def excluded_numbers(
    predicate: Expression, column: ScanColumn, ordinals: Ordinals, window: Range | None, settings: Settings
) -> ExcludedRanges | None:
    """The gaps of a column whose type has an ordinals, at least a cell of the window wide, None if there are none.

    >>> from secateur.plan.expressions import Call, Column, Compare
    >>> from secateur.plan.types import parse_type
    >>> from secateur.evaluate.ordinals import ordinals_of
    >>> int_ = parse_type("int")
    >>> sum_ = Call("Add", (Column(1, "a", int_), Literal(5, int_)), int_)
    >>> below = Compare("<", sum_, Literal(10, int_))
    >>> excluded_numbers(below, ScanColumn(1, "a", int_), ordinals_of(int_), (0, 100), Settings()).ranges
    ((5, 2147483642),)
    """
    first, last = window or ordinals.usual
    edges = _edges(ordinals, first, last, predicate)
    cells = list(zip(edges, [*(e - 1 for e in edges[1:]), ordinals.greatest], strict=True))
    flags = _ask(predicate, column, settings, _ends(ordinals, cells), odd=True)
    null, nan, may = bool(flags[0]), bool(flags[1]), flags[2:]
    shares = [(ordinals.share(run, (first, last)), run) for run in _runs(cells, may)]
    found = [run for share, run in sorted(shares, reverse=True) if share >= 1 / CELLS][:GAPS]
    if not found:
        return None

    def ask(ranges: Sequence[Range]) -> Mask:
        return _ask(predicate, column, settings, _ends(ordinals, ranges))

    exact = _refined(sorted(found), cells, ordinals, (first, last), ask)
    values = ((_end(ordinals, a, ordinals.least), _end(ordinals, b, ordinals.greatest)) for a, b in exact)
    return ExcludedRanges(tuple(values), null, nan)


def excluded_texts(
    predicate: Expression, column: ScanColumn, window: tuple[bytes, bytes] | None, settings: Settings
) -> ExcludedRanges | None:
    """The gaps of a string column between the strings that the predicate names, None if there are none.

    >>> from secateur.plan.expressions import Column
    >>> from secateur.plan.types import parse_type
    >>> string = parse_type("string")
    >>> like = Like(Column(1, "s", string), "ab_d%")
    >>> excluded_texts(like, ScanColumn(1, "s", string), None, Settings()).ranges
    ((None, b'aa\\xf4\\x8f\\xbf\\xbf'), (b'ac', None))
    """
    points = _points(predicate)
    if not points:
        return None
    cells: list[Text] = [(b"", points[0]), *pairwise(points), (points[-1], None)]
    bounds = pa.array([a for a, _ in cells], pa.binary()), pa.array([b for _, b in cells], pa.binary())
    flags = _ask(predicate, column, settings, bounds, odd=True)
    low, high = window or (b"", None)
    # They share their ends, so a run that ends where the window begins has nothing in it.
    found = [r for r in _runs(cells, flags[2:]) if (r[1] is None or r[1] > low) and (high is None or r[0] < high)]
    return ExcludedRanges(tuple((a or None, b) for a, b in found[:GAPS]), bool(flags[0]), False) if found else None


def _ask(
    predicate: Expression, column: ScanColumn, settings: Settings, bounds: tuple[pa.Array, pa.Array], odd: bool = False
) -> Mask:
    """Of which ranges a value may match; before them, if ``odd``, whether a NULL and a NaN may."""
    low, high = bounds
    count, head = len(low), 2 if odd else 0
    known = ColumnStats(
        low=_after(head, low),
        high=_after(head, high),
        nulls=pa.array([*([1, 0][:head]), *([0] * count)], pa.int64()),
        nans=pa.array([*([0, 1][:head]), *([0] * count)], pa.int64()),
        low_exact=np.zeros(head + count, np.bool_),
        high_exact=np.zeros(head + count, np.bool_),
    )
    rows = _after(head, pa.nulls(count, pa.int64()), 1)
    made_up = FileStats(rows, rows, lambda asked: known if asked.name == column.name else None)
    return evaluate(predicate, made_up, {column.id: column}, settings).may


def _after(count: int, array: pa.Array, value: int | None = None) -> pa.Array:
    """The array behind ``count`` entries of a value."""
    return pa.concat_arrays([pa.array([value] * count, array.type), array]) if count else array


def _ends(ordinals: Ordinals, ranges: Sequence[Range]) -> tuple[pa.Array, pa.Array]:
    return ordinals.values([a for a, _ in ranges]), ordinals.values([b for _, b in ranges])


def _end(ordinals: Ordinals, number: int, limit: int) -> Value:
    return None if number == limit else ordinals.value(number)


def _edges(ordinals: Ordinals, first: int, last: int, predicate: Expression) -> list[int]:
    """Where cells begin: evenly in the window, outside of it farther and farther apart, and at the query's literals."""
    width = max(last - first, 1)
    edges = {ordinals.least, first, last + 1, *ordinals.evenly(first, last, CELLS)}
    step = width
    while step < ordinals.greatest - ordinals.least:
        edges |= {first - step, last + 1 + step}
        step *= 4
    for value in _literals(predicate):
        place = ordinals.number(value)
        if place is not None:
            edges |= {place, place + 1}
            # Where adding or subtracting it would overflow.
            size = abs(place)
            edges |= {
                ordinals.least + size,
                ordinals.least + size + 1,
                ordinals.greatest - size,
                ordinals.greatest - size + 1,
            }
    if ordinals.modelled:
        edges |= {ordinals.modelled[0], ordinals.modelled[1] + 1}
    return sorted(e for e in edges if ordinals.least <= e <= ordinals.greatest)


def _literals(predicate: Expression) -> Iterable[Value]:
    for part in walk(predicate):
        match part:
            case Literal(value):
                yield value
            case In(_, values):
                yield from values[:TEXTS]


def _runs(cells: Sequence[tuple[int, int]] | Sequence[Text], may: Mask) -> list[tuple[Any, Any]]:
    """The cells that cannot match, those side by side taken together."""
    out = np.flatnonzero(~may)
    starts = np.flatnonzero(np.diff(out, prepend=-2) != 1)
    stops = np.append(starts[1:], len(out)) - 1
    return [(cells[out[i]][0], cells[out[j]][1]) for i, j in zip(starts, stops, strict=True)] if len(out) else []


@dataclass(slots=True)
class _End:
    """An end of a gap that moves outward: what is up to ``near`` is in the gap, what is at ``far`` may not be."""

    near: int
    far: int

    @property
    def outward(self) -> int:
        return 1 if self.far > self.near else -1

    def places(self, ordinals: Ordinals, count: int) -> list[int]:
        """Where to look next, going outward: the neighbour first, then round numbers up to ``far``."""
        width, up = abs(self.far - self.near), self.far > self.near
        unit = ordinals.unit(max(width // count, 1))
        if up:  # the gap's last value, so that the next one is round
            between = range((self.near // unit + 1) * unit - 1, self.far, unit)
        else:
            between = range(-(-self.near // unit - 1) * unit, self.far, -unit)
        inner = [place for place in between if place != self.near and place != self.near + self.outward]
        return [self.near + self.outward, *inner, self.far] if width > 1 else [self.far]

    def ranges(self, places: Sequence[int]) -> list[Range]:
        """From the gap to each place."""
        return [(self.near + 1, p) if self.outward > 0 else (p, self.near - 1) for p in places]

    def moved(self, places: Sequence[int], may: Mask) -> bool:
        """Takes in what was learnt; whether something is left to find out."""
        shown = np.flatnonzero(~may)
        if not len(shown):
            self.far = places[0]
            return False  # not even the neighbour
        last = int(shown[-1])
        self.near = places[last]
        if last + 1 == len(places):
            return False
        self.far = places[last + 1]
        return abs(self.far - self.near) > 1


def _refined(
    gaps: Sequence[Range],
    cells: Sequence[Range],
    ordinals: Ordinals,
    window: Range,
    ask: Callable[[Sequence[Range]], Mask],
) -> list[Range]:
    """The gaps with those ends that lie in the window moved as far out as can be shown."""
    before, after = {b: a for a, b in cells}, dict(cells)  # each cell's other end
    pairs: list[tuple[_End, _End]] = []
    moving: list[_End] = []
    for a, b in gaps:
        low, high = _End(a, before.get(a - 1, a)), _End(b, after.get(b + 1, b))
        pairs.append((low, high))
        moving += [end for end in (low, high) if window[0] <= end.near <= window[1] and end.far != end.near]
    for _ in range(ROUNDS):
        if not moving:
            break
        places = [end.places(ordinals, ENTRIES // len(moving)) for end in moving]
        may = ask([r for end, at in zip(moving, places, strict=True) for r in end.ranges(at)])
        parts = np.split(may, np.cumsum([len(at) for at in places])[:-1])
        moving = [end for end, at, part in zip(moving, places, parts, strict=True) if end.moved(at, part)]
    return [(low.near, high.near) for low, high in pairs]


# Strings --------------------------------------------------------------------------------------------------------------


def _points(predicate: Expression) -> list[bytes]:
    """The strings that a predicate names, and for each what is just below it and just above all that start with it.

    All are valid UTF-8: a literal on its way to Parquet is decoded and encoded again.
    """
    texts: dict[str, None] = {}
    for part in walk(predicate):
        match part:
            case Literal(bytes(text)) | StartsWith(_, text):
                found = [text]
            case In(_, values):
                found = [v for v in values[: TEXTS + 1] if isinstance(v, bytes)]
            case Like(_, pattern, escape):
                found = [p[0]] if (p := literal_prefix(pattern, escape)) else []
            case _:
                continue
        for text in found:
            texts[text.decode("utf-8", "replace")] = None  # U+FFFD does no harm: any string will do
    points = {p for text in list(texts)[:TEXTS] if text for p in (text, _below(text), _above(text)) if p}
    return sorted(p.encode() for p in points)


def _below(text: str) -> str:
    """A string below the given one with hardly any in between."""
    last = ord(text[-1])
    if last == 0:
        return text[:-1]
    return text[:-1] + chr(last - 1 if last != 0xE000 else 0xD7FF) + chr(0x10FFFF)


def _above(text: str) -> str:
    """The least valid string above all that start with the given one, empty if there is none."""
    stem = text.rstrip(chr(0x10FFFF))
    if not stem:
        return ""
    last = ord(stem[-1])
    return stem[:-1] + chr(last + 1 if last != 0xD7FF else 0xE000)
