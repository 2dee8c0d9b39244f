"""Tables and figures of power models and their fits, and of routers over load."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from routecast.power._platforms import Platform
from routecast.power.fits import DeviceFit
from routecast.power.form import MonotoneForm, PolynomialForm, greatest_deviation
from routecast.power.load_fit import FittedParameter, ModelledSample
from routecast.power.model import OperatingPoint, PowerModel
from routecast.power.port import PortClass, PortPower
from routecast.power.software_router import SoftwareRouterPower
from routecast.quantity.comparison import ErrorSummary
from routecast.show.figures import GREY, Axis, Figure, Line, Points, palette
from routecast.show.tables import Column, Table, percent

__all__ = [
    "device_table",
    "error_table",
    "fit_figure",
    "form_table",
    "load_table",
    "parameter_table",
    "platforms_table",
    "ports_table",
    "router_table",
    "terms_table",
]


_SYMBOLS = {
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

    def column(title: str, of: Callable[[FittedParameter], float]) -> Column[tuple[str, FittedParameter]]:
        return Column(title, "", ".5g", lambda row: of(row[1]) * _symbol(row[0])[2])

    return Table.of(
        fit.parameters.items(),
        Column.text("Parameter", lambda row: _symbol(row[0])[0]),
        column("Value", lambda parameter: parameter.value),
        column("From", lambda parameter: parameter.low),
        column("To", lambda parameter: parameter.high),
        Column.text("Unit", lambda row: _symbol(row[0])[1]),
        name="parameters",
        title=fit.device,
        caption="Intervals are 95 %; a dash stands for none, as with no more samples than parameters.",
    )


def _symbol(name: str) -> tuple[str, str, float]:
    """Return the symbol of a parameter in the papers, its displayed unit, and the factor to that unit."""
    words = []
    unit, scale = "W" if name.startswith("w_") else "", 1.0
    for word in name.split(" "):
        if word in _SYMBOLS:
            symbol, unit, scale = _SYMBOLS[word]
            words.append(symbol)
        else:
            words.append(f"at {word[2:]} %" if word.startswith("w_") else word)
    return " ".join(words), unit, scale


def error_table(model: str, fits: Sequence[DeviceFit]) -> Table:
    """Return the errors on samples left out, by device and over all devices."""
    rows = [(fit.device, fit.fitted, ErrorSummary.of(fit.error_ratio)) for fit in fits]
    if len(fits) > 1:
        rows.append(("all", sum(fit.fitted for fit in fits), _error_summary(fits)))
    left_out = "; ".join(dict.fromkeys(fit.left_out for fit in fits))
    return Table.of(
        rows,
        Column.text("Device", lambda row: row[0]),
        Column("Fitted", "", ".0f", lambda row: row[1]),
        Column("Left out", "", ".0f", lambda row: row[2].points),
        Column("Median", "%", percent, lambda row: row[2].median_abs_error_ratio),
        Column("90th", "%", percent, lambda row: row[2].p90_abs_error_ratio),
        Column("Largest", "%", percent, lambda row: row[2].max_abs_error_ratio),
        name="errors",
        title=f"Model {model}: errors on samples left out of the fit",
        caption=f"{left_out[:1].upper()}{left_out[1:]}.",
        strong=(len(fits),) if len(fits) > 1 else (),
    )


def _error_summary(fits: Sequence[DeviceFit]) -> ErrorSummary:
    return ErrorSummary.of(error for fit in fits for error in fit.error_ratio)


_DRAWN_DEVICES = 7
_STEPS = 100


def fit_figure(model: str, fits: Sequence[DeviceFit]) -> Figure:
    """Return the figure of samples and model: power over load, or for ports and routers modelled over measured power.

    Filled points were fitted; open points were left out.
    """
    drawn = list(fits[:_DRAWN_DEVICES])
    is_over_load = model not in {"port", "router"}
    marks = _marks_over_load(drawn) if is_over_load else _marks_over_measured(drawn)
    marks_note = "Lines are the model, points the samples." if is_over_load else "Each point is one sample."
    devices_note = f" The first {len(drawn)} of {len(fits)} devices." if len(fits) > len(drawn) else ""
    samples = [sample for fit in drawn for sample in fit.samples]
    low, high = _axis_range(samples)
    return Figure(
        name="power",
        title=_title(model, fits),
        caption=f"{marks_note}{devices_note}",
        x=Axis(title="load (%)", low=0.0, high=100.0)
        if is_over_load
        else Axis(title="measured power (W)", low=low, high=high),
        y=Axis(title="power (W)") if is_over_load else Axis(title="modelled power (W)", low=low, high=high),
        marks=(*marks, *_legend(samples)),
    )


def _title(model: str, fits: Sequence[DeviceFit]) -> str:
    devices = fits[0].device if len(fits) == 1 else f"{len(fits)} devices"
    errors = _error_summary(fits)
    median = 100.0 * errors.median_abs_error_ratio
    errors_text = f", median error {median:.2f} % on samples left out" if errors.points else ""
    return f"{devices}: model {model}{errors_text}"


def _marks_over_load(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    loads = tuple(step / _STEPS for step in range(_STEPS + 1))
    marks: list[Line | Points] = []
    for fit, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        watts = tuple(fit.model.power_w(OperatingPoint(load_ratio=load)) for load in loads)
        marks.append(Line(name=fit.device, x=tuple(100.0 * load for load in loads), y=watts, colour=colour))
        marks += _sample_points(fit, colour, x=lambda sample: 100.0 * sample.x, y=lambda sample: sample.measured_w)
    return marks


def _marks_over_measured(fits: Sequence[DeviceFit]) -> list[Line | Points]:
    span = _axis_range([sample for fit in fits for sample in fit.samples])
    marks: list[Line | Points] = [Line(name="equal", x=span, y=span, colour=GREY, dashed=True)]
    for fit, colour in zip(fits, palette(len(fits), ordered=False), strict=True):
        # The legend shows the colour of a device once, with or without samples left out.
        marks.append(Points(name=fit.device, x=(math.nan,), y=(math.nan,), colour=colour, symbol="square"))
        marks += _sample_points(
            fit, colour, x=lambda sample: sample.measured_w, y=lambda sample: sample.modelled_w, size_px=5
        )
    return marks


def _sample_points(
    fit: DeviceFit,
    colour: str,
    *,
    x: Callable[[ModelledSample], float],
    y: Callable[[ModelledSample], float],
    size_px: int = 8,
) -> Iterator[Points]:
    for is_fitted in (True, False):
        samples = [sample for sample in fit.samples if sample.is_fitted is is_fitted]
        yield Points(
            name=f"{fit.device}, {_fit_label(is_fitted)}",
            x=tuple(map(x, samples)),
            y=tuple(map(y, samples)),
            colour=colour,
            filled=is_fitted,
            size_px=size_px,
            legend=False,
        )


def _axis_range(samples: Sequence[ModelledSample]) -> tuple[float, float]:
    """Return the rounded range of two axes that show the same powers, W."""
    watts = [watts for sample in samples for watts in (sample.measured_w, sample.modelled_w)]
    step = 10.0 ** math.floor(math.log10(max(max(watts) - min(watts), 1e-3)))
    return step * math.floor(min(watts) / step), step * math.ceil(max(watts) / step + 1e-9)


def _legend(samples: Sequence[ModelledSample]) -> list[Points]:
    """Return the legend of filled and open points if the figure has both."""
    if len({sample.is_fitted for sample in samples}) < 2:
        return []
    return [
        Points(name=f"sample {_fit_label(kind)}", x=(math.nan,), y=(math.nan,), colour=GREY, filled=kind)
        for kind in (True, False)
    ]


def _fit_label(is_fitted: bool) -> str:
    return "fitted" if is_fitted else "left out"


def load_table(model: PowerModel, name: str, loads: Sequence[float], watts: Sequence[float]) -> Table:
    """Return the watts of a model over load."""
    return _watts_over_load(
        zip(loads, watts, strict=True),
        name="power",
        title=name,
        caption=f"{type(model).__name__}, scope {model.scope}.",
    )


def _watts_over_load(rows: Iterable[tuple[float, float]], *, name: str, title: str, caption: str) -> Table:
    return Table.of(
        rows,
        Column("Load", "%", ".3g", lambda row: 100.0 * row[0]),
        Column("Power", "W", ".5g", lambda row: row[1]),
        name=name,
        title=title,
        caption=caption,
    )


def form_table(loads: Sequence[float], published: PolynomialForm, monotone: MonotoneForm) -> Table:
    """Return the published form function and the monotone form function nearest to it."""
    gap, place = greatest_deviation(published, monotone)
    return Table.of(
        loads,
        Column("t", "", ".3g", float),
        Column("Published", "", ".6f", published.at),
        Column("Monotone", "", ".6f", monotone.at),
        Column("Difference", "", "+.6f", lambda t: monotone.at(t) - published.at(t)),
        name="form",
        title="Form function x(t) over normalised throughput t = r / r_max",
        caption=f"Published: {published.source}. Monotone: the nearest cubic spline that never falls and "
        f"stays within 0 and 1; it deviates by at most {gap:.4f}, at t = {place:.3f}.",
    )


def router_table(model: SoftwareRouterPower, points: Iterable[Sequence[float]]) -> Table:
    """Return watts by clock, cores, load and throughput."""
    return Table.of(
        points,
        Column("Clock", "GHz", ".4g", lambda row: row[0] / 1e9),
        Column("Cores", "", ".0f", lambda row: row[1]),
        Column("Load", "%", ".3g", lambda row: 100 * row[2]),
        Column("Throughput", "kpps", ".5g", lambda row: row[3] / 1e3),
        Column("Power", "W", ".5g", lambda row: row[4]),
        name="power",
        title="Power of the software router",
        caption=f"Equal load on the forwarding cores, of {model.cores} in the machine; scope {model.scope}.",
    )


def platforms_table(platforms: Iterable[Platform]) -> Table:
    """Return the machines of Bolla et al. 2009."""

    def kpps(title: str, rate_pps: Callable[[Platform], float | None]) -> Column[Platform]:
        return Column(title, "kpps", lambda rate_pps: f"{rate_pps / 1e3:.4g}", rate_pps)

    return Table.of(
        platforms,
        Column.text("Name", lambda row: row.name),
        Column.text("Processor", lambda row: row.cpu),
        Column("Cores", "", ".0f", lambda row: row.cores),
        Column("Clock", "GHz", ".3g", lambda row: row.frequency_hz / 1e9),
        kpps("One core", lambda row: row.max_pps),
        kpps("Never idle from", lambda row: row.idle_zero_pps),
        kpps("Machine", lambda row: row.machine_pps),
        Column("2 cores", "x one", ".3g", lambda row: row.gain_of_two),
        Column("From", "W", ".3g", lambda row: row.least_w),
        Column("To", "W", ".3g", lambda row: row.greatest_w),
        name="platforms",
        title="Machines of Bolla et al. 2009, with the figures of its text",
        caption="Idle and active powers by clock appear only as curves in its figures: measure your own "
        "machine, and fit them with `routecast power fit SAMPLES --model router`.",
    )


def terms_table(model: PortPower) -> Table:
    """Return the terms of each class of ports."""

    def term(
        title: str, of: Callable[[PortClass], float | None], unit: str = "W", scale: float = 1.0
    ) -> Column[tuple[str, PortClass]]:
        def scaled(row: tuple[str, PortClass]) -> float | None:
            value = of(row[1])
            return None if value is None else value * scale

        return Column(title, unit, ".4g", scaled)

    return Table.of(
        model.classes.items(),
        Column.text("Ports", lambda row: row[0]),
        term("P_base", lambda ports: ports.base_w),
        term("P_port", lambda ports: ports.port_w),
        term("P_trx_in", lambda ports: ports.trx_in_w),
        term("P_trx_up", lambda ports: ports.trx_up_w),
        term("P_offset", lambda ports: ports.offset_w),
        term("E_bit", lambda ports: ports.bit_j, "pJ", 1e12),
        term("E_pkt", lambda ports: ports.packet_j, "nJ", 1e9),
        name="ports",
        title=model.device,
        caption="P_base counts once; P_port, P_trx_in, P_trx_up and P_offset per port that is enabled, plugged in, up "
        f"and forwarding; E_bit and E_pkt per bit and packet at each port on its way. Scope {model.scope}.",
    )


def ports_table(curves: Mapping[str, Sequence[float]], loads: Sequence[float], frame: str) -> Table:
    """Return the watts of a port of each class over load."""
    return Table(
        name="port_power",
        title=f"Power of one port over load, frames {frame}",
        caption="The port is plugged in, enabled and up, with the load in each direction in percent of the line rate. "
        "P_base of the device is not included.",
        columns=(Column("Load", "%", ".3g"), *(Column(name, "W", ".4g") for name in curves)),
        rows=tuple((100.0 * load, *watts) for load, *watts in zip(loads, *curves.values(), strict=True)),
    )


def device_table(model: PortPower, loads: Sequence[float], watts: Sequence[float], frame: str | None) -> Table:
    """Return the watts of the equipped device over load."""
    ports = ", ".join(
        f"{ports.plugged} x {name} plugged in, {ports.enabled} enabled, {ports.up} up"
        for name, ports in model.equipped.items()
    )
    traffic = "no traffic" if frame is None else f"frames {frame}"
    return _watts_over_load(
        zip(loads, watts, strict=True),
        name="device_power",
        title=f"Power of {model.device} as equipped, {traffic}",
        caption=f"{ports}. Load: in each direction of every port that is up, in percent of its line rate. The mean "
        "P_base of the classes counts once.",
    )
