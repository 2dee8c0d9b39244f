"""Figures as Plotly JSON: the reader can point at a value and hide a line.

Colours of text, grid and paper are left to the page, which sets them for light, dark and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.report.figures import Axis, Figure, Line, Points, Stack

__all__ = ["interactive"]

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
