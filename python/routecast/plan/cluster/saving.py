"""Which machines to switch off over a day, and what switching costs (Li 2012, sec. 8.1).

Off-line algorithms know the complete trace: :func:`each_step` takes steps for themselves, :func:`fewest_joules` all of
them together. :func:`online` goes from step to step and does not know the later ones.

A fleet of N_k machines has Π (N_k + 1) states n, 0 <= n_k <= N_k. The algorithms look at all of them at once, as arrays
with a row for each state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from routecast.errors import ModelProblem, Problem
from routecast.load.series import DAY_S
from routecast.plan.cluster._cover import Floats, Ints
from routecast.plan.cluster._dispatch import group_arrays, power_w
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, Schedule
from routecast.quantity import format_bps
from routecast.quantity.fields import Share, Span
from routecast.quantity.schema import field, value

__all__ = [
    "MOST_STATES",
    "FleetStates",
    "Knowledge",
    "Saving",
    "SavingRules",
    "SwitchingCosts",
    "Waits",
    "always_on",
    "boot_energy_j",
    "cheapest_arrival",
    "each_step",
    "expected_bps",
    "fewest_joules",
    "fleet_states",
    "machines_switched",
    "metered",
    "online",
    "schedule_power_w",
    "steps_of",
    "switching_costs",
    "traffic_missed",
]

Bools = npt.NDArray[np.bool_]
OnByStep = list[tuple[int, ...]]


@value
class SwitchingCosts:
    """Joules of switching one machine of each group on, and off."""

    on_j: tuple[float, ...]
    off_j: tuple[float, ...]

    def between(self, states: Ints, here: Sequence[int]) -> Floats:
        """Return the cost of going from ``here`` to each state."""
        more = states - np.asarray(here)
        cost: Floats = np.maximum(more, 0) @ np.array(self.on_j) + np.maximum(-more, 0) @ np.array(self.off_j)
        return cost


def boot_energy_j(problem: ClusterProblem, group: int, *, ahead: bool) -> float:
    """Return the energy of one boot.

    ``ahead``: the machine boots before the step in which it is first on, and draws idle power during it; otherwise it
    boots within that step, whose idle power is counted already.
    """
    machine = problem.groups[group]
    return machine.boot_energy_j + (machine.unloaded_w * machine.boot_s if ahead else 0.0)


def switching_costs(problem: ClusterProblem, *, payback_s: float, ahead: bool) -> SwitchingCosts:
    """Return the boots' energy, and for each switching what the machine draws at full load in ``payback_s``."""
    worth = [payback_s * group.power_w for group in problem.groups]
    return SwitchingCosts(
        on_j=tuple(boot_energy_j(problem, k, ahead=ahead) + worth[k] for k in range(len(worth))), off_j=tuple(worth)
    )


def cheapest_arrival(values: Floats, shape: Sequence[int], costs: SwitchingCosts) -> Floats:
    """Return the least of ``values[m] + cost of going from m to n`` over all states m, for each state n.

    Groups are switched one by one, so the minimum is taken group by group: in one, going up adds ``on_j`` a machine
    and going down ``off_j``, and running minima in both directions find it in a single pass (the distance transform
    of Felzenszwalb & Huttenlocher, Theory of Computing 8, 2012, with the metric |m − n|).
    """
    table = values.reshape(tuple(shape))
    for axis, most in enumerate(shape):
        if most == 1:
            continue
        moved = np.moveaxis(table, axis, -1)
        number = np.arange(most)
        up, down = number * costs.on_j[axis], number * costs.off_j[axis]
        risen = np.minimum.accumulate(moved - up, axis=-1) + up
        sunk = np.minimum.accumulate((moved + down)[..., ::-1], axis=-1)[..., ::-1] - down
        table = np.moveaxis(np.minimum(risen, sunk), -1, axis)
    return table.reshape(-1)


