"""What the units of each pool and each task unit do at a load, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from routecast.evaluate.energy import UnitStates
from routecast.evaluate.solve.cycle import Cycle, Rested, rest_at_random
from routecast.evaluate.solve.delay import DelayAnswer
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.share import Component, served_at_once
from routecast.evaluate.trial import TaskActivity
from routecast.router.model import ResourcePool

__all__ = ["activity_of", "states_of"]

_FULL = 1.0 - 1e-9


@dataclass(slots=True)
class _Rest:
    """Units of a pool that do not work, added up over its components."""

    spinning: float = 0.0
    waking: float = 0.0
    asleep: list[float] = field(default_factory=list)
    wakes_per_s: list[float] = field(default_factory=list)

    def add(self, cycle: Cycle, servers: float) -> None:
        rested = cycle.rested
        self.spinning += servers * cycle.share(rested.spin_s)
        self.waking += servers * cycle.share(rested.exit_s)
        for state, (asleep_s, chance) in enumerate(zip(rested.asleep_s, rested.chances, strict=True)):
            self.asleep[state] += servers * cycle.share(asleep_s)
            self.wakes_per_s[state] += servers * cycle.share(chance)

    def unused(self, units: float) -> None:
        """Units that nobody needs end up in the deepest sleep."""
        if self.asleep:
            self.asleep[-1] += units


def states_of(fluid: Fluid, answer: DelayAnswer) -> tuple[list[UnitStates], list[str]]:
    """Return how many units of each pool are in which state on average, and what was assumed of their idle times."""
    states, notes = [], []
    for pool in fluid.model.pools:
        active = float(min(fluid.active_units[pool.name].sum(), pool.units)) if _used(fluid, pool) else 0.0
        sleep = len(pool.power.sleep) if pool.power is not None else 0
        rest = _Rest(asleep=[0.0] * sleep, wakes_per_s=[0.0] * sleep)
        parts = [part for part in fluid.components if part.pool is pool]
        rest.unused(pool.units - sum(len(part.units) for part in parts))
        for part in parts:
            note = _rest_of(part, fluid, answer, rest)
            if note and note not in notes:
                notes.append(note)
        room = max(pool.units - active, 0.0)
        away = rest.spinning + rest.waking + math.fsum(rest.asleep)
        # Means of different approximations may add up to a little more than there is.
        scale = min(1.0, room / away) if away > 0.0 else 1.0
        states.append(
            UnitStates(
                pool=pool,
                active_units=active + scale * rest.spinning,
                asleep_units=tuple(scale * units for units in rest.asleep),
                waking_units=scale * rest.waking,
                wakes_per_s=tuple(rest.wakes_per_s),
            )
        )
    return states, notes


def activity_of(fluid: Fluid, answer: DelayAnswer) -> tuple[TaskActivity, ...]:
    """Return what each task unit does: its share of busy time, interrupts and polls."""
    found = []
    for index, task in enumerate(fluid.graph.tasks):
        lanes, busy = _lanes(fluid, index), 0.0
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
            # The first frame of a cycle raises an interrupt even where it costs nothing.
            raised = cycle.interrupts or cycle.idles * cycle.rested.released
            interrupts, polls = lanes * raised / cycle.cycle_s, lanes * cycle.polls / cycle.cycle_s
        elif is_interrupt:
            interrupts = 0.0
            polls = answer.work_pps[task.name] / fluid.costs[index].batch_frames
        found.append(
            TaskActivity(
                name=task.name, busy_ratio=min(busy, 1.0), interrupts_per_s=interrupts, polls_per_s=polls
            )
        )
    return tuple(found)


def _rest_of(part: Component, fluid: Fluid, answer: DelayAnswer, rest: _Rest) -> str:
    """Add what the units of one component do without work; return what was assumed."""
    tasks, units = fluid.graph.tasks, len(part.units)
    polling = [tasks[index].activation.kind == "polling" for index, _ in part.members]
    held = sum(
        served_at_once(tasks[index], units // need) * need
        for (index, need), holds in zip(part.members, polling, strict=True)
        if holds
    )
    if all(polling):
        rest.unused(max(units - held, 0))
        return ""
    matters = bool(rest.asleep) or any(fluid.costs[index].linger_s > 0.0 for index, _ in part.members)
    if not matters:
        return ""
    if len(part.members) == 1:
        index, need = part.members[0]
        lanes = _lanes(fluid, index)
        cycle = _cycle(fluid, answer, index)
        if cycle is None:
            return ""
        rest.add(cycle, float(lanes * need))
        rest.unused(units - lanes * need)
        kind = answer.arriving.get(tasks[index].name, "")
        even = kind == "regular" and fluid.load.frames.is_fixed and _constant(fluid, index)
        lossless = tasks[index].name not in answer.drops_pps
        if cycle.idles == 0.0 or (lanes == 1 and lossless and (kind == "poisson" or even)):
            return ""
        return (
            f'pool "{part.pool.name}": idle times are taken as those of random arrivals, one unit at a time'
        )
    rate = sum(answer.work_pps[tasks[index].name] * need for index, need in part.members) / units
    work = sum(float(fluid.active_units[part.pool.name][index]) for index, _ in part.members) / units
    if rate <= 0.0:
        rest.unused(units)
    elif work < _FULL:
        away = rest_at_random(
            rate,
            rest=[(state.after_s, state.exit_s) for state in part.pool.power.sleep]
            if part.pool.power
            else [],
        )
        # Idle times and set-ups fill what work leaves.
        cycle_s = (1.0 / rate + away.exit_s) / (1.0 - work)
        rest.add(Cycle(cycle_s=cycle_s, work_s=work * cycle_s, idles=1.0, rested=away), float(units))
    return (
        f'pool "{part.pool.name}" is shared: the idle times of its units are taken as those of random arrivals, '
        "and lingering is not counted"
    )


def _cycle(fluid: Fluid, answer: DelayAnswer, index: int) -> Cycle | None:
    """Return the cycle of one server of a task unit; None in overload."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    lanes = _lanes(fluid, index)
    rate = answer.work_pps[task.name] / lanes
    factor = float(fluid.factor[index])
    if rate <= 0.0:
        return _never(cost.rest)
    overloaded = float(fluid.admitted_ratio[index]) < _FULL or rate * cost.busy_s * factor >= _FULL
    if overloaded:
        return None
    return cost.cycle(rate, factor, even=answer.arriving.get(task.name) == "regular" and lanes == 1)


def _never(rest: tuple[tuple[float, float], ...]) -> Cycle:
    """Cycle of a server that nothing wakes: it is in its deepest sleep for good."""
    asleep_s = tuple(float(state == len(rest) - 1) for state in range(len(rest)))
    away = Rested(asleep_s=asleep_s, chances=(0.0,) * len(rest))
    return Cycle(cycle_s=1.0, work_s=0.0, polls=0.0, idles=1.0, rested=away)


def _lanes(fluid: Fluid, index: int) -> int:
    """Grants that a task unit may have at once."""
    task = fluid.graph.tasks[index]
    most = [served_at_once(task, max(len(part.units) // units, 1)) for part, units in fluid.uses[index]]
    return min(most, default=task.parallel)


def _constant(fluid: Fluid, index: int) -> bool:
    """Whether every frame of one size takes a task unit the same time."""
    return fluid.graph.tasks[index].service.squared_cv == 0.0 and fluid.costs[index].scatter_s == 0.0


def _used(fluid: Fluid, pool: ResourcePool) -> bool:
    return pool.name in fluid.active_units
