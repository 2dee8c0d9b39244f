"""Running a study of designed experiments: calibrate, run every experiment, put what was stated beside it, report.

Every answer is on disk at once, so that a killed study goes on where it stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from routecast.errors import FitProblem, ModelProblem, Problem, RoutecastError
from routecast.evaluate.executor import chosen_executor, open_executor
from routecast.evaluate.plain import pick
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.steadiness import InstantReading, Steadiness, reading, steadiness_of
from routecast.evaluate.trial import Moment
from routecast.evaluate.views import over_time_figure, readings_table
from routecast.experiment._runs import runs_of
from routecast.experiment.analysis import Analysis, analyse
from routecast.experiment.answer import answer as answer_run
from routecast.experiment.file import experiment_of
from routecast.experiment.model import Results
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
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.format import prefixed
from routecast.router.files import build_router
from routecast.router.variants import vary
from routecast.show.figures import Figure
from routecast.show.tables import Table
from routecast.study.arithmetic import Calculated, calculated
from routecast.study.engine import StudyRun
from routecast.study.result import Criterion, StudyResult, criteria_of

__all__ = ["ExperimentsResult", "FactCheck", "answer", "series"]


Setting = dict[str, dict[str, object]]
"""Calibrated values by path, for each router document."""

STEP = 0.02
"""Step of the differences, as the logarithm of a value: large enough to be seen through whole frames."""

Ask = Callable[[Sequence[Fact], Setting], list[float]]
"""Returns the values of facts with calibrated values in the router documents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A value that was calibrated: paths, value, the fact that names it, and all the facts that it was fitted to.

    Values of router documents set so that stated facts are met, all at once.

    The misses of the facts, each over its stated value, are made small by least squares over the logarithms of the
    values (SciPy's trust region within the bounds); every trial runs only the experiments that the facts are read from.
    There may be more facts than values: then they are met as well as they can be. A whole number is tried as the one
    next to it.
    """

    paths: tuple[str, ...]
    value: float
    unit: str
    fact: str
    fitted_to: tuple[str, ...]


def calibrating(study: ExperimentsStudy) -> tuple[list[tuple[Fact, Calibrates]], list[tuple[Fact, float]]]:
    """Return the facts that set values with what they set, and all the facts that are fitted with their values."""
    sets = [(fact, fact.calibrates) for fact in study.fact if fact.calibrates is not None]
    fitted = [
        (fact, fact.value)
        for fact in study.fact
        if (fact.calibrates is not None or fact.fitted) and fact.value is not None
    ]
    return sets, fitted


def written(how: Calibrates, value: float) -> object:
    """Return a value as the router file wants it."""
    number: int | float = round(value) if how.whole else value
    return f"{number!r} {how.unit}" if how.unit else number


def calibrate(study: ExperimentsStudy, ask: Ask, tell: Callable[[str], None]) -> tuple[tuple[Calibrated, ...], Setting]:
    """Set the values that stated facts calibrate.

    Raises FitProblem: no values within their bounds meet the facts.
    """
    sets, fitted = calibrating(study)
    setting: Setting = {name: {} for name in study.router}
    if not sets:
        return (), setting
    import numpy as np
    from numpy.typing import NDArray
    from scipy.optimize import least_squares

    facts = [fact for fact, _ in fitted]
    low = np.log([how.between[0] for _, how in sets])
    high = np.log([how.between[1] for _, how in sets])
    trials = 0

    def found_at(logs: Sequence[float]) -> list[float]:
        for (_, how), log in zip(sets, logs, strict=True):
            for name in how.routers or tuple(study.router):
                setting[name] |= dict.fromkeys(how.set, written(how, math.exp(log)))
        return ask(facts, setting)

    def misses(logs: NDArray[np.float64]) -> list[float]:
        nonlocal trials
        trials += 1
        tell(f"trial {trials} of the calibrated values")
        residuals = found_at(logs.tolist())
        if not all(math.isfinite(value) for value in residuals):
            what = "the calibrating experiments have runs without an answer: see their problems"
            raise FitProblem(study.name, what)
        return [value / stated - 1.0 for value, (_, stated) in zip(residuals, fitted, strict=True)]

    answer = least_squares(
        misses,
        (low + high) / 2.0,
        bounds=(low, high),
        diff_step=np.full(len(sets), STEP),
        xtol=1e-4,
        ftol=1e-6,
        gtol=1e-8,
        max_nfev=max(study.most_calibrations // (len(sets) + 1), 2),
    )
    found_at(answer.x.tolist())
    return tuple(
        Calibrated(
            paths=how.set,
            value=float(round(math.exp(log)) if how.whole else math.exp(log)),
            unit=how.unit,
            fact=fact.name,
            fitted_to=tuple(fact.name for fact in facts if fact.fitted) or (fact.name,),
        )
        for (fact, how), log in zip(sets, answer.x, strict=True)
    ), setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """How a trial went: rates over time, the verdict on them, and what looks at some instants had said."""

    SUMMARY: ClassVar = (*("name=over_time.name", "verdict", "readings"),)

    over_time: OverTime
    moments: tuple[Moment, ...]
    verdict: Steadiness
    readings: tuple[InstantReading, ...]

    def blocks(self) -> tuple[Figure, Table]:
        """Return the figure and the table of the readings."""
        course = self.over_time
        figure = over_time_figure(
            self.moments, course.duration, self.verdict, self.readings, title=course.title, name=course.name
        )
        return figure, readings_table(self.readings, self.verdict)


def followed(study: ExperimentsStudy, over_time: OverTime, setting: Setting, folder: Path) -> Followed:
    """Simulate a router of the study and look at its throughput over time.

    Raises RoutecastError: the router cannot be built, or its file has no load.
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
    return Followed(
        over_time=over_time,
        moments=moments,
        verdict=steadiness_of(trial),
        readings=tuple(_read(trial.over_time, moments, over_time.duration, at_s) for at_s in over_time.read_at),
    )


def _read(fine: Sequence[Moment], drawn: Sequence[Moment], duration_s: float, at_s: float) -> InstantReading:
    """Read at an instant: the mean until then from all there is, the rate then as the figure draws it."""
    rates = [moment.forwarded_pps for moment in fine]
    then = next((moment for moment in reversed(drawn) if moment.time_s < at_s * (1.0 - 1e-12)), drawn[0])
    return replace(reading(rates, duration_s / len(rates), at_s), now=then.forwarded_pps)


def _merged(moments: Sequence[Moment], parts: int) -> tuple[Moment, ...]:
    """Return rates over fewer, longer parts: single frames would hide how the rate goes."""
    step = -(-len(moments) // parts)
    groups = [moments[at : at + step] for at in range(0, len(moments), step)]
    return tuple(
        Moment(
            time_s=group[0].time_s,
            offered_pps=fmean(run.offered_pps for run in group),
            forwarded_pps=fmean(run.forwarded_pps for run in group),
            dropped_pps=fmean(run.dropped_pps for run in group),
        )
        for group in groups
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactCheck:
    """A stated fact and what is found, both in the stated unit."""

    SUMMARY: ClassVar = (
        *("name=fact.name", "experiment=fact.experiment", "unit=fact.unit", "stated=fact.value"),
        *("between=fact.between", "found", "calibrates=fact.is_calibrating", "where=fact.place"),
    )

    fact: Fact
    found: float

    @property
    def is_met(self) -> bool | None:
        """Whether it lies in its range; None without one."""
        return None if self.fact.between is None else self.fact.between[0] <= self.found <= self.fact.between[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationCheck:
    """An expectation, and whether the model confirms it."""

    SUMMARY: ClassVar = (*("says=expectation.says", "where=expectation.place", "confirmed=holds", "here"),)

    expectation: Expectation
    holds: bool
    here: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentsResult(StudyResult[ExperimentsStudy]):
    """All that a study of designed experiments found; ``results`` by experiment, ``analyses`` by response besides."""

    calibrated: tuple[Calibrated, ...]
    results: Mapping[str, Results]
    analyses: Mapping[str, Mapping[str, Analysis]]
    courses: tuple[Followed, ...]
    facts: tuple[FactCheck, ...]
    judged: tuple[ExpectationCheck, ...]
    calculated: tuple[Calculated, ...]
    turned: Mapping[str, Any]

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
                            **pick(run, "row", "replication"),
                            "levels": results.experiment.design.coded[run.row],
                            **pick(answer, "values", "problem", "unsteady", "bottleneck"),
                        }
                        for run, answer in zip(results.runs, results.answers, strict=True)
                    ],
                }
                for name, results in self.results.items()
            ],
            **pick(self, "over_time=courses", "facts", "expectations=judged", "arithmetic=calculated"),
        }


