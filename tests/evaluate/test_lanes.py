"""Trials in lanes: theory, other paths, notes and refusals."""

from __future__ import annotations

import importlib
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from routecast.errors import ModelProblem
from routecast.evaluate import MMc, MMcK
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Trial
from routecast.load import Arrivals, Flow, FlowSet, FrameMix, OfferedLoad
from routecast.load.trace import RecordedFrames
from routecast.router import (
    Activation,
    Contention,
    Need,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    multicore,
    station,
)
from routecast.router.files import read_router_and_load

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
random_router = importlib.import_module("scenarios").random_router

UNEQUAL = FlowSet(
    name="unequal", flows=tuple(Flow(rss_hash=i, ingress=i % 2, egress=1 - i % 2, weight=1.0 + i) for i in range(4))
)
EXAMPLES = Path(__file__).parents[2] / "examples"


def queue(variation: str = "exponential") -> RouterModel:
    return station(ServiceCost(per_packet_s=1e-6, variation=variation), queue_frames=49)


def poisson(rate_pps: float) -> OfferedLoad:
    return OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.poisson())


def assert_it_obeys(law: MMcK, trial: Trial) -> None:
    """Compare loss and mean latency with a law."""
    assert trial.latency is not None
    for name, found, exact in (
        ("loss_ratio", trial.loss_ratio, law.loss_ratio),
        ("latency.mean_s", trial.latency.mean_s, law.sojourn_mean_s),
    ):
        low, high = trial.interval[name]
        # 95 % intervals, made wider to 3.3 standard errors: the seed is fixed, and there are six figures.
        assert found == pytest.approx(exact, abs=3.3 / 1.96 * 0.5 * (high - low)), name


@pytest.mark.parametrize("load_ratio", [0.9, 1.0, 1.3])
def test_a_queue_in_lanes_loses_and_delays_what_theory_says(load_ratio: float) -> None:
    law = MMcK(arrival_pps=load_ratio * 1e6, service_s=1e-6, servers=1, capacity_frames=50)
    trial = Simulate(queue(), path="lanes", replications=8).trial(poisson(load_ratio * 1e6), 0.5)
    assert_it_obeys(law, trial)


def four_cores() -> tuple[RouterModel, OfferedLoad]:
    router = multicore(4, ServiceCost(per_packet_s=0.5e-6, per_byte_s=0.1e-9), link_bps=10e9, queue_frames=128)
    load = OfferedLoad(
        rate_pps=6e6,
        frames=FrameMix(name="two", sequence_bytes=(64, 570), order="random"),
        flows=FlowSet.crafted(4, ports=2),
        arrivals=Arrivals.poisson(),
    )
    return router, load


def test_a_router_in_lanes_forwards_what_it_forwards_by_recursion() -> None:
    router, load = four_cores()
    lanes, recursion = (Simulate(router, path=path).trial(load, 0.2) for path in ("lanes", "recursion"))
    assert lanes.forwarded_pps == pytest.approx(recursion.forwarded_pps, rel=2e-3)
    assert lanes.latency is not None
    assert recursion.latency is not None
    assert lanes.latency.mean_s == pytest.approx(recursion.latency.mean_s, rel=0.05)
    assert lanes.latency.p99_s == pytest.approx(recursion.latency.p99_s, rel=0.1)
    assert lanes.bottleneck is not None
    assert recursion.bottleneck is not None
    assert not lanes.bottleneck.differs_from(recursion.bottleneck)


def test_a_router_with_interrupts_in_lanes_is_that_of_the_events() -> None:
    router, load = read_router_and_load(EXAMPLES / "napi.router.toml")
    assert load is not None
    lanes, events = (Simulate(router, path=path).trial(load, 0.5) for path in ("lanes", "events"))
    assert lanes.latency is not None
    assert events.latency is not None
    assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.02)
    assert lanes.latency.p99_s == pytest.approx(events.latency.p99_s, rel=0.05)
    mine, theirs = (next(iter(trial.activity)) for trial in (lanes, events))
    assert mine.interrupts_per_s == pytest.approx(theirs.interrupts_per_s, rel=0.02)


