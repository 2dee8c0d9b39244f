"""The goal program of clusters on 12 groups and a day of 288 steps, and HiGHS on the plain program over 24 steps.

The instances are drawn: machines of 5 to 40 Gbit/s whose power and price are near proportional to capacity, a
day-night curve with noise of 500 Gbit/s at its peak, all loads distinct, and budgets from 1.02 times the least that
carries the peak to twice it. Both run on one thread.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import highspy

from routecast.plan.cluster.design import goal_program, least_budget
from routecast.plan.cluster.model import ClusterProblem, MachineGroup

__all__ = ["main"]

BUDGETS = (1.02, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0)
PLAIN_STEPS = 24
VARIANTS = ("plain", "idle", "spare")


def drawn(seed: int, *, groups: int = 12, steps: int = 288, peak_bps: float = 500e9) -> ClusterProblem:
    """Return groups and a day without a budget."""
    rng = random.Random(seed)
    machines = []
    for number in range(groups):
        gbps = round(rng.uniform(5.0, 40.0), 1)
        machines.append(
            MachineGroup(
                name=f"group {number}",
                capacity_bps=gbps * 1e9,
                power_w=round(11.0 * gbps * rng.uniform(0.85, 1.15)),
                price=10.0 * round(4.5 * gbps * rng.uniform(0.8, 1.2)),
            )
        )
    curve = []
    for step in range(steps):
        angle = 2.0 * math.pi * (24.0 * step / steps - 20.0) / 24.0
        level = 0.55 + 0.33 * math.cos(angle) + 0.12 * math.cos(2.0 * angle)
        curve.append(max(0.05, level * (1.0 + rng.gauss(0.0, 0.03))))
    traffic = tuple(level / max(curve) * peak_bps for level in curve)
    return ClusterProblem(groups=tuple(machines), traffic_bps=traffic, step_s=86400.0 / steps)


def beyond(problem: ClusterProblem, variant: str) -> ClusterProblem:
    """Return the problem with idle power of 60 % of the full one, or with one spare machine."""
    if variant == "idle":
        groups = tuple(replace(group, idle_w=round(0.6 * group.power_w)) for group in problem.groups)
        return replace(problem, groups=groups)
    return replace(problem, spare=1) if variant == "spare" else problem


def by_highs(problem: ClusterProblem, seconds: float, gap: float) -> tuple[float, float]:
    """Return the gap that HiGHS proves on (8.1)-(8.4) over all steps, and the time it took."""
    model = highspy.Highs()
    model.silent()
    for option, value in (("threads", 1), ("time_limit", seconds), ("mip_rel_gap", gap)):
        model.setOptionValue(option, value)
    most = [math.ceil(max(problem.traffic_bps) / group.capacity_bps) for group in problem.groups]
    fleet = [model.addIntegral(lb=0, ub=limit) for limit in most]
    pairs = list(zip(problem.groups, fleet, strict=True))
    model.addConstr(model.qsum(group.price * count for group, count in pairs) <= problem.budget)
    watts = []
    for load_bps in problem.traffic_bps:
        on = [model.addIntegral(lb=0, ub=limit) for limit in most]
        for (_, had), count in zip(pairs, on, strict=True):
            model.addConstr(count - had <= 0)
        carried = model.qsum(g.capacity_bps / 1e9 * n for g, n in zip(problem.groups, on, strict=True))
        model.addConstr(carried >= load_bps / 1e9)
        watts += [g.power_w * n for g, n in zip(problem.groups, on, strict=True)]
    begin = time.perf_counter()
    model.minimize(model.qsum(watts))
    taken_s = time.perf_counter() - begin
    info = model.getInfo()
    return info.objective_function_value / info.mip_dual_bound - 1.0, taken_s


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="instances, each with every budget")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each")
    parser.add_argument("--gap", type=float, default=1e-3, help="gap that is enough; 0 for the optimum")
    parser.add_argument("--variant", choices=VARIANTS, default="plain")
    parser.add_argument("--plain-program", action="store_true", help="let HiGHS solve 24 steps beside it")
    chosen = parser.parse_args(arguments)
    print(f"{'seed':>4} {'budget':>7} {'kWh':>8} {'gap %':>8} {'s':>7}  price least")
    slowest_s = worst = 0.0
    for seed in range(chosen.seeds):
        problem = beyond(drawn(seed), chosen.variant)
        least, _ = least_budget(problem)
        for factor in BUDGETS:
            design = goal_program(replace(problem, budget=factor * least), gap=chosen.gap, seconds=chosen.seconds)
            slowest_s = max(slowest_s, design.seconds)
            worst = max(worst, design.gap_ratio)
            print(
                f"{seed:>4} {factor:>7.2f} {design.energy_j / 3.6e6:>8.3f} {100.0 * design.gap_ratio:>8.4f}"
                f" {design.seconds:>7.2f}  {'proven' if design.price_is_least else 'not proven'}",
                flush=True,
            )
        if chosen.plain_program and chosen.variant == "plain":
            few = drawn(seed, steps=PLAIN_STEPS)
            few = replace(few, budget=1.1 * least_budget(few)[0])
            gap, taken_s = by_highs(few, chosen.seconds, chosen.gap)
            ours = goal_program(few, gap=chosen.gap, seconds=chosen.seconds)
            print(
                f"     24 steps, budget 1.10: HiGHS on all steps {100.0 * gap:.3f} % in {taken_s:.1f} s,"
                f" routecast {100.0 * ours.gap_ratio:.4f} % in {ours.seconds:.2f} s",
                flush=True,
            )
    print(f"largest gap {100.0 * worst:.4f} %, longest {slowest_s:.1f} s")


if __name__ == "__main__":
    main()
