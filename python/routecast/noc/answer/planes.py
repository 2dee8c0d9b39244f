"""Allocations of a file's flows to its planes, by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.case import NocCase
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.policies import routes

__all__ = ["allocate"]


def allocate(name: str, case: NocCase, demand: NDArray[np.float64]) -> Allocation:
    """Return the allocation of a name for a demand between routers.

    Raises
    ------
    RoutecastError
        The planes cannot carry the demand, or their routing splits flows.
    """
    from routecast.noc.planes import thesis

    scalings = (case.scaling,) * len(case.widths)
    policy = "xy" if case.planes is None else case.planes.routing
    within = case.xy if policy == "xy" else routes(policy, case.topology, demand=demand, seed=case.seed)
    if name == "search":
        from routecast.noc.planes.search import search

        return search(case.topology, demand, scalings, widths=case.widths)
    makers = {"balance": thesis.balance, "mini": thesis.mini, "four_phase": thesis.four_phase}
    return makers[name](
        case.topology, demand, scalings, routes=(within,) * len(case.widths), widths=case.widths
    )