class Waits:
    """Which machines must stay on: those that were switched on less than the minimum on-time ago.

    The machine of a group that is on for longest is switched off first, so as many must stay on as were switched on
    within the minimum on-time.
    """

    def __init__(self, groups: int, steps: int) -> None:
        self._steps = steps
        self._started: list[tuple[int, ...]] = []
        self._none = (0,) * groups

    def least_on(self) -> tuple[int, ...]:
        """Return the least number of machines of each group that must be on in the next step."""
        recent = self._started[-self._steps :] if self._steps > 0 else []
        return tuple(sum(column) for column in zip(*recent, strict=True)) if recent else self._none

    def record(self, before: Sequence[int] | None, after: Sequence[int]) -> None:
        """Record which machines were switched on in a step; ``before`` is None at the beginning."""
        if before is None:
            self._started.append(self._none)
        else:
            self._started.append(tuple(max(b - a, 0) for a, b in zip(before, after, strict=True)))


def steps_of(time_s: float, step_s: float) -> int:
    """Return how many steps a time takes, a partial step counted as a whole one."""
    return math.ceil(time_s / step_s - 1e-9)


def machines_switched(on: Sequence[Sequence[int]], *, repeats: bool) -> tuple[tuple[int, ...], int]:
    """Return the boots by group and the number of switchings; ``repeats``: the first step follows the last."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    boots = np.maximum(change, 0).sum(axis=0)
    return tuple(int(number) for number in boots), int(np.abs(change).sum())


def schedule_power_w(problem: ClusterProblem, on: Sequence[Sequence[int]]) -> Floats:
    """Return what the machines that are on draw in each step; boots are not counted."""
    table = np.asarray(on, dtype=np.int64)
    return power_w(group_arrays(problem), table, np.asarray(problem.traffic_bps, dtype=np.float64))


def metered(problem: ClusterProblem, on: Sequence[Sequence[int]], *, repeats: bool, ahead: bool = True) -> Schedule:
    """Return a schedule with its energy, boots included.

    ``on`` holds n_kt. ``repeats``: the horizon is a typical day, so switching from its last to its first step counts
    too. ``ahead``: machines boot before the step that needs them (off-line), not within it (on-line).
    """
    table = np.asarray(on, dtype=np.int64)
    power = schedule_power_w(problem, on)
    boots, switchings = machines_switched(on, repeats=repeats)
    booted_j = sum(number * boot_energy_j(problem, k, ahead=ahead) for k, number in enumerate(boots))
    return Schedule(
        on=tuple(tuple(int(n) for n in row) for row in table),
        energy_j=float(power.sum()) * problem.step_s + booted_j,
        boots=sum(boots),
        switchings=switchings,
    )


Knowledge = Literal["present", "past", "day before"]


@value
class SavingRules:
    """How machines may be switched."""

    # On-line only. Fewest (sec. 8.1): as few machines as will do are switched, and only on or only off.
    rule: Literal["worth", "fewest"] = field(
        "Switch once it pays back, or as few as will do (Li's differential algorithm)", default="worth"
    )
    # On-line only, see :func:`expected_bps`. Li's algorithm knows the present one.
    knows: Knowledge = field("Load that the algorithm knows when it decides on a step", default="present")
    # On-line only.
    headroom_ratio: Share = field("Part by which machines route more than the known load", default=0.0, le=10.0)
    # The operator chooses it, for wear and trouble; it weighs in decisions but is not counted as energy.
    payback_s: Span = field("A switching must save what the machine draws at full load in this time", default=40.0)
    # The payback doubles in a day while less was spent so far, and halves while more was; it begins with ``payback_s``
    # and stays within a twentieth and twenty times of it.
    tolerance_ratio: Share = field(
        "On-line, worth: tune the payback to spend this part more energy than off-line; 0: it stays",
        default=0.028,
        le=10.0,
    )
    min_on_s: Span = field("Least time from switching on to switching off", default=0.0)


@value
class Saving:
    """The schedule that an algorithm finds for a fleet and a trace."""

    name: str
    schedule: Schedule
    missed_steps: int = field("Steps in which some traffic found no machine", default=0)
    missed_ratio: float = field("Share of all traffic that found none", default=0.0)
    note: str = field("A remark that the name does not include; may be empty", default="")


def expected_bps(traffic_bps: Sequence[float], step_s: float, rules: SavingRules) -> tuple[float, ...]:
    """Return the load to plan each step for, known before the step; infinite where nothing is known.

    ``"present"``: T_t; ``"past"``: T_{t-1}; ``"day before"``: T_{t-1} T_{t-D} / T_{t-D-1}, the present scaled as a
    day of D steps earlier, and T_{t-1} during the first day. Each times 1 + headroom.
    """
    day = round(DAY_S / step_s)
    expected = [float("inf")]
    for step in range(1, len(traffic_bps)):
        load = traffic_bps[step - 1]
        before = traffic_bps[step - day - 1] if step > day else 0.0
        if rules.knows == "day before" and before > 0.0:
            load *= traffic_bps[step - day] / before
        expected.append(load)
    known = traffic_bps if rules.knows == "present" else expected
    return tuple(load * (1.0 + rules.headroom_ratio) for load in known)


def always_on(problem: ClusterProblem, fleet: Sequence[int]) -> Saving:
    """Return what the fleet needs when no machine is ever switched off."""
    on = [tuple(fleet)] * len(problem.traffic_bps)
    return Saving(name="always on", schedule=metered(problem, on, repeats=False))


MOST_STATES = 20_000
"""With more states, three weeks of 5-minute steps take half a gigabyte and too much time."""


@value
class FleetStates:
    """Every state of a fleet."""

    on: Ints = field("n_k: machines of each group that are on, states x groups")
    capacity_bps: Floats = field("Capacity of each state without its ``spare`` largest machines, bit/s")
    fixed_w: Floats = field("Power of each state without load, W")
    filling: tuple[tuple[Floats, float], ...] = field(
        "Capacity of one group in each state and W per bit/s of its load, from the group that needs the least"
    )

    def carrying(self, load_bps: float) -> Bools:
        """Return which states carry a load."""
        carry: Bools = self.capacity_bps >= load_bps * (1.0 - 1e-9)  # sums of capacities are rounded
        return carry

    def power_w(self, load_bps: float) -> Floats:
        """Return what each state draws under a load, which fills the machines with the cheapest bit first."""
        power = self.fixed_w
        rest = np.full(len(power), load_bps)
        for capacity_bps, w_per_bps in self.filling:
            taken = np.minimum(rest, capacity_bps)
            power = power + w_per_bps * taken
            rest = rest - taken
        return power


def fleet_states(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    """Return every state of a fleet, of at most ``MOST_STATES``."""
    groups = problem.groups
    if len(fleet) != len(groups) or any(machines < 0 for machines in fleet):
        what = f"got {tuple(fleet)}: give one number of machines, at least 0, for each of {len(groups)} groups"
        raise ModelProblem("fleet", [Problem("", what)])
    count = math.prod(machines + 1 for machines in fleet)
    if count > MOST_STATES:
        what = (
            f"{sum(fleet)} machines of {sum(1 for machines in fleet if machines)} groups can be on in {count} ways; "
            f"saving algorithms look at up to {MOST_STATES}: merge groups that are nearly alike"
        )
        raise ModelProblem("fleet", [Problem("", what)])
    on = np.stack([axis.ravel() for axis in np.meshgrid(*(np.arange(n + 1) for n in fleet), indexing="ij")], axis=1)
    arrays = group_arrays(problem)
    capacities, slopes = arrays.capacity_bps, arrays.slope_j
    usable = on @ capacities
    left = np.full(len(on), problem.spare)
    for number in sorted(range(len(groups)), key=lambda k: -capacities[k]):
        lost = np.minimum(left, on[:, number])
        usable = usable - lost * capacities[number]
        left = left - lost
    order = sorted((k for k in range(len(groups)) if slopes[k] > 0.0), key=lambda k: slopes[k])
    free = [k for k in range(len(groups)) if slopes[k] <= 0.0]
    filling = [(on[:, free] @ capacities[free], 0.0)] if free and order else []
    filling += [(on[:, k] * capacities[k], float(slopes[k])) for k in order]
    return FleetStates(on=on, capacity_bps=usable, fixed_w=on @ arrays.idle_w, filling=tuple(filling))


_PAYBACK_RANGE = 20.0
"""The tuned payback stays between a twentieth and twenty times the payback of the rules."""


def online(
    problem: ClusterProblem, fleet: Sequence[int], rules: SavingRules | None = None, *, repeats: bool = False
) -> Saving:
    """Update the machines that are on from step to step.

    ``rule = "fewest"`` is the differential algorithm (Li 2012, sec. 8.1). If the machines that are on do not carry the
    load, it switches on the fewest that do, and of these the cheapest. Otherwise it switches off those that save the
    most, and the fewest if several save the same. It never replaces a machine by a smaller one.

    ``rule = "worth"`` is the work function algorithm (Borodin, Linial & Saks, An optimal on-line algorithm for metrical
    task systems, J. ACM 39(4), 1992): W_t(n) is the least energy of the past, switching costs included, that ends in
    state n; the state with the least W_t(n) plus the cost of going there comes next. So a machine is exchanged once
    keeping it has cost more than exchanging it, and not at the first step that would gain. ``tolerance_ratio``, the
    part more energy than off-line that may be spent, sets what an exchange must be worth: the algorithm also knows the
    off-line energy of the steps so far.

    Machines boot within the step; :func:`traffic_missed` counts what they cannot route while they boot.

    Parameters
    ----------
    problem : ClusterProblem
    fleet : sequence of int
        N_k.
    rules : SavingRules, optional
    repeats : bool
        Whether the trace is a typical day, whose first step follows its last. Only the counts depend on it.

    Raises
    ------
    routecast.errors.ModelProblem
        The fleet has too many states.
    """
    rules = rules or SavingRules()
    states = fleet_states(problem, fleet)
    most_bps = float(states.capacity_bps.max())
    tuned = _TunedPayback(rules, problem.step_s)
    shape = [machines + 1 for machines in fleet]
    waits = Waits(len(fleet), steps_of(rules.min_on_s, problem.step_s) - 1)
    work = np.zeros(len(states.on))
    here: int | None = None
    rows: list[int] = []
    for expected in expected_bps(problem.traffic_bps, problem.step_s, rules):
        load_bps = min(expected, most_bps)
        carrying = states.carrying(load_bps)
        power = states.power_w(load_bps)
        costs = switching_costs(problem, payback_s=tuned.payback_s, ahead=False)
        if rules.rule == "worth":
            work = cheapest_arrival(work, shape, costs) + np.where(carrying, power, np.inf) * problem.step_s
            work -= work.min()
        allowed = carrying & (states.on >= np.asarray(waits.least_on())).all(axis=1)
        if here is None:
            after = int(np.where(allowed, power, np.inf).argmin())
        elif rules.rule == "worth":
            after = _worth(states, work, here, allowed, costs)
        else:
            after = _fewest(states, power, here, allowed)
        waits.record(None if here is None else states.on[here].tolist(), states.on[after].tolist())
        tuned.add(float(power[after]), float(power[carrying].min()))
        rows.append(after)
        here = after
    on = [tuple(int(n) for n in states.on[row]) for row in rows]
    steps, ratio = traffic_missed(problem, on)
    return Saving(
        name=f"on-line, {rules.rule}" + _describe_knowledge(rules),
        schedule=metered(problem, on, repeats=repeats, ahead=False),
        missed_steps=steps,
        missed_ratio=ratio,
    )


class _TunedPayback:
    """A payback that follows the energy spent so far, to spend a part more than off-line; boots are not counted."""

    def __init__(self, rules: SavingRules, step_s: float) -> None:
        self.payback_s = rules.payback_s
        self._range_s = (rules.payback_s / _PAYBACK_RANGE, rules.payback_s * _PAYBACK_RANGE)
        self._tolerance = rules.tolerance_ratio
        self._factor = 2.0 ** (step_s / DAY_S) if rules.tolerance_ratio else 1.0
        self._spent = self._least = 0.0

    def add(self, power_w: float, least_w: float) -> None:
        """Add a step's power and the least that carries its load, and tune the payback for the next step."""
        self._spent += power_w
        self._least += least_w
        is_within = self._spent <= (1.0 + self._tolerance) * self._least
        payback_s = self.payback_s * (self._factor if is_within else 1.0 / self._factor)
        self.payback_s = min(max(payback_s, self._range_s[0]), self._range_s[1])


