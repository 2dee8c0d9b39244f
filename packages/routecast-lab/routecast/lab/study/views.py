"""The report of a wire study: measurements, predictions and errors, and the facts of the machine."""

from __future__ import annotations

import math

from routecast.evaluate.views import arrivals_note
from routecast.lab.study.run import LatencyCurve, LoadCurve, LossRow, Series, SeriesRow, WireLatency, WireResult
from routecast.lab.study.wakeup import FittedWakeup
from routecast.quantity import format_duration, format_pps
from routecast.show.figures import Axis, Figure, Line, palette
from routecast.show.page import Listing, Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled, signed_percent
from routecast.study.result import TerminalSummary, format_percent, measured_points

__all__ = ["page", "terminal_summary"]


FACTORS = {
    "slowdown": ("Slow-down", "iterations"),
    "rules": ("Rules", ""),
    "flows": ("Flows", ""),
    "frame_bytes": ("Frame", "B"),
}
"""Titles and units of factors; the title of another factor is its name."""

MPPS_FROM_PPS = 5e6
"""Rates from here on are shown in Mpps."""

_DIGITS = ".4g"


_kpps = scaled(1e-3, _DIGITS)
_us = scaled(1e6, ".3g")


def _error(row: SeriesRow | WireLatency) -> str:
    return "calibrates" if row.calibrates else signed_percent(row.error_ratio)


def series_table(series: Series) -> Table:
    """Return the forwarding rates of one factor: measured, predicted, error."""
    title, unit = FACTORS.get(series.series.factor, (series.series.factor, ""))
    fastest_pps = max(row.predicted for row in series.rows)
    scale, rate = (1e-6, "Mpps") if fastest_pps >= MPPS_FROM_PPS else (1e-3, "kpps")
    return Table.of(
        series.rows,
        Column(title, unit, "g", lambda row: row.conditions),
        Column("Measured", rate, _DIGITS, lambda row: scale * row.measured),
        Column("Spread", "%", percent, lambda row: row.repeats.spread_ratio),
        Column("Predicted", rate, _DIGITS, lambda row: scale * row.predicted, group="routecast"),
        Column("Simulated", rate, _DIGITS, lambda row: scale * row.simulated_pps, group="routecast", wide=True),
        Column(
            "95 % interval", rate, getter=lambda row: f"{scale * row.low:.4g}–{scale * row.high:.4g}", group="routecast"
        ),
        Column("Error", "%", getter=_error, group="routecast"),
        name=f"throughput-{series.series.name}",
        title=series.series.title,
        caption="Forwarding rate in overload; the spread is the standard deviation of the repeated measurements.",
        strong=lambda row: row.calibrates,
    )


def loss_table(curve: LoadCurve[LossRow]) -> Table:
    """Return loss against offered load."""
    return Table.of(
        curve.rows,
        Column("Offered", "of capacity", ".2f", lambda row: row.conditions),
        Column("Offered", "kpps", _kpps, lambda row: row.offered_pps),
        Column("Measured", "% loss", percent, lambda row: row.measured),
        Column("Solved", "% loss", percent, lambda row: row.predicted, group="routecast"),
        Column("Simulated", "% loss", percent, lambda row: row.simulated, group="routecast"),
        Column("Error", "points", signed_percent, lambda row: row.error, group="routecast"),
        name=f"loss-{curve.stem}",
        title=f"Loss: {curve.title}",
        caption="None of these trials calibrates.",
    )


def latency_table(curve: LatencyCurve) -> Table:
    """Return latency against load."""
    return Table.of(
        curve.rows,
        Column("Load", "of capacity", ".2f", lambda row: row.conditions),
        Column("p50 measured", "us", _us, lambda row: row.measured),
        Column("p50 simulated", "us", _us, lambda row: row.predicted),
        Column("Error", "%", getter=_error),
        Column("p99 measured", "us", _us, lambda row: row.p99_s.median),
        Column("p99 simulated", "us", _us, lambda row: row.simulated_p99_s),
        name=f"latency-{curve.stem}",
        title=f"Latency: {curve.title}",
        caption=f"Medians of the repeated trials, and predictions of the simulator. {_arrivals_note(curve)}",
        strong=lambda row: row.calibrates,
    )


def _arrivals_note(curve: LatencyCurve) -> str:
    return arrivals_note(row.arrivals for row in curve.rows)


