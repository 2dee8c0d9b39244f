"""The rate without loss is one at which the simulator loses nothing, and not the rate that overloads nothing."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import RouterModel, ServiceCost, multicore
from routecast.router.model import Interruptions, RandomTime

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
random_router = importlib.import_module("scenarios").random_router


def one_core(queue_frames: int, arrivals: Arrivals) -> tuple[object, OfferedLoad]:
    router = multicore(
        1, ServiceCost(per_packet_s=1e-6, variation="exponential"), link_bps=100e9, queue_frames=queue_frames
    )
    return router, OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(2, ports=2), arrivals=arrivals)


@pytest.mark.parametrize("queue_frames", [8, 32, 128, 512])
def test_random_arrivals_pass_without_loss_up_to_where_m_m_1_k_loses_a_frame_in_ten_thousand(queue_frames: int) -> None:
    throughput = throughput_of(*one_core(queue_frames, Arrivals.poisson()))  # type: ignore[arg-type]
    assert throughput.overloads_nothing_pps == pytest.approx(1e6)
    load, places = throughput.rate_pps / 1e6, queue_frames + 1
    loss_ratio = (1.0 - load) * load**places / (1.0 - load ** (places + 1))  # M/M/1/K
    assert loss_ratio <= 1.01e-4
    more = min(load + 0.005, 1.0 - 1e-9)
    assert (1.0 - more) * more**places / (1.0 - more ** (places + 1)) >= 0.5e-4
    assert not throughput.is_at_least


def test_equal_gaps_pass_without_loss_up_to_overload() -> None:
    router = multicore(4, ServiceCost(per_packet_s=1e-6), link_bps=100e9)
    throughput = throughput_of(router, OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(4, ports=2)))
    assert throughput.rate_pps == pytest.approx(4e6) == throughput.overloads_nothing_pps


def test_bursts_that_fit_lose_nothing_up_to_overload_and_others_at_every_rate() -> None:
    assert throughput_of(*one_core(512, Arrivals.bursts(64))).rate_pps == pytest.approx(1e6, rel=0.02)  # type: ignore[arg-type]
    # 256 frames at once leave more than 32 waiting, however rarely they come.
    assert math.isnan(throughput_of(*one_core(32, Arrivals.bursts(256))).rate_pps)  # type: ignore[arg-type]


def interrupted_cores(rate_hz: float, ring_frames: int = 16) -> tuple[RouterModel, OfferedLoad]:
    long = RandomTime(mean_s=12e-6, variation="gamma", scv=3.6)
    router = multicore(
        6,
        ServiceCost(per_packet_s=0.4e-6, variation="exponential"),
        link_bps=1e9,
        distribution="per_flow",
        queue_frames=64,
        interruptions=Interruptions(rate_hz=rate_hz, duration=long) if rate_hz else None,
    )
    router = replace(router, ports=tuple(replace(port, tx_ring_frames=ring_frames) for port in router.ports))
    return router, OfferedLoad(rate_pps=1e6, flows=FlowSet.random(22, ports=2), arrivals=Arrivals.bursts(52))


def test_what_interruptions_hold_back_overflows_the_ring_behind_them_below_overload() -> None:
    # Queues of 64 frames release what an interruption gathered faster than the link sends, into a ring of 16.
    router, load = interrupted_cores(90e3)
    throughput = throughput_of(router, load)
    near = load.at(0.98 * throughput.overloads_nothing_pps)
    assert Simulate(router, seed=1).trial(near, 60_000 / near.rate_pps).loss_ratio > 0.03
    if math.isfinite(throughput.rate_pps):
        offered = load.at(0.98 * throughput.rate_pps)
        assert Simulate(router, seed=1).trial(offered, 60_000 / offered.rate_pps).loss_ratio <= 0.01
    # Without interruptions, or with a ring that holds all that waits, the bound leaves a rate.
    assert throughput_of(*interrupted_cores(0.0, 1024)).rate_pps > 0.5 * throughput.overloads_nothing_pps
    assert throughput_of(*interrupted_cores(90e3, 1024)).rate_pps > 0.2 * throughput.overloads_nothing_pps


@pytest.mark.slow
def test_no_random_router_loses_at_its_rate_without_loss() -> None:
    judged = 0
    for seed in range(150):
        _, model, load = random_router(seed)
        try:
            throughput = throughput_of(model, load)
            if not math.isfinite(throughput.rate_pps):
                continue
            offered = load.at(0.98 * throughput.rate_pps)
            simulated = Simulate(model, seed=1).trial(offered, max(20_000 / offered.rate_pps, 1e-3))
        except RoutecastError:
            continue  # what has no closed form, or does not end
        assert simulated.loss_ratio <= 0.01, seed
        judged += 1
    assert judged >= 40
