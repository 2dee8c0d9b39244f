"""The number of measurements that a router needs, replayed on series that others measured in full.

Each start takes a series at random and one of its conditions, which is measured first. A design chooses the next ones
until nine of ten unmeasured conditions are predicted within 5 %:

* ``next``: what :mod:`routecast.calibration.next_points` asks for, all other conditions being what is to be known;
* ``uniform``: any, at random;
* ``fixed``: the first condition of the series, the middle and the last (in place of the start), then any, at random.

The router of a source is predicted with priors learnt without it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from routecast.calibration._discrepancy import Repeated
from routecast.calibration._fit import fit
from routecast.calibration.fitted import FittedRouter
from routecast.calibration.packs import read_packs, table_points
from routecast.calibration.priors import Priors, read_priors
from routecast.evaluate.points import Point
from routecast.progress import Progress
from routecast.quantity.quantile import quantile

__all__ = ["DESIGNS", "WITHIN_RATIO", "Replayed", "run_replay"]

DESIGNS: Final = ("next", "uniform", "fixed")
WITHIN_RATIO: Final = 0.05
_OF_ALL = 0.9
_LEAST_CONDITIONS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Points that each design needed, by start."""

    series: tuple[str, ...]
    needed: Mapping[str, tuple[int, ...]]

    @property
    def medians(self) -> dict[str, dict[str, float]]:
        """Median over the starts of the points that each design needed, by source and of all."""
        sources = dict.fromkeys(name.split(":")[0].removesuffix(".csv") for name in self.series)
        return {
            group: {
                "starts": len(chosen),
                **{design: float(median(self.needed[design][i] for i in chosen)) for design in DESIGNS},
            }
            for group in (*sources, "all")
            for chosen in [
                [i for i, name in enumerate(self.series) if group == "all" or name.startswith(f"{group}.csv:")]
            ]
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
    """A series that was measured in full, and the routers fitted to parts of it."""

    name: str
    points: Sequence[Point]
    noise_ratio: float | None
    priors: Priors
    known: dict[frozenset[int], FittedRouter] = field(default_factory=dict)
    advised: dict[frozenset[int], int] = field(default_factory=dict)

    def fitted(self, measured: frozenset[int]) -> FittedRouter:
        if measured not in self.known:
            self.known[measured] = fit(
                [self.points[i] for i in sorted(measured)], noise_ratio=self.noise_ratio, priors=self.priors
            )
        return self.known[measured]

    def left(self, measured: frozenset[int]) -> list[int]:
        return [i for i in range(len(self.points)) if i not in measured]

    def is_known(self, measured: frozenset[int]) -> bool:
        left = [self.points[i] for i in self.left(measured)]
        if not left:
            return True
        return quantile([abs(p.error_ratio) for p in self.fitted(measured).predict(left)], _OF_ALL) <= WITHIN_RATIO

    def next(self, measured: frozenset[int]) -> int:
        if measured not in self.advised:
            left = self.left(measured)
            (best,) = self.fitted(measured).next_points(1, able=[self.points[i] for i in left])
            self.advised[measured] = next(i for i in left if self.points[i] == best.point)
        return self.advised[measured]

    def needed(self, order: Sequence[int] | None, start: int) -> int:
        """Return the number of points until the rest is known, in an order or as ``next`` advises."""
        measured = frozenset([start] if order is None else order[:1])
        while not self.is_known(measured):
            following = self.next(measured) if order is None else order[len(measured)]
            measured |= {following}
        return len(measured)


def run_replay(
    starts: int = 200, *, seed: int = 0, files: Sequence[str] = (), on_progress: Progress | None = None
) -> Replayed:
    """Replay all designs from ``starts`` starts.

    ``files``: tables of the board to take series from; empty: all with series of six conditions or more;
    ``on_progress``: receives the finished starts, all starts and the series.
    """
    able = _all_series(files)
    source = random.Random(seed)
    needed: dict[str, list[int]] = {design: [] for design in DESIGNS}
    names = []
    for done in range(starts):
        series = source.choice(able)
        if on_progress is not None:
            on_progress(done, starts, series.name)
        count = len(series.points)
        start = source.randrange(count)
        by_chance = source.sample([i for i in range(count) if i != start], count - 1)
        middle = [0, count // 2, count - 1]
        fixed = [*middle, *(i for i in (start, *by_chance) if i not in middle)]
        names.append(series.name)
        for design, order in (("next", None), ("uniform", [start, *by_chance]), ("fixed", fixed)):
            needed[design].append(series.needed(order, start))
    if on_progress is not None:
        on_progress(starts, starts, "")
    return Replayed(series=tuple(names), needed={design: tuple(each) for design, each in needed.items()})


def _all_series(files: Sequence[str]) -> list[_Series]:
    by_series: dict[tuple[str, str], _Series] = {}
    for pack in read_packs():
        if pack.kind != "multicore" or (files and pack.file not in files):
            continue
        points = table_points(pack)
        for name in dict.fromkeys(point.series for point in points):
            own = Repeated.of([point for point in points if point.series == name], pack.noise_ratio).points
            if len(own) >= _LEAST_CONDITIONS:
                by_series[pack.file, name] = _Series(
                    name=f"{pack.file}: {name}",
                    points=sorted(own, key=lambda p: (p.cores, p.flows or 0, p.frame_bytes)),
                    noise_ratio=pack.noise_ratio,
                    priors=read_priors(without=pack.file),
                )
    return list(by_series.values())
