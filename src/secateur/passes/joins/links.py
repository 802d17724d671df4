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
  certain values of y. Rule S10 and section 3.3 of the paper say where such a restriction passes:

  =====================  ===========================================================================================
  node                   the restriction of a column passes
  =====================  ===========================================================================================
  Filter, Sort           always
  Project                with what computes the column, if all of it is deterministic
  Aggregate              if the column is made of grouping columns; never without grouping columns, since one row
                         comes out even if none goes in
  Window                 if the column is made of columns that every window is partitioned by
  Union                  to every input, by position
  Expand                 if all projections compute it alike, those aside that make it NULL
  Generate               if it is not what is generated
  Join, inner or cross   to the side that has the column, and by an equality to the other side
  Join, outer            to the side that is preserved, and from there by an equality to the other side
  Join, semi, anti, …    to the left side, and from there by an equality to the right
  Limit and all else     never
  =====================  ===========================================================================================

Rows of one side of a join matter only by what they are joined with where the other side decides which rows come out:

  =====================================  ==================  =======================
  join                                   left tells right    right tells left
  =====================================  ==================  =======================
  inner, cross, left semi                yes                 yes
  left outer, left anti, existence       yes                 no
  right outer                            no                  yes
  full outer                             no                  no
  =====================================  ==================  =======================

In a left outer join a row of the right side that has no partner does not come out, and whether a row of the left side
has one does not depend on it. NOT IN is an anti join whose condition is no equality but ``a = b OR (a = b) IS NULL``,
so nothing moves along it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from secateur.evaluate.evaluator import comparable
from secateur.plan.expressions import Alias, Column, Compare, Expression, conjuncts
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import (
    PRUNING_COPY,
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    Opaque,
    Plan,
    Project,
    Query,
    Scan,
    Sort,
    Transparent,
    Union,
    Window,
    walk,
)
from secateur.plan.substitution import (
    below_grouping,
    in_input,
    in_projection,
    is_made_of,
    is_null,
    is_small,
    is_strict,
    through,
)

