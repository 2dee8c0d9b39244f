"""Run a study of latencies: measure rows, write the predictions down, measure between the rows, compare.

::

    of each device:  rate in overload ─► latency rows ─► curve ─► predictions ─► trials at the predicted loads
                                                                  │ on disk before the first of them begins

Each trial has its verdict when it ends: what disturbed it, or that it was invalid. Only trials without one count, in
the rows and in the comparison.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from statistics import median
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from routecast.calibration.latency import MeasuredLatency, measured_latency
from routecast.errors import EnvironmentProblem
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.points import LATENCY_STATISTICS, Point, PointLatency
from routecast.evaluate.protocol import Described, Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.latency_rows import latency_of
from routecast.lab.benchmark.overload import CLEAR_LOSS_RATIO, NoOverload, measure_forwarding_rate
from routecast.lab.study.latency.document import LatencyDevice, LatencyStudy
from routecast.lab.study.measure import (
    MOST_ITERATIONS,
    START_PPS,
    Bench,
    DeviceSetting,
    TestbedBench,
    load_of,
    needed_slowdown,
)
from routecast.lab.testbed.checks import disturbances
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.quantity import format_duration
from routecast.quantity.comparison import ErrorSummary
from routecast.study.engine import StudyRun
from routecast.study.result import NOT_MEASURED, Criterion, Measured, RepeatedRow, StudyResult, criteria_of

__all__ = [
    "PREDICTED_STATISTICS",
    "DeviceLatency",
    "LatencyBench",
    "LatencyStudyResult",
    "LatencyTestbed",
    "PredictedLoad",
    "answer",
    "verdict_on",
]

TrialKind = Literal["overload", "row", "judged"]

PREDICTED_STATISTICS = ("p50", "p99")
"""Quantiles that are predicted and then measured; the bounds of a study are on the first."""

_RATES = ("intended_pps", "offered_pps", "forwarded_pps", "loss_ratio")
_STATED_LEVEL = 0.95

COLUMNS: Columns = {
    **dict.fromkeys(("task", "kind", "device", "options"), "text"),
    "frame_bytes": "whole",
    "load_ratio": "number",
    **dict.fromkeys(("repeat", "attempt"), "whole"),
    **dict.fromkeys(_RATES, "number"),
    **{f"latency_{name}_s": "number" for name in LATENCY_STATISTICS},
    "latency_samples": "whole",
    "latency_arrivals": "text",
    "attempts": "whole",
    **dict.fromkeys(("disturbed", "invalid", "notes"), "text"),
    "slowdown": "whole",
    **{f"{what}_{name}_s": "number" for name in PREDICTED_STATISTICS for what in ("predicted", "low", "high")},
}
"""Columns of ``results.parquet``, whose rows are in the order in which they came to be.

``kind`` is ``setup`` (the load that overloads a device), ``overload``, ``row``, ``prediction`` or ``judged``.
"""


class LatencyBench(Bench, Protocol):
    """A place to measure devices, which knows what it lacks for one."""

    def lacks(self, name: str, options: Mapping[str, str | int | float | bool]) -> str:
        """Return why a device cannot run here; empty if it can."""
        ...


class LatencyTestbed(TestbedBench):
    """A test bed: ``"namespaces"`` or a ``*.testbed.toml``."""

    def lacks(self, name: str, options: Mapping[str, str | int | float | bool]) -> str:
        """Return the programs that a device needs and this machine does not have; empty if it has all."""
        from routecast.lab.testbed.devices import make_device

        return "; ".join(f"needs {entry}" for entry in make_device(name, options).missing())

    def refuse_throttled(self, device: LatencyDevice, duration_s: float) -> None:
        """Raise EnvironmentProblem if the kernel would stop the bed's real-time threads in trials of this length."""
        from routecast.lab.testbed.reading import read_testbed

        throttle = RealTimeThrottle.of_machine()
        has_priority = read_testbed(self._file, device=device.device, options=device.options).priority > 0
        if throttle is not None and has_priority and duration_s >= 1e-6 * throttle.runtime_us:
            raise EnvironmentProblem(
                f"trials of {format_duration(duration_s)} meet {throttle.text}: make [testbed] duration shorter than "
                f"{format_duration(1e-6 * throttle.runtime_us)}, or turn it off with sysctl -w "
                "kernel.sched_rt_runtime_us=-1"
            )


