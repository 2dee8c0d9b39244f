"""What all tests share: none of them times anything, so none fails because the machine is busy; none waits for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_SH, flock
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Runs at a desk look at new cases each time. Continuous integration repeats the same, so a failure is of the change.
settings.register_profile("untimed", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("untimed")

# Shells start what runs in the background deaf to Ctrl-C, nohup to SIGHUP, and children inherit it. Tests send both.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

PATIENCE_S = 120.0
"""No test waits for a tenth of this; the end of a wait that would have none."""


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let tests that are marked "alone" run while no other process of the same run has a test.

    Test beds are of the whole machine: the start of any bed removes what a killed run left of another. Whoever comes
    stands in line at the gate, so that who waits to be alone is not passed by others for ever.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    is_alone = item.get_closest_marker("alone") is not None
    # Locks on files that are there leave nothing behind, and end with the process.
    with Path(__file__).open() as gate, (Path(__file__).parents[1] / "pyproject.toml").open() as turn:
        flock(gate, LOCK_EX)
        flock(turn, LOCK_EX if is_alone else LOCK_SH)
        if not is_alone:
            gate.close()
        yield


Start = Callable[..., "subprocess.Popen[str]"]
Until = Callable[..., None]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program; however the test ends, it and what it started in a session of its own are killed."""
    started: list[tuple[subprocess.Popen[str], bool]] = []

    def start_one(command: Sequence[str | Path], **how: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, text=True, **how)
        started.append((process, bool(how.get("start_new_session"))))
        return process

    yield start_one
    for process, leads_a_group in started:
        if leads_a_group:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait(PATIENCE_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def until() -> Until:
    """Wait until something is so; fail if it is not after minutes, or if the program that makes it so has ended."""

    def wait(is_so: Callable[[], object], what: str, program: subprocess.Popen[str] | None = None) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert program is None or program.poll() is None or is_so(), (
                f"the program ended with {program.returncode} before {what}"
            )
            assert time.monotonic() < end_s, f"not within {PATIENCE_S:g} s: {what}"
            time.sleep(0.01)

    return wait