def error_table(result: WireResult) -> Table:
    """Return the errors at the held-out points beside the repeatability of the measurement."""
    latency_points, loss_points = len(result.held_out_latency), sum(len(curve.rows) for curve in result.loss)
    scatter = f"repeats scatter by {100 * result.repeatability_ratio:.2f} %"
    factor = f"p99 off by a factor of {result.p99_factor:.2f}"
    rows = (
        ("Forwarding rate, median error", result.throughput_error_ratio, ".2f", "%", scatter, len(result.held_out)),
        ("Loss, mean error", result.loss_error, ".2f", "points", "", loss_points),
        ("Median latency, median error", result.latency_error_ratio, ".1f", "%", factor, latency_points),
    )
    return Table.of(
        [row for row in rows if not math.isnan(row[1])],
        Column.text("What", lambda row: row[0]),
        Column("Error", getter=lambda row: f"{100 * row[1]:{row[2]}} {row[3]}"),
        Column.text("Beside", lambda row: row[4]),
        Column("Points", "", "d", lambda row: row[5]),
        name="errors",
        title="Errors at the held-out points",
        caption="Points that do not calibrate.",
    )


def terminal_summary(result: WireResult) -> TerminalSummary:
    """Return the summary of a study on the wire for a terminal."""
    return TerminalSummary.of(
        *map(series_table, result.series),
        *map(loss_table, result.loss),
        *map(latency_table, result.latency),
        error_table(result),
        notes=result.notes or (),
    )


MEASURED, PREDICTED, SIMULATED = palette(3, ordered=False)
STEPS = 48


def throughput_figure(series: Series) -> Figure:
    """Return forwarding rate in overload against the factor."""
    title, unit = FACTORS.get(series.series.factor, (series.series.factor, ""))
    law, values = series.law, [row.conditions for row in series.rows]
    low, high = min(values), max(values)
    line = Line.of(
        [low + (high - low) * step / STEPS for step in range(STEPS + 1)],
        float,
        lambda value: law.rate_pps(value) / 1e6,
        low=lambda value: law.interval_pps(value)[0] / 1e6,
        high=lambda value: law.interval_pps(value)[1] / 1e6,
        name="predicted, 95 % interval",
        colour=PREDICTED,
    )
    points = [
        measured_points(rows, lambda row: row.conditions, 1e-6, name=name, colour=MEASURED, filled=filled)
        for name, calibrates, filled in (("measured, held out", False, True), ("measured, calibrates", True, False))
        if (rows := [row for row in series.rows if row.calibrates is calibrates])
    ]
    return Figure(
        name=f"throughput-{series.series.name}",
        title=series.series.title,
        caption="Points are medians of repeated measurements, their bars the extremes; the line is the calibrated law.",
        x=Axis(title=f"{title} ({unit})" if unit else title),
        y=Axis(title="forwarding rate in overload (Mpps)", low=0.0),
        marks=(line, *points),
    )


def loss_figure(curve: LoadCurve[LossRow]) -> Figure:
    """Return loss against offered load."""

    def offered_mpps(row: LossRow) -> float:
        return row.offered_pps / 1e6

    return Figure(
        name=f"loss-{curve.stem}",
        title=f"Loss against offered load: {curve.title}",
        caption="All points are held out; the bars are the extremes of the repeated trials.",
        x=Axis(title="offered load (Mpps)", low=0.0),
        y=Axis(title="frame loss (%)", low=0.0),
        marks=(
            Line.of(curve.rows, offered_mpps, lambda row: 100 * row.predicted, name="solve", colour=PREDICTED),
            Line.of(
                curve.rows,
                offered_mpps,
                lambda row: 100 * row.simulated,
                name="simulate",
                colour=SIMULATED,
                dashed=True,
            ),
            measured_points(curve.rows, offered_mpps, 100.0, name="measured", colour=MEASURED),
        ),
    )


def latency_figure(curve: LatencyCurve) -> Figure:
    """Return latency against load: median and 99th percentile."""

    def load(row: WireLatency) -> float:
        return 100 * row.conditions

    return Figure(
        name=f"latency-{curve.stem}",
        title=f"Latency against load: {curve.title}",
        caption=f"Median (circles) and 99th percentile (squares), measured and simulated. {_arrivals_note(curve)}",
        x=Axis(title="load (% of predicted capacity)", low=0.0, high=100.0),
        y=Axis(title="one-way latency (us)", scale="log"),
        marks=(
            Line.of(curve.rows, load, lambda row: 1e6 * row.predicted, name="p50 simulated", colour=SIMULATED),
            Line.of(
                curve.rows,
                load,
                lambda row: 1e6 * row.simulated_p99_s,
                name="p99 simulated",
                colour=SIMULATED,
                dashed=True,
            ),
            measured_points(curve.rows, load, 1e6, name="p50 measured", colour=MEASURED),
            measured_points(curve.rows, load, 1e6, of="p99_s", name="p99 measured", colour=MEASURED, symbol="square"),
        ),
    )


