"""Saving with the whole trace known: step by step (Li 2012, sec. 8.1, off-line), and over all steps at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from routecast.plan.cluster.infeasible import InfeasiblePlan
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.saving.fleet_states import MOST_STATES, FleetStates, fleet_states
from routecast.plan.cluster.saving.model import Saving, SavingRules
from routecast.plan.cluster.saving.online import online
from routecast.plan.cluster.saving.switching import (
    SwitchingCosts,
    Waits,
    cheapest_way,
    metered,
    schedule_power_w,
    steps_of,
    switching_costs,
)
from routecast.quantity import format_bps

__all__ = ["each_step", "fewest_joules"]


# The minimum on-time: schedules that keep it, and the states of a fleet that know how long its machines are on.


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
            for (ages, places), machines, on_j, off_j in zip(groups, fleet, costs.on_j, costs.off_j, strict=True)
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


_DAYS = 3
"""Days that a typical one is planned in: those on both sides of it are alike."""


def each_step(problem: ClusterProblem, fleet: Sequence[int], *, min_on_s: float = 0.0, repeats: bool = False) -> Saving:
    """Give every step the state that draws the least, whatever the steps beside it have.

    Of several that draw the least it takes the nearest to the step before. Machines boot before the step that needs
    them; one whose pause would be shorter than its boot is left on, as is one younger than the minimum on-time.

    Parameters
    ----------
    problem : ClusterProblem
    fleet : sequence of int
        N_k.
    min_on_s : float
        Least time from switching on to switching off.
    repeats : bool
        Whether the trace is a typical day, whose first step follows its last.

    Raises
    ------
    InfeasiblePlan
        The fleet does not carry a step.
    routecast.errors.ModelProblem
        The fleet has too many states.
    """
    states = _able(problem, fleet)
    wait = steps_of(min_on_s, problem.step_s) - 1
    waits = Waits(len(fleet), wait)
    on: On = []
    here: tuple[int, ...] | None = None
    for load_bps in problem.traffic_bps:
        allowed = states.carrying(load_bps) & (states.on >= np.asarray(waits.least_on())).all(axis=1)
        power = np.where(allowed, states.power_w(load_bps), np.inf)
        best = np.flatnonzero(power <= power.min() * (1.0 + 1e-12))
        switched = np.abs(states.on[best] - np.asarray(here)).sum(axis=1) if here else states.on[best].sum(axis=1)
        after = _state(states, best[int(switched.argmin())])
        waits.record(here, after)
        on.append(after)
        here = after
    on = _without_short_pauses(problem, on)
    while wait > 0 and (longer := kept_on(on, fleet, wait, repeats=repeats)) != on:
        on = _without_short_pauses(problem, longer)  # a pause that became shorter may have become too short
    return Saving(name="off-line, each step", schedule=metered(problem, on, repeats=repeats))


def fewest_joules(
    problem: ClusterProblem,
    fleet: Sequence[int],
    *,
    payback_s: float = 0.0,
    min_on_s: float = 0.0,
    repeats: bool = False,
) -> Saving:
    """Give all steps together the states that need the fewest joules, boots included: dynamic programming.

    With V_t(n) the least energy up to step t that ends in state n,

        V_t(n) = P(n, T_t) Δt + min_m [ V_{t-1}(m) + cost of switching from m to n ].

    With ``min_on_s``, the states n say how long the machines of each group are on as well
    (:class:`~routecast.plan.cluster.saving.offline.AgedStates`). No schedule of the fleet that keeps it needs less, the
    payback of its switchings included; the result is called "off-line, whole trace" then.

    It is called "off-line, best found", and its note says why, in two cases. The states with ages are too many: they
    are left out, and machines left on afterwards for as long as they must. Or a typical day, which is planned as the
    middle one of three, needs more than the bound that the three days give for every day that repeats. In both the
    schedules of :func:`each_step` and of the on-line algorithms that know the present are looked at as well, and the
    best of all is returned.

    Parameters
    ----------
    problem, fleet, min_on_s, repeats
        As for :func:`each_step`.
    payback_s : float
        What each switching costs besides its boot, in time at the machine's full power; weighed, but not counted.

    Raises
    ------
    InfeasiblePlan
        The fleet does not carry a step.
    routecast.errors.ModelProblem
        The fleet has too many states.
    """
    states = _able(problem, fleet)
    costs = switching_costs(problem, payback_s=payback_s, ahead=True)
    wait = steps_of(min_on_s, problem.step_s) - 1
    loads = len(problem.traffic_bps) * (_DAYS if repeats else 1)
    is_aged = wait > 0 and is_small(fleet, wait, loads)
    ways = AgedStates(states, fleet, wait, costs) if is_aged else _FreeStates(states, fleet, costs)
    found, bound_j = _cheapest_path(problem, states, ways, repeats=repeats)
    on = kept_on(found, fleet, wait, repeats=repeats)
    note = ""
    if wait > 0 and not is_aged:
        note = (
            f"with a minimum on-time of {wait + 1} steps the fleet has {aged_states_count(fleet, wait):,} states, too "
            "many to look at all; a schedule with fewer joules may exist"
        )
    elif repeats and _weighed_j(problem, on, costs, repeats=True) > bound_j * (1.0 + 1e-7):
        note = "no bound shows that no other day that repeats needs fewer joules; one may exist"
    if note:
        others = [each_step(problem, fleet, min_on_s=min_on_s, repeats=repeats)]
        rules: tuple[Literal["worth", "fewest"], ...] = ("worth", "fewest")
        others += [online(problem, fleet, SavingRules(rule=rule, min_on_s=min_on_s)) for rule in rules]
        kept = [kept_on(one.schedule.on, fleet, wait, repeats=repeats) for one in others]
        on = min(on, *kept, key=lambda one: _weighed_j(problem, one, costs, repeats=repeats))
    return Saving(
        name="off-line, best found" if note else "off-line, whole trace",
        schedule=metered(problem, on, repeats=repeats),
        note=note,
    )


class _Ways(Protocol):
    """States, and the ways from one step's to the next's."""

    rows: npt.NDArray[np.int64]
    first: npt.NDArray[np.float64]

    def onward(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...

    def back(self, before: npt.NDArray[np.float32], place: int) -> int: ...


class _FreeStates:
    """The states of a fleet whose machines may be switched in any step."""

    def __init__(self, states: FleetStates, fleet: Sequence[int], costs: SwitchingCosts) -> None:
        self.rows = np.arange(len(states.on), dtype=np.int64)
        self.first = np.zeros(len(states.on))
        self._on, self._costs = states.on, costs
        self._shape = [machines + 1 for machines in fleet]

    def onward(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return cheapest_way(values, self._shape, self._costs)

    def back(self, before: npt.NDArray[np.float32], place: int) -> int:
        # from m to here, as seen from here: what was switched on is to be switched off
        way = np.maximum(self._on[place] - self._on, 0) @ np.array(self._costs.on_j)
        way = way + np.maximum(self._on - self._on[place], 0) @ np.array(self._costs.off_j)
        return int((before + way).argmin())


def _cheapest_path(problem: ClusterProblem, states: FleetStates, ways: _Ways, *, repeats: bool) -> tuple[On, float]:
    """Return the cheapest way through all steps, and what no day that repeats needs less than (else nothing).

    Where a day repeats from a state x, V_k(x) <= V_{k-1}(x) + its joules: they are at least the least rise of V.
    """
    steps = len(problem.traffic_bps)
    values, low_j = ways.first, 0.0
    kept: list[npt.NDArray[np.float32]] = []
    ends: list[npt.NDArray[np.float64]] = []
    for load_bps in problem.traffic_bps * (_DAYS if repeats else 1):
        draw = np.where(states.carrying(load_bps), states.power_w(load_bps), np.inf)
        values = (ways.onward(values) if kept else values) + draw[ways.rows] * problem.step_s
        least = float(values.min())
        low_j += least
        values = values - least  # only differences matter; small numbers keep their joules in 32 bits
        kept.append(values.astype(np.float32))
        if len(kept) % steps == 0:
            ends.append(values + low_j)
    place = int(kept[-1].argmin())
    path = [place]
    for before in reversed(kept[:-1]):
        place = ways.back(before, place)
        path.append(place)
    path.reverse()
    day = path[steps : 2 * steps] if repeats else path
    bounds_j = [0.0]
    for before_j, after_j in pairwise(ends):
        known = np.isfinite(after_j)
        bounds_j.append(float((after_j[known] - before_j[known]).min()))
    return [_state(states, ways.rows[one]) for one in day], max(bounds_j)


def _weighed_j(problem: ClusterProblem, on: Sequence[Sequence[int]], costs: SwitchingCosts, *, repeats: bool) -> float:
    """Return the joules of a schedule, with what each switching is taken to cost."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    switched_j = np.maximum(change, 0) @ np.array(costs.on_j) + np.maximum(-change, 0) @ np.array(costs.off_j)
    return float(schedule_power_w(problem, on).sum()) * problem.step_s + float(switched_j.sum())


