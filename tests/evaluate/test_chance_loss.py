"""Bounds of losses by chance: absences, units that are shared, links behind equal links, bursts of on-off sources."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._absence_loss import beyond_room, excess_frames
from routecast.evaluate.solve._on_off_loss import Bursts, burst_loss
from routecast.evaluate.sweep import trial_past_transient
from routecast.load import Arrivals, OfferedLoad
from routecast.router import Activation, RandomTime, ServiceCost, multicore

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
from scenarios import random_router


def loss_of_mm1k(load: float, room: int) -> float:
    return 1.0 / (room + 1) if load == 1.0 else (1.0 - load) * load**room / (1.0 - load ** (room + 1))


@pytest.mark.parametrize("load", [0.5, 0.9, 1.0, 1.3])
@pytest.mark.parametrize("room", [1, 8, 50])
def test_a_source_that_is_always_on_is_the_textbook_queue(load: float, room: int) -> None:
    always = Bursts(on_pps=(load,), on_s=(1e12,), off_s=(1e-9,), gap_scv=1.0)
    assert burst_loss(always, 1.0, 1.0, 1, room) == pytest.approx(loss_of_mm1k(load, room), rel=1e-6)


def test_several_servers_are_the_textbook_queue_too() -> None:
    always = Bursts(on_pps=(3.0,), on_s=(1e12,), off_s=(1e-9,), gap_scv=1.0)
    states = np.cumprod([1.0, *(3.0 / min(n, 2) for n in range(1, 7))])
    assert burst_loss(always, 1.0, 1.0, 2, 6) == pytest.approx(states[-1] / states.sum(), rel=1e-6)


def test_the_order_of_unequal_ports_does_not_matter_and_equal_ones_are_counted_together() -> None:
    apart = Bursts(on_pps=(2.0, 2.0 + 1e-9), on_s=(5.0, 5.0), off_s=(9.0, 9.0), gap_scv=0.5)
    together = Bursts(on_pps=(2.0, 2.0), on_s=(5.0, 5.0), off_s=(9.0, 9.0), gap_scv=0.5)
    assert burst_loss(apart, 1.0, 0.5, 1, 16) == pytest.approx(burst_loss(together, 1.0, 0.5, 1, 16), rel=1e-6)
    unequal = Bursts(on_pps=(3.0, 1.0), on_s=(5.0, 2.0), off_s=(9.0, 4.0), gap_scv=0.5)
    turned = Bursts(on_pps=(1.0, 3.0), on_s=(2.0, 5.0), off_s=(4.0, 9.0), gap_scv=0.5)
    assert burst_loss(unequal, 1.0, 0.5, 1, 16) == pytest.approx(burst_loss(turned, 1.0, 0.5, 1, 16), rel=1e-9)


@pytest.mark.parametrize(
    ("burst_frames", "peak_ratio", "room", "rate_pps"),
    [(10.0, 4.0, 16, 0.5e6), (40.0, 6.0, 64, 0.4e6), (5.0, 3.0, 8, 0.8e6), (30.0, 2.5, 128, 1.3e6)],
)
def test_the_loss_of_bursts_is_what_the_simulator_loses(
    burst_frames: float, peak_ratio: float, room: int, rate_pps: float
) -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=room)
    arrivals = Arrivals.on_off(burst_frames=burst_frames, peak_ratio=peak_ratio)
    load = OfferedLoad(rate_pps=rate_pps, arrivals=arrivals)
    solved = Solve(model=router).trial(load, 1.0)
    assert solved.loss_ratio == pytest.approx(Simulate(router).trial(load, 1.0).loss_ratio, abs=0.015)


def test_what_an_exponential_absence_gathers_beyond_a_room_is_its_tail() -> None:
    # λ·E[(D - r/λ)+] = λ·E[D]·e^(-r/(λ·E[D])), a little more by the steps of the distribution.
    mean_frames, room = 10.0, 23.0
    gathered = excess_frames(RandomTime(mean_s=1e-3, variation="exponential"), 0.0, 1e4, room, 1e-9)
    exact = mean_frames * math.exp(-room / mean_frames)
    assert exact <= gathered <= 1.3 * exact
    assert excess_frames(None, 1e-3, 1e4, 23.0, 1e-9) == pytest.approx(0.0, abs=1e-12)
    assert excess_frames(None, 5e-3, 1e4, 23.0, 1e-9) == pytest.approx(27.0)


@pytest.mark.parametrize("load", [0.1, 0.3, 0.6])
def test_the_bound_of_a_busy_period_lies_above_the_textbook_loss(load: float) -> None:
    for room in (4, 16, 64):
        assert beyond_room(load, 1.0, room, 1.0) >= loss_of_mm1k(load, room + 1)
    assert beyond_room(load, 1.0, 64, 1.0) < (1e-1 if load < 0.5 else 0.5)
    assert beyond_room(load, 1.0, 0, 1.0) == 1.0


def test_a_loss_by_chance_is_stated_in_the_middle_of_its_bounds() -> None:
    _, model, load = random_router(45)
    solved = Solve(model=model).trial(load, 1.0)
    low, high = solved.interval["loss_ratio"]
    assert solved.loss_ratio == pytest.approx(0.5 * (low + high))
    assert solved.forwarded_pps == pytest.approx(solved.offered_pps * (1.0 - solved.loss_ratio))
    assert any("the middle is stated" in note for note in solved.notes)
    assert solved.latency is None
    assert solved.min_loss_ratio == pytest.approx(low)  # who decides counts what overload takes


@pytest.mark.parametrize(
    ("seed", "why"),
    [
        (439, "queues of one frame inside windows of eight"),
        (453, "the same, behind a full link"),
        (19, "the same, with Poisson arrivals"),
        (280, "whole bursts for one core each"),
        (700, "bursts in which all cores slow each other"),
        (920142, "units of one pool that wait for overloaded units of another"),
        (12252, "bursts at the peak rate while a thread is away"),
    ],
)
def test_a_loss_is_no_known_zero(seed: int, why: str) -> None:
    """Each router loses more than 1 %: the closed form must say so, or that it does not know."""
    _, model, load = random_router(seed)
    solved = Solve(model=model).trial(load, 1.0)
    simulated = trial_past_transient(Simulate(model, seed=1), load, 30_000 / load.rate_pps)
    low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
    assert math.isnan(solved.loss_ratio) or low - 0.005 <= simulated.loss_ratio <= high + 0.005, why


def test_a_link_no_slower_than_the_links_before_it_is_filled_by_what_waits_inside_alone() -> None:
    # The load fills both links; between them, one slow core lets a frame or two wait.
    router = multicore(1, ServiceCost(per_packet_s=0.5e-6))
    router = replace(router, ports=tuple(replace(port, link_bps=1e9, tx_ring_frames=16) for port in router.ports))
    load = OfferedLoad(rate_pps=2e6, arrivals=Arrivals.poisson())
    solved = Solve(model=router).trial(load, 1.0)
    assert solved.loss_ratio == pytest.approx(0.0, abs=1e-3)
    assert Simulate(router).trial(load, 0.05).loss_ratio == pytest.approx(0.0, abs=1e-3)


def test_a_core_in_overload_never_sleeps_so_a_wake_up_does_not_make_its_loss_unknown() -> None:
    activation = Activation(kind="interrupt", wakeup=RandomTime(mean_s=100e-6, variation="exponential"))
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=256, activation=activation)
    load = OfferedLoad(rate_pps=3e6, arrivals=Arrivals.poisson())
    solved = Solve(model=router).trial(load, 1.0)
    assert solved.loss_ratio == pytest.approx(2.0 / 3.0, abs=0.01)
    assert Simulate(router).trial(load, 0.1).loss_ratio == pytest.approx(solved.loss_ratio, abs=0.01)
