"""Puts predicates written in SQL to Spark and to the evaluator, and compares file by file.

The truth comes from Spark: one query evaluates many predicates on every row and tells for each file whether some row
makes it TRUE and whether every row does. The verdicts come the way they come in production: Spark optimizes
``SELECT * FROM t WHERE p``, the bridge writes the plan, and the evaluator judges what arrives. With ``answers`` the
query is run as well, as a user would run it, and its rows counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import secateur
from secateur.evaluate.evaluator import evaluate
from secateur.passes import run_passes
from secateur.passes.analysis import QueryAnalysis
from secateur.plan.columns import Mask, ScanColumn
from secateur.plan.expressions import Call, Expression, walk
from secateur.plan.nodes import Query
from secateur.plan.types import parse_type
from secateur.session import planner
from secateur.stats.file_stats import FileStats
from tests.passes.results import kept

Lens = Callable[[FileStats, Sequence[int]], FileStats]
"""What is made of the statistics before anyone sees them; the numbers are those of the files, in their order."""
Counts = npt.NDArray[np.int64]
_NUMBER = ScanColumn(-1, "f", parse_type("int"))
_REFUSED = (PySparkException, Py4JJavaError)
"""Spark's errors have a class of their own, those of Java's arithmetic do not."""


@dataclass(frozen=True)
class Judged:
    """A predicate with what Spark found in each file and what the evaluator says of it."""

    sql: str
    some_true: Mask
    all_true: Mask
    may: Mask
    """Whether the evaluator and the passes keep the file."""
    must: Mask
    seen: str
    calls: tuple[Call, ...] = ()
    """The functions that reached the evaluator."""

    @property
    def wrong_skip(self) -> bool:
        return bool((self.some_true & ~self.may).any())

    @property
    def wrong_must(self) -> bool:
        return bool((self.must & ~self.all_true).any())

    @property
    def wrong(self) -> str:
        """``skip``, ``must`` or nothing."""
        return "skip" if self.wrong_skip else "must" if self.wrong_must else ""

    @property
    def wrong_files(self) -> list[int]:
        """The numbers of the files that the verdict is wrong about, in the way that :attr:`wrong` says."""
        skipped, claimed = self.some_true & ~self.may, self.must & ~self.all_true
        return [int(f) for f in np.flatnonzero(skipped if self.wrong_skip else claimed)]

    @property
    def decided(self) -> int:
        """How many verdicts say something: files ruled out, and files that match as a whole."""
        return int((~self.may).sum() + self.must.sum())

    @property
    def possible(self) -> int:
        """How many verdicts somebody who reads the files could give."""
        return int((~self.some_true).sum() + self.all_true.sum())


@dataclass(frozen=True)
class _Seen:
    may: Mask
    must: Mask
    conjuncts: tuple[Expression, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for e in self.conjuncts for part in walk(e) if isinstance(part, Call))


class Bench:
    """A table of many small files, its statistics, and the attached Spark to ask."""

    def __init__(
        self,
        spark: SparkSession,
        pruner: secateur.Pruner,
        folder: Path,
        files: Sequence[pa.Table],
        lens: Lens | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        for i, table in enumerate(files):
            pq.write_table(table.append_column("f", pa.array([i] * len(table), pa.int32())), folder / f"{i:04}.parquet")
        self.spark, self.pruner, self.files, self.lens = spark, pruner, len(files), lens
        secateur.collect(spark, str(folder), progress=False)
        self.view = f"fuzz_{folder.name}"
        spark.read.parquet(str(folder)).createOrReplaceTempView(self.view)

    def judge(self, predicates: Sequence[str], *, batch: int = 60) -> Iterator[Judged]:
        """Each predicate that Spark accepts, judged; those that fail to analyse or to run are left out.

        Spark compiles one query for a batch; where many predicates fail to run, smaller ones are faster.
        """
        for start in range(0, len(predicates), batch):
            some = predicates[start : start + batch]
            accepted = [(sql, seen) for sql in some if (seen := self._see(sql)) is not None]
            truths = self._truths([sql for sql, _ in accepted])
            for (sql, seen), truth in zip(accepted, truths, strict=True):
                if truth is not None:
                    text = " AND ".join(map(str, seen.conjuncts))
                    yield Judged(sql, truth > 0, truth == self._rows, seen.may, seen.must, text, seen.calls)

    def calls(self, predicates: Sequence[str]) -> Iterator[Call]:
        """The functions of these predicates that reach the evaluator."""
        for sql in predicates:
            if (seen := self._see(sql)) is not None:
                yield from seen.calls

    def answers(self, predicates: Sequence[str]) -> list[str]:
        """Those of the predicates (all judged already) that select other rows with secateur than without."""
        if not predicates:
            return []
        with self._watched([]):
            own = self._selected(predicates)
        # Not against the truth: Spark hands comparisons to Parquet, which loses rows of its own about the year 1582.
        with self.pruner.paused():
            plain = self._selected(predicates)
        return [sql for sql, mine, theirs in zip(predicates, own, plain, strict=True) if (mine != theirs).any()]

    def _selected(self, predicates: Sequence[str]) -> npt.NDArray[np.int64]:
        """How many rows each of the predicates selects of each file."""
        query = " UNION ALL ".join(
            f"SELECT {i} AS p, f, count(*) AS c FROM {self.view} WHERE {sql} GROUP BY f"
            for i, sql in enumerate(predicates)
        )
        found = np.zeros((len(predicates), self.files), np.int64)
        for row in self.spark.sql(query).collect():
            found[row["p"], row["f"]] = row["c"]
        return found

    @contextmanager
    def _watched(self, seen: list[tuple[Query, int, FileStats, Mask]]) -> Iterator[None]:
        """Notes what the passes are asked and what they keep, and puts the lens before them."""

        def watch(query: Query, stats: dict[int, FileStats], **more: Any) -> Any:
            if self.lens is not None:
                stats = {id_: self.lens(s, self._order(s).tolist()) for id_, s in stats.items()}
            decision = run_passes(query, stats, **more)
            seen.extend((query, id_, s, kept(decision, id_)) for id_, s in stats.items())
            return decision

        with patch.object(planner, "run_passes", watch):
            yield

    def _see(self, sql: str) -> _Seen | None:
        """The verdicts for ``WHERE sql``, None if Spark refuses it or knows its value already."""
        seen: list[tuple[Query, int, FileStats, Mask]] = []
        try:
            with self._watched(seen):
                self.pruner.explain(f"SELECT * FROM {self.view} WHERE {sql}")
        except _REFUSED:
            return None
        if len(seen) != 1:
            return None
        query, scan_id, stats, left = seen[0]
        (scan,) = [s for s in query.scans() if s.id == scan_id]
        columns = {c.id: c for c in scan.columns}
        order = self._order(stats)
        may, must = left.copy(), np.ones(stats.count, np.bool_)
        conjuncts = QueryAnalysis(query).predicate(scan)
        for conjunct in conjuncts:
            verdict = evaluate(conjunct, stats, columns, query.settings)
            may, must = may & verdict.may, must & verdict.must
        whole = np.zeros((2, self.files), np.bool_)
        whole[0, order], whole[1, order] = may, must
        return _Seen(whole[0], whole[1], conjuncts)

    @staticmethod
    def _order(stats: FileStats) -> Counts:
        """The number of each file, in the order of the listing."""
        found = stats.column(_NUMBER)
        assert found is not None
        order: Counts = found.low.to_numpy()
        return order

    @property
    def _rows(self) -> Counts:
        """How many rows each file has."""
        if not hasattr(self, "_row_counts"):
            counts = np.zeros(self.files, np.int64)
            with self.pruner.paused():
                for row in self.spark.sql(f"SELECT f, count(*) AS c FROM {self.view} GROUP BY f").collect():
                    counts[row["f"]] = row["c"]
            self._row_counts = counts
        return self._row_counts

    def _truths(self, predicates: Sequence[str]) -> list[Counts | None]:
        """How many rows of each file make each predicate TRUE, None for those that fail to run."""
        if not predicates:
            return []
        columns = ", ".join(f"count_if(p{i}) AS t{i}" for i in range(len(predicates)))
        inner = ", ".join(f"({sql}) AS p{i}" for i, sql in enumerate(predicates))
        query = f"SELECT f, {columns} FROM (SELECT f, {inner} FROM {self.view}) GROUP BY f"
        try:
            with self.pruner.paused():
                rows = self.spark.sql(query).collect()
        except _REFUSED:
            if len(predicates) == 1:
                return [None]
            middle = len(predicates) // 2
            return self._truths(predicates[:middle]) + self._truths(predicates[middle:])
        found = np.zeros((len(predicates), self.files), np.int64)
        for row in rows:
            found[:, row["f"]] = [row[f"t{i}"] for i in range(len(predicates))]
        return list(found)
