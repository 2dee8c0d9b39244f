"""Where it is not known what task units get of the units that they share.

The fluid state divides shared units by turns, with full batches, and takes all units of a component to be alike. Three
things break that, and then a rate is not known, only bounded:

* A task unit that polls never gives its unit back, except under Linux's schedulers. Who else may use that unit depends
  on who came first.
* Pins that leave some task units fewer units than others: a set of units may be full while another idles.
* Batches and interrupts that cost something: a poll that begins soon finds few frames, so that turns decide what a
  frame costs. Below the rate at which the least batches that turns leave fill the units, no more is lost than chance
  takes; what is lost above is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.evaluate.solve.cost import Cost
from routecast.evaluate.solve.scheduling_shares import Component, pin_sets, served_at_once
from routecast.router.model import TaskUnit

__all__ = ["fill_of", "frames_s", "held_units", "polls_for_good", "why_unknown"]

_FULL = 1.0 - 1e-9


def frames_s(
    part: Component, tasks: Sequence[TaskUnit], costs: Sequence[Cost], visits: Sequence[float]
) -> dict[int, float]:
    """Return by member of a component the time for a frame at the least batches that turns leave, without contention.

    Grants go round. A cycle lasts no longer than the member with the shortest turns allows: it serves what comes in a
    cycle in one turn. What comes to another member in that time is its batch, which pays for an interrupt, a batch and
    a switch (the cycle of a polling system; Takagi, Analysis of Polling Systems, 1986). Beside a task unit that serves
    a frame a turn, polls find few frames; among themselves they find full ones. A fair policy divides time, not turns.
    Above others of less priority a poll begins at once, with one frame.

    Parameters
    ----------
    visits : sequence of float
        By task unit: frames that come to it, in any unit.
    """
    reached = [index for index, _ in part.members if visits[index] > 0.0]
    turns = [costs[index].batch_frames / visits[index] for index in reached if not polls_for_good(part, tasks[index])]
    cycle = math.inf if part.pool.policy.kind == "fair" or not turns else min(turns)
    urgent = part.pool.policy.kind in {"priority", "preemptive"} and len({tasks[at].priority for at in reached}) > 1
    found = {}
    for index, _ in part.members:
        cost = costs[index]
        batch = (
            1.0 if urgent else min(max(visits[index] * cycle if visits[index] > 0.0 else 1.0, 1.0), cost.batch_frames)
        )
        found[index] = cost.frame_s + (cost.batch_s + cost.interrupt_s + part.pool.switch_cost_s) / batch
    return found


def polls_for_good(part: Component, task: TaskUnit) -> bool:
    """Whether a task unit holds its units for ever."""
    return task.activation.kind == "polling" and part.pool.policy.kind != "linux"


def held_units(part: Component, tasks: Sequence[TaskUnit]) -> int:
    """Return how many units task units hold that poll."""
    held: dict[str, int] = {}
    for index, units in part.members:
        if polls_for_good(part, tasks[index]):
            # Task units of one thread hold the same units.
            at_once = served_at_once(tasks[index], len(part.units) // units)
            held[tasks[index].thread or tasks[index].name] = units * at_once
    return sum(held.values())


def fill_of(part: Component, tasks: Sequence[TaskUnit], work: Sequence[float]) -> float:
    """Return the share of its units that the fullest set of units of a component needs for its work.

    Parameters
    ----------
    work : sequence of float
        By task unit: busy units.
    """
    others = [index for index, _ in part.members if not polls_for_good(part, tasks[index])]
    wanted = sum(work[index] for index in others)
    if wanted <= 0.0:
        return 0.0
    free = len(part.units) - held_units(part, tasks)
    fill = wanted / free if free > 0 else math.inf
    where = {index: _where(part, tasks[index]) for index in others}
    sets, _ = pin_sets([units for units in where.values() if len(units) < len(part.units)])
    for units in sets:
        fill = max(fill, sum(work[index] for index in others if where[index] <= units) / len(units))
    return fill


def why_unknown(
    part: Component,
    tasks: Sequence[TaskUnit],
    costs: Sequence[Cost],
    rates_pps: Sequence[float],
    factor: Sequence[float],
    *,
    threads: bool,
) -> str:
    """Return why it is not known what the members of a component get, at the rates that come to them; empty if it is.

    Parameters
    ----------
    rates_pps, factor : sequence of float
        By task unit: frames that come per second, contention.
    threads : bool
        The router is one of threads, whose pins and wake-ups their own fixed point counts.
    """
    if len(part.members) < 2:
        return ""
    if poller := _in_the_way(part, tasks):
        return f'"{poller}" polls and never gives its unit back, so that who came first decides'
    if threads:
        return ""
    work = [0.0] * len(tasks)
    each_s = frames_s(part, tasks, costs, rates_pps)
    for index, units in part.members:
        work[index] = units * rates_pps[index] * each_s[index] * factor[index]
    if fill_of(part, tasks, work) < _FULL:
        return ""
    if any(_starts(part, costs[index]) for index, _ in part.members):
        return "how many frames a poll finds depends on the turns of the others"
    if len({_where(part, tasks[index]) for index, _ in part.members}) > 1:
        return "pins leave some task units fewer units than others"
    return ""


def _starts(part: Component, cost: Cost) -> bool:
    return cost.batch_s + cost.interrupt_s > 0.0 or (part.pool.switch_cost_s > 0.0 and cost.batch_frames > 1)


def _where(part: Component, task: TaskUnit) -> frozenset[int]:
    """Return the units that a task unit may use; its pin is for the pool that it needs first."""
    pinned = task.pin and task.needs[0].pool == part.pool.name
    return frozenset(task.pin if pinned else part.units)


def _in_the_way(part: Component, tasks: Sequence[TaskUnit]) -> str:
    """Return a task unit that may hold the last unit that another one may use; empty if there is none."""
    holding = [(index, units) for index, units in part.members if polls_for_good(part, tasks[index])]
    for index, needed in part.members:
        task, own = tasks[index], _where(part, tasks[index])
        held: dict[str, int] = {}
        for other, units in holding:
            poller = tasks[other]
            if other != index and not (poller.thread and poller.thread == task.thread) and _where(part, poller) & own:
                held[poller.thread or poller.name] = units * served_at_once(poller, len(part.units) // units)
        if held and len(own) - sum(held.values()) < needed:
            return next(iter(held))
    return ""
