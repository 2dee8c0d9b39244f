"""The report of a study of curves: a section for every figure, and the source beside it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle

from routecast.quantity import format_duration, format_pps
from routecast.report.figures import Axis, Figure, Line, Mark, Points
from routecast.report.page import Block, Folded, Page, Section, Tile, Tiles
from routecast.report.tables import Cell, Column, Table, signed_percent
from routecast.study.curves.run import CurveResult, FigureResult
from routecast.study.result import TerminalSummary, statements_table

__all__ = ["page", "terminal_summary"]


# The tables of a study of curves, for the terminal and for the report alike.


SIDES = {"about": "", "at_least": "at least", "at_most": "at most"}


def _kpps(rate_pps: float) -> str:
    return f"{rate_pps / 1e3:.0f}"


def _points(ratio: float) -> str:
    return f"{100.0 * ratio:.1f}"


def calibrated_table(result: CurveResult) -> Table:
    """Return the costs that were calibrated, and on what."""
    return Table.of(
        result.calibrated,
        Column.text("Cost", lambda one: ", ".join(one.paths), wrap=True),
        Column.text("Value", lambda one: format_duration(float(f"{one.value_s:.4g}"))),
        Column("Stated", "kpps", _kpps, "stated_pps"),
        Column("Found", "kpps", _kpps, "found_pps"),
        Column.text(
            "On", lambda one: f"{one.figure}, {one.curve}{': ' + one.where if one.where else ''}", wrap=True, wide=True
        ),
        name="calibrated",
        title="Calibrated costs",
        caption="Each is set so that one stated rate is met; every other cost stands in the router's description.",
    )


def compared_table(result: CurveResult) -> Table:
    """Return every stated rate beside the one found."""
    rows: list[tuple[Cell, ...]] = []
    for one in result.compared:
        stated = one.stated
        met = None if stated.within is None else one.missed_by <= stated.within
        role = "calibrates" if stated.calibrates else "compared"
        rows.append(
            (
                one.figure,
                stated.curve,
                stated.at if isinstance(stated.at, str) else format_pps(stated.at),
                SIDES[stated.side],
                stated.value,
                one.found_pps,
                one.error_ratio,
                stated.within,
                "–" if met is None else "yes" if met else "NO",
                role,
                stated.where,
            )
        )
    return Table(
        name="compared",
        title="Stated and found",
        caption=(
            "Forwarded rates; what calibrates is met by construction. Costs that do not calibrate may have been chosen "
            "with these values in sight: the techniques' files say so of each."
        ),
        columns=(
            Column.text("Figure"),
            Column.text("Curve"),
            Column.text("At", wide=True),
            Column.text("", wide=True),
            Column("Stated", "kpps", _kpps),
            Column("Found", "kpps", _kpps),
            Column("Error", "%", signed_percent),
            Column("Allowed", "%", _points, wide=True),
            Column.text("Within"),
            Column.text(""),
            Column.text("Where", wrap=True, wide=True),
        ),
        rows=tuple(rows),
    )


def passed_table(result: CurveResult) -> Table:
    """Return what share of each flow passes, as stated and as found."""
    rows: list[tuple[Cell, ...]] = []
    for one in result.passed:
        for number, (stated, found) in enumerate(zip(one.passing.ratios, one.found, strict=True)):
            rows.append(
                (
                    one.passing.curve,
                    format_pps(one.passing.at),
                    number + 1,
                    stated,
                    found,
                    found - stated,
                    one.passing.where,
                )
            )
    return Table(
        name="passing",
        title="What each flow passes",
        caption="Forwarded over offered of each flow, in percent.",
        columns=(
            Column.text("Curve"),
            Column.text("Offered"),
            Column("Flow", "", ".0f"),
            Column("Stated", "%", _points),
            Column("Found", "%", _points),
            Column("Error", "points", lambda ratio: f"{100.0 * ratio:+.1f}"),
            Column.text("Where", wrap=True, wide=True),
        ),
        rows=tuple(rows),
    )


def curves_table(one: FigureResult) -> Table:
    """Return the forwarded rate of every curve of a figure at every load."""
    return Table(
        name=f"curves_{one.figure.name}",
        title=one.figure.title,
        caption="Forwarded rate in kpps.",
        columns=(
            Column("Offered", "kpps", _kpps),
            *(Column(name, "kpps", _kpps) for name in one.curves),
        ),
        rows=tuple(
            (load, *(points[number].forwarded_pps for points in one.curves.values()))
            for number, load in enumerate(one.figure.offered)
        ),
    )


def threads_table(one: FigureResult) -> Table:
    """Return which threads are busiest at the highest load, and where frames are lost."""
    rows: list[tuple[Cell, ...]] = []
    for name, points in one.curves.items():
        last = points[-1]
        busy = sorted(last.busy_cores.items(), key=lambda pair: -pair[1])[:4]
        lost = sorted(last.drops_pps.items(), key=lambda pair: -pair[1])[:2]
        rows.append(
            (
                name,
                ", ".join(f"{thread} {100.0 * cores:.0f}" for thread, cores in busy),
                sum(last.busy_cores.values()),
                ", ".join(f"{place} {_kpps(rate)}" for place, rate in lost) or "nowhere",
                last.solved_pps,
                last.forwarded_pps,
            )
        )
    return Table(
        name=f"threads_{one.figure.name}",
        title="Who works at the highest load",
        caption="Threads with the percent of a core that they keep busy; places of loss in kpps.",
        columns=(
            Column.text("Curve"),
            Column.text("Busiest threads", unit="% of a core", wrap=True),
            Column("Cores busy", "", ".2f"),
            Column.text("Lost at", unit="kpps", wrap=True),
            Column("Closed form", "kpps", _kpps, wide=True),
            Column("Simulated", "kpps", _kpps),
        ),
        rows=tuple(rows),
    )


def terminal_summary(result: CurveResult) -> TerminalSummary:
    """Return what a terminal shows."""
    makers: tuple[tuple[object, Callable[[CurveResult], Table]], ...] = (
        (result.calibrated, calibrated_table),
        (result.compared, compared_table),
        (result.passed, passed_table),
    )
    tables = [make(result) for there, make in makers if there]
    if result.statements:
        tables.append(statements_table(result.statements, caption=result.study.source))
    return TerminalSummary(tables=tuple(tables), closing=result.criteria_met)


# The figures of a study of curves: forwarded against offered load.


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


def page(result: CurveResult) -> Page:
    """Return the page of a study of curves."""
    study, made = result.study, result.provenance
    sections = [_summary(result), *(_figure(one) for one in result.figures)]
    if result.passed:
        sections.append(
            Section(
                anchor="flows",
                title="What each flow passes",
                lead="Flows that share a machine's cores lose differently.",
                blocks=(passed_table(result),),
            )
        )
    if result.statements:
        sections.append(
            Section(
                anchor="source",
                title="The source beside it",
                lead="What it says in words, and the same here.",
                blocks=(statements_table(result.statements, caption=study.source),),
            )
        )
    return result.page(
        _answer(result),
        sections,
        ("Points", f"{made.trials} asked for, of which {made.resumed_trials} were there already"),
        ("Simulated time of each", format_duration(study.run.duration)),
        result.criteria_row,
    )


def _answer(result: CurveResult) -> str:
    met = sum(one.is_met for one in result.criteria)
    calibrated = sum(one.stated.calibrates is not None for one in result.compared)
    return (
        f"**{met} of {len(result.criteria)}** criteria are met: {len(result.compared)} stated rates, of which "
        f"{calibrated} calibrate, and {len(result.statements)} statements in words."
    )


def _summary(result: CurveResult) -> Section:
    tiles = [
        Tile(
            value=format_pps(max(one.peak_pps(name) for name in one.curves)),
            meaning=f"is the best of {one.figure.title}",
            beside=max(one.curves, key=one.peak_pps),
        )
        for one in result.figures
    ]
    blocks: list[Block] = [Tiles(tuple(tiles[:6]))]
    blocks += [compared_table(result)] if result.compared else []
    blocks += [calibrated_table(result)] if result.calibrated else []
    return Section(
        anchor="summary",
        title="Stated and found",
        lead="Every rate that the source states, beside the simulated one.",
        blocks=tuple(blocks),
    )


def _figure(one: FigureResult) -> Section:
    return Section(
        anchor=f"figure-{one.figure.name}",
        title=one.figure.title,
        lead=f"Frames of {one.figure.traffic.frame} B.",
        blocks=(
            curves_figure(one),
            threads_table(one),
            Folded(summary="Every load", table=curves_table(one)),
        ),
    )
