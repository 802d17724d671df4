"""What every pass takes and returns. A pass knows neither Spark nor file formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from secateur.decision.parts import Part
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.filter.surviving_rows import SmallTables
from secateur.passes.tuning import Tuning
from secateur.plan.columns import Mask
from secateur.plan.nodes import Query
from secateur.stats.file_stats import FileStats

PassResult: TypeAlias = Sequence[tuple[int, Part]]
"""Scan ids with what the pass decided, or why it could not."""


@dataclass(frozen=True, slots=True)
class PassInput:
    """The query, the statistics of each scan by its id, and which of its files earlier passes kept."""

    analysis: QueryAnalysis
    stats: Mapping[int, FileStats]
    kept: Mapping[int, Mask]
    tuning: Tuning
    small_tables: SmallTables
    """The rows of small tables that may still matter, as far as passes have worked them out."""

    @staticmethod
    def of(
        query: Query, stats: Mapping[int, FileStats], kept: Mapping[int, Mask], tuning: Tuning | None = None
    ) -> PassInput:
        """The input of the first pass."""
        analysis, tuning = QueryAnalysis(query), tuning or Tuning()
        return PassInput(analysis, stats, kept, tuning, SmallTables(analysis, stats, tuning))

    @property
    def query(self) -> Query:
        """The query."""
        return self.analysis.query
