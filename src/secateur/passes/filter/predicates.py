"""The predicates that every row of a scan must satisfy to reach the rest of the query.

Those of the Filters above the scan, as long as only nodes that let conditions pass lie in between (see
:mod:`secateur.plan.propagation`): Filters, and deterministic Projects, whose computed columns are replaced by what
computes them::

    Filter (b#9 > 5)                             the scan must satisfy
      Project a#1 AS b#9                  ->         (a#1 > 5)
        Filter a#1 IS NOT NULL                       a#1 IS NOT NULL
          Scan t [a#1 int]

Nothing passes any other node (rules S9 and S10): a LIMIT below a Filter sees rows that the Filter drops, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from secateur.plan.expressions import Expression, conjuncts
from secateur.plan.nodes import Filter, Plan, Query, Scan
from secateur.plan.propagation import Passage, Propagation

Predicate: TypeAlias = tuple[Expression, ...]


def scan_predicates(query: Query, propagation: Propagation) -> Mapping[int, Predicate]:
    """The conjuncts that every row which the query needs of a scan makes TRUE, by scan id."""
    found: dict[int, Predicate] = {}
    for id_, predicate in _collect(query.plan, (), propagation):
        # A scan that occurs twice is read once for both, so only what both ask for holds.
        found[id_] = predicate if id_ not in found else tuple(c for c in found[id_] if c in predicate)
    return found


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


def _collect(plan: Plan, above: Predicate, propagation: Propagation) -> Iterator[tuple[int, Predicate]]:
    if isinstance(plan, Scan):
        yield plan.id, above
        return
    if isinstance(plan, Filter):
        above += tuple(conjuncts(plan.condition))
    ways = [way for way in propagation.passages(plan) if way.conditions]
    for way in ways:
        yield from _collect(way.child, _below(way, above), propagation)
    for child in plan.children[len(ways) :]:  # subqueries come last
        yield from _collect(child, (), propagation)


def _below(way: Passage, above: Predicate) -> Predicate:
    """What conjuncts over a node's columns say about its input."""
    below = map(way.below, above)
    # An AND that was computed below a Project comes apart only now.
    return tuple(part for whole in below if whole is not None for part in conjuncts(whole))
