"""The workers of a Dask cluster, wherever they are."""

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
"""A scheduler that is there answers in milliseconds."""

WORKERS_WITHIN_S = 5.0
"""Workers of the scheduler's own machine come within seconds."""

_SAYS_WHY_WITHIN_S = 1.0
"""How much longer a connection that failed has to say what was wrong."""

ALONE_FOR_S = 30.0
"""How long a sweep waits for other workers when all are gone."""

SILENT_FOR_S = 30.0
"""How long a scheduler that is there may answer nothing."""

COUNTS_EVERY_S = 1.0
"""Workers come and go: how often they are counted."""

_COUNTED_WITHIN_S = 5.0
"""How long a sweep waits for one count of the workers: the client itself would wait for ever."""

_LOOKS_EVERY_S = 0.05

_WORKERS = 'start some with "dask worker {} --nworkers 2 --nthreads 1"'

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


class DaskWorkers(Workers):
    """The executor of a client, with what happens when the scheduler is lost.

    The scheduler gives the tasks of a lost worker to others by itself; what it gives up, because several workers died
    of it, counts as lost here.

    ``client``: of the scheduler; it has no types; ``address``: of the scheduler, for messages.
    """

    def __init__(self, client: Any, address: str) -> None:
        from distributed.scheduler import KilledWorker

        self.lost = (*Workers.lost, KilledWorker)
        self._client = client
        self._address = address
        # Not pure: Dask would hash every document to see whether it knows the call.
        self._executor: Executor = client.get_executor(pure=False)
        self._workers = 0
        self._counted_at = float("-inf")
        # First and last count that observed this: a process that was suspended itself does not blame the others.
        self._alone: _Since = None
        self._silent: _Since = None

    @property
    def workers(self) -> int:
        """How many tasks run at a time: the threads of all workers that are there now."""
        if time.monotonic() - self._counted_at >= COUNTS_EVERY_S:
            self._settle()
            asked_at = time.monotonic()
            try:
                self._workers = _threads(self._client, _COUNTED_WITHIN_S)
                self._silent = None
            except OSError:  # what it answered last stands until check() says otherwise
                self._silent = _longer(self._silent, asked_at)
            self._alone = None if self._workers else _longer(self._alone, asked_at)
            self._counted_at = time.monotonic()
        return self._workers

    def submit(
        self, fn: Callable[Arguments, Value], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Value]:
        """Start a call, which can be pickled, on a worker; return its Future."""
        self._settle()
        with ctrl_c_waits():
            future: Future[Value] = self._executor.submit(fn, *args, **kwargs)
        return future

    def check(self) -> None:
        """Raise if the scheduler is lost, or all workers are and no others came.

        Raises EnvironmentProblem.
        """
        if self._client.status in ("closed", "closing"):
            message = (
                f"dask://{self._address}: the scheduler was lost and did not come back within "
                f"{CONNECTS_WITHIN_S:g} s: start it again, then the same command goes on"
            )
            raise EnvironmentProblem(message)
        if _lasts(self._silent, SILENT_FOR_S):
            message = (
                f"dask://{self._address}: the scheduler is there but has answered nothing for {SILENT_FOR_S:g} s: see "
                "whether it was stopped or has no memory left; the same command goes on when it answers"
            )
            raise EnvironmentProblem(message)
        if _lasts(self._alone, ALONE_FOR_S):
            message = (
                f"dask://{self._address}: all workers were lost and none came for {ALONE_FOR_S:g} s: "
                f"{_WORKERS.format(self._address)}, then the same command goes on"
            )
            raise EnvironmentProblem(message)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers do what they were given, or give it up."""
        if self._client.status == "running":
            self._executor.shutdown(wait=wait and not cancel_futures)

    def _settle(self) -> None:
        """Wait while the client looks for its lost scheduler, which it does for as long as a connection may take."""
        looks = int(2.0 * CONNECTS_WITHIN_S / _LOOKS_EVERY_S)
        while looks and self._client.status not in ("running", "closed", "closing"):
            looks -= 1
            time.sleep(_LOOKS_EVERY_S)
        self.check()


_Since = tuple[float, float] | None
"""When a state was observed first and last."""


def _longer(since: _Since, now: float) -> _Since:
    return (now if since is None else since[0], now)


def _lasts(since: _Since, seconds: float) -> bool:
    return since is not None and since[1] - since[0] >= seconds


def _threads(client: Any, within_s: float) -> int:
    """Ask the scheduler how many threads its workers have.

    Raises OSError: it does not answer in time, or is lost.
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
    with _quiet():
        try:
            _greet(address)
            client = connect(f"tcp://{address}", timeout=CONNECTS_WITHIN_S, set_as_default=False, name="routecast")
        except Exception as error:  # whatever the other side may have sent that is no greeting
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
            with suppress(TimeoutError):  # of a scheduler that answers no more; its thread does not keep us
                client.close()


