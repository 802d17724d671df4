"""Random expressions of the grammar, as trees, so that they can be made smaller."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.fuzz.grammar import COMPARED, COMPARISONS, GRAMMAR, LEAVES, NUMBERS, Grammar
from tests.fuzz.literals import Literals, simpler
from tests.fuzz.tables import Values

_HOLE = re.compile(r"\{(\w+)(!?)\}")


@dataclass(frozen=True)
class Node:
    """An expression: a line of the grammar with what fills its holes, or a leaf."""

    kind: str
    line: str
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        """
        >>> str(Node("number", "({number} + {number!})", (Node("number", "i"), Node("number", "1"))))
        '(i + 1)'
        """
        if not self.children:
            return self.line
        fillings = iter(self.children)
        return _HOLE.sub(lambda _: str(next(fillings)), self.line)

    @property
    def size(self) -> tuple[int, int]:
        """How large it is: by nodes, then by letters."""
        return self.count, len(str(self))

    @property
    def count(self) -> int:
        return 1 + sum(child.count for child in self.children)

    def walk(self) -> Iterator[Node]:
        """It and everything below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def smaller(self) -> Iterator[Node]:
        """Every way to make it smaller in one step: a part takes the place of the whole, or a leaf does."""
        for part in self.walk():
            if part is not self and _fits(part.kind, self.kind):
                yield part
        for leaf in (*LEAVES.get(self.kind, ())[:3], *simpler(self.kind)):
            yield Node(self.kind, leaf)
        if self.kind.startswith("many_"):
            yield from (Node(self.kind, shorter) for shorter in _shorter(self.line))
        for i, child in enumerate(self.children):
            for other in child.smaller():
                yield replace(self, children=(*self.children[:i], other, *self.children[i + 1 :]))


def _fits(kind: str, hole: str) -> bool:
    return kind == hole or (kind in NUMBERS and hole in NUMBERS)


def _shorter(listed: str) -> Iterator[str]:
    """Parts of a list of literals.

    >>> list(_shorter("1, 2, 3, 4"))
    ['1, 2', '3, 4']
    """
    items = listed.split(", ")
    for half in (items[: len(items) // 2], items[len(items) // 2 :]):
        if half and len(half) < len(items):
            yield ", ".join(half)


class Generator:
    """Writes predicates. ``favour``: lines that hold this text are chosen wherever they can be."""

    def __init__(self, rng: Random, files: Sequence[Values], *, nasty: bool, favour: str = "") -> None:
        self.rng, self.favour = rng, favour
        self.literals = Literals(rng, files, nasty=nasty)

    def predicates(self, count: int) -> list[Node]:
        return [self.predicate(self.rng.choice((1, 1, 2, 2, 3))) for _ in range(count)]

    def predicate(self, depth: int) -> Node:
        """A predicate whose expressions are at most so deep."""
        roll = self.rng.random()
        favoured = self._favoured(GRAMMAR)
        if favoured and roll < 0.7:
            kind, line = self.rng.choice(favoured)
            return self._around(self._fill(kind, line, depth), depth)
        return self._comparison(depth) if roll < 0.6 else self.expression("bool", depth)

    def expression(self, kind: str, depth: int) -> Node:
        """An expression of a kind."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.15 or kind not in GRAMMAR:
            if kind == "bool" and rng.random() < 0.6:
                return self._comparison(0)
            literal = kind not in LEAVES or (rng.random() < 0.12 and kind not in ("time", "moment"))
            return Node(kind, self.literals.literal(kind) if literal else rng.choice(LEAVES[kind]))
        return self._fill(kind, rng.choice(GRAMMAR[kind]), depth)

    def about(self, kind: str, line: str) -> Node:
        """A comparison of an expression of a line of the grammar, with columns below it and literals where it says."""

        def fill(hole: str, literal: str) -> Node:
            leaf = self.literals.literal(hole) if literal else self.rng.choice(LEAVES[hole])
            return Node(hole, leaf)

        made = Node(kind, line, tuple(fill(*hole) for hole in _HOLE.findall(line)))
        if kind == "bool":
            return made
        # With a column, since Spark takes many a function apart that is compared with a literal.
        return Node("bool", f"{{{kind}}} < {{{kind}}}", (made, Node(kind, LEAVES[kind][-1])))

    def _comparison(self, depth: int, kind: str = "") -> Node:
        kind = kind or self.rng.choice(COMPARED)
        return self._fill("bool", self.rng.choice(COMPARISONS[kind]), depth + 1)

    def _around(self, node: Node, depth: int) -> Node:
        """A predicate about an expression."""
        if node.kind == "bool":
            wrap = self.rng.choice(("", "", "NOT ({bool})", "({bool}) IS NULL", "({bool} AND {bool})"))
        else:
            kind = node.kind if node.kind in COMPARISONS else "date"
            wrap = self.rng.choice(COMPARISONS[kind])
        if not wrap:
            return node
        made = self._fill("bool", wrap, depth)
        at = next(i for i, hole in enumerate(_HOLE.findall(wrap)) if not hole[1])
        return replace(made, children=(*made.children[:at], node, *made.children[at + 1 :]))

    def _fill(self, kind: str, line: str, depth: int) -> Node:
        def fill(hole: str, literal: str) -> Node:
            return Node(hole, self.literals.literal(hole)) if literal else self.expression(hole, depth - 1)

        return Node(kind, line, tuple(fill(*hole) for hole in _HOLE.findall(line)))

    def _favoured(self, grammar: Grammar) -> list[tuple[str, str]]:
        if not self.favour:
            return []
        return [(kind, line) for kind, lines in grammar.items() for line in lines if self.favour in line]
