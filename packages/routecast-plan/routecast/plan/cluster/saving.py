"""Algorithms that switch machines on and off over a day, with the cost of switching (Li 2012, sec. 8.1).

Off-line algorithms know the complete trace: :func:`each_step` optimises each step alone, :func:`fewest_joules` all
steps together. :func:`online` decides step by step without knowledge of later steps.

A fleet of N_k machines has Π (N_k + 1) states n, 0 <= n_k <= N_k. The algorithms evaluate all states at once, as arrays
with a row for each state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from routecast.errors import ModelProblem, Problem
from routecast.load.series import DAY_S
from routecast.plan.cluster._cover import Floats, Ints
from routecast.plan.cluster._dispatch import group_arrays, power_w
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, Schedule
from routecast.quantity import format_bps
from routecast.quantity.fields import Percentage, Share, Span
from routecast.quantity.schema import field, value

__all__ = [
    "MAX_STATES",
    "FleetStates",
    "Knowledge",
    "MinOnTime",
    "Saving",
    "SavingRules",
    "SwitchingCosts",
    "always_on",
    "boot_energy_j",
    "cheapest_arrival",
    "each_step",
    "expected_bps",
    "fewest_joules",
    "fleet_states",
    "machines_switched",
    "online",
    "schedule_power_w",
    "schedule_with_energy",
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

    def of_change(self, change: Ints) -> Floats:
        """Return the cost of each change of the machines that are on, J, shape (changes,); ``change`` is by group."""
        cost: Floats = np.maximum(change, 0) @ np.array(self.on_j) + np.maximum(-change, 0) @ np.array(self.off_j)
        return cost


def boot_energy_j(problem: ClusterProblem, group: int, *, ahead: bool) -> float:
    """Return the energy of one boot of a group's machine, J.

    With ``ahead`` the machine boots before its first step and draws idle power meanwhile; otherwise it boots within
    this step, whose idle power is counted already.
    """
    machine = problem.groups[group]
    return machine.boot_energy_j + (machine.unloaded_w * machine.boot_s if ahead else 0.0)


def switching_costs(problem: ClusterProblem, *, payback_s: float, ahead: bool) -> SwitchingCosts:
    """Return the costs of switching: the full-load energy of ``payback_s`` each way, plus the boot for switching on."""
    payback_j = [payback_s * group.power_w for group in problem.groups]
    return SwitchingCosts(
        on_j=tuple(boot_energy_j(problem, k, ahead=ahead) + payback_j[k] for k in range(len(payback_j))),
        off_j=tuple(payback_j),
    )


def cheapest_arrival(values: Floats, shape: Sequence[int], costs: SwitchingCosts) -> Floats:
    """Return for each state n the minimum of ``values[m] + cost of switching from m to n`` over all states m, J.

    The cost is a sum over groups, so the minimum is taken group by group. Within a group running minima in both
    directions find it in a single pass (the distance transform of Felzenszwalb & Huttenlocher, Theory of Computing 8,
    2012, with the metric |m − n|).
    """
    table = values.reshape(tuple(shape))
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        moved = table.swapaxes(axis, -1)
        number = np.arange(size)
        up, down = number * costs.on_j[axis], number * costs.off_j[axis]
        risen = np.minimum.accumulate(moved - up, axis=-1) + up
        sunk = np.minimum.accumulate((moved + down)[..., ::-1], axis=-1)[..., ::-1] - down
        table = np.minimum(risen, sunk).swapaxes(axis, -1)
    return table.reshape(-1)


class MinOnTime:
    """Records the machines that were switched on less than the minimum on-time ago, which must stay on.

    The machines of a group are switched off in the order in which they were switched on. So the number that must stay
    on is the number switched on within the minimum on-time.
    """

    def __init__(self, groups: int, steps: int) -> None:
        self._steps = steps
        self._started: list[tuple[int, ...]] = []
        self._none = (0,) * groups

    def required_on(self) -> tuple[int, ...]:
        """Return the number of machines of each group that must be on in the next step."""
        recent = self._started[-self._steps :] if self._steps > 0 else []
        return tuple(sum(column) for column in zip(*recent, strict=True)) if recent else self._none

    def record(self, before: Sequence[int] | None, after: Sequence[int]) -> None:
        """Record the machines that were switched on in a step; ``before`` is None in the first step."""
        self._started.append(tuple(max(b - a, 0) for a, b in zip(before or after, after, strict=True)))


def steps_of(time_s: float, step_s: float) -> int:
    """Return the number of steps in a time, rounded up."""
    return math.ceil(time_s / step_s - 1e-9)


def machines_switched(on: Sequence[Sequence[int]], *, repeats: bool) -> tuple[tuple[int, ...], int]:
    """Return the boots by group and the number of switchings; with ``repeats`` the first step follows the last."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    boots = np.maximum(change, 0).sum(axis=0)
    return tuple(int(number) for number in boots), int(np.abs(change).sum())


