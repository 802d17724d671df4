"""Every rule on what Spark does not show: nothing known, no entries, extremes, and types that it was not made for."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from secateur.evaluate.evaluator import evaluate, verdict_of
from secateur.evaluate.expression_ranges import EvalContext, range_of
from secateur.evaluate.rules import RULES, bits, casts, conditionals, numbers
from secateur.evaluate.value_range import ValueRange
from secateur.plan.columns import ScanColumn
from secateur.plan.expressions import Call, Column, Compare, IsNull, Literal, Value
from secateur.plan.nodes import Settings
from secateur.plan.types import DataType, parse_type
from secateur.stats.file_stats import ColumnStats, FileStats

TYPES = ["tinyint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,38)", "boolean", "string", "date"]
FUNCTIONS = sorted({*numbers.RULES, *bits.RULES, *casts.RULES, *conditionals.RULES})
EXTREMES: dict[str, list[Value]] = {
    "tinyint": [-128, 0, 127],
    "int": [-(2**31), 0, 2**31 - 1],
    "bigint": [-(2**63), -1, 2**63 - 1],
    "float": [-math.inf, -0.0, math.inf],
    "double": [-math.inf, 5e-324, math.inf],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("0.00"), Decimal("9999999.99")],
    "decimal(38,38)": [Decimal("-0." + "9" * 38), Decimal(0), Decimal("0." + "9" * 38)],
    "boolean": [0, 0, 1],
    "string": [b"", b"a", b"\xff"],
    "date": [-(2**31), 0, 2**31 - 1],
}


def _stats(known: dict[str, list[tuple[Value, Value]]], count: int) -> tuple[FileStats, dict[int, ScanColumn]]:
    columns = {i: ScanColumn(i, name, parse_type(name)) for i, name in enumerate(known)}

    def load(column: ScanColumn) -> ColumnStats:
        low, high = zip(*known[column.name], strict=True) if known[column.name] else ((), ())
        domain = column.type.domain
        none = pa.nulls(count, pa.int64())
        exact = np.ones(count, np.bool_)
        return ColumnStats(pa.array(low, domain), pa.array(high, domain), none, none, exact, exact)

    rows = pa.array([10] * count, pa.int64())
    return FileStats(rows, rows, load), columns


def _entries(name: str, kind: str) -> list[tuple[Value, Value]]:
    if kind == "no entries":
        return []
    if kind == "nothing known":
        return [(None, None)] * 3
    return [*itertools.combinations_with_replacement(EXTREMES[name], 2), (None, EXTREMES[name][1]), (None, None)]


@pytest.mark.parametrize("kind", ["no entries", "nothing known", "extremes"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_rule_copes_with_every_type(function: str, kind: str) -> None:
    known = {name: _entries(name, kind) for name in TYPES}
    count = len(known["int"])
    stats, columns = _stats(known, count)
    context = EvalContext(stats, columns, Settings(), verdict_of, RULES)
    args = [Column(i, name, parse_type(name)) for i, name in enumerate(TYPES)]
    condition = Compare("=", args[0], args[0])
    one = Literal(1, parse_type("int"))
    for a, b, result in itertools.product(args, args, args):
        for call_args in ((a,), (a, b), (condition, a, b), (a, one), (a, Literal(None, b.type))):
            if _arity(function) != len(call_args):
                continue
            found = range_of(Call(function, call_args, result.type), context)
            if found is not None:
                _check(found, result.type, count)


def _arity(function: str) -> int:
    if function in ("If", "CaseWhen"):
        return 3
    two = ("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "Pmod", "Logarithm", "Pow", "NaNvl")
    choices = ("Round", "BRound", "RoundFloor", "RoundCeil", "Coalesce", "Least", "Greatest")
    return 2 if function in two + choices else 1


def _check(found: ValueRange, type_: DataType, count: int) -> None:
    assert found.type == type_ or found.type.name == "boolean"
    for bound in (found.low, found.high):
        assert len(bound.values) == count
        if isinstance(bound.values, np.ndarray):
            assert not (np.isnan(bound.values) & ~np.broadcast_to(bound.unknown, count)).any()
        else:
            assert bound.values.type == found.type.domain
            assert (np.asarray(bound.values.is_null()) == np.broadcast_to(bound.unknown, count)).all()
    for flags in (found.may_hold_null, found.may_hold_nan, found.may_hold_number, found.may_hold_value):
        assert isinstance(flags, bool) or flags.shape == (count,)


def test_a_null_literal_is_null_all_the_way() -> None:
    stats, columns = _stats({"int": [(1, 5), (7, 9)]}, 2)
    i, null = Column(0, "int", parse_type("int")), Literal(None, parse_type("int"))
    verdict = evaluate(IsNull(Call("Add", (i, null), i.type)), stats, columns)
    assert verdict.must.tolist() == [True, True]
    verdict = evaluate(IsNull(Call("Coalesce", (null, Literal(3, i.type)), i.type)), stats, columns)
    assert verdict.may.tolist() == [False, False]


def test_a_rule_that_breaks_makes_only_its_function_unknown(caplog: pytest.LogCaptureFixture) -> None:
    def broken(call: Call, context: EvalContext) -> ValueRange | None:
        raise ZeroDivisionError("on purpose")

    stats, columns = _stats({"int": [(1, 5)]}, 1)
    context = EvalContext(stats, columns, Settings(), verdict_of, {**RULES, "Abs": broken})
    x = Column(0, "int", parse_type("int"))
    assert range_of(Call("Abs", (x,), x.type), context) is None
    assert range_of(Call("UnaryMinus", (x,), x.type), context) is not None
    assert "the rule of Abs broke" in caplog.text
