"""Running a study: calibrate, evaluate every task, compare, report."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from routecast import __version__
from routecast.evaluate.ledger import Columns, Row
from routecast.evaluate.plain import pick
from routecast.evaluate.points import Point, read_router_points
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.router.model import RouterModel
from routecast.study.document import StudyFile
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.result import Criterion, ErrorSummary, Statement, StudyResult, criteria_of
from routecast.study.tables.document import FlowsForLinks, Scenario, Study, several

if TYPE_CHECKING:
    from routecast.calibration import FittedRouter
    from routecast.calibration.eq5 import Eq5Router
    from routecast.calibration.priors import Priors
    from routecast.calibration.router_file import RouterFile

__all__ = [
    "COLUMNS",
    "ComparedPoint",
    "Conditions",
    "Curve",
    "Hypothesis",
    "LinksFilled",
    "ParameterRow",
    "PredictedMaximum",
    "PredictedWorkload",
    "Row",
    "TablesResult",
    "Workload",
    "answer",
    "check_answerable",
    "read_measured",
    "router_file_of",
]


class Conditions(NamedTuple):
    """The conditions of a prediction, without its frames.

    No number of flows is as many as every core needs, no cap one that does not limit.
    """

    cores: int
    flows: int | None
    link_bps: float
    ports: int
    nic_cap_pps: float | None

    @property
    def is_random(self) -> bool:
        """Whether flows are drawn at random, so that they fall on the cores by chance."""
        return self.flows is not None and self.flows > self.cores

    @property
    def busy_cores(self) -> int:
        """Cores that have work."""
        return self.cores if self.flows is None else min(self.flows, self.cores)

    @property
    def busy_ports(self) -> int:
        """Ports that have a flow."""
        return self.ports if self.flows is None else min(self.flows, self.ports)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedWorkload:
    """What is predicted for one workload; rates in frames per second, NaN where nobody was asked.

    ``solved_pps`` and ``simulated_pps`` are the two evaluators' answers for the calibrated router, ``baseline_…`` the
    same for the baseline's law. ``low_pps`` to ``high_pps`` is the 95 % prediction interval of a measurement.
    ``contention_ratio`` is c(k): how many times longer a frame takes because all cores that have a flow work at once.
    """

    cores: int
    flows: int | None
    frame_bytes: float
    frames: str
    link_bps: float
    ports: int
    nic_cap_pps: float | None
    solved_pps: float
    simulated_pps: float
    low_pps: float
    high_pps: float
    limit: str
    contention_ratio: float
    baseline_pps: float = math.nan
    baseline_simulated_pps: float = math.nan

    @property
    def setting(self) -> Conditions:
        """Its conditions without the frames."""
        return Conditions(self.cores, self.flows, self.link_bps, self.ports, self.nic_cap_pps)

    @property
    def busy_cores(self) -> int:
        """Cores that have work."""
        return self.setting.busy_cores

    @property
    def is_mix(self) -> bool:
        """Whether the frames are of several sizes, of which ``frame_bytes`` is the mean."""
        return self.frames != f"{self.frame_bytes} B"

    @property
    def predicted_pps(self) -> float:
        """The prediction: the closed form's, or the simulator's where only that was asked."""
        return self.simulated_pps if math.isnan(self.solved_pps) else self.solved_pps

    @property
    def l1_bits(self) -> float:
        """Bits of wire that a frame occupies (S1)."""
        return 8.0 * (self.frame_bytes + 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The calibrated law over frame size in one setting, with its 95 % prediction interval."""

    setting: Conditions
    frame_bytes: tuple[float, ...]
    predicted_pps: tuple[float, ...]
    low_pps: tuple[float, ...]
    high_pps: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPoint:
    """A measured point and what was predicted for it; ``calibrates`` if the calibration has seen it."""

    SUMMARY: ClassVar = (
        "*estimate",
        *("measured_pps", "reported_pps", "calibrates", "error_ratio=predicted_error_ratio", "covered=is_covered"),
    )

    measured_pps: float
    reported_pps: float
    calibrates: bool
    estimate: PredictedWorkload

    def error_ratio(self, value_pps: float) -> float:
        """Relative error of a value against the measured one."""
        return value_pps / self.measured_pps - 1.0

    @property
    def predicted_error_ratio(self) -> float:
        """Relative error of the prediction."""
        return self.error_ratio(self.estimate.predicted_pps)

    @property
    def is_covered(self) -> bool:
        """Whether the 95 % interval holds the measured value."""
        return self.estimate.low_pps <= self.measured_pps <= self.estimate.high_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksFilled:
    """Which numbers of crafted flows fill all links with one frame size, beside how many a source says it takes.

    ``fewer_…`` is the throughput with the largest number of flows below the stated one (0 where there is none),
    ``stated_…`` with the stated one. ``baseline_…`` is the same for the baseline's law.
    """

    scenario: str
    frame_bytes: float
    frames: str
    stated_flows: int
    fewer_flows: int
    most_flows: int
    links_l1_bps: float
    predicted_flows: tuple[int, ...]
    baseline_flows: tuple[int, ...]
    fewer_predicted_l1_bps: float
    fewer_baseline_l1_bps: float
    stated_predicted_l1_bps: float
    stated_baseline_l1_bps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRow:
    """One calibrated parameter, its 95 % interval where one is known, its unit and what it means."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """A law of contention that may hold, and the weight that the points give it."""

    name: str
    formula: str
    weight_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesResult(StudyResult[Study]):
    """All that a study found."""

    law: str
    hypotheses: tuple[Hypothesis, ...]
    parameters: tuple[ParameterRow, ...]
    calibrating: tuple[Point, ...]
    measured: tuple[Point, ...]
    comparisons: tuple[ComparedPoint, ...]
    scenarios: Mapping[str, tuple[PredictedWorkload, ...]]
    curves: Mapping[str, tuple[Curve, ...]]
    next_points: tuple[str, ...]
    links_filled: tuple[LinksFilled, ...] = ()
    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def held_out(self) -> tuple[ComparedPoint, ...]:
        """The points that the calibration has not seen."""
        return tuple(row for row in self.comparisons if not row.calibrates)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out points inside their 95 % intervals."""
        return fmean(row.is_covered for row in self.held_out) if self.held_out else math.nan

    def spoken_of(self, scenario: str) -> PredictedWorkload:
        """Return the point that stands for a scenario where there is room for one: smallest frames, most busy cores.

        Of points with as many busy cores it is the one with crafted flows, for chance has no part in it, then the one
        with most flows, which spread most evenly.
        """
        return min(
            self.scenarios[scenario],
            key=lambda point: (
                point.frame_bytes,
                -point.busy_cores,
                point.setting.is_random,
                -(point.flows or point.cores),
            ),
        )

    def errors(self) -> dict[str, ErrorSummary]:
        """Summaries by model over the held-out points."""
        return {model: ErrorSummary.of(errors) for model, errors in self._errors(self.held_out).items()}

    def errors_everywhere(self) -> dict[str, ErrorSummary]:
        """Summaries by model over all points, as papers give them."""
        return {model: ErrorSummary.of(errors) for model, errors in self._errors(self.comparisons).items()}

    @staticmethod
    def _errors(rows: Iterable[ComparedPoint]) -> dict[str, list[float]]:
        errors: dict[str, list[float]] = {key: [] for key in ("solve", "simulate", "baseline", "reported")}
        for row in rows:
            errors["solve"].append(row.error_ratio(row.estimate.solved_pps))
            errors["simulate"].append(row.error_ratio(row.estimate.simulated_pps))
            errors["baseline"].append(row.error_ratio(row.estimate.baseline_pps))
            errors["reported"].append(row.error_ratio(row.reported_pps))
        return errors

    @property
    def _stated(self) -> tuple[str, ...]:
        return ("links_filled", "statements") if self.statements else ()

    def _findings(self) -> dict[str, object]:
        return {
            **pick(self, "law", "hypotheses", "parameters"),
            "held_out": {"coverage_ratio": self.coverage_ratio, "errors": self.errors()},
            "all_points": {"errors": self.errors_everywhere()},
            "calibrating": [
                {"flows": p.flows, "frame_bytes": int(p.frame_bytes), "throughput_pps": p.throughput_pps}
                for p in self.calibrating
            ],
            **pick(self, "rows=comparisons", "scenarios", *self._stated, "next_points"),
        }


