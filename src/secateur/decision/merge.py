"""One decision per scan, and how the parts that passes return become one.

=============  ===========================================================================================
part           beside what earlier passes decided
=============  ===========================================================================================
Keep           has to narrow it; what both need unchanged is needed in the end
ReadFirst      the last one counts, for it knows which files are left
AskAtRuntime   the first one counts: a scan waits for one thing
other edits    are added
Reason         are added
JoinRecord     are added
=============  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np

from secateur.decision.parts import AskAtRuntime, Edit, Keep, Part, ReadFirst
from secateur.decision.records import JoinRecord, PassRecord
from secateur.plan.columns import Mask
from secateur.reasons import Reason

E = TypeVar("E", bound=Edit)


@dataclass(frozen=True, slots=True)
class ScanDecision:
    """What all passes decided about one scan, what each of them did, and why it did not do more."""

    kept: Mask | None = None
    """The files that are left, None if nothing is known of the scan's files."""
    edits: tuple[Edit, ...] = ()
    records: tuple[PassRecord, ...] = ()
    """The time in a record is that of the whole pass."""
    reasons: tuple[Reason, ...] = ()
    joins: tuple[JoinRecord, ...] = ()

    def all(self, kind: type[E]) -> tuple[E, ...]:
        """The edits of one kind."""
        return tuple(edit for edit in self.edits if isinstance(edit, kind))

    def one(self, kind: type[E]) -> E | None:
        """The edit of a kind of which there is one at most."""
        return next(iter(self.all(kind)), None)


Decision: TypeAlias = Mapping[int, ScanDecision]
"""By the id of the scan; every scan of the query has one."""


def merged(before: ScanDecision, parts: Iterable[Part]) -> ScanDecision:
    """The decision with what one pass adds to it."""
    after = before
    for part in parts:
        match part:
            case Reason():
                after = replace(after, reasons=(*after.reasons, part))
            case JoinRecord():
                after = replace(after, joins=(*after.joins, part))
            case Keep():
                keep = _together(after.one(Keep), part)
                after = replace(after, kept=read_only(keep.files), edits=(*_without(after, Keep), keep))
            case ReadFirst():
                after = replace(after, edits=(*_without(after, ReadFirst), part))
            case AskAtRuntime() if after.one(AskAtRuntime) is not None:
                pass
            case _:
                after = replace(after, edits=(*after.edits, part))
    return after


def check(parts: Iterable[tuple[int, Part]], decision: Decision, order_sensitive: Collection[int]) -> None:
    """Refuse what is no narrowing of what was decided before."""
    for id_, part in parts:
        if id_ not in decision:
            raise ValueError(f"it decided about scan {id_}, which is not in the query")
        if not isinstance(part, Edit):
            continue
        kept = decision[id_].kept
        if id_ in order_sensitive:
            raise ValueError(f"it narrowed scan {id_}, which is below something random")
        if kept is None:
            raise ValueError(f"it narrowed scan {id_}, of which no statistics were given")
        for mask in part.masks:
            if mask.dtype != np.bool_ or mask.shape != kept.shape:
                raise ValueError(f"it gave {mask.dtype} {mask.shape} for scan {id_}, which has {kept.shape} files")
            if (mask > kept).any():
                raise ValueError(f"it brought back files of scan {id_} that an earlier pass had ruled out")


def read_only(mask: Mask) -> Mask:
    """The mask itself; a pass that writes into what it was given fails instead of changing the decision."""
    mask.flags.writeable = False
    return mask


def _together(before: Keep | None, new: Keep) -> Keep:
    if before is None:
        return new
    return Keep(
        new.files,
        before.needs_kept_unchanged or new.needs_kept_unchanged,
        before.needs_scans_unchanged | new.needs_scans_unchanged,
    )


def _without(decision: ScanDecision, kind: type[Edit]) -> tuple[Edit, ...]:
    return tuple(edit for edit in decision.edits if not isinstance(edit, kind))
