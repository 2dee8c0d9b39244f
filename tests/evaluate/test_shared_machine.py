"""Sleeping and interrupted task units: the simulator and the closed form against recursions and each other."""

from __future__ import annotations

import math
import random

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate._general_queues import MD1
from routecast.evaluate._server_vacations import DD1SetUp, MG1SetUp
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._closed_form import capacity_pps, lossless_pps
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import Activation, Interruptions, RandomTime, ServiceCost, multicore, softirq

SERVICE_S = 3.2e-6
TABLE = RandomTime(quantiles_s=tuple(us * 1e-6 for us in (5, 12, 15, 18, 20, 23, 28, 40, 120)))
WAKEUPS = {
    "constant": RandomTime(mean_s=20e-6),
    "exponential": RandomTime(mean_s=20e-6, variation="exponential"),
    "table": TABLE,
}
TAKEN = Interruptions(rate_hz=300.0, duration=RandomTime(mean_s=40e-6, variation="exponential"))


def load(rate_pps: float, *, poisson: bool = False) -> OfferedLoad:
    arrivals = Arrivals.poisson() if poisson else Arrivals.cbr()
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(64), arrivals=arrivals)


@pytest.mark.parametrize("rate_pps", [20e3, 45e3, 110e3, 250e3, 305e3])
def test_equal_gaps_and_a_constant_wake_up_follow_the_backlog_recursion(rate_pps):
    router = softirq(per_packet_s=SERVICE_S, wakeup=RandomTime(mean_s=20e-6))
    trial = Simulate(router, seed=1, steady_state=False).trial(load(rate_pps), 0.2)
    # One wake-up when the ring was empty, then frame by frame, computed here by itself.
    free_s, latencies = 0.0, []
    for number in range(50_000):
        arrival_s = number / rate_pps
        start_s = free_s if free_s > arrival_s + 1e-15 else arrival_s + 20e-6
        free_s = start_s + SERVICE_S
        latencies.append(free_s - arrival_s)
    latencies.sort()
    assert trial.latency is not None
    # 0.2 %: whole cycles in 0.2 s and in 50,000 frames; the histogram's buckets are 1/512 wide.
    assert trial.latency.mean_s == pytest.approx(math.fsum(latencies) / 50_000, rel=2e-3)
    assert trial.latency.max_s == pytest.approx(SERVICE_S + 20e-6, rel=2e-3)
    assert trial.latency.p99_s == pytest.approx(latencies[49_500], rel=4e-3)
    solved = Solve(router).trial(load(rate_pps), 1.0).latency
    assert solved is not None
    assert solved.mean_s == pytest.approx(math.fsum(latencies) / 50_000, rel=2e-3)


@pytest.mark.parametrize("poisson", [False, True], ids=["equal gaps", "poisson"])
@pytest.mark.parametrize("wakeup", WAKEUPS)
def test_closed_form_and_simulation_agree_on_wake_ups(wakeup, poisson):
    router = softirq(per_packet_s=SERVICE_S, wakeup=WAKEUPS[wakeup], ring_frames=1024, interrupt_cost_s=1e-6)
    for rate_pps in (20e3, 110e3, 260e3):
        solved = Solve(router).trial(load(rate_pps, poisson=poisson), 1.0)
        simulated = Simulate(router, seed=3, replications=4).trial(load(rate_pps, poisson=poisson), 1.0)
        assert solved.latency is not None
        assert simulated.latency is not None
        # 2 %: four seconds of random cycles; percentiles of discontinuous laws within 4 %.
        assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.02)
        assert solved.latency.p50_s == pytest.approx(simulated.latency.p50_s, rel=0.04)
        assert solved.latency.p99_s == pytest.approx(simulated.latency.p99_s, rel=0.04)


@pytest.mark.parametrize("poisson", [False, True], ids=["equal gaps", "poisson"])
@pytest.mark.slow
def test_closed_form_and_simulation_agree_on_interrupted_cores(poisson):
    router = softirq(per_packet_s=SERVICE_S, wakeup=TABLE, interruptions=TAKEN, ring_frames=4096)
    for rate_pps in (50e3, 150e3, 260e3):
        solved = Solve(router).trial(load(rate_pps, poisson=poisson), 1.0)
        simulated = Simulate(router, seed=5, replications=8).trial(load(rate_pps, poisson=poisson), 2.0)
        assert solved.latency is not None
        assert simulated.latency is not None
        # Exact for Poisson arrivals (2 %: chance); with equal gaps two waits are added up, up to 6 % low.
        assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.02 if poisson else 0.07)
        assert ("approximation" in solved.latency.method) == (not poisson)
        used = [
            next(resource.utilisation_ratio for resource in trial.resources if resource.name == "cpu")
            for trial in (solved, simulated)
        ]
        assert used[0] == pytest.approx(used[1], rel=0.01)


