"""Measure the points of a wire study, one device at a time, and keep every finished trial."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Protocol

from routecast.errors import EnvironmentProblem
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.protocol import Described, Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.overload import NoOverload, find_overload_pps
from routecast.lab.study.document import Bed, Throughput, WireStudy
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.study.engine import StudyRun

__all__ = [
    "COLUMNS",
    "MOST_ITERATIONS",
    "Bench",
    "DeviceSetting",
    "Measurer",
    "SeriesNotOverloaded",
    "TestbedBench",
    "TrialPoint",
    "all_points",
    "first_points",
    "load_of",
    "needed_slowdown",
]

Option = str | int | float | bool
Kind = Literal["throughput", "loss", "latency"]

SlowedBy = Literal["study", "user", "nobody"]
"""Who may raise the option ``slowdown`` of a device: the study itself, its user, or nobody: the device has none."""

FIRST = 0
"""The repeat before all others, in which the points that calibrate give the loads of loss and latency."""

START_PPS = 50_000.0
"""The first load of the search for an overload, which any forwarder on any core carries."""

_ITERATION_S = 2.4e-9
"""About the time of an iteration of a device's ``slowdown``, at 2.3 GHz."""
_MARGIN_RATIO = 1.2
"""So much more than the study's overload a tester must reach, for a machine that stalls."""
MOST_ITERATIONS = 50_000

RATES = ("intended_pps", "offered_pps", "forwarded_pps", "loss_ratio")
FRAMES = ("offered_frames", "forwarded_frames")
LATENCIES = ("min", "p50", "p90", "p99", "max")

COLUMNS: Columns = {
    **dict.fromkeys(("task", "kind", "series"), "text"),
    **dict.fromkeys(("value", "offered_ratio"), "number"),
    "repeat": "whole",
    **dict.fromkeys(("device", "options"), "text"),
    **dict.fromkeys(("frame_bytes", "flows"), "whole"),
    **dict.fromkeys(RATES, "number"),
    **dict.fromkeys(FRAMES, "whole"),
    **{f"latency_{name}_s": "number" for name in LATENCIES},
    **dict.fromkeys(("latency_hdr_base64", "arrivals"), "text"),
    "attempts": "whole",
    **dict.fromkeys(("invalid", "notes"), "text"),
}
"""Columns of ``results.parquet``."""


