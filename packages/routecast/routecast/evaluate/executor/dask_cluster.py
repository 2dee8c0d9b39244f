"""The workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ParamSpec, TypeVar

from routecast.errors import EnvironmentProblem
from routecast.evaluate.executor.workers import Workers, ctrl_c_waits

CONNECTS_WITHIN_S = 5.0
"""Longest wait for a connection; a running scheduler answers in milliseconds."""

WORKERS_WITHIN_S = 5.0
"""Longest wait for workers; those on the scheduler's own machine connect within seconds."""

_REASON_WITHIN_S = 1.0
"""Additional time in which a failed connection may report its error."""

ALONE_FOR_S = 30.0
"""Time that a sweep waits for new workers when all are lost."""

SILENT_FOR_S = 30.0
"""Longest time without an answer from a connected scheduler."""

COUNTS_EVERY_S = 1.0
"""Interval between two counts of the workers."""

COUNTED_WITHIN_S = 5.0
"""Longest wait for one count of the workers, since the client itself has no time limit."""

_POLL_INTERVAL_S = 0.05

_START_WORKERS = 'start some with "dask worker {} --nworkers 2 --nthreads 1"'

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class DaskWorkers(Workers):
    """The executor of a Dask client, which notices the loss of the scheduler.

    The scheduler itself gives the tasks of a lost worker to other workers. A task on which several workers died counts
    as lost.

    ``client``: a ``distributed.Client``; ``address``: address of the scheduler, for messages.
    """

    def __init__(self, client: Any, address: str) -> None:
        from distributed.scheduler import KilledWorker

        self.lost = (*Workers.lost, KilledWorker)
        self._client = client
        self._address = address
        # With pure=True Dask would hash every document to recognise repeated calls.
        self._executor: Executor = client.get_executor(pure=False)
        self._workers = 0
        self._counted_at = float("-inf")
        # Times of the first and the last observation: time during which this process is suspended does not count.
        self._alone: _Since = None
        self._silent: _Since = None

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time: the threads of all present workers."""
        if time.monotonic() - self._counted_at >= COUNTS_EVERY_S:
            self._await_reconnection()
            now = time.monotonic()
            try:
                self._workers = _threads(self._client, COUNTED_WITHIN_S)
                self._silent = None
            except OSError:  # the last count stays valid until check() raises
                self._silent = _extended(self._silent, now)
            self._alone = None if self._workers else _extended(self._alone, now)
            self._counted_at = time.monotonic()
        return self._workers

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call, which can be pickled, on a worker; return its Future."""
        self._await_reconnection()
        with ctrl_c_waits():
            future: Future[Value] = self._executor.submit(fn, *args, **kwargs)
        return future

    def check(self) -> None:
        """Raise EnvironmentProblem if the scheduler is lost, or if all workers are lost and no new worker came."""
        if self._client.status in ("closed", "closing"):
            message = (
                f"dask://{self._address}: the scheduler was lost and did not come back within "
                f"{CONNECTS_WITHIN_S:g} s: start it again, then the same command continues"
            )
            raise EnvironmentProblem(message)
        if _lasts(self._silent, SILENT_FOR_S):
            message = (
                f"dask://{self._address}: the scheduler is connected but has not answered for {SILENT_FOR_S:g} s: "
                "check whether it was stopped or has no memory left; the same command continues when it answers"
            )
            raise EnvironmentProblem(message)
        if _lasts(self._alone, ALONE_FOR_S):
            message = (
                f"dask://{self._address}: all workers were lost and none came for {ALONE_FOR_S:g} s: "
                f"{_START_WORKERS.format(self._address)}, then the same command continues"
            )
            raise EnvironmentProblem(message)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Finish the tasks, or cancel them."""
        if self._client.status == "running":
            self._executor.shutdown(wait=wait and not cancel_futures)

    def _await_reconnection(self) -> None:
        """Wait while the client reconnects to a lost scheduler, at most for the longest wait for a connection."""
        remaining_polls = int(2.0 * CONNECTS_WITHIN_S / _POLL_INTERVAL_S)
        while remaining_polls and self._client.status not in ("running", "closed", "closing"):
            remaining_polls -= 1
            time.sleep(_POLL_INTERVAL_S)
        self.check()


_Since = tuple[float, float] | None
"""Times of the first and the last observation of a state, s."""


def _extended(since: _Since, now: float) -> _Since:
    return (now if since is None else since[0], now)


def _lasts(since: _Since, seconds: float) -> bool:
    return since is not None and since[1] - since[0] >= seconds


def _threads(client: Any, within_s: float) -> int:
    """Return the number of threads of all workers of the scheduler.

    Raises OSError: the scheduler does not answer in time, or is lost.
    """
    return sum(client.nthreads(callback_timeout=within_s).values())


@contextmanager
def open_dask(address: str) -> Iterator[DaskWorkers]:
    """Connect to a scheduler that has workers.

    ``address``: ``HOST:PORT``. Raises EnvironmentProblem: dask is not installed, the scheduler does not answer or has
    no workers, or the scheduler or a worker has another version of routecast.
    """
    try:
        import distributed
    except ImportError as error:
        message = 'executor dask:// needs Dask: pip install "routecast[dask]"'
        raise EnvironmentProblem(message) from error
    connect: Any = distributed.Client
    with _silence_dask():
        try:
            _check_reachable(address)
            client = connect(f"tcp://{address}", timeout=CONNECTS_WITHIN_S, set_as_default=False, name="routecast")
        except Exception as error:  # the other side may be no scheduler and send anything
            message = (
                f"dask://{address}: no scheduler answers ({_describe_error(error)}): start one with "
                f'"dask scheduler --port {address.rpartition(":")[2]}" or correct the address'
            )
            raise EnvironmentProblem(message) from error
        try:
            _await_workers(client, address)
            _check_versions(client, address)
            workers = DaskWorkers(client, address)
            try:
                yield workers
            except BaseException:
                workers.end()
                raise
        finally:
            with suppress(TimeoutError):  # a silent scheduler does not delay the end
                client.close()


def _check_reachable(address: str) -> None:
    """Connect to the scheduler once, within a time limit, since the client would wait forever at a silent port."""
    from distributed.comm import core

    connect: Any = core.connect

    async def connect_in_time() -> None:
        async def connect_and_close() -> None:
            comm = await connect(f"tcp://{address}", timeout=CONNECTS_WITHIN_S)
            await comm.close()

        await asyncio.wait_for(connect_and_close(), CONNECTS_WITHIN_S + _REASON_WITHIN_S)

    with ThreadPoolExecutor(1) as thread:  # the thread of a notebook has an event loop already
        thread.submit(asyncio.run, connect_in_time()).result()


def _await_workers(client: Any, address: str) -> None:
    until = time.monotonic() + WORKERS_WITHIN_S
    while not _call(client, address, _threads):
        if time.monotonic() > until:
            message = (
                f"dask://{address}: the scheduler has no workers: {_START_WORKERS.format(address)}, "
                "routecast installed where they run"
            )
            raise EnvironmentProblem(message)
        time.sleep(_POLL_INTERVAL_S)


def _call(client: Any, address: str, query: Callable[[Any, float], Value]) -> Value:
    try:
        return query(client, SILENT_FOR_S)
    except TimeoutError as error:
        message = (
            f"dask://{address}: the scheduler or one of its workers does not answer within {SILENT_FOR_S:g} s: "
            "check whether it was stopped, and start it again"
        )
        raise EnvironmentProblem(message) from error


def _check_versions(client: Any, address: str) -> None:
    """Check that scheduler and workers have this version: another version may give other results for the same key."""

    # ``version`` is a function of the standard library; a function of routecast would need routecast at the other end.
    def versions(client: Any, within_s: float) -> dict[str, object]:
        time_limit = {"callback_timeout": within_s}
        by_member: dict[str, object] = client.run(version, "routecast", on_error="return", **time_limit)
        try:
            by_member["the scheduler"] = client.run_on_scheduler(version, "routecast", **time_limit)
        except PackageNotFoundError as error:
            by_member["the scheduler"] = error
        return by_member

    own_version = version("routecast")
    others = [
        f"{member} has {found_version if isinstance(found_version, str) else 'none'}"
        for member, found_version in _call(client, address, versions).items()
        if found_version != own_version
    ]
    if others:
        message = f"dask://{address}: all need routecast {own_version}, as here; but {', '.join(others)}"
        raise EnvironmentProblem(message)


@contextmanager
def _silence_dask() -> Iterator[None]:
    """Silence Dask's messages about connections; problems become errors of routecast."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _describe_error(error: BaseException) -> str:
    """Return the root cause of an error, other than a timeout."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        if not isinstance(cause, TimeoutError | CancelledError | asyncio.CancelledError):
            causes.append(cause)
        cause = cause.__cause__
    if not causes:
        return f"nothing within {CONNECTS_WITHIN_S:g} s"
    return str(causes[-1]) or type(causes[-1]).__name__
