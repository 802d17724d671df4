"""What each kind of join does with the rows of its two sides: one table, used by everything that looks past a join.

======================  ============================  ============================
kind                    left side                     right side
======================  ============================  ============================
Inner, Cross            restrictable, partnered       restrictable, partnered
LeftSemi                restrictable, partnered       partnered, hidden
LeftAnti                restrictable                  partnered, hidden
ExistenceJoin           restrictable, preserved       partnered, hidden
LeftOuter, LeftSingle   restrictable, preserved       partnered, filled
RightOuter              partnered, filled             restrictable, preserved
FullOuter               preserved, filled             preserved, filled
======================  ============================  ============================

In a left outer join a row of the right side without a partner does not come out, and whether a row of the left side has
one does not depend on it: so the right side is *partnered*. An anti join is alike: a row of its right side matters only
if it meets a row of the left. NOT IN is an anti join whose condition is no equality but ``a = b OR (a = b) IS NULL``.
LeftSingle is a LeftOuter that fails if a row has two partners.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JoinSide:
    """What a join does with the rows of one side."""

    restrictable: bool = False
    """What comes out for a row hangs on that row alone: leaving out other rows of this side changes nothing for it."""
    partnered: bool = False
    """A row matters only together with a row of the other side that the join's condition holds for."""
    preserved: bool = False
    """Every row comes out, with a partner or without."""
    filled: bool = False
    """Rows may come out with NULL in the place of all columns of this side."""
    hidden: bool = False
    """Its columns do not come out."""


@dataclass(frozen=True, slots=True)
class JoinKind:
    """Both sides of one kind of join, and what to call it in a sentence."""

    left: JoinSide
    right: JoinSide
    words: str
    may_fail: bool = False
    """It fails on some rows, so that rows which are left out, or read once more, could change whether it does."""

    @property
    def needs_partners(self) -> bool:
        """Only rows with a partner come out, on both sides: each side bounds the other."""
        return self.left.partnered and self.right.partnered


_BOTH = JoinSide(restrictable=True, partnered=True)
_KEPT = JoinSide(restrictable=True, preserved=True)
_LOOKED_UP = JoinSide(partnered=True, filled=True)
_TESTED = JoinSide(partnered=True, hidden=True)
_FULL = JoinSide(preserved=True, filled=True)
UNKNOWN = JoinKind(JoinSide(filled=True), JoinSide(filled=True), "unknown")
"""Nothing is known of it, so nothing passes it (rule S1)."""

JOIN_KINDS: dict[str, JoinKind] = {
    "Inner": JoinKind(_BOTH, _BOTH, "inner"),
    "Cross": JoinKind(_BOTH, _BOTH, "cross"),
    "LeftSemi": JoinKind(_BOTH, _TESTED, "semi"),
    "LeftAnti": JoinKind(JoinSide(restrictable=True), _TESTED, "anti"),
    "ExistenceJoin": JoinKind(_KEPT, _TESTED, "existence"),
    "LeftOuter": JoinKind(_KEPT, _LOOKED_UP, "left outer"),
    "LeftSingle": JoinKind(_KEPT, _LOOKED_UP, "left single", may_fail=True),
    "RightOuter": JoinKind(_LOOKED_UP, _KEPT, "right outer"),
    "FullOuter": JoinKind(_FULL, _FULL, "full outer"),
}


def join_kind(name: str) -> JoinKind:
    """What is known of a kind of join by Spark's name for it.

    >>> join_kind("LeftOuter").right.filled, join_kind("SomethingNew").left.restrictable
    (True, False)
    """
    return JOIN_KINDS.get(name, UNKNOWN)
