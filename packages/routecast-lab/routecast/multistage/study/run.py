"""Studies of routers of many machines: predict, write the prediction, measure throughput and failures, compare.

::

    trials of a BR without a cap ─► latency ┐
    file ─► model ─► simulation ────────────┴─► OUT/prediction.json ─► trials, failures ─► comparison
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, product
from pathlib import Path
from statistics import median
from typing import Any, Literal, Protocol

from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.plain import plain
from routecast.evaluate.protocol import Described, Evaluator, Resettable
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.trial import Moment, Trial
from routecast.lab.testbed.opening import make_bed, open_testbed
from routecast.lab.testbed.streams import Addressing, streams_of
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.multistage._model import FlowChoices, deaths_of, model_of, takeover_of
from routecast.multistage.device import MultistageDevice
from routecast.multistage.reading import MultistageFile
from routecast.multistage.study.document import FailureTable, MultistageStudy
from routecast.quantity.whole_file import write_whole
from routecast.router.events import Event
from routecast.router.model import RouterModel
from routecast.study.engine import StudyRun
from routecast.study.result import NOT_MEASURED, Criterion, Measured, RepeatedRow, StudyResult, criteria_of

__all__ = ["FailureRow", "MultistageLatency", "MultistageResult", "ThroughputRow", "answer"]

PREDICTION = "prediction.json"
"""File of the predictions, which is written before the first failure."""

_PART_S = 0.005
"""Interval of rates over time, s."""
_TIME_TOLERANCE_S = 0.002
"""Error of a detection time that counts as no error, s."""

Kind = Literal["calibration", "throughput", "latency", "failure"]

COLUMNS: Columns = {
    **dict.fromkeys(("task", "kind", "failure"), "text"),
    **dict.fromkeys(("routers", "balancers"), "whole"),
    **dict.fromkeys(("cap_pps", "load_pps"), "number"),
    **dict.fromkeys(("flows", "repeat"), "whole"),
    "began": "text",
    **dict.fromkeys(("offered_frames", "forwarded_frames", "dropped_frames"), "whole"),
    **dict.fromkeys(("duration_s", "loss_from_s", "latency_p50_s", "latency_p99_s"), "number"),
    **dict.fromkeys(("arrivals", "over_time", "invalid", "notes"), "text"),
}
"""Columns of ``results.parquet``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSetting:
    """A router with a number of equal back-end routers."""

    routers: int
    balancers: int = 1
    cap_pps: int = 0
    away_ms: int = 0

    def options(self) -> dict[str, object]:
        """Return the options of the device."""
        return {key: value for key, value in asdict(self).items() if value or key != "away_ms"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPoint:
    """One trial of the study."""

    kind: Kind
    setting: RouterSetting
    load_pps: float
    flows: int
    repeat: int
    failure: FailureTable | None = None

    def key(self, study: MultistageStudy) -> str:
        """Return the key of the trial: all settings that decide its result."""
        trials = study.trials
        text = repr((self, trials.testbed, trials.duration, trials.frame))
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def load(self, study: MultistageStudy) -> OfferedLoad:
        """Return the load: a constant rate from port 0 to port 1 with equal shares of all flows."""
        one_way = tuple(Flow(rss_hash=number % 128, ingress=0, egress=1) for number in range(self.flows))
        return OfferedLoad(
            rate_pps=self.load_pps,
            frames=FrameMix.fixed(study.trials.frame),
            flows=FlowSet(name=f"{self.flows} flows, one way", flows=one_way),
        )

    def title(self) -> str:
        """Return the name of the trial for progress messages."""
        subject = self.failure.name if self.failure else self.kind
        return f"{subject}, {self.setting.routers} back-end routers, trial {self.repeat}"


class Router(Evaluator, Resettable, Protocol):
    """A router under test, whose elements can fail."""


class Bench(Protocol):
    """The place where routers are made and measured."""

    def device(self, setting: RouterSetting) -> AbstractContextManager[Router]:
        """Make a router; leaving the context removes it."""
        ...


class TestbedBench:
    """A test bed of namespaces."""

    __test__ = False  # pytest would collect it by its name

    def __init__(self, study: MultistageStudy, folder: Path) -> None:
        bed = study.trials.testbed
        self.testbed = bed if bed == "namespaces" else str(folder / bed)

    def device(self, setting: RouterSetting) -> AbstractContextManager[Router]:
        """Make the test bed with a router of many machines in it."""
        return open_testbed(self.testbed, device=MultistageDevice.name, options=setting.options(), over_time=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputRow(RepeatedRow[int]):
    """Throughput of a router of n machines in overload, frames/s."""

    offered_pps: float
    sum_of_caps_pps: float

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "routers": self.conditions,
            "offered_pps": self.offered_pps,
            "sum_of_caps_pps": self.sum_of_caps_pps,
            "predicted_pps": self.predicted,
            "measured_pps": self.repeats,
            "over_the_sum": self.over_the_sum,
            "error_ratio": self.error_ratio,
        }

    @property
    def over_the_sum(self) -> float:
        """Measured throughput over the sum of caps; above 1, because the queues fill during a trial."""
        return self.measured / self.sum_of_caps_pps


@dataclass(frozen=True, slots=True, kw_only=True)
class MultistageLatency(RepeatedRow[int]):
    """Median latency of a router of n machines at a load below the sum of caps, s.

    ``arrivals``: those of the measured and the predicted trials, in words.
    """

    load_pps: float
    predicted_p99_s: float
    arrivals: str
    p99_s: Measured = NOT_MEASURED

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "routers": self.conditions,
            "load_pps": self.load_pps,
            "predicted_p50_s": self.predicted,
            "predicted_p99_s": self.predicted_p99_s,
            "p50_s": self.repeats,
            "p99_s": self.p99_s,
            "error_ratio": self.error_ratio,
            "arrivals": self.arrivals,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow(RepeatedRow[FailureTable]):
    """A failure with its predicted and measured loss, frames."""

    load_pps: float
    victims: tuple[str, ...]
    share: float
    predicted_away_s: float
    simulated_frames: float
    predicted_rates: tuple[tuple[float, float], ...]
    measured_rates: tuple[tuple[tuple[float, float], ...], ...] = ()

    def plain_entries(self) -> dict[str, object]:
        """Return the entries of the summary."""
        return {
            "load_pps": self.load_pps,
            "victims": self.victims,
            "share": self.share,
            "predicted_away_s": self.predicted_away_s,
            "predicted_frames": self.predicted,
            "simulated_frames": self.simulated_frames,
            "lost_frames": self.repeats,
            "name": self.conditions.name,
            "away_s": self.away_s,
            "error_ratio": self.error_ratio,
        }

    @property
    def victims_pps(self) -> float:
        """Rate towards the failing elements, frames/s."""
        return self.share * self.load_pps

    @property
    def away_s(self) -> float:
        """Time without the flows: lost frames over the rate towards the failing elements."""
        return self.measured / self.victims_pps

    @property
    def missed_ratio(self) -> float:
        """Absolute error of the loss; 0 if the error of the time is at most 2 ms."""
        is_close = abs(self.predicted_away_s - self.away_s) <= _TIME_TOLERANCE_S
        return 0.0 if is_close else abs(self.error_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultistageResult(StudyResult[MultistageStudy]):
    """Throughput, latency and failures, predicted and measured."""

    throughput: tuple[ThroughputRow, ...]
    latency: tuple[MultistageLatency, ...]
    failures: tuple[FailureRow, ...]
    prediction_written: str
    first_failure: str
    invalid_trials: int
    facts: Mapping[str, Any]

    def _findings(self) -> dict[str, object]:
        return {
            "prediction_written": self.prediction_written,
            "first_failure": self.first_failure,
            "throughput": self.throughput,
            "latency": self.latency,
            "failures": self.failures,
            "invalid_trials": self.invalid_trials,
        }

    @property
    def max_distance_from_sum(self) -> float:
        """Largest distance of a throughput from the sum of caps; NaN if a throughput was not measured."""
        return _largest_error(row.over_the_sum - 1.0 for row in self.throughput)

    @property
    def throughput_error_ratio(self) -> float:
        """Largest error of a throughput."""
        return _largest_error(row.error_ratio for row in self.throughput)

    @property
    def latency_error_ratio(self) -> float:
        """Median error of median latencies."""
        errors = [abs(row.error_ratio) for row in self.latency if math.isfinite(row.error_ratio)]
        return median(errors) if errors else math.nan

    @property
    def deaths(self) -> tuple[FailureRow, ...]:
        """Failures of back-end routers."""
        return tuple(row for row in self.failures if row.conditions.elements != "balancer")

    @property
    def takeovers(self) -> tuple[FailureRow, ...]:
        """Failures of the active load balancer."""
        return tuple(row for row in self.failures if row.conditions.elements == "balancer")


def answer(run: StudyRun[MultistageStudy], *, bench: Bench | None = None) -> MultistageResult:
    """Predict, write the prediction, measure, compare.

    ``bench``: makes the routers; the study's test bed if not given. Raises RoutecastError: the test bed cannot be made,
    or a privilege or a program is missing.
    """
    study = run.study
    testbed = TestbedBench(study, run.folder)
    calibration, points = list(_calibration(study)), list(_points(study))
    run.trials = run.work = len(calibration) + len(points)
    with run.ledger(COLUMNS) as ledger:
        run.resumed = sum(point.key(study) in ledger.rows for point in (*calibration, *points))
        measuring = _Measuring(run=run, ledger=ledger, bench=bench or testbed, facts={})
        calibration_rows = measuring.rows(calibration)
        run.report_step("predict")
        predicting = _Predicting(study=study, testbed=testbed.testbed)
        throughput = [predicting.throughput(count) for count in study.routers.count]
        latency = [_latency(study, count, calibration_rows) for count in study.routers.count]
        failures = [predicting.failure(failure) for failure in study.failure]
        written = _write_prediction(run, throughput, latency, failures)
        rows = measuring.rows(points)
    result = MultistageResult(
        study=study,
        out=run.out,
        throughput=tuple(_with_throughput(row, rows) for row in throughput),
        latency=tuple(_with_latency(row, rows) for row in latency),
        failures=tuple(_with_losses(row, rows) for row in failures),
        prediction_written=written,
        first_failure=min((str(row["began"]) for row in rows if row["kind"] == "failure"), default=""),
        invalid_trials=sum(bool(row["invalid"]) for row in (*calibration_rows, *rows)),
        facts=measuring.facts,
        provenance=run.provenance(),
    )
    return replace(result, criteria=_criteria(result))


def _calibration(study: MultistageStudy) -> Iterator[TrialPoint]:
    """Yield the trials of a single back-end router without a cap, at the latency load of each router."""
    for repeat in range(1, study.trials.repeats + 1):
        for count in study.routers.count:
            yield TrialPoint(
                kind="calibration",
                setting=RouterSetting(routers=1),
                load_pps=_latency_pps(study, count),
                flows=count * study.routers.flows,
                repeat=repeat,
            )


def _points(study: MultistageStudy) -> Iterator[TrialPoint]:
    """Yield all other trials, grouped by router, because making a router takes longer than a trial."""
    repeats = range(1, study.trials.repeats + 1)
    cap_pps = round(study.routers.cap)
    for count in study.routers.count:
        overload_pps = study.trials.overload * count * study.routers.cap
        loads: tuple[tuple[Kind, float], ...] = (("throughput", overload_pps), ("latency", _latency_pps(study, count)))
        for repeat, (kind, load_pps) in product(repeats, loads):
            yield TrialPoint(
                kind=kind,
                setting=RouterSetting(routers=count, cap_pps=cap_pps),
                load_pps=load_pps,
                flows=count * study.routers.flows,
                repeat=repeat,
            )
    for failure, repeat in product(study.failure, repeats):
        yield TrialPoint(
            kind="failure",
            setting=RouterSetting(
                routers=failure.routers,
                balancers=2 if failure.elements == "balancer" else 1,
                cap_pps=cap_pps,
                away_ms=max(round(1e3 * failure.away), 1),
            ),
            load_pps=failure.load * failure.routers * study.routers.cap,
            flows=failure.routers * failure.flows,
            repeat=repeat,
            failure=failure,
        )


def _latency_pps(study: MultistageStudy, routers: int) -> float:
    return study.trials.latency_load * routers * study.routers.cap


@dataclass(slots=True, kw_only=True)
class _Measuring:
    run: StudyRun[MultistageStudy]
    ledger: Ledger
    bench: Bench
    facts: dict[str, Any]

    def rows(self, points: Sequence[TrialPoint]) -> list[Row]:
        """Measure the points that the ledger lacks, and return the rows of all points, in order."""
        study, rows = self.run.study, self.ledger.rows
        done = self.run.done
        for setting, group in groupby(points, key=lambda point: point.setting):
            trials = list(group)
            missing = [point for point in trials if point.key(study) not in rows]
            if missing:
                self.run.done = done
                self.run.report_step(f"make a router of {setting.routers}")
                with self.bench.device(setting) as evaluator:
                    if isinstance(evaluator, Described):
                        self.facts = dict(evaluator.facts())
                    for point in missing:
                        self.run.done = done + trials.index(point)
                        self.run.report_step(point.title())
                        self.ledger.add(_row(study, point, evaluator))
            done += len(trials)
        self.run.done = done
        return [rows[point.key(study)] for point in points]


def _row(study: MultistageStudy, point: TrialPoint, evaluator: Router) -> Row:
    began = _now()
    duration_s, load, failure = study.trials.duration, point.load(study), point.failure
    if failure is None:
        trial = evaluator.trial(load, duration_s)
    else:
        trial = evaluator.reset_trial(load, duration_s, kind=failure.kind, at_s=failure.at)
    latency = trial.latency
    course = _rate_course(trial.over_time) if failure else ()
    return {
        "task": point.key(study),
        "kind": point.kind,
        "failure": failure.name if failure else "",
        "routers": point.setting.routers,
        "balancers": point.setting.balancers,
        "cap_pps": float(point.setting.cap_pps),
        "load_pps": point.load_pps,
        "flows": point.flows,
        "repeat": point.repeat,
        "began": began,
        "offered_frames": trial.offered_frames,
        "forwarded_frames": trial.forwarded_frames,
        "dropped_frames": trial.dropped_frames,
        "duration_s": trial.duration_s,
        "loss_from_s": _loss_from_s(trial.over_time) if failure else math.nan,
        "latency_p50_s": latency.p50_s if latency else None,
        "latency_p99_s": latency.p99_s if latency else None,
        "arrivals": trial.arrivals,
        "over_time": json.dumps([[round(time_s, 6), round(rate_pps, 1)] for time_s, rate_pps in course]),
        "invalid": "; ".join(trial.invalid),
        "notes": "; ".join(trial.notes),
    }


def _loss_from_s(moments: Sequence[Moment]) -> float:
    """Return the start of the spell with the most loss, s; NaN without loss. A stall may lose frames before it."""
    spells: list[tuple[float, list[Moment]]] = []
    for moment in moments:
        if not moment.dropped_pps:
            continue
        if spells and moment.time_s - spells[-1][1][-1].time_s <= _PART_S:
            spells[-1][1].append(moment)
        else:
            spells.append((moment.time_s, [moment]))
    return max(spells, key=lambda spell: sum(moment.dropped_pps for moment in spell[1]), default=(math.nan, []))[0]


def _rate_course(moments: Sequence[Moment]) -> tuple[tuple[float, float], ...]:
    """Return forwarded rates over time: the middle of each interval of :data:`_PART_S`, s, and its rate, frames/s."""
    if len(moments) < 2:
        return ()
    moment_s = moments[1].time_s - moments[0].time_s
    length = max(round(_PART_S / moment_s), 1)
    parts = [moments[start : start + length] for start in range(0, len(moments), length)]
    return tuple(
        (part[0].time_s + len(part) * moment_s / 2.0, math.fsum(moment.forwarded_pps for moment in part) / len(part))
        for part in parts
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Predicting:
    study: MultistageStudy
    testbed: str

    def _router_and_flows(self, point: TrialPoint) -> tuple[MultistageFile, FlowChoices]:
        """Return the router of a trial, and the back-end routers of the tester's flows."""
        bed = make_bed(self.testbed, device=MultistageDevice.name, options=point.setting.options())
        assert isinstance(bed.device, MultistageDevice)
        file = bed.device.planned()
        streams = streams_of(point.load(self.study), bed.ports, Addressing(layer=bed.layer)).streams
        return file, FlowChoices.of(file, [flow for stream in streams for flow in stream["flows"]])

    def throughput(self, count: int) -> ThroughputRow:
        """Predict the throughput of a router of ``count`` machines in overload."""
        point = next(
            point for point in _points(self.study) if (point.kind, point.setting.routers) == ("throughput", count)
        )
        trial = self._simulate(point, model_of(*self._router_and_flows(point)))
        assert trial.offered_frames is not None
        assert trial.dropped_frames is not None
        return ThroughputRow(
            conditions=count,
            offered_pps=point.load_pps,
            sum_of_caps_pps=count * self.study.routers.cap,
            predicted=(trial.offered_frames - trial.dropped_frames) / trial.duration_s,
        )

    def failure(self, failure: FailureTable) -> FailureRow:
        """Predict a failure: the loss in closed form, and the rate over time by the simulator."""
        point = next(point for point in _points(self.study) if point.failure == failure)
        file, flows = self._router_and_flows(point)
        model = model_of(file, flows)
        rate_pps = point.load_pps
        if failure.elements == "balancer":
            victims, share = [file.balancer[0].name], 1.0
            deaths = takeover_of(file, rate_pps=rate_pps, at_s=failure.at)
        else:
            victims = [router.name for router in file.router][-1 if failure.elements == "router" else -2 :]
            share = math.fsum(map(flows.share, victims))
            back_s = failure.at + failure.away
            deaths = deaths_of(model, file, flows, victims, rate_pps=rate_pps, at_s=failure.at, back_s=back_s)
        trial = self._simulate(point, model, deaths.events)
        return FailureRow(
            conditions=failure,
            load_pps=rate_pps,
            victims=tuple(victims),
            share=share,
            predicted_away_s=deaths.lost_frames / (share * rate_pps),
            predicted=deaths.lost_frames,
            simulated_frames=float(trial.dropped_frames or 0),
            predicted_rates=_relative_to(_rate_course(trial.over_time), failure.at),
        )

    def _simulate(self, point: TrialPoint, model: RouterModel, events: tuple[Event, ...] = ()) -> Trial:
        simulate = Simulate(model, events=events, steady_state=False, over_time=True)
        return simulate.trial(point.load(self.study), self.study.trials.duration)


def _latency(study: MultistageStudy, count: int, calibration_rows: Sequence[Row]) -> MultistageLatency:
    """Predict the latency as that of a single back-end router without a cap at the same load.

    A frame passes the load balancer twice and one of any number of back-end routers. The emulated cap drops without
    delay. All machines share the cores of this machine, which process the same number of frames.
    """
    load_pps = _latency_pps(study, count)
    matching = _valid_rows(calibration_rows, load_pps=load_pps)
    return MultistageLatency(
        conditions=count,
        load_pps=load_pps,
        predicted=_measured(matching, "latency_p50_s").median,
        predicted_p99_s=_measured(matching, "latency_p99_s").median,
        # Rows of an earlier version do not say them.
        arrivals=next((str(row["arrivals"]) for row in matching if row["arrivals"]), ""),
    )


def _write_prediction(
    run: StudyRun[MultistageStudy],
    throughput: Sequence[ThroughputRow],
    latency: Sequence[MultistageLatency],
    failures: Sequence[FailureRow],
) -> str:
    """Write the prediction unless the same is in the file, and return the time of its writing."""
    path = run.out / PREDICTION
    document = plain(
        {
            "study": run.study.name,
            "throughput": [
                {"routers": row.conditions, "offered_pps": row.offered_pps, "forwarded_pps": row.predicted}
                for row in throughput
            ],
            "latency": [
                {
                    "routers": row.conditions,
                    "load_pps": row.load_pps,
                    "p50_s": row.predicted,
                    "p99_s": row.predicted_p99_s,
                }
                for row in latency
            ],
            "failures": [
                {
                    "name": row.conditions.name,
                    "victims": row.victims,
                    "load_pps": row.load_pps,
                    "share": row.share,
                    "away_s": row.predicted_away_s,
                    "lost_frames": row.predicted,
                    "simulated_lost_frames": row.simulated_frames,
                    "forwarded_pps_over_time": row.predicted_rates,
                }
                for row in failures
            ],
        }
    )
    assert isinstance(document, dict)
    if path.is_file():
        before = json.loads(path.read_text(encoding="utf-8"))
        written = str(before.pop("written", ""))
        if before == json.loads(json.dumps(document)):
            return written
    written = _now()
    write_whole(path, json.dumps({"written": written, **document}, indent=2) + "\n")
    return written


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _measured(rows: Iterable[Row], name: str) -> Measured:
    return Measured(values=tuple(float(value) for row in rows if isinstance(value := row[name], int | float)))


def _valid_rows(rows: Iterable[Row], **values: object) -> list[Row]:
    """Return the rows of valid trials that have the given values."""
    return [row for row in rows if not row["invalid"] and all(row[name] == value for name, value in values.items())]


def _with_throughput(row: ThroughputRow, rows: Sequence[Row]) -> ThroughputRow:
    # Frames that wait at the end of a trial still arrive: all frames that are not lost are forwarded.
    rates = tuple(
        (float(trial["offered_frames"] or 0) - float(trial["dropped_frames"] or 0))
        / float(trial["duration_s"] or math.nan)
        for trial in _valid_rows(rows, kind="throughput", routers=row.conditions)
    )
    return row.measured_as(Measured(values=rates))


def _with_latency(row: MultistageLatency, rows: Sequence[Row]) -> MultistageLatency:
    matching = _valid_rows(rows, kind="latency", routers=row.conditions)
    return replace(row.measured_as(_measured(matching, "latency_p50_s")), p99_s=_measured(matching, "latency_p99_s"))


def _with_losses(row: FailureRow, rows: Sequence[Row]) -> FailureRow:
    matching = _valid_rows(rows, failure=row.conditions.name)
    measured_rates = []
    for trial in matching:
        course = [(float(time_s), float(rate_pps)) for time_s, rate_pps in json.loads(str(trial["over_time"]))]
        from_s = trial["loss_from_s"]
        failure_s = from_s if isinstance(from_s, float) and math.isfinite(from_s) else row.conditions.at
        measured_rates.append(_relative_to(course, failure_s))
    return replace(row.measured_as(_measured(matching, "dropped_frames")), measured_rates=tuple(measured_rates))


def _relative_to(course: Sequence[tuple[float, float]], at_s: float) -> tuple[tuple[float, float], ...]:
    return tuple((time_s - at_s, rate_pps) for time_s, rate_pps in course)


def _largest_error(errors: Iterable[float]) -> float:
    sizes = [abs(error) for error in errors]
    return math.nan if not sizes or any(map(math.isnan, sizes)) else max(sizes)


def _criteria(result: MultistageResult) -> tuple[Criterion, ...]:
    bounds = result.study.criteria
    return criteria_of(
        ("largest distance of a throughput from the sum of caps", bounds.sum_of_caps, result.max_distance_from_sum),
        ("largest error of a throughput", bounds.throughput, result.throughput_error_ratio),
        ("median error of median latencies", bounds.latency_median, result.latency_error_ratio),
        (
            "largest error of the loss by a death",
            bounds.loss,
            _largest_error(row.missed_ratio for row in result.deaths),
        ),
        ("longest takeover, s", bounds.takeover, _largest_error(row.away_s for row in result.takeovers)),
    )
