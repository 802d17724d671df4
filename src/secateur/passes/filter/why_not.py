"""Why files were not skipped, conjunct by conjunct: one reason each, none for those that did their part.

==============  ==========================================================================================
code            the conjunct
==============  ==========================================================================================
cut-off         cost more time than it saved, so the tree gave it up (see :mod:`secateur.passes.filter.tree`)
pass-failed     broke; it counts as unknown
(an obstacle)   could not rule out files: see :mod:`secateur.evaluate.obstacles`
==============  ==========================================================================================

Then, for the scan as a whole: ``out-of-time`` if the time was up before all files were looked at, and if no file was
skipped and nothing else explains it, ``not-selective`` or ``no-filter``. ``IS NOT NULL`` is not mentioned, nor the
subqueries of dynamic pruning: Spark adds them by itself, for a join or a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from secateur.evaluate.expression_ranges import Columns
from secateur.evaluate.obstacles import obstacles
from secateur.passes.filter.tree import PruningTree
from secateur.passes.filter.tree_nodes import Node
from secateur.plan.expressions import Column, Expression, IsNotNull, is_pruning, walk
from secateur.plan.nodes import Scan
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.file_stats import FileStats

_SHOWN = 120
"""Longer conjuncts are shortened in a sentence."""


def why_not(
    tree: PruningTree, scan: Scan, stats: FileStats, columns: Columns, *, skipped: bool
) -> tuple[Reason, ...]:  # fmt: skip
    """The reasons why not more files of a scan were skipped, after the tree was asked."""
    named = [(e, node) for e, node in tree.conjuncts if not is_pruning(e)]
    conditions = [(e, node) for e, node in named if not isinstance(e, IsNotNull)]
    found = dict.fromkeys(reason for e, node in conditions or named for reason in _why(e, node, stats, columns))
    if tree.out_of_time:
        found[_out_of_time(tree, scan)] = None
    if not found and not skipped:
        found[_not_selective(tree, scan) if conditions else no_filter(scan)] = None
    return tuple(found)


def _why(e: Expression, node: Node, stats: FileStats, columns: Columns) -> Iterator[Reason]:
    """One reason at most."""
    for part in node.below():
        if part.cut:
            yield _cut_off(part, e, whole=part is node)
            return
        if part.broken:
            text = (
                f"{shown(part.expression)} could not be evaluated and was ignored: {part.broken}. Please report this."
            )
            yield Reason("pass-failed", text)
            return
    if not node.ruled_out:
        yield from obstacles(e, stats, columns)[:1]


def _cut_off(part: Node, conjunct: Expression, *, whole: bool) -> Reason:
    name = shown(conjunct) if whole else f"{'NOT ' * part.negated}{shown(part.expression)} in {shown(conjunct)}"
    return Reason(
        "cut-off",
        f"{name} was given up: it took {part.seconds * 1000:.1f} ms for {part.looked:,} files and ruled out "
        f"{part.ruled_out or 'none'}. If reading a file takes long here, raise spark.secateur.filter.file.ms.",
    )


def _out_of_time(tree: PruningTree, scan: Scan) -> Reason:
    return Reason(
        "out-of-time",
        f"Filtering took longer than spark.secateur.filter.budget.ms, so {tree.out_of_time:,} files of {scan.table} "
        "were not judged and are read; raise it, or simplify the condition.",
    )


def _not_selective(tree: PruningTree, scan: Scan) -> Reason:
    parts = (part for e in tree.predicate if not isinstance(e, IsNotNull) for part in walk(e))
    names = " and ".join(dict.fromkeys(part.full_name for part in parts if isinstance(part, Column)))
    return Reason(
        "not-selective",
        f"Every file of {scan.table} may hold matching rows: in each, the values of {names or 'every column'} "
        f"overlap the filter. Sort or cluster the table by {names or 'a filtered column'}, "
        "so that a file holds a narrow range of it.",
    )


def no_filter(scan: Scan) -> Reason:
    """No condition that could skip files."""
    return Reason(
        "no-filter",
        f"No condition reaches the files of {scan.table}; if not all rows are needed, add a WHERE condition on a "
        "column.",
    )


def shown(e: Expression) -> str:
    """An expression as a sentence shows it.

    >>> from secateur.plan.types import BOOLEAN
    >>> shown(Column(1, "a" * 200, BOOLEAN))[-5:]
    'aaaa…'
    """
    text = in_words(e)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
