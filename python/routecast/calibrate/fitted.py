"""A router calibrated from a few points: its predictions, its parameters and the model that the evaluators run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.discrepancy import Discrepancy, Sites
from routecast.calibrate.forward import REFERENCE_BYTES, Conditions, busy_rate, log_throughput
from routecast.calibrate.laws import Law
from routecast.calibrate.mixture import average_of_medians, weighted_quantiles
from routecast.calibrate.next_points import NextPoint, rank_next_points
from routecast.calibrate.points import Point
from routecast.calibrate.posterior import Posterior
from routecast.calibrate.prediction import Limit, Prediction
from routecast.calibrate.saturation import saturate
from routecast.router.model import Contention, RouterModel, ServiceCost
from routecast.router.multicore import Distribution, multicore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["FittedLaw", "FittedRouter", "Parameter"]

_COPIES = 8
_R2 = (0.7548776662466927, 0.5698402909980532)
_INTERVAL = (0.025, 0.975)
_SUPERLINEAR = 1.02
_FALLS = 0.95
_STRAYS = 0.25
"""A discrepancy of this scale is as large as what a law would explain."""
_SHARED_GAIN_CORES = 0.25
"""Where a further core adds less than a quarter of a single core, something shared limits rather than the cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A calibrated value: median, standard error and 95 % interval of the posterior."""

    name: str
    value: float
    standard_error: float
    low: float
    high: float
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLaw:
    """One law with its posterior, its weight among the laws, and the scales of discrepancy of each draw.

    ``cells`` (J,) are cells of :class:`Discrepancy`.
    """

    law: Law
    posterior: Posterior
    weight: float
    cells: NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedRouter:
    """A router calibrated by :func:`fit`; predicts maximum throughputs and makes router models.

    Attributes
    ----------
    series : str
    points : tuple of Point
        What calibrated it.
    fitted : tuple of FittedLaw
        The laws with a weight worth keeping, heaviest first.
    discrepancy : Discrepancy
        How the points may stray from each law.
    noise_ratio : float
        Repeatability of a measurement, one standard deviation.
    outliers : tuple of Point
        Points that the others contradict, which therefore decide nothing.
    seed : int
    """

    series: str
    points: tuple[Point, ...]
    fitted: tuple[FittedLaw, ...]
    discrepancy: Discrepancy
    noise_ratio: float
    outliers: tuple[Point, ...]
    seed: int

    @property
    def law(self) -> str:
        """The laws and their weights in words."""
        named = [
            f"{each.law.formula} ({each.law.name}, {each.weight:.0%})"
            for each in self.fitted
            if each.weight >= 0.05
        ]
        return "x = (T_c + S·T_d)·c(k), c(k) = k/g(k), averaged over " + "; ".join(named)

    @property
    def law_weights(self) -> dict[str, float]:
        """Weight of each kept law by name."""
        return {each.law.name: each.weight for each in self.fitted}

    @property
    def effective_parameters(self) -> float:
        """How many parameters the points decide, averaged over the laws; at most the number of points."""
        return sum(each.weight * each.posterior.effective_parameters for each in self.fitted)

    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]:
        """Predict maximum throughputs with 95 % intervals; the points' own rates are not looked at."""
        if not points:
            return ()
        conditions, sites = Conditions.of(points), Sites.of(points)
        middles, spreads, weights = [], [], []
        for each in self.fitted:
            mean, deviation, most = self._strays(each, sites)
            steps, noise = _quasi_normal(_COPIES * len(mean))
            theta, means, deviations, bounds = (
                np.repeat(array, _COPIES, axis=0)
                for array in (each.posterior.samples[1:], mean, deviation, most)
            )
            strays = np.minimum(means + steps[:, None] * deviations, bounds)
            drawn = log_throughput(each.law, theta, conditions, discrepancy=strays)
            middles.append(
                log_throughput(
                    each.law, each.posterior.samples[1:], conditions, discrepancy=np.minimum(mean, most)
                )
            )
            spreads.append(drawn + self.noise_ratio * noise[:, None])
            weights.append(np.full(len(drawn), each.weight / len(drawn)))
        middle = average_of_medians(middles, [each.weight for each in self.fitted])
        low, high = weighted_quantiles(np.concatenate(spreads), np.concatenate(weights), _INTERVAL)
        return tuple(
            Prediction(
                point=point,
                throughput_pps=math.exp(middle[index]),
                low_pps=math.exp(min(low[index], middle[index])),
                high_pps=math.exp(max(high[index], middle[index])),
                limit=self._limit(point),
            )
            for index, point in enumerate(points)
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the calibrated points say against themselves or against every law, in words."""
        found = [
            f"{_words(made.point)} is taken for an outlier: the other points say {made.throughput_pps / 1e6:.4g} Mpps; "
            "measure it again"
            for made in self.predict(self.outliers)
        ]
        others = [point for point in self.points if point not in self.outliers]
        found += [
            f"{_words(made.point)} lies outside its own 95 % interval, "
            f"{made.low_pps / 1e6:.4g} to {made.high_pps / 1e6:.4g} Mpps"
            for made in self.predict(others)
            if not made.low_pps <= made.point.throughput_pps <= made.high_pps
        ]
        for one, more in itertools.pairwise(sorted(others, key=lambda p: (p.frame_bytes, p.working_cores))):
            if more.frame_bytes == one.frame_bytes and more.throughput_pps < _FALLS * one.throughput_pps:
                found.append(f"{_words(more)} is less than {_words(one)}: it may fall further beyond them")
        strays = sum(
            each.weight * float(np.mean(self.discrepancy.smooth[each.cells] >= _STRAYS))
            for each in self.fitted
        )
        if strays > 0.5:
            found.append(
                "no law of contention fits the points: measure between them before relying on a prediction"
            )
        return tuple(found)

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Seconds (average over the laws) that a core needs for a frame while ``cores`` cores are busy."""
        return math.exp(float(self._log_service(np.array([cores]), frame_bytes)[0]))

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Values over all laws, then the shapes of the heaviest law (named ``law.shape``)."""
        weights = self._weights()
        theta = np.concatenate([each.posterior.samples[1:, :2] for each in self.fitted])
        per_packet = np.exp(theta[:, 0])
        per_byte = np.exp(theta[:, 0] + theta[:, 1]) / REFERENCE_BYTES
        found = [
            _parameter("T_c", per_packet, weights, "s", "time per frame"),
            _parameter("T_d", per_byte, weights, "s/B", "time per byte"),
        ]
        for k in sorted({point.working_cores for point in self.points} - {1}):
            factor = np.concatenate([self._factor(each, float(k)) for each in self.fitted])
            found.append(
                _parameter(f"c({k})", factor, weights, "1", f"factor on the service time with {k} busy cores")
            )
        best = self.fitted[0]
        own = np.full(len(best.posterior.samples) - 1, 1.0)
        for column, shape in enumerate(best.law.shapes, start=2):
            values = shape.value(best.posterior.samples[1:, column])
            name = f"{best.law.name}.{shape.name}"
            found.append(_parameter(name, values, own, shape.unit, shape.meaning))
        return {parameter.name: parameter for parameter in found}

    def router_model(
        self,
        cores: int,
        frame_bytes: float,
        *,
        link_bps: float = 10e9,
        ports: int = 2,
        queue_frames: int = 512,
        distribution: Distribution = "rss",
        nic_cap_pps: float | None = None,
        name: str = "",
    ) -> RouterModel:
        """Build the calibrated router with so many cores.

        T_c and T_d are medians; the contention table is such that the service time of a frame of ``frame_bytes`` bytes
        is the average over all laws for each number of busy cores.
        """
        values = self.parameters
        per_packet_s, per_byte_s = values["T_c"].value, values["T_d"].value
        seconds = np.exp(self._log_service(np.arange(1.0, cores + 1.0), frame_bytes))
        exact = float(seconds[0]) / (per_packet_s + per_byte_s * frame_bytes)
        service = ServiceCost(per_packet_s=per_packet_s * exact, per_byte_s=per_byte_s * exact)
        table = seconds / seconds[0]
        return multicore(
            cores,
            service,
            contention=Contention(table=tuple(float(entry) for entry in table)),
            link_bps=link_bps,
            ports=ports,
            queue_frames=queue_frames,
            distribution=distribution,
            nic_cap_pps=nic_cap_pps,
            name=name or f"{self.series or 'calibrated router'}, {cores} cores",
        )

    def next_points(self, n: int = 3, *, targets: Sequence[Point] = ()) -> tuple[NextPoint, ...]:
        """Return the measurements that would narrow the predictions at ``targets`` most (default: a grid)."""
        return rank_next_points(
            self.points, self._joint_log_rates, n, noise_ratio=self.noise_ratio, targets=targets
        )

    def _joint_log_rates(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        conditions = Conditions.of(points)
        draws = [log_throughput(each.law, each.posterior.samples[1:], conditions) for each in self.fitted]
        return np.concatenate(draws), self._weights()

    def _strays(self, each: FittedLaw, sites: Sites) -> tuple[Floats, Floats, Floats]:
        """Mean, standard deviation and upper bound of the discrepancy at sites for each draw of a law, (J, n) each.

        Beyond the largest calibrated number of cores no core does more than there, unless the calibrated points grew
        faster than their cores: what more cores share can only slow them down.
        """
        theta = each.posterior.samples[1:]
        residuals = np.log([point.throughput_pps for point in self.points]) - log_throughput(
            each.law, theta, Conditions.of(self.points)
        )
        mean, deviation = self.discrepancy.given(each.cells, residuals, sites)
        most = self._most_cores
        beyond = sites.cores > most
        bound = np.full_like(mean, np.inf)
        if beyond.any():
            there = sites.at_most(most)
            slowed = busy_rate(each.law, theta, there.cores[None], sites.frame_bytes) / busy_rate(
                each.law, theta, sites.cores[None], sites.frame_bytes
            )
            bound[:, beyond] = (self.discrepancy.given(each.cells, residuals, there)[0] + np.log(slowed))[
                :, beyond
            ]
        return mean, deviation, bound

    @property
    def _most_cores(self) -> float:
        """Cores beyond which the router grows at most as its cores do; infinite if its points grew faster than that."""
        each = sorted((p.working_cores, p.throughput_pps / p.working_cores) for p in self.points)
        grew = any(
            more > few and rate > _SUPERLINEAR * before
            for (few, before), (more, rate) in itertools.pairwise(each)
        )
        return math.inf if grew else float(each[-1][0])

    def _weights(self) -> Floats:
        return np.concatenate(
            [np.full(n, each.weight / n) for each in self.fitted for n in (len(each.posterior.samples) - 1,)]
        )

    def _log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        """Logarithm of the seconds that a core needs for a frame, average over laws, for each number of busy cores."""
        return -average_of_medians(
            [self._log_core_rates(each, busy, frame_bytes) for each in self.fitted],
            [each.weight for each in self.fitted],
        )

    def _log_core_rates(self, each: FittedLaw, busy: Floats, frame_bytes: float) -> Floats:
        """Logarithm of what one of so many busy cores does, (J, n) for the draws of a law."""
        sizes = np.full(len(busy), frame_bytes)
        sites = Sites.of(self.points[:1]).everywhere(busy, sizes)
        mean, _, most = self._strays(each, sites)
        rates = busy_rate(each.law, each.posterior.samples[1:], busy[None], sizes)
        found: Floats = np.log(rates) + np.minimum(mean, most)
        return found

    def _factor(self, each: FittedLaw, k: float) -> Floats:
        rates = self._log_core_rates(each, np.array([1.0, k]), REFERENCE_BYTES)
        ratio: Floats = np.exp(rates[:, 0] - rates[:, 1])
        return ratio

    def _limit(self, point: Point) -> Limit:
        busy = np.arange(1.0, point.working_cores + 1.0)
        rates = np.exp(-self._log_service(busy, point.frame_bytes)) * point.layout.useful_ratio(
            point.working_cores
        )
        flow = saturate(point, core_pps=lambda k: float(np.interp(k, busy, rates)))
        if flow.limit == "cpu" and len(busy) > 1:
            totals = busy * rates
            if totals[-1] - totals[-2] < _SHARED_GAIN_CORES * totals[0]:
                return "shared"
        return flow.limit


def _words(point: Point) -> str:
    cores = f"{point.working_cores} core{'s' if point.working_cores > 1 else ''}"
    return f"the rate of {cores} at {point.frame_bytes:g} B ({point.throughput_pps / 1e6:.4g} Mpps)"


def _parameter(name: str, values: Floats, weights: Floats, unit: str, meaning: str) -> Parameter:
    low, value, high = weighted_quantiles(values[:, None], weights, (0.025, 0.5, 0.975))[:, 0]
    mean = float(np.average(values, weights=weights))
    error = math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))
    return Parameter(
        name=name,
        value=float(value),
        standard_error=error,
        low=float(low),
        high=float(high),
        unit=unit,
        meaning=meaning,
    )


@lru_cache
def _quasi_normal(n: int) -> tuple[Floats, Floats]:
    """Return n pairs of normal values that fill the plane evenly (Roberts' R2 sequence), the same each time."""
    inverse = np.vectorize(NormalDist().inv_cdf)
    one, other = (inverse((0.5 + step * np.arange(n)) % 1.0) for step in _R2)
    return one, other
