"""What to say when no routing carries the traffic."""

from __future__ import annotations

from routecast.errors import RoutecastError
from routecast.noc.optimum.arcs import Floats
from routecast.noc.optimum.model import PathSet
from routecast.noc.topology import Topology

__all__ = ["Overload"]

_NAMED = 12
# Nearer to 1 a factor is told by its distance from 1.
_NEAR = 1e-4


class Overload(RoutecastError):
    """No routing carries the traffic at full clock.

    Attributes
    ----------
    links
        Numbers of the links that it must cross and that are too few.
    load
        Load of the most loaded link under the best routing, in capacities; over 1.
    """

    exit_code = 1

    def __init__(self, links: tuple[int, ...], load: float, message: str) -> None:
        super().__init__(links, load, message)
        self.links = links
        self.load = load
        self.message = message

    def __str__(self) -> str:
        return self.message

    @classmethod
    def of(cls, topology: Topology, prices: Floats, load: float, paths: PathSet) -> Overload:
        """Return the error for the prices that prove it: the links of positive price are the bottleneck."""
        priced = tuple(int(link) for link in (prices > 1e-4 * prices.max()).nonzero()[0])
        named = ", ".join(topology.link_name(link) for link in priced[:_NAMED])
        if len(priced) > _NAMED:
            named += f" and {len(priced) - _NAMED} more"
        means = "no routing over shortest paths" if paths is PathSet.MINIMAL else "no routing"
        message = (
            f"{means} carries this traffic at full clock: even the best loads the links {named} with {_factor(load)} "
            f"times their capacity; at most {_factor(1 / load)} times this traffic fits, so lower the load"
        )
        return cls(priced, load, message)


def _factor(value: float) -> str:
    away = value - 1.0
    if abs(away) >= _NEAR:
        return f"{value:.6g}"
    return f"(1 {'+' if away > 0 else '-'} {abs(away):.2e})"
