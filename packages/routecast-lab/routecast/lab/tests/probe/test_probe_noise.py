"""A disturbed host is flagged, each disturbance by its name."""

from __future__ import annotations

import pytest
from probe_sample import CLOCK_HZ, sample

from routecast.lab.probe import hardware_of, noise_of


def test_a_quiet_host_is_quiet() -> None:
    noise = noise_of(sample(scatter=0.02, interruptions=10), 30.0)
    assert noise.verdict == "quiet"
    assert noise.is_quiet


@pytest.mark.parametrize(
    ("disturbance", "reason"),
    [
        ({"scatter": 0.9}, "repeats scatter"),
        ({"steal_ratio": 0.2}, "hypervisor took 20.0%"),
        ({"interruptions": 5000}, "interrupted the probe 5000 times"),
    ],
)
def test_each_disturbance_is_named(disturbance: dict[str, float], reason: str) -> None:
    noise = noise_of(sample(**disturbance), 30.0)  # type: ignore[arg-type]  # one keyword of several kinds
    assert noise.verdict.startswith("noisy: ")
    assert reason in noise.verdict


def test_a_clock_that_moves_is_named() -> None:
    outcome = sample()
    outcome["clock"]["core_hz"] = [CLOCK_HZ, 0.8 * CLOCK_HZ, CLOCK_HZ]
    assert "the clock varied by 20%" in noise_of(outcome, 30.0).verdict


def test_the_file_carries_the_flag() -> None:
    hardware = hardware_of(sample(steal_ratio=0.2), duration_s=30.0).hardware
    assert str(hardware.facts["noise"]).startswith("noisy")
    assert any(note.startswith("noisy") for note in hardware.notes)
    assert hardware_of(sample(), duration_s=30.0).hardware.facts["noise"] == "quiet"
