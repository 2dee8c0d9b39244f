"""Plays the same frames into a router in ns-3 and in routecast's simulator, and prints what becomes of them.

    python packages/ns3/side_by_side.py BUILD [TABLES]

BUILD holds the programs of the ns-3 module; TABLES is what its case study printed, router-resources-meyer2014: each
throughput in it stands beside that of the same router and flows in routecast's simulator, and may be TABLES_AGREE off.
Frames come at random (Poisson), at the same instants for both, over links
that take no time. Where no service time and no way is drawn, every frame has to leave at the same picosecond or be
dropped at the same place, and every message of the managers has to be the same. Elsewhere throughput, loss and mean
sojourn time of REPETITIONS pairs of runs may differ by what their spread explains (99.9 %). Leaves with 1 if a router
does not agree.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.lab.ns3 import ns3_document
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad, RecordedFrames
from routecast.router.files import parse_router, read_router_and_load
from routecast.router.model import RouterModel, ServiceCost
from routecast.router.multicore import multicore

EXAMPLES = Path(__file__).parents[2] / "examples"
FRAMES = 4000
REPETITIONS = 10
T_999 = 4.781
"""Student's t of nine degrees of freedom, 99.9 % two-sided."""
MESSAGES = 200_000
ROUNDING_PS = 2
"""Instants are whole picoseconds, which each engine rounds a service time to by itself."""
PS = 1e12

PORTS = """
[[port]]
name = "a"
link = "1 Tbit/s"
entry = "spread"
[[port]]
name = "b"
link = "1 Tbit/s"
entry = "{other}"
"""
OWN = {
    "preemptive": PORTS.format(other="high")
    + """
[[pool]]
name = "cpu"
units = 2
policy = { kind = "preemptive" }
switch_cost = "100 ns"
migration_cost = "50 ns"
contention = { sigma = 0.1 }
[[task]]
name = "spread"
route = { kind = "rss", to = ["low", "middle"] }
[[task]]
name = "low"
needs = [{ pool = "cpu" }]
parallel = 2
service = { per_packet = "2 us" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "middle"
needs = [{ pool = "cpu" }]
priority = 1
batch = "8 frames"
service = { per_packet = "1 us", per_batch = "300 ns" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "high"
needs = [{ pool = "cpu" }]
priority = 2
queue = "32 frames"
service = { per_packet = "700 ns", per_byte = "1 ns/B" }
route = { kind = "egress", to = ["a", "b"] }
""",
    "round robin": PORTS.format(other="spread")
    + """
[[pool]]
name = "cpu"
units = 1
policy = { kind = "round_robin", quantum = "900 ns" }
switch_cost = "20 ns"
[[task]]
name = "spread"
route = { kind = "rss", to = ["x", "y", "z"] }
[[task]]
name = "x"
needs = [{ pool = "cpu" }]
service = { per_packet = "2 us" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "y"
needs = [{ pool = "cpu" }]
service = { per_packet = "500 ns" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "z"
needs = [{ pool = "cpu" }]
batch = "4 frames"
service = { per_packet = "400 ns" }
route = { kind = "egress", to = ["a", "b"] }
""",
    "fair": PORTS.format(other="spread")
    + """
[[pool]]
name = "cpu"
units = 2
policy = { kind = "fair", quantum = "5 us" }
[[task]]
name = "spread"
route = { kind = "round_robin", to = ["x", "y", "z"] }
[[task]]
name = "x"
needs = [{ pool = "cpu" }]
weight = 3.0
batch = "16 frames"
service = { per_packet = "900 ns" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "y"
needs = [{ pool = "cpu" }]
batch = "16 frames"
service = { per_packet = "900 ns" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "z"
needs = [{ pool = "cpu" }]
activation = { kind = "interrupt", budget = "8 frames", interrupt_cost = "300 ns" }
service = { per_packet = "1.1 us" }
route = { kind = "egress", to = ["a", "b"] }
""",
    "polling": PORTS.format(other="spread")
    + """
[[pool]]
name = "cpu"
units = 2
[[task]]
name = "spread"
route = { kind = "rss", to = ["x", "y"] }
[[task]]
name = "x"
needs = [{ pool = "cpu" }]
activation = { kind = "polling" }
batch = "32 frames"
service = { per_packet = "600 ns" }
route = { kind = "egress", to = ["a", "b"] }
[[task]]
name = "y"
needs = [{ pool = "cpu" }]
activation = { kind = "polling" }
batch = "32 frames"
service = { per_packet = "600 ns" }
route = { kind = "egress", to = ["a", "b"] }
""",
}
"""Routers of which the examples have none, without anything drawn."""

