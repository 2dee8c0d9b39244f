"""One step as an integer program on HiGHS: slower than the tables, but for any capacity, with idle power and spares.

::

    minimise    Σ idle_k n_k + slope_k y_k     or     Σ C_k n_k
    subject to  Σ y_k = T,   0 <= y_k <= R_k n_k,   0 <= n_k <= N_k whole
                Σ C_k n_k <= I,   Σ idle_k n_k + slope_k y_k <= P

With ``spare`` machines the n_k split into a base that carries T alone and ``spare`` others, each at least as large as
any of the base; the capacity that divides the two is tried out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import highspy
import numpy as np

from routecast.plan.cluster.step.cover import Ints, common_quantum
from routecast.plan.cluster.step.power import GroupArrays

__all__ = ["StepAnswer", "solve_step"]

_LEAST_W = 1e-8
"""The solver takes no number below 1e-9 into a row, and so little power decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class StepAnswer:
    """Machines for one load, with what was minimised."""

    value: float
    counts: tuple[int, ...]


def solve_step(
    arrays: GroupArrays,
    limits: Ints,
    load_bps: float,
    spare: int,
    *,
    minimise: Literal["power", "price"] = "power",
    extra_w: np.ndarray[Any, np.dtype[np.float64]] | None = None,
    budget: float | None = None,
    most_w: float | None = None,
) -> StepAnswer | None:
    """Return the best machines for one load, None where the constraints allow none.

    Parameters
    ----------
    arrays : GroupArrays
    limits : array of shape (groups,)
        N_k.
    load_bps : float
        T.
    spare : int
        Machines that may fail.
    minimise : str
        What to minimise.
    extra_w : array of shape (groups,), optional
        Power that each machine is taken to draw on top, to decide between equal answers.
    budget : float, optional
        I, the most that the machines may cost.
    most_w : float, optional
        The most power that they may draw.
    """
    if load_bps <= 0.0:
        return StepAnswer(value=0.0, counts=(0,) * limits.size)
    splits = [math.inf] if spare == 0 else np.unique(arrays.capacity_bps).tolist()
    found = [_solve(arrays, limits, load_bps, spare, split, minimise, extra_w, budget, most_w) for split in splits]
    return min((answer for answer in found if answer is not None), default=None)


def _solve(
    arrays: GroupArrays,
    limits: Ints,
    load_bps: float,
    spare: int,
    split_bps: float,
    minimise: str,
    extra_w: np.ndarray[Any, np.dtype[np.float64]] | None,
    budget: float | None,
    most_w: float | None,
) -> StepAnswer | None:
    model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types all but its constructor
    model.silent()
    for option, value in (
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
        ("mip_feasibility_tolerance", 1e-9),
        ("primal_feasibility_tolerance", 1e-9),
    ):
        model.setOptionValue(option, value)
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
        # No share is above 1, so of a machine that carries the load the part of it that it could carry is no matter.
        model.addConstr(shares[k] - min(capacity[k] / load_bps, 1.0) * (base[k] + others[k]) <= 0.0)
    model.addConstr(model.qsum(shares) == 1.0)
    # In whole quanta the row cannot be missed by a tolerance: its left side is whole.
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
