"""Run a study of tables: calibrate, evaluate every point, compare."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import lru_cache, partial
from itertools import chain, product
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from routecast.calibration.score import Prediction
from routecast.evaluate.ledger import Columns, Row
from routecast.evaluate.point_table import read_router_points
from routecast.evaluate.points import Point
from routecast.evaluate.protocol import Evaluator
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.quantity.comparison import ErrorSummary, coverage_ratio, held_out
from routecast.router.model import RouterModel
from routecast.study.document import StudyFile
from routecast.study.engine import StudyRun, StudyTask
from routecast.study.result import Criterion, Statement, StudyResult, criteria_of
from routecast.study.tables.document import FlowsForLinks, Scenario, Study, several
from routecast.version import VERSION

if TYPE_CHECKING:
    from routecast.calibration import FittedRouter
    from routecast.calibration.eq5 import Eq5Router
    from routecast.calibration.fitted import FittedLaw, Parameter
    from routecast.calibration.priors import Priors
    from routecast.calibration.recipe import Recipe
    from routecast.calibration.router_file import RouterFile

__all__ = [
    "COLUMNS",
    "LineSetting",
    "LinksFilled",
    "TableRow",
    "TablesResult",
    "answer",
    "check_answerable",
    "measured_points",
    "offered_load",
    "read_measured",
    "router_file_of",
]


NEXT_POINTS = 3
"""Measurements that a report suggests."""

LINE_STEPS = 24
"""Steps of frame size along a line of a figure."""

BAND_NEIGHBOURS = 3
"""Neighbouring frame sizes on each side in the mean that smooths a band's edge."""

_HASHES = 128
"""Number of hash values of crafted flows (:meth:`~routecast.load.flows.FlowSet.crafted`)."""

MEASURING_SLACK = 1.01
"""Greatest measured rate over line rate: clocks of links and testers differ, and rates are rounded."""

RANDOM_FLOW_DRAWS = 5
"""Draws of random flows, which fall on the cores by chance; their throughput is the mean over the draws."""

FILLED_RATIO = 1.0 / MEASURING_SLACK
"""Links count as full from this share of their rates on, within the accuracy of testers."""

RATES = ("intended_pps", "offered_pps", "forwarded_pps", "loss_ratio", "l1_bps", "l2_bps")
FRAMES = ("offered_frames", "forwarded_frames", "dropped_frames", "in_flight_frames")

COLUMNS: Columns = {
    **dict.fromkeys(("task", "law", "evaluator"), "text"),
    "cores": "whole",
    "ports": "whole",
    **dict.fromkeys(("link_bps", "nic_cap_pps"), "number"),
    **dict.fromkeys(("flows", "seed", "flow_seed"), "whole"),
    "frames": "text",
    "frame_bytes": "number",
    **dict.fromkeys(("duration_s", *RATES), "number"),
    **dict.fromkeys(FRAMES, "whole"),
    "latency_mean_s": "number",
    **dict.fromkeys(("arrivals", "bottleneck_kind", "bottleneck", "bottleneck_reason"), "text"),
}
"""Columns of ``results.parquet``."""