COLUMNS: Columns = {
    **dict.fromkeys(("task", "law", "evaluator"), "text"),
    "cores": "whole",
    "ports": "whole",
    **dict.fromkeys(("link_bps", "nic_cap_pps"), "number"),
    **dict.fromkeys(("flows", "seed", "flow_seed"), "whole"),
    "frames": "text",
    "frame_bytes": "number",
    **dict.fromkeys(("duration_s", "intended_pps", "offered_pps", "forwarded_pps"), "number"),
    **dict.fromkeys(("loss_ratio", "l1_bps", "l2_bps"), "number"),
    **dict.fromkeys(("offered_frames", "forwarded_frames", "dropped_frames", "in_flight_frames"), "whole"),
    "latency_mean_s": "number",
    **dict.fromkeys(("bottleneck_kind", "bottleneck", "bottleneck_reason"), "text"),
}
"""Columns of ``results.parquet``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A router's size and what it is loaded with: full line rate on every port, split evenly over the flows.

    Up to as many flows as cores are crafted to fall on different cores; more are random, and the NIC's hash spreads
    them (Meyer et al. 2014, sec. VI-A.1). Without a number of flows there are as many crafted ones as fill cores and
    ports evenly. ``frame_bytes`` is the mean of a ``frame_mix``.
    """

    cores: int
    ports: int
    link_bps: float
    flows: int | None
    frame_bytes: float
    frame_mix: FrameMix | None = None
    nic_cap_pps: float | None = None

    @property
    def setting(self) -> Conditions:
        """Its conditions without the frames."""
        return Conditions(self.cores, self.flows, self.link_bps, self.ports, self.nic_cap_pps)

    @property
    def frames(self) -> FrameMix:
        """What is offered."""
        return self.frame_mix or FrameMix.fixed(int(self.frame_bytes))

    @property
    def is_crafted(self) -> bool:
        """Whether flows are made to fall on different cores."""
        return not self.setting.is_random

    @property
    def busy_cores(self) -> int:
        """Cores that have work."""
        return self.setting.busy_cores

    @property
    def line_rate_pps(self) -> float:
        """Frames per second that the ports with a flow can take in together."""
        return self.setting.busy_ports * line_rate_pps(self.link_bps, self.frame_bytes)

    def load(self, flow_seed: int) -> OfferedLoad:
        """Return the offered load; ``flow_seed`` draws the random flows."""
        return OfferedLoad(
            rate_pps=self.ports * line_rate_pps(self.link_bps, self.frame_bytes),
            frames=self.frames,
            flows=_flows(self.flows or self._even_flows, self.ports, None if self.is_crafted else flow_seed),
            arrivals=Arrivals.cbr(),
        )

    @property
    def _even_flows(self) -> int:
        """Fewest crafted flows that fill cores and ports evenly; cores alone where hash values are too few."""
        both = math.lcm(self.cores, self.ports)
        return both if both <= _HASHES else self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One trial: a law's model under a workload, answered by one evaluator."""

    law: str
    evaluator: str
    workload: Workload
    model: RouterModel
    duration_s: float
    seed: int
    flow_seed: int

    @property
    def key(self) -> str:
        """Hash of all that decides the result, the package's version included."""
        decisive = (__version__, self.law, self.evaluator, self.workload, self.model, self.duration_s)
        seed = self.seed if self.evaluator == "simulate" else None
        flow_seed = None if self.workload.is_crafted else self.flow_seed
        return hashlib.sha256(repr((*decisive, seed, flow_seed)).encode()).hexdigest()[:24]


