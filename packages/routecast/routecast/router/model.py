"""The router as data: task units over pools of resources (the three planes of Meyer et al. 2014, sec. IV-C).

Every evaluator works on a :class:`RouterModel`. It is plain, frozen data: its construction runs
:func:`routecast.router.check.check_model`, and an evaluation never changes it.

::

      ports in        processing plane (TaskUnit)            ports out
     ┌───────┐     ┌────────────┐  route   ┌────────┐       ┌───────┐
     │ Port 0│────►│distributor │──by rss─►│ core 0 │──────►│ Port 1│
     └───────┘     └────────────┘          └───┬────┘       └───────┘
                                               │ needs
                     management plane:   ResourceManager (policy)
                     resource plane:     ResourcePool "cpu" [unit 0, unit 1, …]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from routecast.router.check import check_model
from routecast.router.parts import (
    SLICED,
    Activation,
    ActivationKind,
    Contention,
    Interruptions,
    NamedLaw,
    Need,
    PerformanceState,
    Policy,
    PolicyKind,
    PollDiscipline,
    Port,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    RouteKind,
    ServiceCost,
    SleepState,
    TaskUnit,
    Variation,
    WeightedLaw,
)

__all__ = [
    "SLICED",
    "Activation",
    "ActivationKind",
    "Contention",
    "Interruptions",
    "NamedLaw",
    "Need",
    "PerformanceState",
    "Policy",
    "PolicyKind",
    "PollDiscipline",
    "Port",
    "PowerDraw",
    "RandomTime",
    "ResourcePool",
    "Route",
    "RouteKind",
    "RouterModel",
    "ServiceCost",
    "SleepState",
    "TaskUnit",
    "Variation",
    "WeightedLaw",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterModel:
    """A router: ports, task units and resource pools, as in the picture of the module.

    Raises
    ------
    routecast.errors.ModelProblem
        With all contradictions that :func:`routecast.router.check.check_model` finds.
    """

    name: str
    ports: tuple[Port, ...]
    tasks: tuple[TaskUnit, ...]
    pools: tuple[ResourcePool, ...] = ()

    def __post_init__(self) -> None:
        check_model(self)

    def task(self, name: str) -> TaskUnit:
        """Return the task unit of that name (KeyError if there is none)."""
        return _named(self.tasks, name)

    def pool(self, name: str) -> ResourcePool:
        """Return the pool of that name (KeyError if there is none)."""
        return _named(self.pools, name)

    def port(self, name: str) -> Port:
        """Return the port of that name (KeyError if there is none)."""
        return _named(self.ports, name)


_T = TypeVar("_T", TaskUnit, ResourcePool, Port)


def _named(parts: tuple[_T, ...], name: str) -> _T:
    for part in parts:
        if part.name == name:
            return part
    raise KeyError(name)
