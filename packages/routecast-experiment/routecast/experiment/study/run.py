"""A study of designed experiments: calibrate values, run every experiment, and check the source's statements.

Every answer is written to disk at once, so that a killed study continues where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from routecast.errors import FitProblem, ModelProblem, Problem, RoutecastError
from routecast.evaluate.executor import chosen_executor, open_executor
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.steadiness import InstantReading, Steadiness, reading, steadiness_of
from routecast.evaluate.trial import Moment
from routecast.evaluate.views import over_time_figure, readings_table
from routecast.experiment.analysis import Analysis, analyse
from routecast.experiment.answer import answer as answer_run
from routecast.experiment.file import experiment_of
from routecast.experiment.model import Results
from routecast.experiment.runs import runs_of
from routecast.experiment.study.document import (
    Calibrates,
    Expectation,
    ExperimentsStudy,
    Fact,
    OverTime,
    StudyExperiment,
)
from routecast.experiment.sweep import sweep
from routecast.experiment.views._words import unit_of
from routecast.quantity import format_ratio
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.format import prefixed
from routecast.router.files import build_router
from routecast.router.variants import vary
from routecast.show.figures import Figure
from routecast.show.tables import Table
from routecast.study.arithmetic import RepeatedCalculation, calculated
from routecast.study.engine import StudyRun
from routecast.study.result import Criterion, StudyResult, criteria_of

__all__ = ["ExperimentsResult", "FactCheck", "answer", "series"]


Setting = dict[str, dict[str, object]]
"""Calibrated values by path, for each router document."""

STEP = 0.02
"""Step of the finite differences of logarithms, large enough to change the number of frames."""

Evaluate = Callable[[Sequence[Fact], Setting], list[float]]
"""Returns the model's values of facts with calibrated values in the router documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A calibrated value: its paths, the fact that names it, and all facts to which it is fitted."""

    paths: tuple[str, ...]
    value: float
    unit: str
    fact: str
    fitted_to: tuple[str, ...]


