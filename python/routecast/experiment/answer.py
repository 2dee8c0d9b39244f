"""The answer of one run: build its router (or open its test bed), run a trial, read the responses.

A response is a path into a trial (``latency.p99_s``, ``resource[cpu].utilisation_ratio``). Paths are checked before any
run, and so are the entries that they name: which entries a trial has follows from the router of its run (its pools,
task units and ports, the number of its flows), so routers of the design are built until one has the entry, and no
packet is simulated. Only a trial on the wire shows its entries itself.
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
    "Course",
    "answer",
    "build_run",
    "course_of",
    "document_of_testbed",
    "import_evaluator",
    "measure_trial",
    "missing_entries",
    "reading_problem",
    "response_problem",
    "table_of_testbed",
    "unchecked_responses",
    "unknown_options",
]

SOLVED = ("capacity_pps", "lossless_pps")
"""Responses of the closed form beside its trials: the greatest forwarding rate, the greatest rate without loss."""

_RATES = ("forwarded_pps", "l1_bps", "l2_bps")
_NAMED = r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"
"""An entry; its name may have brackets of its own."""
_STEP = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)((?:{_NAMED})*)(\.|$)")
_ENTRY = re.compile(_NAMED)
_SHORT = {"resource": "resources", "flow": "flows", "task": "activity", "drops": "drops_pps"}
_UNANSWERED_BY: Mapping[EvaluatorKind, tuple[str, ...]] = {
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
"""First steps of paths that an evaluator never answers."""


def response_problem(of: str, evaluator: EvaluatorKind) -> str:
    """Return why an evaluator has no answer at a path; empty if it can be read."""
    if of in SOLVED:
        if evaluator == "solve":
            return ""
        return f'"{of}" is what solve computes; {evaluator} has trials: read forwarded_pps, say, at a load above it'
    try:
        steps = _steps(of)
    except ValueError as problem:
        return str(problem)
    kind: object = Trial
    for number, (key, entries) in enumerate(steps):
        known = _fields(kind)
        if _entry_type(kind) is not None:
            before = steps[number - 1][0]
            return f'"{before}" has several entries: name one: {before}[…].{key}'
        if not known:
            return f'"{steps[number - 1][0]}" has no parts, so there is no "{key}" in it'
        if key not in known:
            names = [*known, *(SOLVED if number == 0 and evaluator == "solve" else ())]
            return f'"{key}" is not known here: {did_you_mean(key, names)}'
        kind = known[key]
        for entry in entries:
            inner = _entry_type(kind)
            if inner is None:
                return f'"{key}" is no list: leave out [{entry}]'
            kind = inner
    if _entry_type(kind) is not None:
        return f'"{steps[-1][0]}" has several entries: name one: {steps[-1][0]}[…]'
    if _fields(kind):
        return f"has parts: add one of {', '.join(_fields(kind))}"
    if not {int, float} & {member for member in _members(kind) if isinstance(member, type)}:
        return "is no number"
    if steps[0][0] in _UNANSWERED_BY[evaluator]:
        return f"{evaluator} does not answer it: choose another response, or another evaluator"
    return ""


def reading_problem(of: str, evaluator: EvaluatorKind, at_s: float | None, duration_s: float) -> str:
    """Return why a rate cannot be read at an instant; empty if it can, or if there is no instant."""
    if at_s is None:
        return ""
    if of not in _RATES:
        return f"only rates have a mean since the start: {', '.join(_RATES)}"
    if evaluator == "solve":
        return "solve keeps no rates over time: simulate and measure do"
    if at_s > duration_s:
        return f"is after the end of the trial: it lasts {format_duration(duration_s)}"
    return ""


def _mean_until(trial: Trial, of: str, at_s: float) -> float:
    """Return the mean of a rate from the start of the trial to an instant.

    ``trial``: with its rates over time, nothing cut off; ``of``: ``"forwarded_pps"``, ``"l1_bps"`` or ``"l2_bps"``.
    Raises RoutecastError: the trial has no rates over time.
    """
    from routecast.evaluate.steadiness import reading

    rates = [moment.forwarded_pps for moment in trial.over_time]
    if not rates:
        raise RoutecastError(f"the trial ({trial.evaluator}) has no rates over time, of which one could be read")
    so_far_pps = reading(rates, trial.duration_s / len(rates), at_s).so_far
    per_frame = read_response(trial, of) / trial.forwarded_pps if trial.forwarded_pps else 0.0
    return so_far_pps * per_frame


def read_response(trial: Trial, of: str) -> float:
    """Read a number from a trial.

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
            # Trials list the points that lose frames; the others lose none.
            return trial.drops_pps.get(entries[0], 0.0)
        for entry in entries:
            part = _entry(part, key, entry)
    if not isinstance(part, int | float) or not math.isfinite(part):
        notes = f" ({'; '.join(trial.notes)})" if trial.notes else ""
        raise RoutecastError(f"{trial.evaluator} does not know {of} here{notes}")
    return float(part)


