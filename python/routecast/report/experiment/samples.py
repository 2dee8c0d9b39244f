"""A sample of a space (Latin hypercube, Sobol): the response against each factor, one dot a run."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.model import Factor, Results
from routecast.report.experiment.levels import axis_of, run_said
from routecast.report.experiment.residuals import MOST_TOLD, thinned
from routecast.report.experiment.scale import Scale
from routecast.report.figures import Axis, Figure, Line, Points
from routecast.report.panels import columns_for, panel_px
from routecast.report.ticks import few_ticks, linear_ends

__all__ = ["sample_panels"]

_PARTS = 10
_FEWEST = 3
_DOT, _TREND = "#9db9e0", "#c8524a"


def sample_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return a small scatter for each factor, the most important first, with the mean along it."""
    experiment = results.experiment
    left = analysis.residuals
    if left is None or not left.runs:
        return ()
    rows = [results.runs[run].row for run in left.runs]
    values = [scale.back(value) for value in left.observed]
    kept = thinned(len(values))
    said = [
        f"run {left.runs[one] + 1}: "
        + (f"{run_said(experiment, rows[one])}: " if len(kept) <= MOST_TOLD else "")
        + scale.written(values[one])
        for one in kept
    ]
    low, high = linear_ends(min(values), max(values))
    y = Axis(title=scale.axis, ticks=few_ticks(low, high), low=low, high=high)
    panels = []
    for column, factor in _in_order(experiment.factors, analysis):
        coded = [experiment.design.coded[row][column] for row in rows]
        trend = _means_along(coded, values)
        ticks = [level.coded for level in factor.levels]
        x = axis_of(
            factor,
            [*ticks, 0.0] if factor.is_quantity else ticks,
            panel_px(columns_for(len(experiment.factors))),
        )
        panels.append(
            Figure(
                name=f"sample-{factor.letter}",
                title=f"{factor.letter}: {factor.name}",
                caption="",
                x=Axis(title="", ticks=x.ticks, labels=x.labels, low=x.low, high=x.high),
                y=y,
                marks=(
                    Points(
                        name="runs",
                        x=tuple(coded[one] for one in kept),
                        y=tuple(values[one] for one in kept),
                        colour=_DOT,
                        size_px=4 if len(kept) <= MOST_TOLD else 3,
                        labels=tuple(said),
                        legend=False,
                    ),
                    Line(
                        name="mean",
                        x=tuple(at for at, _ in trend),
                        y=tuple(value for _, value in trend),
                        colour=_TREND,
                        legend=False,
                    ),
                    # Points stand before lines: the mean would drown among the runs.
                    Points(
                        name="mean",
                        x=tuple(at for at, _ in trend),
                        y=tuple(value for _, value in trend),
                        colour=_TREND,
                        size_px=7,
                        labels=tuple(f"mean about here: {scale.written(value)}" for _, value in trend),
                        legend=False,
                    ),
                ),
                height_px=230,
            )
        )
    return tuple(panels)


def _in_order(factors: Sequence[Factor], analysis: Analysis) -> list[tuple[int, Factor]]:
    ranks = {one.letter: one.rank for one in analysis.screening.factors} if analysis.screening else {}
    numbered = list(enumerate(factors))
    return sorted(numbered, key=lambda pair: ranks.get(pair[1].letter, len(factors)))


def _means_along(coded: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the mean position and the mean value of runs in equal parts of the range of a factor."""
    low, high = min(coded), max(coded)
    parts: list[list[tuple[float, float]]] = [[] for _ in range(_PARTS)]
    for at, value in zip(coded, values, strict=True):
        share = (at - low) / (high - low) if high > low else 0.0
        parts[min(int(_PARTS * share), _PARTS - 1)].append((at, value))
    return [
        (sum(at for at, _ in part) / len(part), sum(value for _, value in part) / len(part))
        for part in parts
        if len(part) >= _FEWEST
    ]
