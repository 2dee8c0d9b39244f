"""Threads of this process, for calls that leave Python: the simulator's and the tester's cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from routecast.experiment.executor.workers import Workers, cores

__all__ = ["Threads"]


class Threads(ThreadPoolExecutor, Workers):
    """Threads that begin no further task once the sweep has ended.

    What runs when it ends, runs on to its own end: a thread cannot be stopped from outside.

    Parameters
    ----------
    workers : int, optional
        As many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        super().__init__(self._count, thread_name_prefix="sweep")

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return self._count
