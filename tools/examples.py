"""The examples of the documentation: runs them, and writes or checks the output that a page shows below each.

A page's ```python blocks run one after the other with ``spark``, ``lake``, ``secateur`` and ``pruner``. A ```text block
right below one is what it prints. ``python -m tools.examples docs/start.md`` writes these outputs anew.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
START = ROOT / "docs" / "start.md"
SHOWN = "/tmp/lake"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_VARIES = re.compile(r"(?<=Query )\d+|\d[\d.,]* (?=ms|s\b|B\b|kB\b|MB\b|GB\b|in the JVM|on the wire|in Python)")


def has_examples(page: Path) -> bool:
    """Whether there is anything to run on the page."""
    return bool(_BLOCK.search(page.read_text()))


def make_lake(lake: str) -> None:
    """Writes the tables of the examples: with the first block of the page that readers start with."""
    block = _BLOCK.search(START.read_text())
    assert block
    exec(compile(block["code"], str(START), "exec"), {"lake": lake})


def outputs(page: Path, names: dict[str, Any]) -> Iterator[tuple[re.Match[str], str]]:
    """Runs the page's blocks in order: each with what it printed, as if the lake were at ``SHOWN``."""
    first = page == START  # its first block has made the lake already
    for number, block in enumerate(_BLOCK.finditer(page.read_text())):
        printed = io.StringIO()
        if not (first and number == 0):
            with contextlib.redirect_stdout(printed):
                exec(compile(block["code"], str(page), "exec"), names)
        yield block, printed.getvalue().replace(names["lake"], SHOWN)


def alike(printed: str) -> str:
    """The output without what differs from run to run: times, sizes, the number of the query, where lines end.

    >>> alike("Query 7 reads 3 of 120 files (1.3 MB of 52.0 MB).")
    'Query _ reads 3 of 120 files (_MB of _MB).'
    """
    return " ".join(_VARIES.sub("_", printed).split())


def refresh(page: Path, spark: SparkSession) -> None:
    """Writes what the examples of the page print below them."""
    import secateur

    Path(SHOWN).mkdir()  # a path of another length would end the lines elsewhere
    try:
        make_lake(SHOWN)
        pruner = secateur.attach(spark, {"stats.auto": False})
        text, moved = page.read_text(), 0
        for block, printed in outputs(page, {"spark": spark, "lake": SHOWN, "secateur": secateur, "pruner": pruner}):
            if block["output"] is None or alike(block["output"]) == alike(printed):
                continue
            start, end = (at + moved for at in block.span("output"))
            text = text[:start] + printed + text[end:]
            moved += len(printed) - (end - start)
        page.write_text(text)
        for key in spark.conf.getAll:
            if key.startswith("spark.secateur."):
                spark.conf.unset(key)
        pruner.detach()
    finally:
        shutil.rmtree(SHOWN)


def main(pages: list[str]) -> None:
    """All pages, or those that are named."""
    from tools.sessions import local_session

    with tempfile.TemporaryDirectory() as home:
        spark = local_session("secateur-examples", home, {"spark.sql.warehouse.dir": f"{home}/warehouse"})
        for page in map(Path, pages or map(str, PAGES)):
            if has_examples(page.resolve()):
                print(page, flush=True)
                refresh(page.resolve(), spark)
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
