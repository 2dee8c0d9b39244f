"""The figures of a wire study."""

from __future__ import annotations

from routecast.report.figures import Axis, Figure, Line, Points, palette
from routecast.study.wire.result import LatencyCurve, LossCurve, Measured, Series
from routecast.study.wire.tabulate import FACTORS

__all__ = ["latency_figure", "loss_figure", "throughput_figure"]

MEASURED, PREDICTED, SIMULATED = palette(3, ordered=False)
STEPS = 48


def throughput_figure(series: Series) -> Figure:
    """Return forwarding rate in overload against the factor."""
    title, unit = FACTORS.get(series.series.factor, (series.series.factor, ""))
    values = [row.value for row in series.rows]
    least, most = min(values), max(values)
    line = [least + (most - least) * step / STEPS for step in range(STEPS + 1)]
    bands = [series.law.interval_pps(value) for value in line]
    marks = [
        Line(
            name="predicted, 95 % interval",
            x=tuple(line),
            y=tuple(series.law.rate_pps(value) / 1e6 for value in line),
            low=tuple(low / 1e6 for low, _ in bands),
            high=tuple(high / 1e6 for _, high in bands),
            colour=PREDICTED,
        )
    ]
    points = []
    for name, calibrates, filled in (
        ("measured, held out", False, True),
        ("measured, calibrates", True, False),
    ):
        rows = [row for row in series.rows if row.calibrates is calibrates]
        if rows:
            points.append(
                _points(name, [row.value for row in rows], [row.measured_pps for row in rows], 1e-6, filled=filled)
            )
    return Figure(
        name=f"throughput-{series.series.name}",
        title=series.series.title,
        caption="Points are medians of repeated measurements, their bars the extremes; the line is the calibrated law.",
        x=Axis(title=f"{title} ({unit})" if unit else title),
        y=Axis(title="forwarding rate in overload (Mpps)", low=0.0),
        marks=(*marks, *points),
    )


def loss_figure(curve: LossCurve) -> Figure:
    """Return loss against offered load."""
    x = [row.offered_pps / 1e6 for row in curve.rows]
    return Figure(
        name=f"loss-{curve.series.name}-{curve.value:g}",
        title=f"Loss against offered load: {curve.series.device}, {curve.series.factor} = {curve.value:g}",
        caption="All points are held out; the bars are the extremes of the repeated trials.",
        x=Axis(title="offered load (Mpps)", low=0.0),
        y=Axis(title="frame loss (%)", low=0.0),
        marks=(
            Line(name="solve", x=tuple(x), y=tuple(100 * row.solved for row in curve.rows), colour=PREDICTED),
            Line(
                name="simulate",
                x=tuple(x),
                y=tuple(100 * row.simulated for row in curve.rows),
                colour=SIMULATED,
                dashed=True,
            ),
            _points("measured", x, [row.measured for row in curve.rows], 100.0, filled=True),
        ),
    )


def latency_figure(curve: LatencyCurve) -> Figure:
    """Return latency against load: median and 99th percentile."""
    x = [100 * row.load_ratio for row in curve.rows]
    return Figure(
        name=f"latency-{curve.series.name}-{curve.value:g}",
        title=f"Latency against load: {curve.series.device}, {curve.series.factor} = {curve.value:g}",
        caption="Median (circles) and 99th percentile (squares), measured and simulated.",
        x=Axis(title="load (% of predicted capacity)", low=0.0, high=100.0),
        y=Axis(title="one-way latency (us)", scale="log"),
        marks=(
            Line(
                name="p50 simulated",
                x=tuple(x),
                y=tuple(1e6 * row.simulated_p50_s for row in curve.rows),
                colour=SIMULATED,
            ),
            Line(
                name="p99 simulated",
                x=tuple(x),
                y=tuple(1e6 * row.simulated_p99_s for row in curve.rows),
                colour=SIMULATED,
                dashed=True,
            ),
            _points("p50 measured", x, [row.p50_s for row in curve.rows], 1e6, filled=True),
            _points("p99 measured", x, [row.p99_s for row in curve.rows], 1e6, filled=True, square=True),
        ),
    )


def _points(
    name: str, x: list[float], values: list[Measured], scale: float, *, filled: bool, square: bool = False
) -> Points:
    return Points(
        name=name,
        x=tuple(x),
        y=tuple(scale * value.median for value in values),
        low=tuple(scale * value.least for value in values),
        high=tuple(scale * value.most for value in values),
        colour=MEASURED,
        filled=filled,
        symbol="square" if square else "circle",
    )
