"""Dispatch of a fleet: the machines of least power that carry each load.

For a given fleet the steps of a day are independent. So each distinct load is solved once, and one table over capacity
answers all loads together (:mod:`routecast.plan.cluster._cover`). For capacities without a common quantum HiGHS solves
one integer program for each load::

    minimise    Σ idle_k n_k + slope_k y_k     or     Σ C_k n_k
    subject to  Σ y_k = T,   0 <= y_k <= R_k n_k,   0 <= n_k <= N_k whole
                Σ C_k n_k <= I,   Σ idle_k n_k + slope_k y_k <= P

With ``spare`` machines the n_k split into a base that carries T alone and ``spare`` others, each at least as large as
every machine of the base. The program is solved for each capacity as the boundary between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import highspy
import numpy as np

from routecast.errors import ModelProblem, Problem
from routecast.plan.cluster._cover import (
    Floats,
    Ints,
    common_quantum,
    cover_costs,
    cover_counts,
    idle_cover_costs,
    idle_cover_counts,
    idle_spare_costs,
    idle_spare_counts,
    spare_cover_costs,
    spare_cover_counts,
)
from routecast.plan.cluster.model import ClusterProblem, InfeasiblePlan, Schedule, check
from routecast.quantity import format_bps
from routecast.quantity.schema import field, value

_MIN_W = 1e-8
"""Smaller powers are left out, because the solver ignores coefficients below 1e-9."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StepSolution:
    """The machines for one load, and the minimised power or price."""

    value: float
    counts: tuple[int, ...]


def solve_step(
    arrays: GroupArrays,
    limits: Ints,
    load_bps: float,
    spare: int,
    *,
    minimise: Literal["power", "price"] = "power",
    extra_w: Floats | None = None,
    budget: float | None = None,
    max_w: float | None = None,
) -> StepSolution | None:
    """Return the machines of least power or price that carry one load; None if the constraints allow none.

    ``limits`` holds N_k, shape (groups,). ``extra_w``, shape (groups,), is added to the power of each machine to
    break ties. ``budget`` and ``max_w`` limit the price and the power of the machines.
    """
    if load_bps <= 0.0:
        return StepSolution(value=0.0, counts=(0,) * limits.size)
    splits = [math.inf] if spare == 0 else np.unique(arrays.capacity_bps).tolist()
    answers = [_solve(arrays, limits, load_bps, spare, split, minimise, extra_w, budget, max_w) for split in splits]
    return min((answer for answer in answers if answer is not None), default=None)


def _solve(
    arrays: GroupArrays,
    limits: Ints,
    load_bps: float,
    spare: int,
    split_bps: float,
    minimise: str,
    extra_w: Floats | None,
    budget: float | None,
    max_w: float | None,
) -> StepSolution | None:
    model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    model.silent()
    for option, setting in (
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
        ("mip_feasibility_tolerance", 1e-9),
        ("primal_feasibility_tolerance", 1e-9),
    ):
        model.setOptionValue(option, setting)
    groups = range(limits.size)
    capacity = arrays.capacity_bps.tolist()
    max_counts = limits.tolist()
    base = [model.addIntegral(lb=0, ub=max_counts[k] if capacity[k] <= split_bps else 0) for k in groups]
    others = [
        model.addIntegral(lb=0, ub=min(max_counts[k], spare) if spare and capacity[k] >= split_bps else 0)
        for k in groups
    ]
    shares = [model.addVariable(lb=0.0, ub=1.0) for _ in groups]
    for k in groups:
        model.addConstr(base[k] + others[k] <= max_counts[k])
        # A share is at most 1, so the coefficient is limited to 1.
        model.addConstr(shares[k] - min(capacity[k] / load_bps, 1.0) * (base[k] + others[k]) <= 0.0)
    model.addConstr(model.qsum(shares) == 1.0)
    # In quanta the left side is an integer, so the result does not depend on the solver's tolerance.
    quantum_bps = common_quantum(capacity, load_bps)
    unit_bps = load_bps if quantum_bps is None else quantum_bps
    need = 1.0 if quantum_bps is None else math.ceil(load_bps / quantum_bps * (1.0 - 1e-12))
    model.addConstr(model.qsum(min(capacity[k] / unit_bps, need) * base[k] for k in groups) >= need)
    model.addConstr(model.qsum(others) == spare)
    idle = arrays.idle_w if extra_w is None else arrays.idle_w + extra_w
    draws = [(float(idle[k]), base[k] + others[k]) for k in groups]
    draws += [(float(arrays.slope_j[k]) * load_bps, shares[k]) for k in groups]
    power = model.qsum(watts * variable for watts, variable in draws)
    price = model.qsum(float(arrays.price[k]) * (base[k] + others[k]) for k in groups)
    if budget is not None:
        model.addConstr(price <= budget)
    if max_w is not None:
        model.addConstr(model.qsum(watts * variable for watts, variable in draws if watts > _MIN_W) <= max_w)
    model.minimize(power if minimise == "power" else price)
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = model.getSolution().col_value
    counts = tuple(round(solution[base[k].index]) + round(solution[others[k].index]) for k in groups)
    return StepSolution(value=float(model.getInfo().objective_function_value), counts=counts)


