"""Running an experiment: its runs are swept, what the folder holds already is not run again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.evaluate.executor import MOST_WORKERS, check_executor, chosen_executor, cores, open_executor
from routecast.experiment.answer import answer, get_ready
from routecast.experiment.model import Experiment, Results, Run
from routecast.experiment.runs import runs_of, wire_order
from routecast.experiment.sweep import Progress, Shard, answers_on_disk, join, sweep

__all__ = ["AUTO", "join_experiment", "run_experiment"]

AUTO = "auto"
"""Name of whatever executor suits the experiment."""


def run_experiment(
    experiment: Experiment,
    out: Path | None,
    *,
    executor: str = AUTO,
    workers: int | None = None,
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run what has not been run of an experiment, and return all its answers.

    Results depend neither on the executor nor on the number of workers.

    Parameters
    ----------
    experiment : Experiment
    out : Path or None
        Folder where answers are kept as they come in; a killed run goes on there. None: they are kept in memory only.
    executor : str
        ``"threads"``, ``"processes"``, ``"dask://HOST:PORT"``; ``"auto"``: what suits evaluator and number of runs.
    workers : int, optional
        As many as there are cores if not given; one on the wire, always.
    shard : Shard, optional
        Run this part only; the results have its runs.
    progress : callable, optional
        Told how many runs are done, of how many, and what is left.

    Raises
    ------
    routecast.errors.RoutecastError
        No such executor, a scheduler that does not answer, a folder that cannot be written; not a run that fails,
        which its answer tells.
    """
    started = time.monotonic()
    if executor != AUTO:
        check_executor(executor)
    count = len(experiment.design.coded) * experiment.design.replications // (shard.count if shard else 1)
    where = chosen_executor(experiment.evaluator, count) if executor == AUTO else executor
    if experiment.evaluator == "measure":
        if where.startswith("dask"):
            what = "the wire is of this machine: a test bed is measured with --executor threads"
            raise FileProblem(experiment.name, [Problem("--executor", what)])
        where, workers = "threads", 1
    with open_executor(where, _needed(workers, count)) as crew:
        crew.prepare(partial(get_ready, experiment.evaluator))
        runs = runs_of(experiment)
        mine = runs if shard is None else shard.of(runs)
        there = answers_on_disk(out) if out is not None and out.is_dir() else {}
        resumed = sum(key in there for key in {run.key for run in mine})
        order: Sequence[Run] = runs
        if experiment.evaluator == "measure":
            order = [runs[position] for position in wire_order(experiment.seed, len(runs))]
        found = sweep(order, answer, executor=crew, out=out, progress=progress, shard=shard)
        by_key = {one.key: one for one in found}
        answers = tuple(by_key[run.key] for run in mine)
    return Results(
        experiment=experiment, runs=mine, answers=answers, resumed=resumed, elapsed_s=time.monotonic() - started
    )


def _needed(workers: int | None, runs: int) -> int | None:
    """Return how many workers to start: those that are asked for, but none that would have no run."""
    if workers is None:
        workers = cores()
    return workers if workers < 1 or workers > MOST_WORKERS else min(workers, max(runs, 1))


def join_experiment(experiment: Experiment, out: Path) -> Results:
    """Return the results of an experiment whose shards have been run in a folder.

    Raises
    ------
    routecast.errors.RoutecastError
        Runs are missing: which, and which shards have to be started again.
    """
    started = time.monotonic()
    runs = runs_of(experiment)
    answers = join(runs, out)
    return Results(
        experiment=experiment,
        runs=runs,
        answers=answers,
        resumed=len({run.key for run in runs}),
        elapsed_s=time.monotonic() - started,
    )