def _describe_knowledge(rules: SavingRules) -> str:
    """Return the suffix of an algorithm's name that knows another load than the present."""
    headroom = f" + {100.0 * rules.headroom_ratio:g} %" if rules.headroom_ratio else ""
    return f", {rules.knows}{headroom}" if headroom or rules.knows != "present" else ""


def _worth(states: FleetStates, work: Floats, here: int, allowed: Bools, costs: SwitchingCosts) -> int:
    total = np.where(allowed, work + costs.between(states.on, states.on[here].tolist()), np.inf)
    best = np.flatnonzero(total <= total.min() + 1e-6)
    switched = np.abs(states.on[best] - states.on[here]).sum(axis=1)
    return int(best[int(switched.argmin())])


def _fewest(states: FleetStates, power: Floats, here: int, allowed: Bools) -> int:
    more = states.on - states.on[here]
    switched = np.abs(more).sum(axis=1)
    fewer = allowed & (more <= 0).all(axis=1)
    if fewer.any():
        draw = np.where(fewer, power, np.inf)
        near = np.where(draw <= draw.min() * (1.0 + 1e-12), switched, np.iinfo(np.int64).max)
        return int(near.argmin())
    added = np.where(allowed & (more >= 0).all(axis=1), switched, np.iinfo(np.int64).max)
    return int(np.where(added == added.min(), power, np.inf).argmin())


