"""The router as data, and its builders."""

from routecast.router.check import check_model
from routecast.router.check_load import check_load
from routecast.router.events import Event, Outage, Reroute
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    Need,
    PerformanceState,
    Policy,
    Port,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    SleepState,
    TaskUnit,
    WeightedLaw,
)
from routecast.router.multicore import Distribution, multicore
from routecast.router.softirq import softirq
from routecast.router.station import station, tandem

__all__ = [
    "Activation",
    "Contention",
    "Distribution",
    "Event",
    "Interruptions",
    "Need",
    "Outage",
    "PerformanceState",
    "Policy",
    "Port",
    "PowerDraw",
    "RandomTime",
    "Reroute",
    "ResourcePool",
    "Route",
    "RouterModel",
    "ServiceCost",
    "SleepState",
    "TaskUnit",
    "WeightedLaw",
    "check_load",
    "check_model",
    "multicore",
    "softirq",
    "station",
    "tandem",
]
