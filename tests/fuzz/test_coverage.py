"""Every function that has a rule is in the grammar: an expression that uses it reaches the evaluator."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.campaign import names_of
from tests.fuzz.coverage import NEVER_WRITTEN, expected, missing
from tests.fuzz.generate import Generator
from tests.fuzz.grammar import COMPARISONS, GRAMMAR
from tests.fuzz.regressions import Setting, bench_of
from tests.fuzz.tables import tables


def test_every_rule_is_reached(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    rng = Random("coverage")
    files = tables(rng, nasty=False, files=6)
    generator = Generator(rng, files, nasty=False)
    setting = Setting(ansi=False, compiled=False)
    reached: set[str] = set()
    lines = [(kind, line) for kind, lines in GRAMMAR.items() for line in lines if kind in COMPARISONS or kind == "bool"]
    with setting.of(spark):
        bench = bench_of(spark, pruner, tmp_path, files, setting)
        # What a line leaves to chance, the types of casts, takes some tries.
        casts = [(kind, line) for kind, line in lines if re.search(r"as (\{numeric!\}|boolean|timestamp)\)", line)]
        for tried in [lines, *[casts] * 40]:
            predicates = [str(generator.about(kind, line)) for kind, line in tried]
            reached |= names_of(list(bench.calls(predicates)))
            if not missing(reached):
                break
    unreached = missing(reached)
    assert not unreached, (
        f"no generated expression reaches the rules of {', '.join(sorted(unreached))}: add a line to the grammar in "
        "tests/fuzz/grammar.py, or, if no WHERE clause can, a reason to NEVER_WRITTEN in tests/fuzz/coverage.py"
    )
    written = sorted(set(NEVER_WRITTEN) & reached)
    assert not written, f"{', '.join(written)} can be written after all: take them off NEVER_WRITTEN"


def test_names_that_are_never_written_have_a_rule() -> None:
    assert set(NEVER_WRITTEN) <= expected()