def traffic_missed(problem: ClusterProblem, on: Sequence[Sequence[int]]) -> tuple[int, float]:
    """Return the steps in which traffic finds no booted machine, and the share of all traffic that finds none.

    A machine that is switched on at the beginning of a step routes ``boot_s`` later. All machines that are on route,
    those of ``spare`` included.
    """
    table = np.asarray(on, dtype=np.int64)
    traffic = np.asarray(problem.traffic_bps, dtype=np.float64)
    at_begin: list[npt.NDArray[np.floating]] = []
    at_end: list[npt.NDArray[np.floating]] = []
    shares: list[float] = []
    for group, machines in enumerate(problem.groups):
        steps, share = divmod(machines.boot_s / problem.step_s, 1.0)
        booted = _least_of_last(table[:, group], int(steps))
        at_end.append(booted * machines.capacity_bps)
        at_begin.append(_least_of_last(table[:, group], int(steps) + 1) * machines.capacity_bps)
        shares.append(share)
    missed = np.zeros(len(traffic))
    cuts = sorted({0.0, 1.0, *shares})
    for begin, end in pairwise(cuts):  # of a step, between which the same machines route
        capacity = sum(at_begin[k] if shares[k] > begin else at_end[k] for k in range(len(shares)))
        missed += (end - begin) * np.maximum(traffic * (1.0 - 1e-9) - capacity, 0.0)
    total = float(traffic.sum())
    return int(np.count_nonzero(missed > 0.0)), float(missed.sum()) / total if total > 0.0 else 0.0


