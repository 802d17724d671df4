"""The columns that a scan reads, and masks over its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from secateur.plan.types import DataType

Mask: TypeAlias = npt.NDArray[np.bool_]
"""One flag for each file of a scan."""
Reading = tuple[str, DataType, str, bool, bool, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column as one scan reads it: where its values come from decides what is known of them."""

    id: int
    name: str
    type: DataType
    kind: OneOf["data", "partition", "hidden"] = "data"
    case_sensitive: bool = False
    has_default: bool = False
    """The column has an existence default, so a file that lacks it does not read as NULL."""
    path: tuple[str, ...] = ()
    """The fields on the way into a struct: then ``type`` is that of the last one, and ``name`` that of the struct."""

    @property
    def reads(self) -> Reading:
        """All but the id, which is new in every query."""
        return self.name, self.type, self.kind, self.case_sensitive, self.has_default, self.path
