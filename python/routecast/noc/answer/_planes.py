"""Allocations of a file's flows to its planes, by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from routecast.noc.file import NocCase, PlanesTable
from routecast.noc.planes import li2012, search
from routecast.noc.planes.candidates import Freedom
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.policies import routes

_PRINTED = {"balance": li2012.balance, "mini": li2012.mini, "four_phase": li2012.four_phase}


def allocate(
    name: str, case: NocCase, demand: NDArray[np.float64], *, progress: search.Progress | None = None
) -> Allocation:
    """Return the allocation of a name for a demand between routers.

    ``progress`` is told the best power of a search and what no allocation is below. Ctrl-C ends a search with the
    best until then.

    Raises RoutecastError: the planes cannot carry the demand, or their routing splits flows.
    """
    table = case.planes or PlanesTable()
    scalings = (case.scaling,) * len(case.widths)
    if name == "search":
        freedom = Freedom(table.freedom)
        return search.allocate(
            case.topology, demand, scalings, widths=case.widths, freedom=freedom, seed=case.seed, progress=progress
        )
    within = case.xy if table.routing == "xy" else routes(table.routing, case.topology, demand=demand, seed=case.seed)
    planes = len(case.widths)
    return _PRINTED[name](case.topology, demand, scalings, routes=(within,) * planes, widths=case.widths)