@value
class GroupArrays:
    """The groups of a problem as arrays of shape (groups,)."""

    # R_k, P_k, C_k.
    capacity_bps: Floats
    power_w: Floats
    price: Floats
    idle_w: Floats = field("Power without load, W; P_k where a group draws the same at any load")
    slope_j: Floats = field("Energy of one bit of load, beyond ``idle_w``, J")


def group_arrays(problem: ClusterProblem) -> GroupArrays:
    """Return the groups of a problem as arrays."""
    capacity = np.array([group.capacity_bps for group in problem.groups])
    power = np.array([group.power_w for group in problem.groups])
    idle = np.array([group.unloaded_w for group in problem.groups])
    return GroupArrays(
        capacity_bps=capacity,
        power_w=power,
        price=np.array([group.price for group in problem.groups]),
        idle_w=idle,
        slope_j=(power - idle) / capacity,
    )


def power_w(arrays: GroupArrays, counts: Ints, loads_bps: Floats) -> Floats:
    """Return the power of the machines that are on at each load, W, shape (loads,); the least slope is filled first.

    ``counts``, shape (loads, groups), are the machines that are on; they must carry ``loads_bps``, shape (loads,).
    """
    total = counts @ arrays.idle_w
    left = loads_bps.copy()
    for group in np.argsort(arrays.slope_j, kind="stable"):
        share = np.minimum(left, counts[:, group] * arrays.capacity_bps[group])
        total = total + arrays.slope_j[group] * share
        left = left - share
    return np.asarray(total, dtype=np.float64)


_TIE = 1e-9
"""Power added to each machine, relative to the least power of a group. It breaks ties: among equal answers the search
selects the fewest machines, then the cheapest. The power of an answer is exact to this part."""
_PRICE_TIE = 1e-2
_ROUNDING = 1e-9


