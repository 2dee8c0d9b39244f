"""Run a wire study: measure, calibrate, predict, compare."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, Generic, TypeVar

from routecast.errors import FitProblem
from routecast.evaluate.ledger import Row
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.lab.study.document import Latency, Loss, Throughput, WireEvaluation, WireStudy
from routecast.lab.study.measure import (
    COLUMNS,
    MOST_ITERATIONS,
    Bench,
    DeviceSetting,
    Measurer,
    SeriesNotOverloaded,
    TestbedBench,
    TrialPoint,
    all_points,
    first_points,
    load_of,
    needed_slowdown,
)
from routecast.lab.study.wakeup import QUANTILES, FittedWakeup, LatencyPoint, MakeRouter, fit_wakeup
from routecast.lab.study.work import FittedWork, WorkPoint, fit_work
from routecast.quantity.comparison import coverage_ratio, held_out
from routecast.router.model import Interruptions, RandomTime, RouterModel
from routecast.router.softirq import softirq
from routecast.study.engine import StudyRun
from routecast.study.result import Criterion, Measured, RepeatedRow, StudyResult, criteria_of

__all__ = ["LatencyCurve", "LoadCurve", "LossRow", "Series", "WireResult", "answer"]

LINK_BPS = 1e12
"""Rate of links that do not limit the model: a study on the wire is about the device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow(RepeatedRow[float]):
    """Forwarding rate in overload at a value of the factor, frames per second; the closed form predicts."""

    offered_pps: float
    simulated_pps: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "value": self.conditions,
            "calibrates": self.calibrates,
            "offered_pps": self.offered_pps,
            "measured_pps": self.repeats,
            "solved_pps": self.predicted,
            "simulated_pps": self.simulated_pps,
            "low_pps": self.low,
            "high_pps": self.high,
            "error_ratio": self.error_ratio,
            "covered": self.is_covered,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The calibrated law of a factor, and all its points."""

    series: Throughput
    law: FittedWork
    rows: tuple[SeriesRow, ...]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "name": self.series.name,
            "device": self.series.device,
            "factor": self.series.factor,
            "law": self.law,
            "rows": self.rows,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow(RepeatedRow[float]):
    """Loss ratio at a load over the capacity; the closed form predicts."""

    offered_pps: float
    simulated: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "offered_ratio": self.conditions,
            "offered_pps": self.offered_pps,
            "measured": self.repeats,
            "solved": self.predicted,
            "simulated": self.simulated,
        }

    @property
    def error(self) -> float:
        """Predicted less measured loss ratio; 0.01 is one percentage point."""
        return self.predicted - self.measured


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLatency(RepeatedRow[float]):
    """Median latency in seconds at a share of the capacity; the simulator predicts, not the closed form.

    ``arrivals``: those of the measured and the predicted trials, in words.
    """

    offered_pps: float
    p99_s: Measured
    simulated_p99_s: float
    solved_p50_s: float = math.nan
    arrivals: str = ""

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "load_ratio": self.conditions,
            "load_pps": self.offered_pps,
            "calibrates": self.calibrates,
            "p50_s": self.repeats,
            "p99_s": self.p99_s,
            "simulated_p50_s": self.predicted,
            "simulated_p99_s": self.simulated_p99_s,
            "solved_p50_s": self.solved_p50_s,
            "arrivals": self.arrivals,
        }

    @property
    def p99_factor(self) -> float:
        """Factor between the simulated and the measured 99th percentile, >= 1."""
        ratio = self.simulated_p99_s / self.p99_s.median
        return max(ratio, 1.0 / ratio) if ratio > 0.0 else math.nan


CurveRow = TypeVar("CurveRow", LossRow, WireLatency)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve(Generic[CurveRow]):
    """Loss or latency against load of one device at one value of its factor."""

    series: Throughput
    value: float
    capacity_pps: float
    rows: tuple[CurveRow, ...]

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "series": self.series.name,
            "device": self.series.device,
            "value": self.value,
            "capacity_pps": self.capacity_pps,
            "rows": self.rows,
        }

    @property
    def stem(self) -> str:
        """Series and value, for the names of figures and tables."""
        return f"{self.series.name}-{self.value:g}"

    @property
    def title(self) -> str:
        """Device and value in words."""
        return f"{self.series.device}, {self.series.factor} = {self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve(LoadCurve[WireLatency]):
    """Latency against load, with the calibrated wake-up and interruptions of the device, if any."""

    wakeup: FittedWakeup | None

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {**LoadCurve.plain_entries(self), "wakeup": self.wakeup}


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult(StudyResult[WireStudy]):
    """The results of a wire study."""

    series: tuple[Series, ...]
    loss: tuple[LoadCurve[LossRow], ...]
    latency: tuple[LatencyCurve, ...]
    facts: dict[str, Any]
    invalid_trials: int

    @property
    def held_out(self) -> tuple[SeriesRow, ...]:
        """The forwarding rates that do not calibrate."""
        return tuple(row for series in self.series for row in series.rows if not row.calibrates)

    @property
    def throughput_error_ratio(self) -> float:
        """Median absolute relative error at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out)

    @property
    def repeatability_ratio(self) -> float:
        """Median relative standard deviation of repeated measurements of a forwarding rate."""
        return _median(row.repeats.spread_ratio for series in self.series for row in series.rows)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out rates inside their 95 % intervals."""
        return coverage_ratio(held_out(self.held_out))

    @property
    def loss_error(self) -> float:
        """Mean absolute error of the predicted loss ratio."""
        errors = [abs(row.error) for curve in self.loss for row in curve.rows if math.isfinite(row.error)]
        return fmean(errors) if errors else math.nan

    @property
    def held_out_latency(self) -> tuple[WireLatency, ...]:
        """The latencies that do not calibrate."""
        return tuple(row for curve in self.latency for row in curve.rows if not row.calibrates)

    @property
    def latency_error_ratio(self) -> float:
        """Median absolute relative error of the median latency at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out_latency)

    @property
    def p99_factor(self) -> float:
        """Median factor between simulated and measured 99th percentile at the held-out points."""
        return _median(row.p99_factor for row in self.held_out_latency)

    def _findings(self) -> dict[str, object]:
        return {
            "throughput": {
                "median_abs_error_ratio": self.throughput_error_ratio,
                "repeatability_ratio": self.repeatability_ratio,
                "coverage_ratio": self.coverage_ratio,
                "held_out_points": len(self.held_out),
                "series": self.series,
            },
            "loss": {"mean_abs_error": self.loss_error, "curves": self.loss},
            "latency": {
                "median_abs_error_ratio": self.latency_error_ratio,
                "p99_median_factor": self.p99_factor,
                "held_out_points": len(self.held_out_latency),
                "curves": self.latency,
            },
            "facts": self.facts,
            "invalid_trials": self.invalid_trials,
        }


