"""Stations that are no textbook queue: units that several task units visit, queues in overload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from routecast.evaluate._general_queues import DD1, MD1, MG1, MG1K, ErlangLoss, ServiceMix
from routecast.evaluate._queue import DelayedQueue, MeanQueue, MMc, MMcK, PlainQueue, Queue, erlang_c
from routecast.evaluate._two_moment_queues import DM1K, GIG1K, GIGc
from routecast.evaluate.solve._arrivals import ArrivalProcess, NoWaiting
from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.quantity.schema import field, value

_NOTABLE = 0.01
OVERLOADED = 1.02
_MAX_STATES = 2048
_MIN_LOAD, _MAX_LOAD = 0.005, 50.0
"""Loads of chains whose probabilities do not vanish."""
_NO_LOSS = 1e-9
_MAX_ARRIVAL_SCV = 2.0
_FULL_FRAMES = 10.0
_DELAY = 100.0
"""A station with so many servers, and so many for each frame that is in service on average, is a delay."""
_LEFT_OUT = 1e-3
"""Loss by chance that is left out where several units serve one queue."""
MOST_RING_FRAMES = 256
"""Largest ring whose chain of polls is solved."""
_MIN_PLACES = 4.0
"""Least room per unit of variation (gaps plus services): with less room, two moments say little about the loss."""


class SharedUnits:
    """Units that several task units visit in order of request, as one queue of all their frames.

    With exponential service of one mean the queue has the product form of Jackson and BCMP (Baskett, Chandy, Muntz and
    Palacios, Journal of the ACM 22(2), 1975): exactly where every frame requests its unit itself, otherwise up to the
    order of service between task units. With any other service it is M/G/c with the frames of all task units. Units
    with another policy, switch costs, batches, several units per frame or sleep states are not ``plain``.

    ``service``: returns the service times of a task unit by its number.
    """

    def __init__(self, part: Component, fluid: Fluid, service: Callable[[int], ServiceMix]) -> None:
        tasks = fluid.graph.tasks
        self.servers = len(part.units)
        self.members = np.array([member for member, _ in part.members])
        self.plain = (
            part.pool.policy.kind == "fifo"
            and part.pool.switch_cost_s <= 0.0
            and (part.pool.migration_cost_s <= 0.0 or len(part.units) == 1)
            and len({part.pool.unit_speed_ratio[unit] for unit in part.units if part.pool.unit_speed_ratio}) <= 1
            and all(
                tasks[member].activation.kind == "dedicated"
                and len(tasks[member].needs) == 1
                and units == 1
                and fluid.costs[member].batch_s == 0.0
                and not fluid.costs[member].sleep_states
                for member, units in part.members
            )
        )
        mixes = [service(member) for member, _ in part.members] if self.plain else []
        times = [mix.mean_s for mix in mixes]
        self.mean_s = np.array(times)
        self.square_s2 = np.array([mean_s**2 for mean_s in times])
        self.second_moment_factor = np.array([1.0 + mix.squared_cv for mix in mixes])
        exponential = all(mix.law == "exponential" and mix.is_one_size for mix in mixes)
        self.product_form = self.plain and exponential and max(times) <= min(times) * (1.0 + 1e-6)
        self.in_order = all(tasks[member].request == "frame" for member, _ in part.members)

    def load(self, rates_pps: Vector) -> tuple[float, float]:
        """Return the load of the units, and the squared variation of the service times of all frames."""
        rates = rates_pps[self.members]
        total = _sum(rates)
        mean_s = _sum(rates * self.mean_s) / total
        second = _sum(rates * self.second_moment_factor * self.square_s2) / total
        return total * mean_s / self.servers, max(second / mean_s**2 - 1.0, 0.0)

    def queue(self, rates_pps: Vector) -> MeanQueue | None:
        """Return the queue at these arrival rates by task unit, with the common mean service; None in overload."""
        rates = rates_pps[self.members]
        total = _sum(rates)
        mean_s = _sum(rates * self.mean_s) / total
        if total * mean_s >= self.servers * (1.0 - 1e-6):
            return None
        if self.product_form:
            waiting_s = MMc(arrival_pps=total, service_s=mean_s, servers=self.servers).waiting_mean_s
            method = "Jackson network" if self.in_order else "Jackson network (order of service approximated)"
        else:
            second = _sum(rates * self.second_moment_factor * self.square_s2) / total
            common = GIGc(
                arrival_pps=total,
                arrival_scv=1.0,
                service_s=mean_s,
                service_scv=second / mean_s**2 - 1.0,
                servers=self.servers,
            )
            waiting_s, method = common.waiting_mean_s, f"M/G/{self.servers} for shared units (approximation)"
        return MeanQueue(waiting_s=waiting_s, service_s=mean_s, source=method, product_form=self.product_form)


def _sum(values: Vector) -> float:
    """Return the sum in order, from the first to the last."""
    return float(np.cumsum(values)[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class FullQueue(PlainQueue):
    """Overload: the queue is always full, the sojourn time is its length over the rate (Meyer et al. 2014, eq. 4)."""

    servers: int
    capacity_frames: int

    @property
    def method(self) -> str:
        return "full queue, Little's law"

    @property
    def loss_ratio(self) -> float:
        """Return the share of the frames that find the queue full."""
        return 1.0 - self.servers / (self.arrival_pps * self.service_s)

    @property
    def sojourn_mean_s(self) -> float:
        return self.capacity_frames * self.service_s / self.servers

    @property
    def waiting_mean_s(self) -> float:
        return self.sojourn_mean_s - self.service_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledQueue(DelayedQueue):
    """An overloaded queue whose polls remove a batch of frames at once, so that new frames enter during the poll.

    A poll of b frames frees b places, which fill in ``b/rate``. An entering frame waits for the rest of the poll and
    for all frames before it: on average ``b(1 - 1/load)/2`` services more than if frames left one by one.
    """

    service_s: float
    load: float
    batch_frames: int

    @property
    def _added_s(self) -> float:
        return 0.5 * self.batch_frames * (1.0 - 1.0 / self.load) * self.service_s

    @property
    def method(self) -> str:
        return f"{self.queue.method} behind polls of {self.batch_frames} frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledRing(Queue):
    """M/G/1 with gated polls and room for K frames that the next poll takes, all of them.

    Chain embedded at the starts of polls: A frames come during a poll of n, and the next takes ``min(A, K)``; if none
    comes, it takes the one that finds the server idle. A poll lasts T, the sum of n services, and A is Poisson during
    it: negative binomial for gamma services, which also stand for other laws with the same two moments. The i-th frame
    that comes waits for the rest of the poll, ``E[(T - t_i)⁺] = E[(A - i)⁺]/λ`` (from the mean time with k arrivals
    before T, ``P(A > k)/λ``), and for the i - 1 frames before it. Loss and sojourn time follow by renewal reward.
    Source: Takagi, "Queueing Analysis, Volume 2: Finite Systems", 1993, ch. 2, for gated service and finite room.
    """

    arrival_pps: float
    service: ServiceMix
    ring_frames: int

    @property
    def method(self) -> str:
        return f"M/G/1 with polls of a ring of {self.ring_frames} frames"

    @property
    def loss_ratio(self) -> float:
        """Frames that find the ring full, of all."""
        return self._figures[0]

    @property
    def sojourn_mean_s(self) -> float:
        """Mean over the accepted frames."""
        return self._figures[1]

    @property
    def waiting_mean_s(self) -> float:
        return max(self.sojourn_mean_s - self.service.mean_s, 0.0)

    @property
    def _figures(self) -> tuple[float, float]:
        service = self.service
        return _ring_figures(self.arrival_pps * service.mean_s, service.squared_cv, service.mean_s, self.ring_frames)


@lru_cache(maxsize=64)
def _ring_figures(load: float, scv: float, service_s: float, ring_frames: int) -> tuple[float, float]:
    """Return loss and mean sojourn time, s."""
    taken = np.arange(1, ring_frames + 1).astype(np.float64)
    chances = _arrivals_in_polls(load * taken, taken / scv if scv > 0.0 else None, ring_frames)
    # P(A >= i) and E[(A - i)+] for i = 1 to K, a row for each poll.
    below = np.cumsum(chances, axis=1)
    at_least = np.clip(1.0 - below[:, :-1], 0.0, 1.0)
    beyond = (load * taken)[:, None] - np.cumsum(at_least, axis=1)
    change = chances[:, 1:].copy()
    change[:, -1] = at_least[:, -1]
    change[:, 0] += chances[:, 0]
    balance = change.T - np.eye(ring_frames)
    balance[-1] = 1.0
    right = np.zeros(ring_frames)
    right[-1] = 1.0
    polls = np.linalg.solve(balance, right)
    accepted = at_least.sum(axis=1) + chances[:, 0]
    lengths = taken + chances[:, 0] / load
    stays = beyond.clip(0.0).sum(axis=1) / load + at_least @ taken + chances[:, 0]
    frames = float(polls @ accepted)
    return max(1.0 - frames / (load * float(polls @ lengths)), 0.0), float(polls @ stays) / frames * service_s


def _arrivals_in_polls(means: Vector, shapes: Vector | None, most: int) -> Vector:
    """Return the chances of 0 to ``most`` arrivals, a row for each mean: Poisson, or mixed by gamma laws."""
    chances = np.empty((len(means), most + 1))
    if shapes is None:
        chances[:, 0] = np.exp(-means)
        for count in range(most):
            chances[:, count + 1] = chances[:, count] * means / (count + 1.0)
        return chances
    ratio = means / (shapes + means)
    chances[:, 0] = (1.0 - ratio) ** shapes
    for count in range(most):
        chances[:, count + 1] = chances[:, count] * ratio * (shapes + count) / (count + 1.0)
    return chances


def behind_link(queue: Queue, link_wait_s: float, *, exact: bool) -> Queue:
    """Return the queue behind the link that spaces Poisson arrivals, where the link matters."""
    if queue.waiting_mean_s <= 0.0 or link_wait_s <= _NOTABLE * queue.sojourn_mean_s:
        return queue
    return BehindLink(queue=queue, link_wait_s=link_wait_s, exact=exact)


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindLink(DelayedQueue):
    """A queue whose Poisson arrivals have already waited for their link.

    For constant times in series, the sum of all waits is the wait for the slowest server alone (Friedman, Operations
    Research 13(1), 1965; Avi-Itzhak, Management Science 11(5), 1965), so ``W - W_link`` remains behind the link. This
    is ``exact`` for one server that gets all frames of one link, of one size, without loss; otherwise W stays
    unchanged, an upper approximation.
    """

    link_wait_s: float
    exact: bool

    @property
    def _added_s(self) -> float:
        return -min(self.link_wait_s, self.queue.waiting_mean_s) if self.exact else 0.0

    @property
    def method(self) -> str:
        if self.exact:
            return f"{self.queue.method} less the wait for the link in"
        return f"{self.queue.method} as if no link spaced the frames (approximation)"


@value
class Station:
    """A queue with servers of its own."""

    rate_pps: float
    mix: ServiceMix
    servers: int = field("Frames in service at once")
    room: int = field("Frames in all")
    independent: bool = field(
        "Whether the service times of successive frames are independent: one size, or sizes drawn at random"
    )
    exact: bool = field("Whether the service time is known and not a mean over contention")

    @property
    def load(self) -> float:
        """Offered work per server."""
        return self.rate_pps * self.mix.mean_s / self.servers

    @property
    def full_queue(self) -> FullQueue:
        """The station in overload."""
        return FullQueue(
            arrival_pps=self.rate_pps, service_s=self.mix.mean_s, servers=self.servers, capacity_frames=self.room
        )


def law_of(station: Station, arriving: ArrivalProcess, note: Callable[[str], None]) -> tuple[Queue | None, str]:
    """Return the queueing result of a station; or None and the reason."""
    mix, load = station.mix, station.load
    constant = mix.law == "deterministic" and station.exact
    if constant and arriving.spacing and arriving.spacing.fits(max(mix.times_s)) and arriving.kind != "regular":
        return NoWaiting(service=mix), ""
    if station.servers >= _DELAY * max(station.rate_pps * mix.mean_s, _DELAY):
        return NoWaiting(service=mix, why="there is a server for every frame"), ""
    if not station.exact and abs(load - 1.0) < OVERLOADED - 1.0:
        return None, f"is loaded to {load:.1%}, where a small error in its mean contention decides"
    if arriving.kind == "poisson" and load < _MAX_LOAD:
        queue = _poisson(station)
        if queue is not None:
            if mix.law == "other" and mix.completion is None and isinstance(queue, MG1K):
                note("loss and delay are those of a gamma law with the same mean and variance, an approximation")
            return queue, ""
    if arriving.kind == "regular" and mix.law == "deterministic" and mix.is_one_size and station.servers == 1:
        return DD1(arrival_pps=station.rate_pps, service_s=mix.mean_s, capacity_frames=station.room), ""
    memoryless = arriving.kind == "regular" and mix.law == "exponential" and mix.is_one_size and station.servers == 1
    if memoryless and station.room <= _MAX_STATES and _MIN_LOAD <= load < _MAX_LOAD:
        return DM1K(arrival_pps=station.rate_pps, service_s=mix.mean_s, capacity_frames=station.room), ""
    return _two_moments(station, arriving, note)


def _two_moments(station: Station, arriving: ArrivalProcess, note: Callable[[str], None]) -> tuple[Queue | None, str]:
    mix, load = station.mix, station.load
    is_known = arriving.kind in {"renewal", "poisson", "regular"} and arriving.scv <= _MAX_ARRIVAL_SCV
    is_independent = arriving.kind != "regular" or station.independent
    if is_known and is_independent and station.servers == 1 and arriving.scv + mix.squared_cv > 0.0:
        finite = GIG1K(
            arrival_pps=station.rate_pps,
            arrival_scv=arriving.scv,
            service_s=mix.mean_s,
            service_scv=mix.squared_cv,
            capacity_frames=station.room,
        )
        if load < 1.0 and finite.loss_ratio <= _NO_LOSS:
            return _unlimited(station, arriving), ""
        if finite.loss_ratio > _NO_LOSS and _MIN_PLACES * (arriving.scv + mix.squared_cv) > station.room:
            varies = f"{arriving.scv:.3g} and {mix.squared_cv:.3g}"
            return None, f"has {station.room} places, too few for gaps and services that vary by {varies}"
        return finite, ""
    # The queue fills faster than it fluctuates, so it never runs empty by chance.
    if load >= OVERLOADED and (load - 1.0) * station.room >= _FULL_FRAMES:
        return station.full_queue, ""
    if is_known and is_independent and load < 1.0:
        queue = _unlimited(station, arriving)
        waiting = queue.waiting_mean_s * station.rate_pps
        if waiting <= 0.0 or _share_beyond(station, waiting) <= _LEFT_OUT:
            note("losses by chance are left out where several units serve one queue")
            return queue, ""
        return (None, f"has a queue of {station.room - station.servers} frames, too short for its load of {load:.3g}")
    if arriving.kind == "regular" and not station.independent:
        return None, "serves a fixed sequence of frame sizes at equal gaps, without a known closed form"
    if arriving.kind == "renewal" and arriving.scv > _MAX_ARRIVAL_SCV:
        return None, f"gets long bursts (variation of gaps {arriving.scv:.3g}), which no approximation covers"
    return None, arriving.why or f"is at a load of {load:.3g}, where no queueing result applies"


def _share_beyond(station: Station, waiting_frames: float) -> float:
    """Return the share of frames that find more frames waiting than the queue holds, where they wait without limit.

    The number of frames that wait, if any does, is taken as geometric, as in M/M/c.
    """
    chance = erlang_c(station.rate_pps * station.mix.mean_s, station.servers)
    while_waiting = waiting_frames / max(chance, 1e-300)
    return float(chance * (while_waiting / (1.0 + while_waiting)) ** (station.room - station.servers))


def _unlimited(station: Station, arriving: ArrivalProcess) -> GIGc:
    return GIGc(
        arrival_pps=station.rate_pps,
        arrival_scv=arriving.scv,
        service_s=station.mix.mean_s,
        service_scv=station.mix.squared_cv,
        servers=station.servers,
    )


def _poisson(station: Station) -> Queue | None:
    rate, mix, servers, load = station.rate_pps, station.mix, station.servers, station.load
    if station.room == servers:
        return ErlangLoss(arrival_pps=rate, service=mix, servers=servers)
    small = station.room <= _MAX_STATES
    if not small and load < 1.0 and not _roomy(station):
        return None
    if mix.law == "exponential" and mix.is_one_size:
        if small:
            lossy = MMcK(arrival_pps=rate, service_s=mix.mean_s, servers=servers, capacity_frames=station.room)
            if load >= 1.0 or lossy.loss_ratio > _NO_LOSS:
                return lossy
        return MMc(arrival_pps=rate, service_s=mix.mean_s, servers=servers) if load < 1.0 else None
    if servers > 1:
        return None
    independent = station.independent
    if small:
        finite = MG1K(arrival_pps=rate, service=mix, capacity_frames=station.room, independent=independent)
        if load >= 1.0 or finite.loss_ratio > _NO_LOSS:
            return finite
    if load >= 1.0:
        return None
    if mix.law == "deterministic" and mix.is_one_size:
        return MD1(arrival_pps=rate, service_s=mix.mean_s)
    return MG1(arrival_pps=rate, service=mix, independent=independent)


def _roomy(station: Station) -> bool:
    """Whether a long queue with Poisson arrivals counts as infinite."""
    load = station.load
    spread = load + station.mix.squared_cv
    return 2.0 * (1.0 - load) * (station.room - station.servers) > 7.0 * max(spread, 1e-9)
