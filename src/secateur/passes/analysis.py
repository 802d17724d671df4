"""What follows from a query alone: each question is answered once, and every pass asks here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from secateur.passes.filter.predicates import Predicate, order_sensitive_scans, scan_predicates
from secateur.passes.joins.links import Links
from secateur.plan.nodes import Query, Scan, Settings
from secateur.plan.propagation import Propagation


class QueryAnalysis:
    """A query with what follows from it.

    >>> from secateur.plan.expressions import And, Column, IsNotNull, Not
    >>> from secateur.plan.nodes import Filter
    >>> from secateur.plan.types import parse_type
    >>> a = Column(1, "a", parse_type("int"))
    >>> scan = Scan(0, "t", "parquet", "", ())
    >>> analysis = QueryAnalysis(Query(1, "early", Filter(And(IsNotNull(a), Not(a)), scan)))
    >>> [str(conjunct) for conjunct in analysis.predicate(scan)]
    ['a#1 IS NOT NULL', 'NOT a#1']
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.propagation = Propagation()

    def under(self, settings: Settings) -> QueryAnalysis:
        """The same query under other settings: what was found out so far holds for it, too."""
        other = QueryAnalysis(replace(self.query, settings=settings))
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name != "query"})
        return other

    @cached_property
    def scans(self) -> Mapping[int, Scan]:
        """Every scan of the plan by its id, subqueries included."""
        return {scan.id: scan for scan in self.query.scans()}

    @cached_property
    def predicates(self) -> Mapping[int, Predicate]:
        """The conjuncts that every row which the query needs of a scan makes TRUE, by scan id."""
        return scan_predicates(self.query, self.propagation)

    def predicate(self, scan: Scan) -> Predicate:
        """Those of one scan; empty if there are none."""
        return self.predicates.get(scan.id, ())

    @cached_property
    def order_sensitive(self) -> frozenset[int]:
        """The scans below something random: no pass may narrow them (rule S9)."""
        return order_sensitive_scans(self.query)

    @cached_property
    def links(self) -> Links:
        """Which scan may tell which other one what it holds, along joins."""
        return Links(self.propagation).of(self.query.plan)