def test_it_says_that_seams_were_proved_and_by_which_rule_it_was_drawn() -> None:
    trial = Simulate(queue(), path="lanes").trial(poisson(0.9e6), 2.0)
    (note,) = (note for note in trial.notes if note.startswith("in lanes"))
    proved, seams = re.findall(r"\d+", note)[:2]
    assert proved == seams
    assert "a seed gives another trial" in note
    assert not any(note.startswith("in lanes") for note in Simulate(queue()).trial(poisson(0.9e6), 0.05).notes)


def figures(trial: Trial) -> tuple[int | None, ...]:
    return trial.offered_frames, trial.forwarded_frames, trial.dropped_frames


def test_a_seed_gives_one_trial_and_replications_differ() -> None:
    simulate = Simulate(queue(), path="lanes", seed=5)
    first, again = simulate.trial(poisson(1e6), 0.2), simulate.trial(poisson(1e6), 0.2)
    assert figures(first) == figures(again)
    assert figures(replace(simulate, seed=6).trial(poisson(1e6), 0.2)) != figures(first)
    three = replace(simulate, replications=3).trial(poisson(1e6), 0.2)
    assert three.offered_frames != 3 * (first.offered_frames or 0)
    assert three.forwarded_frames is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrivals": Arrivals.bursts(8), "flows": UNEQUAL}, "its flows are not equally frequent"),
        ({"arrivals": Arrivals.on_off(burst_frames=8, peak_ratio=2.0), "flows": UNEQUAL}, "not equally frequent"),
        ({"frames": FrameMix(name="two", sequence_bytes=(64, 570))}, "repeat in order"),
    ],
)
def test_what_is_not_of_their_kind_is_refused_with_the_reason(change: dict[str, object], message: str) -> None:
    router, load = four_cores()
    with pytest.raises(ModelProblem, match=message):
        Simulate(router, path="lanes").trial(replace(load, **change), 0.01)  # type: ignore[arg-type]


def on_off_sojourn_s(rate_pps: float, burst_frames: float, peak_ratio: float) -> float:
    """GI/M/1, services of 1 us: sigma is the root of sigma = A(mu (1 - sigma)) (Kleinrock 1975)."""
    within_s, sigma = 1.0 / (rate_pps * peak_ratio), 0.5
    pause_s = burst_frames * (1.0 / rate_pps - within_s)
    for _ in range(10_000):
        s = 1e6 * (1.0 - sigma)
        pause = 1.0 - 1.0 / burst_frames + 1.0 / (burst_frames * (1.0 + s * pause_s))
        sigma = math.exp(-s * within_s) * pause
    return 1e-6 / (1.0 - sigma)


@pytest.mark.parametrize(
    ("rate_pps", "burst_frames", "peak_ratio"), [(0.6e6, 16.0, 4.0), (0.8e6, 4.0, 2.0), (0.3e6, 200.0, 3.0)]
)
def test_on_off_bursts_at_one_queue_delay_what_g_m_1_says(
    rate_pps: float, burst_frames: float, peak_ratio: float
) -> None:
    router = station(ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=20_000)
    arrivals = Arrivals.on_off(burst_frames=burst_frames, peak_ratio=peak_ratio)
    load = OfferedLoad(rate_pps=rate_pps, arrivals=arrivals)
    trial = Simulate(router, path="lanes", replications=8).trial(load, 1.5)
    assert trial.latency is not None
    low, high = trial.interval["latency.mean_s"]
    exact_s = on_off_sojourn_s(rate_pps, burst_frames, peak_ratio)
    assert trial.latency.mean_s == pytest.approx(exact_s, abs=3.3 / 1.96 * 0.5 * (high - low))
    assert high - low < 0.1 * exact_s
    assert trial.offered_pps == pytest.approx(rate_pps, rel=0.02)


