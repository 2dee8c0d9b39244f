"""Figures of ``routecast power optimise``: watts against latency, and power over a day."""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.plan.operating.day import Course, DayPlan
from routecast.plan.operating.optimise import Machine
from routecast.plan.operating.search import Found, Judged, latency_quantity
from routecast.plan.operating.setting import AS_GIVEN, Setting
from routecast.power.fits import DeviceFit, Fitted
from routecast.power.load_fit import ErrorSummary, Parameter
from routecast.power.model import OperatingPoint
from routecast.quantity import format_duration, format_frequency
from routecast.report.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.report.tables import Column, Table, percent

__all__ = ["day_figure", "error_table", "fit_figure", "front_figure", "has_front", "parameter_table"]


_SHOWN = {
    "base_w": ("P_base", "W", 1.0),
    "port_w": ("P_port", "W", 1.0),
    "trx_in_w": ("P_trx_in", "W", 1.0),
    "trx_up_w": ("P_trx_up", "W", 1.0),
    "offset_w": ("P_offset", "W", 1.0),
    "bit_j": ("E_bit", "pJ/bit", 1e12),
    "packet_j": ("E_pkt", "nJ/packet", 1e9),
    "idle_w": ("idle", "W", 1.0),
    "full_w": ("full", "W", 1.0),
    "active_w": ("active", "W", 1.0),
    "max_pps": ("r_max", "kpps", 1e-3),
}


def parameter_table(fit: DeviceFit) -> Table:
    """Return the parameters of one device with their intervals."""
    return Table(
        name="parameters",
        title=fit.device,
        caption="Intervals are 95 %, where samples are more than parameters; a dash where none exists.",
        columns=(
            Column(title="Parameter", align="left"),
            Column(title="Value", form=".5g"),
            Column(title="From", form=".5g"),
            Column(title="To", form=".5g"),
            Column(title="Unit", align="left"),
        ),
        rows=tuple(_parameter_row(name, one) for name, one in fit.parameters.items()),
    )


def _parameter_row(name: str, parameter: Parameter) -> tuple[str, float, float, float, str]:
    words = []
    unit, scale = "W" if name.startswith("w_") else "", 1.0
    for word in name.split(" "):
        if word in _SHOWN:
            shown, unit, scale = _SHOWN[word]
            words.append(shown)
        else:
            words.append(f"at {word[2:]} %" if word.startswith("w_") else word)
    return (
        " ".join(words),
        parameter.value * scale,
        parameter.low * scale,
        parameter.high * scale,
        unit,
    )


def error_table(model: str, fits: Sequence[DeviceFit]) -> Table:
    """Return the errors on samples left out, by device and over all."""
    rows = [_error_row(one.device, one.fitted, one.error_ratio) for one in fits]
    strong: frozenset[int] = frozenset()
    if len(fits) > 1:
        everything = [error for one in fits for error in one.error_ratio]
        rows.append(_error_row("all", sum(one.fitted for one in fits), everything))
        strong = frozenset({len(rows) - 1})
    ways = "; ".join(dict.fromkeys(one.left_out for one in fits))
    return Table(
        name="errors",
        title=f"Model {model}: errors on samples that were not fitted",
        caption=f"{ways[:1].upper()}{ways[1:]}.",
        columns=(
            Column(title="Device", align="left"),
            Column(title="Fitted", form=".0f"),
            Column(title="Left out", form=".0f"),
            Column(title="Median", unit="%", form=percent),
            Column(title="90th", unit="%", form=percent),
            Column(title="Largest", unit="%", form=percent),
        ),
        rows=tuple(rows),
        strong=strong,
    )


def _error_row(name: str, fitted: int, errors: Sequence[float]) -> tuple[str, int, int, float, float, float]:
    summary = ErrorSummary.of(errors)
    return name, fitted, summary.count, summary.median_ratio, summary.p90_ratio, summary.max_ratio


# The figure of ``routecast power fit``: samples beside the model.


GREY = "#7a7f87"
_DRAWN_DEVICES = 7
_STEPS = 100


