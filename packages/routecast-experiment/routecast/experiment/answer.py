"""The answer of one run: it builds the router or opens the test bed, runs a trial, and reads the responses.

A response is a path in a trial (``latency.p99_s``, ``resource[cpu].utilisation_ratio``). Paths and the entries that
they name are checked before the first run. The router of a run decides the entries of its trial (pools, task units,
ports, flows), so the check builds routers of the design until one has the entry, and simulates no packet. The entries
of a trial on the wire are only known from the trial.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tempfile
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from routecast.errors import EnvironmentProblem, FileProblem, Problem, RoutecastError
from routecast.evaluate.executor.workers import stop_if_ended
from routecast.evaluate.protocol import EvaluatorKind
from routecast.evaluate.trial import Trial
from routecast.experiment.model import Answer, Experiment, Response, Results, Run
from routecast.experiment.runs import documents
from routecast.quantity import format_duration
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import parse_toml

if TYPE_CHECKING:
    from pydantic import BaseModel

    from routecast.evaluate.steadiness import Steadiness
    from routecast.load.offered import OfferedLoad
    from routecast.router.model import RouterModel


__all__ = [
    "RunOverTime",
    "answer",
    "build_run",
    "document_of_testbed",
    "import_evaluator",
    "measure_trial",
    "missing_entries",
    "reading_problem",
    "rerun_over_time",
    "response_problem",
    "table_of_testbed",
    "unchecked_responses",
    "unknown_options",
]

SOLVED = ("capacity_pps", "lossless_pps")
"""Responses of the closed form besides its trials: the highest forwarding rate, and the highest rate without loss."""

_RATE_RESPONSES = ("forwarded_pps", "l1_bps", "l2_bps")
_BRACKETED = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"
"""Pattern of an entry in brackets, whose name may contain brackets."""
_STEP = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)((?:{_BRACKETED})*)(\.|$)")
_ENTRY = re.compile(_BRACKETED)
_FULL_NAMES = {"resource": "resources", "flow": "flows", "task": "activity", "drops": "drops_pps"}
_UNANSWERED_PARTS: Mapping[EvaluatorKind, tuple[str, ...]] = {
    "solve": (
        "offered_frames",
        "forwarded_frames",
        "dropped_frames",
        "in_flight_frames",
        "flows",
        "over_time",
        "duplicated_frames",
        "reordered_frames",
        "corrupted_frames",
        "delay_variation",
        "first_loss_s",
        "last_loss_s",
        "measured_s",
        "interval",
    ),
    "simulate": ("duplicated_frames", "corrupted_frames"),
    "measure": ("resources", "activity", "flows", "interval", "queue_frames", "waiting", "energy_j"),
}
"""Parts of a trial that an evaluator never answers."""


def response_problem(of: str, evaluator: EvaluatorKind) -> str:
    """Return the reason why an evaluator has no answer at a path; empty if it has."""
    if of in SOLVED:
        if evaluator == "solve":
            return ""
        return f'only solve computes "{of}": with {evaluator} read forwarded_pps at a load above it'
    try:
        steps = _steps(of)
    except ValueError as problem:
        return str(problem)
    kind: object = Trial
    for number, (key, entries) in enumerate(steps):
        fields = _fields(kind)
        if _entry_type(kind) is not None:
            parent = steps[number - 1][0]
            return f'"{parent}" has several entries: name one, {parent}[…].{key}'
        if not fields:
            return f'"{steps[number - 1][0]}" has no parts, so it has no "{key}"'
        if key not in fields:
            names = [*fields, *(SOLVED if number == 0 and evaluator == "solve" else ())]
            return f'there is no "{key}" here: {did_you_mean(key, names)}'
        kind = fields[key]
        for entry in entries:
            inner = _entry_type(kind)
            if inner is None:
                return f'"{key}" has no entries: leave out [{entry}]'
            kind = inner
    if _entry_type(kind) is not None:
        return f'"{steps[-1][0]}" has several entries: name one, {steps[-1][0]}[…]'
    if _fields(kind):
        return f"has parts: add one of {', '.join(_fields(kind))}"
    if not {int, float} & {member for member in _members(kind) if isinstance(member, type)}:
        return "is not a number"
    if steps[0][0] in _UNANSWERED_PARTS[evaluator]:
        return f"{evaluator} does not answer it: choose another response or another evaluator"
    return ""


def reading_problem(of: str, evaluator: EvaluatorKind, at_s: float | None, duration_s: float) -> str:
    """Return the reason why a rate cannot be read at an instant; empty if it can, or without an instant."""
    if at_s is None:
        return ""
    if of not in _RATE_RESPONSES:
        return f"only these responses have readings: {', '.join(_RATE_RESPONSES)}"
    if evaluator == "solve":
        return "solve has no rates over time: take simulate or measure"
    if at_s > duration_s:
        return f"is after the end of the trial, which lasts {format_duration(duration_s)}"
    return ""


def _mean_until(trial: Trial, of: str, at_s: float) -> float:
    """Return the mean of a rate from the start of the trial to an instant.

    ``trial``: trial with its rates over time, without truncation; ``of``: ``"forwarded_pps"``, ``"l1_bps"`` or
    ``"l2_bps"``. Raises RoutecastError: the trial has no rates over time.
    """
    from routecast.evaluate.steadiness import reading

    rates = [moment.forwarded_pps for moment in trial.over_time]
    if not rates:
        raise RoutecastError(f"the trial ({trial.evaluator}) has no rates over time")
    so_far_pps = reading(rates, trial.duration_s / len(rates), at_s).so_far
    per_frame = read_response(trial, of) / trial.forwarded_pps if trial.forwarded_pps else 0.0
    return so_far_pps * per_frame


def read_response(trial: Trial, of: str) -> float:
    """Return the number at a path in a trial.

    Raises RoutecastError: the evaluator has no such number for this model, or there is no such entry.

    Examples
    --------
    >>> from routecast.evaluate.trial import Bottleneck, Resource
    >>> trial = Trial(
    ...     evaluator="solve", duration_s=1.0, intended_pps=2e6, offered_pps=2e6, forwarded_pps=2e6, loss_ratio=0.0,
    ...     l1_bps=1.3e9, l2_bps=1e9, bottleneck=Bottleneck(name="cpu", kind="pool", reason=""),
    ...     resources=(Resource(name="cpu", kind="pool", utilisation_ratio=0.5),),
    ... )
    >>> read_response(trial, "resource[cpu].utilisation_ratio")
    0.5
    """
    part: object = trial
    for key, entries in _steps(of):
        part = getattr(part, key, None)
        if key == "drops_pps" and len(entries) == 1 and entries[0] in _loss_points(trial):
            # A trial omits the places that lose no frame.
            return trial.drops_pps.get(entries[0], 0.0)
        for entry in entries:
            part = _entry(part, key, entry)
    if not isinstance(part, int | float) or not math.isfinite(part):
        notes = f" ({'; '.join(trial.notes)})" if trial.notes else ""
        raise RoutecastError(f"{trial.evaluator} does not know {of} here{notes}")
    return float(part)


def _entry(part: object, key: str, entry: str) -> object:
    """Return an entry of a part of a trial; ``key``: name of the part, for messages."""
    names: list[str] = []
    if isinstance(part, Mapping):
        if entry in part:
            return part[entry]
        names = [str(name) for name in part]
    elif isinstance(part, tuple):
        names = [str(getattr(item, "name", getattr(item, "number", number))) for number, item in enumerate(part)]
        if _has_entry(entry, names):
            return part[names.index(entry) if entry in names else int(entry)]
    raise RoutecastError(f'{key} has no entry "{entry}": {did_you_mean(entry, names)}')


def _has_entry(entry: str, names: Sequence[str]) -> bool:
    """Return whether an entry is one of the names, or a position among them."""
    return entry in names or (entry.isascii() and entry.isdecimal() and int(entry) < len(names))


def _loss_points(trial: Trial) -> tuple[str, ...]:
    """Return the places where a router can lose frames, task units and outgoing links; none for a trial on the wire."""
    links = [
        resource.name for resource in trial.resources if resource.kind == "link" and resource.name.endswith(" out")
    ]
    points = [*(activity.name for activity in trial.activity), *trial.queue_frames, *links, *trial.drops_pps]
    return () if trial.evaluator == "measure" else tuple(dict.fromkeys(points))


@lru_cache(maxsize=256)
def _steps(of: str) -> list[tuple[str, list[str]]]:
    steps: list[tuple[str, list[str]]] = []
    at = 0
    while at < len(of):
        match = _STEP.match(of, at)
        if not match or (match[4] == "." and match.end() == len(of)):
            raise ValueError(
                f'"{of}" is not a path: write names with dots, and entries in brackets, such as "latency.p99_s"'
            )
        key = match[1]
        steps.append((_FULL_NAMES.get(key, key) if not steps else key, _ENTRY.findall(match[2])))
        at = match.end()
    if not steps:
        raise ValueError('is empty: write a path such as "l2_bps" or "latency.p99_s"')
    return steps


@lru_cache(maxsize=64)
def _fields(kind: object) -> dict[str, object]:
    """Return the fields of a dataclass and their types; empty for any other type."""
    for member in _members(kind):
        if isinstance(member, type) and dataclasses.is_dataclass(member):
            hints = typing.get_type_hints(member)
            return {field.name: hints[field.name] for field in dataclasses.fields(member)}
    return {}


def _entry_type(kind: object) -> object | None:
    for member in _members(kind):
        origin, arguments = typing.get_origin(member), typing.get_args(member)
        if origin is tuple:
            return typing.cast("object", arguments[0])
        if origin is Mapping:
            return typing.cast("object", arguments[1])
    return None


def _members(kind: object) -> tuple[object, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in {typing.Union, types.UnionType} else (kind,)


def document_of_testbed(source: str | Mapping[str, Any], load: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the content of a test bed file with an additional table ``load``.

    ``source``: ``"namespaces"``, the name of a file in ``folder``, or the content of such a file; ``load``: offered
    load, as in a router file. Raises FileProblem: the file cannot be read or is not TOML.
    """
    from routecast.lab.testbed.reading import BUILT_IN

    if not isinstance(source, str):
        return {**source, "load": dict(load)}
    if source == BUILT_IN:
        return {"name": BUILT_IN, "kind": "namespaces", "load": dict(load)}
    path = folder / source
    return {**parse_toml(read_text(path, kind="test bed"), str(path)), "load": dict(load)}


