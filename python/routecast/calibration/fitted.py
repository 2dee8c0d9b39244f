"""The router that a calibration returns, with predictions, parameters and a model for evaluators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist, mode
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Discrepancy, Inputs
from routecast.calibration._posterior import Posterior, average_of_medians, weighted_quantiles
from routecast.calibration.caps import Caps
from routecast.calibration.ceilings import with_ceilings
from routecast.calibration.forward import REFERENCE_BYTES, Conditions, busy_rate, log_cap, log_throughput, saturate
from routecast.calibration.next_points import NextPoint, candidates, half_width_ratio, interval_log_width, rank
from routecast.calibration.score import Limit, Prediction, intervals
from routecast.contention import Law
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
_LEAP_RATIO = 2.0
"""Ratio of rates per core, or of longer to shorter frames, above which a unit or a row of the table is wrong."""

_NO_LINK_BPS = 1e15
"""Rate of the links of a router whose table states none: they never limit."""

_COPIES = 8
_JOINT_DRAWS = 1500
_R2 = (0.7548776662466927, 0.5698402909980532)
_SUPERLINEAR_RATIO = 1.02
_FALL_RATIO = 0.95
_MIN_CHANCE = 0.025
_MIN_CORE_COUNTS = 3
_NOISE_STEPS = 1024
"""Values of the noise of one measurement in the probability that it reaches a rate."""
_LEAST_NOISE_RATIO = 1e-9
_LINE_RATE_NOISE_RATIO = 0.0025
"""Repeatability of a rate that a link limits; chosen in sight of the board's sources."""
TOLERANCE_RATIO = 0.005
"""A rate reaches a goal if it is this much less, as clocks of links differ, searches end in steps and figures are
rounded: a router at line rate reaches the line rate."""
_BEYOND_SD = 3.0
"""Standard deviations of a measurement beyond the measured rates beside it, from which a prediction is named."""
_LOG_TOLERANCE = 1e-9
"""Difference of logarithms of rates that counts as none."""
_LARGE_DISCREPANCY = 0.25
"""Scale from which a discrepancy is as large as the effect that a law explains."""
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedLaw:
    """One law with its posterior and its weight among the laws.

    ``cells`` (J,): the cell of :class:`Discrepancy` of each draw, which holds its scales of discrepancy.
    """

    law: Law
    posterior: Posterior
    weight: float
    cells: NDArray[np.intp]


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
        Repeatability of a measurement, one standard deviation.
    noise_residuals : (m,) array
        Sorted residuals of measurements in standard deviations; empty: normal noise.
    outliers : tuple of Point
        Points that the other points contradict, which therefore have no weight.
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
        is outside the 95 % interval.
        """
        if not points:
            return ()
        middles, measured, weights = self._measurement_draws(points, line_rate_noise_ratio=self.noise_ratio)
        middle = average_of_medians(middles, self.typical_weights)
        spread = intervals(measured, weights)
        low, high = np.log([levels[CONFIDENCE_RATIO] for levels in spread]).T
        (median,) = weighted_quantiles(measured, weights, (0.5,))
        middle = np.where((middle < low) | (middle > high), median, middle)
        max_cores: dict[float, int] = {}
        for point in points:
            max_cores[point.frame_bytes] = max(point.working_cores, max_cores.get(point.frame_bytes, 1))
        core_pps = {size: 1.0 / self._service_s(count, size) for size, count in max_cores.items()}
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
        _, measured, weights = self._measurement_draws(points, ceilings=ceilings)
        met = measured >= math.log(goal_pps) - TOLERANCE_RATIO
        return tuple(min(max(float(chance), 0.0), 1.0) for chance in weights @ met / weights.sum())

    def quantiles_pps(self, points: Sequence[Point], probabilities: Sequence[float]) -> Floats:
        """Return quantiles of one measurement at each of n points, frames per second, (n, len(probabilities))."""
        _, measured, weights = self._measurement_draws(points)
        quantiles: Floats = np.exp(weighted_quantiles(measured, weights, probabilities)).T
        return quantiles

    def joint_rates_pps(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of one measurement at each of n points, frames per second, (S, n), unordered.

        A row has the rates of one possible router, and the noise of n measurements.
        """
        logs = self._joint_draws(points)
        normal = np.random.default_rng([self.seed, len(points)]).standard_normal(logs.shape)
        rates: Floats = np.exp(logs + self.noise_ratio * _with_residual_distribution(normal, self.noise_residuals))
        return rates

    def chance_draws(self, points: Sequence[Point], goals_pps: Sequence[float]) -> Floats:
        """Return equally likely draws of the probability that one measurement at each of n points reaches its rate.

        Shape (S, n), unordered. A row has one possible router; only the noise of a measurement is random then, so that
        the means over the rows are those of :meth:`chances`.
        """
        logs = self._joint_draws(points)
        noise = np.sort(_with_residual_distribution(_quasi_normal(_NOISE_STEPS)[0], self.noise_residuals))
        line_rates = np.log([self.caps.applied(point).line_rate_pps for point in points])
        at_line_rate = logs >= line_rates - TOLERANCE_RATIO
        noise_ratio = np.where(at_line_rate, min(self.noise_ratio, _LINE_RATE_NOISE_RATIO), self.noise_ratio)
        missing = np.log(goals_pps) - TOLERANCE_RATIO - logs
        missed = np.searchsorted(noise, missing / np.maximum(noise_ratio, _LEAST_NOISE_RATIO))
        drawn: Floats = 1.0 - missed / len(noise)
        return drawn

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
        _, drawn, weights = self._draws(points)
        return np.concatenate(drawn), weights / weights.sum()

    def _measurement_draws(
        self, points: Sequence[Point], *, ceilings: bool = True, line_rate_noise_ratio: float = _LINE_RATE_NOISE_RATIO
    ) -> tuple[list[Floats], Floats, Floats]:
        """Return the draws of the median by law, draws of one measurement, (S, n), and weights of the latter."""
        middles, drawn, weights = self._draws(points, ceilings=ceilings)
        random = _with_residual_distribution(
            np.concatenate([_quasi_normal(len(draws))[1] for draws in drawn]), self.noise_residuals
        )
        rates = np.concatenate(drawn)
        # Frames at a line rate repeat as the clocks of the links do, and not as the work of the cores does.
        at_line_rate = rates >= np.log([self.caps.applied(point).line_rate_pps for point in points]) - TOLERANCE_RATIO
        noise = np.where(at_line_rate, min(self.noise_ratio, line_rate_noise_ratio), self.noise_ratio)
        return middles, rates + noise * random[:, None], weights

    def _draws(self, points: Sequence[Point], *, ceilings: bool = True) -> tuple[list[Floats], list[Floats], Floats]:
        """Return draws of the logarithm of the rate at n points, by law.

        The first list has (J, n) draws at the mean discrepancy, the second (C·J, n) draws with random discrepancies.
        The array has the weights of the draws of the second list. The last draws are kept, since predictions and
        chances are of the same.
        """
        key = (tuple(points), ceilings)
        if key not in self._last_draws:
            self._last_draws.clear()
            self._last_draws[key] = self._new_draws(points, ceilings)
        return self._last_draws[key]

    @cached_property
    def _last_draws(self) -> dict[tuple[tuple[Point, ...], bool], tuple[list[Floats], list[Floats], Floats]]:
        return {}

    def _new_draws(self, points: Sequence[Point], ceilings: bool) -> tuple[list[Floats], list[Floats], Floats]:
        count = len(points)
        points = [self.caps.applied(point) for point in points]
        beyond, doublings = self._beyond(points if ceilings else ())
        points += [at_cores(points[index], self._most_cores) for index in beyond]
        conditions, inputs = Conditions.of(points), Inputs.of(points)
        middles: list[Floats] = []
        drawn: list[Floats] = []
        weights: list[Floats] = []
        for fitted_law in self.fitted:
            theta, law = fitted_law.posterior.samples[1:], fitted_law.law
            mean, sd, low, high = self._discrepancy_at(fitted_law, inputs)
            lost, lost_share = self._losses_at(fitted_law, inputs)
            moved = self._on_predicted_host(theta)
            middle = _log_rates_with_discrepancy(law, moved, conditions, mean.clip(low, high), lost)
            middles.append(middle[:, :count])
            theta, mean, sd, low, high, lost, lost_share = (
                np.repeat(part, _COPIES, axis=0) for part in (theta, mean, sd, low, high, lost, lost_share)
            )
            first, other = _quasi_normal(len(mean))
            errors = first[:, None] * sd
            moved = self._on_predicted_host(theta, np.roll(other, len(mean) // 2))
            discrepancy = (mean + errors).clip(low, high)
            rates = _log_rates_with_discrepancy(law, moved, conditions, discrepancy, lost + lost_share * errors)
            rates[:, beyond] = with_ceilings(rates[:, count:], rates[:, beyond], doublings, self.hazard)
            drawn.append(rates[:, :count])
            weights.append(np.full(len(mean), fitted_law.weight / len(mean)))
        return middles, drawn, np.concatenate(weights)

    def _beyond(self, points: Sequence[Point]) -> tuple[list[int], Floats]:
        """Return the indices of the points with more cores than were measured, and the doublings between them."""
        beyond = [index for index, point in enumerate(points) if point.working_cores > self._most_cores]
        ratios = np.array([points[index].working_cores / self._most_cores for index in beyond])
        return beyond, np.log2(ratios) if len(ratios) else ratios

    @cached_property
    def _most_cores(self) -> int:
        return max(point.working_cores for point in self.points)

    def _on_predicted_host(self, theta: Floats, normal: Floats | float = 0.0) -> Floats:
        """Return the parameters on the predicted host, where the time of a frame differs."""
        if self.carry == (0.0, 0.0):
            return theta
        moved = theta.copy()
        moved[:, 0] += self.carry[0] + self.carry[1] * normal
        return moved

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on points that contradict each other or every law."""
        sentences = [
            f"{_describe(prediction.point)} is treated as an outlier: "
            f"the other points give {prediction.throughput_pps / 1e6:.4g} Mpps; measure it again"
            for prediction in self.predict(self.outliers)
        ]
        others = [point for point in self.points if point not in self.outliers]
        sentences += [
            f"{_describe(prediction.point)} lies outside its own 95 % interval, "
            f"{prediction.low_pps / 1e6:.4g} to {prediction.high_pps / 1e6:.4g} Mpps"
            for prediction in self.predict(others)
            if not prediction.low_pps <= prediction.point.throughput_pps <= prediction.high_pps
        ]
        sentences += [
            f"{_describe(more)} is less than {_describe(fewer)}: with more cores it may fall further"
            for fewer, more in falls(others)
        ]
        sentences += self.contradictions
        sentences += self.caps.texts
        large_discrepancy_weight = sum(
            fitted_law.weight * float(np.mean(self.discrepancy.smooth[fitted_law.cells] >= _LARGE_DISCREPANCY))
            for fitted_law in self.fitted
        )
        if large_discrepancy_weight > 0.5 and len({point.working_cores for point in others}) >= _MIN_CORE_COUNTS:
            sentences.append(
                "no law of contention fits the points: measure between them before you rely on a prediction"
            )
        return tuple(sentences)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Sentences on rows that cannot both be right: a wrong unit or row, which no calibration survives."""
        others = [point for point in self.points if point not in self.outliers]
        return tuple(f"{_describe(more)} contradicts {_describe(few)}: {why}" for few, more, why in _leaps(others))

    def humps(self, points: Sequence[Point]) -> tuple[str, ...]:
        """Return a sentence on each point whose prediction leaves the range of the measured rates beside it."""
        sentences = []
        for prediction in self.predict(points):
            point, rate_pps = prediction.point, prediction.throughput_pps
            own = [p for p in self.points if p.frame_bytes == point.frame_bytes and p not in self.outliers]
            fewer = [p for p in own if p.working_cores < point.working_cores]
            more = [p for p in own if p.working_cores > point.working_cores]
            if not fewer or not more:
                continue
            ends = max(fewer, key=lambda p: p.working_cores), min(more, key=lambda p: p.working_cores)
            low, high = sorted(p.throughput_pps for p in ends)
            beyond = math.exp(_BEYOND_SD * self.noise_ratio)
            if low / beyond <= rate_pps <= high * beyond:
                continue
            which = "above" if rate_pps > high else "below"
            sentences.append(
                f"{_cores(point)} are predicted with {rate_pps / 1e6:.4g} Mpps, {which} the measured rates of "
                f"{_cores(ends[0])} and {_cores(ends[1])}, {ends[0].throughput_pps / 1e6:.4g} and "
                f"{ends[1].throughput_pps / 1e6:.4g} Mpps: nobody measured that; measure there"
            )
        return tuple(sentences)

    def remarks(self, points: Sequence[Point]) -> tuple[str, ...]:
        """Return a sentence if the rate may fall from the calibrated cores to the most cores of ``points``."""
        calibrated = max(self.points, key=lambda point: point.working_cores)
        largest = max(points, key=lambda point: point.working_cores, default=calibrated)
        if largest.working_cores <= calibrated.working_cores:
            return ()
        _, drawn, weights = self._draws([calibrated, replace(calibrated, cores=largest.cores, flows=largest.flows)])
        logs = np.concatenate(drawn)
        chance = float(weights[logs[:, 1] < logs[:, 0] + math.log(_FALL_RATIO)].sum())
        if chance < _MIN_CHANCE:
            return ()
        locked = any(fitted_law.law.collapses for fitted_law in self.fitted)
        cause = "a lock or a queue" if locked else "a cache or a bus"
        queue_hint = ", or set shared_queue = no if each core has its own queues" if locked else ""
        return (
            f"{_cores(largest)} may forward less than {_cores(calibrated)} do, with a chance of {chance:.0%}: {cause} "
            f"that all cores share can slow them down; measure between them{queue_hint}",
        )

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Return the seconds per frame of a core while ``cores`` cores are busy, averaged over the laws.

        It is no latency, as nothing waits in it.
        """
        return math.exp(float(self._log_service(np.array([cores]), frame_bytes)[0]))

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Parameters of all laws, then the shapes of the heaviest law (named ``law.shape``)."""
        weights = np.concatenate([np.full(len(law.cells), law.weight / len(law.cells)) for law in self.fitted])
        theta = np.concatenate([fitted_law.posterior.samples[1:, :2] for fitted_law in self.fitted])
        per_packet = np.exp(theta[:, 0])
        per_byte = np.exp(theta[:, 0] + theta[:, 1]) / REFERENCE_BYTES
        parameters = [
            _parameter("T_c", per_packet, weights, "s", "time per frame"),
            _parameter("T_d", per_byte, weights, "s/B", "time per byte"),
        ]
        for k in sorted({point.working_cores for point in self.points} - {1}):
            busy = np.array([1.0, float(k)])
            rates = np.concatenate([self.log_core_rates(law, busy, REFERENCE_BYTES) for law in self.fitted])
            factor = np.exp(rates[:, 0] - rates[:, 1])
            meaning = f"factor on the service time with {k} busy cores"
            parameters.append(_parameter(f"c({k})", factor, weights, "1", meaning))
        best = self.fitted[0]
        equal_weights = np.full(len(best.posterior.samples) - 1, 1.0)
        for column, shape in enumerate(best.law.shapes, start=2):
            values = shape.value(best.posterior.samples[1:, column])
            name = f"{best.law.name}.{shape.name}"
            parameters.append(_parameter(name, values, equal_weights, shape.unit, shape.meaning))
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
        seconds = self._service_s(cores, frame_bytes) / useful_ratio
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
            rates = self._joint_draws(able)
            return rates, rates
        counts: list[int] = []
        if goal_pps is not None:
            counts = self._counts_around(targets[0], goal_pps)
            targets = [at_cores(targets[0], k) for k in counts]
        rates = self._joint_draws([*able, *targets])
        target_rates = rates[:, len(able) :]
        if goal_pps is not None:
            meets = np.concatenate([target_rates >= math.log(goal_pps), np.full((len(target_rates), 1), True)], axis=1)
            # A draw that meets the goal with no count gets twice the largest count.
            target_rates = np.log(np.array([*counts, 2.0 * counts[-1]])[meets.argmax(axis=1)])[:, None]
        return rates[:, : len(able)], target_rates

    def _counts_around(self, point: Point, goal_pps: float) -> list[int]:
        """Return numbers of cores up to the first at which nearly all draws that can meet the goal meet it."""
        counts = sparse_counts(MAX_CORES)
        chances = self.chances([at_cores(point, k) for k in counts], goal_pps)
        enough = max(chances) - _MIN_CHANCE
        return counts[: 1 + next(i for i, chance in enumerate(chances) if chance >= enough)]

    def _joint_draws(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of the logarithms of the rates at n points, (S, n), unordered."""
        count = len(points)
        points = [self.caps.applied(point) for point in points]
        beyond, doublings = self._beyond(points)
        points += [at_cores(points[index], self._most_cores) for index in beyond]
        conditions, inputs = Conditions.of(points), Inputs.of(points)
        random = np.random.default_rng(self.seed)
        joint = []
        for fitted_law in self.fitted:
            copies = max(1, round(fitted_law.weight * _JOINT_DRAWS / len(fitted_law.cells)))
            theta = np.repeat(fitted_law.posterior.samples[1:], copies, axis=0)
            mean, _, low, high = (np.repeat(part, copies, axis=0) for part in self._discrepancy_at(fitted_law, inputs))
            cells = np.repeat(fitted_law.cells, copies)
            lost = np.repeat(self._losses_at(fitted_law, inputs)[0], copies, axis=0)
            discrepancy = mean.copy()
            for cell, factor in self.discrepancy.cholesky_factors(fitted_law.cells, inputs).items():
                rows = cells == cell
                discrepancy[rows] += random.standard_normal((int(rows.sum()), len(points))) @ factor.T
            if self.carry[1]:
                theta = self._on_predicted_host(theta, random.standard_normal(len(theta)))
            drawn = _log_rates_with_discrepancy(fitted_law.law, theta, conditions, discrepancy.clip(low, high), lost)
            drawn[:, beyond] = with_ceilings(drawn[:, count:], drawn[:, beyond], doublings, self.hazard)
            drawn = drawn[:, :count]
            enough = round(fitted_law.weight * _JOINT_DRAWS)
            joint.append(drawn[random.permutation(len(drawn))[:enough]])
        joined = np.concatenate(joint)
        shuffled: Floats = joined[random.permutation(len(joined))]
        return shuffled

    def _discrepancy_at(self, fitted_law: FittedLaw, inputs: Inputs) -> tuple[Floats, Floats, Floats, Floats]:
        """Return mean, standard deviation and bounds of the discrepancy at inputs for each draw of a law, (J, n) each.

        Beyond the largest calibrated number of cores no core is faster than at that number, unless the calibrated rates
        grew faster than their cores, because shared resources can only slow cores down. All cores together are not
        slower than at that number unless the law predicts it; then they lose at most twice its value (in logarithms).
        """
        theta, residuals = fitted_law.posterior.samples[1:], self._residuals[fitted_law][0]
        mean, deviation = self.discrepancy.conditional(fitted_law.cells, residuals, inputs)
        beyond = inputs.cores > self._max_cores
        lower, upper = np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
        if beyond.any():
            at_max_cores = replace(inputs, cores=np.minimum(inputs.cores, self._max_cores))
            slowdown = busy_rate(fitted_law.law, theta, at_max_cores.cores[None], inputs.frame_bytes) / busy_rate(
                fitted_law.law, theta, inputs.cores[None], inputs.frame_bytes
            )
            mean_at_max = self.discrepancy.conditional(fitted_law.cells, residuals, at_max_cores)[0]
            log_growth = np.log(inputs.cores / at_max_cores.cores) - np.log(slowdown)
            upper[:, beyond] = (mean_at_max + np.log(slowdown))[:, beyond]
            lower[:, beyond] = (mean_at_max - np.abs(log_growth))[:, beyond]
        return mean, deviation, lower, upper

    def _losses_at(self, fitted_law: FittedLaw, inputs: Inputs) -> tuple[Floats, Floats]:
        """Return the losses at links and cards at inputs for each draw of a law, and their shares, (J, n) each."""
        lost = self._residuals[fitted_law][1]
        if not lost.any():
            nothing = np.zeros((len(lost), len(inputs.cores)))
            return nothing, nothing
        mean, share = self.discrepancy.losses(fitted_law.cells, (lost, (lost < 0.0).astype(float)), inputs)
        return mean, np.clip(share, 0.0, 1.0)

    @cached_property
    def _residuals(self) -> dict[FittedLaw, tuple[Floats, Floats]]:
        """Logarithm of measured over predicted rate at the calibrated points, and the losses at links and cards there.

        Both are (J, n) for the draws of each law. Where a link or a card limits a draw of the law, a discrepancy of the
        cores has no effect, so that a missing rate is a loss at the link or card.
        """
        measured = np.log([point.throughput_pps for point in self.points])
        conditions = Conditions.of_measured(self.points)
        residuals_by_law = {}
        for fitted_law in self.fitted:
            theta = fitted_law.posterior.samples[1:]
            rates = log_throughput(fitted_law.law, theta, conditions)
            is_capped = rates >= log_cap(fitted_law.law, theta, conditions) - _LOG_TOLERANCE
            is_capped &= self.discrepancy.core_limited > 0.0
            residuals = measured - rates
            residuals_by_law[fitted_law] = residuals, np.where(is_capped, np.minimum(residuals, 0.0), 0.0)
        return residuals_by_law

    @cached_property
    def _max_cores(self) -> float:
        """Number of cores beyond which the rate grows at most with the cores; infinite if the points grew faster."""
        core_rates = sorted((p.working_cores, _core_pps(p)) for p in self.points)
        grew = any(
            more > few and rate > _SUPERLINEAR_RATIO * before
            for (few, before), (more, rate) in itertools.pairwise(core_rates)
        )
        return math.inf if grew else float(core_rates[-1][0])

    def _service_s(self, cores: int, frame_bytes: float) -> Floats:
        """Return the seconds per frame of a core with 1, 2, …, ``cores`` busy cores, averaged over laws.

        The result is cached, because router models are built for many loads with few frame sizes.
        """
        cached = self._service_cache_s.get((cores, frame_bytes))
        if cached is None:
            cached = np.exp(self._log_service(np.arange(1.0, cores + 1.0), frame_bytes))
            self._service_cache_s[cores, frame_bytes] = cached
        return cached

    @cached_property
    def _service_cache_s(self) -> dict[tuple[int, float], Floats]:
        return {}

    def _log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the seconds per frame of a core, averaged over laws, by number of busy cores."""
        return -average_of_medians(
            [self.log_core_rates(fitted_law, busy, frame_bytes) for fitted_law in self.fitted], self.typical_weights
        )

    @property
    def typical_weights(self) -> list[float]:
        """Weights of the laws for a point prediction; laws with a collapse count only if it was measured or stated."""
        calm = [fitted_law.weight * (not fitted_law.law.collapses) for fitted_law in self.fitted]
        return [fitted_law.weight for fitted_law in self.fitted] if any(falls(self.points)) or not any(calm) else calm

    def log_core_rates(self, fitted_law: FittedLaw, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the rate of one core while ``busy`` cores work, (J, n) for the draws of a law."""
        sizes = np.full(len(busy), frame_bytes)
        inputs = replace(Inputs.of(self.points[:1] * len(busy)), cores=busy, frame_bytes=sizes)
        mean, _, low, high = self._discrepancy_at(fitted_law, inputs)
        rates = busy_rate(fitted_law.law, self._on_predicted_host(fitted_law.posterior.samples[1:]), busy[None], sizes)
        log_rates: Floats = np.log(rates) + np.clip(mean, low, high)
        return log_rates


def _log_rates_with_discrepancy(
    law: Law, theta: Floats, conditions: Conditions, discrepancy: Floats, lost: Floats
) -> Floats:
    """Return logarithms of rates with a discrepancy of the cores and with losses at links and cards, (J, n)."""
    rates = log_throughput(law, theta, conditions, discrepancy=discrepancy)
    if not lost.any():
        return rates
    limited: Floats = np.minimum(rates, log_cap(law, theta, conditions) + np.minimum(lost, 0.0))
    return limited


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


def falls(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Yield neighbouring points of one frame size if the point with more cores has the lower rate."""
    for fewer, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        if more.frame_bytes == fewer.frame_bytes and more.throughput_pps < _FALL_RATIO * fewer.throughput_pps:
            yield fewer, more


def _core_pps(point: Point) -> float:
    """Return the rate of a core in the time that is useful."""
    return point.throughput_pps / (point.working_cores * point.layout.useful_ratio(point.working_cores))


def _leaps(points: Sequence[Point]) -> Iterator[tuple[Point, Point, str]]:
    """Yield pairs of points with contradictory rates, and the reason."""
    for few, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        core_ratio = _core_pps(more) / _core_pps(few)
        if few.frame_bytes == more.frame_bytes and core_ratio > _LEAP_RATIO:
            yield few, more, f"each core would forward {core_ratio:.3g} times as much; look for a wrong unit or row"
    for short, long in itertools.pairwise(sorted(points, key=lambda p: (p.working_cores, p.frame_bytes))):
        times = long.throughput_pps / short.throughput_pps
        if short.working_cores == long.working_cores and times > _LEAP_RATIO:
            yield (
                short,
                long,
                f"the rate of longer frames would be {times:.3g} times as high; look for a wrong unit or row",
            )


def at_cores(point: Point, cores: int) -> Point:
    """Return the point for ``cores`` cores, with a flow for each core where flows are crafted."""
    return replace(point, cores=cores, flows=None if point.flows is None else cores)


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


def _describe(point: Point) -> str:
    return f"the rate of {_cores(point)} at {point.frame_bytes:g} B ({point.throughput_pps / 1e6:.4g} Mpps)"


def _cores(point: Point) -> str:
    return f"{point.working_cores} core{'s' if point.working_cores > 1 else ''}"


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


def _with_residual_distribution(normal: Floats, residuals: Floats) -> Floats:
    """Return normal values transformed to the distribution of sorted residuals; unchanged without residuals."""
    if not len(residuals):
        return normal
    inverse = np.vectorize(NormalDist().inv_cdf)
    values: Floats = np.interp(normal, inverse((np.arange(len(residuals)) + 0.5) / len(residuals)), residuals)
    return values


@lru_cache
def _quasi_normal(n: int) -> tuple[Floats, Floats]:
    """Return n fixed pairs of normal values that fill the plane evenly (Roberts' R2 sequence)."""
    inverse = np.vectorize(NormalDist().inv_cdf)
    first, other = (inverse((0.5 + step * np.arange(n)) % 1.0) for step in _R2)
    return first, other
