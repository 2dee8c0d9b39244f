"""The report of a study of designed experiments: the source beside the model, then every experiment."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import cycle

from routecast.experiment.study.document import Fact, FigureTable
from routecast.experiment.study.run import ExperimentsResult, FactCheck, series
from routecast.experiment.views import experiment_sections
from routecast.explore.views import turned_section
from routecast.show.figures import CURVE_COLOURS, GREY, Axis, Figure, Line, Mark, Points
from routecast.show.page import Page, Section
from routecast.show.tables import Column, Table
from routecast.study.arithmetic import arithmetic_section, arithmetic_table
from routecast.study.result import READ_OFF, TerminalSummary

__all__ = ["facts_table", "page", "terminal_summary"]


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000.0 else f"{value:.4g}"


def _stated_and_model(check: FactCheck) -> tuple[str, str]:
    """Return the stated value and the model's as texts; shares in percent."""
    is_share = check.fact.of == "share"
    values = (check.fact.value, check.value)
    first, second = (
        "–" if value is None or math.isnan(value) else f"{100.0 * value:.1f}" if is_share else _number(value)
        for value in values
    )
    return first, second


def calibrated_table(result: ExperimentsResult) -> Table:
    """Return the calibrated values, and the facts that they are fitted to."""
    return Table.of(
        result.calibrated,
        Column.text("Value of", lambda row: ", ".join(row.paths), wrap=True),
        Column.text("Set to", lambda row: f"{row.value:.4g} {row.unit}".strip()),
        Column.text("By", lambda row: "; ".join(row.fitted_to), wrap=True),
        name="calibrated",
        title="Calibrated values",
        caption="Set so that these facts are met as well as they can be; every other value stands in the description.",
    )


def _role(fact: Fact, fitted: Collection[tuple[str, str]]) -> str:
    if fact.is_fitted:
        return "calibrates"
    return "follows" if (fact.experiment, fact.response) in fitted else "predicted"


def facts_table(result: ExperimentsResult) -> Table:
    """Return every stated fact beside the model's value."""
    fitted = {(fact.experiment, fact.response) for fact in result.study.fact if fact.is_fitted}

    def says(check: FactCheck) -> str:
        # A fact without a stated value is quoted in words.
        in_words = check.fact.value is None and check.fact.says
        return f"{check.fact.name}: “{check.fact.says}”" if in_words else check.fact.name

    def allowed(check: FactCheck) -> str:
        factor = 100.0 if check.fact.of == "share" else 1.0
        return " to ".join(_number(factor * end) for end in check.fact.between or ())

    return Table.of(
        result.facts,
        Column.text("Fact", says, wrap=True),
        Column.text("Experiment", "fact.experiment", wide=True),
        Column("Stated", getter=lambda row: _stated_and_model(row)[0]),
        Column("Found", getter=lambda row: _stated_and_model(row)[1]),
        Column.text("Unit", lambda row: "%" if row.fact.of == "share" else row.fact.unit),
        Column.text("Allowed", allowed),
        Column.text("Within", lambda row: {None: "–", True: "yes", False: "NO"}[row.is_met]),
        Column.text("", lambda row: _role(row.fact, fitted)),
        Column.text("Where", "fact.place", wrap=True, wide=True),
        name="facts",
        title="Stated and found",
        caption=f"What calibrates is met as well as it can be; what follows is of the same answers. {READ_OFF}",
    )


def expectations_table(result: ExperimentsResult) -> Table:
    """Return every expectation with the model's verdict."""
    return Table.of(
        result.expectations,
        Column.text("Expectation", "expectation.says", wrap=True),
        Column.text("Where", "expectation.place", wrap=True, wide=True),
        Column.text("Model", lambda row: "confirms" if row.holds else "refutes"),
        Column.text("Found", "here", wrap=True),
        name="expectations",
        title="Expected, confirmed or refuted",
        caption="What the source expects or claims, and what the model says.",
    )


def terminal_summary(result: ExperimentsResult) -> TerminalSummary:
    """Return the tables for a terminal."""
    return TerminalSummary.of(
        calibrated_table(result),
        facts_table(result),
        expectations_table(result),
        arithmetic_table(result.calculated),
        closing=result.criteria_met,
    )


def lines_figure(table: FigureTable, result: ExperimentsResult) -> Figure:
    """Return a figure of lines over a factor.

    Raises RoutecastError: a line names a response, factor or level that its experiment does not have.
    """
    marks: list[Mark] = []
    for line, colour in zip(table.line, cycle(CURVE_COLOURS), strict=False):
        points = [
            (x, y / table.y_scale)
            for x, y in series(result.results[line.experiment], line.response, line.factor, line.at)
            if table.x_until is None or x <= table.x_until
        ]
        marks.append(Line.of_pairs(points, name=line.name, colour=colour, dashed=line.dashed))
        hollow = Points.of_pairs(points, name=line.name, colour=colour, filled=False, size_px=5, legend=False)
        marks.append(hollow)
    if table.level is not None:
        x_values = [x for mark in marks for x in mark.x]
        ends = (min(x_values), max(x_values))
        level = (table.level, table.level)
        marks.append(Line(name=table.level_name or "level", x=ends, y=level, colour=GREY, dashed=True))
    return Figure(
        name=table.name,
        title=table.title,
        caption=table.caption,
        x=Axis(title=table.x),
        y=Axis(title=table.y, scale="log") if table.y_log else Axis(title=table.y, low=table.y_from),
        marks=tuple(marks),
    )


def page(result: ExperimentsResult) -> Page:
    """Return the page of a study of designed experiments."""
    study = result.study
    sections = [
        _summary(result),
        turned_section(next(iter(study.router)), result.turned),
        Section.of(
            "figures",
            "How the responses go",
            "Each point is a run of an experiment below.",
            *(lines_figure(figure, result) for figure in study.figure),
        ),
        Section.of(
            "over-time",
            "Is it steady?",
            "Throughput over time, and what one look at it would have said.",
            *(block for over_time in result.over_time for block in over_time.blocks()),
        ),
        arithmetic_section(result.calculated),
    ]
    for name, results in result.results.items():
        first, *others = experiment_sections(results, result.analyses[name], prefix=name)
        sections += [first, *(replace(section, is_listed=False) for section in others)]
    return result.page(
        _answer(result),
        sections,
        ("Runs", f"{result.provenance.trials} asked for, those of the calibration among them"),
    )


def _answer(result: ExperimentsResult) -> str:
    met = sum(criterion.is_met for criterion in result.criteria)
    parts = []
    if result.criteria:
        parts.append(f"**{met} of {len(result.criteria)}** criteria are met")
    if result.expectations:
        confirmed = sum(check.holds for check in result.expectations)
        parts.append(f"{confirmed} of {len(result.expectations)} expectations are confirmed")
    if result.calculated:
        agreeing = sum(calculation.agrees for calculation in result.calculated)
        parts.append(f"{agreeing} of {len(result.calculated)} calculations agree")
    return "; ".join(parts) + "." if parts else ""


def _summary(result: ExperimentsResult) -> Section:
    return Section.of(
        "summary",
        "Stated and found",
        "What the source states, beside what the model says.",
        bool(result.facts) and facts_table(result),
        bool(result.expectations) and expectations_table(result),
        bool(result.calibrated) and calibrated_table(result),
    )
