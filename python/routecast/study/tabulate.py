"""The tables of a study, for the terminal and for the report alike."""

from __future__ import annotations

import math

from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.report.tables import Cell, Column, Table, percent, signed_percent
from routecast.study.result import Estimate, Parameter, StudyResult
from routecast.study.shown import Shown

__all__ = [
    "LIMITS",
    "calibration_table",
    "comparison_table",
    "error_table",
    "forecast_table",
    "hypothesis_table",
    "limited_by",
    "parameter_table",
    "shown",
]

LIMITS = {
    "cpu": "cores",
    "link": "links",
    "nic": "NIC",
    "shared": "shared",
    "link and cpu": "links, cores",
}
"""What limits, in the words of a reader: short, for a column."""

_LIMITED_BY = {"shared": "bus or memory that the cores share", "link and cpu": "links and the cores"}

_FLOWS = Column(title="Flows", form="d")
_FRAME = Column(title="Frame", unit="B", form="d")


def limited_by(limit: str) -> str:
    """Return what limits for a sentence, "limited by the …".

    Examples
    --------
    >>> limited_by("cpu"), limited_by("link and cpu")
    ('cores', 'links and the cores')
    """
    return _LIMITED_BY.get(limit, LIMITS.get(limit, limit))


def _gbps(estimate: Estimate, rate_pps: float) -> float:
    return rate_pps * estimate.l1_bits / 1e9


def calibration_table(result: StudyResult) -> Table:
    """Return the points that calibrate."""
    return Table(
        name="calibration",
        title="Points that calibrate",
        caption="All that the calibration sees.",
        columns=(
            _FLOWS,
            _FRAME,
            Column(title="Measured", unit="Gbit/s", form=".4f"),
            Column(title="Measured", unit="Mpps", form=".4f"),
        ),
        rows=tuple(
            (
                point.flows,
                int(point.frame_bytes),
                point.throughput_pps * 8.0 * (point.frame_bytes + WIRE_OVERHEAD_BYTES) / 1e9,
                point.throughput_pps / 1e6,
            )
            for point in result.calibrating
        ),
    )


def comparison_table(result: StudyResult) -> Table:
    """Return every measured point: what was measured, what each model says, how wrong it is."""
    has_simulated, has_baseline, has_reported = (
        any(math.isfinite(value) for value in values)
        for values in (
            [row.estimate.simulated_pps for row in result.comparisons],
            [row.estimate.baseline_pps for row in result.comparisons],
            [row.reported_pps for row in result.comparisons],
        )
    )
    columns = [
        _FLOWS,
        _FRAME,
        Column(title="Measured", unit="Gbit/s", form=".4f"),
        Column(title="Predicted", unit="Gbit/s", form=".4f", group="routecast"),
        Column(title="95 % interval", unit="Gbit/s", group="routecast"),
        Column(title="Error", unit="%", form=signed_percent, group="routecast"),
    ]
    if has_simulated:
        columns.append(Column(title="Simulated", unit="error, %", form=signed_percent, group="routecast", wide=True))
    if has_baseline:
        columns.append(Column(title="Eqs. 5–7", unit="error, %", form=signed_percent, group="others"))
    if has_reported:
        columns.append(
            Column(
                title=_titled(result.study.measurements.reported),
                unit="error, %",
                form=signed_percent,
                group="others",
            )
        )
    columns.append(Column(title="Limit", align="left"))
    rows: list[tuple[Cell, ...]] = []
    for row in result.comparisons:
        e = row.estimate
        cells: list[Cell] = [
            e.flows,
            e.frame_bytes,
            _gbps(e, row.measured_pps),
            _gbps(e, e.predicted_pps),
            f"{_gbps(e, e.low_pps):.2f}–{_gbps(e, e.high_pps):.2f}",
            row.error_ratio(e.predicted_pps),
        ]
        cells += [row.error_ratio(e.simulated_pps)] if has_simulated else []
        cells += [row.error_ratio(e.baseline_pps)] if has_baseline else []
        cells += [row.error_ratio(row.reported_pps)] if has_reported else []
        rows.append((*cells, LIMITS.get(e.limit, e.limit)))
    return Table(
        name="comparison",
        title="Measured and predicted",
        caption="Shaded rows calibrate; the others were held out.",
        columns=tuple(columns),
        rows=tuple(rows),
        strong=frozenset(number for number, row in enumerate(result.comparisons) if row.calibrates),
    )


def _titled(name: str) -> str:
    return name[:1].upper() + name[1:]