def _entry(part: object, key: str, entry: str) -> object:
    known: list[str] = []
    if isinstance(part, Mapping):
        if entry in part:
            return part[entry]
        known = [str(name) for name in part]
    elif isinstance(part, tuple):
        known = [str(getattr(item, "name", getattr(item, "number", number))) for number, item in enumerate(part)]
        if _is_among(entry, known):
            return part[known.index(entry) if entry in known else int(entry)]
    raise RoutecastError(f'{key} has no entry "{entry}": {did_you_mean(entry, known)}')


def _is_among(entry: str, names: Sequence[str]) -> bool:
    """Return whether a list has an entry: by its name, or by its position."""
    return entry in names or (entry.isascii() and entry.isdecimal() and int(entry) < len(names))


def _loss_points(trial: Trial) -> tuple[str, ...]:
    """Return the places where a model can lose frames: task units and outgoing links; none for a trial on the wire."""
    links = [
        resource.name for resource in trial.resources if resource.kind == "link" and resource.name.endswith(" out")
    ]
    points = [*(activity.name for activity in trial.activity), *trial.queue_frames, *links, *trial.drops_pps]
    return () if trial.evaluator == "measure" else tuple(dict.fromkeys(points))


def _entries_of(of: str) -> tuple[str, ...]:
    """Return the part of a trial that a path leads into, with the entries that it names there.

    Examples
    --------
    >>> _entries_of("energy_j[cpu][active]"), _entries_of("latency.p99_s")
    (('energy_j', 'cpu', 'active'), ('latency',))
    """
    key, entries = _steps(of)[0]
    return (key, *entries)


@lru_cache(maxsize=256)
def _steps(of: str) -> list[tuple[str, list[str]]]:
    steps: list[tuple[str, list[str]]] = []
    at = 0
    while at < len(of):
        match = _STEP.match(of, at)
        if not match or (match[4] == "." and match.end() == len(of)):
            raise ValueError(f'"{of}" is no path: write names and dots, entries in brackets: "latency.p99_s"')
        key = match[1]
        steps.append((_SHORT.get(key, key) if not steps else key, _ENTRY.findall(match[2])))
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
    """Return the content of a test bed file, with the load as one more table.

    ``source``: ``"namespaces"``, the name of a file in ``folder``, or the content of such a file; ``load``: the table
    ``load`` as in a router file. Raises FileProblem: the file cannot be read or is no TOML.
    """
    from routecast.testbed.reading import BUILT_IN

    if not isinstance(source, str):
        return {**source, "load": dict(load)}
    if source == BUILT_IN:
        return {"name": BUILT_IN, "kind": "namespaces", "load": dict(load)}
    path = folder / source
    return {**parse_toml(read_text(path, kind="test bed"), str(path)), "load": dict(load)}


def table_of_testbed(document: Mapping[str, Any]) -> type[BaseModel]:
    """Return the model of a test bed file together with the load.

    Raises FileProblem: the document does not state its kind.
    """
    kind = document.get("kind")
    if kind not in {"namespaces", "interfaces"}:
        raise FileProblem("test bed", [Problem("kind", 'write kind = "namespaces" or kind = "interfaces"')])
    return _with_load(str(kind))


@lru_cache(maxsize=2)
def _with_load(kind: str) -> type[BaseModel]:
    from pydantic import create_model

    from routecast.router.load_table import LoadTable
    from routecast.testbed.document import InterfacesFile, NamespacesFile

    base = NamespacesFile if kind == "namespaces" else InterfacesFile
    return create_model("MeasuredBed", __base__=base, load=(LoadTable, ...))


