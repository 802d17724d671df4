"""Writes docs/functions.md from the rules and the notes beside them: ``python -m tools.functions_table``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from secateur.evaluate.rules import RULES, casts, times
from tools.function_notes import SECTIONS, Note, cast_notes, notes, predicate_notes

PAGE = Path(__file__).parent.parent / "docs" / "functions.md"
INTRODUCTION = """# What is known of each function

For each function a rule derives the range of the result in a file from the ranges of its arguments.
A function without a rule gives up, and the file is kept. Both questions rest on the derived range:

- *may* (can the file be skipped?): `range`, if the derived range misses the wanted values;
  `constant`, only if the arguments have one value each in the file.
- *must* (do all rows match?): `range` or `constant` likewise, and no row may make the result NULL
  (or NaN, where that matters). A rule that can fail (overflow, division by zero) makes NULL
  possible.

Whatever the function, in files where its columns have one value each Spark evaluates the
expression.

This page is made from the code by `python -m tools.functions_table`; to change it, change
`tools/function_notes.py`.
"""


def page() -> str:
    """The whole page; a rule without a note, or a note without a rule, is an error that says what to do."""
    parts = [INTRODUCTION, "## Predicates\n", _table(predicate_notes(), predicates=True)]
    seen: set[str] = set()
    for title, text in SECTIONS.items():
        found = list(notes(text))
        seen |= {note.function for note in found}
        parts += [f"## {title}\n", _table(found)]
    if missing := sorted(set(RULES) - seen):
        raise ValueError(
            f"no note on the rules of {', '.join(missing)}: add a line each to tools/function_notes.py, "
            "which reads: Spark's class | SQL | what it derives | may | must | where it gives up and why"
        )
    if superfluous := sorted(seen - set(RULES)):
        raise ValueError(
            f"there are notes on {', '.join(superfluous)} but no rules: take the lines off tools/function_notes.py"
        )
    parts += ["## Casts\n", _casts()]
    return "\n".join(parts)


def _table(rows: Iterable[Note], *, predicates: bool = False) -> str:
    lines = ["| " + ("predicate" if predicates else "SQL | Spark's class") + " | derives | may | must | gives up |"]
    lines.append("|---" * (5 if predicates else 6) + "|")
    for note in rows:
        first = [note.sql] if predicates else [note.sql, f"`{note.function}`"]
        cells = [*first, note.derives, note.may, note.must, note.gives_up]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _casts() -> str:
    rows = list(cast_notes())
    noted = {types for types, _, _ in rows}
    pairs = {
        "interval to interval" if source.startswith("interval") else f"{source} to {target}"
        for source, target in (*casts.CASTS, *times.CASTS)
    }
    if missing := sorted(pairs - noted):
        raise ValueError(
            f"no note on the casts of {', '.join(missing)}: add a line each to the casts in src/secateur/evaluate/"
            "tools/function_notes.py, which reads: from to to | what it derives | where it gives up and why"
        )
    if superfluous := sorted(noted - pairs):
        raise ValueError(f"there are notes on the casts of {', '.join(superfluous)} but no rules: take the lines off")
    lines = ["| cast | derives | gives up |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, "| anything else | no rule | a string has to be parsed |", ""])


if __name__ == "__main__":
    PAGE.write_text(page())
