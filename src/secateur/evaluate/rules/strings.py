r"""Functions of strings: the range of the result from the ranges of the arguments.

Strings compare as UTF-8 bytes (rule S6). Few functions respect that order; the others have a rule for *constant*
entries only, whose bounds are equal, and then for ASCII only, where Java and Arrow cannot differ.

=========================  ===========================================================================================
function                   range of the result
=========================  ===========================================================================================
Substring(s, 1, n), Left   from the first n characters of low to those of high (see below); other positions and
                           lengths that are no literals: constants only
Concat                     constants in front of the first other argument: between both bounds of that, if it is the
                           last one, else from its lower bound on
StringTrimRight(s)         from low, cut off at the first character that may be below a blank, to high
Upper, Lower, StringTrim,  constants only
StringTrimLeft, and with
characters to trim
Length, OctetLength        constants, else 1 or 0 and more
EndsWith, Contains         constants only, byte by byte
RLike                      for a pattern '^abc…': what starts with abc may match; without anything behind but '.*' it
                           does. Any other pattern: gives up
=========================  ===========================================================================================

The first n characters of a string are a prefix, so they keep the order. But Spark reads past the end of a string that
ends within a character, which one in a file can do: such a result is greater than the string by some arbitrary bytes.
So the upper bound ends before the first character that is not ASCII, with ``\xff`` in its place, which is in no string
that is at most a valid one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from secateur.evaluate.expression_ranges import EvalContext, Rule, of_verdict, range_of
from secateur.evaluate.like_patterns import ascii_text
from secateur.evaluate.rules.spans import INT32, strict
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.plan.columns import Mask
from secateur.plan.expressions import Call, Expression, Literal, StartsWith
from secateur.plan.types import BOOLEAN, DataType
from secateur.stats.arrays import to_mask

_STRING = DataType("string")
_PREFIX = re.compile(r"\^([A-Za-z0-9_ -]*)")


def _facts(e: Expression, context: EvalContext) -> ValueRange | None:
    found = range_of(e, context) if e.type == _STRING else None
    return found if found is not None and found.type == _STRING else None


def _bound(values: pa.Array) -> Bound:
    """A bound that is unknown where the value is null."""
    values = values.cast(pa.binary())
    return Bound(values, to_mask(values.is_null()) if values.null_count else False)


def _constant(found: ValueRange) -> pa.Array:
    """The value of each entry whose bounds are equal, else null."""
    same = pc.equal(found.low.values, found.high.values)
    return pc.if_else(same.fill_null(False), found.low.values, pa.scalar(None, pa.binary()))


def _ascii_constant(found: ValueRange) -> pa.Array:
    """The same as text for those that are ASCII."""
    return ascii_text(_constant(found))


def _of_constants(compute: Callable[[pa.Array], pa.Array]) -> Rule:
    """A function of one string that yields a string and is known for ASCII only."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        found = _facts(call.args[0], context)
        if found is None or call.type != _STRING:
            return None
        bound = _bound(compute(_ascii_constant(found)))
        return strict(call.type, bound, bound, False, found)

    return rule


def _substring(call: Call, context: EvalContext) -> ValueRange | None:
    match call.args:
        case (e, Literal(value=int(start)), Literal(value=int(count))):
            found = _facts(e, context)
        case _:
            return None
    if found is None or call.type != _STRING or start < 0 or count < 0:
        return None
    if start > 1:
        return _of_constants(lambda text: pc.utf8_slice_codeunits(text, start - 1, start - 1 + count))(call, context)
    prefix = pc.binary_slice(found.high.values, 0, count)
    ascii_ = pc.replace_substring_regex(prefix, r"(?s)[^\x00-\x7F].*", "")
    above = pc.binary_join_element_wise(ascii_, b"\xff", b"")
    # A bound that has the byte already is one of these, or not valid.
    valid = pc.or_(pc.invert(pc.match_substring(found.high.values, b"\xff")), pc.equal(found.high.values, above))
    high = pc.if_else(pc.equal(ascii_, prefix), ascii_, pc.if_else(valid, above, pa.scalar(None, pa.binary())))
    return strict(call.type, _bound(_first(found.low.values, count)), _bound(high), False, found)


def _first(values: pa.Array, count: int) -> pa.Array:
    """At most so many characters: as many bytes if they are not all valid, which are as many characters or fewer."""
    try:
        return pc.utf8_slice_codeunits(values.cast(pa.string()), 0, count)
    except pa.ArrowInvalid:
        return pc.binary_slice(values, 0, count)


def _concat(call: Call, context: EvalContext) -> ValueRange | None:
    if call.type != _STRING or any(arg.type != _STRING for arg in call.args) or not call.args:
        return None
    nothing = pa.scalar(None, pa.binary())
    empty = pa.repeat(pa.scalar(b"", pa.binary()), context.count)
    low, high, constant = empty, empty, pa.repeat(True, context.count)
    sources: list[ValueRange] = []
    for arg in call.args:
        found = _facts(arg, context)
        if found is None:
            return None
        sources.append(found)
        # Behind anything but a constant, only more bytes follow: that does no harm to the lower bound.
        more = pc.if_else(constant, pc.fill_null(found.low.values, b""), b"")
        low = pc.binary_join_element_wise(low, more, b"")
        high = pc.if_else(constant, pc.binary_join_element_wise(high, found.high.values, b""), nothing)
        constant = pc.and_(constant, pc.equal(found.low.values, found.high.values).fill_null(False))
    return strict(call.type, _bound(low), _bound(high), False, *sources)