def schedule_power_w(problem: ClusterProblem, on: Sequence[Sequence[int]]) -> Floats:
    """Return the power of the machines that are on in each step, W, shape (steps,); boots are not counted."""
    table = np.asarray(on, dtype=np.int64)
    return power_w(group_arrays(problem), table, np.asarray(problem.traffic_bps, dtype=np.float64))


def schedule_with_energy(
    problem: ClusterProblem, on: Sequence[Sequence[int]], *, repeats: bool, ahead: bool = True
) -> Schedule:
    """Return a schedule with its energy, boots included.

    ``on`` holds n_kt, by step and group. With ``repeats`` the horizon is a typical day, so switchings from the last
    step to the first count too. With ``ahead`` machines boot before the step that needs them (off-line), else within it
    (on-line).
    """
    table = np.asarray(on, dtype=np.int64)
    power = schedule_power_w(problem, on)
    boots, switchings = machines_switched(on, repeats=repeats)
    booted_j = sum(number * boot_energy_j(problem, k, ahead=ahead) for k, number in enumerate(boots))
    return Schedule(
        on=tuple(tuple(row) for row in table.tolist()),
        energy_j=float(power.sum()) * problem.step_s + booted_j,
        boots=sum(boots),
        switchings=switchings,
    )


Knowledge = Literal["present", "past", "day before"]


@value
class SavingRules:
    """Rules for switching machines on and off."""

    # On-line only. Fewest (sec. 8.1): switch as few machines as possible, and only on or only off in a step.
    rule: Literal["worth", "fewest"] = field(
        "``worth``: switch once it pays back; ``fewest``: switch as few as possible (differential algorithm)",
        default="worth",
    )
    # On-line only, see :func:`expected_bps`. Li's algorithm knows the present load.
    knows: Knowledge = field("Load that the algorithm knows when it plans a step", default="present")
    # On-line only.
    headroom_ratio: Annotated[Share, Percentage()] = field(
        "Spare capacity beyond the known load, as a part of it", default=0.0, le=10.0
    )
    # The operator's price of wear and risk; decisions include it, the energy does not.
    payback_s: Span = field(
        "A switching must save the energy that the machine draws at full load in this time", default=40.0
    )
    # The payback begins with ``payback_s``. It doubles in a day while the energy so far is within the tolerance, else
    # it halves; it stays between a twentieth and twenty times of ``payback_s``.
    tolerance_ratio: Annotated[Share, Percentage()] = field(
        "On-line, worth: tune the payback so that energy is this part above off-line; 0: constant payback",
        default=0.028,
        le=10.0,
    )
    min_on_s: Span = field("Minimum time from switching on to switching off", default=0.0)


@value
class Saving:
    """The schedule of an algorithm for a fleet and a trace."""

    name: str
    schedule: Schedule
    missed_steps: int = field("Steps in which the machines did not carry all traffic", default=0)
    missed_ratio: float = field("Share of all traffic that no machine carried", default=0.0)
    note: str = field("Remark on the schedule; may be empty", default="")


