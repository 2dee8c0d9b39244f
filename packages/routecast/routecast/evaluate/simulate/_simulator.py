"""The simulating evaluator: what happens to each frame (semantics S3-S12).

This file turns a router model and a load into the scenario of the compiled core, and the core's outcome into a
:class:`~routecast.evaluate.trial.Trial`. The simulation itself is in ``crates/sim``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from routecast.errors import ModelProblem, Problem, TransientProblem
from routecast.evaluate.energy import UnitStates, energy_of, power_notes, power_of
from routecast.evaluate.simulate.scenario import ports_in, run_of, scenario_of
from routecast.evaluate.trial import TIE, Bottleneck, Delay, FlowOutcome, Moment, Resource, TaskActivity, Trial
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.load.trace import RecordedFrames
from routecast.progress import ShareProgress
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.router.bounds import MAX_UNITS
from routecast.router.check_load import check_load
from routecast.router.events import Event, Outage, check_events
from routecast.router.model import ResourcePool, RouterModel, TaskUnit
from routecast.router.window import windows_of

if TYPE_CHECKING:
    from routecast.evaluate.simulate.graphics import Graphics

_BUSY_MARGIN: Final = 0.02
_NOTABLE_DROPS: Final = 0.1
_ALL_RATIO: Final = 1.0 - 1e-3
"""A forwarding rate above this share of the intended rate counts as all of it; the rest is in flight."""
_ROUNDING = 1e-12
_TIMES: Final = ("mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s")
_COPIED_FIELDS: Final = (
    "measured_s",
    "offered_pps",
    "offered_frames",
    "forwarded_frames",
    "dropped_frames",
    "in_flight_frames",
)
_MAX_FRAMES = 50_000_000_000


def fullest_unit(
    model: RouterModel, nodes: Mapping[str, Any], used: Mapping[str, Mapping[str, float]], pool: ResourcePool
) -> tuple[int | None, float]:
    """Find the busiest unit of a pool: its number (None: any) and its utilisation.

    Where task units are pinned to one unit each, units differ; elsewhere they share the work.
    """
    pinned: dict[int, float] = {}
    for task in model.tasks:
        if task.needs and task.needs[0].pool == pool.name and len(task.pin) == 1:
            pinned[task.pin[0]] = pinned.get(task.pin[0], 0.0) + nodes[task.name]["working_units"]
    mean = sum(used[pool.name].values()) / pool.units
    unit = max(pinned, key=lambda number: pinned[number], default=None)
    if unit is None or pinned[unit] <= mean * (1.0 + TIE):
        return None, mean
    return unit, pinned[unit]


def with_full_polls(model: RouterModel, load: OfferedLoad, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the nodes, their work less what it would not take if the same frames came in full polls, uninterrupted.

    A core whose polls or interrupts cost something takes few frames each while the load is low: it is busy, and not
    full. The frames of a poll follow from its length (S5), with the contention of the units at work on average.
    """
    filled = dict(nodes)
    for task in model.tasks:
        node, cost = nodes[task.name], task.service
        batch = task.activation.budget_frames if task.activation.kind == "interrupt" else task.batch_frames
        polls_per_s = node["polls_per_s"]
        takes = cost.per_batch_s + cost.per_batch_cycles + task.activation.interrupt_cost_s
        if not (takes and batch > 1 and task.needs and polls_per_s > 0.0) or task.thread:
            continue
        pool = model.pool(task.needs[0].pool)
        on_pool = [other.name for other in model.tasks if any(need.pool == pool.name for need in other.needs)]
        slower = pool.contention.factor(math.fsum(nodes[other]["working_units"] for other in on_pool))
        interrupts_s = node["interrupts_per_s"] * task.activation.interrupt_cost_s
        poll_s = (node["working_units"] / slower - interrupts_s) / polls_per_s
        size, frequency_hz = load.frames.mean_bytes, pool.frequency_hz
        frame_s = cost.mean_s(size, frequency_hz=frequency_hz, batch_frames=math.inf)
        batch_s = cost.mean_s(size, frequency_hz=frequency_hz) - frame_s
        frames = min(max((poll_s - batch_s) / frame_s, 1.0), batch) if frame_s > 0.0 else batch
        needed_s = polls_per_s * frames * (frame_s + batch_s / batch) * slower
        filled[task.name] = {**node, "working_units": min(needed_s, node["working_units"])}
    return filled