TABLES_AGREE = 1e-3
"""Both count whole frames over some milliseconds."""

Fates = list[tuple[int, str]]
"""Of each frame the instant when it left, ps, or below 0; where it was dropped."""


@dataclass(frozen=True)
class Played:
    """What became of the frames of a run."""

    fates: Fates
    messages: Sequence[tuple[int, str, str, str, str]]

    def figures(self, arrivals_ps: Sequence[int]) -> np.ndarray:
        """Share that left, share that was lost, mean sojourn time in us."""
        left = [(at, came) for (at, _), came in zip(self.fates, arrivals_ps, strict=True) if at >= 0]
        lost = sum(1 for _, where in self.fates if where)
        sojourn = np.mean([at - came for at, came in left]) * 1e-6 if left else 0.0
        return np.array([len(left) / len(self.fates), lost / len(self.fates), sojourn])


def routers() -> Iterator[tuple[str, RouterModel, FlowSet, int]]:
    """Every router that both can express, with its flows and its frame size."""
    paths = sorted(EXAMPLES.glob("*.router.toml"))
    assert paths, f"no routers in {EXAMPLES}"
    for path in paths:
        model, load = read_router_and_load(path)
        try:
            ns3_document(model)
        except ModelProblem:
            continue
        assert load is not None
        yield path.name.removesuffix(".router.toml"), model, load.flows, round(load.frames.mean_bytes)
    for name, text in OWN.items():
        model, _ = parse_router(text, subject=name)
        yield name, model, FlowSet.random(24), 128


def without_links(model: RouterModel) -> RouterModel:
    """The router with links that take next to no time, and never drop."""
    ports = tuple(replace(port, link_bps=1e18, tx_ring_frames=1 << 20) for port in model.ports)
    return replace(model, ports=ports)


def poisson(flows: FlowSet, frame_bytes: int, rate_pps: float, seed: int) -> OfferedLoad:
    """Frames at random instants that are whole picoseconds, of random flows."""
    random = np.random.default_rng(seed)
    times_ps = np.cumsum(np.ceil(random.exponential(PS / rate_pps, FRAMES)).astype(np.int64))
    # Flows of equal weights stay in their order as long as all of them have frames.
    numbers = random.integers(len(flows.flows), size=FRAMES)
    trace = RecordedFrames.of(times_ps / PS, np.full(FRAMES, frame_bytes), numbers)
    return OfferedLoad(rate_pps=rate_pps, flows=flows, arrivals=Arrivals.recorded(trace))


def instants_ps(load: OfferedLoad) -> list[int]:
    assert load.arrivals.trace is not None
    return [round(at * PS) for at in load.arrivals.trace.time_s.tolist()]


