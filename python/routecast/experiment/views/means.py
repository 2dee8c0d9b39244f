"""Main effects and interactions: the mean response at each level, and at each pair of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from routecast.experiment.analysis.outcome import Analysis, Means
from routecast.experiment.model import Experiment, Factor
from routecast.experiment.views.levels import axis_of, label_of, level_said
from routecast.experiment.views.scale import Scale
from routecast.show.figures import Axis, Figure, Line, Mark, Points, palette
from routecast.show.panels import columns_for, panel_px
from routecast.show.ticks import few_ticks, linear_ends

__all__ = ["interaction_panels", "main_effect_panels"]

_MOST_PAIRS = 6
_MOST_LINES = 6
_MEAN = "#9aa1ab"


def main_effect_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure for each factor, all on one scale, those that explain most first."""
    by_letter = {one.letters[0]: one for one in _fair(experiment, analysis) if len(one.letters) == 1}
    order = _by_share(analysis, [(letter,) for letter in by_letter])
    factors = {factor.letter: factor for factor in experiment.factors}
    chosen = [by_letter[letters[0]] for letters in order]
    if not chosen:
        return ()
    y = _axis(chosen, scale)
    width = panel_px(columns_for(len(chosen)))
    mean = scale.back(analysis.mean) if analysis.mean is not None else float("nan")
    return tuple(_main_effect(factors[one.letters[0]], one, scale, y, mean, width) for one in chosen)


def _fair(experiment: Experiment, analysis: Analysis) -> Sequence[Means]:
    """Return the means, of predictions where runs are missing: a level may lack the runs that answer high.

    Predictions are there for every combination of levels that answered, so each level is compared in the same company.
    Pairs whose interaction is not in the model keep their means: predictions of it would be parallel whatever was seen.
    """
    predicted = {cell.coded: cell.predicted for cell in analysis.cells}
    if not analysis.missing or all(value is None for value in predicted.values()):
        return analysis.means
    columns = {factor.letter: number for number, factor in enumerate(experiment.factors)}
    modelled = {effect.letters for effect in analysis.effects}
    found = []
    for means in analysis.means:
        if len(means.letters) > 1 and means.letters not in modelled:
            found.append(means)
            continue
        at = [columns[letter] for letter in means.letters]
        points = []
        for point in means.points:
            mine = [
                value
                for coded, value in predicted.items()
                if value is not None
                and all(abs(coded[column] - one) < 1e-6 for column, one in zip(at, point.coded, strict=True))
            ]
            shift = sum(mine) / len(mine) - point.value
            low, high = (None if end is None else end + shift for end in (point.low, point.high))
            points.append(replace(point, value=point.value + shift, low=low, high=high))
        found.append(replace(means, points=tuple(points)))
    return found


def _main_effect(factor: Factor, means: Means, scale: Scale, y: Axis, mean: float, width: int) -> Figure:
    coded = [point.coded[0] for point in means.points]
    x = axis_of(factor, coded, width)
    return Figure(
        name=f"main-{factor.letter}",
        title=f"{factor.letter}: {factor.name}",
        caption="",
        x=_untitled(x),
        y=y,
        marks=(
            Line(
                name="mean of all",
                x=(x.low or 0.0, x.high or 0.0),
                y=(mean, mean),
                colour=_MEAN,
                dashed=True,
                legend=False,
            ),
            *_trace(factor.name, means, coded, scale, palette(1)[0], legend=False),
        ),
        height_px=230,
    )


def interaction_panels(experiment: Experiment, analysis: Analysis, scale: Scale) -> tuple[Figure, ...]:
    """Return one small figure for each pair of factors, a line for each level of the second; the strongest first."""
    pairs = {tuple(one.letters): one for one in _fair(experiment, analysis) if len(one.letters) == 2}
    factors = {factor.letter: factor for factor in experiment.factors}
    chosen = [pairs[letters] for letters in _by_share(analysis, list(pairs))[:_MOST_PAIRS]]
    if not chosen:
        return ()
    y = _axis(chosen, scale)
    letters = max(len(_line_name(factors[one.letters[1]], point.coded[1])) for one in chosen for point in one.points)
    width = panel_px(columns_for(len(chosen), letters=letters))
    return tuple(_interaction(factors[one.letters[0]], factors[one.letters[1]], one, scale, y, width) for one in chosen)


def _interaction(first: Factor, second: Factor, means: Means, scale: Scale, y: Axis, width: int) -> Figure:
    x = axis_of(first, [point.coded[0] for point in means.points], width)
    levels = sorted({point.coded[1] for point in means.points})
    if len(levels) > _MOST_LINES:
        levels = [levels[0], levels[len(levels) // 2], levels[-1]]
    marks: list[Mark] = []
    for level, colour in zip(levels, palette(len(levels)), strict=True):
        mine = tuple(point for point in means.points if point.coded[1] == level)
        one = Means(letters=means.letters, points=mine)
        name = _line_name(second, level)
        marks += _trace(name, one, [point.coded[0] for point in mine], scale, colour, legend=True)
    return Figure(
        name=f"interaction-{first.letter}{second.letter}",
        title=f"{first.letter}{second.letter}: {first.name} x {second.name}",
        caption="",
        x=x,
        y=y,
        marks=tuple(marks),
        height_px=230,
    )


def _line_name(factor: Factor, coded: float) -> str:
    return level_said(factor, label_of(factor, coded))


def _trace(
    name: str, means: Means, coded: Sequence[float], scale: Scale, colour: str, *, legend: bool
) -> tuple[Mark, ...]:
    y = tuple(scale.back(point.value) for point in means.points)
    ends = [scale.ends(point.low, point.high) for point in means.points]
    known = [end for end in ends if end is not None]
    is_known = len(known) == len(ends)
    return (
        Line(name=name, x=tuple(coded), y=y, colour=colour, legend=legend),
        Points(
            name=name,
            x=tuple(coded),
            y=y,
            low=tuple(end[0] for end in known) if is_known else (),
            high=tuple(end[1] for end in known) if is_known else (),
            colour=colour,
            labels=tuple(
                f"{', '.join(point.labels)}: {scale.text(point.value)}, mean of {point.count} runs"
                for point in means.points
            ),
            legend=False,
        ),
    )


def _axis(chosen: Sequence[Means], scale: Scale) -> Axis:
    values = [scale.back(point.value) for one in chosen for point in one.points]
    for one in chosen:
        for point in one.points:
            values += scale.ends(point.low, point.high) or ()
    low, high = linear_ends(min(values), max(values))
    return Axis(title=scale.axis, ticks=few_ticks(low, high), low=low, high=high)


def _untitled(axis: Axis) -> Axis:
    return Axis(title="", ticks=axis.ticks, labels=axis.labels, low=axis.low, high=axis.high)


def _by_share(analysis: Analysis, groups: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return groups of letters by the share of their effect, those without one last."""
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        shares[effect.letters] = shares.get(effect.letters, 0.0) + (effect.share_ratio or 0.0)
    return sorted(groups, key=lambda letters: -shares.get(tuple(letters), -1.0))
