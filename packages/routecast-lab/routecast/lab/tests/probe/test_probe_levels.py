"""Levels of known size and cost are found again in the access times that they make."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from probe_sample import CLOCK_HZ, MIB, KnownHost, sample

from routecast.errors import FitProblem
from routecast.hardware.model import MemoryLevel
from routecast.lab.probe import fit_levels


def dependent_cycles(level: MemoryLevel) -> float:
    return level.dependent_cycles + level.dependent_s * CLOCK_HZ


def batched_cycles(level: MemoryLevel) -> float:
    return level.batched_cycles + level.batched_s * CLOCK_HZ


def test_costs_of_the_levels_are_found_on_top_of_l1() -> None:
    fit = fit_levels(sample(scatter=0.0), CLOCK_HZ)
    assert [level.name for level in fit.levels] == ["L1", "L2", "L3", "DRAM"]
    known = KnownHost()
    for level, dependent, batched in zip(fit.levels, known.dependent, known.batched, strict=True):
        # The size of L3 is tried in steps of 2 %, so what is near it is found that well.
        assert dependent_cycles(level) == pytest.approx(dependent - known.dependent[0], rel=0.03, abs=0.2)
        assert batched_cycles(level) == pytest.approx(batched, rel=0.03, abs=0.2)
    assert fit.l1_cycles["dependent"] == pytest.approx(known.dependent[0], rel=0.01)
    assert max(fit.residual_ratio.values()) < 0.02


@pytest.mark.parametrize("part", [0.1, 0.4, 1.0])
def test_the_part_of_l3_that_a_guest_gets_is_found(part: float) -> None:
    known = KnownHost()
    l3 = round(part * known.system_bytes[2])
    fit = fit_levels(sample(replace(known, effective_bytes=(*known.effective_bytes[:2], l3)), scatter=0.0), CLOCK_HZ)
    assert fit.levels[2].size_bytes == pytest.approx(l3, rel=0.03)
    assert any("the rest goes to others" in note for note in fit.notes) == (part < 0.9)


def test_sizes_of_the_cores_own_caches_are_the_systems() -> None:
    fit = fit_levels(sample(), CLOCK_HZ)
    assert [level.size_bytes for level in fit.levels[:2]] == list(KnownHost().system_bytes[:2])
    assert fit.levels[3].size_bytes == math.inf


def test_noise_does_not_put_a_level_before_the_one_above() -> None:
    flat = replace(KnownHost(), dependent=(5.0, 5.0, 5.0, 5.0), batched=(1.0,) * 4, streamed=(2.0,) * 4)
    fit = fit_levels(sample(flat, scatter=0.3), CLOCK_HZ)
    costs = [dependent_cycles(level) for level in fit.levels]
    assert costs == sorted(costs)


def test_normal_pages_are_reported_and_do_not_count() -> None:
    fit = fit_levels(sample(scatter=0.0), CLOCK_HZ)
    assert any("+50%" in note and "4 KiB" in note for note in fit.notes)


def test_a_host_without_l3_has_three_levels() -> None:
    outcome = sample(replace(KnownHost(), effective_bytes=(48 * 1024, 2 * MIB, 2 * MIB)), scatter=0.0)
    outcome["caches"] = outcome["caches"][:2]
    fit = fit_levels(outcome, CLOCK_HZ)
    assert [level.name for level in fit.levels] == ["L1", "L2", "DRAM"]


def test_a_curve_that_levels_do_not_explain_is_doubted() -> None:
    outcome = sample(scatter=0.0)
    for number, point in enumerate(outcome["batched"]):
        point["cycles"] = [cycles * (2.0 if number % 2 else 1.0) for cycles in point["cycles"]]
    assert any("batched access times differ" in note for note in fit_levels(outcome, CLOCK_HZ).notes)


def test_too_few_points_are_refused() -> None:
    outcome = sample()
    outcome["streamed"] = outcome["streamed"][:2]
    with pytest.raises(FitProblem, match="2 points of streamed"):
        fit_levels(outcome, CLOCK_HZ)
