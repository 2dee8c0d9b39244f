"""Processes of this machine: who waits for one that is lost learns of it, and Ctrl-C strikes where no lock is taken."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import FrameType

import pytest

from routecast.evaluate.executor import finished, open_executor
from routecast.evaluate.executor.workers import ctrl_c_waits
from routecast.experiment.tests.sweep import worker_calls

WITHIN_S = 120.0
"""No test takes a hundredth of this: the end of a wait that would have none."""


@pytest.mark.parametrize("dies", [worker_calls.dies, worker_calls.dies_half_way_through_its_answer])
def test_a_killed_process_is_reported_and_the_next_call_has_another(dies: Callable[[], None]) -> None:
    with open_executor("processes", 1) as executor:
        before = executor.submit(os.getpid).result(WITHIN_S)
        with pytest.raises(BrokenExecutor):
            executor.submit(dies).result(WITHIN_S)
        assert executor.submit(os.getpid).result(WITHIN_S) != before
    assert multiprocessing.active_children() == []


def test_a_killed_process_takes_nothing_with_it_but_its_own_call(tmp_path: Path) -> None:
    with open_executor("processes", 2) as executor:
        waits = executor.submit(worker_calls.waits_for, str(tmp_path / "go"), WITHIN_S)
        with pytest.raises(BrokenExecutor):
            executor.submit(worker_calls.dies).result(WITHIN_S)
        (tmp_path / "go").touch()
        assert waits.result(WITHIN_S)


def test_a_stopped_process_does_not_keep_a_failed_block_open() -> None:
    def stops_one_and_fails() -> None:
        with open_executor("processes", 1) as executor:
            pid = executor.submit(os.getpid).result(WITHIN_S)
            executor.submit(worker_calls.stops)
            until = time.monotonic() + WITHIN_S
            while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                assert time.monotonic() < until, "the process did not stop"
                time.sleep(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stops_one_and_fails()
    assert multiprocessing.active_children() == []


def test_what_cannot_be_sent_is_reported_and_the_process_goes_on() -> None:
    with open_executor("processes", 1) as executor:
        pid = executor.submit(os.getpid).result(WITHIN_S)
        with pytest.raises(TypeError, match="what it returns cannot be sent"):
            executor.submit(worker_calls.returns_what_cannot_be_sent).result(WITHIN_S)
        with pytest.raises(TypeError, match="what it raises, RuntimeError: locked, cannot be sent"):
            executor.submit(worker_calls.raises_what_cannot_be_sent).result(WITHIN_S)
        with pytest.raises(Exception, match="lambda"):
            executor.submit(lambda: 1).result(WITHIN_S)
        assert executor.submit(os.getpid).result(WITHIN_S) == pid


def test_an_error_of_a_process_shows_where_it_was_raised_there() -> None:
    with open_executor("processes", 1) as executor, pytest.raises(ConnectionRefusedError, match="no") as caught:
        executor.submit(worker_calls.refused).result(WITHIN_S)
    assert "in refused" in str(caught.value.__cause__)


def test_processes_are_deaf_to_ctrl_c() -> None:
    with open_executor("processes", 2) as executor:
        calls = [executor.submit(worker_calls.blocked_signals) for _ in range(4)]
        assert all(signal.SIGINT in call.result(WITHIN_S) for call in finished(calls))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_locks_are_given_back(number: signal.Signals) -> None:
    class Ended(Exception):
        pass

    def end(number: int, frame: FrameType | None) -> None:
        raise Ended

    steps = []

    def twice_held_back() -> None:
        with ctrl_c_waits(), ctrl_c_waits():
            signal.raise_signal(number)
            steps.append("went on")

    def let_strike() -> None:
        with ctrl_c_waits() as strike:
            strike()
            signal.raise_signal(number)
            steps.append("went on")
            strike()
            steps.append("went too far")

    before = signal.signal(number, end)
    try:
        for struck in (twice_held_back, let_strike):
            with pytest.raises(Ended):
                struck()
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)
    assert steps == ["went on", "went on"]
