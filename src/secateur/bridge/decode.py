"""Requests of the JVM, decoded into values. The answers are encoded by :mod:`secateur.bridge.encode`.

The wire between the JVM and Python is compact ASCII JSON. ``PlanWriter.java`` is the other end; the forms are:

* plan node ``{"n": class, "x": [expressions], "q": [subquery plans], "c": [children]}``, with ``"r": 1`` if it is
  random; a scan has its own fields;
* what a node has beside its expressions: a join ``"j"`` for its kind and ``"e"`` for the column that an existence join
  adds; an aggregate ``"g"`` for the number of its expressions that it groups by; a union ``"o"`` and ``"i"`` for the
  ids of its columns and of those of each child; a window ``"o"`` for those that it computes, with the expressions
  that it partitions by; a limit of the rows in each group ``"f"`` and ``"k"`` for the function that counts them and
  how far, with what it partitions by (``"g"`` expressions) and its order; an expand ``"g"`` for the number of its
  columns, with its projections one after the other and then its columns; a generate ``"o"`` for what it generates,
  without expressions. The subquery of Spark's dynamic pruning is below a node of its own, ``DynamicPruning``;
* a global sort has ``"g": 1`` and its number ``"s"``, its keys are
  ``{"f": "SortOrder", "o": [1 if descending, 1 if NULLs come first], …}``;
* expression ``{"a": id, "n": name, "t": type}`` (column), ``{"v": value, "t": type}`` (literal) or
  ``{"f": class, "t": type, "c": [children]}`` with ``"d": 0`` if the function is not deterministic, ``"z"`` for the
  time zone that it is evaluated in, ``"u"`` for the unit that it counts in, ``"k"`` for the number by which the JVM
  can be asked to evaluate it, and ``"p"`` for its parameters, without which two different functions, or literals that
  have no form on the wire, would look alike; a field of a struct has ``"n"`` and ``"o"``, its name and
  position;
* question ``{"k": number, "cols": [columns], "rows": [[values], …]}``, where a column is the id of an attribute and the
  positions of fields (``"7/0/2"``), answered by a list of values, ``{"e": 1}`` for one that could not be evaluated;
* zone ``[[seconds of each change and of the end], [offset before the first and after each], [least, greatest after the
  end]]``, as :class:`secateur.plan.time_zones.Zone` takes them.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from secateur.errors import WireError
from secateur.plan.columns import ScanColumn
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
    Opaque,
    Or,
    StartsWith,
    Value,
)
from secateur.plan.nodes import (
    Aggregate,
    Expand,
    Filter,
    Generate,
    GroupLimit,
    Join,
    Limit,
    Plan,
    Project,
    Query,
    Scan,
    Settings,
    Sort,
    SortKey,
    Transparent,
    Union,
    Window,
)
from secateur.plan.nodes import Opaque as OpaquePlan
from secateur.plan.time_zones import Zone
from secateur.plan.types import DataType, parse_type
from secateur.plan.values import decode_value

Wire = dict[str, Any]

COMPARISONS = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_KINDS = ("data", "partition", "hidden")
_TRANSPARENT = ("Repartition", "RepartitionByExpression", "RebalancePartitions", "Sort")
"""Nodes that let all rows and columns through; the Sort is one within partitions."""


def decode_query(request: Wire) -> Query:
    """The query of a ``decide`` request."""
    try:
        conf = request["conf"]
        zones = {name: Zone(*table) for name, table in request.get("zones", {}).items()}
        legacy = conf.get("legacy_formats", False)
        settings = Settings(
            conf["time_zone"], conf["ansi"], conf["case_sensitive"], zones, legacy, conf.get("digest", "")
        )
        return Query(request["query"], request["stage"], decode_plan(request["plan"], settings), settings)
    except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as problem:
        raise WireError(f"the plan could not be decoded: {type(problem).__name__}: {problem}") from problem


def decode_plan(node: Wire, settings: Settings) -> Plan:
    """A plan node with everything below it."""
    if node["n"] == "Scan":
        return decode_scan(node, settings)
    children = [decode_plan(child, settings) for child in node["c"]]
    subqueries = tuple(decode_plan(plan, settings) for plan in node.get("q", ()))
    order_sensitive = node.get("r") == 1
    match node["n"]:
        case "Filter":
            return Filter(decode_expression(node["x"][0]), children[0], subqueries, order_sensitive)
        case "Project":
            outputs = tuple(decode_expression(e) for e in node["x"])
            return Project(outputs, children[0], not any(map(_varies, node["x"])), subqueries, order_sensitive)
        case "LocalLimit" if not subqueries:
            match decode_expression(node["x"][0]):
                case Literal(int(count)) if count >= 0:
                    return Limit(count, children[0], order_sensitive)
        case "Sort" if node.get("g") == 1:
            return Sort(
                tuple(_sort_key(e) for e in node["x"]), children[0], subqueries, order_sensitive, node.get("s", -1)
            )
        case "Join":
            condition = decode_expression(node["x"][0]) if node["x"] else None
            ref = node.get("s", -1)
            return Join(node["j"], condition, children[0], children[1], node.get("e"), subqueries, order_sensitive, ref)
        case "Aggregate":
            grouping, outputs = _split([decode_expression(e) for e in node["x"]], node["g"])
            return Aggregate(grouping, outputs, children[0], subqueries, order_sensitive)
        case "Union" if not subqueries:
            return Union(tuple(node["o"]), tuple(map(tuple, node["i"])), tuple(children), order_sensitive)
        case "Window":
            partition = tuple(decode_expression(e) for e in node["x"])
            return Window(tuple(node["o"]), partition, children[0], subqueries, order_sensitive)
        case "WindowGroupLimit":
            groups = tuple(decode_expression(e) for e in node["x"][: node["g"]])
            keys = tuple(_sort_key(e) for e in node["x"][node["g"] :])
            return GroupLimit(node["f"], node["k"], groups, keys, children[0], subqueries, order_sensitive)
        case "Expand":
            return _expand(node, children[0], subqueries, order_sensitive=order_sensitive)
        case "Generate":
            return Generate(tuple(node["o"]), children[0], subqueries, order_sensitive)
        case what if what in _TRANSPARENT:
            return Transparent(what, children[0], subqueries, order_sensitive)
    return OpaquePlan(node["n"], (*children, *subqueries), order_sensitive)


def _split(parts: Sequence[Expression], at: int) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    return tuple(parts[:at]), tuple(parts[at:])


def _expand(node: Wire, child: Plan, subqueries: tuple[Plan, ...], *, order_sensitive: bool) -> Expand:
    width = node["g"]
    parts = node["x"]
    rows = [tuple(map(decode_expression, parts[i : i + width])) for i in range(0, len(parts) - width, width or 1)]
    return Expand(tuple(e["a"] for e in parts[len(parts) - width :]), tuple(rows), child, subqueries, order_sensitive)


def _sort_key(e: Wire) -> SortKey:
    """``{"f": "SortOrder", "o": [descending, NULLs first], "c": [expression, ...]}``"""
    descending, nulls_first = e["o"]
    return SortKey(decode_expression(e["c"][0]), bool(descending), bool(nulls_first))


def decode_scan(node: Wire, settings: Settings) -> Scan:
    """A table's scan with its columns."""
    case_sensitive = node.get("cs", settings.case_sensitive)
    columns = tuple(_scan_column(*column, case_sensitive) for column in node["cols"])
    if any(c.kind not in _KINDS for c in columns):
        raise WireError(f"a column of {node['table']} is of a kind that is none of {', '.join(_KINDS)}")
    return Scan(
        id=node["id"],
        table=node["table"],
        format=node["format"],
        listing=node.get("fp", ""),
        columns=columns,
        files=node.get("files", 0),
        bytes=node.get("bytes", 0),
        declined=node.get("declined", ""),
        lossy=node.get("lossy") == 1,
        decided=node.get("decided", False),
        skipped=base64.b64decode(node.get("skipped", "")),
        instance_id=node.get("use", -1),
    )