@pytest.mark.parametrize("frames", [1, 7, 32])
def test_the_frames_of_a_burst_wait_for_those_before_them(frames: int) -> None:
    # Due at once on a wire without length, served one after the other in 1 us each: (n - 1)/2 us of waiting.
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e18, queue_frames=64)
    load = OfferedLoad(rate_pps=0.4e6, arrivals=Arrivals.bursts(frames), flows=FlowSet.crafted(1, ports=1))
    trial = Simulate(router, path="lanes", steady_state=False).trial(load, 0.1)
    assert trial.latency is not None
    assert trial.latency.mean_s == pytest.approx(1e-6 * (1.0 + 0.5 * (frames - 1)), abs=1e-9)
    assert trial.latency.max_s == pytest.approx(1e-6 * frames, rel=0.02)
    assert trial.dropped_frames == 0


def test_bursts_of_many_flows_behind_wires_are_those_of_the_events() -> None:
    router, load = four_cores()
    for arrivals in (Arrivals.bursts(64), Arrivals.on_off(burst_frames=24, peak_ratio=4.0)):
        offered = replace(load, arrivals=arrivals, flows=FlowSet.random(23, ports=2))
        lanes, events = (
            Simulate(router, path=path, replications=4).trial(offered, 0.1) for path in ("lanes", "events")
        )
        assert lanes.latency is not None
        assert events.latency is not None
        assert lanes.loss_ratio == pytest.approx(events.loss_ratio, abs=0.005)
        assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.05)
        assert lanes.latency.p99_s == pytest.approx(events.latency.p99_s, rel=0.05)


def test_cores_that_slow_each_other_down_stand_behind_a_card_that_does_not() -> None:
    router, load = four_cores()
    slowing = replace(router.pools[0], contention=Contention(table=(1.0, 1.2, 1.4, 1.6)))
    card = TaskUnit(
        name="card",
        needs=(Need(pool="card"),),
        service=ServiceCost(per_packet_s=0.1e-6, variation="exponential"),
        queue_frames=256,
    )
    entry = router.ports[0].entry
    behind = next(task for task in router.tasks if task.name == entry)
    tasks = tuple(replace(task, route=Route(to=("card",))) if task.name == entry else task for task in router.tasks)
    slowed = replace(
        router,
        tasks=(*tasks, replace(card, route=behind.route)),
        pools=(slowing, *router.pools[1:], ResourcePool(name="card")),
    )
    lanes, events = (Simulate(slowed, path=path).trial(load, 0.2) for path in ("lanes", "events"))
    assert lanes.latency is not None
    assert events.latency is not None
    assert lanes.loss_ratio == pytest.approx(events.loss_ratio, abs=0.003)
    assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.05)
    uncontended = Simulate(replace(slowed, pools=(router.pools[0], *slowed.pools[1:])), path="lanes").trial(load, 0.2)
    assert uncontended.latency is not None
    assert lanes.latency.mean_s > 1.2 * uncontended.latency.mean_s


def test_a_core_that_runs_frames_to_completion_is_one_server() -> None:
    """Stages of an engine and their accesses, of which a frame finds none taken: by events and as one server."""
    router, load = read_router_and_load(EXAMPLES / "dpdk-run-to-completion.router.toml")
    assert load is not None
    for rate_pps in (15e6, 25e6):
        offered = replace(load, rate_pps=rate_pps, arrivals=Arrivals.poisson())
        lanes = Simulate(router, seed=4, path="lanes").trial(offered, 0.2)
        events = Simulate(router, seed=4, path="events").trial(offered, 0.2)
        assert lanes.latency is not None
        assert events.latency is not None
        # 3 million frames: a mean sojourn of M/D/1 at 0.78 is known within 0.5 %.
        assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.01)
        assert lanes.loss_ratio == pytest.approx(events.loss_ratio, abs=0.002)
        shares = [{each.name: each.utilisation_ratio for each in trial.resources} for trial in (lanes, events)]
        assert shares[0].keys() == shares[1].keys()
        for name, share in shares[0].items():
            assert share == pytest.approx(shares[1][name], rel=0.005), name


