"""Runs and answers of sweeps, in a module of their own: processes and Dask workers import it."""

from __future__ import annotations

import math
import os
import signal
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.experiment.model import Answer, Response, Run

RESPONSE = Response(name="wait", of="latency.mean_s")


def runs_of(count: int, folder: Path | str = "") -> tuple[Run, ...]:
    """Return runs whose load rises from 0 towards 1."""
    return tuple(
        Run(
            key=f"{number * 2654435761 % 2**32:08x}",
            row=number,
            replication=0,
            document={"load": {"ratio": number / count}},
            evaluator="solve",
            duration_s=1.0,
            seed=number,
            is_steadied=False,
            responses=(RESPONSE,),
            folder=str(folder),
        )
        for number in range(count)
    )


def waits(run: Run) -> Answer:
    """Answer the mean wait of M/D/1 in service times (Pollaczek and Khinchine)."""
    ratio = run.document["load"]["ratio"]
    return Answer(key=run.key, values={"wait": ratio / (2.0 * (1.0 - ratio))}, bottleneck="server")


def awkward(run: Run) -> Answer:
    """Answer numbers that not every format keeps, and failures."""
    values = (0.1 + 0.2, math.inf, -0.0, 5e-324)
    if run.row % 5 == 4:
        return Answer(key=run.key, values={}, problem='4 cores on a "1-core" host: é', unsteady="")
    return Answer(key=run.key, values={"wait": values[run.row % 5]}, unsteady="drifts" if run.row == 7 else "")


def slowly(run: Run) -> Answer:
    """Answer late, and say which process it was."""
    time.sleep(0.03)
    return Answer(key=run.key, values=waits(run).values, bottleneck=str(os.getpid()))


def counted(run: Run) -> Answer:
    """Leave a mark in the run's folder each time it is answered."""
    with (Path(run.folder) / f"{run.key}.answered").open("a") as file:
        file.write("x")
    return waits(run)


def times_answered(runs: tuple[Run, ...]) -> list[int]:
    marks = [Path(run.folder) / f"{run.key}.answered" for run in runs]
    return [len(mark.read_text()) if mark.exists() else 0 for mark in marks]


def once_fatal(run: Run) -> Answer:
    """Kill the worker on row 3 the first time."""
    mark = Path(run.folder) / "killed"
    if run.row == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return waits(run)


def always_fatal(run: Run) -> Answer:
    """Kill the worker on rows 3 and 11 each time."""
    if run.row in (3, 11):
        os.kill(os.getpid(), signal.SIGKILL)
    return waits(run)


def fatal_for_all(run: Run) -> Answer:
    os.kill(os.getpid(), signal.SIGKILL)
    return waits(run)


def faulty(run: Run) -> Answer:
    """Raise what is no fault of a level, on row 6."""
    if run.row == 6:
        raise ZeroDivisionError("frames of no length")
    return waits(run)


def without_library(run: Run) -> Answer:
    raise EnvironmentProblem("no library")


@dataclass(frozen=True)
class OtherVersionHere:
    """Answers with a version that no other process has."""

    pid: int

    def __call__(self, name: str) -> str:
        return "99.0" if os.getpid() == self.pid else version(name)
