"""The limiting resource of a router: windows, threads that use one unit at most, sets of units, links."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from routecast.evaluate._queue import MeanQueue
from routecast.evaluate._two_moment_queues import GIGc
from routecast.evaluate.solve._arrivals import ArrivalProcess
from routecast.evaluate.solve._machine import ThreadMachine
from routecast.evaluate.solve._throughput import Lossless, Steady, lossless_of
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.trial import NO_LOSS_RATIO, TIE, Bottleneck, Resource
from routecast.load.offered import line_rate_pps
from routecast.quantity import format_duration, format_pps, format_ratio

if TYPE_CHECKING:
    from routecast.evaluate.solve._windows import WindowRates, Windows

Limit = tuple[Resource, str]
"""A resource, and the sentence that says why it limits."""

_FROM_WINDOWS = "mean values of windows"
_MAX_ROUNDS = 10
_ROUGH_TOLERANCE = 1e-3
_TOLERANCE = 1e-7
_NOTABLE_RATIO = 0.05
_EQUAL_RATIO = 1.0 + 1e-6
_IDLE_RATIO = 0.9
_MAX_NAMES = 3
_LOSS_RATIO = 1e-6
_CLOSE_RATIO = 0.02
"""Of threads whose loads differ by less, the thread with the greatest demand limits."""


def queue_in_window(fluid: Fluid, index: int, arriving: ArrivalProcess, rate_pps: float) -> MeanQueue | None:
    """Return the queue of a task unit inside a window, or where one begins; None for other task units."""
    windows, window_rates = fluid.windows, fluid.window_rates
    if windows is None or window_rates is None:
        return None
    service_s = float(fluid.service_s[index])
    if index in windows.enter:
        window = windows.enter.index(index)
        max_pps, units = float(window_rates.max_pps[window]), float(windows.units[window])
        lost_ratio = max(1.0 - float(window_rates.pps[window]) / rate_pps, 0.0)
        frames = fluid.graph.tasks[index].queue_frames
        if lost_ratio > _TOLERANCE or rate_pps >= max_pps:
            waiting_s = frames / max(float(window_rates.pps[window]), 1e-300)
        else:
            scv = arriving.scv if arriving.kind != "regular" else 0.0
            queue = GIGc(
                arrival_pps=rate_pps,
                arrival_scv=scv,
                service_s=units / max_pps,
                service_scv=0.0,
                servers=max(int(units), 1),
            )
            waiting_s = min(queue.waiting_mean_s, frames / rate_pps)
        lost_ratio = lost_ratio if lost_ratio > _TOLERANCE else 0.0
        return MeanQueue(service_s=service_s, waiting_s=waiting_s, lost_ratio=lost_ratio, source=_FROM_WINDOWS)
    if index in windows.inside:
        station = windows.station.get(index, -1)
        waiting_s = float(window_rates.wait_s[station]) if station >= 0 else 0.0
        return MeanQueue(service_s=service_s, waiting_s=waiting_s, source=_FROM_WINDOWS)
    return None


def limits_of_windows(fluid: Fluid, visits: Vector) -> list[Limit]:
    """Return the windows with the capacity of their units if no station were full.

    The waits inside are those at the greatest rate of this load that passes all windows and their stations.

    ``visits``: frames by node for each frame of the intended load.
    """
    windows, now = fluid.windows, fluid.window_rates
    if windows is None or now is None:
        return []
    share = visits[list(windows.enter)]
    critical = _critical_rates(windows, share)
    limits = []
    for window, enter in enumerate(windows.enter):
        task = fluid.graph.tasks[enter]
        need = next(need for need in task.needs if need.pool == windows.pools[window])
        held = float(fluid.busy_units[need.pool][enter]) / need.units
        used = min(held / float(windows.units[window]), 1.0)
        resource = Resource(
            name=windows.pools[window],
            kind="pool",
            utilisation_ratio=used,
            capacity_pps=float(critical.alone_pps[window] / share[window]),
        )
        limits.append((resource, _window_reason(windows, critical, window, task.name)))
    return limits


def _critical_rates(windows: Windows, share: Vector) -> WindowRates:
    """Return the state at the greatest rate that no window limits."""
    work = share @ windows.demand_s
    station_rates = np.divide(windows.servers, work, out=np.full(len(work), np.inf), where=work > 0.0)
    alone_s = windows.demand_s.sum(axis=1) + windows.delay_s
    bound = min(
        float(np.min(windows.units / np.maximum(alone_s * share, 1e-300))), float(station_rates.min(initial=np.inf))
    )
    rate = bound
    window_rates = windows.rates_through(share * rate)
    for _ in range(_MAX_ROUNDS):
        reached = min(float(np.min(window_rates.max_pps / share)), bound)
        if abs(reached - rate) <= _ROUGH_TOLERANCE * rate:
            break
        rate = 0.5 * (rate + reached)
        window_rates = windows.rates_through(share * rate)
    return window_rates


def _window_reason(windows: Windows, state: WindowRates, window: int, name: str) -> str:
    """Return a sentence that says that all units are held, and where the frames that hold them spend their time."""
    residence_s = float(state.residence_s[window])
    parts: dict[str, float] = {}
    for station, visits in enumerate(windows.visits[window]):
        if visits > 0.0:
            time_s = float(windows.demand_s[window, station] + visits * state.wait_s[station])
            place = f'"{windows.names[station]}"'
            parts[place] = parts.get(place, 0.0) + time_s / residence_s
    parts["delays that nobody shares"] = float(windows.delay_s[window]) / residence_s
    clauses = [
        f"{format_ratio(share)} at {place}" if place.startswith('"') else f"{format_ratio(share)} in {place}"
        for place, share in sorted(parts.items(), key=lambda pair: -pair[1])
        if share >= _NOTABLE_RATIO
    ]
    units = round(float(windows.units[window]))
    subject = f"all {units} units of pool" if units > 1 else "the only unit of pool"
    return (
        f'{subject} "{windows.pools[window]}" {"are" if units > 1 else "is"} with frames that came through "{name}", '
        f"{format_duration(residence_s)} each: {', '.join(clauses)}"
    )


def window_notes(fluid: Fluid) -> list[str]:
    """Return notes on the approximations for windows."""
    windows = fluid.windows
    if windows is None:
        return []
    notes = []
    shared = [
        name
        for station, name in enumerate(windows.names)
        if windows.inner[station] < 0 and int((windows.visits[:, station] > 0.0).sum()) > 1
    ]
    if shared:
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(shared))
        notes.append(
            f"{names}: the waits of frames of several windows for each other come from approximate mean value analysis"
        )
    if fluid.load.arrivals.kind != "cbr":
        notes.append(
            "the wait for units of windows takes arrivals at every window to vary as much as at the first, an "
            "approximation; percentiles are not known"
        )
    if not all(windows.paths):
        notes.append(
            "windows whose inner paths part: below overload the waits of their own frames for each other are left out"
        )
    return notes


def limits_of(fluid: Fluid, steady: Steady, forwarded_pps: float) -> tuple[tuple[Resource, ...], Bottleneck]:
    """Return every pool and link with its capacity, the limiting thread if there is one, and the bottleneck.

    The capacity of a pool is that of its fullest set of units, or of its fullest thread, at the work per frame of the
    greatest rate without loss, so it is exact for the bottleneck.
    """
    machine = steady.machine
    lossless = lossless_of(machine)
    rate = lossless.rate_pps
    limits: list[Limit] = []
    loads = machine.groups.load(lossless.demand) / machine.groups.capacity if machine.groups.groups else np.zeros(0)
    alone = lossless.demand / machine.max_grants
    for number, pool in enumerate(machine.model.pools):
        pool_threads = [int(thread) for thread in np.flatnonzero(machine.pool_of == number)]
        groups = [at for at, group in enumerate(machine.groups.groups) if group.pool == number]
        utilisation = min(float(fluid.busy_units[pool.name].sum()) / pool.units, 1.0)
        fullest_threads = _fullest_threads(alone, steady.demand / machine.max_grants, pool_threads)
        thread, close = (fullest_threads[0] if fullest_threads else None), fullest_threads[1:]
        group = max(groups, key=lambda at: float(loads[at]), default=None)
        by_thread = max((float(alone[number]) for number in pool_threads), default=0.0)
        by_group = float(loads[group]) if group is not None else 0.0
        fullest = max(by_thread, by_group)
        capacity = rate / fullest if fullest > 0.0 else math.inf
        why = ""
        if thread is not None and by_thread >= by_group:
            why = _thread_reason(machine, steady, thread)
            if close:
                names = ", ".join(f'"{machine.threads[number].name}"' for number in close)
                why += f"; {names} may limit instead: the closed form is not exact to {format_ratio(_CLOSE_RATIO)}"
            if machine.max_grants[thread] < pool.units or len(pool_threads) > 1:
                resource = _thread_resource(machine, steady, thread, capacity)
                if by_thread > by_group * _EQUAL_RATIO or not groups:
                    limits.append((resource, why))
                limits += [
                    (
                        _thread_resource(machine, steady, number, rate / float(alone[number])),
                        _thread_reason(machine, steady, number),
                    )
                    for number in close
                ]
        elif group is not None:
            why = _group_reason(machine, steady, group)
        resource = Resource(name=pool.name, kind="pool", utilisation_ratio=utilisation, capacity_pps=capacity)
        limits.append((resource, why))
    for number in map(int, np.flatnonzero(machine.pool_of < 0)):
        name = machine.threads[number].name
        if lossless.demand[number] > 0.0:
            lanes = round(float(machine.max_grants[number]))
            why = f'task unit "{name}" works on {lanes} frame{"s" if lanes > 1 else ""} at once'
            limits.append((_thread_resource(machine, steady, number, rate / float(alone[number])), why))
    if lossless.first_lost >= 0:
        limits.append(_turns_limit(machine, steady, lossless))
    visits = np.empty(len(lossless.visits))
    visits[machine.propagation.order] = lossless.visits
    limits += links_of(fluid, visits)
    return ranked(fluid, limits, forwarded_pps)


def _fullest_threads(alone: Vector, demand: Vector, threads: Sequence[int]) -> list[int]:
    """Return the fullest thread at the greatest rate without loss.

    In overload, other threads may be as full within 2 %. Then the thread with the greatest demand comes first, since it
    loses the frames, and the threads with less demand follow.
    """
    if not threads:
        return []
    fullest = max(threads, key=lambda thread: float(alone[thread]))
    least = (1.0 - _CLOSE_RATIO) * float(alone[fullest])
    close = [thread for thread in threads if float(alone[thread]) >= least > 0.0]
    first = max(close, key=lambda thread: float(demand[thread]), default=fullest)
    if demand[first] <= _EQUAL_RATIO:
        return [fullest]
    unlike = [thread for thread in close if float(demand[thread]) * _EQUAL_RATIO < float(demand[first])]
    return [first, *unlike[:_MAX_NAMES]]


def _thread_resource(machine: ThreadMachine, steady: Steady, number: int, capacity_pps: float) -> Resource:
    busy = min(float(steady.busy[number] / machine.max_grants[number]), 1.0)
    name = machine.threads[number].name
    return Resource(name=name, kind="task", utilisation_ratio=busy, capacity_pps=capacity_pps)


def unit_loads(machine: ThreadMachine, busy: Vector, pool: int) -> Vector:
    """Return the load of each unit of a pool: threads with the fewest units first, each spread evenly."""
    load = np.zeros(machine.model.pools[pool].units)
    threads = [number for number in range(len(machine.threads)) if machine.pool_of[number] == pool]
    for number in sorted(threads, key=lambda thread: len(machine.threads[thread].units)):
        units = sorted(machine.threads[number].units)
        level = np.sort(load[units])
        rest = float(busy[number])
        below = np.cumsum(level)
        counts = np.arange(1, len(units) + 1)
        heights = (rest + below) / counts
        # Water filling: the work rises over the units whose load is below the surface.
        fits = np.flatnonzero(heights >= level)
        surface = float(heights[fits[-1]])
        load[units] = np.maximum(load[units], surface)
    return load


def _turns_limit(machine: ThreadMachine, steady: Steady, lossless: Lossless) -> Limit:
    """Return the thread that loses frames first because of the turns of other polling threads."""
    number = int(machine.thread[lossless.first_lost])
    name = machine.threads[number].name
    away_s, frames = float(steady.away_s[number]), round(float(machine.queue_frames[lossless.first_lost]))
    why = f'"{name}" shares its unit with polling threads, which take their turns whether they have frames or not'
    if away_s > 0.0:
        why += f", {format_duration(away_s)} at a time, too long for its ring of {frames} frames"
    return _thread_resource(machine, steady, number, lossless.rate_pps), why


def _thread_reason(machine: ThreadMachine, steady: Steady, number: int) -> str:
    thread = machine.threads[number]
    pool = machine.model.pools[thread.pool]
    max_grants = round(float(machine.max_grants[number]))
    if max_grants > 1:
        return f'"{thread.name}" keeps {max_grants} units of pool "{pool.name}" busy all the time'
    where = f"all of unit {min(thread.units)}" if len(thread.units) == 1 else "a whole unit at a time"
    rest = _idle_units_clause(machine, steady, thread.pool, thread.units if len(thread.units) == 1 else frozenset())
    return f'"{thread.name}" takes {where} of pool "{pool.name}"{rest}'


def _group_reason(machine: ThreadMachine, steady: Steady, number: int) -> str:
    group = machine.groups.groups[number]
    pool = machine.model.pools[group.pool]
    by_work = sorted((thread for thread, _ in group.members), key=lambda thread: -float(steady.demand[thread]))
    names = ", ".join(f'"{machine.threads[thread].name}"' for thread in by_work[:_MAX_NAMES])
    more = f" and {len(by_work) - _MAX_NAMES} more" if len(by_work) > _MAX_NAMES else ""
    if len(group.units) == pool.units:
        where = f"all {pool.units} units" if pool.units > 1 else "the unit"
    else:
        where = f"unit{'s' if len(group.units) > 1 else ''} {_unit_list(group.units)}"
    verb = "are" if len(group.units) > 1 else "is"
    rest = _idle_units_clause(machine, steady, group.pool, frozenset(group.units))
    return f'{where} of pool "{pool.name}" ({names}{more}) {verb} busy all the time{rest}'


def _idle_units_clause(machine: ThreadMachine, steady: Steady, pool: int, apart: frozenset[int]) -> str:
    """Return a sentence on the other units of the pool that have spare time."""
    load = unit_loads(machine, steady.busy, pool)
    idle = [unit for unit in range(len(load)) if unit not in apart and load[unit] < _IDLE_RATIO]
    if not idle or not apart:
        return ""
    busiest = max(float(load[unit]) for unit in idle)
    plural = len(idle) > 1
    prefix = "at most " if plural and busiest > 0.0 else ""
    subject = f"units {_unit_list(tuple(idle))} are" if plural else f"unit {idle[0]} is"
    return f", while {subject} busy {prefix}{format_ratio(busiest)}"


def _unit_list(units: tuple[int, ...]) -> str:
    return ", ".join(map(str, units))


def ranked(fluid: Fluid, limits: list[Limit], forwarded_pps: float) -> tuple[tuple[Resource, ...], Bottleneck]:
    """Return resources by capacity, with their margins, and the first as the bottleneck.

    The capacities are rates without loss. In overload a router may forward more: an uneven load loses frames at one
    resource and passes at others, and a batch shares its cost among more frames. A resource on the path of all frames
    then carries at least the forwarding rate.
    """
    finite = [resource.capacity_pps for resource, _ in limits if math.isfinite(resource.capacity_pps)]
    if not finite:
        return (), Bottleneck(name="load", kind="load", reason="no resource limits this load")
    lossless = min(finite)
    reference = max(lossless, forwarded_pps)
    ranked = sorted(limits, key=lambda pair: pair[0].capacity_pps)
    resources = tuple(
        replace(
            resource,
            capacity_pps=max(resource.capacity_pps, forwarded_pps),
            margin_ratio=max(resource.capacity_pps, forwarded_pps) / reference - 1.0 if reference > 0.0 else math.inf,
        )
        for resource, _ in ranked
        if math.isfinite(resource.capacity_pps)
    )
    first, why = ranked[0]
    reason = f"{_verdict(fluid, lossless, forwarded_pps)}: {why}"
    alike = tuple(limit.name for limit, _ in ranked[1:] if limit.capacity_pps <= first.capacity_pps * (1.0 + TIE))
    return resources, Bottleneck(name=first.name, kind=first.kind, reason=reason, others=alike)


def _verdict(fluid: Fluid, lossless_pps: float, forwarded_pps: float) -> str:
    if fluid.intended_pps <= lossless_pps * _EQUAL_RATIO:
        lost_ratio = 1.0 - forwarded_pps / float(fluid.offered.sum())
        lost = ""
        if _LOSS_RATIO < lost_ratio <= NO_LOSS_RATIO:
            lost = f" ({format_ratio(lost_ratio)} are lost before, because too few frames may wait)"
        return f"would limit first, at {format_pps(lossless_pps)}{lost}"
    if forwarded_pps <= lossless_pps * _EQUAL_RATIO:
        return f"limits, at {format_pps(lossless_pps)}"
    if forwarded_pps * _EQUAL_RATIO >= fluid.intended_pps:
        return f"would limit first, above {format_pps(forwarded_pps)}"
    return f"limits, without loss up to {format_pps(lossless_pps)}"


def links_of(fluid: Fluid, visits: Vector) -> list[Limit]:
    """Return the links with their capacities."""
    graph, mean_bytes = fluid.graph, fluid.load.frames.mean_bytes
    share_in = graph.by_port(graph.share)
    offered_in = graph.by_port(fluid.offered)
    limits = []
    for number, port in enumerate(fluid.model.ports):
        cap = line_rate_pps(port.link_bps, mean_bytes)
        node = len(graph.tasks) + number
        out = float(fluid.rates[node].sum() * fluid.admitted_ratio[node])
        for side, share, rate in (("in", share_in[number], offered_in[number]), ("out", visits[node], out)):
            if share > 0.0:
                resource = Resource(
                    name=f"{port.name} {side}",
                    kind="link",
                    utilisation_ratio=min(float(rate) / cap, 1.0),
                    capacity_pps=cap / float(share),
                )
                limits.append((resource, f"the link carries {format_pps(cap)} and {format_ratio(share)} of the frames"))
    return limits
