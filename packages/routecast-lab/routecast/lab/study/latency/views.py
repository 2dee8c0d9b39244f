"""The report of a study of latencies: the verdict, and of each device the curve, its rows and the trials between."""

from __future__ import annotations

import math

from routecast.evaluate.points import Point
from routecast.lab.study.latency.run import DeviceLatency, LatencyStudyResult, PredictedLoad
from routecast.quantity import format_duration, format_pps
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.page import Listing, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, percent, scaled
from routecast.study.result import TerminalSummary, format_percent

__all__ = ["device_table", "load_table", "page", "terminal_summary"]

_us = scaled(1e6, ".3g")
_STEPS = 33
_LOWEST, _HIGHEST = 0.05, 0.95
MEASURED, PREDICTED, TAIL = palette(3, ordered=False)


def device_table(result: LatencyStudyResult) -> Table:
    """Return a row for each device: trials at the predicted loads, and errors in the undisturbed of them."""
    return Table.of(
        result.devices,
        Column.text("Device", lambda device: device.device.name),
        Column("Overload", "kpps", scaled(1e-3, ".4g"), lambda device: device.capacity_pps),
        Column("Trials", "", "d", lambda device: device.trials),
        Column("Undisturbed", "", "d", lambda device: device.undisturbed),
        Column("p50 error", "%", percent, lambda device: device.errors.median_abs_error_ratio),
        Column("Inside", "%", percent, lambda device: device.coverage_ratio),
        Column("p99 error", "%", percent, lambda device: device.p99_errors.median_abs_error_ratio, wide=True),
        name="devices",
        title="Predicted latency in undisturbed trials",
        caption="Trials at the predicted loads. Errors are medians over the undisturbed trials; inside: share of their "
        "medians in the predicted 95 % interval.",
    )


def load_table(device: DeviceLatency) -> Table:
    """Return the predicted loads of a device: the prediction, and the medians of undisturbed trials."""
    return Table.of(
        device.loads,
        Column("Load", "%", scaled(100.0, ".0f"), lambda load: load.conditions),
        Column("Trials", "", "d", lambda load: load.trials),
        Column("Undisturbed", "", "d", lambda load: len(load.repeats.values)),
        Column("p50 predicted", "us", _us, lambda load: load.predicted),
        Column("95 % interval", "us", getter=_interval),
        Column("p50 measured", "us", _us, lambda load: load.measured),
        Column("p99 predicted", "us", _us, lambda load: load.predicted_p99, wide=True),
        Column("p99 measured", "us", _us, lambda load: load.repeats_p99.median, wide=True),
        name=f"loads-{device.device.name}",
        title=f"Latency of {device.device.name}",
        caption="Measured: medians over the undisturbed trials.",
    )


def _interval(load: PredictedLoad) -> str:
    return "–" if math.isnan(load.low) else f"{1e6 * load.low:.3g}–{1e6 * load.high:.3g}"


def terminal_summary(result: LatencyStudyResult) -> TerminalSummary:
    """Return the summary of a study of latencies for a terminal."""
    return TerminalSummary.of(
        device_table(result),
        *(load_table(device) for device in result.devices),
        closing=f"{result.verdict[0].upper()}{result.verdict[1:]}.",
        notes=result.notes or (),
    )


def latency_figure(device: DeviceLatency) -> Figure:
    """Return the curve of the median over the load, with the rows that calibrate and the undisturbed trials."""
    curve = device.curve
    assert curve is not None
    at = [curve.at_load(_LOWEST + (_HIGHEST - _LOWEST) * step / (_STEPS - 1)) for step in range(_STEPS)]

    def ratio(row: Point) -> float:
        assert row.latency is not None
        return 100.0 * row.latency.load_pps / device.capacity_pps

    def p50_us(row: Point) -> float:
        assert row.latency is not None
        return 1e6 * row.latency.p50_s

    trials = [
        (100.0 * load.conditions, 1e6 * p50_s, 1e6 * p99_s)
        for load in device.loads
        for p50_s, p99_s in zip(load.repeats.values, load.repeats_p99.values, strict=True)
    ]
    marks: list[Mark] = [
        Line.of(
            [each for each in at if not math.isnan(each.latency_s)],
            lambda each: 100.0 * each.load_ratio,
            lambda each: 1e6 * each.latency_s,
            low=lambda each: 1e6 * each.low_s,
            high=lambda each: 1e6 * each.high_s,
            name="p50 predicted, 95 % interval",
            colour=PREDICTED,
        ),
        Points.of(
            [row for row in device.rows if not row.disturbed],
            ratio,
            p50_us,
            name="p50, calibrates",
            colour=MEASURED,
            filled=False,
        ),
    ]
    if trials:
        marks += [
            Points.of(trials, lambda row: row[0], lambda row: row[1], name="p50 measured, held out", colour=MEASURED),
            Points.of(
                trials,
                lambda row: row[0],
                lambda row: row[2],
                name="p99 measured, held out",
                colour=TAIL,
                symbol="square",
            ),
        ]
    return Figure(
        name=f"latency-{device.device.name}",
        title=f"Latency over the load: {device.device.name}",
        caption="The curve was fitted to the hollow points, before the others were measured. Undisturbed trials only.",
        x=Axis(title="load (% of the rate in overload)", low=0.0),
        y=Axis(title="one-way latency (us)", scale="log"),
        marks=tuple(marks),
    )


def page(result: LatencyStudyResult) -> Page:
    """Return the page of a study of latencies."""
    study = result.study
    return result.page(
        f"**{result.verdict[0].upper()}{result.verdict[1:]}.**",
        (_overview(result), *(_device(device) for device in result.devices if device.curve is not None)),
        ("Trials", f"{result.provenance.trials}, {result.provenance.resumed_trials} kept from an interrupted run"),
        ("Length of a trial", format_duration(study.testbed.duration)),
    )


def _overview(result: LatencyStudyResult) -> Section:
    tiles = [Tile(f"{result.undisturbed} of {result.trials}", "trials at the predicted loads are undisturbed")]
    if result.is_enough:
        tiles += [
            Tile(format_percent(result.errors.median_abs_error_ratio, 1), "median error of the median latency"),
            Tile(format_percent(result.coverage_ratio, 0), "of the medians inside their 95 % interval"),
        ]
    return Section.of(
        "answer",
        "How well two loads tell the latency between them",
        "Whether a trial was disturbed is decided before it is compared, and only undisturbed trials count.",
        Tiles(tuple(tiles)),
        device_table(result),
        bool(result.notes) and Listing(title="Notes", entries=result.notes or ()),
    )


def _device(device: DeviceLatency) -> Section:
    disturbed = tuple(
        f"at {load.conditions:.0%}: {reason}" for load in device.loads for reason in dict.fromkeys(load.disturbed)
    )
    return Section.of(
        f"device-{device.device.name}",
        device.device.name,
        f"It forwards {format_pps(device.capacity_pps)} in overload.",
        latency_figure(device),
        load_table(device),
        bool(disturbed) and Listing(title="Trials that do not count", entries=disturbed),
    )
