"""The answers of the runs as arrays, and the runs that the analysis leaves out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.experiment._factors import label_of
from routecast.experiment.analysis.outcome import MarkedRun
from routecast.experiment.model import Factor, Results
from routecast.experiment.runs import wire_positions
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.intp]

__all__ = ["Observations", "observe"]

_MAX_SIZE = 1e60
"""Largest size of a response; variances of squares take its fourth power."""


@value
class Observations:
    """The runs of an experiment that answered, as arrays, and the runs that the analysis leaves out."""

    factors: tuple[Factor, ...]
    design: Floats = field("Coded levels of every combination, whether it answered or not")
    rows: Integers = field("Row of the design of each run that answered")
    runs: Integers = field("Position of the run in ``Results.runs``")
    replications: Integers
    y: Floats = field("Transformed values of the response")
    transform: Literal["none", "log", "reciprocal"]
    missing: tuple[MarkedRun, ...]
    unsteady: tuple[MarkedRun, ...]
    is_exact: bool = field("Whether the evaluator is a formula, which gives the same answer every time")
    positions: Integers | None = field(
        "Position of each run in the order on the wire; None for other evaluators, whose runs do not affect each other",
        default=None,
    )

    @property
    def is_replicated(self) -> bool:
        """Whether some combination has several answers."""
        return len(np.unique(self.rows)) < len(self.rows)

    def lost_levels(self, *, is_polynomial: bool) -> tuple[tuple[int, Floats], ...]:
        """Return the columns of factors that have levels at which no run answered, with these levels.

        ``is_polynomial``: whether the model is a polynomial, which predicts quantities between the levels.
        """
        coded = np.round(self.design, 9)
        lost = ((column, np.setdiff1d(levels, levels[self.rows])) for column, levels in enumerate(coded.T))
        return tuple(
            (column, levels)
            for column, levels in lost
            if len(levels) and not (is_polynomial and self.factors[column].is_quantity)
        )

    def row_labels(self, row: int) -> tuple[str, ...]:
        """Return the labels of the levels of a combination."""
        coded_row = self.design[row].tolist()
        return tuple(label_of(factor, coded) for factor, coded in zip(self.factors, coded_row, strict=True))


def observe(results: Results, response: str) -> Observations:
    """Return the values of a response under the experiment's transform.

    Raises RoutecastError: there is no such response.
    """
    experiment = results.experiment
    values = results.values(response)
    transform = next(declared.transform for declared in experiment.responses if declared.name == response)
    problems = [
        (answer.problem if response not in answer.values else "") or _value_problem(value, transform)
        for answer, value in zip(results.answers, values, strict=True)
    ]
    usable = [number for number, problem in enumerate(problems) if not problem]
    positions = None
    if experiment.evaluator == "measure":
        positions = np.array(wire_positions(experiment.seed, len(results.runs)), dtype=np.intp)[usable]
    data = Observations(
        factors=experiment.factors,
        design=np.array(experiment.design.coded, dtype=float).reshape(-1, len(experiment.factors)),
        rows=np.array([results.runs[number].row for number in usable], dtype=np.intp),
        runs=np.array(usable, dtype=np.intp),
        replications=np.array([results.runs[number].replication for number in usable], dtype=np.intp),
        y=np.array([_transformed(values[number], transform) for number in usable], dtype=float),
        transform=transform,
        missing=(),
        unsteady=(),
        is_exact=experiment.evaluator == "solve",
        positions=positions,
    )

    def marked(number: int, why: str) -> MarkedRun:
        run = results.runs[number]
        labels = data.row_labels(run.row)
        return MarkedRun(run=number, row=run.row, replication=run.replication, labels=labels, why=why)

    unsteady = ((number, results.answers[number].unsteady) for number in usable)
    return replace(
        data,
        missing=tuple(marked(number, problem) for number, problem in enumerate(problems) if problem),
        unsteady=tuple(marked(number, why) for number, why in unsteady if why),
    )


def _value_problem(value: float, transform: str) -> str:
    """Return the reason why a value cannot be analysed; empty if it can."""
    if not math.isfinite(value):
        return "the answer is not a number"
    if transform == "log" and value <= 0:
        return f"the answer is {value:g}: it has no logarithm"
    if transform == "reciprocal" and value == 0:
        return "the answer is 0: it has no reciprocal"
    if abs(_transformed(value, transform)) > _MAX_SIZE:
        return f"the answer is {value:g}: it is too large for sums of squares"
    return ""


def _transformed(value: float, transform: str) -> float:
    if transform == "log":
        return math.log(value)
    return 1.0 / value if transform == "reciprocal" else value