def _able(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    states = fleet_states(problem, fleet)
    peak_bps = max(problem.traffic_bps)
    most_bps = float(states.capacity_bps.max())
    if not states.carrying(peak_bps).any():
        without = f" without the {problem.spare} largest" if problem.spare else ""
        what = (
            f"the fleet routes {format_bps(most_bps)}{without}, the peak is {format_bps(peak_bps)}: "
            f"{format_bps(peak_bps - most_bps)} are missing"
        )
        raise InfeasiblePlan("fleet", most_bps, peak_bps, what)
    return states


def _state(states: FleetStates, row: int | np.intp) -> tuple[int, ...]:
    return tuple(int(machines) for machines in states.on[row])


def _without_short_pauses(problem: ClusterProblem, on: On) -> On:
    """Leave machines on that could not boot before they are needed again."""
    table = np.asarray(on, dtype=np.int64)
    for group, machines in enumerate(problem.groups):
        most = steps_of(machines.boot_s, problem.step_s) - 1  # steps that are too few for a boot
        if most > 0:
            column = table[:, group]
            # A step lies in a pause when, up to ``most`` steps further, there are more machines on both sides of it.
            before = [np.concatenate([np.full(d, column[0]), column[:-d]])[: len(column)] for d in range(1, most + 1)]
            after = [np.concatenate([column[d:], np.full(d, column[-1])])[-len(column) :] for d in range(1, most + 1)]
            filled = column.copy()
            for left in range(1, most + 1):
                for right in range(1, most + 2 - left):
                    filled = np.maximum(filled, np.minimum(before[left - 1], after[right - 1]))
            table[:, group] = filled
    return [tuple(int(n) for n in row) for row in table]
