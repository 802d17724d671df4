"""Functions of strings against Spark: random predicates over nasty strings, and a table by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.campaign import Tally, command_line, judge, settings
from tests.fuzz.harness import Bench

CONFS = [{"spark.sql.ansi.enabled": "true"}, {"spark.sql.ansi.enabled": "false"}]
STEMS = (
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "Abc",
    "ABC",
    "b",
    "ba",
    "bcd",
    "x1",
    "x2",
    "x10",
    " a",
    "zz",
    "é",
    "abé",
    "日本",
    "😀",
)
ENDS = (
    *(
        "",
        "",
        "",
        "c",
        "d",
        "x",
        "X",
        " ",
        "  ",
        "\t",
        "\n",
        "\x00",
        "\x01",
        "_",
        "%",
        "\\",
        "\x7f",
        "é",
        "ß",
        "İ",
        "ı",
    ),
    *("Σ", "\u0301", "\u07ff", "\u0800", "\ufffd", "\uffff", "😀", "\U00010000", "\U0010ffff", "z" * 70),
)


def _string(rng: Random, stem: str | None = None) -> str:
    stem = rng.choice(STEMS) if stem is None else stem
    return stem + "".join(rng.choice(ENDS) for _ in range(rng.choice((0, 0, 1, 1, 2, 3))))


def nasty(rng: Random) -> Sequence[pa.Table]:
    """Two dozen files of five rows; some constant, some without a value, most with a common beginning."""
    return [pa.table({name: _column(rng) for name in ("s", "t")} | {"i": _numbers(rng)}) for rng in [rng] * 24]


def _column(rng: Random) -> pa.Array:
    kind = rng.random()
    stem = rng.choice(STEMS)
    values: list[str | None]
    if kind < 0.3:
        values = [_string(rng, stem)] * 5
    elif kind < 0.75:
        values = [_string(rng, stem) for _ in range(5)]
    else:
        values = [_string(rng) for _ in range(5)]
    nulls = rng.choice((0.0, 0.0, 0.0, 0.3, 1.0 if rng.random() < 0.3 else 0.0))
    return pa.array([None if rng.random() < nulls else v for v in values], pa.string())


def _numbers(rng: Random) -> pa.Array:
    return pa.array([rng.randint(-3, 5) for _ in range(5)], pa.int32())


def quoted(text: str) -> str:
    """A literal of SQL."""
    plain = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + "".join(c if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in plain) + "'"


def _literal(rng: Random) -> str:
    return quoted(_string(rng))


def _pattern(rng: Random) -> str:
    parts = [rng.choice(("%", "_", "%%", "a", "ab", "abc", "c", "x", "\\%", "\\_", "\\\\", "é", " ", _string(rng)[:3]))]
    parts += [rng.choice(("%", "_", "", "b", "c", "%c", "d%")) for _ in range(rng.randint(0, 3))]
    return quoted("".join(parts))


def _regex(rng: Random) -> str:
    start = rng.choice(("^", "^", "^", "", "(?i)^", "\\\\A"))
    middle = rng.choice(("a", "ab", "abc", "x1", "é", "Abc", "", "a|b", "[ab]c", "a b"))
    end = rng.choice(("", ".*", "$", "+", "*", "?", "{2}", ".", "c", "|x", "\\\\d", "(b|c)", ".*x"))
    return f"'{start}{middle}{end}'"


def expression(rng: Random, depth: int = 0) -> str:
    """An expression that yields a string."""
    if depth > 2 or rng.random() < 0.3:
        return rng.choice("sst")
    inner = expression(rng, depth + 1)
    count = rng.choice((0, 1, 2, 3, 5, 80, -1))
    return rng.choice(
        (
            f"substring({inner}, 1, {count})",
            f"substring({inner}, {rng.choice((0, 1, 2, 3, -2))}, {count})",
            f"substring({inner}, {rng.choice((0, 1, 2))})",
            f"left({inner}, {count})",
            f"right({inner}, {count})",
            f"substring({inner}, 1, i)",
            f"concat({_literal(rng)}, {inner})",
            f"concat({inner}, {_literal(rng)})",
            f"concat({_literal(rng)}, {inner}, {_literal(rng)})",
            f"concat({inner}, {expression(rng, depth + 1)})",
            f"({inner} || '-' || {expression(rng, depth + 1)})",
            f"upper({inner})",
            f"lower({inner})",
            f"trim({inner})",
            f"ltrim({inner})",
            f"rtrim({inner})",
            f"rtrim({inner})",
            f"trim({rng.choice(('BOTH', 'LEADING', 'TRAILING'))} {rng.choice(quotes)} FROM {inner})",
            # What has no rule is evaluated by Spark where it is constant.
            f"reverse({inner})",
            f"replace({inner}, 'a', {_literal(rng)})",
            f"lpad({inner}, {rng.choice((2, 5))}, 'x')",
            f"initcap({inner})",
            f"regexp_replace({inner}, '[ab]+', 'q')",
            f"regexp_extract({inner}, '(a|b)(.)', 2)",
            f"concat_ws('-', {inner}, {expression(rng, depth + 1)})",
            f"get(split({inner}, 'b'), 0)",
            f"IF({inner} > 'b', reverse({inner}), t)",
            "cast(i AS string)",
        )
    )


PARSED = (
    "try_cast({} AS int)",
    "instr({}, 'b')",
    "ascii({})",
    "levenshtein({}, 'abc')",
    "size(split({}, 'b'))",
    "try_cast(substring({}, 2, 2) AS double)",
    "year(try_to_date({}, 'yyyy'))",
)
quotes = ("'x'", "'a '", "''", "'é'", "'cb'")


def predicate(rng: Random, depth: int = 0) -> str:
    """A predicate in SQL."""
    roll = rng.random()
    if depth < 2 and roll < 0.2:
        op = rng.choice(("AND", "OR"))
        return f"({predicate(rng, depth + 1)} {op} {predicate(rng, depth + 1)})"
    if depth < 2 and roll < 0.3:
        return f"NOT ({predicate(rng, depth + 1)})"
    left = expression(rng)
    roll = rng.random()
    if roll < 0.03:
        return f"{rng.choice(PARSED).format(left)} {rng.choice(('>', '<=', '=', '<=>'))} {rng.choice(('0', '2', '10'))}"
    if roll < 0.08:
        return f"{left} IS {rng.choice(('', 'NOT '))}NULL"
    if roll < 0.15:
        return f"{left} IN ({_literal(rng)}, {_literal(rng)}, {_literal(rng)})"
    if roll < 0.25:
        return f"{left} {rng.choice(('LIKE', 'LIKE', 'ILIKE'))} {_pattern(rng)}"
    if roll < 0.26:
        return f"{left} LIKE {_pattern(rng)} ESCAPE '{rng.choice('%_!a')}'"
    if roll < 0.4:
        return f"{left} RLIKE {_regex(rng)}"
    if roll < 0.55:
        return f"{rng.choice(('startswith', 'endswith', 'contains'))}({left}, {_literal(rng)})"
    op = rng.choice(("=", "<", "<=", ">", ">=", "<=>", "<>"))
    if roll < 0.65:
        size = rng.choice(("length", "octet_length"))
        return f"{size}({left}) {op} {rng.choice(('0', '1', '2', '3', '5', '70', '74'))}"
    if roll < 0.75:
        return f"{left} {op} {expression(rng, 1)}"
    return f"{left} {op} {_literal(rng)}"


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_no_verdict_on_strings_is_wrong(
    spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, ansi: str
) -> None:
    rng = Random(f"strings {ansi}")
    bench = Bench(spark, pruner, tmp_path / "strings", nasty(rng))
    tally = Tally()
    with settings(spark, {"spark.sql.ansi.enabled": ansi}):
        judge(bench, [predicate(rng) for _ in range(60)], tally)
    assert not tally.wrong
    assert tally.judged > 40
    assert tally.share > 0.3


def by_prefix() -> Sequence[pa.Table]:
    """Nine files: s starts with aa to cc in turn, t is one value a file, some of them long or not ASCII."""
    files = []
    for i, stem in enumerate(x + y for x in "abc" for y in "abc"):
        own = [stem + "1", stem + "5 ", stem + "9" * 70]
        one = (stem, stem.upper(), f" {stem} ", f"x{stem}x", "", "é" + stem, stem * 30, f"{stem}_", f"{stem}%")[i]
        files.append(pa.table({"s": own, "t": [one] * 3}))
    return files


SHARP = """
substring(s, 1, 2) = 'bb'
substring(s, 0, 2) IN ('aa', 'cc')
substring(s, 1, 1) > 'a'
left(s, 2) BETWEEN 'ab' AND 'ba'
left(left(s, 3), 2) = 'ca'
concat('x-', s) = 'x-bb1'
concat('x-', s) > 'x-bb'
'x-' || t || '-' || s LIKE 'x-aa-aa%'
rtrim(s) = 'bb5'
s RLIKE '^bb'
s RLIKE '^bb.*'
s RLIKE '^bb[15]'
s LIKE 'bb_'
startswith(substring(s, 1, 4), 'bb')
upper(t) = 'AA'
lower(t) = 'ab'
trim(t) = 'ac'
ltrim(t) = 'ac '
trim(BOTH 'x' FROM t) = 'ba'
length(t) = 0
length(t) > 4
endswith(t, 'x')
contains(t, 'bb')
t LIKE '%a_b%' OR t LIKE 'c%\\\\_'
t LIKE '_b%'
substring(t, 2, 1) = 'a'
octet_length(t) = 60
"""


def test_files_by_prefix_are_told_apart(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    """For each line the evaluator keeps exactly the files that hold a match (and, at most, the one beyond ASCII)."""
    bench = Bench(spark, pruner, tmp_path / "prefixes", by_prefix())
    lines = SHARP.strip().splitlines()
    judged = list(bench.judge(lines))
    assert [j.sql for j in judged] == lines
    ascii_ = np.arange(9) != 5
    assert [j.sql for j in judged if (j.may != j.some_true)[ascii_].any() or j.may.all()] == []
    assert not any(j.wrong_skip or j.wrong_must for j in judged)


if __name__ == "__main__":
    command_line(nasty, predicate, CONFS)
