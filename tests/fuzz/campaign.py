"""Many random predicates against Spark: a table, a generator of SQL and a setting in, a tally out.

``python -m tests.fuzz.test_times 5000`` (or ``test_strings``) runs thousands from the command line; the tests run a few
with a fixed seed. Whatever is wrong is printed as one line to be put into a regression table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pyarrow as pa
from pyspark.sql import SparkSession

import secateur
from tests.fuzz.harness import Bench

Conf = Mapping[str, str]
Tables = Callable[[Random], Sequence[pa.Table]]
Generate = Callable[[Random], str]


@dataclass
class Tally:
    """What came of the predicates of one campaign."""

    judged: int = 0
    verdicts: int = 0
    """Two a predicate and file: can it be skipped, does it match as a whole."""
    possible: int = 0
    """How many of them somebody who reads the file could decide."""
    decided: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of what could be decided, how much is."""
        return self.decided / max(self.possible, 1)

    def __str__(self) -> str:
        return (
            f"{self.judged} predicates, {self.share:.0%} of {self.possible} verdicts decided, {len(self.wrong)} wrong"
        )


def judge(bench: Bench, predicates: Sequence[str], tally: Tally) -> None:
    """Adds the predicates to the tally."""
    for judged in bench.judge(predicates):
        tally.judged += 1
        tally.verdicts += 2 * len(judged.may)
        tally.possible += int((~judged.some_true).sum() + judged.all_true.sum())
        tally.decided += judged.decided
        if judged.wrong_skip or judged.wrong_must:
            what = "wrong skip" if judged.wrong_skip else "wrong must"
            tally.wrong.append(f"{what}: {judged.sql}   seen as {judged.seen}")


@contextmanager
def settings(spark: SparkSession, conf: Conf) -> Iterator[None]:
    """Spark's settings for a while."""
    before = {key: spark.conf.get(key) for key in conf}
    try:
        for key, value in conf.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            spark.conf.set(key, str(old))


def command_line(tables: Tables, generate: Generate, confs: Sequence[Conf]) -> None:
    """Runs as many predicates as the first argument says, with the seed that the second one names."""
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    pruner = secateur.attach(spark, {"stats.auto": False})
    total = Tally()
    with tempfile.TemporaryDirectory() as folder:
        rounds = 0
        while total.judged < count:
            rng = Random(f"{seed}/{rounds}")
            conf = confs[rounds % len(confs)]
            bench = Bench(spark, pruner, Path(folder) / f"r{rounds}", tables(rng))
            with settings(spark, conf):
                judge(bench, [generate(rng) for _ in range(150)], total)
            rounds += 1
            print(f"seed {seed} round {rounds} {dict(conf)}: {total}", flush=True)
            while total.wrong:
                print("WRONG", dict(conf), total.wrong.pop(), flush=True)
    spark.stop()
