"""The report of a study of routers of many machines: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Iterable

from routecast.evaluate.views import arrivals_note
from routecast.multistage.study.run import PREDICTION, FailureRow, MultistageResult, ThroughputRow
from routecast.quantity import format_duration
from routecast.show.figures import Axis, Figure, Line, Points, palette
from routecast.show.page import Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled, signed_percent
from routecast.study.result import TerminalSummary, format_percent, measured_points

__all__ = ["page", "terminal_summary"]

MEASURED, PREDICTED, SUM_OF_CAPS = palette(3, ordered=False)

EMULATION = (
    "**The caps are an emulation.** An XDP program in each back-end router drops frames that arrive faster than a "
    "constant service time and a finite queue allow. It does not delay frames. This shows scaling on fewer cores than "
    "machines.",
)
_BEFORE_S, _AFTER_S = 0.1, 0.35

_kpps = scaled(1e-3, ".4g")
_us = scaled(1e6, ".3g")
_ms = scaled(1e3, ".1f")


def throughput_table(result: MultistageResult) -> Table:
    """Return the table of throughput in overload by the number of back-end routers."""
    return Table.of(
        result.throughput,
        Column("Back-end routers", "", "d", lambda row: row.conditions),
        Column("Offered", "kpps", _kpps, lambda row: row.offered_pps),
        Column("Sum of caps", "kpps", _kpps, lambda row: row.sum_of_caps_pps),
        Column("Predicted", "kpps", _kpps, lambda row: row.predicted),
        Column("Measured", "kpps", _kpps, lambda row: row.measured),
        Column("Spread", "%", percent, lambda row: row.repeats.spread_ratio, wide=True),
        Column("Over the sum", "", ".4f", lambda row: row.over_the_sum),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        name="throughput",
        title="Throughput in overload",
        caption="Frames that fill the queues add to the caps: they are in the prediction, but not in the sum of caps.",
    )


def latency_table(result: MultistageResult) -> Table:
    """Return the table of latency at loads below the sum of caps."""
    return Table.of(
        result.latency,
        Column("Back-end routers", "", "d", lambda row: row.conditions),
        Column("Load", "kpps", _kpps, lambda row: row.load_pps),
        Column("p50 predicted", "us", _us, lambda row: row.predicted),
        Column("p50 measured", "us", _us, lambda row: row.measured),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        Column("p99 predicted", "us", _us, lambda row: row.predicted_p99_s),
        Column("p99 measured", "us", _us, lambda row: row.p99_s.median),
        name="latency",
        title="Latency below the caps",
        caption="Medians of the trials. Predicted: the latency of one back-end router without a cap at the same load. "
        + arrivals_note(row.arrivals for row in result.latency),
    )


def failures_table(result: MultistageResult) -> Table:
    """Return the table of the predicted and the measured loss of each failure."""
    return Table.of(
        result.failures,
        Column.text("Failure", lambda row: row.conditions.title, wrap=True),
        Column.text("Failed", lambda row: ", ".join(row.victims)),
        Column("Rate to them", "kpps", _kpps, lambda row: row.victims_pps),
        Column("Away predicted", "ms", _ms, lambda row: row.predicted_away_s),
        Column("Away measured", "ms", _ms, lambda row: row.away_s),
        Column("Lost predicted", "frames", ".0f", lambda row: row.predicted),
        Column("Simulated", "frames", ".0f", lambda row: row.simulated_frames, wide=True),
        Column("Lost measured", "frames", ".0f", lambda row: row.measured),
        Column("Minimum", "frames", ".0f", lambda row: row.repeats.least, wide=True),
        Column("Maximum", "frames", ".0f", lambda row: row.repeats.most, wide=True),
        Column("Error", "%", signed_percent, lambda row: row.error_ratio),
        name="failures",
        title="Failures under load",
        caption="Away: lost frames over the rate to the failed elements.",
    )


def terminal_summary(result: MultistageResult) -> TerminalSummary:
    """Return the summary for a terminal."""
    return TerminalSummary.of(
        throughput_table(result),
        latency_table(result),
        failures_table(result),
        closing=_describe_order(result),
        notes=(f"{result.invalid_trials} invalid trials are left out",) if result.invalid_trials else (),
    )


def throughput_figure(result: MultistageResult) -> Figure:
    """Return the figure of throughput over the number of back-end routers."""
    rows = result.throughput

    def routers(row: ThroughputRow) -> float:
        return float(row.conditions)

    return Figure(
        name="throughput",
        title="Throughput over the number of back-end routers with an emulated cap",
        caption="Points are medians of the trials, and bars their extremes.",
        x=Axis(title="back-end routers", low=0.0),
        y=Axis(title="forwarded in overload [kpps]", low=0.0),
        marks=(
            Line.of(
                rows,
                routers,
                lambda row: row.sum_of_caps_pps / 1e3,
                name="sum of caps",
                colour=SUM_OF_CAPS,
                dashed=True,
            ),
            Line.of(rows, routers, lambda row: row.predicted / 1e3, name="predicted", colour=PREDICTED),
            measured_points(rows, routers, 1e-3, name="measured", colour=MEASURED),
        ),
    )


def failure_figure(row: FailureRow) -> Figure:
    """Return the figure of the predicted and measured rate over time around a failure."""
    measured = [
        Points.of_pairs(
            _around_failure(course),
            name="measured" if number == 1 else f"measured, trial {number}",
            colour=MEASURED,
            size_px=4,
            symbol="circle",
            legend=number == 1,
        )
        for number, course in enumerate(row.measured_rates, start=1)
    ]
    predicted = Line.of_pairs(_around_failure(row.predicted_rates), name="predicted", colour=PREDICTED)
    return Figure(
        name=f"failure-{row.conditions.name}",
        title=f"{row.conditions.title}: {row.conditions.routers} back-end routers at {row.load_pps / 1e3:g} kpps",
        caption=(
            f"Rates of intervals of 5 ms in {len(measured)} trial{'s' if len(measured) != 1 else ''}. The line is the "
            "simulated rate, written before the first trial. A measured course starts at its largest loss."
        ),
        x=Axis(title="time since the failure [ms]", low=-1e3 * _BEFORE_S, high=1e3 * _AFTER_S),
        y=Axis(title="forwarded [kpps]", low=0.0),
        marks=(*measured, predicted),
        height_px=340,
    )


def _around_failure(course: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the drawn part of a course: ms since the failure, kpps."""
    return [(1e3 * time_s, rate_pps / 1e3) for time_s, rate_pps in course if -_BEFORE_S <= time_s <= _AFTER_S]


