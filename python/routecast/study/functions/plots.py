"""The figures of a study of functions."""

from __future__ import annotations

from routecast.report.figures import Axis, Figure, Line, Points, palette
from routecast.study.functions.result import FunctionResult

__all__ = ["agreement_figure", "function_figure"]

MOST_TICKS = 8


def function_figure(result: FunctionResult, title: str) -> Figure:
    """Return throughput against frame size by size of the tables: measured, estimated and refined."""
    rows = [row for row in result.rows if row.point.title == title]
    traffic = "uniform" if any(row.point.traffic == "uniform" for row in rows) else rows[0].point.traffic
    rows = [row for row in rows if row.point.traffic == traffic]
    sizes = list(dict.fromkeys(row.point.size for row in rows))
    frames = sorted({row.point.frame_bytes for row in rows})
    marks: list[Line | Points] = []
    for size, colour in zip(sizes, palette(len(sizes)), strict=True):
        mine = sorted((row for row in rows if row.point.size == size), key=lambda row: row.point.frame_bytes)
        x = tuple(float(row.point.frame_bytes) for row in mine)
        found = mine[0].found_in
        marks += [
            Line(
                name=f"{size} tables ({found}): estimate",
                x=x,
                y=tuple(row.estimated_pps / 1e6 for row in mine),
                colour=colour,
            ),
            Line(
                name=f"{size}: refined",
                x=x,
                y=tuple(row.refined_pps / 1e6 for row in mine),
                colour=colour,
                dashed=True,
                legend=False,
            ),
            Points(
                name=f"{size}: measured",
                x=x,
                y=tuple(row.measured_pps / 1e6 for row in mine),
                low=tuple(row.core_hz / max(row.measured_cycles) / 1e6 for row in mine),
                high=tuple(row.core_hz / min(row.measured_cycles) / 1e6 for row in mine),
                colour=colour,
                legend=False,
            ),
        ]
    ticks = frames if len(frames) <= MOST_TICKS else []
    return Figure(
        name=f"throughput-{title.replace(' ', '-')}",
        title=f"{title}: throughput of a core, {traffic} traffic",
        caption=(
            "Points are measured (bars: extremes of the repeats), lines estimated from the probe alone, dashed lines "
            "refined by two measurements."
        ),
        x=Axis(
            title="frame size (B)",
            scale="log",
            ticks=tuple(float(size) for size in ticks),
            labels=tuple(str(size) for size in ticks),
        ),
        y=Axis(title="throughput (Mpps)", low=0.0),
        marks=tuple(marks),
    )


def agreement_figure(result: FunctionResult) -> Figure:
    """Return measured against estimated time per packet, a point for each point of the study."""
    marks: list[Line | Points] = []
    times = [1e9 / value for row in result.rows for value in (row.measured_pps, row.estimated_pps)]
    ends = (min(times), max(times))
    for name, factor, dashed in (("equal", 1.0, False), ("± 30 %", 1.3, True), ("", 1 / 1.3, True)):
        marks.append(
            Line(
                name=name,
                x=ends,
                y=tuple(factor * end for end in ends),
                colour="#7a7f87",
                dashed=dashed,
                legend=bool(name),
            )
        )
    for title, colour in zip(result.titles, palette(len(result.titles)), strict=True):
        rows = [row for row in result.rows if row.point.title == title]
        marks.append(
            Points(
                name=title,
                x=tuple(1e9 / row.measured_pps for row in rows),
                y=tuple(1e9 / row.estimated_pps for row in rows),
                colour=colour,
                size_px=6,
            )
        )
    return Figure(
        name="agreement",
        title="Time per packet: estimated from operations against measured",
        caption="Every function, size of tables, frame size and traffic of the study; no measured function is used.",
        x=Axis(title="measured (ns per packet)", scale="log"),
        y=Axis(title="estimated (ns per packet)", scale="log"),
        marks=tuple(marks),
    )