def tandem(cores: int, variation: str = "exponential", queue_frames: int = 4096) -> RouterModel:
    """Cores behind each other, each with a ring of its own, of which the last sends frames to links."""
    names = [f"core {number}" for number in range(cores)]
    tasks = tuple(
        TaskUnit(
            name=name,
            needs=(Need(pool=name),),
            service=ServiceCost(per_packet_s=1e-6, variation=variation, scv=0.2 if variation == "uniform" else None),
            queue_frames=queue_frames,
            route=Route(to=(after,)) if after else Route(kind="egress", to=("port 0", "port 1")),
        )
        for name, after in zip(names, [*names[1:], ""], strict=True)
    )
    return RouterModel(
        name="tandem",
        ports=tuple(Port(name=f"port {i}", link_bps=1e12, entry=names[0]) for i in range(2)),
        tasks=tasks,
        pools=tuple(ResourcePool(name=name, units=1) for name in names),
    )


@pytest.mark.parametrize("load_ratio", [0.5, 0.8])
def test_queues_behind_each_other_delay_what_jackson_says(load_ratio: float) -> None:
    """The departures of M/M/1 are Poisson (Burke 1956): sojourns are independent, and so are those at each queue."""
    each_s = 1e-6 / (1.0 - load_ratio)
    trial = Simulate(tandem(3), path="lanes", replications=8).trial(poisson(load_ratio * 1e6), 0.5)
    assert trial.latency is not None
    low, high = trial.interval["latency.mean_s"]
    assert trial.latency.mean_s == pytest.approx(3.0 * each_s, abs=3.3 / 1.96 * 0.5 * (high - low))
    # Erlang-3: 99 % of the frames take at most 8.406 means of one.
    assert trial.latency.p99_s == pytest.approx(8.406 * each_s, rel=0.03)
    waited_s = trial.waiting.mean_s if trial.waiting else 0.0
    assert waited_s == pytest.approx(trial.latency.mean_s - 3e-6, rel=5e-3)


@pytest.mark.parametrize("variation", ["deterministic", "uniform", "exponential"])
def test_short_queues_behind_each_other_lose_what_they_lose_by_events(variation: str) -> None:
    router, load = tandem(3, variation, queue_frames=6), poisson(0.95e6)
    lanes, events = (Simulate(router, path=path, replications=4).trial(load, 0.3) for path in ("lanes", "events"))
    assert lanes.latency is not None
    assert events.latency is not None
    assert lanes.loss_ratio == pytest.approx(events.loss_ratio, rel=0.03, abs=2e-4)
    assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.01)
    assert set(lanes.drops_pps) == set(events.drops_pps)
    for place, lost_pps in events.drops_pps.items():
        assert lanes.drops_pps[place] == pytest.approx(lost_pps, rel=0.1, abs=200.0), place


def test_a_pipeline_whose_ring_deals_frames_to_cores_is_that_of_the_events() -> None:
    router, load = read_router_and_load(EXAMPLES / "dpdk-pipeline.router.toml")
    assert load is not None
    for rate_pps, arrivals in ((15e6, Arrivals.poisson()), (20e6, Arrivals())):
        offered = replace(load, rate_pps=rate_pps, arrivals=arrivals)
        lanes, events = (Simulate(router, seed=2, path=path).trial(offered, 0.1) for path in ("lanes", "events"))
        assert lanes.latency is not None
        assert events.latency is not None
        assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.03)
        assert lanes.loss_ratio == pytest.approx(events.loss_ratio, abs=0.002)
        shares = [{each.name: each.utilisation_ratio for each in trial.resources} for trial in (lanes, events)]
        for name, share in shares[0].items():
            assert share == pytest.approx(shares[1][name], rel=0.01), name


