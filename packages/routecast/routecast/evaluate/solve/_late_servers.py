"""Queues whose server is away at times: interrupted, woken by an interrupt, or asleep until a frame arrives."""

from __future__ import annotations

import math
from collections.abc import Callable

from routecast.evaluate._general_queues import DD1
from routecast.evaluate._queue import MMcK, Queue
from routecast.evaluate._server_vacations import (
    DD1Interrupted,
    DD1SetUp,
    InterruptedStart,
    MG1SetUp,
    MixedTime,
    SetUpAdded,
)
from routecast.evaluate._two_moment_queues import GIG1K, GIGc
from routecast.evaluate.solve._arrivals import ArrivalProcess
from routecast.evaluate.solve._cost import Cost
from routecast.evaluate.solve._stations import FullQueue, Station, law_of
from routecast.evaluate.solve._unknown_shares import SPREAD
from routecast.evaluate.solve.fluid import Fluid
from routecast.quantity.schema import field, value
from routecast.router.model import RandomTime

_RARE = 1e-6
_STRADDLES = 0.01
"""Share of idle times on the other side of a threshold that a mean latency can bear."""
_RARE_LOSS = 1e-3


def late_queue(
    fluid: Fluid, index: int, station: Station, arriving: ArrivalProcess, note: Callable[[str], None]
) -> tuple[Queue | None, str, bool]:
    """Return the queue of a station whose server may be away, or None and the reason; and whether frames wake it."""
    queue, reason = interrupted_queue(fluid, index, station, arriving), ""
    if queue is None:
        queue, reason = law_of(station, arriving, note)
    if queue is not None and idle_times_straddle(station, arriving, fluid.costs[index]):
        return None, "stays awake or sleeps by how long each frame takes, between arrivals at equal gaps", False
    sleep = set_up_of(fluid, index, station, arriving)
    if queue is not None and sleep is not None:
        queue, reason = sleeping_queue(station, queue, arriving, sleep)
    return queue, reason, sleep is not None


def interrupted_queue(fluid: Fluid, index: int, station: Station, arriving: ArrivalProcess) -> Queue | None:
    """Return the queue of one interrupted server with equal gaps and constant service; None for other queues.

    The result is also None where interruptions are so long that the queue often overflows, because two-moment laws take
    the length of the queue into account.
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
    # Backlogs that overlap fill the queue together, which the loss of a single one does not count. Those frames wait
    # longer than the queue holds, and meet a backlog of which another is a part.
    together = min(queue.waiting_tail(queue.room_frames / station.rate_pps), queue.waiting_tail(0.0) ** 2)
    return queue if max(queue.loss_ratio, together) <= _RARE_LOSS else None


@value
class SetUp:
    """Time between the arrival of the frame that wakes a task unit and the start of its service."""

    sleep: RandomTime | MixedTime = field("The wake-up, and the time to leave a sleep state")
    work_s: float = field("Work of the interrupt")

    @property
    def longest_s(self) -> float:
        """Time that it almost never exceeds, s."""
        return self.sleep.quantile_s(1.0 - _RARE) + self.work_s


def set_up_of(fluid: Fluid, index: int, station: Station, arriving: ArrivalProcess) -> SetUp | None:
    """Return the set-up of a task unit that interrupts wake, or whose unit sleeps; None if it takes no time."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    factor = float(fluid.factor[index])
    work_s = cost.interrupt_s * factor
    wakeup = task.activation.wakeup or RandomTime()
    start: RandomTime | InterruptedStart = wakeup
    added_s = 0.0
    if cost.scatter_s > 0.0 and work_s > 0.0:
        # Interruptions strike the work of the interrupt, too; its mean holds theirs already.
        alone_s = work_s / cost.stretch
        added_s = work_s - alone_s
        needs = [(need.units, fluid.model.pool(need.pool).interruptions) for need in task.needs]
        strikes = math.fsum(units * its.rate_hz for units, its in needs if its is not None) * alone_s
        variance_s2 = cost.scatter_s * alone_s
        start = InterruptedStart(
            wakeup=wakeup, added_s=added_s, added_variance_s2=variance_s2, none_ratio=math.exp(-strikes)
        )
    if not cost.sleep_states and cost.linger_s <= 0.0:
        if cost.sleep_s <= 0.0 and (work_s <= 0.0 or not cost.exhaustive):
            return None
        random = start if isinstance(start, RandomTime) else MixedTime(parts=((1.0, 0.0, True),), random=start)
        return SetUp(sleep=random, work_s=work_s - added_s)
    if station.load >= 1.0:
        return None
    set_up = cost.set_ups(
        station.rate_pps / station.servers, factor, equal_gaps=arriving.kind == "regular" and station.servers == 1
    )
    parts = [(chance, time_s - added_s if is_woken else time_s, is_woken) for chance, time_s, is_woken in set_up]
    mixed = MixedTime(parts=tuple(parts), random=start)
    return SetUp(sleep=mixed, work_s=0.0) if mixed.average_s > 0.0 else None