def bottleneck_of(
    resources: Sequence[Resource],
    drops_pps: Mapping[str, float],
    offered_pps: float,
    intended_pps: float,
    forwarded_pps: float,
    model: RouterModel,
    nodes: Mapping[str, Any],
    used: Mapping[str, Mapping[str, float]],
    failed_tasks: set[str],
) -> Bottleneck:
    """Return the resource that limits or would limit first, or the queue that is too short.

    A queue limits where frames are dropped although every resource could carry ``offered_pps``. A resource that is
    busy all the time does not limit yet where ``forwarded_pps`` is all of ``intended_pps``.

    ``resources``: the least margin first; ``drops_pps``: lost frames/s by task unit or link; ``nodes``: results of the
    core by task unit and link; ``used``: units in use, by pool and task unit; ``failed_tasks``: task units that were
    down for a while.
    """
    if not resources:
        return Bottleneck(name="load", kind="load", reason="nothing was busy")
    first = resources[0]
    waits_for = {task.name: (task.thread, task.needs[0].pool) for task in model.tasks if task.needs}
    drops_text = ""
    # A loss at a task unit that is down says nothing about the limit.
    elsewhere = " but where something was down" if failed_tasks & set(drops_pps) else ""
    drops_pps = {place: rate for place, rate in drops_pps.items() if place not in failed_tasks}
    if drops_pps:
        place = max(drops_pps, key=lambda name: drops_pps[name])
        drops_text = f'; "{place}" drops {format_pps(drops_pps[place])}'
        # Where frames are dropped, the resource that they wait for limits, if it is as full as any other.
        for resource in resources:
            if resource.name in (place, *waits_for.get(place, ())) and resource.margin_ratio <= _BUSY_MARGIN:
                first = resource
                break
    first, busiest = _limiting_resource(first, resources, model)
    busy, share = _utilisation_sentence(first, busiest, model, nodes, used)
    if share >= 1.0 - _BUSY_MARGIN and first.capacity_pps > forwarded_pps * (1.0 + _BUSY_MARGIN):
        busy = f"{busy}, in polls that could take more"
    others = _equally_full(first, resources, drops_pps)
    if drops_text and share < 1.0 - _BUSY_MARGIN and first.capacity_pps >= offered_pps:
        return Bottleneck(
            name=place,
            kind="task" if any(task.name == place for task in model.tasks) else "link",
            reason=f"limits: it drops {format_pps(drops_pps[place])}, because too few frames may wait there; "
            f"{first.name}, the fullest resource, carries more than the offered load: {busy}",
            others=tuple(name for name in (first.name, *others) if name != place),
        )
    if drops_text or (share >= 1.0 - _BUSY_MARGIN and forwarded_pps < intended_pps * _ALL_RATIO):
        return Bottleneck(name=first.name, kind=first.kind, reason=f"limits: {busy}{drops_text}", others=others)
    reason = f"would limit first: {busy}, and nothing is dropped{elsewhere}"
    return Bottleneck(name=first.name, kind=first.kind, reason=reason, others=others)


def _equally_full(first: Resource, resources: Sequence[Resource], drops_pps: Mapping[str, float]) -> tuple[str, ...]:
    """Return the resources that are as full as the first, and the locations with a notable share of all drops."""
    full = [
        resource.name for resource in resources if resource.capacity_pps <= first.capacity_pps * (1.0 + _BUSY_MARGIN)
    ]
    most_drops = max(drops_pps.values(), default=0.0)
    dropping = [place for place, rate in drops_pps.items() if rate >= _NOTABLE_DROPS * most_drops]
    return tuple(name for name in dict.fromkeys((*full, *dropping)) if name != first.name)


def _utilisation_sentence(
    first: Resource,
    busiest: Resource | None,
    model: RouterModel,
    nodes: Mapping[str, Any],
    used: Mapping[str, Mapping[str, float]],
) -> tuple[str, float]:
    """Return a sentence on the utilisation of a resource, and the utilisation."""
    share = first.utilisation_ratio
    if any(window.pool == first.name for window in windows_of(model)) and first.kind == "pool":
        units = model.pool(first.name).units
        held = f"all its {units} units" if units > 1 else "its unit"
        inside = (
            f', while "{busiest.name}", the busiest that these frames wait for, is busy '
            f"{format_ratio(busiest.utilisation_ratio)}"
            if busiest is not None
            else ""
        )
        return f"frames hold {held} {format_ratio(share)} of the time{inside}", share
    busy = "it"
    if first.kind == "pool":
        unit, share = fullest_unit(model, nodes, used, model.pool(first.name))
        busy = "it" if unit is None else f"unit {unit}"
    return f"{busy} is busy {format_ratio(share)} of the time", share


