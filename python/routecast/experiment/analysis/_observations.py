"""What the runs answered, as arrays; and the runs that the analysis must do without."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from routecast.experiment._factors import level_at
from routecast.experiment._runs import wire_order
from routecast.experiment.analysis.outcome import Missing
from routecast.experiment.factors import label_of
from routecast.experiment.model import Factor, Results
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
    """The runs of an experiment that answered."""

    factors: tuple[Factor, ...]
    design: Floats = field("Coded levels of every combination, whether it answered or not")
    rows: Integers = field("Combination of each run that answered")
    runs: Integers = field("Its position in ``Results.runs``")
    replications: Integers
    y: Floats = field("Its value, transformed")
    transform: Literal["none", "log", "reciprocal"]
    missing: tuple[Missing, ...]
    unsteady: tuple[Missing, ...]
    is_exact: bool = field("Whether the evaluator answers the same every time: a formula")
    # None: none came after another, each had its own model and random numbers.
    places: Integers | None = field("Place of each run in the order in which they went over the wire", default=None)

    @property
    def is_replicated(self) -> bool:
        """Whether some combination answered more than once."""
        return len(np.unique(self.rows)) < len(self.rows)

    def lost_levels(self, *, is_polynomial: bool) -> tuple[tuple[int, Floats], ...]:
        """Return the factors (their columns) that have levels at which no run answered, with those levels.

        ``is_polynomial``: whether the model is a polynomial, which knows of values of quantities that nobody tried.
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
        return _row_labels(self.factors, self.design, row)


def observe(results: Results, response: str) -> Observations:
    """Return the values of a response, transformed as the experiment asks.

    Raises RoutecastError: there is no such response.
    """
    values = results.values(response)
    transform = next(declared.transform for declared in results.experiment.responses if declared.name == response)
    factors = results.experiment.factors
    design = np.array(results.experiment.design.coded, dtype=float).reshape(-1, len(factors))
    rows: list[int] = []
    runs: list[int] = []
    y: list[float] = []
    missing: list[Missing] = []
    unsteady: list[Missing] = []
    labels: dict[int, tuple[str, ...]] = {}
    for position, (run, answer, given) in enumerate(zip(results.runs, results.answers, values, strict=True)):
        why = answer.problem if response not in answer.values else ""
        why = why or _unusable(given, transform)
        if why or answer.unsteady:
            if run.row not in labels:
                labels[run.row] = _row_labels(factors, design, run.row)
            entry = Missing(
                run=position,
                row=run.row,
                replication=run.replication,
                labels=labels[run.row],
                why=why or answer.unsteady,
            )
            (missing if why else unsteady).append(entry)
        if why:
            continue
        rows.append(run.row)
        runs.append(position)
        y.append(_transformed(given, transform))
    return Observations(
        factors=factors,
        design=design,
        rows=np.array(rows, dtype=np.intp),
        runs=np.array(runs, dtype=np.intp),
        replications=np.array([results.runs[run].replication for run in runs], dtype=np.intp),
        y=np.array(y, dtype=float),
        transform=transform,
        missing=tuple(missing),
        unsteady=tuple(unsteady),
        is_exact=results.experiment.evaluator == "solve",
        places=_places(results, np.array(runs, dtype=np.intp)),
    )


def _places(results: Results, runs: Integers) -> Integers | None:
    if results.experiment.evaluator != "measure":
        return None
    order = wire_order(results.experiment.seed, len(results.runs))
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    return places[runs]


def _row_labels(factors: tuple[Factor, ...], design: Floats, row: int) -> tuple[str, ...]:
    return tuple(label_of(factor, float(coded)) for factor, coded in zip(factors, design[row], strict=True))


def _unusable(value: float, transform: str) -> str:
    """Say why a value cannot be analysed; '' where it can."""
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
