"""Random draws of the rates of a fitted router, from which its predictions, chances and intervals come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Discrepancy, Inputs
from routecast.calibration._posterior import Posterior, average_of_medians
from routecast.calibration.caps import Caps
from routecast.calibration.ceilings import with_ceilings
from routecast.calibration.forward import Conditions, busy_rate, log_cap, log_throughput
from routecast.contention import Law
from routecast.evaluate.points import Point

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

_COPIES = 8
_JOINT_DRAWS = 1500
_R2 = (0.7548776662466927, 0.5698402909980532)
_SUPERLINEAR_RATIO = 1.02
FALL_RATIO = 0.95
_NOISE_STEPS = 1024
"""Values of the noise of one measurement in the probability that it reaches a rate."""
_LEAST_NOISE_RATIO = 1e-9
_LINE_RATE_NOISE_RATIO = 0.0025
"""Repeatability of a rate that a link limits; chosen in sight of the board's sources."""
TOLERANCE_RATIO = 0.005
"""A rate reaches a goal if it is this much less, as clocks of links differ, searches end in steps and figures are
rounded: a router at line rate reaches the line rate."""
_LOG_TOLERANCE = 1e-9
"""Difference of logarithms of rates that counts as none."""


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
class RateDraws:
    """Random rates of a fitted router: the draws of its laws with their discrepancies, losses, ceilings and noise.

    The fields are those of :class:`~routecast.calibration.fitted.FittedRouter`.
    """

    points: tuple[Point, ...]
    fitted: tuple[FittedLaw, ...]
    discrepancy: Discrepancy
    noise_ratio: float
    noise_residuals: Floats
    caps: Caps
    hazard: float
    seed: int
    carry: tuple[float, float] = (0.0, 0.0)

    def measurements(
        self, points: Sequence[Point], *, ceilings: bool = True, line_rate_noise_ratio: float = _LINE_RATE_NOISE_RATIO
    ) -> tuple[list[Floats], Floats, Floats]:
        """Return the draws of the median by law, draws of one measurement, (S, n), and weights of the latter."""
        middles, drawn, weights = self.by_law(points, ceilings=ceilings)
        random = _with_residual_distribution(
            np.concatenate([_quasi_normal(len(draws))[1] for draws in drawn]), self.noise_residuals
        )
        rates = np.concatenate(drawn)
        # Frames at a line rate repeat as the clocks of the links do, and not as the work of the cores does.
        at_line_rate = rates >= np.log([self.caps.applied(point).line_rate_pps for point in points]) - TOLERANCE_RATIO
        of_draw = np.concatenate([np.repeat(self._noise_ratios(law), _COPIES) for law in self.fitted])[:, None]
        noise = np.where(at_line_rate, np.minimum(of_draw, line_rate_noise_ratio), of_draw)
        return middles, rates + noise * random[:, None], weights

    def by_law(self, points: Sequence[Point], *, ceilings: bool = True) -> tuple[list[Floats], list[Floats], Floats]:
        """Return draws of the logarithm of the rate at n points, by law.

        The first list has (J, n) draws at the mean discrepancy, the second (C·J, n) draws with random discrepancies.
        The array has the weights of the draws of the second list. The last draws are kept, since predictions and
        chances are of the same.
        """
        key = (tuple(points), ceilings)
        draws = self._last_draws.get(key)
        if draws is None:
            draws = self._new_draws(points, ceilings)
            self._last_draws.clear()
            self._last_draws[key] = draws
        return draws

    def joint(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of the logarithms of the rates at n points, (S, n), unordered."""
        return self._joint(points)[0]

    def _joint(self, points: Sequence[Point]) -> tuple[Floats, Floats]:
        """Return the draws of :meth:`joint`, and the repeatability of a measurement with each, (S, 1)."""
        count = len(points)
        points = [self.caps.applied(point) for point in points]
        beyond, doublings = self._beyond(points)
        points += [at_cores(points[index], self._most_cores) for index in beyond]
        conditions, inputs = Conditions.of(points), Inputs.of(points)
        random = np.random.default_rng(self.seed)
        joint, noises = [], []
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
            chosen = random.permutation(len(drawn))[:enough]
            joint.append(drawn[chosen])
            noises.append(np.repeat(self._noise_ratios(fitted_law), copies)[chosen])
        order = random.permutation(sum(map(len, joint)))
        return np.concatenate(joint)[order], np.concatenate(noises)[order, None]

    def joint_measurements_pps(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of one measurement at each of n points, frames per second, (S, n), unordered."""
        logs, noise_ratio = self._joint(points)
        normal = np.random.default_rng([self.seed, len(points)]).standard_normal(logs.shape)
        rates: Floats = np.exp(logs + noise_ratio * _with_residual_distribution(normal, self.noise_residuals))
        return rates

    def chances(self, points: Sequence[Point], goals_pps: Sequence[float]) -> Floats:
        """Return draws of the probability that one measurement at each of n points reaches its rate, (S, n).

        A row has one possible router; only the noise of a measurement is random then.
        """
        logs, of_draw = self._joint(points)
        noise = np.sort(_with_residual_distribution(_quasi_normal(_NOISE_STEPS)[0], self.noise_residuals))
        line_rates = np.log([self.caps.applied(point).line_rate_pps for point in points])
        at_line_rate = logs >= line_rates - TOLERANCE_RATIO
        noise_ratio = np.where(at_line_rate, np.minimum(of_draw, _LINE_RATE_NOISE_RATIO), of_draw)
        missing = np.log(goals_pps) - TOLERANCE_RATIO - logs
        missed = np.searchsorted(noise, missing / np.maximum(noise_ratio, _LEAST_NOISE_RATIO))
        drawn: Floats = 1.0 - missed / len(noise)
        return drawn

    def log_core_rates(self, fitted_law: FittedLaw, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the rate of one core while ``busy`` cores work, (J, n) for the draws of a law."""
        sizes = np.full(len(busy), frame_bytes)
        inputs = replace(Inputs.of(self.points[:1] * len(busy)), cores=busy, frame_bytes=sizes)
        mean, _, low, high = self._discrepancy_at(fitted_law, inputs)
        rates = busy_rate(fitted_law.law, self._on_predicted_host(fitted_law.posterior.samples[1:]), busy[None], sizes)
        log_rates: Floats = np.log(rates) + np.clip(mean, low, high)
        return log_rates

    @property
    def typical_weights(self) -> list[float]:
        """Weights of the laws for a point prediction; laws with a collapse count only if it was measured or stated."""
        calm = [fitted_law.weight * (not fitted_law.law.collapses) for fitted_law in self.fitted]
        return [fitted_law.weight for fitted_law in self.fitted] if any(falls(self.points)) or not any(calm) else calm

    def service_times_s(self, cores: int, frame_bytes: float) -> Floats:
        """Return the seconds per frame of a core with 1, 2, …, ``cores`` busy cores, averaged over laws.

        The result is cached, because router models are built for many loads with few frame sizes.
        """
        cached = self._service_cache_s.get((cores, frame_bytes))
        if cached is None:
            cached = np.exp(self.log_service(np.arange(1.0, cores + 1.0), frame_bytes))
            self._service_cache_s[cores, frame_bytes] = cached
        return cached

    @cached_property
    def _service_cache_s(self) -> dict[tuple[int, float], Floats]:
        return {}

    def log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the seconds per frame of a core, averaged over laws, by number of busy cores."""
        return -average_of_medians(
            [self.log_core_rates(fitted_law, busy, frame_bytes) for fitted_law in self.fitted], self.typical_weights
        )

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

    def beyond(self, points: Sequence[Point]) -> list[int]:
        """Return the indices of the points with more cores than were measured."""
        return self._beyond(points)[0]

    def _beyond(self, points: Sequence[Point]) -> tuple[list[int], Floats]:
        """Return the indices of the points with more cores than were measured, and the doublings between them."""
        beyond = [index for index, point in enumerate(points) if point.working_cores > self._most_cores]
        ratios = np.array([points[index].working_cores / self._most_cores for index in beyond])
        return beyond, np.log2(ratios) if len(ratios) else ratios

    def _noise_ratios(self, fitted_law: FittedLaw) -> Floats:
        """Return the repeatability of one measurement for each draw of a law, (J,)."""
        ratios: Floats = self.discrepancy.noise_ratio[fitted_law.cells]
        return ratios

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
        core_rates = sorted((p.working_cores, useful_core_pps(p)) for p in self.points)
        grew = any(
            more > few and rate > _SUPERLINEAR_RATIO * before
            for (few, before), (more, rate) in itertools.pairwise(core_rates)
        )
        return math.inf if grew else float(core_rates[-1][0])


def _log_rates_with_discrepancy(
    law: Law, theta: Floats, conditions: Conditions, discrepancy: Floats, lost: Floats
) -> Floats:
    """Return logarithms of rates with a discrepancy of the cores and with losses at links and cards, (J, n)."""
    rates = log_throughput(law, theta, conditions, discrepancy=discrepancy)
    if not lost.any():
        return rates
    limited: Floats = np.minimum(rates, log_cap(law, theta, conditions) + np.minimum(lost, 0.0))
    return limited


def falls(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Yield neighbouring points of one frame size if the point with more cores has the lower rate."""
    for fewer, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        if more.frame_bytes == fewer.frame_bytes and more.throughput_pps < FALL_RATIO * fewer.throughput_pps:
            yield fewer, more


def at_cores(point: Point, cores: int) -> Point:
    """Return the point for ``cores`` cores, with a flow for each core where flows are crafted."""
    return replace(point, cores=cores, flows=None if point.flows is None else cores)


def useful_core_pps(point: Point) -> float:
    """Return the rate of a core in the time that is useful."""
    return point.throughput_pps / (point.working_cores * point.layout.useful_ratio(point.working_cores))


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
