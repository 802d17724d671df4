"""What passes a group-by: expressions that are the same for all rows of a group."""

from __future__ import annotations

import pytest

from secateur.plan.expressions import Alias, Call, Column, Expression, Literal, Opaque
from secateur.plan.nodes import Aggregate, Scan
from secateur.plan.substitution import below_grouping
from secateur.plan.types import parse_type

INT, DOUBLE = parse_type("int"), parse_type("double")
K, X = Column(1, "k", INT), Column(2, "x", DOUBLE)
SUM = Alias(4, "total", Opaque("Sum", "an aggregate", DOUBLE), DOUBLE)
GROUPS = Aggregate((K, X), (Alias(3, "key", K, INT), X, SUM), Scan(0, "t", "parquet", "", ()))


@pytest.mark.parametrize(
    ("e", "below"),
    [
        (Column(3, "key", INT), K),
        (Call("Add", (Column(3, "key", INT), Literal(1, INT)), INT), Call("Add", (K, Literal(1, INT)), INT)),
        (X, X),
        # 0.0 and -0.0 are one group, so rows of it differ in 1 / x: what is wanted of one row is wanted of the group.
        (Call("Divide", (Literal(1.0, DOUBLE), X), DOUBLE), None),
        (Call("Cast", (X,), parse_type("string")), None),
        (Column(4, "total", DOUBLE), None),
        (Column(9, "other", INT), None),
    ],
)
def test_what_is_made_of_the_keys_of_a_group_passes(e: Expression, below: Expression | None) -> None:
    assert below_grouping(GROUPS, e) == below
