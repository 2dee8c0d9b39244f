"""The accuracy of ``size`` on published measurements of routers, with priors that exclude the source of each router.

For each series and frame size of the board, the targets are half, two thirds and all of the largest measured rate. The
choice is among the measured numbers of cores, so that a measurement can judge it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from routecast.calibration import FittedRouter
from routecast.calibration.fitted import CONFIDENCE_RATIO, TOLERANCE_RATIO
from routecast.evaluate.plain import plain
from routecast.evaluate.points import Point
from routecast.progress import Progress
from routecast.replications.accuracy.board import calibrated_series
from routecast.replications.accuracy.packs import Pack, read_packs

__all__ = ["TARGETS", "Chosen", "SizeBoard", "run_size_board"]

TARGETS = (0.5, 2.0 / 3.0, 1.0)
"""Targets as shares of the largest measured rate."""
_MIN_COUNTS = 2
_STATED = 0.8
"""Least probability of a best count that is judged, too."""
_CLASSES = (0.8, 0.9, 0.95, 0.97)
_NEAR = 0.97
"""Answers with a smaller stated probability are near the requested one; few measured counts often give more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A target of a series, the number of cores chosen for it, and the measured rates.

    ``cores`` is None if no count was certain; ``probability`` and ``is_met`` are then those of the most probable count,
    which the answer states as the best. ``least_cores`` is the least measured count that met the target.
    """

    pack: str
    series: str
    target_ratio: float
    cores: int | None
    probability: float
    is_met: bool
    is_held_out: bool
    least_cores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBoard:
    """The choices for all targets of all series."""

    chosen: tuple[Chosen, ...]

    @property
    def summary(self) -> dict[str, float]:
        """Numbers of targets and answers, stated and met probabilities, and the extra cores."""
        answered = [choice for choice in self.chosen if choice.cores is not None]
        held_out = [choice for choice in answered if choice.is_held_out]
        near = [choice for choice in answered if choice.probability < _NEAR]
        classes: dict[str, float] = {}
        for low, high in pairwise(_CLASSES):
            own = [choice for choice in self.chosen if low <= choice.probability < high]
            key = f"from_{100 * low:.0f}_to_{100 * high:.0f}"
            classes |= {
                key: len(own),
                f"{key}_stated_ratio": _mean([choice.probability for choice in own]),
                f"{key}_met_ratio": _mean([choice.is_met for choice in own]),
            }
        return {
            "asked": len(self.chosen),
            "answered": len(answered),
            "with_best_count": sum(choice.probability >= _STATED for choice in self.chosen),
            **classes,
            "stated_ratio": _mean([choice.probability for choice in answered]),
            "met_ratio": _mean([choice.is_met for choice in answered]),
            "near": len(near),
            "near_stated_ratio": _mean([choice.probability for choice in near]),
            "near_met_ratio": _mean([choice.is_met for choice in near]),
            "held_out": len(held_out),
            "held_out_stated_ratio": _mean([choice.probability for choice in held_out]),
            "held_out_met_ratio": _mean([choice.is_met for choice in held_out]),
            "cores_over_least": median(
                [(choice.cores or 0) / choice.least_cores for choice in answered] or [float("nan")]
            ),
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"summary": plain(self.summary), "chosen": plain(self.chosen)}


def run_size_board(on_progress: Progress | None = None, *, packs: Sequence[Pack] | None = None) -> SizeBoard:
    """Choose counts for all targets of all packs of routers; None: the shipped packs."""
    packs = [pack for pack in (read_packs() if packs is None else packs) if pack.kind == "multicore"]
    chosen: list[Chosen] = []
    for done, pack in enumerate(packs):
        if on_progress is not None:
            on_progress(done, len(packs), pack.title)
        for fitted, calibrating, held_out in calibrated_series(pack):
            chosen += _series_choices(pack, fitted, calibrating, held_out)
    if on_progress is not None:
        on_progress(len(packs), len(packs), "")
    return SizeBoard(chosen=tuple(chosen))


def _series_choices(
    pack: Pack, fitted: FittedRouter, calibrating: Sequence[Point], held_out: Sequence[Point]
) -> Iterator[Chosen]:
    by_conditions: dict[tuple[object, ...], dict[int, Point]] = {}
    for point in (*held_out, *calibrating):
        conditions_key = replace(point, cores=1, flows=None, calibrate=False).conditions
        by_conditions.setdefault(conditions_key, {}).setdefault(point.working_cores, point)
    for measured in by_conditions.values():
        if len(measured) < _MIN_COUNTS:
            continue
        points = [measured[count] for count in sorted(measured)]
        largest_pps = max(point.throughput_pps for point in points)
        for ratio in TARGETS:
            target_pps = ratio * largest_pps
            chances = fitted.chances(points, target_pps)
            index = next((i for i, chance in enumerate(chances) if chance >= CONFIDENCE_RATIO), None)
            best = max(range(len(points)), key=lambda i: chances[i]) if index is None else index
            point = points[best]
            yield Chosen(
                pack=pack.name,
                series=fitted.series,
                target_ratio=ratio,
                cores=None if index is None else point.working_cores,
                probability=chances[best],
                is_met=point.throughput_pps >= target_pps * (1.0 - TOLERANCE_RATIO),
                is_held_out=point in held_out,
                least_cores=next(p.working_cores for p in points if p.throughput_pps >= target_pps),
            )


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else float("nan")
