"""The report of a study of curves: a section for every figure, and the source beside it."""

from __future__ import annotations

from itertools import cycle

from routecast.explore.views import turned_section
from routecast.quantity import format_duration, format_pps
from routecast.show.figures import Axis, Figure, Line, Mark, Points
from routecast.show.page import Folded, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, scaled, signed_percent
from routecast.study.curves.run import SIDES, Compared, CurveResult, FigureResult, Patterned
from routecast.study.curves.simulate import Omitted, Point
from routecast.study.result import TerminalSummary, statements_section, statements_table

__all__ = ["page", "terminal_summary"]


# The tables of a study of curves, for the terminal and for the report alike.


_kpps = scaled(1e-3, ".0f")
_points = scaled(100.0, ".1f")


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

    def at(one: Compared) -> str:
        return one.stated.at if isinstance(one.stated.at, str) else format_pps(one.stated.at)

    def met(one: Compared) -> str:
        within = one.stated.within
        return "–" if within is None else "yes" if one.missed_by <= within else "NO"

    return Table.of(
        result.compared,
        Column.text("Figure", "figure"),
        Column.text("Curve", "stated.curve"),
        Column.text("At", at, wide=True),
        Column.text("", lambda one: SIDES[one.stated.side].strip()),
        Column("Stated", "kpps", _kpps, "stated.value"),
        Column("Found", "kpps", _kpps, "found_pps"),
        Column("Error", "%", signed_percent, "error_ratio"),
        Column("Allowed", "%", _points, "stated.within", wide=True),
        Column.text("Within", met),
        Column.text("", lambda one: "calibrates" if one.stated.is_calibrating else "compared"),
        Column.text("Where", "stated.place", wrap=True, wide=True),
        name="compared",
        title="Stated and found",
        caption="Forwarded rates; what calibrates is met by construction. Costs that do not calibrate may have been "
        "chosen with these values in sight: the techniques' files say so of each. Stated is what the source says in "
        "words; what is read off a figure says so under “Where”.",
    )


def left_out_table(result: CurveResult) -> Table:
    """Return each stated rate beside what the others predict of it."""

    def cost(one: Omitted) -> str:
        value = format_duration(float(f"{one.value_s:.3g}"))
        return f"{value}, an end of its range" if one.is_at_end else value

    return Table.of(
        result.left_out,
        Column.text("Figure", "figure"),
        Column.text("Left out", "stated.curve", wrap=True),
        Column.text("Cost", lambda one: ", ".join(one.paths), wrap=True, wide=True),
        Column.text("Set by the others to", cost, wrap=True),
        Column("Others", "", ".0f", "others", wide=True),
        Column("Stated", "kpps", _kpps, "stated.value"),
        Column("Predicted", "kpps", _kpps, "predicted_pps"),
        Column("Error", "%", signed_percent, "error_ratio"),
        name="left_out",
        title="Each stated rate left out in turn",
        caption="The calibrated cost is set anew, so that the other stated rates that it reaches are missed least "
        "(squares of relative misses), and predicts the one that is left out. All other costs stay as they were "
        "chosen, in sight of all rates: this checks the cost that calibrates, not those.",
    )


def patterns_table(one: Patterned) -> Table:
    """Return what a curve forwards under other patterns of flows."""
    return Table.of(
        tuple(zip(one.patterns.pattern, one.forwarded_pps, strict=True)),
        Column.text("Flows", lambda row: row[0].name, wrap=True),
        Column("Forwarded", "kpps", scaled(1e-3, ".1f"), lambda row: row[1]),
        name=f"patterns_{one.figure}_{one.patterns.curve}",
        title=f"{one.patterns.curve}: {format_pps(one.patterns.at)} in other flows",
        caption=one.patterns.says,
    )


def passed_table(result: CurveResult) -> Table:
    """Return what share of each flow passes, as stated and as found."""
    flows = [
        (one.passing, number, stated, found)
        for one in result.passed
        for number, (stated, found) in enumerate(zip(one.passing.ratios, one.found, strict=True), start=1)
    ]
    return Table.of(
        flows,
        Column.text("Curve", lambda row: row[0].curve),
        Column.text("Offered", lambda row: format_pps(row[0].at)),
        Column("Flow", "", ".0f", lambda row: row[1]),
        Column("Stated", "%", _points, lambda row: row[2]),
        Column("Found", "%", _points, lambda row: row[3]),
        Column("Error", "points", scaled(100.0, "+.1f"), lambda row: row[3] - row[2]),
        Column.text("Where", lambda row: row[0].place, wrap=True, wide=True),
        name="passing",
        title="What each flow passes",
        caption="Forwarded over offered of each flow, in percent.",
    )