def test_a_window_of_several_frames_is_no_chain() -> None:
    router, load = read_router_and_load(EXAMPLES / "dpdk-run-to-completion.router.toml")
    assert load is not None
    pools = tuple(replace(pool, units=2) if "threads" in pool.name else pool for pool in router.pools)
    with pytest.raises(ModelProblem, match="several frames at once carry units on"):
        Simulate(replace(router, pools=pools), path="lanes").trial(load, 0.01)
    shared = tuple(replace(pool, units=1) if pool.name == "l3" else pool for pool in router.pools)
    with pytest.raises(ModelProblem, match="may wait for units that others use"):
        Simulate(replace(router, pools=shared), path="lanes").trial(load, 0.01)


def test_cores_that_are_woken_by_interrupts_stand_behind_a_card_that_is_not() -> None:
    router, load = read_router_and_load(EXAMPLES / "napi.router.toml")
    assert load is not None
    entry = router.ports[0].entry
    behind = next(task for task in router.tasks if task.name == entry)
    card = replace(
        behind,
        name="card",
        needs=(Need(pool="card"),),
        service=ServiceCost(per_packet_s=0.3e-6, variation="exponential"),
        queue_frames=64,
        route=Route(to=(entry,)),
        activation=Activation(),
    )
    ports = tuple(replace(port, entry="card") for port in router.ports)
    carded = replace(router, ports=ports, tasks=(card, *router.tasks), pools=(*router.pools, ResourcePool(name="card")))
    offered = replace(load, rate_pps=1.2e6, arrivals=Arrivals.poisson())
    lanes, events = (Simulate(carded, path=path).trial(offered, 0.5) for path in ("lanes", "events"))
    assert lanes.latency is not None
    assert events.latency is not None
    assert lanes.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.02)
    assert lanes.latency.p99_s == pytest.approx(events.latency.p99_s, rel=0.03)
    shares = [{each.name: each.utilisation_ratio for each in trial.resources} for trial in (lanes, events)]
    assert shares[0] == pytest.approx(shares[1], rel=0.02, abs=0.005)


def is_in_lanes(trial: Trial) -> bool:
    return any(note.startswith("in lanes") for note in trial.notes)


@pytest.mark.slow
def test_a_long_trial_that_needs_events_is_run_in_lanes_and_others_are_not() -> None:
    router, load = read_router_and_load(EXAMPLES / "powersave.router.toml")
    assert load is not None
    many_s, few_s = 1.01e7 / load.rate_pps, 0.9e7 / load.rate_pps
    simulate = Simulate(router, seed=3)
    long, lanes = simulate.trial(load, many_s), replace(simulate, path="lanes").trial(load, many_s)
    assert is_in_lanes(long)
    assert figures(long) == figures(lanes)
    assert long.latency == lanes.latency
    events = simulate.trial(load, few_s)
    assert not is_in_lanes(events)
    assert events.latency is not None
    assert long.latency is not None
    assert long.latency.mean_s == pytest.approx(events.latency.mean_s, rel=0.01)
    assert long.latency.p99_s == pytest.approx(events.latency.p99_s, rel=0.01)
    # What is kept of single frames or flows, and what keeps a phase for ever, is run as before.
    assert not is_in_lanes(replace(simulate, per_flow=True).trial(load, many_s))
    constant, even = read_router_and_load(EXAMPLES / "napi.router.toml")
    assert even is not None
    asleep = replace(constant, pools=(replace(constant.pools[0], power=router.pools[0].power),))
    steady = replace(even, arrivals=Arrivals.cbr())
    assert not is_in_lanes(Simulate(asleep, seed=3).trial(steady, 1.01e7 / even.rate_pps))
    # Recursion is faster, and stays: frame by frame, and polls of a unit of its own.
    assert not is_in_lanes(Simulate(queue(), seed=3).trial(poisson(0.5e6), 21.0))
    polled, offered = read_router_and_load(EXAMPLES / "softirq.router.toml")
    assert offered is not None
    assert not is_in_lanes(Simulate(polled, seed=3).trial(offered, 1.01e7 / offered.rate_pps))


