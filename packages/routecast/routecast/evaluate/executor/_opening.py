"""Executors by name: threads, processes, dask://HOST:PORT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from routecast.errors import QuantityProblem
from routecast.evaluate.executor._processes import Processes
from routecast.evaluate.executor.workers import Threads, Workers
from routecast.evaluate.protocol import EvaluatorKind
from routecast.quantity.did_you_mean import did_you_mean

MAX_WORKERS = 1024
"""Greatest number of workers: a process takes some 100 MB, so more are probably a mistake."""
EXECUTORS = ("threads", "processes", "dask://HOST:PORT")
"""Names of executors."""

_DASK = re.compile(r"dask://(?P<address>(\[[^\]\s]+\]|[^:/\s]+):(?P<port>\d{1,5}))/?")
WORTH_STARTING = 100
"""Least number of solved runs for which processes are started.

A process takes 0.4 s of a core to start and import what a run needs. A run of the multi-core router takes less than a
millisecond (``benches/sweeps.py``): a thousand runs would be the break-even. A run of a network processor takes tens of
milliseconds: a hundred runs save seconds.
"""


def check_executor(spec: str) -> None:
    """Check the name of an executor before anything is started.

    Raises QuantityProblem: the name is unknown.
    """
    if spec in ("threads", "processes"):
        return
    match = _DASK.fullmatch(spec)
    if match and 0 < int(match["port"]) < 65536:
        return
    if spec.startswith("dask"):
        message = f'executor "{spec}": a Dask scheduler is written dask://HOST:PORT, e.g. dask://127.0.0.1:8786'
    else:
        message = f'no executor "{spec}": {did_you_mean(spec, EXECUTORS)}'
    raise QuantityProblem(spec, message)


def chosen_executor(evaluator: EvaluatorKind, runs: int) -> str:
    """Return the executor that suits an evaluator and a number of runs.

    Simulated runs use threads, which start at once, because the simulator does not hold Python's lock. Solved runs are
    Python code, of which one thread runs at a time, so many of them use processes; threads suit few runs, which end
    before processes have started. Measured runs use threads.

    Parameters
    ----------
    evaluator : {"solve", "simulate", "measure"}
    runs : int
        Number of runs.

    Returns
    -------
    {"threads", "processes"}
    """
    return "processes" if evaluator == "solve" and runs >= WORTH_STARTING else "threads"


@contextmanager
def open_executor(spec: str = "processes", workers: int | None = None) -> Iterator[Workers]:
    """Open an executor; an early end of the block ends its tasks.

    Parameters
    ----------
    spec : str
        ``"threads"``: threads of this process. They start at once; only code outside Python, such as simulations,
        runs in parallel. ``"processes"``: processes of this machine. They take about half a second to start; all code
        runs in parallel. ``"dask://HOST:PORT"``: the workers of the Dask cluster with this scheduler. See
        :func:`chosen_executor`.
    workers : int, optional
        Number of threads or processes, by default the number of cores that this process may use. A Dask cluster
        ignores it.

    Yields
    ------
    Workers
        A :class:`concurrent.futures.Executor`.

    Raises
    ------
    routecast.errors.QuantityProblem
        There is no such executor, or there are fewer workers than one or more than :data:`MAX_WORKERS`.
    routecast.errors.EnvironmentProblem
        The scheduler does not answer or has no workers, or Dask is not installed.
    """
    check_executor(spec)
    if workers is not None and workers < 1:
        raise QuantityProblem(str(workers), f"{workers} workers: at least one is needed")
    if workers is not None and workers > MAX_WORKERS:
        raise QuantityProblem(str(workers), f"{workers} workers: at most {MAX_WORKERS} are started on one machine")
    if match := _DASK.fullmatch(spec):
        from routecast.evaluate.executor.dask_cluster import open_dask

        with open_dask(match["address"]) as dask:
            yield dask
        return
    executor: Workers = Threads(workers) if spec == "threads" else Processes(workers)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        executor.end()
        raise