def page(result: WireResult) -> Page:
    """Return the page of a wire study."""
    study, provenance = result.study, result.provenance
    calibrating = sum(row.calibrates for series in result.series for row in series.rows)
    answer = (
        f"Calibrated from **{calibrating} measured rates**, routecast predicts the other {len(result.held_out)} within "
        f"**{format_percent(result.throughput_error_ratio)}** (median); the measurement itself repeats within "
        f"{format_percent(result.repeatability_ratio)}."
    )
    return result.page(
        answer,
        (_overview(result), _rates(result), _loss(result), _latency(result), _facts(result)),
        provenance.trials_row(result.invalid_trials),
        ("Length of a trial", format_duration(study.testbed.duration)),
        ("Simulated time", format_duration(study.evaluate.duration)),
        ("Seed", str(provenance.seed)),
    )


def _overview(result: WireResult) -> Section:
    tiles = [
        Tile(
            format_percent(result.throughput_error_ratio),
            "median error of held-out forwarding rates",
            f"repeats scatter by {format_percent(result.repeatability_ratio)}",
        ),
        Tile(format_percent(result.coverage_ratio, 0), "of the held-out rates inside their 95 % interval"),
    ]
    if result.loss:
        tiles.append(Tile(f"{100 * result.loss_error:.2f} points", "mean error of the loss"))
    if result.latency:
        tiles.append(
            Tile(
                format_percent(result.latency_error_ratio, 0),
                "median error of held-out median latencies",
                f"p99 within a factor of {result.p99_factor:.1f}",
            )
        )
    return Section.of(
        "answer",
        "How well a few points predict the rest",
        "The errors leave out the points that calibrate.",
        Tiles(tuple(tiles)),
        error_table(result),
        bool(result.notes) and Listing(title="Notes", entries=result.notes or ()),
    )


def _rates(result: WireResult) -> Section:
    laws = tuple(
        f"**{series.series.name}**: a frame keeps the core busy for {format_duration(series.law.base_s)}"
        + (
            f", and {format_duration(series.law.per_work_s)} for each unit of {series.series.factor}"
            if series.law.per_work_s
            else ""
        )
        + f"; that is {format_pps(series.law.rate_pps(min(series.series.values)))} at best."
        for series in result.series
    )
    blocks = [block for series in result.series for block in (throughput_figure(series), series_table(series))]
    return Section.of(
        "rates",
        "Forwarding rate in overload",
        "A core forwards the inverse of its time for a frame, which grows linearly with known work.",
        Prose(laws),
        *blocks,
    )


def _loss(result: WireResult) -> Section:
    return Section.of(
        "loss",
        "Loss against offered load",
        "Below its capacity a router loses the frames that overflow in stalls; above it, it loses 1 − C/λ.",
        *[block for curve in result.loss for block in (loss_figure(curve), loss_table(curve))],
    )


def _latency(result: WireResult) -> Section:
    blocks = [block for curve in result.latency for block in (latency_figure(curve), latency_table(curve))]
    devices = [(curve.series.device, curve.wakeup) for curve in result.latency]
    wakeups = tuple(dict.fromkeys(_wakeup_sentence(device, wakeup) for device, wakeup in devices if wakeup))
    return Section.of(
        "latency",
        "Latency against load",
        "Frames wait for the wake-up across cores, then for the backlog of the wake-up and of each interruption.",
        bool(wakeups) and Prose(wakeups),
        *blocks,
    )


def _wakeup_sentence(device: str, wakeup: FittedWakeup) -> str:
    stalls = "no interruptions were needed"
    if wakeup.interruptions:
        mean = format_duration(wakeup.interruptions.duration.average_s)
        stalls = f"interruptions of {mean} on average take {format_percent(wakeup.interrupted_ratio, 1)} of the core"
    median = format_duration(wakeup.wakeup.quantile_s(0.5))
    return f"**{device}**: its thread wakes up within {median} (median); {stalls}."


def _facts(result: WireResult) -> Section:
    rows = [(device, *fact) for device, facts in result.facts.items() for fact in _flat(facts)]
    table = Table.of(
        rows,
        Column.text("Device", lambda row: row[0]),
        Column.text("What", lambda row: row[1]),
        Column.text("Value", lambda row: row[2]),
        name="facts",
        title="Devices under test and tester",
        caption="Their state at the time of the measurement.",
    )
    return Section.of("facts", "What was measured", "", bool(rows) and table)


def _flat(value: object, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [pair for key, entry in value.items() for pair in _flat(entry, f"{name}.{key}" if name else str(key))]
    if isinstance(value, list | tuple):
        return [(name, "; ".join(str(entry) for entry in value))] if value else []
    return [(name, str(value))] if value not in (None, "") else []
