"""Random predicates over numbers, and the tables that they are put to: ``python -m tests.fuzz.numbers --count 5000``.

Two tables of many small files. The *nasty* one holds the extremes of every type, NaN, infinities, zeros of both signs
and subnormals. Many expressions over it overflow somewhere, which in ANSI mode is an error and no test, so there is a
*mild* one of small numbers too. In both, files differ in what they hold: one value, only NULLs, a narrow range,
anything.
"""

from __future__ import annotations

import argparse
import logging
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import secateur
from secateur.query.expressions import Expression
from secateur.query.plan import Settings
from secateur.reason import evaluate
from secateur.reason.ranges import Columns
from secateur.reason.verdict import Verdict
from secateur.stats.filestats import ColumnStats, FileStats, ScanColumn
from tests.fuzz import harness
from tests.fuzz.harness import Bench, Judged

FILES, ROWS = 24, 5
INTEGERS = {
    "a": ("tinyint", pa.int8()),
    "b": ("smallint", pa.int16()),
    "i": ("int", pa.int32()),
    "l": ("bigint", pa.int64()),
}
FLOATS = {"r": ("float", pa.float32()), "d": ("double", pa.float64()), "e": ("double", pa.float64())}
DECIMALS = {"p": (9, 2), "q": (18, 4), "w": (38, 10)}
_BITS = {"a": 7, "b": 15, "i": 31, "l": 63}
_ODD = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, -5e-324, 1e308, -1.7e308, 1e-300, 3.4e38, 2.0**53]
_CASTS = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(18,4)", "decimal(38,10)"]
_CASTS += ["decimal(5,3)", "decimal(3,0)", "decimal(10,0)", "decimal(38,30)", "decimal(1,1)"]


_BIT_FUNCTIONS = ["(~i)", "(~a)", "(i & 12)", "(l & -8)", "(i & i)", "(i | 5)", "(l | l)", "(i ^ 3)", "(b ^ b)"]
_BIT_FUNCTIONS += ["shiftright(i, 2)", "shiftright(l, 65)", "shiftleft(i, 3)", "shiftleft(l, 60)", "shiftleft(i, 31)"]
_BIT_FUNCTIONS += ["bit_count(i)", "bit_count(t)", "(-i & i)", "((i + 3) & (b | 1))"]


def tables(seed: int, *, nasty: bool) -> list[pa.Table]:
    """The files."""
    rng = random.Random(seed)
    return [_file(rng, nasty=nasty) for _ in range(FILES)]


def _file(rng: random.Random, *, nasty: bool) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, (_, type_) in INTEGERS.items():
        columns[name] = pa.array(_values(rng, lambda n=name: _integer(rng, n, nasty=nasty)), type_)
    for name, (_, type_) in FLOATS.items():
        columns[name] = pa.array(_values(rng, lambda n=name: _float(rng, nasty=nasty and n != "e")), type_)
    for name, (precision, scale) in DECIMALS.items():
        made = _values(rng, lambda p=precision, s=scale: _decimal(rng, p, s, nasty=nasty))
        columns[name] = pa.array(made, pa.decimal128(precision, scale))
    columns["t"] = pa.array(_values(rng, lambda: rng.random() < 0.5), pa.bool_())
    columns["unit"] = pa.array(_values(rng, lambda: rng.choice(["feet", "metres"])), pa.string())
    return pa.table(columns)


def _values(rng: random.Random, make: Any) -> list[Any]:
    """A file's values of a column: one value, only NULLs, or several, with NULLs or without."""
    shape = rng.random()
    if shape < 0.08:
        return [None] * ROWS
    if shape < 0.3:
        return [make()] * ROWS
    start = make()
    near = shape < 0.7 and isinstance(start, int | Decimal) and not isinstance(start, bool)
    values = [start if near and rng.random() < 0.6 else make() for _ in range(ROWS)]
    return [None if shape > 0.85 and rng.random() < 0.4 else v for v in values]


def _integer(rng: random.Random, name: str, *, nasty: bool) -> int:
    largest: int = 2 ** _BITS[name]
    if nasty and rng.random() < 0.15:
        return rng.choice([-largest, -largest + 1, largest - 1, largest - 2, 0, -1, 1])
    if nasty and rng.random() < 0.1:
        return rng.randrange(-largest, largest)
    return rng.randrange(-20, 21) if rng.random() < 0.6 else rng.randrange(1, 100)