def _greet(address: str) -> None:
    """Shake hands with the scheduler in time: the client would wait for ever for a port that says nothing."""
    from distributed.comm import core

    connect: Any = core.connect

    async def greet() -> None:
        async def hands() -> None:
            comm = await connect(f"tcp://{address}", timeout=CONNECTS_WITHIN_S)
            await comm.close()

        await asyncio.wait_for(hands(), CONNECTS_WITHIN_S + _SAYS_WHY_WITHIN_S)

    with ThreadPoolExecutor(1) as thread:  # which has no event loop yet, as a notebook's has
        thread.submit(asyncio.run, greet()).result()


def _await_workers(client: Any, address: str) -> None:
    until = time.monotonic() + WORKERS_WITHIN_S
    while not _ask(client, address, _threads):
        if time.monotonic() > until:
            message = (
                f"dask://{address}: the scheduler has no workers: {_WORKERS.format(address)}, "
                "routecast installed where they run"
            )
            raise EnvironmentProblem(message)
        time.sleep(_LOOKS_EVERY_S)


def _ask(client: Any, address: str, question: Callable[[Any, float], Value]) -> Value:
    try:
        return question(client, SILENT_FOR_S)
    except TimeoutError as error:
        message = (
            f"dask://{address}: the scheduler, or one of its workers, answers nothing within {SILENT_FOR_S:g} s: "
            "see whether it was stopped, and start it again"
        )
        raise EnvironmentProblem(message) from error


def _check_versions(client: Any, address: str) -> None:
    """Check that all have this routecast: another version would answer otherwise under the same key."""

    # A function of the standard library: one of ours could not be sent to where routecast is missing.
    def versions(client: Any, within_s: float) -> dict[str, object]:
        in_time = {"callback_timeout": within_s}
        by_member: dict[str, object] = client.run(version, "routecast", on_error="return", **in_time)
        try:
            by_member["the scheduler"] = client.run_on_scheduler(version, "routecast", **in_time)
        except PackageNotFoundError as error:
            by_member["the scheduler"] = error
        return by_member

    here = version("routecast")
    others = [
        f"{member} has {has if isinstance(has, str) else 'none'}"
        for member, has in _ask(client, address, versions).items()
        if has != here
    ]
    if others:
        message = f"dask://{address}: all need routecast {here}, as here; but {', '.join(others)}"
        raise EnvironmentProblem(message)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's remarks about connections off the terminal: what matters becomes an error of ours."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _describe_error(error: BaseException) -> str:
    """Return the root cause of an error that is more than a timeout."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        if not isinstance(cause, TimeoutError | CancelledError | asyncio.CancelledError):
            causes.append(cause)
        cause = cause.__cause__
    if not causes:
        return f"nothing within {CONNECTS_WITHIN_S:g} s"
    return str(causes[-1]) or type(causes[-1]).__name__
