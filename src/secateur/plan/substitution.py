"""What an expression over the columns that a node puts out is over those that it takes in.

Aggregate [year(day#1) AS y#5]          y#5 + 1     ->     year(day#1) + 1
  Scan t [day#1]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    children,
    walk,
)
from secateur.plan.expressions import Opaque as OpaqueExpression
from secateur.plan.nodes import Aggregate, Expand, Project, Union

LARGEST = 20_000
"""Conjuncts with more parts than this are left out: each Project on the way could double them."""
_STRICT = frozenset({"Cast", "Add", "Subtract", "Multiply", "UnaryMinus", "Year", "Month", "TruncTimestamp", "DateAdd"})
"""Functions that are NULL if one of their arguments is."""


def below_projection(project: Project, e: Expression) -> Expression | None:
    """The expression over a projection's input, None if it grows too large."""
    below = substituted(e, computed_by(project.outputs))
    return below if is_small(below) else None


def in_input(union: Union, index: int, e: Expression) -> Expression:
    """What an expression over a union's columns is in one of its inputs."""
    ids = dict(zip(union.outputs, union.inputs[index], strict=True))
    inputs: dict[int, Expression] = {}
    for part in walk(e):
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


def grouped_by(aggregate: Aggregate, key: Expression) -> Expression | None:
    """What a column of an aggregate's output is below it, if it is one of the columns that are grouped by."""
    for output in aggregate.outputs:
        made = output.child if isinstance(output, Alias) else output
        if isinstance(output, (Alias, Column)) and isinstance(key, Column) and key.id == output.id and not key.path:
            return made if made in aggregate.grouping else None
    return None


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
