"""Rendering of figures as SVG, for files, documents, and readers without scripts.

Several small figures can form one SVG, side by side under a common title.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from routecast.show.figures import Axis, Figure, Line, Mark, Points, Stack
from routecast.show.ticks import log_ticks, nice_step

__all__ = ["columns_for", "draw", "draw_panels", "heading_rows", "panel_px"]

_GAP_PX, _WIDTH_PX = 18, 760
_MAX_LETTERS = 20
"""Most letters in a legend of one of three panels."""


def columns_for(count: int, *, letters: int = 0) -> int:
    """Return the number of panels side by side: two, or three if that fills the last row better.

    ``letters`` is the length of the longest entry of a legend; long entries need two columns.
    """
    return 3 if count in {3, 5, 6, 9} and letters <= _MAX_LETTERS else 2


def panel_px(columns: int) -> int:
    """Return the width of a panel among ``columns`` panels."""
    return (_WIDTH_PX - _GAP_PX * (columns - 1)) // columns


def draw_panels(
    figures: Sequence[Figure], *, columns: int, title: str, caption: str = "", has_heading: bool = False
) -> str:
    """Return the figures as one SVG document, row by row, each with its own title.

    ``has_heading`` adds title and caption at the top, for a separate file.
    """
    columns = max(min(columns, len(figures)), 1)
    panel_width = panel_px(columns)
    parts, top = heading_rows(title, caption, _WIDTH_PX) if has_heading else ([], 0)
    drawn = [draw(figure, width_px=panel_width, has_heading=True) for figure in figures]
    for first in range(0, len(drawn), columns):
        tallest = 0
        for place, text in enumerate(drawn[first : first + columns]):
            height = _height(text)
            left = place * (panel_width + _GAP_PX)
            body = text.replace("<svg ", f'<svg x="{left}" y="{top}" width="{panel_width}" height="{height}" ', 1)
            parts.append(body.rstrip("\n"))
            tallest = max(tallest, height)
        top += tallest + _GAP_PX
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {max(top - _GAP_PX, 1)}" role="img"'
            f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12">',
            "<style>text{fill:#3a3f47}@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def _height(svg: str) -> int:
    match = re.search(r'viewBox="0 0 \d+ (\d+)"', svg)
    assert match is not None  # drawing.draw writes it
    return int(match[1])


LEFT, RIGHT, TOP, BOTTOM = 62, 16, 14, 50
LEGEND_ROW_PX = 20
HEADING_ROW_PX = 20
LETTER_PX = 6.6
BOLD_LETTER_PX = 8.0
SMALL_LETTER_PX = 5.6


@dataclass(frozen=True, slots=True)
class _Scale:
    """An axis of the drawing: the conversion of values to pixels, and the ticks."""

    pixel: Callable[[float], float]
    ticks: tuple[float, ...]
    labels: tuple[str, ...]


def draw(figure: Figure, *, width_px: int = 760, has_heading: bool = False) -> str:
    """Return the figure as an SVG document that follows the reader's light or dark setting.

    ``has_heading`` adds title and caption at the top, for a separate file.
    """
    heading, heading_px = heading_rows(figure.title, figure.caption, width_px) if has_heading else ([], 0)
    legend_marks = [mark for mark in figure.marks if getattr(mark, "legend", True)]
    legend, legend_px = _legend(legend_marks, width_px, heading_px)
    height = figure.height_px + heading_px + legend_px
    top, bottom = TOP + heading_px + legend_px, height - BOTTOM
    piles = _stack_edges(figure.marks)
    x = _scale(figure.x, [v for mark in figure.marks for v in mark.x], LEFT, width_px - RIGHT, from_zero=False)
    heights = [v for mark in figure.marks for v in _extent(mark)] + [v for pile in piles.values() for v in pile[1]]
    y = _scale(figure.y, heights, bottom, top, from_zero=True)
    body = [*heading, *_grid(figure, x, y, width_px, top, bottom), *legend]
    for mark in figure.marks:
        if isinstance(mark, Line):
            body += _line(mark, x, y)
        elif isinstance(mark, Stack):
            body += _stack(mark, piles[mark.name], x, y)
    for mark in figure.marks:
        if isinstance(mark, Points):
            body += _points(mark, x, y)
    body += _point_labels(figure.marks, x, y, width_px)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width_px} {height}" role="img"'
            f' aria-label="{escape(figure.title)}" font-family="system-ui, sans-serif" font-size="12">',
            "<style>text{fill:#3a3f47}.g{stroke:#8883;stroke-width:1}.a{stroke:#8889;stroke-width:1}"
            "@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            *body,
            "</svg>",
            "",
        ]
    )


def _extent(mark: Mark) -> Iterable[float]:
    if isinstance(mark, Stack):
        return ()
    return (value for value in (*mark.y, *mark.low, *mark.high) if math.isfinite(value))


def _stack_edges(marks: Sequence[Mark]) -> dict[str, tuple[list[float], list[float]]]:
    """Return the lower and upper edge of every stacked layer, by name."""
    piles: dict[str, tuple[list[float], list[float]]] = {}
    edge: list[float] = []
    for mark in marks:
        if isinstance(mark, Stack):
            low = edge or [0.0] * len(mark.y)
            edge = [a + b for a, b in zip(low, mark.y, strict=True)]
            piles[mark.name] = (low, edge)
    return piles


def _scale(axis: Axis, values: Sequence[float], start: float, end: float, *, from_zero: bool) -> _Scale:
    is_log = axis.scale == "log"
    finite = [value for value in values if math.isfinite(value) and not (is_log and value <= 0.0)]
    finite = finite or ([1.0, 10.0] if is_log else [0.0, 1.0])
    low = axis.low if axis.low is not None else min(finite)
    high = axis.high if axis.high is not None else max(finite)
    if is_log:
        low, high = (low / 1.15, high * 1.15) if axis.low is None else (low, high)
        span = math.log(high / low) or 1.0
        ticks = axis.ticks or log_ticks(low, high)
        return _Scale(lambda v: start + (end - start) * math.log(v / low) / span, ticks, _labels(axis, ticks))
    if from_zero and axis.low is None:
        low = min(low, 0.0)
    step = nice_step((high - low) or 1.0)
    if axis.high is None:
        high = math.ceil(high / step * 1.02) * step
    if axis.low is None:
        low = math.floor(low / step) * step
    span = (high - low) or 1.0
    ticks = axis.ticks or tuple(low + i * step for i in range(round((high - low) / step) + 1))
    return _Scale(lambda v: start + (end - start) * (v - low) / span, ticks, _labels(axis, ticks))


def _labels(axis: Axis, ticks: tuple[float, ...]) -> tuple[str, ...]:
    return axis.labels or tuple(f"{tick:g}" for tick in ticks)


def _grid(figure: Figure, x: _Scale, y: _Scale, width_px: int, top: float, bottom: float) -> list[str]:
    parts = []
    for tick, label in zip(y.ticks, y.labels, strict=True):
        at = y.pixel(tick)
        if top - 1 <= at <= bottom + 1:
            parts.append(f'<path class="g" d="M{LEFT} {at:.1f}H{width_px - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape(label)}</text>')
    for tick, label in zip(x.ticks, x.labels, strict=True):
        at = x.pixel(tick)
        if LEFT - 1 <= at <= width_px - RIGHT + 1:
            parts.append(f'<path class="a" d="M{at:.1f} {bottom}v5"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 19}" text-anchor="middle">{escape(label)}</text>')
    middle = (top + bottom) / 2
    centre = (LEFT + width_px - RIGHT) / 2
    x_title, y_title = escape(figure.x.title), escape(figure.y.title)
    return [
        *parts,
        f'<path class="a" d="M{LEFT} {bottom}H{width_px - RIGHT}"/>',
        f'<text x="{centre}" y="{bottom + 40}" text-anchor="middle">{x_title}</text>',
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">{y_title}</text>',
    ]


def heading_rows(title: str, caption: str, width_px: int) -> tuple[list[str], int]:
    """Return the title and the caption as SVG texts for a separate file, and their height in pixels."""
    room = width_px - LEFT - RIGHT
    rows = [(row, ' font-size="13" font-weight="600"') for row in _rows(title, room, BOLD_LETTER_PX)]
    rows += [(row, "") for row in _rows(caption, room, LETTER_PX)]
    parts = [
        f'<text x="{LEFT}" y="{18 + at * HEADING_ROW_PX}"{look}>{escape(row)}</text>'
        for at, (row, look) in enumerate(rows)
    ]
    return parts, len(rows) * HEADING_ROW_PX + 6


def _rows(text: str, room_px: float, letter_px: float) -> list[str]:
    return textwrap.wrap(text, max(int(room_px / letter_px), 1))


def _legend(marks: Sequence[Mark], width_px: int, from_px: int) -> tuple[list[str], int]:
    parts: list[str] = []
    left, row = float(LEFT), 0
    for mark in marks:
        needed_px = 34 + LETTER_PX * len(mark.name)
        if left + needed_px > width_px and left > LEFT:
            left, row = float(LEFT), row + 1
        middle = from_px + 14 + row * LEGEND_ROW_PX
        if isinstance(mark, Points):
            parts.append(_symbol(mark, left + 8, middle))
        else:
            dash = ' stroke-dasharray="5 4"' if isinstance(mark, Line) and mark.dashed else ""
            parts.append(f'<path d="M{left:.0f} {middle}h16" stroke="{mark.colour}" stroke-width="3"{dash}/>')
        parts.append(f'<text x="{left + 22:.0f}" y="{middle + 4}">{escape(mark.name)}</text>')
        left += needed_px
    return parts, (row + 1) * LEGEND_ROW_PX if marks else 0


def _path(xs: Iterable[float], ys: Iterable[float], x: _Scale, y: _Scale) -> str:
    pairs = [(x.pixel(a), y.pixel(b)) for a, b in zip(xs, ys, strict=True) if math.isfinite(b)]
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in pairs) if pairs else ""


def _area(xs: Sequence[float], low: Sequence[float], high: Sequence[float], x: _Scale, y: _Scale) -> str:
    return _path([*xs, *reversed(xs)], [*high, *reversed(low)], x, y) + "Z"


def _line(line: Line, x: _Scale, y: _Scale) -> list[str]:
    parts = []
    if line.low:
        area = _area(line.x, line.low, line.high, x, y)
        parts.append(f'<path d="{area}" fill="{line.colour}" fill-opacity=".15"/>')
    dash = ' stroke-dasharray="6 4"' if line.dashed else ""
    path = _path(line.x, line.y, x, y)
    return [*parts, f'<path d="{path}" fill="none" stroke="{line.colour}" stroke-width="2"{dash}/>']


def _stack(stack: Stack, pile: tuple[list[float], list[float]], x: _Scale, y: _Scale) -> list[str]:
    return [f'<path d="{_area(stack.x, *pile, x, y)}" fill="{stack.colour}" fill-opacity=".55"/>']


def _points(points: Points, x: _Scale, y: _Scale) -> list[str]:
    parts = [
        f'<path d="M{x.pixel(a):.1f} {y.pixel(low):.1f}V{y.pixel(high):.1f}" stroke="{points.colour}"/>'
        for a, low, high in zip(points.x, points.low, points.high, strict=False)
    ]
    labels = points.labels or ("",) * len(points.x)
    for a, b, label in zip(points.x, points.y, labels, strict=True):
        if math.isfinite(b):
            symbol = _symbol(points, x.pixel(a), y.pixel(b))
            # Labels beside the points need no tooltip.
            titled = f"<g><title>{escape(label)}</title>{symbol}</g>"
            parts.append(titled if label and not points.is_labelled else symbol)
    return parts


def _point_labels(marks: Sequence[Mark], x: _Scale, y: _Scale, width_px: int) -> list[str]:
    """Write labels beside their points, except labels that would overlap others."""
    parts: list[str] = []
    occupied: list[tuple[float, float, float]] = []
    for mark in marks:
        if not (isinstance(mark, Points) and mark.is_labelled):
            continue
        for a, b, label in zip(mark.x, mark.y, mark.labels, strict=True):
            left, middle = x.pixel(a) + 7, y.pixel(b) - 6
            right = left + SMALL_LETTER_PX * len(label)
            is_free = all(
                right < other_left or left > other_right or abs(middle - other) > 11
                for other_left, other_right, other in occupied
            )
            if is_free and right <= width_px:
                occupied.append((left, right, middle))
                parts.append(f'<text x="{left:.1f}" y="{middle:.1f}" font-size="10">{escape(label)}</text>')
    return parts


def _symbol(points: Points, x: float, y: float) -> str:
    paint = f'fill="{points.colour if points.filled else "none"}" stroke="{points.colour}" stroke-width="1.5"'
    if points.symbol == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{points.size_px / 2:g}" {paint}/>'
    if points.symbol == "square":
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" {paint}/>'
    if points.symbol == "diamond":
        return f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z" {paint}/>'
    return f'<path d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8" {paint}/>'
