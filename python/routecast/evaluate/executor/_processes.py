"""Processes that share work: deaf to Ctrl-C, which ends them through their parent, and never orphans."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any, ParamSpec, Protocol, TypeVar

from routecast.errors import EnvironmentProblem
from routecast.evaluate.executor.workers import Workers, cores, ctrl_c_waits

ENDS_WITHIN_S = 5.0
"""How long a process that has nothing to do may take to end by itself."""

_LOST = "a process ended abruptly while it was at work"


class WorkerProcess:
    """A process that is started with the object; used by one thread, but ended by any.

    One process that answers calls, at the other end of a pipe of its own.

    The pools of the standard library share two pipes among all processes. One that is killed while it writes leaves
    half a message there, and who reads waits for the other half for ever. Here nothing is shared: a pipe whose process
    is gone has an end, which is read as such.

    It has the signal mask of the thread that starts it, even while it is still importing.
    """

    def __init__(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = get_context("spawn")
        self._pipe, there = context.Pipe()
        # Python ends such processes when it ends itself, instead of waiting for them.
        self._process = context.Process(target=_answer_calls, args=(there,), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            there.close()

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a function returns there, or raise what it raises.

        Raises BrokenProcessPool: the process was killed, or ended by itself.
        """
        message = ForkingPickler.dumps((fn, args, kwargs))
        try:
            self._pipe.send_bytes(message)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError) as gone:  # nothing, or half a message
            raise BrokenProcessPool(_LOST) from gone
        is_value, result, traceback_text = ForkingPickler.loads(answer)
        if is_value:
            return result
        raise result from _There(traceback_text)

    def kill(self) -> None:
        """End it, whatever it is doing, even if it is stopped."""
        self._process.kill()

    def close(self) -> None:
        """End it when it has answered; nothing of it is left."""
        self._pipe.close()
        self._process.join(ENDS_WITHIN_S)
        self._process.kill()
        self._process.join()


class _There(Exception):
    """The traceback of an error in another process, which is shown as its cause."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _answer_calls(pipe: Connection) -> None:
    """Answer calls until nobody can ask any more: the body of the process."""
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            _answer_one(pipe)


def _answer_one(pipe: Connection) -> None:
    answer = _answered(pipe.recv_bytes())
    try:
        message = ForkingPickler.dumps(answer)
    except Exception as error:
        is_value, result, traceback_text = answer
        what = "what it returns" if is_value else f"what it raises, {type(result).__name__}: {result},"
        message = ForkingPickler.dumps((False, TypeError(f"{what} cannot be sent: {error}"), traceback_text))
    pipe.send_bytes(message)


def _answered(message: bytes) -> tuple[bool, Any, str]:
    """Return whether a call returned a value; what it returned or raised; the traceback of what it raised."""
    try:
        fn, args, kwargs = ForkingPickler.loads(message)
        return True, fn(*args, **kwargs), ""
    except BaseException as error:
        return False, error, traceback.format_exc()


def _end_with_parent() -> None:
    """End this process when its parent is killed, though it is at work."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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

    ``workers``: as many as there are cores if not given.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="process", initializer=_block_ctrl_c)
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
            result: Value = process.call(fn, args, kwargs)
            return result
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
    """Open processes that run calls; whatever ends the block early ends the processes at once.

    ``workers``: processes; as many as there are cores if not given. Yields a function that starts a call, which can
    be pickled, in a process.
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
    """Start calls, each by its key, in processes of their own; see :func:`crew`."""
    with crew(workers) as submit:
        yield {submit(call): key for key, call in calls.items()}


def _block_ctrl_c() -> None:
    """Let processes that this thread starts inherit that SIGINT is blocked, even while they are still importing.

    A terminal sends Ctrl-C to all processes of a command: the optimiser would take it for a wish to stop early.
    """
    resource_tracker.ensure_running()  # started later, it would unblock SIGINT again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
