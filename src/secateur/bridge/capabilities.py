"""What works in a JVM: its Spark may be another one than secateur knows, and a connector may be absent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOT_ON_THE_CLASS_PATH = "not on the class path"


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that secateur does, and why not here, if it does not."""

    name: str
    reason: str = ""

    @property
    def works(self) -> bool:
        """Whether it works here."""
        return not self.reason


def as_text(capabilities: Iterable[Capability]) -> str:
    """One line for each.

    >>> print(as_text([Capability("filters"), Capability("delta", NOT_ON_THE_CLASS_PATH)]))
    filters  works
    delta    not on the class path
    """
    each = tuple(capabilities)
    width = max(len(c.name) for c in each)
    return "\n".join(f"{c.name:<{width}}  {c.reason or 'works'}" for c in each)