def _trim(call: Call, context: EvalContext, compute: Callable[..., pa.Array]) -> ValueRange | None:
    match call.args:
        case (_,):
            characters = " "
        case (_, Literal(value=bytes(some))) if some and some.isascii():
            characters = some.decode()
        case _:
            return None
    return _of_constants(lambda text: compute(text, characters=characters))(call, context)


def _trim_right(call: Call, context: EvalContext) -> ValueRange | None:
    found = _facts(call.args[0], context)
    if found is None or len(call.args) > 1 or call.type != _STRING:
        return _trim(call, context, pc.ascii_rtrim)
    # What is left of a string that is at least "a\tb" may be "a", from "a ", but nothing below it.
    cut = pc.replace_substring_regex(found.low.values, r"(?s)[\x00-\x20].*", "")
    exact = pc.ascii_rtrim(_ascii_constant(found), characters=" ").cast(pa.binary())
    low, high = pc.coalesce(exact, cut), pc.coalesce(exact, found.high.values)
    return strict(call.type, _bound(low), _bound(high), False, found)


def _length(call: Call, context: EvalContext) -> ValueRange | None:
    found = _facts(call.args[0], context)
    if found is None:
        return None
    size = pc.binary_length(_ascii_constant(found)).cast(pa.int64())
    some = pc.greater(found.low.values, b"").fill_null(False).cast(pa.int64())
    low, high = pc.coalesce(size, some), size.fill_null(INT32[1])
    return strict(call.type, Bound(_numbers(low), False), Bound(_numbers(high), False), False, found)


def _numbers(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.asarray(values.to_numpy(zero_copy_only=False), np.int64)


def _test(compute: Callable[..., pa.Array]) -> Rule:
    """A test of a string for a literal, byte by byte."""

    def rule(call: Call, context: EvalContext) -> ValueRange | None:
        found = _facts(call.args[0], context)
        match call.args[1]:
            case Literal(value=bytes(part), type=type_) if found and type_ == _STRING:
                holds = compute(_constant(found), part)
                return _maybe(to_mask(holds.fill_null(False)), to_mask(holds.fill_null(True)), found)
        return None

    return rule


def _maybe(surely: Mask, possibly: Mask, found: ValueRange) -> ValueRange:
    low, high = surely.astype(np.int64), possibly.astype(np.int64)
    return strict(BOOLEAN, Bound(low, False), Bound(high, False), False, found)


def _rlike(call: Call, context: EvalContext) -> ValueRange | None:
    match call.args:
        case (e, Literal(value=bytes(pattern))) if e.type == _STRING:
            literal = prefix_of_regex(pattern.decode("utf-8", "replace"))
        case _:
            return None
    found = _facts(e, context)
    if literal is None or found is None:
        return None
    prefix, whole = literal
    starts = of_verdict(context.verdict(StartsWith(e, prefix), context))
    return (
        starts if whole else strict(BOOLEAN, Bound(np.zeros(context.count, np.int64), False), starts.high, False, found)
    )


def prefix_of_regex(pattern: str) -> tuple[bytes, bool] | None:
    """The text that every match begins with, and whether all that begins with it matches; None if that is not clear.

    >>> prefix_of_regex("^abc"), prefix_of_regex("^ab.*"), prefix_of_regex("^ab*c"), prefix_of_regex("^a[bc]$")
    ((b'abc', True), (b'ab', True), (b'a', False), (b'a', False))
    >>> prefix_of_regex("abc"), prefix_of_regex("^a|b"), prefix_of_regex("^(?i)a")
    (None, None, None)
    """
    found = _PREFIX.match(pattern)
    if found is None or "|" in pattern or "(?" in pattern or "\\" in pattern:
        return None
    prefix, rest = found[1], pattern[found.end() :]
    if rest[:1] in ("*", "?", "{"):
        # The last character may be missing.
        return prefix[:-1].encode(), False
    return prefix.encode(), rest in ("", ".*")


RULES: dict[str, Rule] = {
    "Substring": _substring,
    "Concat": _concat,
    "Upper": _of_constants(pc.ascii_upper),
    "Lower": _of_constants(pc.ascii_lower),
    "StringTrim": lambda call, context: _trim(call, context, pc.ascii_trim),
    "StringTrimLeft": lambda call, context: _trim(call, context, pc.ascii_ltrim),
    "StringTrimRight": _trim_right,
    "Length": _length,
    "OctetLength": _length,
    "EndsWith": _test(pc.ends_with),
    "Contains": _test(pc.match_substring),
    "RLike": _rlike,
}
