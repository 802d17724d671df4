"""Decisions, encoded into the edits that the JVM applies: one function for each kind of edit.

* edit ``{"scan": id, "fp": fingerprint, "skip": base64 of one bit per file, "skipped": count}``, with ``"rows": 1``
  if it is void as soon as one of the files that are kept has changed, with ``"relies"`` for other scans of which no
  file may have changed, and with ``"implied"`` for a list of conditions
  to be put above the scan: ``{"f": class, "a": column, "v": value as text}``, ``{"f": "IsNull", "a": column}`` or
  ``{"f": "Or", "c": [both]}``; ``"first"`` for files to be read before the others if the plan ends with a LIMIT, as for
  ``"skip"``; ``"counted": 1`` if these are void as soon as a file that is kept has changed; and with
  ``"runtime": {"id": text, "at": number of a sort, "count": rows, "values": how many of them need one, "at_least": 1 if
  the boundary is the least, "probe": base64 of one bit per file}`` if the scan is
  to ask once more while the query runs, given where the first rows of a sort end in the files of a probe, or
  ``{"id": text, "at": number of a join, "left": 1 if its left side tells, "key": column, "about": text}`` with
  ``"most": keys`` or ``"map": {"low", "high", "width"}`` for the keys of one side of a join; either with ``"compare":
  {"a": column, "low", "high"}`` if rows are to be compared, too, with what was found or else with one of these ends.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from secateur.bridge.decode import COMPARISONS, Wire
from secateur.decision.merge import ScanDecision
from secateur.decision.parts import AddPredicate, AskAtRuntime, Edit, Keep, ReadFirst, ReadOnDriver
from secateur.decision.runtime import BoundaryRequest, KeysRequest, RowFilter
from secateur.errors import WireError
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Compare, Expression, IsNull, Literal, Or, walk
from secateur.plan.nodes import Scan

_CLASSES = {op: name for name, op in COMPARISONS.items()}
E = TypeVar("E", bound=Edit)


def encode_mask(mask: Mask) -> str:
    """One bit per file, as Java's ``BitSet`` has them, in base64."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode("ascii")


def encode_edit(scan: Scan, decision: ScanDecision, runtime_id: str = "") -> Wire | None:
    """The edit that carries out what was decided about a scan, None if that changes nothing.

    ``runtime_id`` is the name by which the answer to what it asks at run time is found.
    """
    if decision.kept is None or not decision.edits:
        return None
    skip = ~decision.kept
    edit: Wire = {
        "scan": scan.id,
        "fp": scan.listing,
        "skip": encode_mask(skip),
        "skipped": int(np.count_nonzero(skip)),
        "rows": 0,
    }
    if unknown := {type(each).__name__ for each in decision.edits if type(each) not in _ENCODERS}:
        raise WireError(f"an edit of the kind {', '.join(sorted(unknown))} has no encoder")
    for kind, encode in _ENCODERS.items():
        found = decision.all(kind)
        if found:
            edit |= encode(found, decision.kept)
    if runtime_id:
        edit["runtime"]["id"] = runtime_id
    return edit


def _keep(edits: tuple[Keep, ...], kept: Mask) -> Wire:
    (edit,) = edits
    wire: Wire = {"rows": int(edit.needs_kept_unchanged)}
    return wire | ({"relies": sorted(edit.needs_scans_unchanged)} if edit.needs_scans_unchanged else {})


def _first(edits: tuple[ReadFirst, ...], kept: Mask) -> Wire:
    return {"first": encode_mask(edits[-1].files & kept)}


def _driver(edits: tuple[ReadOnDriver, ...], kept: Mask) -> Wire:
    return {"driver": 1}


def _predicates(edits: tuple[AddPredicate, ...], kept: Mask) -> Wire:
    counted = int(any(each.needs_kept_unchanged for each in edits))
    return {"implied": [encode_condition(each.predicate) for each in edits], "counted": counted}


def _runtime(edits: tuple[AskAtRuntime, ...], kept: Mask) -> Wire:
    return {"runtime": encode_request(edits[0])}


_ENCODERS: Mapping[type[Edit], Callable[[Any, Mask], Wire]] = {
    Keep: _keep,
    ReadFirst: _first,
    ReadOnDriver: _driver,
    AddPredicate: _predicates,
    AskAtRuntime: _runtime,
}


def encode_request(edit: AskAtRuntime) -> Wire:
    """What Spark has to find out while the query runs."""
    request = edit.predicate.request
    match request:
        case BoundaryRequest():
            wire: Wire = {"at": request.sort, "count": request.count, "probe": encode_mask(request.files)}
            wire |= {"values": request.values, "at_least": int(request.at_least)}
            return wire | _row_filter(request.row_filter)
        case KeysRequest(bit_map=(low, high, width)):
            return _keys(request) | {"map": {"low": low, "high": high, "width": width}}
        case KeysRequest():
            return _keys(request) | {"most": request.most} | _row_filter(request.row_filter)
    raise WireError(f"{edit.predicate.name} asks for something that the bridge cannot find out")


def _keys(request: KeysRequest) -> Wire:
    return {"at": request.join, "left": int(request.left), "key": request.key.id, "about": request.about}


def _row_filter(how: RowFilter | None) -> Wire:
    return {} if how is None else {"compare": {"a": how.column.id, "low": str(how.low), "high": str(how.high)}}


def encode_condition(e: Expression) -> Wire:
    """A comparison of a column with a literal of its type, IS NULL, or an OR of such; nothing else is ever sent."""
    if any(isinstance(part, Column) and part.path for part in walk(e)):
        raise WireError(f"{e} is about a field of a struct")
    match e:
        case Or(left, right):
            return {"f": "Or", "c": [encode_condition(left), encode_condition(right)]}
        case IsNull(Column(id_)):
            return {"f": "IsNull", "a": id_}
        case Compare(op, Column(id_, _, type_), Literal(value, of)) if type_ == of and value is not None:
            text = (
                value.decode() if isinstance(value, bytes) else repr(value) if isinstance(value, float) else str(value)
            )
            return {"f": _CLASSES[op], "a": id_, "v": text}
    raise WireError(f"{e} is not a plain condition")