def in_ns3(build: Path, model: RouterModel, load: OfferedLoad, duration_s: float, seed: int) -> Played:
    with tempfile.TemporaryDirectory() as folder:
        router, trace = Path(folder) / "router.json", Path(folder) / "trace.csv"
        router.write_text(json.dumps(ns3_document(model)))
        rows = ["time_ps,frame_bytes,ingress,egress,entry"]
        recorded = load.arrivals.trace
        assert recorded is not None
        for at, size, number in zip(
            instants_ps(load), recorded.frame_bytes.tolist(), recorded.flow.tolist(), strict=True
        ):
            flow = load.flows.flows[number]
            rows.append(f"{at},{size},{flow.ingress},{flow.egress},{flow.rss_hash % 128}")
        trace.write_text("\n".join(rows) + "\n")
        command: list[str | Path] = [
            build / "router-resources-replay",
            f"--router={router}",
            f"--trace={trace}",
            "--messages",
        ]
        done = subprocess.run(
            [*command, f"--duration={duration_s!r}", f"--RngRun={seed + 1}"], check=True, capture_output=True, text=True
        ).stdout
    fates: Fates = []
    messages = []
    for line in done.splitlines():
        kind, *cells = line.split(",")
        if kind == "message":
            when, what, task, pool, unit = cells
            messages.append((int(when), what, task, pool, unit))
        else:
            end = cells[1]
            fates.append((int(end), "") if end.isdigit() else (-1, "" if end == "inside" else end))
    return Played(fates, messages)


def in_routecast(model: RouterModel, load: OfferedLoad, duration_s: float, seed: int) -> Played:
    traced = Simulate(model, seed=seed).trace(load, duration_s, message_limit=MESSAGES)
    fates: Fates = [(-1, "")] * FRAMES
    # Frames are numbered in the order in which they came.
    for fate in traced.fates:
        fates[fate.number] = (-1, fate.dropped_at) if fate.dropped_at else (round(fate.end_s * PS), "")
    messages = [
        (round(m.at_s * PS), m.kind, m.task, m.pool, "" if m.unit is None else str(m.unit)) for m in traced.messages
    ]
    return Played(fates, messages)


def is_drawn(model: RouterModel) -> bool:
    return any(task.service.variation != "deterministic" or task.route.kind == "random" for task in model.tasks)


def of_the_case_study(count: int, frame_bytes: int, cores: int, link_bps: float) -> float:
    """Throughput of Meyer's router in routecast's simulator, Gbit/s with preamble and gap.

    Twice a link's rate is offered, spread evenly over the flows, which come from either side in turn; with eight cores
    the last of an odd number comes half from either side. What does not fit on a link stays away.
    """
    used = min(count, cores)
    wire_bits = 8.0 * (frame_bytes + 20)
    busy_bps = ((0.011392 * used + 0.002708) * frame_bytes + 0.227037 * used + 0.063321) * 1e9
    model = multicore(cores, ServiceCost(per_packet_s=used * wire_bits / busy_bps), link_bps=link_bps)
    flows = list((FlowSet.crafted(count) if count <= cores else FlowSet.random(count)).flows)
    if cores == 8 and count % 2:
        last = replace(flows.pop(), weight=0.5)
        flows += [last, replace(last, ingress=last.egress, egress=last.ingress)]
    share_bps = 2.0 * link_bps / count
    sides = [share_bps * sum(flow.weight for flow in flows if flow.ingress == side) for side in (0, 1)]
    fitting = [min(1.0, link_bps / side) if side else 1.0 for side in sides]
    flows = [replace(flow, weight=flow.weight * fitting[flow.ingress]) for flow in flows]
    load = OfferedLoad(
        rate_pps=sum(flow.weight for flow in flows) * share_bps / wire_bits,
        frames=FrameMix.fixed(frame_bytes),
        flows=FlowSet(name=f"{count} flows", flows=tuple(flows)),
    )
    return Simulate(model, seed=1, steady_state=False).trial(load, 0.02).forwarded_pps * wire_bits * 1e-9