class Dispatcher:
    """Solves the distinct loads of a problem for one fleet after another.

    ``loads_bps`` are the distinct loads in rising order, ``repeats`` the number of steps with each load, and
    ``load_of_step`` the index of each step's load. All capacities are multiples of ``quantum_bps``; where it is None,
    integer programs replace the tables. ``max_counts``, shape (groups,), is the number of machines of each group that
    are available and useful. ``has_load_power`` is whether the power of some machine rises with its load. ``pause`` is
    called between programs and during long tables; it may raise to end them.
    """

    def __init__(self, problem: ClusterProblem, loads_bps: Sequence[float] | None = None) -> None:
        step_loads_bps = problem.traffic_bps if loads_bps is None else tuple(loads_bps)
        self.problem = problem
        self.pause: Callable[[], None] | None = None
        self.arrays = group_arrays(problem)
        self.loads_bps, self.load_of_step, self.repeats = np.unique(
            np.asarray(step_loads_bps, dtype=np.float64), return_inverse=True, return_counts=True
        )
        peak_bps = float(self.loads_bps[-1])
        capacity = self.arrays.capacity_bps
        self.max_counts: Ints = np.array(
            [
                min(
                    math.ceil(peak_bps / size * (1.0 - _ROUNDING)) + problem.spare,
                    math.inf if group.available is None else group.available,
                )
                for size, group in zip(capacity.tolist(), problem.groups, strict=True)
            ],
            dtype=np.int64,
        )
        self.has_load_power = bool((self.arrays.slope_j > 0.0).any())
        self.quantum_bps = common_quantum(capacity.tolist(), peak_bps)
        self._tie_break_w = self._tie_breaks_w()
        if self.quantum_bps is not None:
            self._weights: Ints = np.rint(capacity / self.quantum_bps).astype(np.int64)
            self._needs: Ints = np.ceil(self.loads_bps / self.quantum_bps * (1.0 - 1e-12)).astype(np.int64)
            self._slopes: Floats = self.arrays.slope_j * self.quantum_bps

    @property
    def is_tabulated(self) -> bool:
        """Whether tables replace the integer programs."""
        return self.quantum_bps is not None

    @property
    def is_exact(self) -> bool:
        """Whether one table gives the exact answer for a fleet."""
        return self.is_tabulated and not (self.has_load_power and self.problem.spare)

    def _tie_breaks_w(self) -> Floats:
        powers = self.arrays.power_w[self.arrays.power_w > 0.0]
        tie = _TIE * float(powers.min()) if powers.size else _TIE
        prices = self.arrays.price / max(float(self.arrays.price.max()), 1e-300)
        return np.asarray(tie * (1.0 + _PRICE_TIE * prices), dtype=np.float64)

    def limits(self, fleet: Sequence[int] | None) -> Ints:
        """Return the machines of each group that a step may use, shape (groups,); without a fleet all useful ones."""
        if fleet is None:
            return self.max_counts
        return np.minimum(np.asarray(fleet, dtype=np.int64), self.max_counts)

    def power_w(self, fleet: Sequence[int] | None = None) -> Floats:
        """Return the least power for every distinct load, W, shape (loads,); inf where the fleet does not carry it."""
        limits = self.limits(fleet)
        if self.quantum_bps is None:
            counts = [self._program(limits, load_bps) for load_bps in self.loads_bps.tolist()]
            is_carried = np.array([row is not None for row in counts])
            rows = np.array([row or (0,) * limits.size for row in counts], dtype=np.int64)
            return np.where(is_carried, power_w(self.arrays, rows, self.loads_bps), np.inf)
        if self.has_load_power:
            loads = self.loads_bps / self.quantum_bps
            idle, spare = self.arrays.idle_w, self.problem.spare
            if spare:
                return idle_spare_costs(self._weights, idle, self._slopes, limits, loads, spare, self.pause)
            return idle_cover_costs(self._weights, idle, self._slopes, limits, loads)
        cells = int(self._needs[-1])
        if self.problem.spare:
            table = spare_cover_costs(self._weights, self.arrays.power_w, limits, cells, self.problem.spare)
        else:
            table = cover_costs(self._weights, self.arrays.power_w, limits, cells)
        return table[self._needs]

    def energy_j(self, fleet: Sequence[int] | None = None) -> float:
        """Return the least energy over the horizon, J; inf if the fleet does not carry every step."""
        return float(self.power_w(fleet) @ self.repeats) * self.problem.step_s

    def counts(self, fleet: Sequence[int] | None = None) -> Ints:
        """Return the machines that are on for every distinct load, shape (loads, groups)."""
        limits = self.limits(fleet)
        carried_bps = self.carried_bps(limits)
        peak_bps = float(self.loads_bps[-1])
        if carried_bps < peak_bps * (1.0 - 1e-12):
            raise InfeasiblePlan(
                "available",
                carried_bps,
                peak_bps,
                f"the fleet {tuple(limits.tolist())} carries {format_bps(carried_bps)}, the load is"
                f" {format_bps(peak_bps)}; add machines",
            )
        if self.quantum_bps is None:
            rows = [self._program(limits, load_bps) for load_bps in self.loads_bps.tolist()]
            return np.array(rows, dtype=np.int64)
        if self.has_load_power:
            loads = self.loads_bps / self.quantum_bps
            idle, spare = self.arrays.idle_w + self._tie_break_w, self.problem.spare
            if spare:
                return idle_spare_counts(self._weights, idle, self._slopes, limits, loads, spare, self.pause)
            return idle_cover_counts(self._weights, idle, self._slopes, limits, loads)
        costs = self.arrays.power_w + self._tie_break_w
        if self.problem.spare:
            return spare_cover_counts(self._weights, costs, limits, self._needs, self.problem.spare)
        return cover_counts(self._weights, costs, limits, self._needs)

    def carried_bps(self, fleet: Sequence[int] | Ints) -> float:
        """Return the capacity of a fleet without its ``spare`` largest machines, bit/s."""
        sizes = np.repeat(self.arrays.capacity_bps, np.asarray(fleet, dtype=np.int64))
        return float(np.sort(sizes)[::-1][self.problem.spare :].sum())

    def _program(self, limits: Ints, load_bps: float) -> tuple[int, ...] | None:
        if self.pause is not None:
            self.pause()
        answer = solve_step(self.arrays, limits, load_bps, self.problem.spare, extra_w=self._tie_break_w)
        return None if answer is None else answer.counts

    def schedule(self, fleet: Sequence[int] | None = None) -> Schedule:
        """Return the machines of least power in every step with their energy; boots are not counted."""
        return self.schedule_of(self.counts(fleet))

    def schedule_of(self, counts: Ints) -> Schedule:
        """Return the schedule of given machines for every distinct load."""
        powers = power_w(self.arrays, counts, self.loads_bps)
        rows = [tuple(row) for row in counts.tolist()]
        return Schedule(
            on=tuple(rows[number] for number in self.load_of_step.tolist()),
            energy_j=float(powers @ self.repeats) * self.problem.step_s,
        )


def _check_fleet(problem: ClusterProblem, fleet: Sequence[int] | None) -> None:
    if fleet is None:
        return
    if len(fleet) != len(problem.groups):
        message = f"{len(fleet)} numbers for {len(problem.groups)} groups: give a number for each group"
        raise ModelProblem("cluster", [Problem("fleet", message)])
    wrong = [
        Problem(f"fleet {group.name!r}", f"{count} machines must be at least 0")
        for group, count in zip(problem.groups, fleet, strict=True)
        if count < 0
    ]
    if wrong:
        raise ModelProblem("cluster", wrong)


def schedule(problem: ClusterProblem, fleet: Sequence[int] | None = None) -> Schedule:
    """Return the machines n_kt of least power that carry each step (Li 2012, (8.2), (8.4)).

    Without a fleet N_k, each step may use all available machines. The answer is exact to 1e-9 of a machine's power;
    among equal answers it has the fewest machines, then the cheapest.
    """
    check(problem)
    _check_fleet(problem, fleet)
    return Dispatcher(problem).schedule(fleet)
