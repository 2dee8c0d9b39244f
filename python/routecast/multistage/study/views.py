"""The report of a study of routers of many machines: predictions beside measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable

from routecast.multistage.study.run import PREDICTION, FailureRow, MultistageResult, ThroughputRow
from routecast.quantity import format_duration
from routecast.show.figures import Axis, Figure, Line, Points, palette
from routecast.show.page import Page, Prose, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled, signed_percent
from routecast.study.result import TerminalSummary, format_percent, measured_points

__all__ = ["page", "terminal_summary"]

MEASURED, PREDICTED, SUM_OF_CAPS = palette(3, ordered=False)

EMULATION = (
    "**The caps are an emulation.** Each back-end router has an XDP program that drops what comes faster than a "
    "constant service time and a finite queue allow, so that scaling can be shown on fewer cores than machines. "
    "It does not delay.",
)
_BEFORE_S, _AFTER_S = 0.1, 0.35

_kpps = scaled(1e-3, ".4g")
_us = scaled(1e6, ".3g")
_ms = scaled(1e3, ".1f")


def throughput_table(result: MultistageResult) -> Table:
    """Return the throughput in overload over the number of back-end routers."""
    return Table.of(
        result.throughput,
        Column("Back-end routers", "", "d", "conditions"),
        Column("Offered", "kpps", _kpps, "offered_pps"),
        Column("Sum of caps", "kpps", _kpps, "sum_of_caps_pps"),
        Column("Predicted", "kpps", _kpps, "predicted"),
        Column("Measured", "kpps", _kpps, "measured"),
        Column("Spread", "%", percent, "repeats.spread_ratio", wide=True),
        Column("Over the sum", "", ".4f", "over_the_sum"),
        Column("Error", "%", signed_percent, "error_ratio"),
        name="throughput",
        title="Throughput in overload",
        caption="An empty queue takes its length once more than the cap: the prediction has it, the sum has not.",
    )


def latency_table(result: MultistageResult) -> Table:
    """Return the latency at loads without loss."""
    return Table.of(
        result.latency,
        Column("Back-end routers", "", "d", "conditions"),
        Column("Load", "kpps", _kpps, "load_pps"),
        Column("p50 predicted", "us", _us, "predicted"),
        Column("p50 measured", "us", _us, "measured"),
        Column("Error", "%", signed_percent, "error_ratio"),
        Column("p99 predicted", "us", _us, "predicted_p99_s"),
        Column("p99 measured", "us", _us, "p99_s.median"),
        name="latency",
        title="Latency below the caps",
        caption="Medians of the trials. Predicted is what one back-end router without a cap has at the same load.",
    )


def failures_table(result: MultistageResult) -> Table:
    """Return the predicted and the measured loss of each failure."""
    return Table.of(
        result.failures,
        Column.text("Failure", "conditions.title", wrap=True),
        Column.text("Who", lambda row: ", ".join(row.victims)),
        Column("Sent to them", "kpps", _kpps, "victims_pps"),
        Column("Away predicted", "ms", _ms, "predicted_away_s"),
        Column("Away measured", "ms", _ms, "away_s"),
        Column("Lost predicted", "frames", ".0f", "predicted"),
        Column("Simulated", "frames", ".0f", "simulated_frames", wide=True),
        Column("Lost measured", "frames", ".0f", "measured"),
        Column("Least", "frames", ".0f", "repeats.least", wide=True),
        Column("Most", "frames", ".0f", "repeats.most", wide=True),
        Column("Error", "%", signed_percent, "error_ratio"),
        name="failures",
        title="Failures under load",
        caption="Away: frames lost over the rate at which they were sent to who failed.",
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
    """Return throughput over the number of back-end routers."""
    rows = result.throughput

    def routers(row: ThroughputRow) -> float:
        return float(row.conditions)

    return Figure(
        name="throughput",
        title="Throughput of one to many back-end routers, with an emulated cap each",
        caption="Points are medians of the trials, their bars the extremes.",
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
    """Return the rate over time through a failure, predicted and measured."""
    marks: list[Line | Points] = []
    for number, course in enumerate(row.measured_rates):
        marks.append(
            Points.of_pairs(
                _around_failure(course),
                name="measured" if number == 0 else f"measured, trial {number + 1}",
                colour=MEASURED,
                size_px=4,
                symbol="circle",
                legend=number == 0,
            )
        )
    marks.append(Line.of_pairs(_around_failure(row.predicted_rates), name="predicted", colour=PREDICTED))
    trials = f"{len(row.measured_rates)} trial{'s' if len(row.measured_rates) != 1 else ''}"
    return Figure(
        name=f"failure-{row.conditions.name}",
        title=f"{row.conditions.title}: {row.conditions.routers} back-end routers at {row.load_pps / 1e3:g} kpps",
        caption=(
            f"Rates of parts of 5 ms; {trials}. The line is the simulator's and was written before the first trial; "
            "a measured time begins where most is lost."
        ),
        x=Axis(title="time since the failure [ms]", low=-1e3 * _BEFORE_S, high=1e3 * _AFTER_S),
        y=Axis(title="forwarded [kpps]", low=0.0),
        marks=tuple(marks),
        height_px=340,
    )


def _around_failure(course: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the part of a course that is drawn: ms since the failure, kpps."""
    return [(1e3 * at_s, rate_pps / 1e3) for at_s, rate_pps in course if -_BEFORE_S <= at_s <= _AFTER_S]


