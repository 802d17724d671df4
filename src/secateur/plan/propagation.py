"""What passes a plan node on the way down to the scans: the one table behind every such descent.

A *passage* leads from a node to one of its inputs. It knows what an expression over the node's columns is over those of
the input, and answers what the techniques ask:

* **conditions**: a condition on the node's rows holds for all rows of the input that matter;
* **restriction**: if of the node's rows only those matter that have certain values of an expression, the same holds for
  the input (rule S10);
* **values**: the input takes every value that an expression takes in the node's rows; more values do no harm;
* **subset**: some rows of the input give some of the node's rows, and no others;
* **arrives**: every row of the input comes out, at least once, and what it holds does not depend on other rows.

============  ==========  ===============================================  =============  ======  =========
node          conditions  restriction of an expression                     values         subset  arrives
============  ==========  ===============================================  =============  ======  =========
Filter        yes         yes                                              yes            yes     no
Project       (d)         by what computes it (d)                          yes            (d)     (d)
Sort          no          yes                                              yes            no      no
Transparent   no          yes                                              yes            yes     no
Aggregate     no          if it is made of grouping columns                of groupings   no      no
Window        no          if it is made of what all windows partition by   not computed   no      no
Generate      no          if it is not what is generated                   not generated  no      no
Union         no          to every input, by position                      of all inputs  no      no
Expand        no          if all projections compute it alike (n)          of all, NULL   no      no
Join          no          to a side that is restrictable (j)               of one side    (j)     (j)
Limit and co  no          no: a LIMIT takes any rows                       yes            no      no
all others    no          no                                               no             no      no
============  ==========  ===============================================  =============  ======  =========

(d) if all of it is deterministic; (n) those aside that make it NULL, unless NULL equals NULL; (j) see
:mod:`secateur.plan.join_kinds`. Without grouping columns an Aggregate gives a row even if none goes in, so nothing
passes. A "no" where "yes" would be true is of no use to anyone so far: Spark itself moves conditions and limits below
unions and aggregates. A sort within partitions is Transparent, but a LIMIT above it takes the first rows of its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from secateur.plan.expressions import Alias, Column, Expression
from secateur.plan.expressions import walk as parts_of
from secateur.plan.join_kinds import JoinSide, join_kind
from secateur.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    Join,
    Limit,
    Opaque,
    Plan,
    Project,
    Scan,
    Sort,
    Transparent,
    Union,
    Window,
)
from secateur.plan.substitution import below_grouping, below_projection, in_input, in_projection, is_made_of, is_null

_SUBSETS = ("GlobalLimit", "Offset", "Tail", "Sample")
"""Nodes that are not modelled otherwise, but let some rows through as they are."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The way from a node to one of its inputs."""

    child: Plan
    below: Callable[[Expression], Expression | None]
    """What an expression over the node's columns is over the input's, None if it cannot be followed."""
    obstacle: str = ""
    """What stands in the way of a restriction that does not pass."""
    restricts: bool = False
    conditions: bool = False
    subset: bool = False
    arrives: bool = False
    partition: tuple[Expression, ...] | None = None
    """If given, a restriction passes only of what is made of these."""
    side: JoinSide | None = None
    """Of a join."""


@dataclass(frozen=True, slots=True)
class Input:
    """An expression over the columns of one input of a node."""

    plan: Plan
    expression: Expression
    nulls: bool = False
    """NULL may come out in its place."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing passes to the scans of a plan."""

    plan: Plan
    why: str