def measure_trial(
    document: Mapping[str, Any], duration_s: float, *, seed: int, subject: str, folder: Path, over_time: bool = False
) -> Trial:
    """Run one trial on the wire; ``over_time``: whether it keeps its rates over time.

    Raises RoutecastError: the document is no test bed, or the machine lacks something.
    """
    import tomli_w

    from routecast.router.load_table import read_load
    from routecast.testbed import open_testbed

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
    """Return a problem for each option of a test bed that its device does not have, with the nearest names."""
    from routecast.testbed.devices import make_device

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
class Course:
    """One run of an experiment over time."""

    run: int = field("Position in ``Results.runs``")
    trial: Trial = field("Trial with its rates over time, without truncation")
    verdict: Steadiness


def course_of(results: Results) -> Course | None:
    """Simulate again the first run that is not steady, or else the first run; the same seed gives the same frames.

    None where the experiment is not simulated or not tested for steadiness, where no run has an answer, and where the
    run cannot be repeated (answers joined from elsewhere, files that are gone): a missing picture must not prevent the
    report.
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
    return Course(run=number, trial=trial, verdict=steadiness_of(trial))


_OF_QUEUES = ("latency", "waiting", "queue_frames", "delay_variation")
"""Responses that become steady with the queues: later than the rate."""


def import_evaluator(evaluator: EvaluatorKind) -> None:
    """Import the modules that the first run needs; workers can do this before there are runs."""
    import routecast.router.files
    from routecast.quantity import parse_duration_s

    if evaluator == "solve":
        import routecast.evaluate.solve
    elif evaluator == "simulate":
        import routecast.evaluate.simulate  # noqa: F401 - imported only so that it is loaded
    parse_duration_s("1 s")


def answer(run: Run) -> Answer:
    """Answer a run.

    Levels that make the router invalid, and responses that the evaluator does not know for it, are reported in
    :attr:`~routecast.experiment.model.Answer.problem`: other runs continue.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The machine lacks something that every run needs.
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
    """Build the router of a run; return it with its load.

    Raises RoutecastError: the document makes no router, or suggests no load.
    """
    from routecast.router.files import build_router

    model, load = build_router(document, subject="router", folder=Path(folder) if folder else None)
    if load is None:
        raise RoutecastError('the router file suggests no load: give one, [set] "load.rate" = "1 Mpps"')
    return model, load


def _needs_rates_over_time(run: Run | Experiment) -> bool:
    return run.is_steadied or any(response.read_at_s is not None for response in run.responses)


def _answer_of_trial(run: Run, trial: Trial) -> Answer:
    unsteady = ""
    steady = trial
    if run.is_steadied:
        from routecast.evaluate.steadiness import latency_unsteady, steadied, steadiness_of

        verdict = steadiness_of(trial)
        unsteady = verdict.reason
        if not unsteady and any(response.of.startswith(_OF_QUEUES) for response in run.responses):
            unsteady = latency_unsteady(trial)
        steady = steadied(trial, verdict)

    def read(response: Response) -> float:
        if response.read_at_s is None:
            return read_response(steady, response.of)
        return _mean_until(trial, response.of, response.read_at_s)

    values, problem = _read_responses(run, read)
    return Answer(key=run.key, values=values, problem=problem, unsteady=unsteady, bottleneck=_bottleneck(steady))


def _read_responses(run: Run, read: Callable[[Response], float]) -> tuple[dict[str, float], str]:
    """Return the responses that can be read, and the reasons why others cannot."""
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


Names: TypeAlias = Mapping[str, Sequence[str]]
"""Entries of a part of a trial, each with its own entries."""

_MOST_ROUTERS = 512
"""Routers of a design that are built to check entries: of larger designs the corners, and others at equal distances."""
_PARTS = 1000
"""Parts into which the simulator cuts a trial: ``MINIS`` of ``crates/sim/src/ledger.rs``."""
_WITH_INTERVAL = ("forwarded_pps", "loss_ratio", "latency.mean_s", "waiting.mean_s")
_BOUNDS = ("0", "1")
_LISTS = ("resources", "activity", "flows", "over_time")
"""Parts whose entries have a position besides a name."""


