"""What a sweep asks beyond ``concurrent.futures``: how wide an executor is, and how it says that a task is lost."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from typing import TypeVar

from routecast.evaluate.executor.ctrl_c import ctrl_c_waits

__all__ = ["LISTENS_EVERY_S", "Workers", "answer_of", "cores", "finished", "lost_errors", "some_finished", "width"]

LISTENS_EVERY_S = 0.2
"""Polars' handler of SIGINT lets waiting go on, so that Python would learn of Ctrl-C with the next result only."""

Value = TypeVar("Value")


class Workers(Executor):
    """An executor that says how wide it is, ends at once when asked to, and is whole again after it lost a worker."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    """What the Future of a task raises whose worker was lost."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at a time."""

    def prepare(self, call: Callable[[], object]) -> None:
        """Let workers that take long to start begin now, with this call, while there is something else to do.

        Parameters
        ----------
        call : callable
            Imports what the tasks need; it can be pickled. What it raises, the tasks will raise again.
        """

    def check(self) -> None:
        """Raise if nothing can be answered any more, though no Future says so.

        Raises
        ------
        routecast.errors.EnvironmentProblem
        """

    def end(self) -> None:
        """Give up what is waiting, and what runs as far as that can be stopped; nothing stays behind."""
        self.shutdown(wait=True, cancel_futures=True)


def cores() -> int:
    """Return how many cores this process may use: fewer than there are where a batch system allots them."""
    return len(os.sched_getaffinity(0))


def width(executor: Executor) -> int:
    """Return how many tasks an executor runs at a time; as many as there are cores where it does not say."""
    return max(executor.workers, 1) if isinstance(executor, Workers) else cores()


def lost_errors(executor: Executor) -> tuple[type[BaseException], ...]:
    """Return what the Future of a task raises whose worker was lost."""
    return executor.lost if isinstance(executor, Workers) else Workers.lost


def finished(futures: Iterable[Future[Value]]) -> Iterator[Future[Value]]:
    """Go through calls as they are finished, and hear Ctrl-C meanwhile."""
    waiting = set(futures)
    while waiting:
        done, waiting = some_finished(waiting, LISTENS_EVERY_S)
        yield from done


def answer_of(future: Future[Value]) -> Value:
    """Wait for a call and return its answer, or raise what it raised; hear Ctrl-C meanwhile."""
    while not some_finished([future], LISTENS_EVERY_S)[0]:
        pass
    return future.result()


def some_finished(futures: Iterable[Future[Value]], timeout_s: float) -> tuple[set[Future[Value]], set[Future[Value]]]:
    """Wait until calls are finished, or for some time; return those that are and those that are not.

    Ctrl-C strikes afterwards: within, it could leave a Future locked for the thread that wants to finish it.
    """
    with ctrl_c_waits():
        done, waiting = wait(futures, timeout=timeout_s, return_when=FIRST_COMPLETED)
    return done, waiting
