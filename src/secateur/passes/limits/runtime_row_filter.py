"""What a scan waits for as a plain comparison, so that it reaches the row groups and pages of Parquet, too.

A value that becomes known at run time chooses files, and of those that are left each row is compared with it::

    ts IS NULL OR ts >= (the boundary, or '0001-01-01' if there is none)

Spark hands a comparison of a column with a scalar subquery to Parquet once the subquery has run. It has to be TRUE for
every row that may be needed, also when the subquery found nothing out: so the subquery always gives a value, in the
worst case one of the *ends* of the type, beyond which there are no values. NULLs always pass.

Parquet's own skipping has traps (see :mod:`secateur.passes.filter.add_implied_predicates`), so these are left out:

* floats: a row group's maximum may leave NaN out, and -0.0 is less than 0.0 to Parquet;
* strings: those that are no valid UTF-8 change on their way to Parquet, and there is no greatest one;
* decimals unless the bounds of all kept files are known: old writers compared their bytes, and Parquet believes them;
* dates and timestamps unless those bounds are known, none before the calendar changed and none after the year 9999.

Iceberg takes literals only, while the query is planned: there it is files alone that are chosen.
"""

from __future__ import annotations

from decimal import Decimal

from secateur.decision.runtime import RowFilter
from secateur.passes.filter.implied_predicates import EARLIEST, known_ends
from secateur.plan.columns import Mask
from secateur.plan.expressions import Column, Expression
from secateur.plan.nodes import Scan
from secateur.plan.types import DataType
from secateur.stats.file_stats import FileStats

_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31: any others do not survive every conversion on their way to Parquet."""
_DAY = 86_400_000_000


def row_filter(expression: Expression, scan: Scan, stats: FileStats, kept: Mask) -> RowFilter | None:
    """How an expression is compared row by row, None if that is not sound or of no use.

    >>> from secateur.plan.types import parse_type
    >>> ends_of(parse_type("tinyint")), ends_of(parse_type("decimal(3,1)")), ends_of(parse_type("double"))
    ((-128, 127), (Decimal('-99.9'), Decimal('99.9')), None)
    """
    if not isinstance(expression, Column) or expression.path or scan.format not in ("parquet", "delta"):
        return None
    column = next((c for c in scan.columns if c.id == expression.id), None)
    if column is None or column.kind != "data" or column.type != expression.type:
        return None
    ends = ends_of(column.type)
    if ends is None:
        return None
    if column.type.name not in _WHOLE:
        low, high, _ = known_ends(column, stats, kept)
        if low is None or high is None:
            return None
        first = EARLIEST.get(column.type.name)
        if first is not None and not (
            isinstance(low, int) and isinstance(high, int) and first <= low <= high <= ends[1]
        ):
            return None
    return RowFilter(expression, *ends)


def ends_of(type_: DataType) -> tuple[int, int] | tuple[Decimal, Decimal] | None:
    """The least and greatest value of a type that may be compared so."""
    if type_.name in _WHOLE:
        half = 2 ** (_WHOLE[type_.name] - 1)
        return -half, half - 1
    if type_.name == "decimal":
        most = Decimal("9" * type_.precision).scaleb(-type_.scale)
        return -most, most
    if type_.name == "date":
        return _FIRST_DAY, _LAST_DAY
    return (_FIRST_DAY * _DAY, (_LAST_DAY + 1) * _DAY - 1) if type_.name in EARLIEST else None
