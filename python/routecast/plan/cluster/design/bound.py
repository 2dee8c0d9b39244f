"""The least energy that any fleet can reach: every step takes what suits it best (Li 2012, (8.10)-(8.11))."""

from __future__ import annotations

from routecast.plan.cluster.model import ClusterProblem, Schedule
from routecast.plan.cluster.step.dispatch import schedule

__all__ = ["optimal_bound"]


def optimal_bound(problem: ClusterProblem) -> Schedule:
    """Return the cheapest machines of every step, with no budget and no fleet common to the steps.

    Numbers of machines that can be had, and spares, are kept to.

    Raises
    ------
    InfeasiblePlan
        The machines that can be had do not carry the peak.
    ModelProblem
        A field is out of range.
    """
    return schedule(problem)
