"""The report of an experiment as files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.answer.one_run import course_of
from routecast.experiment.model import Results
from routecast.report.experiment.page import experiment_page
from routecast.report.experiment.pictures import course_picture, pictures_of
from routecast.report.experiment.scale import scale_of
from routecast.report.page import render_page

__all__ = ["write_experiment"]


def write_experiment(results: Results, analyses: Mapping[str, Analysis], out: Path, *, command: str = "") -> None:
    """Write ``report.html`` and ``figures/*.svg`` to a folder, which is made if missing.

    An experiment whose runs are tested for steadiness has one of them simulated once more, to show its course.

    Parameters
    ----------
    results : Results
    analyses : mapping of str to Analysis
        By name of the response.
    out : Path
    command : str
        What was typed, for the foot of the page.
    """
    (out / "figures").mkdir(parents=True, exist_ok=True)
    pictures = {name: pictures_of(results, analysis, scale_of(results, name)) for name, analysis in analyses.items()}
    for name in analyses:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()
        for picture in pictures[name]:
            file = out / "figures" / f"{stem}-{picture.name}.svg"
            file.write_text(picture.svg(has_heading=True), encoding="utf-8")
    course = course_of(results)
    if course is not None:
        picture = course_picture(results, course)
        (out / "figures" / f"{picture.name}.svg").write_text(picture.svg(has_heading=True), encoding="utf-8")
    page = experiment_page(results, analyses, course=course, command=command, pictures=pictures)
    (out / "report.html").write_text(render_page(page), encoding="utf-8")
