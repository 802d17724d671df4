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

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from secateur.plan.expressions import (
    NOT_EVALUABLE,
    Alias,
    And,
    Call,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    StartsWith,
    conjuncts,
    walk,
)
from secateur.plan.expressions import Opaque as OpaqueExpression
from secateur.plan.nodes import Filter, Plan, Project, Query, Scan

LARGEST = 20_000
"""Conjuncts with more parts than this are left out: each Project on the way could double them."""

Predicate = tuple[Expression, ...]


def scan_predicate(query: Query, scan: Scan) -> Predicate:
    """The conjuncts that every row which the query needs of the scan makes TRUE; empty if there are none.

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


def through(project: Project) -> Callable[[Expression], Expression]:
    """What makes an expression over a projection's outputs one over its input."""
    computed = computed_by(project.outputs)
    return lambda e: substituted(e, computed)


def computed_by(outputs: Sequence[Expression]) -> dict[int, Expression]:
    """What computes each column that a node puts out, by its id."""
    computed: dict[int, Expression] = {}
    for output in outputs:
        match output:
            case Alias(id_, _, child):
                computed[id_] = child
            case Column(id_):
                computed[id_] = output
    return computed


def is_small(e: Expression) -> bool:
    """Whether it has at most :data:`LARGEST` parts."""
    return isinstance(e, Column) or next(islice(walk(e), LARGEST, None), None) is None


def substituted(e: Expression, outputs: Mapping[int, Expression]) -> Expression:
    """The expression with columns replaced by what they stand for; one that stands for nothing becomes opaque."""
    match e:
        case Column(id_):
            return _reached(e, outputs.get(id_))
        case Literal():
            return e
        case And() | Or():
            return replace(e, left=substituted(e.left, outputs), right=substituted(e.right, outputs))
        case Compare():
            left, right = substituted(e.left, outputs), substituted(e.right, outputs)
            return replace(e, left=left, right=right, ref=_ref(e.ref, (e.left, e.right), (left, right)))
        case Not() | Alias():
            return replace(e, child=substituted(e.child, outputs))
        case In() | IsNull() | IsNotNull() | StartsWith() | Like():
            child = substituted(e.child, outputs)
            return replace(e, child=child, ref=_ref(e.ref, (e.child,), (child,)))
        case Call():
            args = tuple(substituted(arg, outputs) for arg in e.args)
            return replace(e, args=args, ref=_ref(e.ref, e.args, args))
        case OpaqueExpression():
            return replace(e, children=tuple(substituted(child, outputs) for child in e.children))


def _reached(column: Column, output: Expression | None) -> Expression:
    """What a column of a projection's output is below it; a field of a computed struct is not followed."""
    match output:
        case None:
            return OpaqueExpression(column.name, "not an output of the projection below", column.type)
        case Column() as source if column.path:
            path, positions = (*source.path, *column.path), (*source.positions, *column.positions)
            return replace(source, type=column.type, path=path, positions=positions)
        case _ if column.path:
            return OpaqueExpression(column.full_name, "a field of a struct that is computed", column.type)
    return output


def _ref(ref: int, before: tuple[Expression, ...], after: tuple[Expression, ...]) -> int:
    """The JVM knows an expression by its number as it was written, not with other arguments."""
    return ref if before == after else NOT_EVALUABLE
