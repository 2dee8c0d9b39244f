"""Bounds of what is lost while a server is away, and in the busy periods of units that several task units share.

An absence of a random length D lets in λD frames and loses those beyond the room r. With absences at a rate of a per
second the lost share is ``a·E[(N(D) - r)+]/λ``, however long the rarest absence is: a bound for all of them at once
would be far above it.

Frames wait for units of their own and for those of others in one busy period of these units, whatever the scheduler,
as long as no unit idles while frames wait. Of the K frames of a busy period at most ``K - n`` find n others, and
``P(K > k) <= r(θ)^k`` with ``r(θ) = E[e^{θS}]·E[e^{-θcT}]`` for c units, services S and gaps T (Kingman, Proceedings of
the Cambridge Philosophical Society 60(2), 1964), so ``E[(K - n)+] <= r^n/(1 - r)``. Services and gaps count as gamma
times, services with a quarter more squared variation; a frame counts with the start of a poll of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve._unknown_shares import RARE, Absences, fill_of, frame_times_s, never_releases
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.router.model import RandomTime, ResourcePool

__all__ = ["AbsenceLoss", "beyond_room", "excess_frames"]

_TAILS = np.geomspace(1.0, 1e-9, 97)
_CHANCES = np.append(_TAILS[:-1] - _TAILS[1:], _TAILS[-1])
_ROOT_TAU = math.sqrt(2.0 * math.pi)
_GRID = 48
_CAUTION = 1.25
_MIN_SCV = 1e-3


@dataclass(frozen=True, slots=True)
class _Type:
    """The frames of one task unit at shared units: rate, work and its squared variation."""

    rate_pps: float
    work_s: float
    scv: float


class AbsenceLoss:
    """Bounds of the loss by absences and in shared units, by task unit of a fluid state."""

    def __init__(self, fluid: Fluid, absences: Absences) -> None:
        self._fluid, self._absences = fluid, absences
        self._types: dict[int, dict[int, _Type] | None] = {}
        self._walks: dict[tuple[int, int, float], Vector] = {}
        self._crowds: dict[int, tuple[_Type | None, float]] = {}

    def is_shared(self, index: int) -> bool:
        """Whether a task unit shares units with others."""
        return any(len(part.members) > 1 for part, _ in self._fluid.uses[index])

    def has_absences(self, index: int) -> bool:
        """Whether a server of the task unit may start late or be interrupted."""
        interrupted = any(part.pool.interruptions is not None for part, _ in self._fluid.uses[index])
        return interrupted or self.late_s(index) > 0.0

    def turns_s(self, index: int) -> float:
        """Return the part of the longest absence that others at the same units cause, s."""
        start_s, wakeup = self._start(index)
        rest_s = self._absences.away_s[index] - start_s
        if wakeup is not None:
            rest_s -= wakeup.quantile_s(1.0 - RARE)
        for part, _ in self._fluid.uses[index]:
            if part.pool.interruptions is not None:
                rest_s -= part.pool.interruptions.duration.quantile_s(1.0 - RARE)
        return max(rest_s, 0.0)

    def late_s(self, index: int) -> float:
        """Return the mean time before a task unit begins, s."""
        start_s, wakeup = self._start(index)
        return start_s + (wakeup.average_s if wakeup is not None else 0.0)

    def by_absence(self, index: int, rate: float, room: float, scv: float) -> float:
        """Return a bound of the share of frames lost because the server starts late or is interrupted.

        ``scv``: squared variation of the gaps between frames.
        """
        start_s, wakeup = self._start(index)
        mean_s, lost = self.late_s(index), 0.0
        if mean_s > 0.0:
            lost += excess_frames(wakeup, start_s, rate, room, scv) / (1.0 + rate * mean_s)
        for part, units in self._fluid.uses[index]:
            interruptions = part.pool.interruptions
            if interruptions is not None:
                busy = min(self._absences.load[index], 1.0) * len(part.units) / max(units, 1)
                per_s = interruptions.rate_hz * max(busy, 1.0 if self._polls(part) else 0.0)
                lost += per_s * excess_frames(interruptions.duration, 0.0, rate, room, scv) / max(rate, 1e-300)
        return min(lost, 1.0)

    def by_interruptions(self, pools: Iterable[ResourcePool], rate: float, room: float, scv: float) -> float:
        """Return a bound of the share of frames lost in a queue that each interruption of these pools stops."""
        lost = 0.0
        for pool in pools:
            if pool.interruptions is not None:
                per_s = pool.interruptions.rate_hz * float(self._fluid.active_units[pool.name].sum())
                lost += per_s * excess_frames(pool.interruptions.duration, 0.0, rate, room, scv) / max(rate, 1e-300)
        return min(lost, 1.0)

    def by_shared_units(self, index: int, room: float, scv: float) -> float:
        """Return a bound of the share of frames that find the queue of a task unit before shared units full.

        ``scv``: squared variation of the gaps.
        """
        left, lost = math.floor(room - self._absences.bursts_frames[index]), 0.0
        for part, _ in self._fluid.uses[index]:
            types = self._types_of(part)
            if types is None:
                return 1.0
            if index in types:
                bounds = [1.0, self._by_crowd(part, types, room, scv)]
                if left > 0:
                    bounds.append(_least(self._own_walk(part, types, index, scv), left))
                lost += min(bounds)
        return min(lost, 1.0)

    def common_queue(self, index: int) -> tuple[float, float] | None:
        """Return load and squared variation of the services of all frames at shared units that serve one at a time.

        None where task units take turns with several frames: then others may have brought more than theirs.
        """
        parts = [part for part, _ in self._fluid.uses[index]]
        types = self._types_of(parts[0]) if len(parts) == 1 else None
        if types is None or any(self._fluid.costs[member].batch_frames > 1 for member in types):
            return None
        rate = math.fsum(frames.rate_pps for frames in types.values())
        work_s = math.fsum(frames.rate_pps * frames.work_s for frames in types.values()) / rate
        square_s2 = (
            math.fsum(frames.rate_pps * frames.work_s**2 * (1.0 + frames.scv) for frames in types.values()) / rate
        )
        return rate * work_s / len(parts[0].units), square_s2 / work_s**2 - 1.0

    def by_crowd(self, index: int, room: float, scv: float) -> float:
        """Return a bound of the share of frames that find more than a room at all task units that share its units."""
        lost = 0.0
        for part, _ in self._fluid.uses[index]:
            types = self._types_of(part)
            if types is None:
                return 1.0
            lost += self._by_crowd(part, types, room, scv)
        return min(lost, 1.0)

    def _start(self, index: int) -> tuple[float, RandomTime | None]:
        """Return the time before a task unit begins: the constant part, s, and the wake-up."""
        fluid, cost = self._fluid, self._fluid.costs[index]
        start_s = cost.moderation_s + (cost.interrupt_s + cost.batch_s) * float(fluid.factor[index])
        start_s += max((exit_s for _, exit_s in cost.sleep_states), default=0.0)
        return start_s, fluid.graph.tasks[index].activation.wakeup

    @cached_property
    def _handed_pps(self) -> dict[int, list[tuple[int, float]]]:
        """By task unit: the task units that hand frames to it, with their rates."""
        handed: dict[int, list[tuple[int, float]]] = {}
        for station, edges in enumerate(self._fluid.graph.edges):
            for node, fraction in edges:
                rate = float(self._fluid.rates[station] @ fraction)
                if rate > 0.0:
                    handed.setdefault(node, []).append((station, rate))
        return handed

    def _by_crowd(self, part: Component, types: dict[int, _Type], room: float, scv: float) -> float:
        """Return the bound by the frames that enter the shared units from elsewhere, with the work of all their visits.

        Frames that one member hands to another are no burst: all of them arrived in the same busy period.
        """
        crowd, bursts = self._crowd_of(part, types)
        left = math.floor(room - bursts)
        if left < 1 or crowd is None:
            return 1.0
        key = (part.number, -1, scv)
        if key not in self._walks:
            self._walks[key] = _log_ratio(crowd, [], len(part.units), scv)
        return _least(self._walks[key], left)

    def _own_walk(self, part: Component, types: dict[int, _Type], index: int, scv: float) -> Vector:
        key = (part.number, index, scv)
        if key not in self._walks:
            others = [frames for member, frames in types.items() if member != index]
            self._walks[key] = _log_ratio(types[index], others, len(part.units), scv)
        return self._walks[key]

    def _crowd_of(self, part: Component, types: dict[int, _Type]) -> tuple[_Type | None, float]:
        """Return the frames that enter shared units, as one type, and the frames of the bursts in which they come."""
        if part.number not in self._crowds:
            entering, bursts = 0.0, 0.0
            for index, frames in types.items():
                entering += frames.rate_pps
                for station, rate in self._handed_pps.get(index, ()):
                    if station in types:
                        entering -= rate
                    elif self._fluid.service_s[station] > 0.0:
                        bursts += max(self._absences.polls_frames[station] - 1.0, 0.0)
                    else:
                        bursts += self._absences.bursts_frames[station]
            crowd = None
            if entering > 1e-9:
                work_s = math.fsum(frames.rate_pps * frames.work_s for frames in types.values()) / entering
                visits = [(frames, frames.rate_pps / entering) for frames in types.values()]
                variance_s2 = math.fsum(frames.work_s**2 * n * (frames.scv + max(1.0 - n, 0.0)) for frames, n in visits)
                crowd = _Type(rate_pps=entering, work_s=work_s, scv=variance_s2 / work_s**2)
            self._crowds[part.number] = crowd, bursts
        return self._crowds[part.number]

    def _polls(self, part: Component) -> bool:
        return any(self._fluid.graph.tasks[index].activation.kind == "polling" for index, _ in part.members)

    def _types_of(self, part: Component) -> dict[int, _Type] | None:
        """Return the frames of shared units by task unit; None if a frame may wait while a unit idles, or overload."""
        if part.number not in self._types:
            self._types[part.number] = self._find_types(part)
        return self._types[part.number]

    def _find_types(self, part: Component) -> dict[int, _Type] | None:
        fluid, tasks = self._fluid, self._fluid.graph.tasks
        members = [index for index, _ in part.members]
        if any(never_releases(part, tasks[index]) for index in members):
            return None
        usable = {frozenset(tasks[i].pin or part.units) for i in members if tasks[i].needs[0].pool == part.pool.name}
        if len(usable) > 1 or any(len(tasks[index].needs) > 1 for index in members):
            return None
        rates = fluid.rates.sum(axis=1).tolist()
        times_s = frame_times_s(part, tasks, fluid.costs, rates)
        types, work = {}, [0.0] * len(tasks)
        for index, units in part.members:
            if rates[index] <= 0.0:
                continue
            frame_s = max(times_s[index] * float(fluid.factor[index]), float(fluid.service_s[index]))
            work[index] = units * rates[index] * frame_s
            spread = tasks[index].service.squared_cv + fluid.costs[index].scatter_s / max(frame_s, 1e-300)
            types[index] = _Type(rate_pps=rates[index], work_s=units * frame_s, scv=spread)
        return types if fill_of(part, tasks, work) < 1.0 else None


def beyond_room(load: float, service_scv: float, room: int, scv: float) -> float:
    """Return a bound of the share of frames that find a room full at one server.

    ``scv``: squared variation of the gaps between frames.
    """
    if room < 1:
        return 1.0
    return _least(_log_ratio(_Type(rate_pps=load, work_s=1.0, scv=service_scv), [], 1, scv), room)


def excess_frames(duration: RandomTime | None, constant_s: float, rate: float, room: float, scv: float) -> float:
    """Return a bound of the mean number of frames beyond a room that arrive in a constant and a random time.

    The frames of a time are normal with their mean and ``scv`` times it as variance.

    Examples
    --------
    >>> round(excess_frames(RandomTime(mean_s=1e-3, variation="exponential"), 0.0, 1e4, 23.0, 1e-9), 2)
    1.12
    """
    if duration is None or duration.is_constant:
        mean = rate * (constant_s + (duration.average_s if duration is not None else 0.0))
        spread = math.sqrt(max(scv * mean, 1e-12))
        far = (mean - room) / spread
        above = 0.5 * math.erfc(-far / math.sqrt(2.0))
        return max((mean - room) * above + spread * math.exp(-0.5 * min(far**2, 1400.0)) / _ROOT_TAU, 0.0)
    means = rate * (constant_s + _tail_times_s(duration))
    if means[-1] + 8.0 * math.sqrt(scv * means[-1]) < room:
        return 0.0
    spreads = np.sqrt(np.maximum(scv * means, 1e-12))
    fars = (means - room) / spreads
    above_ratio = np.array([0.5 * math.erfc(-far / math.sqrt(2.0)) for far in fars.tolist()])
    excess = np.maximum((means - room) * above_ratio + spreads * np.exp(-0.5 * fars**2) / _ROOT_TAU, 0.0)
    return float(excess @ _CHANCES)


@lru_cache(maxsize=256)
def _tail_times_s(duration: RandomTime) -> Vector:
    """Return the greatest times of the intervals of a distribution, s; of the last a mean longer than its least."""
    times_s = np.array([duration.quantile_s(1.0 - float(tail)) for tail in _TAILS[1:]])
    return np.append(times_s, times_s[-1] + duration.average_s)


def _log_gamma(mean: float, scv: float, theta: Vector) -> Vector:
    """Return ``ln E[e^{θX}]`` of a gamma time."""
    scv = max(scv, _MIN_SCV)
    left = 1.0 - theta * mean * scv
    return np.where(left > 0.0, -np.log(np.maximum(left, 1e-300)) / scv, np.inf)


def _least(log_ratio: Vector, room: int) -> float:
    """Return the least ``r^n/(1 - r)`` over the grid of θ."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        bound = room * log_ratio - np.log(-np.expm1(np.minimum(log_ratio, -1e-300)))
    bound = np.where((log_ratio < 0.0) & np.isfinite(log_ratio), bound, np.inf)
    return math.exp(min(float(np.min(bound)), 0.0))


def _log_ratio(own: _Type, others: list[_Type], units: int, scv: float) -> Vector:
    """Return ``ln r(θ)`` over a grid, from one own frame to the next: in between, others bring a random work."""
    theta = np.geomspace(1e-4, 1e3, _GRID) / max(own.work_s, 1e-300)
    between = np.zeros_like(theta)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for frames in others:
            ratio = frames.rate_pps / own.rate_pps
            between = between + ratio * np.expm1(_log_gamma(frames.work_s, _CAUTION * frames.scv, theta))
        geometric = np.where(between < 1.0, -np.log1p(-np.minimum(between, 1.0 - 1e-12)), np.inf)
        log_ratio: Vector = _log_gamma(own.work_s, _CAUTION * own.scv, theta) + geometric
        return log_ratio + _log_gamma(units / own.rate_pps, scv, -theta)