class Bench(Protocol):
    """A place to measure devices: a test bed, or a simulated bed in tests."""

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Return a context that sets a device up with its options, and removes it."""
        ...

    def slowed_by(self, name: str, options: Mapping[str, Option]) -> SlowedBy:
        """Return who may raise the option ``slowdown`` of a device with these options."""
        ...


class TestbedBench:
    """A test bed: ``"namespaces"`` or a ``*.testbed.toml``."""

    __test__ = False  # pytest takes the name for a test

    def __init__(self, file: str, folder: Path) -> None:
        self._file = file if file == "namespaces" else str(folder / file)

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Return a context that sets the test bed up with a device under test."""
        from routecast.lab.testbed.opening import open_testbed

        return open_testbed(self._file, device=name, options=options)

    def slowed_by(self, name: str, options: Mapping[str, Option]) -> SlowedBy:
        """Return who may raise the slowdown: the study that of its own namespaces."""
        from routecast.lab.testbed.devices import DEVICES
        from routecast.lab.testbed.document import NamespacesFile
        from routecast.lab.testbed.reading import read_testbed

        file = read_testbed(self._file, device=name, options=options)
        names = {option.name for option in fields(DEVICES[name].options)}
        # A device of several cores would spend its slowdown on one of them.
        if "slowdown" not in names or options.get("cores", 1) != 1:
            return "nobody"
        return "study" if isinstance(file, NamespacesFile) else "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSetting:
    """A device with its options, and the frame size and flows of its load."""

    device: str
    options: tuple[tuple[str, Option], ...]
    frame_bytes: int
    flows: int

    @classmethod
    def of(cls, series: Throughput, value: float, slowdown: int = 0) -> DeviceSetting:
        """Return the setting of a series at one value of its factor, with further iterations of ``slowdown``."""
        options = dict(series.options)
        frame_bytes, flows = series.frame, series.flows
        if series.factor == "frame_bytes":
            frame_bytes = round(value)
        elif series.factor == "flows":
            flows = round(value)
        else:
            options[series.factor] = round(value) if value == round(value) else value
        if slowdown:
            options["slowdown"] = round(float(options.get("slowdown", 0))) + slowdown
        return cls(device=series.device, options=tuple(sorted(options.items())), frame_bytes=frame_bytes, flows=flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPoint:
    """A trial to run; ``offered_ratio`` is the load over the predicted capacity, or the overload of the bed."""

    kind: Kind
    series: str
    value: float
    offered_ratio: float
    repeat: int
    setting: DeviceSetting

    def key(self, bed: Bed) -> str:
        """Return the key of the trial in the ledger: a hash of all its conditions."""
        text = repr((self, bed.file, bed.duration))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


Slowdowns = Mapping[str, int]
"""Iterations a frame by which the devices of a series are slowed down beyond the study, by the name of the series."""


def first_points(study: WireStudy, slowdowns: Slowdowns) -> Iterator[TrialPoint]:
    """Yield one overload trial of each point that calibrates a rate."""
    for series in study.throughput:
        for value in series.calibrate:
            yield _point("throughput", series, value, study.testbed.overload, FIRST, slowdowns)


def all_points(study: WireStudy, slowdowns: Slowdowns) -> Iterator[TrialPoint]:
    """Yield every trial, repeat after repeat, so that a drift of the machine spreads over all points.

    Within a repeat, trials of the same setting follow each other, and share one set-up of the device.
    """
    for repeat in range(1, study.testbed.repeats + 1):
        for series in study.throughput:
            for value in series.values:
                yield _point("throughput", series, value, study.testbed.overload, repeat, slowdowns)
                for loss in study.loss:
                    for ratio in loss.offered if (loss.series, loss.value) == (series.name, value) else ():
                        yield _point("loss", series, value, ratio, repeat, slowdowns)
                for latency in study.latency:
                    for ratio in latency.loads if (latency.series, latency.value) == (series.name, value) else ():
                        yield _point("latency", series, value, ratio, repeat, slowdowns)


def _point(
    kind: Kind, series: Throughput, value: float, offered_ratio: float, repeat: int, slowdowns: Slowdowns
) -> TrialPoint:
    return TrialPoint(
        kind=kind,
        series=series.name,
        value=value,
        offered_ratio=offered_ratio,
        repeat=repeat,
        setting=DeviceSetting.of(series, value, slowdowns.get(series.name, 0)),
    )


def load_of(setting: DeviceSetting, rate_pps: float) -> OfferedLoad:
    """Return a load of constant bit rate from port 0 to port 1."""
    count = setting.flows
    one_way = tuple(Flow(rss_hash=number % 128, ingress=0, egress=1) for number in range(count))
    flows = FlowSet(name=f"{count} flow{'s' if count != 1 else ''}, one way", flows=one_way)
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(setting.frame_bytes), flows=flows)


def needed_slowdown(forwarded_pps: float, overload_ratio: float) -> int:
    """Return the iterations a frame after which a tester overloads a device of which it reached ``forwarded_pps``.

    At the time of a frame that they take, even a device of no own work is overloaded.
    """
    frame_s = overload_ratio * _MARGIN_RATIO / forwarded_pps
    return 100 * math.ceil(frame_s / _ITERATION_S / 100)