def table_of_testbed(document: Mapping[str, Any]) -> type[BaseModel]:
    """Return the pydantic model of a test bed file with a table ``load``.

    Raises FileProblem: the document does not state its kind.
    """
    kind = document.get("kind")
    if kind not in {"namespaces", "interfaces"}:
        raise FileProblem("test bed", [Problem("kind", 'write kind = "namespaces" or kind = "interfaces"')])
    return _with_load(str(kind))


@lru_cache(maxsize=2)
def _with_load(kind: str) -> type[BaseModel]:
    from pydantic import create_model

    from routecast.lab.testbed.document import InterfacesFile, NamespacesFile
    from routecast.router.load_table import LoadTable

    base = NamespacesFile if kind == "namespaces" else InterfacesFile
    return create_model("MeasuredBed", __base__=base, load=(LoadTable, ...))


def measure_trial(
    document: Mapping[str, Any], duration_s: float, *, seed: int, subject: str, folder: Path, over_time: bool = False
) -> Trial:
    """Run one trial on the wire; ``over_time``: whether the trial keeps its rates over time.

    Raises RoutecastError: the document is not a test bed, or the machine lacks a program or a privilege.
    """
    import tomli_w

    from routecast.lab.testbed import open_testbed
    from routecast.router.load_table import read_load

    testbed = {key: value for key, value in document.items() if key != "load"}
    ports = len(testbed.get("port", ())) or 2
    load = read_load(document["load"], ports=ports, subject=subject, folder=folder)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "run.testbed.toml"
        path.write_text(tomli_w.dumps(testbed), encoding="utf-8")
        try:
            with open_testbed(path, seed=seed, over_time=over_time) as evaluator:
                return evaluator.trial(load, duration_s)
        except FileProblem as problem:
            raise FileProblem(subject, problem.problems) from problem


