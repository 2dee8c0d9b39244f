"""Running a study: calibrate, evaluate every task, compare, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from routecast.calibrate.points import Point, read_router_points
from routecast.evaluate.ledger import Ledger
from routecast.study.document import Study
from routecast.study.folder import begin, write_results
from routecast.study.laws import CalibratedLaw, Law, fit_baseline, fit_law
from routecast.study.reading import StudyFile
from routecast.study.result import Comparison, Criterion, Curve, ErrorSummary, Estimate, StudyResult
from routecast.study.tasks import COLUMNS, Row, Task, Workload, run_task

__all__ = ["Report", "read_measured", "run_study"]

Report = Callable[[int, int, str], None]
"""Progress: how many trials are done, of how many, what is going on."""

LINE_STEPS = 24
"""Steps of frame size that a line of a figure is drawn with."""

BAND_NEIGHBOURS = 3
"""Frame sizes on each side that a band's edge is averaged with."""

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


def run_study(file: StudyFile, out: Path, *, progress: Report | None = None, command: str = "") -> StudyResult:
    """Run a study and write its results, summary, figures and report to the folder ``out``.

    Parameters
    ----------
    file : StudyFile
    out : Path
        Made if missing. If a run of the same study was killed there, it goes on.
    progress : callable or None
        Told how many trials are done.
    command : str
        How the study was started, for the report.

    Raises
    ------
    routecast.errors.RoutecastError
        A table cannot be read, or the points do not carry a calibration.
    """
    study = file.study
    making = begin(study.name, out, command)
    calibrating = read_measured(file, study.measurements.calibrate)
    validating = read_measured(file, study.measurements.validate_with)
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
    with Ledger(out, COLUMNS) as ledger:
        resumed = sum(key in ledger.rows for key in tasks)
        for done, (key, task) in enumerate(tasks.items()):
            if progress:
                progress(done, len(tasks), f"{task.evaluator} {task.workload.frame_bytes} B")
            if key not in ledger.rows:
                ledger.add(run_task(key, task))
        rows = [row for key, row in ledger.rows.items() if key in tasks]
    estimates = _estimates(laws, [*workloads, *dict.fromkeys(only_lines)], rows)
    calibrated = {point.conditions for point in calibrating}
    comparisons = tuple(
        Comparison(
            measured_pps=point.throughput_pps,
            reported_pps=point.reported_pps,
            calibrates=point.conditions in calibrated,
            estimate=estimates[load],
        )
        for point, load in zip(validating, compared, strict=True)
    )
    result = StudyResult(
        study=study,
        out=out,
        law=laws.calibrated.description,
        hypotheses=laws.calibrated.hypotheses,
        parameters=laws.calibrated.parameters,
        calibrating=calibrating,
        comparisons=comparisons,
        scenarios={name: tuple(estimates[load] for load in loads) for name, loads in forecast.items()},
        curves={name: _curves({load: estimates[load] for load in loads}) for name, loads in lines.items()},
        next_points=laws.calibrated.next_points([load for loads in forecast.values() for load in loads]),
        criteria=_criteria(study, comparisons),
        notes=laws.calibrated.warnings,
        made=making.made(seed=study.evaluate.seed, trials=len(tasks), resumed=resumed),
    )
    _write(result, progress)
    return result


def read_measured(file: StudyFile, table: str) -> tuple[Point, ...]:
    """Read a table of measured maxima of the study's router, one row per number of flows and frame size.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the table and its place.
    """
    router = file.study.router
    return read_router_points(
        file.folder / table,
        cores=router.cores,
        link_bps=router.link,
        ports=router.ports,
        series=file.study.name,
    )


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
    return [
        Workload(
            cores=scenario.cores or study.router.cores,
            ports=study.router.ports,
            link_bps=scenario.link or study.router.link,
            flows=flows,
            frame_bytes=frame_bytes,
        )
        for flows in scenario.flows
        for frame_bytes in scenario.frames
    ]


def _line_workloads(study: Study, loads: Sequence[Workload]) -> list[Workload]:
    """Return the workloads that a scenario's lines go through: many frame sizes where one trial of each suffices."""
    smallest, largest = (edge(load.frame_bytes for load in loads) for edge in (min, max))
    steps = (round(smallest * (largest / smallest) ** (i / LINE_STEPS)) for i in range(LINE_STEPS + 1))
    dense = set(steps) if "solve" in study.evaluate.evaluators else set()
    sizes = sorted(dense | {load.frame_bytes for load in loads})
    firsts = {load.flows: load for load in loads}.values()
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


def _estimates(laws: _Laws, workloads: Sequence[Workload], rows: Iterable[Row]) -> dict[Workload, Estimate]:
    rates: dict[tuple[object, ...], list[float]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("law", "evaluator", "cores", "link_bps", "flows", "frame_bytes"))
        rates.setdefault(key, []).append(float(row["forwarded_pps"] or 0.0))

    def mean_pps(law: Law | None, evaluator: str, load: Workload) -> float:
        key = (law.name if law else "", evaluator, load.cores, load.link_bps, load.flows, load.frame_bytes)
        return fmean(rates[key]) if key in rates else math.nan

    estimates = {}
    for load, prediction in zip(workloads, laws.calibrated.predict(workloads), strict=True):
        solved, simulated = (mean_pps(laws.calibrated, name, load) for name in ("solve", "simulate"))
        # The law's interval knows neither how random flows fall on the cores nor how unequal flows share the links.
        shift = (simulated if math.isnan(solved) else solved) / prediction.throughput_pps
        estimates[load] = Estimate(
            cores=load.cores,
            flows=load.flows,
            frame_bytes=load.frame_bytes,
            link_bps=load.link_bps,
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


def _curves(estimates: Mapping[Workload, Estimate]) -> tuple[Curve, ...]:
    curves = []
    for flows in dict.fromkeys(load.flows for load in estimates):
        loads = sorted((load for load in estimates if load.flows == flows), key=lambda load: load.frame_bytes)
        points = [estimates[load] for load in loads]
        low = _smooth([e.low_pps / e.predicted_pps for e in points])
        high = _smooth([e.high_pps / e.predicted_pps for e in points])
        most = [MEASURING_SLACK * load.line_rate_pps for load in loads]
        curves.append(
            Curve(
                flows=flows,
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


def _criteria(study: Study, comparisons: Sequence[Comparison]) -> tuple[Criterion, ...]:
    everywhere, held_out = (
        ErrorSummary.of(row.error_ratio(row.estimate.predicted_pps) for row in rows)
        for rows in (comparisons, [row for row in comparisons if not row.calibrates])
    )
    reached = {
        "mean_over_all": everywhere.mean_abs_error_ratio,
        "mean_over_held_out": held_out.mean_abs_error_ratio,
        "max_over_held_out": held_out.max_abs_error_ratio,
    }
    bounds = study.criteria.model_dump(exclude_none=True)
    return tuple(Criterion(name=name, bound=bound, reached=reached[name]) for name, bound in bounds.items())


def _write(result: StudyResult, progress: Report | None) -> None:
    from routecast.study.chapters import study_page

    if progress:
        progress(result.made.trials, result.made.trials, "report")
    write_results(result.out, study_page(result), result.to_json())
