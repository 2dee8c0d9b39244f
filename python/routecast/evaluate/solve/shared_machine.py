"""Task units on a shared machine: services that interruptions lengthen, servers that sleep between busy periods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from routecast.evaluate.queueing.general import DD1, ServiceMix
from routecast.evaluate.queueing.interrupted import DD1Interrupted
from routecast.evaluate.queueing.markov import MMcK, Queue
from routecast.evaluate.queueing.mixed_time import MixedTime
from routecast.evaluate.queueing.set_up import DD1SetUp, MG1SetUp, SetUpAdded
from routecast.evaluate.queueing.two_moments import GIG1K, GIGc
from routecast.evaluate.solve.arrivals import Arriving
from routecast.evaluate.solve.cost import Cost
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.laws import Station
from routecast.evaluate.solve.stations import FullQueue
from routecast.router.random_time import RandomTime

__all__ = ["SetUp", "asleep", "completed", "interrupted", "set_up_of"]

_RARE = 1e-6
_SPREAD = 6.0
_RARE_LOSS = 1e-3


def completed(mix: ServiceMix, cost: Cost) -> ServiceMix:
    """Return the completion times of services that are interrupted; ``mix`` has their means already.

    ``E[C²] = E[S²]·s² + E[S]·r·E[D²]`` with ``s = 1 + r·E[D]`` at rate r (Avi-Itzhak and Naor, Operations Research
    11(3), 1963); one variation for all sizes gives the mix its two moments.
    """
    if cost.scatter_s <= 0.0:
        return mix
    second = math.fsum(share * time**2 for share, time in zip(mix.shares, mix.times_s, strict=True))
    if second <= 0.0:
        return mix
    return replace(mix, scv=mix.scv + cost.scatter_s / cost.stretch * mix.mean_s / second, law="other")


def interrupted(fluid: Fluid, index: int, station: Station, arriving: Arriving) -> Queue | None:
    """Return the queue of one interrupted server with equal gaps and constant service; None where it is not that.

    Nor is it where interruptions are so long that they overflow the queue often: laws by two moments know of its end.
    """
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    constant = task.service.variation == "deterministic" and station.exact and station.mix.is_one_size
    if cost.scatter_s <= 0.0 or not constant or arriving.kind != "regular" or len(task.needs) > 1:
        return None
    interruptions = fluid.model.pool(task.needs[0].pool).interruptions
    if interruptions is None or task.needs[0].units > 1 or station.servers > 1 or station.load >= 1.0:
        return None
    queue = DD1Interrupted(
        arrival_pps=station.rate_pps,
        service_s=station.mix.mean_s / cost.stretch,
        interruptions=interruptions,
        room_frames=station.room - station.servers,
    )
    return queue if queue.loss_ratio <= _RARE_LOSS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """What passes between the frame that wakes a task unit and the work on it.

    Parameters
    ----------
    sleep : RandomTime or MixedTime
        The wake-up, and the way out of a sleep state.
    work_s : float
        Work of the interrupt.
    """

    sleep: RandomTime | MixedTime
    work_s: float

    @property
    def longest_s(self) -> float:
        """Time that it hardly ever exceeds."""
        return self.sleep.quantile_s(1.0 - _RARE) + self.work_s


def set_up_of(fluid: Fluid, index: int, station: Station, arriving: Arriving) -> SetUp | None:
    """Return the set-up of a task unit that interrupts wake, or whose unit falls asleep; None if it takes no time."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    factor = float(fluid.factor[index])
    work_s = cost.interrupt_s * factor
    wakeup = task.activation.wakeup or RandomTime()
    if not cost.rest and cost.linger_s <= 0.0:
        if cost.sleep_s <= 0.0 and (work_s <= 0.0 or not cost.exhaustive):
            return None
        return SetUp(sleep=wakeup, work_s=work_s)
    if station.load >= 1.0:
        return None
    found = cost.set_ups(
        station.rate_pps / station.servers, factor, even=arriving.kind == "regular" and station.servers == 1
    )
    lingers = cost.linger_s > 0.0
    parts = tuple((chance, time_s, not (lingers and time_s == 0.0)) for chance, time_s in found)
    mixed = MixedTime(parts=parts, random=wakeup)
    return SetUp(sleep=mixed, work_s=0.0) if mixed.average_s > 0.0 else None


def asleep(station: Station, queue: Queue, arriving: Arriving, set_up: SetUp) -> tuple[Queue | None, str]:
    """Return the queue of a server that sleeps, given that of one that does not; or None and why there is none."""
    if isinstance(queue, FullQueue) or station.load >= 1.0:
        return queue, "" if station.load > 1.0 else "is just full"
    if station.servers > 1:
        return None, "sleeps until a frame comes and then works on several frames at once"
    # What comes during a long set-up, with the spread of Poisson arrivals, and what waits anyway.
    during = station.rate_pps * set_up.longest_s
    spread = _SPREAD * math.sqrt(during) if arriving.kind == "poisson" else 0.0
    waits = 10.0 * (station.rate_pps * queue.waiting_mean_s + 1.0) if arriving.kind == "poisson" else 1.0
    if during + spread + waits > station.room:
        room = station.room - station.servers
        return (
            None,
            f"can lose frames from its queue of {room} while it wakes, of which no closed form is known",
        )
    if arriving.kind == "poisson" and not isinstance(queue, (GIG1K, GIGc, MMcK)) and queue.loss_ratio <= 0.0:
        return MG1SetUp(
            arrival_pps=station.rate_pps, queue=queue, set_up=set_up.sleep, work_s=set_up.work_s
        ), ""
    if arriving.kind == "regular" and station.mix.is_one_size:
        alone = DD1SetUp(
            arrival_pps=station.rate_pps,
            service_s=station.mix.mean_s,
            set_up=set_up.sleep,
            work_s=set_up.work_s,
        )
        return (alone if isinstance(queue, DD1) else SetUpAdded(queue=queue, set_up=alone)), ""
    if arriving.kind == "poisson":
        return None, "sleeps until a frame comes and loses frames by chance, of which no closed form is known"
    return None, "sleeps until a frame comes, and its frames come neither at random nor at equal gaps"
