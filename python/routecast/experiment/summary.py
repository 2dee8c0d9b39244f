"""What an experiment left in its folder: a table of all runs, and a summary as plain data.

::

    OUT/runs.parquet      answers as they came in (and runs.2-of-8.parquet, of shards)
    OUT/results.parquet   every run beside its levels and responses, in the order of the design
    OUT/summary.json      the experiment, its design with what it confounds, and the analysis of each response
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.evaluate.plain import plain
from routecast.evaluate.result_folder import versions
from routecast.experiment.designs.fractional import fraction_of
from routecast.experiment.model import Experiment, Results
from routecast.experiment.runs import levels_of_row
from routecast.quantity.whole_file import unfinished

if TYPE_CHECKING:
    from routecast.experiment.analysis import Analysis

__all__ = ["design_json", "summary_json", "write_table"]

MOST_RUNS_TOLD = 1000
"""Of more runs the summary says nothing one by one: the table of results does."""

_RESERVED = ("run", "row", "replication", "seed", "problem", "unsteady", "bottleneck", "key")


def write_table(results: Results, path: Path) -> None:
    """Write every run with its levels, coded and as tables call them, and its responses in base units, as Parquet."""
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
    """Return the design as plain data: how many runs of what, and what it cannot tell apart."""
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
    """Return the summary as plain data; NaN is null, field names carry their units."""
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
    """Return an analysis as plain data; of very many runs without what it says of single ones."""
    if runs <= MOST_RUNS_TOLD:
        return analysis.to_json()
    document = replace(analysis, cells=()).to_json()
    if not isinstance(document, dict):
        return document
    residuals = document.get("residuals")
    checks = {"checks": residuals["checks"]} if isinstance(residuals, dict) else None
    return {**document, "cells": [], "residuals": checks}
