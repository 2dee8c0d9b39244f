"""The tables of a study of designed experiments, for the terminal and for the report alike."""

from __future__ import annotations

import math
from collections.abc import Collection

from routecast.report.tables import Cell, Column, Table
from routecast.study.experiments.document import Fact
from routecast.study.experiments.result import ExperimentsResult, Found
from routecast.study.shown import Shown

__all__ = ["arithmetic_table", "calibrated_table", "expectations_table", "facts_table", "shown"]


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def _stated(one: Found) -> tuple[str, str]:
    """Return the stated value and the value found; shares in percent."""
    is_share = one.fact.of == "share"
    values = (one.fact.value, one.found)
    first, second = (
        "–" if value is None or math.isnan(value) else f"{100.0 * value:.1f}" if is_share else _number(value)
        for value in values
    )
    return first, second


def calibrated_table(result: ExperimentsResult) -> Table:
    """Return the values that were calibrated, and on what."""
    return Table(
        name="calibrated",
        title="Calibrated values",
        caption="Set so that these facts are met as well as they can be; every other value stands in the description.",
        columns=(
            Column(title="Value of", align="left", wrap=True),
            Column(title="Set to", align="left"),
            Column(title="By", align="left", wrap=True),
        ),
        rows=tuple(
            (", ".join(one.paths), f"{one.value:.4g} {one.unit}".strip(), "; ".join(one.fitted_to))
            for one in result.calibrated
        ),
    )


def _is_fitted(fact: Fact) -> bool:
    return fact.fitted or fact.calibrates is not None


def _role(fact: Fact, fitted: Collection[tuple[str, str]]) -> str:
    if _is_fitted(fact):
        return "calibrates"
    return "follows" if (fact.experiment, fact.response) in fitted else "predicted"


def facts_table(result: ExperimentsResult) -> Table:
    """Return every stated fact beside what is found."""
    rows: list[tuple[Cell, ...]] = []
    fitted = {(fact.experiment, fact.response) for fact in result.study.fact if _is_fitted(fact)}
    for one in result.facts:
        stated, found = _stated(one)
        between = one.fact.between
        factor = 100.0 if one.fact.of == "share" else 1.0
        rows.append(
            (
                # What is stated in words only stands in words.
                f"{one.fact.name}: “{one.fact.says}”" if one.fact.value is None and one.fact.says else one.fact.name,
                one.fact.experiment,
                stated,
                found,
                "%" if one.fact.of == "share" else one.fact.unit,
                "" if between is None else f"{_number(factor * between[0])} to {_number(factor * between[1])}",
                {None: "–", True: "yes", False: "NO"}[one.is_met],
                _role(one.fact, fitted),
                one.fact.where,
            )
        )
    return Table(
        name="facts",
        title="Stated and found",
        caption="What calibrates is met as well as it can be; what follows is of the same answers.",
        columns=(
            Column(title="Fact", align="left", wrap=True),
            Column(title="Experiment", align="left", wide=True),
            Column(title="Stated"),
            Column(title="Found"),
            Column(title="Unit", align="left"),
            Column(title="Allowed", align="left"),
            Column(title="Within", align="left"),
            Column(title="", align="left"),
            Column(title="Where", align="left", wide=True),
        ),
        rows=tuple(rows),
    )


def expectations_table(result: ExperimentsResult) -> Table:
    """Return every expectation with the model's verdict."""
    return Table(
        name="expectations",
        title="Expected, confirmed or refuted",
        caption="What the source expects or claims, and what the model says.",
        columns=(
            Column(title="Expectation", align="left", wrap=True),
            Column(title="Where", align="left", wide=True),
            Column(title="Model", align="left"),
            Column(title="Found", align="left", wrap=True),
        ),
        rows=tuple(
            (
                one.expectation.says,
                one.expectation.where,
                "confirms" if one.holds else "refutes",
                one.here,
            )
            for one in result.judged
        ),
    )


def arithmetic_table(result: ExperimentsResult) -> Table:
    """Return the source's calculations, done again."""
    return Table(
        name="arithmetic",
        title="Calculations, done again",
        caption="The number that the source states, and the calculation with everything in it.",
        columns=(
            Column(title="Says", align="left", wrap=True),
            Column(title="Stated", align="right"),
            Column(title="Recomputed", align="right"),
            Column(title="Unit", align="left"),
            Column(title="Agrees", align="left"),
            Column(title="Why", align="left", wrap=True, wide=True),
            Column(title="Formula", align="left", wide=True),
        ),
        rows=tuple(
            (
                one.arithmetic.says,
                _number(one.arithmetic.stated),
                _number(one.value),
                one.arithmetic.unit,
                "yes" if one.agrees else "NO",
                one.arithmetic.why,
                one.arithmetic.formula,
            )
            for one in result.calculated
        ),
    )


def shown(result: ExperimentsResult) -> Shown:
    """Return what a terminal shows."""
    tables = [
        make(result)
        for there, make in (
            (result.calibrated, calibrated_table),
            (result.facts, facts_table),
            (result.judged, expectations_table),
            (result.calculated, arithmetic_table),
        )
        if there
    ]
    met = sum(one.is_met for one in result.criteria)
    closing = f"{met} of {len(result.criteria)} criteria met" if result.criteria else ""
    return Shown(tables=tuple(tables), closing=closing)