def test_capacity_counts_what_interruptions_take():
    router = softirq(per_packet_s=SERVICE_S, interruptions=TAKEN)
    calm_pps = 1.0 / SERVICE_S
    assert lossless_pps(router, load(1e5)) == pytest.approx(calm_pps / (1.0 + 300.0 * 40e-6))
    assert capacity_pps(router, load(1e5)) == pytest.approx(calm_pps / 1.012)
    flood = Simulate(router, seed=1, steady_state=False).trial(load(4e5), 1.0)
    assert flood.forwarded_pps == pytest.approx(calm_pps / 1.012, rel=2e-3)


def test_a_wake_up_takes_no_capacity_but_a_short_ring_overflows_while_it_lasts():
    router = softirq(per_packet_s=SERVICE_S, wakeup=RandomTime(mean_s=2e-3))
    assert lossless_pps(router, load(1e5)) == pytest.approx(1.0 / SERVICE_S)
    trial = Simulate(router, seed=1, steady_state=False).trial(load(290e3), 1.0)
    # 2 ms at 290 kpps bring 580 frames into a ring of 256; the rest of the cycle drains what was kept.
    gap_s = 1.0 / 290e3
    lost = 580 - 256
    drained_s = 256 * SERVICE_S / (1.0 - 290e3 * SERVICE_S)
    expected = lost / ((2e-3 + drained_s) / gap_s)
    assert trial.loss_ratio == pytest.approx(expected, rel=0.03)
    solved = Solve(router).trial(load(290e3), 1.0)
    assert solved.latency is None
    assert any("while it wakes" in note for note in solved.notes)


def test_frames_are_conserved_and_one_seed_gives_one_trace():
    router = softirq(per_packet_s=SERVICE_S, cores=2, wakeup=TABLE, interruptions=TAKEN, ring_frames=16)
    flows = OfferedLoad(
        rate_pps=400e3,
        frames=FrameMix.imix(),
        flows=FlowSet.random(40),
        arrivals=Arrivals.on_off(burst_frames=16.0, peak_ratio=4.0),
    )
    first, again = (Simulate(router, seed=2, steady_state=False).trace(flows, 0.02) for _ in range(2))
    assert [fate.end_s for fate in first.fates] == [fate.end_s for fate in again.fates]
    dropped = sum(1 for fate in first.fates if fate.dropped_at)
    assert dropped > 0
    assert len({fate.number for fate in first.fates}) == len(first.fates)


@pytest.mark.slow
def test_recursion_and_events_give_one_trace_with_interruptions():
    service = ServiceCost(per_packet_s=SERVICE_S, variation="exponential")
    router = multicore(3, service, interruptions=TAKEN, queue_frames=32)
    flows = OfferedLoad(rate_pps=7e5, flows=FlowSet.random(30), arrivals=Arrivals.poisson())
    ends = [
        [(fate.number, fate.end_s, fate.dropped_at) for fate in trace.fates]
        for trace in (
            Simulate(router, seed=4, path=path, steady_state=False).trace(flows, 0.02)
            for path in ("recursion", "events")
        )
    ]
    assert ends[0] == ends[1]


def test_a_gated_poll_that_costs_nothing_is_an_exhaustive_one():
    def trial(discipline):
        activation = Activation(kind="interrupt", wakeup=TABLE, discipline=discipline)
        router = multicore(1, ServiceCost(per_packet_s=SERVICE_S), activation=activation, queue_frames=4096)
        return Simulate(router, seed=6, steady_state=False).trial(load(2e5, poisson=True), 0.2)

    gated, exhaustive = trial("gated"), trial("exhaustive")
    assert gated.latency == exhaustive.latency


def test_a_poll_takes_one_frame_after_the_other_from_its_ring():
    # A gated poll empties 64 places at once, an exhaustive one frees a place for each frame that it has done.
    def lost(discipline):
        activation = Activation(
            kind="interrupt", wakeup=RandomTime(mean_s=100e-6), discipline=discipline, budget_frames=64
        )
        router = multicore(1, ServiceCost(per_packet_s=1e-6), activation=activation, queue_frames=80)
        return Simulate(router, seed=1, steady_state=False).trial(load(0.9e6), 0.1).loss_ratio

    # 90 frames come during a wake-up and 80 find room; these are drained at 0.1 frames per us, then the core sleeps.
    cycle_s = 100e-6 + 80e-6 / (1.0 - 0.9)
    assert lost("exhaustive") == pytest.approx(10.0 / (0.9e6 * cycle_s), rel=0.15)
    assert lost("gated") <= lost("exhaustive")


