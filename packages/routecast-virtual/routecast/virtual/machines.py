"""Servers and the machines on them: virtual machines, containers, or the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from routecast.quantity.fields import Count, Number
from routecast.quantity.schema import field, value
from routecast.router.bounds import SPEED_RATIOS
from routecast.router.model import PowerDraw, ResourcePool
from routecast.virtual.technology import Cost, Technology

__all__ = ["MAX_CORES", "MAX_PRIORITY", "MAX_VCPUS", "Cores", "Machine", "Server"]

MAX_CORES: Final = 512
"""Greatest number of cores of a server: the simulator can grant no more to threads."""

MAX_VCPUS: Final = 1024
"""Greatest number of vcpus of a machine."""

MAX_PRIORITY: Final = 99
"""Highest real-time priority of Linux's ``SCHED_FIFO`` (sched(7))."""

Cores = tuple[Count, ...]
"""Cores that a thread may use; ``()``: all of its server."""


@value
class Server:
    """A physical machine."""

    name: str = field("Name of the server")
    cores: Count = field("Number of cores", ge=1, le=MAX_CORES)
    technology: Technology = field("Technology of its machines")
    speed_ratio: Number = field(
        "Speed of a core relative to the technology's reference machine", default=1.0, within=SPEED_RATIOS
    )
    # The queues of a card interrupt its core and the cores after it in this list.
    interrupt_cores: Cores = field("Cores that its cards interrupt, card by card in turn; none: the first", default=())
    # Only where the technology's backend polls.
    switch_cores: Cores = field("Cores of its polling vSwitch, card by card in turn; none: the first", default=())
    power: PowerDraw | None = field("Watts of one core", default=None)

    def pool(self) -> ResourcePool:
        """Return its cores as a router's pool, named as the server."""
        technology = self.technology
        return ResourcePool(
            name=self.name,
            units=self.cores,
            unit_speed_ratio=() if self.speed_ratio == 1.0 else (self.speed_ratio,) * self.cores,
            policy=technology.policy,
            switch_cost_s=technology.switch_cost_s,
            migration_cost_s=technology.migration_cost_s,
            contention=technology.contention,
            power=self.power,
        )


@value
class Machine:
    """A machine that functions run in."""

    name: str = field("Name of the machine")
    server: str = field("Name of its server; may be left out where there is only one", default="")
    vcpus: Count = field("Threads that run its functions; flows are spread over them", default=1, ge=1, le=MAX_VCPUS)
    vcpu_cores: tuple[Cores, ...] = field(
        "Cores of each vcpu; the last entry holds for all further vcpus, [] is any core", default=()
    )
    backend_cores: tuple[Cores, ...] = field(
        "Cores of each backend thread, likewise; softirqs without entry run on the interrupt cores", default=()
    )
    vcpu_priority: Count = field("0: shared fairly; 1 to 99: real time (SCHED_FIFO)", default=0, ge=0, le=MAX_PRIORITY)
    backend_priority: Count = field("Priorities of its backend threads, likewise", default=0, ge=0, le=MAX_PRIORITY)
    weight: Number = field("Share of each of its threads under the fair scheduler", default=1.0, gt=0.0)
    functions: Mapping[str, Cost] = field(
        "Work of its functions where it differs from the technology's", default_factory=dict
    )

    def vcpu_pin(self, vcpu: int) -> Cores:
        """Return the cores that a vcpu may use."""
        return _entry(self.vcpu_cores, vcpu)

    def backend_pin(self, thread: int) -> Cores:
        """Return the cores that a backend thread may use."""
        return _entry(self.backend_cores, thread)


def _entry(pins: tuple[Cores, ...], number: int) -> Cores:
    return pins[min(number, len(pins) - 1)] if pins else ()
