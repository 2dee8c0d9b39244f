"""A good fleet within a budget, quickly: machines are swapped for others while that saves energy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from routecast.plan.cluster.design.fleet_energy import FleetEnergy

__all__ = ["improve"]

_OUT = 2
_IN = 3


def improve(
    energy: FleetEnergy, fleet: Sequence[int], budget: float, *, stop: Callable[[], bool]
) -> tuple[float, tuple[int, ...]]:
    """Return the best fleet that swaps lead to, with its energy.

    A swap takes up to two machines of one group out and puts up to three of another in. Group after group, the best
    swap that takes of it is made, until none saves energy.

    Parameters
    ----------
    energy : FleetEnergy
    fleet : sequence of int
        Where to begin; within the budget.
    budget : float
    stop : callable
        Ends the search when it returns true.
    """
    best = tuple(fleet)
    least_j = energy.high_j(best)
    idle_groups = 0
    group = 0
    while idle_groups < len(best) and not stop():
        found_j, found = least_j, best
        for candidate in _swaps(energy, best, budget, group):
            if stop():
                break
            if energy.low_j(candidate) >= found_j * (1.0 - 1e-12):
                continue
            value_j = energy.high_j(candidate)
            if value_j < found_j * (1.0 - 1e-12):
                found_j, found = value_j, candidate
        idle_groups = idle_groups + 1 if found == best else 0
        group = (group + 1) % len(best)
        least_j, best = found_j, found
    return least_j, best


def _swaps(energy: FleetEnergy, fleet: tuple[int, ...], budget: float, out: int) -> Iterator[tuple[int, ...]]:
    prices = energy.dispatcher.arrays.price.tolist()
    most = energy.dispatcher.most.tolist()
    spent = sum(price * count for price, count in zip(prices, fleet, strict=True))
    for taken in range(min(_OUT, fleet[out]) + 1):
        for put in range(len(fleet)):
            if put == out and taken:
                continue
            for added in range(1, _IN + 1):
                price = spent - taken * prices[out] + added * prices[put]
                if price > budget or fleet[put] + added > most[put]:
                    break
                swapped = list(fleet)
                swapped[out] -= taken
                swapped[put] += added
                yield tuple(swapped)
