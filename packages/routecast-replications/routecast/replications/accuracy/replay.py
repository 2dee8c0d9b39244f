"""The number of measurements that a router needs, replayed on published series.

Each start takes a random series and one of its conditions, which is measured first. A design chooses the next
conditions until nine of ten unmeasured conditions are predicted within 5 %:

* ``next``: the advice of :mod:`routecast.calibration.next_points`, with all other conditions as targets;
* ``uniform``: random conditions;
* ``fixed``: the first condition of the series, the middle and the last (in place of the start), then random ones.

The router of a source is predicted with priors learnt without that source.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from routecast.calibration import Measurements, fit
from routecast.calibration.fitted import FittedRouter
from routecast.calibration.priors import Priors, read_priors
from routecast.evaluate.points import Point
from routecast.progress import Progress
from routecast.quantity.quantile import quantile
from routecast.replications.accuracy.packs import read_packs, table_points

__all__ = ["DESIGNS", "WITHIN_RATIO", "Replayed", "run_replay"]

DESIGNS: Final = ("next", "uniform", "fixed")
WITHIN_RATIO: Final = 0.05
_PREDICTED_RATIO = 0.9
_MIN_CONDITIONS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Number of measurements that each design needed, by start."""

    series: tuple[str, ...]
    needed: Mapping[str, tuple[int, ...]]

    @property
    def medians(self) -> dict[str, dict[str, float]]:
        """Median over the starts of the measurements that each design needed, by source and for all."""
        starts: dict[str, list[int]] = {}
        for i, name in enumerate(self.series):
            starts.setdefault(name.split(":")[0].removesuffix(".csv"), []).append(i)
        starts["all"] = list(range(len(self.series)))
        return {
            source: {
                "starts": len(indices),
                **{design: float(median(self.needed[design][i] for i in indices)) for design in DESIGNS},
            }
            for source, indices in starts.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "within_ratio": WITHIN_RATIO,
            "median_points": self.medians,
            "starts": [
                {"series": name, **{design: self.needed[design][i] for design in DESIGNS}}
                for i, name in enumerate(self.series)
            ],
        }


@dataclass(slots=True, kw_only=True)
class _Series:
    """A measured series, and the routers fitted to parts of it; sets hold the indices of measured points."""

    name: str
    points: Sequence[Point]
    noise_ratio: float | None
    priors: Priors
    routers: dict[frozenset[int], FittedRouter] = field(default_factory=dict)
    advised: dict[frozenset[int], int] = field(default_factory=dict)

    def fitted(self, measured: frozenset[int]) -> FittedRouter:
        if measured not in self.routers:
            points = [self.points[i] for i in sorted(measured)]
            self.routers[measured] = fit(points, noise_ratio=self.noise_ratio, priors=self.priors)
        return self.routers[measured]

    def unmeasured(self, measured: frozenset[int]) -> list[Point]:
        return [point for i, point in enumerate(self.points) if i not in measured]

    def is_known(self, measured: frozenset[int]) -> bool:
        errors = [abs(row.error_ratio) for row in self.fitted(measured).predict(self.unmeasured(measured))]
        return not errors or quantile(errors, _PREDICTED_RATIO) <= WITHIN_RATIO

    def next(self, measured: frozenset[int]) -> int:
        if measured not in self.advised:
            (best,) = self.fitted(measured).next_points(1, able=self.unmeasured(measured))
            self.advised[measured] = self.points.index(best.point)
        return self.advised[measured]

    def needed(self, start: int, order: Sequence[int] | None) -> int:
        """Return the number of measurements until the rest is known, in an order or as ``next`` advises."""
        measured = frozenset([start] if order is None else order[:1])
        while not self.is_known(measured):
            measured |= {self.next(measured) if order is None else order[len(measured)]}
        return len(measured)


def run_replay(
    starts: int = 200, *, seed: int = 0, files: Sequence[str] = (), on_progress: Progress | None = None
) -> Replayed:
    """Replay all designs from ``starts`` starts.

    ``files``: tables of the board from which series of six conditions or more are taken; empty: all; ``on_progress``:
    receives the finished starts, all starts and the series.
    """
    candidates = _all_series(files)
    generator = random.Random(seed)
    needed: dict[str, list[int]] = {design: [] for design in DESIGNS}
    names = []
    for done in range(starts):
        series = generator.choice(candidates)
        if on_progress is not None:
            on_progress(done, starts, series.name)
        count = len(series.points)
        start = generator.randrange(count)
        uniform = [start, *generator.sample([i for i in range(count) if i != start], count - 1)]
        fixed = dict.fromkeys((0, count // 2, count - 1, *uniform))
        names.append(series.name)
        for design, order in (("next", None), ("uniform", uniform), ("fixed", list(fixed))):
            needed[design].append(series.needed(start, order))
    if on_progress is not None:
        on_progress(starts, starts, "")
    return Replayed(series=tuple(names), needed={design: tuple(counts) for design, counts in needed.items()})


def _all_series(files: Sequence[str]) -> list[_Series]:
    by_series: dict[tuple[str, str], _Series] = {}
    for pack in read_packs():
        if pack.kind != "multicore" or (files and pack.file not in files):
            continue
        points = table_points(pack)
        for name in dict.fromkeys(point.series for point in points):
            joined = Measurements.of([point for point in points if point.series == name], pack.noise_ratio).points
            if len(joined) >= _MIN_CONDITIONS:
                by_series[pack.file, name] = _Series(
                    name=f"{pack.file}: {name}",
                    points=sorted(joined, key=lambda p: (p.cores, p.flows or 0, p.frame_bytes)),
                    noise_ratio=pack.noise_ratio,
                    priors=read_priors(without=pack.file),
                )
    return list(by_series.values())
