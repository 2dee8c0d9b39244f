"""All that a fleet can be switched to: which capacity it has then, and what it draws.

A fleet of N_k machines has Π (N_k + 1) states n, 0 <= n_k <= N_k. The saving algorithms look at all of them at once,
as arrays with a row for each state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routecast.errors import ModelProblem, Problem
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.step.power import group_arrays
from routecast.quantity.schema import field, value

__all__ = ["MOST_STATES", "FleetStates", "fleet_states"]

Floats = npt.NDArray[np.float64]
States = npt.NDArray[np.int64]

MOST_STATES = 20_000
"""Above it, three weeks of 5-minute steps take half a gigabyte, and longer than anybody waits."""

TOLERANCE = 1e-9
"""Share of a load that may be missing: sums of capacities are rounded."""


@value
class FleetStates:
    """Every state of a fleet."""

    on: States = field("n_k: machines of each group that are on, states x groups")
    capacity_bps: Floats = field("What each state routes, without its ``spare`` largest machines, bit/s")
    fixed_w: Floats = field("What each state draws without load, W")
    filling: tuple[tuple[Floats, float], ...] = field(
        "Capacity of one group in each state and W per bit/s of its load, from the group that needs the least"
    )

    def carrying(self, load_bps: float) -> npt.NDArray[np.bool_]:
        """Return which states carry a load."""
        carry: npt.NDArray[np.bool_] = self.capacity_bps >= load_bps * (1.0 - TOLERANCE)
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

    def place(self, on: Sequence[int]) -> int:
        """Return the row of a state."""
        row = 0
        for machines, most in zip(on, self.on[-1], strict=True):
            row = row * (int(most) + 1) + machines
        return row


def fleet_states(problem: ClusterProblem, fleet: Sequence[int]) -> FleetStates:
    """Return every state of a fleet.

    Parameters
    ----------
    problem : ClusterProblem
    fleet : sequence of int
        N_k, machines of each group.

    Raises
    ------
    routecast.errors.ModelProblem
        The fleet has more than ``MOST_STATES`` states, or not a number for each group.
    """
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
    for number in sorted(range(len(groups)), key=lambda one: -capacities[one]):
        lost = np.minimum(left, on[:, number])
        usable = usable - lost * capacities[number]
        left = left - lost
    order = sorted((k for k in range(len(groups)) if slopes[k] > 0.0), key=lambda one: slopes[one])
    free = [k for k in range(len(groups)) if slopes[k] <= 0.0]
    filling = [(on[:, free] @ capacities[free], 0.0)] if free and order else []
    filling += [(on[:, k] * capacities[k], float(slopes[k])) for k in order]
    return FleetStates(on=on, capacity_bps=usable, fixed_w=on @ arrays.idle_w, filling=tuple(filling))
