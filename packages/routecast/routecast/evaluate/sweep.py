"""Sweeps: throughput and limit of a router at every combination of fields of its file, frames and loads."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import (
    EnvironmentProblem,
    FileProblem,
    ModelProblem,
    Problem,
    QuantityProblem,
    RoutecastError,
    TransientProblem,
)
from routecast.evaluate.plain import plain
from routecast.evaluate.solve import Solve, capacity_pps
from routecast.evaluate.solve._closed_form import rates_of, resources_of
from routecast.evaluate.solve.flow import flow_graph
from routecast.evaluate.solve.fluid import intended_of
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.evaluate.trial import Bottleneck, Trial
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import IntendedRate, OfferedLoad
from routecast.progress import Progress
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.quantity.toml_file import fields_at
from routecast.quantity.value_list import Plain, parse_values
from routecast.router.files import build_router, router_table
from routecast.router.model import RouterModel
from routecast.router.variants import vary

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Simulate

__all__ = [
    "MAX_POINTS",
    "SIMULATED_S",
    "Prepare",
    "Routers",
    "Settings",
    "Sweep",
    "SweepAxis",
    "SweepPoint",
    "even_flows",
    "is_crafted",
    "ordinary",
    "parse_varied",
    "sweep",
    "trial_past_transient",
]

MAX_POINTS = 10_000
"""Greatest number of combinations of a sweep."""

Settings = Mapping[str, Plain]
"""One combination: the value of each varied key."""

SIMULATED_S = 0.02
"""The router's time of a first trial, if nothing else is asked for."""
Prepare = Callable[["Simulate", "OfferedLoad", float], "Simulate"]
"""Makes the simulator that runs a trial of a load, for seconds of the router's time, from the ordinary one."""

_UNKNOWN = math.nan
_LOAD_KEYS = ("frame", "load", "flows")
"""Keys that change the load; all others are fields of the router file."""
_ALIASES = {"frames": "frame", "load.frames": "frame", "load.rate": "load", "load.flows.count": "flows"}
_MAX_FLOWS = 1_000_000
_HASH_VALUES = 128
"""Number of hash values of crafted flows (:meth:`~routecast.load.flows.FlowSet.crafted`)."""
_MAX_TRIES = 4
_LENGTHENING = 4.0


def ordinary(simulator: Simulate, _load: OfferedLoad, _duration_s: float) -> Simulate:
    """Return the simulator as it is: what runs a trial unless something else is asked for."""
    return simulator


@value
class SweepAxis:
    """A varied key and its values."""

    key: str = field('"cores", "frame", "load", "flows", or a field of the router file such as "service.per_packet"')
    values: tuple[Plain, ...] = field("The values that it takes")


@value
class SweepPoint:
    """The answer for one combination. An unknown or unrequested value is NaN or None."""

    settings: Settings = field("Value by key")
    flows: int = field("Number of flows")
    lossless_pps: float = field(
        "Greatest rate at which the closed form knows that nothing is lost, frames/s", default=_UNKNOWN
    )
    lossless_is_at_least: bool = field("Whether more may pass without loss: above, it is not known", default=False)
    overloads_nothing_pps: float = field(
        "Greatest rate that overloads nothing, by closed form, frames/s; below it queues may overflow by chance",
        default=_UNKNOWN,
    )
    maximum_pps: float = field("Greatest forwarding rate, by closed form, frames/s", default=_UNKNOWN)
    bottleneck: Bottleneck | None = field(
        "Limiting resource, or the one that would limit first, by closed form", default=None
    )
    trial: Trial | None = field("The closed form's answer for the given load", default=None)
    simulated: Trial | None = field(
        "The simulator's answer for the given load, or for line rate on every port", default=None
    )
    notes: tuple[str, ...] = field("Ranges of validity", default=())
    problem: str = field("Reason why a requested result is unknown", default="")


