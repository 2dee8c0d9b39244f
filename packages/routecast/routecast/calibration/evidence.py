"""What measured rows say of a goal by themselves, whatever a calibration predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from routecast.calibration._discrepancy import REPEATABILITY_RATIO, is_capped
from routecast.calibration.counts import Count, cores
from routecast.calibration.fitted import TOLERANCE_RATIO, FittedRouter
from routecast.calibration.score import Prediction
from routecast.evaluate.points import Point

__all__ = ["Evidence", "MeasuredCount"]

_NORMAL = NormalDist()
_DOUBT = 0.05
"""A chance from a row alone below this, or above 1 less this, decides."""
_MAX_NOISE_RATIO = 0.03
"""Repeatability of a row of a table whose rows contradict each other, one standard deviation."""
_BEYOND_SD = 3.0
"""Standard deviations of the noise below a 95 % interval, from which a held-out row contradicts its prediction."""
_FAR_BELOW_RATIO = 0.75
"""Share of a predicted rate, below which a held-out row contradicts it outside the 80 % interval already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCount:
    """A number of cores that was measured with certain frames.

    ``sd_ratio``: relative standard deviation of a further measurement from the rate, for a goal that the rate meets;
    ``missed_sd_ratio``: the same for a greater goal; ``is_at_link``: the rate is the links', so that other links may
    carry more.
    """

    cores: int
    rate_pps: float
    sd_ratio: float
    missed_sd_ratio: float
    is_at_link: bool = False

    def chance(self, goal_pps: float) -> float:
        """Return the probability that a further measurement meets a goal, from these rows alone."""
        sd = self.sd_ratio if self.rate_pps >= goal_pps else self.missed_sd_ratio
        return _NORMAL.cdf(math.log(self.rate_pps / goal_pps) / sd)

    def met_pps(self, chance: float) -> float:
        """Return the greatest goal that a further measurement meets with a probability, from these rows alone."""
        normal = _NORMAL.inv_cdf(chance)
        return self.rate_pps * math.exp(-normal * (self.sd_ratio if normal >= 0.0 else self.missed_sd_ratio))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rows with the frames of a goal say of it by themselves.

    A measured number of cores that meets the goal beyond noise is enough. One that misses it is not, and neither are
    fewer cores. Where a held-out row lies below its prediction by more than noise, nothing is known of more cores: the
    row shows a limit that the calibrating rows do not.

    ``measured``: in the order of cores; ``known_cores``: the most cores of which the calibration is not contradicted.
    """

    measured: tuple[MeasuredCount, ...] = ()
    known_cores: float = math.inf
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, fitted: FittedRouter, conditions: Point, held_out: Sequence[Point]) -> Evidence:
        """Collect the rows with the frames of ``conditions``: those that calibrate, and those that are held out."""
        frames = (conditions.frame_bytes, conditions.frame_mix)
        rows = [point for point in (*fitted.points, *held_out) if (point.frame_bytes, point.frame_mix) == frames]
        logs: dict[int, list[float]] = {}
        for point in rows:
            logs.setdefault(point.working_cores, []).append(math.log(point.throughput_pps))
        contradicted_counts = {point.working_cores for point in fitted.outliers if point in rows}
        linked_counts = {point.working_cores for point in rows if _is_at_link(fitted.caps.applied(point))}
        measured = []
        for count, values in sorted(logs.items()):
            mean = math.fsum(values) / len(values)
            # The noise that a table shows includes what contradicts in it, which is none of a row. One that the others
            # contradict still refutes.
            noise_ratio = min(fitted.noise_ratio, _MAX_NOISE_RATIO) if fitted.outliers else fitted.noise_ratio
            is_contradicted = count in contradicted_counts
            missed_ratio = min(noise_ratio, REPEATABILITY_RATIO) if is_contradicted else noise_ratio
            further = math.sqrt(1.0 + 1.0 / len(values))
            measured.append(
                MeasuredCount(
                    cores=count,
                    rate_pps=math.exp(mean),
                    sd_ratio=noise_ratio * further,
                    missed_sd_ratio=missed_ratio * further,
                    is_at_link=count in linked_counts,
                )
            )
        own = [point for point in held_out if point in rows]
        # A row that only an unseen ceiling explains shows one.
        below = [
            prediction
            for prediction in replace(fitted, hazard=0.0).predict(own)
            if prediction.measured < _least_credible_pps(prediction) * math.exp(-_BEYOND_SD * fitted.noise_ratio)
        ]
        remarks = (
            f"the held-out row of {cores(p.point.working_cores)} ({p.measured / 1e6:.4g} Mpps) lies below its "
            f"prediction, {p.throughput_pps / 1e6:.4g} Mpps ({p.low_pps / 1e6:.4g} to {p.high_pps / 1e6:.4g} Mpps with "
            "95 %): something limits that the calibrating "
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

    def applied(self, counts: Sequence[Count], goal_pps: float) -> tuple[Count, ...]:
        """Return the counts with the probabilities of a goal that the rows allow, and the rates that decide them."""
        return tuple(
            replace(
                self._at_its_row(count, goal_pps),
                probability=self._allowed(count.cores, count.probability, goal_pps),
                probability_if_cores_limit=self._allowed(count.cores, count.probability_if_cores_limit, goal_pps),
            )
            for count in counts
        )

    def _at_its_row(self, count: Count, goal_pps: float) -> Count:
        """Return a count with the rate of its row, if that decides the goal otherwise than the predicted rate."""
        here = next((row for row in self.measured if row.cores == count.cores), None)
        if here is None or _DOUBT <= here.chance(goal_pps) <= 1.0 - _DOUBT:
            return count
        if (here.rate_pps >= goal_pps) == (count.rate_pps >= goal_pps * (1.0 - TOLERANCE_RATIO)):
            return count
        beyond = math.exp(_NORMAL.inv_cdf(0.975) * here.sd_ratio)
        return replace(count, rate_pps=here.rate_pps, low_pps=here.rate_pps / beyond, high_pps=here.rate_pps * beyond)

    def _allowed(self, cores: int, probability: float | None, goal_pps: float) -> float | None:
        here = next((row.chance(goal_pps) for row in self.measured if row.cores == cores), None)
        if here is not None and not _DOUBT <= here <= 1.0 - _DOUBT:
            return here
        at_least = min((row.chance(goal_pps) for row in self.measured if row.cores >= cores), default=1.0)
        if probability is None or cores > self.known_cores:
            return None if at_least > _DOUBT else at_least
        return min(probability, at_least) if at_least < _DOUBT else probability

    def quantiles_pps(
        self, cores: int, quantiles_pps: Sequence[float], probabilities: Sequence[float]
    ) -> tuple[float, ...]:
        """Return the quantiles of a measurement's rate, whatever the links carry, that the rows allow.

        A goal counts as reached that is missed by less than :data:`~routecast.calibration.fitted.TOLERANCE_RATIO`, and
        no goal so read has a greater probability than :meth:`applied` gives it or a lesser one. A row at the rate of
        its links says that the cores forward at least as much. NaN: nothing is known.

        Parameters
        ----------
        cores : int
        quantiles_pps, probabilities : sequence of float
            The predicted quantiles at ascending probabilities, frames/s.
        """
        here = next((row for row in self.measured if row.cores == cores), None)
        missed = [row for row in self.measured if row.cores >= cores and not row.is_at_link]
        reached = 1.0 - TOLERANCE_RATIO
        allowed = []
        for predicted_pps, probability in zip(quantiles_pps, probabilities, strict=True):
            chance = 1.0 - probability
            is_sure, is_doubtful = chance > 1.0 - _DOUBT, chance > _DOUBT
            most_pps = min((reached * row.met_pps(min(chance, _DOUBT)) for row in missed), default=math.inf)
            least_pps = reached * here.met_pps(max(chance, 1.0 - _DOUBT)) if here is not None else 0.0
            if here is not None and is_sure and not here.is_at_link:
                most_pps = least_pps
            if cores <= self.known_cores:
                allowed.append(max(least_pps, min(predicted_pps, most_pps)))
            elif is_sure and here is not None:
                allowed.append(least_pps)
            else:
                allowed.append(math.nan if is_doubtful or math.isinf(most_pps) else most_pps)
        return tuple(allowed)


def _least_credible_pps(prediction: Prediction) -> float:
    """Return the rate below which a held-out row shows a limit that the prediction does not know."""
    least_pps, _ = prediction.intervals[0.8]
    return max(prediction.low_pps, min(least_pps, _FAR_BELOW_RATIO * prediction.throughput_pps))


def _is_at_link(point: Point) -> bool:
    """Whether a row has the rate that its links carry."""
    return is_capped(replace(point, nic_cap_pps=None))