def _limiting_resource(
    first: Resource, resources: Sequence[Resource], model: RouterModel
) -> tuple[Resource, Resource | None]:
    """Return the cause of a full resource, and for a window the fullest resource inside.

    The cause of a full window is a resource inside that is as full, else the window itself, since its frames wait for
    latencies. Other resources are their own cause.
    """
    windows = [window for window in windows_of(model) if window.pool == first.name and first.kind == "pool"]
    if not windows:
        return first, None
    inside_windows = {name for window in windows for name in window.inside}
    tasks = [task for task in model.tasks if task.name in inside_windows]
    waited_for = {need.pool for task in tasks for need in task.needs} | {task.thread for task in tasks}
    others = [
        resource
        for resource in resources
        if resource is not first
        and (resource.name in waited_for or (resource.kind == "task" and resource.name in inside_windows))
    ]
    busiest = others[0] if others else None
    if busiest is not None and busiest.margin_ratio <= _BUSY_MARGIN + first.margin_ratio:
        return _limiting_resource(busiest, resources, model)
    return first, busiest


def used_units(
    model: RouterModel, nodes: Mapping[str, Any], pools: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, float]]:
    """Return the mean number of units of each pool in use, by the task unit that uses them.

    Units that frames hold across task units (windows) are in use as long as a frame holds them; their key is the name
    of the pool.
    """
    used: dict[str, dict[str, float]] = {pool.name: {} for pool in model.pools}
    for task in model.tasks:
        for need in task.needs:
            if not need.until:
                used[need.pool][task.name] = nodes[task.name]["working_units"] * need.units
    for pool, outcome in zip(model.pools, pools, strict=True):
        if held := outcome.get("held_units", 0.0):
            used[pool.name][pool.name] = held
    return used


def states_of(model: RouterModel, nodes: Mapping[str, Any], pools: Sequence[Mapping[str, Any]]) -> list[UnitStates]:
    """Return the mean number of units of each pool in each state after the transient."""
    states = []
    used = used_units(model, nodes, pools)
    for pool, outcome in zip(model.pools, pools, strict=True):
        working = math.fsum(used[pool.name].values())
        spinning = math.fsum(
            _spinning(model, task, nodes[task.name]) * need.units
            for task in model.tasks
            for need in task.needs
            if need.pool == pool.name
        )
        states.append(
            UnitStates(
                pool=pool,
                active_units=min(working + spinning, pool.units),
                asleep_units=tuple(outcome["asleep_units"]),
                waking_units=outcome["waking_units"],
                wakes_per_s=tuple(outcome["wakes_per_s"]),
            )
        )
    return states


def activity_of(model: RouterModel, nodes: Mapping[str, Any]) -> tuple[TaskActivity, ...]:
    """Return the activity of each task unit; polls count where they are events: with batches and after interrupts."""
    return tuple(
        TaskActivity(
            name=task.name,
            busy_ratio=min(nodes[task.name]["working_units"] / _grants(task, model), 1.0),
            interrupts_per_s=nodes[task.name]["interrupts_per_s"],
            polls_per_s=nodes[task.name]["polls_per_s"] if _polls_in_batches(task) else math.nan,
            copies_per_s=nodes[task.name]["copied_pps"],
            copies_lost_per_s=nodes[task.name]["copies_lost_pps"],
        )
        for task in model.tasks
    )


def _polls_in_batches(task: TaskUnit) -> bool:
    kind = task.activation.kind
    return kind in {"interrupt", "thread"} or (kind == "polling" and (task.batch_frames > 1 or bool(task.thread)))


def _spinning(model: RouterModel, task: TaskUnit, node: Mapping[str, Any]) -> float:
    """Return the number of grants held without work.

    Where units are never revoked, a polling task unit never releases its units.
    """
    revoked = any(model.pool(need.pool).policy.kind not in {"fifo", "priority"} for need in task.needs)
    if task.activation.kind == "polling" and not task.thread and not (node["by_events"] and revoked):
        return max(task.parallel - float(node["working_units"]), 0.0)
    return float(node["spinning_units"])