# The early and the late step name the same columns, each of them many times.
@lru_cache(maxsize=10_000)
def _scan_column(id_: int, name: str, type_: str, kind: str, default: int, case_sensitive: bool) -> ScanColumn:
    return ScanColumn(id_, name, parse_type(type_), kind, case_sensitive, bool(default))  # type: ignore[arg-type]


@lru_cache(maxsize=10_000)
def _column(id_: int, name: str, type_: str) -> Column:
    return Column(id_, name, parse_type(type_))


def _varies(e: Wire) -> bool:
    return e.get("d") == 0 or any(map(_varies, e.get("c", ())))


def decode_expression(e: Wire) -> Expression:
    """An expression; whatever is not modelled becomes a Call (deterministic) or Opaque (anything else)."""
    if "a" in e:
        return _column(e["a"], e["n"], e["t"])
    type_ = parse_type(e["t"])
    parameters = e.get("p", "")
    if "v" in e:
        return _literal(e["v"], type_, parameters)
    function: str = e["f"]
    args = tuple(decode_expression(child) for child in e["c"])
    if e.get("d") == 0:
        return Opaque(function, f"{function} is not deterministic", type_, args, parameters)
    ref = e.get("k", NOT_EVALUABLE)
    if function in COMPARISONS:
        return Compare(COMPARISONS[function], args[0], args[1], ref=ref)
    match function, args:
        case "And", _:
            return _balanced(And, args)
        case "Or", _:
            return _balanced(Or, _with_lists(args))
        case "Not", (child,):
            return Not(child)
        case "IsNull", (child,):
            return IsNull(child, ref=ref)
        case "IsNotNull", (child,):
            return IsNotNull(child, ref=ref)
        case "In", (child, *values) if all(isinstance(v, Literal) for v in values):
            return In(child, tuple(v.value for v in values if isinstance(v, Literal)), ref=ref)
        case "InSet", (child,):
            members = [_literal(v, child.type) for v in e["vs"]]
            if all(isinstance(m, Literal) for m in members):
                return In(child, tuple(m.value for m in members if isinstance(m, Literal)), ref=ref)
        case "StartsWith", (child, Literal(value=bytes(prefix))):
            return StartsWith(child, prefix, ref=ref)
        case "Like", (child, Literal(value=bytes(pattern))):
            return Like(child, pattern.decode("utf-8", "surrogateescape"), e["e"], ref=ref)
        case "GetStructField", (Column() as child,):
            return replace(child, type=type_, path=(*child.path, e["n"]), positions=(*child.positions, e["o"]))
        case "Alias", (child,):
            return Alias(e["i"], e["n"], child, type_)
        case _:
            pass
    if function == "AggregateExpression":
        return Opaque(function, "an aggregate is a value of many rows", type_, args, parameters)
    if function.endswith(("Subquery", "Exists", "ListQuery", "Udf", "UDF")):
        why = f"the value of {function} is not known before the query runs"
        return Opaque(function, why, type_, args, parameters)
    return Call(function, args, type_, e.get("z", ""), e.get("u", ""), parameters, ref)


