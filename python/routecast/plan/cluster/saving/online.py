"""Saving on-line: each step's machines from those of the step before, without what only later steps tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from routecast.load.series import DAY_S
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.saving.fleet_states import FleetStates, fleet_states
from routecast.plan.cluster.saving.model import Saving, SavingRules, expected_bps
from routecast.plan.cluster.saving.switching import (
    SwitchingCosts,
    Waits,
    cheapest_way,
    metered,
    steps_of,
    switching_costs,
)

__all__ = ["online", "traffic_missed"]

RANGE = 20.0
"""The payback is tuned from a twentieth to twenty times of what was given."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


def online(
    problem: ClusterProblem, fleet: Sequence[int], rules: SavingRules | None = None, *, repeats: bool = False
) -> Saving:
    """Update the machines that are on from step to step.

    ``rule = "fewest"`` is the differential algorithm (Li 2012, sec. 8.1): if the machines that are on do not carry
    the load, the fewest that do are switched on, and of these the cheapest; otherwise those are switched off that save
    the most, the fewest if several save the same. What is not needed is never replaced by something smaller.

    ``rule = "worth"`` is the work function algorithm (Borodin, Linial & Saks, An optimal on-line algorithm for metrical
    task systems, J. ACM 39(4), 1992): W_t(n) is the least energy of the past, switching costs included, that ends in
    state n; the state with the least W_t(n) plus the cost of going there comes next. So a machine is exchanged once
    keeping it has cost more than exchanging it, and not at the first step that would gain. What an exchange must be
    worth follows from how much more energy than off-line may be spent (``tolerance_ratio``): off-line's energy of the
    steps so far is known on-line as well.

    Machines boot within the step; what they cannot route while they do is missed (:func:`traffic_missed`).

    Parameters
    ----------
    problem : ClusterProblem
    fleet : sequence of int
        N_k.
    rules : SavingRules, optional
    repeats : bool
        Whether the trace is a typical day, whose first step follows its last. Only what is counted depends on it.

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
            work = cheapest_way(work, shape, costs) + np.where(carrying, power, np.inf) * problem.step_s
            work -= work.min()
        allowed = carrying & (states.on >= np.asarray(waits.least_on())).all(axis=1)
        if here is None:
            after = int(np.where(allowed, power, np.inf).argmin())
        elif rules.rule == "worth":
            after = _worth(states, work, here, allowed, costs)
        else:
            after = _fewest(states, power, here, allowed)
        waits.record(None if here is None else states.on[here].tolist(), states.on[after].tolist())
        tuned.spent(float(power[after]), float(power[carrying].min()))
        rows.append(after)
        here = after
    on = [tuple(int(n) for n in states.on[row]) for row in rows]
    steps, ratio = traffic_missed(problem, on)
    return Saving(
        name=f"on-line, {rules.rule}" + _known(rules),
        schedule=metered(problem, on, repeats=repeats, ahead=False),
        missed_steps=steps,
        missed_ratio=ratio,
    )


class _TunedPayback:
    """The payback that spends a given part more energy than off-line; boots are not counted."""

    def __init__(self, rules: SavingRules, step_s: float) -> None:
        self.payback_s = rules.payback_s
        self._range_s = (rules.payback_s / RANGE, rules.payback_s * RANGE)
        self._tolerance = rules.tolerance_ratio
        self._factor = 2.0 ** (step_s / DAY_S) if rules.tolerance_ratio else 1.0
        self._spent = self._least = 0.0

    def spent(self, power_w: float, least_w: float) -> None:
        """Take a step's power and the least that would have done, and tune the payback for the next."""
        self._spent += power_w
        self._least += least_w
        is_within = self._spent <= (1.0 + self._tolerance) * self._least
        payback_s = self.payback_s * (self._factor if is_within else 1.0 / self._factor)
        self.payback_s = min(max(payback_s, self._range_s[0]), self._range_s[1])


def _known(rules: SavingRules) -> str:
    """Return what to add to an algorithm's name if it does not know the present alone."""
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
    """Return in how many steps, and which share of all traffic, finds no machine that is on and has booted.

    A machine that is switched on at the beginning of a step routes ``boot_s`` later. All machines that are on route,
    those of ``spare`` included.
    """
    table = np.asarray(on, dtype=np.int64)
    traffic = np.asarray(problem.traffic_bps, dtype=np.float64)
    whole: list[npt.NDArray[np.floating]] = []
    partly: list[npt.NDArray[np.floating]] = []
    shares: list[float] = []
    for group, machines in enumerate(problem.groups):
        steps, share = divmod(machines.boot_s / problem.step_s, 1.0)
        booted = _least_of_last(table[:, group], int(steps))
        whole.append(booted * machines.capacity_bps)
        partly.append(_least_of_last(table[:, group], int(steps) + 1) * machines.capacity_bps)
        shares.append(share)
    missed = np.zeros(len(traffic))
    cuts = sorted({0.0, 1.0, *shares})
    for begin, end in pairwise(cuts):  # of a step, between which the same machines route
        capacity = sum(partly[k] if shares[k] > begin else whole[k] for k in range(len(shares)))
        missed += (end - begin) * np.maximum(traffic * (1.0 - 1e-9) - capacity, 0.0)
    total = float(traffic.sum())
    return int(np.count_nonzero(missed > 0.0)), float(missed.sum()) / total if total > 0.0 else 0.0


def _least_of_last(column: npt.NDArray[np.int64], steps: int) -> npt.NDArray[np.int64]:
    """Return the least of each step and the ``steps`` before it; the first step has always been as it is."""
    least = column
    for back in range(1, min(steps, len(column) - 1) + 1):
        least = np.minimum(least, np.concatenate([np.full(back, column[0]), column[:-back]]))
    return least
