"""The back-end stage of a multistage router as a planning problem (Li 2012, ch. 8).

::

    groups of machines (capacity R_k, power P_k, price C_k)  ┐
    traffic T_t, one value a step                            ├─► Fleet N_k ─► Schedule n_kt ─► energy, price
    budget I                                                 ┘

Li's symbol N_k·α_t is the whole number n_kt of machines of group k that are on in step t, 0 <= n_kt <= N_k.
"""

from __future__ import annotations

import math
from typing import Annotated

from routecast.errors import ModelProblem, Problem, RoutecastError
from routecast.quantity import format_bps
from routecast.quantity.fields import BitRate, Count, Energy, Length, Power, Share, Span
from routecast.quantity.schema import field, value

__all__ = ["ClusterProblem", "Design", "InfeasiblePlan", "MachineGroup", "Schedule", "check"]

_RANGES = {"power_w": (1e-6, 1e9), "price": (1e-6, 1e12), "boot_s": (0.0, 86_400.0), "boot_energy_j": (0.0, 1e12)}
"""Allowed values besides 0. The solver of the integer programs rejects numbers below 1e-9 or above 1e15, and the saving
algorithms look ahead by as many steps as a boot takes."""
_MAX_PEAK_RATIO = 1e6
"""The greatest ratio of the peak and the capacity of a machine, either way."""


class InfeasiblePlan(RoutecastError):
    """No fleet meets a constraint, ``"budget"`` or ``"available"``.

    ``given`` is the value that the constraint allows, ``least`` the least value that suffices: a price, or a capacity
    in bit/s.
    """

    def __init__(self, constraint: str, value: float, least: float, message: str) -> None:
        super().__init__(constraint, value, least, message)
        self.constraint = constraint
        self.value = value
        self.least = least
        self.message = message

    def __str__(self) -> str:
        return self.message


def check(problem: ClusterProblem) -> None:
    """Raise ModelProblem for values out of range, InfeasiblePlan if the available machines do not carry the peak."""
    problems = [*_group_problems(problem), *_load_problems(problem)]
    if problems:
        raise ModelProblem("cluster", problems)
    peak_bps = max(problem.traffic_bps)
    if peak_bps > 0.0 and all(group.available is not None for group in problem.groups):
        largest = sorted(
            (group.capacity_bps for group in problem.groups for _ in range(group.available or 0)), reverse=True
        )
        capacity_bps = math.fsum(largest[problem.spare :])
        if capacity_bps < peak_bps * (1.0 - 1e-12):
            without = f" without the {problem.spare} largest" if problem.spare else ""
            raise InfeasiblePlan(
                "available",
                capacity_bps,
                peak_bps,
                f"all available machines{without} route {format_bps(capacity_bps)}, the peak is"
                f" {format_bps(peak_bps)}: {format_bps(peak_bps - capacity_bps)} are missing; raise the key"
                " available of a group, or add a group",
            )


def _group_problems(problem: ClusterProblem) -> list[Problem]:
    problems: list[Problem] = []
    if not problem.groups:
        problems.append(Problem("group", "is missing: a cluster needs at least one group of machines"))
    names = [group.name for group in problem.groups]
    peak_bps = max(filter(math.isfinite, problem.traffic_bps), default=0.0)
    for number, group in enumerate(problem.groups):
        place = f"group[{number}] {group.name!r}"
        if names.index(group.name) != number:
            problems.append(Problem(place, "an earlier group has the same name: give each group its own"))
        if not (math.isfinite(group.capacity_bps) and group.capacity_bps > 0.0):
            problems.append(Problem(f"{place}.capacity_bps", f"{group.capacity_bps:g} must be finite and above 0"))
        elif peak_bps > 0.0 and not 1.0 / _MAX_PEAK_RATIO <= group.capacity_bps / peak_bps <= _MAX_PEAK_RATIO:
            message = (
                f"{format_bps(group.capacity_bps)} and the peak of {format_bps(peak_bps)} differ by more than a factor"
                f" of {_MAX_PEAK_RATIO:,.0f}"
            )
            problems.append(Problem(f"{place}.capacity_bps", message))
        for name, (low, high) in _RANGES.items():
            value = getattr(group, name)
            if value != 0.0 and not low <= value <= high:
                allowed = f"{'0, or ' if low else ''}from {low:g} to {high:g}"
                problems.append(Problem(f"{place}.{name}", f"{value:g} must be {allowed}"))
        if group.idle_w is not None and not 0.0 <= group.idle_w <= group.power_w:
            problems.append(
                Problem(f"{place}.idle_w", f"{group.idle_w:g} must be from 0 to power_w, {group.power_w:g}")
            )
        if group.available is not None and group.available < 0:
            problems.append(Problem(f"{place}.available", f"{group.available} must be at least 0"))
    return problems


