"""The long campaign: ``python -m tests.fuzz --count 20000 --seed 1`` (``make fuzz``).

Round after round of random predicates over nasty tables, in ANSI and legacy mode and in several time zones, put to
Spark and to the evaluator, until so many are judged and every function that has a rule was reached. A wrong verdict is
printed as a line for ``regressions.jsonl``, and makes the run fail.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path
from time import monotonic

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.campaign import Campaign, setting_of
from tests.fuzz.coverage import missing

ROUND, ANSWERS, EXTRA_ROUNDS = 150, 10, 20


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=20_000, help="how many expressions are judged at least")
    options.add_argument("--seed", default="1", help="the same seed makes the same expressions")
    options.add_argument("--favour", default="", help="use lines of the grammar that hold this text wherever possible")
    chosen = options.parse_args()
    spark = session()
    pruner = secateur.attach(spark, {"stats.auto": False})
    start = monotonic()
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(spark, pruner, Path(folder), chosen.seed)
        tally, number = campaign.tally, 0
        enough = None
        while enough is None or (missing(tally.calls) and number < enough + EXTRA_ROUNDS and not chosen.favour):
            lines = campaign.round(number, ROUND, favour=chosen.favour, answers=ANSWERS)
            setting, nasty = setting_of(number)
            mode = f"{'ANSI' if setting.ansi else 'legacy'}, {setting.zone}, {'nasty' if nasty else 'mild'}"
            print(f"{monotonic() - start:6.0f} s, round {number} ({mode}, {setting.lens}): {tally}", flush=True)
            for line in lines:
                print(f"WRONG {line}", flush=True)
            number += 1
            enough = number if enough is None and tally.judged >= chosen.count else enough
    spark.stop()
    left = missing(tally.calls)
    print(f"functions and casts with a rule that were not reached: {', '.join(sorted(left)) or 'none'}")
    outcome = "FAILED" if tally.wrong else "passed"
    print(f"make fuzz: {outcome} after {monotonic() - start:.0f} s with seed {chosen.seed}: {tally}")
    return 1 if tally.wrong else 0


def session() -> SparkSession:
    """A Spark for campaigns, quiet: many of the expressions fail, as they should."""
    config: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.log.level": "OFF",
    }
    spark = SparkSession.builder.master("local[1]").config(map=config).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return spark


if __name__ == "__main__":
    sys.exit(main())
