"""Which scan may tell which other one what it holds: along joins, and past all that lies between them and the scans.

A *link* says: the query's result depends on the receiving scan only through rows whose expression takes a value that
the sending scans' expressions take, too. ::

    Inner Join (k#1 = p#9)                     part.partkey#7 → lineitem.l_partkey#1, and back
      Aggregate [l_partkey#1 AS k] sum(…)
        Scan lineitem [l_partkey#1, …]
      Project partkey#7 AS p#9
        Scan part [partkey#7, …]

For ``x = y`` in the condition of a join, with x of the left side and y of the right:

* *origins* of x: expressions over scans that take every value which x takes in the rows of the left side. More values
  do no harm, so going down is easy: only a computed column that nobody can follow ends it. A row that an outer join has
  filled with NULLs holds no value of a file, so there the expression has to be NULL if its columns are.
* *targets* of y: expressions over scans that may be restricted if all that matters of the right side is its rows with
  certain values of y. Rule S10 and section 3.3
  of the paper say where such a restriction passes, :mod:`secateur.plan.propagation` has the table. At a join it also
  passes from there to the other side by an equality.

Rows of one side of a join matter only by what they are joined with where the join makes them *partnered*
(:mod:`secateur.plan.join_kinds`): then the other side decides which of them come out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from secateur.evaluate.evaluator import comparable
from secateur.plan.expressions import Column, Compare, Expression, conjuncts
from secateur.plan.expressions import walk as parts_of
from secateur.plan.join_kinds import join_kind
from secateur.plan.nodes import PRUNING_COPY, Join, Opaque, Plan, Scan, walk
from secateur.plan.propagation import Input, Obstacle, Propagation
from secateur.plan.substitution import is_strict

Equality: TypeAlias = tuple[Expression, Expression, bool]
"""Something of the left side that equals something of the right, and whether NULL equals NULL."""
_MOST = 6
"""How many origins one expression is followed to, and how many targets."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An expression over the columns of one scan."""

    scan: int
    expression: Expression
    filled: bool = False
    """An outer join may have put NULL in its place."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.scan, self.expression, self.filled)))

    def __hash__(self) -> int:
        """Once for all: an expression may be deep, and what is known of endpoints is looked up again and again."""
        return self._hash


@dataclass(frozen=True, slots=True)
class Link:
    """The target matters only where it takes a value that one of the origins takes."""

    origins: tuple[Endpoint, ...]
    target: Endpoint
    null_safe: bool = False
    """NULL meets NULL, as in ``<=>``."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: the targets matter only where they take a value that the key takes in the plan's rows."""

    join: Join
    plan: Plan
    key: Expression
    left: bool
    targets: tuple[Endpoint, ...]
    null_safe: bool = False


