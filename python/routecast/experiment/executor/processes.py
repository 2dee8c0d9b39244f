"""Processes that share work: deaf to Ctrl-C, which ends them through their parent, and never orphans."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import ParamSpec, Protocol, TypeVar

from routecast.errors import EnvironmentProblem
from routecast.experiment.executor.workers import Workers, cores

__all__ = ["Processes", "Submit", "crew", "shared_out"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class Submit(Protocol):
    """Starts a call in a process."""

    def __call__(self, call: Callable[[], Value]) -> Future[Value]:
        """Return the Future of a call."""
        ...


class Processes(Workers):
    """Processes of this machine; after one was killed, the next call starts them anew.

    Parameters
    ----------
    workers : int, optional
        As many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._pool: ProcessPoolExecutor | None = None
        self._started: set[BaseProcess] = set()

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return self._count

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call, which can be pickled, in a process; return its Future."""
        others = set(active_children()) - self._started
        with _deaf_children():
            try:
                future = self._opened().submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self.shutdown()
                future = self._opened().submit(fn, *args, **kwargs)
        self._started = set(active_children()) - others
        return future

    def prepare(self, call: Callable[[], object]) -> None:
        """Start the processes, and let each import what the tasks need."""
        for _ in range(self._count):
            self.submit(call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end when they have done what they were given."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=wait, cancel_futures=cancel_futures)

    def end(self) -> None:
        """End the processes at once."""
        for process in self._started:
            process.terminate()
        self.shutdown(cancel_futures=True)

    def _opened(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Spawned processes: a fork would copy the threads' locks of the optimiser.
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=get_context("spawn"), initializer=_end_with_parent
            )
        return self._pool


@contextmanager
def crew(workers: int | None = None) -> Iterator[Submit]:
    """Open processes that calls can be given to; whatever ends the block early ends the processes at once.

    Parameters
    ----------
    workers : int, optional
        Processes; as many as there are cores if not given.

    Yields
    ------
    callable
        Starts a call, which can be pickled, in a process of its own; returns its Future.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A process was killed from outside, for want of memory as a rule.
    """
    processes = Processes(workers)

    def submit(call: Callable[[], Value]) -> Future[Value]:
        return processes.submit(call)

    try:
        yield submit
    except BrokenProcessPool as problem:
        message = (
            "a process of the study was killed, for want of memory as a rule; what is finished is kept: start the "
            "study again with the same folder, with less beside it"
        )
        raise EnvironmentProblem(message) from problem
    except BaseException:
        processes.end()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


@contextmanager
def shared_out(
    calls: Mapping[Key, Callable[[], Value]], workers: int | None = None
) -> Iterator[dict[Future[Value], Key]]:
    """Start calls, each by its key, in processes of their own; see :func:`crew`.

    Yields
    ------
    dict of Future to key
    """
    with crew(workers) as submit:
        yield {submit(call): key for key, call in calls.items()}


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes that are started here inherit that SIGINT is blocked, even while they are still importing.

    A terminal sends Ctrl-C to all processes of a command: the optimiser would take it for a wish to stop early.
    """
    resource_tracker.ensure_running()  # started later, it would unblock SIGINT again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process when its parent is killed: it would wait for work for ever."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