@value
class Sweep:
    """Result of a sweep."""

    router: str = field("Name of the router")
    varied: tuple[SweepAxis, ...]
    points: tuple[SweepPoint, ...] = field("Each combination; the last key varies fastest")
    has_load: bool = field("Whether a load is given; without a load the sweep finds the greatest rates")
    is_simulated: bool
    is_solved: bool = field("Whether the closed form was asked", default=True)
    notes: tuple[str, ...] = field("Notes on all points", default=())

    def rows(self) -> list[dict[str, object]]:
        """Return every point as plain data with the same keys; None where unknown."""
        return [self._row(point) for point in self.points]

    def to_json(self) -> dict[str, object]:
        """Return the sweep as plain data."""
        varied = {axis.key: list(axis.values) for axis in self.varied}
        return {"router": self.router, "varied": varied, "points": self.rows(), "notes": list(self.notes)}

    def _row(self, point: SweepPoint) -> dict[str, object]:
        row: dict[str, object] = {"settings": dict(point.settings), "flows": point.flows}
        if self.has_load:
            row |= _trial_fields(point.trial)
        else:
            row |= plain(
                {
                    "lossless_pps": point.lossless_pps,
                    "lossless_is_at_least": point.lossless_is_at_least,
                    "overloads_nothing_pps": point.overloads_nothing_pps,
                    "maximum_pps": point.maximum_pps,
                }
            )
        row["bottleneck"] = _bottleneck_fields(point.bottleneck)
        if self.is_simulated:
            limits = point.simulated.bottleneck if point.simulated else None
            row["simulated"] = {**_trial_fields(point.simulated), "bottleneck": _bottleneck_fields(limits)}
        return {**row, "notes": list(point.notes), "problem": point.problem or None}


def _trial_fields(trial: Trial | None) -> dict[str, object]:
    latency = trial.latency if trial else None
    return plain(
        {
            "intended_pps": trial and trial.intended_pps,
            "offered_pps": trial and trial.offered_pps,
            "forwarded_pps": trial and trial.forwarded_pps,
            "loss_ratio": trial and trial.loss_ratio,
            "latency_mean_s": latency and latency.mean_s,
            "latency_p99_s": latency and latency.p99_s,
            "latency_arrivals": (trial.arrivals or None) if trial and latency else None,
        }
    )


def _bottleneck_fields(bottleneck: Bottleneck | None) -> dict[str, object]:
    return plain(
        {
            "name": bottleneck and bottleneck.name,
            "kind": bottleneck and bottleneck.kind,
            "reason": bottleneck and bottleneck.reason,
        }
    )


def _option(key: str) -> str:
    return f"--vary {key}"


def parse_varied(
    texts: Iterable[str], document: Mapping[str, Any], *, subject: str, name_of: Callable[[str], str] = _option
) -> tuple[SweepAxis, ...]:
    """Parse varied keys from texts ``KEY=VALUES``.

    Parameters
    ----------
    texts : iterable of str
        ``"cores=1..16"``, ``"frame=64,512,IMIX"``; frame sizes without a unit are bytes.
    document : mapping
        Content of the router file.
    subject : str
        Name of the router file in messages.
    name_of : callable
        How messages name the varied values of a key: as an option of the command line, or as Python writes them.

    Raises
    ------
    routecast.errors.RoutecastError
        Nothing varies, a key is unknown or given twice, a value does not suit its key, or there are more than
        :data:`MAX_POINTS` combinations.

    Examples
    --------
    >>> router = {"builder": "multicore", "cores": 1, "service": {"per_packet": "1 us"}}
    >>> [axis.values for axis in parse_varied(["cores=1..3", "frame=64,IMIX"], router, subject="router")]
    [(1, 2, 3), ('64 B', 'IMIX')]
    """
    table = router_table(document, subject)
    varied: list[SweepAxis] = []
    for text in texts:
        written, equals, values = text.partition("=")
        key = _ALIASES.get(written.strip(), written.strip())
        if not equals or not key:
            raise QuantityProblem(text, f'--vary "{text[:60]}": write KEY=VALUES, such as cores=1..16 or frame=64,IMIX')
        _refuse_unknown(key, document, table, subject, name_of)
        if key in (axis.key for axis in varied):
            raise QuantityProblem(text, f"{name_of(key)} is given twice: give all its values at once")
        try:
            varied.append(SweepAxis(key=key, values=_values(key, values)))
        except RoutecastError as problem:
            raise QuantityProblem(text, f"{name_of(key)}: {problem}") from problem
        if key not in _LOAD_KEYS:
            vary(document, {key: varied[-1].values[0]}, subject=subject)
    if not varied:
        raise QuantityProblem("", f"nothing varies: give values, such as {name_of('cores=1..16')}")
    counts = [len(axis.values) for axis in varied]
    if math.prod(counts) > MAX_POINTS:
        product_text = " x ".join(map(str, counts))
        message = f"{product_text} = {math.prod(counts):,} combinations: at most {MAX_POINTS:,}; give fewer values"
        raise QuantityProblem("", message)
    return tuple(varied)


