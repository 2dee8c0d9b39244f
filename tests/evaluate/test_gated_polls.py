"""Gated polls (S6): the interrupt costs, then the poll takes what waits; against a recursion over frames."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pytest

from routecast.evaluate import Simulate, Solve
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import Activation, RouterModel, ServiceCost, multicore


@dataclass(frozen=True)
class Costs:
    """One core: seconds of an interrupt, a batch and a frame, and the least time between two interrupts."""

    interrupt_s: float = 2e-6
    batch_s: float = 0.0
    frame_s: float = 1e-6
    moderation_s: float = 0.0

    def router(self) -> RouterModel:
        return multicore(
            1,
            ServiceCost(per_packet_s=self.frame_s, per_batch_s=self.batch_s),
            activation=Activation(
                kind="interrupt",
                budget_frames=1 << 10,
                interrupt_cost_s=self.interrupt_s,
                moderation_s=self.moderation_s,
            ),
            queue_frames=1 << 12,
            link_bps=1e15,
        )


def by_hand(costs: Costs, arrival_s: np.ndarray) -> tuple[float, float]:
    """Return the busy share of the core and the mean latency, s, frame by frame."""
    busy_s = latency_s = end_s = 0.0
    raised_s, served = -np.inf, 0
    # Lists: what is done to one number at a time takes far longer with arrays.
    times_s, sums_s = arrival_s.tolist(), [0.0, *np.cumsum(arrival_s).tolist()]
    while served < len(times_s):
        raised_s = max(end_s, times_s[served], raised_s + costs.moderation_s)
        begin_s = raised_s + costs.interrupt_s
        found = max(bisect_left(times_s, begin_s, served), served + 1) - served
        # The first frame leaves after the batch's cost and its own, the last after those of all.
        leave_s = found * (begin_s + costs.batch_s) + costs.frame_s * (found * (found + 1) / 2)
        latency_s += leave_s - (sums_s[served + found] - sums_s[served])
        end_s = begin_s + costs.batch_s + costs.frame_s * found
        busy_s += costs.interrupt_s + costs.batch_s + costs.frame_s * found
        served += found
    return busy_s / end_s, latency_s / served


CASES = {
    "half": (Costs(), 0.5e6),
    "low": (Costs(), 0.2e6),
    "dear interrupts": (Costs(interrupt_s=4e-6), 0.4e6),
    "batches": (Costs(batch_s=1e-6), 0.3e6),
    "batches alone": (Costs(interrupt_s=0.0, batch_s=3e-6), 0.3e6),
    "high": (Costs(), 0.9e6),
    "moderated": (Costs(moderation_s=20e-6), 0.5e6),
    "moderated a little": (Costs(batch_s=1e-6, moderation_s=5e-6), 0.1e6),
}


@pytest.mark.parametrize("name", CASES)
def test_random_frames_are_served_as_a_recursion_says(name: str) -> None:
    costs, rate_pps = CASES[name]
    gaps = np.random.default_rng(1).exponential(1.0 / rate_pps, 400_000)
    busy, latency_s = by_hand(costs, np.cumsum(gaps))
    load = OfferedLoad(
        rate_pps=rate_pps, flows=FlowSet.crafted(1), frames=FrameMix.fixed(64), arrivals=Arrivals.poisson()
    )
    simulated = Simulate(costs.router(), seed=2).trial(load, 0.5)
    assert simulated.latency is not None
    assert simulated.latency.mean_s == pytest.approx(latency_s, rel=0.02)
    # 1 %: with moderation the mean batch stands for the random one.
    assert Solve(costs.router()).trial(load, 0.5).resources[0].utilisation_ratio == pytest.approx(busy, rel=0.01)


@pytest.mark.parametrize(
    ("costs", "rate_pps"),
    [
        (Costs(interrupt_s=4e-6), 0.3331e6),
        (Costs(interrupt_s=4e-6, frame_s=0.9e-6), 0.3331e6),
        (Costs(interrupt_s=2.5e-6), 0.3107e6),
        (Costs(interrupt_s=0.7e-6, batch_s=0.6e-6), 0.4537e6),
        (Costs(moderation_s=20e-6), 0.5077e6),
    ],
)
def test_frames_at_equal_gaps_are_served_as_a_recursion_says(costs: Costs, rate_pps: float) -> None:
    busy, latency_s = by_hand(costs, np.arange(200_000) / rate_pps)
    load = OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(1), frames=FrameMix.fixed(64))
    simulated = Simulate(costs.router(), seed=2).trial(load, 0.4)
    assert simulated.latency is not None
    assert simulated.latency.mean_s == pytest.approx(latency_s, rel=0.002)
    used = [trial.resources[0].utilisation_ratio for trial in (simulated, Solve(costs.router()).trial(load, 0.4))]
    assert used == pytest.approx([busy, busy], rel=0.001)
