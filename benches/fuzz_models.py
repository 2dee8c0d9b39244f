"""Both evaluators on random routers: what the closed form says without a word that the simulator does not find.

Each router is solved and simulated, past its transient. Counted are losses that `solve` neither sees nor names,
answers that it calls not known, rates and latencies that lie off, and names of what limits that differ. Routers are of
all builders; of ``--builder mixed`` are those whose task units of any activation share one or two units, and of
``--builder costly`` those whose units differ in speed, cost a migration or a switch, or have short queues. ``--list``
prints the seeds, so that one can be looked at: ``--seeds 17 40``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "page"))

from scenarios import random_router

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.sweep import trial_past_transient
from routecast.evaluate.trial import Trial

__all__ = ["Verdict", "judge"]

FRAMES = 60_000
LOST_RATIO, NONE_RATIO = 0.01, 1e-4
"""The simulator loses more than the one where the closed form says at most the other: a silent loss."""
RATE_RATIO = 0.02
_LONGER = 10.0
"""How much longer a router is simulated whose answer seems off in a trial without an interval of its mean latency."""
LATENCY_RATIO = 0.03

KINDS = (
    "not solved",
    "not simulated",
    "loss not known",
    "loss known",
    "loss off",
    "silent loss",
    "rate off",
    "latency not known",
    "latency known",
    "latency off",
    "what limits differs",
)
_BAD = frozenset({"silent loss", "loss off", "rate off", "latency off"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the two evaluators say of one router: counts by kind, and a line for whoever looks."""

    seed: int
    builder: str
    kinds: tuple[str, ...]
    line: str = ""
    errors: dict[str, float] = field(default_factory=dict)


def judge(seed: int, builder: str = "") -> Verdict:
    """Solve and simulate the router of a seed, and compare."""
    builder, model, load = random_router(seed, builder)
    try:
        solved = Solve(model=model).trial(load, 1.0)
    except RoutecastError as problem:
        return Verdict(seed, builder, ("not solved",), str(problem)[:160])
    try:
        simulated = trial_past_transient(Simulate(model, seed=1), load, max(FRAMES / load.rate_pps, 2e-3))
    except RoutecastError as problem:
        return Verdict(seed, builder, ("not simulated",), str(problem)[:160])
    kinds = tuple(_kinds(solved, simulated))
    if _BAD & set(kinds) and simulated.latency is not None and "latency.mean_s" not in simulated.interval:
        # Long queues still fill: the trial itself says that it is too short for an interval.
        try:
            simulated = trial_past_transient(Simulate(model, seed=1), load, _LONGER * max(FRAMES / load.rate_pps, 2e-3))
        except RoutecastError as problem:
            return Verdict(seed, builder, ("not simulated",), str(problem)[:160])
        kinds = tuple(_kinds(solved, simulated))
    return Verdict(seed, builder, kinds, _line(solved, simulated))


def _kinds(solved: Trial, simulated: Trial) -> Iterator[str]:
    lost = simulated.loss_ratio
    if math.isnan(solved.loss_ratio):
        yield "loss not known"
    else:
        yield "loss known"
        if not _meets(solved, simulated, "loss_ratio", solved.loss_ratio, lost, room=LOST_RATIO / 2.0):
            yield "loss off"
        if solved.loss_ratio <= NONE_RATIO and lost > LOST_RATIO:
            yield "silent loss"
        off = abs(solved.forwarded_pps / max(simulated.forwarded_pps, 1e-9) - 1.0)
        if off > RATE_RATIO and not solved.notes:
            yield "rate off"
    if solved.latency is None:
        yield "latency not known"
    elif simulated.latency is not None:
        yield "latency known"
        mine, theirs = solved.latency.mean_s, simulated.latency.mean_s
        if not _meets(solved, simulated, "latency.mean_s", mine, theirs, room=LATENCY_RATIO * theirs):
            yield "latency off"
    if solved.bottleneck.differs_from(simulated.bottleneck):
        yield "what limits differs"


def _meets(solved: Trial, simulated: Trial, name: str, mine: float, theirs: float, *, room: float) -> bool:
    """Whether what the closed form states of a quantity and what the simulator found have something in common."""
    low, high = solved.interval.get(name, (mine, mine))
    least, most = simulated.interval.get(name, (theirs, theirs))
    if name == "loss_ratio" and simulated.offered_frames:
        # What is still inside of a short trial may be lost yet.
        most = max(most, theirs) + (simulated.in_flight_frames or 0) / simulated.offered_frames
    least, most = (theirs, theirs) if math.isnan(least) or math.isnan(most) else (least, most)
    return low - room <= most and least <= high + room


def _line(solved: Trial, simulated: Trial) -> str:
    latency = [f"{1e6 * each.latency.mean_s:.3g} us" if each.latency else "–" for each in (solved, simulated)]
    return (
        f"loss {solved.loss_ratio:.2%} / {simulated.loss_ratio:.2%}, latency {latency[0]} / {latency[1]}, "
        f"limits {solved.bottleneck.name if solved.bottleneck else '–'} / "
        f"{simulated.bottleneck.name if simulated.bottleneck else '–'}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the seeds and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routers", type=int, default=2000, help="how many seeds from 0 on (default 2000)")
    parser.add_argument("--seeds", type=int, nargs="+", help="these instead")
    parser.add_argument("--builder", default="", help='"mixed", "softirq", …: routers of this one alone')
    parser.add_argument("--list", action="store_true", help="print a line for each that is off")
    options = parser.parse_args(arguments)
    seeds = options.seeds or range(options.routers)
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor() as pool:
        for verdict in pool.map(partial(judge, builder=options.builder), seeds, chunksize=4):
            counts.update(verdict.kinds)
            if options.seeds or (options.list and _BAD & set(verdict.kinds)):
                print(f"{verdict.seed:6d} {verdict.builder:<18} {', '.join(verdict.kinds)}: {verdict.line}")
    print(f"{len(seeds):,} random routers, solved and simulated")
    for kind in KINDS:
        print(f"  {kind:<26} {counts[kind]:6,d}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
