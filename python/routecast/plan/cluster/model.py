"""The back-end stage of a multistage router as a planning problem (Li 2012, ch. 8).

::

    groups of machines (capacity R_k, power P_k, price C_k)  ┐
    traffic T_t, one value a step                            ├─► Fleet N_k ─► Schedule n_kt ─► energy, price
    budget I                                                 ┘

Li's symbol N_k·α_t is the whole number n_kt of machines of group k that are on in step t, 0 <= n_kt <= N_k.
"""

from __future__ import annotations

from typing import Annotated

from routecast.quantity.fields import BitRate, Count, Energy, Length, Power, Share, Span
from routecast.quantity.schema import field, value

__all__ = ["ClusterProblem", "Design", "MachineGroup", "Schedule"]


@value
class MachineGroup:
    """Machines of one type."""

    name: Annotated[str, Length(1, 60)] = field("Name of the group")
    # R_k.
    capacity_bps: BitRate = field("What one machine routes")
    # P_k.
    power_w: Power = field("What one draws at full load, 1e-6 to 1e9 W")
    # C_k.
    price: Share = field("What one costs, in the budget's currency: 0, or 1e-6 to 1e12")
    # Absent: as in Li (2012).
    idle_w: Power | None = field(
        "What one draws switched on without load; rising linearly with load; absent: power at any load",
        default=None,
        key="idle_power",
    )
    boot_s: Span = field("From switching on until it routes, at most a day", default=0.0, key="boot_time")
    boot_energy_j: Energy = field("Energy of a boot beyond idle power, at most 1e12 J", default=0.0)
    available: Count | None = field("How many can be had; absent: any number", default=None, ge=0, le=10_000)
    source: str = field("Where these figures come from", default="")

    @property
    def unloaded_w(self) -> float:
        """What one draws switched on without load."""
        return self.power_w if self.idle_w is None else self.idle_w


@value
class ClusterProblem:
    """What to plan for."""

    groups: tuple[MachineGroup, ...]
    traffic_bps: tuple[float, ...] = field(
        "T_t, the traffic that the machines must be able to route in each step, bit/s"
    )
    step_s: float = field("Length of a step, s")
    budget: float | None = field("I, the most that the machines may cost; None for no limit", default=None)
    spare: int = field(
        "Machines that may fail without loss of capacity: every step keeps its capacity without the ``spare`` "
        "largest machines that are on (N+1: 1)",
        default=0,
    )

    @property
    def duration_s(self) -> float:
        """Length of the horizon."""
        return self.step_s * len(self.traffic_bps)


@value
class Schedule:
    """Which machines are on when."""

    on: tuple[tuple[int, ...], ...] = field("n_kt: for each step the number of machines of each group that are on")
    energy_j: float = field("Of the machines over the horizon, boots included where ``boots`` counts any, J")
    boots: int = field("Machines switched on, over the horizon", default=0)
    switchings: int = field("Machines switched on or off, over the horizon", default=0)


@value
class Design:
    """A fleet with the schedule that the energy-saving algorithm gives it."""

    name: str = field('``"Design-I"`` … as in Li 2012, sec. 8.3.2')
    fleet: tuple[int, ...] = field("N_k, machines of each group")
    price: float = field("Σ C_k N_k")
    schedule: Schedule
    bound_j: float = field("No fleet within the same constraints needs less energy (proven), J", default=0.0)
    seconds: float = field("Time that finding it took", default=0.0)
    price_is_least: bool = field("Whether no fleet of the same energy costs less (proven)", default=False)
    is_interrupted: bool = field("Whether the search was ended by the user before its time", default=False)

    @property
    def energy_j(self) -> float:
        """Energy over the horizon."""
        return self.schedule.energy_j

    @property
    def gap_ratio(self) -> float:
        """``energy / bound − 1``: how far from the optimum the design can be, at most."""
        return self.energy_j / self.bound_j - 1.0 if self.bound_j > 0.0 else float("nan")
