"""What follows from statistics for a predicate: the one evaluator behind every technique.

Given the bounds and counts of many entries (files, blocks of files, row groups), :func:`evaluate` says for each entry
whether some row may make the predicate TRUE, FALSE or NULL. It reads as a proof in three cases, because a column of an
entry holds three kinds of rows (see :mod:`secateur.evaluate.value_range`): NULLs, NaNs, and numbers x with low <= x <=
high.

A *number* can decide a predicate as follows; an unknown bound makes each test that uses it true (rule S1):

====================  ==================================  ========================================
predicate             some x may make it TRUE if          some x may make it FALSE if
====================  ==================================  ========================================
x < v                 low < v                             high >= v
x <= v                low <= v                            high > v
x > v                 high > v                            low <= v
x >= v                high >= v                           low < v
x = v                 low <= v and high >= v              low < v or high > v
x IN (v1, v2, …)      a v lies in [low, high]             not every x in [low, high] is one of v
x LIKE 'p%'           low < next(p) and high >= p         low < p or high >= next(p)
x LIKE 'p…'           as for 'p%', and if low = high it   always, unless low = high matches
                      matches
a boolean column      high >= 1                           low < 1
====================  ==================================  ========================================

``next(p)`` is the least string above all that start with p. ``IN`` counts integers: [3, 5] is within (3, 4, 5).

A *NaN* decides alone (rule S5): Spark puts it above every number and makes it equal to itself. A *NULL* makes the
predicate NULL, except for ``<=>``, ``IS NULL`` and ``IS NOT NULL``. A NULL listed in ``IN`` turns FALSE to NULL.

Everything else is :meth:`Verdict.unknown`; :mod:`secateur.evaluate.obstacles` says in words what that was.
"""

from __future__ import annotations

import math
from functools import cache

import pyarrow.compute as pc

import secateur.evaluate.rules  # noqa: F401, it fills the table of rules
from secateur.evaluate import in_lists as membership
from secateur.evaluate.expression_ranges import Columns, EvalContext, range_of
from secateur.evaluate.like_patterns import after, literal_prefix, on_constants
from secateur.evaluate.rules import RULES
from secateur.evaluate.value_range import ValueRange, literal_of
from secateur.evaluate.verdict import Flags, Lazy, Verdict, both, either
from secateur.plan.expressions import (
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
)
from secateur.plan.nodes import Settings
from secateur.plan.types import INTEGERS, DataType
from secateur.stats.arrays import to_mask
from secateur.stats.file_stats import FileStats

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_DEFAULTS = Settings()
FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def evaluate(predicate: Expression, stats: FileStats, columns: Columns, settings: Settings = _DEFAULTS) -> Verdict:
    """What the predicate can evaluate to on the rows of each entry of ``stats``.

    >>> import pyarrow as pa, numpy as np
    >>> from secateur.plan.types import parse_type
    >>> from secateur.stats.file_stats import ColumnStats
    >>> from secateur.plan.columns import ScanColumn
    >>> low, high, nulls, ones = pa.array([1, 6]), pa.array([5, 9]), pa.array([0, 0]), np.ones(2, dtype=np.bool_)
    >>> known = ColumnStats(low, high, nulls, pa.nulls(2, pa.int64()), ones, ones)
    >>> stats = FileStats(pa.array([10, 10]), pa.array([1, 1]), load=lambda column: known)
    >>> bigint = parse_type("bigint")
    >>> predicate = Compare(">", Column(7, "x", bigint), Literal(5, bigint))
    >>> verdict = evaluate(predicate, stats, {7: ScanColumn(7, "x", bigint)})
    >>> verdict.may.tolist(), verdict.must.tolist()
    ([False, True], [False, True])
    """
    return verdict_of(predicate, context_of(stats, columns, settings))


def context_of(stats: FileStats, columns: Columns, settings: Settings = _DEFAULTS) -> EvalContext:
    """What expressions over a scan's columns are looked at with."""
    return EvalContext(stats, columns, settings, verdict_of, RULES)


