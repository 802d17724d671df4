"""Many random predicates against Spark, round after round: each has a table, a setting and predicates of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

import secateur
from secateur.evaluate.rules.intervals import kind
from secateur.plan.expressions import Call
from tests.fuzz.generate import Generator, Node
from tests.fuzz.harness import Judged
from tests.fuzz.regressions import Regression, Setting, bench_of
from tests.fuzz.shrink import Shrinker
from tests.fuzz.tables import FILES, tables

ZONES = (
    *("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "+05:30", "Asia/Tehran"),
    *("America/Sao_Paulo", "Pacific/Apia"),
)
LENSES = ("plain", "nans", "truncated", "gaps", "nans")


@dataclass
class Tally:
    """What came of the predicates so far."""

    judged: int = 0
    answered: int = 0
    """How many were also run as queries."""
    possible: int = 0
    """Two verdicts a predicate and file: how many of them somebody who reads the file could give."""
    decided: int = 0
    telling: int = 0
    """How many predicates say something of some file."""
    calls: Counter[str] = field(default_factory=Counter)
    """How often each function with a rule, and each cast, was put to the evaluator."""
    wrong: list[Regression] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of what could be decided, how much is."""
        return self.decided / max(self.possible, 1)

    def add(self, judged: Judged) -> None:
        self.judged += 1
        self.possible += judged.possible
        self.decided += judged.decided
        self.telling += judged.decided > 0
        self.calls.update(names_of(judged.calls))

    def __str__(self) -> str:
        return (
            f"{self.judged:,} expressions judged, {self.telling:,} of them tell something, {self.share:.0%} of "
            f"{self.possible:,} possible verdicts given, {self.answered:,} run as queries, {len(self.wrong)} wrong"
        )


def names_of(calls: Collection[Call]) -> set[str]:
    """The functions, and for a cast its types: by kind, as the table of casts of numbers has them, and by name."""
    names = {call.function for call in calls}
    for call in calls:
        if call.function == "Cast" and len(call.args) == 1:
            source, target = call.args[0].type, call.type
            names |= {f"Cast {kind(source)} to {kind(target)}", f"Cast {source.name} to {target.name}"}
    return names


def setting_of(number: int) -> tuple[Setting, bool]:
    """The setting of a round, and whether its table is a nasty one.

    In ANSI mode most predicates fail on a nasty table, and a failure tells nothing.
    """
    ansi = number % 2 == 1
    nasty = number % 8 == 3 if ansi else number % 4 != 2
    setting = Setting(ansi, ZONES[number % len(ZONES)], LENSES[number % len(LENSES)], number % 3 == 0)
    return setting, nasty


class Campaign:
    """Rounds of predicates, the same for the same seed."""

    def __init__(self, spark: SparkSession, pruner: secateur.Pruner, folder: Path, seed: int | str) -> None:
        self.spark, self.pruner, self.folder, self.seed = spark, pruner, folder, seed
        self.tally = Tally()

    def round(
        self, number: int, count: int, *, favour: str = "", files: int = FILES, answers: int = 0, shrunk: int = 5
    ) -> list[Regression]:
        """Judges so many predicates; what is wrong comes back as lines, made small.

        ``answers``: how many are run as queries as well. ``shrunk``: how many findings are made small; more of one
        round are most likely the same.
        """
        rng = Random(f"{self.seed}/{number}")
        setting, nasty = setting_of(number)
        made = tables(rng, nasty=nasty, files=files)
        predicates = {str(p): p for p in Generator(rng, made, nasty=nasty, favour=favour).predicates(count)}
        wrong: list[tuple[Judged, Node]] = []
        with setting.of(self.spark):
            bench = bench_of(self.spark, self.pruner, self.folder, made, setting)
            fine: list[str] = []
            for judged in bench.judge(list(predicates), batch=15 if setting.ansi and nasty else 60):
                self.tally.add(judged)
                if judged.wrong:
                    wrong.append((judged, predicates[judged.sql]))
                else:
                    fine.append(judged.sql)
            shrinker = Shrinker(self.spark, self.pruner, self.folder, setting)
            lines = [shrinker.shrink(p, made[j.wrong_files[0]], j.wrong) for j, p in wrong[:shrunk]]
            lines += [Regression(j.wrong, j.sql, made[j.wrong_files[0]], setting) for j, _ in wrong[shrunk:]]
            asked = fine[:answers]
            lines += [Regression("rows", sql, made[0], setting) for sql in bench.answers(asked)]
            self.tally.answered += len(asked)
        self.tally.wrong += lines
        return lines