def fit_figure(model: str, fits: Sequence[DeviceFit]) -> Figure:
    """Return samples and model: watts over load, or for ports and routers modelled over measured watts.

    Filled points are those that the model rests on, open ones those that it was not shown.
    """
    shown = list(fits[:_DRAWN_DEVICES])
    is_over_load = model not in {"port", "router"}
    marks = _over_load(shown) if is_over_load else _over_measured(shown)
    what = "Lines are the model, points the samples." if is_over_load else "Each point is one sample."
    more = f" The first {len(shown)} of {len(fits)} devices." if len(fits) > len(shown) else ""
    samples = [sample for one in shown for sample in one.samples]
    low, high = _span(samples)
    return Figure(
        name="power",
        title=_title(model, fits),
        caption=f"{what}{more}",
        x=Axis(title="load (%)", low=0.0, high=100.0)
        if is_over_load
        else Axis(title="measured power (W)", low=low, high=high),
        y=Axis(title="power (W)") if is_over_load else Axis(title="modelled power (W)", low=low, high=high),
        marks=(*marks, *_key(samples)),
    )


def _title(model: str, fits: Sequence[DeviceFit]) -> str:
    devices = fits[0].device if len(fits) == 1 else f"{len(fits)} devices"
    errors = ErrorSummary.of([error for one in fits for error in one.error_ratio])
    told = f", median error {100.0 * errors.median_ratio:.2f} % on samples left out" if errors.count else ""
    return f"{devices}: model {model}{told}"


