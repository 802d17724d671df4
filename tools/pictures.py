"""Draws the pictures of the documentation into docs/pictures: ``python -m tools.pictures``.

Each is a card with a background of its own, so that it can be read wherever it is shown, in light and in dark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH = 760
STYLE = """
    .card { fill: #ffffff; stroke: #d0d7de; }
    text { font: 15px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328; }
    .small { font-size: 13px; fill: #57606a; }
    .strong { font-weight: 600; }
    .read { fill: #1a7f4b; stroke: #1a7f4b; }
    .skipped { fill: #eef0f2; stroke: #8c959f; stroke-dasharray: 3 3; }
    .first { fill: #9a6700; stroke: #9a6700; }
    .wanted { fill: #cf222e; fill-opacity: 0.14; }
    .edge { stroke: #cf222e; stroke-width: 2; }
    .line { stroke: #57606a; stroke-width: 1.5; fill: none; }
    .tip { fill: #57606a; }
    @media (prefers-color-scheme: dark) {
      .card { fill: #161b22; stroke: #3d444d; }
      text { fill: #e6edf3; }
      .small { fill: #b1bac4; }
      .read { fill: #3fb950; stroke: #3fb950; }
      .skipped { fill: #22272e; stroke: #8b949e; }
      .first { fill: #d29922; stroke: #d29922; }
      .wanted { fill: #ff7b72; fill-opacity: 0.2; }
      .edge { stroke: #ff7b72; }
      .line { stroke: #b1bac4; }
      .tip { fill: #b1bac4; }
    }
"""


@dataclass
class Picture:
    """A card that shapes are put on."""

    title: str
    height: int
    parts: list[str] = field(default_factory=list)

    def bar(self, x: float, y: float, width: float, kind: str, height: float = 12) -> None:
        """A file, or a range of values in one: ``read``, ``skipped`` or ``first``."""
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3"/>')

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Words, with the start, middle or end at x."""
        self.parts.append(f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>')

    def wanted(self, x: float, y: float, width: float, height: float) -> None:
        """The values that the query wants."""
        self.parts.append(f'<rect class="wanted" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>')

    def edge(self, x: float, y: float, height: float) -> None:
        """A boundary."""
        self.parts.append(f'<line class="edge" x1="{x:g}" y1="{y:g}" x2="{x:g}" y2="{y + height:g}"/>')

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """From here to there, from left to right."""
        self.parts.append(f'<path class="line" d="M{x:g} {y:g} L{to_x - 7:g} {to_y:g}"/>')
        self.parts.append(f'<path class="tip" d="M{to_x:g} {to_y:g} l-9 -5 v10 z"/>')

    def legend(self, kinds: tuple[str, ...] = ("read", "skipped")) -> None:
        """What the colours mean, at the bottom."""
        words = {"read": "read", "skipped": "skipped", "first": "read first, for the boundary or the keys"}
        x = 30.0
        for kind in kinds:
            self.bar(x, self.height - 29, 22, kind)
            self.text(x + 30, self.height - 18, words[kind], "small")
            x += 62 + 8 * len(words[kind])

    def svg(self) -> str:
        """The whole file."""
        body = "\n  ".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img" '
            f'aria-label="{escape(self.title, quote=True)}">\n  <title>{escape(self.title)}</title>\n'
            f"  <style>{STYLE}  </style>\n"
            f'  <rect class="card" x="1" y="1" width="{WIDTH - 2}" height="{self.height - 2}" rx="10"/>\n'
            f"  {body}\n</svg>\n"
        )


def filter_() -> Picture:
    """Bars from minimum to maximum, and the span of values that the condition wants."""
    p = Picture("Files as bars from minimum to maximum; only those that cross the condition are read", 250)
    p.text(30, 34, "WHERE day BETWEEN '2024-05-06' AND '2024-05-19'", "strong")
    p.wanted(420, 52, 90, 132)
    p.text(465, 200, "wanted", "small", "middle")
    spans = [(150, 80), (200, 110), (290, 90), (350, 105), (440, 60), (480, 90), (560, 70), (610, 100)]
    for i, (x, width) in enumerate(spans):
        y = 58 + i * 15.5
        hit = x < 510 and x + width > 420
        p.bar(x, y, width, "read" if hit else "skipped", 10)
        p.text(60, y + 10, f"file {i + 1}", "small")
    p.legend()
    return p


def range_sets() -> Picture:
    """The same minimum and maximum, other gaps."""
    p = Picture("Two files with the same minimum and maximum; gaps show which of them can hold the value", 220)
    p.text(30, 34, "WHERE area = 43", "strong")
    p.text(470, 34, "every file holds areas 0 to 199", "small")
    x0, scale = 120, 3.0
    for y, name, ranges, kind in (
        (64, "file 1", [(0, 6), (30, 60), (110, 130), (195, 200)], "read"),
        (110, "file 2", [(0, 6), (75, 95), (140, 160), (195, 200)], "skipped"),
    ):
        p.text(30, y + 17, name)
        p.parts.append(f'<line class="line" x1="{x0}" y1="{y + 11}" x2="{x0 + 200 * scale}" y2="{y + 11}"/>')
        for low, high in ranges:
            p.bar(x0 + low * scale, y, (high - low) * scale, kind, 22)
    p.edge(x0 + 43 * scale, 52, 96)
    p.text(x0 + 43 * scale, 166, "43", "strong", "middle")
    p.legend()
    return p


def _join(title: str, note: str, kind: str) -> Picture:
    p = Picture(title, 260)
    p.text(30, 34, "FROM sightings s JOIN days d ON s.day = d.day WHERE d.weather = 'storm'", "strong")
    p.text(95, 66, "days", "small", "middle")
    for i in range(12):
        p.bar(40, 76 + i * 11, 110, kind if i in (2, 7, 10) else "skipped", 8)
    p.text(280, 125, note, "", "middle")
    p.text(280, 147, "3 days", "strong", "middle")
    p.arrow(165, 132, 225, 132)
    p.arrow(338, 132, 398, 132)
    p.text(560, 66, "sightings", "small", "middle")
    for i in range(36):
        p.bar(420 + (i % 6) * 50, 76 + (i // 6) * 22, 42, "read" if i in (7, 20, 31) else "skipped", 15)
    return p


def join_ranges() -> Picture:
    """Days that a filter leaves choose files."""
    p = _join("A filter leaves three days; only the files that hold these days are read", "before it runs", "read")
    p.legend()
    return p


def join_keys() -> Picture:
    """The same, at run time."""
    p = _join("The small side is read first; its keys choose the files of the large side", "at run time", "first")
    p.legend(("first", "read", "skipped"))
    return p


def _files(p: Picture, y: float, kinds: list[str], x: float = 40, step: float = 48) -> None:
    for i, kind in enumerate(kinds):
        p.bar(x + i * step, y, step - 8, kind, 34)


def limit() -> Picture:
    """One of the files that match fully."""
    p = Picture("All rows of the last files match; one of them holds enough rows for the LIMIT", 190)
    p.text(30, 34, "WHERE day >= '2024-06-01' LIMIT 20", "strong")
    p.wanted(418, 50, 300, 66)
    p.text(568, 110, "every row matches, 1,000 rows each", "small", "middle")
    _files(p, 56, ["skipped"] * 8 + ["read"] + ["skipped"] * 5)
    p.legend()
    return p


def topk() -> Picture:
    """Bars by time, and the boundary that statistics give."""
    p = Picture("Only files that reach the boundary can hold one of the last ten rows", 230)
    p.text(30, 34, "ORDER BY day DESC LIMIT 10", "strong")
    for i in range(7):
        p.bar(70 + i * 78, 58 + i * 15, 100, "read" if i == 6 else "skipped", 11)
    p.edge(566, 50, 122)
    p.text(574, 66, "boundary: ten rows", "small")
    p.text(574, 84, "are known to be here", "small")
    p.arrow(70, 180, 690, 180)
    p.text(700, 185, "day", "small")
    p.legend()
    return p


def topk_probe() -> Picture:
    """A first wave, then what is still needed."""
    p = Picture("A first wave of files gives the boundary; the files behind it are not read", 250)
    p.text(30, 34, "WHERE species = 'Lynx' ORDER BY day DESC LIMIT 10", "strong")
    p.text(40, 66, "1. the last files are read first", "small")
    _files(p, 74, ["skipped"] * 10 + ["first"] * 4)
    p.text(40, 140, "2. the tenth row is of 2024-12-30: one file can hold later ones", "small")
    _files(p, 148, ["skipped"] * 13 + ["read"])
    p.edge(659, 142, 46)
    p.legend(("first", "read", "skipped"))
    return p


def window_topk() -> Picture:
    """Two groups, the last file of each."""
    p = Picture("In each group only the last files can hold its first rows", 210)
    p.text(30, 34, "row_number() OVER (PARTITION BY year ORDER BY day DESC) <= 3", "strong")
    for y, name in ((60, "2023"), (112, "2024")):
        p.text(40, y + 22, name)
        _files(p, y, ["skipped"] * 11 + ["read"], 110)
    p.legend()
    return p


def implied_predicates() -> Picture:
    """From a condition to comparisons to row groups."""
    p = Picture("A condition on a year implies comparisons with dates, which Parquet skips row groups by", 210)
    p.text(40, 52, "WHERE year(day) = 2024", "strong")
    p.arrow(262, 47, 318, 47)
    p.text(334, 52, "day >= 2024-01-01 AND day < 2025-01-01", "strong")
    p.text(40, 100, "row groups of one file", "small")
    for i in range(8):
        p.bar(40 + i * 85, 110, 77, "read" if i in (4, 5) else "skipped", 34)
    p.legend()
    return p


def manifests() -> Picture:
    """Three passes, each smaller."""
    p = Picture("Manifests first, then files, then row groups", 220)
    for x, title, count in ((40, "1. manifests", 8), (290, "2. files", 12), (540, "3. row groups", 10)):
        p.text(x, 38, title, "strong")
        for i in range(count):
            hit = {8: i in (4, 5), 12: i in (2, 7, 8), 10: i in (3, 4)}[count]
            p.bar(x + (i % 4) * 46, 54 + (i // 4) * 40, 38, "read" if hit else "skipped", 30)
    p.arrow(232, 90, 280, 90)
    p.arrow(482, 90, 530, 90)
    p.legend()
    return p


def gain() -> Picture:
    """The picture of the README: what one query reads, with and without."""
    p = Picture("The same query: Spark opens all files of the table, with secateur it opens two", 250)
    p.text(30, 34, "WHERE IF(unit = 'feet', altit * 0.3048, altit) > 1500 AND name LIKE 'Marked-%'", "strong")
    for x, title, keep in ((40, "Spark opens 40 of 40 files", range(40)), (400, "with secateur 2 of 40", (15, 16))):
        p.text(x, 68, title)
        for i in range(40):
            p.bar(x + (i % 8) * 40, 80 + (i // 8) * 25, 34, "read" if i in keep else "skipped", 18)
    p.legend()
    return p


def flow() -> Picture:
    """How a query goes through secateur."""
    p = Picture("Spark sends its plan to Python, which decides by statistics; Spark runs the smaller plan", 250)

    def box(x: float, y: float, width: float, title: str, note: str) -> None:
        p.parts.append(f'<rect class="line" x="{x:g}" y="{y:g}" width="{width:g}" height="64" rx="8"/>')
        p.text(x + width / 2, y + 28, title, "strong", "middle")
        p.text(x + width / 2, y + 49, note, "small", "middle")

    box(30, 40, 190, "Spark’s optimizer", "a query is planned")
    box(290, 40, 190, "secateur", "decides, in Python")
    box(550, 40, 180, "Spark runs", "the smaller plan")
    box(290, 160, 190, "statistics", "footers, logs, manifests")
    p.arrow(220, 72, 290, 72)
    p.text(252, 62, "plan", "small", "middle")
    p.arrow(480, 72, 550, 72)
    p.text(512, 62, "edits", "small", "middle")
    p.parts.append('<path class="line" d="M385 160 V112"/><path class="tip" d="M385 104 l-5 9 h10 z"/>')
    p.text(550, 190, "If anything fails, Spark", "small")
    p.text(550, 208, "runs its own plan.", "small")
    return p


PICTURES = {
    "filter": filter_,
    "range-sets": range_sets,
    "join-ranges": join_ranges,
    "join-keys": join_keys,
    "limit": limit,
    "topk": topk,
    "topk-probe": topk_probe,
    "window-topk": window_topk,
    "implied-predicates": implied_predicates,
    "manifests": manifests,
    "gain": gain,
    "flow": flow,
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(draw().svg())
