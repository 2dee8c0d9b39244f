"""The report of a study of curves: a section for each figure, and the statements of the source."""

from __future__ import annotations

from itertools import cycle

from routecast.explore.views import changed_values_section
from routecast.quantity import format_duration, format_pps
from routecast.replications.curves.run import SIDES, ComparedRate, CurveResult, FigureResult, PatternRates
from routecast.replications.curves.simulate import LeftOutRate, SimulatedPoint
from routecast.show.figures import CURVE_COLOURS, GREY, Axis, Figure, Line, Mark, Points
from routecast.show.page import Folded, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, scaled, signed_percent
from routecast.study.result import READ_OFF, TerminalSummary, statements_section, statements_table

__all__ = ["page", "terminal_summary"]


_kpps = scaled(1e-3, ".0f")
_points = scaled(100.0, ".1f")


def calibrated_table(result: CurveResult) -> Table:
    """Return the calibrated costs, and the rate that calibrates each."""
    return Table.of(
        result.calibrated,
        Column.text("Cost", lambda row: ", ".join(row.paths), wrap=True),
        Column.text("Value", lambda row: format_duration(float(f"{row.value_s:.4g}"))),
        Column("Stated", "kpps", _kpps, lambda row: row.stated_pps),
        Column("Found", "kpps", _kpps, lambda row: row.simulated_pps),
        Column.text(
            "On", lambda row: f"{row.figure}, {row.curve}{': ' + row.where if row.where else ''}", wrap=True, wide=True
        ),
        name="calibrated",
        title="Calibrated costs",
        caption="Each cost is set so that the simulated rate meets a stated rate; the router's description has all "
        "other costs.",
    )


def compared_table(result: CurveResult) -> Table:
    """Return every stated rate beside the simulated rate."""

    def at(row: ComparedRate) -> str:
        return row.conditions.at if isinstance(row.conditions.at, str) else format_pps(row.conditions.at)

    def is_within(row: ComparedRate) -> str:
        within = row.conditions.within
        return "–" if within is None else "yes" if row.missed_by <= within else "NO"

    return Table.of(
        result.compared,
        Column.text("Figure", lambda row: row.figure),
        Column.text("Curve", lambda row: row.conditions.curve),
        Column.text("At", at, wide=True),
        Column.text("", lambda row: SIDES[row.conditions.side].strip()),
        Column("Stated", "kpps", _kpps, lambda row: row.stated),
        Column("Found", "kpps", _kpps, lambda row: row.predicted),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        Column("Allowed", "%", _points, lambda row: row.conditions.within, wide=True),
        Column.text("Within", is_within),
        Column.text("", lambda row: "calibrates" if row.calibrates else "compared"),
        Column.text("Where", lambda row: row.conditions.place, wrap=True, wide=True),
        name="compared",
        title="Stated and found",
        caption="Forwarded rates; rates that calibrate are met by construction. Other costs may have been chosen in "
        f"sight of these rates, as the techniques' files state. {READ_OFF}",
    )


def left_out_table(result: CurveResult) -> Table:
    """Return each stated rate beside the rate that follows from the others."""

    def cost(row: LeftOutRate) -> str:
        value = format_duration(float(f"{row.value_s:.3g}"))
        return f"{value}, an end of its range" if row.is_at_end else value

    return Table.of(
        result.left_out,
        Column.text("Figure", lambda row: row.figure),
        Column.text("Left out", lambda row: row.conditions.curve, wrap=True),
        Column.text("Cost", lambda row: ", ".join(row.paths), wrap=True, wide=True),
        Column.text("Set by the others to", cost, wrap=True),
        Column("Others", "", ".0f", lambda row: row.others, wide=True),
        Column("Stated", "kpps", _kpps, lambda row: row.stated),
        Column("Found", "kpps", _kpps, lambda row: row.predicted),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        name="left_out",
        title="Each stated rate left out in turn",
        caption="The calibrated cost is set again by least squares of the relative errors of the other stated rates "
        "that depend on it; the rate that is left out follows from it. All other costs keep their values, which "
        "were chosen in sight of all rates: this checks the calibrated cost only.",
    )


def patterns_table(rates: PatternRates) -> Table:
    """Return the forwarded rates of a curve under other patterns of flows."""
    return Table.of(
        tuple(zip(rates.patterns.pattern, rates.forwarded_pps, strict=True)),
        Column.text("Flows", lambda row: row[0].name, wrap=True),
        Column("Forwarded", "kpps", scaled(1e-3, ".1f"), lambda row: row[1]),
        name=f"patterns_{rates.figure}_{rates.patterns.curve}",
        title=f"{rates.patterns.curve}: {format_pps(rates.patterns.at)} in other flows",
        caption=rates.patterns.says,
    )


def passed_table(result: CurveResult) -> Table:
    """Return the share of each flow that passes, as stated and as simulated."""
    flows = [
        (passing.passing, number, stated, ratio)
        for passing in result.passed
        for number, (stated, ratio) in enumerate(zip(passing.passing.ratios, passing.ratios, strict=True), start=1)
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
        title="Share of each flow that passes",
        caption="Forwarded over offered frames of each flow, in percent.",
    )


def curves_table(result: FigureResult) -> Table:
    """Return the forwarded rate of every curve of a figure at every load."""
    return Table(
        name=f"curves_{result.figure.name}",
        title=result.figure.title,
        caption="Forwarded rate in kpps.",
        columns=(Column("Offered", "kpps", _kpps), *(Column(name, "kpps", _kpps) for name in result.curves)),
        rows=tuple(
            (load, *(points[number].forwarded_pps for points in result.curves.values()))
            for number, load in enumerate(result.figure.offered_pps)
        ),
    )


