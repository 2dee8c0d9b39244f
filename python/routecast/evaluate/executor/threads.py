"""Threads of this process, for calls that leave Python: the simulator's and the tester's cores."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from routecast.evaluate.executor.ctrl_c import ctrl_c_waits
from routecast.evaluate.executor.workers import Workers, cores

__all__ = ["Threads", "stop_if_ended"]

_of_thread = threading.local()

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class Threads(ThreadPoolExecutor, Workers):
    """Threads that begin no further task once the sweep has ended.

    A thread cannot be stopped from outside: what runs for long calls :func:`stop_if_ended` now and then.

    Parameters
    ----------
    workers : int, optional
        As many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._ended = threading.Event()
        super().__init__(self._count, thread_name_prefix="sweep", initializer=_know, initargs=(self._ended,))

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
        """Give up what is waiting, and what runs as soon as it asks."""
        with ctrl_c_waits():
            self._ended.set()
            self.shutdown(wait=False, cancel_futures=True)
        self.shutdown(wait=True)


def stop_if_ended(share: float = 0.0) -> None:
    """End this task if its sweep has ended: the simulator calls it with the finished share.

    Raises
    ------
    concurrent.futures.CancelledError
        It has; nobody waits for what this thread does.
    """
    ended: threading.Event | None = getattr(_of_thread, "ended", None)
    if ended is not None and ended.is_set():
        raise CancelledError


def _know(ended: threading.Event) -> None:
    _of_thread.ended = ended