def missing_entries(experiment: Experiment) -> tuple[Problem, ...]:
    """Return a problem for each response that names an entry which no run has, with the nearest names.

    An entry that some of the runs have is no problem; a run whose router cannot be built reports that itself. Entries
    that only a trial can show (:func:`unchecked_responses`) are not checked.
    """
    wanted = _with_entries(experiment)
    if not wanted or experiment.evaluator == "measure":
        return ()
    known: dict[int, dict[str, None]] = {number: {} for number in wanted}
    missing: dict[int, tuple[str, str]] = {}
    checked = 0
    for document in documents(experiment, _rows_to_check(experiment)):
        try:
            names = _entries_by_part(experiment, *build_run(document, experiment.folder))
        except RoutecastError:
            continue
        checked += 1
        for number in list(wanted):
            part, *entries = wanted[number]
            candidates: Sequence[str] = list(names.get(part, {}))
            for entry in entries:
                if not (_is_among(entry, candidates) if part in _LISTS else entry in candidates):
                    known[number].update(dict.fromkeys(candidates))
                    missing[number] = (part, entry)
                    break
                candidates = names[part].get(entry, ())
            else:
                del wanted[number]
        if not wanted:
            return ()
    if not checked:
        return ()
    where = f"any of the {checked:,} routers of the design" if checked > 1 else "the router"
    problems = []
    for number in wanted:
        part, entry = missing[number]
        what = f'{part} has no entry "{entry}" in {where}: {did_you_mean(entry, known[number])}'
        if part == "over_time" and not experiment.is_steadied:
            what += "; rates over time are kept with steady = true"
        problems.append(Problem(f"response[{number}].of", what))
    return tuple(problems)


def unchecked_responses(experiment: Experiment) -> tuple[str, ...]:
    """Return the responses (their paths) whose entries only a trial can show: on the wire all that name one."""
    if experiment.evaluator != "measure":
        return ()
    return tuple(experiment.responses[number].of for number in _with_entries(experiment))


def _with_entries(experiment: Experiment) -> dict[int, tuple[str, ...]]:
    """Return the part of a trial and its entries for each response that names entries."""
    numbered = enumerate(experiment.responses)
    by_response = {number: _entries_of(response.of) for number, response in numbered if response.of not in SOLVED}
    return {number: entries for number, entries in by_response.items() if len(entries) > 1}


def _rows_to_check(experiment: Experiment) -> Iterator[int]:
    """Yield rows of the design: those at the ends of each factor, then all rows, or evenly spaced ones of many."""
    coded = experiment.design.coded
    corners = [
        choose(range(len(coded)), key=lambda row: coded[row][factor])
        for factor in range(len(experiment.factors))
        for choose in (min, max)
    ]
    step = max(math.ceil(len(coded) / _MOST_ROUTERS), 1)
    yield from dict.fromkeys([*corners, *range(0, len(coded), step)])


def _entries_by_part(experiment: Experiment, model: RouterModel, load: OfferedLoad) -> Mapping[str, Names]:
    if experiment.evaluator == "solve":
        return _solved_entries(model, load, experiment.duration_s)
    return _simulated_entries(model, load, over_time=_needs_rates_over_time(experiment))


def _solved_entries(model: RouterModel, load: OfferedLoad, duration_s: float) -> Mapping[str, Names]:
    """Return the entries of a trial of the closed form, which is solved: that is as fast as a forecast of them."""
    from routecast.evaluate.solve import Solve

    trial = Solve(model=model).trial(load, duration_s)
    return {
        "resources": {resource.name: () for resource in trial.resources},
        "activity": {activity.name: () for activity in trial.activity},
        "queue_frames": dict.fromkeys(trial.queue_frames, ()),
        "drops_pps": dict.fromkeys(_loss_points(trial), ()),
        "energy_j": {pool: tuple(states) for pool, states in trial.energy_j.items()},
    }


def _simulated_entries(model: RouterModel, load: OfferedLoad, *, over_time: bool) -> Mapping[str, Names]:
    """Return the entries that a simulated trial can have; it leaves out resources that nothing uses."""
    from routecast.evaluate.energy import UnitStates, energy_of

    tasks = [task.name for task in model.tasks]
    loss_points = [*tasks, *(f"{port.name} out" for port in model.ports)]
    resources = [
        *(task.thread for task in model.tasks if task.thread),
        *(pool.name for pool in model.pools),
        *(task.name for task in model.tasks if not task.needs),
        *(f"{port.name} {way}" for way in ("in", "out") for port in model.ports),
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
        "interval": dict.fromkeys(_WITH_INTERVAL, _BOUNDS),
        "over_time": {str(number): () for number in range(_PARTS)} if over_time else {},
    }
