"""Puts predicates written in SQL to Spark and to the evaluator, and compares file by file.

The truth comes from Spark: one query evaluates many predicates on every row and tells for each file whether some row
makes it TRUE and whether every row does. The verdicts come the way they come in production: Spark optimizes
``SELECT * FROM t WHERE p``, the bridge writes the plan, and the evaluator judges what arrives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur import decide
from secateur.passes import run_passes
from secateur.passes.predicates import scan_predicates
from secateur.query.plan import Query
from secateur.reason import evaluate
from secateur.stats.filestats import FileStats, Mask


@dataclass(frozen=True)
class Judged:
    """A predicate with what Spark found in each file and what the evaluator says of it."""

    sql: str
    some_true: Mask
    all_true: Mask
    may: Mask
    must: Mask
    seen: str

    @property
    def wrong_skip(self) -> bool:
        return bool((self.some_true & ~self.may).any())

    @property
    def wrong_must(self) -> bool:
        return bool((self.must & ~self.all_true).any())

    @property
    def decided(self) -> int:
        """How many verdicts say something: files ruled out, and files that match as a whole."""
        return int((~self.may).sum() + self.must.sum())


class Bench:
    """A table of many small files, its statistics, and the attached Spark to ask."""

    def __init__(self, spark: SparkSession, pruner: secateur.Pruner, folder: Path, files: Sequence[pa.Table]) -> None:
        folder.mkdir(parents=True)
        for i, table in enumerate(files):
            pq.write_table(table.append_column("f", pa.array([i] * len(table), pa.int32())), folder / f"{i:04}.parquet")
        self.spark, self.pruner, self.files = spark, pruner, len(files)
        secateur.collect(spark, str(folder))
        self.view = f"fuzz_{folder.name}"
        spark.read.parquet(str(folder)).createOrReplaceTempView(self.view)

    def judge(self, predicates: Sequence[str]) -> Iterator[Judged]:
        """Each predicate that Spark accepts, judged; those that fail to analyse or to run are left out."""
        accepted = [(sql, seen) for sql in predicates if (seen := self._see(sql)) is not None]
        truths = self._truths([sql for sql, _ in accepted])
        for (sql, (may, must, text)), truth in zip(accepted, truths, strict=True):
            if truth is not None:
                yield Judged(sql, truth[0], truth[1], may, must, text)

    def _see(self, sql: str) -> tuple[Mask, Mask, str] | None:
        """The verdicts for ``WHERE sql``, None if Spark refuses it or knows its value already."""
        seen: list[tuple[Query, FileStats, int]] = []

        def watch(query: Query, stats: dict[int, FileStats], **more: Any) -> Any:
            seen.extend((query, s, id_) for id_, s in stats.items())
            return run_passes(query, stats, **more)

        try:
            with patch.object(decide, "run_passes", watch):
                self.pruner.explain(f"SELECT * FROM {self.view} WHERE {sql}")
        except PySparkException:
            return None
        if len(seen) != 1:
            return None
        query, stats, scan_id = seen[0]
        (scan,) = [s for s in query.scans() if s.id == scan_id]
        columns = {c.id: c for c in scan.columns}
        order = self._order(stats, scan.columns)
        may, must = np.ones(stats.count, np.bool_), np.ones(stats.count, np.bool_)
        conjuncts = scan_predicates(query)[scan_id]
        for conjunct in conjuncts:
            verdict = evaluate(conjunct, stats, columns, query.settings)
            may, must = may & verdict.may, must & verdict.must
        whole = np.zeros((2, self.files), np.bool_)
        whole[0, order], whole[1, order] = may, must
        return whole[0], whole[1], " AND ".join(map(str, conjuncts))

    @staticmethod
    def _order(stats: FileStats, columns: Sequence[Any]) -> Any:
        """The number of each file, in the order of the listing."""
        (number,) = [c for c in columns if c.name == "f"]
        found = stats.column(number)
        assert found is not None
        return found.low.to_numpy()

    def _truths(self, predicates: Sequence[str]) -> list[tuple[Mask, Mask] | None]:
        if not predicates:
            return []
        columns = [
            f"max(coalesce(p{i}, false)) AS t{i}, min(coalesce(p{i}, false)) AS a{i}" for i in range(len(predicates))
        ]
        inner = ", ".join(f"({sql}) AS p{i}" for i, sql in enumerate(predicates))
        query = f"SELECT f, {', '.join(columns)} FROM (SELECT f, {inner} FROM {self.view}) GROUP BY f"
        try:
            with self.pruner.paused():
                rows = self.spark.sql(query).collect()
        except PySparkException:
            if len(predicates) == 1:
                return [None]
            middle = len(predicates) // 2
            return self._truths(predicates[:middle]) + self._truths(predicates[middle:])
        some, every = np.zeros((2, len(predicates), self.files), np.bool_)
        for row in rows:
            for i in range(len(predicates)):
                some[i, row["f"]], every[i, row["f"]] = row[f"t{i}"], row[f"a{i}"]
        return [(some[i], every[i]) for i in range(len(predicates))]
