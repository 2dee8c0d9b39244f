"""What a batch waits for, against its closed forms and against drawing batches line by line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.hardware.model import LevelName, MemoryLevel
from routecast.hardware.residency import batch_waiting_cycles

LEVELS = [
    MemoryLevel(name="L1", size_bytes=32768.0),
    MemoryLevel(name="L2", size_bytes=2.0**20, dependent_cycles=12.0, batched_cycles=0.4),
    MemoryLevel(name="L3", size_bytes=2.0**24, dependent_s=60e-9, batched_s=2e-9),
    MemoryLevel(name="DRAM", dependent_s=150e-9, batched_s=12e-9),
]
CLOCK_HZ = 2e9


def waited(shares: dict[LevelName, float], lines: float = 1.0, batch: int = 32) -> float:
    by_level = batch_waiting_cycles(LEVELS, shares, lines=lines, batch_frames=batch, frequency_hz=CLOCK_HZ)
    return sum(by_level.values())


@pytest.mark.parametrize(("level", "cycles"), [("L1", 0.0), ("L2", 0.4), ("L3", 4.0), ("DRAM", 24.0)])
@pytest.mark.parametrize("lines", [1.0, 2.0, 7.0])
def test_lines_of_one_level_cost_what_the_probe_measured(level: LevelName, cycles: float, lines: float) -> None:
    assert waited({level: 1.0}, lines) == pytest.approx(lines * cycles)


def test_batches_of_one_frame_wait_for_each_line() -> None:
    assert waited({"L1": 0.5, "DRAM": 0.5}, batch=1) == pytest.approx(0.5 * 24.0)


def test_few_far_lines_cost_a_latency_to_nearly_every_batch() -> None:
    # 1 - 0.9^32 = 96.6 % of the batches have a line in DRAM: 300 cycles over 32 frames, and the lines beyond the first.
    assert waited({"L1": 0.9, "DRAM": 0.1}) > 0.966 * 300.0 / 32.0
    assert waited({"L1": 0.9, "DRAM": 0.1}) > 3.0 * 0.1 * waited({"DRAM": 1.0})


def test_the_mean_is_that_of_batches_drawn_line_by_line() -> None:
    shares = np.array([0.55, 0.25, 0.15, 0.05])
    first, following = [], []
    for level in LEVELS:
        whole = 32.0 * (level.batched_cycles + level.batched_s * CLOCK_HZ)
        first.append(min(level.dependent_cycles + level.dependent_s * CLOCK_HZ, whole))
        following.append((whole - first[-1]) / 31.0)
    drawn = np.random.default_rng(1).multinomial(32, shares, size=40_000)
    farthest = 3 - np.argmax(drawn[:, ::-1] > 0, axis=1)
    cycles = np.array(first)[farthest] + np.maximum(drawn - 1, 0) @ np.array(following)
    expected = waited(dict(zip(("L1", "L2", "L3", "DRAM"), map(float, shares), strict=True)))
    assert cycles.mean() / 32.0 == pytest.approx(expected, rel=0.01)  # 40,000 batches: 0.3 % (one deviation)


@given(far=st.floats(0.0, 1.0), more=st.floats(0.0, 1.0), lines=st.floats(0.01, 8.0))
def test_the_more_lines_are_far_the_longer_the_wait(far: float, more: float, lines: float) -> None:
    farther = far + (1.0 - far) * more
    assert waited({"L1": 1.0 - far, "DRAM": far}, lines) <= waited({"L1": 1.0 - farther, "DRAM": farther}, lines) * (
        1.0 + 1e-9
    )