def idle_times_straddle(station: Station, arriving: ArrivalProcess, cost: Cost) -> bool:
    """Return whether idle times between arrivals at equal gaps fall on both sides of an end of lingering or awakeness.

    An idle time is the gap less the service, so services that vary decide each time whether the unit stays awake, and
    the mean idle time does not tell how often.
    """
    if arriving.kind != "regular" or station.servers > 1 or station.load >= 1.0:
        return False
    ends_s = [cost.linger_s] if cost.linger_s > 0.0 else []
    ends_s += [cost.linger_s + after_s for after_s, _ in cost.sleep_states if after_s > 0.0]
    mix, gap_s = station.mix, 1.0 / station.rate_pps
    if mix.scv <= 0.0:
        shortest_s, longest_s = min(mix.times_s), max(mix.times_s)
    else:
        law = "gamma" if mix.law == "other" else mix.law
        spreads = [RandomTime(mean_s=time_s, variation=law, scv=mix.scv) for time_s in mix.times_s]
        shortest_s = min(spread.quantile_s(_STRADDLES) for spread in spreads)
        longest_s = max(spread.quantile_s(1.0 - _STRADDLES) for spread in spreads)
    return any(gap_s - longest_s < end_s < gap_s - shortest_s for end_s in ends_s)


def sleeping_queue(station: Station, queue: Queue, arriving: ArrivalProcess, set_up: SetUp) -> tuple[Queue | None, str]:
    """Return the queue of a server that sleeps, given the queue without sleep; or None and the reason."""
    if isinstance(queue, FullQueue) or station.load >= 1.0:
        idle = 0.0 if isinstance(queue, FullQueue) else 1.0 - (1.0 - queue.loss_ratio) * station.load / station.servers
        if idle * station.rate_pps * (set_up.sleep.average_s + set_up.work_s) > _RARE_LOSS:
            return None, "is empty at times and then sleeps, although it is overloaded"
        return queue, "" if station.load > 1.0 else "is just full"
    if station.servers > 1:
        return None, "sleeps until a frame arrives and then works on several frames at once"
    # The frames that arrive during a long set-up, with the spread of Poisson arrivals, and the frames in the queue.
    frames_during = station.rate_pps * set_up.longest_s
    spread = SPREAD * math.sqrt(frames_during) if arriving.kind == "poisson" else 0.0
    frames_waiting = 10.0 * (station.rate_pps * queue.waiting_mean_s + 1.0) if arriving.kind == "poisson" else 1.0
    if frames_during + spread + frames_waiting > station.room:
        room = station.room - station.servers
        return (None, f"can lose frames from its queue of {room} while it wakes, without a known closed form")
    if arriving.kind == "poisson" and not isinstance(queue, (GIG1K, GIGc, MMcK)) and queue.loss_ratio <= 0.0:
        return MG1SetUp(arrival_pps=station.rate_pps, queue=queue, set_up=set_up.sleep, work_s=set_up.work_s), ""
    if arriving.kind == "regular" and station.mix.is_one_size:
        set_up_queue = DD1SetUp(
            arrival_pps=station.rate_pps, service_s=station.mix.mean_s, set_up=set_up.sleep, work_s=set_up.work_s
        )
        return (set_up_queue if isinstance(queue, DD1) else SetUpAdded(queue=queue, set_up=set_up_queue)), ""
    if arriving.kind == "poisson":
        return None, "sleeps until a frame arrives and loses frames by chance, without a known closed form"
    return None, "sleeps until a frame arrives, and its frames arrive neither at random nor at equal gaps"