def calibrate(
    study: ExperimentsStudy, evaluate: Evaluate, on_progress: Callable[[str], None]
) -> tuple[tuple[Calibrated, ...], Setting]:
    """Set values of the router documents so that the model meets all fitted facts as well as possible.

    Least squares over the logarithms of the values minimise the relative errors of the facts (SciPy's trust region
    within the bounds). Every trial runs only the experiments of these facts. Whole numbers are rounded.

    Raises FitProblem: runs of these experiments have no answer.
    """
    calibrating = [(fact, fact.calibrates) for fact in study.fact if fact.calibrates is not None]
    setting: Setting = {name: {} for name in study.router}
    if not calibrating:
        return (), setting
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import least_squares

    fitted = [fact for fact in study.fact if fact.is_fitted and fact.value is not None]
    low = np.log([calibration.between[0] for _, calibration in calibrating])
    high = np.log([calibration.between[1] for _, calibration in calibrating])
    trials = 0

    def value_of(calibration: Calibrates, log: float) -> float:
        return round(math.exp(log)) if calibration.whole else math.exp(log)

    def evaluate_at(logs: Sequence[float]) -> list[float]:
        for (_, calibration), log in zip(calibrating, logs, strict=True):
            number = value_of(calibration, log)
            entry = f"{number!r} {calibration.unit}" if calibration.unit else number
            for name in calibration.routers or tuple(study.router):
                setting[name] |= dict.fromkeys(calibration.set, entry)
        return evaluate(fitted, setting)

    def relative_errors(logs: NDArray[np.float64]) -> list[float]:
        nonlocal trials
        trials += 1
        on_progress(f"trial {trials} of the calibrated values")
        values = evaluate_at(logs.tolist())
        if not all(map(math.isfinite, values)):
            raise FitProblem(study.name, "the calibrating experiments have runs without an answer: see their problems")
        return [value / (fact.value or math.nan) - 1.0 for value, fact in zip(values, fitted, strict=True)]

    solution = least_squares(
        relative_errors,
        (low + high) / 2.0,
        bounds=(low, high),
        diff_step=np.full(len(calibrating), STEP),
        xtol=1e-4,
        ftol=1e-6,
        gtol=1e-8,
        max_nfev=max(study.most_calibrations // (len(calibrating) + 1), 2),
    )
    evaluate_at(solution.x.tolist())
    return tuple(
        Calibrated(
            paths=calibration.set,
            value=float(value_of(calibration, log)),
            unit=calibration.unit,
            fact=fact.name,
            fitted_to=tuple(other.name for other in fitted if other.fitted) or (fact.name,),
        )
        for (fact, calibration), log in zip(calibrating, solution.x.tolist(), strict=True)
    ), setting


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTimeResult:
    """A trial over time: its rates, the verdict on their steadiness, and readings at given instants."""

    over_time: OverTime
    moments: tuple[Moment, ...]
    verdict: Steadiness
    readings: tuple[InstantReading, ...]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {"name": self.over_time.name, "verdict": self.verdict, "readings": self.readings}

    def blocks(self) -> tuple[Figure, Table]:
        """Return the figure and the table of the readings."""
        table = self.over_time
        figure = over_time_figure(
            self.moments, table.duration, self.verdict, self.readings, title=table.title, name=table.name
        )
        return figure, readings_table(self.readings, self.verdict)


def simulate_over_time(study: ExperimentsStudy, over_time: OverTime, setting: Setting, folder: Path) -> OverTimeResult:
    """Simulate a router of the study, and test its throughput over time for steadiness.

    Raises RoutecastError: the router cannot be built, or its document has no load.
    """
    subject = f'over_time "{over_time.name}"'
    document = vary(
        study.router[over_time.router], {**setting.get(over_time.router, {}), **over_time.set}, subject=subject
    )
    model, load = build_router(document, subject=subject, folder=folder)
    if load is None:
        raise ModelProblem(subject, [Problem("load", "is missing in the router document")])
    trial = Simulate(model, over_time=True, steady_state=False).trial(load, over_time.duration)
    moments = _merged(trial.over_time, over_time.parts)
    return OverTimeResult(
        over_time=over_time,
        moments=moments,
        verdict=steadiness_of(trial),
        readings=tuple(_reading_at(trial.over_time, moments, over_time.duration, at_s) for at_s in over_time.read_at),
    )


def _reading_at(fine: Sequence[Moment], drawn: Sequence[Moment], duration_s: float, at_s: float) -> InstantReading:
    """Return the reading at an instant: the mean until then of the fine rates, and the rate in the figure."""
    rates = [moment.forwarded_pps for moment in fine]
    then = next((moment for moment in reversed(drawn) if moment.time_s < at_s * (1.0 - 1e-12)), drawn[0])
    return replace(reading(rates, duration_s / len(rates), at_s), now=then.forwarded_pps)


def _merged(moments: Sequence[Moment], parts: int) -> tuple[Moment, ...]:
    """Return rates over fewer and longer intervals, because single frames hide the trend."""
    step = -(-len(moments) // parts)
    groups = [moments[at : at + step] for at in range(0, len(moments), step)]
    return tuple(
        Moment(
            time_s=group[0].time_s,
            offered_pps=fmean(moment.offered_pps for moment in group),
            forwarded_pps=fmean(moment.forwarded_pps for moment in group),
            dropped_pps=fmean(moment.dropped_pps for moment in group),
        )
        for group in groups
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCheck:
    """A stated fact and the model's value, in the stated unit."""

    fact: Fact
    value: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "name": self.fact.name,
            "experiment": self.fact.experiment,
            "unit": self.fact.unit,
            "stated": self.fact.value,
            "between": self.fact.between,
            "found": self.value,
            "calibrates": self.fact.is_calibrating,
            "where": self.fact.place,
        }

    @property
    def is_met(self) -> bool | None:
        """Whether the value is in the permitted range; None without a range."""
        return None if self.fact.between is None else self.fact.between[0] <= self.value <= self.fact.between[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCheck:
    """An expectation, and whether the model confirms it."""

    expectation: Expectation
    is_confirmed: bool
    finding: str

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "says": self.expectation.says,
            "where": self.expectation.place,
            "confirmed": self.is_confirmed,
            "here": self.finding,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentsResult(StudyResult[ExperimentsStudy]):
    """The result of a study: ``results`` by experiment, ``analyses`` by experiment and response."""

    calibrated: tuple[Calibrated, ...]
    results: Mapping[str, Results]
    analyses: Mapping[str, Mapping[str, Analysis]]
    over_time: tuple[OverTimeResult, ...]
    facts: tuple[FactCheck, ...]
    expectations: tuple[ExpectationCheck, ...]
    calculated: tuple[RepeatedCalculation, ...]
    calibrated_router: Mapping[str, Any]

    def _findings(self) -> dict[str, object]:
        return {
            "calibrated": self.calibrated,
            "experiments": [
                {
                    "name": name,
                    "title": results.experiment.title,
                    "analyses": {response: analysis.to_json() for response, analysis in self.analyses[name].items()},
                    "runs": [
                        {
                            "row": run.row,
                            "replication": run.replication,
                            "levels": results.experiment.design.coded[run.row],
                            "values": answer.values,
                            "problem": answer.problem,
                            "unsteady": answer.unsteady,
                            "bottleneck": answer.bottleneck,
                        }
                        for run, answer in zip(results.runs, results.answers, strict=True)
                    ],
                }
                for name, results in self.results.items()
            ],
            "over_time": self.over_time,
            "facts": self.facts,
            "expectations": self.expectations,
            "arithmetic": self.calculated,
        }


def value_of_fact(fact: Fact, results: Results) -> float:
    """Return the model's value of a fact in the stated unit; NaN if no run has an answer.

    Raises RoutecastError: the analysis has no such effect.
    """
    known = [value for value in results.values(fact.response) if not math.isnan(value)]
    if not known:
        return math.nan
    if fact.of == "greatest":
        return max(known) / fact.scale
    if fact.of == "least":
        return min(known) / fact.scale
    if fact.of == "mean":
        return fmean(known) / fact.scale
    if fact.of == "value":
        return mean(cells(results, fact.response, fact.at)) / fact.scale
    effects = {effect.name: effect for effect in analyse(results, fact.response).effects}
    if fact.effect not in effects:
        message = f'{fact.name}: there is no effect "{fact.effect}"; {did_you_mean(fact.effect, effects)}'
        raise RoutecastError(message)
    effect = effects[fact.effect]
    if fact.of == "share":
        return math.nan if effect.share_ratio is None else effect.share_ratio
    return math.nan if effect.value is None else effect.value / fact.scale


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def cells(results: Results, response: str, at: Mapping[str, str]) -> tuple[float, ...]:
    """Return the values of a response in the runs at given levels; ``at``: labels of levels by factor."""
    experiment = results.experiment
    coded_by_column = {
        column: next(level.coded for level in factor.levels if level.label == at[factor.name])
        for column, factor in enumerate(experiment.factors)
        if factor.name in at
    }
    coded = experiment.design.coded
    return tuple(
        value
        for run, value in zip(results.runs, results.values(response), strict=True)
        if all(coded[run.row][column] == level for column, level in coded_by_column.items())
    )


def series(results: Results, response: str, factor: str, at: Mapping[str, str]) -> tuple[tuple[float, float], ...]:
    """Return the mean response at each level of a factor, with the number at the start of its label ("4 engines").

    Raises RoutecastError: a label does not begin with a number.
    """
    experiment = results.experiment
    levels = next(declared.levels for declared in experiment.factors if declared.name == factor)
    points = []
    for level in levels:
        try:
            x = float(level.label.split()[0])
        except (ValueError, IndexError):
            message = f'{experiment.name}, {factor}: the label "{level.label}" does not begin with a number'
            raise RoutecastError(message) from None
        points.append((x, mean(cells(results, response, {**at, factor: level.label}))))
    return tuple(points)


def criteria(facts: Sequence[FactCheck]) -> tuple[Criterion, ...]:
    """Return the criteria of the study: the distance of each fact from its permitted range, in its unit."""
    criteria = []
    for check in facts:
        if check.fact.between is not None:
            low, high = check.fact.between
            outside = max(low - check.value, check.value - high, 0.0) if math.isfinite(check.value) else math.nan
            criteria.append(
                (f"{check.fact.name} {f'from {low:g} to {high:g}' if low != high else f'= {low:g}'}", 0.0, outside)
            )
    return criteria_of(*criteria)


def check_expectation(expectation: Expectation, results: Results) -> ExpectationCheck:
    """Return an expectation with the model's verdict."""

    def check(*, is_confirmed: bool, finding: str) -> ExpectationCheck:
        return ExpectationCheck(expectation=expectation, is_confirmed=is_confirmed, finding=finding)

    def text(value: float) -> str:
        return _with_unit(value, expectation.response, results)

    if expectation.kind == "below":
        values = [v for v in cells(results, expectation.response, expectation.at) if not math.isnan(v)]
        highest, bound = max(values, default=math.nan), expectation.value or math.inf
        finding = f"at most {text(highest)}, {highest / bound:.1%} of {text(bound)}"
        return check(is_confirmed=highest < bound, finding=finding)
    points = [
        (x, y)
        for x, y in series(results, expectation.response, expectation.factor, expectation.at)
        if (expectation.until is None or x <= expectation.until)
        and (expectation.start is None or x >= expectation.start)
    ]
    if any(math.isnan(y) for _, y in points) or len(points) < 2:
        return check(is_confirmed=False, finding="runs without an answer")
    if expectation.kind == "linear":
        first_x, first_y = points[0]
        gains = [(x, (y / first_y) / (x / first_x)) for x, y in points[1:]]
        worst_x, worst = max(gains, key=lambda gain: abs(gain[1] - 1.0))
        finding = f"{worst:.0%} of proportional, at {expectation.factor} = {worst_x:g}"
        return check(is_confirmed=abs(worst - 1.0) <= expectation.within, finding=finding)
    highest, lowest = max(y for _, y in points), min(y for _, y in points)
    if expectation.kind == "flat":
        spread = (highest - lowest) / highest
        finding = f"{expectation.response}: {spread:.1%} between the lowest and the highest"
        return check(is_confirmed=spread <= expectation.within, finding=finding)
    bound = expectation.value or math.nan
    reached = next((x for x, y in points if y >= bound * (1.0 - expectation.within)), None)
    if reached is None:
        finding = f"never: at most {text(highest)}, {highest / bound:.0%} of {text(bound)}"
        return check(is_confirmed=False, finding=finding)
    return check(is_confirmed=True, finding=f"at {expectation.factor} = {reached:g}")


def _with_unit(value: float, response: str, results: Results) -> str:
    """Return a value of a response with its unit."""
    path = next(declared.of for declared in results.experiment.responses if declared.name == response)
    unit = unit_of(path)
    if unit == "%":
        return format_ratio(value, 4)
    step, unit_with_prefix = prefixed([value], unit)
    return f"{value / step:.4g} {unit_with_prefix}".strip()


def answer(run: StudyRun[ExperimentsStudy], *, workers: int | None = None) -> ExperimentsResult:
    """Calibrate, run every experiment, and check the statements of the source.

    Raises RoutecastError: a router cannot be built, or the calibration fails.
    """
    study = run.study
    run.work = len(study.experiment) + 2
    sweeps = _Sweeps(run, workers)
    calibrated, setting = calibrate(study, sweeps.facts, run.report_step)
    run.done = 1
    results = {}
    for experiment in study.experiment:
        run.step(experiment.title or experiment.name)
        results[experiment.name] = sweeps.results(experiment, setting)
    analyses = {
        name: {response.name: analyse(result, response.name) for response in result.experiment.responses}
        for name, result in results.items()
    }
    facts = tuple(FactCheck(fact=fact, value=value_of_fact(fact, results[fact.experiment])) for fact in study.fact)
    return ExperimentsResult(
        study=study,
        out=run.out,
        calibrated=calibrated,
        results=results,
        analyses=analyses,
        over_time=tuple(simulate_over_time(study, table, setting, run.folder) for table in study.over_time),
        facts=facts,
        expectations=tuple(
            check_expectation(expectation, results[expectation.experiment]) for expectation in study.expectation
        ),
        calculated=calculated(study.arithmetic),
        calibrated_router=vary(study.router[first := next(iter(study.router))], setting.get(first, {})),
        criteria=criteria(facts),
        provenance=run.provenance(seed=study.experiment[0].seed),
    )


class _Sweeps:
    """Runs the experiments of a study, without those runs whose answers are in its folder."""

    def __init__(self, run: StudyRun[ExperimentsStudy], workers: int | None) -> None:
        self._run = run
        self._workers = workers

    def facts(self, facts: Sequence[Fact], setting: Setting) -> list[float]:
        """Return the values of facts with calibrated values in the router documents."""
        names = {fact.experiment for fact in facts}
        results = {
            experiment.name: self.results(experiment, setting)
            for experiment in self._run.study.experiment
            if experiment.name in names
        }
        return [value_of_fact(fact, results[fact.experiment]) for fact in facts]

    def results(self, table: StudyExperiment, setting: Setting) -> Results:
        """Return the results of an experiment."""
        subject = f'experiment "{table.name}"'
        document = vary(self._run.study.router[table.router], setting[table.router], subject=subject)
        experiment = experiment_of(table, document, subject=subject, folder=self._run.folder)
        runs = runs_of(experiment)
        started = time.monotonic()
        spec = chosen_executor(experiment.evaluator, len(runs))
        with open_executor(spec, self._workers) as executor:
            answers = sweep(runs, answer_run, executor=executor, out=self._run.out)
        self._run.trials += len(runs)
        return Results(experiment=experiment, runs=runs, answers=answers, elapsed_s=time.monotonic() - started)
