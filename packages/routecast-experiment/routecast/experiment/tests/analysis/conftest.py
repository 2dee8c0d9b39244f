"""Published designs as the results of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

from routecast.experiment.model import (
    Answer,
    Design,
    DesignKind,
    EvaluatorKind,
    Experiment,
    Factor,
    Level,
    Response,
    Results,
    Run,
)

LETTERS = "ABCDEFGHJK"
Row = Sequence[float]


def standard_order(factors: int) -> list[tuple[float, ...]]:
    """All corners, the first factor changing fastest."""
    return [tuple(reversed(row)) for row in product((-1.0, 1.0), repeat=factors)]


def results_of(
    coded: Sequence[Row],
    answers: Sequence[Sequence[float | str]],
    *,
    kind: DesignKind = "full",
    evaluator: EvaluatorKind = "measure",
    transform: str = "none",
    quantities: bool = False,
    unsteady: Sequence[int] = (),
) -> Results:
    """Results with one sequence of answers (numbers, or why there is none) for each combination."""
    count = len(coded[0])
    factors = []
    for column in range(count):
        levels = sorted({row[column] for row in coded})
        if quantities or (set(levels) == {-1.0, 0.0, 1.0} and kind == "full"):
            levels = [-1.0, 1.0]
        factors.append(
            Factor(
                letter=LETTERS[column],
                name=f"factor {LETTERS[column]}",
                levels=tuple(
                    Level(coded=level, label=f"{LETTERS[column]} at {level:g}", overrides={}) for level in levels
                ),
                is_quantity=quantities,
            )
        )
    response = Response(name="y", of="l2_bps", transform=transform)  # type: ignore[arg-type]  # a word of the three
    runs, given = [], []
    for row, values in enumerate(answers):
        for replication, value in enumerate(values):
            key = f"{row}-{replication}"
            runs.append(
                Run(
                    key=key,
                    row=row,
                    replication=replication,
                    document={},
                    evaluator=evaluator,
                    duration_s=1.0,
                    seed=1,
                    is_steadied=False,
                    responses=(response,),
                )
            )
            given.append(
                Answer(key=key, values={}, problem=value)
                if isinstance(value, str)
                else Answer(key=key, values={"y": float(value)}, unsteady="it drifts" if len(given) in unsteady else "")
            )
    return Results(
        experiment=Experiment(
            name="published",
            document={},
            evaluator=evaluator,
            duration_s=1.0,
            factors=tuple(factors),
            design=Design(
                kind=kind,
                coded=tuple(tuple(float(item) for item in row) for row in coded),
                replications=max(len(values) for values in answers),
            ),
            responses=(response,),
        ),
        runs=tuple(runs),
        answers=tuple(given),
    )


@pytest.fixture(name="results_of", scope="session")
def _results_of() -> Callable[..., Results]:
    return results_of


@pytest.fixture(name="standard_order", scope="session")
def _standard_order() -> Callable[[int], list[tuple[float, ...]]]:
    return standard_order
