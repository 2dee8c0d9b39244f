"""A router calibrated from a few points: its predictions, its parameters and its model for evaluators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from routecast.calibration._discrepancy import Discrepancy, Sites
from routecast.calibration._posterior import Posterior, average_of_medians, weighted_quantiles
from routecast.calibration.forward import REFERENCE_BYTES, Conditions, busy_rate, log_most, log_throughput, saturate
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

__all__ = ["CONFIDENCE_RATIO", "MOST_CORES", "FittedLaw", "FittedRouter", "Parameter", "at_cores", "sparse_counts"]

CONFIDENCE_RATIO = 0.95
MOST_CORES = 4096
_DENSE_CORES = 24
_GROWTH = 1.12
"""Beyond the dense counts each is so much more than the one before."""
_LEAP_RATIO = 2.0
"""So much more from each core, or from longer frames, no router does: a unit or a row of the table is wrong."""

_COPIES = 8
_JOINT_DRAWS = 1500
_R2 = (0.7548776662466927, 0.5698402909980532)
_SUPERLINEAR = 1.02
_FALLS = 0.95
_LEAST_CHANCE = 0.025
_LEAST_COUNTS = 3
_AT_ONE_PORT = 0.003
_SAME_LOG = 1e-9
"""Logarithms of rates so near each other are one rate."""
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


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRouter:
    """A router calibrated by :func:`fit`; predicts maximum throughputs and makes router models.

    Attributes
    ----------
    series : str
    points : tuple of Point
        Calibrating points.
    fitted : tuple of FittedLaw
        The laws with a notable weight, heaviest first.
    discrepancy : Discrepancy
        Discrepancy of the points from each law.
    noise_ratio : float
        Repeatability of a measurement, one standard deviation.
    noise_strays : (m,) array
        Sorted residuals of measurements in standard deviations; empty: normal noise.
    outliers : tuple of Point
        Points that the others contradict, which therefore decide nothing.
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
    noise_strays: Floats
    outliers: tuple[Point, ...]
    seed: int
    carry: tuple[float, float] = (0.0, 0.0)

    @property
    def law(self) -> str:
        """The laws and their weights in words."""
        named = [
            f"{each.law.formula} ({each.law.name}, {each.weight:.0%})" for each in self.fitted if each.weight >= 0.05
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
        """Predict maximum throughputs with 95 % intervals; the points' own rates do not count.

        The point prediction is the average over the laws (:attr:`typical_weights`), or the median where that average
        lies outside the 95 % interval.
        """
        if not points:
            return ()
        middles, measured, weights = self._measurements(points)
        middle = average_of_medians(middles, self.typical_weights)
        spread = intervals(measured, weights)
        least, highest = np.log([each[CONFIDENCE_RATIO] for each in spread]).T
        (median,) = weighted_quantiles(measured, weights, (0.5,))
        middle = np.where((middle < least) | (middle > highest), median, middle)
        most: dict[float, int] = {}
        for point in points:
            most[point.frame_bytes] = max(point.working_cores, most.get(point.frame_bytes, 1))
        core_pps = {size: 1.0 / self._service_s(count, size) for size, count in most.items()}
        return tuple(
            Prediction.of(
                point,
                math.exp(middle[index]),
                limit=_limit(point, core_pps[point.frame_bytes][: point.working_cores]),
                intervals=_around(math.exp(middle[index]), spread[index]),
            )
            for index, point in enumerate(points)
        )

    def chances(self, points: Sequence[Point], goal_pps: float) -> tuple[float, ...]:
        """Probability that one measurement at each point shows at least a rate, frames per second."""
        if not points:
            return ()
        _, measured, weights = self._measurements(points)
        return tuple(float(chance) for chance in weights @ (measured >= math.log(goal_pps)) / weights.sum())

    def quantiles_pps(self, points: Sequence[Point], probabilities: Sequence[float]) -> Floats:
        """Quantiles of one measurement at each of n points, frames per second, (n, len(probabilities))."""
        _, measured, weights = self._measurements(points)
        quantiles: Floats = np.exp(weighted_quantiles(measured, weights, probabilities)).T
        return quantiles

    def least_cores(
        self, point: Point, goal_pps: float, *, confidence_ratio: float = CONFIDENCE_RATIO, most: int = MOST_CORES
    ) -> int | None:
        """Return the fewest cores, of 1 to ``most``, that forward a rate of a point's frames with a probability.

        None: no number of cores does.
        """
        counts = sparse_counts(most)
        chances = self.chances([at_cores(point, k) for k in counts], goal_pps)
        place = next((i for i, chance in enumerate(chances) if chance >= confidence_ratio), None)
        if place is None:
            return None
        between = range(counts[place - 1] + 1 if place else 1, counts[place])
        exact = self.chances([at_cores(point, k) for k in between], goal_pps)
        return next((k for k, chance in zip(between, exact, strict=True) if chance >= confidence_ratio), counts[place])

    def _measurements(self, points: Sequence[Point]) -> tuple[list[Floats], Floats, Floats]:
        """Draws of :meth:`_draws` by law without what is not known, and of one measurement, (S, n), with weights."""
        middles, drawn, weights = self._draws(points)
        random = _as_strayed(np.concatenate([_quasi_normal(len(each))[1] for each in drawn]), self.noise_strays)
        return middles, np.concatenate(drawn) + self.noise_ratio * random[:, None], weights

    def _draws(self, points: Sequence[Point]) -> tuple[list[Floats], list[Floats], Floats]:
        """Draws of the logarithm of the rate at n points, by law: without and with what is not known of discrepancies.

        The (J, n) draws of a law without, its (C·J, n) with, and a weight for each of these of all laws.
        """
        conditions, sites = Conditions.of(points), Sites.of(points)
        middles: list[Floats] = []
        drawn: list[Floats] = []
        weights: list[Floats] = []
        for each in self.fitted:
            theta = each.posterior.samples[1:]
            strays = self._strays(each, sites)
            mean, deviation, least, most = (np.repeat(part, _COPIES, axis=0) for part in strays)
            steps = _quasi_normal(len(mean))[0][:, None]
            moved = np.roll(_quasi_normal(len(mean))[1], len(mean) // 2)
            lost, share = self._lost(each, sites)
            copied_lost, copied_share = (np.repeat(part, _COPIES, axis=0) for part in (lost, share))
            for draw, draws, delta, behind in (
                (middles, self._on_its_host(theta), np.clip(strays[0], strays[2], strays[3]), lost),
                (
                    drawn,
                    self._on_its_host(np.repeat(theta, _COPIES, axis=0), moved),
                    np.clip(mean + steps * deviation, least, most),
                    copied_lost + copied_share * steps * deviation,
                ),
            ):
                draw.append(_log_rates(each.law, draws, conditions, delta, behind))
            weights.append(np.full(len(mean), each.weight / len(mean)))
        return middles, drawn, np.concatenate(weights)

    def _on_its_host(self, theta: Floats, normal: Floats | float = 0.0) -> Floats:
        """Parameters on the host that is predicted; the time of a frame comes first."""
        if self.carry == (0.0, 0.0):
            return theta
        there = theta.copy()
        there[:, 0] += self.carry[0] + self.carry[1] * normal
        return there

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on contradictions of the calibrated points with each other or with every law."""
        sentences = [
            f"{_words(made.point)} is taken for an outlier: the other points say {made.throughput_pps / 1e6:.4g} Mpps; "
            "measure it again"
            for made in self.predict(self.outliers)
        ]
        others = [point for point in self.points if point not in self.outliers]
        sentences += [
            f"{_words(made.point)} lies outside its own 95 % interval, "
            f"{made.low_pps / 1e6:.4g} to {made.high_pps / 1e6:.4g} Mpps"
            for made in self.predict(others)
            if not made.low_pps <= made.point.throughput_pps <= made.high_pps
        ]
        sentences += [
            f"{_words(more)} is less than {_words(fewer)}: it may fall further beyond them"
            for fewer, more in _falls(others)
        ]
        sentences += [f"{_words(more)} cannot be beside {_words(few)}: {why}" for few, more, why in _leaps(others)]
        sentences += [
            f"{_words(point)} is what one port carries, and the table says {point.busy_ports}: traffic one way uses "
            "one port (ports = 1)"
            for point in others
            if _is_one_ports(point)
        ]
        strays = sum(
            each.weight * float(np.mean(self.discrepancy.smooth[each.cells] >= _STRAYS)) for each in self.fitted
        )
        if strays > 0.5 and len({point.working_cores for point in others}) >= _LEAST_COUNTS:
            sentences.append(
                "no law of contention fits the points: measure between them before relying on a prediction"
            )
        return tuple(sentences)

    def remarks(self, points: Sequence[Point]) -> tuple[str, ...]:
        """Probability that the router forwards less with the most cores of ``points`` than when calibrated."""
        known = max(self.points, key=lambda point: point.working_cores)
        widest = max(points, key=lambda point: point.working_cores, default=known)
        if widest.working_cores <= known.working_cores:
            return ()
        _, drawn, weights = self._draws([known, replace(known, cores=widest.cores, flows=widest.flows)])
        logs = np.concatenate(drawn)
        chance = float(weights[logs[:, 1] < logs[:, 0] + math.log(_FALLS)].sum())
        if chance < _LEAST_CHANCE:
            return ()
        locked = any(each.law.collapses for each in self.fitted)
        why = "a lock or a queue" if locked else "state"
        queue_hint = ", or say shared_queue = no if each has queues of its own" if locked else ""
        return (
            f"{_cores(widest)} may forward less than {_cores(known)} do, with a chance of {chance:.0%}: {why} that all "
            f"share can slow them down; measure between them{queue_hint}",
        )

    def service_s(self, cores: float, frame_bytes: float) -> float:
        """Seconds (average over the laws) that a core needs for a frame while ``cores`` cores are busy."""
        return math.exp(float(self._log_service(np.array([cores]), frame_bytes)[0]))

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """Values over all laws, then the shapes of the heaviest law (named ``law.shape``)."""
        weights = self._weights()
        theta = np.concatenate([each.posterior.samples[1:, :2] for each in self.fitted])
        per_packet = np.exp(theta[:, 0])
        per_byte = np.exp(theta[:, 0] + theta[:, 1]) / REFERENCE_BYTES
        described = [
            _parameter("T_c", per_packet, weights, "s", "time per frame"),
            _parameter("T_d", per_byte, weights, "s/B", "time per byte"),
        ]
        for k in sorted({point.working_cores for point in self.points} - {1}):
            factor = np.concatenate([self._factor(each, float(k)) for each in self.fitted])
            described.append(
                _parameter(f"c({k})", factor, weights, "1", f"factor on the service time with {k} busy cores")
            )
        best = self.fitted[0]
        own = np.full(len(best.posterior.samples) - 1, 1.0)
        for column, shape in enumerate(best.law.shapes, start=2):
            values = shape.value(best.posterior.samples[1:, column])
            name = f"{best.law.name}.{shape.name}"
            described.append(_parameter(name, values, own, shape.unit, shape.meaning))
        return {parameter.name: parameter for parameter in described}

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
        """Build the calibrated router with ``cores`` cores.

        T_c and T_d are medians; the contention table is such that the service time of a frame of ``frame_bytes`` bytes
        is the average over all laws for each number of busy cores.
        """
        values = self.parameters
        per_packet_s, per_byte_s = values["T_c"].value, values["T_d"].value
        seconds = self._service_s(cores, frame_bytes)
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

    def next_points(
        self, n: int = 3, *, able: Sequence[Point] = (), targets: Sequence[Point] = (), goal_pps: float | None = None
    ) -> tuple[NextPoint, ...]:
        """Return the measurements to make next, in their order (:mod:`routecast.calibration.next_points`).

        ``able``: what can be measured; empty: the calibrated frame sizes and the targets', on up to as many cores as
        the targets have, or twice those that calibrated; ``targets``: what is to be known; empty: all that can be
        measured; ``goal_pps``: what is to be known is how few cores forward so much of the first target's frames.
        """
        most = max((p.cores for p in targets), default=2 * max(p.cores for p in self.points))
        can = list(able) or self.candidates(most, targets)
        if not can or n < 1:
            return ()
        rates, target_rates = self._candidate_and_target_rates(can, list(targets) or can, goal_pps)
        return tuple(rank(can, rates, target_rates, n, noise_ratio=self.noise_ratio))

    def candidates(self, most_cores: int, frames: Sequence[Point] = ()) -> list[Point]:
        """Return possible measurements on up to ``most_cores`` cores, with calibrated frames and ``frames``."""
        return candidates(self.points, most_cores, frames)

    def half_width_ratio(self, targets: Sequence[Point], *, goal_pps: float | None = None) -> float:
        """Return half the 95 % interval of the rate over the rate, at the least precise target.

        With a goal, that of the number of cores that reach it.
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
            # A draw that no count satisfies needs twice the largest count.
            target_rates = np.log(np.array([*counts, 2.0 * counts[-1]])[meets.argmax(axis=1)])[:, None]
        return rates[:, : len(able)], target_rates

    def _counts_around(self, point: Point, goal_pps: float) -> list[int]:
        """Return numbers of cores up to one at which nearly every draw that can meet the goal meets it."""
        counts = sparse_counts(MOST_CORES)
        chances = self.chances([at_cores(point, k) for k in counts], goal_pps)
        enough = max(chances) - _LEAST_CHANCE
        return counts[: 1 + next(i for i, chance in enumerate(chances) if chance >= enough)]

    def _joint_draws(self, points: Sequence[Point]) -> Floats:
        """Return equally likely draws of the logarithms of the rates at n points, (S, n), unordered."""
        conditions, sites = Conditions.of(points), Sites.of(points)
        random = np.random.default_rng(self.seed)
        joint = []
        for each in self.fitted:
            copies = max(1, round(each.weight * _JOINT_DRAWS / len(each.cells)))
            theta = np.repeat(each.posterior.samples[1:], copies, axis=0)
            mean, _, least, most = (np.repeat(part, copies, axis=0) for part in self._strays(each, sites))
            cells = np.repeat(each.cells, copies)
            lost = np.repeat(self._lost(each, sites)[0], copies, axis=0)
            strays = mean.copy()
            for cell, factor in self.discrepancy.factors(each.cells, sites).items():
                rows = cells == cell
                strays[rows] += random.standard_normal((int(rows.sum()), len(points))) @ factor.T
            if self.carry[1]:
                theta = self._on_its_host(theta, random.standard_normal(len(theta)))
            drawn = _log_rates(each.law, theta, conditions, np.clip(strays, least, most), lost)
            enough = round(each.weight * _JOINT_DRAWS)
            joint.append(drawn[random.permutation(len(drawn))[:enough]])
        joined = np.concatenate(joint)
        shuffled: Floats = joined[random.permutation(len(joined))]
        return shuffled

    def _strays(self, each: FittedLaw, sites: Sites) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean, standard deviation and bounds of the discrepancy at sites for each draw of a law, (J, n) each.

        Beyond the largest calibrated number of cores no core does more than there, unless the calibrated points grew
        faster than their cores: what more cores share can only slow them down. And all together do no less than there
        unless the law says that they do; then they lose at most twice its value (in logarithms).
        """
        theta, residuals = each.posterior.samples[1:], self._residuals[each][0]
        mean, deviation = self.discrepancy.given(each.cells, residuals, sites)
        most = self._most_cores
        beyond = sites.cores > most
        least, bound = np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
        if beyond.any():
            there = sites.at_most(most)
            slowed = busy_rate(each.law, theta, there.cores[None], sites.frame_bytes) / busy_rate(
                each.law, theta, sites.cores[None], sites.frame_bytes
            )
            at_most = self.discrepancy.given(each.cells, residuals, there)[0]
            grown = np.log(sites.cores / there.cores) - np.log(slowed)
            bound[:, beyond] = (at_most + np.log(slowed))[:, beyond]
            least[:, beyond] = (at_most - np.abs(grown))[:, beyond]
        return mean, deviation, least, bound

    def _lost(self, each: FittedLaw, sites: Sites) -> tuple[Floats, Floats]:
        """Return the losses at links and cards at sites for each draw of a law, and their nearness, (J, n) each."""
        lost = self._residuals[each][1]
        if not lost.any():
            nothing = np.zeros((len(lost), len(sites.cores)))
            return nothing, nothing
        mean, share = self.discrepancy.lost(each.cells, (lost, (lost < 0.0).astype(float)), sites)
        return mean, np.clip(share, 0.0, 1.0)

    @cached_property
    def _residuals(self) -> dict[FittedLaw, tuple[Floats, Floats]]:
        """Logarithm of measured over law at the calibrated points, and the losses at links and cards there.

        Each (J, n) for the draws of each law. Where a link or a card holds a draw of the law back, cores that strayed
        would change nothing, so what is missing there was lost behind them.
        """
        measured = np.log([point.throughput_pps for point in self.points])
        conditions = Conditions.of_measured(self.points)
        by_point = {}
        for each in self.fitted:
            theta = each.posterior.samples[1:]
            rates = log_throughput(each.law, theta, conditions)
            held = (rates >= log_most(each.law, theta, conditions) - _SAME_LOG) & (self.discrepancy.strays > 0.0)
            residuals = measured - rates
            by_point[each] = residuals, np.where(held, np.minimum(residuals, 0.0), 0.0)
        return by_point

    @cached_property
    def _most_cores(self) -> float:
        """Cores beyond which the router grows at most as its cores do; infinite if its points grew faster than that."""
        each = sorted((p.working_cores, p.throughput_pps / p.working_cores) for p in self.points)
        grew = any(
            more > few and rate > _SUPERLINEAR * before for (few, before), (more, rate) in itertools.pairwise(each)
        )
        return math.inf if grew else float(each[-1][0])

    def _weights(self) -> Floats:
        return np.concatenate(
            [np.full(n, each.weight / n) for each in self.fitted for n in (len(each.posterior.samples) - 1,)]
        )

    def _service_s(self, cores: int, frame_bytes: float) -> Floats:
        """Seconds that one of 1, 2, …, ``cores`` busy cores needs for a frame, average over laws.

        It is cached, because router models are made for many loads of few frame sizes.
        """
        known = self._known_service_s.get((cores, frame_bytes))
        if known is None:
            known = np.exp(self._log_service(np.arange(1.0, cores + 1.0), frame_bytes))
            self._known_service_s[cores, frame_bytes] = known
        return known

    @cached_property
    def _known_service_s(self) -> dict[tuple[int, float], Floats]:
        return {}

    def _log_service(self, busy: Floats, frame_bytes: float) -> Floats:
        """Logarithm of the seconds that a core needs for a frame, average over laws, for each number of busy cores."""
        return -average_of_medians(
            [self.log_core_rates(each, busy, frame_bytes) for each in self.fitted], self.typical_weights
        )

    @property
    def typical_weights(self) -> list[float]:
        """Weights of the laws for a point prediction, with a collapse only where it was measured or stated."""
        calm = [each.weight * (not each.law.collapses) for each in self.fitted]
        return [each.weight for each in self.fitted] if self._falls or not any(calm) else calm

    @property
    def _falls(self) -> bool:
        return any(True for _ in _falls(self.points))

    def log_core_rates(self, each: FittedLaw, busy: Floats, frame_bytes: float) -> Floats:
        """Return the logarithm of the rate of one core while ``busy`` cores work, (J, n) for the draws of a law."""
        sizes = np.full(len(busy), frame_bytes)
        sites = Sites.of(self.points[:1]).everywhere(busy, sizes)
        mean, _, least, most = self._strays(each, sites)
        rates = busy_rate(each.law, self._on_its_host(each.posterior.samples[1:]), busy[None], sizes)
        log_rates: Floats = np.log(rates) + np.clip(mean, least, most)
        return log_rates

    def _factor(self, each: FittedLaw, k: float) -> Floats:
        rates = self.log_core_rates(each, np.array([1.0, k]), REFERENCE_BYTES)
        ratio: Floats = np.exp(rates[:, 0] - rates[:, 1])
        return ratio


def _log_rates(law: Law, theta: Floats, conditions: Conditions, strays: Floats, lost: Floats) -> Floats:
    """Logarithm of the rates where cores stray from a law and links and cards lose something, (J, n)."""
    rates = log_throughput(law, theta, conditions, discrepancy=strays)
    if not lost.any():
        return rates
    least: Floats = np.minimum(rates, log_most(law, theta, conditions) + np.minimum(lost, 0.0))
    return least


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


def _falls(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Neighbouring points of one frame size of which the one with more cores has the lower rate."""
    for fewer, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        if more.frame_bytes == fewer.frame_bytes and more.throughput_pps < _FALLS * fewer.throughput_pps:
            yield fewer, more


def _leaps(points: Sequence[Point]) -> Iterator[tuple[Point, Point, str]]:
    """Pairs of points of which the second has a rate that the first rules out, and why."""
    for few, more in itertools.pairwise(sorted(points, key=lambda p: (p.frame_bytes, p.working_cores))):
        each = more.throughput_pps / more.working_cores / (few.throughput_pps / few.working_cores)
        if few.frame_bytes == more.frame_bytes and each > _LEAP_RATIO:
            yield few, more, f"each core would do {each:.3g} times as much; look for a wrong unit or row"
    for short, long in itertools.pairwise(sorted(points, key=lambda p: (p.working_cores, p.frame_bytes))):
        times = long.throughput_pps / short.throughput_pps
        if short.working_cores == long.working_cores and times > _LEAP_RATIO:
            yield short, long, f"longer frames would be {times:.3g} times as many; look for a wrong unit or row"


def at_cores(point: Point, cores: int) -> Point:
    """Return the point for ``cores`` cores, with a flow for each core where flows are crafted."""
    return replace(point, cores=cores, flows=None if point.flows is None else cores)


def sparse_counts(most: int) -> list[int]:
    """Return all numbers of cores up to 24, then increasingly sparse ones, up to ``most``.

    Examples
    --------
    >>> sparse_counts(3), sparse_counts(60)[-5:]
    ([1, 2, 3], [38, 43, 48, 54, 60])
    """
    counts = list(range(1, min(most, _DENSE_CORES) + 1))
    while counts[-1] < most:
        counts.append(min(most, max(counts[-1] + 1, round(counts[-1] * _GROWTH))))
    return counts


def _around(middle: float, spread: Intervals) -> Intervals:
    """Intervals that hold the point prediction too, which may lie at an end of the narrow ones."""
    return {level: (min(low, middle), max(high, middle)) for level, (low, high) in spread.items()}


def _words(point: Point) -> str:
    return f"the rate of {_cores(point)} at {point.frame_bytes:g} B ({point.throughput_pps / 1e6:.4g} Mpps)"


def _cores(point: Point) -> str:
    return f"{point.working_cores} core{'s' if point.working_cores > 1 else ''}"


def _is_one_ports(point: Point) -> bool:
    one_pps = point.line_rate_pps / point.busy_ports
    return point.busy_ports > 1 and abs(point.throughput_pps / one_pps - 1.0) < _AT_ONE_PORT


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


def _as_strayed(normal: Floats, strays: Floats) -> Floats:
    """Return normal values transformed to the distribution of sorted residuals; unchanged without residuals."""
    if not len(strays):
        return normal
    inverse = np.vectorize(NormalDist().inv_cdf)
    strayed: Floats = np.interp(normal, inverse((np.arange(len(strays)) + 0.5) / len(strays)), strays)
    return strayed


@lru_cache
def _quasi_normal(n: int) -> tuple[Floats, Floats]:
    """Return n pairs of normal values that fill the plane evenly (Roberts' R2 sequence), the same each time."""
    inverse = np.vectorize(NormalDist().inv_cdf)
    first, other = (inverse((0.5 + step * np.arange(n)) % 1.0) for step in _R2)
    return first, other
