"""Processes that share a study's work: deaf to Ctrl-C, which ends them through the study, and never orphans."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process, resource_tracker
from threading import Thread
from typing import Protocol, TypeVar

from routecast.errors import EnvironmentProblem

__all__ = ["Submit", "crew", "finished", "shared_out"]

LISTENS_EVERY_S = 0.2
"""Polars' handler of SIGINT lets waiting go on, so that Python would learn of Ctrl-C with the next result only."""


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Submit(Protocol):
    """Starts a call in a process."""

    def __call__(self, call: Callable[[], Value]) -> Future[Value]:
        """Return the Future of a call."""
        ...


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
    others = set(active_children())
    # Spawned processes: a fork would copy the threads' locks of the optimiser.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent)

    def submit(call: Callable[[], Value]) -> Future[Value]:
        with _deaf_children():
            return pool.submit(call)

    try:
        yield submit
    except BrokenProcessPool as problem:
        message = (
            "a process of the study was killed, for want of memory as a rule; what is finished is kept: start the "
            "study again with the same folder, with less beside it"
        )
        raise EnvironmentProblem(message) from problem
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


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


def finished(futures: Iterable[Future[Value]]) -> Iterator[Future[Value]]:
    """Go through calls as they are finished, and hear Ctrl-C meanwhile."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=LISTENS_EVERY_S, return_when=FIRST_COMPLETED)
        yield from done


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
    """End this process when the study's is killed: it would wait for work for ever."""
    Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