def _over_load(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    loads = tuple(step / _STEPS for step in range(_STEPS + 1))
    marks: list[Line | Points] = []
    for one, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        watts = tuple(one.model.power_w(OperatingPoint(load_ratio=load)) for load in loads)
        marks.append(Line(name=one.device, x=tuple(100.0 * load for load in loads), y=watts, colour=colour))
        for is_fitted in (True, False):
            samples = [sample for sample in one.samples if sample.is_fitted is is_fitted]
            marks.append(
                Points(
                    name=f"{one.device}, {_word(is_fitted)}",
                    x=tuple(100.0 * sample.place for sample in samples),
                    y=tuple(sample.measured_w for sample in samples),
                    colour=colour,
                    filled=is_fitted,
                    legend=False,
                )
            )
    return marks


def _over_measured(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    span = _span([sample for one in fits for sample in one.samples])
    marks: list[Line | Points] = [Line(name="equal", x=span, y=span, colour=GREY, dashed=True)]
    for one, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        # The colour stands in the legend once, whichever samples the device has.
        marks.append(Points(name=one.device, x=(math.nan,), y=(math.nan,), colour=colour, symbol="square"))
        for is_fitted in (True, False):
            samples = [sample for sample in one.samples if sample.is_fitted is is_fitted]
            marks.append(
                Points(
                    name=f"{one.device}, {_word(is_fitted)}",
                    x=tuple(sample.measured_w for sample in samples),
                    y=tuple(sample.modelled_w for sample in samples),
                    colour=colour,
                    filled=is_fitted,
                    size_px=5,
                    legend=False,
                )
            )
    return marks


def _span(samples: Sequence[Fitted]) -> tuple[float, float]:
    """Return round ends for two axes that show the same watts."""
    watts = [watts for each in samples for watts in (each.measured_w, each.modelled_w)]
    step = 10.0 ** math.floor(math.log10(max(max(watts) - min(watts), 1e-3)))
    return step * math.floor(min(watts) / step), step * math.ceil(max(watts) / step + 1e-9)


def _key(samples: Sequence[Fitted]) -> list[Points]:
    """Say what filled and open points are, where there are both."""
    if len({sample.is_fitted for sample in samples}) < 2:
        return []
    return [
        Points(name=f"sample {_word(kind)}", x=(math.nan,), y=(math.nan,), colour=GREY, filled=kind)
        for kind in (True, False)
    ]


def _word(is_fitted: bool) -> str:
    return "fitted" if is_fitted else "left out"


def has_front(found: Found) -> bool:
    """Return whether there is a setting whose watts and latency are known."""
    return bool(_with_latency(found))


def front_figure(found: Found, machine: Machine) -> Figure:
    """Return the figure of everything that was evaluated, its front, the target and the best.

    The front is a staircase: for a bound on the latency between two settings the faster one is the answer.
    """
    quantity = latency_quantity(found.targets)
    blue, orange, green, *_ = palette(4, ordered=False)
    shown = _with_latency(found)
    front = found.front
    marks: list[Mark] = [
        Points(
            name="evaluated",
            x=tuple(1e6 * one.latency_s(quantity) for one in shown),
            y=tuple(one.power_w for one in shown),
            colour="#9aa0a8",
            filled=False,
            size_px=6,
            labels=tuple(str(one.setting) for one in shown),
        ),
        _front_line(front, quantity, blue),
        Points(
            name="settings of the front",
            x=tuple(1e6 * one.latency_s(quantity) for one in front),
            y=tuple(one.power_w for one in front),
            colour=blue,
            size_px=6,
            labels=tuple(_short(one.setting) for one in front),
            is_labelled=True,
            legend=False,
        ),
    ]
    limit = next((target.limit for target in found.targets if target.quantity == quantity), None)
    if limit is not None and shown:
        most = max(one.power_w for one in shown)
        marks.append(Line(name="target", x=(1e6 * limit,) * 2, y=(0.0, most), colour=orange, dashed=True))
    if found.best is not None and math.isfinite(found.best.latency_s(quantity)):
        best = found.best
        marks.append(
            Points(
                name=f"best: {best.setting}",
                x=(1e6 * best.latency_s(quantity),),
                y=(best.power_w,),
                colour=green,
                symbol="diamond",
                size_px=10,
            )
        )
    return Figure(
        name="front",
        title=f"{machine.model.name}: watts against latency",
        caption="Blue: the fewest watts for each bound on the latency, without loss. Labels: cores, clock, deepest "
        "sleep, activation.",
        x=Axis(title=f"{quantity} latency (us)", scale="log"),
        y=Axis(title="power (W)", low=0.0),
        marks=tuple(marks),
    )


def _with_latency(found: Found) -> list[Judged]:
    quantity = latency_quantity(found.targets)
    return [one for one in found.judged if math.isfinite(one.power_w) and math.isfinite(one.latency_s(quantity))]


def _front_line(front: Sequence[Judged], quantity: str, colour: str) -> Line:
    corners: list[tuple[float, float]] = []
    for one in sorted(front, key=lambda one: one.latency_s(quantity)):
        if corners:
            corners.append((1e6 * one.latency_s(quantity), corners[-1][1]))
        corners.append((1e6 * one.latency_s(quantity), one.power_w))
    return Line(
        name="front without loss",
        x=tuple(latency_us for latency_us, _ in corners),
        y=tuple(watts for _, watts in corners),
        colour=colour,
    )


def _short(setting: Setting) -> str:
    """Name a setting in a few letters.

    Examples
    --------
    >>> _short(Setting(cores=2, frequency_hz=1e9, sleep="C6", activation="interrupt", linger_s=3e-6))
    '2 x 1 GHz C6 adaptive 3 us'
    """
    parts = [str(setting.cores)]
    if setting.frequency_hz is not None:
        parts.append(f"x {format_frequency(setting.frequency_hz)}")
    if setting.sleep:
        parts.append(setting.sleep)
    if setting.activation != AS_GIVEN:
        parts.append(setting.mode)
    if setting.mode == "adaptive":
        parts.append(format_duration(setting.linger_s))
    return " ".join(parts)


def day_figure(plan: DayPlan, machine: Machine) -> Figure:
    """Return the power over the day, settings as steps."""
    courses = (plan.always, plan.per_step, plan.plan)
    colours = palette(3, ordered=False)
    marks = tuple(
        _staircase(course, plan.step_s, colour, dashed=course is plan.per_step)
        for course, colour in zip(courses, colours, strict=True)
    )
    hours = plan.step_s * len(plan.rates_pps) / 3600.0
    return Figure(
        name="day",
        title=f"{machine.model.name}: power over the day",
        caption="",
        x=Axis(title="hour of the day", low=0.0, high=hours),
        y=Axis(title="power (W)", low=0.0),
        marks=marks,
    )


def _staircase(course: Course, step_s: float, colour: str, *, dashed: bool) -> Line:
    count = len(course.power_w)
    edges = [(step, step + 1) for step in range(count)]
    return Line(
        name=course.name,
        x=tuple(edge * step_s / 3600.0 for both in edges for edge in both),
        y=tuple(watts for watts in course.power_w for _ in range(2)),
        colour=colour,
        dashed=dashed,
    )
