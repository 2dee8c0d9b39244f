"""Reports: figures, tables and one self-contained HTML page made of them.

The parts are plain values (:class:`Figure`, :class:`Table`, :class:`Page`), made by whoever has results to show and
rendered here: :func:`interactive` for Plotly, :func:`draw` for SVG, :func:`render_page` for HTML.
"""

from routecast.report.drawing import draw
from routecast.report.figures import Axis, Figure, Line, Points, Stack
from routecast.report.interactive import interactive
from routecast.report.page import Page, Prose, Section, Tile, Tiles, render_page
from routecast.report.tables import Column, Table, table_html

__all__ = [
    "Axis",
    "Column",
    "Figure",
    "Line",
    "Page",
    "Points",
    "Prose",
    "Section",
    "Stack",
    "Table",
    "Tile",
    "Tiles",
    "draw",
    "interactive",
    "render_page",
    "table_html",
]
