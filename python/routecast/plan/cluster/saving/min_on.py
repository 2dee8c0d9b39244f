"""The minimum on-time: schedules that keep it, and the states of a fleet that know how long its machines are on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routecast.plan.cluster.saving.fleet_states import MOST_STATES, FleetStates
from routecast.plan.cluster.saving.switching import SwitchingCosts

__all__ = ["MOST_WAYS", "AgedStates", "aged_states_count", "is_small", "kept_on"]

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
On = list[tuple[int, ...]]

MOST_WAYS = 500_000_000
"""Ways from state to state, over all steps, that are looked at: seconds."""


def kept_on(on: Sequence[Sequence[int]], fleet: Sequence[int], steps: int, *, repeats: bool) -> On:
    """Leave machines on that were switched on within the last ``steps`` steps, and return what is on then.

    Machines of a group take turns, the one that is on for longest is switched off first: at least as many are on as
    were switched on in the last ``steps`` steps. The machines of the first step have been on for long, unless the
    schedule ``repeats``: then its first step follows its last.
    """
    table = np.asarray(on, dtype=np.int64)
    while steps > 0:
        before = table[-1:] if repeats else table[:1]
        started = np.maximum(np.diff(table, axis=0, prepend=before), 0)
        least = np.zeros_like(table)
        for back in range(1, steps + 1):
            moved = np.roll(started, back, axis=0)
            if not repeats:
                moved[:back] = 0
            least += moved
        # More machines in one step may mean more that start in it: once more, until nothing changes. Numbers only
        # rise, and all machines on is a schedule that keeps every on-time.
        raised = np.maximum(table, np.minimum(least, np.asarray(fleet)))
        if (raised == table).all():
            break
        table = raised
    return [tuple(int(n) for n in row) for row in table]


def aged_states_count(fleet: Sequence[int], steps: int) -> int:
    """Return how many states a fleet has by the machines that are on since 1, 2, …, ``steps`` steps and for longer."""
    return math.prod(math.comb(machines + steps + 1, machines) for machines in fleet)


class AgedStates:
    """The states of a fleet by group and by how long machines are on, and the ways between them.

    A group's state is (a_1, …, a_s, a), machines that are on since 1, …, s steps, and for longer. In a step
    all grow older, and either some of a are switched off or some that were off are switched on:

        (a_1, …, a_s, a)  →  (k, a_1, …, a_{s-1}, a + a_s)      0 <= k <= N − on
        (a_1, …, a_s, a)  →  (0, a_1, …, a_{s-1}, a + a_s − k)  1 <= k <= a

    Parameters
    ----------
    states : FleetStates
    fleet : sequence of int
        N_k.
    steps : int
        s: a machine is on for s + 1 steps at least.
    costs : SwitchingCosts
    """

    def __init__(self, states: FleetStates, fleet: Sequence[int], steps: int, costs: SwitchingCosts) -> None:
        groups = [_group(machines, steps) for machines in fleet]
        self._shape = tuple(len(ages) for ages, _ in groups)
        self._ways = [
            _ways(ages, places, machines, on_j, off_j)
            for (ages, places), machines, on_j, off_j in zip(
                groups, fleet, costs.on_j, costs.off_j, strict=True
            )
        ]
        self.rows: Numbers = np.zeros(1, dtype=np.int64)
        self.first: Floats = np.zeros(1)
        for (ages, _), machines in zip(groups, fleet, strict=True):
            young = ages[:, :-1].sum(axis=1)
            self.rows = (self.rows[:, None] * (machines + 1) + ages.sum(axis=1)[None, :]).reshape(-1)
            # At the beginning every machine has been on for long, or is off.
            self.first = (self.first[:, None] + np.where(young > 0, np.inf, 0.0)[None, :]).reshape(-1)
        assert self.rows.max() == len(states.on) - 1

    def onward(self, values: Floats) -> Floats:
        """Return for each state the least of the values a step before plus the cost of coming from there."""
        table = values.reshape(self._shape)
        for axis, (sources, costs_j) in enumerate(self._ways):
            moved = np.moveaxis(table, axis, 0)
            flat = moved.reshape(len(moved), -1)
            best = np.full_like(flat, np.inf)
            for way in range(sources.shape[1]):
                np.minimum(best, flat[sources[:, way]] + costs_j[:, way, None], out=best)
            table = np.moveaxis(best.reshape(moved.shape), 0, axis)
        return table.reshape(-1)

    def back(self, before: npt.NDArray[np.float32], place: int) -> int:
        """Return the state a step before from which a state is reached at the least cost."""
        here = np.unravel_index(place, self._shape)
        sources = [ways[0][one] for ways, one in zip(self._ways, here, strict=True)]
        total = before.reshape(self._shape)[np.ix_(*sources)].astype(np.float64)
        for axis, (ways, one) in enumerate(zip(self._ways, here, strict=True)):
            shape = [1] * len(sources)
            shape[axis] = -1
            total = total + ways[1][one].reshape(shape)
        chosen = np.unravel_index(int(total.argmin()), total.shape)
        found = [int(one[number]) for one, number in zip(sources, chosen, strict=True)]
        return int(np.ravel_multi_index(found, self._shape))


def is_small(fleet: Sequence[int], steps: int, loads: int) -> bool:
    """Return whether the states with ages are few enough to look at all of them."""
    count = aged_states_count(fleet, steps)
    ways = count * sum(machines + 1 for machines in fleet if machines)
    return count <= MOST_STATES and ways * loads <= MOST_WAYS


def _group(machines: int, steps: int) -> tuple[Numbers, dict[tuple[int, ...], int]]:
    """Return all (a_1, …, a_s, a) of a group, and the place of each."""
    # Stars and bars: bars among machines + s + 1 places part the ages, what follows the last bar is off.
    found = []
    for bars in itertools.combinations(range(machines + steps + 1), steps + 1):
        edges = (-1, *bars)
        found.append(tuple(high - low - 1 for low, high in itertools.pairwise(edges)))
    return np.asarray(found, dtype=np.int64), {ages: place for place, ages in enumerate(found)}


def _ways(
    ages: Numbers, places: dict[tuple[int, ...], int], machines: int, on_j: float, off_j: float
) -> tuple[Numbers, Floats]:
    """Return for each state where it can come from and at which cost; rows are filled up with infinite costs."""
    into: list[list[tuple[int, float]]] = [[] for _ in places]
    for place, row in enumerate(ages.tolist()):
        *young, old = row
        grown, older = young[:-1], old + young[-1]
        for more in range(machines - sum(row) + 1):
            into[places[(more, *grown, older)]].append((place, more * on_j))
        for fewer in range(1, old + 1):
            into[places[(0, *grown, older - fewer)]].append((place, fewer * off_j))
    most = max(len(one) for one in into)
    sources = np.zeros((len(into), most), dtype=np.int64)
    costs = np.full((len(into), most), np.inf)
    for place, found in enumerate(into):
        for way, (source, cost_j) in enumerate(found):
            sources[place, way], costs[place, way] = source, cost_j
    return sources, costs
