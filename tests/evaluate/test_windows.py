"""Windows in trials: hardware threads that frames carry from block to block, and what limits them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.load import Arrivals, OfferedLoad
from routecast.router import Need, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parents[2] / "examples"
PORTS = tuple(Port(name=name, link_bps=1e12, entry="enter") for name in ("in", "out"))


def block(
    *,
    threads=8,
    phase_s=1e-6,
    waits=3,
    access_s=0.1e-6,
    latency_s=4e-6,
    variation="deterministic",
    ring=32,
    at_once=65_536,
):
    """One engine with threads: ``waits + 1`` phases of work, a memory access and its latency between them."""

    def cost(seconds):
        return ServiceCost(per_packet_s=seconds, variation=variation)

    def shared(name, pool, seconds, to):
        return TaskUnit(
            name=name,
            needs=(Need(pool=pool),),
            service=cost(seconds),
            request="frame",
            queue_frames=1024,
            route=Route(to=(to,)),
        )

    tasks = [
        TaskUnit(
            name="enter",
            needs=(Need(pool="threads", until="last"),),
            queue_frames=ring,
            request="frame",
            route=Route(to=("compute 0",)),
        )
    ]
    for n in range(waits):
        onward = "last" if n + 1 == waits else f"compute {n + 1}"
        tasks += [
            shared(f"compute {n}", "engine", phase_s, f"access {n}"),
            shared(f"access {n}", "memory", access_s, f"wait {n}"),
            TaskUnit(name=f"wait {n}", service=cost(latency_s), parallel=at_once, route=Route(to=(onward,))),
        ]
    tasks.append(shared("last", "engine", phase_s, "out"))
    return RouterModel(
        name="block",
        ports=PORTS,
        tasks=tuple(tasks),
        pools=(ResourcePool(name="engine"), ResourcePool(name="threads", units=threads), ResourcePool(name="memory")),
    )


def resource(trial, name):
    return next(item for item in trial.resources if item.name == name)


FLOOD = OfferedLoad(rate_pps=1e6)


@pytest.mark.parametrize(
    ("settings", "bound_pps", "limits"),
    [
        # 4 us of work, 12.3 us in the memory: a round of 16.3 us.
        ({"threads": 1}, 1 / 16.3e-6, "threads"),
        ({"threads": 8}, 1 / 4e-6, "engine"),
        ({"threads": 8, "phase_s": 0.1e-6, "access_s": 2e-6}, 1 / 6e-6, "memory"),
    ],
)
def test_what_limits_an_engine_is_its_work_its_memory_or_latency_that_too_few_threads_hide(settings, bound_pps, limits):
    trial = Simulate(block(**settings)).trial(FLOOD, 0.1)
    assert trial.forwarded_pps == pytest.approx(bound_pps, rel=2e-3)
    assert trial.bottleneck.name == limits
    assert '"enter" drops' in trial.bottleneck.reason
    # The threads are full in any case: frames wait at their door.
    assert resource(trial, "threads").utilisation_ratio == pytest.approx(1.0, abs=2e-3)


def test_a_full_window_says_what_its_frames_wait_for():
    trial = Simulate(block(threads=2)).trial(FLOOD, 0.1)
    share = 100 * trial.forwarded_pps * 4e-6
    assert f'"engine", the busiest that these frames wait for, is busy {share:.3g} %' in trial.bottleneck.reason
    assert "all its 2 units" in trial.bottleneck.reason


@pytest.mark.parametrize(("buffers", "limits"), [(1, "buffers"), (6, "threads")])
def test_of_windows_within_each_other_the_one_that_frames_wait_for_limits(buffers, limits):
    inner = block(threads=2)
    outer = TaskUnit(
        name="receive",
        needs=(Need(pool="buffers", until="last"),),
        request="frame",
        queue_frames=8,
        route=Route(to=("enter",)),
    )
    model = RouterModel(
        name="buffered",
        ports=tuple(Port(name=name, link_bps=1e12, entry="receive") for name in ("in", "out")),
        tasks=(outer, *inner.tasks),
        pools=(*inner.pools, ResourcePool(name="buffers", units=buffers)),
    )
    trial = Simulate(model).trial(FLOOD, 0.1)
    assert trial.bottleneck.name == limits
    # What is too much is lost before the outer window, whichever limits.
    assert set(trial.drops_pps) == {"receive"}
    assert resource(trial, "buffers").utilisation_ratio == pytest.approx(1.0, abs=2e-3)


def test_below_saturation_units_in_use_follow_littles_law():
    load = OfferedLoad(rate_pps=0.1e6, arrivals=Arrivals.poisson())
    trial = Simulate(block(ring=4096)).trial(load, 0.5)
    in_queue_s = trial.queue_frames["enter"] / trial.forwarded_pps
    inside = trial.forwarded_pps * (trial.latency.mean_s - in_queue_s)
    assert 8 * resource(trial, "threads").utilisation_ratio == pytest.approx(inside, rel=5e-3)
    assert resource(trial, "engine").utilisation_ratio == pytest.approx(trial.forwarded_pps * 4e-6, rel=1e-2)


@pytest.mark.parametrize("threads", [1, 3, 8])
def test_threads_are_machines_and_their_engine_is_the_repairman(threads):
    # Work and latency exponential, a memory without bandwidth: Palm's machine-repair model, in rounds of 4 phases.
    work_s, delay_s = 4e-6, 12e-6
    weights = [
        math.factorial(threads) / math.factorial(threads - n) * (work_s / delay_s) ** n for n in range(threads + 1)
    ]
    exact_pps = (1.0 - weights[0] / sum(weights)) / work_s
    trial = Simulate(block(threads=threads, access_s=0.0, variation="exponential"), replications=4).trial(FLOOD, 0.25)
    low, high = trial.interval["forwarded_pps"]
    assert trial.forwarded_pps == pytest.approx(exact_pps, abs=1.5 * (high - low) / 2)
    assert high - low < 0.03 * exact_pps


def both_ways(model, load, duration_s):
    fast, slow = (Simulate(model, path=path, steady_state=False).trial(load, duration_s) for path in ("auto", "events"))
    # The whole distribution of latencies, to the bucket.
    assert fast.latency.hdr_base64 == slow.latency.hdr_base64
    assert (fast.forwarded_frames, fast.dropped_frames) == (slow.forwarded_frames, slow.dropped_frames)
    assert fast.drops_pps == slow.drops_pps
    used = [{resource.name: resource.utilisation_ratio for resource in trial.resources} for trial in (fast, slow)]
    assert used[0] == pytest.approx(used[1], rel=1e-9)
    return fast


def test_both_ways_to_compute_give_one_trace():
    model = block(variation="exponential", ring=4)
    trial = both_ways(model, OfferedLoad(rate_pps=0.3e6, arrivals=Arrivals.poisson()), 5e-3)
    assert trial.drops_pps["enter"] > 0.0


@pytest.mark.parametrize("name", ["ixp2850-parallel", "smartnic", "dpdk-pipeline"])
def test_whole_network_processors_give_one_trace_both_ways(name):
    model, load = read_router_and_load(EXAMPLES / f"{name}.router.toml")
    assert load is not None
    both_ways(model, load, 2000 / load.rate_pps)


def test_a_trace_lists_requests_grants_and_releases_of_units():
    load = OfferedLoad(rate_pps=0.1e6)
    trace = Simulate(block(threads=1, waits=1)).trace(load, 4e-5)
    messages = [(round(message.at_s * 1e6, 1), message.kind) for message in trace.messages if message.pool == "threads"]
    # A round of 6.1 us, a frame every 10 us.
    assert messages[:6] == [(0.0, "REQ"), (0.0, "REP"), (6.1, "REL"), (10.0, "REQ"), (10.0, "REP"), (16.1, "REL")]


def test_no_more_frames_are_in_a_window_than_it_has_units():
    # The delays take 3 frames at once, and have room for as many: with 3 units nobody ever waits there.
    model = block(threads=3, at_once=3)
    trial = Simulate(model).trial(FLOOD, 0.05)
    assert all(trial.queue_frames[f"wait {n}"] == 0.0 for n in range(3))
    assert set(trial.drops_pps) == {"enter"}
    frames = trial.forwarded_frames + trial.dropped_frames + trial.in_flight_frames
    assert trial.offered_frames == frames


def test_a_delay_of_many_at_once_delays_and_nothing_else():
    model = RouterModel(
        name="wire",
        ports=tuple(Port(name=name, link_bps=1e15, entry="delay") for name in ("in", "out")),
        tasks=(TaskUnit(name="delay", service=ServiceCost(per_packet_s=1e-3), parallel=65_536, queue_frames=1),),
    )
    # 10,000 frames are in it at once.
    for path in ("auto", "events"):
        trial = Simulate(model, path=path, steady_state=False).trial(OfferedLoad(rate_pps=1e7), 4e-3)
        assert (trial.latency.min_s, trial.latency.max_s) == pytest.approx((1e-3, 1e-3), rel=1e-3)
        assert trial.dropped_frames == 0
