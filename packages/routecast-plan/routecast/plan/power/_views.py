"""Tables and figures of the watts of a day, of operating points, and of plans of a day."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from routecast.evaluate.views import arrivals_note
from routecast.load.offered import OfferedLoad
from routecast.plan.power.day import PowerDay
from routecast.plan.power.operating._search import EvaluatedSetting, SearchResult, latency_quantity
from routecast.plan.power.operating._setting import UNCHANGED, Setting
from routecast.plan.power.operating.day import Course, DayPlan
from routecast.plan.power.operating.optimise import TunableRouter
from routecast.quantity import (
    format_bps,
    format_duration,
    format_energy,
    format_frequency,
    format_power,
    format_pps,
    format_span,
)
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.tables import Column, Table

__all__ = [
    "day_figure",
    "day_table",
    "front_figure",
    "has_front",
    "plan_tables",
    "point_tables",
    "proportional_figure",
    "scope_of",
]


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
