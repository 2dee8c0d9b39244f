"""A stated fact, found: an effect, a share of the variation, or a value of an experiment's response."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from routecast.errors import RoutecastError
from routecast.experiment.analysis import analyse
from routecast.experiment.model import Results
from routecast.quantity.did_you_mean import did_you_mean
from routecast.study.experiments.document import Fact

__all__ = ["cells", "found", "series"]


def found(fact: Fact, results: Results) -> float:
    """Return the value of a fact, in the unit that it is stated in; NaN where the runs do not tell.

    Raises
    ------
    routecast.errors.RoutecastError
        The experiment has no such response, effect, factor or level.
    """
    values = results.values(fact.response)
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return math.nan
    if fact.of == "greatest":
        return max(known) / fact.scale
    if fact.of == "least":
        return min(known) / fact.scale
    if fact.of == "mean":
        return fmean(known) / fact.scale
    if fact.of == "value":
        return mean(cells(results, fact.response, fact.at)) / fact.scale
    analysis = analyse(results, fact.response)
    effects = {effect.name: effect for effect in analysis.effects}
    if fact.effect not in effects:
        message = f'{fact.name}: no effect "{fact.effect}"; {did_you_mean(fact.effect, effects)}'
        raise RoutecastError(message)
    effect = effects[fact.effect]
    value = effect.share_ratio if fact.of == "share" else effect.value
    if value is None:
        return math.nan
    return value if fact.of == "share" else value / fact.scale


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values that there are; NaN where there is none."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def cells(results: Results, response: str, at: Mapping[str, str]) -> tuple[float, ...]:
    """Return the values of the runs whose factors have the levels of these labels.

    Raises
    ------
    routecast.errors.RoutecastError
        There is no such response, factor or level.
    """
    experiment = results.experiment
    wanted: dict[int, float] = {}
    names = [factor.name for factor in experiment.factors]
    for name, label in at.items():
        if name not in names:
            raise RoutecastError(f'{experiment.name}: no factor "{name}"; {did_you_mean(name, names)}')
        column = names.index(name)
        labels = {level.label: level.coded for level in experiment.factors[column].levels}
        if label not in labels:
            raise RoutecastError(f'{experiment.name}, {name}: no level "{label}"; {did_you_mean(label, labels)}')
        wanted[column] = labels[label]
    coded = experiment.design.coded
    return tuple(
        value
        for run, value in zip(results.runs, results.values(response), strict=True)
        if all(coded[run.row][column] == level for column, level in wanted.items())
    )


def series(results: Results, response: str, factor: str, at: Mapping[str, str]) -> tuple[tuple[float, float], ...]:
    """Return a response against a factor whose labels begin with a number ("4 engines", "256 B"), in their order.

    Raises
    ------
    routecast.errors.RoutecastError
        As :func:`cells`; a label does not begin with a number.
    """
    one = next((each for each in results.experiment.factors if each.name == factor), None)
    if one is None:
        names = [each.name for each in results.experiment.factors]
        raise RoutecastError(f'{results.experiment.name}: no factor "{factor}"; {did_you_mean(factor, names)}')
    points = []
    for level in one.levels:
        try:
            x = float(level.label.split()[0])
        except (ValueError, IndexError):
            message = f'{results.experiment.name}, {factor}: the label "{level.label}" begins with no number'
            raise RoutecastError(message) from None
        points.append((x, mean(cells(results, response, {**at, factor: level.label}))))
    return tuple(points)
