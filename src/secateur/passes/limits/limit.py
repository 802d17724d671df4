"""LIMIT pruning: read as few files as hold the rows that a LIMIT asks for.

Before and after, for ``SELECT * FROM t WHERE x > 5 LIMIT 10`` with 40 rows in each file, x between 1 and 9 in the first
and above 5 in the others::

    Limit 10                kept: [True, True, True]    ->    kept: [False, True, False]
      Filter (x > 5)
        Scan t [x]

Only files all of whose rows match count, with row counts that are exact (rule S4): which rows of the other files match
nobody knows before reading them. If they hold too few rows, no file is skipped, but they are read first: Spark reads on
only until it has enough. If the files that are kept are small, the driver may read them itself.
"""

from __future__ import annotations

import numpy as np

from secateur.decision.parts import Keep, Part, ReadFirst
from secateur.passes.contract import PassInput, PassResult
from secateur.passes.limits.driver_read import driver_read
from secateur.passes.limits.limit_scope import LimitScope, fully_matching, limit_scopes, sure_rows
from secateur.reasons import Reason


def prune_by_limit(known: PassInput) -> PassResult:
    """Keep of every scan below a LIMIT the fewest fully matching files with enough rows, or have those read first."""
    parts: list[tuple[int, Part]] = []
    for scope in limit_scopes(known, ordered=False):
        id_ = scope.scan.id
        stats, before = known.stats[id_], known.kept[id_]
        rows = sure_rows(stats, fully_matching(scope, stats, before, known.query.settings))
        chosen = fewest(rows, scope.count)
        if chosen is None:
            parts.append((id_, _too_few(scope, int(rows.sum()))))
            if 0 < np.count_nonzero(rows) < np.count_nonzero(before):
                parts.append((id_, ReadFirst(rows > 0)))
            continue
        mask = np.zeros(len(before), dtype=np.bool_)
        mask[chosen] = True
        if len(chosen) < np.count_nonzero(before):
            parts.append((id_, Keep(mask, needs_kept_unchanged=True)))
        read = driver_read(scope, mask, known)
        if read is not None:
            parts.append((id_, read))
    return parts


def fewest(
    rows: np.ndarray[tuple[int], np.dtype[np.int64]], needed: int
) -> np.ndarray[tuple[int], np.dtype[np.intp]] | None:
    """The fewest entries whose rows add up to what is needed, None if all together do not.

    >>> fewest(np.array([5, 0, 40, 7]), 45).tolist(), fewest(np.array([5, 0]), 6) is None
    ([2, 3], True)
    """
    if int(rows.sum()) < needed:
        return None
    order = np.argsort(-rows, kind="stable")
    count = int(np.searchsorted(np.cumsum(rows[order]), needed)) + 1 if needed else 0
    return order[:count]


def _too_few(scope: LimitScope, rows: int) -> Reason:
    return Reason(
        "limit-not-covered",
        f"LIMIT {scope.count:,} needs every file of {scope.scan.table} that may match: the files whose rows all match "
        f"hold {rows:,} rows. Filter by columns that the table is sorted or clustered by.",
    )