def unknown_options(document: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return a problem for each option in a test bed that its device does not have, with the nearest names."""
    from routecast.lab.testbed.devices import make_device

    table = document.get("dut", {})
    if not isinstance(table, dict):
        return ()
    options = {key: value for key, value in table.items() if key != "device"}
    try:
        make_device(str(table.get("device", "linux")), options)
    except FileProblem as error:
        return tuple(
            Problem(f"dut.{problem.place}", problem.message)
            for problem in error.problems
            if problem.message.startswith("no such option")
        )
    return ()


@value
class RunOverTime:
    """One run of an experiment over time."""

    run: int = field("Position in ``Results.runs``")
    trial: Trial = field("Trial with its rates over time, without truncation")
    verdict: Steadiness = field("Verdict on the steadiness of the trial")


def rerun_over_time(results: Results) -> RunOverTime | None:
    """Simulate again the first run that is not steady, or else the first run; the same seed gives the same frames.

    Returns None if the experiment is not simulated or not tested for steadiness, if no run has an answer, or if the run
    cannot be repeated, because files are missing: a missing picture must not prevent the report.
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

    number = (unsteady or answered)[0]
    run = results.runs[number]
    try:
        model, load = build_run(run.document, run.folder)
        trial = Simulate(model, seed=run.seed, over_time=True, steady_state=False).trial(load, run.duration_s)
    except RoutecastError:
        return None
    return RunOverTime(run=number, trial=trial, verdict=steadiness_of(trial))


_QUEUE_RESPONSES = ("latency", "waiting", "queue_frames", "delay_variation")
"""Responses that become steady with the queues, which is later than the rate does."""


def import_evaluator(evaluator: EvaluatorKind) -> None:
    """Import the modules that the first run needs, which workers can do while the runs are made."""
    import routecast.router.files
    from routecast.quantity import parse_duration_s

    if evaluator == "solve":
        import routecast.evaluate.solve
    elif evaluator == "simulate":
        import routecast.evaluate.simulate  # noqa: F401 - the import loads the module
    parse_duration_s("1 s")


def answer(run: Run) -> Answer:
    """Return the answer of a run.

    :attr:`~routecast.experiment.model.Answer.problem` reports levels that make the router invalid, and responses that
    the evaluator does not know for it, so that other runs continue.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The machine lacks a program or a privilege that every run needs.
    """
    answer_run = {"solve": _solve_run, "simulate": _simulate_run, "measure": _measure_run}[run.evaluator]
    try:
        return answer_run(run)
    except EnvironmentProblem:
        raise
    except RoutecastError as problem:
        return Answer(key=run.key, values={}, problem=str(problem))


def _solve_run(run: Run) -> Answer:
    from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps

    model, load = build_run(run.document, run.folder)
    trial: Trial | None = None

    def read(response: Response) -> float:
        nonlocal trial
        if response.of == "capacity_pps":
            return capacity_pps(model, load)
        if response.of == "lossless_pps":
            return lossless_pps(model, load)
        trial = trial or Solve(model=model).trial(load, run.duration_s)
        return read_response(trial, response.of)

    values, problem = _read_responses(run, read)
    return Answer(key=run.key, values=values, problem=problem, bottleneck=_bottleneck(trial) if trial else "")


def _simulate_run(run: Run) -> Answer:
    from routecast.evaluate.simulate import Simulate

    model, load = build_run(run.document, run.folder)
    over_time = _needs_rates_over_time(run)
    simulator = Simulate(
        model,
        seed=run.seed,
        per_flow=any(_steps(response.of)[0][0] == "flows" for response in run.responses),
        over_time=over_time,
        steady_state=not over_time,
        on_progress=stop_if_ended,
    )
    return _answer_of_trial(run, simulator.trial(load, run.duration_s))


def _measure_run(run: Run) -> Answer:
    trial = measure_trial(
        run.document,
        run.duration_s,
        seed=run.seed,
        subject="test bed",
        folder=Path(run.folder),
        over_time=_needs_rates_over_time(run),
    )
    if not trial.is_valid:
        raise RoutecastError(f"the trial is invalid: {'; '.join(trial.invalid)}")
    return _answer_of_trial(run, trial)


def build_run(document: Mapping[str, Any], folder: str) -> tuple[RouterModel, OfferedLoad]:
    """Return the router and the offered load of a run.

    Raises RoutecastError: the document is not a valid router, or has no load.
    """
    from routecast.router.files import build_router

    model, load = build_router(document, subject="router", folder=Path(folder) if folder else None)
    if load is None:
        raise RoutecastError('the router file has no load: write [set] "load.rate" = "1 Mpps"')
    return model, load


def _needs_rates_over_time(run: Run | Experiment) -> bool:
    return run.is_steadied or any(response.read_at_s is not None for response in run.responses)


def _answer_of_trial(run: Run, trial: Trial) -> Answer:
    unsteady = ""
    steady_trial = trial
    if run.is_steadied:
        from routecast.evaluate.steadiness import latency_unsteady, steadiness_of, with_steady_rates

        verdict = steadiness_of(trial)
        unsteady = verdict.reason
        if not unsteady and any(response.of.startswith(_QUEUE_RESPONSES) for response in run.responses):
            unsteady = latency_unsteady(trial)
        steady_trial = with_steady_rates(trial, verdict)

    def read(response: Response) -> float:
        if response.read_at_s is None:
            return read_response(steady_trial, response.of)
        return _mean_until(trial, response.of, response.read_at_s)

    values, problem = _read_responses(run, read)
    return Answer(key=run.key, values=values, problem=problem, unsteady=unsteady, bottleneck=_bottleneck(steady_trial))


def _read_responses(run: Run, read: Callable[[Response], float]) -> tuple[dict[str, float], str]:
    """Return the values of the responses that can be read, and the reasons why others cannot."""
    values: dict[str, float] = {}
    reasons: list[str] = []
    for response in run.responses:
        try:
            values[response.name] = read(response)
        except EnvironmentProblem:
            raise
        except RoutecastError as problem:
            reasons.append(str(problem))
    return values, "; ".join(dict.fromkeys(reasons))


def _bottleneck(trial: Trial) -> str:
    return f"{trial.bottleneck.name} {trial.bottleneck.reason}".strip()


EntryNames: TypeAlias = Mapping[str, Sequence[str]]
"""Names of the entries of a part of a trial, each with the names of its own entries."""

_MAX_ROUTERS = 512
"""Number of routers of a design that are built to check entries; of larger designs about so many."""
_PARTS = 1000
"""Number of parts into which the simulator cuts a trial: ``MINIS`` of ``crates/sim/src/ledger.rs``."""
_INTERVAL_RESPONSES = ("forwarded_pps", "loss_ratio", "latency.mean_s", "waiting.mean_s")
_INTERVAL_ENDS = ("0", "1")
_NUMBERED_PARTS = ("resources", "activity", "flows", "over_time")
"""Parts of a trial whose entries have a position besides a name."""


def missing_entries(experiment: Experiment) -> tuple[Problem, ...]:
    """Return a problem for each response that names an entry of no run, with the nearest names.

    An entry that some runs have is not a problem. A run whose router cannot be built reports that itself. Entries that
    only a trial can show (:func:`unchecked_responses`) are not checked.
    """
    unseen = _entries_by_response(experiment)
    if not unseen or experiment.evaluator == "measure":
        return ()
    existing: dict[int, dict[str, None]] = {number: {} for number in unseen}
    missing: dict[int, tuple[str, str]] = {}
    checked = 0
    for document in documents(experiment, _rows_to_check(experiment)):
        try:
            names = _entries_by_part(experiment, *build_run(document, experiment.folder))
        except RoutecastError:
            continue
        checked += 1
        for number in list(unseen):
            part, *entries = unseen[number]
            candidates: Sequence[str] = list(names.get(part, {}))
            for entry in entries:
                if not (_has_entry(entry, candidates) if part in _NUMBERED_PARTS else entry in candidates):
                    existing[number].update(dict.fromkeys(candidates))
                    missing[number] = (part, entry)
                    break
                candidates = names[part].get(entry, ())
            else:
                del unseen[number]
        if not unseen:
            return ()
    if not checked:
        return ()
    routers = f"any of the {checked:,} routers of the design" if checked > 1 else "the router"
    problems = []
    for number in unseen:
        part, entry = missing[number]
        message = f'{part} has no entry "{entry}" in {routers}: {did_you_mean(entry, existing[number])}'
        if part == "over_time" and not experiment.is_steadied:
            message += "; steady = true keeps rates over time"
        problems.append(Problem(f"response[{number}].of", message))
    return tuple(problems)


def unchecked_responses(experiment: Experiment) -> tuple[str, ...]:
    """Return the paths of the responses whose entries only a trial can show: on the wire all that name an entry."""
    if experiment.evaluator != "measure":
        return ()
    return tuple(experiment.responses[number].of for number in _entries_by_response(experiment))


def _entries_by_response(experiment: Experiment) -> dict[int, tuple[str, ...]]:
    """Return, by number of the response, the part of a trial and the entries that its path names."""
    numbered = enumerate(experiment.responses)
    first_steps = {number: _steps(response.of)[0] for number, response in numbered if response.of not in SOLVED}
    return {number: (part, *entries) for number, (part, entries) in first_steps.items() if entries}


def _rows_to_check(experiment: Experiment) -> Iterator[int]:
    """Yield the rows at the ends of each factor, then all rows, or evenly spaced rows of a large design."""
    coded = experiment.design.coded
    corners = [
        choose(range(len(coded)), key=lambda row: coded[row][factor])
        for factor in range(len(experiment.factors))
        for choose in (min, max)
    ]
    step = max(math.ceil(len(coded) / _MAX_ROUTERS), 1)
    yield from dict.fromkeys([*corners, *range(0, len(coded), step)])


def _entries_by_part(experiment: Experiment, model: RouterModel, load: OfferedLoad) -> Mapping[str, EntryNames]:
    if experiment.evaluator == "solve":
        return _solved_entries(model, load, experiment.duration_s)
    return _simulated_entries(model, load, over_time=_needs_rates_over_time(experiment))


def _solved_entries(model: RouterModel, load: OfferedLoad, duration_s: float) -> Mapping[str, EntryNames]:
    """Return the entries of a trial of the closed form, which is solved because that is as fast as a forecast."""
    from routecast.evaluate.solve import Solve

    trial = Solve(model=model).trial(load, duration_s)
    return {
        "resources": {resource.name: () for resource in trial.resources},
        "activity": {activity.name: () for activity in trial.activity},
        "queue_frames": dict.fromkeys(trial.queue_frames, ()),
        "drops_pps": dict.fromkeys(_loss_points(trial), ()),
        "energy_j": {pool: tuple(states) for pool, states in trial.energy_j.items()},
    }


def _simulated_entries(model: RouterModel, load: OfferedLoad, *, over_time: bool) -> Mapping[str, EntryNames]:
    """Return the entries that a simulated trial can have; a trial omits resources that nothing uses."""
    from routecast.evaluate.energy import UnitStates, energy_of

    tasks = [task.name for task in model.tasks]
    loss_points = [*tasks, *(f"{port.name} out" for port in model.ports)]
    resources = [
        *(task.thread for task in model.tasks if task.thread),
        *(pool.name for pool in model.pools),
        *(task.name for task in model.tasks if not task.needs),
        *(f"{port.name} {direction}" for direction in ("in", "out") for port in model.ports),
    ]
    asleep = [
        UnitStates(
            pool=pool,
            active_units=0.0,
            asleep_units=(0.0,) * len(pool.power.sleep),
            wakes_per_s=(0.0,) * len(pool.power.sleep),
        )
        for pool in model.pools
        if pool.power is not None
    ]
    return {
        "resources": dict.fromkeys(resources, ()),
        "activity": dict.fromkeys(tasks, ()),
        "queue_frames": dict.fromkeys(loss_points, ()),
        "drops_pps": dict.fromkeys(loss_points, ()),
        "energy_j": {pool: tuple(states) for pool, states in energy_of(asleep, 1.0).items()},
        "flows": {str(number): () for number in range(len(load.flows.flows))},
        "interval": dict.fromkeys(_INTERVAL_RESPONSES, _INTERVAL_ENDS),
        "over_time": {str(number): () for number in range(_PARTS)} if over_time else {},
    }
