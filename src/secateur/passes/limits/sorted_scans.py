"""Scans below ORDER BY and LIMIT of which some files give some of the rows that all files give.

The rows that a Sort gets of a scan pass only what treats each of them alone: filters, projections, and joins that keep
or repeat it (Snowflake's figure 7)::

    Limit 10
      Sort ts DESC
        Inner Join                    from the side of the sort key; of outer joins from the side that is preserved
          Filter                      if it is deterministic and holds no subquery but Spark's own, for dynamic pruning
            Scan t [ts, ...]

A GROUP BY is passed if the sort key is one of its keys: the groups of some files are some of all groups, though what is
computed over them is not the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from secateur.evaluate.expression_ranges import Columns
from secateur.passes.filter.predicates import Predicate
from secateur.plan.expressions import Column, Expression, Opaque, conjuncts, is_pruning
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import (
    PRUNING_COPY,
    Aggregate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Scan,
    Sort,
    SortKey,
    Transparent,
    Union,
    walk,
)
from secateur.plan.nodes import Opaque as OpaquePlan
from secateur.plan.propagation import Passage, Propagation
from secateur.plan.substitution import grouped_by
from secateur.plan.types import BOOLEAN

NOWHERE = Scan(-1, "", "", "", ())


@dataclass(frozen=True, slots=True)
class SortedScan:
    """A scan below ORDER BY and LIMIT, where what lies in between gives no other rows if some files are left out."""

    count: int
    sort: int
    key: SortKey
    scan: Scan = NOWHERE
    predicate: Predicate = ()
    """What lies between the two, as far as it tells how many rows arrive."""
    again: tuple[Scan, ...] = ()
    """What else the probe has to read: the other sides of joins."""
    joined: bool = False

    @property
    def columns(self) -> Columns:
        return {column.id: column for column in self.scan.columns}


@dataclass(frozen=True, slots=True)
class Blocked:
    """A scan below ORDER BY and LIMIT of which no probe can be made, for what lies in between."""

    count: int
    scan: Scan
    what: str


def sorted_scans(plan: Plan, propagation: Propagation) -> Iterator[SortedScan | Blocked]:
    """The scans below ORDER BY and LIMIT."""
    for node in walk(plan):
        if not isinstance(node, Limit):
            continue
        sort = node.child
        while isinstance(sort, Project):  # a Filter here would drop rows that were counted
            sort = sort.child
        if not isinstance(sort, Sort):
            continue
        found = below_sort(sort.child, SortedScan(node.count, sort.ref, sort.keys[0]), propagation)
        if isinstance(found, SortedScan):
            yield found
        else:
            yield from (Blocked(node.count, scan, found) for scan in walk(sort.child) if isinstance(scan, Scan))


_UNSURE = Opaque("rows", "how many rows arrive is not known", BOOLEAN)


def below_sort(plan: Plan, above: SortedScan, propagation: Propagation) -> SortedScan | str:
    """The scan whose columns the sort key is made of, if fewer files of it give some of the same rows, or the obstacle.

    Nothing may lie in between that could give another result when it runs again, such as rand() or a subquery. Of an
    Aggregate only the keys arrive, and those of fewer files are some of all: as long as no condition, and no join,
    above it asks for what it computed.
    """
    match plan:
        case Scan():
            parts = {part.id for part in parts_of(above.key.expression) if isinstance(part, Column)}
            if parts and parts <= {column.id for column in plan.columns}:
                return replace(above, scan=plan)
            return "a sort key that is not made of its columns"
        case Filter() if all(map(_runs_again, (plan, *(node for inner in plan.subqueries for node in walk(inner))))):
            above = replace(above, predicate=(*above.predicate, *conjuncts(plan.condition)))
            return below_sort(plan.child, above, propagation)
        case Aggregate() if not plan.subqueries and not above.predicate and not above.joined:
            made = grouped_by(plan, above.key.expression)
            if made is not None:
                key = replace(above.key, expression=made)
                return below_sort(plan.child, replace(above, key=key, predicate=(_UNSURE,)), propagation)
            return "a GROUP BY that does not have the sort key among its keys"
        case Join() if repeats(plan):
            return _side(plan, above, propagation)
        case Project() | Transparent() if not plan.subqueries:
            for way in propagation.passages(plan):
                inside = _through(way, above) if way.subset else None
                if inside is not None:
                    return below_sort(way.child, inside, propagation)
    return f"{_name(plan)}, through which no boundary is taken"


def _through(way: Passage, above: SortedScan) -> SortedScan | None:
    """The same over the columns of the input, None if that cannot be said."""
    key, predicate = way.below(above.key.expression), list(map(way.below, above.predicate))
    if key is None or None in predicate:
        return None
    sure = tuple(e for e in predicate if e is not None)
    return replace(above, key=replace(above.key, expression=key), predicate=sure)


def _side(join: Join, above: SortedScan, propagation: Propagation) -> SortedScan | str:
    """The side of a join that the sort key comes from, where each of its rows gives rows of its own."""
    obstacle = f"a {join.kind} join"
    for way, other in zip(propagation.passages(join), (join.right, join.left), strict=True):
        if not way.subset or not all(map(_runs_again, walk(other))):
            continue
        again = [node for node in walk(other) if isinstance(node, Scan)]
        inside = replace(above, again=(*above.again, *again), joined=True)
        if not way.arrives:
            inside = replace(inside, predicate=(*inside.predicate, _UNSURE))
        found = below_sort(way.child, inside, propagation)
        if isinstance(found, SortedScan):
            return found
        obstacle = found
    return obstacle


def repeats(plan: Plan) -> bool:
    """Whether it gives the same rows if it runs again over the same."""
    match plan:
        case Scan():
            return not plan.declined
        case Filter():
            expressions: tuple[Expression, ...] = (plan.condition,)
        case Project() if plan.deterministic:
            expressions = ()
        case Join():
            expressions = () if plan.condition is None else (plan.condition,)
        case Union() | OpaquePlan("LocalRelation" | "Range"):
            return True
        case _:
            return False
    return not plan.subqueries and not any(isinstance(part, Opaque) for e in expressions for part in parts_of(e))


def _runs_again(plan: Plan) -> bool:
    """The same where Spark may prune one side of a join by a copy of the other: that copy is to be asked about, too.

    It takes away rows without a partner, in a probe as in the query, which the join above would not let through.
    """
    match plan:
        case OpaquePlan(what) if what == PRUNING_COPY:
            return True
        case Filter():
            rest = (c for c in conjuncts(plan.condition) if not is_pruning(c))
            copies = all(isinstance(inner, OpaquePlan) and inner.what == PRUNING_COPY for inner in plan.subqueries)
            return copies and not any(isinstance(part, Opaque) for e in rest for part in parts_of(e))
    return repeats(plan)


def _name(plan: Plan) -> str:
    match plan:
        case OpaquePlan():
            return f"a node {plan.what}"
        case Filter() | Project() | Join() | Aggregate():
            return f"a {type(plan).__name__} above which, or in which, something may give other rows if it runs again"
    return f"a {type(plan).__name__}"
