"""Runs an experiment or joins its shards, and writes the results as a table and as plain data.

::

    OUT/runs.parquet      answers in the order of their arrival (of a shard: runs.2-of-8.parquet)
    OUT/results.parquet   every run with its levels and responses, in the order of the design
    OUT/summary.json      the experiment, its design with the confounded effects, and the analysis of each response
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, Problem
from routecast.evaluate.executor import MAX_WORKERS, check_executor, chosen_executor, cores, open_executor
from routecast.evaluate.plain import plain
from routecast.evaluate.result_folder import versions
from routecast.experiment.answer import answer, import_evaluator
from routecast.experiment.designs import fraction_of
from routecast.experiment.model import Experiment, Results
from routecast.experiment.runs import levels_of_row, runs_of, wire_order
from routecast.experiment.sweep import Shard, answers_to_keep, join, sweep
from routecast.progress import Progress
from routecast.quantity.whole_file import unfinished

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis

__all__ = ["AUTO", "design_json", "join_experiment", "run_experiment", "summary_json", "write_table"]

MAX_RUNS_LISTED = 1000
"""The summary of more runs omits single runs, which the table of results has."""

_RESERVED = ("run", "row", "replication", "seed", "problem", "unsteady", "bottleneck", "key")


def write_table(results: Results, path: Path) -> None:
    """Write a Parquet file of all runs, each with its levels, coded and as labels, and its responses in base units."""
    import polars

    experiment = results.experiment
    labels: dict[int, list[str]] = {}
    for run in results.runs:
        if run.row not in labels:
            labels[run.row] = [level.label for level in levels_of_row(experiment, run.row)]
    columns: dict[str, list[Any]] = {
        "run": list(range(len(results.runs))),
        "row": [run.row for run in results.runs],
        "replication": [run.replication for run in results.runs],
        "seed": [run.seed for run in results.runs],
    }
    for number, factor in enumerate(experiment.factors):
        columns[_column(factor.name, "factor")] = [labels[run.row][number] for run in results.runs]
        columns[f"coded {factor.letter}"] = [experiment.design.coded[run.row][number] for run in results.runs]
    for response in experiment.responses:
        columns[_column(response.name, "response")] = [answer.values.get(response.name) for answer in results.answers]
    for key in ("problem", "unsteady", "bottleneck"):
        columns[key] = [getattr(answer, key) for answer in results.answers]
    columns["key"] = [run.key for run in results.runs]
    with unfinished(path) as draft:
        polars.DataFrame(columns).write_parquet(draft)


def _column(name: str, kind: str) -> str:
    return f"{kind} {name}" if name in _RESERVED else name


def design_json(experiment: Experiment) -> dict[str, object]:
    """Return the design as plain data: its number of runs, its kind, and the effects that it confounds."""
    design = experiment.design
    document: dict[str, object] = {
        "kind": design.kind,
        "rows": len(design.coded),
        "replications": design.replications,
        "runs": len(design.coded) * design.replications,
    }
    fraction = fraction_of(design, experiment.factors)
    if fraction is not None:
        document |= {
            "generators": list(fraction.generators),
            "defining_relation": list(fraction.defining_relation),
            "resolution": fraction.resolution,
            "aliases": [list(chain) for chain in fraction.alias_chains()],
        }
    return document


def summary_json(results: Results, analyses: Mapping[str, Analysis], *, command: str = "") -> dict[str, object]:
    """Return the summary as plain data; NaN is null, and names of fields end in their units."""
    experiment = results.experiment
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "evaluator": experiment.evaluator,
        "duration_s": experiment.duration_s,
        "seed": experiment.seed,
        "factors": plain(experiment.factors),
        "design": design_json(experiment),
        "responses": plain(experiment.responses),
        "failed": sum(bool(answer.problem) for answer in results.answers),
        "unsteady": sum(bool(answer.unsteady) for answer in results.answers),
        "analyses": {name: _analysis_json(analysis, len(results.runs)) for name, analysis in analyses.items()},
        "versions": versions(),
        "command": command,
    }


def _analysis_json(analysis: Analysis, runs: int) -> object:
    """Return an analysis as plain data, without cells and residuals if there are very many runs."""
    if runs <= MAX_RUNS_LISTED:
        return analysis.to_json()
    document = replace(analysis, cells=()).to_json()
    if not isinstance(document, dict):
        return document
    residuals = document.get("residuals")
    checks = {"checks": residuals["checks"]} if isinstance(residuals, dict) else None
    return {**document, "cells": [], "residuals": checks}


AUTO = "auto"
"""Chooses the executor that suits the experiment."""


def run_experiment(
    experiment: Experiment,
    out: Path | None,
    *,
    executor: str = AUTO,
    workers: int | None = None,
    shard: Shard | None = None,
    on_progress: Progress | None = None,
) -> Results:
    """Run the unfinished runs of an experiment, and return all its answers.

    Results depend neither on the executor nor on the number of workers.

    Parameters
    ----------
    experiment : Experiment
    out : Path or None
        Folder of the answers, from which a killed experiment continues. None: answers stay in memory.
    executor : str
        ``"threads"``, ``"processes"``, ``"dask://HOST:PORT"``; ``"auto"`` depends on the evaluator and the number of
        runs.
    workers : int, optional
        Number of workers, by default the number of cores; on the wire it is always one.
    shard : Shard, optional
        Part of the runs that is run and returned.
    on_progress : callable, optional
        Called with the number of finished runs, the number of all runs, and a text about the remaining runs.

    Raises
    ------
    routecast.errors.RoutecastError
        There is no such executor, the scheduler does not answer, or the folder cannot be written. A run that fails
        raises nothing: its answer has the problem.
    """
    started = time.monotonic()
    if executor != AUTO:
        check_executor(executor)
    count = len(experiment.design.coded) * experiment.design.replications // (shard.count if shard else 1)
    spec = chosen_executor(experiment.evaluator, count) if executor == AUTO else executor
    is_measured = experiment.evaluator == "measure"
    if is_measured:
        if spec.startswith("dask"):
            message = "the wire belongs to this machine: measure a test bed with --executor threads"
            raise FileProblem(experiment.name, [Problem("--executor", message)])
        spec, workers = "threads", 1
    with open_executor(spec, _worker_count(workers, count)) as pool:
        pool.prepare(partial(import_evaluator, experiment.evaluator))
        runs = runs_of(experiment)
        selected = runs if shard is None else shard.of(runs)
        existing = answers_to_keep(out) if out is not None and out.is_dir() else {}
        order = wire_order(experiment.seed, len(runs)) if is_measured else range(len(runs))
        in_order = [runs[position] for position in order]
        answers = sweep(in_order, answer, executor=pool, out=out, on_progress=on_progress, shard=shard)
    by_key = {answer.key: answer for answer in answers}
    return Results(
        experiment=experiment,
        runs=selected,
        answers=tuple(by_key[run.key] for run in selected),
        resumed=len({run.key for run in selected} & existing.keys()),
        elapsed_s=time.monotonic() - started,
    )


def _worker_count(workers: int | None, runs: int) -> int | None:
    """Return the number of workers to start, at most the number of runs; a number out of range stays as it is."""
    if workers is None:
        workers = cores()
    return workers if workers < 1 or workers > MAX_WORKERS else min(workers, max(runs, 1))


def join_experiment(experiment: Experiment, out: Path) -> Results:
    """Return the results of an experiment from a folder in which its shards ran.

    Raises
    ------
    routecast.errors.RoutecastError
        Runs are missing; the message lists them and the shards to start again.
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
