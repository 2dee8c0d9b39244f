"""What common random numbers are worth when two variants are compared, by recursion and events and in lanes.

Two variants of a router run with the same seed, or with two seeds. The ratio is that of the variances of the difference
between their mean latencies: 10 means that the same seed saves nine trials in ten. Where draws belong to instants (S8),
arrivals are common to both variants, and services only where they start in the same tick.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import replace
from typing import Literal

from lanes import napi
from workloads import WORKLOADS

from routecast.evaluate import Simulate
from routecast.load import OfferedLoad
from routecast.router import RouterModel

Way = Literal["auto", "lanes"]


def pairs() -> dict[str, tuple[RouterModel, RouterModel, OfferedLoad]]:
    """Return two variants of a router, and the load of both, by what changes between them."""
    _, queue, _ = WORKLOADS
    model = queue.variants[0].model
    woken, load = napi()
    return {
        "M/M/1/50, service 2 % shorter": (model, _faster(model, 0.98), queue.load),
        "M/M/1/50, room for 30": (model, _with_room(model, 29), queue.load),
        "NAPI with IMIX, service 2 % shorter": (woken, _faster(woken, 0.98), load),
    }


def _faster(model: RouterModel, factor: float) -> RouterModel:
    tasks = tuple(
        replace(
            task,
            service=replace(
                task.service,
                per_packet_s=task.service.per_packet_s * factor,
                per_byte_s=task.service.per_byte_s * factor,
            ),
        )
        for task in model.tasks
    )
    return replace(model, tasks=tasks)


def _with_room(model: RouterModel, frames: int) -> RouterModel:
    return replace(model, tasks=tuple(replace(task, queue_frames=frames) for task in model.tasks))


def latency_s(model: RouterModel, load: OfferedLoad, frames: float, path: Way, seed: int) -> float:
    """Simulate one trial and return its mean latency."""
    trial = Simulate(model, seed=seed, path=path, steady_state=False).trial(load, frames / load.rate_pps)
    if trial.latency is None:
        raise ValueError(f"{model.name}: no frame was forwarded")
    return trial.latency.mean_s


def worth(pair: tuple[RouterModel, RouterModel, OfferedLoad], frames: float, path: Way, trials: int) -> float:
    """Return how many times the variance of the difference shrinks by a common seed."""
    first, second, load = pair
    seeds = range(1, trials + 1)
    before = [latency_s(first, load, frames, path, seed) for seed in seeds]
    common = [latency_s(second, load, frames, path, seed) for seed in seeds]
    apart = common[1:] + common[:1]
    spread = [statistics.variance(b - a for a, b in zip(before, after, strict=True)) for after in (apart, common)]
    return spread[0] / spread[1]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=float, default=2e5, help="of a trial (2e5)")
    parser.add_argument("--trials", type=int, default=100, help="of each variant (100)")
    chosen = parser.parse_args()
    print(f"{'':38} {'recursion, events':>18} {'lanes':>8}")
    for name, pair in pairs().items():
        ways: tuple[Way, Way] = ("auto", "lanes")
        by_way = [worth(pair, chosen.frames, path, chosen.trials) for path in ways]
        print(f"{name:38} {by_way[0]:18.3g} {by_way[1]:8.3g}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
