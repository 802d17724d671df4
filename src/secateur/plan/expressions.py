"""Expressions of a query as values: frozen, hashable, printable. Those that are equal have equal values.

They mirror Spark's optimized expressions. Whatever secateur does not model is an :class:`Opaque` with the reason, never
an error: a conjunct that holds one cannot prune, its neighbours still can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TypeAlias

from secateur.plan.types import BOOLEAN, DataType

Value: TypeAlias = int | float | Decimal | bytes | None
"""A literal in its type's domain (see :mod:`secateur.plan.types`); None is SQL's NULL."""

NOT_EVALUABLE = -1
"""The ``ref`` of an expression that the JVM cannot be asked to evaluate; any other is the number it is known by."""


@dataclass(frozen=True, slots=True)
class Column:
    """A reference to an attribute, identified by Spark's expression id, or to a field in a struct.

    >>> print(Column(7, "s", BOOLEAN, ("a", "b"), (0, 2)))
    s.a.b#7
    """

    id: int
    name: str
    type: DataType
    path: tuple[str, ...] = ()
    """The names of the fields on the way into a struct, empty for the column itself."""
    positions: tuple[int, ...] = ()
    """The positions of these fields in their structs."""

    @property
    def full_name(self) -> str:
        """The name with those of the fields."""
        return ".".join((self.name, *self.path))

    def __str__(self) -> str:
        return f"{self.full_name}#{self.id}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value
    type: DataType
    below_zero: bool = field(default=False, repr=False)
    """Of floats read from a query: -0.0 and 0.0 are equal to Python, and to functions they are not."""

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if isinstance(self.value, bytes):
            return "'" + self.value.decode("utf-8", "backslashreplace") + "'"
        if self.type.name == "boolean":
            return "true" if self.value else "false"
        if self.type.name in ("date", "timestamp", "timestamp_ntz"):
            return f"{self.type} {self.value}"
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right`` where op is one of ``=  <  <=  >  >=  <=>`` (the last never yields NULL)."""

    op: str
    left: Expression
    right: Expression
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"({self.left} {self.op} {self.right})"


@dataclass(frozen=True, slots=True)
class And:
    left: Expression
    right: Expression
    type: DataType = BOOLEAN

    def __str__(self) -> str:
        return f"({self.left} AND {self.right})"


@dataclass(frozen=True, slots=True)
class Or:
    left: Expression
    right: Expression
    type: DataType = BOOLEAN

    def __str__(self) -> str:
        return f"({self.left} OR {self.right})"


@dataclass(frozen=True, slots=True)
class Not:
    child: Expression
    type: DataType = BOOLEAN

    def __str__(self) -> str:
        return f"NOT {self.child}"


@dataclass(frozen=True, slots=True)
class In:
    """``child IN (values)``; the values are literals in the child's domain, NULL among them included."""

    child: Expression
    values: tuple[Value, ...]
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        shown = ", ".join(str(Literal(v, self.child.type)) for v in self.values[:5])
        more = f", … {len(self.values)} values" if len(self.values) > 5 else ""
        return f"{self.child} IN ({shown}{more})"


@dataclass(frozen=True, slots=True)
class IsNull:
    child: Expression
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.child} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNotNull:
    child: Expression
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.child} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``child`` starts with these bytes; Spark rewrites ``LIKE 'abc%'`` to this."""

    child: Expression
    prefix: bytes
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"startswith({self.child}, {Literal(self.prefix, self.child.type)})"


@dataclass(frozen=True, slots=True)
class Like:
    """``child LIKE pattern ESCAPE escape``."""

    child: Expression
    pattern: str
    escape: str = "\\"
    type: DataType = BOOLEAN
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.child} LIKE '{self.pattern}'"


@dataclass(frozen=True, slots=True)
class Alias:
    """A named output of a projection or an aggregate."""

    id: int
    name: str
    child: Expression
    type: DataType

    def __str__(self) -> str:
        return f"{self.child} AS {self.name}#{self.id}"


@dataclass(frozen=True, slots=True)
class Call:
    """A deterministic Spark function by its class name, for which rules may exist or not."""

    function: str
    args: tuple[Expression, ...]
    type: DataType
    zone: str = ""
    """The time zone that Spark evaluates it in, empty if it has none: set when a query is analysed, so not always the
    session's when it runs."""
    unit: str = ""
    """What TimestampAdd and TimestampDiff count in."""
    parameters: str = ""
    """What else makes it this function and no other, as the JVM writes it: its mode, the method that it calls."""
    ref: int = field(default=NOT_EVALUABLE, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.function.lower()}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class Opaque:
    """An expression that secateur does not model, with what stood in the way."""

    what: str
    reason: str
    type: DataType
    children: tuple[Expression, ...] = field(default=())
    parameters: str = ""
    """What sets it apart from others of this kind over the same columns: two are equal only if they mean the same."""

    def __str__(self) -> str:
        return f"?{self.what}({', '.join(map(str, self.children))})"


Expression: TypeAlias = (
    Column | Literal | Compare | And | Or | Not | In | IsNull | IsNotNull | StartsWith | Like | Alias | Call | Opaque
)


def children(e: Expression) -> tuple[Expression, ...]:
    """The direct inputs of an expression."""
    match e:
        case Compare() | And() | Or():
            return (e.left, e.right)
        case Not() | In() | IsNull() | IsNotNull() | StartsWith() | Like() | Alias():
            return (e.child,)
        case Call():
            return e.args
        case Opaque():
            return e.children
        case Column() | Literal():
            return ()


def with_children(e: Expression, inputs: Sequence[Expression]) -> Expression:
    """The same expression over other inputs."""
    match e:
        case Compare() | And() | Or():
            return replace(e, left=inputs[0], right=inputs[1])
        case Not() | In() | IsNull() | IsNotNull() | StartsWith() | Like() | Alias():
            return replace(e, child=inputs[0])
        case Call():
            return replace(e, args=tuple(inputs))
        case Opaque():
            return replace(e, children=tuple(inputs))
        case Column() | Literal():
            return e


def is_pruning(e: Expression) -> bool:
    """Whether Spark put it there to prune one side of a join by the keys of the other, at run time."""
    return isinstance(e, Opaque) and e.what == "DynamicPruningSubquery"


def walk(e: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    left = [e]
    while left:
        part = left.pop()
        yield part
        if not isinstance(part, Column | Literal):
            left.extend(reversed(children(part)))


def conjuncts(e: Expression) -> Iterator[Expression]:
    """The parts that an AND requires, left to right.

    >>> from secateur.plan.types import DataType
    >>> a, b = Column(1, "a", BOOLEAN), Column(2, "b", BOOLEAN)
    >>> [str(c) for c in conjuncts(And(a, And(b, Not(a))))]
    ['a#1', 'b#2', 'NOT a#1']
    """
    if isinstance(e, And):
        yield from conjuncts(e.left)
        yield from conjuncts(e.right)
    else:
        yield e
