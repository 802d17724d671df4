"""Why a predicate cannot rule out files: what stood in the way, in a sentence with the remedy.

======================  ==================================================================================
code                    the predicate holds
======================  ==================================================================================
unsupported-expression  something for which there is no rule: a function, a cast, a subquery, a nested field
hidden-column           a column that Spark makes up while reading, such as ``_metadata.file_path``
unsupported-type        a column whose values secateur does not compare
no-statistics           a column of which no file's bounds (or, for IS NULL, NULL counts) are known
nan-unknown             a float column that NaN could satisfy, and nobody counted its NaNs
======================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator

from secateur.evaluate.evaluator import comparable
from secateur.evaluate.expression_ranges import Columns, column_source
from secateur.evaluate.rules import RULES
from secateur.evaluate.rules.casts import CASTS
from secateur.evaluate.rules.intervals import kind
from secateur.plan.expressions import (
    Alias,
    And,
    Call,
    Column,
    Compare,
    Expression,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    walk,
)
from secateur.plan.wording import in_words
from secateur.reasons import Reason
from secateur.stats.file_stats import ColumnStats, FileStats

_NO_RULE = (
    "which has no rule and can skip only files in which its columns have one value each; "
    "compare the bare column instead"
)


def obstacles(predicate: Expression, stats: FileStats, columns: Columns) -> list[Reason]:
    """What keeps the predicate from ruling out files, each obstacle once; empty if statistics simply overlap it."""
    return list(dict.fromkeys(_obstacles(predicate, stats, columns, negated=False)))


def _obstacles(e: Expression, stats: FileStats, columns: Columns, *, negated: bool) -> Iterator[Reason]:
    match e:
        case And(left, right) | Or(left, right):
            yield from _obstacles(left, stats, columns, negated=negated)
            yield from _obstacles(right, stats, columns, negated=negated)
        case Not(child):
            yield from _obstacles(child, stats, columns, negated=not negated)
        case Literal():
            return
        case IsNull(Column() as column) | IsNotNull(Column() as column):
            yield from _column(column, stats, columns, counts=True)
        case IsNull(child) | IsNotNull(child):
            yield from _obstacles(child, stats, columns, negated=negated)
        case Compare(_, Column() as column, Literal(value, type_)) | Compare(
            _, Literal(value, type_), Column() as column
        ) if value is not None and not comparable(column.type, type_):
            yield Reason(
                "unsupported-expression",
                f"{in_words(e)} compares a column of type {column.type} with a literal of type {type_}; "
                f"write the literal as {column.type}.",
            )
        case Compare(op, Column() as column, Literal()):
            yield from _column(column, stats, columns, nan=(op in (">", ">=")) != negated)
        case Compare(op, Literal(), Column() as column):
            yield from _column(column, stats, columns, nan=(op in ("<", "<=")) != negated)
        case In(Column() as column):
            yield from _column(column, stats, columns, nan=negated)
        case Column() as column:
            yield from _column(column, stats, columns)
        case StartsWith(Column() as column) | Like(Column() as column):
            yield from _column(column, stats, columns)
        case Compare() | In() | StartsWith() | Like() | Alias() | Call() | Opaque():
            yield from _computed(e, stats, columns, negated=negated)


def _computed(e: Expression, stats: FileStats, columns: Columns, *, negated: bool) -> Iterator[Reason]:
    """A test of something computed: either a part has no rule, or a column that it needs tells nothing."""
    culprit = next((part for part in walk(e) if not _has_rule(part)), None)
    if culprit is not None:
        yield _unsupported(culprit)
        return
    sides: list[tuple[Expression, bool]] = [(e, False)]
    if isinstance(e, Compare):
        sides = [(e.left, e.op in (">", ">=")), (e.right, e.op in ("<", "<="))]
    for side, above in sides:
        for part in walk(side):
            if isinstance(part, Column):
                yield from _column(part, stats, columns, nan=side.type.is_float and above != negated)


def _column(
    column: Column, stats: FileStats, columns: Columns, *, counts: bool = False, nan: bool = False
) -> Iterator[Reason]:
    source = column_source(column, columns)
    if source is None:
        yield Reason("unsupported-expression", f"{column.full_name} is not a column of the files.")
        return
    if source.kind == "hidden":
        yield Reason(
            "hidden-column",
            f"{column.full_name} is made by Spark while it reads, so no statistics describe it; "
            "filter on a column of the table as well.",
        )
        return
    if source.type.domain is None:
        yield Reason(
            "unsupported-type",
            f"{column.full_name} is of type {column.type}, whose values secateur does not compare; "
            "filter on a number, date, timestamp, boolean or plain string column as well.",
        )
        return
    found = stats.column(source)
    if found is None or not _tells(found, counts=counts):
        missing = "NULL count" if counts else "minimum and maximum"
        yield Reason(
            "no-statistics",
            f"No file has a {missing} of {column.full_name}; have the table's writer record statistics of this column.",
        )
    elif nan and source.type.is_float and found.nans.null_count:
        yield Reason(
            "nan-unknown",
            f"{column.full_name} may hold NaN, which Spark sorts above every number, and its NaNs were not counted; "
            f"add an upper limit, such as {column.full_name} < 1e300.",
        )


def _tells(found: ColumnStats, *, counts: bool) -> bool:
    if counts:
        return bool(found.nulls.null_count < len(found.nulls))
    return bool(min(found.low.null_count, found.high.null_count) < len(found.low))


def _has_rule(e: Expression) -> bool:
    match e:
        case Call("Cast", (child,), type_):
            return (kind(child.type), kind(type_)) in CASTS
        case Call(function):
            return function in RULES
        case Opaque():
            return False
    return True


def _unsupported(culprit: Expression) -> Reason:
    match culprit:
        case Call("Cast", (child,), type_):
            text = f"{in_words(culprit)} is a cast from {child.type} to {type_}, {_NO_RULE}."
        case Opaque(what, reason):
            text = f"secateur does not model {what} ({reason}); compare a bare column with a constant instead."
        case Call(function):
            text = f"{in_words(culprit)} uses the function {function.lower()}, {_NO_RULE}."
        case _:
            text = f"{in_words(culprit)} has no rule."
    return Reason("unsupported-expression", text)
