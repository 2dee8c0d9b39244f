"""A run once more, with its rates over time: to show what a verdict rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.errors import RoutecastError
from routecast.experiment.model import Results

if TYPE_CHECKING:
    from routecast.evaluate.steadiness import Steadiness
    from routecast.evaluate.trial import Trial

__all__ = ["Course", "course_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How one run of an experiment went over time.

    Parameters
    ----------
    run : int
        Position in ``Results.runs``.
    trial : Trial
        With its rates over time, nothing cut off.
    verdict : Steadiness
    """

    run: int
    trial: Trial
    verdict: Steadiness


def course_of(results: Results) -> Course | None:
    """Simulate the first run that is not steady once more, or the first of all; the same seed gives the same frames.

    None where the experiment is not simulated or does not ask for steadiness, where no run has an answer, and where the
    run cannot be had again (answers joined from elsewhere, files that are gone): a picture must not cost the report.
    """
    experiment = results.experiment
    if experiment.evaluator != "simulate" or not experiment.is_steadied:
        return None
    answered = [number for number, answer in enumerate(results.answers) if not answer.problem]
    unsteady = [number for number in answered if results.answers[number].unsteady]
    if not answered:
        return None
    from routecast.evaluate.simulate import Simulate
    from routecast.evaluate.steadiness import steadiness_of
    from routecast.router.files import build_router

    number = (unsteady or answered)[0]
    run = results.runs[number]
    folder = Path(run.folder) if run.folder else None
    try:
        model, load = build_router(run.document, subject="router", folder=folder)
        if load is None:
            return None
        simulate = Simulate(model, seed=run.seed, over_time=True, steady_state=False)
        trial = simulate.trial(load, run.duration_s)
    except RoutecastError:
        return None
    return Course(run=number, trial=trial, verdict=steadiness_of(trial))
