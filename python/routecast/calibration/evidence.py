"""What measured rows say of a goal by themselves, whatever a calibration predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from routecast.calibration._discrepancy import REPEATABILITY_RATIO
from routecast.calibration.counts import Count, cores
from routecast.calibration.fitted import FittedRouter
from routecast.evaluate.points import Point

__all__ = ["Evidence", "MeasuredCount"]

_NORMAL = NormalDist()
_DOUBT = 0.05
"""A chance from a row alone below this, or above 1 less this, decides."""
_MAX_NOISE_RATIO = 0.03
"""Repeatability of a row of a table whose rows contradict each other, one standard deviation."""
_BEYOND_SD = 3.0
"""Standard deviations of the noise below a 95 % interval, from which a held-out row contradicts its prediction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCount:
    """A number of cores that was measured with the frames of the goal.

    ``chance``: probability that a further measurement meets the goal, from these rows alone.
    """

    cores: int
    rate_pps: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rows with the frames of the goal say of it by themselves.

    A measured number of cores that meets the goal beyond noise is enough. One that misses it is not, and neither are
    fewer cores. Where a held-out row lies below its prediction by more than noise, nothing is known of more cores: the
    row shows a limit that the calibrating rows do not.

    ``measured``: in the order of cores; ``known_cores``: the most cores of which the calibration is not contradicted.
    """

    measured: tuple[MeasuredCount, ...] = ()
    known_cores: float = math.inf
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, fitted: FittedRouter, conditions: Point, goal_pps: float, held_out: Sequence[Point]) -> Evidence:
        """Collect the rows with the frames of ``conditions``: those that calibrate, and those that are held out."""
        frames = (conditions.frame_bytes, conditions.frame_mix)
        rows = [point for point in (*fitted.points, *held_out) if (point.frame_bytes, point.frame_mix) == frames]
        logs: dict[int, list[float]] = {}
        for point in rows:
            logs.setdefault(point.working_cores, []).append(math.log(point.throughput_pps))
        contradicted_counts = {point.working_cores for point in fitted.outliers if point in rows}
        measured = []
        for count, values in sorted(logs.items()):
            mean = math.fsum(values) / len(values)
            # The noise that a table shows includes what contradicts in it, which is none of a row. One that the others
            # contradict still refutes.
            noise_ratio = min(fitted.noise_ratio, _MAX_NOISE_RATIO) if fitted.outliers else fitted.noise_ratio
            if count in contradicted_counts and mean < math.log(goal_pps):
                noise_ratio = min(noise_ratio, REPEATABILITY_RATIO)
            sd = noise_ratio * math.sqrt(1.0 + 1.0 / len(values))
            chance = _NORMAL.cdf((mean - math.log(goal_pps)) / sd)
            measured.append(MeasuredCount(cores=count, rate_pps=math.exp(mean), chance=chance))
        own = [point for point in held_out if point in rows]
        # A row that only an unseen ceiling explains shows one.
        below = [
            prediction
            for prediction in replace(fitted, hazard=0.0).predict(own)
            if prediction.measured < prediction.low_pps * math.exp(-_BEYOND_SD * fitted.noise_ratio)
        ]
        remarks = (
            f"the held-out row of {cores(p.point.working_cores)} ({p.measured / 1e6:.4g} Mpps) lies below its "
            f"prediction, {p.low_pps / 1e6:.4g} to {p.high_pps / 1e6:.4g} Mpps: something limits that the calibrating "
            "rows do not show, and more cores are not known; let the row calibrate"
            for p in below
        )
        contradicted = min((p.point.working_cores for p in below), default=math.inf)
        calibrated = (point.working_cores for point in fitted.points if point.working_cores < contradicted)
        return cls(
            measured=tuple(measured),
            known_cores=max(calibrated, default=0) if below else math.inf,
            remarks=tuple(remarks),
        )

    def applied(self, counts: Sequence[Count]) -> tuple[Count, ...]:
        """Return the counts with the probabilities that the rows allow."""
        return tuple(
            replace(
                count,
                probability=self._allowed(count, count.probability),
                probability_if_cores_limit=self._allowed(count, count.probability_if_cores_limit),
            )
            for count in counts
        )

    def _allowed(self, count: Count, probability: float | None) -> float | None:
        here = next((row for row in self.measured if row.cores == count.cores), None)
        if here is not None and not _DOUBT <= here.chance <= 1.0 - _DOUBT:
            return here.chance
        at_least = min((row.chance for row in self.measured if row.cores >= count.cores), default=1.0)
        if probability is None or count.cores > self.known_cores:
            return None if at_least > _DOUBT else at_least
        return min(probability, at_least) if at_least < _DOUBT else probability
