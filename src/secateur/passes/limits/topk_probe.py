"""Top-k pruning at run time: a probe of files is read for a boundary that rules out most of the others.

Before and after, for ``WHERE f(y) ORDER BY x DESC LIMIT 2`` over files of which nobody knows how many rows match::

    Limit 2                            the probe: the file with 90..99 alone, its rows that match sorted and scope;
      Sort x DESC NULLS LAST           it gives rows with 97 and 93, so that the boundary is x >= 93
        Filter f(y)
          Scan t [x, y]  (90..99, 80..95, 0..80)          ->   the scan reads the first two files

The probe is a scalar subquery, a copy of what lies below the Sort over few files, which Spark runs before the scan.
Each of its rows is a row of the answer before the LIMIT, too, so if there are k of them, no row that comes after the
last can be needed; ties stay, and with them all further sort keys. If there are fewer, nothing is ruled out.

Which files come first: those whose *worst* value comes first. So it is known beforehand what the probe will rule out,
if it holds enough rows: every file whose best value comes after the worst of the probe. Where that does not pay for the
probe (each file spans the whole range, say), there is none, and a reason says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from secateur.decision.parts import AskAtRuntime, Part
from secateur.decision.runtime import BoundaryRequest, RowFilter
from secateur.evaluate.evaluator import context_of, evaluate
from secateur.evaluate.expression_ranges import range_of
from secateur.evaluate.value_range import Bound, ValueRange
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.filter.filter import narrow
from secateur.passes.limits.limit_scope import Counts
from secateur.passes.limits.runtime_row_filter import row_filter
from secateur.passes.limits.sorted_scans import Blocked, SortedScan, sorted_scans
from secateur.passes.limits.topk import as_flags, at_or_beyond, taken
from secateur.plan.columns import Mask
from secateur.plan.expressions import Expression, IsNull, Literal
from secateur.plan.nodes import Settings, SortKey
from secateur.plan.values import decode_value
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats, sum_of

MOST_ROWS = 100_000
"""A greater LIMIT is no look at a few rows any more."""
MATCHING = 0.01
"""How many rows of a file are taken to match where that is not known."""
USUAL_ROWS = 100_000
"""How many rows a file is taken to have if nothing is known of any."""
MARGIN = 4
"""How many times the rows that are needed a probe is to hold, by that reckoning."""
JOB_SECONDS = 0.15
"""What the subquery costs besides its files."""
BYTES_A_SECOND = 2e8
"""What is read of large files in a second, roughly."""
WORTH = 3
"""How many times its own cost a probe has to save."""


@dataclass(frozen=True, slots=True)
class TopKProbe:
    """Where the first ``count`` rows of a sort end, as far as some files tell: found out while the query runs."""

    sort: int
    count: int
    key: SortKey
    files: Mask
    row_filter: RowFilter | None = None
    """How rows are compared with the boundary."""

    name = "topk_probe"

    @property
    def request(self) -> BoundaryRequest:
        """The subquery that Spark runs first."""
        descending = self.key.descending
        return BoundaryRequest(self.sort, self.count, self.values, descending, self.files, self.row_filter)

    @property
    def values(self) -> int:
        """How many of the first rows must have a value: with NULLS FIRST all others are NULL, and come first."""
        return 1 if self.key.nulls_first else self.count

    def describe(self) -> str:
        few = int(np.count_nonzero(self.files))
        order = f"{in_words(self.key.expression)} {'DESC' if self.key.descending else 'ASC'}"
        are = "file is" if few == 1 else "files are"
        return f"{few:,} {are} read first, to find where the first {self.count:,} rows by {order} end"

    def condition(self, values: Sequence[object]) -> Expression | None:
        """What each of the first rows satisfies, given how many rows and values there were, and the last value.

        >>> from secateur.plan.expressions import Column
        >>> from secateur.plan.types import parse_type
        >>> key = SortKey(Column(1, "x", parse_type("int")), descending=True, nulls_first=False)
        >>> probe = TopKProbe(0, 10, key, np.ones(1, np.bool_))
        >>> print(probe.condition([10, 10, 93]), probe.condition([9, 9, 93]), probe.condition([10, 9, 93]))
        (x#1 >= 93) None None
        """
        rows, ranked, last = values if len(values) == 3 else (0, 0, None)
        if not isinstance(rows, int) or not isinstance(ranked, int) or rows < self.count:
            return None
        e = self.key.expression
        if self.key.nulls_first and ranked == 0:
            return IsNull(e)
        if ranked < self.values:
            return None
        value = decode_value(last, e.type)
        if value is None:
            return None
        return at_or_beyond(self.key, Literal(value, e.type))


def probe_topk(known: PassInput) -> PassResult:
    """Give every scan below ORDER BY and LIMIT a probe, where that pays."""
    parts: list[tuple[int, Part]] = []
    order_sensitive = known.analysis.order_sensitive
    # Of two sorts above one scan the lower one is met last.
    sorts = {found.scan.id: found for found in sorted_scans(known.query.plan, known.analysis.propagation)}
    for id_, found in sorts.items():
        if id_ not in known.stats or id_ in order_sensitive or not found.count or np.count_nonzero(known.kept[id_]) < 2:
            continue
        probe = probe_for(found, known) if isinstance(found, SortedScan) else _no_way(found)
        parts.append((id_, probe if isinstance(probe, Reason) else AskAtRuntime(probe)))
    return parts


def _no_way(found: Blocked) -> Reason:
    return Reason(
        "probe-not-possible",
        f"The first rows of {found.scan.table} cannot be found at run time: between ORDER BY … LIMIT {found.count:,} "
        f"and the table lies {found.what}.",
    )


def probe_for(found: SortedScan, known: PassInput) -> TopKProbe | Reason:
    """The probe of a scan, or why it has none."""
    table, stats, kept = found.scan.table, known.stats[found.scan.id], known.kept[found.scan.id]
    by = f"ORDER BY {in_words(found.key.expression)} LIMIT {found.count:,}"
    if found.count > MOST_ROWS:
        return Reason("probe-too-large", f"{by} needs too many rows of {table} to read a few files first.")
    settings = known.query.settings
    value_range = range_of(found.key.expression, context_of(stats, found.columns, settings))
    if value_range is None or found.key.expression.type.domain is None:
        return Reason("probe-not-worth", f"For {by} the files of {table} have no bounds of the sort key.")
    chosen = choose(found, value_range, stats, kept, settings)
    if chosen is None:
        return Reason(
            "probe-not-worth",
            f"For {by} too few files of {table} have a known row count and bounds of the sort key.",
        )
    files, worst = chosen
    # If it holds enough rows, the probe's worst value is the worst that the boundary can be.
    sure = at_or_beyond(found.key, Literal(worst, value_range.type))
    left = narrow((sure,), stats, found.columns, kept, settings)
    saved, cost = seconds(stats, kept & ~left, known), JOB_SECONDS + seconds(stats, files, known)
    for other in found.again:
        kept_there = known.kept.get(other.id)
        cost += (
            other.bytes / BYTES_A_SECOND if kept_there is None else seconds(known.stats[other.id], kept_there, known)
        )
    if saved < WORTH * cost:
        return Reason(
            "probe-not-worth",
            f"For {by} reading {np.count_nonzero(files):,} files of {table} first might leave "
            f"{np.count_nonzero(left):,} of {np.count_nonzero(kept):,} to read, which is not worth its cost. "
            "Sort or cluster the table by the sort key.",
        )
    return TopKProbe(
        found.sort, found.count, found.key, files, row_filter(found.key.expression, found.scan, stats, kept)
    )


def choose(
    found: SortedScan, value_range: ValueRange, stats: FileStats, kept: Mask, settings: Settings
) -> tuple[Mask, Any] | None:
    """The files of the probe and the worst value that one of them may hold, None if there are none to choose from."""
    worst = value_range.low if found.key.descending else value_range.high
    usable = kept & ~as_flags(worst.unknown, stats.count) & as_flags(value_range.may_hold_number, stats.count)
    rows = _likely_rows(stats)
    places = np.flatnonzero(usable & (rows > 0))
    if not len(places):
        return None
    order = _sorted(worst, places, descending=found.key.descending)
    expected = np.cumsum(_expected(found, stats, rows, settings)[order])
    most = max(8, int(np.count_nonzero(kept)) // 200)
    size = int(np.searchsorted(expected, found.count * MARGIN)) + 1
    size = min(size, len(order), most)
    if np.cumsum(rows[order])[size - 1] < found.count:
        return None
    files = np.zeros(stats.count, np.bool_)
    files[order[:size]] = True
    return files, _value(worst, order[size - 1])


def _likely_rows(stats: FileStats) -> Counts:
    """The rows of each file, where they are not known (of some, rows were deleted) about as many as others have."""
    known = stats.rows.drop_null()
    usual = int(pc.quantile(known, 0.5)[0].as_py()) if len(known) else USUAL_ROWS
    rows: Counts = pc.fill_null(stats.rows, usual).to_numpy(zero_copy_only=False)
    return rows


def _expected(found: SortedScan, stats: FileStats, rows: Counts, settings: Settings) -> Any:
    """How many rows of each file are likely to match."""
    full = np.ones(stats.count, np.bool_)
    for conjunct in found.predicate:
        full &= evaluate(conjunct, stats, found.columns, settings).must
        if not full.any():
            break
    return np.where(full, rows.astype(np.float64) * MARGIN, rows * MATCHING)


def _sorted(bound: Bound, places: Any, *, descending: bool) -> Any:
    order = pc.sort_indices(taken(bound, places), sort_keys=[("", "descending" if descending else "ascending")])
    return places[order.to_numpy()]


def _value(bound: Bound, place: int) -> Any:
    value = bound.values[int(place)]
    return value.item() if isinstance(bound.values, np.ndarray) else value.as_py()


def seconds(stats: FileStats, files: Mask, known: PassInput) -> float:
    """What reading these files takes, roughly."""
    size = sum_of(stats.sizes, files, known=True)
    return float(np.count_nonzero(files)) * known.tuning.file_seconds + float(size or 0) / BYTES_A_SECOND