@pytest.mark.slow
def test_random_routers_are_those_of_the_events() -> None:
    """Loss and mean latency of replications by independent seeds: no more differ than chance allows."""
    replications, differing, compared = 6, [], 0
    for seed in range(120):
        builder, model, load = random_router(seed)
        if builder not in {"multicore", "softirq", "file"}:
            continue
        trials = []
        try:
            for path in ("lanes", "events"):
                simulate = Simulate(model, seed=7, path=path, steady_state=False, replications=replications)
                trials.append(simulate.trial(load, 40_000 / load.rate_pps))
        except ModelProblem:
            continue  # not of their kind
        for name in ("loss_ratio", "latency.mean_s"):
            bounds = [trial.interval.get(name, (math.nan, math.nan)) for trial in trials]
            means = [0.5 * (low + high) for low, high in bounds]
            # 95 % half-widths are 2.571 standard errors of six replications; 99.9 % of differences lie within 4.59.
            error = math.hypot(*((high - low) / 2.0 / 2.571 for low, high in bounds))
            if math.isnan(error) or any(low == 0.0 for low, _ in bounds):
                continue  # cut off at 0: the middle is not the mean
            compared += 1
            if abs(means[0] - means[1]) > 4.59 * error + 0.002 * means[1]:
                differing.append((seed, name, means))
    assert compared >= 40
    assert len(differing) <= 2, differing  # the 99.9 % quantile of what chance does among so many


def recording(frames: int, seed: int = 1) -> OfferedLoad:
    """Frames of four flows and four sizes, at times close and at times far apart."""
    rng = np.random.default_rng(seed)
    gaps_s = rng.exponential(0.2e-6, frames) * np.where(rng.random(frames) < 0.5, 0.2, 1.8)
    sizes = rng.choice([64, 200, 570, 1518], frames, p=[0.5, 0.2, 0.2, 0.1])
    recorded = RecordedFrames.of(np.cumsum(gaps_s), sizes, rng.integers(0, 4, frames))
    rate_pps = frames / float(recorded.time_s[-1])
    return OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(4, ports=2), arrivals=Arrivals.recorded(recorded))


@pytest.mark.parametrize("queue_frames", [16, 128])
def test_a_recorded_trace_in_lanes_is_what_it_is_by_recursion(queue_frames: int) -> None:
    """Services are constant, so the trace decides all but what ties at the edge of a tick."""
    service = ServiceCost(per_packet_s=0.5e-6, per_byte_s=0.1e-9)
    router = multicore(4, service, link_bps=10e9, queue_frames=queue_frames)
    load = recording(200_000)
    lanes, recursion = (Simulate(router, path=path).trial(load, 0.05) for path in ("lanes", "recursion"))
    assert lanes.offered_frames == recursion.offered_frames
    assert lanes.dropped_frames == recursion.dropped_frames
    assert (lanes.dropped_frames == 0) == (queue_frames == 128)
    assert lanes.latency is not None
    assert recursion.latency is not None
    assert lanes.latency.mean_s == pytest.approx(recursion.latency.mean_s, rel=5e-4)
    assert lanes.latency.p99_s == pytest.approx(recursion.latency.p99_s, rel=5e-3)


def test_a_recorded_trace_with_random_services_has_the_same_law_in_lanes() -> None:
    service = ServiceCost(per_packet_s=0.5e-6, per_byte_s=0.1e-9, variation="exponential")
    router = multicore(4, service, link_bps=10e9, queue_frames=16)
    load = recording(400_000)
    lanes, recursion = (Simulate(router, path=path).trial(load, 0.1) for path in ("lanes", "recursion"))
    assert lanes.latency is not None
    assert recursion.latency is not None
    assert lanes.latency.mean_s == pytest.approx(recursion.latency.mean_s, rel=0.02)
    assert lanes.loss_ratio == pytest.approx(recursion.loss_ratio, rel=0.2)


