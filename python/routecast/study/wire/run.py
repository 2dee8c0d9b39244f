"""Running a wire study: measure, calibrate, predict, measure what was predicted, report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any, ClassVar

from routecast.calibration.wakeup import QUANTILES, FittedWakeup, LatencyPoint, MakeRouter, fit_wakeup
from routecast.calibration.work import FittedWork, WorkPoint, fit_work
from routecast.errors import FitProblem
from routecast.evaluate.ledger import Row
from routecast.evaluate.plain import pick
from routecast.evaluate.protocol import Described, Evaluator
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity.comparison import coverage_ratio, held_out
from routecast.router.model import Interruptions, RandomTime, RouterModel
from routecast.router.softirq import softirq
from routecast.study.engine import StudyRun
from routecast.study.result import Criterion, Measured, RepeatedRow, StudyResult, criteria_of
from routecast.study.wire.document import Throughput, WireStudy
from routecast.study.wire.measure import (
    COLUMNS,
    Bench,
    DeviceSetting,
    Overloads,
    Place,
    TestbedBench,
    TrialPoint,
    all_points,
    first_points,
    load_of,
    measure,
)

__all__ = ["LatencyCurve", "LossCurve", "Series", "WireResult", "answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow(RepeatedRow[float]):
    """Forwarding rate in overload at one value of the factor, frames per second; the solver's is the prediction."""

    SUMMARY: ClassVar = (
        *("value=conditions", "calibrates", "offered_pps", "measured_pps=repeats", "solved_pps=predicted"),
        *("simulated_pps", "low_pps=low", "high_pps=high", "error_ratio", "covered=is_covered"),
    )

    offered_pps: float
    simulated_pps: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One factor: its calibrated law and every point of it."""

    SUMMARY: ClassVar = ("name=series.name", "device=series.device", "factor=series.factor", "law", "rows")

    series: Throughput
    law: FittedWork
    rows: tuple[SeriesRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRow:
    """Loss ratio at one offered load."""

    offered_ratio: float
    offered_pps: float
    measured: Measured
    solved: float
    simulated: float

    @property
    def error(self) -> float:
        """Error of the solver's loss ratio (0.01 is one point of loss)."""
        return self.solved - self.measured.median


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss against offered load of one device at one value of its factor."""

    SUMMARY: ClassVar = ("series=series.name", "device=series.device", "value", "capacity_pps", "rows")

    series: Throughput
    value: float
    capacity_pps: float
    rows: tuple[LossRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireLatency(RepeatedRow[float]):
    """Median latency at a share of the capacity, s: measured, and the simulator's; ``solved_p50_s``: in closed form."""

    SUMMARY: ClassVar = (
        *("load_ratio=conditions", "load_pps", "calibrates", "p50_s=repeats", "p99_s"),
        *("simulated_p50_s=predicted", "simulated_p99_s", "solved_p50_s"),
    )

    load_pps: float
    p99_s: Measured
    simulated_p99_s: float
    solved_p50_s: float = math.nan

    @property
    def p99_factor(self) -> float:
        """How many times the simulated 99th percentile is off, >= 1."""
        ratio = self.simulated_p99_s / self.p99_s.median
        return max(ratio, 1.0 / ratio) if ratio > 0.0 else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCurve:
    """Latency against load of one device at one value of its factor."""

    SUMMARY: ClassVar = ("series=series.name", "device=series.device", "value", "capacity_pps", "rows", "wakeup")

    series: Throughput
    value: float
    capacity_pps: float
    wakeup: FittedWakeup | None
    rows: tuple[WireLatency, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireResult(StudyResult[WireStudy]):
    """All that a wire study found."""

    series: tuple[Series, ...]
    loss: tuple[LossCurve, ...]
    latency: tuple[LatencyCurve, ...]
    facts: dict[str, Any]
    invalid_trials: int

    @property
    def held_out(self) -> tuple[SeriesRow, ...]:
        """The forwarding rates that the calibration has not seen."""
        return tuple(row for each in self.series for row in each.rows if not row.calibrates)

    @property
    def throughput_error_ratio(self) -> float:
        """Median absolute relative error at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out)

    @property
    def repeatability_ratio(self) -> float:
        """Median relative standard deviation of repeated measurements of a forwarding rate."""
        return _median(row.repeats.spread_ratio for each in self.series for row in each.rows)

    @property
    def coverage_ratio(self) -> float:
        """Share of the held-out rates inside their 95 % intervals."""
        return coverage_ratio(held_out(self.held_out))

    @property
    def loss_error(self) -> float:
        """Mean absolute error of the loss ratio, the solver's."""
        errors = [abs(row.error) for curve in self.loss for row in curve.rows if math.isfinite(row.error)]
        return fmean(errors) if errors else math.nan

    @property
    def held_out_latency(self) -> tuple[WireLatency, ...]:
        """The latencies that the calibration has not seen."""
        return tuple(row for curve in self.latency for row in curve.rows if not row.calibrates)

    @property
    def latency_error_ratio(self) -> float:
        """Median absolute relative error of the median latency at the held-out points."""
        return _median(abs(row.error_ratio) for row in self.held_out_latency)

    @property
    def p99_factor(self) -> float:
        """Median factor by which the 99th percentile is off at the held-out points."""
        return _median(row.p99_factor for row in self.held_out_latency)

    def _findings(self) -> dict[str, object]:
        return {
            "throughput": {
                **pick(self, "median_abs_error_ratio=throughput_error_ratio", "repeatability_ratio", "coverage_ratio"),
                "held_out_points": len(self.held_out),
                "series": self.series,
            },
            "loss": pick(self, "mean_abs_error=loss_error", "curves=loss"),
            "latency": {
                **pick(self, "median_abs_error_ratio=latency_error_ratio", "p99_median_factor=p99_factor"),
                "held_out_points": len(self.held_out_latency),
                "curves": self.latency,
            },
            **pick(self, "facts", "invalid_trials"),
        }


def _median(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return median(finite) if finite else math.nan


Rows = Sequence[Mapping[str, object]]

LINK_BPS = 1e12
"""No wire limits the model: the study asks what the device carries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A series' law, and the wake-up of its device where latency was calibrated."""

    series: Throughput
    law: FittedWork
    wakeup: FittedWakeup | None = None

    def capacity_pps(self, value: float) -> float:
        """Return the predicted forwarding rate in overload."""
        return self.law.rate_pps(value)

    def router(self, value: float) -> RouterModel:
        """Return the model of the router at one value of the factor."""
        stretch = self.wakeup.interruptions.stretch if self.wakeup and self.wakeup.interruptions else 1.0
        make = router_maker(self.series)
        wakeup = self.wakeup
        return make(
            self.law.seconds(value) / stretch,
            wakeup.wakeup if wakeup else None,
            wakeup.interruptions if wakeup else None,
        )

    def solve(self, value: float, load_pps: float) -> Trial:
        """Answer in closed form."""
        return Solve(model=self.router(value)).trial(self._load(value, load_pps), 1.0)

    def simulate(self, value: float, load_pps: float, *, duration_s: float, seed: int) -> Trial:
        """Answer packet by packet."""
        simulator = Simulate(self.router(value), seed=seed, steady_state=False)
        return simulator.trial(self._load(value, load_pps), duration_s)

    def _load(self, value: float, load_pps: float) -> OfferedLoad:
        return load_of(DeviceSetting.of(self.series, value), load_pps)


def router_maker(series: Throughput) -> MakeRouter:
    """Return what makes a router of a series: one core that interrupts activate, behind a ring."""

    def make(per_packet_s: float, wakeup: RandomTime | None, interruptions: Interruptions | None) -> RouterModel:
        return softirq(
            name=f"{series.device}, {series.name}",
            per_packet_s=per_packet_s,
            wakeup=wakeup,
            interruptions=interruptions,
            link_bps=LINK_BPS,
        )

    return make


def calibrate_throughput(series: Throughput, rows: Rows) -> Calibrated:
    """Fit the law of a series to the rows that calibrate."""
    wanted = set(series.calibrate)
    rates: dict[float, list[float]] = {}
    for row in rows:
        value = _number(row["value"])
        if row["series"] == series.name and value in wanted and not row["invalid"]:
            rates.setdefault(value, []).append(_number(row["forwarded_pps"]))
    lost = sorted(wanted - set(rates))
    if lost:
        message = f"no trial was valid at {series.factor} = {', '.join(f'{value:g}' for value in lost)}"
        raise FitProblem(series.name, f"{message}: look at the reasons in results.parquet, and run again")
    points = [WorkPoint(work=value, rates_pps=tuple(rate)) for value, rate in sorted(rates.items())]
    law = fit_work(points, series=series.name, constant=series.law == "constant")
    return Calibrated(series=series, law=law)


def calibrate_latency(study: WireStudy, device: str, laws: Mapping[str, Calibrated], rows: Rows) -> FittedWakeup | None:
    """Fit wake-up and interruptions of a device to its latency rows that calibrate; None if none does."""
    points = []
    for latency in study.latency:
        law = laws[latency.series]
        if law.series.device != device:
            continue
        for ratio in latency.calibrate:
            mine = _rows_at(rows, latency.series, latency.value, ratio)
            quantiles_s = measured_quantiles_s(mine)
            if quantiles_s:
                offered_pps = median(_number(row["offered_pps"]) for row in mine if not row["invalid"])
                points.append(
                    LatencyPoint(
                        load=load_of(DeviceSetting.of(law.series, latency.value), offered_pps),
                        completion_s=law.law.seconds(latency.value),
                        quantiles_s=quantiles_s,
                        make_router=router_maker(law.series),
                    )
                )
    return fit_wakeup(points, series=device) if points else None


def measured_quantiles_s(rows: Rows) -> tuple[float, ...]:
    """Return the latency at :data:`QUANTILES`: at each probability the median over the valid repeats."""
    from routecast import _core

    quantiles = [
        _core.hdr_quantiles_s(str(row["latency_hdr_base64"]), QUANTILES)
        for row in rows
        if not row["invalid"] and row["latency_hdr_base64"]
    ]
    return tuple(median(each) for each in zip(*quantiles, strict=True))


def _rows_at(rows: Rows, series: str, value: float, ratio: float) -> Rows:
    return [row for row in rows if (row["series"], row["value"], row["offered_ratio"]) == (series, value, ratio)]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def answer(run: StudyRun[WireStudy], *, bench: Bench | None = None) -> WireResult:
    """Measure, calibrate, predict, and measure what was predicted.

    The points that calibrate are measured once, to know which loads to offer. Then everything is measured, repeat after
    repeat, and the points that calibrate, from all repeats, give the router's law, its wake-up and its interruptions.
    Nothing that is held out takes part in that.

    ``bench``: where devices are set up and measured; the study's test bed if not given. Raises RoutecastError: the test
    bed cannot be made, or the points do not carry a calibration.
    """
    study = run.study
    first, whole = list(first_points(study)), list(all_points(study))
    run.work = len(first) + len(whole)
    run.trials = run.work

    with run.ledger(COLUMNS) as ledger:
        run.resumed = sum(point.key(study.testbed) in ledger.rows for point in (*first, *whole))
        noting = _Noting(bench or TestbedBench(study.testbed.file, run.folder))
        place = Place(bench=noting, bed=study.testbed, ledger=ledger)
        overloads = Overloads(study.testbed.overload)
        begun = measure(first, overloads.offered_pps, place, run)
        guess = {series.name: calibrate_throughput(series, begun) for series in study.throughput}

        def load_pps(point: TrialPoint, evaluator: Evaluator) -> float:
            if point.kind == "throughput":
                return overloads.offered_pps(point, evaluator)
            return point.offered_ratio * guess[point.series].capacity_pps(point.value)

        rows = [*begun, *measure(whole, load_pps, place, run)]
    rates, losses, late = ([row for row in rows if row["kind"] == kind] for kind in ("throughput", "loss", "latency"))
    laws = {series.name: calibrate_throughput(series, rates) for series in study.throughput}
    devices = {series.device for series in study.throughput}
    run.tell("calibrate and predict")
    wakeups = {device: calibrate_latency(study, device, laws, late) for device in devices}
    laws = {name: replace(law, wakeup=wakeups[law.series.device]) for name, law in laws.items()}
    result = WireResult(
        study=study,
        out=run.out,
        series=tuple(_series(study, laws[series.name], rates) for series in study.throughput),
        loss=tuple(_loss(study, laws[loss.series], loss.value, loss.offered, losses) for loss in study.loss),
        latency=tuple(
            _latency(study, laws[each.series], each.value, each.loads, each.calibrate, late) for each in study.latency
        ),
        facts=noting.facts,
        invalid_trials=sum(bool(row["invalid"]) for row in rows),
        provenance=run.provenance(seed=study.evaluate.seed),
    )
    return replace(result, criteria=_criteria(result))


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
    values = [row[name] for row in rows]
    return Measured(values=tuple(float(value) for value in values if isinstance(value, int | float)))


def _offered(rows: Sequence[Row], otherwise_pps: float) -> float:
    """Return the load that was offered; another one where no trial was valid."""
    offered = _measured(rows, "offered_pps").median
    return otherwise_pps if math.isnan(offered) else offered


def _series(study: WireStudy, law: Calibrated, rows: Sequence[Row]) -> Series:
    series = []
    for value in law.series.values:
        mine = _at(rows, law.series.name, value)
        offered_pps = _offered(mine, study.testbed.overload * law.capacity_pps(value))
        series.append(
            SeriesRow(
                conditions=value,
                calibrates=value in law.series.calibrate,
                offered_pps=offered_pps,
                predicted=law.solve(value, offered_pps).forwarded_pps,
                intervals={0.95: law.law.interval_pps(value)},
                simulated_pps=_simulated(study, law, value, offered_pps).forwarded_pps,
            ).measured_as(_measured(mine, "forwarded_pps"))
        )
    return Series(series=law.series, law=law.law, rows=tuple(series))


def _loss(study: WireStudy, law: Calibrated, value: float, offered: Sequence[float], rows: Sequence[Row]) -> LossCurve:
    losses = []
    for ratio in offered:
        mine = _at(rows, law.series.name, value, ratio)
        offered_pps = _offered(mine, ratio * law.capacity_pps(value))
        losses.append(
            LossRow(
                offered_ratio=ratio,
                offered_pps=offered_pps,
                measured=_measured(mine, "loss_ratio"),
                solved=law.solve(value, offered_pps).loss_ratio,
                simulated=_simulated(study, law, value, offered_pps).loss_ratio,
            )
        )
    return LossCurve(series=law.series, value=value, capacity_pps=law.capacity_pps(value), rows=tuple(losses))


def _latency(
    study: WireStudy,
    law: Calibrated,
    value: float,
    loads: Sequence[float],
    calibrate: Sequence[float],
    rows: Sequence[Row],
) -> LatencyCurve:
    latencies = []
    for ratio in loads:
        mine = _at(rows, law.series.name, value, ratio)
        load_pps = _offered(mine, ratio * law.capacity_pps(value))
        simulated = _simulated(study, law, value, load_pps).latency
        solved = law.solve(value, load_pps).latency
        latencies.append(
            WireLatency(
                conditions=ratio,
                load_pps=load_pps,
                calibrates=ratio in calibrate,
                p99_s=_measured(mine, "latency_p99_s"),
                predicted=simulated.p50_s if simulated else math.nan,
                simulated_p99_s=simulated.p99_s if simulated else math.nan,
                solved_p50_s=solved.p50_s if solved else math.nan,
            ).measured_as(_measured(mine, "latency_p50_s"))
        )
    return LatencyCurve(
        series=law.series, value=value, capacity_pps=law.capacity_pps(value), wakeup=law.wakeup, rows=tuple(latencies)
    )


def _simulated(study: WireStudy, law: Calibrated, value: float, load_pps: float) -> Trial:
    return law.simulate(value, load_pps, duration_s=study.evaluate.duration, seed=study.evaluate.seed)


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