def _grants(task: TaskUnit, model: RouterModel) -> int:
    """Return the number of grants that a task unit may have at a time."""
    if task.request == "frame" and task.needs:
        return len(task.pin) or model.pool(task.needs[0].pool).units
    return task.parallel


def trial_of(
    model: RouterModel, load: OfferedLoad, duration_s: float, outcome: dict[str, Any], *, events: Sequence[Event] = ()
) -> Trial:
    """Return the trial of an outcome of ``_core.simulate``, with the events during it."""
    forwarded_pps = outcome["forwarded_pps"]["value"]
    names = [*(task.name for task in model.tasks), *(f"{port.name} out" for port in model.ports)]
    nodes = dict(zip(names, outcome["nodes"], strict=True))
    used = used_units(model, nodes, outcome["pools"])
    resources = _resources(model, load, nodes, used, outcome)
    forwarded_bytes_per_s = outcome["forwarded_bytes_per_s"]
    trace = load.arrivals.trace
    intended_pps = load.mean_pps(duration_s) if trace is None else trace.within_pps(duration_s)
    l2_bps = 8.0 * forwarded_bytes_per_s
    energy_j = energy_of(states_of(model, nodes, outcome["pools"]), duration_s)
    drops_pps = {name: node["dropped_pps"] for name, node in nodes.items() if node["dropped_pps"] > 0.0}
    failed_tasks = {event.task for event in events if isinstance(event, Outage)}
    return Trial(
        evaluator="simulate",
        duration_s=duration_s,
        intended_pps=intended_pps,
        forwarded_pps=forwarded_pps,
        arrivals=load.arrivals.text,
        loss_ratio=outcome["loss_ratio"]["value"],
        l1_bps=8.0 * (forwarded_bytes_per_s + WIRE_OVERHEAD_BYTES * forwarded_pps),
        l2_bps=l2_bps,
        bottleneck=bottleneck_of(
            resources, drops_pps, outcome["offered_pps"], intended_pps, forwarded_pps, model, nodes, used, failed_tasks
        ),
        resources=resources,
        **{name: outcome[name] for name in _COPIED_FIELDS},
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
        notes=(
            *([] if trace is None else _notes_on_trace(trace, duration_s, outcome["replications"])),
            *_notes(outcome, intended_pps, events),
            *power_notes(model),
        ),
    )


def _known_length_s(load: OfferedLoad, duration_s: float) -> float:
    """Return the duration of a trial: at most that of the load's trace."""
    trace = load.arrivals.trace
    return duration_s if trace is None else min(duration_s, trace.length_s)


def _notes_on_trace(trace: RecordedFrames, duration_s: float, replications: int) -> Iterator[str]:
    yield from trace.notes
    if duration_s < trace.length_s * (1.0 - 1e-9):
        taken = int(np.searchsorted(trace.time_s, duration_s))
        whole = format_duration(trace.length_s)
        yield f"of the trace of {whole} the first {format_duration(duration_s)} are simulated: {taken:,} frames"
    if replications > 1:
        yield "replications of a trace have the same frames: only random services, routes and wake-ups vary"


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
    method = f"HDR histogram of {row['count']:,} frames"
    return Delay(**{name: row[name] for name in _TIMES}, method=method, hdr_base64=row["hdr_base64"])


def _delay_variation(row: dict[str, Any]) -> Delay | None:
    """Return the delay variation of RFC 5481 sec. 4.2: the latency minus its minimum."""
    if row["count"] == 0:
        return None
    method = f"latency less its least, {row['count']:,} frames"
    return Delay(**{name: row[name] - row["min_s"] for name in _TIMES}, method=method)


