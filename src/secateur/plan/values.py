"""Values on the wire and in the domains of their types."""

from __future__ import annotations

import math
from decimal import Decimal

from secateur.errors import WireError
from secateur.plan.expressions import Value
from secateur.plan.types import DataType


def decode_value(wire: object, type_: DataType) -> Value:
    """A value in its type's domain.

    >>> from secateur.plan.types import parse_type
    >>> decode_value("1.50", parse_type("decimal(3,2)")), decode_value("é", parse_type("string"))
    (Decimal('1.50'), b'\\xc3\\xa9')
    """
    if wire is None:
        return None
    match wire, type_.name:
        case int(), _ if type_.name not in ("float", "double", "decimal", "string") and type_.domain is not None:
            return int(wire)
        case int() | float() | "NaN" | "Infinity" | "-Infinity", "float" | "double":
            return float(wire)
        case str(), "decimal":
            return Decimal(wire)
        case str(), "string":
            return wire.encode()
        case {"hex": str(digits)}, "string":
            return bytes.fromhex(digits)
    raise WireError(f"secateur does not reason about values of type {type_}")


def encode_value(value: Value, type_: DataType) -> object:
    """A value in its type's domain as the JVM reads it.

    >>> from secateur.plan.types import parse_type
    >>> encode_value(Decimal("1.50"), parse_type("decimal(3,2)")), encode_value("é".encode(), parse_type("string"))
    ('1.50', 'é')
    """
    match value:
        case bytes():
            return value.decode()
        case Decimal():
            return f"{value:f}"
        case float():
            return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value
