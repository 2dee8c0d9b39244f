"""The compiled core's outcome as a trial: names for indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from routecast.evaluate.energy import energy_of, power_notes, power_of
from routecast.evaluate.simulate.bottleneck import TIE, bottleneck_of, fullest_unit
from routecast.evaluate.simulate.scenario import ports_in
from routecast.evaluate.simulate.states import activity_of, states_of, used_units
from routecast.evaluate.trial import Delay, FlowOutcome, Moment, Resource, Trial
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.router.check_numbers import MAX_UNITS
from routecast.router.events import Event, Outage
from routecast.router.model import RouterModel

__all__ = ["trial_of"]

_ROUNDING = 1e-12


def trial_of(
    model: RouterModel,
    load: OfferedLoad,
    duration_s: float,
    outcome: dict[str, Any],
    *,
    events: Sequence[Event] = (),
) -> Trial:
    """Return the trial that an outcome of ``_core.simulate`` describes, with what happened during it."""
    forwarded_pps = outcome["forwarded_pps"]["value"]
    names = [*(task.name for task in model.tasks), *(f"{port.name} out" for port in model.ports)]
    nodes = dict(zip(names, outcome["nodes"], strict=True))
    used = used_units(model, nodes, outcome["pools"])
    resources = _resources(model, load, nodes, used, outcome)
    forwarded_bytes_per_s = outcome["forwarded_bytes_per_s"]
    intended_pps = (
        load.arrivals.trace_rate_pps if load.arrivals.kind == "trace" else load.mean_pps(duration_s)
    )
    l2_bps = 8.0 * forwarded_bytes_per_s
    energy_j = energy_of(states_of(model, nodes, outcome["pools"]), duration_s)
    drops_pps = {name: node["dropped_pps"] for name, node in nodes.items() if node["dropped_pps"] > 0.0}
    down = {event.task for event in events if isinstance(event, Outage)}
    return Trial(
        evaluator="simulate",
        duration_s=duration_s,
        measured_s=outcome["measured_s"],
        intended_pps=intended_pps,
        offered_pps=outcome["offered_pps"],
        forwarded_pps=forwarded_pps,
        loss_ratio=outcome["loss_ratio"]["value"],
        l1_bps=8.0 * (forwarded_bytes_per_s + WIRE_OVERHEAD_BYTES * forwarded_pps),
        l2_bps=l2_bps,
        bottleneck=bottleneck_of(resources, drops_pps, outcome["offered_pps"], model, nodes, used, down),
        resources=resources,
        offered_frames=outcome["offered_frames"],
        forwarded_frames=outcome["forwarded_frames"],
        dropped_frames=outcome["dropped_frames"],
        in_flight_frames=outcome["in_flight_frames"],
        first_loss_s=_seconds(outcome["first_loss_s"]),
        last_loss_s=_seconds(outcome["last_loss_s"]),
        drops_pps=drops_pps,
        latency=_delay(outcome["latency"]),
        delay_variation=_delay_variation(outcome["latency"]),
        waiting=_delay(outcome["waiting"]),
        energy_j=energy_j,
        power=power_of(model, energy_j, duration_s=duration_s, forwarded_pps=forwarded_pps, l2_bps=l2_bps),
        activity=activity_of(model, nodes),
        flows=_flows(outcome),
        over_time=tuple(Moment(**row) for row in outcome["over_time"]),
        queue_frames={name: node["waiting_frames"] for name, node in nodes.items()},
        interval=_intervals(outcome),
        notes=(*_notes(outcome, intended_pps, events), *power_notes(model)),
    )


def _seconds(value: float | None) -> float:
    return math.nan if value is None else value


def _flows(outcome: dict[str, Any]) -> tuple[FlowOutcome, ...]:
    return tuple(
        FlowOutcome(
            number=number,
            offered_pps=row["offered_pps"],
            forwarded_pps=row["forwarded_pps"],
            loss_ratio=row["dropped_pps"] / row["offered_pps"] if row["offered_pps"] > 0.0 else 0.0,
        )
        for number, row in enumerate(outcome["flows"])
    )


def _delay(row: dict[str, Any]) -> Delay | None:
    if row["count"] == 0:
        return None
    return Delay(
        mean_s=row["mean_s"],
        min_s=row["min_s"],
        p50_s=row["p50_s"],
        p90_s=row["p90_s"],
        p99_s=row["p99_s"],
        p999_s=row["p999_s"],
        max_s=row["max_s"],
        method=f"HDR histogram of {row['count']:,} frames",
        hdr_base64=row["hdr_base64"],
    )


def _delay_variation(row: dict[str, Any]) -> Delay | None:
    """RFC 5481 sec. 4.2: latency less the least one."""
    if row["count"] == 0:
        return None
    least_s = row["min_s"]
    return Delay(
        mean_s=row["mean_s"] - least_s,
        min_s=0.0,
        p50_s=row["p50_s"] - least_s,
        p90_s=row["p90_s"] - least_s,
        p99_s=row["p99_s"] - least_s,
        p999_s=row["p999_s"] - least_s,
        max_s=row["max_s"] - least_s,
        method=f"latency less its least, {row['count']:,} frames",
    )


def _intervals(outcome: dict[str, Any]) -> dict[str, tuple[float, float]]:
    intervals = {}
    for name, value, half in (
        ("forwarded_pps", outcome["forwarded_pps"]["value"], outcome["forwarded_pps"]["half_width"]),
        ("loss_ratio", outcome["loss_ratio"]["value"], outcome["loss_ratio"]["half_width"]),
        ("latency.mean_s", outcome["latency"]["mean_s"], outcome["latency_half_width_s"]),
        ("waiting.mean_s", outcome["waiting"]["mean_s"], outcome["waiting_half_width_s"]),
    ):
        # The core writes NaN, which JSON has not, as null: there is no interval.
        if half is not None and math.isfinite(half) and value is not None:
            intervals[name] = (value - half, value + half)
    return intervals


def _resources(
    model: RouterModel,
    load: OfferedLoad,
    nodes: dict[str, Any],
    used_by_pool: dict[str, dict[str, float]],
    outcome: dict[str, Any],
) -> tuple[Resource, ...]:
    forwarded_pps = outcome["forwarded_pps"]["value"]

    def resource(
        name: str, kind: Literal["pool", "task", "link"], used: float, *, fullest: float, passing_pps: float
    ) -> Resource:
        # What passes now takes this share of the fullest part, so all of it carries so much; and it carries what the
        # router forwards, though what came in meanwhile may be a frame less.
        capacity_pps = math.nan
        if fullest > 0.0 and passing_pps > 0.0:
            capacity_pps = max(passing_pps / min(fullest, 1.0), forwarded_pps)
        return Resource(name=name, kind=kind, utilisation_ratio=min(used, 1.0), capacity_pps=capacity_pps)

    found = []
    for thread, used in _threads(model, nodes).items():
        found.append(resource(thread, "task", used, fullest=used, passing_pps=forwarded_pps))
    for pool in model.pools:
        used = sum(used_by_pool[pool.name].values()) / pool.units
        _, fullest = fullest_unit(model, nodes, used_by_pool, pool)
        found.append(resource(pool.name, "pool", used, fullest=fullest, passing_pps=forwarded_pps))
    for task in model.tasks:
        # What serves as many at once as there can be is a delay: nothing fills it up.
        if not task.needs and nodes[task.name]["working_units"] > 0.0 and task.parallel < MAX_UNITS:
            used = nodes[task.name]["working_units"] / task.parallel
            found.append(resource(task.name, "task", used, fullest=used, passing_pps=forwarded_pps))
    for number, source in zip(ports_in(load), outcome["sources"], strict=True):
        port = model.ports[number]
        wire_bytes_per_s = source["offered_bytes_per_s"] + WIRE_OVERHEAD_BYTES * source["offered_pps"]
        used, offered_pps = 8.0 * wire_bytes_per_s / port.link_bps, outcome["offered_pps"]
        found.append(resource(f"{port.name} in", "link", used, fullest=used, passing_pps=offered_pps))
    for port in model.ports:
        used = nodes[f"{port.name} out"]["working_units"]
        found.append(resource(f"{port.name} out", "link", used, fullest=used, passing_pps=forwarded_pps))
    known = [one for one in found if not math.isnan(one.capacity_pps)]
    whole = min((one.capacity_pps for one in known), default=math.nan)
    # Equals, as far as a simulation can tell, stay in the order of the way through the router.
    known.sort(key=lambda one: round(math.log(one.capacity_pps / whole) / TIE))
    return tuple(replace(one, margin_ratio=_margin(one.capacity_pps, whole)) for one in known)


def _margin(capacity_pps: float, whole_pps: float) -> float:
    """Return how much more a resource could carry than the bottleneck; rounding is none."""
    margin = capacity_pps / whole_pps - 1.0
    return margin if margin > _ROUNDING else 0.0


def _threads(model: RouterModel, nodes: dict[str, Any]) -> dict[str, float]:
    """Return which share of the time each thread of several task units is at work: it uses one unit at most."""
    threads: dict[str, float] = {}
    for task in model.tasks:
        if task.thread:
            threads[task.thread] = threads.get(task.thread, 0.0) + nodes[task.name]["working_units"]
    return threads


def _notes(outcome: dict[str, Any], intended_pps: float, events: Sequence[Event]) -> tuple[str, ...]:
    notes = []
    if outcome["offered_pps"] < intended_pps * 0.99:
        notes.append("the intended load exceeds line rate; the offered load is what the links carry")
    if events:
        happened = f"{len(events)} event{'s' if len(events) != 1 else ''} during the trial"
        notes.append(
            f"{happened}: the whole trial counts, from the empty router on, and no steady state is claimed"
        )
    elif not outcome["settled"]:
        notes.append("the transient did not end within the trial: these are not steady-state figures")
    if outcome["replications"] > 1:
        notes.append(f"{outcome['replications']} independent replications; frame counts are their sums")
    return tuple(notes)
