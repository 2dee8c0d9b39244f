"""The page of an experiment."""

from __future__ import annotations

import platform
from collections.abc import Mapping

from routecast import __version__
from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.answer.one_run import Course
from routecast.experiment.model import Results
from routecast.quantity import format_duration
from routecast.report.experiment.pictures import Pictures
from routecast.report.experiment.scale import scale_of
from routecast.report.experiment.sections import experiment_sections
from routecast.report.experiment.words import headline
from routecast.report.page import Page

__all__ = ["experiment_page"]


def experiment_page(
    results: Results,
    analyses: Mapping[str, Analysis],
    *,
    course: Course | None = None,
    command: str = "",
    pictures: Pictures | None = None,
) -> Page:
    """Return the page: what was asked, what varied, what was found, whether to trust it, how it was made.

    ``pictures`` are those of each response, where they are there already.
    """
    experiment = results.experiment
    answers = [headline(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()]
    return Page(
        title=experiment.title or f"Experiment {experiment.name}",
        question=experiment.question
        or f"What do {', '.join(factor.name for factor in experiment.factors)} do to {', '.join(analyses)}?",
        answer=" ".join(answers),
        sections=experiment_sections(results, analyses, course=course, pictures=pictures),
        made=_made(results, command),
        source=("Notation and method: R. Jain, The Art of Computer Systems Performance Analysis, Wiley 1991, part IV."),
    )


def _made(results: Results, command: str) -> tuple[tuple[str, str], ...]:
    experiment = results.experiment
    resumed = f", {results.resumed:,} of them kept from an earlier start" if results.resumed else ""
    rows = [
        ("Command", f"`{command}`" if command else ""),
        ("Experiment", experiment.name),
        ("Evaluator", experiment.evaluator),
        ("Trial", format_duration(experiment.duration_s) if experiment.evaluator != "solve" else ""),
        ("Design", f"{experiment.design.kind.replace('_', ' ')}, {len(experiment.design.coded):,} combinations"),
        ("Generators", ", ".join(experiment.design.generators)),
        ("Replications", str(experiment.design.replications)),
        ("Seed", str(experiment.seed)),
        ("Runs", f"{len(results.runs):,}{resumed}"),
        ("Took", format_duration(float(f"{results.elapsed_s:.2g}")) if results.elapsed_s else ""),
        ("Versions", f"routecast {__version__}, Python {platform.python_version()}"),
    ]
    return tuple((name, value) for name, value in rows if value)
