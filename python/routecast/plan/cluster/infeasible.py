"""What makes a cluster impossible, said with the least that would do."""

from __future__ import annotations

import math

from routecast.errors import ModelProblem, Problem, RoutecastError
from routecast.plan.cluster.model import ClusterProblem
from routecast.quantity import format_bps

__all__ = ["InfeasiblePlan", "check"]

_RANGES = {"power_w": (1e-6, 1e9), "price": (1e-6, 1e12), "boot_s": (0.0, 86_400.0), "boot_energy_j": (0.0, 1e12)}
"""What a machine may draw, cost and take to boot if not 0: the solver of the integer programs takes no number below
1e-9 or above 1e15, and the saving algorithms look as many steps ahead as a boot takes."""
_MOST_OF_PEAK = 1e6
"""Between the peak and what a machine routes, either way; as many machines at most."""


class InfeasiblePlan(RoutecastError):
    """No fleet meets the constraints.

    Attributes
    ----------
    constraint : str
        ``"budget"`` or ``"available"``.
    given, least : float
        What the constraint allows and the least value that would do: a price, or a capacity in bit/s.
    """

    def __init__(self, constraint: str, given: float, least: float, message: str) -> None:
        super().__init__(constraint, given, least, message)
        self.constraint = constraint
        self.given = given
        self.least = least
        self.message = message

    def __str__(self) -> str:
        return self.message


def check(problem: ClusterProblem) -> None:
    """Refuse a problem that contradicts itself or that no number of machines can carry.

    Raises
    ------
    ModelProblem
        Every field that is out of range, all at once.
    InfeasiblePlan
        The machines that can be had do not carry the peak.
    """
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
                f"all available machines together{without} route {format_bps(capacity_bps)}, the peak is"
                f" {format_bps(peak_bps)}: {format_bps(peak_bps - capacity_bps)} are missing; raise available of a"
                " group or add one",
            )


def _group_problems(problem: ClusterProblem) -> list[Problem]:
    problems: list[Problem] = []
    if not problem.groups:
        problems.append(Problem("group", "there is none; a cluster needs at least one group of machines"))
    names = [group.name for group in problem.groups]
    peak_bps = max(filter(math.isfinite, problem.traffic_bps), default=0.0)
    for number, group in enumerate(problem.groups):
        place = f"group[{number}] {group.name!r}"
        if names.index(group.name) != number:
            problems.append(Problem(place, "the name is taken by an earlier group; give each its own"))
        if not (math.isfinite(group.capacity_bps) and group.capacity_bps > 0.0):
            problems.append(Problem(f"{place}.capacity_bps", f"{group.capacity_bps:g} must be finite and above 0"))
        elif peak_bps > 0.0 and not 1.0 / _MOST_OF_PEAK <= group.capacity_bps / peak_bps <= _MOST_OF_PEAK:
            what = (
                f"{format_bps(group.capacity_bps)} beside a peak of {format_bps(peak_bps)}: one must be at most"
                f" {_MOST_OF_PEAK:,.0f} times the other"
            )
            problems.append(Problem(f"{place}.capacity_bps", what))
        for field, (least, most) in _RANGES.items():
            value = getattr(group, field)
            if value != 0.0 and not least <= value <= most:
                allowed = f"{'0, or ' if least else ''}from {least:g} to {most:g}"
                problems.append(Problem(f"{place}.{field}", f"{value:g} must be {allowed}"))
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
        problems.append(Problem("traffic", "there is no step; give at least one"))
    for step, load_bps in enumerate(problem.traffic_bps):
        if not (math.isfinite(load_bps) and load_bps >= 0.0):
            problems.append(
                Problem(f"traffic[{step}]", f"{format_bps(load_bps)} must be finite and at least 0; mend the trace")
            )
    if not (math.isfinite(problem.step_s) and problem.step_s > 0.0):
        problems.append(Problem("step_s", f"{problem.step_s:g} must be finite and above 0"))
    if problem.budget is not None and not problem.budget >= 0.0:
        problems.append(Problem("budget", f"{problem.budget:g} must be at least 0"))
    if problem.spare < 0:
        problems.append(Problem("spare", f"{problem.spare} must be at least 0"))
    return problems
