"""What a search for a mapping found, and what bounds every search."""

from __future__ import annotations

import math
from dataclasses import dataclass

from routecast.errors import RoutecastError
from routecast.load.offered import line_rate_pps
from routecast.plan.placement.columns import Column
from routecast.plan.placement.model import PlacementProblem
from routecast.plan.placement.server_load import ServerLoads

__all__ = ["Found", "TooManyKinds", "most_by_work"]


class TooManyKinds(RoutecastError):
    """So many elements differ that what may be on a server cannot be listed.

    Attributes
    ----------
    name : str
        What should be placed.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name}: too many elements differ to look for the fewest servers, watts or the least price:"
            " give servers fewer slots, let elements of one kind be one element with a count, or ask for the most"
            " throughput"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best mapping.

    Parameters
    ----------
    servers : tuple of (Column, int)
        What is on how many servers.
    value : float
        What is maximised or minimised.
    bound : float
        No mapping is better than that.
    seconds : float
    is_interrupted : bool
    """

    servers: tuple[tuple[Column, int], ...]
    value: float
    bound: float
    seconds: float = 0.0
    is_interrupted: bool = False

    @property
    def gap_ratio(self) -> float:
        """How far from the best the mapping can be, as part of it."""
        if self.value == self.bound:
            return 0.0
        low, high = sorted((self.value, self.bound))
        return high / low - 1.0 if low > 0.0 else math.inf


def most_by_work(problem: PlacementProblem, loads: ServerLoads) -> float:
    """Return a load that no placement goes beyond: the least work of all elements over all cores at their fastest."""
    cores = sum(loads.cores(host.name) * host.number for host in problem.servers)
    total = sum(
        group.count * min(loads.work(host.name, group.name).total_s for host in problem.servers)
        for group in problem.elements
    )
    ports = [
        line_rate_pps(problem.outer_bps, problem.frames.mean_bytes) * group.count * group.ports / share
        for chain, share in zip(problem.chains, problem.shares, strict=True)
        for group in (problem.element(chain.stages[0]), problem.element(chain.stages[-1]))
    ]
    return min([cores / total if total > 0.0 else math.inf, *ports]) * (1.0 + 1e-9)