def verdict_on(trial: Trial) -> str:
    """Return why a trial does not count: it is invalid, something disturbed it, or no frame was timed; else empty.

    Nothing here knows a prediction.
    """
    sentences = dict.fromkeys((*trial.invalid, *disturbances(trial)))
    if latency_of(trial) is None:
        sentences["no frame was timed"] = None
    return "; ".join(sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLoad(RepeatedRow[float]):
    """The median latency at a share of the capacity, in seconds: as predicted, and in each undisturbed trial.

    ``disturbed`` says of each other trial why it does not count. ``p99`` is the same of the 99th percentile.
    """

    trials: int
    disturbed: tuple[str, ...] = ()
    predicted_p99: float = math.nan
    interval_p99: tuple[float, float] = (math.nan, math.nan)
    repeats_p99: Measured = NOT_MEASURED

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "load_ratio": self.conditions,
            "trials": self.trials,
            "undisturbed": len(self.repeats.values),
            "disturbed": self.disturbed,
            "p50_s": self.repeats.values,
            "predicted_p50_s": self.predicted,
            "low_p50_s": self.low,
            "high_p50_s": self.high,
            "p99_s": self.repeats_p99.values,
            "predicted_p99_s": self.predicted_p99,
            "low_p99_s": self.interval_p99[0],
            "high_p99_s": self.interval_p99[1],
        }

    @property
    def errors(self) -> tuple[float, ...]:
        """Relative error of the predicted median in each undisturbed trial."""
        return _errors(self.predicted, self.repeats)

    @property
    def p99_errors(self) -> tuple[float, ...]:
        """Relative error of the predicted 99th percentile in each undisturbed trial."""
        return _errors(self.predicted_p99, self.repeats_p99)

    @property
    def covered(self) -> tuple[bool, ...]:
        """Whether the median of each undisturbed trial is inside the predicted 95 % interval."""
        if math.isnan(self.predicted):
            return ()
        return tuple(self.low <= seconds <= self.high for seconds in self.repeats.values)


def _errors(predicted: float, repeats: Measured) -> tuple[float, ...]:
    """Return the relative error of a prediction in each trial; none where nothing was predicted."""
    return () if math.isnan(predicted) else tuple(predicted / seconds - 1.0 for seconds in repeats.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLatency:
    """A device: its rate in overload, the rows, the curve through them, and the predicted loads.

    ``reason`` says why a device has no prediction; then nothing was measured at these loads.
    """

    device: LatencyDevice
    reason: str = ""
    slowdown: int = 0
    capacity_pps: float = math.nan
    rows: tuple[Point, ...] = ()
    curve: MeasuredLatency | None = None
    loads: tuple[PredictedLoad, ...] = ()

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "name": self.device.name,
            "device": self.device.device,
            "reason": self.reason,
            "slowdown": self.slowdown,
            "capacity_pps": self.capacity_pps,
            "rows": [
                {
                    "load_pps": row.latency.load_pps,
                    "p50_s": row.latency.p50_s,
                    "p99_s": row.latency.p99_s,
                    "disturbed": row.disturbed,
                }
                for row in self.rows
                if row.latency is not None
            ],
            "trials": self.trials,
            "undisturbed": self.undisturbed,
            "median_abs_error_ratio": self.errors.median_abs_error_ratio,
            "coverage_ratio": self.coverage_ratio,
            "p99_median_abs_error_ratio": self.p99_errors.median_abs_error_ratio,
            "loads": self.loads,
        }

    @property
    def trials(self) -> int:
        """Trials at the predicted loads."""
        return sum(load.trials for load in self.loads)

    @property
    def undisturbed(self) -> int:
        """Undisturbed trials at loads that have a prediction."""
        return sum(len(load.errors) for load in self.loads)

    @property
    def errors(self) -> ErrorSummary:
        """Errors of the predicted medians in undisturbed trials."""
        return ErrorSummary.of(error for load in self.loads for error in load.errors)

    @property
    def p99_errors(self) -> ErrorSummary:
        """Errors of the predicted 99th percentiles in undisturbed trials."""
        return ErrorSummary.of(error for load in self.loads for error in load.p99_errors)

    @property
    def coverage_ratio(self) -> float:
        """Share of the undisturbed trials whose median is inside its 95 % interval; NaN without one."""
        return _share(self.loads)


