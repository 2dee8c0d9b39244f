"""Saving with the whole trace known: step by step (Li 2012, sec. 8.1, off-line), and over all steps at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routecast.plan.cluster.infeasible import InfeasiblePlan
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.saving.fleet_states import FleetStates, fleet_states
from routecast.plan.cluster.saving.model import Saving
from routecast.plan.cluster.saving.switching import Waits, cheapest_way, metered, steps_of, switching_costs
from routecast.quantity import format_bps

__all__ = ["each_step", "fewest_joules"]

On = list[tuple[int, ...]]


def each_step(
    problem: ClusterProblem, fleet: Sequence[int], *, min_on_s: float = 0.0, repeats: bool = False
) -> Saving:
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
    waits = Waits(len(fleet), steps_of(min_on_s, problem.step_s) - 1)
    on: On = []
    here: tuple[int, ...] | None = None
    for load_bps in problem.traffic_bps:
        allowed = states.carrying(load_bps) & (states.on >= np.asarray(waits.least_on())).all(axis=1)
        power = np.where(allowed, states.power_w(load_bps), np.inf)
        best = np.flatnonzero(power <= power.min() * (1.0 + 1e-12))
        switched = (
            np.abs(states.on[best] - np.asarray(here)).sum(axis=1) if here else states.on[best].sum(axis=1)
        )
        after = _state(states, best[int(switched.argmin())])
        waits.record(here, after)
        on.append(after)
        here = after
    return Saving(
        name="off-line, each step",
        schedule=metered(problem, _without_short_pauses(problem, on), repeats=repeats),
    )


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

    No schedule of the fleet needs less, unless ``min_on_s`` is given: machines are then left on for that long
    afterwards. A typical day is planned as the middle one of three.

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
    shape = [machines + 1 for machines in fleet]
    steps = len(problem.traffic_bps)
    loads = problem.traffic_bps * (3 if repeats else 1)
    values = np.zeros(len(states.on))
    kept: list[npt.NDArray[np.float32]] = []
    for load_bps in loads:
        draw = np.where(states.carrying(load_bps), states.power_w(load_bps), np.inf)
        values = cheapest_way(values, shape, costs) + draw * problem.step_s
        values -= values.min()  # only differences matter; small numbers keep their joules in 32 bits
        kept.append(values.astype(np.float32))
    row = int(kept[-1].argmin())
    path = [row]
    for before in reversed(kept[:-1]):
        # from m to here, as seen from here: what was switched on is to be switched off
        way = np.maximum(states.on[row] - states.on, 0) @ np.array(costs.on_j)
        way = way + np.maximum(states.on - states.on[row], 0) @ np.array(costs.off_j)
        row = int((before + way).argmin())
        path.append(row)
    path.reverse()
    on = [_state(states, one) for one in (path[steps : 2 * steps] if repeats else path)]
    on = _kept_on(problem, on, min_on_s)
    return Saving(name="off-line, whole trace", schedule=metered(problem, on, repeats=repeats))


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


def _kept_on(problem: ClusterProblem, on: On, min_on_s: float) -> On:
    """Leave machines on that are younger than the minimum on-time."""
    steps = steps_of(min_on_s, problem.step_s) - 1
    if steps <= 0:
        return on
    waits = Waits(len(problem.groups), steps)
    kept: On = []
    for wanted in on:
        after = tuple(max(pair) for pair in zip(wanted, waits.least_on(), strict=True))
        waits.record(kept[-1] if kept else None, after)
        kept.append(after)
    return kept


def _without_short_pauses(problem: ClusterProblem, on: On) -> On:
    """Leave machines on that could not boot before they are needed again."""
    table = np.asarray(on, dtype=np.int64)
    for group, machines in enumerate(problem.groups):
        most = steps_of(machines.boot_s, problem.step_s) - 1  # steps that are too few for a boot
        if most > 0:
            column = table[:, group]
            # A step lies in a pause when, up to ``most`` steps further, there are more machines on both sides of it.
            before = [
                np.concatenate([np.full(d, column[0]), column[:-d]])[: len(column)]
                for d in range(1, most + 1)
            ]
            after = [
                np.concatenate([column[d:], np.full(d, column[-1])])[-len(column) :]
                for d in range(1, most + 1)
            ]
            filled = column.copy()
            for left in range(1, most + 1):
                for right in range(1, most + 2 - left):
                    filled = np.maximum(filled, np.minimum(before[left - 1], after[right - 1]))
            table[:, group] = filled
    return [tuple(int(n) for n in row) for row in table]