def _least_of_last(column: Ints, steps: int) -> Ints:
    """Return the least of each step and the ``steps`` before it; before the first step nothing differs from it."""
    least = column
    for back in range(1, min(steps, len(column) - 1) + 1):
        least = np.minimum(least, np.concatenate([np.full(back, column[0]), column[:-back]]))
    return least


MOST_TRANSITIONS = 500_000_000
"""Transitions between states, over all steps, that are looked at; they take seconds."""


def kept_on(on: Sequence[Sequence[int]], fleet: Sequence[int], steps: int, *, repeats: bool) -> OnByStep:
    """Return a schedule in which machines stay on that were switched on within the last ``steps`` steps.

    The machine of a group that is on for longest is switched off first, so at least as many are on as were switched on
    in the last ``steps`` steps. The machines of the first step have been on for long, unless the schedule ``repeats``:
    then its first step follows its last.
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
    """Return how many states a fleet has if machines that are on since 1, 2, …, ``steps`` steps and longer differ."""
    return math.prod(math.comb(machines + steps + 1, machines) for machines in fleet)


class AgedStates:
    """The states of a fleet by group and by how long machines are on, and the transitions between them.

    A group's state is (a_1, …, a_s, a), machines that are on since 1, …, s steps, and for longer. In a step
    all grow older, and either some of a are switched off or some that were off are switched on:

        (a_1, …, a_s, a)  →  (k, a_1, …, a_{s-1}, a + a_s)      0 <= k <= N − on
        (a_1, …, a_s, a)  →  (0, a_1, …, a_{s-1}, a + a_s − k)  1 <= k <= a

    A machine is on for s + 1 steps at least.
    """

    def __init__(self, states: FleetStates, fleet: Sequence[int], steps: int, costs: SwitchingCosts) -> None:
        groups = [_group(machines, steps) for machines in fleet]
        self._shape = tuple(len(ages) for ages, _ in groups)
        self._transitions = [
            _transitions(ages, position_of, machines, on_j, off_j)
            for (ages, position_of), machines, on_j, off_j in zip(groups, fleet, costs.on_j, costs.off_j, strict=True)
        ]
        self.rows: Ints = np.zeros(1, dtype=np.int64)
        self.first: Floats = np.zeros(1)
        for (ages, _), machines in zip(groups, fleet, strict=True):
            young = ages[:, :-1].sum(axis=1)
            self.rows = (self.rows[:, None] * (machines + 1) + ages.sum(axis=1)[None, :]).reshape(-1)
            # At the beginning every machine has been on for long, or is off.
            self.first = (self.first[:, None] + np.where(young > 0, np.inf, 0.0)[None, :]).reshape(-1)
        assert self.rows.max() == len(states.on) - 1

    def forward(self, values: Floats) -> Floats:
        """Return the least of the values a step before plus the cost of coming from there, for each state."""
        table = values.reshape(self._shape)
        for axis, (sources, costs_j) in enumerate(self._transitions):
            moved = np.moveaxis(table, axis, 0)
            flat = moved.reshape(len(moved), -1)
            best = np.full_like(flat, np.inf)
            for number in range(sources.shape[1]):
                np.minimum(best, flat[sources[:, number]] + costs_j[:, number, None], out=best)
            table = np.moveaxis(best.reshape(moved.shape), 0, axis)
        return table.reshape(-1)

    def backward(self, before: npt.NDArray[np.float32], position: int) -> int:
        """Return the state a step before from which a state is reached at the least cost."""
        here = np.unravel_index(position, self._shape)
        sources = [from_group[0][row] for from_group, row in zip(self._transitions, here, strict=True)]
        total = before.reshape(self._shape)[np.ix_(*sources)].astype(np.float64)
        for axis, (from_group, row) in enumerate(zip(self._transitions, here, strict=True)):
            shape = [1] * len(sources)
            shape[axis] = -1
            total = total + from_group[1][row].reshape(shape)
        chosen = np.unravel_index(int(total.argmin()), total.shape)
        positions = [int(source[number]) for source, number in zip(sources, chosen, strict=True)]
        return int(np.ravel_multi_index(positions, self._shape))


def is_small(fleet: Sequence[int], steps: int, loads: int) -> bool:
    """Return whether the states with ages are few enough to look at all of them."""
    count = aged_states_count(fleet, steps)
    transitions = count * sum(machines + 1 for machines in fleet if machines)
    return count <= MOST_STATES and transitions * loads <= MOST_TRANSITIONS


def _group(machines: int, steps: int) -> tuple[Ints, dict[tuple[int, ...], int]]:
    """Return all (a_1, …, a_s, a) of a group, and the position of each."""
    # Stars and bars: s + 1 bars among machines + s + 1 positions divide the ages; what follows the last bar is off.
    states = []
    for bars in itertools.combinations(range(machines + steps + 1), steps + 1):
        edges = (-1, *bars)
        states.append(tuple(high - low - 1 for low, high in itertools.pairwise(edges)))
    return np.asarray(states, dtype=np.int64), {ages: position for position, ages in enumerate(states)}


def _transitions(
    ages: Ints, position_of: dict[tuple[int, ...], int], machines: int, on_j: float, off_j: float
) -> tuple[Ints, Floats]:
    """Return the sources and costs of each state; rows are filled up with infinite costs."""
    into: list[list[tuple[int, float]]] = [[] for _ in position_of]
    for position, row in enumerate(ages.tolist()):
        *young, old = row
        grown, older = young[:-1], old + young[-1]
        for more in range(machines - sum(row) + 1):
            into[position_of[(more, *grown, older)]].append((position, more * on_j))
        for fewer in range(1, old + 1):
            into[position_of[(0, *grown, older - fewer)]].append((position, fewer * off_j))
    most = max(len(arrivals) for arrivals in into)
    sources = np.zeros((len(into), most), dtype=np.int64)
    costs = np.full((len(into), most), np.inf)
    for position, arrivals in enumerate(into):
        for number, (source, cost_j) in enumerate(arrivals):
            sources[position, number], costs[position, number] = source, cost_j
    return sources, costs


_DAYS = 3
"""A typical day is planned as the middle one of so many equal days."""


def each_step(problem: ClusterProblem, fleet: Sequence[int], *, min_on_s: float = 0.0, repeats: bool = False) -> Saving:
    """Give every step the state that draws the least, independent of its neighbours.

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
    states = _states_that_carry(problem, fleet)
    wait = steps_of(min_on_s, problem.step_s) - 1
    waits = Waits(len(fleet), wait)
    on: OnByStep = []
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

    With ``min_on_s``, a state also holds how long the machines of each group are on (:class:`AgedStates`). No schedule
    of the fleet that keeps ``min_on_s`` needs less, the payback of its switchings included; the result's name is then
    "off-line, whole trace".

    Its name is "off-line, best found", and its note gives the reason, in two cases. Either there are too many states
    with ages: then ages are ignored, and machines stay on afterwards for as long as they must. Or a typical day, which
    is planned as the middle one of three, needs more than the bound that the three days give for every day that
    repeats. In both cases the schedules of :func:`each_step` and of the on-line algorithms that know the present
    compete too, and the best of all is returned.

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
    states = _states_that_carry(problem, fleet)
    costs = switching_costs(problem, payback_s=payback_s, ahead=True)
    wait = steps_of(min_on_s, problem.step_s) - 1
    loads = len(problem.traffic_bps) * (_DAYS if repeats else 1)
    is_aged = wait > 0 and is_small(fleet, wait, loads)
    graph = AgedStates(states, fleet, wait, costs) if is_aged else _FreeStates(states, fleet, costs)
    path, bound_j = _cheapest_path(problem, states, graph, repeats=repeats)
    on = kept_on(path, fleet, wait, repeats=repeats)
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
        kept = [kept_on(saving.schedule.on, fleet, wait, repeats=repeats) for saving in others]
        on = min(on, *kept, key=lambda schedule: _weighed_j(problem, schedule, costs, repeats=repeats))
    return Saving(
        name="off-line, best found" if note else "off-line, whole trace",
        schedule=metered(problem, on, repeats=repeats),
        note=note,
    )


