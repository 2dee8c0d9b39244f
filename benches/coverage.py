"""How often the simulator's own 95 % intervals hold the truth, by case, and how often a trial is too short for one.

Each trial has a seed of its own, with ``--precision`` as long as it takes. Truth is a formula where there is one, else
a run that is a thousand times as long. Of mean latency, loss ratio and forwarded rate the share counts only trials that
give an interval. The goal is 92 to 98 %.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from routecast.errors import TransientProblem
from routecast.evaluate import Simulate
from routecast.evaluate.simulate.precision import PreciseTrial, parse_precisions, simulate_precisely
from routecast.evaluate.trial import Trial
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import RouterModel, ServiceCost, multicore

__all__ = ["CASES", "Case", "Row", "main", "row"]

GOAL = (0.92, 0.98)
SERVICE_S = 1e-6
LONG_S = 100.0
POISSON = Arrivals.poisson()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A router under a load, and what it does in the long run; NaN where only a long run knows."""

    model: RouterModel
    load: OfferedLoad
    latency_s: float
    loss_ratio: float = 0.0


def _router(cores: int = 1, queue: int = 60_000, scv: float = 1.0) -> RouterModel:
    if scv == 0.0:
        service = ServiceCost(per_packet_s=SERVICE_S)
    elif scv == 1.0:
        service = ServiceCost(per_packet_s=SERVICE_S, variation="exponential")
    else:
        service = ServiceCost(per_packet_s=SERVICE_S, variation="lognormal", scv=scv)
    return multicore(cores, service, link_bps=1e15, queue_frames=queue)


def _poisson(rho: float, scv: float) -> Case:
    """M/G/1: the formula of Pollaczek and Khinchine."""
    latency_s = SERVICE_S * (1.0 + rho * (1.0 + scv) / (2.0 * (1.0 - rho)))
    return Case(
        model=_router(scv=scv), load=OfferedLoad(rate_pps=rho / SERVICE_S, arrivals=POISSON), latency_s=latency_s
    )


def _on_off(rho: float, burst_frames: float, peak_ratio: float) -> Case:
    """GI/M/1: a frame finds others with probability sigma, the root of sigma = A(mu (1 - sigma)) (Kleinrock 1975)."""
    share = 1.0 / peak_ratio
    pause = burst_frames * (1.0 - share) / rho
    sigma = 0.5
    for _ in range(10_000):
        s = 1.0 - sigma
        sigma = math.exp(-s * share / rho) * (1.0 - 1.0 / burst_frames + 1.0 / (burst_frames * (1.0 + s * pause)))
    arrivals = Arrivals.on_off(burst_frames=burst_frames, peak_ratio=peak_ratio)
    load = OfferedLoad(rate_pps=rho / SERVICE_S, arrivals=arrivals)
    return Case(model=_router(), load=load, latency_s=SERVICE_S / (1.0 - sigma))


def _ring(rho: float, places: int) -> Case:
    """M/M/1/K: one frame in service, the others in the ring."""
    weights = [rho**count for count in range(places + 1)]
    loss_ratio = weights[-1] / sum(weights)
    inside = sum(count * weight for count, weight in enumerate(weights)) / sum(weights)
    return Case(
        model=_router(queue=places - 1),
        load=OfferedLoad(rate_pps=rho / SERVICE_S, arrivals=POISSON),
        latency_s=inside / (rho * (1.0 - loss_ratio)) * SERVICE_S,
        loss_ratio=loss_ratio,
    )


def _four(rho: float) -> Case:
    """Four M/M/1 side by side: flows are drawn at random."""
    load = OfferedLoad(rate_pps=4.0 * rho / SERVICE_S, arrivals=POISSON, flows=FlowSet.crafted(4, ports=1))
    return Case(model=_router(4), load=load, latency_s=SERVICE_S / (1.0 - rho))


def _bursts(rho: float, burst_frames: int) -> Case:
    load = OfferedLoad(rate_pps=rho / SERVICE_S, arrivals=Arrivals.bursts(burst_frames))
    return Case(model=_router(), load=load, latency_s=math.nan)


