"""What the JVM is asked before a decision: the values of expressions on the constants that files hold.

The decider answers a request with requests instead of edits, the JVM evaluates them and asks again, with the values.
Values are kept, so that an expression is evaluated once for the same constants (see
:mod:`secateur.evaluate.constant_folding`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secateur.errors import WireError
from secateur.evaluate.constant_folding import (
    MOST_ROWS,
    UNKNOWN,
    Evaluable,
    Evaluated,
    Row,
    Unknown,
    candidates,
    columns_of,
    distinct_rows,
)
from secateur.passes.analysis import QueryAnalysis
from secateur.passes.filter.filter import narrow
from secateur.passes.filter.predicates import Predicate
from secateur.plan.expressions import Column, Expression, Opaque, children, walk, with_children
from secateur.plan.nodes import Query, Scan
from secateur.plan.values import decode_value, encode_value
from secateur.recent import Recent
from secateur.stats.file_stats import FileStats

Values = dict[Row, Any]
NO_TIME = Unknown()
"""The time was over before the JVM got to this row: it may be asked again."""
_EXPRESSIONS = 256
_MOST_VALUES = 16 * MOST_ROWS
_PENDING = 64


@dataclass(frozen=True, slots=True)
class FoldingRequest:
    """An expression and the rows of constants that it is to be evaluated on; ``known`` are those that it was before."""

    expression: Evaluable
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    known: Values

    @property
    def missing(self) -> list[Row]:
        return [row for row in self.rows if row not in self.known]

    def to_wire(self) -> dict[str, Any]:
        """As the JVM reads it (see :mod:`secateur.bridge.decode`)."""
        columns = ["/".join(map(str, (c.id, *c.positions))) for c in self.columns]
        types = [c.type for c in self.columns]
        rows = [[encode_value(v, t) for v, t in zip(row, types, strict=True)] for row in self.missing]
        return {"k": self.expression.ref, "cols": columns, "rows": rows}

    def evaluated(self) -> Evaluated:
        """What is known by now."""
        results = [self.known.get(row, UNKNOWN) for row in self.rows]
        return Evaluated(self.columns, self.expression.type, self.rows, results)


class ConstantFolding:
    """Finds what to ask for a query, and keeps what was answered."""

    def __init__(self) -> None:
        self._known: Recent[str, Values] = Recent(_EXPRESSIONS)
        self._pending: Recent[int, list[FoldingRequest]] = Recent(_PENDING)

    def of(self, analysis: QueryAnalysis, stats: Mapping[int, FileStats]) -> list[FoldingRequest]:
        """Every request of the query, with the values that are known already."""
        found: dict[int, FoldingRequest] = {}
        for scan in analysis.query.scans():
            if scan.id in stats and scan.id not in analysis.order_sensitive and not scan.decided:
                for request in self._of_scan(analysis.query, scan, analysis.predicate(scan), stats[scan.id]):
                    found[request.expression.ref] = request
        return list(found.values())

    def _of_scan(self, query: Query, scan: Scan, predicate: Predicate, stats: FileStats) -> list[FoldingRequest]:
        asked = [(conjunct, tuple(candidates(conjunct))) for conjunct in predicate]
        if not any(parts for _, parts in asked):
            return []
        columns = {column.id: column for column in scan.columns}
        # What the other conjuncts rule out needs no answer.
        others = tuple(conjunct for conjunct, parts in asked if not parts)
        alive = narrow(others, stats, columns, np.ones(stats.count, np.bool_), query.settings)
        left = stats if alive.all() else stats.take(np.flatnonzero(alive))
        found = []
        for expression in (e for _, parts in asked for e in parts):
            wanted = columns_of(expression)
            rows = distinct_rows(wanted, left, columns)
            if rows is not None:
                found.append(FoldingRequest(expression, wanted, tuple(rows), self._values(query, expression, wanted)))
        return found

    def _values(self, query: Query, expression: Expression, wanted: Sequence[Column]) -> Values:
        """What is known of an expression: of none that holds something which the wire does not tell apart."""
        if any(isinstance(part, Opaque) for part in walk(expression)):
            return {}
        # By its text: -0.0 and 0.0 are equal, but not the same.
        key = f"{query.settings.digest} {_without_ids(expression, wanted)!r}"
        if len(self._known.peek(key) or ()) > _MOST_VALUES:
            self._known.pop(key)
        return self._known.setdefault(key, dict)

    def ask(self, call: int, requests: Sequence[FoldingRequest]) -> list[dict[str, Any]]:
        """The requests that are open, as the JVM reads them; they are remembered until it answers."""
        waiting = [request for request in requests if request.missing]
        if not waiting:
            return []
        self._pending.put(call, waiting)
        return [request.to_wire() for request in waiting]

    def answer(self, call: int, answers: Sequence[Sequence[object]]) -> dict[int, Evaluated]:
        """Takes in what the JVM answered: for each request that was asked, the value on each row."""
        waiting = self._pending.pop(call) or []
        found = {}
        for request, values in zip(waiting, answers, strict=False):
            missing = request.missing
            if len(values) == len(missing):
                decoded = zip(missing, (_decoded(v, request.expression) for v in values), strict=True)
                request.known.update((row, v) for row, v in decoded if v is not NO_TIME)
            found[request.expression.ref] = request.evaluated()
        return found


def _decoded(wire: object, expression: Evaluable) -> object:
    # The JVM writes a boolean as such, the domain has 0 and 1.
    wire = int(wire) if isinstance(wire, bool) else wire
    if isinstance(wire, dict) and "hex" not in wire:
        return NO_TIME if "t" in wire else UNKNOWN
    try:
        return decode_value(wire, expression.type)
    except (WireError, ArithmeticError, ValueError):
        return UNKNOWN


def _without_ids(e: Expression, wanted: Sequence[Column]) -> Expression:
    """The expression with columns by their number among those wanted: ids are new in every query."""
    if isinstance(e, Column):
        return Column(wanted.index(e), "", e.type)
    return with_children(e, [_without_ids(child, wanted) for child in children(e)])
