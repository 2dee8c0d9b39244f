"""Running a study of activation: fit, simulate, leave out, compare, report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from routecast.errors import FitProblem
from routecast.study.folder import begin, write_results
from routecast.study.napi.alternatives import ALTERNATIVES, fit_alternative
from routecast.study.napi.chapters import napi_page
from routecast.study.napi.clock import explain_clock
from routecast.study.napi.document import NapiStudy
from routecast.study.napi.form import explain_form
from routecast.study.napi.idle import IdleResult, explain_idle
from routecast.study.napi.result import NapiResult, judged
from routecast.study.napi.tables import read_idle, read_samples

__all__ = ["run_napi_study"]

Progress = Callable[[int, int, str], None]

FORM_STEPS = 8
"""Curves of the part ``[form]``: three ways to poll under two kinds of arrivals, and two ends of a range."""


def run_napi_study(
    study: NapiStudy,
    out: Path,
    folder: Path,
    *,
    progress: Progress | None = None,
    command: str = "",
) -> NapiResult:
    """Run a study of activation and write its summary, figures and report to ``out``.

    Nothing is kept of a run that was interrupted: a study takes less than a minute.

    Parameters
    ----------
    study : NapiStudy
    out : Path
        Made if missing.
    folder : Path
        Folder of the study file, where its tables are looked up.
    progress : callable or None
        Told how many curves are done.

    Raises
    ------
    routecast.errors.RoutecastError
        A table cannot be read, or a curve cannot be fitted.
    """
    making = begin(study.name, out, command)
    curves = [(curve, read_idle(folder / curve.file, curve.series)) for curve in study.idle]
    if study.clock and not study.form:
        raise FitProblem("clock", "a clock needs a router: add [form], whose costs the clock scales")
    samples = read_samples(folder / study.clock.samples) if study.clock and study.clock.samples else ()
    compared = ALTERNATIVES if study.run.compare else ()
    total = len(curves) * (1 + len(compared)) + FORM_STEPS * bool(study.form) + bool(study.clock)
    done = 0

    def tell(what: str) -> None:
        nonlocal done
        if progress:
            progress(done, total, what)
        done += 1

    frames, seed = study.run.frames, study.run.seed
    idle: list[IdleResult] = []
    for curve, pairs in curves:
        tell(f"{curve.name}: three costs")
        first = explain_idle(curve, pairs, frames=frames, seed=seed)
        told = tuple((point.offered_pps, point.measured) for point in first.telling)
        others = []
        for dynamics in compared:
            tell(f"{curve.name}: {dynamics.words}")
            others.append(fit_alternative(dynamics, told, first.fitted.costs, frames=frames, seed=seed))
        idle.append(
            IdleResult(
                curve=curve,
                fitted=first.fitted,
                half=first.half,
                points=first.points,
                alternatives=tuple(others),
            )
        )
    form = explain_form(study.form, frames=frames, seed=seed, tell=tell) if study.form else None
    clock = None
    if study.clock and form:
        tell("other clocks")
        clock = explain_clock(study.clock, form.best.costs, samples=samples, frames=frames, seed=seed)
    out.mkdir(parents=True, exist_ok=True)
    result = NapiResult(
        study=study,
        out=out,
        idle=tuple(idle),
        form=form,
        clock=clock,
        criteria=judged(study, tuple(idle), form),
        made=making.made(seed=seed),
    )
    write_results(out, napi_page(result), result.to_json())
    return result