CASES = {
    "M/D/1, load 0.8": _poisson(0.8, 0.0),
    "M/M/1, load 0.5": _poisson(0.5, 1.0),
    "M/M/1, load 0.8": _poisson(0.8, 1.0),
    "M/M/1, load 0.9": _poisson(0.9, 1.0),
    "lognormal, scv 10, load 0.5": _poisson(0.5, 10.0),
    "lognormal, scv 10, load 0.7": _poisson(0.7, 10.0),
    "on-off, 16 frames at 4 x, load 0.6": _on_off(0.6, 16.0, 4.0),
    "bursts of 32 frames, load 0.6": _bursts(0.6, 32),
    "four queues, load 0.7": _four(0.7),
    "M/M/1/16 with loss, load 0.95": _ring(0.95, 16),
    "M/M/1/64, load 0.98": _ring(0.98, 64),
    "M/M/1/64, load 1": _ring(1.0, 64),
    "M/M/1/64, load 1.02": _ring(1.02, 64),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of the trials of one case. Shares are of the trials that give the interval; NaN where none does."""

    case: str
    duration_s: float
    replications: int
    trials: int
    refused: int
    too_short: int
    latency_held: float
    latency_below: float
    latency_width: float
    forwarded_held: float
    loss_held: float


def row(
    name: str,
    duration_s: float,
    seeds: Sequence[int],
    *,
    replications: int = 1,
    workers: int = 2,
    path: Literal["auto", "lanes", "events"] = "auto",
) -> Row:
    """Simulate a case once by seed."""
    case = CASES[name]
    latency_s = case.latency_s
    if math.isnan(latency_s):
        delay = Simulate(case.model, seed=2**40).trial(case.load, LONG_S).latency
        assert delay is not None
        latency_s = delay.mean_s

    def trial(seed: int) -> Trial | None:
        try:
            simulate = Simulate(case.model, seed=seed, replications=replications, path=path)
            return simulate.trial(case.load, duration_s)
        except TransientProblem:
            return None

    with ThreadPoolExecutor(workers) as pool:
        done = list(pool.map(trial, seeds))
    trials = [item for item in done if item is not None]

    def ends(field: str) -> list[tuple[float, float]]:
        return [entry.interval[field] for entry in trials if field in entry.interval]

    def share(field: str, holds: Callable[[float, float], bool]) -> float:
        result = ends(field)
        return sum(holds(*pair) for pair in result) / len(result) if result else math.nan

    rate_pps = case.load.rate_pps * (1.0 - case.loss_ratio)
    latencies = ends("latency.mean_s")
    loses = case.loss_ratio > 0.0
    return Row(
        case=name,
        duration_s=duration_s,
        replications=replications,
        trials=len(seeds),
        refused=len(seeds) - len(trials),
        too_short=len(trials) - len(latencies),
        latency_held=share("latency.mean_s", lambda low, high: low <= latency_s <= high),
        latency_below=share("latency.mean_s", lambda low, high: high < latency_s),
        latency_width=statistics.median([high / latency_s - 1.0 for _, high in latencies]) if latencies else math.nan,
        forwarded_held=share("forwarded_pps", lambda low, high: low <= rate_pps <= high),
        loss_held=share("loss_ratio", lambda low, high: low <= case.loss_ratio <= high) if loses else math.nan,
    )


def precise_rows(
    text: str, seeds: Sequence[int], *, workers: int = 2
) -> Iterator[tuple[str, int, float, float, float]]:
    """Simulate each case until it is precise; yield its trials, and the shares of means, rates and losses held."""
    for name, case in CASES.items():
        truth_s = case.latency_s
        if math.isnan(truth_s):
            delay = Simulate(case.model, seed=2**40).trial(case.load, LONG_S).latency
            assert delay is not None
            truth_s = delay.mean_s

        def trial(seed: int, case: Case = case) -> PreciseTrial:
            return simulate_precisely(Simulate(case.model, seed=seed * 1000), case.load, parse_precisions(text))

        with ThreadPoolExecutor(workers) as pool:
            trials = list(pool.map(trial, seeds))

        def held(figure: str, truth: float, trials: Sequence[PreciseTrial] = trials) -> float:
            estimates = [trial.of(figure) for trial in trials]
            inside = [abs(estimate.value - truth) <= estimate.half_width for estimate in estimates]
            return sum(inside) / len(inside)

        rate_pps = case.load.rate_pps * (1.0 - case.loss_ratio)
        loss = held("loss", case.loss_ratio) if case.loss_ratio > 0.0 else math.nan
        yield name, len(trials), held("mean", truth_s), held("forwarded", rate_pps), loss


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100.0 * share:.1f}"


def main() -> int:
    """Print the table; 1 where a mean latency is held by less or more than the goal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200, help="trials of each case (200)")
    parser.add_argument("--first-seed", type=int, default=1, help="the others follow (1)")
    parser.add_argument("--durations", type=float, nargs="+", default=[0.02, 0.5], help="seconds (0.02 0.5)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help="only these")
    parser.add_argument("--replications", type=int, default=1, help="of each trial (1)")
    parser.add_argument("--path", choices=("auto", "lanes", "events"), default="auto", help="as simulate --path (auto)")
    parser.add_argument("--workers", type=int, default=2, help="trials at once (2)")
    parser.add_argument(
        "--precision", metavar="FIGURES", help="simulate until precise instead, as simulate --precision"
    )
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    if chosen.precision is not None:
        print(f"{'':34} {'trials':>6} {'latency %':>9} {'forwarded %':>11} {'loss %':>6}")
        for name, count, mean, forwarded, loss in precise_rows(chosen.precision, seeds, workers=chosen.workers):
            print(f"{name:34} {count:6d} {_percent(mean):>9} {_percent(forwarded):>11} {_percent(loss):>6}", flush=True)
        return 0
    rows = [
        row(name, duration_s, seeds, replications=chosen.replications, workers=chosen.workers, path=chosen.path)
        for duration_s in chosen.durations
        for name in chosen.cases
    ]
    if chosen.json:
        fields = Row.__dataclass_fields__
        print(json.dumps([{field: getattr(row, field) for field in fields} for row in rows], indent=2))
    else:
        head = (
            f"{'refused':>7} {'short':>5} {'latency %':>9} {'below %':>7} {'+ %':>6} {'forwarded %':>11} {'loss %':>6}"
        )
        print(f"{'':34} {'s':>5} {head}")
        for item in rows:
            held, below = _percent(item.latency_held), _percent(item.latency_below)
            rest = (
                f"{_percent(item.latency_width):>6} {_percent(item.forwarded_held):>11} {_percent(item.loss_held):>6}"
            )
            print(
                f"{item.case:34} {item.duration_s:5g} {item.refused:7} {item.too_short:5} {held:>9} {below:>7} {rest}"
            )
    return int(any(not GOAL[0] <= entry.latency_held <= GOAL[1] for entry in rows))


if __name__ == "__main__":
    raise SystemExit(main())
