"""What an expression over the columns that a node puts out is over those that it takes in.

Aggregate [year(day#1) AS y#5]          y#5 + 1     ->     year(day#1) + 1
  Scan t [day#1]
"""

from __future__ import annotations

from secateur.passes.filter.predicates import computed_by, is_small, substituted
from secateur.plan.expressions import Alias, Call, Column, Expression, Literal, children
from secateur.plan.expressions import Opaque as OpaqueExpression
from secateur.plan.expressions import walk as parts_of
from secateur.plan.nodes import Aggregate, Expand, Union

_STRICT = frozenset({"Cast", "Add", "Subtract", "Multiply", "UnaryMinus", "Year", "Month", "TruncTimestamp", "DateAdd"})
"""Functions that are NULL if one of their arguments is."""


def in_input(union: Union, index: int, e: Expression) -> Expression:
    """What an expression over a union's columns is in one of its inputs."""
    ids = dict(zip(union.outputs, union.inputs[index], strict=True))
    inputs: dict[int, Expression] = {}
    for part in parts_of(e):
        # A reference to a field of a struct has the field's type, not that of the column.
        if isinstance(part, Column) and part.id in ids and (part.id not in inputs or not part.path):
            inputs[part.id] = Column(ids[part.id], part.name, part.type)
    return substituted(e, inputs)


def in_projection(expand: Expand, row: tuple[Expression, ...], e: Expression) -> Expression:
    """What an expression over the columns of GROUPING SETS is in one of its projections."""
    return substituted(e, dict(zip(expand.outputs, row, strict=True)))


def below_grouping(aggregate: Aggregate, e: Expression) -> Expression | None:
    """The expression over the aggregate's input, None unless it is made of what is grouped by."""
    below = substituted(e, computed_by(aggregate.outputs))
    return below if is_small(below) and is_made_of(below, aggregate.grouping) else None


def is_made_of(e: Expression, keys: tuple[Expression, ...]) -> bool:
    """Whether it has one value for all rows with the same keys. Of floats only the key itself: 0.0 and -0.0 are the
    same key, but 1 / 0.0 and 1 / -0.0 differ.
    """
    if e in keys or isinstance(e, Literal):
        return True
    if isinstance(e, Column | OpaqueExpression):
        return False
    return all(is_made_of(part, keys) and not part.type.is_float for part in children(e))


def is_strict(e: Expression) -> bool:
    """Whether it is NULL as soon as its columns are."""
    match e:
        case Column():
            return True
        case Call(function, args):
            return function in _STRICT and any(map(is_strict, args))
        case Alias(_, _, child):
            return is_strict(child)
    return False


def is_null(e: Expression) -> bool:
    """Whether it is NULL itself."""
    return isinstance(e, Literal) and e.value is None
