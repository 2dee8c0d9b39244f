"""The closed form names what it does not know of losses: random routers, solved and simulated (make fuzz-models)."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, OfferedLoad
from routecast.router import Activation, ServiceCost, multicore

sys.path[:0] = [str(Path(__file__).parents[2] / "benches"), str(Path(__file__).parents[1] / "page")]
judge = importlib.import_module("fuzz_models").judge

SILENT = {12: "slices in windows", 105: "on-off bursts, batches", 580: "units shared by a policy", 2: "a thread"}
"""Seeds that lost frames without a word once, or are likely to: what each is for."""


def unknown(notes: tuple[str, ...]) -> bool:
    return any(note.startswith("loss by chance is not known") for note in notes)


@pytest.mark.slow
def test_no_random_router_loses_without_a_word() -> None:
    verdicts = [judge(seed) for seed in (*SILENT, *range(3000, 3100))]
    assert [verdict for verdict in verdicts if "silent loss" in verdict.kinds] == []
    assert sum("loss is said to be none" in verdict.kinds for verdict in verdicts) > 20


def test_a_short_ring_behind_moderation_is_named_and_a_long_one_is_not() -> None:
    moderated = Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=1e-6, moderation_s=40e-6)
    load = OfferedLoad(rate_pps=0.6e6, arrivals=Arrivals.poisson())
    for room, is_named in ((32, True), (4096, False)):
        router = multicore(1, ServiceCost(per_packet_s=1e-6), activation=moderated, queue_frames=room)
        solved = Solve(model=router).trial(load, 1.0)
        assert unknown(solved.notes) == is_named
        simulated = Simulate(router, steady_state=False).trial(load, 0.2)
        assert (simulated.loss_ratio > 0.0) == is_named


def test_what_a_law_covers_is_not_called_unknown() -> None:
    router = multicore(2, ServiceCost(per_packet_s=1e-6))
    load = OfferedLoad(rate_pps=1.2e6, arrivals=Arrivals.poisson())
    assert not unknown(Solve(model=router).trial(load, 1.0).notes)
    # What is lost in overload is known as far as it matters.
    over = Solve(model=router).trial(replace(load, rate_pps=4e6), 1.0)
    assert over.loss_ratio > 0.4
    assert not unknown(over.notes)
