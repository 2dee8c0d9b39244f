"""Workers: executors with a width and an end, threads of this process, and waiting that Ctrl-C interrupts safely.

``concurrent.futures`` takes locks in Python. A KeyboardInterrupt between taking a lock and releasing it leaves it
taken: the thread that wants it waits for ever, and so does the one that waits for the thread. So signals wait until no
lock is taken (:func:`ctrl_c_waits`).
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
"""Polars' handler of SIGINT lets waiting go on, so that Python would learn of Ctrl-C with the next result only."""


def stop_if_ended(share: float = 0.0) -> None:
    """End this task if its sweep has ended: the simulator calls it with the finished share.

    Raises CancelledError: the sweep has ended, and nothing waits for this thread.
    """
    ended: threading.Event | None = getattr(_of_thread, "ended", None)
    if ended is not None and ended.is_set():
        raise CancelledError


def _set_ended(ended: threading.Event) -> None:
    _of_thread.ended = ended


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ctrl_c_waits() -> Iterator[Callable[[], None]]:
    """Let SIGINT, and SIGTERM and SIGHUP where a handler listens to them, strike after the block only.

    The block should take less than a second. In threads other than the main thread, which no signal interrupts,
    nothing happens. Yields a function that delivers the signals so far: a long block calls it where no lock is taken.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    pending: list[tuple[int, FrameType | None]] = []
    before: dict[int, Callable[[int, FrameType | None], Any]] = {}
    is_held = True

    def note(number: int, frame: FrameType | None) -> None:
        if is_held:
            pending.append((number, frame))
        else:  # this handler was not yet replaced when an earlier signal struck
            before[number](number, frame)

    def strike() -> None:
        while pending:
            number, frame = pending.pop(0)
            before[number](number, frame)

    try:
        for ending in _ENDING:
            handler = signal.getsignal(ending)
            if callable(handler):
                before[ending] = handler
                signal.signal(ending, note)
        yield strike
    finally:
        is_held = False
        for number, handler in before.items():
            signal.signal(number, handler)
        strike()


Value = TypeVar("Value")


class Workers(Executor):
    """An executor that knows its width, can end at once, and works on after it lost a worker."""

    lost: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    """Errors of a Future whose worker was lost."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at a time."""

    def prepare(self, call: Callable[[], object]) -> None:
        """Start workers that take long to start, with this call, while the caller does something else.

        ``call``: imports what the tasks need; it can be pickled. Its errors are dropped: the tasks raise them again.
        """

    def check(self) -> None:
        """Raise EnvironmentProblem if nothing can be answered any more, though no Future says so."""

    def end(self) -> None:
        """Give up waiting tasks, and running ones as far as they can be stopped; nothing stays behind."""
        self.shutdown(wait=True, cancel_futures=True)


class Threads(ThreadPoolExecutor, Workers):
    """Threads that begin no further task once the sweep has ended.

    A thread cannot be stopped from outside: long tasks call :func:`stop_if_ended` now and then.

    ``workers``: as many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._ended = threading.Event()
        super().__init__(self._count, thread_name_prefix="sweep", initializer=_set_ended, initargs=(self._ended,))

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return self._count

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call in a thread; return its Future."""
        with ctrl_c_waits():
            return super().submit(fn, *args, **kwargs)

    def end(self) -> None:
        """Give up waiting tasks, and running ones at their next :func:`stop_if_ended`."""
        with ctrl_c_waits():
            self._ended.set()
            self.shutdown(wait=False, cancel_futures=True)
        self.shutdown(wait=True)


def cores() -> int:
    """Return how many cores this process may use: fewer than there are where a batch system allots them."""
    return len(os.sched_getaffinity(0))


def width(executor: Executor) -> int:
    """Return how many tasks an executor runs at a time; the number of cores where it does not say."""
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
    """Wait until calls are finished, or for some time; return those that are and those that are not.

    Ctrl-C strikes afterwards: within, it could leave a Future locked for the thread that wants to finish it.
    """
    with ctrl_c_waits():
        done, waiting = wait(futures, timeout=timeout_s, return_when=FIRST_COMPLETED)
    return done, waiting
