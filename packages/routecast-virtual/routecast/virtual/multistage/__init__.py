"""The multistage router: load balancers and back-end routers on servers, virtual or not (Li 2012, ch. 1, 3, 4)."""

from routecast.virtual.multistage.builder import multistage_router
from routecast.virtual.multistage.check import Balancing, Control, Interconnect
from routecast.virtual.multistage.failures import (
    TAKEOVER_S,
    Absence,
    balancers,
    elements,
    events_of,
    failed,
    failover,
    planned_absence,
    switched,
    with_takeovers,
)

__all__ = [
    "TAKEOVER_S",
    "Absence",
    "Balancing",
    "Control",
    "Interconnect",
    "balancers",
    "elements",
    "events_of",
    "failed",
    "failover",
    "multistage_router",
    "planned_absence",
    "switched",
    "with_takeovers",
]
