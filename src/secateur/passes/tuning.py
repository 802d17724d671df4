"""What the passes may spend, and what they reckon reading at. Options carry the same values under other names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Time budgets, costs and sizes; the defaults here are those of the options."""

    filter_seconds: float = 0.5
    """How long filtering may take."""
    file_seconds: float = 0.001
    """What reading a file costs."""
    join_ranges: int = 1000
    """How many key ranges one side of a join passes to the other at most."""
    driver_bytes: int = 1 << 20
    """How large the files may be, together, that the driver reads itself; 0: none."""
