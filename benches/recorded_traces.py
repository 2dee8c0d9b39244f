"""Random traces on the shipped routers: whether `solve` and `simulate` agree in loss, bits and busy units.

A trace is even, random, bursts or on-off, with one or several sizes and flows of even or uneven shares, at 0.2 to 2
times the load of the router's file. Counted are traces whose loss is known, those whose simulated loss lies outside the
stated range (by more than 0.5 % of the frames), and those whose bits or busy units differ by more than 1 and 5 %. Bits
have a stated range, too, where random services or turns decide what is still inside at the end.
Random services are simulated eight times for the mean bits and busy units; the loss is that of one run.

::

    python benches/recorded_traces.py [--traces 300] [--first 0] [--router NAME] [--verbose]
"""

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from pathlib import Path
from statistics import fmean

import numpy as np

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load import OfferedLoad, RecordedFrames
from routecast.load.offered import recorded_load
from routecast.router import RouterModel
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parents[1] / "examples"
SIZES = ([64], [1514], [64, 594, 1518], list(range(64, 1519, 97)))
OUTSIDE_RATIO, BITS_RATIO, BUSY_RATIO = 0.005, 0.01, 0.05
RANDOM_RUNS = 8


def random_trace(seed: int, rate_pps: float, ports: int) -> OfferedLoad:
    """Return a random trace of a mean rate as a load."""
    choice, stream = random.Random(seed), np.random.default_rng(seed)
    frames, kind = choice.choice([2000, 8000, 20_000]), choice.choice(["even", "random", "bursts", "on-off"])
    if kind == "even":
        at_s = np.arange(frames) / rate_pps
    elif kind == "random":
        at_s = np.cumsum(stream.exponential(1.0 / rate_pps, frames))
    else:
        burst, peak = choice.choice([8, 64, 300, 2000]), choice.choice([3, 10, 50])
        count = -(-frames // burst)
        gaps = stream.exponential(burst / rate_pps, count) if kind == "on-off" else np.full(count, burst / rate_pps)
        at_s = np.sort((np.cumsum(gaps)[:, None] + np.arange(burst) / rate_pps / peak).ravel()[:frames])
    flows = choice.choice([1, 2, 8, 50])
    shares = stream.dirichlet(np.ones(flows)) if choice.random() < 0.5 else np.full(flows, 1.0 / flows)
    flow, sizes = stream.choice(flows, frames, p=shares), choice.choice(SIZES)
    # Sizes by flow, or independent of it.
    size = np.array(sizes)[flow % len(sizes)] if choice.random() < 0.3 else stream.choice(sizes, frames)
    return recorded_load(RecordedFrames.of(at_s, size, flow), ports=ports)


def busy_units(trial: Trial, model: RouterModel) -> float:
    """Return the busy units of all pools."""
    units = {pool.name: pool.units for pool in model.pools}
    return math.fsum(
        resource.utilisation_ratio * units[resource.name] for resource in trial.resources if resource.kind == "pool"
    )


def judge(model: RouterModel, load: OfferedLoad) -> tuple[list[str], str]:
    """Return what is to be counted of a trace, and a line of figures."""
    trace = load.arrivals.trace
    assert trace is not None
    try:
        solved = Solve(model).trial(load, trace.length_s)
    except RoutecastError as problem:
        return ["refused"], str(problem)
    runs = [Simulate(model, seed=1).trial(load, trace.length_s)]
    if any(task.service.squared_cv > 0.0 for task in model.tasks):
        # One run of random services is a draw; what the closed form states is their mean.
        runs += [Simulate(model, seed=seed).trial(load, trace.length_s) for seed in range(2, RANDOM_RUNS + 1)]
    simulated, simulated_bps = runs[0], fmean(run.l2_bps for run in runs)
    low_bps, high_bps = solved.interval.get("l2_bps", (solved.l2_bps, solved.l2_bps))
    bits = max(low_bps - simulated_bps, simulated_bps - high_bps, 0.0) / max(simulated_bps, 1e-9)
    found, expected = busy_units(solved, model), fmean(busy_units(run, model) for run in runs)
    busy = abs(found - expected) / max(expected, 1e-3)
    if math.isnan(solved.loss_ratio):
        return ["not known"], solved.notes[-1]
    low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
    kinds = ["known"]
    if not low - OUTSIDE_RATIO <= simulated.loss_ratio <= high + OUTSIDE_RATIO:
        kinds.append("outside")
    kinds += ["bits differ"] if bits > BITS_RATIO else []
    kinds += ["busy differs"] if busy > BUSY_RATIO else []
    losses = f"loss {low:.4f} to {high:.4f} and {simulated.loss_ratio:.4f}"
    return kinds, f"{losses}, bits by {bits:.2%}, busy {found:.3f} and {expected:.3f}"


def main() -> None:
    """Count over random traces."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed of the first trace")
    parser.add_argument("--router", default="", help="part of the name of a file of examples/")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    routers = [
        (path.name, *read_router_and_load(path))
        for path in sorted(EXAMPLES.glob("*.router.toml"))
        if arguments.router in path.name
    ]
    counts: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.traces):
        choice = random.Random(f"router/{seed}")
        name, model, suggested = choice.choice(routers)
        rate_pps = (suggested.rate_pps if suggested else 1e6) * choice.choice([0.2, 0.5, 0.8, 1.0, 1.2, 2.0])
        kinds, line = judge(model, random_trace(seed, rate_pps, len(model.ports)))
        counts.update(kinds)
        if kinds != ["known"] and arguments.verbose:
            print(f"{seed} {name}: {', '.join(kinds)}: {line}")
    print(", ".join(f"{kind} {counts[kind]}" for kind in ("known", "not known", "refused")), f"of {arguments.traces}")
    print(", ".join(f"{kind} {counts[kind]}" for kind in ("outside", "bits differ", "busy differs")), "of the known")


if __name__ == "__main__":
    main()
