"""The report of a study of designed experiments: the source beside the model, then every experiment."""

from __future__ import annotations

from dataclasses import replace

from routecast.report.experiment import experiment_sections
from routecast.report.page import Block, Page, Section
from routecast.study.experiments.plots import lines_figure
from routecast.study.experiments.result import ExperimentsResult
from routecast.study.experiments.tabulate import (
    arithmetic_table,
    calibrated_table,
    expectations_table,
    facts_table,
)

__all__ = ["experiments_page"]


def experiments_page(result: ExperimentsResult) -> Page:
    """Return the page of a study of designed experiments."""
    study, made = result.study, result.made
    sections = [_summary(result)]
    if study.figure:
        sections.append(
            Section(
                anchor="figures",
                title="How the responses go",
                lead="Each point is a run of an experiment below.",
                blocks=tuple(lines_figure(figure, result) for figure in study.figure),
            )
        )
    if result.courses:
        sections.append(
            Section(
                anchor="over-time",
                title="Is it steady?",
                lead="Throughput over time, and what one look at it would have said.",
                blocks=tuple(block for course in result.courses for block in course.blocks()),
            )
        )
    if result.calculated:
        sections.append(
            Section(
                anchor="arithmetic",
                title="Calculations, done again",
                lead="Where the source's arithmetic and the sum of its parts differ, and why.",
                blocks=(arithmetic_table(result),),
            )
        )
    for name, results in result.results.items():
        first, *others = experiment_sections(results, result.analyses[name], prefix=name)
        sections += [first, *(replace(section, is_listed=False) for section in others)]
    return Page(
        title=study.title,
        question=study.question,
        answer=_answer(result),
        sections=tuple(sections),
        made=made.rows(
            ("Runs", f"{made.trials} asked for, those of the calibration among them"),
        ),
        source=study.source,
    )


def _answer(result: ExperimentsResult) -> str:
    met = sum(one.is_met for one in result.criteria)
    parts = []
    if result.criteria:
        parts.append(f"**{met} of {len(result.criteria)}** criteria are met")
    if result.judged:
        confirmed = sum(one.holds for one in result.judged)
        parts.append(f"{confirmed} of {len(result.judged)} expectations are confirmed")
    if result.calculated:
        agreeing = sum(one.agrees for one in result.calculated)
        parts.append(f"{agreeing} of {len(result.calculated)} calculations agree")
    return "; ".join(parts) + "." if parts else ""


def _summary(result: ExperimentsResult) -> Section:
    blocks: list[Block] = []
    if result.facts:
        blocks.append(facts_table(result))
    if result.judged:
        blocks.append(expectations_table(result))
    if result.calibrated:
        blocks.append(calibrated_table(result))
    return Section(
        anchor="summary",
        title="Stated and found",
        lead="What the source states, beside what the model says.",
        blocks=tuple(blocks),
    )
