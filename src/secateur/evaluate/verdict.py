"""What a predicate can evaluate to on the rows of each entry: TRUE, FALSE, NULL, or several of them.

A :class:`Verdict` holds three upper bounds, one flag per entry each: ``can_true`` is False only if no row of the entry
makes the predicate TRUE, and so on. Both questions of rule S2 follow: ``may`` is ``can_true``; ``must`` is "neither
FALSE nor NULL is possible". The connectives are Kleene's, applied to what is possible on either side (T, F, N say that
a side can be TRUE, FALSE, NULL; the sides are taken as independent, which only ever adds possibilities):

=========  ===============  ===============  ==================================
           can be TRUE      can be FALSE     can be NULL
=========  ===============  ===============  ==================================
NOT a      Fa               Ta               Na
a AND b    Ta and Tb        Fa or Fb         Na and (Tb or Nb), or Nb and Ta
a OR b     Ta or Tb         Fa and Fb        Na and (Fb or Nb), or Nb and Fa
=========  ===============  ===============  ==================================

Nothing is computed before it is asked for: most decisions only ask ``may``, which needs one of the three flags of every
part. Flags that are the same for all entries are a plain bool (see :data:`Flags`) and cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from secateur.plan.columns import Mask

Flags: TypeAlias = Mask | bool
"""One flag per entry, or one for all of them."""

Lazy: TypeAlias = Callable[[], Flags]


def both(a: Flags, b: Flags) -> Flags:
    """Where both flags are set."""
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return a & b


def either(a: Flags, b: Flags) -> Flags:
    """Where at least one of the flags is set."""
    if isinstance(a, bool):
        return True if a else b
    if isinstance(b, bool):
        return True if b else a
    return a | b


def neither(a: Flags, b: Flags) -> Flags:
    """Where none of the flags is set."""
    flags = either(a, b)
    return not flags if isinstance(flags, bool) else ~flags


class _Once:
    """What a function returns, asked once; ten times quicker to make than ``functools.cache``, and many are made."""

    __slots__ = ("_ask", "_said")

    def __init__(self, ask: Lazy) -> None:
        self._ask: Lazy | None = ask
        self._said: Flags = False

    def __call__(self) -> Flags:
        if self._ask is not None:
            self._said, self._ask = self._ask(), None
        return self._said


class Verdict:
    """What a predicate can evaluate to, for each of ``count`` entries; the masks are shared, so read-only.

    >>> v = Verdict(2, true=lambda: np.array([True, False]), false=lambda: np.array([True, True]))
    >>> v.may.tolist(), v.must.tolist(), v.negated().may.tolist()
    ([True, False], [False, False], [True, True])
    """

    __slots__ = ("_false", "_null", "_true", "count")

    def __init__(self, count: int, *, true: Lazy = bool, false: Lazy = bool, null: Lazy = bool) -> None:
        self.count = count
        self._true = _Once(true)
        self._false = _Once(false)
        self._null = _Once(null)

    @staticmethod
    def unknown(count: int) -> Verdict:
        """Anything is possible: the verdict on whatever is not modelled (rule S1)."""
        return Verdict(count, true=_always, false=_always, null=_always)

    @property
    def can_true(self) -> Mask:
        return self._mask(self._true())

    @property
    def can_false(self) -> Mask:
        return self._mask(self._false())

    @property
    def can_null(self) -> Mask:
        return self._mask(self._null())

    @property
    def may(self) -> Mask:
        """False only where no row can make the predicate TRUE (rule S2)."""
        return self.can_true

    @property
    def must(self) -> Mask:
        """True only where every row makes the predicate TRUE (rule S2), so also where there is no row."""
        return self._mask(neither(self._false(), self._null()))

    def flags(self, *, false: bool = False) -> Flags:
        """Where it can be TRUE (or FALSE), as one flag for all entries if that is known."""
        return self._false() if false else self._true()

    def negated(self) -> Verdict:
        """The verdict on ``NOT p``."""
        return Verdict(self.count, true=self._false, false=self._true, null=self._null)

    def and_(self, other: Verdict) -> Verdict:
        """The verdict on ``p AND q``."""
        return Verdict(
            self.count,
            true=lambda: both(self._true(), other._true()),
            false=lambda: either(self._false(), other._false()),
            null=lambda: either(
                both(self._null(), either(other._true(), other._null())), both(other._null(), self._true())
            ),
        )

    def or_(self, other: Verdict) -> Verdict:
        """The verdict on ``p OR q``."""
        return self.negated().and_(other.negated()).negated()

    def is_null(self) -> Verdict:
        """The verdict on ``p IS NULL``."""
        return Verdict(self.count, true=self._null, false=lambda: either(self._true(), self._false()))

    def null_as_false(self) -> Verdict:
        """The verdict if every NULL were FALSE, as ``<=>`` has it."""
        return Verdict(self.count, true=self._true, false=lambda: either(self._false(), self._null()))

    def false_as_null(self) -> Verdict:
        """The verdict if every FALSE were NULL, as ``IN`` with a NULL among its values has it."""
        return Verdict(self.count, true=self._true, null=lambda: either(self._false(), self._null()))

    def _mask(self, flags: Flags) -> Mask:
        if isinstance(flags, bool):
            return np.broadcast_to(np.bool_(flags), self.count)
        flags.flags.writeable = False
        return flags


def _always() -> Flags:
    return True