def expected_bps(traffic_bps: Sequence[float], step_s: float, rules: SavingRules) -> tuple[float, ...]:
    """Return the load that each step is planned for, bit/s; infinite where nothing is known.

    ``"present"`` is T_t, ``"past"`` is T_{t-1}, and ``"day before"`` is T_{t-1} T_{t-D} / T_{t-D-1}: the last load,
    scaled by the change one day of D steps earlier; during the first day it is T_{t-1}. Each is multiplied by 1 +
    headroom.
    """
    day = round(DAY_S / step_s)
    expected = [float("inf")]
    for step in range(1, len(traffic_bps)):
        load = traffic_bps[step - 1]
        day_before = traffic_bps[step - day - 1] if step > day else 0.0
        if rules.knows == "day before" and day_before > 0.0:
            load *= traffic_bps[step - day] / day_before
        expected.append(load)
    known = traffic_bps if rules.knows == "present" else expected
    return tuple(load * (1.0 + rules.headroom_ratio) for load in known)


def always_on(problem: ClusterProblem, fleet: Sequence[int]) -> Saving:
    """Return the schedule in which all machines are always on."""
    on = [tuple(fleet)] * len(problem.traffic_bps)
    return Saving(name="always on", schedule=schedule_with_energy(problem, on, repeats=False))


MAX_STATES = 20_000
"""The greatest number of states. With more, three weeks of 5-minute steps take over half a gigabyte of memory."""


@value
class FleetStates:
    """All states of a fleet."""

    on: Ints = field("n_k: machines of each group that are on, shape (states, groups)")
    capacity_bps: Floats = field("Capacity of each state without its ``spare`` largest machines, bit/s")
    fixed_w: Floats = field("Power of each state without load, W")
    filling: tuple[tuple[Floats, float], ...] = field(
        "Capacity of a group in each state, bit/s, and its power per load, W per bit/s, the least power first"
    )

    def carrying(self, load_bps: float) -> Bools:
        """Return whether each state carries a load, shape (states,)."""
        carry: Bools = self.capacity_bps >= load_bps * (1.0 - 1e-9)  # sums of capacities are rounded
        return carry

    def power_w(self, load_bps: float) -> Floats:
        """Return the power of each state under a load, W, shape (states,); the least slope is filled first."""
        power = self.fixed_w
        rest = np.full(len(power), load_bps)
        for capacity_bps, w_per_bps in self.filling:
            taken = np.minimum(rest, capacity_bps)
            power = power + w_per_bps * taken
            rest = rest - taken
        return power


