"""A router calibrated from a few points: its predictions, its parameters and the model that the evaluators run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibrate.forward import REFERENCE_BYTES, Conditions, busy_rate, log_throughput
from routecast.calibrate.laws import Law
from routecast.calibrate.mixture import average_of_medians, weighted_quantiles
from routecast.calibrate.next_points import NextPoint, rank_next_points
from routecast.calibrate.points import Point
from routecast.calibrate.posterior import Posterior
from routecast.calibrate.prediction import Limit, Prediction
from routecast.calibrate.saturation import saturate
from routecast.calibrate.spread import DEGREES_OF_FREEDOM, structural_scale
from routecast.router.model import Contention, RouterModel, ServiceCost
from routecast.router.multicore import Distribution, multicore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["FittedLaw", "FittedRouter", "Parameter"]

_NOISE_COPIES = 8
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
        by_law = self._log_rates_by_law(points)
        middle = average_of_medians(by_law, [each.weight for each in self.fitted])
        samples, weights = np.concatenate(by_law), self._weights()
        scale = structural_scale(points, self.points)
        random = np.random.default_rng(self.seed + 1)
        noisy = np.repeat(samples, _NOISE_COPIES, axis=0)
        noisy = noisy + self.noise_ratio * random.standard_normal(noisy.shape)
        noisy = noisy + scale * random.standard_t(DEGREES_OF_FREEDOM, noisy.shape)
        low, high = weighted_quantiles(noisy, np.repeat(weights, _NOISE_COPIES), _INTERVAL)
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
            self.points, self._log_rates, n, noise_ratio=self.noise_ratio, targets=targets
        )

    def _log_rates(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        return np.concatenate(self._log_rates_by_law(points)), self._weights()

    def _log_rates_by_law(self, points: Sequence[Point]) -> list[Floats]:
        conditions = Conditions.of(points)
        return [log_throughput(each.law, each.posterior.samples[1:], conditions) for each in self.fitted]

    def _weights(self) -> Floats:
        return np.concatenate(
            [np.full(n, each.weight / n) for each in self.fitted for n in (len(each.posterior.samples) - 1,)]
        )

    def _log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        sizes = np.full(len(busy), frame_bytes)
        rates = [busy_rate(each.law, each.posterior.samples[1:], busy[None], sizes) for each in self.fitted]
        return -average_of_medians([np.log(each) for each in rates], [each.weight for each in self.fitted])

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
        rates = np.exp(-self._log_service(busy, point.frame_bytes)) * point.layout.useful_ratio(
            point.working_cores
        )
        flow = saturate(point, core_pps=lambda k: float(np.interp(k, busy, rates)))
        if flow.limit == "cpu" and len(busy) > 1:
            totals = busy * rates
            if totals[-1] - totals[-2] < _SHARED_GAIN_CORES * totals[0]:
                return "shared"
        return flow.limit


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
