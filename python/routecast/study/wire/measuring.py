"""Measuring the points of a wire study: one device set up at a time, every finished trial kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from routecast.benchmark.overload import find_overload_pps
from routecast.evaluate.ledger import Columns, Ledger, Row
from routecast.evaluate.protocol import Evaluator
from routecast.study.wire.bench import Bench
from routecast.study.wire.document import Bed
from routecast.study.wire.points import Point, Setting, load_of, row_of

__all__ = ["COLUMNS", "Overloads", "Place", "Progress", "measure"]

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
    points: Iterable[Point],
    rate_pps: Callable[[Point, Evaluator], float],
    place: Place,
    progress: Callable[[int, str], None],
) -> list[Row]:
    """Measure every point that the ledger does not have yet and return the rows of all, in order.

    Parameters
    ----------
    points : iterable of Point
        Points that follow each other with the same setting share one set-up of the device.
    rate_pps : callable
        The intended load of a point; it may ask the evaluator.
    place : Place
    progress : callable
        Told how many of the points are done.
    """
    rows: list[Row] = []
    bed, ledger = place.bed, place.ledger
    for setting, group in groupby(points, key=lambda point: point.setting):
        waiting = list(group)
        missing = [point for point in waiting if point.key(bed) not in ledger.rows]
        if missing:
            with place.bench.device(setting.device, dict(setting.options)) as evaluator:
                for point in missing:
                    progress(len(rows) + waiting.index(point), _named(point))
                    load = load_of(setting, rate_pps(point, evaluator))
                    key = point.key(bed)
                    ledger.add(row_of(point, key, evaluator.trial(load, bed.duration)))
        rows += [ledger.rows[point.key(bed)] for point in waiting]
    return rows


class Overloads:
    """The load that overloads each setting: looked for once, by asking the device."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._found_pps: dict[Setting, float] = {}

    def offered_pps(self, point: Point, evaluator: Evaluator) -> float:
        """Return the overload of the point's setting."""
        if point.setting not in self._found_pps:
            self._found_pps[point.setting] = find_overload_pps(
                evaluator, load_of(point.setting, START_PPS), overload_ratio=self._ratio
            )
        return self._found_pps[point.setting]


def _named(point: Point) -> str:
    return f"{point.kind} {point.series} {point.value:g}, load {point.offered_ratio:g}"
