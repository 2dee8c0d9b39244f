"""The loss of on-off bursts at one server that is interrupted, wakes up or varies much."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.evaluate._general_queues import MG1K, ServiceMix
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._on_off_loss import Bursts, burst_loss
from routecast.evaluate.solve._on_off_server import ServerPhases, Spread, burst_loss_of_server
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import Activation, Interruptions, RandomTime, RouterModel, ServiceCost, multicore, softirq

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
from scenarios import random_router

ALWAYS = Bursts(on_pps=(0.9e6,), on_s=(1e9,), off_s=(1e-6,), gap_scv=1.0)
BURSTS = Bursts(on_pps=(2e6, 2e6), on_s=(20e-6, 20e-6), off_s=(60e-6, 60e-6), gap_scv=0.0)


@pytest.mark.parametrize("scv", [1.0, 4.0, 8.0])
def test_bursts_without_an_end_are_random_arrivals(scv: float) -> None:
    """A source that is always on, with gaps of pieces as random ones, before hyperexponential services: M/G/1/K."""
    mix = ServiceMix(shares=(1.0,), times_s=(1e-6,), scv=scv, law="exponential" if scv == 1.0 else "hyperexponential")
    known = MG1K(arrival_pps=0.9e6, service=mix, capacity_frames=17, independent=True)
    server = ServerPhases(service=Spread(mean_s=1e-6, scv=scv))
    assert burst_loss_of_server(ALWAYS, server, 16) == pytest.approx(known.loss_ratio, rel=1e-3)


def test_a_server_that_is_interrupted_as_long_as_services_vary_is_one_queue_of_completion_times() -> None:
    """Exponential services with exponential interruptions: exact as M/G/1/K of completion times (Avi-Itzhak, Naor)."""
    interruptions = Interruptions(rate_hz=50e3, duration=RandomTime(mean_s=10e-6, variation="exponential"))
    router = multicore(
        1,
        ServiceCost(per_packet_s=0.6e-6, variation="exponential"),
        queue_frames=16,
        link_bps=100e9,
        interruptions=interruptions,
    )
    known = Solve(model=router).trial(OfferedLoad(rate_pps=0.9e6, arrivals=Arrivals.poisson()), 1.0)
    server = ServerPhases(
        service=Spread(mean_s=0.6e-6, scv=1.0), interruptions_hz=50e3, interruption=Spread(mean_s=10e-6, scv=1.0)
    )
    assert burst_loss_of_server(ALWAYS, server, 16) == pytest.approx(known.loss_ratio, rel=0.01)


def test_ports_that_are_off_for_different_times_are_not_alike() -> None:
    """Two ports with one burst length at one rate: their mean rates, not those of the first, load the server."""
    uneven = Bursts(on_pps=(1e6, 1e6), on_s=(3e-6, 3e-6), off_s=(9e-6, 17e-6), gap_scv=0.0)
    turned = replace(uneven, off_s=uneven.off_s[::-1])
    rate_pps = sum(
        on_pps * on_s / (on_s + off_s)
        for on_pps, on_s, off_s in zip(uneven.on_pps, uneven.on_s, uneven.off_s, strict=True)
    )
    for loss in (burst_loss(uneven, 2.3e-6, 0.0, 1, 400), burst_loss(turned, 2.3e-6, 0.0, 1, 400)):
        assert rate_pps * 2.3e-6 < 1.0
        assert loss < 1e-3


def test_a_longer_queue_loses_less_and_a_set_up_loses_more() -> None:
    server = ServerPhases(service=Spread(mean_s=0.5e-6, scv=1.0))
    sleeper = replace(server, set_up=Spread(mean_s=10e-6, scv=1.0))
    lingerer = replace(sleeper, linger_s=30e-6)
    losses = [burst_loss_of_server(BURSTS, each, 16) for each in (server, lingerer, sleeper)]
    assert losses == sorted(losses)
    assert losses[0] < losses[1] < losses[2]
    assert burst_loss_of_server(BURSTS, sleeper, 32) < losses[2]
    assert math.isnan(
        burst_loss_of_server(replace(BURSTS, on_pps=(1.0,) * 5, on_s=(1.0,) * 5, off_s=(1, 2, 3, 4, 5)), server, 9)
    )


ROUTERS = {
    "interrupted": multicore(
        1,
        ServiceCost(per_packet_s=0.6e-6, variation="exponential"),
        queue_frames=16,
        link_bps=100e9,
        interruptions=Interruptions(rate_hz=50e3, duration=RandomTime(mean_s=10e-6, variation="exponential")),
    ),
    "varies": multicore(
        1, ServiceCost(per_packet_s=1e-6, variation="hyperexponential", scv=6.0), queue_frames=64, link_bps=100e9
    ),
    "wakes": softirq(
        cores=1,
        per_packet_s=1e-6,
        variation="exponential",
        ring_frames=64,
        link_bps=10e9,
        wakeup=RandomTime(mean_s=20e-6, variation="exponential"),
    ),
}


@pytest.mark.parametrize("name", ROUTERS)
@pytest.mark.parametrize("peak_ratio", [2.0, 6.0])
def test_the_stated_loss_of_bursts_holds_the_simulator(name: str, peak_ratio: float) -> None:
    router: RouterModel = ROUTERS[name]
    load = OfferedLoad(rate_pps=0.5e6, arrivals=Arrivals.on_off(burst_frames=30.0, peak_ratio=peak_ratio))
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 0.5)
    low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
    least, most = simulated.interval["loss_ratio"]
    assert high - low <= 0.08
    assert low <= most
    assert least <= high


def test_bursts_that_fill_a_link_follow_each_other_without_a_gap() -> None:
    """Of a port at line rate a core gets all bursts of its flows, at the pace of the link."""
    router = multicore(2, ServiceCost(per_packet_s=14e-6), queue_frames=64, link_bps=1e9)
    load = OfferedLoad(
        rate_pps=0.9 * 2 * 81_274,  # 1518 B on 1 Gbit/s
        frames=FrameMix.fixed(1518),
        flows=FlowSet.crafted(2, ports=2),
        arrivals=Arrivals.on_off(burst_frames=30.0, peak_ratio=5.0),
    )
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 4.0)
    low, high = solved.interval["loss_ratio"]
    assert low <= simulated.interval["loss_ratio"][1]
    assert simulated.interval["loss_ratio"][0] <= high


def test_batches_leave_the_queue_at_once() -> None:
    """Repeated bursts of 40 frames at 25 Gbit/s, a ring of 8: frames that come during a batch find room behind it."""
    load = OfferedLoad(
        rate_pps=1e5, frames=FrameMix.fixed(1518), flows=FlowSet.crafted(1), arrivals=Arrivals.bursts(40)
    )
    losses = []
    for activation in (Activation(), Activation(kind="polling"), Activation(kind="interrupt", budget_frames=32)):
        router = multicore(
            1, ServiceCost(per_packet_s=1e-6), queue_frames=8, link_bps=25e9, batch_frames=32, activation=activation
        )
        solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 0.1)
        assert solved.loss_ratio == pytest.approx(simulated.loss_ratio, abs=1e-3)
        losses.append(solved.loss_ratio)
    assert max(losses) == min(losses) > 0.1


def test_an_overloaded_server_that_sleeps_when_it_is_empty_loses_more_than_its_queue_says() -> None:
    """Beside a load of 1.02 with 16 places, set-ups of 20 us lose 5 % of the frames more: the law has none of them."""
    router = softirq(
        cores=1,
        per_packet_s=1e-6,
        variation="exponential",
        ring_frames=16,
        link_bps=100e9,
        wakeup=RandomTime(mean_s=20e-6, variation="exponential"),
    )
    load = OfferedLoad(rate_pps=1.02e6, arrivals=Arrivals.poisson())
    awake = Solve(model=softirq(cores=1, per_packet_s=1e-6, variation="exponential", ring_frames=16, link_bps=100e9))
    assert Simulate(router, seed=1).trial(load, 0.2).loss_ratio > awake.trial(load, 1.0).loss_ratio + 0.03
    assert math.isnan(Solve(model=router).trial(load, 1.0).loss_ratio)


def test_a_queue_that_bursts_reach_but_for_rounding_alone_is_no_queue_of_bursts() -> None:
    """Behind units that let nothing through, rates are 1e-14 frames/s, of which no chain has an answer."""
    _, model, load = random_router(990350)
    assert load.arrivals.kind == "on_off"
    solved = Solve(model=model).trial(load, 1.0)
    assert solved.offered_pps == pytest.approx(load.rate_pps, rel=1e-6)
