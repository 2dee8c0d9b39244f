"""Where no chance decides, what fits into a queue is never lost: bounds of bursts against the simulator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._burst_bounds import burst_of_cycle
from routecast.load import FlowSet, OfferedLoad
from routecast.router import Activation, ServiceCost, multicore


@given(st.lists(st.booleans(), min_size=1, max_size=24).filter(any))
def test_no_interval_of_a_cycle_has_more_frames_than_burst_and_rate_say(pattern: list[bool]) -> None:
    taken = [place for place, is_own in enumerate(pattern) if is_own]
    burst, length = burst_of_cycle(taken, len(pattern)), len(pattern)
    share = len(taken) / length
    own = np.tile(np.array(pattern, dtype=float), 3)
    counts = np.concatenate([[0.0], np.cumsum(own)])
    excess = [
        counts[end] - counts[begin] - share * (end - begin - 1)
        for begin in range(length)
        for end in range(begin + 1, begin + 2 * length)
    ]
    assert max(excess) == pytest.approx(burst)


@pytest.mark.parametrize("flows", [3, 7, 16, 60])
@pytest.mark.parametrize("load_ratio", [0.9, 0.999])
def test_equal_gaps_of_uneven_flows_lose_nothing_where_their_bursts_fit(flows: int, load_ratio: float) -> None:
    """Random flows are no evenly spaced stream for a core, and two-moment formulas say nothing of them."""
    router = multicore(4, ServiceCost(per_packet_s=1e-6), link_bps=100e9, queue_frames=256)
    flow_set = FlowSet.random(flows, ports=2)
    fullest = max(np.bincount([flow.rss_hash % 128 % 4 for flow in flow_set.flows])) / flows
    load = OfferedLoad(rate_pps=load_ratio * 1e6 / fullest, flows=flow_set)
    solved = Solve(model=router).trial(load, 1.0)
    assert solved.loss_ratio == 0.0
    assert not any("loss is not known" in note for note in solved.notes)
    assert Simulate(router, seed=1).trial(load, 0.05).loss_ratio == 0.0


def test_bursts_that_do_not_fit_are_not_certainly_without_loss() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=100e9)
    load = OfferedLoad(rate_pps=0.95e6, flows=FlowSet.crafted(8, ports=2))
    tight = replace(router, tasks=tuple(replace(task, queue_frames=1) for task in router.tasks))
    solved = Solve(model=tight).trial(load, 1.0)
    simulated = Simulate(tight, seed=1).trial(load, 0.05)
    assert math.isnan(solved.loss_ratio) or abs(solved.loss_ratio - simulated.loss_ratio) < 0.01


@pytest.mark.parametrize("queue_frames", [22, 32])
def test_a_moderated_interrupt_loses_nothing_where_its_pause_fits(queue_frames: int) -> None:
    """Twenty frames arrive in 40 us; a queue of 16 loses a fifth, as the simulator finds."""
    moderated = Activation(kind="interrupt", interrupt_cost_s=1e-6, moderation_s=40e-6)
    load = OfferedLoad(rate_pps=0.5e6)
    fits, short = (
        multicore(1, ServiceCost(per_packet_s=1e-6), activation=moderated, queue_frames=frames)
        for frames in (queue_frames, 16)
    )
    assert Solve(model=fits).trial(load, 1.0).loss_ratio == 0.0 == Simulate(fits, seed=1).trial(load, 0.05).loss_ratio
    assert math.isnan(Solve(model=short).trial(load, 1.0).loss_ratio)
    assert Simulate(short, seed=1).trial(load, 0.05).loss_ratio == pytest.approx(0.2, abs=0.01)
