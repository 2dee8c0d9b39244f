"""Designs without a program over the whole day (Li 2012, sec. 8.2.2, 8.2.3 and 8.3.2)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from routecast.plan.cluster.design.fleet_energy import FleetEnergy
from routecast.plan.cluster.infeasible import InfeasiblePlan, check
from routecast.plan.cluster.model import ClusterProblem, Design, MachineGroup
from routecast.plan.cluster.step.dispatch import Dispatcher
from routecast.plan.cluster.step.program import solve_step
from routecast.quantity import format_bps

__all__ = [
    "check_budget",
    "design_i",
    "design_ii",
    "design_iii",
    "design_iv",
    "least_budget",
    "price_of",
    "simple_fleets",
]


# The cheapest fleet that carries the peak at all.


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


def design_i(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity for their price, as many as the peak needs."""
    return _design("Design-I", problem, _per_price)


def design_ii(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity, as many as the peak needs."""
    return _design("Design-II", problem, _capacity)


def design_iii(problem: ClusterProblem) -> Design:
    """Return the machines of most capacity for their power, as many as the peak needs."""
    return _design("Design-III", problem, _per_watt)


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
    check_budget(problem)
    return _design("Design-IV", problem, None)


def simple_fleets(problem: ClusterProblem) -> Iterator[tuple[int, ...]]:
    """Yield the fleets of the four designs, without their schedules."""
    dispatcher = Dispatcher(problem)
    for merit in (_per_price, _capacity, _per_watt):
        yield _greedy(problem, dispatcher, merit)
    yield _locally_optimal(problem, dispatcher)


def _per_price(group: MachineGroup) -> float:
    return group.capacity_bps / group.price if group.price > 0.0 else math.inf


def _capacity(group: MachineGroup) -> float:
    return group.capacity_bps


def _per_watt(group: MachineGroup) -> float:
    return group.capacity_bps / group.power_w if group.power_w > 0.0 else math.inf


def _locally_optimal(problem: ClusterProblem, dispatcher: Dispatcher) -> tuple[int, ...]:
    peak_bps = max(problem.traffic_bps)
    first = solve_step(dispatcher.arrays, dispatcher.most, peak_bps, problem.spare, budget=problem.budget)
    assert first is not None, "the budget was checked to buy a fleet that carries the peak"
    second = solve_step(
        dispatcher.arrays,
        dispatcher.most,
        peak_bps,
        problem.spare,
        minimise="price",
        budget=problem.budget,
        most_w=first.value * (1.0 + 1e-9),
    )
    return (second or first).counts


def _greedy(problem: ClusterProblem, dispatcher: Dispatcher, merit: Callable[[MachineGroup], float]) -> tuple[int, ...]:
    """Take N = ⌈T_max / R⌉ machines (8.9) of the best group, plus the spares.

    Where fewer can be had the next best group goes on. The budget is not read, as in Li (2012). Of groups of equal
    merit the one of more capacity comes first.
    """
    peak_bps = max(problem.traffic_bps)
    order = sorted(
        range(len(problem.groups)), key=lambda k: (-merit(problem.groups[k]), -problem.groups[k].capacity_bps, k)
    )
    fleet = [0] * len(problem.groups)
    for group in order:
        # As many as are still missing: what is carried rises with each, so they are found by halving.
        low, high = 0, int(dispatcher.most[group])
        while low < high:
            fleet[group] = (low + high) // 2
            if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
                high = fleet[group]
            else:
                low = fleet[group] + 1
        fleet[group] = low
        if dispatcher.carried_bps(fleet) >= peak_bps * (1.0 - 1e-12):
            break
    return tuple(fleet)


def _design(name: str, problem: ClusterProblem, merit: Callable[[MachineGroup], float] | None) -> Design:
    """Make a fleet, by ``merit`` or locally optimal, and its schedule."""
    begin = time.perf_counter()
    check(problem)
    dispatcher = Dispatcher(problem)
    fleet = _locally_optimal(problem, dispatcher) if merit is None else _greedy(problem, dispatcher, merit)
    bound_j = FleetEnergy(dispatcher).low_j(dispatcher.most.tolist())
    return Design(
        name=name,
        fleet=fleet,
        price=price_of(problem, fleet),
        schedule=dispatcher.schedule(fleet),
        bound_j=bound_j * (1.0 - 1e-9),
        seconds=time.perf_counter() - begin,
    )
