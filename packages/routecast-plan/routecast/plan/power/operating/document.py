"""Operating points and plans of days as plain data, and notes on them, for ``routecast power optimise``."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.evaluate.plain import plain
from routecast.evaluate.targets import Target
from routecast.load.offered import OfferedLoad
from routecast.load.series import TrafficSeries
from routecast.plan.power._views import scope_of
from routecast.plan.power.operating._search import CheckResult, EvaluatedSetting, SearchResult
from routecast.plan.power.operating._setting import Setting
from routecast.plan.power.operating.day import DayPlan
from routecast.plan.power.operating.optimise import TunableRouter
from routecast.quantity import format_power

__all__ = ["day_document", "day_notes", "point_document", "point_notes"]


def point_notes(result: SearchResult, machine: TunableRouter) -> Iterator[str]:
    """Yield notes on settings that their check rejected, on unknown quantities, and on the choices."""
    for evaluated, check in result.rejected:
        yield f"{evaluated.setting}, {format_power(evaluated.power_w)}, {_failure_note(result.targets, check)}."
    if result.unknown:
        yield (
            f"{result.unknown} settings were left out, because a quantity with a target is unknown for them "
            "(the closed form of --evaluator solve does not give it): use --evaluator simulate."
        )
    yield from machine.choices.notes


def _failure_note(targets: tuple[Target, ...], check: CheckResult) -> str:
    failed = [
        f"{target.quantity} {target.format_value(low)} to {target.format_value(high)} ({target})"
        for target, (_, low, high) in zip(targets, check.values, strict=True)
        if not target.is_met_by(high)
    ]
    return f"failed its check: {', '.join(failed) or 'no steady state'}"


def day_notes(plan: DayPlan, machine: TunableRouter, series: TrafficSeries) -> Iterator[str]:
    """Yield notes on the share of evaluated pairs, on the series and on the choices."""
    share = plan.evaluated / max(plan.pairs, 1)
    yield (
        f"{plan.evaluated:,} of {plan.pairs:,} pairs of load and setting evaluated ({share:.0%}); bounds rule out "
        "the others."
    )
    yield from (*series.notes, *machine.choices.notes)


def point_document(result: SearchResult, machine: TunableRouter, load: OfferedLoad) -> dict[str, object]:
    """Return the operating point at one load as plain data."""
    return {
        **_inputs_document(machine, load, result.targets),
        "best": None if result.best is None else _evaluated_document(result.best, result.targets),
        "check": None if result.check is None else _check_document(result.check, result.targets),
        "nearest": None
        if result.best is not None or result.nearest is None
        else _evaluated_document(result.nearest, result.targets),
        "front": [_evaluated_document(evaluated, result.targets) for evaluated in result.front],
        "rejected": [
            {**_evaluated_document(evaluated, result.targets), "check": _check_document(check, result.targets)}
            for evaluated, check in result.rejected
        ],
        "settings": {
            "enumerated": result.enumerated,
            "overloaded": len(result.overloaded),
            "evaluated": len(result.judged),
            "pruned": result.pruned,
            "unknown": result.unknown,
        },
        "is_whole": result.is_whole,
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
                "setting": _setting_document(plan.plan.settings[step]),
                "power_w": plan.plan.power_w[step],
                "values": _values_document(plan.values[step], plan.targets),
                "check": _check_document(plan.checks[step], plan.targets) if plan.checks else None,
            }
            for step, rate in enumerate(plan.rates_pps)
        ],
        "courses": [
            {
                "name": course.name,
                "settings": [str(setting) for setting in course.settings],
                **plain(
                    {
                        "power_w": course.power_w,
                        "energy_j": course.energy_j,
                        "switchings": course.switchings,
                        "switching_j": course.switching_j,
                        "missed_steps": course.missed,
                    }
                ),
            }
            for course in (plan.plan, plan.per_step, plan.always)
        ],
        "evaluated": plan.evaluated,
        "places": plan.pairs,
        "is_whole": plan.is_whole,
    }


def _inputs_document(machine: TunableRouter, load: OfferedLoad, targets: tuple[Target, ...]) -> dict[str, object]:
    return {
        "router": machine.model.name,
        "scope": scope_of(machine),
        "rate_pps": load.rate_pps,
        "targets": [str(target) for target in targets],
        "choices": plain(machine.choices),
    }


def _setting_document(setting: Setting) -> dict[str, object]:
    document = plain(setting)
    assert isinstance(document, dict)
    return {**document, "mode": setting.mode, "text": str(setting)}


def _values_document(values: tuple[float, ...], targets: tuple[Target, ...]) -> dict[str, object]:
    return {_value_key(target): plain(value) for target, value in zip(targets, values, strict=True)}


def _value_key(target: Target) -> str:
    return "loss_ratio" if target.quantity == "loss" else f"{target.quantity}_s"


def _evaluated_document(judged: EvaluatedSetting, targets: tuple[Target, ...]) -> dict[str, object]:
    latency = plain(judged.trial.latency) if judged.trial is not None else None
    if isinstance(latency, dict):
        latency = {name: value for name, value in latency.items() if name != "hdr_base64"}
    return {
        "setting": _setting_document(judged.setting),
        "power_w": plain(judged.power_w),
        "least_w": judged.least_w,
        "is_met": judged.is_met,
        "values": _values_document(judged.values, targets),
        "latency": latency,
        "packet_j": None if judged.trial is None or judged.trial.power is None else plain(judged.trial.power.packet_j),
    }


def _check_document(check: CheckResult, targets: tuple[Target, ...]) -> dict[str, object]:
    def interval(estimate: tuple[float, float, float]) -> dict[str, object]:
        return {"mean": plain(estimate[0]), "interval": plain(estimate[1:])}

    return {
        **plain({"is_met": check.is_met, "replications": check.replications, "duration_s": check.duration_s}),
        "power_w": interval(check.power_w),
        **{_value_key(target): interval(value) for target, value in zip(targets, check.values, strict=True)},
    }