def page(result: MultistageResult) -> Page:
    """Return the page of the study."""
    largest = max(result.throughput, key=lambda row: row.conditions)
    answer = (
        f"**{largest.conditions} back-end routers forward {format_percent(largest.over_the_sum, 1)} of their caps**; "
        f"throughput is predicted within {format_percent(result.throughput_error_ratio)}."
    )
    if result.deaths:
        error = max(abs(row.error_ratio) for row in result.deaths)
        answer += f" The loss by the death of back-end routers is predicted within **{format_percent(error, 1)}**."
    return result.page(
        answer,
        (_overview(result), _throughput(result), _latency(result), _failures(result)),
        result.provenance.trials_row(result.invalid_trials),
        ("Length of a trial", format_duration(result.study.trials.duration)),
        ("Prediction", f"{PREDICTION}, written {result.prediction_written}; {_describe_order(result)}"),
        ("Machine", _machine(result)),
    )


def _describe_order(result: MultistageResult) -> str:
    if not result.first_failure:
        return "no failure was measured"
    return f"{PREDICTION} was written {result.prediction_written}, the first failure began {result.first_failure}."


def _machine(result: MultistageResult) -> str:
    tester = result.facts.get("tester", {})
    device = result.facts.get("device", {})
    parts = [str(part.get(key)) for part, key in ((device, "version"), (tester, "back_end")) if part.get(key)]
    return "; ".join(parts) or "–"


def _overview(result: MultistageResult) -> Section:
    tiles = [
        Tile(
            format_percent(result.max_distance_from_sum, 1), "largest distance from the sum of caps", "with the queues"
        ),
        Tile(format_percent(result.throughput_error_ratio), "largest error of a predicted throughput"),
    ]
    for rows, meaning in (
        (result.deaths, "longest loss of the flows of dead back-end routers"),
        (result.takeovers, "longest time until the standby load balancer took over"),
    ):
        if rows:
            tiles.append(Tile(format_duration(float(f"{max(row.away_s for row in rows):.3g}")), meaning))
    return Section.of(
        "answer", "Prediction and measurement", _describe_order(result), Tiles(tuple(tiles)), Prose(EMULATION)
    )


def _throughput(result: MultistageResult) -> Section:
    return Section.of(
        "throughput",
        "Scaling",
        "The table of the load balancer gives each flow its back-end router; the simulator serves the flow there.",
        throughput_figure(result),
        throughput_table(result),
    )


def _latency(result: MultistageResult) -> Section:
    return Section.of(
        "latency",
        "Latency",
        "A frame passes the load balancer twice and one of any number of back-end routers.",
        latency_table(result),
    )


def _failures(result: MultistageResult) -> Section | None:
    if not result.failures:
        return None
    return Section.of(
        "failures",
        "Failures",
        "The flows of a dead back-end router are lost for T + N / rate; then the other routers take them.",
        failures_table(result),
        *map(failure_figure, result.failures),
    )
