"""The closed-form evaluator: throughput, loss and latency of a router at a load, computed in milliseconds.

Rates are fluid: flow hashes and routes split the frames over the task graph, every resource carries up to its capacity
(Meyer et al. 2014, eq. 1, generalised to visit counts, shared pools and contention), and the excess is dropped where it
waits. Routers of threads have their own fixed point, see :mod:`routecast.evaluate.solve._throughput`. Latency and loss
from fluctuation come from queueing theory where the model is a known queue, see
:mod:`routecast.evaluate.solve._delay`; where no result applies, the trial says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.evaluate.energy import UnitStates, energy_of, power_notes, power_of
from routecast.evaluate.solve._cost import Cycle, IdleTimes, costs_of, poisson_idle_times
from routecast.evaluate.solve._delay import delays
from routecast.evaluate.solve._delay_answer import DelayAnswer
from routecast.evaluate.solve._limits import limits_of, limits_of_windows, links_of, ranked
from routecast.evaluate.solve._machine import ThreadMachine, has_threads, machine_of
from routecast.evaluate.solve._scheduling_shares import Component, components, mean_contention, served_at_once, uses_of
from routecast.evaluate.solve._throughput import Steady, lossless_of, steady_state
from routecast.evaluate.solve._unknown_shares import fill_of, frame_times_s
from routecast.evaluate.solve.flow import Vector, flow_graph
from routecast.evaluate.solve.fluid import MEAN_BATCHES, Fluid, intended_of, solve_fluid, switching_s
from routecast.evaluate.trial import (
    BURSTS_LEFT_OUT,
    BY_CHANCE,
    NO_LOSS_RATIO,
    Bottleneck,
    Resource,
    TaskActivity,
    Trial,
)
from routecast.load.offered import WIRE_OVERHEAD_BYTES, OfferedLoad
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.router.check_load import check_load
from routecast.router.model import ResourcePool, RouterModel

_FULL = 1.0 - 1e-9
_SURE = 1.0 - 1e-9
_NEVER = 1e-9
_NOTABLE_RANGE = 0.005
"""Least range of the forwarded rate that is stated, of the rate."""


def resources_of(fluid: Fluid, *, forwarded_pps: float = 0.0) -> tuple[tuple[Resource, ...], Bottleneck]:
    """Return every resource with its capacity and margin, the least margin first, and the bottleneck.

    The capacity of a resource is the greatest intended rate of this load that it carries without overload when nothing
    else limits; the throughput of the router (RFC 1242: no loss) is the least capacity (Meyer et al. 2014, eq. 1). No
    capacity is less than ``forwarded_pps``, the rate that the router forwards at this load.
    """
    if fluid.steady is not None:
        return limits_of(fluid, fluid.steady, forwarded_pps)
    graph = fluid.graph
    visits = graph.arriving(graph.share, np.ones(graph.exit + 1)).sum(axis=1)
    resources: list[tuple[Resource, str]] = []
    switching, _ = switching_s(fluid.components, fluid.costs)
    resources += limits_of_windows(fluid, visits)
    carried = set(fluid.windows.pools) if fluid.windows is not None else set()
    at_once = fluid.windows.never_wait if fluid.windows is not None else frozenset()
    base_s, per_frame = [cost.busy_s for cost in fluid.costs], visits.tolist()
    parts = fluid.components_by_pool()
    for pool in fluid.model.pools:
        if pool.name in carried:
            continue
        capacity, why = _pool_capacity(fluid, pool, parts[pool.name], per_frame, base_s, switching)
        used = min(float(fluid.busy_units[pool.name].sum()) / pool.units, 1.0)
        resources.append((Resource(name=pool.name, kind="pool", utilisation_ratio=used, capacity_pps=capacity), why))
    for index, task in enumerate(graph.tasks):
        busy_s = fluid.costs[index].busy_s
        if task.needs or busy_s <= 0.0 or index in at_once:
            continue
        rate = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
        capacity = task.parallel / (visits[index] * busy_s) if visits[index] > 0.0 else math.inf
        used = min(rate * float(fluid.service_s[index]) / task.parallel, 1.0)
        why = f'task unit "{task.name}" works on {task.parallel} frame{"s" if task.parallel > 1 else ""} at once'
        resources.append((Resource(name=task.name, kind="task", utilisation_ratio=used, capacity_pps=capacity), why))
    resources += links_of(fluid, visits)
    return ranked(fluid, resources, forwarded_pps)


def _pool_capacity(
    fluid: Fluid,
    pool: ResourcePool,
    parts: Sequence[Component],
    visits: Sequence[float],
    base_s: Sequence[float],
    switching: Sequence[float],
) -> tuple[float, str]:
    """Return the rate at which the fullest component of a pool is full, with contention, and the reason.

    Where task units share units and batches or interrupts have a cost, the rate is the safe bound: that of the smallest
    batches that turns allow.
    """
    tasks = fluid.graph.tasks
    frame_s = [base + more for base, more in zip(base_s, switching, strict=True)]
    rate, fullest, load = _full_at(fluid, pool, parts, visits, frame_s)
    if fullest is None:
        return math.inf, ""
    for part in parts:
        if len(part.members) > 1:
            for index, time_s in frame_times_s(part, tasks, fluid.costs, visits).items():
                frame_s[index] = max(frame_s[index], time_s)
    safe_pps, safe_part, safe_load = _full_at(fluid, pool, parts, visits, frame_s)
    uncertainty = ""
    if safe_part is not None and safe_pps < rate * _SURE:
        uncertainty = (
            f"; it may carry up to {format_pps(rate)}, because the number of frames that a poll finds depends on the "
            "turns of the others"
        )
        rate, fullest, load = safe_pps, safe_part, safe_load
    units = len(fullest.units)
    if len(parts) == 1 or sum(load) > 0.999 * sum(len(part.units) for part in parts):
        plural = "s" if pool.units > 1 else ""
        used = pool.units if len(parts) == 1 else sum(len(part.units) for part in parts)
        busy = f'{used} unit{plural} of pool "{pool.name}" are busy all the time'
        return rate, (busy if used > 1 else f'the unit of pool "{pool.name}" is busy all the time') + uncertainty
    names = ", ".join(f'"{tasks[index].name}"' for index, _ in fullest.members[:3])
    share = max(visits[index] for index, _ in fullest.members)
    where = f"unit {fullest.units[0]}" if units == 1 else f"{units} units"
    return rate, f'{where} of pool "{pool.name}" ({names}) gets {format_ratio(share)} of the frames{uncertainty}'


def _full_at(
    fluid: Fluid, pool: ResourcePool, parts: Sequence[Component], visits: Sequence[float], frame_s: Sequence[float]
) -> tuple[float, Component | None, list[float]]:
    """Return the rate at which the fullest component of a pool is full, that component, and the busy units by member.

    ``frame_s``: by task unit: seconds per frame without contention.
    """
    tasks = fluid.graph.tasks
    contended = [factor for factor in fluid.contended if factor.pool is pool]
    factor, load = [1.0] * len(tasks), [0.0] * len(tasks)
    rate, fullest = math.inf, None
    for round_number in range(200):
        fullest_fill, work = 0.0, [0.0] * len(tasks)
        for part in parts:
            own_fill = 0.0
            for index, units in part.members:
                demand = visits[index] * frame_s[index] * factor[index]
                work[index] = demand * units
                own_fill = max(own_fill, demand / served_at_once(tasks[index], max(len(part.units) // units, 1)))
            fill = max(fill_of(part, tasks, work), own_fill)
            if fill > fullest_fill:
                fullest_fill, fullest = fill, part
        if fullest_fill <= 0.0:
            return math.inf, None, load
        before, rate = rate, 1.0 / fullest_fill
        load = [work_s * rate for work_s in work]
        if not contended:
            break
        new_factor = mean_contention(contended, {pool.name: load}, len(tasks))
        if abs(rate - before) <= 1e-12 * rate:
            break
        if round_number >= 8:
            new_factor = [0.5 * (old + new) for old, new in zip(factor, new_factor, strict=True)]
        factor = new_factor
    return rate, fullest, load


def rates_of(model: RouterModel, load: OfferedLoad, *, overload: bool = False) -> Fluid:
    """Return the fluid steady state of a router under a load.

    ``overload``: offer line rate on every port that a flow enters, whatever the load's rate.
    """
    graph = flow_graph(model, load)
    if not has_threads(model):
        costs = costs_of(graph.tasks, model, load.frames.mean_bytes)
        return solve_fluid(model, load, graph, costs, overload=overload)
    machine = machine_of(model, load)
    intended_pps = intended_of(graph, load, overload=overload)
    steady = steady_state(machine, intended_pps)
    position, count, node_rates = machine.propagation.position, len(graph.tasks), steady.node_rates
    ratio = np.where(node_rates.arriving > 0.0, node_rates.served / np.maximum(node_rates.arriving, 1e-300), 1.0)
    admitted = np.where(ratio[position] >= 1.0 - 1e-9, 1.0, ratio[position])
    parts = components(model, graph.tasks)
    thread_of = machine.thread[position[:count]]
    service_s = steady.work_s[position[:count]]
    frames = node_rates.served[position[:count]]
    of_thread = machine.sum_by_thread(node_rates.served)
    starts = steady.wakes.start[thread_of] * frames / np.maximum(of_thread[thread_of], 1e-300)
    work = frames * service_s + starts
    busy: dict[str, Vector] = {pool.name: np.zeros(count) for pool in model.pools}
    for part in parts:
        for index, units in part.members:
            busy[part.pool.name][index] += min(float(work[index]) * units, float(len(part.units)))
    return Fluid(
        model=model,
        load=load,
        graph=graph,
        costs=machine.costs,
        components=parts,
        uses=uses_of(parts, count),
        intended_pps=intended_pps,
        offered=steady.offered,
        rates=graph.arriving(steady.offered, admitted),
        admitted_ratio=admitted,
        service_s=service_s,
        factor=steady.factor[thread_of],
        busy_units=busy,
        active_units=_active(busy, machine),
        notes=tuple(_notes(machine, steady)),
        steady=steady,
    )


def _active(busy: dict[str, Vector], machine: ThreadMachine) -> dict[str, Vector]:
    """Return the busy and the polling units by pool; the idle polls of a thread count for its first task unit."""
    active = {name: vector.copy() for name, vector in busy.items()}
    for number in np.flatnonzero(machine.polling):
        thread = machine.threads[int(number)]
        indices = [int(machine.propagation.order[node]) for node in thread.tasks]
        for need in machine.graph.tasks[indices[0]].needs:
            vector = active[need.pool]
            held_units = float(machine.max_grants[number]) * need.units
            vector[indices[0]] += max(held_units - float(vector[indices].sum()), 0.0)
    return active


def _notes(machine: ThreadMachine, steady: Steady) -> list[str]:
    model, notes = machine.model, []
    if not steady.settled:
        notes.append(f"the shares of the threads did not converge within {steady.rounds} rounds: rates are approximate")
    if any(need.until for task in model.tasks for need in task.needs):
        notes.append("windows among threads are left out: the rates are upper bounds; simulate")
    if not machine.complete:
        notes.append("pins overlap in too many ways to check all sets of units: the rates are upper bounds")
    if machine.start_s.any() or machine.switch_s.any():
        notes.append(MEAN_BATCHES)
    notes += _notes_on_turns(machine, steady) + _notes_on_bursts(machine, steady)
    if machine.shares_units.any() and float(steady.lost_pps.sum()) > 1e-6 * float(steady.offered.sum()):
        notes.append(
            "threads that share units in overload: revocations between them and full rings are left out; simulate"
        )
    for pool in model.pools:
        threads = [thread for thread in machine.threads if thread.pool >= 0 and model.pools[thread.pool] is pool]
        may_move = any(len(thread.units) > 1 for thread in threads)
        if pool.migration_cost_s > 0.0 and may_move:
            notes.append(f'pool "{pool.name}": the rate at which unpinned threads move is a guess; simulate')
        if may_move and len(threads) > 1:
            notes.append(
                f'pool "{pool.name}": threads that may use several units are taken to find a free unit at once, so the '
                "rate in overload is usually too high; simulate"
            )
        if pool.interruptions is not None:
            more = format_ratio(pool.interruptions.stretch - 1.0)
            notes.append(f'pool "{pool.name}": interruptions lengthen its work by {more} on average')
        if not pool.contention.is_none:
            notes.append(f'pool "{pool.name}": units slow each other by a mean factor, so rates are approximate')
    return notes


def _notes_on_turns(machine: ThreadMachine, steady: Steady) -> list[str]:
    """Return notes on the assumptions about polling threads on shared units."""
    notes = []
    shared = np.flatnonzero(machine.polling & machine.shares_units)
    away = [machine.threads[int(number)].name for number in np.flatnonzero(steady.away_s > 0.0)]
    if away:
        longest = format_duration(float(steady.away_s.max()))
        notes.append(
            f"{_quoted(away)}: threads that poll on one unit take turns whether they have frames or not; the ring must "
            f"hold the frames of up to {longest} without the unit. Bursts are taken to arrive in that time, and the "
            "order of the turns, which decides whose frames find room, is left out; simulate"
        )
    elif shared.size:
        names = _quoted([machine.threads[int(number)].name for number in shared])
        notes.append(
            f"{names}: polls on a shared unit and takes its share whether it has frames or not; the other threads are "
            "taken to get their share as soon as they wake"
        )
    return notes


def _notes_on_bursts(machine: ThreadMachine, steady: Steady) -> list[str]:
    """Return notes on polls and turns that forward more frames than the next queue holds."""
    places = set()
    for index, task in enumerate(machine.graph.tasks):
        position = machine.propagation.position
        if (
            task.activation.kind not in {"interrupt", "thread"}
            or task.holds_back
            or steady.node_rates.served[position[index]] <= 0.0
        ):
            continue
        poll = min(task.activation.budget_frames, task.queue_frames)
        for node, _ in machine.graph.edges[index]:
            after = machine.graph.tasks[node] if node < len(machine.graph.tasks) else None
            if after is not None and after.needs and after.queue_frames < poll:
                places.add(after.name)
    if not places:
        return []
    return [
        f"{_quoted(sorted(places))}: one poll or turn of the task unit before can bring more frames than its queue "
        f"holds; {BURSTS_LEFT_OUT}; simulate"
    ]


def _quoted(names: list[str]) -> str:
    """Return the first name and the number of the others."""
    return f'"{names[0]}"' + (f" and {len(names) - 1} more" if len(names) > 1 else "")


@dataclass(slots=True)
class _IdleUnits:
    """Idle units of a pool, summed over its components."""

    spinning: float = 0.0
    waking: float = 0.0
    asleep: list[float] = field(default_factory=list)
    wakes_per_s: list[float] = field(default_factory=list)

    def add(self, cycle: Cycle, servers: float) -> None:
        idle_times = cycle.idle_times
        self.spinning += servers * cycle.share(idle_times.spin_s)
        self.waking += servers * cycle.share(idle_times.exit_s)
        for state, (asleep_s, chance) in enumerate(zip(idle_times.asleep_s, idle_times.chances, strict=True)):
            self.asleep[state] += servers * cycle.share(asleep_s)
            self.wakes_per_s[state] += servers * cycle.share(chance)

    def add_unused(self, units: float) -> None:
        """Add units without work, which are in the deepest sleep state."""
        if self.asleep:
            self.asleep[-1] += units


def states_of(fluid: Fluid, answer: DelayAnswer) -> tuple[list[UnitStates], list[str]]:
    """Return the mean number of units of each pool in each state, and the assumptions about their idle times."""
    states, notes = [], []
    components_by_pool = fluid.components_by_pool()
    for pool in fluid.model.pools:
        is_used = pool.name in fluid.active_units
        active = float(min(fluid.active_units[pool.name].sum(), pool.units)) if is_used else 0.0
        sleep = len(pool.power.sleep) if pool.power is not None else 0
        idle = _IdleUnits(asleep=[0.0] * sleep, wakes_per_s=[0.0] * sleep)
        parts = components_by_pool[pool.name]
        idle.add_unused(pool.units - sum(len(part.units) for part in parts))
        for part in parts:
            note = _add_idle_units(part, fluid, answer, idle)
            if note and note not in notes:
                notes.append(note)
        room = max(pool.units - active, 0.0)
        idle_units = idle.spinning + idle.waking + math.fsum(idle.asleep)
        # Means of different approximations may add up to slightly more than the units of the pool.
        scale = min(1.0, room / idle_units) if idle_units > 0.0 else 1.0
        states.append(
            UnitStates(
                pool=pool,
                active_units=active + scale * idle.spinning,
                asleep_units=tuple(scale * units for units in idle.asleep),
                waking_units=scale * idle.waking,
                wakes_per_s=tuple(idle.wakes_per_s),
            )
        )
    return states, notes


def activity_of(fluid: Fluid, answer: DelayAnswer) -> tuple[TaskActivity, ...]:
    """Return the activity of each task unit: its share of busy time, interrupts and polls."""
    activities = []
    for index, task in enumerate(fluid.graph.tasks):
        lanes, busy = _max_grants(fluid, index), 0.0
        if task.needs:
            need = task.needs[0]
            busy = float(fluid.busy_units[need.pool][index]) / need.units / lanes
        elif answer.work_pps[task.name] > 0.0:
            busy = answer.work_pps[task.name] * float(fluid.service_s[index]) / lanes
        interrupts = math.nan if task.activation.kind in {"interrupt", "thread"} else 0.0
        polls = math.nan
        is_interrupt = task.activation.kind == "interrupt"
        cycle = _cycle(fluid, answer, index) if is_interrupt else None
        if cycle is not None:
            # The first frame of a cycle raises an interrupt even where interrupts have no cost.
            raised = cycle.interrupts or cycle.idles * cycle.idle_times.released
            interrupts, polls = lanes * raised / cycle.cycle_s, lanes * cycle.polls / cycle.cycle_s
        elif is_interrupt:
            interrupts = 0.0
            polls = answer.work_pps[task.name] / fluid.costs[index].batch_frames
        activities.append(
            TaskActivity(name=task.name, busy_ratio=min(busy, 1.0), interrupts_per_s=interrupts, polls_per_s=polls)
        )
    return tuple(activities)


def _add_idle_units(part: Component, fluid: Fluid, answer: DelayAnswer, idle: _IdleUnits) -> str:
    """Add the idle time of the units of a component to ``idle``; return a note on the assumptions, or an empty text."""
    tasks, units = fluid.graph.tasks, len(part.units)
    polling = [tasks[index].activation.kind == "polling" for index, _ in part.members]
    held = sum(
        served_at_once(tasks[index], units // need) * need
        for (index, need), holds in zip(part.members, polling, strict=True)
        if holds
    )
    if all(polling):
        idle.add_unused(max(units - held, 0))
        return ""
    has_idle_states = bool(idle.asleep) or any(fluid.costs[index].linger_s > 0.0 for index, _ in part.members)
    if not has_idle_states:
        return ""
    if len(part.members) == 1:
        index, need = part.members[0]
        lanes = _max_grants(fluid, index)
        cycle = _cycle(fluid, answer, index)
        if cycle is None:
            return ""
        idle.add(cycle, float(lanes * need))
        idle.add_unused(units - lanes * need)
        kind = answer.arriving.get(tasks[index].name, "")
        equal_gaps = kind == "regular" and fluid.load.frames.is_fixed and _constant(fluid, index)
        lossless = tasks[index].name not in answer.drops_pps
        if cycle.idles == 0.0 or (lanes == 1 and lossless and (kind == "poisson" or equal_gaps)):
            return ""
        return f'pool "{part.pool.name}": idle times are taken as those of random arrivals, one unit at a time'
    rate = sum(answer.work_pps[tasks[index].name] * need for index, need in part.members) / units
    work = sum(float(fluid.active_units[part.pool.name][index]) for index, _ in part.members) / units
    if rate <= 0.0:
        idle.add_unused(units)
    elif work < _FULL:
        idle_times = poisson_idle_times(
            rate,
            sleep_states=[(state.after_s, state.exit_s) for state in part.pool.power.sleep] if part.pool.power else [],
        )
        # Idle times and set-ups fill the time without work.
        cycle_s = (1.0 / rate + idle_times.exit_s) / (1.0 - work)
        idle.add(Cycle(cycle_s=cycle_s, work_s=work * cycle_s, idles=1.0, idle_times=idle_times), float(units))
    return (
        f'pool "{part.pool.name}" is shared: the idle times of its units are taken as those of random arrivals, '
        "and lingering is left out"
    )


def _cycle(fluid: Fluid, answer: DelayAnswer, index: int) -> Cycle | None:
    """Return the cycle of a single server of a task unit; None in overload."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    lanes = _max_grants(fluid, index)
    rate = answer.work_pps[task.name] / lanes
    factor = float(fluid.factor[index])
    if rate <= 0.0:
        return _asleep_forever(cost.sleep_states)
    overloaded = float(fluid.admitted_ratio[index]) < _FULL or rate * cost.busy_s * factor >= _FULL
    if overloaded:
        return None
    return cost.cycle(rate, factor, equal_gaps=answer.arriving.get(task.name) == "regular" and lanes == 1)


