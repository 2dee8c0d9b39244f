"""Servers, and the machines on them: virtual ones, containers, or the server itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from routecast.router.model import PowerDraw, ResourcePool, ServiceCost
from routecast.router.virtual.technology import Technology

__all__ = ["Cores", "Machine", "Server"]

Cores = tuple[int, ...]
"""Cores that a thread may use; ``()``: all of its server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A physical machine.

    Parameters
    ----------
    name : str
    cores : int
    technology : Technology
        What its machines run on.
    speed_ratio : float
        Speed of a core relative to the technology's reference machine.
    interrupt_cores : Cores
        Cores that its cards interrupt, port by port in turn, the queues of a card on those that follow; ``()``: the
        first.
    switch_cores : Cores
        Cores of its polling vSwitch, only where the technology's backend polls; ports and machines in turn.
    power : PowerDraw or None
        Of one core.
    """

    name: str
    cores: int
    technology: Technology
    speed_ratio: float = 1.0
    interrupt_cores: Cores = ()
    switch_cores: Cores = ()
    power: PowerDraw | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine that a router's functions run in.

    Parameters
    ----------
    name : str
    server : str
    vcpus : int
        Threads that run its functions; flows are spread over them.
    vcpu_cores : tuple of Cores
        Where each vcpu may run; the last is repeated for those that are not given, ``()``: anywhere.
    backend_cores : tuple of Cores
        Where each of its backend threads may run, interface by interface, likewise; but a backend in softirqs runs on
        its server's interrupt cores where nothing is given.
    vcpu_priority, backend_priority : int
        0: fair (CFS); 1 to 99: real time (``SCHED_FIFO``).
    weight : float
        Share under the fair scheduler, of each of its threads.
    functions : mapping of str to ServiceCost
        Costs of its functions where they differ from the technology's.
    """

    name: str
    server: str
    vcpus: int = 1
    vcpu_cores: tuple[Cores, ...] = ()
    backend_cores: tuple[Cores, ...] = ()
    vcpu_priority: int = 0
    backend_priority: int = 0
    weight: float = 1.0
    functions: Mapping[str, ServiceCost] = field(default_factory=dict)

    def vcpu_pin(self, vcpu: int) -> Cores:
        """Cores that a vcpu may use."""
        return _entry(self.vcpu_cores, vcpu)

    def backend_pin(self, thread: int) -> Cores:
        """Cores that a backend thread may use."""
        return _entry(self.backend_cores, thread)


def _entry(pins: tuple[Cores, ...], number: int) -> Cores:
    return pins[min(number, len(pins) - 1)] if pins else ()
