"""The bound by the busy period of all that a queue depends on: below known laws, and not refuted by simulations."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve._closed_form import lossless_pps
from routecast.evaluate.solve._whole_busy_period import (
    _Bounds,
    _log_moments_of,
    _lost_by_moments,
    _Surroundings,
    surely_lossless_pps,
)
from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import RandomTime, RouterModel, ServiceCost, multicore

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
random_router = importlib.import_module("scenarios").random_router


def one_core(queue_frames: int, **changes: object) -> tuple[RouterModel, OfferedLoad]:
    router = multicore(
        1,
        ServiceCost(per_packet_s=1e-6, variation="exponential"),
        link_bps=100e9,
        queue_frames=queue_frames,
        **changes,  # type: ignore[arg-type]
    )
    return router, OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(2, ports=2), arrivals=Arrivals.poisson())


@pytest.mark.parametrize("queue_frames", [8, 32, 128, 512])
def test_at_the_bound_m_m_1_k_loses_at_most_a_frame_in_a_thousand(queue_frames: int) -> None:
    load = surely_lossless_pps(*one_core(queue_frames), 1e6) / 1e6
    places = queue_frames + 1
    assert (1.0 - load) * load**places / (1.0 - load ** (places + 1)) <= 1e-3
    # P(K > k) of a busy period of M/M/1 decays by 4 rho/(1 + rho)² a frame (Takács 1962, ch. 1), and so does the bound.
    decay = 4.0 * (load + 0.03) / (1.0 + load + 0.03) ** 2
    assert decay ** (queue_frames + 1) / (1.0 - decay) > 1e-4


@pytest.mark.parametrize("room_frames", [1, 2, 5, 16])
@pytest.mark.parametrize("load", [0.01, 0.1, 0.5])
def test_the_bound_by_moments_is_above_the_frames_of_busy_periods_of_m_d_1(room_frames: int, load: float) -> None:
    # Borel: P(K = k) = e^{-rho k} (rho k)^{k - 1} / k!
    frames = np.arange(1, 2000)
    logs = -load * frames + (frames - 1) * np.log(load * frames) - np.array([math.lgamma(k + 1.0) for k in frames])
    late = float((np.exp(logs) * np.maximum(frames - room_frames, 0)).sum())
    around = _Surroundings(
        nodes=frozenset(), unit_s=1e-6, variance_s2=0.0, theta=np.zeros(1), work=np.zeros(1), shares=(), only_work=False
    )
    bound = _lost_by_moments(around, load / 1e-6, room_frames)
    assert bound >= late * (1.0 - 1e-9)
    if room_frames == 1:
        assert bound == pytest.approx(late)


@pytest.mark.parametrize(
    "time",
    [
        RandomTime(mean_s=2e-6),
        RandomTime(mean_s=2e-6, variation="exponential"),
        RandomTime(mean_s=2e-6, variation="gamma", scv=3.0),
        RandomTime(mean_s=2e-6, variation="hyperexponential", scv=4.0),
        RandomTime(mean_s=2e-6, variation="lognormal", scv=0.5),
        RandomTime(mean_s=2e-6, variation="uniform", scv=0.2),
        RandomTime(quantiles_s=(1e-6, 2e-6, 6e-6)),
    ],
)
@pytest.mark.parametrize("scaled", [-20.0, -1.0, -0.1, 0.02, 0.1])
def test_moment_generating_functions_are_those_of_the_quantiles(time: RandomTime, scaled: float) -> None:
    ratios = (np.arange(40_000) + 0.5) / 40_000
    values = np.array([time.quantile_s(float(ratio)) for ratio in ratios])
    theta = scaled / time.average_s
    expected = math.log(float(np.exp(theta * values).mean()))
    got = float(_log_moments_of(time, np.array([theta]))[0])
    if time.variation == "lognormal":
        assert got >= expected - 1e-3 * abs(expected)  # an upper bound
        assert got == pytest.approx(expected, abs=0.15 * abs(expected))
    else:
        assert got == pytest.approx(expected, rel=5e-3, abs=1e-6)


def link_ratio(per_packet_s: float, ring_frames: int) -> float:
    router = multicore(
        2, ServiceCost(per_packet_s=per_packet_s, variation="exponential"), link_bps=1e9, tx_ring_frames=ring_frames
    )
    load = OfferedLoad(rate_pps=1.0, flows=FlowSet.crafted(4, ports=2), arrivals=Arrivals.bursts(64))
    bounds = _Bounds(router, load, flow_graph(router, load))
    return bounds._link_ratio(len(bounds.graph.tasks), ring_frames)


def test_servers_much_slower_than_a_link_never_fill_its_ring_and_faster_ones_may() -> None:
    # 64 B at 1 Gbit/s: 0.67 us. Two servers of 20 us bring 0.067 frames a transmission, two of 1 us 1.3.
    assert link_ratio(20e-6, 16) < 1e-6
    assert link_ratio(1e-6, 16) == 1.0
    assert link_ratio(20e-6, 4) > link_ratio(20e-6, 8) > link_ratio(20e-6, 16)


@pytest.mark.parametrize("seed", [20003, 20004, 20028, 20032, 20036])
def test_a_router_without_any_law_has_a_rate_at_which_the_simulator_loses_nothing(seed: int) -> None:
    """Threads behind interrupts, windows of a network processor, bursts of random sizes, bursts to threads."""
    _, model, load = random_router(seed)
    rate_pps = surely_lossless_pps(model, load, lossless_pps(model, load))
    offered = load.at(rate_pps)
    simulated = Simulate(model, seed=1).trial(offered, 20_000 / offered.rate_pps)
    assert simulated.loss_ratio <= 1e-3


@pytest.mark.parametrize("seed", [20043, 20050])
def test_a_rate_at_which_bursts_of_polls_are_left_out_is_none_without_loss(seed: int) -> None:
    """Near the greatest rate, polls of one thread bring more than the queue of the next holds: 4 and 14 % are lost."""
    _, model, load = random_router(seed)
    throughput = throughput_of(model, load)
    offered = load.at(0.98 * throughput.rate_pps)
    assert Simulate(model, seed=1).trial(offered, 20_000 / offered.rate_pps).loss_ratio <= 0.01
    assert throughput.is_at_least
