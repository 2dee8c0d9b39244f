"""Running a wire study: measure, calibrate, predict, measure what was predicted, report."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.evaluate.ledger import Ledger, Row
from routecast.evaluate.protocol import Described, Evaluator
from routecast.evaluate.trial import Trial
from routecast.study.folder import begin, write_results
from routecast.study.result import Criterion
from routecast.study.wire.bench import Bench
from routecast.study.wire.calibrated import Calibrated, calibrate_latency, calibrate_throughput
from routecast.study.wire.chapters import wire_page
from routecast.study.wire.document import WireStudy
from routecast.study.wire.measuring import COLUMNS, Overloads, Place, Progress, measure
from routecast.study.wire.points import Point, all_points, first_points
from routecast.study.wire.result import (
    LatencyCurve,
    LatencyRow,
    LossCurve,
    LossRow,
    Measured,
    Series,
    SeriesRow,
    WireResult,
)

__all__ = ["run_wire_study"]


def run_wire_study(
    study: WireStudy, out: Path, bench: Bench, *, progress: Progress | None = None, command: str = ""
) -> WireResult:
    """Run a wire study and write its results, summary, figures and report to the folder ``out``.

    The points that calibrate are measured once, to know which loads to offer. Then everything is measured, repeat after
    repeat, and the points that calibrate, from all repeats, give the router's law, its wake-up and its interruptions.
    Nothing that is held out takes part in that.

    Parameters
    ----------
    study : WireStudy
    out : Path
        Made if missing. If a run of the same study was killed there, it goes on.
    bench : Bench
        Where devices are set up and measured.
    progress : callable or None
        Told how many trials are done.

    Raises
    ------
    routecast.errors.RoutecastError
        The test bed cannot be made, or the points do not carry a calibration.
    """
    making = begin(study.name, out, command)
    first, whole = list(first_points(study)), list(all_points(study))
    total = len(first) + len(whole)

    def told(done: int) -> Callable[[int, str], None]:
        return lambda more, text: progress(done + more, total, text) if progress else None

    with Ledger(out, COLUMNS) as ledger:
        resumed = sum(point.key(study.testbed) in ledger.rows for point in (*first, *whole))
        noting = _Noting(bench)
        place = Place(bench=noting, bed=study.testbed, ledger=ledger)
        overloads = Overloads(study.testbed.overload)
        begun = measure(first, overloads.offered_pps, place, told(0))
        guess = {series.name: calibrate_throughput(series, begun) for series in study.throughput}

        def load_pps(point: Point, evaluator: Evaluator) -> float:
            if point.kind == "throughput":
                return overloads.offered_pps(point, evaluator)
            return point.offered_ratio * guess[point.series].capacity_pps(point.value)

        rows = [*begun, *measure(whole, load_pps, place, told(len(first)))]
    rates, losses, late = ([row for row in rows if row["kind"] == kind] for kind in ("throughput", "loss", "latency"))
    laws = {series.name: calibrate_throughput(series, rates) for series in study.throughput}
    devices = {series.device for series in study.throughput}
    if progress:
        progress(total, total, "calibrate and predict")
    wakeups = {device: calibrate_latency(study, device, laws, late) for device in devices}
    laws = {name: replace(law, wakeup=wakeups[law.series.device]) for name, law in laws.items()}
    result = WireResult(
        study=study,
        out=out,
        series=tuple(_series(study, laws[series.name], rates) for series in study.throughput),
        loss=tuple(_loss(study, laws[loss.series], loss.value, loss.offered, losses) for loss in study.loss),
        latency=tuple(
            _latency(study, laws[each.series], each.value, each.loads, each.calibrate, late) for each in study.latency
        ),
        facts=noting.facts,
        invalid_trials=sum(bool(row["invalid"]) for row in rows),
        criteria=(),
        made=making.made(seed=study.evaluate.seed, trials=total, resumed=resumed),
    )
    result = replace(result, criteria=_criteria(result))
    write_results(out, wire_page(result), result.to_json())
    return result


class _Noting:
    """A bench that remembers the facts of what it set up, by device."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.facts: dict[str, Any] = {}

    def device(self, name: str, options: Mapping[str, str | int | float | bool]) -> Any:
        return _Context(self, name, self._bench.device(name, options))


class _Context:
    def __init__(self, noting: _Noting, name: str, inner: Any) -> None:
        self._noting, self._name, self._inner = noting, name, inner

    def __enter__(self) -> Evaluator:
        evaluator: Evaluator = self._inner.__enter__()
        if isinstance(evaluator, Described):
            self._noting.facts.setdefault(self._name, dict(evaluator.facts()))
        return evaluator

    def __exit__(self, *leaving: object) -> object:
        return self._inner.__exit__(*leaving)


