"""Workers: executors that know their number of tasks and can end at once, threads, and waits that Ctrl-C ends safely.

``concurrent.futures`` takes locks in Python. A KeyboardInterrupt between the acquisition of a lock and its release
leaves the lock taken, and every thread that needs it waits forever. So signals are delivered only while no lock is
taken (:func:`ctrl_c_waits`).
"""

from __future__ import annotations

import os
import signal
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = [
    "LISTENS_EVERY_S",
    "Threads",
    "Workers",
    "answer_of",
    "cores",
    "ctrl_c_waits",
    "finished",
    "lost_errors",
    "some_finished",
    "stop_if_ended",
    "width",
]

_of_thread = threading.local()

Arguments = ParamSpec("Arguments")
LISTENS_EVERY_S = 0.2
"""Longest wait between two checks for Ctrl-C: with Polars' handler of SIGINT a wait does not end by itself."""


def stop_if_ended(share: float = 0.0) -> None:
    """End this task if its sweep has ended; the simulator calls it with the finished share.

    Raises CancelledError: the sweep has ended, and nothing waits for this thread.
    """
    ended: threading.Event | None = getattr(_of_thread, "ended", None)
    if ended is not None and ended.is_set():
        raise CancelledError


def _set_ended(ended: threading.Event) -> None:
    _of_thread.ended = ended


_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Windows has no SIGHUP."""


@contextmanager
def ctrl_c_waits() -> Iterator[Callable[[], None]]:
    """Delay SIGINT, and SIGTERM and SIGHUP if they have a handler, until the end of the block.

    The block should take less than a second. In threads other than the main thread it does nothing, since no signal
    interrupts them. Yields a function that delivers the pending signals; a long block calls it where no lock is taken.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    pending: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], Any]] = {}
    is_delayed = True

    def record(number: int, frame: FrameType | None) -> None:
        if is_delayed:
            pending.append((number, frame))
        else:  # an earlier signal arrived before this handler was replaced
            handlers[number](number, frame)

    def deliver() -> None:
        while pending:
            number, frame = pending.pop(0)
            handlers[number](number, frame)

    try:
        for ending in _ENDING:
            handler = signal.getsignal(ending)
            if callable(handler):
                handlers[ending] = handler
                signal.signal(ending, record)
        yield deliver
    finally:
        is_delayed = False
        for number, handler in handlers.items():
            signal.signal(number, handler)
        deliver()


Value = TypeVar("Value")


class Workers(Executor):
    """An executor that knows its number of tasks, can end at once, and continues after the loss of a worker."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    """Errors of a Future whose worker was lost."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Number of tasks that run at a time."""

    def prepare(self, call: Callable[[], object]) -> None:
        """Start the workers with this call in the background, if they take long to start.

        ``call``: imports the modules of the tasks; it can be pickled. Its errors are ignored: tasks raise them again.
        """

    def check(self) -> None:
        """Raise EnvironmentProblem if no task can finish any more, although no Future has an error."""

    def end(self) -> None:
        """Cancel waiting tasks, stop running ones as far as possible, and release everything."""
        self.shutdown(wait=True, cancel_futures=True)


class Threads(ThreadPoolExecutor, Workers):
    """Threads that begin no further task once the sweep has ended.

    A thread cannot be stopped from outside, so long tasks call :func:`stop_if_ended` repeatedly.

    ``workers``: number of threads; None: one per core.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._ended = threading.Event()
        super().__init__(self._count, thread_name_prefix="sweep", initializer=_set_ended, initargs=(self._ended,))

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time."""
        return self._count

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call in a thread; return its Future."""
        with ctrl_c_waits():
            return super().submit(fn, *args, **kwargs)

    def end(self) -> None:
        """Cancel waiting tasks, and running ones at their next :func:`stop_if_ended`."""
        with ctrl_c_waits():
            self._ended.set()
            self.shutdown(wait=False, cancel_futures=True)
        self.shutdown(wait=True)


def cores() -> int:
    """Return the number of cores that this process may use; a batch system may allot fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):  # neither macOS nor Windows has it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def width(executor: Executor) -> int:
    """Return the number of tasks that an executor runs at a time; the number of cores where unknown."""
    return max(executor.workers, 1) if isinstance(executor, Workers) else cores()


def lost_errors(executor: Executor) -> tuple[type[BaseException], ...]:
    """Return the errors of a Future whose worker was lost."""
    return executor.lost if isinstance(executor, Workers) else Workers.lost


def finished(futures: Iterable[Future[Value]]) -> Iterator[Future[Value]]:
    """Yield calls as they finish; Ctrl-C ends the wait."""
    waiting = set(futures)
    while waiting:
        done, waiting = some_finished(waiting, LISTENS_EVERY_S)
        yield from done


def answer_of(future: Future[Value]) -> Value:
    """Wait for a call and return its result, or raise its error; Ctrl-C ends the wait."""
    while not some_finished([future], LISTENS_EVERY_S)[0]:
        pass
    return future.result()


def some_finished(futures: Iterable[Future[Value]], timeout_s: float) -> tuple[set[Future[Value]], set[Future[Value]]]:
    """Wait until a call is finished, or for ``timeout_s``; return the finished and the unfinished calls.

    Ctrl-C is delivered afterwards: within, it could leave a Future locked, which its thread could then not finish.
    """
    with ctrl_c_waits():
        done, waiting = wait(futures, timeout=timeout_s, return_when=FIRST_COMPLETED)
    return done, waiting
