"""The multistage router: load balancers and back-end routers on servers, virtual or not (Li 2012, ch. 1, 3, 4)."""

from routecast.router.multistage.builder import multistage_router
from routecast.router.multistage.check import Balancing, Control, Interconnect
from routecast.router.multistage.failures import (
    Absence,
    elements,
    events_of,
    failed,
    failover,
    planned_absence,
    switched,
)

__all__ = [
    "Absence",
    "Balancing",
    "Control",
    "Interconnect",
    "elements",
    "events_of",
    "failed",
    "failover",
    "multistage_router",
    "planned_absence",
    "switched",
]
