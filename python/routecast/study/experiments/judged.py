"""Facts, expectations and calculations of a source beside what is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from routecast.experiment.model import Results
from routecast.hardware.formula import Formula
from routecast.quantity.format import prefixed
from routecast.report.experiment.scale import unit_of
from routecast.study.experiments.document import Arithmetic, Expectation, ExperimentsStudy
from routecast.study.experiments.facts import cells, found, series
from routecast.study.experiments.result import Calculated, Found, Judged
from routecast.study.result import Criterion

__all__ = ["calculated", "criteria", "facts_found", "judged"]


def facts_found(study: ExperimentsStudy, results: Mapping[str, Results]) -> tuple[Found, ...]:
    """Return every stated fact beside what is found."""
    return tuple(Found(fact=fact, found=found(fact, results[fact.experiment])) for fact in study.fact)


def criteria(facts: Sequence[Found]) -> tuple[Criterion, ...]:
    """Return what the study asks for: by how much a fact lies outside its range, in its unit."""
    made = []
    for one in facts:
        if one.fact.between is not None:
            low, high = one.fact.between
            outside = max(low - one.found, one.found - high, 0.0) if math.isfinite(one.found) else math.nan
            made.append(Criterion(name=f"{one.fact.name} from {low:g} to {high:g}", bound=0.0, reached=outside))
    return tuple(made)


def calculated(study: ExperimentsStudy) -> tuple[Calculated, ...]:
    """Return the calculations of the source, done again."""
    return tuple(_calculated(one) for one in study.arithmetic)


def _calculated(one: Arithmetic) -> Calculated:
    value = Formula(one.formula, frozenset()).evaluate({})
    return Calculated(arithmetic=one, value=value, agrees=abs(one.stated - value) <= one.within * value)


def judged(study: ExperimentsStudy, results: Mapping[str, Results]) -> tuple[Judged, ...]:
    """Return every expectation, confirmed or refuted by the model."""
    return tuple(_judged(one, results[one.experiment]) for one in study.expectation)


def _judged(expectation: Expectation, results: Results) -> Judged:
    if expectation.kind == "below":
        values = [v for v in cells(results, expectation.response, expectation.at) if not math.isnan(v)]
        most, bound = max(values, default=math.nan), expectation.value or math.inf
        return Judged(
            expectation=expectation,
            holds=most < bound,
            here=f"at most {_said(most, expectation, results)}, {most / bound:.1%} of"
            f" {_said(bound, expectation, results)}",
        )
    points = [
        (x, y)
        for x, y in series(results, expectation.response, expectation.factor, expectation.at)
        if (expectation.until is None or x <= expectation.until)
        and (expectation.start is None or x >= expectation.start)
    ]
    if any(math.isnan(y) for _, y in points) or len(points) < 2:
        return Judged(expectation=expectation, holds=False, here="runs without an answer")
    if expectation.kind == "linear":
        first_x, first_y = points[0]
        gains = [(x, (y / first_y) / (x / first_x)) for x, y in points[1:]]
        worst_x, worst = max(gains, key=lambda gain: abs(gain[1] - 1.0))
        return Judged(
            expectation=expectation,
            holds=abs(worst - 1.0) <= expectation.within,
            here=f"{worst:.0%} of proportional, at {expectation.factor} = {worst_x:g}",
        )
    if expectation.kind == "flat":
        values = [y for _, y in points]
        spread = (max(values) - min(values)) / max(values)
        return Judged(
            expectation=expectation,
            holds=spread <= expectation.within,
            here=f"{expectation.response}: {spread:.1%} between the least and the most",
        )
    bound = expectation.value or math.nan
    reached = next((x for x, y in points if y >= bound * (1.0 - expectation.within)), None)
    most = max(y for _, y in points)
    here = (
        f"at {expectation.factor} = {reached:g}"
        if reached is not None
        else f"never: at most {_said(most, expectation, results)}, {most / bound:.0%} of"
        f" {_said(bound, expectation, results)}"
    )
    return Judged(expectation=expectation, holds=reached is not None, here=here)


def _said(value: float, expectation: Expectation, results: Results) -> str:
    """Write a value of the response with its unit."""
    path = next(one.of for one in results.experiment.responses if one.name == expectation.response)
    unit = unit_of(path)
    if unit == "%":
        return f"{100.0 * value:.4g} %"
    step, prefix = prefixed([value], unit)
    return f"{value / step:.4g} {prefix}".strip()
