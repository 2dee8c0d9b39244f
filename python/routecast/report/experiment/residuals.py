"""What the analysis leaves unexplained, four ways: a check by eye beside the tests."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.experiment.analysis.outcome import Analysis, Residuals
from routecast.experiment.model import Experiment, Results
from routecast.experiment.wire_order import wire_order
from routecast.report.experiment.levels import run_said
from routecast.report.experiment.scale import Scale
from routecast.report.figures import Axis, Figure, Line, Points
from routecast.report.ticks import few_ticks, linear_ends

__all__ = ["MOST_POINTS", "MOST_TOLD", "residual_panels", "thinned"]

MOST_POINTS = 1000
"""A cloud of more points shows no more."""
MOST_TOLD = 200
"""Up to so many points each tells its levels; of more it says only which run it is."""
_NOTHING = 1e-12
"""A smaller share of the variation is rounding."""
_POINT, _LINE = "#3f6fb5", "#9aa1ab"


def residual_panels(results: Results, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return predicted against answered, and residuals over prediction, run order and normal scores.

    Empty where nothing is left over: a model with as many effects as runs meets each run exactly.
    """
    left = analysis.residuals
    if left is None or analysis.error_df < 1 or (analysis.error_share_ratio or 0.0) < _NOTHING:
        return ()
    kept = thinned(len(left.residuals))
    step, unit = scale.for_amounts(left.residuals)
    residuals = [left.residuals[one] / step for one in kept]
    predicted = [scale.analysed(left.predicted[one]) for one in kept]
    observed = [scale.analysed(left.observed[one]) for one in kept]
    order = _order(results)
    runs = [float(order[left.runs[one]]) for one in kept]
    said = [_said(results.experiment, results, left, one, is_long=len(kept) <= MOST_TOLD) for one in kept]
    low, high = linear_ends(min(residuals), max(residuals))
    y = Axis(title=f"residual{_unit(scale, unit)}", ticks=few_ticks(low, high), low=low, high=high)
    spread = (sum(value * value for value in residuals) / len(residuals)) ** 0.5
    scores = [left.normal_scores[one] for one in kept]
    ends = linear_ends(min([*predicted, *observed]), max([*predicted, *observed]))
    axis = scale.analysed_axis
    against = _cloud(
        "answered",
        "Answered against predicted",
        f"predicted {axis}",
        (predicted, observed),
        Axis(title=f"answered{_unit(scale, scale.unit)}", ticks=few_ticks(*ends), low=ends[0], high=ends[1]),
        said,
        line=(ends, ends),
    )
    over = _cloud(
        "over-prediction", "Residual over prediction", f"predicted {axis}", (predicted, residuals), y, said
    )
    if results.experiment.evaluator == "solve":
        return against, over  # what a formula leaves over has neither order nor chance
    title = "order" if results.experiment.evaluator == "measure" else "run"
    return (
        against,
        over,
        _cloud("over-order", "Residual over run order", title, (runs, residuals), y, said),
        _cloud(
            "over-scores",
            "Residual over normal score",
            "normal score",
            (scores, residuals),
            y,
            said,
            line=((min(scores), max(scores)), (spread * min(scores), spread * max(scores))),
        ),
    )


def _order(results: Results) -> list[int]:
    """Return when each run was made, from 1 on: on the wire in random order."""
    count = len(results.runs)
    if results.experiment.evaluator != "measure":
        return list(range(1, count + 1))
    made = [0] * count
    for when, run in enumerate(wire_order(results.experiment.seed, count), start=1):
        made[run] = when
    return made


def thinned(count: int) -> range:
    """Return which of so many points a picture shows: all, or evenly chosen ones."""
    return range(0, count, -(-count // MOST_POINTS) if count > MOST_POINTS else 1)


def _cloud(
    name: str,
    title: str,
    x_title: str,
    places: tuple[Sequence[float], Sequence[float]],
    axis: Axis,
    said: Sequence[str],
    line: tuple[tuple[float, float], tuple[float, float]] | None = None,
) -> Figure:
    """Return points with the dashed line along which they should lie: zero, where none is given."""
    x, y = places
    x_ends = linear_ends(min([*x, *line[0]]), max([*x, *line[0]])) if line else linear_ends(min(x), max(x))
    guide = line or (x_ends, (0.0, 0.0))
    return Figure(
        name=f"residuals-{name}",
        title=title,
        caption="",
        x=Axis(title=x_title, ticks=few_ticks(*x_ends), low=x_ends[0], high=x_ends[1]),
        y=axis,
        marks=(
            Line(name="as it should be", x=guide[0], y=guide[1], colour=_LINE, dashed=True, legend=False),
            Points(
                name="runs",
                x=tuple(x),
                y=tuple(y),
                colour=_POINT,
                filled=False,
                size_px=6 if len(x) <= MOST_TOLD else 3,
                labels=tuple(said),
                legend=False,
            ),
        ),
        height_px=230,
    )


def _said(experiment: Experiment, results: Results, left: Residuals, place: int, *, is_long: bool) -> str:
    run = f"run {left.runs[place] + 1}"
    return f"{run}: {run_said(experiment, results.runs[left.runs[place]].row)}" if is_long else run


def _unit(scale: Scale, unit: str) -> str:
    if scale.transform == "none":
        return f" [{unit}]" if unit else ""
    return f" of {scale.analysed_axis}"
