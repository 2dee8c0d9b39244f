"""What one run answers: its router is built, its evaluator asked, its responses read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.evaluate.executor.threads import stop_if_ended
from routecast.evaluate.protocol import EvaluatorKind
from routecast.experiment.answer.responses import needs_flows, read_response, said_at
from routecast.experiment.model import Answer, Response, Results, Run
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from routecast.evaluate.steadiness import Steadiness
    from routecast.evaluate.trial import Trial
    from routecast.load.offered import OfferedLoad
    from routecast.router.model import RouterModel

__all__ = ["Course", "answer", "built", "course_of", "get_ready"]


# A run once more, with its rates over time: to show what a verdict rests on.


@value
class Course:
    """How one run of an experiment went over time."""

    run: int = field("Position in ``Results.runs``")
    trial: Trial = field("With its rates over time, nothing cut off")
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


_OF_QUEUES = ("latency", "waiting", "queue_frames", "delay_variation")
"""Responses that settle with the queues: later than the rate."""


def get_ready(evaluator: EvaluatorKind) -> None:
    """Import what runs take most of their first time for; workers can do it before there are runs."""
    import routecast.router.files
    from routecast.quantity import parse_duration_s

    if evaluator == "solve":
        import routecast.evaluate.solve
    elif evaluator == "simulate":
        import routecast.evaluate.simulate  # noqa: F401 - imported only so that it is loaded
    parse_duration_s("1 s")


def answer(run: Run) -> Answer:
    """Answer a run.

    Levels that make the router invalid, and responses that the evaluator does not know for it, are told in
    :attr:`~routecast.experiment.model.Answer.problem`: other runs go on.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The machine lacks something that every run needs.
    """
    try:
        return _BY_EVALUATOR[run.evaluator](run)
    except EnvironmentProblem:
        raise
    except RoutecastError as problem:
        return Answer(key=run.key, values={}, problem=str(problem))


def _solved(run: Run) -> Answer:
    from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps

    model, load = built(run.document, run.folder)
    trial: Trial | None = None

    def read(response: Response) -> float:
        nonlocal trial
        if response.of == "capacity_pps":
            return capacity_pps(model, load)
        if response.of == "lossless_pps":
            return lossless_pps(model, load)
        trial = trial or Solve(model=model).trial(load, run.duration_s)
        return read_response(trial, response.of)

    values, problem = _each(run, read)
    return Answer(key=run.key, values=values, problem=problem, bottleneck=_bottleneck(trial) if trial else "")


def _simulated(run: Run) -> Answer:
    from routecast.evaluate.simulate import Simulate

    model, load = built(run.document, run.folder)
    is_followed = _is_followed(run)
    simulator = Simulate(
        model,
        seed=run.seed,
        per_flow=any(needs_flows(response.of) for response in run.responses),
        over_time=is_followed,
        steady_state=not is_followed,
        on_progress=stop_if_ended,
    )
    return _read(run, simulator.trial(load, run.duration_s))


def _measured(run: Run) -> Answer:
    from routecast.experiment.answer.testbeds import measured

    trial = measured(
        run.document,
        run.duration_s,
        seed=run.seed,
        subject="test bed",
        folder=Path(run.folder),
        over_time=_is_followed(run),
    )
    if not trial.is_valid:
        raise RoutecastError(f"the trial is invalid: {'; '.join(trial.invalid)}")
    return _read(run, trial)


_BY_EVALUATOR: dict[str, Callable[[Run], Answer]] = {"solve": _solved, "simulate": _simulated, "measure": _measured}


def built(document: Mapping[str, Any], folder: str) -> tuple[RouterModel, OfferedLoad]:
    """Build the router of a run.

    Raises
    ------
    routecast.errors.RoutecastError
        The document makes no router, or suggests no load.
    """
    from routecast.router.files import build_router

    model, load = build_router(document, subject="router", folder=Path(folder) if folder else None)
    if load is None:
        raise RoutecastError('the router file suggests no load: give one, [set] "load.rate" = "1 Mpps"')
    return model, load


def _is_followed(run: Run) -> bool:
    """Return whether the run is looked at over time."""
    return run.is_steadied or any(response.read_at_s is not None for response in run.responses)


def _read(run: Run, trial: Trial) -> Answer:
    unsteady = ""
    whole = trial
    if run.is_steadied:
        from routecast.evaluate.steadiness import latency_unsteady, steadied, steadiness_of

        verdict = steadiness_of(trial)
        unsteady = verdict.reason
        if not unsteady and any(response.of.startswith(_OF_QUEUES) for response in run.responses):
            unsteady = latency_unsteady(trial)
        trial = steadied(trial, verdict)

    def read(response: Response) -> float:
        if response.read_at_s is None:
            return read_response(trial, response.of)
        return said_at(whole, response.of, response.read_at_s)

    values, problem = _each(run, read)
    return Answer(key=run.key, values=values, problem=problem, unsteady=unsteady, bottleneck=_bottleneck(trial))


def _each(run: Run, read: Callable[[Response], float]) -> tuple[dict[str, float], str]:
    """Read each response: those that there are, and why the others are not."""
    values: dict[str, float] = {}
    missing: list[str] = []
    for response in run.responses:
        try:
            values[response.name] = read(response)
        except EnvironmentProblem:
            raise
        except RoutecastError as problem:
            missing.append(str(problem))
    return values, "; ".join(dict.fromkeys(missing))


def _bottleneck(trial: Trial) -> str:
    return f"{trial.bottleneck.name} {trial.bottleneck.reason}".strip()
