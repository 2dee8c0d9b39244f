"""A trace is the load: its rate, sizes and flows, for the closed form as for the simulator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from routecast.errors import ModelProblem
from routecast.evaluate import Simulate, Solve, Trial
from routecast.evaluate.solve import _recorded, _recorded_stations
from routecast.evaluate.sweep import trial_past_transient
from routecast.load import Arrivals, Flow, FlowSet, FrameMix, OfferedLoad, RecordedFrames
from routecast.load import trace as trace_module
from routecast.load.offered import recorded_load
from routecast.router import (
    Activation,
    Need,
    Policy,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    multicore,
)
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parents[2] / "examples"
MICROSECOND = ServiceCost(per_packet_s=1e-6)


def evenly(frames: int, gap_s: float, *, size: int = 64, flows: int = 1) -> OfferedLoad:
    numbers = np.arange(frames)
    trace = RecordedFrames.of(numbers * gap_s, np.full(frames, size), numbers % flows)
    return recorded_load(trace, ports=2)


def length_s(load: OfferedLoad) -> float:
    assert load.arrivals.trace is not None
    return load.arrivals.trace.length_s


def test_one_flow_of_a_trace_overloads_one_core() -> None:
    # 2.5 Mpps on a core of 563.3 ns: 1 - 1/(2.5e6 · 563.3e-9) = 29 % are lost, but for 512 frames that wait at the end.
    router, _ = read_router_and_load(EXAMPLES / "multicore.router.toml")
    load = evenly(300_000, 0.4e-6)
    lost = 1.0 - 1.0 / (2.5e6 * 563.34e-9) - 513 / 300_000
    assert Solve(router).trial(load, 1.0).loss_ratio == pytest.approx(lost, abs=1e-3)
    assert Simulate(router).trial(load, length_s(load)).loss_ratio == pytest.approx(lost, abs=1e-3)


def test_sizes_and_flows_of_a_trace_decide_bits_and_cores() -> None:
    router = multicore(4, ServiceCost(per_packet_s=1e-6, per_byte_s=1e-9))
    load = evenly(20_000, 1e-4, size=1514, flows=2)
    for trial in (Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))):
        assert trial.l2_bps == pytest.approx(1514 * 8 * 1e4, rel=1e-3)
        busy = next(resource.utilisation_ratio for resource in trial.resources if resource.name == "cpu")
        assert busy == pytest.approx(1e4 * 2.514e-6 / 4, rel=1e-3)
    assert len(load.flows.flows) == 2


def test_rate_frames_and_weights_are_those_of_the_trace_whatever_is_given() -> None:
    trace = RecordedFrames.of([5.0, 5.1, 5.3, 5.4], [64, 64, 1518, 64], [0, 2, 2, 2])
    flows = FlowSet(name="three", flows=(Flow(rss_hash=7), Flow(rss_hash=8), Flow(rss_hash=9, ingress=1, egress=0)))
    load = OfferedLoad(rate_pps=1e9, frames=FrameMix.fixed(512), flows=flows, arrivals=Arrivals.recorded(trace))
    assert load.rate_pps == pytest.approx(3 / 0.4)
    assert load.frames.mean_bytes == pytest.approx((3 * 64 + 1518) / 4)
    assert [(flow.rss_hash, flow.weight) for flow in load.flows.flows] == [(7, 1.0), (9, 3.0)]
    assert load.arrivals.trace is not None
    assert load.arrivals.trace.flow.tolist() == [0, 1, 1, 1]
    assert load.arrivals.trace.time_s == pytest.approx([0.0, 0.1, 0.3, 0.4])


def test_another_rate_scales_the_times_of_a_trace() -> None:
    load = evenly(1000, 1e-6).at(2e6)
    assert load.rate_pps == pytest.approx(2e6)
    assert load.arrivals.trace is not None
    assert load.arrivals.trace.time_s[-1] == pytest.approx(999 * 0.5e-6)


def test_frames_out_of_order_are_sorted_and_counted() -> None:
    trace = RecordedFrames.of([1.0, 3.0, 2.0, 4.0], [64, 65, 66, 67], [0, 0, 0, 0])
    assert trace.frame_bytes.tolist() == [64, 66, 65, 67]
    assert trace.time_s.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert trace.notes == ("1 of 4 frames are out of order: they are sorted by their times",)
    with pytest.raises(ModelProblem, match="instants are finite"):
        RecordedFrames.of([0.0, float("nan")], [64, 64], [0, 0])


def test_sizes_of_a_long_trace_keep_their_mean() -> None:
    sizes = np.random.default_rng(1).integers(64, 1519, 50_000)
    trace = RecordedFrames.of(np.arange(50_000) * 1e-6, sizes, np.zeros(50_000, int))
    assert trace.mix.mean_bytes == pytest.approx(sizes.mean(), abs=2e-4)
    assert len(trace.mix.sequence_bytes) < 5000


def test_a_trace_is_measured_whole_and_never_longer_than_it_is() -> None:
    router = multicore(1, MICROSECOND)
    load = evenly(20_000, 2e-6)
    trial = Simulate(router).trial(load, 10.0)
    assert trial.duration_s == pytest.approx(0.04)
    assert trial.measured_s == pytest.approx(0.04)
    assert trial.offered_pps == trial.intended_pps == pytest.approx(500e3)
    assert not any("line rate" in note for note in trial.notes)
    part = Simulate(router, replications=2).trial(load, 0.01)
    assert part.offered_frames == 2 * 5000
    assert any("the first 10 ms" in note for note in part.notes)
    assert any("replications of a trace" in note for note in part.notes)
    assert trial_past_transient(Simulate(router), load, None).duration_s == pytest.approx(0.04)


def test_a_burst_that_overflows_a_ring_is_lost_to_the_frame() -> None:
    # Each millisecond 100 frames back to back on a link that is 50 times as fast: 1 is served, 32 wait, 66 are lost.
    at_s = (np.arange(20)[:, None] * 1e-3 + np.arange(100) * 1e-9).ravel()
    load = recorded_load(RecordedFrames.of(at_s, np.full(2000, 64), np.zeros(2000, int)), ports=2)
    router = multicore(1, MICROSECOND, queue_frames=32, link_bps=1e12)
    trial = Solve(router).trial(load, 1.0)
    assert trial.loss_ratio == pytest.approx(Simulate(router).trial(load, length_s(load)).loss_ratio, abs=1e-9)
    assert trial.loss_ratio == pytest.approx(0.67, abs=0.01)


def random_trace(seed: int, rate_pps: float, ports: int) -> OfferedLoad:
    stream = np.random.default_rng(seed)
    frames = int(stream.choice([2000, 8000]))
    kind = stream.choice(["even", "random", "bursts"])
    if kind == "bursts":
        burst = int(stream.choice([8, 64, 500]))
        starts = np.repeat(np.arange(-(-frames // burst)) * burst / rate_pps, burst)[:frames]
        at_s = starts + np.tile(np.arange(burst), -(-frames // burst))[:frames] / (20.0 * rate_pps)
    else:
        gaps = stream.exponential(1.0 / rate_pps, frames) if kind == "random" else np.full(frames, 1.0 / rate_pps)
        at_s = np.cumsum(gaps)
    sizes = stream.choice([64, 594, 1518], frames) if stream.random() < 0.5 else np.full(frames, 64)
    flows = stream.choice(8, frames, p=stream.dirichlet(np.ones(8)))
    return recorded_load(RecordedFrames.of(at_s, sizes, flows), ports=ports)


NAPI = Activation(kind="interrupt", interrupt_cost_s=2e-6, moderation_s=10e-6)
ADAPTIVE = Activation(kind="interrupt", interrupt_cost_s=2e-6, linger_s=5e-6, discipline="exhaustive")
ROUTERS = {
    "cores": multicore(4, MICROSECOND, queue_frames=64),
    "one queue": multicore(2, MICROSECOND, queue_frames=64, distribution="per_flow"),
    "moderated": multicore(2, MICROSECOND, queue_frames=64, activation=NAPI),
    "adaptive": multicore(2, MICROSECOND, queue_frames=256, activation=ADAPTIVE),
    "batches": multicore(2, ServiceCost(per_packet_s=5e-7, per_batch_s=1e-6), queue_frames=256, activation=NAPI),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ROUTERS)
def test_queues_of_recorded_frames_lose_work_and_wait_as_simulated(name: str, seed: int) -> None:
    router: RouterModel = ROUTERS[name]
    load = random_trace(seed, (0.5e6, 1.5e6, 3e6)[seed % 3], len(router.ports))
    solved, simulated = Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))
    assert solved.loss_ratio == pytest.approx(simulated.loss_ratio, abs=1e-9)
    assert solved.l2_bps == pytest.approx(simulated.l2_bps, rel=1e-9)
    used = [
        next(resource.utilisation_ratio for resource in trial.resources if resource.name == "cpu")
        for trial in (solved, simulated)
    ]
    assert used[0] == pytest.approx(used[1], rel=1e-3)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=2e-3)


def test_random_services_and_shared_units_give_a_range_that_holds_the_loss() -> None:
    router = multicore(2, ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=128)
    load = random_trace(4, 3e6, 2)
    trial = Solve(router).trial(load, 1.0)
    low, high = trial.interval["loss_ratio"]
    assert low <= Simulate(router).trial(load, length_s(load)).loss_ratio <= high
    assert high - low < 0.16


@pytest.mark.parametrize("router", ["multicore", "diversified", "bus", "dpdk-pipeline", "shared_core"])
def test_the_chunks_in_which_frames_are_served_change_nothing(router: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Bursts that fill queues: services, frames that wait and losses reach over the ends of chunks.
    model, _ = read_router_and_load(EXAMPLES / f"{router}.router.toml")
    stream = np.random.default_rng(7)
    at_s = np.sort(np.repeat(np.arange(6) * 4e-4, 500) + stream.uniform(0.0, 1e-4, 3000))
    load = recorded_load(
        RecordedFrames.of(at_s, stream.choice([64, 594, 1518], 3000), stream.integers(0, 9, 3000)),
        ports=len(model.ports),
    )
    whole = Solve(model).trial(load, 1.0)
    for chunk in (97, 450):
        for module in (_recorded, _recorded_stations):
            monkeypatch.setattr(module, "CHUNK_FRAMES", chunk)
        parts = Solve(model).trial(load, 1.0)
        assert parts.drops_pps == whole.drops_pps
        assert (parts.loss_ratio, parts.l2_bps) == pytest.approx((whole.loss_ratio, whole.l2_bps), nan_ok=True)
        assert parts.queue_frames == pytest.approx(whole.queue_frames, rel=1e-9, abs=1e-9)
        if whole.latency is not None:
            assert parts.latency is not None
            assert parts.latency.p99_s == whole.latency.p99_s
            assert parts.latency.max_s == whole.latency.max_s


def test_counts_and_variation_of_gaps_are_those_of_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = np.random.default_rng(3)
    at_s, flow = np.cumsum(stream.exponential(1e-6, 1000)), stream.integers(0, 5, 1000)
    monkeypatch.setattr(trace_module, "_CHUNK_FRAMES", 90)
    frames = RecordedFrames.of(at_s, np.full(1000, 64), flow)
    gaps_s = np.diff(at_s)
    assert frames.interarrival_scv == pytest.approx(np.var(gaps_s) / np.mean(gaps_s) ** 2)
    assert frames.frames_by_flow.tolist() == np.bincount(flow).tolist()


@pytest.mark.parametrize(("burst", "gap_s"), [(900, 0.25e-6), (3000, 0.4e-6), (3000, 1.5e-6)])
def test_a_core_whose_work_begins_with_one_queue_loses_no_more_than_all_work_at_once(burst: int, gap_s: float) -> None:
    # Each core of a virtual machine receives, forwards and sends: what waits to be received has all of this before it.
    model, _ = read_router_and_load(EXAMPLES / "parallel.router.toml")
    at_s = np.concatenate([start + np.arange(burst) * gap_s for start in np.arange(4) * 20e-3])
    load = recorded_load(
        RecordedFrames.of(at_s, np.full(len(at_s), 64), np.arange(len(at_s)) % 24), ports=len(model.ports)
    )
    solved, simulated = Solve(model).trial(load, 1.0), Simulate(model).trial(load, length_s(load))
    low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
    if burst == 900:
        # 300 frames for each core: fewer than the room of its first queue, whatever comes at once.
        assert high == 0.0
    assert np.isnan(solved.loss_ratio) or low - 1e-3 <= simulated.loss_ratio <= high + 1e-3


def bursts_of(frames: int, gap_s: float, *, ports: int, flows: int = 1, bursts: int = 10) -> OfferedLoad:
    at_s = (np.arange(bursts)[:, None] * gap_s + np.arange(frames) * 1e-9).ravel()
    numbers = np.arange(bursts * frames)
    return recorded_load(RecordedFrames.of(at_s, np.full(len(numbers), 64), numbers % flows), ports=ports)


def loss_range(trial: Trial) -> tuple[float, float]:
    """Return the stated range of the loss, also where it is too wide for a known loss."""
    between = re.search(r"loses between ([\d.]+)% and ([\d.]+)%", trial.notes[-1] if trial.notes else "")
    if between:
        return float(between[1]) / 100.0 - 5e-4, float(between[2]) / 100.0 + 5e-4
    return trial.interval.get("loss_ratio", (trial.loss_ratio, trial.loss_ratio))


def held_units(trial: Trial, pools: str) -> float:
    return sum(resource.utilisation_ratio for resource in trial.resources if resource.name.endswith(pools))


@pytest.mark.parametrize("burst", [300, 500, 700, 1000])
@pytest.mark.parametrize("spacing", [0.13, 0.2, 0.33])
def test_windows_that_keep_frames_from_the_next_lose_what_the_stated_range_holds(burst: int, spacing: float) -> None:
    # In a burst all stages wait for one memory. What the rings of the first ones keep, a later ring does not lose.
    router, _ = read_router_and_load(EXAMPLES / "ixp2850-mapping.router.toml")
    load = bursts_of(burst, burst * spacing * 1e-6, ports=len(router.ports), flows=50)
    low, high = loss_range(Solve(router).trial(load, 1.0))
    assert low - 1e-12 <= Simulate(router).trial(load, length_s(load)).loss_ratio <= high + 1e-12


def test_a_window_takes_in_as_many_frames_of_a_burst_at_once_as_it_has_room_for() -> None:
    # 100 frames within 100 ns: 8 are inside, 32 wait, 60 are lost. Each of the 40 is inside for 8 us of a millisecond.
    router = RouterModel(
        name="window",
        ports=tuple(Port(name=name, link_bps=1e12, entry="enter") for name in ("in", "out")),
        pools=(ResourcePool(name="threads", units=8),),
        tasks=(
            TaskUnit(
                name="enter",
                needs=(Need(pool="threads", until="inside"),),
                queue_frames=32,
                request="frame",
                route=Route(to=("inside",)),
            ),
            TaskUnit(
                name="inside",
                service=ServiceCost(per_packet_s=8e-6),
                parallel=8,
                queue_frames=8,
                route=Route(to=("out",)),
            ),
        ),
    )
    load = bursts_of(100, 1e-3, ports=2)
    assert Simulate(router).trial(load, length_s(load)).loss_ratio == pytest.approx(0.6, abs=1e-9)
    low, high = loss_range(Solve(router).trial(load, 1.0))
    assert low <= 0.6 <= high
    assert high - low <= 2 * 7 / 100 + 1e-9


def test_threads_of_a_window_are_held_while_frames_of_the_trace_are_inside() -> None:
    # One frame at a time: a thread is held for the time of a frame alone, whatever the mean rate of the bursts says.
    router, _ = read_router_and_load(EXAMPLES / "ixp2850-pipelined.router.toml")
    load = bursts_of(300, 100e-6, ports=len(router.ports), flows=50, bursts=20)
    solved, simulated = Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))
    assert held_units(solved, "threads") == pytest.approx(held_units(simulated, "threads"), rel=0.05)


def test_a_burst_wakes_a_thread_once_and_not_as_often_as_random_frames() -> None:
    # 64 frames of 1 us each millisecond come within 64 ns and pay once for a start of 10 us: 74 us of a millisecond.
    router = RouterModel(
        name="thread",
        ports=tuple(Port(name=name, link_bps=1e12, entry="forward") for name in ("in", "out")),
        pools=(ResourcePool(name="cpu"),),
        tasks=(
            TaskUnit(
                name="forward",
                needs=(Need(pool="cpu"),),
                service=MICROSECOND,
                activation=Activation(kind="thread", interrupt_cost_s=10e-6),
                queue_frames=256,
                route=Route(to=("out",)),
            ),
        ),
    )
    load = bursts_of(64, 1e-3, ports=2, bursts=40)
    # The trace ends while the last burst is served.
    share = (39 * 74e-6 + length_s(load) - 39e-3) / length_s(load)
    assert held_units(Simulate(router).trial(load, length_s(load)), "cpu") == pytest.approx(share, rel=1e-3)
    # Whole starts, where the trace ends within the last burst.
    assert held_units(Solve(router).trial(load, 1.0), "cpu") == pytest.approx(share, rel=0.5 / 40)


def test_frames_between_two_interrupts_wake_the_next_thread_once_and_stay_when_the_trace_ends() -> None:
    # A frame each 10 us for 10 ms, interrupts 100 us apart: 100 of them, and ten frames each wake the next thread
    # once, which pays 5 us. Without moderation 1,000 frames would wake it 1,000 times.
    router = RouterModel(
        name="moderated",
        ports=tuple(Port(name=name, link_bps=1e12, entry="softirq") for name in ("in", "out")),
        pools=(ResourcePool(name="cpu", policy=Policy(kind="linux", quantum_s=3e-3)),),
        tasks=(
            TaskUnit(
                name="softirq",
                needs=(Need(pool="cpu"),),
                priority=1000,
                service=ServiceCost(per_packet_s=0.1e-6),
                activation=Activation(kind="interrupt", moderation_s=100e-6),
                queue_frames=256,
                route=Route(to=("forward",)),
            ),
            TaskUnit(
                name="forward",
                needs=(Need(pool="cpu"),),
                service=MICROSECOND,
                activation=Activation(kind="thread", interrupt_cost_s=5e-6),
                queue_frames=256,
                route=Route(to=("out",)),
            ),
        ),
    )
    load = evenly(1000, 10e-6)
    units = (1000 * 1.1e-6 + 100 * 5e-6) / 10e-3
    for trial in (Solve(router).trial(load, length_s(load)), Simulate(router).trial(load, length_s(load))):
        assert held_units(trial, "cpu") == pytest.approx(units, rel=0.02)
        # Up to ten frames came after the last interrupt.
        assert trial.forwarded_pps * length_s(load) == pytest.approx(991, abs=1.5)


def window_of_an_engine() -> RouterModel:
    """Return eight threads of one engine: two visits of 1 us to it, and 2 us of memory between them."""
    return RouterModel(
        name="engine",
        ports=tuple(Port(name=name, link_bps=1e12, entry="enter") for name in ("in", "out")),
        pools=(ResourcePool(name="threads", units=8), ResourcePool(name="engine")),
        tasks=(
            TaskUnit(
                name="enter",
                needs=(Need(pool="threads", until="second"),),
                queue_frames=32,
                request="frame",
                route=Route(to=("first",)),
            ),
            *(
                TaskUnit(
                    name=name,
                    needs=(Need(pool="engine"),) if name != "memory" else (),
                    service=ServiceCost(per_packet_s=2e-6 if name == "memory" else 1e-6),
                    parallel=8 if name == "memory" else 1,
                    queue_frames=8,
                    request="task" if name == "memory" else "frame",
                    route=Route(to=(after,)),
                )
                for name, after in (("first", "memory"), ("memory", "second"), ("second", "out"))
            ),
        ),
    )


def test_a_burst_passes_a_window_as_fast_as_its_engine_and_not_as_its_threads() -> None:
    # Eight threads pass a frame each 0.5 us at a low mean rate, the engine one each 2 us. Of 400 frames 1 us apart half
    # pass meanwhile and 40 wait or are inside.
    router = window_of_an_engine()
    at_s = np.append(np.arange(400) * 1e-6, 40e-3)
    load = recorded_load(RecordedFrames.of(at_s, np.full(401, 64), np.zeros(401)), ports=2)
    simulated = Simulate(router).trial(load, length_s(load)).loss_ratio
    # What passes in the first microseconds, when the threads fill, is all that differs.
    assert simulated == pytest.approx((400 - 200 - 40) / 401, abs=0.01)
    low, high = loss_range(Solve(router).trial(load, 1.0))
    assert low <= simulated <= high
    # Of the eight inside it is unknown how many have begun, on both sides, and the rate to 3 %.
    assert high - low < 2 * 8 / 401 + 0.03


def test_a_frame_goes_on_from_a_window_when_its_own_work_is_done() -> None:
    # A frame each 4.2 us stays for 4 us alone, so the last one leaves before the trace ends, 4.2 us after its arrival.
    load, router = evenly(400, 4.2e-6), window_of_an_engine()
    for trial in (Solve(router).trial(load, length_s(load)), Simulate(router).trial(load, length_s(load))):
        assert trial.forwarded_pps * length_s(load) == pytest.approx(400, abs=1e-3)


def test_a_unit_that_only_serves_frames_is_busy_for_the_frames_that_it_serves() -> None:
    # Utilisation law: 0.15 us for each frame that is sent, although the bus before is full for the whole trace.
    router, _ = read_router_and_load(EXAMPLES / "bus.router.toml")
    load = evenly(2000, 1 / 6.4e6, flows=8)
    for trial in (Solve(router).trial(load, length_s(load)), Simulate(router).trial(load, length_s(load))):
        # The services are random: one standard deviation of the sum of 1,000 exponential ones is 3 %.
        assert held_units(trial, "nic out") == pytest.approx(trial.forwarded_pps * 0.15e-6, rel=0.1)


def test_workers_that_leave_each_other_enough_memories_never_wait_for_one() -> None:
    # Two of four workers get frames, each at 4 Mpps for a core of 0.72 us, and there are two memories: each is a queue
    # of its own, whatever the four would do. 1 - 1/(4 · 0.72) = 65.3 % are lost, but for 513 frames of each at the end.
    router, _ = read_router_and_load(EXAMPLES / "two_pools.router.toml")
    load = evenly(40_000, 0.125e-6, flows=2)
    lost = 1.0 - 1.0 / (4.0 * 0.72) - 2 * 513 / 40_000
    solved, simulated = Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))
    assert solved.loss_ratio == pytest.approx(lost, abs=1e-3)
    assert simulated.loss_ratio == pytest.approx(lost, abs=1e-3)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=2e-3)


def turning(*, queue_frames: int, batch_frames: int, returns: bool) -> RouterModel:
    """Return a thread that polls two queues on a unit of its own, the second of which takes what another unit sends."""
    polling = Activation(kind="polling")
    send = TaskUnit(
        name="send",
        thread="switch",
        needs=(Need(pool="cpu"),),
        pin=(0,),
        service=MICROSECOND,
        activation=polling,
        queue_frames=queue_frames,
        batch_frames=batch_frames,
        route=Route(to=("out",)),
    )
    forward = TaskUnit(
        name="forward",
        needs=(Need(pool="cpu"),),
        pin=(1,),
        service=ServiceCost(per_packet_s=0.5e-6),
        activation=polling,
        queue_frames=queue_frames,
        route=Route(to=("send",)),
    )
    receive = TaskUnit(
        name="receive",
        thread="switch",
        needs=(Need(pool="cpu"),),
        pin=(0,),
        service=MICROSECOND,
        activation=polling,
        queue_frames=queue_frames,
        batch_frames=batch_frames,
        route=Route(to=("forward" if returns else "send",)),
    )
    return RouterModel(
        name="turns",
        ports=tuple(Port(name=name, link_bps=1e12, entry="receive") for name in ("in", "out")),
        pools=(ResourcePool(name="cpu", units=2, policy=Policy(kind="linux", quantum_s=3e-3)),),
        tasks=(send, forward, receive) if returns else (send, receive),
    )


def test_a_polling_thread_serves_a_batch_of_each_queue_in_turn() -> None:
    # Eight frames at once, batches of four. The first frame is polled alone as it arrives (1 us) and sent next (1 us);
    # then four are received (6 us) and sent (10 us), and three received (13 us) and sent (16 us).
    # A frame 1 ms later is received and sent alone.
    left_us = [2.0, 7.0, 8.0, 9.0, 10.0, 14.0, 15.0, 16.0, 2.0]
    at_s = np.concatenate([np.zeros(8), [1e-3]])
    load = recorded_load(RecordedFrames.of(at_s, np.full(9, 64), np.zeros(9, int)), ports=2)
    router = turning(queue_frames=64, batch_frames=4, returns=False)
    for trial in (Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))):
        assert trial.latency is not None
        # Frames of 64 bytes follow each other on the link every 0.67 ns.
        assert trial.latency.mean_s == pytest.approx(np.mean(left_us) * 1e-6, rel=1e-3)
        assert trial.latency.max_s == pytest.approx(max(left_us) * 1e-6, rel=1e-2)


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("returns", [False, True])
def test_frames_that_come_back_to_a_polling_thread_are_served_as_simulated(seed: int, *, returns: bool) -> None:
    router = turning(queue_frames=64, batch_frames=16, returns=returns)
    load = random_trace(seed, (0.3e6, 0.45e6, 0.8e6)[seed % 3], 2)
    solved, simulated = Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))
    assert solved.loss_ratio == pytest.approx(simulated.loss_ratio, abs=1e-9)
    assert solved.l2_bps == pytest.approx(simulated.l2_bps, rel=1e-6)
    assert held_units(solved, "cpu") == pytest.approx(held_units(simulated, "cpu"), rel=1e-3)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=2e-3)


@pytest.mark.parametrize(("frames", "is_lossless"), [(1200, True), (2400, False)])
@pytest.mark.parametrize("policy", [Policy(kind="linux", quantum_s=3e-3), Policy(kind="fifo")])
def test_task_units_that_take_turns_at_a_unit_get_theirs(frames: int, policy: Policy, *, is_lossless: bool) -> None:
    # A core of 2 us a frame gets 1.2 frames/us. Of two interrupts that take turns of at most 64 frames of 1 us, the
    # first one takes in 0.5 frames/us at least, so that of 1,200 frames at most 700 wait, and those of 3 turns more:
    # fewer than its 1,024 places, whatever else comes back to the core.
    softirqs = [
        TaskUnit(
            name=name,
            needs=(Need(pool="cpu"),),
            service=MICROSECOND,
            priority=1000 if policy.kind == "linux" else 0,
            activation=Activation(kind="interrupt", budget_frames=64),
            queue_frames=1024,
            route=Route(to=(following,)),
        )
        for name, following in (("receive", "send"), ("send", "out"))
    ]
    router = RouterModel(
        name="turns",
        ports=tuple(Port(name=name, link_bps=1e12, entry="receive") for name in ("in", "out")),
        pools=(ResourcePool(name="cpu", policy=policy),),
        tasks=tuple(softirqs),
    )
    load = evenly(frames, 1 / 1.2e6)
    low, high = loss_range(Solve(router).trial(load, 1.0))
    simulated = Simulate(router).trial(load, length_s(load)).loss_ratio
    assert low - 1e-9 <= simulated <= high + 1e-9
    assert (high == 0.0) == (simulated == 0.0) == is_lossless


@pytest.mark.parametrize("frames", [1, 600])
def test_frames_of_one_instant_are_a_load_of_a_millisecond(frames: int) -> None:
    # 600 frames of 64 bytes take 600 · 67.2 ns of a link of 10 Gbit/s, 4.03 % of a millisecond.
    router = multicore(1, MICROSECOND, queue_frames=1024, link_bps=10e9)
    load = recorded_load(RecordedFrames.of(np.full(frames, 5.0), np.full(frames, 64), np.zeros(frames, int)), ports=2)
    assert load.rate_pps == pytest.approx(frames * 1e3)
    for trial in (Solve(router).trial(load, 1.0), Simulate(router).trial(load, length_s(load))):
        assert trial.intended_pps == trial.offered_pps == pytest.approx(frames * 1e3)
        assert max(
            resource.utilisation_ratio for resource in trial.resources if resource.kind == "link"
        ) == pytest.approx(frames * 67.2e-9 / 1e-3, rel=1e-3)


def busy_units(trial: Trial, router: RouterModel) -> float:
    units = {pool.name: pool.units for pool in router.pools}
    return sum(r.utilisation_ratio * units[r.name] for r in trial.resources if r.kind == "pool")


@pytest.mark.parametrize("name", ["ixp2850-mapping", "diversified"])
def test_frames_that_threads_of_engines_serve_at_once_have_the_course_of_the_simulation(name: str) -> None:
    # Constant services in the order of arrival leave nothing to chance, so both know each frame's course.
    router, _ = read_router_and_load(EXAMPLES / f"{name}.router.toml")
    at_s = np.cumsum(np.random.default_rng(1).exponential(5e-7, 400))
    load = recorded_load(RecordedFrames.of(at_s, np.full(400, 64), np.arange(400) % 7), ports=len(router.ports))
    solved, simulated = (judge(router).trial(load, length_s(load)) for judge in (Solve, Simulate))
    assert busy_units(solved, router) == pytest.approx(busy_units(simulated, router), rel=1e-6)
    assert solved.forwarded_pps == pytest.approx(simulated.forwarded_pps, rel=1e-6)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=1e-6)


@pytest.mark.parametrize(("name", "rate_pps"), [("virtual", 80e3), ("parallel", 180e3), ("multistage", 20e3)])
def test_threads_start_as_often_as_the_frames_of_a_trace_wake_them(name: str, rate_pps: float) -> None:
    # A backend wakes to receive and again to send; in batches, where frames wait for the core that both share.
    router, _ = read_router_and_load(EXAMPLES / f"{name}.router.toml")
    for at_s in (np.arange(1000) / rate_pps, np.cumsum(np.random.default_rng(2).exponential(1.0 / rate_pps, 1000))):
        load = recorded_load(RecordedFrames.of(at_s, np.full(1000, 64), np.zeros(1000, int)), ports=len(router.ports))
        solved, simulated = (judge(router).trial(load, length_s(load)) for judge in (Solve, Simulate))
        assert busy_units(solved, router) == pytest.approx(busy_units(simulated, router), rel=0.05)


def test_what_random_services_pass_by_the_end_of_a_trace_has_a_range() -> None:
    router, _ = read_router_and_load(EXAMPLES / "bus.router.toml")
    at_s = np.arange(1500) * 1e-8
    at_s[-1] = 2e-4
    load = recorded_load(RecordedFrames.of(at_s, np.full(1500, 64), np.arange(1500) % 8), ports=len(router.ports))
    low, high = Solve(router).trial(load, length_s(load)).interval["forwarded_pps"]
    rates = [Simulate(router, seed=seed).trial(load, length_s(load)).forwarded_pps for seed in range(1, 9)]
    assert all(low < rate < high for rate in rates)
    # Some 800 frames pass, of two exponential services each: 3·sqrt(2/800) is 15 % to either side.
    assert high < 1.4 * low
