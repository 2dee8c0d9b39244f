"""The fluid steady state of any router: of task units that share pools, or of threads."""

from __future__ import annotations

import numpy as np

from routecast.evaluate.solve.flow import Vector, flow_graph
from routecast.evaluate.solve.fluid import Fluid, intended_of, solve_fluid
from routecast.evaluate.solve.machine import Machine, has_threads, machine_of
from routecast.evaluate.solve.share import components, uses_of
from routecast.evaluate.solve.throughput import Steady, steady_state
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_duration, format_ratio
from routecast.router.model import RouterModel

__all__ = ["rates_of"]


def rates_of(model: RouterModel, load: OfferedLoad, *, overload: bool = False) -> Fluid:
    """Return the fluid steady state of a router under a load.

    Parameters
    ----------
    overload : bool
        Offer line rate on every port that a flow enters, whatever the load's rate.
    """
    if not has_threads(model):
        return solve_fluid(model, load, overload=overload)
    graph = flow_graph(model, load)
    machine = machine_of(model, load, graph)
    intended_pps = intended_of(graph, load, overload=overload)
    steady = steady_state(machine, intended_pps)
    place, count, flowing = machine.passage.place, len(graph.tasks), steady.flowing
    ratio = np.where(flowing.arriving > 0.0, flowing.served / np.maximum(flowing.arriving, 1e-300), 1.0)
    admitted = np.where(ratio[place] >= 1.0 - 1e-9, 1.0, ratio[place])
    parts = components(model, graph.tasks)
    thread_of = machine.thread[place[:count]]
    service_s = steady.work_s[place[:count]]
    frames = flowing.served[place[:count]]
    of_thread = machine.by(flowing.served)
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


def _active(busy: dict[str, Vector], machine: Machine) -> dict[str, Vector]:
    """Return the busy units and those that polling task units hold: of a thread, the rest goes to its first one."""
    active = {name: vector.copy() for name, vector in busy.items()}
    for number in np.flatnonzero(machine.polling):
        thread = machine.threads[int(number)]
        indices = [int(machine.passage.order[node]) for node in thread.tasks]
        for need in machine.graph.tasks[indices[0]].needs:
            vector = active[need.pool]
            held = float(machine.most[number]) * need.units
            vector[indices[0]] += max(held - float(vector[indices].sum()), 0.0)
    return active


def _threads_of(machine: Machine, name: str) -> list[str]:
    """Return the names of the threads of a pool."""
    pools = machine.model.pools
    return [thread.name for thread in machine.threads if thread.pool >= 0 and pools[thread.pool].name == name]


def _notes(machine: Machine, steady: Steady) -> list[str]:
    model, notes = machine.model, []
    if not steady.settled:
        notes.append(
            f"the shares of the threads went round in circles for {steady.rounds} rounds: rates are approximate"
        )
    if any(need.until for task in model.tasks for need in task.needs):
        notes.append("windows among threads are not counted: the rates are upper bounds; simulate")
    if not machine.complete:
        notes.append("pins overlap in too many ways to look at all sets of units: the rates are upper bounds")
    if machine.start_s.any() or machine.switch_s.any():
        notes.append("how often threads wake and switch is that of mean batches, an approximation")
    notes += _notes_on_turns(machine, steady) + _notes_on_bursts(machine, steady)
    if machine.shares_units.any() and float(steady.lost_pps.sum()) > 1e-6 * float(steady.offered.sum()):
        notes.append(
            "threads that share units in overload: who revokes whom and which ring is full is not counted; simulate"
        )
    for pool in model.pools:
        free = any(
            thread.pool >= 0 and model.pools[thread.pool] is pool and len(thread.units) > 1
            for thread in machine.threads
        )
        if pool.migration_cost_s > 0.0 and free:
            notes.append(
                f'pool "{pool.name}": how often threads that are not bound move is guessed; the simulator decides'
            )
        if free and len(_threads_of(machine, pool.name)) > 1:
            notes.append(
                f'pool "{pool.name}": threads that may use several units are taken to find a free one at once, so in '
                "overload the rate is too high as a rule; simulate"
            )
        if pool.interruptions is not None:
            more = format_ratio(pool.interruptions.stretch - 1.0)
            notes.append(f'pool "{pool.name}": interruptions lengthen its work by {more} on average')
        if not pool.contention.is_none:
            notes.append(
                f'pool "{pool.name}": units slow each other by a mean factor, so rates are approximate'
            )
    return notes


def _notes_on_turns(machine: Machine, steady: Steady) -> list[str]:
    """Say what was assumed of threads that poll on units that others use too."""
    notes = []
    shared = np.flatnonzero(machine.polling & machine.shares_units)
    away = [machine.threads[int(number)].name for number in np.flatnonzero(steady.away_s > 0.0)]
    if away:
        longest = format_duration(float(steady.away_s.max()))
        notes.append(
            f"{_named(away)}: threads that poll on one unit take turns whether they need them or not; what comes in up "
            f"to {longest} without the unit must fit in the ring. Bursts are taken to come just then, and whose frames "
            "find room, which the order of the turns decides, is not counted; simulate"
        )
    elif shared.size:
        names = _named([machine.threads[int(number)].name for number in shared])
        notes.append(
            f"{names}: polls on a unit that others use too and takes its share whatever it needs; the others are taken "
            "to get theirs as soon as they wake"
        )
    return notes


def _notes_on_bursts(machine: Machine, steady: Steady) -> list[str]:
    """Say where one poll or turn hands on more frames than the next queue holds."""
    places = set()
    for index, task in enumerate(machine.graph.tasks):
        place = machine.passage.place
        if (
            task.activation.kind not in {"interrupt", "thread"}
            or task.holds_back
            or steady.flowing.served[place[index]] <= 0.0
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
        f"{_named(sorted(places))}: one poll or turn of the task unit before can bring more frames than its queue "
        "holds; what such bursts lose is not counted; simulate"
    ]


def _named(names: list[str]) -> str:
    """Give the first name, and say how many more there are."""
    return f'"{names[0]}"' + (f" and {len(names) - 1} more" if len(names) > 1 else "")
