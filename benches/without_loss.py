"""The rate without loss of random routers, by closed form, against the simulator.

Of how many routers `sweep` names a rate without loss, how many lose more than 1 % at 0.98 of it in the simulator, and
how many lose at least 1e-4 at 1.1 of it. A rate that stands as "at least" is counted apart: more may pass there, so
that nothing needs to be lost above it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "page"))

from scenarios import random_router

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.evaluate.sweep import trial_past_transient
from routecast.load.offered import OfferedLoad
from routecast.router.model import RouterModel

__all__ = ["Found", "look_at"]

BELOW_RATIO, ABOVE_RATIO = 0.98, 1.1
LOST_RATIO, NONE_RATIO = 0.01, 1e-4
FRAMES, FRAMES_ABOVE = 60_000, 400_000

Found = tuple[int, str, tuple[str, ...], str]
"""Seed, builder, what was counted, and what stands in the way of a rate."""


def look_at(seed: int, builder: str = "") -> Found:
    """Find the rate without loss of a seed's router, and simulate below and above it."""
    builder, model, load = random_router(seed, builder)
    try:
        throughput = throughput_of(model, load)
    except RoutecastError as problem:
        return seed, builder, ("not solved",), str(problem)
    rate_pps = throughput.rate_pps
    if not math.isfinite(rate_pps):
        return seed, builder, ("no rate",), throughput.reason
    given = "at least" if throughput.is_at_least else "greatest"
    below, _ = _trial(model, load, BELOW_RATIO * rate_pps, FRAMES)
    above, is_offered = _trial(model, load, ABOVE_RATIO * rate_pps, FRAMES if throughput.is_at_least else FRAMES_ABOVE)
    kinds = ["a rate", given]
    kinds += ["loses below"] * (below > LOST_RATIO)
    if not is_offered:
        kinds.append(f"{given}: links carry no more")
    elif above >= NONE_RATIO:
        kinds.append(f"{given}: loses above")
    kinds += ["not simulated"] * math.isnan(below + above)
    share = rate_pps / throughput.overloads_nothing_pps
    line = f"{share:.2f} of what overloads nothing, lost {below:.2%} below, {above:.3%} above; {throughput.reason}"
    return seed, builder, tuple(kinds), line


def _trial(model: RouterModel, load: OfferedLoad, rate_pps: float, frames: int) -> tuple[float, bool]:
    """Return the share of frames lost at a rate, and whether the links carry that rate to the router."""
    offered = load.at(rate_pps)
    try:
        trial = trial_past_transient(Simulate(model, seed=1), offered, max(frames / rate_pps, 2e-3))
    except RoutecastError:
        try:
            still = Simulate(model, seed=1, steady_state=False)  # queues fill all the time
            trial = still.trial(offered, max(frames / rate_pps, 2e-3))
        except RoutecastError:
            return math.nan, True
    return trial.loss_ratio, trial.offered_pps > 0.99 * rate_pps


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at the seeds, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routers", type=int, default=500, help="how many seeds (default 500)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--builder", default="", help='"softirq", "virtual", …: routers of this one alone')
    parser.add_argument("--list", action="store_true", help="print a line for each router")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.routers)
    counts: Counter[str] = Counter()
    by_builder: dict[str, Counter[str]] = {}
    with ProcessPoolExecutor() as pool:
        for seed, builder, kinds, line in pool.map(partial(look_at, builder=options.builder), seeds, chunksize=4):
            counts.update(kinds)
            by_builder.setdefault(builder, Counter()).update(kinds)
            if options.list:
                print(f"{seed:6d} {builder:<18} {', '.join(kinds)}: {line[:160]}", flush=True)
    print(f"{len(seeds):,} random routers")
    for kind, count in sorted(counts.items()):
        print(f"  {kind:<28} {count:6,d}")
    for builder, of in sorted(by_builder.items()):
        print(f"  {builder:<28} a rate {of['a rate']:4d}, none {of['no rate']:4d}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
