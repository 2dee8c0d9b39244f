"""The report of a study of designed experiments: the source compared with the model, then each experiment."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import cycle

from routecast.experiment.study.document import Fact, FigureTable, facts_group
from routecast.experiment.study.run import ExperimentsResult, FactCheck, series
from routecast.experiment.views import experiment_sections
from routecast.explore.views import changed_values_section
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
    """Return the texts of the stated value and of the model's value; shares in percent."""
    is_share = check.fact.of == "share"
    values = (check.fact.value, check.value)
    first, second = (
        "–" if value is None or math.isnan(value) else f"{100.0 * value:.1f}" if is_share else _number(value)
        for value in values
    )
    return first, second


def calibrated_table(result: ExperimentsResult) -> Table:
    """Return the table of the calibrated values and the facts to which they are fitted."""
    return Table.of(
        result.calibrated,
        Column.text("Value of", lambda row: ", ".join(row.paths), wrap=True),
        Column.text("Set to", lambda row: f"{row.value:.4g} {row.unit}".strip()),
        Column.text("Fitted to", lambda row: "; ".join(row.fitted_to), wrap=True),
        name="calibrated",
        title="Calibrated values",
        caption="The model meets these facts with them as well as possible. The description has all other values.",
    )


def _role(fact: Fact, fitted: Collection[tuple[str, str]], roles: Mapping[str, str]) -> str:
    if fact.is_fitted:
        return "calibrates"
    return "follows" if (fact.experiment, fact.response) in fitted else roles[facts_group(fact.experiment)]


def facts_table(result: ExperimentsResult) -> Table:
    """Return the table of the stated facts with the model's values."""
    fitted = {(fact.experiment, fact.response) for fact in result.study.fact if fact.is_fitted}
    roles = {group.of: group.role for group in result.study.known()}

    def says(check: FactCheck) -> str:
        # A fact without a stated value quotes the source.
        is_quoted = check.fact.value is None and check.fact.says
        return f"{check.fact.name}: “{check.fact.says}”" if is_quoted else check.fact.name

    def allowed(check: FactCheck) -> str:
        factor = 100.0 if check.fact.of == "share" else 1.0
        return " to ".join(_number(factor * end) for end in check.fact.between or ())

    return Table.of(
        result.facts,
        Column.text("Fact", says, wrap=True),
        Column.text("Experiment", lambda row: row.fact.experiment, wide=True),
        Column("Stated", getter=lambda row: _stated_and_model(row)[0]),
        Column("Model", getter=lambda row: _stated_and_model(row)[1]),
        Column.text("Unit", lambda row: "%" if row.fact.of == "share" else row.fact.unit),
        Column.text("Allowed", allowed),
        Column.text("Within", lambda row: {None: "–", True: "yes", False: "NO"}[row.is_met]),
        Column.text("", lambda row: _role(row.fact, fitted, roles)),
        Column.text("Where", lambda row: row.fact.place, wrap=True, wide=True),
        name="facts",
        title="Stated facts and the model",
        caption="The model meets facts that calibrate as well as possible. Facts that follow are of responses to which "
        f"values are fitted; the others have their role in what the model knew. {READ_OFF}",
    )


def expectations_table(result: ExperimentsResult) -> Table:
    """Return the table of the expectations with the model's verdicts."""
    return Table.of(
        result.expectations,
        Column.text("Expectation", lambda row: row.expectation.says, wrap=True),
        Column.text("Where", lambda row: row.expectation.place, wrap=True, wide=True),
        Column.text("Model", lambda row: "confirms" if row.is_confirmed else "refutes"),
        Column.text("Model's answer", lambda row: row.finding, wrap=True),
        name="expectations",
        title="Expectations, confirmed or refuted",
        caption="The expectations and claims of the source, and the model's verdicts.",
    )


def terminal_summary(result: ExperimentsResult) -> TerminalSummary:
    """Return the summary for a terminal."""
    return TerminalSummary.of(
        calibrated_table(result),
        facts_table(result),
        expectations_table(result),
        arithmetic_table(result.calculated),
        closing=result.criteria_met,
    )


def lines_figure(table: FigureTable, result: ExperimentsResult) -> Figure:
    """Return a figure of lines over a factor."""
    marks: list[Mark] = []
    for line, colour in zip(table.line, cycle(CURVE_COLOURS), strict=False):
        points = [
            (x, y / table.y_scale)
            for x, y in series(result.results[line.experiment], line.response, line.factor, line.at)
            if table.x_until is None or x <= table.x_until
        ]
        marks.append(Line.of_pairs(points, name=line.name, colour=colour, dashed=line.dashed))
        points_mark = Points.of_pairs(points, name=line.name, colour=colour, filled=False, size_px=5, legend=False)
        marks.append(points_mark)
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
        changed_values_section(next(iter(study.router)), result.calibrated_router),
        Section.of(
            "figures",
            "Responses over factors",
            "Each point is a run of an experiment below.",
            *(lines_figure(figure, result) for figure in study.figure),
        ),
        Section.of(
            "over-time",
            "Steadiness",
            "Throughput over time, and its readings at given instants.",
            *(block for over_time in result.over_time for block in over_time.blocks()),
        ),
        arithmetic_section(result.calculated),
    ]
    for name, results in result.results.items():
        first, *others = experiment_sections(results, result.analyses[name], prefix=name)
        sections += [first, *(replace(section, is_listed=False) for section in others)]
    return result.page(
        _answer(result), sections, ("Runs", f"{result.provenance.trials}, including those of the calibration")
    )


def _answer(result: ExperimentsResult) -> str:
    met = sum(criterion.is_met for criterion in result.criteria)
    parts = []
    if result.criteria:
        parts.append(f"**{met} of {len(result.criteria)}** criteria are met")
    if result.expectations:
        confirmed = sum(check.is_confirmed for check in result.expectations)
        parts.append(f"{confirmed} of {len(result.expectations)} expectations are confirmed")
    if result.calculated:
        agreeing = sum(calculation.agrees for calculation in result.calculated)
        parts.append(f"{agreeing} of {len(result.calculated)} calculations agree")
    return "; ".join(parts) + "." if parts else ""


def _summary(result: ExperimentsResult) -> Section:
    return Section.of(
        "summary",
        "The source and the model",
        "Statements of the source compared with the model.",
        bool(result.facts) and facts_table(result),
        bool(result.expectations) and expectations_table(result),
        bool(result.calibrated) and calibrated_table(result),
    )
