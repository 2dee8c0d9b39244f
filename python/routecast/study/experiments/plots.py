"""The figures of a study of designed experiments: responses over a factor."""

from __future__ import annotations

from itertools import cycle

from routecast.report.figures import Axis, Figure, Line, Mark, Points
from routecast.study.experiments import document
from routecast.study.experiments.facts import series
from routecast.study.experiments.result import ExperimentsResult

__all__ = ["lines_figure"]

GREY = "#7a7f87"
COLOURS = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#c8524a", "#2b95a6", "#b39a2f", "#9b8ec4")


def lines_figure(wanted: document.Figure, result: ExperimentsResult) -> Figure:
    """Return a figure of lines over a factor.

    Raises
    ------
    routecast.errors.RoutecastError
        A line names a response, factor or level that its experiment has not.
    """
    marks: list[Mark] = []
    for line, colour in zip(wanted.line, cycle(COLOURS), strict=False):
        points = [
            (x, y)
            for x, y in series(result.results[line.experiment], line.response, line.factor, line.at)
            if wanted.x_until is None or x <= wanted.x_until
        ]
        x, y = tuple(x for x, _ in points), tuple(y / wanted.y_scale for _, y in points)
        marks.append(Line(name=line.name, x=x, y=y, colour=colour, dashed=line.dashed))
        marks.append(Points(name=line.name, x=x, y=y, colour=colour, filled=False, size_px=5, legend=False))
    if wanted.level is not None:
        every = [x for mark in marks for x in mark.x]
        ends = (min(every), max(every))
        level = (wanted.level, wanted.level)
        marks.append(Line(name=wanted.level_name or "level", x=ends, y=level, colour=GREY, dashed=True))
    return Figure(
        name=wanted.name,
        title=wanted.title,
        caption=wanted.caption,
        x=Axis(title=wanted.x),
        y=Axis(title=wanted.y, scale="log") if wanted.y_log else Axis(title=wanted.y, low=wanted.y_from),
        marks=tuple(marks),
    )