def _share(loads: Iterable[PredictedLoad]) -> float:
    covered = [is_covered for load in loads for is_covered in load.covered]
    return sum(covered) / len(covered) if covered else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyStudyResult(StudyResult[LatencyStudy]):
    """The results of a study of latencies."""

    devices: tuple[DeviceLatency, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def loads(self) -> tuple[PredictedLoad, ...]:
        """The predicted loads of all devices."""
        return tuple(load for device in self.devices for load in device.loads)

    @property
    def trials(self) -> int:
        """Trials at the predicted loads."""
        return sum(device.trials for device in self.devices)

    @property
    def undisturbed(self) -> int:
        """Undisturbed trials at the predicted loads."""
        return sum(device.undisturbed for device in self.devices)

    @property
    def judged_devices(self) -> int:
        """Devices with an undisturbed trial at a predicted load."""
        return sum(device.undisturbed > 0 for device in self.devices)

    @property
    def errors(self) -> ErrorSummary:
        """Errors of the predicted medians in undisturbed trials of all devices."""
        return ErrorSummary.of(error for load in self.loads for error in load.errors)

    @property
    def coverage_ratio(self) -> float:
        """Share of the undisturbed trials whose median is inside its 95 % interval; NaN without one."""
        return _share(self.loads)

    @property
    def is_enough(self) -> bool:
        """Whether there are the undisturbed trials that a judgement needs."""
        bounds = self.study.criteria
        return self.undisturbed >= bounds.trials and self.judged_devices >= bounds.devices

    @property
    def verdict(self) -> str:
        """What the study reached, in a sentence; from too few undisturbed trials nothing is claimed."""
        bounds = self.study.criteria
        over = f"{_counted(self.undisturbed, 'undisturbed trial')} over {_counted(self.judged_devices, 'device')}"
        if not self.is_enough:
            needed = f"a judgement needs {bounds.trials} over {bounds.devices}"
            return f"not reached: only {over} ({self.trials} trials in all); {needed}"
        errors = f"median error of the median latency {100.0 * self.errors.median_abs_error_ratio:.1f} %"
        inside = f"{100.0 * self.coverage_ratio:.0f} % inside their 95 % intervals"
        is_met = all(criterion.is_met for criterion in _criteria(self))
        return f"{'reached' if is_met else 'not reached'}: {errors}, {inside}, in {over}"

    def _findings(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "trials": self.trials,
            "undisturbed": self.undisturbed,
            "judged_devices": self.judged_devices,
            "median_abs_error_ratio": self.errors.median_abs_error_ratio,
            "coverage_ratio": self.coverage_ratio,
            "devices": self.devices,
            "facts": self.facts,
        }


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def answer(run: StudyRun[LatencyStudy], *, bench: LatencyBench | None = None) -> LatencyStudyResult:
    """Measure the rows of each device, predict the latency between them, measure it there, and compare.

    ``bench``: place to set up and measure devices, by default the study's test bed. Raises
    EnvironmentProblem: no device can be measured (a device that cannot has its reason in the result), or the kernel
    would stop real-time threads in trials of this length.
    """
    study = run.study
    loads, repeats = study.loads, study.testbed.repeats
    of_device = loads.row_repeats * (1 + len(loads.rows)) + repeats * len(loads.predict)
    run.work = run.trials = len(study.device) * of_device
    if bench is None:
        bench = LatencyTestbed(study.testbed.file, run.folder)
        bench.refuse_throttled(study.device[0], study.testbed.duration)
    with run.ledger(COLUMNS) as ledger:
        measurer = _DeviceMeasurer(bench=bench, run=run, ledger=ledger)
        devices = tuple(measurer.measured(device) for device in study.device)
    if len(measurer.problems) == len(devices):  # what every device lacks is no result of a device
        raise measurer.problems[-1]
    run.trials = measurer.trials
    notes = tuple(f"{device.device.name}: {device.reason}" for device in devices if device.reason)
    notes += tuple(
        f"The tester does not overload {device.device.name}: the study slowed it down by {device.slowdown:,} "
        "iterations a frame (option slowdown)"
        for device in devices
        if device.slowdown
    )
    result = LatencyStudyResult(
        study=study,
        out=run.out,
        devices=devices,
        facts=measurer.facts,
        notes=notes or None,
        provenance=run.provenance(),
    )
    return replace(result, criteria=_criteria(result))


def _criteria(result: LatencyStudyResult) -> tuple[Criterion, ...]:
    """Return the criteria: the trials that a judgement needs, and with them the bounds on the errors."""
    bounds = result.study.criteria
    needed = criteria_of(
        ("missing undisturbed trials", 0.0, max(bounds.trials - result.undisturbed, 0)),
        ("missing devices with undisturbed trials", 0.0, max(bounds.devices - result.judged_devices, 0)),
    )
    if not result.is_enough:
        return needed
    outside = None if bounds.p50_coverage is None else 1.0 - bounds.p50_coverage
    return needed + criteria_of(
        ("median error of median latencies", bounds.p50_median, result.errors.median_abs_error_ratio),
        ("share of median latencies outside their 95 % intervals", outside, 1.0 - result.coverage_ratio),
    )


@dataclass(slots=True, kw_only=True)
class _DeviceMeasurer:
    """Measures devices on a bench, one at a time; the ledger keeps what is finished, in order."""

    bench: LatencyBench
    run: StudyRun[LatencyStudy]
    ledger: Ledger
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[EnvironmentProblem] = field(default_factory=list)
    trials: int = 0

    def measured(self, device: LatencyDevice) -> DeviceLatency:
        """Measure rows, predict, and measure the predicted loads of a device."""
        if reason := self.bench.lacks(device.device, device.options):
            return DeviceLatency(device=device, reason=f"not run: {reason}")
        slowdown = 0
        while True:
            try:
                return self._with_slowdown(device, slowdown)
            except NoOverload as end:
                least = needed_slowdown(end.forwarded_pps, self.run.study.testbed.overload)
                greater = max(least, 2 * slowdown)
                if self.bench.slowed_by(device.device, device.options) != "study" or greater > MOST_ITERATIONS:
                    return DeviceLatency(device=device, reason=f"not measured: {end}")
                slowdown = greater
                self.run.report_step(f"slow {device.name} down by {slowdown:,} iterations a frame")
            except EnvironmentProblem as problem:
                self.problems.append(problem)
                return DeviceLatency(device=device, reason=f"not measured: {problem}")

    def _with_slowdown(self, device: LatencyDevice, slowdown: int) -> DeviceLatency:
        study = self.run.study
        # An interrupted run has found the slowdown.
        setup_key = self.key("setup", device.device, device.options)
        setup = self.ledger.rows.get(setup_key)
        slowdown = int(setup["slowdown"] or 0) if setup is not None else slowdown
        options = dict(device.options)
        if slowdown:
            options["slowdown"] = int(float(options.get("slowdown", 0))) + slowdown
        setting = DeviceSetting(
            device=device.device, options=tuple(sorted(options.items())), frame_bytes=study.loads.frame, flows=1
        )
        with _Opened(self, setting) as opened:
            if setup is None:
                overload_pps = self._overload_pps(opened.evaluator(), setting)
                setup = {"task": setup_key, "kind": "setup", "slowdown": slowdown, "intended_pps": overload_pps}
                self.ledger.add(setup)
            return self._judged(device, opened, float(setup["intended_pps"] or 0.0), slowdown)

    def _overload_pps(self, evaluator: Evaluator, setting: DeviceSetting) -> float:
        """Return a load at which a trial of the study's length overloads the device.

        Raises NoOverload: the tester reaches none.
        """
        bed = self.run.study.testbed
        rate = measure_forwarding_rate(
            evaluator, load_of(setting, START_PPS), duration_s=bed.duration, overload_ratio=bed.overload
        )
        trial = rate.trial
        if rate.lower_bound:
            message = f"{rate.lower_bound}: {trial.forwarded_pps:,.0f} frames/s were forwarded; use a faster tester"
            raise NoOverload(trial.forwarded_pps, trial.intended_pps, message)
        return trial.intended_pps

    def _judged(self, device: LatencyDevice, opened: _Opened, overload_pps: float, slowdown: int) -> DeviceLatency:
        """Measure rates and rows, write the predictions down, and measure the predicted loads."""
        loads, repeats = self.run.study.loads, self.run.study.testbed.repeats
        ratio = self.run.study.testbed.overload
        rates = [
            row
            for repeat in range(loads.row_repeats)
            for row in opened.trials("overload", ratio, repeat, overload_pps, name=device.name)
        ]
        outcome = DeviceLatency(device=device, slowdown=slowdown)
        overloaded = [row for row in rates if not row["invalid"] and _number(row["loss_ratio"]) > CLEAR_LOSS_RATIO]
        if not overloaded:
            why = rates[-1]["invalid"] or f"a loss of {_number(rates[-1]['loss_ratio']):.1%} shows no overload"
            return replace(outcome, reason=f"not measured: no trial in overload is valid ({why})")
        counting = [row for row in overloaded if not row["disturbed"]] or overloaded
        capacity_pps = median(_number(row["forwarded_pps"]) for row in counting)
        rate_points = [_rate_point(device, opened.setting, row) for row in counting]
        row_trials = [
            row
            for repeat in range(loads.row_repeats)
            for load in loads.rows
            for row in opened.trials("row", load, repeat, load * capacity_pps, name=device.name)
        ]
        rows = tuple(point for row in row_trials if (point := _row_point(rate_points[0], row, capacity_pps)))
        outcome = replace(outcome, capacity_pps=capacity_pps, rows=rows)
        curves = _curves(rate_points, rows)
        lacking = [
            f"{load:.0%}"
            for load in loads.rows
            if not any(row["load_ratio"] == load and not row["disturbed"] for row in row_trials)
        ]
        if lacking or "p50" not in curves:
            return replace(outcome, reason=f"disturbed: not calibrated, no trial at {' or '.join(lacking)} counts")
        basis = self.key("prediction", opened.setting, [row["task"] for row in (*rates, *row_trials)])
        predictions = {
            load: self._prediction(basis, opened.setting, load, capacity_pps, curves) for load in loads.predict
        }
        self.ledger.flush()
        judged = [
            row
            for repeat in range(repeats)
            for load in loads.predict
            for row in opened.trials("judged", load, repeat, load * capacity_pps, name=device.name, basis=basis)
        ]
        return replace(
            outcome,
            curve=curves["p50"],
            loads=tuple(
                _predicted_load(predictions[load], [row for row in judged if row["load_ratio"] == load])
                for load in loads.predict
            ),
        )

    def _prediction(
        self,
        basis: str,
        setting: DeviceSetting,
        load: float,
        capacity_pps: float,
        curves: Mapping[str, MeasuredLatency],
    ) -> Row:
        """Return the prediction at a load as it was written down, or write it down."""
        key = self.key(basis, load)
        if key not in self.ledger.rows:
            predicted: Row = {}
            for name, curve in curves.items():
                at = curve.at_rate(load * capacity_pps, 1)
                predicted |= {
                    f"predicted_{name}_s": at.latency_s,
                    f"low_{name}_s": at.low_s,
                    f"high_{name}_s": at.high_s,
                }
            self.ledger.add(
                {
                    "task": key,
                    "kind": "prediction",
                    **_cells_of(setting),
                    "load_ratio": load,
                    "intended_pps": load * capacity_pps,
                    **predicted,
                }
            )
        return self.ledger.rows[key]

    def key(self, *conditions: object) -> str:
        """Return the key of a row in the ledger: a hash of all its conditions."""
        text = repr((conditions, self.run.study.testbed.file, self.run.study.testbed.duration))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


class _Opened:
    """A device that is set up with its first trial, and removed at the end of the context."""

    def __init__(self, measurer: _DeviceMeasurer, setting: DeviceSetting) -> None:
        self._measurer = measurer
        self.setting = setting
        self._evaluator: Evaluator | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return self._stack.__exit__(kind, error, trace)

    def evaluator(self) -> Evaluator:
        """Return the evaluator of the device."""
        if self._evaluator is None:
            device = self._measurer.bench.device(self.setting.device, dict(self.setting.options))
            self._evaluator = self._stack.enter_context(device)
            if isinstance(self._evaluator, Described):
                self._measurer.facts.setdefault(self.setting.device, dict(self._evaluator.facts()))
        return self._evaluator

    def trials(
        self, kind: TrialKind, load: float, repeat: int, rate_pps: float, *, name: str, basis: str = ""
    ) -> list[Row]:
        """Return the rows of trials at a load up to the first that nothing disturbed, from the ledger or measured."""
        self._measurer.run.step(f"{name}: {kind}, load {load:g}")
        rows: list[Row] = []
        for attempt in range(self._measurer.run.study.loads.attempts):
            rows.append(self._trial(kind, load, repeat, rate_pps, attempt, basis))
            if not rows[-1]["disturbed"]:
                break
        return rows

    def _trial(self, kind: TrialKind, load: float, repeat: int, rate_pps: float, attempt: int, basis: str) -> Row:
        measurer = self._measurer
        key = measurer.key(kind, self.setting, load, repeat, attempt, basis)
        measurer.trials += 1
        if key in measurer.ledger.rows:
            measurer.run.resumed += 1
        else:
            trial = self.evaluator().trial(load_of(self.setting, rate_pps), measurer.run.study.testbed.duration)
            latency = latency_of(trial)
            measurer.ledger.add(
                {
                    "task": key,
                    "kind": kind,
                    **_cells_of(self.setting),
                    "load_ratio": load,
                    "repeat": repeat,
                    "attempt": attempt,
                    **{rate: getattr(trial, rate) for rate in _RATES},
                    **{f"latency_{each}_s": latency.of(each) if latency else None for each in LATENCY_STATISTICS},
                    "latency_samples": latency.samples if latency else None,
                    "latency_arrivals": latency.arrivals if latency else "",
                    "attempts": trial.attempts,
                    "disturbed": verdict_on(trial),
                    "invalid": "; ".join(trial.invalid),
                    "notes": "; ".join(trial.notes),
                }
            )
        return measurer.ledger.rows[key]


def _cells_of(setting: DeviceSetting) -> Row:
    return {
        "device": setting.device,
        "options": "; ".join(f"{name} = {value}" for name, value in setting.options),
        "frame_bytes": setting.frame_bytes,
    }


def _number(cell: str | int | float | None) -> float:
    return float(cell) if isinstance(cell, int | float) else math.nan


def _rate_point(device: LatencyDevice, setting: DeviceSetting, row: Row) -> Point:
    return Point(
        cores=1,
        frame_bytes=float(setting.frame_bytes),
        throughput_pps=_number(row["forwarded_pps"]),
        ports=1,
        series=device.name,
        calibrate=True,
        rate_kind="overload",
        disturbed=str(row["disturbed"] or ""),
    )


def _row_point(rate: Point, row: Row, capacity_pps: float) -> Point | None:
    """Return the latency row of a trial, with the capacity that its load is a share of; None without a latency."""
    times: dict[str, Any] = {f"{name}_s": _number(row[f"latency_{name}_s"]) for name in LATENCY_STATISTICS}
    if all(map(math.isnan, times.values())):
        return None
    latency = PointLatency(
        load_pps=_number(row["offered_pps"]),
        arrivals=str(row["latency_arrivals"] or ""),
        samples=int(_number(row["latency_samples"])) if row["latency_samples"] is not None else None,
        **times,
    )
    disturbed = str(row["disturbed"] or "")
    return replace(rate, throughput_pps=capacity_pps, calibrate=False, disturbed=disturbed, latency=latency)


def _curves(rates: Sequence[Point], rows: Sequence[Point]) -> dict[str, MeasuredLatency]:
    """Return the curves of the predicted quantiles through the undisturbed rows; none of one that no row has."""
    from routecast.calibration import fit

    fitted = fit(list(rates))
    points = [*rates, *rows]
    curves = {name: measured_latency(fitted, points, rates[0], name) for name in PREDICTED_STATISTICS}
    return {name: curve for name, curve in curves.items() if curve is not None}


def _predicted_load(prediction: Row, trials: Sequence[Row]) -> PredictedLoad:
    """Compare what was written down with the undisturbed trials."""
    undisturbed = [row for row in trials if not row["disturbed"]]

    def measured(name: str) -> Measured:
        return Measured(values=tuple(_number(row[f"latency_{name}_s"]) for row in undisturbed))

    def interval(name: str) -> tuple[float, float]:
        return _number(prediction.get(f"low_{name}_s")), _number(prediction.get(f"high_{name}_s"))

    return PredictedLoad(
        conditions=_number(prediction["load_ratio"]),
        trials=len(trials),
        disturbed=tuple(str(row["disturbed"]) for row in trials if row["disturbed"]),
        predicted=_number(prediction["predicted_p50_s"]),
        intervals={_STATED_LEVEL: interval("p50")},
        predicted_p99=_number(prediction.get("predicted_p99_s")),
        interval_p99=interval("p99"),
        repeats_p99=measured("p99"),
    ).measured_as(measured("p50"))