_TO_RIGHT = frozenset({"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin", "LeftSingle"})
_TO_LEFT = frozenset({"Inner", "Cross", "LeftSemi", "RightOuter"})
_INTO_LEFT = frozenset({"Inner", "Cross", "LeftSemi", "LeftOuter", "LeftAnti", "ExistenceJoin", "LeftSingle"})
_INTO_RIGHT = frozenset({"Inner", "Cross", "RightOuter"})
_FILLS_LEFT = frozenset({"RightOuter", "FullOuter"})
_FILLS_RIGHT = frozenset({"LeftOuter", "FullOuter", "LeftSingle"})
_LEFT_ONLY = frozenset({"LeftSemi", "LeftAnti", "ExistenceJoin"})
_SUBSETS = ("GlobalLimit", "Offset", "Tail", "Sample")
"""Nodes that are not modelled otherwise, but let some rows through as they are."""
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
    """All links of a query, and for scans of one side of a join to which none leads, what was in the way."""

    found: list[Link] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)
    """The sides of joins that have something to tell, from the top down."""
    blocked: dict[int, str] = field(default_factory=dict)
    _columns: dict[int, tuple[Plan, frozenset[int]]] = field(default_factory=dict)
    _equal: dict[int, tuple[Join, list[Equality]]] = field(default_factory=dict)

    def of(self, plan: Plan) -> Links:
        """Adds those of a plan and of the subqueries in it, each a plan of its own."""
        for node in _walk(plan):
            if isinstance(node, Join):
                self._join(node)
        return self

    def _join(self, join: Join) -> None:
        for side in self._sides(join):
            if not side.targets:
                continue
            self.sides.append(side)
            origins = self._origins(side.plan, side.key)[:_MOST]
            self.found += [Link(each, target, side.null_safe) for each in origins for target in side.targets]
            for target in side.targets if not origins else ():
                self.blocked.setdefault(target.scan, "it is joined by something that no table holds as it is")

    def _sides(self, join: Join) -> Iterator[Side]:
        """For each equality of a join the sides that tell the other one."""
        for left, right, null_safe in self._equalities(join):
            for tells, own, other in (
                (_TO_RIGHT, (join.left, left), (join.right, right)),
                (_TO_LEFT, (join.right, right), (join.left, left)),
            ):
                if join.kind in tells:
                    targets = tuple(self._targets(*other, null_safe=null_safe)[:_MOST])
                    yield Side(join, *own, own[0] is join.left, targets, null_safe)
                else:
                    self._block(other[0], f"the {_words(join.kind)} join gives its rows without a partner, too")

    def _equalities(self, join: Join) -> list[Equality]:
        """Each equality of something of the left side with something of the right."""
        known = self._equal.get(id(join))
        if known is None:
            # With the join itself, so that no other gets its id.
            known = self._equal[id(join)] = (join, list(self._found_equalities(join)))
        return known[1]

    def _found_equalities(self, join: Join) -> Iterator[Equality]:
        if join.condition is None or self.columns(join.left) & self.columns(join.right):
            return
        for conjunct in conjuncts(join.condition):
            match conjunct:
                case Compare("=" | "<=>" as op, one, other) if comparable(one.type, other.type):
                    for left, right in ((one, other), (other, one)):
                        if self._is_of(left, join.left) and self._is_of(right, join.right):
                            yield left, right, op == "<=>"
                            break
                case _:
                    pass

    def _is_of(self, e: Expression, plan: Plan) -> bool:
        if isinstance(e, Column):
            return e.id in self.columns(plan)
        ids = {part.id for part in parts_of(e) if isinstance(part, Column)}
        return bool(ids) and ids <= self.columns(plan)

    def columns(self, plan: Plan) -> frozenset[int]:
        """The ids of the columns that a plan puts out, as far as they are known."""
        known = self._columns.get(id(plan))
        if known is None:
            # With the plan itself, so that no other gets its id.
            known = self._columns[id(plan)] = (plan, self._put_out(plan))
        return known[1]

    def _put_out(self, plan: Plan) -> frozenset[int]:
        match plan:
            case Scan():
                return frozenset(column.id for column in plan.columns)
            case Project() | Aggregate():
                return frozenset(e.id for e in plan.outputs if isinstance(e, Alias | Column))
            case Union() | Expand():
                return frozenset(plan.outputs)
            case Window():
                return self.columns(plan.child) | set(plan.computed)
            case Generate():
                return self.columns(plan.child) | set(plan.generated)
            case Join():
                exists = frozenset() if plan.exists is None else frozenset({plan.exists})
                right = frozenset() if plan.kind in _LEFT_ONLY else self.columns(plan.right)
                return self.columns(plan.left) | right | exists
            case Filter() | Sort() | Limit() | Transparent():
                return self.columns(plan.child)
            case Opaque(what) if what in _SUBSETS:
                return self.columns(plan.children[0])
        return frozenset()

    def _origins(self, plan: Plan, e: Expression, *, filled: bool = False) -> list[tuple[Endpoint, ...]]:
        """Sets of endpoints, each of which together take every value of the expression in the plan's rows."""
        match plan:
            case Scan():
                return [(Endpoint(plan.id, e, filled),)]
            case Filter() | Sort() | Limit() | Transparent():
                return self._origins(plan.child, e, filled=filled)
            case Opaque(what) if what in _SUBSETS:
                return self._origins(plan.children[0], e, filled=filled)
            case Project():
                below = through(plan)(e)
                return self._origins(plan.child, below, filled=filled) if is_small(below) else []
            case Aggregate() if plan.grouping:
                key = below_grouping(plan, e)
                return self._origins(plan.child, key, filled=filled) if key is not None else []
            case Window() if self._is_of(e, plan.child):
                return self._origins(plan.child, e, filled=filled)
            case Generate() if self._is_of(e, plan.child):
                return self._origins(plan.child, e, filled=filled)
            case Union():
                return self._of_all([(c, in_input(plan, i, e)) for i, c in enumerate(plan.children)], filled=filled)
            case Expand():
                rows = [in_projection(plan, row, e) for row in plan.projections]
                real = list(dict.fromkeys(row for row in rows if not is_null(row)))
                nulls = filled or len(real) < len(rows)
                return self._of_all([(plan.child, row) for row in real], filled=nulls) if real else []
            case Join():
                return self._origins_in_join(plan, e, filled=filled)
        return []

    def _of_all(self, inputs: list[tuple[Plan, Expression]], *, filled: bool) -> list[tuple[Endpoint, ...]]:
        """The endpoints of all inputs together; nothing if those of one are not known."""
        each = [self._origins(plan, e, filled=filled) for plan, e in inputs]
        return [tuple(endpoint for first, *_ in each for endpoint in first)] if all(each) else []

    def _origins_in_join(self, join: Join, e: Expression, *, filled: bool) -> list[tuple[Endpoint, ...]]:
        for side, other, fills in ((join.left, join.right, _FILLS_LEFT), (join.right, join.left, _FILLS_RIGHT)):
            if not self._is_of(e, side):
                continue
            if join.kind in fills and not is_strict(e):
                return []
            found = self._origins(side, e, filled=filled or join.kind in fills)
            # What the other side holds bounds it as well, where only rows with a partner come out.
            if join.kind in ("Inner", "Cross", "LeftSemi"):
                for left, right, _ in self._equalities(join):
                    if left == e and side is join.left:
                        found = found + self._origins(other, right, filled=filled)
                    elif right == e and side is join.right:
                        found = found + self._origins(other, left, filled=filled)
            return found[:_MOST]
        return []

    def _targets(self, plan: Plan, e: Expression, *, null_safe: bool) -> list[Endpoint]:
        """What may be restricted if of the plan's rows only those matter that have certain values of the expression."""
        match plan:
            case Scan():
                return [Endpoint(plan.id, e)]
            case Filter() | Sort() | Transparent():
                return self._targets(plan.child, e, null_safe=null_safe)
            case Project() if plan.deterministic:
                below = through(plan)(e)
                return self._targets(plan.child, below, null_safe=null_safe) if is_small(below) else []
            case Aggregate() if plan.grouping:
                key = below_grouping(plan, e)
                if key is not None:
                    return self._targets(plan.child, key, null_safe=null_safe)
                return self._block(plan, "the join is by what an aggregation computes")
            case Aggregate():
                return self._block(plan, "an aggregation without GROUP BY gives a row in any case")
            case Window():
                if self._is_of(e, plan.child) and is_made_of(e, plan.partition):
                    return self._targets(plan.child, e, null_safe=null_safe)
                return self._block(plan, "a window function looks at all rows")
            case Generate() if self._is_of(e, plan.child):
                return self._targets(plan.child, e, null_safe=null_safe)
            case Union():
                inputs = [(child, in_input(plan, i, e)) for i, child in enumerate(plan.children)]
                return [found for c, x in inputs for found in self._targets(c, x, null_safe=null_safe)]
            case Expand() if not null_safe:
                rows = {in_projection(plan, row, e) for row in plan.projections}
                real = [row for row in rows if not is_null(row)]
                if len(real) == 1:
                    return self._targets(plan.child, real[0], null_safe=null_safe)
            case Join():
                return self._targets_in_join(plan, e, null_safe=null_safe)
            case Limit():
                return self._block(plan, "a LIMIT takes any rows")
            case _:
                pass
        name = plan.describe().partition(" ")[0].strip("?")
        return self._block(plan, "a LIMIT takes any rows" if name.endswith("Limit") else f"nothing moves past {name}")

    def _targets_in_join(self, join: Join, e: Expression, *, null_safe: bool) -> list[Endpoint]:
        for side, other, into in ((join.left, join.right, _INTO_LEFT), (join.right, join.left, _INTO_RIGHT)):
            if not self._is_of(e, side):
                continue
            if join.kind not in into:
                return self._block(side, f"the {_words(join.kind)} join below gives rows of its other side in any case")
            found = self._targets(side, e, null_safe=null_safe)
            for left, right, _ in self._equalities(join):
                if left == e and side is join.left:
                    found = found + self._targets(other, right, null_safe=null_safe)
                elif right == e and side is join.right:
                    found = found + self._targets(other, left, null_safe=null_safe)
            return found
        return self._block(join, "the join is by columns of several tables")

    def _block(self, plan: Plan, why: str) -> list[Endpoint]:
        for node in _walk(plan):
            if isinstance(node, Scan):
                self.blocked.setdefault(node.id, why)
        return []


@lru_cache(maxsize=4)
def links_of(query: Query) -> Links:
    """Every link of a query.

    >>> from secateur.plan.types import parse_type
    >>> from secateur.plan.columns import ScanColumn
    >>> int_ = parse_type("int")
    >>> part, item = (Scan(i, name, "parquet", "", (ScanColumn(i, "key", int_),)) for i, name in ((1, "p"), (2, "l")))
    >>> on = Compare("=", Column(1, "key", int_), Column(2, "key", int_))
    >>> for link in links_of(Query(0, "late", Join("LeftOuter", on, part, item))).found:
    ...     print(*(origin.expression for origin in link.origins), "→", link.target.expression)
    key#1 → key#2
    """
    return Links().of(query.plan)


def joining_columns(query: Query) -> set[int]:
    """The columns of scans that links are about."""
    ends = (end for link in links_of(query).found for end in (*link.origins, link.target))
    return {part.id for end in ends for part in parts_of(end.expression) if isinstance(part, Column)}


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


def _words(kind: str) -> str:
    words = {"LeftOuter": "left outer", "RightOuter": "right outer", "FullOuter": "full outer", "LeftAnti": "anti"}
    return words.get(kind, kind)
