"""Running a study of activation: fit, simulate, leave out, compare, report."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from routecast.errors import FileProblem, FitProblem, Problem
from routecast.evaluate.plain import pick
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.study.engine import StudyRun
from routecast.study.napi.document import NapiStudy
from routecast.study.napi.fit import (
    ALTERNATIVES,
    ClockResult,
    FormCurve,
    FormResult,
    IdleResult,
    Pairs,
    explain_clock,
    explain_form,
    explain_idle,
    fit_alternative,
)
from routecast.study.result import Criterion, StudyResult, criteria_of

__all__ = ["NapiResult", "answer", "read_idle", "read_samples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiResult(StudyResult[NapiStudy]):
    """All that a study of activation found."""

    idle: tuple[IdleResult, ...]
    form: FormResult | None
    clock: ClockResult | None

    def _findings(self) -> dict[str, object]:
        return {"idle": self.idle, "form": self.form and _form(self.form), "clock": self.clock}


def _form(form: FormResult) -> dict[str, object]:
    def curves(part: Sequence[FormCurve]) -> list[dict[str, object]]:
        # Against the polynomial up to the maximum that the study says, which a curve does not know.
        return [{**pick(point, "*", *FORM_FOUND), "form_rmse": point.form_rmse(form.part.maximum)} for point in part]

    return {
        **pick(form, "*", "-part"),
        "curves": curves(form.curves),
        "range": curves(form.range),
        "polynomial_rmse": form.of_polynomial.rmse_ratio,
    }


FORM_FOUND = ("maximum_pps", "never_idle_pps")


def criteria(study: NapiStudy, idle: tuple[IdleResult, ...], form: FormResult | None) -> tuple[Criterion, ...]:
    """Return the study's bounds with what was reached."""
    bounds = study.criteria
    limits: list[tuple[str, float | None, float]] = []
    for each in idle:
        name = each.curve.name
        limits += [
            (f"{name}: root mean square error, simulated idle share", bounds.idle_rmse, each.rmse),
            (
                f"{name}: root mean square error, idle share of points left out",
                bounds.left_out_rmse,
                each.left_out_rmse,
            ),
        ]
        if not math.isnan(each.maximum_error_ratio):
            error = abs(each.maximum_error_ratio)
            limits.append((f"{name}: relative error of the maximum rate", bounds.maximum_error, error))
    if form:
        idle_ratio = form.best.at_saturation.idle_ratio
        limits.append(("idle share just above the rate of saturation", bounds.saturated_idle, idle_ratio))
    return criteria_of(*limits)


def read_idle(path: Path, series: str = "") -> Pairs:
    """Read (offered frames per second, idle share 0..1) of a series, in the order of the file.

    Lines that begin with ``#`` are comments. A file without a column ``series`` holds one.

    Raises FileProblem: the file cannot be read, has no such series, or a cell is no number; every wrong line is named.
    """
    rows = _rows(path, ("offered_pps", "idle_ratio"))
    if series:
        known = sorted({row.get("series") or "" for _, row in rows})
        if series not in known:
            message = f"has no series {series!r}; {did_you_mean(series, known)}"
            raise FileProblem(str(path), [Problem("series", message)])
        rows = [(line, row) for line, row in rows if row.get("series") == series]
    return _numbers(path, rows, "offered_pps", "idle_ratio")


def read_samples(path: Path) -> Pairs:
    """Read (clock in Hz, maximum rate in frames per second).

    Raises FileProblem: as :func:`read_idle`.
    """
    return _numbers(path, _rows(path, ("frequency_hz", "rate_pps")), "frequency_hz", "rate_pps")


def _rows(path: Path, wanted: Sequence[str]) -> list[tuple[int, dict[str, str | None]]]:
    text = read_text(path, kind="table")
    numbered = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    ]
    reader = csv.DictReader((line for _, line in numbered), skipinitialspace=True)
    columns = list(reader.fieldnames or ())
    missing = [
        Problem("columns", f"there is no {name!r}; {did_you_mean(name, columns)}")
        for name in wanted
        if name not in columns
    ]
    if missing:
        raise FileProblem(str(path), missing)
    return [(line, row) for (line, _), row in zip(numbered[1:], reader, strict=True)]


def _numbers(path: Path, rows: list[tuple[int, dict[str, str | None]]], first: str, second: str) -> Pairs:
    numbers, wrong = [], []
    for line, row in rows:
        pair = []
        for name in (first, second):
            value = _number(row.get(name))
            if math.isnan(value):
                wrong.append(Problem(f"line {line}", f"{name}: got {row.get(name)!r}, which is no number"))
            pair.append(value)
        numbers.append((pair[0], pair[1]))
    if not numbers:
        wrong.append(Problem("", "has no rows: write one for each measurement"))
    if wrong:
        raise FileProblem(str(path), wrong)
    return tuple(numbers)


def _number(text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


FORM_STEPS = 8
"""Curves of the part ``[form]``: three ways to poll under two kinds of arrivals, and two ends of a range."""


def answer(run: StudyRun[NapiStudy]) -> NapiResult:
    """Fit, simulate, leave out and compare.

    Nothing is kept of a run that was interrupted: a study takes less than a minute.

    Raises RoutecastError: a table cannot be read, or a curve cannot be fitted.
    """
    study, folder = run.study, run.folder
    curves = [(curve, read_idle(folder / curve.file, curve.series)) for curve in study.idle]
    if study.clock and not study.form:
        raise FitProblem("clock", "a clock needs a router: add [form], whose costs the clock scales")
    samples = read_samples(folder / study.clock.samples) if study.clock and study.clock.samples else ()
    compared = ALTERNATIVES if study.run.compare else ()
    run.work = len(curves) * (1 + len(compared)) + FORM_STEPS * bool(study.form) + bool(study.clock)

    frames, seed = study.run.frames, study.run.seed
    idle: list[IdleResult] = []
    for curve, pairs in curves:
        run.step(f"{curve.name}: three costs")
        first = explain_idle(curve, pairs, frames=frames, seed=seed)
        observations = tuple((point.conditions, point.measured) for point in first.telling)
        others = []
        for dynamics in compared:
            run.step(f"{curve.name}: {dynamics.words}")
            others.append(fit_alternative(dynamics, observations, first.fitted.costs, frames=frames, seed=seed))
        idle.append(replace(first, alternatives=tuple(others)))
    form = explain_form(study.form, frames=frames, seed=seed, tell=run.step) if study.form else None
    clock = None
    if study.clock and form:
        run.step("other clocks")
        clock = explain_clock(study.clock, form.best.costs, samples=samples, frames=frames, seed=seed)
    return NapiResult(
        study=study,
        out=run.out,
        idle=tuple(idle),
        form=form,
        clock=clock,
        criteria=criteria(study, tuple(idle), form),
        provenance=run.provenance(seed=seed),
    )