def threads_table(result: FigureResult) -> Table:
    """Return the busiest threads at the highest load, and the places of loss."""

    def busiest(row: tuple[str, SimulatedPoint]) -> str:
        busy = sorted(row[1].busy_cores.items(), key=lambda pair: -pair[1])[:4]
        return ", ".join(f"{thread} {100.0 * cores:.0f}" for thread, cores in busy)

    def lost(row: tuple[str, SimulatedPoint]) -> str:
        places = sorted(row[1].drops_pps.items(), key=lambda pair: -pair[1])[:2]
        return ", ".join(f"{place} {_kpps(rate)}" for place, rate in places) or "nowhere"

    return Table.of(
        [(name, points[-1]) for name, points in result.curves.items()],
        Column.text("Curve", lambda row: row[0]),
        Column.text("Busiest threads", busiest, unit="% of a core", wrap=True),
        Column("Cores busy", "", ".2f", lambda row: sum(row[1].busy_cores.values())),
        Column.text("Lost at", lost, unit="kpps", wrap=True),
        Column("Closed form", "kpps", _kpps, lambda row: row[1].solved_pps, wide=True),
        Column("Simulated", "kpps", _kpps, lambda row: row[1].forwarded_pps),
        name=f"threads_{result.figure.name}",
        title="Busiest threads at the highest load",
        caption="Threads with the percent of a core that they keep busy; places of loss in kpps.",
    )


def terminal_summary(result: CurveResult) -> TerminalSummary:
    """Return the summary for a terminal."""
    return TerminalSummary.of(
        calibrated_table(result),
        compared_table(result),
        left_out_table(result),
        *map(patterns_table, result.patterns),
        passed_table(result),
        statements_table(result.statements, caption=result.study.source),
        closing=result.criteria_met,
    )


def curves_figure(result: FigureResult) -> Figure:
    """Return forwarded against offered load of every curve, with the stated values as crosses."""
    colours = dict(zip(result.curves, cycle(CURVE_COLOURS), strict=False))
    max_kpps = result.figure.offered_pps[-1] / 1e3
    peak_kpps = max(result.peak_pps(name) for name in result.curves) / 1e3
    marks: list[Mark] = [
        Line(
            name="no loss",
            x=(0.0, min(max_kpps, peak_kpps)),
            y=(0.0, min(max_kpps, peak_kpps)),
            colour=GREY,
            dashed=True,
        )
    ]
    for name, points in result.curves.items():
        pairs = [(point.offered_pps / 1e3, point.forwarded_pps / 1e3) for point in points]
        marks.append(Line.of_pairs(pairs, name=name, colour=colours[name]))
        if len(points) == 1:
            marks.append(Points.of_pairs(pairs, name=name, colour=colours[name], legend=False))
    for stated in result.figure.stated:
        points = result.curves[stated.curve]
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
    crosses = " Crosses are rates that the source states." if result.figure.stated else ""
    return Figure(
        name=result.figure.name,
        title=result.figure.title,
        caption=f"Forwarded against offered load, simulated frame by frame.{crosses}",
        x=Axis(title="offered load, kpps", low=0.0),
        y=Axis(title="forwarded, kpps", low=0.0),
        marks=tuple(marks),
    )


def page(result: CurveResult) -> Page:
    """Return the page of a study of curves."""
    study, provenance = result.study, result.provenance
    return result.page(
        _answer(result),
        (
            _summary(result),
            changed_values_section(next(iter(study.router)), result.turned),
            *(_figure(result, figure) for figure in result.figures),
            bool(result.passed)
            and Section.of(
                "flows",
                "Share of each flow that passes",
                "Flows that share a machine's cores lose differently.",
                passed_table(result),
            ),
            statements_section(
                result.statements,
                "Its statements in words, beside the simulated behaviour.",
                anchor="source",
                of="source",
                caption=study.source,
            ),
        ),
        ("Points", f"{provenance.trials}, {provenance.resumed_trials} kept from an interrupted run"),
        ("Simulated time of each", format_duration(study.run.duration)),
        result.criteria_row,
    )


def _answer(result: CurveResult) -> str:
    met = sum(criterion.is_met for criterion in result.criteria)
    calibrated = sum(row.calibrates for row in result.compared)
    return (
        f"**{met} of {len(result.criteria)}** criteria are met: {len(result.compared)} stated rates, of which "
        f"{calibrated} calibrate, and {len(result.statements)} statements in words."
    )


def _summary(result: CurveResult) -> Section:
    tiles = [
        Tile(
            format_pps(max(figure.peak_pps(name) for name in figure.curves)),
            f"is the best of {figure.figure.title}",
            max(figure.curves, key=figure.peak_pps),
        )
        for figure in result.figures
    ]
    return Section.of(
        "summary",
        "Stated and found",
        "Every rate that the source states, beside the simulated rate.",
        Tiles(tuple(tiles[:6])),
        bool(result.compared) and compared_table(result),
        bool(result.calibrated) and calibrated_table(result),
        bool(result.left_out) and left_out_table(result),
    )


def _figure(result: CurveResult, figure: FigureResult) -> Section:
    return Section.of(
        f"figure-{figure.figure.name}",
        figure.figure.title,
        f"Frames of {figure.figure.traffic.frame} B.",
        curves_figure(figure),
        *(patterns_table(rates) for rates in result.patterns if rates.figure == figure.figure.name),
        threads_table(figure),
        Folded(summary="Every load", table=curves_table(figure)),
    )
