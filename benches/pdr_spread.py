"""How well the rate at 0.1 % loss (PDR) repeats, over how well the forwarding rate in overload does.

Both are found in turns on one slowed device: a search by MLRsearch, with the goal of the profile ``ndrpdr`` but for its
loss ratio, then a trial at twice the forwarding rate. The goal is that the standard deviation of the PDR, relative to
its mean, is at most 1.5 times that of the overload rate.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys

from independent_throughput import offered, probe_of

from routecast.errors import RoutecastError
from routecast.lab.benchmark.overload import measure_forwarding_rate
from routecast.lab.benchmark.search import mlr_search
from routecast.lab.benchmark.settings import GoalProfile
from routecast.lab.testbed.opening import open_testbed

__all__ = ["main"]

LOSS_RATIO = 0.001
OVERLOAD_RATIO = 2.0
GOAL_RATIO = 1.5
_RETRIES = 7


def main() -> int:
    """Return 0; what cannot run is named on stderr."""
    arguments = _arguments()
    goal = GoalProfile(
        name="PDR 0.1 %",
        loss_ratio=LOSS_RATIO,
        exceed_ratio=0.5,
        width=0.005,
        initial_trial=arguments.duration,
        final_trial=arguments.duration,
        duration_sum=arguments.duration_sum,
        preceding_targets=2,
    )
    results: dict[str, list[float]] = {"PDR": [], "overload": []}
    try:
        _measure(results, goal, arguments)
    except RoutecastError as problem:
        print(f"SKIPPED the rest: {problem}", file=sys.stderr)
    if arguments.json:
        print(
            json.dumps({f"{name}_pps": rates for name, rates in results.items()} | {"ratio": _ratio(results)}, indent=2)
        )
    else:
        _print(results, arguments)
    return 0


def _measure(samples: dict[str, list[float]], goal: GoalProfile, arguments: argparse.Namespace) -> None:
    device = {"slowdown": arguments.slowdown}
    with open_testbed("namespaces", device="linux", options=device, on_remark=_remark, retries=_RETRIES) as evaluator:
        rate = measure_forwarding_rate(evaluator, offered(50e3), duration_s=arguments.duration)
        forwarding_pps = rate.trial.forwarded_pps
        for number in range(arguments.repetitions):
            (bounds,) = mlr_search(
                probe_of(evaluator), [goal], min_pps=0.05 * forwarding_pps, max_pps=OVERLOAD_RATIO * forwarding_pps
            )
            if math.isfinite(bounds.lower_pps):
                samples["PDR"].append(bounds.lower_pps)
            else:
                _remark(f"no PDR: {bounds.outcome} {bounds.reason}")
            trial = evaluator.trial(offered(OVERLOAD_RATIO * forwarding_pps), arguments.duration)
            if trial.is_valid:
                samples["overload"].append(trial.forwarded_pps)
            else:
                _remark(f"no overload rate: {'; '.join(trial.invalid)}")
            _remark(
                f"{number + 1} of {arguments.repetitions}: PDR {bounds.lower_pps / 1e3:.2f} kpps, "
                f"overload {trial.forwarded_pps / 1e3:.2f} kpps"
            )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="of each (default 5)")
    parser.add_argument("--slowdown", type=int, default=5_000, metavar="N", help="iterations per frame (default 5000)")
    parser.add_argument("--duration", type=float, default=1.0, help="of each trial, in seconds (default 1)")
    parser.add_argument(
        "--duration-sum", type=float, default=21.0, help="trial time that decides about a rate, in seconds (default 21)"
    )
    parser.add_argument("--quick", action="store_true", help="three of each, trials of 0.2 s, 1 s decides")
    parser.add_argument("--json", action="store_true", help="one document with every repetition")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions, arguments.duration, arguments.duration_sum = 3, 0.2, 1.0
    return arguments


def _relative_sd(rates: list[float]) -> float:
    return statistics.stdev(rates) / statistics.mean(rates) if len(rates) > 1 else math.nan


def _ratio(samples: dict[str, list[float]]) -> float:
    of_overload = _relative_sd(samples["overload"])
    return _relative_sd(samples["PDR"]) / of_overload if of_overload else math.nan


def _print(samples: dict[str, list[float]], arguments: argparse.Namespace) -> None:
    print(
        f"PDR at {LOSS_RATIO:.1%} loss beside the rate at {OVERLOAD_RATIO:g} times the load, in turns: linux "
        f"slowdown={arguments.slowdown}, trials of {arguments.duration:g} s, {arguments.duration_sum:g} s decide"
    )
    print(f"  {'':<10} {'runs':>5} {'mean kpps':>10} {'sd/mean':>9}")
    for name, rates in samples.items():
        mean_pps = statistics.mean(rates) if rates else math.nan
        print(f"  {name:<10} {len(rates):>5} {mean_pps / 1e3:>10.2f} {_relative_sd(rates):>9.3%}")
    ratio = _ratio(samples)
    print(f"  ratio {ratio:.2f}, goal <= {GOAL_RATIO:g}: {'met' if ratio <= GOAL_RATIO else 'MISSED'}\n", flush=True)


def _remark(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
