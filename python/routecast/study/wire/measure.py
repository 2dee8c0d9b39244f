"""Measuring the points of a wire study: one device set up at a time, every finished trial kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, Protocol

from routecast.benchmark.overload import find_overload_pps
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.study.engine import StudyRun
from routecast.study.wire.document import Bed, Latency, Loss, Throughput, WireStudy

__all__ = [
    "COLUMNS",
    "Bench",
    "DeviceSetting",
    "Overloads",
    "Place",
    "Progress",
    "TestbedBench",
    "TrialPoint",
    "all_points",
    "first_points",
    "load_of",
    "measure",
]


Option = str | int | float | bool


class Bench(Protocol):
    """A place where devices are measured: the test bed, or in a test a simulated one that says so."""

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Set a device up with its options; leaving the context removes it."""
        ...


class TestbedBench:
    """A test bed: ``"namespaces"`` or a ``*.testbed.toml``."""

    __test__ = False  # no test, whatever pytest takes the name for

    def __init__(self, file: str, folder: Path) -> None:
        self._file = file if file == "namespaces" else str(folder / file)

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Set the test bed up with a device under test."""
        from routecast.testbed.opening import open_testbed

        return open_testbed(self._file, device=name, options=options)


Kind = Literal["throughput", "loss", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSetting:
    """A device with its options, and the frames and flows that it gets."""

    device: str
    options: tuple[tuple[str, str | int | float | bool], ...]
    frame_bytes: int
    flows: int

    @classmethod
    def of(cls, series: Throughput, value: float) -> DeviceSetting:
        """Return the setting of a series at one value of its factor."""
        options = dict(series.options)
        frame_bytes, flows = series.frame, series.flows
        if series.factor == "frame_bytes":
            frame_bytes = round(value)
        elif series.factor == "flows":
            flows = round(value)
        else:
            options[series.factor] = round(value) if value == round(value) else value
        return cls(device=series.device, options=tuple(sorted(options.items())), frame_bytes=frame_bytes, flows=flows)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPoint:
    """One trial to make: ``offered_ratio`` is the load over the predicted capacity, or the overload of the bed."""

    kind: Kind
    series: str
    value: float
    offered_ratio: float
    repeat: int
    setting: DeviceSetting

    def key(self, bed: Bed) -> str:
        """Return what the trial is known by: everything that decides what is measured."""
        text = repr((self, bed.file, bed.duration))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


FIRST = 0
"""The repeat in which the points that calibrate are measured before all others: they give the loads."""


def first_points(study: WireStudy) -> Iterator[TrialPoint]:
    """Yield one overload trial of each point that calibrates a rate."""
    for series in study.throughput:
        for value in series.calibrate:
            yield _throughput(study, series, value, FIRST)


def all_points(study: WireStudy) -> Iterator[TrialPoint]:
    """Yield every trial, repeat after repeat, so that a drift of the machine spreads over all points alike.

    In a repeat, trials of the same setting follow each other: the device is set up once for them.
    """
    for repeat in range(1, study.testbed.repeats + 1):
        for series in study.throughput:
            for value in series.values:
                yield _throughput(study, series, value, repeat)
                loads = [("loss", loss.offered) for loss in study.loss if _is_at(loss, series, value)]
                loads += [("latency", each.loads) for each in study.latency if _is_at(each, series, value)]
                for kind, ratios in loads:
                    for ratio in ratios:
                        yield TrialPoint(
                            kind="loss" if kind == "loss" else "latency",
                            series=series.name,
                            value=value,
                            offered_ratio=ratio,
                            repeat=repeat,
                            setting=DeviceSetting.of(series, value),
                        )


def _throughput(study: WireStudy, series: Throughput, value: float, repeat: int) -> TrialPoint:
    return TrialPoint(
        kind="throughput",
        series=series.name,
        value=value,
        offered_ratio=study.testbed.overload,
        repeat=repeat,
        setting=DeviceSetting.of(series, value),
    )


def _is_at(table: Loss | Latency, series: Throughput, value: float) -> bool:
    return (table.series, table.value) == (series.name, value)


def load_of(setting: DeviceSetting, rate_pps: float) -> OfferedLoad:
    """Return constant bit rate from port 0 to port 1 at ``rate_pps``."""
    count = setting.flows
    one_way = tuple(Flow(rss_hash=number % 128, ingress=0, egress=1) for number in range(count))
    flows = FlowSet(name=f"{count} flow{'s' if count != 1 else ''}, one way", flows=one_way)
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(setting.frame_bytes), flows=flows)


def row_of(point: TrialPoint, key: str, trial: Trial) -> dict[str, str | int | float | None]:
    """Return the line of ``results.parquet`` for a trial."""
    latency = trial.latency
    return {
        "task": key,
        "kind": point.kind,
        "series": point.series,
        "value": point.value,
        "offered_ratio": point.offered_ratio,
        "repeat": point.repeat,
        "device": point.setting.device,
        "options": "; ".join(f"{name} = {value}" for name, value in point.setting.options),
        "frame_bytes": point.setting.frame_bytes,
        "flows": point.setting.flows,
        "intended_pps": trial.intended_pps,
        "offered_pps": trial.offered_pps,
        "forwarded_pps": trial.forwarded_pps,
        "loss_ratio": trial.loss_ratio,
        "offered_frames": trial.offered_frames,
        "forwarded_frames": trial.forwarded_frames,
        "latency_min_s": latency.min_s if latency else None,
        "latency_p50_s": latency.p50_s if latency else None,
        "latency_p90_s": latency.p90_s if latency else None,
        "latency_p99_s": latency.p99_s if latency else None,
        "latency_max_s": latency.max_s if latency else None,
        "latency_hdr_base64": latency.hdr_base64 if latency else "",
        "attempts": trial.attempts,
        "invalid": "; ".join(trial.invalid),
        "notes": "; ".join(trial.notes),
    }


Progress = Callable[[int, int, str], None]
"""Told how many trials are done, of how many, and what is going on."""

START_PPS = 50_000.0
"""The first load of the search for an overload: any forwarder on any core carries it for a moment."""

COLUMNS: Columns = {
    **dict.fromkeys(("task", "kind", "series"), "text"),
    **dict.fromkeys(("value", "offered_ratio"), "number"),
    "repeat": "whole",
    **dict.fromkeys(("device", "options"), "text"),
    **dict.fromkeys(("frame_bytes", "flows"), "whole"),
    **dict.fromkeys(("intended_pps", "offered_pps", "forwarded_pps", "loss_ratio"), "number"),
    **dict.fromkeys(("offered_frames", "forwarded_frames"), "whole"),
    **dict.fromkeys(("latency_min_s", "latency_p50_s", "latency_p90_s", "latency_p99_s"), "number"),
    "latency_max_s": "number",
    "latency_hdr_base64": "text",
    "attempts": "whole",
    **dict.fromkeys(("invalid", "notes"), "text"),
}
"""Columns of ``results.parquet``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where it is measured, how, and where the rows go."""

    bench: Bench
    bed: Bed
    ledger: Ledger


def measure(
    points: Iterable[TrialPoint],
    rate_pps: Callable[[TrialPoint, Evaluator], float],
    place: Place,
    run: StudyRun[WireStudy],
) -> list[Row]:
    """Measure every point that the ledger does not have yet and return the rows of all, in order.

    ``points``: points that follow each other with the same setting share one set-up of the device; ``rate_pps``: the
    intended load of a point; it may ask the evaluator; ``run``: told how many of the points are done.
    """
    rows: list[Row] = []
    begun = run.done
    bed, ledger = place.bed, place.ledger
    for setting, group in groupby(points, key=lambda point: point.setting):
        waiting = list(group)
        missing = [point for point in waiting if point.key(bed) not in ledger.rows]
        if missing:
            with place.bench.device(setting.device, dict(setting.options)) as evaluator:
                for point in missing:
                    run.done = begun + len(rows) + waiting.index(point)
                    run.tell(_named(point))
                    load = load_of(setting, rate_pps(point, evaluator))
                    key = point.key(bed)
                    ledger.add(row_of(point, key, evaluator.trial(load, bed.duration)))
        rows += [ledger.rows[point.key(bed)] for point in waiting]
    run.done = begun + len(rows)
    return rows


class Overloads:
    """The load that overloads each setting: looked for once, by asking the device."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._found_pps: dict[DeviceSetting, float] = {}

    def offered_pps(self, point: TrialPoint, evaluator: Evaluator) -> float:
        """Return the overload of the point's setting."""
        if point.setting not in self._found_pps:
            self._found_pps[point.setting] = find_overload_pps(
                evaluator, load_of(point.setting, START_PPS), overload_ratio=self._ratio
            )
        return self._found_pps[point.setting]


def _named(point: TrialPoint) -> str:
    return f"{point.kind} {point.series} {point.value:g}, load {point.offered_ratio:g}"
