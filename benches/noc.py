"""The flit-level simulator and BookSim2 on the same 8 x 8 mesh in one run: latency, saturation, speed.

Dimension order, buffers of 8 flits, packets of 8 flits, uniform traffic with the node itself among the targets, iSLIP
with one round, one cycle for each stage and channel. BookSim2 is not part of this: ``--booksim`` names its binary.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from routecast.noc import _noc
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, scenario_texts, single
from routecast.noc.topology import Topology, TopologyKind
from routecast.noc.traffic import Traffic

__all__ = ["Seen", "by_booksim", "by_us", "main"]

SIDE = 8
FLITS = 8
# Below 80 % of saturation, which is near 0.26 with one virtual channel and 0.39 with four.
RATES = {1: (0.05, 0.1, 0.15, 0.2), 4: (0.1, 0.2, 0.3)}
SPEED = {1: 0.2, 4: 0.35}
OVERLOAD = 0.6
WARMUP, MEASURE = 30_000, 60_000

_CONFIGURATION = f"""
topology = mesh; k = {SIDE}; n = 2; routing_function = dim_order; router = iq;
vc_buf_size = 8; buffer_policy = private; wait_for_tail_credit = 0;
routing_delay = 0; vc_alloc_delay = 1; sw_alloc_delay = 1; st_prepare_delay = 0; st_final_delay = 1;
credit_delay = 1; output_delay = 0; speculative = 0;
input_speedup = 1; output_speedup = 1; internal_speedup = 1.0;
vc_allocator = islip; sw_allocator = islip; alloc_iters = 1; arb_type = round_robin;
injection_process = bernoulli; injection_rate_uses_flits = 1; include_queuing = 1;
packet_size = {FLITS}; traffic = uniform; latency_thres = 5000.0; sim_count = 1;
sample_period = 10000; warmup_periods = 3; max_samples = 9;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run: mean packet latency in cycles, accepted flits per node and cycle, and its speed."""

    latency: float
    accepted: float
    flit_hops: float
    cpu_s: float

    @property
    def speed(self) -> float:
        """Flits through routers per second of CPU time."""
        return self.flit_hops / self.cpu_s


def by_us(vcs: int, rate: float, seed: int, *, overload: bool = False) -> Seen:
    """Simulate with routecast, on one core: one scenario is one thread."""
    mesh = Topology(kind=TopologyKind.MESH, columns=SIDE, rows=SIDE)
    nodes = SIDE * SIDE
    traffic = Traffic(name="uniform with itself", demand=np.full((nodes, nodes), rate / nodes))
    design, packets = RouterDesign.booksim(vcs), Packets(flits=(FLITS,))
    fabric = single(mesh, traffic, routes("xy", mesh), design=design, packets=packets)
    drain = 0 if overload else MEASURE
    run = SimulationPhases(seed=seed, replications=1, warmup_cycles=WARMUP, measure_cycles=MEASURE, drain_cycles=drain)
    texts = scenario_texts(fabric, run)
    begin = time.process_time()
    (answer,) = _noc.noc_simulate(texts)
    cpu_s = time.process_time() - begin
    outcome = json.loads(answer)
    return Seen(
        latency=outcome["packet_latency"]["mean"],
        accepted=sum(outcome["accepted_flits"]) / nodes / MEASURE,
        flit_hops=outcome["flit_hops"],
        cpu_s=cpu_s,
    )


def by_booksim(binary: Path, vcs: int, rate: float, seed: int, *, overload: bool = False) -> Seen:
    """Simulate with BookSim2; its flit-hops are accepted flits of all its cycles times mean hops."""
    kind = "throughput" if overload else "latency"
    varied = f"num_vcs = {vcs}; injection_rate = {rate}; seed = {seed}; sim_type = {kind};\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mesh.cfg")
        path.write_text(_CONFIGURATION + varied)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run([str(binary), str(path)], capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)

    def last(pattern: str) -> float:
        result = re.findall(pattern, run.stdout)
        if not result:
            sys.exit(f"BookSim2 does not say {pattern!r}; the end of what it says:\n{run.stdout[-500:]}")
        return float(result[-1])

    accepted = last(r"Accepted flit rate average = (\S+) \(")
    cycles = last(r"Time taken is (\d+) cycles")
    return Seen(
        latency=last(r"Packet latency average = (\S+) \("),
        accepted=accepted,
        flit_hops=accepted * SIDE * SIDE * cycles * last(r"Hops average = (\S+) \("),
        cpu_s=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def mean(runs: Sequence[Seen], field: str) -> float:
    """Return the mean of a field."""
    return statistics.fmean(getattr(run, field) for run in runs)


def compared(name: str, ours: float, peers: float | None, *, ratio: bool = False) -> str:
    """Return a figure, the peer's, and their difference or ratio."""
    if peers is None:
        return f"{name:<46}{ours:>12.4g}"
    beside = f"{ours / peers:>8.1f} x" if ratio else f"{100 * (ours / peers - 1):>+8.2f} %"
    return f"{name:<46}{ours:>12.4g}{peers:>12.4g}{beside}"