def verdict_of(predicate: Expression, context: EvalContext) -> Verdict:
    """The same with a scope at hand."""
    if context.settings.evaluated and isinstance(predicate, Compare | In | IsNull | IsNotNull | StartsWith | Like):
        known = context.settings.evaluated.get(predicate.ref)
        if known is not None:  # a test that only Spark can make, since its operands have no domain
            return _flag(known.sharpened(None, context), context.count)
    match predicate:
        case And(left, right):
            return verdict_of(left, context).and_(verdict_of(right, context))
        case Or(left, right):
            return verdict_of(left, context).or_(verdict_of(right, context))
        case Not(child):
            return verdict_of(child, context).negated()
        case Literal(value, type_):
            return _constant(value, type_, context.count)
        case IsNull(child):
            return _is_null(child, context)
        case IsNotNull(child):
            return _is_null(child, context).negated()
        case Compare("<=>", Literal(None), other) | Compare("<=>", other, Literal(None)):
            return _is_null(other, context)
        case Compare(_, Literal(None), _) | Compare(_, _, Literal(None)):
            return _constant(None, predicate.type, context.count)
        case Compare(op, left, Literal() as literal):
            return _compare(op, range_of(left, context), literal, context.count)
        case Compare(op, Literal() as literal, right) if op in FLIPPED:
            return _compare(FLIPPED[op], range_of(right, context), literal, context.count)
        case Compare(op, left, right):
            return _compare_two(op, range_of(left, context), range_of(right, context), context.count)
        case In(child, values):
            return _in(values, range_of(child, context), context)
        case StartsWith(child, prefix):
            return _starts_with(prefix, range_of(child, context), context.count)
        case Like(child, pattern, escape):
            return _like(pattern, escape, range_of(child, context), context.count)
        case Column() | Call() | Alias():
            return _flag(range_of(predicate, context), context.count)
        case Opaque():
            return Verdict.unknown(context.count)


def comparable(column: DataType, literal: DataType) -> bool:
    """Whether bounds of one type and a literal of the other are values of one domain that mean the same.

    >>> from secateur.plan.types import parse_type
    >>> comparable(parse_type("int"), parse_type("bigint")), comparable(parse_type("date"), parse_type("bigint"))
    (True, False)
    """
    if column.name in INTEGERS and literal.name in INTEGERS:
        return True
    if column.name == literal.name == "decimal":
        return column.scale == literal.scale
    return column == literal


def _constant(value: Value, type_: DataType, count: int) -> Verdict:
    if value is None:
        return Verdict(count, null=_always)
    if type_.name != "boolean":
        return Verdict.unknown(count)
    return Verdict(count, true=_always) if value else Verdict(count, false=_always)


def _is_null(child: Expression, context: EvalContext) -> Verdict:
    found = range_of(child, context)
    if found is None:
        return Verdict.unknown(context.count).is_null()
    return Verdict(context.count, true=lambda: found.may_hold_null, false=lambda: found.may_hold_value)


def _compare(op: str, found: ValueRange | None, literal: Literal, count: int) -> Verdict:
    if found is None or not comparable(found.type, literal.type):
        return Verdict.unknown(count)
    value = literal_of(literal.value, found.type)
    if value is None:
        return Verdict.unknown(count)
    low, high = found.low, found.high
    if _is_nan(value):
        return _compare_nan(op, found, count)
    match op:
        case "<":
            return _decided(found, count, lambda: low.can("<", value), lambda: high.can(">=", value), nan=False)
        case "<=":
            return _decided(found, count, lambda: low.can("<=", value), lambda: high.can(">", value), nan=False)
        case ">":
            return _decided(found, count, lambda: high.can(">", value), lambda: low.can("<=", value), nan=True)
        case ">=":
            return _decided(found, count, lambda: high.can(">=", value), lambda: low.can("<", value), nan=True)
        case "=" | "<=>":
            equal = _decided(
                found,
                count,
                lambda: both(low.can("<=", value), high.can(">=", value)),
                lambda: either(low.can("<", value), high.can(">", value)),
                nan=False,
            )
            return equal if op == "=" else equal.null_as_false()
    return Verdict.unknown(count)


def _compare_two(op: str, left: ValueRange | None, right: ValueRange | None, count: int) -> Verdict:
    """Two expressions: every value of one side may meet every value of the other."""
    if left is None or right is None or not comparable(left.type, right.type):
        return Verdict.unknown(count)
    values = both(left.may_hold_value, right.may_hold_value)
    nan = either(left.may_hold_nan, right.may_hold_nan)  # decides alone, so anything is possible

    def may(yes: Lazy) -> Lazy:
        return lambda: both(values, either(nan, yes()))

    def can(op: str) -> Lazy:
        match op:
            case "<":
                return lambda: left.low.can_against("<", right.high)
            case "<=":
                return lambda: left.low.can_against("<=", right.high)
            case ">":
                return lambda: left.high.can_against(">", right.low)
            case ">=":
                return lambda: left.high.can_against(">=", right.low)
            case "=":
                return lambda: both(left.low.can_against("<=", right.high), left.high.can_against(">=", right.low))
        # Only two constants cannot differ.
        return lambda: either(left.low.can_against("<", right.high), left.high.can_against(">", right.low))

    def null() -> Flags:
        return either(left.may_hold_null, right.may_hold_null)

    if op in ("<", "<=", ">", ">="):
        return Verdict(count, true=may(can(op)), false=may(can(_OPPOSITE[op])), null=null)
    equal, differs = may(can("=")), may(can("<>"))
    if op == "=":
        return Verdict(count, true=equal, false=differs, null=null)
    if op == "<=>":
        return Verdict(
            count,
            true=lambda: either(equal(), both(left.may_hold_null, right.may_hold_null)),
            false=lambda: either(
                differs(),
                either(both(left.may_hold_null, right.may_hold_value), both(left.may_hold_value, right.may_hold_null)),
            ),
        )
    return Verdict.unknown(count)


