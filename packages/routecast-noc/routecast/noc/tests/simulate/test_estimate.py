"""Intervals of replications, and the signs of saturation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from routecast.noc.patterns import uniform
from routecast.noc.routing.policies import routes
from routecast.noc.simulate import Packets, RouterDesign, SimulationPhases, single, sweep
from routecast.noc.simulate._result import estimate
from routecast.noc.simulate._simulator import signs_of_overload
from routecast.noc.topology import Topology, TopologyKind


def test_half_width_uses_the_printed_quantile_of_students_t() -> None:
    # t(0.975, 4) = 2.776 (any table of Student's t); the standard error of 1..5 is sqrt(2.5 / 5).
    answer = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
    assert answer.value == pytest.approx(3.0)
    assert answer.half_width == pytest.approx(2.776 * math.sqrt(0.5), rel=1e-3)


def test_intervals_hold_the_mean_in_95_of_100_cases() -> None:
    drawn = np.random.default_rng(1).normal(10.0, 2.0, size=(2000, 5))
    answers = [estimate(row) for row in drawn.tolist()]
    covered = sum(answer.low <= 10.0 <= answer.high for answer in answers) / len(answers)
    # Four standard errors of a share of 0.95 among 2000.
    assert covered == pytest.approx(0.95, abs=4 * math.sqrt(0.95 * 0.05 / 2000))


def test_one_value_has_no_interval() -> None:
    assert math.isnan(estimate([3.0]).half_width)
    assert estimate([3.0]).low == 3.0


def outcome(
    *, accepted: int, queued: tuple[int, int] = (10, 10), undelivered: int = 0, rise: float = 0.0
) -> dict[str, Any]:
    """Return an outcome of 100,000 offered flits, with latencies that rise by a part of their mean of 40."""
    return {
        "offered_flits": [60_000, 40_000],
        "accepted_flits": [accepted],
        "source_flits": list(queued),
        "batch_latency": [40 * (1 + rise * (third - 1) / 2) for third in range(3) for _ in range(4)],
        "packet_latency": {"mean": 40.0},
        "undelivered_flits": undelivered,
        "deadlocked": False,
    }


def signs_of(*outcomes: dict[str, Any]) -> tuple[str, ...]:
    return signs_of_overload(outcomes, nodes=16, packet_flits=8.0)


def test_a_plane_that_carries_its_traffic_shows_no_sign() -> None:
    assert signs_of(outcome(accepted=99_900), outcome(accepted=100_050)) == ()


def test_less_accepted_than_offered_is_a_sign() -> None:
    signs = signs_of(outcome(accepted=90_000), outcome(accepted=90_100))
    assert len(signs) == 1
    assert signs[0].startswith("accepts 90")


def test_growing_queues_are_a_sign() -> None:
    grown = outcome(accepted=100_000, queued=(1_000, 9_000))
    assert any("queues" in sign for sign in signs_of(grown, grown))


def test_rising_latency_is_a_sign() -> None:
    assert any("rises" in sign for sign in signs_of(outcome(accepted=100_000, rise=0.8)))


def test_packets_that_never_came_are_a_sign() -> None:
    assert any("arrived" in sign for sign in signs_of(outcome(accepted=100_000, undelivered=5_000)))


def test_a_loss_within_its_interval_is_chance() -> None:
    # 96 and 102 % in two replications: the mean loss is 1 %, its interval holds 0 by far.
    assert signs_of(outcome(accepted=95_000), outcome(accepted=102_000)) == ()


def test_two_packets_for_each_node_are_what_a_network_holds_in_a_short_run() -> None:
    # 200 of 2000 flits are a tenth, but 16 nodes of 8 flits hold 256 with two packets each.
    short = outcome(accepted=1_800) | {"offered_flits": [2_000]}
    assert signs_of(short) == ()
    assert signs_of(short | {"accepted_flits": [1_700]}) != ()


def test_loads_of_short_single_runs_far_below_saturation_are_not_called_saturated() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=4, rows=4)
    of = single(
        topology,
        uniform(topology),
        routes("xy", topology),
        design=RouterDesign(virtual_channels=4),
        packets=Packets.between(5, 10),
    )
    for seed in range(20):
        run = SimulationPhases(seed=seed, replications=1, warmup_cycles=500, measure_cycles=1_000)
        assert not any(item.is_saturated for item in sweep(of, [0.02, 0.1, 0.3], run))
