"""Processes that share work: deaf to Ctrl-C, which ends them through their parent, and never orphans."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import ParamSpec, Protocol, TypeVar

from routecast.errors import EnvironmentProblem
from routecast.experiment.executor.ctrl_c import ctrl_c_waits
from routecast.experiment.executor.worker_process import WorkerProcess
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
    """Processes of this machine; after one was killed, the next call that is its turn starts another.

    A thread stands for each: it starts the process, gives it one call after another and waits for the answers.

    Parameters
    ----------
    workers : int, optional
        As many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="process", initializer=_be_deaf)
        self._of_thread = threading.local()
        self._lock = threading.Lock()
        self._processes: set[WorkerProcess] = set()
        self._is_ended = False

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return self._count

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call, which can be pickled, in a process; return its Future."""
        with ctrl_c_waits():
            return self._threads.submit(self._call, fn, args, kwargs)

    def prepare(self, call: Callable[[], object]) -> None:
        """Start the processes, and let each import what the tasks need."""
        for _ in range(self._count):
            self.submit(call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end when they have done what they were given."""
        with ctrl_c_waits():
            self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            self._close()
        else:
            threading.Thread(target=self._close, daemon=True).start()

    def end(self) -> None:
        """End the processes at once."""
        with ctrl_c_waits():  # a second one too: nothing here takes long
            with self._lock:
                self._is_ended = True
                processes = tuple(self._processes)
            for process in processes:
                process.kill()
            self.shutdown(cancel_futures=True)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        with ctrl_c_waits():
            while self._processes:
                self._processes.pop().close()

    def _call(self, fn: Callable[..., Value], args: tuple[object, ...], kwargs: dict[str, object]) -> Value:
        """Let the process of this thread answer a call."""
        process = self._of_this_thread()
        try:
            found: Value = process.call(fn, args, kwargs)
            return found
        except BrokenProcessPool:
            self._of_thread.process = None
            with self._lock:
                self._processes.discard(process)
            process.kill()
            process.close()
            raise

    def _of_this_thread(self) -> WorkerProcess:
        process: WorkerProcess | None = getattr(self._of_thread, "process", None)
        if process is None:
            if self._is_ended:
                raise CancelledError
            process = self._of_thread.process = WorkerProcess()
            with self._lock:
                self._processes.add(process)
                is_late = self._is_ended
            if is_late:
                process.kill()
        return process


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
        processes.end()
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


def _be_deaf() -> None:
    """Let processes that this thread starts inherit that SIGINT is blocked, even while they are still importing.

    A terminal sends Ctrl-C to all processes of a command: the optimiser would take it for a wish to stop early.
    """
    resource_tracker.ensure_running()  # started later, it would unblock SIGINT again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
