"""Power that a given set of machines draws at a given load."""

from __future__ import annotations

import numpy as np

from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.step.cover import Floats, Ints
from routecast.quantity.schema import field, value

__all__ = ["GroupArrays", "group_arrays", "power_w"]


@value
class GroupArrays:
    """The groups of a problem as arrays of shape (groups,)."""

    # R_k, P_k, C_k.
    capacity_bps: Floats
    power_w: Floats
    price: Floats
    idle_w: Floats = field("Power without load, W; P_k where a group draws the same at any load")
    slope_j: Floats = field("Energy of one bit on top of ``idle_w``, J")


def group_arrays(problem: ClusterProblem) -> GroupArrays:
    """Return the groups as arrays."""
    capacity = np.array([group.capacity_bps for group in problem.groups])
    power = np.array([group.power_w for group in problem.groups])
    idle = np.array([group.unloaded_w for group in problem.groups])
    return GroupArrays(
        capacity_bps=capacity,
        power_w=power,
        price=np.array([group.price for group in problem.groups]),
        idle_w=idle,
        slope_j=(power - idle) / capacity,
    )


def power_w(arrays: GroupArrays, counts: Ints, loads_bps: Floats) -> Floats:
    """Return Σ idle n plus the energy of the load, which goes to the machines of the least slope first.

    Parameters
    ----------
    arrays : GroupArrays
    counts : array of shape (loads, groups)
        Machines that are on; they are taken to be able to carry the load.
    loads_bps : array of shape (loads,)
    """
    total = counts @ arrays.idle_w
    left = loads_bps.copy()
    for group in np.argsort(arrays.slope_j, kind="stable"):
        share = np.minimum(left, counts[:, group] * arrays.capacity_bps[group])
        total = total + arrays.slope_j[group] * share
        left = left - share
    return np.asarray(total, dtype=np.float64)