@pytest.mark.slow
def test_welch_s_formula_and_its_percentiles_hold_against_a_direct_simulation():
    rate_pps, service_s = 150e3, 3e-6
    queue = MG1SetUp(
        arrival_pps=rate_pps,
        queue=MD1(arrival_pps=rate_pps, service_s=service_s),
        set_up=RandomTime(mean_s=15e-6, variation="exponential"),
        work_s=2e-6,
    )
    draw = random.Random(7)
    now_s = free_s = 0.0
    waits = []
    for _ in range(400_000):
        now_s += draw.expovariate(rate_pps)
        start_s = max(now_s, free_s) if free_s > now_s else now_s + 2e-6 + draw.expovariate(1.0 / 15e-6)
        waits.append(start_s - now_s)
        free_s = start_s + service_s
    waits.sort()
    # 2 %: 400,000 correlated waits.
    assert queue.waiting_mean_s == pytest.approx(math.fsum(waits) / len(waits), rel=0.02)
    for ratio in (0.5, 0.9, 0.99):
        assert queue.waiting().p50_s > 0.0
        got = {0.5: queue.waiting().p50_s, 0.9: queue.waiting().p90_s, 0.99: queue.waiting().p99_s}[ratio]
        assert got == pytest.approx(waits[int(ratio * len(waits))], rel=0.03)


def test_without_a_wake_up_both_queues_are_those_that_never_sleep():
    none = RandomTime()
    awake = MD1(arrival_pps=2e5, service_s=3e-6)
    assert MG1SetUp(arrival_pps=2e5, queue=awake, set_up=none).waiting_mean_s == awake.waiting_mean_s
    assert DD1SetUp(arrival_pps=2e5, service_s=3e-6, set_up=none).waiting_mean_s == 0.0


@pytest.mark.parametrize("rate_pps", [50e3, 200e3, 280e3, 300e3])
@pytest.mark.slow
def test_interruptions_of_a_core_with_equal_gaps_follow_the_backlogs_that_they_leave(rate_pps):
    router = softirq(per_packet_s=SERVICE_S, interruptions=TAKEN, ring_frames=1024)
    solved = Solve(router).trial(load(rate_pps), 1.0).latency
    simulated = Simulate(router, seed=8, replications=8).trial(load(rate_pps), 4.0).latency
    assert solved is not None
    assert simulated is not None
    # 6 %: 10^4 interruptions, of whose squares the mean wait is made.
    assert solved.mean_s == pytest.approx(simulated.mean_s, rel=0.06)
    assert solved.p999_s == pytest.approx(simulated.p999_s, rel=0.1)


@pytest.mark.slow
def test_rare_long_interruptions_lose_what_the_ring_does_not_hold():
    # r rho (D - 256 g): 2 interruptions of 2 ms in a second of work at 200 kpps.
    taken = Interruptions(rate_hz=2.0, duration=RandomTime(mean_s=2e-3))
    router = softirq(per_packet_s=SERVICE_S, interruptions=taken)
    expected = 2.0 * 0.64 * (2e-3 - 256 / 200e3)
    solved = Solve(router).trial(load(200e3), 1.0)
    assert solved.loss_ratio == pytest.approx(expected, rel=1e-6)
    simulated = Simulate(router, seed=1, replications=8, steady_state=False).trial(load(200e3), 40.0)
    # 10 %: some 400 interruptions.
    assert simulated.loss_ratio == pytest.approx(expected, rel=0.15)


def test_frames_spread_evenly_between_service_and_wake_up_while_gaps_are_short():
    # S .. W + S: median W/2 + S.
    queue = DD1SetUp(arrival_pps=300e3, service_s=3.2e-6, set_up=RandomTime(mean_s=20e-6))
    assert queue.sojourn().p50_s == pytest.approx(10e-6 + 3.2e-6, rel=0.02)
    rare = DD1SetUp(arrival_pps=1e4, service_s=3.2e-6, set_up=RandomTime(mean_s=20e-6))
    assert rare.sojourn().p50_s == pytest.approx(23.2e-6)