def _intervals(outcome: dict[str, Any]) -> dict[str, tuple[float, float]]:
    intervals = {}
    for name, value, half_width in (
        ("forwarded_pps", outcome["forwarded_pps"]["value"], outcome["forwarded_pps"]["half_width"]),
        ("loss_ratio", outcome["loss_ratio"]["value"], outcome["loss_ratio"]["half_width"]),
        ("latency.mean_s", outcome["latency"]["mean_s"], outcome["latency_half_width_s"]),
        ("waiting.mean_s", outcome["waiting"]["mean_s"], outcome["waiting_half_width_s"]),
    ):
        # The core writes NaN as null, since JSON has no NaN: there is no interval.
        if half_width is not None and math.isfinite(half_width) and value is not None:
            intervals[name] = (max(value - half_width, 0.0), value + half_width)
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
        # The passing rate takes this share of the fullest unit, so the whole unit carries rate/share. It carries at
        # least the forwarding rate, although a frame less may have come in meanwhile.
        capacity_pps = math.nan
        if fullest > 0.0 and passing_pps > 0.0:
            capacity_pps = max(passing_pps / min(fullest, 1.0), forwarded_pps)
        return Resource(name=name, kind=kind, utilisation_ratio=min(used, 1.0), capacity_pps=capacity_pps)

    resources = []
    # Where frames are lost, polls are as full as the router lets them be.
    is_lossless = not any(node["dropped_pps"] for node in nodes.values())
    filled = with_full_polls(model, load, nodes) if is_lossless else nodes
    needed_by_pool = used_units(model, filled, outcome["pools"])
    for thread, used in _threads(model, nodes).items():
        resources.append(resource(thread, "task", used, fullest=used, passing_pps=forwarded_pps))
    for pool in model.pools:
        used = sum(used_by_pool[pool.name].values()) / pool.units
        _, fullest = fullest_unit(model, filled, needed_by_pool, pool)
        resources.append(resource(pool.name, "pool", used, fullest=fullest, passing_pps=forwarded_pps))
    for task in model.tasks:
        # A task unit that serves all frames at once is a delay: no load fills it.
        if not task.needs and nodes[task.name]["working_units"] > 0.0 and task.parallel < MAX_UNITS:
            used = nodes[task.name]["working_units"] / task.parallel
            resources.append(resource(task.name, "task", used, fullest=used, passing_pps=forwarded_pps))
    for number, source in zip(ports_in(load), outcome["sources"], strict=True):
        port = model.ports[number]
        wire_bytes_per_s = source["offered_bytes_per_s"] + WIRE_OVERHEAD_BYTES * source["offered_pps"]
        used, offered_pps = 8.0 * wire_bytes_per_s / port.link_bps, outcome["offered_pps"]
        resources.append(resource(f"{port.name} in", "link", used, fullest=used, passing_pps=offered_pps))
    for port in model.ports:
        used = nodes[f"{port.name} out"]["working_units"]
        resources.append(resource(f"{port.name} out", "link", used, fullest=used, passing_pps=forwarded_pps))
    known = [resource for resource in resources if not math.isnan(resource.capacity_pps)]
    least_pps = min((resource.capacity_pps for resource in known), default=math.nan)
    # Resources that a simulation cannot tell apart stay in the order of the path through the router.
    known.sort(key=lambda resource: round(math.log(resource.capacity_pps / least_pps) / TIE))
    return tuple(replace(resource, margin_ratio=_margin(resource.capacity_pps, least_pps)) for resource in known)


def _margin(capacity_pps: float, least_pps: float) -> float:
    """Return the margin of a resource over the bottleneck; rounding errors count as 0."""
    margin = capacity_pps / least_pps - 1.0
    return margin if margin > _ROUNDING else 0.0


def _threads(model: RouterModel, nodes: dict[str, Any]) -> dict[str, float]:
    """Return the utilisation of each thread; a thread serves several task units and uses at most one unit."""
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
        notes.append(f"{happened}: the whole trial counts, from the empty router on, and no steady state is claimed")
    elif not outcome["settled"]:
        notes.append("the transient did not end within the trial: these are not steady-state figures")
    elif outcome["replications"] == 1 and outcome["latency"]["count"] and outcome["latency_half_width_s"] is None:
        notes.append(
            "the trial is too short for an interval of its mean latency: neighbouring parts of it resemble each other;"
            " simulate longer, or several replications"
        )
    if (lanes := outcome.get("lanes")) is not None:
        notes.append(_lanes_note(lanes))
    if outcome["replications"] > 1:
        notes.append(f"{outcome['replications']} independent replications; frame counts are their sums")
    return tuple(notes)


