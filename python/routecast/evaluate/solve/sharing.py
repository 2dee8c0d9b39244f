"""One round of the fluid fixed point: what task units get of the units that they share, and how busy those are.

There are many rounds, each over a few task units, so rates and times are lists of floats, by task unit: on arrays that
short numpy takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from routecast.evaluate.solve.cost import Cost
from routecast.evaluate.solve.scheduling_shares import Component, divide, served_at_once
from routecast.quantity.schema import field, value
from routecast.router.model import TaskUnit

__all__ = ["Sharing", "sharing_of"]

_MOST_TURNS = 20
_SAME = 1e-12


@value
class Sharing:
    """Task units, and the units that frames reach."""

    tasks: tuple[TaskUnit, ...]
    costs: tuple[Cost, ...]
    parts: tuple[Component, ...]
    full_s: tuple[float, ...] = field("By task unit: seconds per frame under overload, without contention")
    even: Sequence[bool] = field("By task unit: whether frames come at equal gaps")
    # By task unit: whether a batch or an interrupt costs something, so that the work for a frame depends on the rate.
    starts_cost: tuple[bool, ...]
    # By task unit: frames that it may serve at once on what it shares with nobody; infinite where it shares all.
    own_lanes: tuple[float, ...]
    shared: tuple[Component, ...] = field("Where what one task unit gets is up to others, or to its other needs")

    def served(self, wanted_pps: Sequence[float], each_s: Sequence[float]) -> list[float]:
        """Return the rate that each task unit gets of what it wants, of all the pools that it needs."""
        got = [
            min(rate, lanes / one_s) if one_s > 0.0 else rate
            for rate, lanes, one_s in zip(wanted_pps, self.own_lanes, each_s, strict=True)
        ]
        if not self.shared:
            return got
        several = any(len(self.tasks[index].needs) > 1 for part in self.shared for index, _ in part.members)
        for _ in range(_MOST_TURNS):
            before = got.copy()
            for part in self.shared:
                for index, rate in divide(part, self.tasks, got, each_s, self.costs).items():
                    got[index] = min(got[index], rate)
            # What one pool leaves of a task unit's rate frees units of another.
            if not several or all(abs(one - old) <= _SAME * old for one, old in zip(got, before, strict=True)):
                break
        return got

    def busy(
        self, got_pps: Sequence[float], short: Sequence[bool], factor: Sequence[float], switching_s: Sequence[float]
    ) -> dict[str, list[float]]:
        """Return by pool the mean units that each task unit keeps busy.

        Parameters
        ----------
        short : sequence of bool
            Whether a task unit gets less than it wants, so that its batches are full.
        factor : sequence of float
            Contention factor.
        """
        busy: dict[str, list[float]] = {}
        for part in self.parts:
            of_pool = busy.get(part.pool.name)
            if of_pool is None:
                of_pool = busy[part.pool.name] = [0.0] * len(self.tasks)
            most = float(len(part.units))
            for index, units in part.members:
                rate = got_pps[index]
                if short[index] or not self.starts_cost[index]:
                    used = rate * self.full_s[index] * factor[index]
                else:
                    lanes = served_at_once(self.tasks[index], max(len(part.units) // units, 1))
                    used = lanes * self.costs[index].used(rate / lanes, factor[index], even=self.even[index])
                taken = (used + rate * switching_s[index]) * units
                of_pool[index] += taken if taken < most else most
        return busy


def sharing_of(
    tasks: tuple[TaskUnit, ...], costs: tuple[Cost, ...], parts: Sequence[Component], even: Sequence[bool]
) -> Sharing:
    """Return what rounds need to know: which units are shared at all is the same in each."""
    own = [math.inf if task.needs else float(task.parallel) for task in tasks]
    shared = []
    for part in parts:
        index, units = part.members[0]
        if len(part.members) == 1 and len(tasks[index].needs) == 1:
            own[index] = served_at_once(tasks[index], len(part.units) // units)
        else:
            shared.append(part)
    return Sharing(
        tasks=tasks,
        costs=costs,
        parts=tuple(parts),
        full_s=tuple(cost.busy_s for cost in costs),
        even=even,
        starts_cost=tuple(cost.batch_s + cost.interrupt_s > 0.0 for cost in costs),
        own_lanes=tuple(own),
        shared=tuple(shared),
    )
