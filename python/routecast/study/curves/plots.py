"""The figures of a study of curves: forwarded against offered load."""

from __future__ import annotations

from itertools import cycle

from routecast.report.figures import Axis, Figure, Line, Mark, Points
from routecast.study.curves.result import FigureResult

__all__ = ["curves_figure"]

GREY = "#7a7f87"
COLOURS = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#c8524a", "#2b95a6", "#b39a2f", "#9b8ec4")


def curves_figure(one: FigureResult) -> Figure:
    """Return forwarded against offered load of every curve, with the stated values as crosses."""
    colours = dict(zip(one.curves, cycle(COLOURS), strict=False))
    top = one.figure.offered[-1] / 1e3
    most = max(one.peak_pps(name) for name in one.curves) / 1e3
    marks: list[Mark] = [
        Line(name="no loss", x=(0.0, min(top, most)), y=(0.0, min(top, most)), colour=GREY, dashed=True)
    ]
    for name, points in one.curves.items():
        offered = tuple(point.offered_pps / 1e3 for point in points)
        forwarded = tuple(point.forwarded_pps / 1e3 for point in points)
        marks.append(Line(name=name, x=offered, y=forwarded, colour=colours[name]))
        if len(points) == 1:
            marks.append(Points(name=name, x=offered, y=forwarded, colour=colours[name], legend=False))
    for stated in one.figure.stated:
        points = one.curves[stated.curve]
        if stated.at == "peak":
            at = max(points, key=lambda point: point.forwarded_pps).offered_pps
        else:
            at = points[-1].offered_pps if stated.at == "highest" else float(stated.at)
        marks.append(
            Points(
                name=f"{stated.curve}, stated",
                x=(at / 1e3,),
                y=(stated.value / 1e3,),
                colour=colours[stated.curve],
                symbol="cross",
                size_px=11,
                filled=stated.calibrates is not None,
                legend=False,
            )
        )
    crosses = " Crosses are what the source states." if one.figure.stated else ""
    return Figure(
        name=one.figure.name,
        title=one.figure.title,
        caption=f"Forwarded against offered load, simulated frame by frame.{crosses}",
        x=Axis(title="offered load, kpps", low=0.0),
        y=Axis(title="forwarded, kpps", low=0.0),
        marks=tuple(marks),
    )
