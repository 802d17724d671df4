"""IF, CASE, coalesce and their kind: the result is one of several values.

A row takes one branch, so an entry's result lies within the hull of the branches that its rows can take. Which those
are is the evaluator's verdict on the conditions: where a condition cannot be TRUE its branch does not count, and where
it is always TRUE only its branch does. ``IF(unit = 'feet', altit * 0.3048, altit) > 1500`` thus looks at
``altit * 0.3048`` in files that hold nothing but feet, at ``altit`` in those without, and at both in the rest.

==================  =====================================================================================
function            the values that count
==================  =====================================================================================
if, case            the branches whose condition can be TRUE while all before can be FALSE or NULL
coalesce            the arguments up to the first that is never NULL
nanvl(a, b)         the numbers of a; b where a can be NaN
greatest, least     all; but the result is no less (greater) than an argument that always is a number
==================  =====================================================================================

A branch of which nothing is known counts as any value where it can be taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from secateur.evaluate.expression_ranges import EvalContext, Rule
from secateur.evaluate.rules.intervals import anything, argument, choice, extreme, mask
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.evaluate.verdict import Flags, both, either, neither
from secateur.plan.expressions import Call, Expression, Literal
from secateur.plan.types import DataType


def _if(call: Call, context: EvalContext) -> ValueRange | None:
    condition, yes, no = call.args
    return _cases(call, [(condition, yes)], no, context)


def _case_when(call: Call, context: EvalContext) -> ValueRange | None:
    *cases, last = call.args if len(call.args) % 2 else (*call.args, Literal(None, call.type))
    return _cases(call, list(zip(cases[::2], cases[1::2], strict=True)), last, context)


def _cases(
    call: Call, cases: Sequence[tuple[Expression, Expression]], otherwise: Expression, context: EvalContext
) -> ValueRange | None:
    branches: list[tuple[ValueRange, Flags]] = []
    reached: Flags = True
    for condition, value in cases:
        verdict = context.verdict(condition, context)
        taken = both(reached, verdict.can_true)
        reached = both(reached, either(verdict.can_false, verdict.can_null))
        found = _branch(value, call.type, context)
        if found is None:
            return None
        branches.append((found, taken))
    last = _branch(otherwise, call.type, context)
    return choice(call.type, [*branches, (last, reached)], context.count) if last else None


def _coalesce(call: Call, context: EvalContext) -> ValueRange | None:
    branches: list[tuple[ValueRange, Flags]] = []
    reached: Flags = True
    for arg in call.args:
        found = _branch(arg, call.type, context)
        if found is None:
            return None
        branches.append((replace(found, may_hold_null=False), reached))
        reached = both(reached, found.may_hold_null)
    return choice(call.type, branches, context.count, null=reached)


def _nanvl(call: Call, context: EvalContext) -> ValueRange | None:
    value, instead = (_branch(arg, call.type, context) for arg in call.args)
    if value is None or instead is None:
        return None
    numbers = replace(value, may_hold_nan=False, may_hold_value=value.may_hold_number)
    return choice(call.type, [(numbers, True), (instead, value.may_hold_nan)], context.count)


def _greatest(call: Call, context: EvalContext) -> ValueRange | None:
    return _extreme(call, context, least=False)


def _least(call: Call, context: EvalContext) -> ValueRange | None:
    return _extreme(call, context, least=True)


def _extreme(call: Call, context: EvalContext, *, least: bool) -> ValueRange | None:
    """NULLs are passed over; NaN is the greatest, so least has one only if it has nothing else."""
    known = [found for arg in call.args if (found := _branch(arg, call.type, context)) is not None]
    if len(known) < len(call.args):
        return None
    null: Flags = True
    always_a_number: Flags = False
    for found in known:
        null = both(null, found.may_hold_null)
        always_a_number = either(always_a_number, neither(found.may_hold_null, found.may_hold_nan))
    hull = choice(call.type, [(replace(found, may_hold_null=False), True) for found in known], context.count, null=null)
    if least:
        nan = both(hull.may_hold_nan, neither(always_a_number, False))
        hull = replace(hull, may_hold_nan=nan, may_hold_value=either(hull.may_hold_number, nan))
        return replace(hull, high=_tightest([found.high for found in known], known, hull.high, context, least=True))
    return replace(hull, low=_tightest([found.low for found in known], known, hull.low, context, least=False))


def _tightest(
    bounds: Sequence[Bound], known: Sequence[ValueRange], otherwise: Bound, context: EvalContext, *, least: bool
) -> Bound:
    """The bound that arguments which always are numbers set, if there are any, or else the other."""
    sure: list[tuple[Bound, Flags]] = []
    for bound, found in zip(bounds, known, strict=True):
        # A NaN among the arguments of greatest makes it NaN, and that is no number to bound.
        passed_over = either(found.may_hold_null, least and found.may_hold_nan)
        sure.append((bound, neither(either(passed_over, neither(found.may_hold_number, False)), bound.unknown)))
    some: Flags = False
    for _, counts in sure:
        some = either(some, counts)
    type_ = known[0].type
    parts = [(bound, mask(counts, context.count)) for bound, counts in sure if counts is not False]
    parts.append((otherwise, mask(neither(some, False), context.count)))
    return extreme(parts, type_, context.count, least=least)


def _branch(e: Expression, type_: DataType, context: EvalContext) -> ValueRange | None:
    """A branch as a value of the result's type."""
    found = argument(e, context)
    return found if found is None or found.type.domain == type_.domain else anything(type_, context.count)


RULES: dict[str, Rule] = {
    "If": _if,
    "CaseWhen": _case_when,
    "Coalesce": _coalesce,
    "NaNvl": _nanvl,
    "Greatest": _greatest,
    "Least": _least,
}