def curves_table(one: FigureResult) -> Table:
    """Return the forwarded rate of every curve of a figure at every load."""
    return Table(
        name=f"curves_{one.figure.name}",
        title=one.figure.title,
        caption="Forwarded rate in kpps.",
        columns=(Column("Offered", "kpps", _kpps), *(Column(name, "kpps", _kpps) for name in one.curves)),
        rows=tuple(
            (load, *(points[number].forwarded_pps for points in one.curves.values()))
            for number, load in enumerate(one.figure.offered_pps)
        ),
    )


def threads_table(one: FigureResult) -> Table:
    """Return which threads are busiest at the highest load, and where frames are lost."""

    def busiest(row: tuple[str, Point]) -> str:
        busy = sorted(row[1].busy_cores.items(), key=lambda pair: -pair[1])[:4]
        return ", ".join(f"{thread} {100.0 * cores:.0f}" for thread, cores in busy)

    def lost(row: tuple[str, Point]) -> str:
        places = sorted(row[1].drops_pps.items(), key=lambda pair: -pair[1])[:2]
        return ", ".join(f"{place} {_kpps(rate)}" for place, rate in places) or "nowhere"

    return Table.of(
        [(name, points[-1]) for name, points in one.curves.items()],
        Column.text("Curve", lambda row: row[0]),
        Column.text("Busiest threads", busiest, unit="% of a core", wrap=True),
        Column("Cores busy", "", ".2f", lambda row: sum(row[1].busy_cores.values())),
        Column.text("Lost at", lost, unit="kpps", wrap=True),
        Column("Closed form", "kpps", _kpps, lambda row: row[1].solved_pps, wide=True),
        Column("Simulated", "kpps", _kpps, lambda row: row[1].forwarded_pps),
        name=f"threads_{one.figure.name}",
        title="Who works at the highest load",
        caption="Threads with the percent of a core that they keep busy; places of loss in kpps.",
    )


def terminal_summary(result: CurveResult) -> TerminalSummary:
    """Return what a terminal shows."""
    return TerminalSummary.of(
        calibrated_table(result),
        compared_table(result),
        left_out_table(result),
        *map(patterns_table, result.patterns),
        passed_table(result),
        statements_table(result.statements, caption=result.study.source),
        closing=result.criteria_met,
    )


# The figures of a study of curves: forwarded against offered load.


GREY = "#7a7f87"
COLOURS = ("#3f6fb5", "#d6812f", "#4aa36a", "#b0508f", "#c8524a", "#2b95a6", "#b39a2f", "#9b8ec4")


def curves_figure(one: FigureResult) -> Figure:
    """Return forwarded against offered load of every curve, with the stated values as crosses."""
    colours = dict(zip(one.curves, cycle(COLOURS), strict=False))
    top = one.figure.offered_pps[-1] / 1e3
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
                filled=stated.is_calibrating,
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
    return result.page(
        _answer(result),
        (
            _summary(result),
            turned_section(next(iter(study.router)), result.turned),
            *(_figure(result, one) for one in result.figures),
            bool(result.passed)
            and Section.of(
                "flows",
                "What each flow passes",
                "Flows that share a machine's cores lose differently.",
                passed_table(result),
            ),
            statements_section(
                result.statements,
                "What it says in words, and the same here.",
                anchor="source",
                of="source",
                caption=study.source,
            ),
        ),
        ("Points", f"{made.trials} asked for, of which {made.resumed_trials} were there already"),
        ("Simulated time of each", format_duration(study.run.duration)),
        result.criteria_row,
    )


def _answer(result: CurveResult) -> str:
    met = sum(one.is_met for one in result.criteria)
    calibrated = sum(one.stated.is_calibrating for one in result.compared)
    return (
        f"**{met} of {len(result.criteria)}** criteria are met: {len(result.compared)} stated rates, of which "
        f"{calibrated} calibrate, and {len(result.statements)} statements in words."
    )


def _summary(result: CurveResult) -> Section:
    tiles = [
        Tile(
            format_pps(max(one.peak_pps(name) for name in one.curves)),
            f"is the best of {one.figure.title}",
            max(one.curves, key=one.peak_pps),
        )
        for one in result.figures
    ]
    return Section.of(
        "summary",
        "Stated and found",
        "Every rate that the source states, beside the simulated one.",
        Tiles(tuple(tiles[:6])),
        bool(result.compared) and compared_table(result),
        bool(result.calibrated) and calibrated_table(result),
        bool(result.left_out) and left_out_table(result),
    )


def _figure(result: CurveResult, one: FigureResult) -> Section:
    return Section.of(
        f"figure-{one.figure.name}",
        one.figure.title,
        f"Frames of {one.figure.traffic.frame} B.",
        curves_figure(one),
        *(patterns_table(each) for each in result.patterns if each.figure == one.figure.name),
        threads_table(one),
        Folded(summary="Every load", table=curves_table(one)),
    )
