"""What passes returned and decided, as tests look at it."""

from __future__ import annotations

from typing import TypeVar

from secateur.decision.merge import Decision, ScanDecision
from secateur.decision.parts import AddPredicate, Keep, Part
from secateur.passes.contract import PassResult
from secateur.plan.columns import Mask

P = TypeVar("P", bound=Part)


def kept(decision: Decision, scan: int = 1) -> Mask:
    """The files of a scan that are left."""
    mask = decision[scan].kept
    assert mask is not None
    return mask


def all_kept(decision: Decision) -> dict[int, Mask]:
    """The files of each scan that are left, where something is known of them."""
    return {id_: kept(decision, id_) for id_, scan in decision.items() if scan.kept is not None}


def parts(result: PassResult, kind: type[P]) -> dict[int, P]:
    """The parts of one kind that a pass returned, by scan; the last one if there are several."""
    return {id_: part for id_, part in result if isinstance(part, kind)}


def implied(decision: Decision, scan: int = 1) -> tuple[AddPredicate, ...]:
    """The predicates that are put above a scan."""
    return decision[scan].all(AddPredicate)


def rests_on(scan: ScanDecision) -> frozenset[int]:
    """The scans whose files have to be as they were listed."""
    keep = scan.one(Keep)
    return frozenset() if keep is None else keep.needs_scans_unchanged
