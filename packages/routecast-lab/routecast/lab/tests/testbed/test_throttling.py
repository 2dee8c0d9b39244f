"""Real-time throttling as the kernel's settings state it."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.lab.testbed.throttling import RealTimeThrottle


def settings(folder: Path, runtime: str, period: str = "1000000") -> Path:
    for name, text in (("sched_rt_runtime_us", runtime), ("sched_rt_period_us", period)):
        (folder / name).write_text(f"{text}\n", encoding="utf-8")
    return folder


def test_the_default_of_the_kernel_is_a_throttle_of_fifty_milliseconds(tmp_path: Path) -> None:
    """The default of 0.95 s in each second: sched(7)."""
    throttle = RealTimeThrottle.of_machine(settings(tmp_path, "950000"))
    assert throttle is not None
    assert throttle.longest_stall_s == pytest.approx(0.05)
    assert throttle.text == (
        "real-time throttling (kernel.sched_rt_runtime_us = 950000: a thread of a real-time class stands still for up "
        "to 50 ms of each second)"
    )
    assert [throttle.explains(stall_s) for stall_s in (0.03, 0.044, 0.048, 0.0523, 0.1)] == [
        *(False, True, True, True, False)
    ]


@pytest.mark.parametrize(("runtime", "period"), [("-1", "1000000"), ("1000000", "1000000"), ("none", "1000000")])
def test_a_machine_without_the_throttle_has_none(runtime: str, period: str, tmp_path: Path) -> None:
    assert RealTimeThrottle.of_machine(settings(tmp_path, runtime, period)) is None


def test_a_kernel_that_does_not_tell_has_none(tmp_path: Path) -> None:
    assert RealTimeThrottle.of_machine(tmp_path) is None


def test_another_period_is_named(tmp_path: Path) -> None:
    throttle = RealTimeThrottle.of_machine(settings(tmp_path, "90000", "100000"))
    assert throttle is not None
    assert "up to 10 ms of each 100 ms" in throttle.text