def page(result: MultistageResult) -> Page:
    """Return the page of the study."""
    study, made = result.study, result.provenance
    most = max(result.throughput, key=lambda row: row.conditions)
    answer = (
        f"**{most.conditions} back-end routers forward {format_percent(most.over_the_sum, 1)} of the sum of their "
        f"caps**; throughput is predicted within {format_percent(result.throughput_error_ratio)}."
    )
    if result.deaths:
        error = max((abs(row.error_ratio) for row in result.deaths), default=math.nan)
        answer += f" What the death of back-end routers loses was predicted within **{format_percent(error, 1)}**."
    return result.page(
        answer,
        (_overview(result), _throughput(result), _latency(result), _failures(result)),
        made.trials_row(result.invalid_trials),
        ("Length of a trial", format_duration(study.trials.duration)),
        ("Prediction", f"{PREDICTION}, written {result.prediction_written}; {_describe_order(result)}"),
        ("Machine", _machine(result)),
    )


def _describe_order(result: MultistageResult) -> str:
    if not result.first_failure:
        return "no failure was tried"
    return f"{PREDICTION} was written {result.prediction_written}, the first failure began {result.first_failure}."


def _machine(result: MultistageResult) -> str:
    tester = result.facts.get("tester", {})
    device = result.facts.get("device", {})
    parts = [str(part.get(key)) for part, key in ((device, "version"), (tester, "back_end")) if part.get(key)]
    return "; ".join(parts) or "–"


def _overview(result: MultistageResult) -> Section:
    tiles = [
        Tile(
            format_percent(result.max_distance_from_sum, 1),
            "furthest from the sum of caps",
            "a queue's length included",
        ),
        Tile(format_percent(result.throughput_error_ratio), "largest error of a predicted throughput"),
    ]
    if result.deaths:
        most_s = max(row.away_s for row in result.deaths)
        tiles.append(Tile(format_duration(float(f"{most_s:.3g}")), "longest time without the flows of who died"))
    if result.takeovers:
        most_s = max(row.away_s for row in result.takeovers)
        tiles.append(Tile(format_duration(float(f"{most_s:.3g}")), "until the second load balancer had taken over"))
    return Section.of(
        "answer", "Said first, measured then", _describe_order(result), Tiles(tuple(tiles)), Prose(EMULATION)
    )


def _throughput(result: MultistageResult) -> Section:
    return Section.of(
        "throughput",
        "Scaling",
        "Each flow goes to the machine that the real table gives it; the simulator serves it there.",
        throughput_figure(result),
        throughput_table(result),
    )


def _latency(result: MultistageResult) -> Section:
    return Section.of(
        "latency",
        "Latency",
        "However many back-end routers there are, a frame passes one of them, and a load balancer twice.",
        latency_table(result),
    )


def _failures(result: MultistageResult) -> Section | None:
    if not result.failures:
        return None
    return Section.of(
        "failures",
        "Failures",
        "The flows of a dead back-end router are lost for T + N / rate; then the others have them.",
        failures_table(result),
        *map(failure_figure, result.failures),
    )