def _with_lists(parts: Sequence[Expression]) -> Sequence[Expression]:
    """``x = 1 OR x = 2`` as ``x IN (1, 2)``, which means the same and is one search instead of one test a value."""
    values: dict[Column, list[Value]] = {}
    others: list[Expression] = []
    for part in parts:
        match part:
            case Compare("=", Column() as column, Literal(value, type_)) if type_ == column.type:
                values.setdefault(column, []).append(value)
            case _:
                others.append(part)
    lists = [
        In(column, tuple(found)) if len(found) > 1 else Compare("=", column, Literal(found[0], column.type))
        for column, found in values.items()
    ]
    return [*lists, *others]


def _balanced(kind: Callable[[Expression, Expression], Expression], parts: Sequence[Expression]) -> Expression:
    """A chain of ANDs or ORs as a shallow tree: Spark's own can nest a thousand deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return kind(_balanced(kind, parts[:middle]), _balanced(kind, parts[middle:]))


def _literal(wire: object, type_: DataType, parameters: str = "") -> Expression:
    try:
        value = decode_value(wire, type_)
    except WireError as problem:
        return Opaque("literal", str(problem), type_, parameters=parameters or repr(wire))
    return Literal(value, type_, below_zero=isinstance(value, float) and math.copysign(1, value) < 0)
