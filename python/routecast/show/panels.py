"""Several small figures side by side in one SVG: what is compared stands under one title and on one scale."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from routecast.show.drawing import draw, heading_rows
from routecast.show.figures import Figure

__all__ = ["columns_for", "draw_panels", "panel_px"]

_GAP_PX, _WIDTH_PX = 18, 760
_MOST_LETTERS = 20
"""In the legend of one of three panels."""


def columns_for(count: int, *, letters: int = 0) -> int:
    """Return how many panels stand side by side: two, or three where that fills the last row better.

    ``letters`` is the length of the longest entry of a legend, which must find room.
    """
    return 3 if count in {3, 5, 6, 9} and letters <= _MOST_LETTERS else 2


def panel_px(columns: int) -> int:
    """Return the width of a panel among so many."""
    return (_WIDTH_PX - _GAP_PX * (columns - 1)) // columns


def draw_panels(
    figures: Sequence[Figure], *, columns: int, title: str, caption: str = "", has_heading: bool = False
) -> str:
    """Return the figures as one SVG document, row by row; each bears its own title.

    ``has_heading`` writes title and caption above them, for a file that stands alone.
    """
    columns = max(min(columns, len(figures)), 1)
    wide = panel_px(columns)
    parts, top = heading_rows(title, caption, _WIDTH_PX) if has_heading else ([], 0)
    drawn = [draw(figure, width_px=wide, has_heading=True) for figure in figures]
    for first in range(0, len(drawn), columns):
        tallest = 0
        for place, text in enumerate(drawn[first : first + columns]):
            height = _height(text)
            left = place * (wide + _GAP_PX)
            body = text.replace("<svg ", f'<svg x="{left}" y="{top}" width="{wide}" height="{height}" ', 1)
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
    found = re.search(r'viewBox="0 0 \d+ (\d+)"', svg)
    assert found is not None  # drawing.draw writes it
    return int(found[1])