def _asleep_forever(sleep_states: tuple[tuple[float, float], ...]) -> Cycle:
    """Return the cycle of a server that never wakes: it stays in its deepest sleep."""
    asleep_s = tuple(float(state == len(sleep_states) - 1) for state in range(len(sleep_states)))
    idle_times = IdleTimes(asleep_s=asleep_s, chances=(0.0,) * len(sleep_states))
    return Cycle(cycle_s=1.0, work_s=0.0, polls=0.0, idles=1.0, idle_times=idle_times)


def _max_grants(fluid: Fluid, index: int) -> int:
    """Return the number of grants that a task unit may have at a time."""
    task = fluid.graph.tasks[index]
    limits = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in fluid.uses[index]]
    return min(limits, default=task.parallel)


def _constant(fluid: Fluid, index: int) -> bool:
    """Whether a task unit serves all frames of one size in the same time."""
    return fluid.graph.tasks[index].service.squared_cv == 0.0 and fluid.costs[index].scatter_s == 0.0


@dataclass(frozen=True, slots=True)
class Solve:
    """Evaluator ``"solve"`` for a router model.

    Examples
    --------
    >>> from routecast.load import FlowSet, OfferedLoad
    >>> from routecast.router import ServiceCost, multicore
    >>> router = multicore(2, ServiceCost(per_packet_s=1e-6))
    >>> trial = Solve(model=router).trial(OfferedLoad(rate_pps=3e6, flows=FlowSet.crafted(2)), 1.0)
    >>> round(trial.forwarded_pps), trial.bottleneck.name
    (2000000, 'cpu')
    """

    model: RouterModel

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Return the steady state under ``load``; the duration only scales the energy.

        Raises ModelProblem: a flow names a port that the router does not have, or the load changes its rate.
        """
        check_load(self.model, load)
        _check_steady(load)
        fluid = rates_of(self.model, load)
        if load.arrivals.kind in {"trace", "bursts"}:
            from routecast.evaluate.solve._recorded import pass_recorded
            from routecast.evaluate.solve._repeated_bursts import why_not_recorded

            if load.arrivals.kind == "bursts" and (why := why_not_recorded(fluid)):
                message = f"repeated bursts have no closed form where {why}; use simulate"
                raise ModelProblem("offered load", [Problem("arrivals", message)])
            overloaded = rates_of(self.model, load, overload=True) if fluid.windows is not None else None
            fluid, answer = pass_recorded(fluid, overloaded)
        else:
            answer = delays(fluid)
            fluid = _with_served_work(fluid, answer.work_pps)
        offered_pps = float(fluid.offered.sum()) if math.isnan(answer.offered_pps) else answer.offered_pps
        certain_pps, drops_pps = sum(answer.drops_pps.values()), dict(answer.drops_pps)
        if answer.middle_loss_ratio > 0.0:
            drops_pps[BY_CHANCE] = min(answer.middle_loss_ratio * offered_pps, offered_pps - certain_pps)
        dropped_pps = sum(drops_pps.values())
        forwarded_pps = max(offered_pps - dropped_pps - answer.in_flight_pps, 0.0)
        resources, first = resources_of(fluid, forwarded_pps=forwarded_pps)
        bottleneck = _overflowing_queue(first, resources, fluid, answer)
        mean_bytes = answer.forwarded_bytes
        states, assumed = states_of(fluid, answer)
        energy_j = energy_of(states, duration_s)
        l2_bps = 8.0 * mean_bytes * forwarded_pps
        notes = [*fluid.notes, *answer.notes, *assumed, *power_notes(self.model)]
        intended_pps = fluid.intended_pps
        loss_ratio = dropped_pps / offered_pps
        if answer.loss_unknown:
            overload = (
                f"overload alone would take {format_ratio(loss_ratio)}" if loss_ratio > NO_LOSS_RATIO else "no overload"
            )
            notes.append(f"the loss is not known ({overload}): {answer.loss_unknown}; simulate")
        if answer.middle_loss_ratio > 0.0:
            notes.append(_note_on_chance(answer, certain_pps / offered_pps))
        if offered_pps < intended_pps * (1.0 - 1e-9):
            notes.insert(0, "the intended load exceeds line rate; the offered load is what the links carry")
        return Trial(
            evaluator="solve",
            duration_s=duration_s,
            intended_pps=intended_pps,
            offered_pps=offered_pps,
            forwarded_pps=forwarded_pps,
            loss_ratio=math.nan if answer.loss_unknown else loss_ratio,
            l1_bps=8.0 * (mean_bytes + WIRE_OVERHEAD_BYTES) * forwarded_pps,
            l2_bps=l2_bps,
            bottleneck=bottleneck,
            arrivals=load.arrivals.text,
            resources=resources,
            drops_pps=drops_pps,
            latency=answer.latency,
            waiting=answer.waiting,
            energy_j=energy_j,
            power=power_of(self.model, energy_j, duration_s=duration_s, forwarded_pps=forwarded_pps, l2_bps=l2_bps),
            activity=activity_of(fluid, answer),
            queue_frames=answer.queue_frames,
            interval=_interval(answer, certain_pps / offered_pps, forwarded_pps, mean_bytes),
            notes=tuple(dict.fromkeys(notes)),
        )


def _overflowing_queue(
    first: Bottleneck, resources: Sequence[Resource], fluid: Fluid, answer: DelayAnswer
) -> Bottleneck:
    """Return the queue that loses frames although no resource is overloaded, else ``first``, with possible others."""
    others = tuple(name for name in dict.fromkeys((*first.others, *answer.possible_losses)) if name != first.name)
    place = max(answer.drops_pps, key=lambda name: answer.drops_pps[name], default="")
    is_notable = bool(place) and answer.drops_pps[place] > NO_LOSS_RATIO * float(fluid.offered.sum())
    if not is_notable or not resources or fluid.intended_pps > resources[0].capacity_pps or answer.loss_unknown:
        return replace(first, others=others)
    return Bottleneck(
        name=place,
        kind="link" if place not in answer.work_pps else "task",
        reason=f"limits: it drops {format_pps(answer.drops_pps[place])}, because too few frames may wait there; "
        f"{first.name} {first.reason}",
        others=tuple(name for name in (first.name, *others) if name != place),
    )


def _note_on_chance(answer: DelayAnswer, least: float) -> str:
    most = format_ratio(least + answer.chance_loss_ratio)
    places = ", ".join(f'"{place}"' for place in answer.possible_losses[:3])
    return (
        f"between {format_ratio(least)} and {most} of the frames are lost, by chance at {places}; the middle is stated"
    )


def _interval(
    answer: DelayAnswer, loss_ratio: float, forwarded_pps: float, mean_bytes: float
) -> dict[str, tuple[float, float]]:
    """Return the bounds of loss, rates and latency from the known error of the formulas."""
    interval = {}
    low_pps, high_pps = answer.forwarded_range_pps
    if high_pps - low_pps > _NOTABLE_RANGE * forwarded_pps:
        low_pps, high_pps = min(low_pps, forwarded_pps), max(high_pps, forwarded_pps)
        interval["forwarded_pps"] = (low_pps, high_pps)
        for name, frame_bytes in (("l1_bps", mean_bytes + WIRE_OVERHEAD_BYTES), ("l2_bps", mean_bytes)):
            interval[name] = (8.0 * frame_bytes * low_pps, 8.0 * frame_bytes * high_pps)
    error = answer.loss_error_ratio
    if not answer.loss_unknown and error + answer.chance_loss_ratio > _NEVER:
        interval["loss_ratio"] = (max(loss_ratio - error, 0.0), min(loss_ratio + error + answer.chance_loss_ratio, 1.0))
    below_s, above_s = answer.latency_error_s
    if answer.latency is not None and below_s + above_s > 0.0:
        interval["latency.mean_s"] = (max(answer.latency.mean_s - below_s, 0.0), answer.latency.mean_s + above_s)
    return interval


def capacity_pps(model: RouterModel, load: OfferedLoad) -> float:
    """Return the greatest forwarding rate: the output when every port that the flows use receives its line rate.

    This is the "maximum throughput" of Meyer et al. 2014, measured under overload; with unevenly spread flows it is
    more than the rate without loss, :func:`lossless_pps`. The function takes frames of all sizes to be lost alike;
    behind a busy link with mixed sizes a trial forwards less, see
    :mod:`routecast.evaluate.solve._size_dependent_loss`. Threads that forward less in overload than without loss
    (livelock) count with the rate without loss.

    ``load``: frames, flows and arrivals; its rate is not used.
    """
    check_load(model, load)
    fluid = rates_of(model, load, overload=True)
    forwarded_pps = float(fluid.offered.sum()) - sum(fluid.drops_pps().values())
    if fluid.steady is not None:
        return max(forwarded_pps, lossless_of(fluid.steady.machine).rate_pps)
    return forwarded_pps


def lossless_pps(model: RouterModel, load: OfferedLoad) -> float:
    """Return the greatest intended rate that overloads no resource: RFC 1242 throughput without fluctuation."""
    check_load(model, load)
    if has_threads(model):
        return lossless_of(machine_of(model, load)).rate_pps
    resources, _ = resources_of(rates_of(model, load))
    return min((resource.capacity_pps for resource in resources), default=float("inf"))


def _check_steady(load: OfferedLoad) -> None:
    if load.steps:
        message = "there are no transients in closed form; use simulate for a load that changes its rate"
        raise ModelProblem("offered load", [Problem("steps", message)])


def _with_served_work(fluid: Fluid, work_pps: Mapping[str, float]) -> Fluid:
    """Return the fluid state with the work of the units reduced by the losses from queueing theory."""
    count = len(fluid.graph.tasks)
    before = fluid.rates[:count].sum(axis=1) * fluid.admitted_ratio[:count]
    work = np.array([work_pps[task.name] for task in fluid.graph.tasks])
    ratio = np.minimum(np.divide(work, before, out=np.ones(count), where=before > 0.0), 1.0)
    busy = {name: units * ratio for name, units in fluid.busy_units.items()}
    polling = np.array([task.activation.kind == "polling" for task in fluid.graph.tasks])
    active = {name: np.where(polling, units, units * ratio) for name, units in fluid.active_units.items()}
    return replace(fluid, busy_units=busy, active_units=active)
