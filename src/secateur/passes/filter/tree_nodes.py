"""The nodes of a pruning tree, with what is learned of each while it is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal as OneOf
from typing import TypeAlias

from secateur.evaluate.rules import RULES
from secateur.plan.expressions import And, Call, Column, Expression, In, Like, Literal, Not, Opaque, Or, children, walk
from secateur.stats.file_stats import BLOCK

Kind: TypeAlias = OneOf["and", "or", "test"]


class Node:
    """An AND, an OR or a test, with what was learned of it."""

    __slots__ = (
        "blocks_dropped",
        "broken",
        "children",
        "cut",
        "dropped",
        "entries",
        "expression",
        "kind",
        "looked",
        "negated",
        "seconds",
        "static_cost",
    )

    def __init__(
        self, kind: Kind, expression: Expression, *, negated: bool, children: tuple[Node, ...] = ()
    ) -> None:  # fmt: skip
        self.kind = kind
        self.expression = expression
        self.negated = negated
        self.children = children
        self.static_cost: float
        if children:
            self.static_cost = sum(child.static_cost for child in children)
        else:
            self.static_cost = sum((_static_cost(part) for part in walk(expression)), 0.0)
        self.seconds = 0.0
        self.entries = 0
        """How many entries it was computed for, those included that were out already."""
        self.looked = 0
        """How many of them were not."""
        self.dropped = 0
        """How many of these it ruled out."""
        self.blocks_dropped = 0
        self.cut = False
        self.broken = ""

    @property
    def reads(self) -> Iterator[Column]:
        """The columns that it looks at, some more than once."""
        for node in self.below():
            if not node.children:
                yield from _read(node.expression)

    @property
    def column(self) -> Column | None:
        """The column that a test looks at, if it is but one."""
        found = {part for part in walk(self.expression) if isinstance(part, Column)}
        return found.pop() if len(found) == 1 else None

    @property
    def cost(self) -> float:
        """Seconds for an entry."""
        return self.seconds / self.entries if self.entries else self.static_cost

    @property
    def ruled_out(self) -> int:
        """How many entries it ruled out, alone or with their block."""
        return self.dropped + BLOCK * self.blocks_dropped

    def in_order(self) -> Sequence[Node]:
        """The children that are not cut off, in the order in which to evaluate them."""
        return sorted((child for child in self.children if not child.cut), key=self._rank)

    def _rank(self, child: Node) -> float:
        """Seconds for an entry that the child decides: that it rules out below an AND, lets through below an OR."""
        looked = child.looked + BLOCK * child.blocks_dropped
        decided = child.ruled_out if self.kind == "and" else looked - child.ruled_out
        return child.cost * (looked + 1) / (decided + 0.5)

    def below(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children:
            yield from child.below()


def grow(e: Expression, *, negated: bool) -> Node:
    """The tree of a condition, or of its negation."""
    match e:
        case Not(child):
            return grow(child, negated=not negated)
        case And() | Or():
            kind: OneOf["and", "or"] = "and" if isinstance(e, And) != negated else "or"
            grown = [grow(part, negated=negated) for part in _operands(e)]
            # NOT (a OR b) below an AND is two more children of it.
            flat = [node for child in grown for node in (child.children if child.kind == kind else (child,))]
            return Node(kind, e, negated=negated, children=tuple(flat))
    return Node("test", e, negated=negated)


def _operands(e: And | Or) -> list[Expression]:
    """The operands of a chain of the same connective, left to right."""
    found: list[Expression] = []
    open_: list[Expression] = [e]
    while open_:
        part = open_.pop()
        if isinstance(part, type(e)):
            open_ += (part.right, part.left)
        else:
            found.append(part)
    return found


def _read(e: Expression) -> Iterator[Column]:
    """The columns that the evaluator looks at: it does not look into what has no rule."""
    match e:
        case Column():
            yield e
        case Opaque():
            return
        case Call(function) if function not in RULES:
            return
        case _:
            for child in children(e):
                yield from _read(child)


def _static_cost(e: Expression) -> float:
    """Seconds for an entry, before anything is known; for functions more than most take, so that they are probed."""
    slow = e.type.name in ("string", "decimal")
    match e:
        case Call():
            return 1e-6 if slow else 500e-9
        case In() | Like():
            return 50e-9
        case Column():
            return 3e-9 if slow else 1e-9
        case Literal() | Opaque():
            return 0.1e-9
        case _:
            return 1e-9