def row_of(point: TrialPoint, key: str, trial: Trial) -> Row:
    """Return the row of a trial in ``results.parquet``."""
    latency, setting = trial.latency, point.setting
    return {
        "task": key,
        **{name: getattr(point, name) for name in ("kind", "series", "value", "offered_ratio", "repeat")},
        "device": setting.device,
        "options": "; ".join(f"{name} = {value}" for name, value in setting.options),
        "frame_bytes": setting.frame_bytes,
        "flows": setting.flows,
        **{name: getattr(trial, name) for name in (*RATES, *FRAMES)},
        **{f"latency_{name}_s": getattr(latency, f"{name}_s", None) for name in LATENCIES},
        "latency_hdr_base64": latency.hdr_base64 if latency else "",
        "arrivals": trial.arrivals,
        "attempts": trial.attempts,
        "invalid": "; ".join(trial.invalid),
        "notes": "; ".join(trial.notes),
    }


class SeriesNotOverloaded(EnvironmentProblem):
    """The tester cannot overload the device of a series; ``forwarded_pps``: what it forwards without clear loss."""

    def __init__(self, point: TrialPoint, forwarded_pps: float, cause: str, slowed_by: SlowedBy) -> None:
        super().__init__(point, forwarded_pps, cause, slowed_by)
        self.point = point
        self.forwarded_pps = forwarded_pps
        self.cause = cause
        self.slowed_by = slowed_by

    def __str__(self) -> str:
        setting, place = self.point.setting, f'series "{self.point.series}" at {self.point.value:g}'
        return f"{place}, device {setting.device}: {self.cause}"


@dataclass(slots=True, kw_only=True)
class Measurer:
    """Measures trials on a bench, and keeps finished trials in the ledger and the facts of devices in ``facts``."""

    bench: Bench
    run: StudyRun[WireStudy]
    ledger: Ledger
    facts: dict[str, Any] = field(default_factory=dict)
    _overloads_pps: dict[DeviceSetting, float] = field(default_factory=dict)

    def overload_pps(self, point: TrialPoint, evaluator: Evaluator) -> float:
        """Return the load that overloads a setting, from one search on the device."""
        setting, ratio = point.setting, self.run.study.testbed.overload
        if setting not in self._overloads_pps:
            start = load_of(setting, START_PPS)
            try:
                self._overloads_pps[setting] = find_overload_pps(evaluator, start, overload_ratio=ratio)
            except NoOverload as end:
                slowed_by = self.bench.slowed_by(setting.device, dict(setting.options))
                cause = f"the tester reaches no overload: {end.forwarded_pps:,.0f} frames/s were forwarded without loss"
                raise SeriesNotOverloaded(point, end.forwarded_pps, cause, slowed_by) from end
        return self._overloads_pps[setting]

    def measure(self, points: Iterable[TrialPoint], load_pps: Callable[[TrialPoint, Evaluator], float]) -> list[Row]:
        """Measure every point that the ledger lacks, and return the rows of all points in order.

        ``points``: successive points of the same setting share one set-up of the device; ``load_pps``: returns the
        intended load of a point.
        """
        rows: list[Row] = []
        done_before = self.run.done
        bed, finished = self.run.study.testbed, self.ledger.rows
        for setting, group in groupby(points, key=lambda point: point.setting):
            keyed = [(point, point.key(bed)) for point in group]
            missing = [(number, point, key) for number, (point, key) in enumerate(keyed) if key not in finished]
            if missing:
                with self.bench.device(setting.device, dict(setting.options)) as evaluator:
                    if isinstance(evaluator, Described):
                        self.facts.setdefault(setting.device, dict(evaluator.facts()))
                    for number, point, key in missing:
                        self.run.done = done_before + len(rows) + number
                        self.run.report_step(
                            f"{point.kind} {point.series} {point.value:g}, load {point.offered_ratio:g}"
                        )
                        load = load_of(setting, load_pps(point, evaluator))
                        self.ledger.add(row_of(point, key, evaluator.trial(load, bed.duration)))
            rows += [finished[key] for _, key in keyed]
        self.run.done = done_before + len(rows)
        return rows
