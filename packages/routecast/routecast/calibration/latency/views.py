"""The figure of a latency over the load, with the band of its curve."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from routecast.calibration.fitted import FittedRouter
from routecast.calibration.latency.measured import MeasuredLatency, measured_latency
from routecast.evaluate.points import Point
from routecast.quantity import format_duration
from routecast.show.figures import Axis, Figure, Line, Points, palette

__all__ = ["latency_figure"]

_SHOWN: Final = (("p50", "mean"), ("p99", "p95"))
"""Statistics of the two curves: the second of each where no row has the first."""
_LOADS: Final = 24
_LOWEST_LOAD: Final = 0.02


def latency_figure(fitted: FittedRouter, points: Sequence[Point], conditions: Point) -> Figure | None:
    """Return the median and the tail over the load with their 95 % bands; None where no row has any.

    No band goes beyond 95 % of the capacity without a row there: the caption says what a full ring takes.
    """
    curves = []
    for names in _SHOWN:
        possible = (measured_latency(fitted, points, conditions, name) for name in names)
        curves += [curve for curve in possible if curve is not None][:1]
    if not curves:
        return None
    colours = palette(len(curves), ordered=False)
    return Figure(
        name="latency",
        title="Latency over the load",
        caption=" ".join(_sentences(curves, conditions)),
        x=Axis(title="load, % of the capacity", low=0.0),
        y=Axis(title="latency, us", scale="log"),
        marks=tuple(mark for curve, colour in zip(curves, colours, strict=True) for mark in _marks(curve, colour)),
    )


def _marks(curve: MeasuredLatency, colour: str) -> Iterator[Line | Points]:
    loads = np.linspace(_LOWEST_LOAD, curve.highest_stated_ratio, _LOADS)
    at_loads = [curve.at_load(float(load)) for load in loads]
    yield Line(
        name=f"{curve.statistic}, predicted",
        x=tuple(100.0 * at.load_ratio for at in at_loads),
        y=tuple(1e6 * at.latency_s for at in at_loads),
        low=tuple(1e6 * at.low_s for at in at_loads),
        high=tuple(1e6 * at.high_s for at in at_loads),
        colour=colour,
    )
    yield Points(
        name=f"{curve.statistic}, measured",
        x=tuple(100.0 * row.load_ratio for row in curve.rows),
        y=tuple(1e6 * row.latency_s for row in curve.rows),
        colour=colour,
    )


def _sentences(curves: Sequence[MeasuredLatency], conditions: Point) -> Iterator[str]:
    yield f"Frames of {conditions.frame_bytes:g} B; the bands hold one measurement with 95 %."
    ring_s = curves[0].at_load(1.0).ring_s[1]
    if math.isfinite(ring_s):
        ring = f"a full ring takes about {format_duration(ring_s)} ({curves[0].statistic})"
        yield f"Beyond 95 % of the capacity nothing is stated without a row there; {ring}."
