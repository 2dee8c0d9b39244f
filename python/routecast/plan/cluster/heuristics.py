"""Designs without a program over the whole day (Li 2012, sec. 8.2.2, 8.2.3 and 8.3.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from routecast.plan.cluster.dispatch import Dispatcher
from routecast.plan.cluster.infeasible import check
from routecast.plan.cluster.least_budget import check_budget, price_of
from routecast.plan.cluster.model import ClusterProblem, Design, MachineGroup
from routecast.plan.cluster.step_program import solve_step

__all__ = ["design_i", "design_ii", "design_iii", "design_iv"]


def design_i(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity for their price, as many as the peak needs."""
    return _greedy("Design-I", problem, lambda group: _ratio(group.capacity_bps, group.price))


def design_ii(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity, as many as the peak needs."""
    return _greedy("Design-II", problem, lambda group: group.capacity_bps)


def design_iii(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity for their power, as many as the peak needs."""
    return _greedy("Design-III", problem, lambda group: _ratio(group.capacity_bps, group.power_w))


def design_iv(problem: ClusterProblem) -> Design:
    """Return the locally optimal design: (8.1)-(8.8) with the peak as the only step.

    First the least power at the peak within the budget, then the least price at that power (to 1e-9).

    Raises
    ------
    InfeasiblePlan
        No fleet within the budget, or of the machines that can be had, carries the peak.
    ModelProblem
        A field is out of range.
    """
    begin = time.perf_counter()
    check(problem)
    check_budget(problem)
    dispatcher = Dispatcher(problem)
    peak_bps = max(problem.traffic_bps)
    limits = dispatcher.most
    first = solve_step(dispatcher.arrays, limits, peak_bps, problem.spare, budget=problem.budget)
    assert first is not None, "the budget was checked to buy a fleet that carries the peak"
    second = solve_step(
        dispatcher.arrays,
        limits,
        peak_bps,
        problem.spare,
        minimise="price",
        budget=problem.budget,
        most_w=first.value * (1.0 + 1e-9),
    )
    fleet = (second or first).counts
    return _design("Design-IV", problem, dispatcher, fleet, begin)


def _ratio(capacity_bps: float, cost: float) -> float:
    return capacity_bps / cost if cost > 0.0 else math.inf


def _greedy(name: str, problem: ClusterProblem, merit: Callable[[MachineGroup], float]) -> Design:
    """Take N = ⌈T_max / R⌉ machines (8.9) of the best group, plus the spares.

    Where fewer can be had the next best group goes on. The budget is not read, as in the thesis. Of groups of equal
    merit the one of more capacity comes first.
    """
    begin = time.perf_counter()
    check(problem)
    dispatcher = Dispatcher(problem)
    peak_bps = max(problem.traffic_bps)
    order = sorted(
        range(len(problem.groups)),
        key=lambda k: (-merit(problem.groups[k]), -problem.groups[k].capacity_bps, k),
    )
    fleet = [0] * len(problem.groups)
    for group in order:
        # As many as are still missing: what is carried rises with each, so they are found by halving.
        most = int(dispatcher.most[group])
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            fleet[group] = middle
            if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
                high = middle
            else:
                low = middle + 1
        fleet[group] = low
        if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
            break
    return _design(name, problem, dispatcher, tuple(fleet), begin)


def _design(
    name: str, problem: ClusterProblem, dispatcher: Dispatcher, fleet: tuple[int, ...], begin: float
) -> Design:
    return Design(
        name=name,
        fleet=fleet,
        price=price_of(problem, fleet),
        schedule=dispatcher.schedule(fleet),
        bound_j=dispatcher.energy_j() * (1.0 - 1e-9),
        seconds=time.perf_counter() - begin,
    )