def found(fact: Fact, results: Results) -> float:
    """Return the value of a fact, in the unit that it is stated in; NaN where the runs do not tell.

    Raises RoutecastError: the experiment has no such response, effect, factor or level.
    """
    values = results.values(fact.response)
    known = [value for value in values if not math.isnan(value)]
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
    analysis = analyse(results, fact.response)
    effects = {effect.name: effect for effect in analysis.effects}
    if fact.effect not in effects:
        message = f'{fact.name}: no effect "{fact.effect}"; {did_you_mean(fact.effect, effects)}'
        raise RoutecastError(message)
    effect = effects[fact.effect]
    value = effect.share_ratio if fact.of == "share" else effect.value
    if value is None:
        return math.nan
    return value if fact.of == "share" else value / fact.scale


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values that there are; NaN where there is none."""
    known = [value for value in values if not math.isnan(value)]
    return fmean(known) if known else math.nan


def cells(results: Results, response: str, at: Mapping[str, str]) -> tuple[float, ...]:
    """Return the values of the runs whose factors have the levels of these labels.

    Raises RoutecastError: there is no such response, factor or level.
    """
    experiment = results.experiment
    wanted: dict[int, float] = {}
    names = [factor.name for factor in experiment.factors]
    for name, label in at.items():
        if name not in names:
            raise RoutecastError(f'{experiment.name}: no factor "{name}"; {did_you_mean(name, names)}')
        column = names.index(name)
        labels = {level.label: level.coded for level in experiment.factors[column].levels}
        if label not in labels:
            raise RoutecastError(f'{experiment.name}, {name}: no level "{label}"; {did_you_mean(label, labels)}')
        wanted[column] = labels[label]
    coded = experiment.design.coded
    return tuple(
        value
        for run, value in zip(results.runs, results.values(response), strict=True)
        if all(coded[run.row][column] == level for column, level in wanted.items())
    )


def series(results: Results, response: str, factor: str, at: Mapping[str, str]) -> tuple[tuple[float, float], ...]:
    """Return a response against a factor whose labels begin with a number ("4 engines", "256 B"), in their order.

    Raises RoutecastError: as :func:`cells`; a label does not begin with a number.
    """
    chosen = next((each for each in results.experiment.factors if each.name == factor), None)
    if chosen is None:
        names = [each.name for each in results.experiment.factors]
        raise RoutecastError(f'{results.experiment.name}: no factor "{factor}"; {did_you_mean(factor, names)}')
    points = []
    for level in chosen.levels:
        try:
            x = float(level.label.split()[0])
        except (ValueError, IndexError):
            message = f'{results.experiment.name}, {factor}: the label "{level.label}" begins with no number'
            raise RoutecastError(message) from None
        points.append((x, mean(cells(results, response, {**at, factor: level.label}))))
    return tuple(points)


def check_facts(study: ExperimentsStudy, results: Mapping[str, Results]) -> tuple[FactCheck, ...]:
    """Return every stated fact beside what is found."""
    return tuple(FactCheck(fact=fact, found=found(fact, results[fact.experiment])) for fact in study.fact)


def criteria(facts: Sequence[FactCheck]) -> tuple[Criterion, ...]:
    """Return what the study asks for: by how much a fact lies outside its range, in its unit."""
    criteria = []
    for fact in facts:
        if fact.fact.between is not None:
            low, high = fact.fact.between
            outside = max(low - fact.found, fact.found - high, 0.0) if math.isfinite(fact.found) else math.nan
            criteria.append((f"{fact.fact.name} from {low:g} to {high:g}", 0.0, outside))
    return criteria_of(*criteria)


def judged(study: ExperimentsStudy, results: Mapping[str, Results]) -> tuple[ExpectationCheck, ...]:
    """Return every expectation, confirmed or refuted by the model."""
    return tuple(_judged(expectation, results[expectation.experiment]) for expectation in study.expectation)


def _judged(expectation: Expectation, results: Results) -> ExpectationCheck:
    if expectation.kind == "below":
        values = [v for v in cells(results, expectation.response, expectation.at) if not math.isnan(v)]
        most, bound = max(values, default=math.nan), expectation.value or math.inf
        return ExpectationCheck(
            expectation=expectation,
            holds=most < bound,
            here=f"at most {_said(most, expectation, results)}, {most / bound:.1%} of"
            f" {_said(bound, expectation, results)}",
        )
    points = [
        (x, y)
        for x, y in series(results, expectation.response, expectation.factor, expectation.at)
        if (expectation.until is None or x <= expectation.until)
        and (expectation.start is None or x >= expectation.start)
    ]
    if any(math.isnan(y) for _, y in points) or len(points) < 2:
        return ExpectationCheck(expectation=expectation, holds=False, here="runs without an answer")
    if expectation.kind == "linear":
        first_x, first_y = points[0]
        gains = [(x, (y / first_y) / (x / first_x)) for x, y in points[1:]]
        worst_x, worst = max(gains, key=lambda gain: abs(gain[1] - 1.0))
        return ExpectationCheck(
            expectation=expectation,
            holds=abs(worst - 1.0) <= expectation.within,
            here=f"{worst:.0%} of proportional, at {expectation.factor} = {worst_x:g}",
        )
    if expectation.kind == "flat":
        values = [y for _, y in points]
        spread = (max(values) - min(values)) / max(values)
        return ExpectationCheck(
            expectation=expectation,
            holds=spread <= expectation.within,
            here=f"{expectation.response}: {spread:.1%} between the least and the most",
        )
    bound = expectation.value or math.nan
    reached = next((x for x, y in points if y >= bound * (1.0 - expectation.within)), None)
    most = max(y for _, y in points)
    here = (
        f"at {expectation.factor} = {reached:g}"
        if reached is not None
        else f"never: at most {_said(most, expectation, results)}, {most / bound:.0%} of"
        f" {_said(bound, expectation, results)}"
    )
    return ExpectationCheck(expectation=expectation, holds=reached is not None, here=here)


def _said(value: float, expectation: Expectation, results: Results) -> str:
    """Write a value of the response with its unit."""
    path = next(response.of for response in results.experiment.responses if response.name == expectation.response)
    unit = unit_of(path)
    if unit == "%":
        return f"{100.0 * value:.4g} %"
    step, prefix = prefixed([value], unit)
    return f"{value / step:.4g} {prefix}".strip()


def answer(run: StudyRun[ExperimentsStudy], *, workers: int | None = None) -> ExperimentsResult:
    """Calibrate, run every experiment, put what was stated beside it.

    Raises RoutecastError: a router cannot be built, or no values meet the facts that calibrate.
    """
    study = run.study
    run.work = len(study.experiment) + 2
    sweeps = _Sweeps(run, workers)
    calibrated, setting = calibrate(study, sweeps.facts, run.tell)
    run.done = 1
    results = {}
    for experiment in study.experiment:
        run.step(experiment.title or experiment.name)
        results[experiment.name] = sweeps.results(experiment, setting)
    analyses = {
        name: {response.name: analyse(result, response.name) for response in result.experiment.responses}
        for name, result in results.items()
    }
    facts = check_facts(study, results)
    courses = tuple(followed(study, over_time, setting, run.folder) for over_time in study.over_time)
    return ExperimentsResult(
        study=study,
        out=run.out,
        calibrated=calibrated,
        results=results,
        analyses=analyses,
        courses=courses,
        facts=facts,
        judged=judged(study, results),
        calculated=calculated(study.arithmetic),
        turned=vary(study.router[first := next(iter(study.router))], setting.get(first, {})),
        criteria=criteria(facts),
        provenance=run.provenance(seed=study.experiment[0].seed),
    )


class _Sweeps:
    """Where experiments are run: answers that are in the study's folder are not asked for again."""

    def __init__(self, run: StudyRun[ExperimentsStudy], workers: int | None) -> None:
        self._run = run
        self._workers = workers

    def facts(self, facts: Sequence[Fact], setting: Setting) -> list[float]:
        """Return the values of facts with calibrated values in the router documents."""
        wanted = {fact.experiment for fact in facts}
        results = {
            experiment.name: self.results(experiment, setting)
            for experiment in self._run.study.experiment
            if experiment.name in wanted
        }
        return [found(fact, results[fact.experiment]) for fact in facts]

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