def _lanes_note(lanes: dict[str, Any]) -> str:
    """Return what lanes have to say of themselves: seams, ticks, and the rule of their draws."""
    proved = lanes["proved_at_once"] + lanes["repaired"]
    again = f", {lanes['repaired']} of them by running a segment again" if lanes["repaired"] else ""
    seams = f"{proved} of {lanes['seams']} seams proved{again}" if lanes["seams"] else "one stretch without a seam"
    tick, rounding = format_duration(lanes["tick_s"]), lanes["rounding_ratio"]
    where, why = "in lanes", "; ".join(sorted(set(lanes["given_up"])))
    if lanes["on_device"]:
        where += " on a graphics processor" + (f" (in part or whole by the processor, since {why})" if why else "")
    elif why:
        where += f" on the processor, since {why}"
    return (
        f"{where}: {seams}; a tick is {tick}, which rounds a mean service by"
        f" {rounding:.1g} of itself at most; draws belong to instants (S8), so a seed gives another trial than by"
        " recursion or events"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message between a task unit and a resource manager (Meyer et al. 2014, sec. IV-C.3): REQ, REP, REL or REV."""

    at_s: float
    kind: Literal["REQ", "REP", "REL", "REV"]
    task: str
    pool: str
    unit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameFate:
    """Fate of a frame: when its last bit arrived, when it left or was dropped, and where (empty: forwarded)."""

    number: int
    arrival_s: float
    end_s: float
    dropped_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A small run in detail: the trial, the messages and the fate of each frame."""

    trial: Trial
    messages: tuple[Message, ...]
    fates: tuple[FrameFate, ...]


@dataclass(frozen=True, slots=True)
class Simulate:
    """Evaluator ``"simulate"`` for a router model.

    * ``seed``: seed of all random streams; one seed gives one trace (S8).
    * ``replications``: independent replications, run on all cores; a single one has intervals from batch means (S10).
    * ``path``: ``auto`` uses Lindley's recursion where the model allows it and events for the rest; both give the same
      trace. ``lanes`` cuts the trial into segments that run side by side, one lane of a vector each, and proves the
      seams between them; it draws by a rule of its own (S8), and the note says so. ``auto`` takes lanes for trials of
      ten million frames or more that need events, where lanes run them and their seams close.
    * ``target_relative_half_width``: adds replications, up to ``max_replications``, until the 95 % half-width of the
      mean latency is at most this share of it.
    * ``steady_state``: refuses a trial whose transient has not ended (default). Every other trial is measured after
      its transient.
    * ``per_flow``: counts the frames of each flow (:attr:`~routecast.evaluate.trial.Trial.flows`). It slows the fastest
      path, frames through plain queues, by a fifth. Trials with events and :meth:`trace` always count them.
    * ``over_time``: keeps the rates of each thousandth of the trial
      (:attr:`~routecast.evaluate.trial.Trial.over_time`). Trials with events always keep them.
    * ``events``: changes of the router during the trial: task units that fail and come back, routes that change. The
      whole trial then counts, from the empty router on, and no steady state is required.
    * ``on_progress``: called about every 50 ms with the finished share, 0..1.
    * ``device``: a graphics processor (:func:`~routecast.evaluate.simulate.graphics.open_graphics`) that runs the trial
      in lanes, one replication after the other; it counts what ``path="lanes"`` counts, integer by integer.

    Examples
    --------
    An M/D/1 queue at load 0.5 makes a frame wait half a service time (Pollaczek and Khinchine).

    >>> from routecast.load import Arrivals, OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e15)
    >>> load = OfferedLoad(rate_pps=0.5e6, arrivals=Arrivals.poisson())
    >>> trial = Simulate(router, seed=1).trial(load, duration_s=1.0)
    >>> round(trial.waiting.mean_s * 1e6, 1)
    0.5
    """

    model: RouterModel
    seed: int = 1
    replications: int = 1
    path: Literal["auto", "recursion", "events", "lanes"] = "auto"
    target_relative_half_width: float | None = None
    max_replications: int = 64
    steady_state: bool = True
    per_flow: bool = False
    over_time: bool = False
    events: tuple[Event, ...] = ()
    on_progress: ShareProgress | None = None
    device: Graphics | None = None

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Simulate ``load`` for ``duration_s`` seconds of the router's time.

        Raises ModelProblem: the load does not fit the router, or a setting is out of range; TransientProblem: the
        duration is too short to pass the transient; the error states a sufficient duration.
        """
        duration_s = _known_length_s(load, duration_s)
        outcome = self._outcome(load, duration_s)
        return trial_of(self.model, load, duration_s, outcome, events=self.events)

    def trace(self, load: OfferedLoad, duration_s: float, *, message_limit: int = 100_000) -> Trace:
        """Simulate a small run and record the fate of each frame and each resource message.

        Raises ModelProblem: as :meth:`trial`; the transient is not required to end.
        """
        duration_s = _known_length_s(load, duration_s)
        # Only the event path manages units and so sends messages. Both paths give the same fates.
        path = "events" if self.path == "auto" else self.path
        recording = replace(self, steady_state=False, replications=1, target_relative_half_width=None, path=path)
        outcome = recording._outcome(load, duration_s, keep_frames=True, message_limit=message_limit)
        tasks, pools = [task.name for task in self.model.tasks], [pool.name for pool in self.model.pools]
        nodes = [*tasks, *(f"{port.name} out" for port in self.model.ports)]
        return Trace(
            trial=trial_of(self.model, load, duration_s, outcome, events=self.events),
            messages=tuple(
                Message(**{**row, "task": tasks[row["task"]], "pool": pools[row["pool"]]})
                for row in outcome["messages"]
            ),
            fates=tuple(
                FrameFate(
                    number=row["seq"],
                    arrival_s=row["arrival_ps"] * 1e-12,
                    end_s=row["end_ps"] * 1e-12,
                    dropped_at="" if row["dropped_at"] is None else nodes[row["dropped_at"]],
                )
                for row in outcome["fates"]
            ),
        )

    def outcome_from(self, load: OfferedLoad, duration_s: float, begin: dict[str, Any] | None) -> dict[str, Any]:
        """Return the outcome of the compiled core from a state on, with the state at the end as ``lanes.end``.

        See :func:`routecast.evaluate.simulate.parts.trial_in_parts`.
        """
        return self._outcome(load, duration_s, of_run={"begin": begin, "keep_end": True, "whole": True})

    def _outcome(
        self,
        load: OfferedLoad,
        duration_s: float,
        *,
        keep_frames: bool = False,
        message_limit: int = 0,
        of_run: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        from routecast import _core  # the compiled part is loaded where it is used

        self._check(load, duration_s)
        check_events(self.model, self.events, duration_s)
        check_load(self.model, load, self.events)
        scenario = scenario_of(self.model, load)
        scenario["run"] = run_of(
            self.model,
            duration_s,
            seed=self.seed,
            path=self.path,
            keep_frames=keep_frames,
            per_flow=self.per_flow or keep_frames or bool(self.events),
            over_time=self.over_time or bool(self.events),
            message_limit=message_limit,
            steady_state=self.steady_state,
            is_whole=load.arrivals.kind == "trace",
            events=self.events,
        ) | dict(of_run or {})
        try:
            text = _core.simulate(
                json.dumps(scenario),
                replications=self.replications,
                target_relative_half_width=self.target_relative_half_width,
                most=self.max_replications,
                progress=self.on_progress,
                device=self.device,
            )
        except _core.SimulationError as error:
            kind, message, ran_s, needed_s = error.args
            if kind == "transient":
                raise TransientProblem(ran_s, needed_s, message) from None
            with_names = re.sub(
                r"task unit (\d+)", lambda number: f'"{self.model.tasks[int(number[1])].name}"', message
            )
            raise ModelProblem(f"router {self.model.name!r}", [Problem("", with_names)]) from None
        outcome: dict[str, Any] = json.loads(text)
        return outcome

    def _check(self, load: OfferedLoad, duration_s: float) -> None:
        problems = []
        if not (math.isfinite(duration_s) and 1e-9 <= duration_s <= 1e6):
            problems.append(Problem("duration_s", f"got {duration_s}: give 1e-9 to 1e6 seconds"))
        elif load.rate_pps * duration_s > _MAX_FRAMES:
            frames = load.rate_pps * duration_s
            message = f"means {frames:.3g} frames; at most {_MAX_FRAMES:.0e} can be simulated at once"
            problems.append(Problem("duration_s", message))
        if self.device is not None and self.path not in {"auto", "lanes"}:
            problems.append(Problem("device", f"runs lanes, not the path {self.path!r}"))
        if not 0 <= self.seed < 2**64:
            problems.append(Problem("seed", f"got {self.seed}: a whole number from 0 to 2^64 − 1"))
        for name, value in (("replications", self.replications), ("max_replications", self.max_replications)):
            if not 1 <= value <= 10_000:
                problems.append(Problem(name, f"got {value}: a whole number from 1 to 10,000"))
        target = self.target_relative_half_width
        if target is not None and not 0.0 < target < 1.0:
            problems.append(Problem("target_relative_half_width", f"got {target}: a share between 0 and 1"))
        if problems:
            raise ModelProblem("simulation", problems)