def _load_problems(problem: ClusterProblem) -> list[Problem]:
    problems: list[Problem] = []
    if not problem.traffic_bps:
        problems.append(Problem("traffic", "has no step: give at least one"))
    for step, load_bps in enumerate(problem.traffic_bps):
        if not (math.isfinite(load_bps) and load_bps >= 0.0):
            problems.append(
                Problem(f"traffic[{step}]", f"{format_bps(load_bps)} must be finite and at least 0: correct the trace")
            )
    if not (math.isfinite(problem.step_s) and problem.step_s > 0.0):
        problems.append(Problem("step_s", f"{problem.step_s:g} must be finite and above 0"))
    if problem.budget is not None and not problem.budget >= 0.0:
        problems.append(Problem("budget", f"{problem.budget:g} must be at least 0"))
    if problem.spare < 0:
        problems.append(Problem("spare", f"{problem.spare} must be at least 0"))
    return problems


@value
class MachineGroup:
    """Machines of one type."""

    name: Annotated[str, Length(1, 60)] = field("Name of the group")
    # R_k.
    capacity_bps: BitRate = field("Capacity of one machine")
    # P_k.
    power_w: Power = field("Power of one machine at full load, 1e-6 to 1e9 W")
    # C_k.
    price: Share = field("Price of one machine in the budget's currency: 0, or 1e-6 to 1e12")
    # Absent: as in Li (2012).
    idle_w: Power | None = field(
        "Power of one machine without load; it rises linearly with load. Absent: the same power at any load",
        default=None,
        key="idle_power",
    )
    boot_s: Span = field("Time from switching on until the machine routes, at most a day", default=0.0, key="boot_time")
    boot_energy_j: Energy = field("Energy of a boot beyond idle power, at most 1e12 J", default=0.0)
    available: Count | None = field("Available machines; absent: no limit", default=None, ge=0, le=10_000)
    source: str = field("Source of these figures", default="")

    @property
    def unloaded_w(self) -> float:
        """Power of one machine that is on without load, W."""
        return self.power_w if self.idle_w is None else self.idle_w


@value
class ClusterProblem:
    """The problem of a cluster: groups of machines, traffic, budget and spares."""

    groups: tuple[MachineGroup, ...]
    traffic_bps: tuple[float, ...] = field("T_t, the traffic that the machines must carry in each step, bit/s")
    step_s: float = field("Length of a step, s")
    budget: float | None = field("I, the maximum price of all machines; None for no limit", default=None)
    spare: int = field(
        "Machines that may fail at any time: in every step the machines that are on carry the load without their "
        "``spare`` largest (N+1: 1)",
        default=0,
    )

    @property
    def duration_s(self) -> float:
        """Length of the horizon, s."""
        return self.step_s * len(self.traffic_bps)


@value
class Schedule:
    """The machines that are on in each step."""

    on: tuple[tuple[int, ...], ...] = field("n_kt: for each step the number of machines of each group that are on")
    energy_j: float = field("Energy of the machines over the horizon, boots included, J")
    boots: int = field("Machines switched on, over the horizon", default=0)
    switchings: int = field("Machines switched on or off, over the horizon", default=0)


@value
class Design:
    """A fleet with its schedule of least energy."""

    name: str = field('``"Design-I"`` … as in Li 2012, sec. 8.3.2')
    fleet: tuple[int, ...] = field("N_k, machines of each group")
    price: float = field("Σ C_k N_k")
    schedule: Schedule
    bound_j: float = field(
        "Proven lower bound on the energy of any fleet that meets the same constraints, J", default=0.0
    )
    seconds: float = field("Time of the search, s", default=0.0)
    price_is_least: bool = field("Whether it is proven that no fleet of the same energy costs less", default=False)
    is_interrupted: bool = field("Whether the user interrupted the search", default=False)

    @property
    def energy_j(self) -> float:
        """Energy over the horizon, J."""
        return self.schedule.energy_j

    @property
    def gap_ratio(self) -> float:
        """``energy / bound − 1``: the greatest possible distance to the optimum."""
        return self.energy_j / self.bound_j - 1.0 if self.bound_j > 0.0 else float("nan")
