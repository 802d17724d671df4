"""The predicates that every row of a scan must satisfy to reach the rest of the query.

Those of the Filters above the scan, as long as only Filters and deterministic Projects lie in between; a Project's
computed columns are replaced by what computes them::

    Filter (b#9 > 5)                             the scan must satisfy
      Project a#1 AS b#9                  ->         (a#1 > 5)
        Filter a#1 IS NOT NULL                       a#1 IS NOT NULL
          Scan t [a#1 int]

Nothing passes any other node (rules S9 and S10): a LIMIT below a Filter sees rows that the Filter drops, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from secateur.plan.expressions import Expression, conjuncts
from secateur.plan.nodes import Filter, Plan, Project, Query, Scan
from secateur.plan.substitution import is_small, through

Predicate = tuple[Expression, ...]


def scan_predicate(query: Query, scan: Scan) -> Predicate:
    """The conjuncts that every row which the query needs of the scan makes TRUE; empty if there are none.

    >>> from secateur.plan.expressions import And, Column, IsNotNull, Not
    >>> from secateur.plan.types import parse_type
    >>> a = Column(1, "a", parse_type("int"))
    >>> scan = Scan(0, "t", "parquet", "", ())
    >>> [str(c) for c in scan_predicate(Query(1, "early", Filter(And(IsNotNull(a), Not(a)), scan)), scan)]
    ['a#1 IS NOT NULL', 'NOT a#1']
    """
    return scan_predicates(query).get(scan.id, ())


@lru_cache(maxsize=4)
def scan_predicates(query: Query) -> Mapping[int, Predicate]:
    """The same for all scans of the query, by scan id."""
    found: dict[int, Predicate] = {}
    for id_, predicate in _collect(query.plan, ()):
        # A scan that occurs twice is read once for both, so only what both ask for holds.
        found[id_] = predicate if id_ not in found else tuple(c for c in found[id_] if c in predicate)
    return found


@lru_cache(maxsize=4)
def order_sensitive_scans(query: Query) -> frozenset[int]:
    """The scans below a random node: no pass may narrow them, for fewer files would change its result (rule S9)."""
    return frozenset(_below_random(query.plan, order_sensitive=False))


def _below_random(plan: Plan, *, order_sensitive: bool) -> Iterator[int]:
    match plan:
        case Scan():
            if order_sensitive:
                yield plan.id
        case _:
            # Subqueries included: Spark turns IN and EXISTS into joins, so what they read decides how the rows arrive.
            for child in plan.children:
                yield from _below_random(child, order_sensitive=order_sensitive or plan.order_sensitive)


def _collect(plan: Plan, above: Predicate) -> Iterator[tuple[int, Predicate]]:
    match plan:
        case Scan():
            yield plan.id, above
        case Filter():
            yield from _collect(plan.child, above + tuple(conjuncts(plan.condition)))
            yield from _independent(plan.subqueries)
        case Project():
            yield from _collect(plan.child, _below(plan, above) if plan.deterministic else ())
            yield from _independent(plan.subqueries)
        case _:
            yield from _independent(plan.children)


def _independent(plans: tuple[Plan, ...]) -> Iterator[tuple[int, Predicate]]:
    for plan in plans:
        yield from _collect(plan, ())


def _below(project: Project, above: Predicate) -> Predicate:
    """What conjuncts over a projection's outputs say about its input."""
    substituted = map(through(project), above)
    # An AND that was computed below a Project comes apart only now.
    return tuple(part for whole in substituted if is_small(whole) for part in conjuncts(whole))
