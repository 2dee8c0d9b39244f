"""Notes on operating points and plans of days, and both as plain data, for ``routecast power optimise``."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.evaluate.plain import plain
from routecast.load.offered import OfferedLoad
from routecast.load.series import TrafficSeries
from routecast.power.operating._search import Checked, EvaluatedSetting, SearchResult
from routecast.power.operating._setting import Setting
from routecast.power.operating.day import DayPlan
from routecast.power.operating.optimise import TunableRouter
from routecast.power.operating.targets import Target
from routecast.power.views import scope_of
from routecast.quantity import format_power

__all__ = ["day_document", "day_notes", "point_document", "point_notes"]


def point_notes(point: SearchResult, machine: TunableRouter) -> Iterator[str]:
    """Yield notes on settings that their check rejected, on unknown quantities, and on the choices."""
    for evaluated, check in point.rejected:
        yield f"{evaluated.setting}, {format_power(evaluated.power_w)}, {_failure(point.targets, check)}."
    if point.unknown:
        yield (
            f"{point.unknown} settings were left out: what a target bounds is not known of them "
            "(with --evaluator solve: no closed form); --evaluator simulate knows it."
        )
    yield from machine.choices.notes


def _failure(targets: tuple[Target, ...], check: Checked) -> str:
    failed = [
        f"{target.quantity} {target.format_value(low)} to {target.format_value(high)} ({target})"
        for target, (_, low, high) in zip(targets, check.values, strict=True)
        if not target.is_kept_by(high)
    ]
    return f"was turned down by its check: {', '.join(failed) or 'no steady state'}"


def day_notes(plan: DayPlan, machine: TunableRouter, series: TrafficSeries) -> Iterator[str]:
    """Yield notes on the share of evaluated pairs, on the series and on the choices."""
    share = plan.evaluated / max(plan.pairs, 1)
    yield (
        f"{plan.evaluated:,} of {plan.pairs:,} pairs of load and setting evaluated ({share:.0%}); the others "
        "are ruled out by their bounds."
    )
    yield from (*series.notes, *machine.choices.notes)


def point_document(point: SearchResult, machine: TunableRouter, load: OfferedLoad) -> dict[str, object]:
    """Return the operating point at one load as plain data."""
    return {
        **_inputs(machine, load, point.targets),
        "best": None if point.best is None else _judged(point.best, point.targets),
        "check": None if point.check is None else _checked(point.check, point.targets),
        "nearest": None if point.best is not None or point.nearest is None else _judged(point.nearest, point.targets),
        "front": [_judged(evaluated, point.targets) for evaluated in point.front],
        "rejected": [
            {**_judged(evaluated, point.targets), "check": _checked(check, point.targets)}
            for evaluated, check in point.rejected
        ],
        "settings": {
            "enumerated": point.enumerated,
            "overloaded": len(point.overloaded),
            "evaluated": len(point.judged),
            "pruned": point.pruned,
            "unknown": point.unknown,
        },
        "is_whole": point.is_whole,
    }


def day_document(plan: DayPlan, machine: TunableRouter, series: TrafficSeries) -> dict[str, object]:
    """Return the plan of a day as plain data."""
    return {
        "router": machine.model.name,
        "scope": scope_of(machine),
        "targets": [str(target) for target in plan.targets],
        "choices": plain(machine.choices),
        "profile": {"source": series.source, "notes": list(series.notes)},
        "step_s": plan.step_s,
        "steps": [
            {
                "start_s": step * plan.step_s,
                "rate_pps": rate,
                "setting": _setting(plan.plan.settings[step]),
                "power_w": plan.plan.power_w[step],
                "values": _values(plan.values[step], plan.targets),
                "check": _checked(plan.checks[step], plan.targets) if plan.checks else None,
            }
            for step, rate in enumerate(plan.rates_pps)
        ],
        "courses": [
            {
                "name": course.name,
                "settings": [str(setting) for setting in course.settings],
                "power_w": list(course.power_w),
                "energy_j": course.energy_j,
                "switchings": course.switchings,
                "switching_j": course.switching_j,
                "missed_steps": list(course.missed),
            }
            for course in (plan.plan, plan.per_step, plan.always)
        ],
        "evaluated": plan.evaluated,
        "places": plan.pairs,
        "is_whole": plan.is_whole,
    }


def _inputs(machine: TunableRouter, load: OfferedLoad, targets: tuple[Target, ...]) -> dict[str, object]:
    return {
        "router": machine.model.name,
        "scope": scope_of(machine),
        "rate_pps": load.rate_pps,
        "targets": [str(target) for target in targets],
        "choices": plain(machine.choices),
    }


def _setting(setting: Setting) -> dict[str, object]:
    document = plain(setting)
    assert isinstance(document, dict)
    return {**document, "mode": setting.mode, "text": str(setting)}


def _values(values: tuple[float, ...], targets: tuple[Target, ...]) -> dict[str, object]:
    return {_unit_name(target): plain(value) for target, value in zip(targets, values, strict=True)}


def _unit_name(target: Target) -> str:
    return "loss_ratio" if target.quantity == "loss" else f"{target.quantity}_s"


def _judged(judged: EvaluatedSetting, targets: tuple[Target, ...]) -> dict[str, object]:
    latency = plain(judged.trial.latency) if judged.trial is not None else None
    if isinstance(latency, dict):
        latency = {name: value for name, value in latency.items() if name != "hdr_base64"}
    return {
        "setting": _setting(judged.setting),
        "power_w": plain(judged.power_w),
        "least_w": judged.least_w,
        "is_met": judged.is_met,
        "values": _values(judged.values, targets),
        "latency": latency,
        "packet_j": None if judged.trial is None or judged.trial.power is None else plain(judged.trial.power.packet_j),
    }


def _checked(check: Checked, targets: tuple[Target, ...]) -> dict[str, object]:
    def interval(estimate: tuple[float, float, float]) -> dict[str, object]:
        return {"mean": plain(estimate[0]), "interval": plain(estimate[1:])}

    return {
        "is_met": check.is_met,
        "replications": check.replications,
        "duration_s": check.duration_s,
        "power_w": interval(check.power_w),
        **{_unit_name(target): interval(value) for target, value in zip(targets, check.values, strict=True)},
    }