def _refuse_unknown(
    key: str, document: Mapping[str, Any], table: type, subject: str, name_of: Callable[[str], str]
) -> None:
    known = fields_at(table, ())
    first = re.split(r"[.\[]", key)[0]
    if key in _LOAD_KEYS or first in known:
        return
    if key == "cores":
        kind = f'of builder "{document["builder"]}"' if "builder" in document else "given by its task units"
        message = f"{name_of('cores')}: a router {kind} has no number of cores; {_instead_of_cores(document, known)}"
        raise FileProblem(subject, [Problem("", message)])
    suggestion = did_you_mean(first, ("cores", *_LOAD_KEYS, *known) if "cores" in known else (*_LOAD_KEYS, *known))
    raise FileProblem(
        subject, [Problem("", f'{name_of(key)}: "{first[:60]}" is no key that is known here: {suggestion}')]
    )


def _instead_of_cores(document: Mapping[str, Any], known: Iterable[str]) -> str:
    counted = [key for key in ("machines", "engines") if key in known]
    for key, count in (("pool", "units"), ("server", "cores")):
        entries = document.get(key)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = entry.get("name", number) if isinstance(entry, dict) else number
            counted.append(f"{key}[{name}].{count}")
    return "vary " + " or ".join(f'"{entry}"' for entry in counted[:4]) if counted else "vary another of its fields"


def _values(key: str, text: str) -> tuple[Plain, ...]:
    values = parse_values(text, most=MAX_POINTS)
    if key == "frame":
        sizes = (f"{entry} B" if isinstance(entry, int) else str(entry) for entry in values)
        return tuple(dict.fromkeys(FrameMix.parse(entry).name for entry in sizes))
    for entry in values:
        if key == "load":
            IntendedRate.parse(str(entry))
        elif key == "flows" and (not isinstance(entry, int) or isinstance(entry, bool) or not 1 <= entry <= _MAX_FLOWS):
            raise QuantityProblem(str(entry), f'got "{entry}": flows are whole numbers from 1 to {_MAX_FLOWS:,}')
    return values