class _FreeStates:
    """The states of a fleet whose machines may be switched in any step."""

    def __init__(self, states: FleetStates, fleet: Sequence[int], costs: SwitchingCosts) -> None:
        self.rows = np.arange(len(states.on), dtype=np.int64)
        self.first = np.zeros(len(states.on))
        self._on, self._costs = states.on, costs
        self._shape = [machines + 1 for machines in fleet]

    def forward(self, values: Floats) -> Floats:
        return cheapest_arrival(values, self._shape, self._costs)

    def backward(self, before: npt.NDArray[np.float32], position: int) -> int:
        cost = np.maximum(self._on[position] - self._on, 0) @ np.array(self._costs.on_j)
        cost = cost + np.maximum(self._on - self._on[position], 0) @ np.array(self._costs.off_j)
        return int((before + cost).argmin())


def _cheapest_path(
    problem: ClusterProblem, states: FleetStates, graph: AgedStates | _FreeStates, *, repeats: bool
) -> tuple[OnByStep, float]:
    """Return the cheapest path through all steps, and a bound in J that no day that repeats goes below (else 0).

    Where a day repeats from a state x, V_k(x) <= V_{k-1}(x) + its joules: they are at least the least rise of V.
    """
    steps = len(problem.traffic_bps)
    values, low_j = graph.first, 0.0
    kept: list[npt.NDArray[np.float32]] = []
    ends: list[Floats] = []
    for load_bps in problem.traffic_bps * (_DAYS if repeats else 1):
        draw = np.where(states.carrying(load_bps), states.power_w(load_bps), np.inf)
        values = (graph.forward(values) if kept else values) + draw[graph.rows] * problem.step_s
        least = float(values.min())
        low_j += least
        values = values - least  # only differences matter; small numbers keep their joules in 32 bits
        kept.append(values.astype(np.float32))
        if len(kept) % steps == 0:
            ends.append(values + low_j)
    position = int(kept[-1].argmin())
    path = [position]
    for before in reversed(kept[:-1]):
        position = graph.backward(before, position)
        path.append(position)
    path.reverse()
    day = path[steps : 2 * steps] if repeats else path
    bounds_j = [0.0]
    for before_j, after_j in pairwise(ends):
        known = np.isfinite(after_j)
        bounds_j.append(float((after_j[known] - before_j[known]).min()))
    return [_state(states, graph.rows[position]) for position in day], max(bounds_j)


def _weighed_j(problem: ClusterProblem, on: Sequence[Sequence[int]], costs: SwitchingCosts, *, repeats: bool) -> float:
    """Return the joules of a schedule, the assumed costs of its switchings included."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    switched_j = np.maximum(change, 0) @ np.array(costs.on_j) + np.maximum(-change, 0) @ np.array(costs.off_j)
    return float(schedule_power_w(problem, on).sum()) * problem.step_s + float(switched_j.sum())


def _states_that_carry(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    states = fleet_states(problem, fleet)
    peak_bps = max(problem.traffic_bps)
    most_bps = float(states.capacity_bps.max())
    if not states.carrying(peak_bps).any():
        without = f" without the {problem.spare} largest" if problem.spare else ""
        message = (
            f"the fleet routes {format_bps(most_bps)}{without}, the peak is {format_bps(peak_bps)}: "
            f"{format_bps(peak_bps - most_bps)} are missing"
        )
        raise InfeasiblePlan("fleet", most_bps, peak_bps, message)
    return states


def _state(states: FleetStates, row: int | np.intp) -> tuple[int, ...]:
    return tuple(int(machines) for machines in states.on[row])


def _without_short_pauses(problem: ClusterProblem, on: OnByStep) -> OnByStep:
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