def fleet_states(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    """Return all states of a fleet; raise ModelProblem if they are more than ``MAX_STATES``."""
    groups = problem.groups
    if len(fleet) != len(groups) or any(machines < 0 for machines in fleet):
        message = f"got {tuple(fleet)}: give a number of machines, at least 0, for each of {len(groups)} groups"
        raise ModelProblem("fleet", [Problem("", message)])
    count = math.prod(machines + 1 for machines in fleet)
    if count > MAX_STATES:
        message = (
            f"{sum(fleet)} machines of {sum(1 for machines in fleet if machines)} groups have {count} states, but the "
            f"saving algorithms handle at most {MAX_STATES}: merge similar groups"
        )
        raise ModelProblem("fleet", [Problem("", message)])
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
    """Return the schedule of an on-line algorithm, which decides step by step.

    ``rule = "fewest"`` is the differential algorithm (Li 2012, sec. 8.1). If the machines that are on do not carry the
    load, it switches on the fewest machines that suffice, the cheapest among equals. Otherwise it switches off the
    machines that save the most power, the fewest among equals. It never replaces a machine by a smaller one.

    ``rule = "worth"`` is the work function algorithm (Borodin, Linial & Saks, An optimal on-line algorithm for metrical
    task systems, J. ACM 39(4), 1992): W_t(n) is the least energy of the past, switching costs included, that ends in
    state n. The next state is the one with the least W_t(n) plus the cost of switching to it. So the algorithm
    exchanges a machine when the cost of keeping it exceeds the cost of the exchange. ``tolerance_ratio`` is the part by
    which the energy may exceed off-line: it tunes the payback, from the off-line energy of the steps so far.

    Machines boot within the step; :func:`traffic_missed` counts the traffic that they cannot route while they boot.

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
    max_bps = float(states.capacity_bps.max())
    payback = _TunedPayback(rules, problem.step_s)
    shape = [machines + 1 for machines in fleet]
    min_on = MinOnTime(len(fleet), steps_of(rules.min_on_s, problem.step_s) - 1)
    work = np.zeros(len(states.on))
    current: int | None = None
    rows: list[int] = []
    for expected in expected_bps(problem.traffic_bps, problem.step_s, rules):
        load_bps = min(expected, max_bps)
        carrying = states.carrying(load_bps)
        power = states.power_w(load_bps)
        costs = switching_costs(problem, payback_s=payback.payback_s, ahead=False)
        if rules.rule == "worth":
            work = cheapest_arrival(work, shape, costs) + np.where(carrying, power, np.inf) * problem.step_s
            work -= work.min()
        allowed = carrying & (states.on >= np.asarray(min_on.required_on())).all(axis=1)
        if current is None:
            chosen = int(np.where(allowed, power, np.inf).argmin())
        elif rules.rule == "worth":
            chosen = _next_by_work_function(states, work, current, allowed, costs)
        else:
            chosen = _next_by_fewest_switchings(states, power, current, allowed)
        min_on.record(None if current is None else states.on[current].tolist(), states.on[chosen].tolist())
        payback.add(float(power[chosen]), float(power[carrying].min()))
        rows.append(chosen)
        current = chosen
    on = [_machines_on(states, row) for row in rows]
    steps, ratio = traffic_missed(problem, on)
    return Saving(
        name=f"on-line, {rules.rule}" + _describe_knowledge(rules),
        schedule=schedule_with_energy(problem, on, repeats=repeats, ahead=False),
        missed_steps=steps,
        missed_ratio=ratio,
    )


class _TunedPayback:
    """A payback that is tuned step by step so that energy, without boots, exceeds off-line by ``tolerance_ratio``."""

    def __init__(self, rules: SavingRules, step_s: float) -> None:
        self.payback_s = rules.payback_s
        self._range_s = (rules.payback_s / _PAYBACK_RANGE, rules.payback_s * _PAYBACK_RANGE)
        self._tolerance = rules.tolerance_ratio
        self._factor = 2.0 ** (step_s / DAY_S) if rules.tolerance_ratio else 1.0
        self._spent = self._least = 0.0

    def add(self, power_w: float, least_w: float) -> None:
        """Add the power of a step and the least power that carries its load; tune the payback for the next step."""
        self._spent += power_w
        self._least += least_w
        is_within = self._spent <= (1.0 + self._tolerance) * self._least
        payback_s = self.payback_s * (self._factor if is_within else 1.0 / self._factor)
        self.payback_s = min(max(payback_s, self._range_s[0]), self._range_s[1])


def _describe_knowledge(rules: SavingRules) -> str:
    """Return the suffix of an algorithm's name for its known load and headroom; "" for the present load."""
    headroom = f" + {100.0 * rules.headroom_ratio:g} %" if rules.headroom_ratio else ""
    return f", {rules.knows}{headroom}" if headroom or rules.knows != "present" else ""


def _next_by_work_function(
    states: FleetStates, work: Floats, current: int, allowed: Bools, costs: SwitchingCosts
) -> int:
    total = np.where(allowed, work + costs.of_change(states.on - states.on[current]), np.inf)
    best = np.flatnonzero(total <= total.min() + 1e-6)
    switched = np.abs(states.on[best] - states.on[current]).sum(axis=1)
    return int(best[int(switched.argmin())])


def _next_by_fewest_switchings(states: FleetStates, power: Floats, current: int, allowed: Bools) -> int:
    changes = states.on - states.on[current]
    switched = np.abs(changes).sum(axis=1)
    fewer = allowed & (changes <= 0).all(axis=1)
    if fewer.any():
        power_of_fewer = np.where(fewer, power, np.inf)
        switched_of_best = np.where(
            power_of_fewer <= power_of_fewer.min() * (1.0 + 1e-12), switched, np.iinfo(np.int64).max
        )
        return int(switched_of_best.argmin())
    added = np.where(allowed & (changes >= 0).all(axis=1), switched, np.iinfo(np.int64).max)
    return int(np.where(added == added.min(), power, np.inf).argmin())


def traffic_missed(problem: ClusterProblem, on: Sequence[Sequence[int]]) -> tuple[int, float]:
    """Return the number of steps in which machines do not carry all traffic, and the share of traffic that they miss.

    A machine that is switched on at the beginning of a step routes after ``boot_s``. All machines that are on route,
    spares included.
    """
    table = np.asarray(on, dtype=np.int64)
    traffic = np.asarray(problem.traffic_bps, dtype=np.float64)
    at_begin: list[npt.NDArray[np.floating]] = []
    at_end: list[npt.NDArray[np.floating]] = []
    shares: list[float] = []
    for group, machines in enumerate(problem.groups):
        steps, share = divmod(machines.boot_s / problem.step_s, 1.0)
        booted = _minimum_of_last(table[:, group], int(steps))
        at_end.append(booted * machines.capacity_bps)
        at_begin.append(_minimum_of_last(table[:, group], int(steps) + 1) * machines.capacity_bps)
        shares.append(share)
    missed = np.zeros(len(traffic))
    cuts = sorted({0.0, 1.0, *shares})
    for begin, end in pairwise(cuts):  # parts of a step in which the same machines route
        capacity = sum(at_begin[k] if shares[k] > begin else at_end[k] for k in range(len(shares)))
        missed += (end - begin) * np.maximum(traffic * (1.0 - 1e-9) - capacity, 0.0)
    total = float(traffic.sum())
    return int(np.count_nonzero(missed > 0.0)), float(missed.sum()) / total if total > 0.0 else 0.0


def _minimum_of_last(column: Ints, steps: int) -> Ints:
    """Return the minimum over each step and the ``steps`` before it; earlier steps equal the first."""
    padded = np.concatenate([np.full(steps, column[0]), column])
    least: Ints = np.lib.stride_tricks.sliding_window_view(padded, steps + 1).min(axis=1)
    return least


MAX_TRANSITIONS = 500_000_000
"""The greatest number of transitions between states over all steps; they take seconds."""


def hold_on(on: Sequence[Sequence[int]], fleet: Sequence[int], steps: int, *, repeats: bool) -> OnByStep:
    """Return the schedule with more machines on, so that each stays on for more than ``steps`` steps.

    The machines of a group are switched off in the order in which they were switched on. So at least as many are on as
    were switched on in the last ``steps`` steps. The machines of the first step may be switched off at once, unless the
    schedule ``repeats``: then its first step follows its last.
    """
    table = np.asarray(on, dtype=np.int64)
    while steps > 0:
        before = table[-1:] if repeats else table[:1]
        started = np.maximum(np.diff(table, axis=0, prepend=before), 0)
        required = np.zeros_like(table)
        for back in range(1, steps + 1):
            moved = np.roll(started, back, axis=0)
            if not repeats:
                moved[:back] = 0
            required += moved
        # A step with more machines may have more starts, so repeat until nothing changes. The loop ends, because
        # numbers only rise and the schedule with all machines on keeps every on-time.
        raised = np.maximum(table, np.minimum(required, np.asarray(fleet)))
        if (raised == table).all():
            break
        table = raised
    return [tuple(row) for row in table.tolist()]


def count_aged_states(fleet: Sequence[int], steps: int) -> int:
    """Return the number of states of a fleet that distinguish machines on for 1, 2, …, ``steps`` and more steps."""
    return math.prod(math.comb(machines + steps + 1, machines) for machines in fleet)


class AgedStates:
    """The states of a fleet with the ages of its machines, and the transitions between them.

    The state of a group is (a_1, …, a_s, a): the numbers of machines that are on for 1, …, s steps, and for longer. In
    a step all ages grow, and either some of a are switched off or some machines are switched on:

        (a_1, …, a_s, a)  →  (k, a_1, …, a_{s-1}, a + a_s)      0 <= k <= N − on
        (a_1, …, a_s, a)  →  (0, a_1, …, a_{s-1}, a + a_s − k)  1 <= k <= a

    So a machine is on for at least s + 1 steps.
    """

    def __init__(self, states: FleetStates, fleet: Sequence[int], steps: int, costs: SwitchingCosts) -> None:
        groups = [_states_of_group(machines, steps) for machines in fleet]
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
            # In the first step the machines that are on may be switched off at once.
            self.first = (self.first[:, None] + np.where(young > 0, np.inf, 0.0)[None, :]).reshape(-1)
        assert self.rows.max() == len(states.on) - 1

    def forward(self, values: Floats) -> Floats:
        """Return for each state the minimum over the states a step before of value plus cost of the transition."""
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
        """Return the state a step before from which the state at ``position`` is reached at the least cost."""
        indices = np.unravel_index(position, self._shape)
        sources = [transitions[0][row] for transitions, row in zip(self._transitions, indices, strict=True)]
        total = before.reshape(self._shape)[np.ix_(*sources)].astype(np.float64)
        for axis, (transitions, row) in enumerate(zip(self._transitions, indices, strict=True)):
            shape = [1] * len(sources)
            shape[axis] = -1
            total = total + transitions[1][row].reshape(shape)
        chosen = np.unravel_index(int(total.argmin()), total.shape)
        positions = [int(source[number]) for source, number in zip(sources, chosen, strict=True)]
        return int(np.ravel_multi_index(positions, self._shape))


def is_tractable(fleet: Sequence[int], steps: int, loads: int) -> bool:
    """Return whether all states with ages can be evaluated within MAX_STATES and MAX_TRANSITIONS."""
    count = count_aged_states(fleet, steps)
    transitions = count * sum(machines + 1 for machines in fleet if machines)
    return count <= MAX_STATES and transitions * loads <= MAX_TRANSITIONS


def _states_of_group(machines: int, steps: int) -> tuple[Ints, dict[tuple[int, ...], int]]:
    """Return all (a_1, …, a_s, a) of a group, and the position of each."""
    # Stars and bars: s + 1 bars among machines + s + 1 positions separate the ages; stars after the last bar are off.
    states = [
        tuple(high - low - 1 for low, high in pairwise((-1, *bars)))
        for bars in itertools.combinations(range(machines + steps + 1), steps + 1)
    ]
    return np.asarray(states, dtype=np.int64), {ages: position for position, ages in enumerate(states)}


def _transitions(
    ages: Ints, position_of: dict[tuple[int, ...], int], machines: int, on_j: float, off_j: float
) -> tuple[Ints, Floats]:
    """Return the source states and costs of the transitions to each state; unused entries have infinite costs."""
    arrivals_of: list[list[tuple[int, float]]] = [[] for _ in position_of]
    for position, row in enumerate(ages.tolist()):
        *young, old = row
        grown, older = young[:-1], old + young[-1]
        for more in range(machines - sum(row) + 1):
            arrivals_of[position_of[(more, *grown, older)]].append((position, more * on_j))
        for fewer in range(1, old + 1):
            arrivals_of[position_of[(0, *grown, older - fewer)]].append((position, fewer * off_j))
    max_arrivals = max(len(arrivals) for arrivals in arrivals_of)
    sources = np.zeros((len(arrivals_of), max_arrivals), dtype=np.int64)
    costs = np.full((len(arrivals_of), max_arrivals), np.inf)
    for position, arrivals in enumerate(arrivals_of):
        for number, (source, cost_j) in enumerate(arrivals):
            sources[position, number], costs[position, number] = source, cost_j
    return sources, costs


_REPEATED_DAYS = 3
"""A typical day is planned as the middle day of this number of equal days."""


def each_step(problem: ClusterProblem, fleet: Sequence[int], *, min_on_s: float = 0.0, repeats: bool = False) -> Saving:
    """Return the schedule that has the least power in every step, whatever the steps beside it.

    Among equal states it selects the nearest to the state before. Machines boot before the step that needs them. A
    machine stays on if its pause would be shorter than its boot, or before it reaches the minimum on-time.

    Parameters
    ----------
    problem : ClusterProblem
    fleet : sequence of int
        N_k.
    min_on_s : float
        Minimum time from switching on to switching off.
    repeats : bool
        Whether the trace is a typical day, whose first step follows its last.

    Raises
    ------
    InfeasiblePlan
        The fleet does not carry a step.
    routecast.errors.ModelProblem
        The fleet has too many states.
    """
    states = _states_for_peak(problem, fleet)
    hold_steps = steps_of(min_on_s, problem.step_s) - 1
    min_on = MinOnTime(len(fleet), hold_steps)
    on: OnByStep = []
    current: tuple[int, ...] | None = None
    for load_bps in problem.traffic_bps:
        allowed = states.carrying(load_bps) & (states.on >= np.asarray(min_on.required_on())).all(axis=1)
        power = np.where(allowed, states.power_w(load_bps), np.inf)
        best = np.flatnonzero(power <= power.min() * (1.0 + 1e-12))
        switched = np.abs(states.on[best] - np.asarray(current)).sum(axis=1) if current else states.on[best].sum(axis=1)
        chosen = _machines_on(states, best[int(switched.argmin())])
        min_on.record(current, chosen)
        on.append(chosen)
        current = chosen
    on = _without_short_pauses(problem, on)
    while hold_steps > 0 and (held := hold_on(on, fleet, hold_steps, repeats=repeats)) != on:
        on = _without_short_pauses(problem, held)  # a shortened pause may now be too short
    return Saving(name="off-line, each step", schedule=schedule_with_energy(problem, on, repeats=repeats))


def fewest_joules(
    problem: ClusterProblem,
    fleet: Sequence[int],
    *,
    payback_s: float = 0.0,
    min_on_s: float = 0.0,
    repeats: bool = False,
) -> Saving:
    """Return the schedule of least energy over all steps, boots included, by dynamic programming.

    With V_t(n) the least energy up to step t that ends in state n,

        V_t(n) = P(n, T_t) Δt + min_m [ V_{t-1}(m) + cost of switching from m to n ].

    With ``min_on_s``, a state also holds the ages of the machines of each group (:class:`AgedStates`). No schedule of
    the fleet that keeps ``min_on_s`` needs less energy, the payback of its switchings included; the name of the result
    is then "off-line, whole trace".

    In two cases this is not proven, the name is "off-line, best found", and the note gives the reason. First, if there
    are too many states with ages, the program ignores ages and then extends on-times to the minimum. Second, a typical
    day is planned as the middle one of three, and may need more than the bound that the three days give for every day
    that repeats. In both cases the function returns the best of this schedule, that of :func:`each_step`, and those of
    the on-line algorithms that know the present.

    Parameters
    ----------
    problem, fleet, min_on_s, repeats
        As for :func:`each_step`.
    payback_s : float
        Cost of a switching besides its boot, as time at the machine's full power; decisions include it, the energy of
        the result does not.

    Raises
    ------
    InfeasiblePlan
        The fleet does not carry a step.
    routecast.errors.ModelProblem
        The fleet has too many states.
    """
    states = _states_for_peak(problem, fleet)
    costs = switching_costs(problem, payback_s=payback_s, ahead=True)
    hold_steps = steps_of(min_on_s, problem.step_s) - 1
    loads = len(problem.traffic_bps) * (_REPEATED_DAYS if repeats else 1)
    is_aged = hold_steps > 0 and is_tractable(fleet, hold_steps, loads)
    graph = AgedStates(states, fleet, hold_steps, costs) if is_aged else _FreeStates(states, fleet, costs)
    path, bound_j = _cheapest_path(problem, states, graph, repeats=repeats)
    on = hold_on(path, fleet, hold_steps, repeats=repeats)
    note = ""
    if hold_steps > 0 and not is_aged:
        note = (
            f"with a minimum on-time of {hold_steps + 1} steps the fleet has {count_aged_states(fleet, hold_steps):,} "
            "states, too many to evaluate; a schedule of less energy may exist"
        )
    elif repeats and _weighted_j(problem, on, costs, repeats=True) > bound_j * (1.0 + 1e-7):
        note = "it is not proven that no other repeating day needs less energy"
    if note:
        others = [each_step(problem, fleet, min_on_s=min_on_s, repeats=repeats)]
        rules: tuple[Literal["worth", "fewest"], ...] = ("worth", "fewest")
        others += [online(problem, fleet, SavingRules(rule=rule, min_on_s=min_on_s)) for rule in rules]
        schedules = [hold_on(saving.schedule.on, fleet, hold_steps, repeats=repeats) for saving in others]
        on = min(on, *schedules, key=lambda schedule: _weighted_j(problem, schedule, costs, repeats=repeats))
    return Saving(
        name="off-line, best found" if note else "off-line, whole trace",
        schedule=schedule_with_energy(problem, on, repeats=repeats),
        note=note,
    )


class _FreeStates:
    """The states of a fleet without a minimum on-time, and the transitions between them."""

    def __init__(self, states: FleetStates, fleet: Sequence[int], costs: SwitchingCosts) -> None:
        self.rows = np.arange(len(states.on), dtype=np.int64)
        self.first = np.zeros(len(states.on))
        self._on, self._costs = states.on, costs
        self._shape = [machines + 1 for machines in fleet]

    def forward(self, values: Floats) -> Floats:
        return cheapest_arrival(values, self._shape, self._costs)

    def backward(self, before: npt.NDArray[np.float32], position: int) -> int:
        return int((before + self._costs.of_change(self._on[position] - self._on)).argmin())


def _cheapest_path(
    problem: ClusterProblem, states: FleetStates, graph: AgedStates | _FreeStates, *, repeats: bool
) -> tuple[OnByStep, float]:
    """Return the cheapest path through all steps, and a lower bound on the energy of any repeating day, J (else 0).

    If a day of energy E repeats from state x, V_k(x) <= V_{k-1}(x) + E. So E is at least the least rise of V in a day.
    """
    steps = len(problem.traffic_bps)
    values, low_j = graph.first, 0.0
    values_by_step: list[npt.NDArray[np.float32]] = []
    ends_j: list[Floats] = []
    for load_bps in problem.traffic_bps * (_REPEATED_DAYS if repeats else 1):
        draw = np.where(states.carrying(load_bps), states.power_w(load_bps), np.inf)
        values = (graph.forward(values) if values_by_step else values) + draw[graph.rows] * problem.step_s
        least = float(values.min())
        low_j += least
        values = values - least  # small numbers keep their precision in 32 bits
        values_by_step.append(values.astype(np.float32))
        if len(values_by_step) % steps == 0:
            ends_j.append(values + low_j)
    position = int(values_by_step[-1].argmin())
    path = [position]
    for before in reversed(values_by_step[:-1]):
        position = graph.backward(before, position)
        path.append(position)
    path.reverse()
    day = path[steps : 2 * steps] if repeats else path
    bounds_j = [0.0]
    for before_j, after_j in pairwise(ends_j):
        reachable = np.isfinite(after_j)
        bounds_j.append(float((after_j[reachable] - before_j[reachable]).min()))
    return [_machines_on(states, graph.rows[position]) for position in day], max(bounds_j)


def _weighted_j(problem: ClusterProblem, on: Sequence[Sequence[int]], costs: SwitchingCosts, *, repeats: bool) -> float:
    """Return the energy of a schedule, the costs of its switchings included, J."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    return float(schedule_power_w(problem, on).sum()) * problem.step_s + float(costs.of_change(change).sum())


def _states_for_peak(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    states = fleet_states(problem, fleet)
    peak_bps = max(problem.traffic_bps)
    max_bps = float(states.capacity_bps.max())
    if not states.carrying(peak_bps).any():
        without = f" without the {problem.spare} largest" if problem.spare else ""
        message = (
            f"the fleet routes {format_bps(max_bps)}{without}, the peak is {format_bps(peak_bps)}: "
            f"{format_bps(peak_bps - max_bps)} are missing"
        )
        raise InfeasiblePlan("fleet", max_bps, peak_bps, message)
    return states


def _machines_on(states: FleetStates, row: int | np.intp) -> tuple[int, ...]:
    return tuple(int(machines) for machines in states.on[row])


def _without_short_pauses(problem: ClusterProblem, on: OnByStep) -> OnByStep:
    """Return the schedule in which machines stay on in pauses that are shorter than their boot."""
    table = np.asarray(on, dtype=np.int64)
    for group, machines in enumerate(problem.groups):
        short_steps = steps_of(machines.boot_s, problem.step_s) - 1  # longest pause that is too short
        if short_steps > 0:
            column = table[:, group]
            # A step lies in such a pause when more machines are on both before it and after it.
            before = [
                np.concatenate([np.full(d, column[0]), column[:-d]])[: len(column)] for d in range(1, short_steps + 1)
            ]
            after = [
                np.concatenate([column[d:], np.full(d, column[-1])])[-len(column) :] for d in range(1, short_steps + 1)
            ]
            filled = column.copy()
            for left in range(1, short_steps + 1):
                for right in range(1, short_steps + 2 - left):
                    filled = np.maximum(filled, np.minimum(before[left - 1], after[right - 1]))
            table[:, group] = filled
    return [tuple(row) for row in table.tolist()]