def sweep(
    document: Mapping[str, Any],
    varied: Sequence[SweepAxis],
    load_of: Callable[[Settings, RouterModel, OfferedLoad | None], OfferedLoad],
    *,
    subject: str = "router file",
    folder: Path | None = None,
    frames: FrameMix | None = None,
    has_load: bool = False,
    keeps_flows: bool = False,
    simulates: bool = False,
    solves: bool = True,
    duration_s: float | None = None,
    seed: int = 1,
    prepare: Prepare = ordinary,
    on_progress: Progress = lambda done, total, now: None,
) -> Sweep:
    """Evaluate a router at every combination of the varied keys.

    The function builds the routers of all combinations before it evaluates the first. Where the closed form or the
    simulator has no answer, the point holds the reason, and the sweep continues.

    Parameters
    ----------
    document : mapping
        Content of the router file.
    varied : sequence of SweepAxis
        As :func:`parse_varied` returns it.
    load_of : callable
        Returns the load of a combination, from its settings, the router, and the load that its file suggests.
    subject, folder
        As of :func:`routecast.router.files.parse_router`.
    frames : FrameMix or None
        Offered frames instead of the file's where no frames vary.
    has_load : bool
        Whether to evaluate the loads at their rates; otherwise the sweep finds the greatest rates.
    keeps_flows : bool
        Whether the number of flows stays when ``cores`` varies. Otherwise the number of crafted flows follows the
        cores: as many as fill cores and ports evenly.
    simulates : bool
        Whether to simulate too: the load, or line rate on every port.
    solves : bool
        Whether to ask the closed form; what it would say stays unknown otherwise.
    duration_s : float or None
        Simulated time; None for 20 ms, or as long as the transient needs.
    seed : int
        Seed of the simulations.
    prepare : callable
        Makes the simulator that runs a point, from the ordinary one, the load, and seconds of the router's time.
    on_progress : callable
        Called with the number of finished points, the number of all points, and the settings of the current point.

    Raises
    ------
    routecast.errors.RoutecastError
        A combination makes no valid router, or no point has an answer.
    """
    combinations = [
        dict(zip((axis.key for axis in varied), row, strict=True)) for row in product(*(axis.values for axis in varied))
    ]
    routers = Routers(document, subject=subject, folder=folder, frames=frames)
    for settings in combinations:
        routers.of(settings)
    flows_follow = "cores" in combinations[0] and not keeps_flows
    has_followed = False
    points = []
    for number, settings in enumerate(combinations):
        on_progress(number, len(combinations), _settings_text(settings))
        model, default = routers.of(settings)
        load = load_of(settings, model, default)
        if flows_follow and is_crafted(load, len(model.ports)):
            load = replace(load, flows=even_flows(int(settings["cores"]), len(model.ports)))
            has_followed = True
        point = SweepPoint(settings=settings, flows=len(load.flows.flows))
        if solves:
            point = _solved(point, model, load, has_load=has_load)
        if simulates:
            point = _simulated(point, model, load, has_load=has_load, duration_s=duration_s, seed=seed, prepare=prepare)
        points.append(point)
    if all(point.problem and point.bottleneck is None and point.simulated is None for point in points):
        raise RoutecastError(
            f"none of the {len(points)} combinations has an answer; the first says: {points[0].problem}"
        )
    return Sweep(
        router=routers.of(combinations[0])[0].name,
        varied=tuple(varied),
        points=tuple(points),
        has_load=has_load,
        is_simulated=simulates,
        is_solved=solves,
        notes=tuple(_notes(points, has_load=has_load, simulates=simulates, has_followed=has_followed)),
    )


def _settings_text(settings: Settings) -> str:
    return ", ".join(f"{key} = {str(entry)[:40]}" for key, entry in settings.items())


class Routers:
    """Routers by settings, each built once, because loads and flows do not change them."""

    def __init__(
        self, document: Mapping[str, Any], *, subject: str, folder: Path | None, frames: FrameMix | None
    ) -> None:
        self._document, self._subject, self._folder, self._frames = document, subject, folder, frames
        self._built: dict[str, tuple[RouterModel, OfferedLoad | None]] = {}

    def of(self, settings: Settings) -> tuple[RouterModel, OfferedLoad | None]:
        """Return the router of a combination, and the load that its file suggests.

        Raises RoutecastError: the settings are not valid.
        """
        overrides = {key: entry for key, entry in settings.items() if key not in _LOAD_KEYS}
        frames = FrameMix.parse(str(settings["frame"])) if "frame" in settings else self._frames
        key = repr((overrides, frames and frames.name))
        if key not in self._built:
            subject = f"{self._subject} with {_settings_text(overrides)}" if overrides else self._subject
            try:
                varied = vary(self._document, overrides, subject=subject)
                built = build_router(varied, subject=self._subject, folder=self._folder, frames=frames)
            except (FileProblem, ModelProblem) as problem:
                raise FileProblem(subject, problem.problems) from problem
            self._built[key] = built
        return self._built[key]


def is_crafted(load: OfferedLoad, ports: int) -> bool:
    """Return whether the flows are crafted to spread evenly; a trace has its own flows."""
    crafted = FlowSet.crafted(len(load.flows.flows), ports=ports)
    return load.arrivals.kind != "trace" and load.flows.flows == crafted.flows


