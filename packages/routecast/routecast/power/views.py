"""Tables and figures of power models and their fits, of routers over load and over a day, and of operating points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from routecast.evaluate.views import arrivals_note
from routecast.load.offered import OfferedLoad
from routecast.power._platforms import Platform
from routecast.power.day import PowerDay
from routecast.power.fits import DeviceFit
from routecast.power.form import MonotoneForm, PolynomialForm, greatest_deviation
from routecast.power.load_fit import FittedParameter, ModelledSample
from routecast.power.model import OperatingPoint, PowerModel
from routecast.power.operating._search import EvaluatedSetting, SearchResult, latency_quantity
from routecast.power.operating._setting import UNCHANGED, Setting
from routecast.power.operating.day import Course, DayPlan
from routecast.power.operating.optimise import TunableRouter
from routecast.power.port import PortClass, PortPower
from routecast.power.software_router import SoftwareRouterPower
from routecast.quantity import (
    format_bps,
    format_duration,
    format_energy,
    format_frequency,
    format_power,
    format_pps,
    format_span,
)
from routecast.quantity.comparison import ErrorSummary
from routecast.show.figures import GREY, Axis, Figure, Line, Mark, Points, palette
from routecast.show.tables import Column, Table, percent

__all__ = [
    "day_figure",
    "day_table",
    "device_table",
    "error_table",
    "fit_figure",
    "form_table",
    "front_figure",
    "has_front",
    "load_table",
    "parameter_table",
    "plan_tables",
    "platforms_table",
    "point_tables",
    "ports_table",
    "proportional_figure",
    "router_table",
    "scope_of",
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


def has_front(result: SearchResult) -> bool:
    """Return whether any setting has a known power and latency."""
    return bool(_settings_with_latency(result))


def front_figure(result: SearchResult, machine: TunableRouter) -> Figure:
    """Return the figure of the evaluated settings, their Pareto front, the target and the best setting.

    The front is a staircase, because the faster of two settings meets a latency target between them.
    """
    quantity = latency_quantity(result.targets)
    blue, orange, green, *_ = palette(4, ordered=False)
    candidates = _settings_with_latency(result)
    front = result.front
    marks: list[Mark] = [
        Points(
            name="evaluated",
            x=tuple(1e6 * candidate.latency_s(quantity) for candidate in candidates),
            y=tuple(candidate.power_w for candidate in candidates),
            colour="#9aa0a8",
            filled=False,
            size_px=6,
            labels=tuple(str(candidate.setting) for candidate in candidates),
        ),
        _front_line(front, quantity, blue),
        Points(
            name="settings of the front",
            x=tuple(1e6 * candidate.latency_s(quantity) for candidate in front),
            y=tuple(candidate.power_w for candidate in front),
            colour=blue,
            size_px=6,
            labels=tuple(_short_name(candidate.setting) for candidate in front),
            is_labelled=True,
            legend=False,
        ),
    ]
    limit = next((target.limit for target in result.targets if target.quantity == quantity), None)
    if limit is not None and candidates:
        max_w = max(candidate.power_w for candidate in candidates)
        marks.append(Line(name="target", x=(1e6 * limit,) * 2, y=(0.0, max_w), colour=orange, dashed=True))
    if result.best is not None and math.isfinite(result.best.latency_s(quantity)):
        best = result.best
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
        caption="Blue: the fewest watts for each latency target, without loss. Labels: cores, clock, deepest "
        f"sleep, activation. {_assumed_arrivals(candidates)}".rstrip(),
        x=Axis(title=f"{quantity} latency (us)", scale="log"),
        y=Axis(title="power (W)", low=0.0),
        marks=tuple(marks),
    )


def _settings_with_latency(result: SearchResult) -> list[EvaluatedSetting]:
    quantity = latency_quantity(result.targets)
    return [
        candidate
        for candidate in result.judged
        if math.isfinite(candidate.power_w) and math.isfinite(candidate.latency_s(quantity))
    ]


def _front_line(front: Sequence[EvaluatedSetting], quantity: str, colour: str) -> Line:
    corners: list[tuple[float, float]] = []
    for candidate in sorted(front, key=lambda item: item.latency_s(quantity)):
        if corners:
            corners.append((1e6 * candidate.latency_s(quantity), corners[-1][1]))
        corners.append((1e6 * candidate.latency_s(quantity), candidate.power_w))
    return Line(
        name="front without loss",
        x=tuple(latency_us for latency_us, _ in corners),
        y=tuple(watts for _, watts in corners),
        colour=colour,
    )


def _short_name(setting: Setting) -> str:
    """Return a short name of a setting.

    Examples
    --------
    >>> _short_name(Setting(cores=2, frequency_hz=1e9, sleep="C6", activation="interrupt", linger_s=3e-6))
    '2 x 1 GHz C6 adaptive 3 us'
    """
    parts = [str(setting.cores)]
    if setting.frequency_hz is not None:
        parts.append(f"x {format_frequency(setting.frequency_hz)}")
    if setting.sleep:
        parts.append(setting.sleep)
    if setting.activation != UNCHANGED:
        parts.append(setting.mode)
    if setting.mode == "adaptive":
        parts.append(format_duration(setting.linger_s))
    return " ".join(parts)


def day_figure(plan: DayPlan, machine: TunableRouter) -> Figure:
    """Return the figure of power over the day."""
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


_SHOWN_SETTINGS = 12


def scope_of(machine: TunableRouter) -> str:
    """Return the part of the machine that the powers cover."""
    power = machine.model.pool(machine.choices.pool).power
    return power.scope if power else "package"


def point_tables(result: SearchResult, machine: TunableRouter, rate_pps: float) -> tuple[Table, Table]:
    """Return the tables of the operating point and of the front near it."""
    assert result.best is not None
    scope_suffix = f" of the {scope_of(machine)}"
    watts = (
        _interval(format_power, *result.check.power_w, suffix=scope_suffix)
        if result.check
        else format_power(result.best.power_w) + scope_suffix
    )
    rows = [("setting", str(result.best.setting)), ("power", watts)]
    for number, target in enumerate(result.targets):
        value = target.format_value(result.best.values[number])
        if result.check is not None:
            mean, low, high = result.check.values[number]
            value = _interval(target.format_value, mean, low, high) if high > low else target.format_value(mean)
        rows.append((str(target), value))
    if result.check is not None:
        length = format_duration(result.check.duration_s)
        rows.append(("checked by", f"{result.check.replications} simulations of {length}, other seeds"))
    counts = (
        f"{result.enumerated}: {len(result.overloaded)} overloaded, {len(result.judged)} evaluated, "
        f"{result.pruned} ruled out by their bound"
    )
    title = f"{machine.model.name} at {format_pps(rate_pps)}: the fewest watts"
    return Table.of_facts([*rows, ("settings", counts)], name="best", title=title), _front_table(result)


def _interval(write: Callable[[float], str], mean: float, low: float, high: float, *, suffix: str = "") -> str:
    return f"{write(mean)}{suffix} (95 %: {write(low)} to {write(high)})"


def _front_table(result: SearchResult) -> Table:
    quantity = latency_quantity(result.targets)
    front = result.front
    best_index = [number for number, candidate in enumerate(front) if candidate is result.best]
    first = max(min(best_index[0] - 2, len(front) - _SHOWN_SETTINGS), 0) if best_index else 0
    shown = front[first : first + _SHOWN_SETTINGS]
    hidden = len(front) - len(shown)
    hidden_note = f" {hidden} more in --json." if hidden else ""
    pruned_note = "" if result.pruned == 0 else " Settings above the best were not all evaluated (--all)."
    return Table.of(
        shown,
        Column("Power", "W", getter=lambda row: row.power_w),
        Column(quantity, "", format_duration, lambda row: row.latency_s(quantity)),
        Column("Cores", "", "d", lambda row: row.setting.cores),
        Column.text(
            "Clock", lambda row: format_frequency(row.setting.frequency_hz) if row.setting.frequency_hz else ""
        ),
        Column.text("Sleep", lambda row: row.setting.sleep or "none"),
        Column.text("Activation", lambda row: _activation(row.setting)),
        Column.text("Targets", lambda row: "met" if row.is_met else "missed"),
        name="front",
        title=f"Watts against {quantity} latency",
        caption=f"No evaluated setting has both fewer watts and less latency.{hidden_note}{pruned_note} "
        f"{_assumed_arrivals(shown)}".rstrip(),
        strong=lambda row: row is result.best,
    )


def _assumed_arrivals(evaluated: Iterable[EvaluatedSetting]) -> str:
    return arrivals_note(candidate.trial.arrivals for candidate in evaluated if candidate.trial is not None)


def _activation(setting: Setting) -> str:
    return setting.mode + (f" {format_duration(setting.linger_s)}" if setting.mode == "adaptive" else "")


def plan_tables(plan: DayPlan, machine: TunableRouter, load: OfferedLoad) -> tuple[Table, Table]:
    """Return the plan of a day with one row per stay in a setting, and the energy of the plan and its alternatives.

    ``load``: frames, flows and arrivals of the day.
    """
    quantity = latency_quantity(plan.targets)
    number = next((n for n, target in enumerate(plan.targets) if target.quantity == quantity), None)
    settings, power_w = plan.plan.settings, plan.plan.power_w
    stays = [list(group) for _, group in itertools.groupby(range(len(settings)), key=lambda step: settings[step])]

    def worst_s(steps: Sequence[int]) -> float | None:
        return None if number is None else max((plan.values[step][number] for step in steps), default=math.nan)

    day = Table.of(
        stays,
        Column.text("Time", lambda steps: f"{_time_of_day(steps[0], plan)}-{_time_of_day(steps[-1] + 1, plan)}"),
        Column("Load", "", format_pps, lambda steps: max(plan.rates_pps[step] for step in steps)),
        Column.text("Setting", lambda steps: str(settings[steps[0]])),
        Column("Power", "W", getter=lambda steps: math.fsum(power_w[step] for step in steps) / len(steps)),
        Column(quantity, "", format_duration, worst_s),
        name="plan",
        title=f"{machine.model.name}: a day with {', '.join(map(str, plan.targets))}",
        caption=f"Load: the highest; power: the mean; latency: the worst of the steps, with {load.arrivals.text}.",
    )
    always_j = plan.always.energy_j or math.nan
    courses = {
        "plan": plan.plan,
        "fewest watts in each step": plan.per_step,
        f"always {plan.always.settings[0]}": plan.always,
    }
    energy = Table.of(
        [(name, course, course.energy_j + course.switching_j) for name, course in courses.items()],
        Column.text("Course", lambda row: row[0]),
        Column("Energy", "kWh", getter=lambda row: row[2] / 3.6e6),
        Column("Switchings", "", "d", lambda row: row[1].switchings),
        Column("of which switching", getter=lambda row: format_energy(row[1].switching_j)),
        Column("Saved", "%", ".1f", lambda row: 100.0 * (1.0 - row[2] / always_j)),
        Column("Steps missed", "", "d", lambda row: len(row[1].missed)),
        name="courses",
        title="Energy of the day",
        strong=(0,),
    )
    return day, energy


def _time_of_day(step: int, plan: DayPlan) -> str:
    minutes = round(step * plan.step_s / 60.0)
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def day_table(day: PowerDay, price: float | None) -> Table:
    """Return the energy of a day, its cost and its carbon."""
    rows = [
        ("energy", f"{format_energy(day.energy_j)} a day"),
        (
            "mean power",
            f"{format_power(day.mean_w)}, {format_span(format_power(day.least_w), format_power(day.peak_w))}",
        ),
        ("traffic", f"{day.traffic_bits / 8e12:.4g} TB a day, at most {format_bps(max(day.l2_bps))}"),
        ("energy per TB", format_energy(day.energy_per_terabyte_j)),
        ("if proportional", f"{format_energy(day.proportional_j)} a day"),
    ]
    if day.cost is not None:
        rows.append(("cost", f"{day.cost:.4g} a day, {365 * day.cost:.4g} a year at {price:g} a kWh"))
    if day.carbon_g is not None:
        rows.append(("carbon", f"{day.carbon_g / 1e3:.4g} kg CO2 a day"))
    return Table.of_facts(rows, name="day", title=f"{day.profile}: watts of the {day.scope}, {day.source}")


def proportional_figure(day: PowerDay) -> Figure:
    """Return the figure of watts over a day, with watts in proportion to traffic for comparison."""
    hours = tuple((index + 0.5) * day.step_s / 3600.0 for index in range(len(day.power_w)))
    peak_bps = max(day.l2_bps)
    at_peak_w = day.power_w[day.l2_bps.index(peak_bps)]
    blue, orange = palette(2, ordered=False)
    return Figure(
        name="power-day",
        title=f"{day.profile}: power over the day, {day.source}",
        caption="",
        x=Axis(title="hour of the day", low=0.0, high=24.0, ticks=(0.0, 6.0, 12.0, 18.0, 24.0)),
        y=Axis(title=f"power of the {day.scope} (W)", low=0.0),
        marks=(
            Line(name="power", x=hours, y=day.power_w, colour=blue),
            Line(
                name="if proportional to traffic",
                x=hours,
                y=tuple(at_peak_w * rate / peak_bps for rate in day.l2_bps),
                colour=orange,
                dashed=True,
            ),
        ),
    )


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
