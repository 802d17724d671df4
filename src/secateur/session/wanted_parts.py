"""What the JVM has to send of tables whose metadata is loaded in parts, before a query over them can be decided."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from secateur.passes.analysis import QueryAnalysis
from secateur.passes.filter.manifests import open_groups
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Expression
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import Filter, GroupLimit, Project, Query, Scan, Sort
from secateur.stats.formats.readers import PartialTable, Table


def wanted_parts(
    analysis: QueryAnalysis, scans: Sequence[tuple[Scan, Table]], passes: Collection[str]
) -> list[dict[str, Any]]:
    """One request a table: of the groups of files that may matter to the query, for the columns that it judges by."""
    if all(table.partial is None for _, table in scans):
        return []
    opened: dict[str, Mask] = {}
    filtered: dict[str, bool] = {}
    known: dict[str, PartialTable] = {}
    names: dict[str, set[str]] = {}
    judged = judged_columns(analysis.query)
    if analysis.query.stage == "late" and not {"join_ranges", "join_keys"}.isdisjoint(passes):
        judged |= analysis.links.columns
    for scan, table in scans:
        partial, asked = table.partial, {c.name for c in scan.columns if c.id in judged}
        if partial is None or not partial.lacks(asked):
            continue
        groups = table.files.groups
        mask = np.ones(0 if groups is None else groups.stats.count, np.bool_)
        if groups is None:
            pass
        elif scan.decided:
            mask = np.bincount(groups.of[scan.kept(len(groups.of))], minlength=len(mask)) > 0
        elif "manifests" in passes:
            mask = open_groups(analysis, scan, groups)
        known[scan.listing] = partial
        opened[scan.listing] = opened.get(scan.listing, np.zeros_like(mask)) | mask
        has_filter = scan.decided or bool(analysis.predicate(scan))
        filtered[scan.listing] = filtered.get(scan.listing, False) or has_filter
        names.setdefault(scan.listing, set()).update(asked)
    wanted = (table.wanted(opened[fp], names[fp], filtered=filtered[fp]) for fp, table in known.items())
    return [part for part in wanted if part is not None]


def judged_columns(query: Query) -> set[int]:
    """The columns that conditions and sort orders refer to, also by way of a computed column."""
    found: list[Expression] = []
    for node in query.nodes:
        match node:
            case Filter():
                found.append(node.condition)
            case Sort():
                found.extend(key.expression for key in node.keys)
            case GroupLimit():
                found.extend((*node.partition, *(key.expression for key in node.keys)))
            case Project():
                found.extend(e for e in node.outputs if not isinstance(e, Column))
            case _:
                pass
    return {part.id for e in found for part in parts_of(e) if isinstance(part, Column)}
