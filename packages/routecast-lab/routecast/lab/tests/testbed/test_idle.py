"""Idle cores poll while a bed is up, and sleep again afterwards."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routecast.evaluate.trial import Trial
from routecast.lab.testbed import open_testbed
from routecast.lab.testbed.bed import IdlePolling
from routecast.load.offered import OfferedLoad


def test_it_asks_the_kernel_for_no_latency_and_lets_go(tmp_path: Path) -> None:
    device = tmp_path / "cpu_dma_latency"
    device.write_bytes(b"")
    polling = IdlePolling(device)
    polling.begin()
    polling.begin()
    assert polling.is_on
    assert struct.unpack("=i", device.read_bytes()) == (0,)
    polling.end()
    polling.end()
    assert not polling.is_on


def test_a_kernel_without_it_is_named_and_nothing_breaks(tmp_path: Path) -> None:
    polling = IdlePolling(tmp_path / "missing")
    polling.begin()
    assert not polling.is_on
    assert "missing: No such file" in polling.refused


@pytest.mark.wire
@pytest.mark.parametrize("idle", ["poll", "sleep"])
def test_a_bed_says_what_its_idle_cores_do(idle: str, tmp_path: Path, undisturbed: Callable[..., Any]) -> None:
    def judge(trial: Trial) -> None:
        assert trial.offered_frames == 1000

    path = tmp_path / "bed.testbed.toml"
    path.write_text(f'name = "{idle}{os.getpid() % 100_000}"\nkind = "namespaces"\nidle = "{idle}"\n')
    with open_testbed(path, device="linux", retries=0) as evaluator:
        undisturbed(lambda: evaluator.trial(OfferedLoad(rate_pps=5_000.0), 0.2), judge)
        facts = evaluator.facts()
    bed = facts["bed"]
    assert isinstance(bed, dict)
    if idle == "sleep" or Path("/dev/cpu_dma_latency").exists():
        assert bed["idle"] == idle
