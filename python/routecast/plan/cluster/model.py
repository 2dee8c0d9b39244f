"""The back-end stage of a multistage router as a planning problem (Li 2012, ch. 8).

::

    groups of machines (capacity R_k, power P_k, price C_k)  ┐
    traffic T_t, one value a step                            ├─► Fleet N_k ─► Schedule n_kt ─► energy, price
    budget I                                                 ┘

The thesis' symbol N_k·α_t is the whole number n_kt of machines of group k that are on in step t, 0 <= n_kt <= N_k.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClusterProblem", "Design", "MachineGroup", "Schedule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineGroup:
    """Machines of one type.

    Parameters
    ----------
    name : str
    capacity_bps : float
        R_k, what one machine routes, > 0.
    power_w : float
        P_k, what one draws at full load.
    price : float
        C_k, in whatever currency the budget has.
    idle_w : float or None
        What one draws switched on without load; it rises linearly with its load to ``power_w``. None: ``power_w`` at
        any load, as in the thesis.
    boot_s, boot_energy_j : float
        Time from switching on until it routes, and the energy that this takes beyond ``idle_w``.
    available : int or None
        How many can be had; None for any number.
    """

    name: str
    capacity_bps: float
    power_w: float
    price: float
    idle_w: float | None = None
    boot_s: float = 0.0
    boot_energy_j: float = 0.0
    available: int | None = None

    @property
    def unloaded_w(self) -> float:
        """What one draws switched on without load."""
        return self.power_w if self.idle_w is None else self.idle_w


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterProblem:
    """What to plan for.

    Parameters
    ----------
    groups : tuple of MachineGroup
    traffic_bps : tuple of float
        T_t, the traffic that the machines must be able to route in each step.
    step_s : float
        Length of a step.
    budget : float or None
        I, the most that the machines may cost; None for no limit.
    spare : int
        Machines that may fail without loss of capacity: every step keeps its capacity without the ``spare`` largest
        machines that are on (N+1: 1).
    """

    groups: tuple[MachineGroup, ...]
    traffic_bps: tuple[float, ...]
    step_s: float
    budget: float | None = None
    spare: int = 0

    @property
    def duration_s(self) -> float:
        """Length of the horizon."""
        return self.step_s * len(self.traffic_bps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Which machines are on when.

    Parameters
    ----------
    on : tuple of tuple of int
        n_kt: for each step the number of machines of each group that are on.
    energy_j : float
        Of the machines over the horizon, boots included where ``boots`` counts any.
    boots : int
        Machines switched on, over the horizon.
    switchings : int
        Machines switched on or off, over the horizon.
    """

    on: tuple[tuple[int, ...], ...]
    energy_j: float
    boots: int = 0
    switchings: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A fleet with the schedule that the energy-saving algorithm gives it.

    Parameters
    ----------
    name : str
        ``"Design-I"`` … as in the thesis, sec. 8.3.2.
    fleet : tuple of int
        N_k, machines of each group.
    price : float
        Σ C_k N_k.
    schedule : Schedule
    bound_j : float
        No fleet within the same constraints needs less energy (proven).
    seconds : float
        Time that finding it took.
    price_is_least : bool
        Whether no fleet of the same energy costs less (proven).
    is_interrupted : bool
        Whether the search was ended by the user before its time.
    """

    name: str
    fleet: tuple[int, ...]
    price: float
    schedule: Schedule
    bound_j: float = 0.0
    seconds: float = 0.0
    price_is_least: bool = False
    is_interrupted: bool = False

    @property
    def energy_j(self) -> float:
        """Energy over the horizon."""
        return self.schedule.energy_j

    @property
    def gap_ratio(self) -> float:
        """``energy / bound − 1``: how far from the optimum the design can be, at most."""
        return self.energy_j / self.bound_j - 1.0 if self.bound_j > 0.0 else float("nan")
