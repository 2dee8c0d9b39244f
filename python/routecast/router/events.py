"""What happens to a router during a trial: task units that fail and come back, routes that change.

An event is no part of the model, which says what the router is; it is part of the question: what happens at this load,
for this long, *if*? The simulator answers it; a closed form knows no transients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from routecast.router.model import Route

__all__ = ["Event", "Outage", "Reroute"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A task unit is down: it loses what it holds, waiting or in service, and what comes until it is up again.

    Frames lost so are dropped frames of the task unit (S12). A task unit that is down asks for no resources.

    Parameters
    ----------
    task : str
    from_s : float
        Seconds since the start of the trial.
    until_s : float
        Up again from then on; infinite: not within this trial.
    """

    task: str
    from_s: float
    until_s: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Reroute:
    """From an instant on, frames that a task unit has served go elsewhere.

    Parameters
    ----------
    task : str
    at_s : float
        Seconds since the start of the trial.
    route : Route
        To task units and ports of the model; no cycle may arise.
    """

    task: str
    at_s: float
    route: Route


Event = Outage | Reroute
