"""Placements of 40 elements on 14 servers: what is proven of the best mapping within 10 s, and how long that takes.

The instances: multistage routers of the shipped techniques, with cores that slow each other, on servers of one type or
two, by switch and by cables, for the most throughput, the fewest servers and the least watts; and drawn chains of
functions. ``gap`` is the proven distance to the optimum of the prediction, over all mappings and the ways of pinning
that are tried. ``forwarded`` instances are in overload; their bound is of work alone, so their gap says little.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from routecast.load.frames import FrameMix
from routecast.plan.placement.answer import answer
from routecast.plan.placement.model import Chain, ElementGroup, Goal, PlacementProblem, ServerGroup, ServerLinks
from routecast.router.model import Contention, ServiceCost
from routecast.virtual.catalogue import technology

__all__ = ["main"]

SECONDS = 10.0


def multistage(
    name: str, balancers: int, *, kinds: int = 1, by: Literal["switch", "cables"] = "switch", goal: Goal
) -> PlacementProblem:
    """Return 40 elements of a multistage router on 14 servers."""
    technique = replace(technology(name), contention=Contention(sigma=0.1))
    servers = [ServerGroup(name="host", number=14, cores=4, technology=technique, idle_w=60.0, busy_w=120.0)]
    if kinds == 2:
        servers = [
            replace(servers[0], number=9),
            replace(servers[0], name="large", number=5, cores=8, speed_ratio=0.8, idle_w=90.0, busy_w=210.0),
        ]
    return PlacementProblem(
        name=f"{name} {balancers}+{40 - balancers}, {kinds} type{'s' if kinds > 1 else ''}, {by}",
        servers=tuple(servers),
        elements=(
            ElementGroup(name="lb", kind="balancer", count=balancers),
            ElementGroup(name="br", kind="router", count=40 - balancers),
        ),
        chains=(Chain(name="multistage", stages=("lb", "br", "lb")),),
        frames=FrameMix.fixed(64),
        offered_pps=10e6,
        outer_bps=10e9,
        interconnect=ServerLinks(by=by, link_bps=10e9),
        goal=goal,
    )


def drawn(seed: int, *, goal: Goal) -> PlacementProblem:
    """Return 40 elements of 4 to 8 functions in two chains on 14 servers of one or two types."""
    rng = random.Random(seed)
    groups = rng.choice([4, 5, 6, 8])
    technique = replace(technology("kvm-vhost-2012"), contention=Contention(sigma=0.05))
    kinds = rng.choice([1, 2])
    sizes = [14] if kinds == 1 else [8, 6]
    servers = tuple(
        ServerGroup(name=f"type {k}", number=number, cores=rng.choice([4, 8]), technology=technique)
        for k, number in enumerate(sizes)
    )
    counts = [40 // groups + (1 if k < 40 % groups else 0) for k in range(groups)]
    elements = tuple(
        ElementGroup(
            name=f"f{k}",
            kind="function",
            count=count,
            functions={f"f{k}": ServiceCost(per_packet_s=rng.uniform(0.4e-6, 3e-6))},
        )
        for k, count in enumerate(counts)
    )
    half = groups // 2
    names = [group.name for group in elements]
    chains = (
        Chain(name="one", stages=tuple(names[:half]), share=rng.uniform(0.5, 1.5)),
        Chain(name="other", stages=tuple(names[half:]), share=rng.uniform(0.5, 1.5)),
    )
    return PlacementProblem(
        name=f"chains {seed}: {groups} functions, {kinds} type{'s' if kinds > 1 else ''}",
        servers=servers,
        elements=elements,
        chains=chains,
        frames=FrameMix.fixed(64),
        offered_pps=10e6,
        outer_bps=10e9,
        interconnect=ServerLinks(link_bps=10e9),
        goal=goal,
    )


def instances(seeds: int, *, forwarded: bool) -> Iterator[PlacementProblem]:
    """Yield what is measured."""
    most = Goal(seconds=SECONDS, runners_up=0)
    for name in ("kvm-vhost-2012", "vmware-esxi-4.0"):
        for balancers in (8, 16, 20):
            yield multistage(name, balancers, goal=most)
    joined: tuple[tuple[int, Literal["switch", "cables"]], ...] = ((2, "switch"), (1, "cables"), (2, "cables"))
    for kinds, by in joined:
        yield multistage("kvm-vhost-2012", 16, kinds=kinds, by=by, goal=most)
    for objective in ("servers", "watts"):
        goal = Goal(objective=objective, target_pps=2e6, seconds=SECONDS, runners_up=0)
        yield multistage("kvm-vhost-2012", 16, kinds=2, goal=goal)
    for seed in range(seeds):
        yield drawn(seed, goal=most)
    if forwarded:
        yield multistage("kvm-vhost-2012", 16, goal=replace(most, throughput="forwarded"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="drawn instances of chains")
    parser.add_argument("--forwarded", action="store_true", help="an instance in overload besides")
    chosen = parser.parse_args(arguments)
    print(
        f"{'instance':<44} {'objective':<10} {'value':>10} {'gap %':>7} {'search s':>8} {'cpu s':>6} {'predicted':>9}"
    )
    worst = longest_s = 0.0
    for problem in instances(chosen.seeds, forwarded=chosen.forwarded):
        begin_s = time.process_time()
        result = answer(problem, simulate=False)
        cpu_s = time.process_time() - begin_s
        is_rate = problem.goal.objective == "throughput"
        value = f"{result.best.value / 1e6:.4f} M" if is_rate else f"{result.best.value:.2f}"
        if problem.goal.throughput == "lossless":
            worst, longest_s = max(worst, result.gap_ratio), max(longest_s, result.seconds)
        print(
            f"{problem.name:<44} {problem.goal.objective:<10} {value:>10} {100.0 * result.gap_ratio:>7.3f}"
            f" {result.seconds:>8.2f} {cpu_s:>6.2f} {result.predictions:>9}",
            flush=True,
        )
    print(f"largest gap {100.0 * worst:.3f} %, longest search {longest_s:.2f} s")


if __name__ == "__main__":
    main()
