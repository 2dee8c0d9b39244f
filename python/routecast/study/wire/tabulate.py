"""The tables of a wire study, for the terminal and for the report alike."""

from __future__ import annotations

import math

from routecast.report.tables import Cell, Column, Table, percent, signed_percent
from routecast.study.shown import Shown
from routecast.study.wire.result import LatencyCurve, LossCurve, Series, WireResult

__all__ = ["FACTORS", "error_table", "latency_table", "loss_table", "series_table", "shown"]

FACTORS = {
    "slowdown": ("Slow-down", "iterations"),
    "rules": ("Rules", ""),
    "flows": ("Flows", ""),
    "frame_bytes": ("Frame", "B"),
}
"""Titles and units of factors; others stand under their own name."""

MANY_PPS = 5e6
"""Rates from here on are shown in millions."""

_DIGITS = ".4g"


def _kpps(rate_pps: float) -> float:
    return rate_pps / 1e3


def _us(time_s: float) -> float:
    return 1e6 * time_s


def series_table(series: Series) -> Table:
    """Return the forwarding rates of one factor: measured, predicted, error."""
    title, unit = FACTORS.get(series.series.factor, (series.series.factor, ""))
    fastest_pps = max(row.solved_pps for row in series.rows)
    scale, rate = (1e-6, "Mpps") if fastest_pps >= MANY_PPS else (1e-3, "kpps")
    rows: list[tuple[Cell, ...]] = [
        (
            row.value,
            scale * row.measured_pps.median,
            row.measured_pps.spread_ratio,
            scale * row.solved_pps,
            scale * row.simulated_pps,
            f"{scale * row.low_pps:.4g}–{scale * row.high_pps:.4g}",
            "calibrates" if row.calibrates else signed_percent(row.error_ratio),
        )
        for row in series.rows
    ]
    return Table(
        name=f"throughput-{series.series.name}",
        title=series.series.title,
        caption="Forwarding rate in overload; the spread is the standard deviation of the repeated measurements.",
        columns=(
            Column(title=title, unit=unit, form="g"),
            Column(title="Measured", unit=rate, form=_DIGITS),
            Column(title="Spread", unit="%", form=percent),
            Column(title="Predicted", unit=rate, form=_DIGITS, group="routecast"),
            Column(title="Simulated", unit=rate, form=_DIGITS, group="routecast", wide=True),
            Column(title="95 % interval", unit=rate, group="routecast"),
            Column(title="Error", unit="%", group="routecast"),
        ),
        rows=tuple(rows),
        strong=frozenset(number for number, row in enumerate(series.rows) if row.calibrates),
    )


def loss_table(curve: LossCurve) -> Table:
    """Return loss against offered load."""
    return Table(
        name=f"loss-{curve.series.name}-{curve.value:g}",
        title=f"Loss: {curve.series.device}, {curve.series.factor} = {curve.value:g}",
        caption="None of these trials calibrates.",
        columns=(
            Column(title="Offered", unit="of capacity", form=".2f"),
            Column(title="Offered", unit="kpps", form=_DIGITS),
            Column(title="Measured", unit="% loss", form=percent),
            Column(title="Solved", unit="% loss", form=percent, group="routecast"),
            Column(title="Simulated", unit="% loss", form=percent, group="routecast"),
            Column(title="Error", unit="points", form=signed_percent, group="routecast"),
        ),
        rows=tuple(
            (
                row.offered_ratio,
                _kpps(row.offered_pps),
                row.measured.median,
                row.solved,
                row.simulated,
                row.error,
            )
            for row in curve.rows
        ),
    )


def latency_table(curve: LatencyCurve) -> Table:
    """Return latency against load."""
    return Table(
        name=f"latency-{curve.series.name}-{curve.value:g}",
        title=f"Latency: {curve.series.device}, {curve.series.factor} = {curve.value:g}",
        caption="Medians of the repeated trials, and what the simulator predicts.",
        columns=(
            Column(title="Load", unit="of capacity", form=".2f"),
            Column(title="p50 measured", unit="us", form=".3g"),
            Column(title="p50 simulated", unit="us", form=".3g"),
            Column(title="Error", unit="%"),
            Column(title="p99 measured", unit="us", form=".3g"),
            Column(title="p99 simulated", unit="us", form=".3g"),
        ),
        rows=tuple(
            (
                row.load_ratio,
                _us(row.p50_s.median),
                _us(row.simulated_p50_s),
                "calibrates" if row.calibrates else signed_percent(row.error_ratio),
                _us(row.p99_s.median),
                _us(row.simulated_p99_s),
            )
            for row in curve.rows
        ),
        strong=frozenset(number for number, row in enumerate(curve.rows) if row.calibrates),
    )


def error_table(result: WireResult) -> Table:
    """Return the errors at the held-out points beside the repeatability of the measurement."""
    rows: list[tuple[Cell, ...]] = []
    if not math.isnan(result.throughput_error_ratio):
        rows.append(
            (
                "Forwarding rate, median error",
                f"{100 * result.throughput_error_ratio:.2f} %",
                f"repeats scatter by {100 * result.repeatability_ratio:.2f} %",
                len(result.held_out),
            )
        )
    if not math.isnan(result.loss_error):
        rows.append(
            (
                "Loss, mean error",
                f"{100 * result.loss_error:.2f} points",
                "",
                sum(len(curve.rows) for curve in result.loss),
            )
        )
    if not math.isnan(result.latency_error_ratio):
        rows.append(
            (
                "Median latency, median error",
                f"{100 * result.latency_error_ratio:.1f} %",
                f"p99 off by a factor of {result.p99_factor:.2f}",
                len(result.held_out_latency),
            )
        )
    return Table(
        name="errors",
        title="Errors at the held-out points",
        caption="What the calibration has not seen.",
        columns=(
            Column(title="What", align="left"),
            Column(title="Error"),
            Column(title="Beside", align="left"),
            Column(title="Points", form="d"),
        ),
        rows=tuple(rows),
    )


def shown(result: WireResult) -> Shown:
    """Return what a terminal shows of a study on the wire."""
    tables = [series_table(each) for each in result.series]
    tables += [loss_table(curve) for curve in result.loss]
    tables += [latency_table(curve) for curve in result.latency]
    return Shown(tables=(*tables, error_table(result)))
