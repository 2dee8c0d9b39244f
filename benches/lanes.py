"""Lanes beside events and recursion: frames per CPU second, how much sooner a trial is over, and the seams.

Each router runs one trial of so many frames by each path, in turns; the ratios are medians of neighbours in time. The
routers are the shipped examples that lanes run, the queues of ``run.py``, and one of NAPI with IMIX frames, beside
which the limit program runs that is written for it alone.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from contenders import Missing, find_limit
from workloads import WORKLOADS

from routecast.errors import RoutecastError
from routecast.evaluate import Simulate
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import Activation, RouterModel, ServiceCost, multicore
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parent.parent / "examples"

Way = Literal["auto", "lanes"]

LIMITED = "NAPI, IMIX"
"""The router that has a limit program."""
LIMIT_FRAMES = 30_000_000


@dataclass(frozen=True, slots=True)
class Run:
    """One trial: CPU seconds, wall seconds, the frames that came, and what is said of the lanes."""

    cpu_s: float
    wall_s: float
    frames: int
    lanes: str


def routers() -> dict[str, tuple[RouterModel, OfferedLoad]]:
    """Return the routers by name, with their loads."""
    found: dict[str, tuple[RouterModel, OfferedLoad]] = {}
    for path in sorted(EXAMPLES.glob("*.router.toml")):
        model, load = read_router_and_load(path)
        if load is not None:
            found[path.name.removesuffix(".router.toml")] = model, load
    found |= {workload.name: (workload.variants[0].model, workload.load) for workload in WORKLOADS}
    found[LIMITED] = napi()
    found["RSS, IMIX"] = rss()
    return found


IMIX = FrameMix(name="imix", sequence_bytes=(64,) * 7 + (570,) * 4 + (1518,), order="random")


def rss() -> tuple[RouterModel, OfferedLoad]:
    """Four cores with rings of 512, exponential costs by frame and by byte; IMIX, Poisson, load 0.63."""
    service = ServiceCost(per_packet_s=240e-9, per_byte_s=0.115e-9, variation="exponential")
    flows = FlowSet.crafted(8, ports=2)
    load = OfferedLoad(rate_pps=9e6, frames=IMIX, flows=flows, arrivals=Arrivals.poisson())
    return multicore(4, service, link_bps=100e9, queue_frames=512), load


def napi() -> tuple[RouterModel, OfferedLoad]:
    """Four queues with NAPI, not moderated, polls of 64 frames, costs by frame and byte; IMIX, Poisson, load 0.7."""
    model = multicore(4, ServiceCost(per_packet_s=0.5e-6, per_byte_s=0.3e-9), link_bps=40e9, queue_frames=512)
    woken = Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=1e-6)
    tasks = tuple(replace(task, activation=woken) if task.needs else task for task in model.tasks)
    load = OfferedLoad(rate_pps=4.5e6, frames=IMIX, flows=FlowSet.crafted(4, ports=2), arrivals=Arrivals.poisson())
    return replace(model, name="NAPI, IMIX", tasks=tasks), load


def run(model: RouterModel, load: OfferedLoad, frames: float, path: Way, seed: int) -> Run:
    """Simulate one trial; raises RoutecastError where the path cannot."""
    simulate = Simulate(model, seed=seed, path=path, steady_state=False)
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    trial = simulate.trial(load, frames / load.rate_pps)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    note = next((note for note in trial.notes if note.startswith("in lanes")), "")
    seams = re.search(r"\d+ of \d+ seams|one stretch", note)
    return Run(cpu_s, wall_s, trial.offered_frames or 0, seams[0] if seams else "-")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=float, default=4e6, help="of a trial (4e6); auto takes lanes from 1e7 on")
    parser.add_argument("--repetitions", type=int, default=3, help="of every trial (3)")
    parser.add_argument("--routers", nargs="+", metavar="NAME", help="only these")
    chosen = parser.parse_args()
    print(f"{'':24} {'auto M/s':>9} {'lanes M/s':>9} {'CPU ratio':>9} {'wall ratio':>10}  lanes")
    for name, (model, load) in routers().items():
        if chosen.routers and name not in chosen.routers:
            continue
        pairs = []
        try:
            for seed in range(1, chosen.repetitions + 1):
                lanes = run(model, load, chosen.frames, "lanes", seed)
                pairs.append((run(model, load, chosen.frames, "auto", seed), lanes))
        except RoutecastError as error:
            reason = re.search(r"in lanes \((.*?)\);", str(error))
            print(f"{name:24} {'':40}  {reason[1] if reason else error}")
            continue
        speeds = [statistics.median(run.frames / run.cpu_s / 1e6 for run in runs) for runs in zip(*pairs, strict=True)]
        cpu = statistics.median(auto.cpu_s / lanes.cpu_s for auto, lanes in pairs)
        wall = statistics.median(auto.wall_s / lanes.wall_s for auto, lanes in pairs)
        rates = " ".join(f"{speed:9.3g}" for speed in speeds)
        print(f"{name:24} {rates} {cpu:9.3g} {wall:10.3g}  {pairs[0][1].lanes}", flush=True)
        if name == LIMITED:
            print(f"  {limit_line([lanes for _, lanes in pairs])}", flush=True)
    return 0


def limit_line(runs: list[Run]) -> str:
    """Return the limit program's frames per CPU second, and the share of it that these runs in lanes reach."""
    try:
        limit = find_limit()
    except Missing as problem:
        return f"The limit program is skipped: {problem.reason}."
    samples = [limit.sample("NAPI", LIMIT_FRAMES, 3000.0, seed) for seed in range(1, len(runs) + 1)]
    pace = statistics.median(sample.frames_per_s for sample in samples)
    share = statistics.median(run.frames / run.cpu_s for run in runs) / pace
    return f"{'limit program':22} {pace / 1e6:19.3g} {share:9.3g}  lanes over limit program"


if __name__ == "__main__":
    raise SystemExit(main())
