"""The points of a wire study: what is measured, in which order, and the row that a trial becomes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from routecast.evaluate.trial import Trial
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.study.wire.document import Bed, Latency, Loss, Throughput, WireStudy

__all__ = ["Kind", "Point", "Setting", "all_points", "first_points", "load_of", "row_of"]

Kind = Literal["throughput", "loss", "latency"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A device with its options, and the frames and flows that it gets."""

    device: str
    options: tuple[tuple[str, str | int | float | bool], ...]
    frame_bytes: int
    flows: int

    @classmethod
    def of(cls, series: Throughput, value: float) -> Setting:
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
class Point:
    """One trial to make: ``offered_ratio`` is the load over the predicted capacity, or the overload of the bed."""

    kind: Kind
    series: str
    value: float
    offered_ratio: float
    repeat: int
    setting: Setting

    def key(self, bed: Bed) -> str:
        """Return what the trial is known by: everything that decides what is measured."""
        text = repr((self, bed.file, bed.duration))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


FIRST = 0
"""The repeat in which the points that calibrate are measured before all others: they give the loads."""


def first_points(study: WireStudy) -> Iterator[Point]:
    """Yield one overload trial of each point that calibrates a rate."""
    for series in study.throughput:
        for value in series.calibrate:
            yield _throughput(study, series, value, FIRST)


def all_points(study: WireStudy) -> Iterator[Point]:
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
                        yield Point(
                            kind="loss" if kind == "loss" else "latency",
                            series=series.name,
                            value=value,
                            offered_ratio=ratio,
                            repeat=repeat,
                            setting=Setting.of(series, value),
                        )


def _throughput(study: WireStudy, series: Throughput, value: float, repeat: int) -> Point:
    return Point(
        kind="throughput",
        series=series.name,
        value=value,
        offered_ratio=study.testbed.overload,
        repeat=repeat,
        setting=Setting.of(series, value),
    )


def _is_at(table: Loss | Latency, series: Throughput, value: float) -> bool:
    return (table.series, table.value) == (series.name, value)


def load_of(setting: Setting, rate_pps: float) -> OfferedLoad:
    """Return constant bit rate from port 0 to port 1 at ``rate_pps``."""
    count = setting.flows
    one_way = tuple(Flow(rss_hash=number % 128, ingress=0, egress=1) for number in range(count))
    flows = FlowSet(name=f"{count} flow{'s' if count != 1 else ''}, one way", flows=one_way)
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(setting.frame_bytes), flows=flows)


def row_of(point: Point, key: str, trial: Trial) -> dict[str, str | int | float | None]:
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
