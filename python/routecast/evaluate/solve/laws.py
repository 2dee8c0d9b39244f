"""Which queueing result a station is: by what arrives, how service varies, and how much room there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from routecast.evaluate.queueing.general import DD1, MD1, MG1, MG1K, ServiceMix
from routecast.evaluate.queueing.markov import MMc, MMcK, Queue
from routecast.evaluate.queueing.two_moments import GIG1K, GIGc
from routecast.evaluate.solve.arrivals import Arriving
from routecast.evaluate.solve.spacing import NobodyMeets
from routecast.evaluate.solve.stations import FullQueue

__all__ = ["OVERLOADED", "Station", "law_of"]

OVERLOADED = 1.02
_MOST_STATES = 2048
_NO_LOSS = 1e-9
_MOST_ARRIVAL_SCV = 2.0
_FULL_FRAMES = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """A queue with servers of its own.

    Parameters
    ----------
    rate_pps : float
    mix : ServiceMix
    servers, room : int
        Frames in service at once; frames in all.
    independent : bool
        Whether one frame's service time says nothing about the next one's: one size, or sizes drawn at random.
    exact : bool
        Whether the service time is known and not a mean over contention.
    """

    rate_pps: float
    mix: ServiceMix
    servers: int
    room: int
    independent: bool
    exact: bool

    @property
    def load(self) -> float:
        """Offered work over servers."""
        return self.rate_pps * self.mix.mean_s / self.servers

    @property
    def full_queue(self) -> FullQueue:
        """The station in overload."""
        return FullQueue(
            arrival_pps=self.rate_pps,
            service_s=self.mix.mean_s,
            servers=self.servers,
            capacity_frames=self.room,
        )


def law_of(station: Station, arriving: Arriving, note: Callable[[str], None]) -> tuple[Queue | None, str]:
    """Return the queueing result that describes a station; or None and why there is none."""
    mix, load = station.mix, station.load
    constant = mix.law == "deterministic" and station.exact
    if (
        constant
        and arriving.spacing
        and arriving.spacing.fits(max(mix.times_s))
        and arriving.kind != "regular"
    ):
        return NobodyMeets(service=mix), ""
    if not station.exact and abs(load - 1.0) < OVERLOADED - 1.0:
        return None, f"is loaded to {load:.1%}, where a small error in its mean contention decides"
    if arriving.kind == "poisson" and load < 50.0:
        queue = _poisson(station)
        if queue is not None:
            if mix.law == "other" and isinstance(queue, MG1K):
                note(
                    "loss and delay are those of a gamma law with the same mean and variance, an approximation"
                )
            return queue, ""
    if arriving.kind == "regular" and mix.law == "deterministic" and mix.is_one_size and station.servers == 1:
        return DD1(arrival_pps=station.rate_pps, service_s=mix.mean_s, capacity_frames=station.room), ""
    return _two_moments(station, arriving, note)


def _two_moments(
    station: Station, arriving: Arriving, note: Callable[[str], None]
) -> tuple[Queue | None, str]:
    mix, load = station.mix, station.load
    known = arriving.kind in {"renewal", "poisson", "regular"} and arriving.scv <= _MOST_ARRIVAL_SCV
    apart = arriving.kind != "regular" or station.independent
    if known and apart and station.servers == 1 and arriving.scv + mix.squared_cv > 0.0:
        finite = GIG1K(
            arrival_pps=station.rate_pps,
            arrival_scv=arriving.scv,
            service_s=mix.mean_s,
            service_scv=mix.squared_cv,
            capacity_frames=station.room,
        )
        if load >= 1.0 or finite.loss_ratio > _NO_LOSS:
            return finite, ""
        return _unlimited(station, arriving), ""
    # Full enough that chance empties no queue: it drifts to its end faster than it spreads.
    if load >= OVERLOADED and (load - 1.0) * station.room >= _FULL_FRAMES:
        return station.full_queue, ""
    if known and apart and load < 1.0:
        queue = _unlimited(station, arriving)
        waiting = queue.waiting_mean_s * station.rate_pps
        # The number waiting falls off about exponentially.
        if waiting <= 0.0 or (station.room - station.servers) / waiting > 7.0:
            note("losses by chance are not counted where several units serve one queue")
            return queue, ""
        return (
            None,
            f"has a queue of {station.room - station.servers} frames, too short for its load of {load:.3g}",
        )
    if arriving.kind == "regular" and not station.independent:
        return None, "serves a fixed sequence of frame sizes at equal gaps, of which no closed form is known"
    if arriving.kind == "renewal" and arriving.scv > _MOST_ARRIVAL_SCV:
        return None, f"gets long bursts (variation of gaps {arriving.scv:.3g}), which no approximation covers"
    return None, arriving.why or f"is at a load of {load:.3g}, where no queueing result applies"


def _unlimited(station: Station, arriving: Arriving) -> GIGc:
    return GIGc(
        arrival_pps=station.rate_pps,
        arrival_scv=arriving.scv,
        service_s=station.mix.mean_s,
        service_scv=station.mix.squared_cv,
        servers=station.servers,
    )


def _poisson(station: Station) -> Queue | None:
    rate, mix, servers, load = station.rate_pps, station.mix, station.servers, station.load
    small = station.room <= _MOST_STATES
    if not small and load < 1.0 and not _roomy(station):
        return None
    if mix.law == "exponential" and mix.is_one_size:
        if small:
            lossy = MMcK(
                arrival_pps=rate, service_s=mix.mean_s, servers=servers, capacity_frames=station.room
            )
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
    """Whether a long queue with Poisson arrivals may be taken as endless."""
    load = station.load
    spread = load + station.mix.squared_cv
    return 2.0 * (1.0 - load) * (station.room - station.servers) > 7.0 * max(spread, 1e-9)
