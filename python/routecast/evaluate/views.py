"""A trial as tables: what happened to the load, what limits, what each resource has left, how it went over time."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from routecast.evaluate.trial import Delay, Resource, Trial, TrialPower
from routecast.quantity import format_bps, format_duration, format_energy, format_power, format_pps, format_ratio
from routecast.show.tables import Cell, Column, Table

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Message
    from routecast.router.multistage.failures import Absence

__all__ = ["messages_table", "phases_table", "resources_table", "trial_tables"]

_ROUNDING = 1e-9
_MOST_PLACES = 4
_NOTABLE_LOSS = 1e-4
_FOLDED = 8
"""So many resources of one kind share a row."""


def trial_tables(trial: Trial) -> tuple[Table, ...]:
    """Return rates, latency and loss, then resources, then energy, as far as they are known."""
    tables = (_rates(trial), resources_table(trial), _energy(trial))
    return tuple(table for table in tables if table.rows)


def _rates(trial: Trial) -> Table:
    rows = [
        ("intended load", format_pps(trial.intended_pps)),
        ("offered load", format_pps(trial.offered_pps)),
        ("forwarded", f"{format_pps(trial.forwarded_pps)}{_interval(trial, 'forwarded_pps')}"),
        ("", f"{format_bps(trial.l1_bps)} on the wire, {format_bps(trial.l2_bps)} of frames"),
        ("loss", _loss(trial)),
        *_delay("latency", trial.latency),
        *_delay("waiting", trial.waiting),
    ]
    if trial.power is not None:
        rows.append(("power", _power(trial.power)))
    if trial.offered_frames is not None:
        counts = (
            f"{trial.offered_frames:,} offered = {trial.forwarded_frames or 0:,} forwarded + "
            f"{trial.dropped_frames or 0:,} dropped + {trial.in_flight_frames or 0:,} in flight"
        )
        rows.append(("frames", counts))
    for name in ("duplicated", "reordered", "corrupted"):
        if count := getattr(trial, f"{name}_frames"):
            rows.append((name, f"{count:,}"))
    return Table.of_facts(rows, name="trial", title=f"{trial.evaluator}, {format_duration(trial.duration_s)}")


def _interval(trial: Trial, field: str) -> str:
    if field not in trial.interval:
        return ""
    low, high = trial.interval[field]
    return f" (95 %: {format_pps(low)} to {format_pps(high)})"


def _loss(trial: Trial) -> str:
    if not math.isnan(trial.loss_ratio):
        low, high = trial.interval.get("loss_ratio", (math.nan, math.nan))
        between = f" ({format_ratio(low)} to {format_ratio(high)})" if high - low > _NOTABLE_LOSS else ""
        return f"{format_ratio(trial.loss_ratio)}{between}{_drops(trial)}"
    return "not known" + (f"; overload alone{_drops(trial)}" if trial.drops_pps else "")


def _drops(trial: Trial) -> str:
    largest = sorted(trial.drops_pps.items(), key=lambda entry: -entry[1])[:_MOST_PLACES]
    places = [f"{place} {format_pps(rate)}" for place, rate in largest if rate > 0.0]
    return f": {', '.join(places)}" if places else ""


def _delay(name: str, delay: Delay | None) -> Iterator[tuple[str, str]]:
    if delay is None:
        return
    points = (("mean", delay.mean_s), ("p50", delay.p50_s), ("p99", delay.p99_s), ("max", delay.max_s))
    known = [f"{label} {format_duration(value)}" for label, value in points if math.isfinite(value)]
    if known:
        yield name, ", ".join(known) + (f" ({delay.method})" if delay.method else "")


def _power(power: TrialPower) -> str:
    per = [
        f"{format_energy(energy_j)}/{of}"
        for energy_j, of in ((power.packet_j, "packet"), (power.bit_j, "bit"))
        if math.isfinite(energy_j)
    ]
    return f"{', '.join((format_power(power.mean_w), *per))} ({power.scope}; {power.source})"


def resources_table(trial: Trial) -> Table:
    """Return how busy each resource is and how much more it could carry; the bottleneck is strong.

    Eight or more of one kind that follow each other share a row, with the least and the most of each.
    """
    folded = [list(alike) for _, alike in groupby(trial.resources, key=lambda one: re.sub(r"\d+", "#", one.name))]
    rows = [part for alike in folded for part in ([alike] if len(alike) >= _FOLDED else [[one] for one in alike])]

    def span(form: Callable[[float], str], of: Callable[[Resource], float | None]) -> Callable[[list[Resource]], Cell]:
        def cell(alike: list[Resource]) -> Cell:
            values = [value for one in alike if (value := of(one)) is not None and not math.isnan(value)]
            if not values or form(min(values)) == form(max(values)):
                return values[0] if values else None
            return f"{form(min(values))} to {form(max(values))}"

        return cell

    return Table.of(
        rows,
        Column.text("Resource", _called),
        Column("Busy", "", format_ratio, span(format_ratio, lambda one: one.utilisation_ratio)),
        Column("Could carry", "", format_pps, span(format_pps, lambda one: one.capacity_pps)),
        Column("Left", "", format_ratio, span(format_ratio, lambda one: _left(one.capacity_pps, trial.forwarded_pps))),
        name="resources",
        title="Resources",
        caption="Left: how much more of this load a resource could carry than the router forwards.",
        strong=lambda alike: trial.bottleneck.name in {one.name for one in alike},
    )


def _called(alike: Sequence[Resource]) -> str:
    if len(alike) == 1:
        return alike[0].name
    first, *_, last = sorted((one.name for one in alike), key=lambda name: (len(name), name))
    return f"{first} … {last} ({len(alike)})"


def _left(capacity_pps: float, forwarded_pps: float) -> float | None:
    """How much more than it forwards the router could; rounding is none."""
    if not forwarded_pps:
        return None
    left = capacity_pps / forwarded_pps - 1.0
    return 0.0 if abs(left) < _ROUNDING else left


def _energy(trial: Trial) -> Table:
    entries = [(pool, *entry) for pool, states in trial.energy_j.items() for entry in states.items()]
    return Table.of(
        entries,
        Column.text("Pool", lambda entry: entry[0]),
        Column.text("State", lambda entry: entry[1]),
        Column("Energy", "J", getter=lambda entry: entry[2]),
        Column("Mean power", "", format_power, lambda entry: entry[2] / trial.duration_s),
        name="energy",
        title="Energy",
    )


def messages_table(messages: Sequence[Message]) -> Table:
    """Return the messages between task units and resource managers in the order in which they were sent."""
    return Table.of(
        messages,
        Column("Time", "", format_duration, "at_s"),
        Column.text("Message", "kind"),
        Column.text("Task unit", "task"),
        Column.text("Pool", "pool"),
        Column("Unit", "", "d", "unit"),
        name="messages",
        title="Messages",
        caption="REQ asks for units, REP grants them, REL gives them back, REV takes them away (S4).",
    )


def phases_table(trial: Trial, absences: Sequence[Absence]) -> Table:
    """Return how a trial went from one change to the next, from its rates over time."""
    happens: dict[float, list[str]] = {0.0: []}
    for away in absences:
        for at_s, what in (
            (away.down_s, "goes down"),
            (away.avoided_s, "is avoided"),
            (away.up_s, "is back"),
            (away.used_s, "is used again"),
        ):
            if at_s < trial.duration_s:
                happens.setdefault(at_s, []).append(f"{away.element} {what}")
    starts = sorted(happens)
    ends = dict(zip(starts, [*starts[1:], trial.duration_s], strict=True))
    part_s = trial.duration_s / len(trial.over_time) if trial.over_time else 0.0

    def rate(name: str) -> Column:
        def mean_pps(start_s: float) -> float | None:
            during = [one for one in trial.over_time if start_s <= one.time_s + part_s / 2 < ends[start_s]]
            return sum(getattr(one, f"{name}_pps") for one in during) / len(during) if during else None

        return Column(name.capitalize(), "", format_pps, mean_pps)

    return Table.of(
        starts,
        Column("From", "", format_duration, lambda start_s: start_s),
        Column.text("What happens", lambda start_s: ", ".join(happens[start_s])),
        rate("offered"),
        rate("forwarded"),
        rate("dropped"),
        name="phases",
        title="Over time",
    )