def _median(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return median(finite) if finite else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSeries:
    """The law of a series, and the wake-up of its device if latency calibrates."""

    series: Throughput
    law: FittedWork
    wakeup: FittedWakeup | None = None

    def capacity_pps(self, value: float) -> float:
        """Return the predicted forwarding rate in overload."""
        return self.law.rate_pps(value)

    def trials(self, value: float, load_pps: float, evaluation: WireEvaluation) -> tuple[Trial, Trial]:
        """Return the trials of the closed form and of the simulator at a value of the factor."""
        wakeup, interruptions = (self.wakeup.wakeup, self.wakeup.interruptions) if self.wakeup else (None, None)
        stretch = interruptions.stretch if interruptions else 1.0
        router = router_builder(self.series)(self.law.seconds(value) / stretch, wakeup, interruptions)
        load = load_of(DeviceSetting.of(self.series, value), load_pps)
        simulator = Simulate(router, seed=evaluation.seed, steady_state=False)
        return Solve(model=router).trial(load, 1.0), simulator.trial(load, evaluation.duration)


def router_builder(series: Throughput) -> MakeRouter:
    """Return the function that builds the router of a series: a core that interrupts activate, behind a ring."""

    def build(per_packet_s: float, wakeup: RandomTime | None, interruptions: Interruptions | None) -> RouterModel:
        return softirq(
            name=f"{series.device}, {series.name}",
            per_packet_s=per_packet_s,
            wakeup=wakeup,
            interruptions=interruptions,
            link_bps=LINK_BPS,
        )

    return build


def calibrate_throughput(series: Throughput, rows: Sequence[Row]) -> CalibratedSeries:
    """Fit the law of a series to the rows that calibrate."""
    rates = {
        value: _measured(_valid_at(rows, series.name, value), "forwarded_pps").values
        for value in sorted(set(series.calibrate))
    }
    without_rate = [f"{value:g}" for value, rates_pps in rates.items() if not rates_pps]
    if without_rate:
        message = f"no trial was valid at {series.factor} = {', '.join(without_rate)}"
        raise FitProblem(series.name, f"{message}: look at the reasons in results.parquet, and run again")
    points = [WorkPoint(work=value, rates_pps=rates_pps) for value, rates_pps in rates.items()]
    law = fit_work(points, series=series.name, constant=series.law == "constant")
    return CalibratedSeries(series=series, law=law)


def calibrate_latency(
    study: WireStudy, device: str, laws: Mapping[str, CalibratedSeries], rows: Sequence[Row]
) -> FittedWakeup | None:
    """Fit wake-up and interruptions of a device to its latency rows that calibrate; None without such rows."""
    points = []
    for latency in study.latency:
        law = laws[latency.series]
        for ratio in latency.calibrate if law.series.device == device else ():
            valid = _valid_at(rows, latency.series, latency.value, ratio)
            quantiles_s = measured_quantiles_s(valid)
            if quantiles_s:
                offered_pps = _measured(valid, "offered_pps").median
                points.append(
                    LatencyPoint(
                        load=load_of(DeviceSetting.of(law.series, latency.value), offered_pps),
                        completion_s=law.law.seconds(latency.value),
                        quantiles_s=quantiles_s,
                        make_router=router_builder(law.series),
                    )
                )
    return fit_wakeup(points, series=device) if points else None


def measured_quantiles_s(rows: Sequence[Row]) -> tuple[float, ...]:
    """Return the latency at :data:`QUANTILES`: at each probability the median over the repeats."""
    from routecast import _core

    histograms = [str(row["latency_hdr_base64"]) for row in rows if row["latency_hdr_base64"]]
    quantiles = [_core.hdr_quantiles_s(histogram, QUANTILES) for histogram in histograms]
    return tuple(median(repeats_s) for repeats_s in zip(*quantiles, strict=True))


def answer(run: StudyRun[WireStudy], *, bench: Bench | None = None) -> WireResult:
    """Measure, calibrate, predict and compare.

    One repeat of the points that calibrate gives the loads to offer. Then all points are measured, repeat after repeat.
    All repeats of the points that calibrate give the law of the router, its wake-up and its interruptions; the held-out
    points take no part in the calibration.

    ``bench``: place to set up and measure devices, by default the study's test bed. Raises RoutecastError: the test bed
    cannot be built, or the points do not determine a calibration.
    """
    study = run.study
    slowdowns: dict[str, int] = {}
    with run.ledger(COLUMNS) as ledger:
        measurer = Measurer(bench=bench or TestbedBench(study.testbed.file, run.folder), run=run, ledger=ledger)
        while True:
            try:
                rows = _measured_rows(measurer, slowdowns)
                break
            except SeriesNotOverloaded as end:
                series = end.point.series
                slowdowns[series] = _greater_slowdown(study, slowdowns.get(series, 0), end)
                run.report_step(f"slow {series} down by {slowdowns[series]:,} iterations a frame")
    rates, losses, latencies = (
        [row for row in rows if row["kind"] == kind] for kind in ("throughput", "loss", "latency")
    )
    laws = {series.name: calibrate_throughput(series, rates) for series in study.throughput}
    run.report_step("calibrate and predict")
    devices = {series.device for series in study.throughput}
    wakeups = {device: calibrate_latency(study, device, laws, latencies) for device in devices}
    laws = {name: replace(law, wakeup=wakeups[law.series.device]) for name, law in laws.items()}
    result = WireResult(
        study=study,
        out=run.out,
        series=tuple(_series(study, laws[series.name], rates) for series in study.throughput),
        loss=tuple(_loss(study, laws[loss.series], loss, losses) for loss in study.loss),
        latency=tuple(_latency(study, laws[latency.series], latency, latencies) for latency in study.latency),
        facts=measurer.facts,
        invalid_trials=sum(bool(row["invalid"]) for row in rows),
        notes=tuple(_slowdown_note(study, name, iterations) for name, iterations in slowdowns.items()) or None,
        provenance=run.provenance(seed=study.evaluate.seed),
    )
    return replace(result, criteria=_criteria(result))


def _greater_slowdown(study: WireStudy, iterations: int, end: SeriesNotOverloaded) -> int:
    """Return further iterations a frame that let the tester overload a series.

    Raises SeriesNotOverloaded with what to state in the study: the study must not slow the device down, or a slower
    device is not overloaded either.
    """
    needed = needed_slowdown(end.forwarded_pps, study.testbed.overload)
    greater = max(needed, 2 * iterations)
    if end.slowed_by == "study" and greater <= MOST_ITERATIONS:
        return greater
    series = next(series for series in study.throughput if series.name == end.point.series)
    table = f'[[throughput]] name = "{series.name}"'
    faster = "a test bed with a faster tester ([testbed] file)"
    if end.slowed_by == "nobody":
        remedy = f"the device has no option that slows it down: leave out the value, or use {faster}"
    elif end.slowed_by == "study":
        remedy = f"a slowdown of {iterations:,} iterations a frame does not suffice: use {faster}"
    elif series.factor == "slowdown":
        remedy = f"in {table}, leave out the values below {needed}, or use {faster}"
    else:
        remedy = f"in {table}, state options = {{ slowdown = {needed} }}, or use {faster}"
    raise SeriesNotOverloaded(end.point, end.forwarded_pps, f"{end.cause}; {remedy}", end.slowed_by) from end


def _slowdown_note(study: WireStudy, name: str, iterations: int) -> str:
    device = next(series.device for series in study.throughput if series.name == name)
    return (
        f"The tester does not overload {device} of the series {name}: the study slowed it down by {iterations:,} "
        "iterations a frame (option slowdown) at every point; state it in the study's options to choose it yourself"
    )


def _measured_rows(measurer: Measurer, slowdowns: Mapping[str, int]) -> list[Row]:
    """Return the rows of all trials; what the ledger has is not measured again."""
    run, ledger = measurer.run, measurer.ledger
    study = run.study
    first, repeated = list(first_points(study, slowdowns)), list(all_points(study, slowdowns))
    run.done = 0
    run.work = run.trials = len(first) + len(repeated)
    if not slowdowns:
        run.resumed = sum(point.key(study.testbed) in ledger.rows for point in (*first, *repeated))
    first_rows = measurer.measure(first, measurer.overload_pps)
    guess = {series.name: calibrate_throughput(series, first_rows) for series in study.throughput}

    def load_pps(point: TrialPoint, evaluator: Evaluator) -> float:
        if point.kind == "throughput":
            return measurer.overload_pps(point, evaluator)
        return point.offered_ratio * guess[point.series].capacity_pps(point.value)

    return [*first_rows, *measurer.measure(repeated, load_pps)]


def _valid_at(rows: Sequence[Row], series: str, value: float, ratio: float | None = None) -> list[Row]:
    return [
        row
        for row in rows
        if (row["series"], row["value"]) == (series, value)
        and (ratio is None or row["offered_ratio"] == ratio)
        and not row["invalid"]
    ]


def _measured(rows: Sequence[Row], name: str) -> Measured:
    values = [row[name] for row in rows]
    return Measured(values=tuple(float(value) for value in values if isinstance(value, int | float)))


def _compared(
    study: WireStudy, law: CalibratedSeries, value: float, rows: Sequence[Row], ratio: float | None = None
) -> tuple[list[Row], float, Trial, Trial]:
    """Return the valid rows of a point, their load, and the trials of closed form and simulator at that load.

    Without a valid trial the load is the intended load.
    """
    valid = _valid_at(rows, law.series.name, value, ratio)
    offered_pps = _measured(valid, "offered_pps").median
    if math.isnan(offered_pps):
        offered_pps = (ratio or study.testbed.overload) * law.capacity_pps(value)
    return valid, offered_pps, *law.trials(value, offered_pps, study.evaluate)


def _series(study: WireStudy, law: CalibratedSeries, rows: Sequence[Row]) -> Series:
    series = []
    for value in law.series.values:
        valid, offered_pps, solved, simulated = _compared(study, law, value, rows)
        series.append(
            SeriesRow(
                conditions=value,
                calibrates=value in law.series.calibrate,
                offered_pps=offered_pps,
                predicted=solved.forwarded_pps,
                intervals={0.95: law.law.interval_pps(value)},
                simulated_pps=simulated.forwarded_pps,
            ).measured_as(_measured(valid, "forwarded_pps"))
        )
    return Series(series=law.series, law=law.law, rows=tuple(series))


def _loss(study: WireStudy, law: CalibratedSeries, loss: Loss, rows: Sequence[Row]) -> LoadCurve[LossRow]:
    losses = []
    for ratio in loss.offered:
        valid, offered_pps, solved, simulated = _compared(study, law, loss.value, rows, ratio)
        losses.append(
            LossRow(
                conditions=ratio, offered_pps=offered_pps, predicted=solved.loss_ratio, simulated=simulated.loss_ratio
            ).measured_as(_measured(valid, "loss_ratio"))
        )
    capacity_pps = law.capacity_pps(loss.value)
    return LoadCurve(series=law.series, value=loss.value, capacity_pps=capacity_pps, rows=tuple(losses))


def _latency(study: WireStudy, law: CalibratedSeries, latency: Latency, rows: Sequence[Row]) -> LatencyCurve:
    latencies = []
    for ratio in latency.loads:
        valid, offered_pps, solved, simulated = _compared(study, law, latency.value, rows, ratio)
        latencies.append(
            WireLatency(
                conditions=ratio,
                offered_pps=offered_pps,
                calibrates=ratio in latency.calibrate,
                p99_s=_measured(valid, "latency_p99_s"),
                predicted=simulated.latency.p50_s if simulated.latency else math.nan,
                simulated_p99_s=simulated.latency.p99_s if simulated.latency else math.nan,
                solved_p50_s=solved.latency.p50_s if solved.latency else math.nan,
                arrivals=simulated.arrivals,
            ).measured_as(_measured(valid, "latency_p50_s"))
        )
    return LatencyCurve(
        series=law.series,
        value=latency.value,
        capacity_pps=law.capacity_pps(latency.value),
        wakeup=law.wakeup,
        rows=tuple(latencies),
    )


def _criteria(result: WireResult) -> tuple[Criterion, ...]:
    bounds = result.study.criteria
    rate_bound = bounds.throughput_median
    if rate_bound is not None and math.isfinite(result.repeatability_ratio):
        rate_bound = max(rate_bound, 2.0 * result.repeatability_ratio)
    return criteria_of(
        ("median error of forwarding rates", rate_bound, result.throughput_error_ratio),
        ("mean error of the loss ratio", bounds.loss_mean, result.loss_error),
        ("median error of median latencies", bounds.latency_median, result.latency_error_ratio),
    )
