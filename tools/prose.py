"""Checks the prose of the documentation, without Spark, in a second: ``python -m tools.prose``.

Lines outside code, tables and links are at most 100 characters long; paragraphs and sentences are short; and words
that make a reader stop are named, with a better one. ``codespell`` and ``pymarkdown`` do the rest: see ``make lint``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / ".github").rglob("*.md")))
WIDEST, LONGEST, MOST_LINES = 100, 45, 10
WORDS = {
    r"whoever": "name the subject",
    r"of which the\b": "say it in a sentence of its own",
    r"is reckoned|reckoned at": "'is estimated'",
    r"beforehand\W+beforehand": "once is enough",
    r"hangs on": "'depends on'",
    r"by a reckoning": "'by an estimate'",
    r"does no harm": "'is always safe'",
    r"tells? (?:another|others|each other|one another)": "'passes to', 'sends'",
    r"\blest\b": "'so that'",
    r"\b[A-Za-z_]\w*#\d+": "the name without Spark's expression id",
}

_CODE = re.compile(r" {4,}(?![-*] |\d+\. )")


def complaints(text: str) -> Iterator[tuple[int, str]]:
    """What is wrong, by line.

    >>> list(complaints("Whoever reads this.\\n"))
    [(1, "'Whoever': name the subject")]
    >>> list(complaints("word " * 30))
    [(1, '149 characters, at most 100')]
    """
    paragraph: list[str] = []
    start = 1
    for number, line in enumerate([*_prose(text), ""], 1):
        if len(line.rstrip()) > WIDEST and not line.startswith("!["):
            yield number, f"{len(line.rstrip())} characters, at most {WIDEST}"
        for pattern, better in WORDS.items():
            for found in re.finditer(pattern, line, re.IGNORECASE):
                yield number, f"{found[0]!r}: {better}"
        if line.strip() and not re.match(r"\s*([-*#]|\d+\.) ", line):
            start = start if paragraph else number
            paragraph.append(line)
            continue
        yield from ((start, what) for what in _paragraph(paragraph))
        paragraph, start = ([line], number) if line.strip() else ([], number)


def _paragraph(lines: list[str]) -> Iterator[str]:
    if len(lines) > MOST_LINES:
        yield f"a paragraph of {len(lines)} lines, at most {MOST_LINES}"
    words = re.sub(r"`[^`]*`|\[([^]]*)\]\([^)]*\)", r"\1", " ".join(lines))
    for sentence in re.split(r"(?<=[.!?:;]) ", words):
        if (count := len(sentence.split())) > LONGEST:
            yield f"a sentence of {count} words, at most {LONGEST}: {sentence[:50]}…"


def _prose(text: str) -> Iterator[str]:
    """The lines, empty where they are code or a table."""
    fenced = False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "~~~"))
        yield "" if fenced or fence or line.lstrip().startswith(("|", "<!--")) or _CODE.match(line) else line
        fenced ^= fence


def main() -> int:
    """Prints every complaint; fails if there is one."""
    found = [(page, *complaint) for page in PAGES for complaint in complaints(page.read_text())]
    for page, number, what in found:
        print(f"{page.relative_to(ROOT)}:{number}: {what}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