@lru_cache
def _flows(count: int, ports: int, seed: int | None) -> FlowSet:
    """Return crafted flows, or random ones where there is a seed."""
    if seed is None:
        return FlowSet.crafted(count, ports=ports)
    return FlowSet.random(count, seed=seed, ports=ports)


def run_task(key: str, task: Task) -> Row:
    """Run one trial and return its line of the results, entered under ``key``."""
    trial = _evaluator(task).trial(task.workload.load(task.flow_seed), task.duration_s)
    return {"task": key, "law": task.law, **_workload_cells(task), **_trial_cells(trial)}


def _evaluator(task: Task) -> Evaluator:
    if task.evaluator == "solve":
        from routecast.evaluate.solve import Solve  # each study pays for the evaluators it uses

        return Solve(model=task.model)
    from routecast.evaluate.simulate import Simulate

    # Overload is asked for its throughput, which settles long before the latency of a filling queue does.
    return Simulate(task.model, seed=task.seed, steady_state=False)


def _workload_cells(task: Task) -> Row:
    load = task.workload
    return {
        "evaluator": task.evaluator,
        "cores": load.cores,
        "ports": load.ports,
        "link_bps": load.link_bps,
        "nic_cap_pps": load.nic_cap_pps,
        "flows": load.flows,
        "frames": load.frames.name,
        "frame_bytes": load.frame_bytes,
        "seed": task.seed,
        "flow_seed": task.flow_seed,
        "duration_s": task.duration_s,
    }


