"""Which machines of a fleet to switch on: the least power that carries a load.

For a given fleet the steps of a day are independent and equal loads have equal answers, so each distinct load is solved
once, and one table over capacity answers all loads together (:mod:`routecast.plan.cluster._cover`). For capacities
without a common quantum HiGHS solves one integer program for each load::

    minimise    Σ idle_k n_k + slope_k y_k     or     Σ C_k n_k
    subject to  Σ y_k = T,   0 <= y_k <= R_k n_k,   0 <= n_k <= N_k whole
                Σ C_k n_k <= I,   Σ idle_k n_k + slope_k y_k <= P

With ``spare`` machines the n_k split into a base that carries T alone and ``spare`` others, each at least as large as
any of the base; every capacity is tried as the one that divides the two.
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

_LEAST_W = 1e-8
"""The solver ignores coefficients below 1e-9; so little power decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StepAnswer:
    """Machines for one load, and the minimised value."""

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
    most_w: float | None = None,
) -> StepAnswer | None:
    """Return the machines for one load that need the least power or price; None where the constraints allow none.

    ``limits`` holds N_k, shape (groups,). ``extra_w``, shape (groups,), is added to each machine's power to decide
    between equal answers. ``budget`` and ``most_w`` limit the machines' price and power.
    """
    if load_bps <= 0.0:
        return StepAnswer(value=0.0, counts=(0,) * limits.size)
    splits = [math.inf] if spare == 0 else np.unique(arrays.capacity_bps).tolist()
    answers = [_solve(arrays, limits, load_bps, spare, split, minimise, extra_w, budget, most_w) for split in splits]
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
    most_w: float | None,
) -> StepAnswer | None:
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
    most = limits.tolist()
    base = [model.addIntegral(lb=0, ub=most[k] if capacity[k] <= split_bps else 0) for k in groups]
    others = [
        model.addIntegral(lb=0, ub=min(most[k], spare) if spare and capacity[k] >= split_bps else 0) for k in groups
    ]
    shares = [model.addVariable(lb=0.0, ub=1.0) for _ in groups]
    for k in groups:
        model.addConstr(base[k] + others[k] <= most[k])
        # No share exceeds 1, so a larger coefficient than 1 changes nothing.
        model.addConstr(shares[k] - min(capacity[k] / load_bps, 1.0) * (base[k] + others[k]) <= 0.0)
    model.addConstr(model.qsum(shares) == 1.0)
    # In quanta the left side of the row is an integer, so no tolerance decides whether it holds.
    quantum_bps = common_quantum(capacity, load_bps)
    unit_bps = load_bps if quantum_bps is None else quantum_bps
    need = 1.0 if quantum_bps is None else math.ceil(load_bps / quantum_bps * (1.0 - 1e-12))
    model.addConstr(model.qsum(min(capacity[k] / unit_bps, need) * base[k] for k in groups) >= need)
    model.addConstr(model.qsum(others) == spare)
    idle = arrays.idle_w if extra_w is None else arrays.idle_w + extra_w
    draws = [(float(idle[k]), base[k] + others[k]) for k in groups]
    draws += [(float(arrays.slope_j[k]) * load_bps, shares[k]) for k in groups]
    power = model.qsum(watts * of for watts, of in draws)
    price = model.qsum(float(arrays.price[k]) * (base[k] + others[k]) for k in groups)
    if budget is not None:
        model.addConstr(price <= budget)
    if most_w is not None:
        model.addConstr(model.qsum(watts * of for watts, of in draws if watts > _LEAST_W) <= most_w)
    model.minimize(power if minimise == "power" else price)
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = model.getSolution().col_value
    counts = tuple(round(solution[base[k].index]) + round(solution[others[k].index]) for k in groups)
    return StepAnswer(value=float(model.getInfo().objective_function_value), counts=counts)


@value
class GroupArrays:
    """The groups of a problem as arrays of shape (groups,)."""

    # R_k, P_k, C_k.
    capacity_bps: Floats
    power_w: Floats
    price: Floats
    idle_w: Floats = field("Power without load, W; P_k where a group draws the same at any load")
    slope_j: Floats = field("Energy of one bit on top of ``idle_w``, J")


def group_arrays(problem: ClusterProblem) -> GroupArrays:
    """Return the groups as arrays."""
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
    """Return Σ idle n plus the power of the load, W, which fills the machines of the least slope first.

    ``counts``, shape (loads, groups), are the machines that are on and can carry ``loads_bps``, shape (loads,).
    """
    total = counts @ arrays.idle_w
    left = loads_bps.copy()
    for group in np.argsort(arrays.slope_j, kind="stable"):
        share = np.minimum(left, counts[:, group] * arrays.capacity_bps[group])
        total = total + arrays.slope_j[group] * share
        left = left - share
    return np.asarray(total, dtype=np.float64)


_TIE = 1e-9
"""Power that each machine adds in a choice, relative to the least power of a group: of equal answers the one with the
fewest machines wins, then the cheapest. Answers may be this far from the least power."""
_PRICE_TIE = 1e-2
_ROUND = 1e-9