def _float(rng: random.Random, *, nasty: bool) -> float:
    if nasty and rng.random() < 0.25:
        return rng.choice(_ODD)
    return rng.choice([rng.uniform(-20, 20), rng.uniform(0.1, 100), float(rng.randrange(-5, 20)), 0.5, 2.5])


def _decimal(rng: random.Random, precision: int, scale: int, *, nasty: bool) -> Decimal:
    if nasty and rng.random() < 0.15:
        unscaled = rng.choice([10**precision - 1, -(10**precision) + 1, 1, -1, 0, rng.randrange(10**precision)])
    else:
        unscaled = rng.randrange(-20 * 10**scale, 100 * 10**scale)
    return (
        Decimal(unscaled).scaleb(-scale) if precision < 28 else Decimal((int(unscaled < 0), _digits(unscaled), -scale))
    )


def _digits(value: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(value))))


class Generator:
    """Writes predicates; what Spark refuses is left out by the bench."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def predicates(self, count: int) -> list[str]:
        return [self.predicate(self.rng.choice([1, 1, 2, 3])) for _ in range(count)]

    def predicate(self, depth: int) -> str:
        rng = self.rng
        if depth > 1 and rng.random() < 0.3:
            left, right = self.predicate(depth - 1), self.predicate(depth - 1)
            return rng.choice(
                [f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})", f"({left}) <=> ({right})"]
            )
        shape = rng.random()
        if shape < 0.6:
            op = rng.choice(["<", "<=", ">", ">=", "=", "<>", "<=>", "<", "<="])
            left, right = self.number(depth), self.literal() if rng.random() < 0.75 else self.number(depth - 1)
            return f"{left} {op} {right}" if rng.random() < 0.85 else f"{right} {op} {left}"
        if shape < 0.68:
            return f"{self.number(depth)} IS {rng.choice(['', 'NOT '])}NULL"
        if shape < 0.76:
            return f"{self.number(depth)} IN ({', '.join(self.literal() for _ in range(rng.randrange(1, 4)))})"
        if shape < 0.82:
            return f"{self.number(depth)} BETWEEN {self.literal()} AND {self.literal()}"
        if shape < 0.88:
            return f"isnan({self.number(depth)})"
        if shape < 0.92:
            return f"CAST({self.number(depth)} AS BOOLEAN)"
        if shape < 0.96:
            return f"IF({self.condition()}, {self.predicate(1)}, {self.predicate(1)})"
        return rng.choice(["t", "NOT t", "coalesce(t, false)", "CAST(t AS INT) > 0", "t <=> (i > 0)"])

    def condition(self) -> str:
        rng = self.rng
        return rng.choice(
            ["unit = 'feet'", "t", "i > 0", "d IS NULL", "p < 10", "unit IS NULL", f"e < {self.literal()}", "isnan(d)"]
        )

    def number(self, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.06:
            return rng.choice(_BIT_FUNCTIONS)
        if depth <= 0 or rng.random() < 0.1:
            return (
                rng.choice([*INTEGERS, *FLOATS, *DECIMALS, "i", "e", "p", "q"])
                if rng.random() < 0.85
                else self.literal()
            )
        x = self.number(depth - 1)
        if rng.random() < 0.42:
            y = self.number(depth - 1) if rng.random() < 0.5 else self.literal()
            return rng.choice(
                [f"({x} {op} {y})" for op in ("+", "-", "*", "/", "div", "%", "+", "-", "*")]
                + [
                    f"{f}({x}, {y})"
                    for f in ("pmod", "least", "greatest", "coalesce", "nullif", "nanvl", "nvl", "try_add")
                ]
                + [
                    f"{f}({x}, {y})"
                    for f in ("try_subtract", "try_multiply", "try_divide", "try_mod", "least", "greatest")
                ]
            )
        unary = [
            "-{}",
            "abs({})",
            "sign({})",
            "floor({})",
            "ceil({})",
            "sqrt({})",
            "exp({})",
            "ln({})",
            "log10({})",
            "log2({})",
        ]
        unary += [
            "log1p({})",
            "log(2, {})",
            "log({}, 3)",
            "pow({}, 2)",
            "pow({}, 0.5)",
            "pow(2, {})",
            "pow({}, -1)",
            "pow({}, 3)",
        ]
        unary += [
            "round({})",
            "round({}, 1)",
            "round({}, -1)",
            "bround({}, 1)",
            "bround({})",
            "rint({})",
            "cbrt({})",
            "atan({})",
        ]
        unary += ["expm1({})", "sinh({})", "tanh({})", "degrees({})", "radians({})", "floor({}, 1)", "ceil({}, -1)"]
        unary += [f"CAST({{}} AS {rng.choice(_CASTS)})"] * 8 + [f"try_cast({{}} AS {rng.choice(_CASTS)})"] * 3
        unary += ["nullifzero({})", "zeroifnull({})", "CAST(CAST({} AS BOOLEAN) AS INT)", "hypot({}, 1)"]
        other = self.number(depth - 1)
        unary += [f"IF({self.condition()}, {{}}, {other})"] * 3
        unary += [f"CASE WHEN {self.condition()} THEN {{}} WHEN {self.condition()} THEN {other} END"]
        unary += [f"CASE WHEN {self.condition()} THEN {other} ELSE {{}} END", f"nvl2(d, {other}, {{}})"]
        return rng.choice(unary).format(x)

    def literal(self) -> str:
        rng = self.rng
        whole = [str(rng.randrange(-20, 100)), str(rng.randrange(-5, 10)), "0", "1", "-1", "100"]
        broken = [f"{rng.uniform(-20, 100):.2f}", f"{rng.uniform(-20, 100):.3f}D", "0.5D", "2e0D", "0.3048", "1.5"]
        typed = [f"CAST({rng.randrange(-50, 50)} AS {rng.choice(['tinyint', 'smallint', 'float', 'bigint'])})"]
        odd = ["2147483647", "1e300D", "CAST('NaN' AS DOUBLE)", "NULL", "9223372036854775807", "-0.0D"]
        return rng.choice(rng.choice([whole, whole, whole, broken, broken, broken, typed, odd]))


def fuzz(
    bench: Bench, predicates: Sequence[str], *, counted: Sequence[pa.Table] = (), batch: int = 40
) -> Iterator[Judged]:
    """The predicates, judged in batches: Spark compiles one query for each batch.

    ``counted``: the files, to have their NaNs counted. Parquet does not, and then a float may always be one, which
    hides every mistake about the NaNs that functions make.
    """
    for start in range(0, len(predicates), batch):
        with patch.object(harness, "evaluate", _counting(counted)) if counted else nullcontext():
            judged = list(bench.judge(predicates[start : start + batch]))
        yield from judged


def _counting(files: Sequence[pa.Table]) -> Callable[..., Verdict]:
    def with_counts(predicate: Expression, stats: FileStats, columns: Columns, settings: Settings) -> Verdict:
        (number,) = [c for c in columns.values() if c.name == "f"]
        numbers = stats.column(number)
        assert numbers is not None
        order = numbers.low.to_pylist()

        def load(column: ScanColumn) -> ColumnStats | None:
            known = stats.column(column)
            if known is None or not column.type.is_float:
                return known
            counts = [pc.sum(pc.is_nan(files[f][column.name])).as_py() or 0 for f in order]
            return replace(known, nans=pa.array(counts, pa.int64()))

        return evaluate(predicate, FileStats(stats.rows, stats.sizes, load), columns, settings)

    return with_counts


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1, help="an odd one has the NaNs of every file counted")
    options.add_argument("--ansi", choices=["on", "off", "both"], default="both")
    chosen = options.parse_args()
    config: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[1]").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config(map=config).config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True
    pruner = secateur.attach(spark, {"stats.auto": False})
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for ansi in {"on": ["true"], "off": ["false"]}.get(chosen.ansi, ["true", "false"]):
            spark.conf.set("spark.sql.ansi.enabled", ansi)
            for nasty in (False, True):
                name = f"{'nasty' if nasty else 'mild'}_{ansi}"
                files = tables(chosen.seed, nasty=nasty)
                bench = Bench(spark, pruner, Path(folder) / name, files)
                # In ANSI mode most predicates fail on the nasty table.
                share = (0.25 if nasty else 0.75) if ansi == "true" else 0.5
                predicates = Generator(chosen.seed + 10 * nasty).predicates(int(chosen.count * share))
                judged = decided = telling = 0
                for each in fuzz(bench, predicates, counted=files if chosen.seed % 2 else ()):
                    judged, decided, telling = judged + 1, decided + each.decided, telling + (each.decided > 0)
                    if each.wrong_skip or each.wrong_must:
                        wrong += 1
                        print(
                            "WRONG", "skip" if each.wrong_skip else "must", name, each.sql, "|", each.seen, flush=True
                        )
                share = decided / max(1, judged * FILES)
                print(
                    f"{name}: {judged} of {len(predicates)} judged, {telling} tell something, {share:.2f} a file",
                    flush=True,
                )
    spark.stop()
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
