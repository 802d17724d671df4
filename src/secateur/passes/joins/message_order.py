"""In which order tables that join tell each other what they hold, so that few messages do (section 3.4 of the paper).

A join graph that is a tree: from the leaves to the root, then from the root to the leaves. After that nothing that any
message could rule out is left. The root is the table with the shortest way to the furthest other one::

    part                      1. part → lineitem, supplier → lineitem, orders → lineitem
        \\                     2. lineitem → part, lineitem → supplier, lineitem → orders
         lineitem -- orders
        /
    supplier

A graph with cycles becomes a tree of groups: chords are added until every cycle is one of triangles, the largest
cliques are the groups (a table in none is one by itself), and of the links between groups those with the most tables
in common make the tree. Within a group everybody tells everybody, again and again as long as that helps, but only so
often: how often would be needed is not bounded by the number of tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Message:
    """One table tells another."""

    sender: int
    receiver: int


@dataclass(frozen=True, slots=True)
class Cycle:
    """Every table of a group tells every other that it joins with, as often as that helps."""

    exchanges: tuple[Message, ...]


Step: TypeAlias = Message | Cycle
Edges: TypeAlias = Collection[tuple[int, int]]
Group: TypeAlias = frozenset[int]


def message_order(edges: Edges) -> list[Step]:
    """The steps for a join graph, whose edges name each pair of joining tables once.

    >>> [(step.sender, step.receiver) for step in message_order([(1, 2), (3, 2), (4, 2)])]
    [(1, 2), (3, 2), (4, 2), (2, 4), (2, 3), (2, 1)]
    """
    near = _neighbours(edges)
    steps: list[Step] = []
    for tables in _components(near):
        groups = _groups(tables, near)
        tree = _tree(groups, near)
        order = _from_leaves(groups, tree)
        for group, parent in order:
            steps += _among(group, near)
            if parent is not None:
                steps += _between(group, parent, near)
        for group, parent in reversed(order):
            if parent is not None:
                steps += _between(parent, group, near)
            if len(group) > 1 and parent is not None:
                steps += _among(group, near)
    return steps


def _neighbours(edges: Edges) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for one, other in edges:
        if one != other:
            near.setdefault(one, set()).add(other)
            near.setdefault(other, set()).add(one)
    return near


def _components(near: dict[int, set[int]]) -> Iterator[list[int]]:
    seen: set[int] = set()
    for start in sorted(near):
        if start in seen:
            continue
        found, open_ = {start}, [start]
        while open_:
            for table in near[open_.pop()] - found:
                found.add(table)
                open_.append(table)
        seen |= found
        yield sorted(found)


def _groups(tables: list[int], near: dict[int, set[int]]) -> list[Group]:
    """The largest cliques of three tables or more once chords are added, and the tables that are in none."""
    chordal = {table: set(near[table]) for table in tables}
    left = set(tables)
    cliques: list[Group] = []
    while left:
        # The table that needs the fewest chords goes next; of those the first, so that the order is always the same.
        table = min(sorted(left), key=lambda t: (_missing(chordal, chordal[t] & left), len(chordal[t] & left)))
        around = chordal[table] & left
        for one, other in combinations(sorted(around), 2):
            chordal[one].add(other)
            chordal[other].add(one)
        clique = frozenset({table, *around})
        if len(clique) > 2 and not any(clique <= known for known in cliques):
            cliques.append(clique)
        left.remove(table)
    grouped = {table for clique in cliques for table in clique}
    single = [frozenset({table}) for table in tables if table not in grouped]
    return sorted((*cliques, *single), key=sorted)


def _missing(near: dict[int, set[int]], tables: set[int]) -> int:
    return sum(other not in near[one] for one, other in combinations(tables, 2))


def _tree(groups: list[Group], near: dict[int, set[int]]) -> dict[Group, set[Group]]:
    """The links between groups that connect them all, those with the most tables in common."""
    links = []
    for i, j in combinations(range(len(groups)), 2):
        common = len(groups[i] & groups[j])
        if common or any(near[table] & groups[j] for table in groups[i]):
            links.append((-common, i, j))
    tree: dict[Group, set[Group]] = {group: set() for group in groups}
    part_of = list(range(len(groups)))
    for _, i, j in sorted(links):
        one, other = part_of[i], part_of[j]
        if one != other:
            part_of = [one if part == other else part for part in part_of]
            tree[groups[i]].add(groups[j])
            tree[groups[j]].add(groups[i])
    return tree


def _from_leaves(groups: list[Group], tree: dict[Group, set[Group]]) -> list[tuple[Group, Group | None]]:
    """Every group with its parent, those furthest from the root first; the root is as near to all as can be."""
    best = min((_below(root, tree) for root in groups), key=lambda order: order[-1][2])
    return [(group, parent) for group, parent, _ in reversed(best)]


def _below(root: Group, tree: dict[Group, set[Group]]) -> list[tuple[Group, Group | None, int]]:
    order: list[tuple[Group, Group | None, int]] = [(root, None, 0)]
    for group, parent, depth in order:  # grows while it is walked
        children = sorted(tree[group] - {parent}, key=sorted, reverse=True)
        order += [(child, group, depth + 1) for child in children]
    return order


def _between(one: Group, other: Group, near: dict[int, set[int]]) -> list[Step]:
    return [Message(a, b) for a in sorted(one) for b in sorted(other & near[a])]


def _among(group: Group, near: dict[int, set[int]]) -> list[Step]:
    exchanges = tuple(Message(a, b) for a in sorted(group) for b in sorted(group & near[a]))
    return [Cycle(exchanges)] if exchanges else []