@pytest.mark.parametrize("load_ratio", [0.9, 1.0, 1.3])
def test_several_servers_at_one_ring_lose_and_delay_what_theory_says(load_ratio: float) -> None:
    router = station(ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=46, servers=4)
    law = MMcK(arrival_pps=load_ratio * 4e6, service_s=1e-6, servers=4, capacity_frames=50)
    trial = Simulate(router, path="lanes", replications=8).trial(poisson(load_ratio * 4e6), 0.2)
    assert_it_obeys(law, trial)


def bus_and_cores(queue_frames: int = 4096) -> RouterModel:
    """Two cores at one ring behind a bus that every frame crosses twice, in and out; all services exponential."""

    def task(name: str, pool: str, mean_us: float, onward: tuple[str, ...], queue: int) -> TaskUnit:
        service = ServiceCost(per_packet_s=mean_us * 1e-6, variation="exponential")
        needs, route = (Need(pool=pool),), Route(to=onward)
        return TaskUnit(name=name, needs=needs, service=service, queue_frames=queue, request="frame", route=route)

    return RouterModel(
        name="bus and cores",
        ports=tuple(Port(name=name, link_bps=1e15, entry="bus in") for name in ("in", "out")),
        tasks=(
            task("bus in", "bus", 0.2, ("process",), queue_frames),
            task("process", "cpu", 1.0, ("bus out",), 4096),
            task("bus out", "bus", 0.2, (), queue_frames // 2),
        ),
        pools=(ResourcePool(name="bus"), ResourcePool(name="cpu", units=2)),
    )


def test_a_bus_that_frames_cross_twice_delays_as_a_network_of_queues() -> None:
    """Jackson: each queue is as if it were alone, the bus at twice the rate."""
    rate_pps = 1.5e6
    bus = MMc(arrival_pps=2.0 * rate_pps, service_s=0.2e-6, servers=1)
    cpu = MMc(arrival_pps=rate_pps, service_s=1e-6, servers=2)
    exact_s = 2.0 * bus.sojourn_mean_s + cpu.sojourn_mean_s
    load = replace(poisson(rate_pps), flows=FlowSet(name="one", flows=(Flow(rss_hash=0, ingress=0, egress=1),)))
    trial = Simulate(bus_and_cores(), path="lanes", replications=6).trial(load, 0.1)
    assert trial.latency is not None
    low, high = trial.interval["latency.mean_s"]
    assert trial.latency.mean_s == pytest.approx(exact_s, abs=3.3 / 1.96 * 0.5 * (high - low))
    assert trial.loss_ratio == 0.0


def test_each_way_over_a_full_bus_has_its_own_room() -> None:
    load = replace(poisson(2.6e6), flows=FlowSet(name="one", flows=(Flow(rss_hash=0, ingress=0, egress=1),)))
    lanes, events = (
        Simulate(bus_and_cores(4), path=path, replications=4).trial(load, 0.1) for path in ("lanes", "events")
    )
    for trial in (lanes, events):
        assert all(trial.drops_pps[name] > 0.0 for name in ("bus in", "bus out"))
    for name, pps in events.drops_pps.items():
        assert lanes.drops_pps[name] == pytest.approx(pps, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["multicore", "dpdk-run-to-completion", "dpdk-pipeline"])
def test_full_cores_with_constant_services_go_in_segments_by_themselves(example: str) -> None:
    """Nothing is left to chance but fractions of a tick: rates and losses are those of events."""
    router, load = read_router_and_load(EXAMPLES / f"{example}.router.toml")
    assert load is not None
    auto = Simulate(router).trial(load, 1.01e7 / load.rate_pps)
    (note,) = (note for note in auto.notes if note.startswith("in lanes"))
    assert "15 of 15 seams proved;" in note
    events = Simulate(router, path="events").trial(load, 5e5 / load.rate_pps)
    assert auto.latency is not None
    assert events.latency is not None
    assert auto.forwarded_pps == pytest.approx(events.forwarded_pps, rel=2e-4)
    assert auto.loss_ratio == pytest.approx(events.loss_ratio, rel=1e-3)
    assert auto.latency.p50_s == pytest.approx(events.latency.p50_s, rel=0.005)
