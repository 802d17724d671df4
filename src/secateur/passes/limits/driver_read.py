"""When the driver may read the rows of a LIMIT itself.

A Spark job takes tens of milliseconds before it reads its first row, and more where executors have to be started
first. If a query ends with a LIMIT, and one small file is left to read, the driver is done before that::

    GlobalLimit                one file of 3 kB is left of t, its 100 rows are enough:
      Limit 100                the driver reads it, no job is started
        Project a#1, (b#2 + 1)
          Filter (a#1 > 5)
            Scan t

What lies in between is evaluated there as well, so it has to be Spark's own: no user's code runs in the driver that
would not have run there anyway.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from secateur.decision.parts import ReadOnDriver
from secateur.passes.contract import PassInput
from secateur.passes.limits.limit_scope import LimitScope
from secateur.plan.columns import Mask
from secateur.plan.expressions import NOT_EVALUABLE, Call, Expression, Opaque, walk
from secateur.plan.nodes import Filter, Limit, Plan, Project, Scan
from secateur.plan.nodes import Opaque as OpaquePlan
from secateur.stats.file_stats import sum_of


def driver_read(scope: LimitScope, files: Mask, known: PassInput) -> ReadOnDriver | None:
    """The driver's read, if the query is a LIMIT over nothing but conditions and columns, and these files are small."""
    size = sum_of(known.stats[scope.scan.id].sizes, files)
    if size is None or size > known.tuning.driver_bytes or not _is_limit_only(known.query.plan, scope.scan):
        return None
    return ReadOnDriver(int(np.count_nonzero(files)), size)


def _is_limit_only(whole: Plan, scan: Scan) -> bool:
    plan = whole
    while isinstance(plan, OpaquePlan) and plan.what in ("GlobalLimit", "Offset"):
        plan = plan.children[0]
    if not isinstance(plan, Limit) or plan is whole:
        return False
    plan = plan.child
    while isinstance(plan, Filter | Project):
        computed = (plan.condition,) if isinstance(plan, Filter) else plan.outputs
        if plan.subqueries or not _is_sparks_own(computed):
            return False
        plan = plan.child
    return plan == scan


def _is_sparks_own(computed: Iterable[Expression]) -> bool:
    return not any(_is_foreign(part) for e in computed for part in walk(e))


def _is_foreign(e: Expression) -> bool:
    match e:
        case Call("GetStructField"):
            return False
        case Call():
            return e.ref == NOT_EVALUABLE
        case _:
            return isinstance(e, Opaque)
