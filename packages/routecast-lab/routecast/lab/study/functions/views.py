"""The report of a study of functions: estimates from operations beside measurements."""

from __future__ import annotations

import math
from itertools import chain

from routecast.lab.study.functions.run import FunctionResult, FunctionRow
from routecast.quantity import format_bytes, format_duration, format_frequency
from routecast.quantity.comparison import ErrorSummary
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Facts, Folded, Listing, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled
from routecast.study.result import TerminalSummary

__all__ = ["function_table", "hand_table", "page", "summary_table", "terminal_summary"]


MAX_TICKS = 8

_whole_percent = scaled(100.0, "+.0f")
_mpps = scaled(1e-6, ".2f")


def function_table(result: FunctionResult, title: str, *, shortest: bool = False) -> Table:
    """Return the points of a function, all or those with its smallest frames: measured, estimated, refined."""
    rows = [row for row in result.rows if row.conditions.title == title]
    if shortest:
        smallest = min(row.conditions.frame_bytes for row in rows)
        rows = [row for row in rows if row.conditions.frame_bytes == smallest]
    return Table.of(
        rows,
        Column.text("Tables", lambda row: row.conditions.size),
        Column.text("Found in", lambda row: row.found_in),
        Column.text("Traffic", lambda row: row.conditions.traffic),
        Column("Frame", "B", "d", lambda row: row.conditions.frame_bytes),
        Column("Measured", "ns", ".1f", lambda row: 1e9 / row.measured),
        Column("Measured", "Mpps", _mpps, lambda row: row.measured),
        Column("Spread", "%", percent, lambda row: row.spread_ratio, wide=True),
        Column("Estimate", "Mpps", _mpps, lambda row: row.predicted, group="from the probe"),
        Column("Error", "%", _whole_percent, lambda row: row.error_ratio, group="from the probe"),
        Column("Refined", "Mpps", _mpps, lambda row: row.refined_pps, group="refined"),
        Column("Error", "%", _whole_percent, lambda row: row.refined_error_ratio, group="refined"),
        name=f"function-{title.replace(' ', '-')}",
        title=title,
        caption="Throughput of one core; the marked rows refined the estimate. Spread is the range of the repeats.",
        strong=lambda row: row.calibrates,
    )


def summary_table(result: FunctionResult) -> Table:
    """Return the errors of the estimates, by function and over all points."""

    def rows(title: str) -> list[FunctionRow]:
        return [row for row in result.rows if title in ("all", row.conditions.title)]

    def estimated(title: str) -> ErrorSummary:
        return ErrorSummary.of(row.error_ratio for row in rows(title))

    def refined_errors(title: str) -> ErrorSummary:
        return ErrorSummary.of(row.refined_error_ratio for row in rows(title) if not row.calibrates)

    probe, refined = "from the probe", "refined"
    return Table.of(
        (*result.titles, "all"),
        Column.text("Function", str),
        Column("Points", "", "d", lambda title: len(rows(title))),
        Column("Median", "%", percent, lambda title: estimated(title).median_abs_error_ratio, group=probe),
        Column("90th pct", "%", percent, lambda title: estimated(title).p90_abs_error_ratio, group=probe),
        Column("Median", "%", percent, lambda title: refined_errors(title).median_abs_error_ratio, group=refined),
        Column("90th pct", "%", percent, lambda title: refined_errors(title).p90_abs_error_ratio, group=refined),
        name="errors",
        title="Error of the estimated throughput",
        caption="Absolute relative errors; the points that refined are left out of the refined errors.",
        strong=(len(result.titles),),
    )


def hand_table(result: FunctionResult) -> Table | None:
    """Return functions beside the best hand loop for their lookup; None if no hand loop was run."""
    rows = [row for row in result.rows if math.isfinite(row.hand.frames_s)]
    if not rows:
        return None
    return Table.of(
        rows,
        Column.text("Function", lambda row: row.conditions.title),
        Column.text("Tables", lambda row: row.conditions.size),
        Column.text("Found in", lambda row: row.found_in, wide=True),
        Column("Function", "ns", ".1f", lambda row: 1e9 / row.measured),
        Column("Hand loop", "ns", ".1f", lambda row: 1e9 * row.hand.frames_s),
        Column("Ratio", "", ".2f", lambda row: 1.0 / (row.measured * row.hand.frames_s)),
        Column("Lookup alone", "ns", ".1f", lambda row: 1e9 * row.hand.lookup_s),
        Column("Batched", "ns", ".1f", lambda row: 1e9 * row.hand.bound_s, group="lines of tables alone"),
        Column("One by one", "ns", ".1f", lambda row: 1e9 * row.hand.one_by_one_s, group="lines of tables alone"),
        name="hand-loops",
        title="Functions beside hand-written loops",
        caption="The hand loop does the same lookup on the same frames in one fused loop; the lookup alone has "
        "prepared keys. The last columns are the time of the tables' cache lines alone, by the probe.",
    )


def terminal_summary(result: FunctionResult) -> TerminalSummary:
    """Return the summary of a study of functions for a terminal."""
    return TerminalSummary.of(
        *(function_table(result, title, shortest=True) for title in result.titles),
        hand_table(result),
        summary_table(result),
        notes=result.notes or (),
    )


def _frame_bytes(row: FunctionRow) -> float:
    return float(row.conditions.frame_bytes)