def even_flows(cores: int, ports: int) -> FlowSet:
    """Return the fewest crafted flows that fill cores and ports evenly; only the cores where hash values are too few.

    Examples
    --------
    >>> even_flows(3, 2).share_per_core(3)
    (0.3333333333333333, 0.3333333333333333, 0.3333333333333333)
    """
    fewest = math.lcm(cores, ports)
    return FlowSet.crafted(fewest if fewest <= _HASH_VALUES else cores, ports=ports)


def _solved(point: SweepPoint, model: RouterModel, load: OfferedLoad, *, has_load: bool) -> SweepPoint:
    try:
        if has_load:
            trial = Solve(model=model).trial(load, 1.0)
            return replace(point, trial=trial, bottleneck=trial.bottleneck, notes=trial.notes)
        overloaded = rates_of(model, load, overload=True)
        forwarded_pps = max(float(overloaded.offered.sum()) - sum(overloaded.drops_pps().values()), 0.0)
        throughput = throughput_of(model, load)
        unknown = f"above the rate without loss: {throughput.reason}"
        return replace(
            point,
            lossless_pps=throughput.rate_pps,
            lossless_is_at_least=throughput.is_at_least,
            overloads_nothing_pps=throughput.overloads_nothing_pps,
            maximum_pps=capacity_pps(model, load),
            bottleneck=resources_of(overloaded, forwarded_pps=forwarded_pps)[1],
            notes=(*overloaded.notes, *([unknown] if throughput.is_at_least else [])),
        )
    except EnvironmentProblem:
        raise
    except RoutecastError as problem:
        return replace(point, problem=str(problem))


def _simulated(
    point: SweepPoint,
    model: RouterModel,
    load: OfferedLoad,
    *,
    has_load: bool,
    duration_s: float | None,
    seed: int,
    prepare: Prepare,
) -> SweepPoint:
    from routecast.evaluate.simulate import Simulate

    try:
        if not has_load:
            load = load.at(intended_of(flow_graph(model, load), load, overload=True))
        simulator = prepare(Simulate(model, seed=seed), load, duration_s or SIMULATED_S)
        trial = trial_past_transient(simulator, load, duration_s)
    except EnvironmentProblem:
        raise
    except RoutecastError as problem:
        message = f"not simulated: {problem}"
        return replace(point, problem=f"{point.problem}; {message}" if point.problem else message)
    return replace(point, simulated=trial)


def trial_past_transient(simulator: Simulate, load: OfferedLoad, duration_s: float | None) -> Trial:
    """Simulate for the given time; for None, until the transient ends and the mean latency has an interval."""
    if load.arrivals.trace is not None:
        return simulator.trial(load, duration_s or load.arrivals.trace.length_s)
    tried_s = duration_s or SIMULATED_S
    for _ in range(_MAX_TRIES if duration_s is None else 0):
        try:
            trial = simulator.trial(load, tried_s)
        except TransientProblem as problem:
            tried_s = 1.5 * problem.needed_s
            continue
        if not _is_too_short(trial):
            return trial
        tried_s *= _LENGTHENING
    return simulator.trial(load, tried_s)


def _is_too_short(trial: Trial) -> bool:
    """Return whether a simulated trial has a mean latency without an interval."""
    return trial.latency is not None and "latency.mean_s" not in trial.interval


def _notes(points: Sequence[SweepPoint], *, has_load: bool, simulates: bool, has_followed: bool) -> Iterator[str]:
    counts = sorted({point.flows for point in points})
    number = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    if has_followed:
        yield (
            f"Flows follow the cores: as many crafted flows as fill cores and ports evenly ({number}), whatever the "
            "file says; --flows N fixes their number."
        )
        if max(int(point.settings["cores"]) for point in points) > _HASH_VALUES:
            yield f"Hashes choose among {_HASH_VALUES} places: flows do not fill more cores than that evenly."
    elif "cores" in points[0].settings:
        yield f"Flows do not follow the cores ({number}): their number is fixed."
    if simulates and not has_load:
        yield "Simulated is what is forwarded with line rate offered to every port: a maximum, not a rate without loss."