class Dispatcher:
    """Solves the distinct loads of a problem for one fleet after another.

    ``loads_bps``, ``repeats`` and ``of_step`` are the distinct loads in rising order, the steps of each, and the number
    of each step's load. All capacities are multiples of ``quantum_bps``; where it is None, integer programs answer
    instead of tables. ``most``, shape (groups,), are the machines of each group that can be of use and are available.
    ``pause`` is called between programs and between tables that take long; it may raise to end them.
    """

    def __init__(self, problem: ClusterProblem, loads_bps: Sequence[float] | None = None) -> None:
        wanted = problem.traffic_bps if loads_bps is None else tuple(loads_bps)
        self.problem = problem
        self.pause: Callable[[], None] | None = None
        self.arrays = group_arrays(problem)
        self.loads_bps, self.of_step, self.repeats = np.unique(
            np.asarray(wanted, dtype=np.float64), return_inverse=True, return_counts=True
        )
        peak_bps = float(self.loads_bps[-1])
        capacity = self.arrays.capacity_bps
        self.most: Ints = np.array(
            [
                min(
                    math.ceil(peak_bps / size * (1.0 - _ROUND)) + problem.spare,
                    math.inf if group.available is None else group.available,
                )
                for size, group in zip(capacity.tolist(), problem.groups, strict=True)
            ],
            dtype=np.int64,
        )
        self._linear = bool((self.arrays.slope_j > 0.0).any())
        self.quantum_bps = common_quantum(capacity.tolist(), peak_bps)
        self._choice_w = self._with_ties()
        if self.quantum_bps is not None:
            self._weights: Ints = np.rint(capacity / self.quantum_bps).astype(np.int64)
            self._needs: Ints = np.ceil(self.loads_bps / self.quantum_bps * (1.0 - 1e-12)).astype(np.int64)
            self._slopes: Floats = self.arrays.slope_j * self.quantum_bps

    @property
    def tabulated(self) -> bool:
        """Whether tables answer instead of integer programs."""
        return self.quantum_bps is not None

    @property
    def quick(self) -> bool:
        """Whether one table answers a fleet exactly."""
        return self.tabulated and not (self._linear and self.problem.spare)

    @property
    def linear(self) -> bool:
        """Whether the power of any machine rises with its load."""
        return self._linear

    def _with_ties(self) -> Floats:
        powers = self.arrays.power_w[self.arrays.power_w > 0.0]
        tie = _TIE * float(powers.min()) if powers.size else _TIE
        prices = self.arrays.price / max(float(self.arrays.price.max()), 1e-300)
        return np.asarray(tie * (1.0 + _PRICE_TIE * prices), dtype=np.float64)

    def limits(self, fleet: Sequence[int] | None) -> Ints:
        """Return how many machines of each group a step may use; without a fleet all that can be of use."""
        if fleet is None:
            return self.most
        return np.minimum(np.asarray(fleet, dtype=np.int64), self.most)

    def power_w(self, fleet: Sequence[int] | None = None) -> Floats:
        """Return the least power of every distinct load; inf where the fleet does not carry it."""
        limits = self.limits(fleet)
        if self.quantum_bps is None:
            counts = [self._program(limits, load_bps) for load_bps in self.loads_bps.tolist()]
            known = np.array([row is not None for row in counts])
            rows = np.array([row or (0,) * limits.size for row in counts], dtype=np.int64)
            return np.where(known, power_w(self.arrays, rows, self.loads_bps), np.inf)
        if self._linear:
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
        """Return the least energy over the horizon; inf where the fleet does not carry every step."""
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
        if self._linear:
            loads = self.loads_bps / self.quantum_bps
            idle, spare = self.arrays.idle_w + self._choice_w, self.problem.spare
            if spare:
                return idle_spare_counts(self._weights, idle, self._slopes, limits, loads, spare, self.pause)
            return idle_cover_counts(self._weights, idle, self._slopes, limits, loads)
        costs = self.arrays.power_w + self._choice_w
        if self.problem.spare:
            return spare_cover_counts(self._weights, costs, limits, self._needs, self.problem.spare)
        return cover_counts(self._weights, costs, limits, self._needs)

    def carried_bps(self, fleet: Sequence[int] | Ints) -> float:
        """Return the capacity of a fleet without its ``spare`` largest machines."""
        sizes = np.repeat(self.arrays.capacity_bps, np.asarray(fleet, dtype=np.int64))
        return float(np.sort(sizes)[::-1][self.problem.spare :].sum())

    def _program(self, limits: Ints, load_bps: float) -> tuple[int, ...] | None:
        if self.pause is not None:
            self.pause()
        answer = solve_step(self.arrays, limits, load_bps, self.problem.spare, extra_w=self._choice_w)
        return None if answer is None else answer.counts

    def schedule(self, fleet: Sequence[int] | None = None) -> Schedule:
        """Return the cheapest machines of every step with their energy; boots are not counted."""
        return self.schedule_of(self.counts(fleet))

    def schedule_of(self, counts: Ints) -> Schedule:
        """Return the schedule of given machines for every distinct load."""
        powers = power_w(self.arrays, counts, self.loads_bps)
        rows = [tuple(row) for row in counts.tolist()]
        return Schedule(
            on=tuple(rows[number] for number in self.of_step.tolist()),
            energy_j=float(powers @ self.repeats) * self.problem.step_s,
        )


def _check_fleet(problem: ClusterProblem, fleet: Sequence[int] | None) -> None:
    if fleet is None:
        return
    if len(fleet) != len(problem.groups):
        message = f"{len(fleet)} numbers for {len(problem.groups)} groups; give one for each"
        raise ModelProblem("cluster", [Problem("fleet", message)])
    wrong = [
        Problem(f"fleet {group.name!r}", f"{count} machines must be at least 0")
        for group, count in zip(problem.groups, fleet, strict=True)
        if count < 0
    ]
    if wrong:
        raise ModelProblem("cluster", wrong)


def schedule(problem: ClusterProblem, fleet: Sequence[int] | None = None) -> Schedule:
    """Return the machines n_kt that carry each step at least power (Li 2012, (8.2), (8.4)), by groups or a fleet N_k.

    The answer is exact to 1e-9 of a machine's power; of equal answers the one with the fewest machines wins, then the
    cheapest.
    """
    check(problem)
    _check_fleet(problem, fleet)
    return Dispatcher(problem).schedule(fleet)
