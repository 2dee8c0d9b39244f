"""A Trial on a terminal: what happened to the load, what limits, what each resource has left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from routecast.cli.console import print_table
from routecast.evaluate.trial import Delay, Trial, TrialPower
from routecast.quantity import (
    format_bps,
    format_duration,
    format_energy,
    format_power,
    format_pps,
    format_ratio,
)
from routecast.report.tables import Column, Table

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Message

__all__ = ["messages_table", "print_trial"]

_ROUNDING = 1e-9


def print_trial(console: Console, trial: Trial) -> None:
    """Print a trial as tables, the bottleneck in words, and what the reader must know."""
    print_table(console, _rates(trial))
    if trial.resources:
        print_table(console, _resources(trial))
    if trial.energy_j:
        print_table(console, _energy(trial))
    console.print(f"Bottleneck: {trial.bottleneck.name} {trial.bottleneck.reason}.", markup=False)
    for reason in trial.invalid:
        console.print(f"Invalid, no result: {reason}", markup=False, style="bold red")
    for note in trial.notes:
        console.print(f"Note: {note}", markup=False, style="dim")


def _rates(trial: Trial) -> Table:
    rows = [
        ("intended load", format_pps(trial.intended_pps)),
        ("offered load", format_pps(trial.offered_pps)),
        ("forwarded", f"{format_pps(trial.forwarded_pps)}{_interval(trial, 'forwarded_pps')}"),
        ("", f"{format_bps(trial.l1_bps)} on the wire, {format_bps(trial.l2_bps)} of frames"),
        ("loss", f"{format_ratio(trial.loss_ratio)}{_drops(trial)}"),
    ]
    rows += _delay("latency", trial.latency) + _delay("waiting", trial.waiting)
    if trial.power is not None:
        rows.append(("power", _power(trial.power)))
    if trial.offered_frames is not None:
        counts = (
            f"{trial.offered_frames:,} offered = {trial.forwarded_frames or 0:,} forwarded + "
            f"{trial.dropped_frames or 0:,} dropped + {trial.in_flight_frames or 0:,} in flight"
        )
        rows.append(("frames", counts))
    rows += [
        (name, f"{count:,}")
        for name, count in (
            ("duplicated", trial.duplicated_frames),
            ("reordered", trial.reordered_frames),
            ("corrupted", trial.corrupted_frames),
        )
        if count
    ]
    return Table(
        name="trial",
        title=f"{trial.evaluator}, {format_duration(trial.duration_s)}",
        caption="",
        columns=(Column(title="", align="left"), Column(title="", align="left")),
        rows=tuple(rows),
    )


def _interval(trial: Trial, field: str) -> str:
    if field not in trial.interval:
        return ""
    low, high = trial.interval[field]
    return f" (95 %: {format_pps(low)} to {format_pps(high)})"


def _drops(trial: Trial) -> str:
    places = [f"{place} {format_pps(rate)}" for place, rate in _largest(trial.drops_pps.items()) if rate > 0.0]
    return f": {', '.join(places)}" if places else ""


def _largest(places: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    return sorted(places, key=lambda entry: -entry[1])[:4]


def _delay(name: str, delay: Delay | None) -> list[tuple[str, str]]:
    if delay is None:
        return []
    points = (("mean", delay.mean_s), ("p50", delay.p50_s), ("p99", delay.p99_s), ("max", delay.max_s))
    known = [f"{label} {format_duration(value)}" for label, value in points if math.isfinite(value)]
    method = f" ({delay.method})" if delay.method else ""
    return [(name, ", ".join(known) + method)] if known else []


def _power(power: TrialPower) -> str:
    per = [
        f"{format_energy(energy_j)}/{of}"
        for energy_j, of in ((power.packet_j, "packet"), (power.bit_j, "bit"))
        if math.isfinite(energy_j)
    ]
    return f"{', '.join((format_power(power.mean_w), *per))} ({power.scope}; {power.source})"


def _resources(trial: Trial) -> Table:
    return Table(
        name="resources",
        title="Resources",
        caption="Left: how much more of this load a resource could carry than the router forwards.",
        columns=(
            Column(title="Resource", align="left"),
            Column(title="Busy", form=format_ratio),
            Column(title="Could carry", form=format_pps),
            Column(title="Left", form=format_ratio),
        ),
        rows=tuple(
            (
                resource.name,
                resource.utilisation_ratio,
                resource.capacity_pps,
                _left(resource.capacity_pps, trial.forwarded_pps),
            )
            for resource in trial.resources
        ),
        strong=frozenset(
            number for number, resource in enumerate(trial.resources) if resource.name == trial.bottleneck.name
        ),
    )


def _left(capacity_pps: float, forwarded_pps: float) -> float | None:
    """How much more than it forwards the router could; rounding is none."""
    if not forwarded_pps:
        return None
    left = capacity_pps / forwarded_pps - 1.0
    return 0.0 if abs(left) < _ROUNDING else left


def _energy(trial: Trial) -> Table:
    return Table(
        name="energy",
        title="Energy",
        caption="",
        columns=(
            Column(title="Pool", align="left"),
            Column(title="State", align="left"),
            Column(title="Energy", unit="J"),
            Column(title="Mean power", form=format_power),
        ),
        rows=tuple(
            (pool, state, joules, joules / trial.duration_s)
            for pool, states in trial.energy_j.items()
            for state, joules in states.items()
        ),
    )


def messages_table(messages: Sequence[Message]) -> Table:
    """Return the messages between task units and resource managers in the order in which they were sent."""
    return Table(
        name="messages",
        title="Messages",
        caption="REQ asks for units, REP grants them, REL gives them back, REV takes them away (S4).",
        columns=(
            Column(title="Time", form=format_duration),
            Column(title="Message", align="left"),
            Column(title="Task unit", align="left"),
            Column(title="Pool", align="left"),
            Column(title="Unit", form="d"),
        ),
        rows=tuple((m.at_s, m.kind, m.task, m.pool, m.unit) for m in messages),
    )