def function_figure(result: FunctionResult, title: str) -> Figure:
    """Return throughput against frame size by size of the tables: measured, estimated, refined."""
    rows = [row for row in result.rows if row.conditions.title == title]
    traffic = "uniform" if any(row.conditions.traffic == "uniform" for row in rows) else rows[0].conditions.traffic
    rows = [row for row in rows if row.conditions.traffic == traffic]
    sizes = list(dict.fromkeys(row.conditions.size for row in rows))
    frames = sorted({row.conditions.frame_bytes for row in rows})

    def marks(size: str, colour: str) -> tuple[Mark, ...]:
        by_frame_size = sorted(
            (row for row in rows if row.conditions.size == size), key=lambda row: row.conditions.frame_bytes
        )
        levels = by_frame_size[0].found_in
        return (
            Line.of(
                by_frame_size,
                _frame_bytes,
                lambda row: row.predicted / 1e6,
                name=f"{size} tables ({levels}): estimate",
                colour=colour,
            ),
            Line.of(
                by_frame_size,
                _frame_bytes,
                lambda row: row.refined_pps / 1e6,
                name=f"{size}: refined",
                colour=colour,
                dashed=True,
                legend=False,
            ),
            Points.of(
                by_frame_size,
                _frame_bytes,
                lambda row: row.measured / 1e6,
                low=lambda row: row.core_hz / row.cycles.most / 1e6,
                high=lambda row: row.core_hz / row.cycles.least / 1e6,
                name=f"{size}: measured",
                colour=colour,
                legend=False,
            ),
        )

    ticks = frames if len(frames) <= MAX_TICKS else []
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
        marks=tuple(chain.from_iterable(map(marks, sizes, palette(len(sizes))))),
    )


def agreement_figure(result: FunctionResult) -> Figure:
    """Return measured against estimated time per packet, for each point of the study."""
    times = [1e9 / rate_pps for row in result.rows for rate_pps in (row.measured, row.predicted)]
    ends = (min(times), max(times))
    marks: list[Mark] = [
        Line(
            name=name,
            x=ends,
            y=tuple(factor * end for end in ends),
            colour=GREY,
            dashed=factor != 1.0,
            legend=bool(name),
        )
        for name, factor in (("equal", 1.0), ("± 30 %", 1.3), ("", 1 / 1.3))
    ]
    marks += [
        Points.of(
            [row for row in result.rows if row.conditions.title == title],
            lambda row: 1e9 / row.measured,
            lambda row: 1e9 / row.predicted,
            name=title,
            colour=colour,
            size_px=6,
        )
        for title, colour in zip(result.titles, palette(len(result.titles)), strict=True)
    ]
    return Figure(
        name="agreement",
        title="Time per packet: estimated from operations against measured",
        caption="Every function, size of tables, frame size and traffic of the study; no measured function is used.",
        x=Axis(title="measured (ns per packet)", scale="log"),
        y=Axis(title="estimated (ns per packet)", scale="log"),
        marks=tuple(marks),
    )


def page(result: FunctionResult) -> Page:
    """Return the page of a study of functions."""
    study, provenance = result.study, result.provenance
    errors, refined = result.errors(), result.refined_errors()
    return result.page(
        (
            f"From a probe of the host and no measurement of any function, the throughput of {len(result.titles)} "
            f"functions at {errors.points} points is estimated within "
            f"**{percent(errors.median_abs_error_ratio)} %** (median; 90th percentile "
            f"{percent(errors.p90_abs_error_ratio)} %). After a few measurements of each function the median error of "
            f"the others is **{percent(refined.median_abs_error_ratio)} %**."
        ),
        (
            _overview(result),
            *(_function(result, title) for title in result.titles),
            Section.of(
                "hand",
                "How fast the functions are",
                "A function composed of operations is almost as fast as a hand loop, if its stages keep the memory "
                "busy.",
                hand_table(result),
            ),
            _host(result),
        ),
        ("Runs", f"{provenance.trials}, {provenance.resumed_trials} kept from an interrupted study"),
        ("Length of a run", format_duration(study.run.duration)),
        ("Seed", str(provenance.seed)),
        source="Baldi & Sapio 2018, Network Function Modeling and Performance Estimation, IJECE 8(5)",
    )


def _overview(result: FunctionResult) -> Section:
    errors, refined = result.errors(), result.refined_errors()
    tiles = (
        Tile(
            f"{percent(errors.median_abs_error_ratio)} %",
            "median error from the probe alone",
            f"90th percentile {percent(errors.p90_abs_error_ratio)} %",
        ),
        Tile(
            f"{percent(refined.median_abs_error_ratio)} %",
            "median error after refining",
            f"90th percentile {percent(refined.p90_abs_error_ratio)} %",
        ),
        Tile(str(errors.points), "points", f"of {len(result.titles)} functions"),
    )
    return Section.of(
        "answer",
        "Estimates from operations alone",
        "Each estimate is a sum of operations and of cache lines, without a fit to the function.",
        Tiles(tiles),
        agreement_figure(result),
        summary_table(result),
        bool(result.notes) and Listing(title="Notes", entries=result.notes or ()),
    )


def _function(result: FunctionResult, title: str) -> Section:
    return Section.of(
        title.replace(" ", "-"),
        title,
        "",
        function_figure(result, title),
        Folded(summary=f"All points of {title}", table=function_table(result, title)),
    )


def _host(result: FunctionResult) -> Section:
    host = result.hardware
    rows = [("Processor", host.cpu.name), ("Clock", format_frequency(host.cpu.frequency_hz))]
    rows += [
        (
            level.name,
            (f"{format_bytes(level.size_bytes)}, " if level.size_bytes < float("inf") else "")
            + f"{level.dependent_cycles:.0f} cycles one after the other, {level.batched_cycles:.1f} in batches",
        )
        for level in host.levels
    ]
    return Section.of("host", "The host", "", Facts(title="Costs that the probe measured", rows=tuple(rows)))
