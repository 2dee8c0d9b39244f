"""One self-contained HTML page: prose, tiles of key numbers, tables, figures.

The page needs no network: style, script and Plotly are inside it, Plotly once. It follows the reader's light or dark
setting and prints in black on white.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from routecast.report.drawing import draw
from routecast.report.figures import Axis, Figure, Line, Points, Stack
from routecast.report.tables import Table, table_html

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "Block",
    "Drawing",
    "Facts",
    "Folded",
    "Listing",
    "Notice",
    "Page",
    "Prose",
    "Section",
    "Tile",
    "Tiles",
    "interactive",
    "render_page",
]


# Figures as Plotly JSON: the reader can point at a value and hide a line.
#
# Colours of text, grid and paper are left to the page, which sets them for light, dark and print.


Json = dict[str, object]


def interactive(figure: Figure) -> Json:
    """Return the figure as ``{"data": …, "layout": …}`` for ``Plotly.newPlot``."""
    data: list[Json] = []
    for mark in figure.marks:
        if isinstance(mark, Line):
            data += _line(mark)
        elif isinstance(mark, Points):
            data.append(_points(mark))
        else:
            data.append(_stack(mark))
    return {
        "data": data,
        "layout": {
            "height": figure.height_px,
            "margin": {"l": 62, "r": 14, "t": 10, "b": 54},
            "hovermode": "closest",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "xanchor": "left", "yanchor": "bottom"},
            "xaxis": _axis(figure.x),
            "yaxis": _axis(figure.y) | {"automargin": True},
        },
    }


def _axis(axis: Axis) -> Json:
    layout: Json = {"title": {"text": axis.title}, "type": axis.scale, "zeroline": False, "ticks": "outside"}
    if axis.ticks:
        layout |= {"tickvals": list(axis.ticks), "ticktext": list(axis.labels) or [f"{tick:g}" for tick in axis.ticks]}
    if axis.low is not None and axis.high is not None:
        ends = (axis.low, axis.high)
        layout["range"] = [math.log10(end) for end in ends] if axis.scale == "log" else list(ends)
    elif axis.scale == "linear" and axis.low is not None:
        layout["range"] = [axis.low, None]  # the other end follows the data
    elif axis.scale == "linear":
        layout["rangemode"] = "tozero"
    return layout


def _numbers(values: Sequence[float]) -> list[float | None]:
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in values]


def _line(line: Line) -> list[Json]:
    traces: list[Json] = []
    if line.low:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": [*_numbers(line.x), *reversed(_numbers(line.x))],
                "y": [*_numbers(line.high), *reversed(_numbers(line.low))],
                "fill": "toself",
                "fillcolor": _faint(line.colour),
                "line": {"width": 0},
                "hoverinfo": "skip",
                "showlegend": False,
                "legendgroup": line.name,
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": line.name,
            "x": _numbers(line.x),
            "y": _numbers(line.y),
            "line": {"color": line.colour, "width": 2, "dash": "dash" if line.dashed else "solid"},
            "showlegend": line.legend,
            "legendgroup": line.name,
        }
    )
    return traces


def _points(points: Points) -> Json:
    trace: Json = {
        "type": "scatter",
        "mode": "markers",
        "cliponaxis": False,
        "name": points.name,
        "x": _numbers(points.x),
        "y": _numbers(points.y),
        "marker": {
            "color": points.colour,
            "size": points.size_px,
            "symbol": _symbol(points),
            "line": {"width": 1.5, "color": points.colour},
        },
        "showlegend": points.legend,
        "legendgroup": points.name,
    }
    if points.low:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": _numbers([high - y for high, y in zip(points.high, points.y, strict=True)]),
            "arrayminus": _numbers([y - low for low, y in zip(points.low, points.y, strict=True)]),
            "thickness": 1.2,
            "width": 3,
            "color": points.colour,
        }
    if points.labels:
        trace |= {"text": list(points.labels), "hovertemplate": "%{text}<extra></extra>"}
    return trace


def _symbol(points: Points) -> str:
    symbol = "x-thin" if points.symbol == "cross" else points.symbol
    return symbol if points.filled else f"{symbol}-open"


def _stack(stack: Stack) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": stack.name,
        "x": _numbers(stack.x),
        "y": _numbers(stack.y),
        "stackgroup": "one",
        "fillcolor": _faint(stack.colour, 0.55),
        "line": {"width": 1, "color": stack.colour},
    }


def _faint(colour: str, opacity: float = 0.15) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs; ``**strong**`` and ```code``` are the only markup."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One key number with what it means and what to compare it with."""

    value: str
    meaning: str
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A row of key numbers."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture given as SVG text, with its caption: below, or under the title above it where it has one."""

    svg: str
    caption: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A statement that must be seen: ``mood`` sets its colour, ``title`` stands first and large."""

    mood: Literal["good", "fair", "bad"]
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and values; a value of several lines is shown as it stands."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Short statements that must be made, one beneath the other."""

    title: str
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A table too long to be read at once: closed until the reader opens it."""

    summary: str
    table: Table


Block = Prose | Tiles | Table | Figure | Drawing | Notice | Facts | Listing | Folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of the page; ``lead`` is its finding in one sentence. What is not listed follows one that is."""

    anchor: str
    title: str
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    is_listed: bool = True

    @classmethod
    def of(cls, anchor: str, title: str, lead: str, *blocks: Block | bool | None) -> Section:
        """Return a section; ``has_notes and Listing(...)`` is a block that may be left out."""
        there = tuple(block for block in blocks if not isinstance(block, bool | None))
        return cls(anchor=anchor, title=title, lead=lead, blocks=there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page: what it answers, its parts, and ``made``: how it was made, as pairs of name and value."""

    title: str
    question: str
    answer: str
    sections: tuple[Section, ...]
    made: tuple[tuple[str, str], ...] = ()
    source: str = ""

    def figures(self) -> tuple[Figure, ...]:
        """Return the page's figures in their order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))


def render_page(page: Page) -> str:
    """Return the page as one HTML document."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only who reports pays for it
    from plotly.offline import get_plotlyjs

    environment = Environment(
        loader=PackageLoader("routecast.report", "look"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = _inline
    room = files("routecast.report") / "look"
    figures = page.figures()
    return environment.get_template("page.html.j2").render(
        page=page,
        kind=lambda block: type(block).__name__,
        table_html=lambda table: _trusted(table_html(table)),
        drawn=lambda figure: _trusted(draw(figure)),
        trusted=_trusted,
        style=_trusted((room / "page.css").read_text(encoding="utf-8")),
        script=_trusted((room / "page.js").read_text(encoding="utf-8")),
        plotly=_trusted(get_plotlyjs()) if figures else "",
        figures=_trusted(_script_json({figure.name: interactive(figure) for figure in figures})),
    )


def _trusted(html: str) -> Markup:
    from markupsafe import Markup

    return Markup(html)  # every caller passes text that this package made and escaped


def _script_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")


def _inline(text: str) -> Markup:
    html = escape(text, quote=False)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    return _trusted(re.sub(r"`(.+?)`", r"<code>\1</code>", html))