def tables_agree(printed: str) -> bool:
    """Print each row of Table II and Fig. 9 beside routecast's simulator."""
    worst, rows = 0.0, 0
    print("Meyer et al. 2014, throughput [Gbit/s]   ns-3   routecast simulate")
    cores, link_bps, place = 0, 0.0, ""
    for line in printed.splitlines():
        cells = line.replace(" B ", " ").split()
        if line.startswith(("Table II", "Fig. ")):
            place = line.split(":")[0]
            cores, link_bps = (8, 50e9) if place == "Fig. 9" else (4, 10e9)
        elif cells and cells[0].isdigit() and place in ("Table II", "Fig. 9"):
            count, frame_bytes, there = (
                (int(cells[0]), int(cells[1]), float(cells[5]))
                if place == "Table II"
                else (int(cells[0]), 1518, float(cells[3]))
            )
            here = of_the_case_study(count, frame_bytes, cores, link_bps)
            worst, rows = max(worst, abs(there / here - 1.0)), rows + 1
            print(
                f"{place:<9}{count:>4} flows {frame_bytes:>5} B {there:>17.4f} {here:>10.4f}  {there / here - 1.0:+.3%}"
            )
    print(f"{rows} rows, at most {worst:.3%} apart")
    return rows > 0 and worst <= TABLES_AGREE


def main(build: Path, tables: str) -> int:
    agree = not tables or tables_agree(tables)
    print("routecast simulate and ns-3, the same frames, Poisson")
    print(f"{'router':<14}{'load':>5}  {'left, %':>15}  {'lost, %':>15}  {'sojourn, us':>19}  agreement")
    for name, original, flows, frame_bytes in routers():
        model = without_links(original)
        probe = OfferedLoad(rate_pps=1e5, flows=flows)
        capacity_pps = min(one.capacity_pps for one in Solve(model=model).trial(probe, 1.0).resources)
        for share in (0.7, 1.5):
            rate_pps = share * capacity_pps
            drawn = is_drawn(model)
            figures, verdict = [], ""
            for seed in range(REPETITIONS if drawn else 1):
                load = poisson(flows, frame_bytes, rate_pps, seed)
                duration_s = (instants_ps(load)[-1] + 1) / PS
                there = in_ns3(build, model, load, duration_s, seed)
                here = in_routecast(model, load, duration_s, seed)
                figures.append((here.figures(instants_ps(load)), there.figures(instants_ps(load))))
                if not drawn:
                    verdict = compared(here, there)
            pairs = np.array(figures)
            if drawn:
                difference = pairs[:, 1] - pairs[:, 0]
                bound = T_999 * difference.std(axis=0, ddof=1) / np.sqrt(len(pairs)) + 1e-12
                outside = np.abs(difference.mean(axis=0)) > bound
                verdict = "" if not outside.any() else "outside the 99.9 % interval"
            agree = agree and not verdict
            here_mean, there_mean = pairs.mean(axis=0)
            columns = "  ".join(
                f"{scale * a:7.{digits}f} {scale * b:{width}.{digits}f}"
                for a, b, scale, digits, width in zip(
                    here_mean, there_mean, (100, 100, 1), (2, 2, 3), (7, 7, 11), strict=True
                )
            )
            said = verdict or (f"within the spread of {REPETITIONS}" if drawn else "every frame and message")
            print(f"{name:<14}{share:>5}  {columns}  {said}")
    print("all agree" if agree else "not all agree")
    return 0 if agree else 1


def compared(here: Played, there: Played) -> str:
    """Say what differs first; empty: nothing."""
    for number, (a, b) in enumerate(zip(here.fates, there.fates, strict=True)):
        if a[1] != b[1] or abs(a[0] - b[0]) > ROUNDING_PS:
            return f"frame {number}: {a} and {b}"
    for number, (one, other) in enumerate(zip(here.messages, there.messages, strict=False)):
        if one[1:] != other[1:]:
            return f"message {number}: {one} and {other}"
    if len(here.messages) != len(there.messages):
        return f"{len(here.messages)} and {len(there.messages)} messages"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]).read_text() if len(sys.argv) > 2 else ""))