def _at(rows: Sequence[Row], series: str, value: float, ratio: float | None = None) -> list[Row]:
    return [
        row
        for row in rows
        if (row["series"], row["value"]) == (series, value)
        and (ratio is None or row["offered_ratio"] == ratio)
        and not row["invalid"]
    ]


def _measured(rows: Sequence[Row], name: str) -> Measured:
    found = [row[name] for row in rows]
    return Measured(values=tuple(float(value) for value in found if isinstance(value, int | float)))


def _offered(rows: Sequence[Row], otherwise_pps: float) -> float:
    """Return the load that was offered; another one where no trial was valid."""
    found = _measured(rows, "offered_pps").median
    return otherwise_pps if math.isnan(found) else found


def _series(study: WireStudy, law: Calibrated, rows: Sequence[Row]) -> Series:
    found = []
    for value in law.series.values:
        mine = _at(rows, law.series.name, value)
        offered_pps = _offered(mine, study.testbed.overload * law.capacity_pps(value))
        low_pps, high_pps = law.law.interval_pps(value)
        found.append(
            SeriesRow(
                value=value,
                calibrates=value in law.series.calibrate,
                offered_pps=offered_pps,
                measured_pps=_measured(mine, "forwarded_pps"),
                solved_pps=law.solve(value, offered_pps).forwarded_pps,
                simulated_pps=_simulated(study, law, value, offered_pps).forwarded_pps,
                low_pps=low_pps,
                high_pps=high_pps,
            )
        )
    return Series(series=law.series, law=law.law, rows=tuple(found))


def _loss(study: WireStudy, law: Calibrated, value: float, offered: Sequence[float], rows: Sequence[Row]) -> LossCurve:
    found = []
    for ratio in offered:
        mine = _at(rows, law.series.name, value, ratio)
        offered_pps = _offered(mine, ratio * law.capacity_pps(value))
        found.append(
            LossRow(
                offered_ratio=ratio,
                offered_pps=offered_pps,
                measured=_measured(mine, "loss_ratio"),
                solved=law.solve(value, offered_pps).loss_ratio,
                simulated=_simulated(study, law, value, offered_pps).loss_ratio,
            )
        )
    return LossCurve(series=law.series, value=value, capacity_pps=law.capacity_pps(value), rows=tuple(found))


def _latency(
    study: WireStudy,
    law: Calibrated,
    value: float,
    loads: Sequence[float],
    calibrate: Sequence[float],
    rows: Sequence[Row],
) -> LatencyCurve:
    found = []
    for ratio in loads:
        mine = _at(rows, law.series.name, value, ratio)
        load_pps = _offered(mine, ratio * law.capacity_pps(value))
        simulated = _simulated(study, law, value, load_pps).latency
        solved = law.solve(value, load_pps).latency
        found.append(
            LatencyRow(
                load_ratio=ratio,
                load_pps=load_pps,
                calibrates=ratio in calibrate,
                p50_s=_measured(mine, "latency_p50_s"),
                p99_s=_measured(mine, "latency_p99_s"),
                simulated_p50_s=simulated.p50_s if simulated else math.nan,
                simulated_p99_s=simulated.p99_s if simulated else math.nan,
                solved_p50_s=solved.p50_s if solved else math.nan,
            )
        )
    return LatencyCurve(
        series=law.series,
        value=value,
        capacity_pps=law.capacity_pps(value),
        wakeup=law.wakeup,
        rows=tuple(found),
    )


def _simulated(study: WireStudy, law: Calibrated, value: float, load_pps: float) -> Trial:
    return law.simulate(value, load_pps, duration_s=study.evaluate.duration, seed=study.evaluate.seed)


def _criteria(result: WireResult) -> tuple[Criterion, ...]:
    bounds = result.study.criteria
    rate_bound = bounds.throughput_median
    if rate_bound is not None and math.isfinite(result.repeatability_ratio):
        rate_bound = max(rate_bound, 2.0 * result.repeatability_ratio)
    reached = (
        ("median error of forwarding rates", rate_bound, result.throughput_error_ratio),
        ("mean error of the loss ratio", bounds.loss_mean, result.loss_error),
        ("median error of median latencies", bounds.latency_median, result.latency_error_ratio),
    )
    return tuple(
        Criterion(name=name, bound=bound, reached=value) for name, bound, value in reached if bound is not None
    )