def _compare_nan(op: str, found: ValueRange, count: int) -> Verdict:
    """``x op NaN``: every number is below NaN, and NaN equals NaN."""
    match op:
        case "<":
            return _decided(found, count, _always, _never, nan=False)
        case "<=":
            return _decided(found, count, _always, _never, nan=True)
        case ">":
            return _decided(found, count, _never, _always, nan=False)
        case ">=" | "=":
            return _decided(found, count, _never, _always, nan=True)
        case "<=>":
            return _decided(found, count, _never, _always, nan=True).null_as_false()
    return Verdict.unknown(count)


def _in(values: tuple[Value, ...], found: ValueRange | None, context: EvalContext) -> Verdict:
    count = context.count
    if found is None:
        return Verdict.unknown(count)
    type_ = found.type
    key = ("in", id(values), type_)
    if key not in context.memo:
        # With the values themselves, so that no others get their id as long as the memo lives.
        context.memo[key] = (values, _listed(values, type_))
    known = context.memo[key][1]
    if known is None:
        return Verdict.unknown(count)
    numbers, nan = known
    verdict = _decided(
        found,
        count,
        lambda: membership.some_within(numbers, found.low, found.high),
        lambda: membership.some_outside(numbers, found.low, found.high),
        nan=nan,
    )
    return verdict if None not in values else verdict.false_as_null()


def _listed(values: tuple[Value, ...], type_: DataType) -> tuple[membership.InList, bool] | None:
    """The values other than NULL and NaN, and whether NaN is among them; None if one is not of the type."""
    literals = [literal_of(value, type_) for value in values if value is not None]
    if not values or None in literals:
        # What NULL IN () is depends on a legacy setting of Spark.
        return None
    numbers = [value for value in literals if not _is_nan(value)]
    return membership.listed(numbers, type_), len(numbers) < len(literals)


def _starts_with(prefix: bytes, found: ValueRange | None, count: int) -> Verdict:
    if found is None or found.type.name != "string":
        return Verdict.unknown(count)
    if not prefix:
        return _decided(found, count, _always, _never, nan=False)
    low, high, end = found.low, found.high, after(prefix)
    return _decided(
        found,
        count,
        lambda: both(high.can(">=", prefix), end is None or low.can("<", end)),
        lambda: either(low.can("<", prefix), end is not None and high.can(">=", end)),
        nan=False,
    )


def _like(pattern: str, escape: str, found: ValueRange | None, count: int) -> Verdict:
    literal = literal_prefix(pattern, escape)
    if literal is None or found is None or found.type.name != "string":
        return Verdict.unknown(count)
    prefix, rest = literal
    starts = _starts_with(prefix, found, count)
    match rest:
        case "nothing":
            low, high = found.low, found.high
            return _decided(
                found,
                count,
                lambda: both(low.can("<=", prefix), high.can(">=", prefix)),
                lambda: either(low.can("<", prefix), high.can(">", prefix)),
                nan=False,
            )
        case "anything":
            return starts
        case "something":
            matches = cache(lambda: on_constants(pattern, escape, found.low.values, found.high.values))

            def can(answer: bool) -> Flags:
                known = matches()
                return True if known is None else to_mask(pc.equal(known, answer).fill_null(True))

            return starts.and_(_decided(found, count, lambda: can(True), lambda: can(False), nan=False))


def _flag(found: ValueRange | None, count: int) -> Verdict:
    """A boolean column as a predicate."""
    if found is None or found.type.name != "boolean":
        return Verdict.unknown(count)
    return _decided(found, count, lambda: found.high.can(">=", 1), lambda: found.low.can("<", 1), nan=False)


def _decided(found: ValueRange, count: int, yes: Lazy, no: Lazy, *, nan: bool) -> Verdict:
    """The verdict if some number may make it TRUE where ``yes``, FALSE where ``no``, and a NaN makes it ``nan``."""
    return Verdict(
        count,
        true=lambda: either(both(found.may_hold_number, yes()), nan and found.may_hold_nan),
        false=lambda: either(both(found.may_hold_number, no()), not nan and found.may_hold_nan),
        null=lambda: found.may_hold_null,
    )


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _always() -> Flags:
    return True


def _never() -> Flags:
    return False