def error_table(result: StudyResult) -> Table:
    """Return the errors of every model over the held-out points, and over all."""
    names = {
        "solve": "routecast, closed form",
        "simulate": "routecast, simulation",
        "baseline": "eqs. 5–7, our reproduction",
        "reported": result.study.measurements.reported,
    }
    held, everywhere = result.errors(), result.errors_everywhere()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            held[key].mean_abs_error_ratio,
            held[key].median_abs_error_ratio,
            held[key].max_abs_error_ratio,
            everywhere[key].mean_abs_error_ratio,
            everywhere[key].max_abs_error_ratio,
        )
        for key, name in names.items()
        if held[key].points
    )
    return Table(
        name="errors",
        title="Absolute errors",
        caption=(
            f"In percent. {len(result.held_out)} of {len(result.comparisons)} points were held out; "
            f"all models calibrate from the same {len(result.calibrating)}."
        ),
        columns=(
            Column(title="Model", align="left"),
            Column(title="Mean", unit="held out", form=percent),
            Column(title="Median", unit="held out", form=percent),
            Column(title="Largest", unit="held out", form=percent),
            Column(title="Mean", unit="all", form=percent),
            Column(title="Largest", unit="all", form=percent),
        ),
        rows=rows,
        strong=frozenset({0}),
    )


def hypothesis_table(result: StudyResult) -> Table:
    """Return the laws of contention that the prediction averages over, and their weights."""
    return Table(
        name="hypotheses",
        title="How cores slow each other down",
        caption="No few points can tell which law holds; each is weighed by how well it explains them.",
        columns=(
            Column(title="Law", align="left"),
            Column(title="k busy cores: c(k), or their joint speed g(k) = k/c(k)", align="left"),
            Column(title="Weight", unit="%", form=lambda ratio: f"{100.0 * ratio:.0f}"),
        ),
        rows=tuple((each.name, each.formula, each.weight_ratio) for each in result.hypotheses),
    )


def parameter_table(result: StudyResult) -> Table:
    """Return the calibrated parameters."""
    return Table(
        name="parameters",
        title="Calibrated parameters",
        caption="With 95 % intervals where the points carry one.",
        columns=(
            Column(title="Parameter", align="left"),
            Column(title="Value", form=".4g"),
            Column(title="95 % interval"),
            Column(title="Unit", align="left"),
            Column(title="Meaning", align="left"),
        ),
        rows=tuple(_parameter_row(parameter) for parameter in result.parameters),
    )


def _parameter_row(parameter: Parameter) -> tuple[Cell, ...]:
    """Seconds are shown as nanoseconds: a frame takes hundreds of them."""
    in_seconds = parameter.unit in {"s", "s/B"}
    scale, unit = (1e9, f"n{parameter.unit}") if in_seconds else (1.0, parameter.unit)
    low, high = parameter.low * scale, parameter.high * scale
    known = math.isfinite(low) and math.isfinite(high)
    interval = f"{low:.3g}–{high:.3g}" if known else None
    return (parameter.name, parameter.value * scale, interval, "" if unit == "1" else unit, parameter.meaning)


def forecast_table(result: StudyResult, scenario: str) -> Table:
    """Return what a scenario predicts where every core has a flow of its own or the flows are random.

    The row that the page speaks of, :meth:`StudyResult.spoken_of`, is one of these.
    """
    points = [e for e in result.scenarios[scenario] if e.flows >= e.cores] or list(result.scenarios[scenario])
    has_baseline = any(math.isfinite(e.baseline_pps) for e in points)
    has_simulated = any(math.isfinite(e.simulated_pps) for e in points)
    columns = [
        _FLOWS,
        _FRAME,
        Column(title="Predicted", unit="Mpps", form=".2f"),
        Column(title="95 % interval", unit="Mpps"),
        Column(title="Predicted", unit="Gbit/s", form=".2f"),
    ]
    columns += [Column(title="Simulated", unit="Mpps", form=".2f")] if has_simulated else []
    columns += [Column(title="Eqs. 5–7", unit="Mpps", form=".2f")] if has_baseline else []
    columns += [Column(title="Limit", align="left")]
    rows: list[tuple[Cell, ...]] = []
    for e in points:
        cells: list[Cell] = [
            e.flows,
            e.frame_bytes,
            e.predicted_pps / 1e6,
            f"{e.low_pps / 1e6:.2f}–{e.high_pps / 1e6:.2f}",
            _gbps(e, e.predicted_pps),
        ]
        cells += [e.simulated_pps / 1e6] if has_simulated else []
        cells += [e.baseline_pps / 1e6] if has_baseline else []
        rows.append((*cells, LIMITS.get(e.limit, e.limit)))
    title = next(s.title for s in result.study.scenario if s.name == scenario)
    return Table(
        name=scenario,
        title=title,
        caption="Flows crafted to fall on a core each, or random where there are more flows than cores.",
        columns=tuple(columns),
        rows=tuple(rows),
    )


def shown(result: StudyResult) -> Shown:
    """Return what a terminal shows of a study."""
    tables = [parameter_table(result), comparison_table(result), error_table(result)]
    for name, points in result.scenarios.items():
        if any(p.cores != result.study.router.cores or p.link_bps != result.study.router.link for p in points):
            tables.append(forecast_table(result, name))
    inside = sum(row.is_covered for row in result.held_out)
    return Shown(
        lead=result.law,
        tables=tuple(tables),
        closing=f"{inside} of {len(result.held_out)} held-out points lie inside their 95 % interval.",
        notes=result.notes,
    )
