"""How the parts that passes return become one decision, what is refused, and what of it goes to the JVM."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from secateur.bridge.encode import encode_edit
from secateur.decision.merge import ScanDecision, check, merged
from secateur.decision.parts import AddPredicate, AskAtRuntime, Edit, Keep, Part, ReadFirst, ReadOnDriver
from secateur.decision.records import JoinRecord
from secateur.decision.runtime import BoundaryRequest, KeysRequest, RowFilter, RuntimeRequest
from secateur.errors import WireError
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Compare, Expression, IsNull, Literal, Or
from secateur.plan.nodes import Scan
from secateur.plan.types import parse_type
from secateur.reasons import Reason

INT = parse_type("int")
A = Column(7, "a", INT)
SCAN = Scan(3, "t", "parquet", "fp", ())


def mask(text: str) -> Mask:
    """Flags as text: ``+`` for a file that is kept."""
    return np.array([sign == "+" for sign in text])


def flags(encoded: str, count: int = 4) -> str:
    bits = np.unpackbits(np.frombuffer(base64.b64decode(encoded), np.uint8), bitorder="little", count=count)
    return "".join("+" if bit else "-" for bit in bits)


@dataclass(frozen=True)
class Asking:
    """Something to be found out at run time."""

    request: RuntimeRequest
    name: str = "test"

    def describe(self) -> str:
        return "something is found out"

    def condition(self, values: Sequence[object]) -> Expression | None:
        return None


def decided(*parts: Part) -> ScanDecision:
    return merged(ScanDecision(mask("++++")), parts)


def test_masks_narrow_and_needs_add_up() -> None:
    after = decided(Keep(mask("+++-"), needs_scans_unchanged=frozenset({1})), Keep(mask("+---"), True, frozenset({2})))
    keep = after.one(Keep)
    assert keep is not None
    assert (after.kept is keep.files, keep.files.tolist()) == (True, [True, False, False, False])
    assert (keep.needs_kept_unchanged, keep.needs_scans_unchanged) == (True, frozenset({1, 2}))
    assert len(after.edits) == 1


def test_a_mask_that_was_decided_cannot_be_written_to() -> None:
    after = decided(Keep(mask("++--")))
    assert after.kept is not None
    with pytest.raises(ValueError, match="read-only"):
        after.kept[0] = False


def test_of_questions_the_first_counts_and_of_files_to_read_first_the_last() -> None:
    first, second = (AskAtRuntime(Asking(BoundaryRequest(0, count, count, True, mask("+---")))) for count in (1, 2))
    after = decided(first, ReadFirst(mask("+---")), second, ReadFirst(mask("-+--")))
    assert after.all(AskAtRuntime) == (first,)
    assert [edit.files.tolist() for edit in after.all(ReadFirst)] == [[False, True, False, False]]


def test_all_else_is_kept_in_order() -> None:
    one, two = Reason("a", "b"), Reason("c", "d")
    join = JoinRecord("part", "k", 1, 4, 2)
    less, more = AddPredicate(Compare("<", A, Literal(5, INT))), AddPredicate(Compare(">", A, Literal(1, INT)))
    after = decided(one, less, join, two, more)
    assert (after.reasons, after.joins, after.all(AddPredicate)) == ((one, two), (join,), (less, more))


REFUSED: dict[str, tuple[int, Part, str]] = {
    "an unknown scan": (9, Keep(mask("++++")), "not in the query"),
    "a reason for one": (9, Reason("a", "b"), "not in the query"),
    "a scan below something random": (2, ReadOnDriver(1, 1), "below something random"),
    "a scan without statistics": (1, AddPredicate(IsNull(A)), "no statistics"),
    "another number of files": (0, Keep(mask("+++")), "which has"),
    "no flags": (0, Keep(np.ones(4, np.int64)), "which has"),
    "files that were ruled out": (0, Keep(mask("++++")), "ruled out"),
    "such files first": (0, ReadFirst(mask("---+")), "ruled out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_narrowing_is_refused(name: str) -> None:
    id_, part, words = REFUSED[name]
    decision = {0: ScanDecision(mask("+++-")), 1: ScanDecision(), 2: ScanDecision(mask("++++"))}
    with pytest.raises(ValueError, match=words):
        check([(id_, part)], decision, {2})


def test_a_choice_of_what_is_left_is_not_refused() -> None:
    check([(0, Keep(mask("+---"))), (0, ReadFirst(mask("++--"))), (1, Reason("a", "b"))], {
        0: ScanDecision(mask("+++-")), 1: ScanDecision()
    }, ())  # fmt: skip


@pytest.mark.parametrize("parts", [(), (Reason("a", "b"),), (JoinRecord("part", "k", 1, 4, 2),)], ids=len)
def test_what_changes_nothing_is_not_sent(parts: tuple[Part, ...]) -> None:
    assert encode_edit(SCAN, decided(*parts)) is None


def test_nothing_is_sent_of_a_scan_without_statistics() -> None:
    assert encode_edit(SCAN, ScanDecision(edits=(ReadOnDriver(1, 1),))) is None


def test_every_kind_of_edit_has_its_place_on_the_wire() -> None:
    plain = Or(IsNull(A), Compare(">=", A, Literal(5, INT)))
    edit = encode_edit(
        SCAN,
        decided(
            Keep(mask("+++-"), True, frozenset({8, 2})),
            ReadFirst(mask("++--")),
            ReadOnDriver(3, 10),
            AddPredicate(plain),
            AddPredicate(IsNull(A), needs_kept_unchanged=True),
            AskAtRuntime(Asking(BoundaryRequest(4, 10, 1, False, mask("+---"), RowFilter(A, -5, 5)))),
        ),
        "test-1",
    )
    assert edit is not None
    assert (edit["scan"], edit["fp"], edit["skipped"], flags(edit["skip"])) == (3, "fp", 1, "---+")
    assert (edit["rows"], edit["relies"], edit["driver"], flags(edit["first"])) == (1, [2, 8], 1, "++--")
    at_least = {"f": "GreaterThanOrEqual", "a": 7, "v": "5"}
    assert edit["implied"] == [{"f": "Or", "c": [{"f": "IsNull", "a": 7}, at_least]}, {"f": "IsNull", "a": 7}]
    assert edit["counted"] == 1
    runtime = edit["runtime"]
    assert (runtime["id"], runtime["at"], runtime["count"]) == ("test-1", 4, 10)
    assert (runtime["values"], runtime["at_least"]) == (1, 0)
    assert {"a": 7, "low": "-5", "high": "5"} in runtime.values()


@pytest.mark.parametrize("bit_map", [None, (1, 90, 3)])
def test_keys_are_asked_for_as_a_list_or_as_a_map(bit_map: tuple[int, int, int] | None) -> None:
    asking = AskAtRuntime(Asking(KeysRequest(4, True, A, "a", 100, bit_map)))
    edit = encode_edit(SCAN, decided(asking), "keys-1")
    assert edit is not None
    assert (edit["rows"], edit["skipped"]) == (0, 0)
    runtime = edit["runtime"]
    assert (runtime["at"], runtime["left"], runtime["key"], runtime["about"]) == (4, 1, 7, "a")
    assert runtime.get("most") == (100 if bit_map is None else None)
    assert runtime.get("map") == (None if bit_map is None else {"low": 1, "high": 90, "width": 3})


def test_a_kind_of_edit_that_the_bridge_does_not_know_is_no_edit_at_all() -> None:
    class Unheard(Edit):
        pass

    with pytest.raises(WireError, match="Unheard"):
        encode_edit(SCAN, decided(Unheard()))
