"""The answers of the runs as arrays, and the runs that the analysis leaves out."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.experiment._factors import label_of
from routecast.experiment.analysis.outcome import Missing
from routecast.experiment.model import Factor, Results
from routecast.experiment.runs import wire_positions
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.intp]

__all__ = ["Observations", "observe"]

_SQUARABLE = 1e60
"""Variances of squares take fourth powers."""


@value
class Observations:
    """The runs of an experiment that answered, as arrays, and the runs that the analysis leaves out."""

    factors: tuple[Factor, ...]
    design: Floats = field("Coded levels of every combination, whether it answered or not")
    rows: Integers = field("Combination of each run that answered")
    runs: Integers = field("Position of the run in ``Results.runs``")
    replications: Integers
    y: Floats = field("Transformed values of the response")
    transform: Literal["none", "log", "reciprocal"]
    missing: tuple[Missing, ...]
    unsteady: tuple[Missing, ...]
    is_exact: bool = field("Whether the evaluator answers the same every time: a formula")
    positions: Integers | None = field(
        "Position of each run in the order on the wire; None off the wire, where runs do not affect each other",
        default=None,
    )

    @property
    def is_replicated(self) -> bool:
        """Whether some combination has several answers."""
        return len(np.unique(self.rows)) < len(self.rows)

    def lost_levels(self, *, is_polynomial: bool) -> tuple[tuple[int, Floats], ...]:
        """Return the factors (their columns) that have levels at which no run answered, with those levels.

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
        return tuple(label_of(factor, at) for factor, at in zip(self.factors, self.design[row].tolist(), strict=True))


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
    kept = [number for number, problem in enumerate(problems) if not problem]
    positions = None
    if experiment.evaluator == "measure":
        positions = np.array(wire_positions(experiment.seed, len(results.runs)), dtype=np.intp)[kept]
    data = Observations(
        factors=experiment.factors,
        design=np.array(experiment.design.coded, dtype=float).reshape(-1, len(experiment.factors)),
        rows=np.array([results.runs[number].row for number in kept], dtype=np.intp),
        runs=np.array(kept, dtype=np.intp),
        replications=np.array([results.runs[number].replication for number in kept], dtype=np.intp),
        y=np.array([_transformed(values[number], transform) for number in kept], dtype=float),
        transform=transform,
        missing=(),
        unsteady=(),
        is_exact=experiment.evaluator == "solve",
        positions=positions,
    )

    def entry(number: int, why: str) -> Missing:
        run = results.runs[number]
        labels = data.row_labels(run.row)
        return Missing(run=number, row=run.row, replication=run.replication, labels=labels, why=why)

    unsteady = ((number, results.answers[number].unsteady) for number in kept)
    return replace(
        data,
        missing=tuple(entry(number, problem) for number, problem in enumerate(problems) if problem),
        unsteady=tuple(entry(number, why) for number, why in unsteady if why),
    )


def _value_problem(value: float, transform: str) -> str:
    """Return why a value cannot be analysed; empty if it can."""
    if not math.isfinite(value):
        return "the answer is not a number"
    if transform == "log" and value <= 0:
        return f"the answer is {value:g}: it has no logarithm"
    if transform == "reciprocal" and value == 0:
        return "the answer is 0: it has no reciprocal"
    if abs(_transformed(value, transform)) > _SQUARABLE:
        return f"the answer is {value:g}: too far out for sums of squares"
    return ""


def _transformed(value: float, transform: str) -> float:
    if transform == "log":
        return math.log(value)
    return 1.0 / value if transform == "reciprocal" else value
