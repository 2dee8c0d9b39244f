"""Bounds of what random services gather beside recorded arrivals, against D/M/1 and the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._recorded_chance import ChanceQueue, decay_per_s, held_beyond
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import ServiceCost, multicore
from routecast.router.model import Interruptions, RandomTime


def queue_of(load: float, *, room: int = 256) -> ChanceQueue:
    """Return the bounds of a queue of frames at equal gaps with exponential services of 1 us."""
    at = (np.arange(1, 20_001) * (1e6 / load)).astype(np.uint64)
    return ChanceQueue(at, np.full(len(at), 1e-6), 1, room, scv=1.0, interruptions=None, late_s=0.0)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_at_least_as_many_arrivals_find_frames_as_in_d_m_1(load: float) -> None:
    # D/M/1: an arrival finds k frames or more with the chance s^k, s = e^{-(1 - s)/load} (Gross et al., sec. 5.3.1).
    root = 0.5
    for _ in range(500):
        root = math.exp(-(1.0 - root) / load)
    queue = queue_of(load)
    for frames in (1, 4, 16):
        assert queue.finds(frames) >= root**frames
    # The bound falls nearly as fast: exponential services count with a quarter more squared variation.
    decay = math.log(queue.finds(8) / queue.finds(16)) / 8.0
    assert 0.6 * -math.log(root) <= decay <= -math.log(root)


def test_sums_of_queues_beyond_a_room_are_at_least_those_of_d_m_1() -> None:
    root = 0.5
    for _ in range(500):
        root = math.exp(-(1.0 - root) / 0.6)
    # Of two independent geometric lengths: P(N = n) = (n + 1)(1 - s)^2 s^n.
    beyond = math.fsum((n - 12) * (n + 1) * (1.0 - root) ** 2 * root**n for n in range(13, 400))
    bound = held_beyond([queue_of(0.6), queue_of(0.6)], 12)
    assert beyond <= bound < 1.0


def test_interruptions_slow_the_decay_to_that_of_their_length() -> None:
    long = Interruptions(rate_hz=1e3, duration=RandomTime(mean_s=1e-4, variation="exponential"))
    plain, interrupted = (decay_per_s(1e-6, 1.0, interruptions, 1.0) for interruptions in (None, long))
    # No exponential moment beyond the rate of the interruption's own tail exists.
    assert interrupted < 1.0 / 1e-4 < plain


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("burst", [4, 32])
def test_what_solve_states_of_bursts_at_interrupted_cores_holds_the_simulator(share: float, burst: int) -> None:
    table = RandomTime(mean_s=10e-6, variation="exponential")
    service = ServiceCost(per_packet_s=1e-6, variation="exponential")
    model = multicore(2, service, queue_frames=32, interruptions=Interruptions(rate_hz=20e3, duration=table))
    load = OfferedLoad(rate_pps=share * 2e6 / 1.2, flows=FlowSet.crafted(2), arrivals=Arrivals.bursts(burst))
    solved = Solve(model).trial(load, 1.0)
    simulated = Simulate(model, seed=1).trial(load, 200_000 / load.rate_pps)
    if not math.isnan(solved.loss_ratio):
        low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
        assert low - 0.005 <= simulated.loss_ratio <= high + 0.005
    if share == 0.3:
        assert not math.isnan(solved.loss_ratio)