class LineSetting(NamedTuple):
    """The conditions without the frames, which the points on a line of a figure share.

    Without a number of flows every core has a flow; without a cap the network cards do not limit.
    """

    cores: int
    flows: int | None
    link_bps: float
    ports: int
    nic_cap_pps: float | None

    @classmethod
    def of(cls, point: Point) -> LineSetting:
        """Return the setting of a point."""
        return cls(point.cores, point.flows, _link_bps(point), point.ports, point.nic_cap_pps)

    @property
    def is_random(self) -> bool:
        """Whether the flows are random, and fall on the cores by chance."""
        return self.flows is not None and self.flows > self.cores


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow(Prediction):
    """A point with its measured and predicted rates, in frames per second; NaN where no evaluator answered.

    ``solved_pps`` and ``simulated_pps`` are the two evaluators' answers for the calibrated router, ``baseline_…`` the
    same for the baseline's law; the prediction is the closed form's, or the simulator's where only that answers.
    ``contention_ratio`` is c(k), the factor on the time of a frame while all cores that have a flow work at once.
    ``stated`` is the rate of the reported model.
    """

    solved_pps: float
    simulated_pps: float
    contention_ratio: float
    baseline_pps: float = math.nan
    baseline_simulated_pps: float = math.nan

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "cores": self.point.cores,
            "flows": self.point.flows,
            "frame_bytes": self.point.frame_bytes,
            "frames": self.frames,
            "link_bps": self.point.link_bps,
            "ports": self.point.ports,
            "nic_cap_pps": self.point.nic_cap_pps,
            "solved_pps": self.solved_pps,
            "simulated_pps": self.simulated_pps,
            "low_pps": self.low_pps,
            "high_pps": self.high_pps,
            "limit": self.limit,
            "contention_ratio": self.contention_ratio,
            "baseline_pps": self.baseline_pps,
            "baseline_simulated_pps": self.baseline_simulated_pps,
        }

    def compared_entries(self) -> dict[str, object]:
        """Return the entries of the summary of a row with a measured rate."""
        return {
            **self.plain_entries(),
            "measured_pps": self.measured,
            "reported_pps": self.stated,
            "calibrates": self.calibrates,
            "error_ratio": self.error_ratio,
            "covered": self.is_covered,
        }

    @property
    def setting(self) -> LineSetting:
        """Its conditions without the frames."""
        return LineSetting.of(self.point)

    @property
    def frames(self) -> str:
        """Name of the frames."""
        return frames_of(self.point).name

    @property
    def is_mix(self) -> bool:
        """Whether the frames are of several sizes, of which the point has the mean."""
        return self.point.frame_mix is not None

    @property
    def l1_bits(self) -> float:
        """Bits of wire that a frame occupies (S1)."""
        return 8.0 * (self.point.frame_bytes + 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksFilled:
    """The numbers of crafted flows that fill all links with one frame size, beside the number that a source states.

    ``stated_…`` is the throughput with the stated number of flows, ``fewer_…`` with the next smaller number of the
    scenario, or 0. ``…_baseline_…`` is the throughput by the baseline's law.
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

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "scenario": self.scenario,
            "frame_bytes": self.frame_bytes,
            "frames": self.frames,
            "stated_flows": self.stated_flows,
            "fewer_flows": self.fewer_flows,
            "most_flows": self.most_flows,
            "links_l1_bps": self.links_l1_bps,
            "model_flows": self.predicted_flows,
            "baseline_flows": self.baseline_flows,
            "fewer_model_l1_bps": self.fewer_predicted_l1_bps,
            "fewer_baseline_l1_bps": self.fewer_baseline_l1_bps,
            "stated_model_l1_bps": self.stated_predicted_l1_bps,
            "stated_baseline_l1_bps": self.stated_baseline_l1_bps,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TablesResult(StudyResult[Study]):
    """The results of a study of tables."""

    law: str
    hypotheses: tuple[FittedLaw, ...]
    parameters: tuple[Parameter, ...]
    calibrating: tuple[Point, ...]
    measured: tuple[Point, ...]
    recipe: Recipe | None
    comparisons: tuple[TableRow, ...]
    scenarios: Mapping[str, tuple[TableRow, ...]]
    curves: Mapping[str, Mapping[LineSetting, tuple[TableRow, ...]]]
    next_points: tuple[str, ...]
    links_filled: tuple[LinksFilled, ...] = ()
    statements: tuple[Statement, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def held_out(self) -> tuple[TableRow, ...]:
        """The points that do not calibrate."""
        return held_out(self.comparisons)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out points inside their 95 % intervals."""
        return coverage_ratio(self.held_out)

    def representative(self, scenario: str) -> TableRow:
        """Return the point that a text names for a scenario: the smallest frames on the most busy cores.

        Of points with as many busy cores, those with crafted flows come first, because they do not depend on chance,
        then those with the most flows, which spread most evenly.
        """
        return min(
            self.scenarios[scenario],
            key=lambda row: (
                row.point.frame_bytes,
                -row.point.working_cores,
                row.setting.is_random,
                -(row.point.flows or row.point.cores),
            ),
        )

    def errors(self) -> dict[str, ErrorSummary]:
        """Summaries by model over the held-out points."""
        return _errors(self.held_out)

    def errors_everywhere(self) -> dict[str, ErrorSummary]:
        """Summaries by model over all points, which papers usually report."""
        return _errors(self.comparisons)

    def _findings(self) -> dict[str, object]:
        return {
            "law": self.law,
            "hypotheses": [
                {"name": fitted.law.name, "formula": fitted.law.formula, "weight_ratio": fitted.weight}
                for fitted in self.hypotheses
            ],
            "parameters": [
                {
                    "name": parameter.name,
                    "value": parameter.value,
                    "low": parameter.low,
                    "high": parameter.high,
                    "unit": parameter.unit,
                    "meaning": parameter.meaning,
                }
                for parameter in self.parameters
            ],
            "held_out": {"coverage_ratio": self.coverage_ratio, "errors": self.errors()},
            "all_points": {"errors": self.errors_everywhere()},
            "calibrating": [
                {"flows": point.flows, "frame_bytes": int(point.frame_bytes), "throughput_pps": point.throughput_pps}
                for point in self.calibrating
            ],
            "rows": [row.compared_entries() for row in self.comparisons],
            "scenarios": self.scenarios,
            **({"links_filled": self.links_filled, "statements": self.statements} if self.statements else {}),
            "next_points": self.next_points,
            "calibrations": [self.recipe.to_json()] if self.recipe else [],
        }


def _errors(rows: Sequence[TableRow]) -> dict[str, ErrorSummary]:
    models = {"solve": "solved_pps", "simulate": "simulated_pps", "baseline": "baseline_pps", "reported": "stated"}
    return {
        model: ErrorSummary.of(row.error_ratio_of(getattr(row, name)) for row in rows) for model, name in models.items()
    }


def frames_of(point: Point) -> FrameMix:
    """Return the frames that are offered at a point."""
    return point.frame_mix or FrameMix.fixed(int(point.frame_bytes))


def offered_load(point: Point, flow_seed: int) -> OfferedLoad:
    """Return full line rate on every port, split evenly over the flows; ``flow_seed`` draws random flows.

    Up to as many flows as cores are crafted to fall on different cores. More flows are random, and the NIC's hash
    spreads them (Meyer et al. 2014, sec. VI-A.1). Without a number of flows there are as many crafted flows as load
    cores and ports evenly, or cores alone where there are too few hash values.
    """
    even_flows = math.lcm(point.cores, point.ports)
    flows = point.flows or (even_flows if even_flows <= _HASHES else point.cores)
    return OfferedLoad(
        rate_pps=point.ports * line_rate_pps(_link_bps(point), point.frame_bytes),
        frames=frames_of(point),
        flows=_flows(flows, point.ports, flow_seed if LineSetting.of(point).is_random else None),
        arrivals=Arrivals.cbr(),
    )


def _link_bps(point: Point) -> float:
    assert point.link_bps is not None
    return point.link_bps


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A trial of a law's model at a point by one evaluator."""

    law: str
    evaluator: str
    point: Point
    model: RouterModel
    duration_s: float
    seed: int
    flow_seed: int

    @property
    def key(self) -> str:
        """Hash of all conditions of the result and of the package's version."""
        conditions = (VERSION, self.law, self.evaluator, self.point, self.model, self.duration_s)
        seed = self.seed if self.evaluator == "simulate" else None
        flow_seed = self.flow_seed if LineSetting.of(self.point).is_random else None
        return hashlib.sha256(repr((*conditions, seed, flow_seed)).encode()).hexdigest()[:24]


@lru_cache
def _flows(count: int, ports: int, seed: int | None) -> FlowSet:
    """Return crafted flows, or random flows of a seed."""
    if seed is None:
        return FlowSet.crafted(count, ports=ports)
    return FlowSet.random(count, seed=seed, ports=ports)


def run_task(key: str, task: Task) -> Row:
    """Run a trial and return its row of the ledger, with ``key`` as its task."""
    trial = _evaluator(task).trial(offered_load(task.point, task.flow_seed), task.duration_s)
    return {
        "task": key,
        "law": task.law,
        "evaluator": task.evaluator,
        **LineSetting.of(task.point)._asdict(),
        "frames": frames_of(task.point).name,
        "frame_bytes": task.point.frame_bytes,
        "seed": task.seed,
        "flow_seed": task.flow_seed,
        "duration_s": task.duration_s,
        **{name: getattr(trial, name) for name in (*RATES, *FRAMES)},
        "latency_mean_s": trial.latency.mean_s if trial.latency else None,
        "arrivals": trial.arrivals,
        "bottleneck_kind": trial.bottleneck.kind,
        "bottleneck": trial.bottleneck.name,
        "bottleneck_reason": trial.bottleneck.reason,
    }


def _evaluator(task: Task) -> Evaluator:
    if task.evaluator == "solve":
        from routecast.evaluate.solve import Solve  # a study imports only the evaluators that it uses

        return Solve(model=task.model)
    from routecast.evaluate.simulate import Simulate

    # In overload the throughput settles long before the latency of a filling queue does.
    return Simulate(task.model, seed=task.seed, steady_state=False)


@dataclass(frozen=True, slots=True)
class BaselineLaw:
    """Eqs. 5 to 7 of Meyer et al. 2014: the service time is fixed by the number of cores that have a flow."""

    router: Eq5Router
    name: str = "eq5"

    def model(self, point: Point, queue_frames: int) -> RouterModel:
        """Return the router of a point."""
        return self.router.router_model(
            point.cores,
            point.frame_bytes,
            flows=point.flows or point.cores,
            link_bps=_link_bps(point),
            ports=point.ports,
            queue_frames=queue_frames,
            nic_cap_pps=point.nic_cap_pps,
        )


@dataclass(frozen=True, slots=True)
class CalibratedLaw:
    """routecast's own law, with intervals."""

    router: FittedRouter
    priors: Priors
    recipe: Recipe
    name: str = "routecast"
    description: str = "x = (T_c + S·T_d)·c(k)"

    def model(self, point: Point, queue_frames: int) -> RouterModel:
        """Return the router of a point."""
        return self.router.router_model(
            point.cores,
            point.frame_bytes,
            link_bps=_link_bps(point),
            ports=point.ports,
            queue_frames=queue_frames,
            nic_cap_pps=point.nic_cap_pps,
        )

    @property
    def hypotheses(self) -> tuple[FittedLaw, ...]:
        """The laws of contention in its average, heaviest first."""
        return self.router.fitted

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The fitted parameters."""
        return tuple(self.router.parameters.values())

    def remarks(self, targets: Sequence[Point]) -> tuple[str, ...]:
        """Return doubts on the points, risks at the targets, and the facts to find out first."""
        from routecast.calibration.facts import open_facts

        facts = open_facts(self.router, targets, priors=self.priors)
        return (*self.router.warnings, *self.router.remarks(targets), *(f"ask first: {fact.text}" for fact in facts))

    def next_points(self, targets: Sequence[Point]) -> tuple[str, ...]:
        """Return in words the measurements that would narrow the predictions at the targets most, best first."""
        return tuple(str(point) for point in self.router.next_points(NEXT_POINTS, targets=targets))

    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]:
        """Return the predicted maxima with their intervals."""
        return self.router.predict(points)

    def contention_ratio(self, cores: int) -> float:
        """Return c(k) of the table of parameters, or else the average over the laws at k."""
        from routecast.calibration.forward import REFERENCE_BYTES  # NumPy

        parameter = self.router.parameters.get(f"c({cores})")
        if parameter is not None:
            return parameter.value
        return self.router.service_s(cores, REFERENCE_BYTES) / self.router.service_s(1, REFERENCE_BYTES)


Law = CalibratedLaw | BaselineLaw


def fit_law(study: Study, measured: Sequence[Point]) -> CalibratedLaw:
    """Calibrate routecast's law.

    Raises FitProblem: the points do not determine it.
    """
    from routecast.calibration.priors import read_priors
    from routecast.calibration.recipe import Recipe  # SciPy

    left_out = study.measurements.left_out
    recipe = Recipe(points=tuple(measured), left_out=left_out)
    return CalibratedLaw(recipe.fitted(study.name), read_priors(without=left_out), recipe)


def router_file_of(file: StudyFile[Study], *, today: date) -> RouterFile:
    """Return the router that the study calibrates, as a router file for the cores that it predicts.

    Raises RoutecastError: a table cannot be read, or the points do not determine a calibration.
    """
    from routecast.calibration.router_file import router_file

    study, table = file.study, file.study.measurements.calibrate
    measured = read_measured(file, study.measurements.validate_with)
    forecast = [point for scenario in study.scenario for point in _scenario_points(study, scenario)]
    fitted = fit_law(study, read_measured(file, table)).router
    return router_file(fitted, [*measured, *forecast], source=table, today=today)


def fit_baseline(study: Study, measured: Sequence[Point]) -> BaselineLaw:
    """Calibrate eq. 5 of Meyer et al. 2014.

    Raises FitProblem: there are fewer than four points, or they do not determine its coefficients.
    """
    from routecast.calibration.eq5 import fit_eq5  # NumPy

    return BaselineLaw(fit_eq5(measured, series=study.name))


def answer(run: StudyRun[Study]) -> TablesResult:
    """Calibrate, evaluate every point, and compare with the measurements.

    Raises RoutecastError: a table cannot be read, or the points do not determine a calibration.
    """
    study = run.study
    calibrating = read_measured(run, study.measurements.calibrate)
    validating = read_measured(run, study.measurements.validate_with)
    law = fit_law(study, calibrating)
    baseline = fit_baseline(study, calibrating) if study.measurements.baseline != "none" else None
    compared = [_unmeasured(point) for point in validating]
    forecast = {scenario.name: _scenario_points(study, scenario) for scenario in study.scenario}
    targets = [point for points in forecast.values() for point in points]
    lines = {name: _line_points(study, points) for name, points in forecast.items()}
    points = {point.conditions: point for point in (*compared, *targets)}
    only_lines = {
        point.conditions: point for line in lines.values() for point in line if point.conditions not in points
    }
    tasks_by_point = [
        *(_tasks(study, (law, baseline) if baseline else (law,), point) for point in points.values()),
        *(_tasks(study, (law,), point, ("solve",)) for point in only_lines.values()),
    ]
    tasks = {task.key: task for task in chain.from_iterable(tasks_by_point)}
    run.work = len(tasks)
    with run.ledger(COLUMNS) as ledger:
        rows = run.complete(
            ledger,
            (
                StudyTask(
                    key=key, title=f"{task.evaluator} {frames_of(task.point).name}", call=partial(run_task, key, task)
                )
                for key, task in tasks.items()
            ),
        )
    predicted = _rows(law, baseline, [*points.values(), *only_lines.values()], rows)
    calibrated = {point.conditions for point in calibrating}
    comparisons = tuple(
        replace(
            predicted[point.conditions],
            measured=measured.throughput_pps,
            stated=measured.reported_pps,
            calibrates=measured.conditions in calibrated,
        )
        for measured, point in zip(validating, compared, strict=True)
    )
    scenarios = {name: tuple(predicted[point.conditions] for point in points) for name, points in forecast.items()}
    filled = [pair for scenario in study.scenario for pair in _links_filled(scenario, scenarios[scenario.name])]
    return TablesResult(
        study=study,
        out=run.out,
        law=law.description,
        hypotheses=law.hypotheses,
        parameters=law.parameters,
        calibrating=calibrating,
        recipe=law.recipe,
        measured=measured_points(run),
        comparisons=comparisons,
        scenarios=scenarios,
        links_filled=tuple(row for _, rows in filled for row in rows),
        statements=tuple(_flows_statement(stated, rows) for stated, rows in filled),
        curves={name: _curves([predicted[point.conditions] for point in line]) for name, line in lines.items()},
        next_points=law.next_points(targets),
        criteria=(*_criteria(study, comparisons), *(_flows_criterion(*row) for row in filled if row[1])),
        notes=law.remarks(targets),
        provenance=run.provenance(seed=study.evaluate.seed),
    )


def check_answerable(file: StudyFile[Study]) -> None:
    """Refuse a study whose points determine no calibration, or whose routers cannot be built.

    Raises RoutecastError: as :func:`answer`, which takes longer.
    """
    study = file.study
    law = fit_law(study, read_measured(file, study.measurements.calibrate))
    measured = [_unmeasured(point) for point in read_measured(file, study.measurements.validate_with)]
    forecast = [point for scenario in study.scenario for point in _scenario_points(study, scenario)]
    for point in (*measured, *forecast):
        law.model(point, study.router.queue)


def read_measured(file: StudyFile[Study] | StudyRun[Study], table: str) -> tuple[Point, ...]:
    """Read a table of measured maxima of the study's router, with a row for each number of flows and frame size.

    Raises FileProblem: the table has faults; the error names all of them.
    """
    router = file.study.router
    return read_router_points(
        file.folder / table, cores=router.cores, link_bps=router.link, ports=router.ports, series=file.study.name
    )


def measured_points(file: StudyFile[Study] | StudyRun[Study]) -> tuple[Point, ...]:
    """Return all measured points of the study's router; those that calibrate are marked.

    Raises FileProblem: as :func:`read_measured`.
    """
    table = file.study.measurements
    calibrating = [replace(point, calibrate=True) for point in read_measured(file, table.calibrate)]
    conditions = {point.conditions for point in calibrating}
    others = read_measured(file, table.validate_with) if table.validate_with != table.calibrate else ()
    return (*calibrating, *(point for point in others if point.conditions not in conditions))


def _unmeasured(point: Point) -> Point:
    """Return the conditions of a measured point without its layout of the work, which scenarios do not have."""
    return Point(
        cores=point.cores,
        frame_bytes=int(point.frame_bytes),
        throughput_pps=math.nan,
        flows=point.flows,
        link_bps=point.link_bps,
        ports=point.ports,
    )


def _scenario_points(study: Study, scenario: Scenario) -> list[Point]:
    conditions = (scenario.cores, scenario.link, scenario.ports, scenario.nic_cap, scenario.flows, scenario.frames)
    return [
        Point(
            cores=cores or study.router.cores,
            ports=ports or study.router.ports,
            link_bps=link_bps or study.router.link,
            nic_cap_pps=nic_cap_pps,
            flows=flows,
            frame_bytes=frames.sequence_bytes[0] if frames.is_fixed else frames.mean_bytes,
            frame_mix=None if frames.is_fixed else frames,
            throughput_pps=math.nan,
        )
        for cores, link_bps, ports, nic_cap_pps, flows, frames in product(*map(several, conditions))
    ]


def _line_points(study: Study, points: Sequence[Point]) -> list[Point]:
    """Return the points on a scenario's lines: many frame sizes if the closed form answers, else those of the scenario.

    Mixes lie on no line, so a scenario of mixes alone has no points here.
    """
    points = [point for point in points if point.frame_mix is None]
    if not points:
        return []
    smallest, largest = (edge(point.frame_bytes for point in points) for edge in (min, max))
    steps = (round(smallest * (largest / smallest) ** (i / LINE_STEPS)) for i in range(LINE_STEPS + 1))
    dense = set(steps) if "solve" in study.evaluate.evaluators else set()
    sizes = sorted(dense | {point.frame_bytes for point in points})
    firsts = {LineSetting.of(point): point for point in points}.values()
    return [replace(first, frame_bytes=size) for first in firsts for size in sizes]


def _tasks(study: Study, laws: Iterable[Law], point: Point, evaluators: Sequence[str] = ()) -> Iterable[Task]:
    seed = study.evaluate.seed
    draws = range(seed, seed + (RANDOM_FLOW_DRAWS if LineSetting.of(point).is_random else 1))
    for law in laws:
        model = law.model(point, study.router.queue)
        for evaluator in evaluators or study.evaluate.evaluators:
            for flow_seed in draws:
                yield Task(
                    law=law.name,
                    evaluator=evaluator,
                    point=point,
                    model=model,
                    duration_s=study.evaluate.duration,
                    seed=seed,
                    flow_seed=flow_seed,
                )


def _rows(
    law: CalibratedLaw, baseline: BaselineLaw | None, points: Sequence[Point], rows: Iterable[Row]
) -> dict[tuple[object, ...], TableRow]:
    """Return the predictions for all points by their conditions; ``rows`` are those of the ledger."""
    rates: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("law", "evaluator", *LineSetting._fields, "frames"))
        rates.setdefault(key, []).append(float(row["forwarded_pps"] or 0.0))

    def mean_pps(law: Law | None, evaluator: str, point: Point) -> float:
        key = (law.name if law else "", evaluator, *LineSetting.of(point), frames_of(point).name)
        return fmean(rates[key]) if key in rates else math.nan

    contention = {k: law.contention_ratio(k) for k in {point.working_cores for point in points}}
    predicted = {}
    for point, prediction in zip(points, law.predict(points), strict=True):
        solved, simulated = (mean_pps(law, name, point) for name in ("solve", "simulate"))
        rate = simulated if math.isnan(solved) else solved
        # The law's interval ignores the chance of random flows on the cores, and unequal flows on the links.
        shift = rate / prediction.predicted
        predicted[point.conditions] = TableRow(
            conditions=point,
            predicted=rate,
            intervals={0.95: _capped(point, prediction.low * shift, prediction.high * shift)},
            limit=prediction.limit,
            solved_pps=solved,
            simulated_pps=simulated,
            contention_ratio=contention[point.working_cores],
            baseline_pps=mean_pps(baseline, "solve", point),
            baseline_simulated_pps=mean_pps(baseline, "simulate", point),
        )
    return predicted


def _curves(rows: Sequence[TableRow]) -> dict[LineSetting, tuple[TableRow, ...]]:
    """Return the rows on each line of a figure, by frame size, with smoothed intervals."""
    curves = {}
    for setting in dict.fromkeys(row.setting for row in rows):
        line = sorted((row for row in rows if row.setting == setting), key=lambda row: row.point.frame_bytes)
        lows = _smooth([row.low / row.predicted for row in line])
        highs = _smooth([row.high / row.predicted for row in line])
        curves[setting] = tuple(
            replace(row, intervals={0.95: _capped(row.point, row.predicted * low, row.predicted * high)})
            for row, low, high in zip(line, lows, highs, strict=True)
        )
    return curves


def _capped(point: Point, low_pps: float, high_pps: float) -> tuple[float, float]:
    """Return an interval, cut at the greatest rate that a measurement can have."""
    return low_pps, min(high_pps, MEASURING_SLACK * point.line_rate_pps)


def _smooth(values: Sequence[float]) -> list[float]:
    """Return the mean of each value and its neighbours, because the ends of intervals have the noise of samples."""
    reach = BAND_NEIGHBOURS
    return [fmean(values[max(i - reach, 0) : i + reach + 1]) for i in range(len(values))]


def _criteria(study: Study, comparisons: Sequence[TableRow]) -> tuple[Criterion, ...]:
    all_points, held_out_points = (
        ErrorSummary.of(row.error_ratio for row in rows) for rows in (comparisons, held_out(comparisons))
    )
    reached = {
        "mean_over_all": all_points.mean_abs_error_ratio,
        "mean_over_held_out": held_out_points.mean_abs_error_ratio,
        "max_over_held_out": held_out_points.max_abs_error_ratio,
    }
    bounds = study.criteria.model_dump(exclude_none=True)
    return criteria_of(*((name, bound, reached[name]) for name, bound in bounds.items()))


def _links_filled(
    scenario: Scenario, predicted: Sequence[TableRow]
) -> Iterator[tuple[FlowsForLinks, tuple[LinksFilled, ...]]]:
    """Yield each stated number of flows that fill the links, with a row for each frame size and setting."""
    rows_by_flows: dict[tuple[object, ...], dict[int, TableRow]] = {}
    for row in predicted:
        if row.point.flows is not None and not row.setting.is_random:
            rows_by_flows.setdefault((row.setting._replace(flows=None), row.frames), {})[row.point.flows] = row
    for stated in scenario.flows_for_links:
        rows = [
            _filled_row(scenario, stated.flows, by_flows)
            for by_flows in rows_by_flows.values()
            if stated.flows in by_flows
        ]
        yield stated, tuple(rows)


def _filled_row(scenario: Scenario, stated: int, by_flows: Mapping[int, TableRow]) -> LinksFilled:
    at_stated = by_flows[stated]
    links_l1_bps = at_stated.setting.ports * at_stated.setting.link_bps
    fewer = max((flows for flows in by_flows if flows < stated), default=0)

    def l1_bps(flows: int, rate: str) -> float:
        return getattr(by_flows[flows], rate) * at_stated.l1_bits if flows in by_flows else 0.0

    def filling(rate: str) -> tuple[int, ...]:
        return tuple(flows for flows in sorted(by_flows) if l1_bps(flows, rate) >= FILLED_RATIO * links_l1_bps)

    return LinksFilled(
        scenario=scenario.name,
        frame_bytes=at_stated.point.frame_bytes,
        frames=at_stated.frames,
        stated_flows=stated,
        fewer_flows=fewer,
        most_flows=max(by_flows),
        links_l1_bps=links_l1_bps,
        predicted_flows=filling("predicted"),
        baseline_flows=filling("baseline_pps"),
        fewer_predicted_l1_bps=l1_bps(fewer, "predicted"),
        fewer_baseline_l1_bps=l1_bps(fewer, "baseline_pps"),
        stated_predicted_l1_bps=l1_bps(stated, "predicted"),
        stated_baseline_l1_bps=l1_bps(stated, "baseline_pps"),
    )


def _fewest(candidates: Iterable[tuple[int, ...]]) -> int | None:
    return min((flows[0] for flows in candidates if flows), default=None)


def _flows_statement(stated: FlowsForLinks, rows: Sequence[LinksFilled]) -> Statement:
    """Return the statement beside the fewest flows that fill the links with any frame size, by each law."""
    if not rows:
        here = f"not judged: {stated.flows} flows, each with a core of its own, are not in the scenario"
        return Statement(says=stated.says, where=stated.place, stated=f"{stated.flows} flows", here=here)
    laws = {"by the model": _fewest(row.predicted_flows for row in rows)}
    if any(not math.isnan(row.stated_baseline_l1_bps) for row in rows):
        laws["by eqs. 5 to 7"] = _fewest(row.baseline_flows for row in rows)
    here = ", ".join(f"{flows or 'no number'} {name}" for name, flows in laws.items())
    filled = [row.frames for row in rows if row.predicted_flows]
    here += f", with frames of {', '.join(filled)} only" if 0 < len(filled) < len(rows) else ""
    return Statement(says=stated.says, where=stated.place, stated=f"{stated.flows} flows", here=here)


def _flows_criterion(stated: FlowsForLinks, rows: Sequence[LinksFilled]) -> Criterion:
    """Return the criterion that this number of flows fills the links with some frame size, and no fewer do."""
    holds = _fewest(row.predicted_flows for row in rows) == stated.flows
    return Criterion(name=stated.says, bound=0.5, reached=0.0 if holds else 1.0)