@dataclass(slots=True)
class Links:
    """All links of a query, and for scans of one side of a join to which none leads, what was in the way.

    >>> from secateur.plan.columns import ScanColumn
    >>> from secateur.plan.types import parse_type
    >>> int_ = parse_type("int")
    >>> part, item = (Scan(i, name, "parquet", "", (ScanColumn(i, "key", int_),)) for i, name in ((1, "p"), (2, "l")))
    >>> on = Compare("=", Column(1, "key", int_), Column(2, "key", int_))
    >>> for link in Links().of(Join("LeftOuter", on, part, item)).found:
    ...     print(*(origin.expression for origin in link.origins), "→", link.target.expression)
    key#1 → key#2
    """

    propagation: Propagation = field(default_factory=Propagation)
    found: list[Link] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)
    """The sides of joins that have something to tell, from the top down."""
    blocked: dict[int, str] = field(default_factory=dict)
    _equal: dict[int, tuple[Join, list[Equality]]] = field(default_factory=dict)

    def of(self, plan: Plan) -> Links:
        """Adds those of a plan and of the subqueries in it, each a plan of its own."""
        for node in _walk(plan):
            if isinstance(node, Join):
                self._join(node)
        return self

    @property
    def columns(self) -> set[int]:
        """The columns of scans that links are about."""
        ends = (end for link in self.found for end in (*link.origins, link.target))
        return {part.id for end in ends for part in parts_of(end.expression) if isinstance(part, Column)}

    def _join(self, join: Join) -> None:
        for side in self._sides(join):
            if not side.targets:
                continue
            self.sides.append(side)
            origins = self._origins(side.plan, side.key)[:_MOST]
            self.found += [Link(each, target, side.null_safe) for each in origins for target in side.targets]
            for target in side.targets if not origins else ():
                self.blocked.setdefault(
                    target.scan, "the join condition is not made of the columns of one table on each side"
                )

    def _sides(self, join: Join) -> Iterator[Side]:
        """For each equality of a join the sides that tell the other one."""
        kind = join_kind(join.kind)
        for left, right, null_safe in self._equalities(join):
            for tells, own, other in (
                (kind.right.partnered, (join.left, left), (join.right, right)),
                (kind.left.partnered, (join.right, right), (join.left, left)),
            ):
                if tells:
                    targets = tuple(self._targets(*other, null_safe=null_safe)[:_MOST])
                    yield Side(join, *own, own[0] is join.left, targets, null_safe)
                else:
                    self._block(other[0], f"the {kind.words} join gives its rows without a partner, too")

    def _equalities(self, join: Join) -> list[Equality]:
        """Each equality of something of the left side with something of the right."""
        known = self._equal.get(id(join))
        if known is None:
            # With the join itself, so that no other gets its id.
            known = self._equal[id(join)] = (join, list(self._found_equalities(join)))
        return known[1]

    def _found_equalities(self, join: Join) -> Iterator[Equality]:
        if join.condition is None or self.propagation.columns(join.left) & self.propagation.columns(join.right):
            return
        for conjunct in conjuncts(join.condition):
            match conjunct:
                case Compare("=" | "<=>" as op, one, other) if comparable(one.type, other.type):
                    for left, right in ((one, other), (other, one)):
                        if self.propagation.is_of(left, join.left) and self.propagation.is_of(right, join.right):
                            yield left, right, op == "<=>"
                            break
                case _:
                    pass

    def _origins(self, plan: Plan, e: Expression, *, filled: bool = False) -> list[tuple[Endpoint, ...]]:
        """Sets of endpoints, each of which together take every value of the expression in the plan's rows."""
        if isinstance(plan, Scan):
            return [(Endpoint(plan.id, e, filled),)]
        inputs = self.propagation.values(plan, e)
        if any(one.nulls for one in inputs) and isinstance(plan, Join) and not is_strict(e):
            return []
        each = [self._origins(one.plan, one.expression, filled=filled or one.nulls) for one in inputs]
        if len(each) > 1:  # the endpoints of all inputs together; nothing if those of one are not known
            return [tuple(endpoint for first, *_ in each for endpoint in first)] if all(each) else []
        found = [endpoints for sets in each for endpoints in sets]
        if isinstance(plan, Join) and inputs and join_kind(plan.kind).needs_partners:
            # What the other side holds bounds it as well, where only rows with a partner come out.
            for other, same in self._equal_to(plan, inputs[0], e):
                found += self._origins(other, same, filled=filled)
        return found[:_MOST]

    def _targets(self, plan: Plan, e: Expression, *, null_safe: bool) -> list[Endpoint]:
        """What may be restricted if of the plan's rows only those matter that have certain values of the expression."""
        if isinstance(plan, Scan):
            return [Endpoint(plan.id, e)]
        inputs = self.propagation.restriction(plan, e, null_safe=null_safe)
        if isinstance(inputs, Obstacle):
            return self._block(inputs.plan, inputs.why)
        found = [end for one in inputs for end in self._targets(one.plan, one.expression, null_safe=null_safe)]
        if isinstance(plan, Join):
            for other, same in self._equal_to(plan, inputs[0], e):
                found += self._targets(other, same, null_safe=null_safe)
        return found

    def _equal_to(self, join: Join, side: Input, e: Expression) -> Iterator[tuple[Plan, Expression]]:
        """What of the other side of a join equals an expression of one side, wherever the two meet."""
        for left, right, _ in self._equalities(join):
            if left == e and side.plan is join.left:
                yield join.right, right
            elif right == e and side.plan is join.right:
                yield join.left, left

    def _block(self, plan: Plan, why: str) -> list[Endpoint]:
        for node in _walk(plan):
            if isinstance(node, Scan):
                self.blocked.setdefault(node.id, why)
        return []


def pruning_copies(plan: Plan) -> Iterator[Scan]:
    """The scans in Spark's own copies of one side of a join."""
    for node in walk(plan):
        if isinstance(node, Opaque) and node.what == PRUNING_COPY:
            yield from (scan for scan in walk(node) if isinstance(scan, Scan))


def _walk(plan: Plan) -> Iterator[Plan]:
    """All nodes but those of the copies that Spark prunes by."""
    left = [plan]
    while left:
        node = left.pop()
        if not (isinstance(node, Opaque) and node.what == PRUNING_COPY):
            yield node
            left.extend(reversed(node.children))
