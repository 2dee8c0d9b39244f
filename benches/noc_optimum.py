"""The exact optimum of one plane by size and pattern, and beside it Li's method: 100 expansion factors.

Li (2012) solves eqs. 6.4-6.6 for Q = 100 values of alpha, each a linear program, with GLPK. Here HiGHS solves them
in the same run on a 5 x 5 mesh, one commodity for each destination: each from nothing, and each from the basis of the
one before, up to the first that no routing keeps to. Times are of the wall, with the model building and without
imports; the gap is what is proven.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from routecast.noc.optimum.program import Optimum, PathSet, allowed_arcs, conservation
from routecast.noc.optimum.single import least_load, optimum
from routecast.noc.patterns import hot_spot, normal, transpose, uniform
from routecast.noc.scaling import Scaling
from routecast.noc.topology import Topology, TopologyKind, grid_of

__all__ = ["main"]

SAMPLES = 100
ALPHA_MAX = 3.0
# Part of what the cuts of the grid could carry.
LOAD = 0.8

Floats = NDArray[np.float64]


def dense(topology: Topology) -> Floats:
    """Return demand drawn between every two routers."""
    demand = np.random.default_rng(1).random((topology.router_count, topology.router_count))
    np.fill_diagonal(demand, 0.0)
    return demand


PATTERNS: dict[str, Callable[[Topology], Floats]] = {
    "uniform": lambda topology: uniform(topology).between_routers(topology),
    "hot_spot": lambda topology: hot_spot(topology).between_routers(topology),
    "transpose": lambda topology: transpose(topology).between_routers(topology),
    "normal": lambda topology: normal(topology, permutations=25, seed=1).between_routers(topology),
    "dense": dense,
}


def drawn(topology: Topology, pattern: str) -> Floats:
    """Return the demand of a pattern at the benchmark's load."""
    demand = PATTERNS[pattern](topology)
    return demand * (LOAD / least_load(topology, demand))


def by_samples(topology: Topology, demand: Floats, *, warm: bool) -> tuple[float, float]:
    """Return the least power over Li's samples of alpha, and the time it took."""
    begin = time.perf_counter()
    grid = grid_of(topology)
    matrix = conservation(topology, allowed_arcs(topology, demand, PathSet.ANY))
    columns, rows, links = matrix.link.size, topology.router_count**2, grid.source.size
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = columns, rows + links
    program.col_cost_ = np.ones(columns)
    program.col_lower_, program.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    net = demand.T.ravel()
    program.row_lower_ = np.concatenate([net, np.full(links, -highspy.kHighsInf)])
    program.row_upper_ = np.concatenate([net, np.ones(links)])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = (matrix.starts + np.arange(columns + 1)).astype(np.int32)
    program.a_matrix_.index_ = np.insert(matrix.rows, matrix.starts[1:], (rows + matrix.link).astype(np.int32))
    program.a_matrix_.value_ = np.insert(matrix.values, matrix.starts[1:], 1.0)
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("threads", 1)
    model.passModel(program)
    capacity = np.arange(rows, rows + links, dtype=np.int32)
    least = np.inf
    for alpha in np.linspace(1.0, ALPHA_MAX, SAMPLES):
        model.changeRowsBounds(links, capacity, np.full(links, -highspy.kHighsInf), np.full(links, 1.0 / alpha))
        if not warm:
            model.clearSolver()
        model.run()
        if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            break
        least = min(least, model.getInfo().objective_function_value / alpha**2)
    return least, time.perf_counter() - begin


def timed(topology: Topology, demand: Floats, paths: PathSet, repetitions: int) -> tuple[Optimum, float, float]:
    """Return the optimum, with the median and the longest time."""
    taken = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        result = optimum(topology, demand, Scaling(alpha_max=ALPHA_MAX), paths=paths)
        taken.append(time.perf_counter() - begin)
    return result, statistics.median(taken), max(taken)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each size and pattern, then Li's method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 8], help="routers on a side; 16 takes minutes")
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=list(PATTERNS))
    parser.add_argument("--paths", type=PathSet, nargs="+", choices=list(PathSet), default=list(PathSet))
    parser.add_argument("--topology", choices=["mesh", "torus"], default="mesh")
    chosen = parser.parse_args(arguments)
    print(f"{'size':>7} {'pattern':>10} {'paths':>8} {'median s':>9} {'max s':>8} {'programs':>8} {'gap':>8}  power")
    for size in chosen.sizes:
        topology = Topology(kind=TopologyKind(chosen.topology), columns=size, rows=size)
        for pattern in chosen.patterns:
            demand = drawn(topology, pattern)
            for paths in chosen.paths:
                repetitions = 9 if size <= 6 else 3 if size <= 10 else 1
                result, median_s, longest_s = timed(topology, demand, paths, repetitions)
                print(
                    f"{size:>3} x {size:<2}{pattern:>10} {paths:>8} {median_s:>9.4f} {longest_s:>8.4f}"
                    f" {result.programs:>8} {result.gap:>8.1e}  {result.power:.6g}",
                    flush=True,
                )
    topology = Topology(kind=TopologyKind.MESH, columns=5, rows=5)
    print(f"\n5 x 5, any paths: {SAMPLES} samples of alpha with HiGHS, by destination, and one optimum")
    print(
        f"{'pattern':>10} {'cold s':>8} {'warm s':>8} {'ours s':>8} {'cold/ours':>9} {'warm/ours':>9}  power above ours"
    )
    for pattern in chosen.patterns:
        demand = drawn(topology, pattern)
        cold, cold_s = by_samples(topology, demand, warm=False)
        _, warm_s = by_samples(topology, demand, warm=True)
        result, ours_s, _ = timed(topology, demand, PathSet.ANY, 9)
        print(
            f"{pattern:>10} {cold_s:>8.3f} {warm_s:>8.3f} {ours_s:>8.4f}"
            f" {cold_s / ours_s:>9.0f} {warm_s / ours_s:>9.1f}"
            f"  {100.0 * (cold / result.power - 1.0):.3f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
