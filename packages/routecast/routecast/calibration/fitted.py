"""The router that a calibration returns, with predictions, parameters and a model for evaluators."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import mode
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Discrepancy
from routecast.calibration._posterior import average_of_medians, shortest_tails, weighted_quantiles
from routecast.calibration._rate_draws import FALL_RATIO, TOLERANCE_RATIO, FittedLaw, RateDraws, at_cores
from routecast.calibration._warnings import contradictions_of, fall_sentence, hump_sentence, warnings_of
from routecast.calibration.caps import Caps
from routecast.calibration.forward import REFERENCE_BYTES, saturate
from routecast.calibration.next_points import NextPoint, candidates, half_width_ratio, interval_log_width, rank
from routecast.calibration.score import Limit, Prediction, intervals
from routecast.evaluate.points import Point
from routecast.quantity.comparison import Intervals
from routecast.router.model import Contention, RouterModel, ServiceCost
from routecast.router.multicore import Distribution, multicore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = [
    "CONFIDENCE_RATIO",
    "MAX_CORES",
    "TOLERANCE_RATIO",
    "FittedLaw",
    "FittedRouter",
    "Parameter",
    "at_cores",
    "sparse_counts",
]

CONFIDENCE_RATIO = 0.95
MAX_CORES = 4096
_CONSECUTIVE_CORES = 24
_COUNT_GROWTH = 1.12
"""Ratio of successive numbers of cores beyond the consecutive ones."""

_NO_LINK_BPS = 1e15
"""Rate of the links of a router whose table states none: they never limit."""

_MIN_CHANCE = 0.025
_SHARED_GAIN_CORES = 0.25
"""Gain of a further core, in rates of a single core, below which a shared resource limits and not the cores."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRouter:
    """A router calibrated by :func:`fit`, which predicts maximum throughputs and builds router models.

    Attributes
    ----------
    series : str
    points : tuple of Point
        Calibrating points.
    fitted : tuple of FittedLaw
        The laws whose weight is not negligible, heaviest first.
    discrepancy : Discrepancy
        Discrepancy of the points from each law.
    noise_ratio : float
        Repeatability of a measurement, one standard deviation: the root of its mean variance, where it is not known.
    noise_residuals : (m,) array
        Sorted residuals of measurements in standard deviations; empty: normal noise.
    outliers : tuple of Point
        Points that the other points contradict, which therefore have no weight.
    spreads : tuple of (Point, Point)
        The lowest and the highest repetition of each repeated condition.
    caps : Caps
        Limits that the points show and do not state; they hold for every prediction.
    hazard : float
        Unseen ceilings per doubling of the cores beyond the most measured ones
        (:mod:`routecast.calibration.ceilings`).
    seed : int
    carry : (float, float)
        Change of the logarithm of a frame's time on the predicted host, mean and standard deviation
        (:mod:`routecast.calibration.carried`); zeros on the measured host.
    """

    series: str
    points: tuple[Point, ...]
    fitted: tuple[FittedLaw, ...]
    discrepancy: Discrepancy
    noise_ratio: float
    noise_residuals: Floats
    outliers: tuple[Point, ...]
    caps: Caps
    hazard: float
    seed: int
    carry: tuple[float, float] = (0.0, 0.0)
    spreads: tuple[tuple[Point, Point], ...] = ()

    @cached_property
    def draws(self) -> RateDraws:
        """Random rates of the router."""
        return RateDraws(
            points=self.points,
            fitted=self.fitted,
            discrepancy=self.discrepancy,
            noise_ratio=self.noise_ratio,
            noise_residuals=self.noise_residuals,
            caps=self.caps,
            hazard=self.hazard,
            seed=self.seed,
            carry=self.carry,
        )

    @cached_property
    def machine(self) -> Point:
        """The machine of the table: a point with the most frequent links, ports, cards and layout, and the caps."""
        rows = [self.caps.applied(point) for point in self.points]
        names = ("link_bps", "ports", "nic_cap_pps", "layout")
        frequent = {name: mode(getattr(row, name) for row in rows) for name in names}
        return replace(self.points[0], flows=None, **frequent)

    @property
    def law(self) -> str:
        """The formula of the service time with the laws and their weights, as text."""
        named = [
            f"{fitted_law.law.formula} ({fitted_law.law.name}, {fitted_law.weight:.0%})"
            for fitted_law in self.fitted
            if fitted_law.weight >= 0.05
        ]
        return "x = (T_c + S·T_d)·c(k), c(k) = k/g(k), averaged over " + "; ".join(named)

    @property
    def law_weights(self) -> dict[str, float]:
        """Weight of each law by name."""
        return {fitted_law.law.name: fitted_law.weight for fitted_law in self.fitted}

    @property
    def effective_parameters(self) -> float:
        """Number of parameters that the points decide, averaged over the laws; at most the number of points."""
        return sum(fitted_law.weight * fitted_law.posterior.effective_parameters for fitted_law in self.fitted)

    def predict(self, points: Sequence[Point]) -> tuple[Prediction, ...]:
        """Predict maximum throughputs with 95 % intervals at the conditions of points.

        The point prediction is the average over the laws (:attr:`typical_weights`), or the median if that average
        is outside the 95 % interval with equal tails. Beyond the most measured cores the intervals are the shortest.
        """
        if not points:
            return ()
        middles, measured, weights = self.draws.measurements(points, line_rate_noise_ratio=math.inf)
        middle = average_of_medians(middles, self.typical_weights)
        spread = intervals(measured, weights, beyond=self.draws.beyond(points))
        tail = 0.5 - 0.5 * CONFIDENCE_RATIO
        low, median, high = weighted_quantiles(measured, weights, (tail, 0.5, 1.0 - tail))
        middle = np.where((middle < low) | (middle > high), median, middle)
        max_cores: dict[float, int] = {}
        for point in points:
            max_cores[point.frame_bytes] = max(point.working_cores, max_cores.get(point.frame_bytes, 1))
        core_pps = {size: 1.0 / self.draws.service_times_s(count, size) for size, count in max_cores.items()}
        return tuple(
            Prediction.of(
                point,
                math.exp(middle[index]),
                limit=_limit(self.caps.applied(point), core_pps[point.frame_bytes][: point.working_cores]),
                intervals=_including(math.exp(middle[index]), spread[index]),
            )
            for index, point in enumerate(points)
        )

    def chances(self, points: Sequence[Point], goal_pps: float, *, ceilings: bool = True) -> tuple[float, ...]:
        """Return the probability that one measurement at each point reaches a rate, frames per second.

        ``ceilings``: whether something else than the cores may limit beyond the most measured cores.
        """
        if not points:
            return ()
        _, measured, weights = self.draws.measurements(points, ceilings=ceilings)
        met = measured >= math.log(goal_pps) - TOLERANCE_RATIO
        return tuple(min(max(float(chance), 0.0), 1.0) for chance in weights @ met / weights.sum())

    def quantiles_pps(self, points: Sequence[Point], probabilities: Sequence[float]) -> Floats:
        """Return quantiles of one measurement at each of n points, frames per second, (n, len(probabilities))."""
        _, measured, weights = self.draws.measurements(points)
        quantiles: Floats = np.exp(weighted_quantiles(measured, weights, probabilities)).T
        return quantiles

    def interval_tails(self, points: Sequence[Point]) -> tuple[float, ...]:
        """Return the probability below the 95 % interval of each point, as :meth:`predict` states it."""
        _, measured, weights = self.draws.measurements(points, line_rate_noise_ratio=math.inf)
        tails = np.full(len(points), 0.5 - 0.5 * CONFIDENCE_RATIO)
        if beyond := self.draws.beyond(points):
            tails[beyond] = shortest_tails(measured[:, beyond], weights, CONFIDENCE_RATIO)
        return tuple(tails.tolist())

    def joint_rates_pps(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of one measurement at each of n points, frames per second, (S, n), unordered.

        A row has the rates of one possible router, and the noise of n measurements.
        """
        return self.draws.joint_measurements_pps(points)

    def chance_draws(self, points: Sequence[Point], goals_pps: Sequence[float]) -> Floats:
        """Return equally likely draws of the probability that one measurement at each of n points reaches its rate.

        Shape (S, n), unordered. A row has one possible router; only the noise of a measurement is random then, so that
        the means over the rows are those of :meth:`chances`.
        """
        return self.draws.chances(points, goals_pps)

    def least_cores(self, point: Point, goal_pps: float, *, confidence_ratio: float = CONFIDENCE_RATIO) -> int | None:
        """Return the fewest cores, 1 to 4096, that forward a rate with a probability, or None if no number does.

        The other conditions are those of ``point``.
        """
        counts = sparse_counts(MAX_CORES)
        chances = self.chances([at_cores(point, k) for k in counts], goal_pps)
        position = next((i for i, chance in enumerate(chances) if chance >= confidence_ratio), None)
        if position is None:
            return None
        between = range(counts[position - 1] + 1 if position else 1, counts[position])
        exact = self.chances([at_cores(point, k) for k in between], goal_pps)
        return next(
            (k for k, chance in zip(between, exact, strict=True) if chance >= confidence_ratio), counts[position]
        )

    def log_rate_draws(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return draws of the logarithm of the rates at n points, (S, n), and their weights, which sum to 1."""
        _, drawn, weights = self.draws.by_law(points)
        return np.concatenate(drawn), weights / weights.sum()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on points that contradict each other or every law."""
        return warnings_of(self)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Sentences on rows that cannot both be right: a wrong unit or row, which no calibration survives."""
        return contradictions_of(self)

    def humps(self, points: Sequence[Point]) -> tuple[str, ...]:
        """Return a sentence on each point whose prediction leaves the range of the measured rates beside it."""
        calibrated = [point for point in self.points if point not in self.outliers]
        sentences = (hump_sentence(prediction, calibrated, self.noise_ratio) for prediction in self.predict(points))
        return tuple(filter(None, sentences))

    def remarks(self, points: Sequence[Point]) -> tuple[str, ...]:
        """Return a sentence if the rate may fall from the calibrated cores to the most cores of ``points``."""
        calibrated = max(self.points, key=lambda point: point.working_cores)
        largest = max(points, key=lambda point: point.working_cores, default=calibrated)
        if largest.working_cores <= calibrated.working_cores:
            return ()
        _, drawn, weights = self.draws.by_law(
            [calibrated, replace(calibrated, cores=largest.cores, flows=largest.flows)]
        )
        logs = np.concatenate(drawn)
        chance = float(weights[logs[:, 1] < logs[:, 0] + math.log(FALL_RATIO)].sum())
        if chance < _MIN_CHANCE:
            return ()
        is_locked = any(fitted_law.law.collapses for fitted_law in self.fitted)
        return (fall_sentence(largest, calibrated, chance, is_locked=is_locked),)

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Return the seconds per frame of a core while ``cores`` cores are busy, averaged over the laws.

        It is no latency, as nothing waits in it.
        """
        return math.exp(float(self.draws.log_service(np.array([cores]), frame_bytes)[0]))

    @cached_property
    def frame_s(self) -> float:
        """The time of a frame on one core, s, of the smallest frames: a stated rate is often a link's."""
        return self.service_s(1, min(point.frame_bytes for point in self.points))

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters of all laws, then the shapes of the heaviest law (named ``law.shape``)."""
        per_core_counts = sorted({point.working_cores for point in self.points} - {1})
        parameters = (*_times(self.fitted), *_contention_factors(self, per_core_counts), *_shapes(self.fitted[0]))
        return {parameter.name: parameter for parameter in parameters}

    def router_model(
        self,
        cores: int,
        frame_bytes: float,
        *,
        link_bps: float | None = None,
        ports: int | None = None,
        queue_frames: int = 512,
        distribution: Distribution = "rss",
        nic_cap_pps: float | None = None,
        name: str = "",
    ) -> RouterModel:
        """Build the calibrated router with ``cores`` cores, by default with links, ports and cards of :attr:`machine`.

        T_c and T_d are medians. The contention table makes the service time of a frame of ``frame_bytes`` bytes equal
        to the average over all laws for each number of busy cores. Where receive queues are dealt to the cores, every
        core is as slow as the fullest one is.
        """
        values = self.parameters
        per_packet_s, per_byte_s = values["T_c"].value, values["T_d"].value
        useful_ratio = self.machine.layout.useful_ratio(cores)  # of the fullest core, taken as that of every core
        seconds = self.draws.service_times_s(cores, frame_bytes) / useful_ratio
        scale = float(seconds[0]) / (per_packet_s + per_byte_s * frame_bytes)
        service = ServiceCost(per_packet_s=per_packet_s * scale, per_byte_s=per_byte_s * scale)
        table = seconds / seconds[0]
        return multicore(
            cores,
            service,
            contention=Contention(table=tuple(float(entry) for entry in table)),
            link_bps=link_bps or self.machine.link_bps or _NO_LINK_BPS,
            ports=ports or self.machine.ports,
            queue_frames=queue_frames,
            distribution=distribution,
            nic_cap_pps=nic_cap_pps or self.machine.nic_cap_pps,
            name=name or f"{self.series or 'calibrated router'}, {cores} cores",
        )

    def next_points(
        self, n: int = 3, *, able: Sequence[Point] = (), targets: Sequence[Point] = (), goal_pps: float | None = None
    ) -> tuple[NextPoint, ...]:
        """Return the measurements to make next, in their order (:mod:`routecast.calibration.next_points`).

        ``able``: possible measurements. Empty: the frame sizes of calibration and targets, on up to the most cores of
        the targets, or twice those of the calibration. ``targets``: conditions to predict; empty: all possible
        measurements. ``goal_pps``: predict instead the fewest cores that forward this rate of the first target.
        """
        max_cores = max((p.cores for p in targets), default=2 * max(p.cores for p in self.points))
        possible = list(able) or self.candidates(max_cores, targets)
        if not possible or n < 1:
            return ()
        rates, target_rates = self._candidate_and_target_rates(possible, list(targets) or possible, goal_pps)
        return tuple(rank(possible, rates, target_rates, n, noise_ratio=self.noise_ratio))

    def candidates(self, max_cores: int, frames: Sequence[Point] = ()) -> list[Point]:
        """Return possible measurements on up to ``max_cores`` cores, with calibrated frames and ``frames``."""
        return candidates(self.points, max_cores, frames)

    def half_width_ratio(self, targets: Sequence[Point], *, goal_pps: float | None = None) -> float:
        """Return half the 95 % interval of the rate over the rate, at the least precise target.

        With a goal, return that of the fewest cores that reach it.
        """
        _, target_rates = self._candidate_and_target_rates(targets[:1], targets, goal_pps)
        return half_width_ratio(max(interval_log_width(column[:, None]) for column in target_rates.T))

    def _candidate_and_target_rates(
        self, able: Sequence[Point], targets: Sequence[Point], goal_pps: float | None
    ) -> tuple[Floats, Floats]:
        """Return draws of the logarithms of the rates of ``able``, (S, c), and of the targets, (S, t)."""
        if goal_pps is None and list(able) == list(targets):
            rates = self.draws.joint(able)
            return rates, rates
        counts: list[int] = []
        if goal_pps is not None:
            counts = _counts_around(self, targets[0], goal_pps)
            targets = [at_cores(targets[0], k) for k in counts]
        rates = self.draws.joint([*able, *targets])
        target_rates = rates[:, len(able) :]
        if goal_pps is not None:
            meets = np.concatenate([target_rates >= math.log(goal_pps), np.full((len(target_rates), 1), True)], axis=1)
            # A draw that meets the goal with no count gets twice the largest count.
            target_rates = np.log(np.array([*counts, 2.0 * counts[-1]])[meets.argmax(axis=1)])[:, None]
        return rates[:, : len(able)], target_rates

    @property
    def typical_weights(self) -> list[float]:
        """Weights of the laws for a point prediction; laws with a collapse count only if it was measured or stated."""
        return self.draws.typical_weights

    def log_core_rates(self, fitted_law: FittedLaw, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the rate of one core while ``busy`` cores work, (J, n) for the draws of a law."""
        return self.draws.log_core_rates(fitted_law, busy, frame_bytes)


def _contention_factors(fitted: FittedRouter, counts: Sequence[int]) -> Iterator[Parameter]:
    """Yield the factor on the service time at each number of busy cores."""
    for k in counts:
        busy = np.array([1.0, float(k)])
        rates = np.concatenate([fitted.log_core_rates(law, busy, REFERENCE_BYTES) for law in fitted.fitted])
        factor = np.exp(rates[:, 0] - rates[:, 1])
        meaning = f"factor on the service time with {k} busy cores"
        yield _parameter(f"c({k})", factor, _draw_weights(fitted.fitted), "1", meaning)


def _counts_around(fitted: FittedRouter, point: Point, goal_pps: float) -> list[int]:
    """Return numbers of cores up to the first at which nearly all draws that can meet the goal meet it."""
    counts = sparse_counts(MAX_CORES)
    chances = fitted.chances([at_cores(point, k) for k in counts], goal_pps)
    enough = max(chances) - _MIN_CHANCE
    return counts[: 1 + next(i for i, chance in enumerate(chances) if chance >= enough)]


def _limit(point: Point, core_pps: Floats) -> Limit:
    """Return the limiting resource at a point, given the rate of one of 1, 2, … busy cores."""
    busy = np.arange(1.0, point.working_cores + 1.0)
    rates = core_pps * point.layout.useful_ratio(point.working_cores)
    flow = saturate(point, core_pps=lambda k: float(np.interp(k, busy, rates)))
    if flow.limit == "cpu" and len(busy) > 1:
        totals = busy * rates
        if totals[-1] - totals[-2] < _SHARED_GAIN_CORES * totals[0]:
            return "shared"
    return flow.limit


def sparse_counts(max_count: int) -> list[int]:
    """Return all numbers of cores up to 24, then increasingly sparse ones, up to ``max_count``.

    Examples
    --------
    >>> sparse_counts(3), sparse_counts(60)[-5:]
    ([1, 2, 3], [38, 43, 48, 54, 60])
    """
    counts = list(range(1, min(max_count, _CONSECUTIVE_CORES) + 1))
    while counts[-1] < max_count:
        counts.append(min(max_count, max(counts[-1] + 1, round(counts[-1] * _COUNT_GROWTH))))
    return counts


def _including(middle: float, spread: Intervals) -> Intervals:
    """Return the intervals, extended to include the point prediction."""
    return {level: (min(low, middle), max(high, middle)) for level, (low, high) in spread.items()}


def _draw_weights(fitted: Sequence[FittedLaw]) -> Floats:
    """Return the weights of the draws of all laws."""
    return np.concatenate([np.full(len(law.cells), law.weight / len(law.cells)) for law in fitted])


def _times(fitted: Sequence[FittedLaw]) -> tuple[Parameter, Parameter]:
    """Return the times of a frame and of a byte, over all laws."""
    weights = _draw_weights(fitted)
    theta = np.concatenate([fitted_law.posterior.samples[1:, :2] for fitted_law in fitted])
    per_packet = np.exp(theta[:, 0])
    per_byte = np.exp(theta[:, 0] + theta[:, 1]) / REFERENCE_BYTES
    return (
        _parameter("T_c", per_packet, weights, "s", "time per frame"),
        _parameter("T_d", per_byte, weights, "s/B", "time per byte"),
    )


def _shapes(fitted_law: FittedLaw) -> Iterator[Parameter]:
    """Yield the shapes of a law."""
    weights = np.full(len(fitted_law.posterior.samples) - 1, 1.0)
    for column, shape in enumerate(fitted_law.law.shapes, start=2):
        values = shape.value(fitted_law.posterior.samples[1:, column])
        name = f"{fitted_law.law.name}.{shape.name}"
        yield _parameter(name, values, weights, shape.unit, shape.meaning)


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
