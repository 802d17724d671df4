"""A picture of distributions as SVG: how many queries reach at least so much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, GAP, TOP = 300, 220, 50, 60
MOST = 100.0
COLOURS = ("#9aa0a6", "#1a73e8", "#c5221f")
DASHES = ("4 3", "", "")


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot: a line for each way, and marks to compare with, as (at least so much, share)."""

    title: str
    lines: Mapping[str, Sequence[float]]
    marks: Sequence[tuple[float, float]]


def draw(panels: Sequence[Panel], title: str) -> str:
    """The panels side by side, two a row.

    >>> draw([Panel("a", {"x": [1.0, 2.0]}, [(2.0, 0.4)])], "both")[:4]
    '<svg'
    """
    rows = -(-len(panels) // 2)
    width, height = 2 * (WIDTH + GAP) + GAP, rows * (HEIGHT + 2 * GAP) + TOP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{GAP}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for at, way in enumerate(panels[0].lines if panels else ()):
        x = GAP + 120 * at
        parts.append(_line([(x, 42), (x + 24, 42)], at))
        parts.append(f'<text x="{x + 30}" y="46">{escape(way)}</text>')
    parts.append(f'<circle cx="{GAP + 372}" cy="42" r="4" fill="black"/><text x="{GAP + 384}" y="46">the paper</text>')
    for number, panel in enumerate(panels):
        left, top = GAP + (number % 2) * (WIDTH + GAP), TOP + (number // 2) * (HEIGHT + 2 * GAP) + GAP // 2
        parts += _panel(panel, left, top)
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, left: int, top: int) -> list[str]:
    parts = [f'<text x="{left}" y="{top - 8}" font-weight="bold">{escape(panel.title)}</text>']
    for value in (1, 2, 5, 10, 20, 50, 100):
        x = left + _x(value)
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + HEIGHT}" stroke="#eee"/>')
        parts.append(f'<text x="{x:.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{value}x</text>')
    for percent in (0, 20, 40, 60, 80, 100):
        y = top + HEIGHT * (1 - percent / 100)
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}" stroke="#eee"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{percent}%</text>')
    for at, values in enumerate(panel.lines.values()):
        parts.append(_line([(left + x, top + y) for x, y in _steps(values)], at))
    for least, share in panel.marks:
        parts.append(f'<circle cx="{left + _x(least):.1f}" cy="{top + HEIGHT * (1 - share):.1f}" r="4" fill="black"/>')
    return parts


def _steps(values: Sequence[float]) -> list[tuple[float, float]]:
    """The share of values of at least x, from x = 1 to the end of the axis."""
    points, share = [(0.0, 0.0)], 1.0
    for place, value in enumerate(sorted(values)):
        points.append((_x(value), HEIGHT * (1 - share)))
        share = 1 - (place + 1) / len(values)
        points.append((_x(value), HEIGHT * (1 - share)))
    return points


def _x(value: float) -> float:
    return WIDTH * math.log(min(max(value, 1.0), MOST)) / math.log(MOST)


def _line(points: Sequence[tuple[float, float]], at: int) -> str:
    text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{DASHES[at]}"' if DASHES[at] else ""
    return f'<polyline points="{text}" fill="none" stroke="{COLOURS[at]}" stroke-width="2"{dash}/>'