@dataclass(slots=True)
class Propagation:
    """The passages of a query's nodes and the columns that they put out, each worked out once."""

    _columns: dict[int, tuple[Plan, frozenset[int]]] = field(default_factory=dict)

    def values(self, plan: Plan, e: Expression) -> list[Input]:
        """Inputs whose expressions together take every value of ``e`` in the plan's rows; none if that is unknown."""
        inputs: list[Input] = []
        for way in self.passages(plan):
            below = way.below(e)
            if below is None:
                if isinstance(plan, Join):  # it is of the other side
                    continue
                return []
            if way.side is not None:
                return [Input(way.child, below, way.side.filled)]
            inputs.append(Input(way.child, below))
        if not isinstance(plan, Expand):
            return inputs
        real = dict.fromkeys(one.expression for one in inputs if not is_null(one.expression))
        return [Input(plan.child, one, any(is_null(other.expression) for other in inputs)) for one in real]

    def restriction(self, plan: Plan, e: Expression, *, null_safe: bool) -> list[Input] | Obstacle:
        """The inputs that may be restricted if of the plan's rows only those with certain values of ``e`` matter."""
        inputs: list[Input] = []
        for way in self.passages(plan):
            below = way.below(e)
            if below is None and isinstance(plan, Join):
                continue
            if below is None or not way.restricts or not (way.partition is None or is_made_of(below, way.partition)):
                return Obstacle(plan if way.side is None else way.child, way.obstacle)
            inputs.append(Input(way.child, below))
            if way.side is not None:  # a column that both sides have is the left one's, as for values
                break
        if isinstance(plan, Expand):
            real = {one.expression for one in inputs if not is_null(one.expression)}
            inputs = [Input(plan.child, one) for one in real] if len(real) == 1 and not null_safe else []
        if inputs:
            return inputs
        return Obstacle(plan, "the join is by columns of several tables" if isinstance(plan, Join) else _past(plan))

    def passages(self, plan: Plan) -> Iterator[Passage]:
        """The ways down from a node, none if nothing is known of it. See the table of this module."""
        match plan:
            case Filter():
                yield Passage(plan.child, _same, restricts=True, conditions=True, subset=True)
            case Project(deterministic=sure):
                below = partial(below_projection, plan)
                yield Passage(plan.child, below, _past(plan), sure, conditions=sure, subset=sure, arrives=sure)
            case Sort():
                yield Passage(plan.child, _same, restricts=True)
            case Transparent():
                yield Passage(plan.child, _same, restricts=True, subset=True)
            case Aggregate() if plan.grouping:
                why = "the join is by what an aggregation computes"
                yield Passage(plan.child, partial(below_grouping, plan), why, restricts=True)
            case Aggregate():
                yield Passage(plan.child, _nothing, "an aggregation without GROUP BY gives a row in any case")
            case Window():
                own, why = partial(self._own, plan.child), "a window function looks at all rows"
                yield Passage(plan.child, own, why, restricts=True, partition=plan.partition)
            case Generate():
                yield Passage(plan.child, partial(self._own, plan.child), _past(plan), restricts=True)
            case Union():
                for i, child in enumerate(plan.children):
                    yield Passage(child, partial(in_input, plan, i), restricts=True)
            case Expand():
                for row in plan.projections:
                    yield Passage(plan.child, partial(in_projection, plan, row), restricts=True)
            case Join():
                yield from self._sides(plan)
            case Limit():
                yield Passage(plan.child, _same, _past(plan))
            case Opaque(what) if what in _SUBSETS:
                yield Passage(plan.children[0], _same, _past(plan))
            case _:
                pass

    def _sides(self, join: Join) -> Iterator[Passage]:
        kind = join_kind(join.kind)
        why = f"the {kind.words} join below gives rows of its other side in any case"
        for child, side in ((join.left, kind.left), (join.right, kind.right)):
            subset = side.restrictable and not kind.may_fail
            arrives = subset and side.preserved
            own = partial(self._own, child)
            yield Passage(child, own, why, side.restrictable, subset=subset, arrives=arrives, side=side)

    def _own(self, child: Plan, e: Expression) -> Expression | None:
        return e if self.is_of(e, child) else None

    def is_of(self, e: Expression, plan: Plan) -> bool:
        """Whether an expression is made of columns that a plan puts out, and of at least one."""
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
                right = frozenset() if join_kind(plan.kind).right.hidden else self.columns(plan.right)
                return self.columns(plan.left) | right | exists
            case Filter() | Sort() | Limit() | Transparent():
                return self.columns(plan.child)
            case Opaque(what) if what in _SUBSETS:
                return self.columns(plan.children[0])
        return frozenset()


def _same(e: Expression) -> Expression:
    return e


def _nothing(e: Expression) -> None:
    return None


def _past(plan: Plan) -> str:
    name = plan.describe().partition(" ")[0].strip("?")
    return "a LIMIT takes any rows" if name.endswith("Limit") else f"nothing moves past {name}"
