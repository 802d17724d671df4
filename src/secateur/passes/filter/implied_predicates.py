"""Implied predicates: what a complex condition says about single columns, in words that Parquet understands.

Spark hands comparisons of a column with a literal to Parquet, which skips row groups and pages by them; everything else
is evaluated row by row. This pass finds such comparisons that follow from the conditions above a scan::

    IF(unit = 'feet', altit * 0.3048, altit) > 1500      implies      altit > 1500
    year(ts) = 2024                                                   ts >= 2024-01-01 AND ts < 2025-01-01
    a + 5 < 10                                                        a < 5 OR a > 2147483642

The last one also holds where integers wrap around. Each is a *gap*, a range of values of which no one can match, shown
by the evaluator for all tables alike (see :mod:`secateur.evaluate.excluded_ranges`): statistics only say where to look
and whether it pays. What goes into the plan is the gap's complement: comparisons of the column with literals of its own
type, joined by OR, with ``IS NULL`` where a NULL may match. They cannot raise an error.

Parquet's own skipping has traps, so these are left out or narrowed:

* floats whose NaNs may match: a row group's maximum may leave NaN out, so ``x > 5`` loses it. Only if no kept file has
  a NaN, and then the bridge looks once more whether the files are as they were listed
  (``AddPredicate.needs_kept_unchanged``);
* dates before 1582-10-15 and timestamps before 1901, which files may hold in the calendar of old;
* fractions of a millisecond: Spark rounds a literal down for files that count milliseconds;
* strings that are no valid UTF-8, which change on their way to Parquet;
* decimals unless the bounds of all kept files are known: old writers compared their bytes, and Parquet believes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.decision.parts import AddPredicate, Part
from secateur.evaluate.excluded_ranges import ExcludedRanges, excluded_numbers, excluded_texts
from secateur.evaluate.ordinals import ordinals_of
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.predicates import Predicate
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import (
    And,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
    Value,
    walk,
)
from secateur.plan.nodes import Scan, Settings
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats

COLUMNS = 12
"""Columns of a query that are looked at."""
PARTS = 300
"""A condition with more parts than this is not looked at: each round evaluates all of them."""
PAGE_ROWS = 20_000
"""By default, writers put no more rows into a page of Parquet; so of fewer rows in one row group nothing is skipped."""
SMALL_BYTES = 32 * 2**20
"""A file of this size has one row group if nobody knows how many."""
RECHECKED = 10_000
"""If more files than this are left, they are not looked at once more for the sake of NaN."""
EARLIEST = {"date": -141_427, "timestamp": -2_177_452_800_000_000, "timestamp_ntz": -2_177_452_800_000_000}


def add_implied_predicates(known: PassInput) -> PassResult:
    """Find for each scan the comparisons that its conditions imply and that Parquet could use."""
    parts: list[tuple[int, Part]] = []
    left = COLUMNS
    for scan in known.analysis.scans.values():
        kept = known.kept.get(scan.id)
        if scan.declined or scan.decided or scan.id in known.analysis.order_sensitive or kept is None:
            continue
        if not (kept & known.stats[scan.id].once(_divisible)).any():
            continue
        above = known.analysis.predicate(scan)
        for column, predicate in _candidates(scan, above):
            if left == 0 or next(islice(walk(predicate), PARTS, None), None) is not None:
                parts.append((scan.id, _too_much(scan)))
                break
            left -= 1
            implied = _of_column(column, predicate, known.stats[scan.id], kept, known.query.settings)
            # A plan that has been through here before has them already.
            parts += [(scan.id, each) for each in implied if each.predicate not in above]
    return parts


def _divisible(stats: FileStats) -> Mask:
    """The files of which a reader could skip a part: for the others a condition is work that spares none.

    Each condition makes the reader look at the dictionary and the page index of every row group.
    """
    if stats.row_groups is None:
        return np.ones(stats.count, np.bool_)
    small = pc.less_equal(stats.sizes, SMALL_BYTES).fill_null(False)
    whole = pc.and_(
        pc.if_else(stats.row_groups.is_null(), small, pc.equal(stats.row_groups, 1)),
        pc.less_equal(stats.rows, PAGE_ROWS),
    )
    mask: Mask = ~whole.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _candidates(scan: Scan, predicate: Predicate) -> Iterator[tuple[ScanColumn, Expression]]:
    """The columns that a condition speaks of other than by plain comparisons, with all that is said of them."""
    complex_ = set().union(*(_named(c) for c in predicate if not is_plain(c)))
    for column in scan.columns:
        if column.id in complex_ and column.kind == "data" and _is_searchable(column):
            yield column, reduce(And, (c for c in predicate if column.id in _named(c)))


def _named(e: Expression) -> set[int]:
    return {part.id for part in walk(e) if isinstance(part, Column)}


def _is_searchable(column: ScanColumn) -> bool:
    return column.type.name == "string" or ordinals_of(column.type) is not None


def is_plain(e: Expression) -> bool:
    """Whether Spark hands the condition to Parquet as it is."""
    match e:
        case And(left, right) | Or(left, right):
            return is_plain(left) and is_plain(right)
        case Not(child):
            return is_plain(child)
        case Compare(_, Column() as column, Literal() as literal) | Compare(
            _, Literal() as literal, Column() as column
        ):
            return column.type == literal.type
        case In(Column()) | IsNull(Column()) | IsNotNull(Column()) | StartsWith(Column()) | Column() | Literal():
            return True
    return False


def _of_column(
    column: ScanColumn, predicate: Expression, stats: FileStats, kept: Mask, settings: Settings
) -> Iterator[AddPredicate]:
    low, high, nans = known_ends(column, stats, kept)
    gaps: ExcludedRanges | None
    if column.type.name == "string":
        text = (low, high) if isinstance(low, bytes) and isinstance(high, bytes) else None
        if text and text[0] == text[1]:
            return
        gaps = excluded_texts(predicate, column, text, settings)
    else:
        ordinals = ordinals_of(column.type)
        assert ordinals is not None
        first, last = ordinals.number(low), ordinals.number(high)
        window = None if first is None or last is None else (first, last)
        if window and first == last:
            return  # a constant is in or out, with its file
        if window is None and column.type.name == "decimal":
            return
        gaps = excluded_numbers(predicate, column, ordinals, window, settings)
    if gaps is None:
        return
    counted = column.type.is_float and gaps.nan
    if counted and (nans or np.count_nonzero(kept) > RECHECKED):
        return
    for start, end in gaps.ranges:
        if (outside := _outside(Column(column.id, column.name, column.type), start, end)) is not None:
            yield AddPredicate(Or(IsNull(_column(column)), outside) if gaps.null else outside, counted)


def _column(column: ScanColumn) -> Column:
    return Column(column.id, column.name, column.type)


def known_ends(column: ScanColumn, stats: FileStats, kept: Mask) -> tuple[Value, Value, bool]:
    """The least and greatest value of the kept files, None if one is unknown, and whether one may hold NaN."""
    known = stats.column(column)
    if known is None:
        return None, None, True
    low, high = known.low.filter(kept), known.high.filter(kept)
    all_null = pc.equal(known.nulls, stats.rows).fill_null(False).filter(kept)
    valued = pc.invert(all_null)
    low, high = low.filter(valued), high.filter(valued)
    nans = known.nans.filter(kept)
    may_be_nan = bool(nans.null_count or pc.any(pc.not_equal(nans, 0)).as_py())
    if not len(low) or low.null_count or high.null_count:
        return None, None, may_be_nan
    return _extreme(low, least=True), _extreme(high, least=False), may_be_nan


def _extreme(array: pa.Array, *, least: bool) -> Value:
    found: Value = (pc.min if least else pc.max)(array).as_py()
    return found


def _outside(column: Column, start: Value, end: Value) -> Expression | None:
    """``column`` is not in the gap from start to end; None if that cannot be said."""
    type_ = column.type
    earliest = EARLIEST.get(type_.name)
    if earliest is not None:
        if isinstance(start, int):
            start = max(start, earliest)
            if type_.name != "date":
                start = -(-start // 1000) * 1000
        if isinstance(end, int) and end < (start if isinstance(start, int) else earliest):
            return None
    sides: list[Expression] = []
    if start is not None:
        sides.append(Compare("<", column, Literal(start, type_)))
    if end is not None and earliest is not None:
        assert isinstance(end, int)
        sides.append(Compare(">=", column, Literal(end + 1, type_)))
    elif end is not None:
        sides.append(Compare(">", column, Literal(end, type_)))
    return reduce(Or, sides) if sides else None


def _too_much(scan: Scan) -> Reason:
    return Reason(
        "too-complex",
        f"The condition on {scan.table} is too large to look for comparisons that it implies; "
        "add a plain comparison on a column, if you know one.",
    )
