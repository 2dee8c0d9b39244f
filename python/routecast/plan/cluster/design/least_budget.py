"""The cheapest fleet that carries the peak at all."""

from __future__ import annotations

from dataclasses import replace

from routecast.plan.cluster.infeasible import InfeasiblePlan, check
from routecast.plan.cluster.model import ClusterProblem
from routecast.plan.cluster.step.dispatch import Dispatcher
from routecast.quantity import format_bps

__all__ = ["check_budget", "least_budget", "price_of"]


def least_budget(problem: ClusterProblem) -> tuple[float, tuple[int, ...]]:
    """Return the least price of a fleet that carries every step, spares kept, and that fleet.

    Any fleet that carries the peak carries the lower steps too, so this is the cheapest cover of the peak, with prices
    in the place of powers. The problem's own budget is not read.

    Raises
    ------
    InfeasiblePlan
        The machines that can be had do not carry the peak.
    ModelProblem
        A field is out of range.
    """
    check(problem)
    priced = replace(
        problem, groups=tuple(replace(group, power_w=group.price, idle_w=None) for group in problem.groups)
    )
    fleet = Dispatcher(priced, [max(problem.traffic_bps)]).schedule().on[0]
    return (price_of(problem, fleet), fleet)


def price_of(problem: ClusterProblem, fleet: tuple[int, ...]) -> float:
    """Return Σ C_k N_k."""
    return sum(group.price * count for group, count in zip(problem.groups, fleet, strict=True))


def check_budget(problem: ClusterProblem) -> None:
    """Refuse a budget that buys no fleet that carries the peak.

    Raises
    ------
    InfeasiblePlan
        With the least budget that does.
    """
    if problem.budget is None:
        return
    least, fleet = least_budget(problem)
    if problem.budget < least * (1.0 - 1e-12):
        machines = ", ".join(
            f"{count} × {group.name}" for group, count in zip(problem.groups, fleet, strict=True) if count
        )
        raise InfeasiblePlan(
            "budget",
            problem.budget,
            least,
            f"the budget {problem.budget:.10g} is {least - problem.budget:.10g} too small: the cheapest fleet that"
            f" carries the peak of {format_bps(max(problem.traffic_bps))} is {machines} for {least:.10g}; raise the"
            f" budget to {least:.10g} or more",
        )