def _trial_cells(trial: Trial) -> Row:
    return {
        "intended_pps": trial.intended_pps,
        "offered_pps": trial.offered_pps,
        "forwarded_pps": trial.forwarded_pps,
        "loss_ratio": trial.loss_ratio,
        "l1_bps": trial.l1_bps,
        "l2_bps": trial.l2_bps,
        "offered_frames": trial.offered_frames,
        "forwarded_frames": trial.forwarded_frames,
        "dropped_frames": trial.dropped_frames,
        "in_flight_frames": trial.in_flight_frames,
        "latency_mean_s": trial.latency.mean_s if trial.latency else None,
        "bottleneck_kind": trial.bottleneck.kind,
        "bottleneck": trial.bottleneck.name,
        "bottleneck_reason": trial.bottleneck.reason,
    }


NEXT_POINTS = 3
"""Measurements that a report suggests."""


class Law(Protocol):
    """Something calibrated that makes a router model for a workload."""

    @property
    def name(self) -> str:
        """Name in the results."""
        ...

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        """Return the router that the workload runs on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedMaximum:
    """A predicted maximum, its 95 % prediction interval, what limits it, and c(k) of the cores that have flows."""

    throughput_pps: float
    low_pps: float
    high_pps: float
    limit: str
    contention_ratio: float


class CalibratedLaw(Law, Protocol):
    """A law that also knows how sure it is."""

    @property
    def description(self) -> str:
        """The law as a formula."""
        ...

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The laws of contention that it averages over, heaviest first; empty if there is one only."""
        ...

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        """What was fitted."""
        ...

    def remarks(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        """Return what speaks against the points, what may happen at the targets, and which facts to find out."""
        ...

    def next_points(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        """Return the measurements that would narrow the predictions at the targets most, in words, best first."""
        ...

    def predict(self, loads: Sequence[Workload]) -> tuple[PredictedMaximum, ...]:
        """Return the predictions with their intervals."""
        ...


@dataclass(frozen=True, slots=True)
class _Baseline:
    """Eqs. 5 to 7 of Meyer et al. 2014: the service time is fixed by the number of cores that have a flow."""

    router: Eq5Router
    name: str = "eq5"

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        return self.router.router_model(
            load.cores,
            load.frame_bytes,
            flows=load.flows or load.cores,
            link_bps=load.link_bps,
            ports=load.ports,
            queue_frames=queue_frames,
            nic_cap_pps=load.nic_cap_pps,
        )


@dataclass(frozen=True, slots=True)
class _Calibrated:
    """routecast's own law."""

    router: FittedRouter
    priors: Priors | None = None
    name: str = "routecast"

    def model(self, load: Workload, queue_frames: int) -> RouterModel:
        return self.router.router_model(
            load.cores,
            load.frame_bytes,
            link_bps=load.link_bps,
            ports=load.ports,
            queue_frames=queue_frames,
            nic_cap_pps=load.nic_cap_pps,
        )

    @property
    def description(self) -> str:
        return "x = (T_c + S·T_d)·c(k)"

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        return tuple(
            Hypothesis(name=each.law.name, formula=each.law.formula, weight_ratio=each.weight)
            for each in self.router.fitted
        )

    @property
    def parameters(self) -> tuple[ParameterRow, ...]:
        return tuple(
            ParameterRow(name=p.name, value=p.value, low=p.low, high=p.high, unit=p.unit, meaning=p.meaning)
            for p in self.router.parameters.values()
        )

    def remarks(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        from routecast.calibration.facts import open_facts

        points = [_point(load) for load in targets]
        facts = open_facts(self.router, points, priors=self.priors)
        return (*self.router.warnings, *self.router.remarks(points), *(f"ask first: {fact.text}" for fact in facts))

    def next_points(self, targets: Sequence[Workload]) -> tuple[str, ...]:
        points = [_point(load) for load in targets]
        return tuple(str(point) for point in self.router.next_points(NEXT_POINTS, targets=points))

    def predict(self, loads: Sequence[Workload]) -> tuple[PredictedMaximum, ...]:
        predictions = self.router.predict([_point(load) for load in loads])
        contention = {k: self._contention_ratio(k) for k in {load.busy_cores for load in loads}}
        return tuple(
            PredictedMaximum(
                throughput_pps=p.throughput_pps,
                low_pps=p.low_pps,
                high_pps=p.high_pps,
                limit=p.limit,
                contention_ratio=contention[load.busy_cores],
            )
            for load, p in zip(loads, predictions, strict=True)
        )

    def _contention_ratio(self, cores: int) -> float:
        """Return c(k) as the table of parameters has it, or the average over the laws at k that it does not have."""
        from routecast.calibration.forward import REFERENCE_BYTES  # NumPy

        named = self.router.parameters.get(f"c({cores})")
        if named is not None:
            return named.value
        return self.router.service_s(cores, REFERENCE_BYTES) / self.router.service_s(1, REFERENCE_BYTES)


def fit_law(study: Study, measured: Sequence[Point]) -> CalibratedLaw:
    """Calibrate routecast's law.

    Raises FitProblem: the points do not carry it.
    """
    from routecast.calibration.priors import read_priors

    return _Calibrated(_fitted(study, measured), read_priors(without=study.measurements.left_out))


def _fitted(study: Study, measured: Sequence[Point]) -> FittedRouter:
    from routecast.calibration import fit  # SciPy
    from routecast.calibration.priors import read_priors

    return fit(measured, series=study.name, priors=read_priors(without=study.measurements.left_out))


def router_file_of(file: StudyFile[Study], *, today: date) -> RouterFile:
    """Return the router that the study calibrates, as a router file for the cores that it predicts.

    Raises RoutecastError: a table cannot be read, or the points do not carry a calibration.
    """
    from routecast.calibration.router_file import router_file

    study, table = file.study, file.study.measurements.calibrate
    measured = read_measured(file, study.measurements.validate_with)
    loads = [load for scenario in study.scenario for load in _scenario_workloads(study, scenario.name)]
    fitted = _fitted(study, read_measured(file, table))
    return router_file(fitted, [*measured, *map(_point, loads)], source=table, today=today)


def fit_baseline(study: Study, measured: Sequence[Point]) -> Law:
    """Calibrate eq. 5 of Meyer et al. 2014.

    Raises FitProblem: there are fewer than four points, or they do not tell its coefficients apart.
    """
    from routecast.calibration.eq5 import fit_eq5  # NumPy

    return _Baseline(fit_eq5(measured, series=study.name))


def _point(load: Workload) -> Point:
    from routecast.evaluate.points import Point

    return Point(
        cores=load.cores,
        frame_bytes=load.frame_bytes,
        throughput_pps=math.nan,
        flows=load.flows,
        link_bps=load.link_bps,
        ports=load.ports,
        nic_cap_pps=load.nic_cap_pps,
        frame_mix=load.frame_mix,
    )


LINE_STEPS = 24
"""Steps of frame size that a line of a figure is drawn with."""

BAND_NEIGHBOURS = 3
"""Frame sizes on each side that a band's edge is averaged with."""

_HASHES = 128
"""Crafted flows have so many hash values (:meth:`~routecast.load.flows.FlowSet.crafted`)."""

MEASURING_SLACK = 1.01
"""No measurement exceeds line rate by more: the clocks of links and testers differ, rates are rounded."""

RANDOM_FLOW_DRAWS = 5
"""Random flows fall on the cores by chance; their throughput is the mean over this many draws."""


@dataclass(frozen=True, slots=True)
class _Laws:
    calibrated: CalibratedLaw
    baseline: Law | None

    def __iter__(self) -> Iterator[Law]:
        yield self.calibrated
        if self.baseline:
            yield self.baseline


def answer(run: StudyRun[Study]) -> TablesResult:
    """Calibrate, evaluate every workload, compare with what was measured.

    Raises RoutecastError: a table cannot be read, or the points do not carry a calibration.
    """
    study = run.study
    calibrating = read_measured(run, study.measurements.calibrate)
    validating = read_measured(run, study.measurements.validate_with)
    baseline = fit_baseline(study, calibrating) if study.measurements.baseline != "none" else None
    laws = _Laws(fit_law(study, calibrating), baseline)
    compared = [_measured_workload(point) for point in validating]
    forecast = {scenario.name: _scenario_workloads(study, scenario.name) for scenario in study.scenario}
    workloads = list(dict.fromkeys([*compared, *(load for loads in forecast.values() for load in loads)]))
    lines = {name: _line_workloads(study, loads) for name, loads in forecast.items()}
    only_lines = [load for loads in lines.values() for load in loads if load not in set(workloads)]
    tasks = {task.key: task for load in workloads for task in _tasks(study, laws, load)}
    tasks |= {
        task.key: task for load in only_lines for task in _tasks(study, _Laws(laws.calibrated, None), load, ("solve",))
    }
    run.work = len(tasks)
    with run.ledger(COLUMNS) as ledger:
        rows = run.complete(
            ledger,
            (
                StudyTask(
                    key=key, title=f"{task.evaluator} {task.workload.frames.name}", call=partial(run_task, key, task)
                )
                for key, task in tasks.items()
            ),
        )
    estimates = _estimates(laws, [*workloads, *dict.fromkeys(only_lines)], rows)
    calibrated = {point.conditions for point in calibrating}
    comparisons = tuple(
        ComparedPoint(
            measured_pps=point.throughput_pps,
            reported_pps=point.reported_pps,
            calibrates=point.conditions in calibrated,
            estimate=estimates[load],
        )
        for point, load in zip(validating, compared, strict=True)
    )
    scenarios = {name: tuple(estimates[load] for load in loads) for name, loads in forecast.items()}
    filled = [each for scenario in study.scenario for each in _links_filled(scenario, scenarios[scenario.name])]
    return TablesResult(
        study=study,
        out=run.out,
        law=laws.calibrated.description,
        hypotheses=laws.calibrated.hypotheses,
        parameters=laws.calibrated.parameters,
        calibrating=calibrating,
        measured=measured_points(run),
        comparisons=comparisons,
        scenarios=scenarios,
        links_filled=tuple(row for _, rows in filled for row in rows),
        statements=tuple(_flows_statement(stated, rows) for stated, rows in filled),
        curves={name: _curves({load: estimates[load] for load in loads}) for name, loads in lines.items()},
        next_points=laws.calibrated.next_points([load for loads in forecast.values() for load in loads]),
        criteria=(*_criteria(study, comparisons), *(_flows_criterion(*judged) for judged in filled if judged[1])),
        notes=laws.calibrated.remarks([load for loads in forecast.values() for load in loads]),
        provenance=run.provenance(seed=study.evaluate.seed),
    )


def check_answerable(file: StudyFile[Study]) -> None:
    """Refuse a study whose points carry no calibration, or one of whose routers cannot be built.

    Raises RoutecastError: as :func:`answer`, which takes longer.
    """
    study = file.study
    law = fit_law(study, read_measured(file, study.measurements.calibrate))
    measured = [_measured_workload(point) for point in read_measured(file, study.measurements.validate_with)]
    forecast = [load for scenario in study.scenario for load in _scenario_workloads(study, scenario.name)]
    for load in (*measured, *forecast):
        law.model(load, study.router.queue)


def read_measured(file: StudyFile[Study] | StudyRun[Study], table: str) -> tuple[Point, ...]:
    """Read a table of measured maxima of the study's router, one row per number of flows and frame size.

    Raises FileProblem: with every fault of the table and its place.
    """
    router = file.study.router
    return read_router_points(
        file.folder / table, cores=router.cores, link_bps=router.link, ports=router.ports, series=file.study.name
    )


def measured_points(file: StudyFile[Study] | StudyRun[Study]) -> tuple[Point, ...]:
    """Return all that was measured of the study's router, marked where it calibrates.

    Raises FileProblem: as :func:`read_measured`.
    """
    table = file.study.measurements
    marked = [replace(point, calibrate=True) for point in read_measured(file, table.calibrate)]
    conditions = {point.conditions for point in marked}
    others = read_measured(file, table.validate_with) if table.validate_with != table.calibrate else ()
    return (*marked, *(point for point in others if point.conditions not in conditions))


def _measured_workload(point: Point) -> Workload:
    assert point.link_bps is not None
    assert point.flows is not None
    return Workload(
        cores=point.cores,
        ports=point.ports,
        link_bps=point.link_bps,
        flows=point.flows,
        frame_bytes=int(point.frame_bytes),
    )


def _scenario_workloads(study: Study, name: str) -> list[Workload]:
    scenario = next(scenario for scenario in study.scenario if scenario.name == name)
    conditions = (scenario.cores, scenario.link, scenario.ports, scenario.nic_cap, scenario.flows, scenario.frames)
    return [
        Workload(
            cores=cores or study.router.cores,
            ports=ports or study.router.ports,
            link_bps=link_bps or study.router.link,
            nic_cap_pps=nic_cap_pps,
            flows=flows,
            frame_bytes=frames.sequence_bytes[0] if frames.is_fixed else frames.mean_bytes,
            frame_mix=None if frames.is_fixed else frames,
        )
        for cores, link_bps, ports, nic_cap_pps, flows, frames in product(*map(several, conditions))
    ]


def _line_workloads(study: Study, loads: Sequence[Workload]) -> list[Workload]:
    """Return the workloads that a scenario's lines go through: many frame sizes where one trial of each suffices.

    Mixes lie on no line; a scenario that has nothing else has none.
    """
    loads = [load for load in loads if load.frame_mix is None]
    if not loads:
        return []
    smallest, largest = (edge(load.frame_bytes for load in loads) for edge in (min, max))
    steps = (round(smallest * (largest / smallest) ** (i / LINE_STEPS)) for i in range(LINE_STEPS + 1))
    dense = set(steps) if "solve" in study.evaluate.evaluators else set()
    sizes = sorted(dense | {load.frame_bytes for load in loads})
    firsts = {load.setting: load for load in loads}.values()
    return [replace(first, frame_bytes=size) for first in firsts for size in sizes]


def _tasks(study: Study, laws: _Laws, load: Workload, evaluators: Sequence[str] | None = None) -> Iterable[Task]:
    seed = study.evaluate.seed
    draws = range(seed, seed + (1 if load.is_crafted else RANDOM_FLOW_DRAWS))
    for law in laws:
        model = law.model(load, study.router.queue)
        for evaluator in evaluators or study.evaluate.evaluators:
            for flow_seed in draws:
                yield Task(
                    law=law.name,
                    evaluator=evaluator,
                    workload=load,
                    model=model,
                    duration_s=study.evaluate.duration,
                    seed=seed,
                    flow_seed=flow_seed,
                )


def _estimates(laws: _Laws, workloads: Sequence[Workload], rows: Iterable[Row]) -> dict[Workload, PredictedWorkload]:
    rates: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("law", "evaluator", *Conditions._fields, "frames"))
        rates.setdefault(key, []).append(float(row["forwarded_pps"] or 0.0))

    def mean_pps(law: Law | None, evaluator: str, load: Workload) -> float:
        key = (law.name if law else "", evaluator, *load.setting, load.frames.name)
        return fmean(rates[key]) if key in rates else math.nan

    estimates = {}
    for load, prediction in zip(workloads, laws.calibrated.predict(workloads), strict=True):
        solved, simulated = (mean_pps(laws.calibrated, name, load) for name in ("solve", "simulate"))
        # The law's interval knows neither how random flows fall on the cores nor how unequal flows share the links.
        shift = (simulated if math.isnan(solved) else solved) / prediction.throughput_pps
        estimates[load] = PredictedWorkload(
            **load.setting._asdict(),
            frame_bytes=load.frame_bytes,
            frames=load.frames.name,
            solved_pps=solved,
            simulated_pps=simulated,
            low_pps=prediction.low_pps * shift,
            high_pps=min(prediction.high_pps * shift, MEASURING_SLACK * load.line_rate_pps),
            limit=prediction.limit,
            contention_ratio=prediction.contention_ratio,
            baseline_pps=mean_pps(laws.baseline, "solve", load),
            baseline_simulated_pps=mean_pps(laws.baseline, "simulate", load),
        )
    return estimates


def _curves(estimates: Mapping[Workload, PredictedWorkload]) -> tuple[Curve, ...]:
    curves = []
    for setting in dict.fromkeys(load.setting for load in estimates):
        loads = sorted((load for load in estimates if load.setting == setting), key=lambda load: load.frame_bytes)
        points = [estimates[load] for load in loads]
        low = _smooth([e.low_pps / e.predicted_pps for e in points])
        high = _smooth([e.high_pps / e.predicted_pps for e in points])
        most = [MEASURING_SLACK * load.line_rate_pps for load in loads]
        curves.append(
            Curve(
                setting=setting,
                frame_bytes=tuple(load.frame_bytes for load in loads),
                predicted_pps=tuple(e.predicted_pps for e in points),
                low_pps=tuple(e.predicted_pps * ratio for e, ratio in zip(points, low, strict=True)),
                high_pps=tuple(
                    min(e.predicted_pps * ratio, cap) for e, ratio, cap in zip(points, high, most, strict=True)
                ),
            )
        )
    return tuple(curves)


def _smooth(values: Sequence[float]) -> list[float]:
    """Return means of each value and its neighbours: the ends of an interval come from samples, each with its noise."""
    reach = BAND_NEIGHBOURS
    return [fmean(values[max(i - reach, 0) : i + reach + 1]) for i in range(len(values))]


def _criteria(study: Study, comparisons: Sequence[ComparedPoint]) -> tuple[Criterion, ...]:
    everywhere, held_out = (
        ErrorSummary.of(row.predicted_error_ratio for row in rows)
        for rows in (comparisons, [row for row in comparisons if not row.calibrates])
    )
    reached = {
        "mean_over_all": everywhere.mean_abs_error_ratio,
        "mean_over_held_out": held_out.mean_abs_error_ratio,
        "max_over_held_out": held_out.max_abs_error_ratio,
    }
    bounds = study.criteria.model_dump(exclude_none=True)
    return criteria_of(*((name, bound, reached[name]) for name, bound in bounds.items()))


FILLED_RATIO = 1.0 / MEASURING_SLACK
"""Links are full from this share of their rates on: no tester can tell more."""


def _links_filled(
    scenario: Scenario, estimates: Sequence[PredictedWorkload]
) -> Iterator[tuple[FlowsForLinks, tuple[LinksFilled, ...]]]:
    """Yield what is stated of the flows that fill the links, and what is found: a row per other condition."""
    alike: dict[tuple[object, ...], dict[int, PredictedWorkload]] = {}
    for estimate in estimates:
        if estimate.flows is not None and not estimate.setting.is_random:
            alike.setdefault((estimate.setting._replace(flows=None), estimate.frames), {})[estimate.flows] = estimate
    for stated in scenario.flows_for_links:
        rows = [
            _filled_row(scenario, stated.flows, by_flows) for by_flows in alike.values() if stated.flows in by_flows
        ]
        yield stated, tuple(rows)


def _filled_row(scenario: Scenario, stated: int, by_flows: Mapping[int, PredictedWorkload]) -> LinksFilled:
    there = by_flows[stated]
    links_l1_bps = there.ports * there.link_bps
    fewer = max((flows for flows in by_flows if flows < stated), default=0)

    def l1_bps(flows: int, of: str) -> float:
        return getattr(by_flows[flows], of) * there.l1_bits if flows in by_flows else 0.0

    def filling(of: str) -> tuple[int, ...]:
        return tuple(flows for flows in sorted(by_flows) if l1_bps(flows, of) >= FILLED_RATIO * links_l1_bps)

    return LinksFilled(
        scenario=scenario.name,
        frame_bytes=there.frame_bytes,
        frames=there.frames,
        stated_flows=stated,
        fewer_flows=fewer,
        most_flows=max(by_flows),
        links_l1_bps=links_l1_bps,
        predicted_flows=filling("predicted_pps"),
        baseline_flows=filling("baseline_pps"),
        fewer_predicted_l1_bps=l1_bps(fewer, "predicted_pps"),
        fewer_baseline_l1_bps=l1_bps(fewer, "baseline_pps"),
        stated_predicted_l1_bps=l1_bps(stated, "predicted_pps"),
        stated_baseline_l1_bps=l1_bps(stated, "baseline_pps"),
    )


def _fewest(candidates: Iterable[tuple[int, ...]]) -> int | None:
    return min((flows[0] for flows in candidates if flows), default=None)


def _flows_statement(stated: FlowsForLinks, rows: Sequence[LinksFilled]) -> Statement:
    """Return the statement beside the fewest flows that fill the links with any frames, by either law."""
    if not rows:
        here = f"not judged: {stated.flows} flows, each with a core of its own, are not in the scenario"
        return Statement(says=stated.says, where=stated.place, stated=f"{stated.flows} flows", here=here)
    laws = {"predicted": _fewest(row.predicted_flows for row in rows)}
    if any(not math.isnan(row.stated_baseline_l1_bps) for row in rows):
        laws["by eqs. 5 to 7"] = _fewest(row.baseline_flows for row in rows)
    here = ", ".join(f"{flows or 'no number'} {name}" for name, flows in laws.items())
    filled = [row.frames for row in rows if row.predicted_flows]
    here += f", with frames of {', '.join(filled)} only" if 0 < len(filled) < len(rows) else ""
    return Statement(says=stated.says, where=stated.place, stated=f"{stated.flows} flows", here=here)


def _flows_criterion(stated: FlowsForLinks, rows: Sequence[LinksFilled]) -> Criterion:
    """Return whether so many flows fill the links with some frames, and fewer with none."""
    holds = _fewest(row.predicted_flows for row in rows) == stated.flows
    return Criterion(name=stated.says, bound=0.5, reached=0.0 if holds else 1.0)