def idle_s(side: int, cycles: int) -> float:
    """Return the CPU time of a large mesh with a packet in a million cycles, beyond that of building it."""

    def cpu_s(cycles: int) -> float:
        mesh = Topology(kind=TopologyKind.MESH, columns=side, rows=side)
        demand = np.zeros((side * side, side * side))
        demand[0, -1] = FLITS * 1e-6
        traffic = Traffic(name="one flow", demand=demand)
        design, packets = RouterDesign.booksim(), Packets(flits=(FLITS,))
        fabric = single(mesh, traffic, routes("xy", mesh, demand=demand), design=design, packets=packets)
        run = SimulationPhases(seed=1, replications=1, warmup_cycles=0, measure_cycles=cycles, drain_cycles=1000)
        texts = scenario_texts(fabric, run)
        begin = time.process_time()
        _noc.noc_simulate(texts)
        return time.process_time() - begin

    return cpu_s(cycles) - cpu_s(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print latencies, saturation throughput and speeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--booksim", type=Path, help="binary of BookSim2, compiled with -O3")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each point, in turns")
    chosen = parser.parse_args(arguments)
    if chosen.booksim is None:
        print("WITHOUT BOOKSIM2: only our own figures; give its binary with --booksim PATH", file=sys.stderr)
    elif not chosen.booksim.is_file():
        parser.error(f"{chosen.booksim} is not a file")

    def both(vcs: int, rate: float, *, overload: bool = False) -> tuple[list[Seen], list[Seen]]:
        ours, peers = [], []
        for seed in range(1, chosen.seeds + 1):
            ours.append(by_us(vcs, rate, seed, overload=overload))
            if chosen.booksim is not None:
                peers.append(by_booksim(chosen.booksim, vcs, rate, seed, overload=overload))
        return ours, peers

    def line(name: str, field: str, runs: tuple[list[Seen], list[Seen]], *, ratio: bool = False) -> None:
        ours, peers = runs
        print(compared(name, mean(ours, field), mean(peers, field) if peers else None, ratio=ratio), flush=True)

    print(f"{'':<46}{'routecast':>12}" + (f"{'BookSim2':>12}" if chosen.booksim else ""))
    for vcs, rates in RATES.items():
        for rate in rates:
            line(f"latency, {vcs} VC, {rate:g} flits/node/cycle", "latency", both(vcs, rate))
        runs = both(vcs, OVERLOAD, overload=True)
        line(f"accepted at overload, {vcs} VC, flits/node/cycle", "accepted", runs)
        runs = both(vcs, SPEED[vcs])
        line(f"flit-hops per CPU second, {vcs} VC, {SPEED[vcs]:g}", "speed", runs, ratio=True)
    print(f"idle 64 x 64 mesh, 100 million cycles: {idle_s(64, 100_000_000):.3g} s of CPU time")


if __name__ == "__main__":
    main()
