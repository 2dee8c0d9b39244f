"""Worker processes: Ctrl-C reaches them only through their parent, and they end with it."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
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
"""Time that an idle process may take to end by itself."""


class WorkerProcess:
    """A process that runs calls, behind a pipe of its own. One thread uses it; any thread may end it.

    The pools of the standard library share two pipes among all processes. A process that is killed while it writes
    leaves half a message there, and the reader waits for the other half forever. Here each process has its own pipe,
    and the reader sees the end of the pipe of a dead process.

    The process starts with the object, and has the signal mask of the thread that starts it from its first import on.
    """

    def __init__(self) -> None:
        # Spawned: a fork would copy locks that other threads hold.
        context = get_context("spawn")
        self._pipe, remote_end = context.Pipe()
        # Python kills daemon processes at its own end and does not wait for them.
        self._process = context.Process(target=_answer_calls, args=(remote_end,), daemon=True)
        try:
            self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            remote_end.close()

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function in the process; return its value or raise its error.

        Raises BrokenProcessPool: the process was killed, or ended by itself.
        """
        message = ForkingPickler.dumps((fn, args, kwargs))
        try:
            self._pipe.send_bytes(message)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError) as error:  # nothing, or half a message
            raise BrokenProcessPool("a process ended abruptly while it was at work") from error
        is_value, result, traceback_text = ForkingPickler.loads(answer)
        if is_value:
            return result
        raise result from _RemoteTraceback(traceback_text)

    def kill(self) -> None:
        """Kill the process, even if it is stopped."""
        self._process.kill()

    def close(self) -> None:
        """End the process after its current call, and release it."""
        self._pipe.close()
        self._process.join(ENDS_WITHIN_S)
        self._process.kill()
        self._process.join()


class _RemoteTraceback(Exception):
    """The traceback of an error in another process, which is shown as its cause."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


def _answer_calls(pipe: Connection) -> None:
    """Run calls until the other end of the pipe is closed: the main function of the process."""
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        while True:
            _answer_call(pipe)


def _answer_call(pipe: Connection) -> None:
    answer = _result(pipe.recv_bytes())
    try:
        message = ForkingPickler.dumps(answer)
    except Exception as error:
        is_value, result, traceback_text = answer
        subject = "what it returns" if is_value else f"what it raises, {type(result).__name__}: {result},"
        message = ForkingPickler.dumps((False, TypeError(f"{subject} cannot be sent: {error}"), traceback_text))
    pipe.send_bytes(message)


def _result(message: bytes) -> tuple[bool, Any, str]:
    """Return whether a call returned a value; the value or the error; the traceback of the error."""
    try:
        fn, args, kwargs = ForkingPickler.loads(message)
        return True, fn(*args, **kwargs), ""
    except BaseException as error:
        return False, error, traceback.format_exc()


def _end_with_parent() -> None:
    """End this process when its parent is killed, even during a call."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class Submit(Protocol):
    """Starts a call in a process."""

    def __call__(self, call: Callable[[], Value]) -> Future[Value]:
        """Return the Future of a call."""
        ...


class Processes(Workers):
    """Processes of this machine; the next call replaces a process that has died.

    Each process has a thread, which starts it, sends it one call after the other and waits for the results.

    ``workers``: number of processes; None: one per core.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = workers or cores()
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="process", initializer=_block_ctrl_c)
        self._thread_state = threading.local()
        self._lock = threading.Lock()
        self._processes: set[WorkerProcess] = set()
        self._is_ended = False

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time."""
        return self._count

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call, which can be pickled, in a process; return its Future."""
        with ctrl_c_waits():
            return self._threads.submit(self._call, fn, args, kwargs)

    def prepare(self, call: Callable[[], object]) -> None:
        """Start the processes, each with this call."""
        for _ in range(self._count):
            self.submit(call)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end after their last call."""
        with ctrl_c_waits():
            self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            self._close()
        else:
            threading.Thread(target=self._close, daemon=True).start()

    def end(self) -> None:
        """End the processes at once."""
        with ctrl_c_waits():  # delays a second Ctrl-C, too: nothing here takes long
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
        """Run a call in the process of this thread."""
        process = self._process_of_thread()
        try:
            result: Value = process.call(fn, args, kwargs)
            return result
        except BrokenProcessPool:
            self._thread_state.process = None
            with self._lock:
                self._processes.discard(process)
            process.kill()
            process.close()
            raise

    def _process_of_thread(self) -> WorkerProcess:
        process: WorkerProcess | None = getattr(self._thread_state, "process", None)
        if process is None:
            if self._is_ended:
                raise CancelledError
            process = self._thread_state.process = WorkerProcess()
            with self._lock:
                self._processes.add(process)
                is_late = self._is_ended
            if is_late:
                process.kill()
        return process


@contextmanager
def process_pool(workers: int | None = None) -> Iterator[Submit]:
    """Open processes that run calls; an error in the block ends the processes at once.

    ``workers``: number of processes; None: one per core. Yields a function that starts a call, which can be pickled,
    in a process.
    """
    processes = Processes(workers)

    def submit(call: Callable[[], Value]) -> Future[Value]:
        return processes.submit(call)

    try:
        yield submit
    except BrokenProcessPool as problem:
        processes.end()
        message = (
            "a process of the study was killed, most likely because memory ran out. Finished results are kept: start "
            "the study again with the same folder, with fewer other programs running"
        )
        raise EnvironmentProblem(message) from problem
    except BaseException:
        processes.end()
        raise
    finally:
        processes.shutdown(cancel_futures=True)


def _block_ctrl_c() -> None:
    """Block SIGINT in this thread, and so in the processes that it starts, even while they are still importing.

    A terminal sends Ctrl-C to all processes of a command, and the optimiser would stop early.
    """
    if hasattr(signal, "pthread_sigmask"):  # Windows has neither masks nor a tracker
        resource_tracker.ensure_running()  # started later, it would unblock SIGINT again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
