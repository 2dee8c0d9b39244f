"""Fit routecast's router to a few measured points.

The service time of a frame of S bytes on one of k busy cores is ``(T_c + S·T_d)·c(k)``, and a router under overload
forwards what cores, links and cards let through (:mod:`routecast.calibrate.saturation`). Which contention law c(k)
holds is not known from a few points, so every law of :mod:`routecast.calibrate.laws` is fitted and weighed by its
evidence; predictions are medians over the weighted laws and the intervals contain their disagreement. What the points
do not decide stays at its prior: with one point only T_c is learnt, each further one adds at most one effective
parameter (:attr:`FittedRouter.effective_parameters`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.forward import (
    BYTE_SHAPE,
    NIC_SHAPE,
    REFERENCE_BYTES,
    Conditions,
    busy_rate,
    log_throughput,
)
from routecast.calibrate.laws import LAWS, Law
from routecast.calibrate.mixture import law_weights, weighted_quantiles
from routecast.calibrate.next_points import NextPoint, rank_next_points
from routecast.calibrate.points import Point
from routecast.calibrate.posterior import Posterior, sample_posterior
from routecast.calibrate.prediction import Limit, Prediction
from routecast.calibrate.saturation import saturate
from routecast.calibrate.spread import DEGREES_OF_FREEDOM, structural_scale
from routecast.errors import FitProblem
from routecast.router.model import Contention, RouterModel, ServiceCost
from routecast.router.multicore import Distribution, multicore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["FittedLaw", "FittedRouter", "Parameter", "fit"]

NOISE_RATIO = 0.005
"""Repeatability of a maximum throughput, one standard deviation: repeated RFC 2544 trials agree to about 0.5 %."""

_DRAWS = 96
_RATE_SD = 4.0
_NOISE_COPIES = 8
_NEGLIGIBLE_WEIGHT = 1e-4
_INTERVAL = (0.025, 0.975)
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
    """One law with its posterior and its weight among the laws."""

    law: Law
    posterior: Posterior
    weight: float


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
    noise_ratio : float
        Repeatability of a measurement, one standard deviation.
    seed : int
    """

    series: str
    points: tuple[Point, ...]
    fitted: tuple[FittedLaw, ...]
    noise_ratio: float
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
        samples, weights = self._log_rates(points)
        median = weighted_quantiles(samples, weights, (0.5,))[0]
        scale = structural_scale(points, self.points)
        random = np.random.default_rng(self.seed + 1)
        noisy = np.repeat(samples, _NOISE_COPIES, axis=0)
        noisy = noisy + self.noise_ratio * random.standard_normal(noisy.shape)
        noisy = noisy + scale * random.standard_t(DEGREES_OF_FREEDOM, noisy.shape)
        low, high = weighted_quantiles(noisy, np.repeat(weights, _NOISE_COPIES), _INTERVAL)
        return tuple(
            Prediction(
                point=point,
                throughput_pps=math.exp(median[index]),
                low_pps=math.exp(min(low[index], median[index])),
                high_pps=math.exp(max(high[index], median[index])),
                limit=self._limit(point),
            )
            for index, point in enumerate(points)
        )

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Median seconds that a core needs for a frame while ``cores`` cores are busy."""
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
            raw = best.posterior.samples[1:, column]
            values = np.exp(raw) if shape.log else raw
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
        is the median over all laws for each number of busy cores.
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
            self.points, self._log_rates, n, noise_ratio=self.noise_ratio, targets=targets
        )

    def _log_rates(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        conditions = Conditions.of(points)
        samples = []
        for each in self.fitted:
            theta = each.posterior.samples[1:]
            if conditions.has_nic_cap and theta.shape[1] == len(each.law.shapes) + 2:
                theta = np.concatenate([theta, np.zeros((len(theta), 1))], axis=1)
            samples.append(log_throughput(each.law, theta, conditions))
        return np.concatenate(samples), self._weights()

    def _weights(self) -> Floats:
        return np.concatenate(
            [np.full(n, each.weight / n) for each in self.fitted for n in (len(each.posterior.samples) - 1,)]
        )

    def _log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        sizes = np.full(len(busy), frame_bytes)
        rates = [busy_rate(each.law, each.posterior.samples[1:], busy[None], sizes) for each in self.fitted]
        median: Floats = -weighted_quantiles(np.log(np.concatenate(rates)), self._weights(), (0.5,))[0]
        return median

    def _factor(self, each: FittedLaw, k: float) -> Floats:
        one, many = np.array([[1.0]]), np.array([[k]])
        sizes = np.array([REFERENCE_BYTES])
        theta = each.posterior.samples[1:]
        ratio: Floats = (busy_rate(each.law, theta, one, sizes) / busy_rate(each.law, theta, many, sizes))[
            :, 0
        ]
        return ratio

    def _limit(self, point: Point) -> Limit:
        busy = np.arange(1.0, point.working_cores + 1.0)
        rates = np.exp(-self._log_service(busy, point.frame_bytes))
        flow = saturate(point, core_pps=lambda k: float(np.interp(k, busy, rates)))
        if flow.limit == "cpu" and len(busy) > 1:
            totals = busy * rates
            if totals[-1] - totals[-2] < _SHARED_GAIN_CORES * totals[0]:
                return "shared"
        return flow.limit


def fit(
    points: Sequence[Point],
    *,
    series: str = "",
    laws: Mapping[str, float] | Sequence[str] | None = None,
    seed: int = 0,
    noise_ratio: float = NOISE_RATIO,
) -> FittedRouter:
    """Fit a router to measured points of one series; every point given is used.

    Parameters
    ----------
    points : sequence of Point
        One or more; their ``calibrate`` mark is not looked at.
    series : str
        Name in messages; taken from the points if empty.
    laws : mapping of str to float, or sequence of str, or None
        Laws to average with their prior weights; a sequence weighs them equally; None: all with their usual weights.
    seed : int
    noise_ratio : float
        Repeatability of the measured rates, one standard deviation.

    Raises
    ------
    FitProblem
        No points, points of several series, a rate or a law that is not allowed, or repeated conditions.
    """
    points = tuple(points)
    name = series or (points[0].series if points else "")
    _check(points, name, noise_ratio)
    prior = _prior_weights(laws, name)
    conditions = Conditions.of(points)
    measured = np.log([point.throughput_pps for point in points])
    noise = np.full(len(points), noise_ratio)
    core_rate = float(np.mean([measured[i] - math.log(p.working_cores) for i, p in enumerate(points)]))
    posteriors = []
    for index, law in enumerate(LAWS[each] for each in prior):
        shapes = [BYTE_SHAPE, *law.shapes, *([NIC_SHAPE] if conditions.has_nic_cap else [])]
        posteriors.append(
            sample_posterior(
                lambda theta, law=law: log_throughput(law, theta, conditions),  # type: ignore[misc]
                measured,
                noise,
                np.array([-core_rate, *(shape.mean for shape in shapes)]),
                np.array([_RATE_SD, *(shape.sd for shape in shapes)]),
                draws=_DRAWS,
                seed=seed + 1000 * index,
            )
        )
    weights = law_weights([each.log_evidence for each in posteriors], list(prior.values()))
    fitted = [
        FittedLaw(law=LAWS[law], posterior=posterior, weight=float(weight))
        for law, posterior, weight in zip(prior, posteriors, weights, strict=True)
        if weight > _NEGLIGIBLE_WEIGHT
    ]
    total = sum(each.weight for each in fitted)
    fitted = sorted(
        (replace(each, weight=each.weight / total) for each in fitted), key=lambda each: -each.weight
    )
    return FittedRouter(series=name, points=points, fitted=tuple(fitted), noise_ratio=noise_ratio, seed=seed)


def _check(points: Sequence[Point], series: str, noise_ratio: float) -> None:
    if not points:
        raise FitProblem(series, "no points to calibrate with: give at least one measured maximum throughput")
    if len({point.series for point in points}) > 1:
        raise FitProblem(series, "the points belong to several series: fit each series by itself")
    wrong = [point.throughput_pps for point in points if not (0.0 < point.throughput_pps < math.inf)]
    if wrong:
        raise FitProblem(series, f"got a rate of {wrong[0]} frames/s: measured rates are finite and > 0")
    if len({point.conditions for point in points}) < len(points):
        raise FitProblem(series, "two points have the same conditions: give their mean as one point")
    if not 0.0 < noise_ratio < 1.0:
        raise FitProblem(series, f"got noise_ratio = {noise_ratio}: allowed is more than 0 and less than 1")


def _prior_weights(laws: Mapping[str, float] | Sequence[str] | None, series: str) -> dict[str, float]:
    if laws is None:
        return {law.name: law.prior_weight for law in LAWS.values()}
    prior = dict(laws) if isinstance(laws, Mapping) else dict.fromkeys(laws, 1.0)
    unknown = [name for name in prior if name not in LAWS]
    if unknown or not prior:
        got = f"unknown law {unknown[0]!r}" if unknown else "no law"
        raise FitProblem(series, f"{got}: known are {', '.join(LAWS)}")
    if any(not (0.0 < weight < math.inf) for weight in prior.values()):
        raise FitProblem(series, "prior weights of laws are finite and > 0: leave out a law that you exclude")
    return prior


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
