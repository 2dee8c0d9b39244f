"""Latency and loss from queueing theory, where the model is such a queue; where none applies, the reason.

Every task unit that takes time is a station. A station is analysed if its units are its own, so that its
frames wait for nothing but each other. What arrives there decides the result: Poisson arrivals (kept by
routes that choose independently of the instants, and by M/M/c stations, Burke 1956), equal gaps, or gaps
known by two moments (Whitt's QNA rules, Bell System Technical Journal 62(9), 1983). Latency is from last bit
in to first bit out (S9): stations on the way and the wait for the outgoing link, not the transmission.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from routecast.evaluate._general_queues import DD1, MG1, Completion, ServiceMix
from routecast.evaluate._queue import MeanQueue, MMc, MMcK, Queue, Tandem, delay_of
from routecast.evaluate._server_vacations import (
    DD1Interrupted,
    DD1SetUp,
    InterruptedStart,
    MG1SetUp,
    MixedTime,
    SetUpAdded,
)
from routecast.evaluate._two_moment_queues import GIG1K, GIGc
from routecast.evaluate.solve._arrivals import ArrivalProcess, departures, entering_arrivals, merge, split
from routecast.evaluate.solve._chance_loss import BURSTS_ERROR, MAX_CHANCE_LOSS, ChanceLoss
from routecast.evaluate.solve._cost import Cost, slowest_over_mean
from routecast.evaluate.solve._limits import queue_in_window, window_notes
from routecast.evaluate.solve._scheduling_shares import Component, served_at_once
from routecast.evaluate.solve._stations import (
    MOST_RING_FRAMES,
    OVERLOADED,
    FullQueue,
    PolledQueue,
    PolledRing,
    SharedUnits,
    Station,
    behind_link,
    law_of,
)
from routecast.evaluate.solve._unknown_shares import SPREAD, why_unknown
from routecast.evaluate.solve.flow import FlowGraph, RatesUnderLoss, Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.trial import Delay
from routecast.load.offered import line_rate_pps
from routecast.quantity.schema import field, value
from routecast.router.model import Interruptions, RandomTime, TaskUnit

_RARE = 1e-6
_STRADDLES = 0.01
"""Share of idle times on the other side of a threshold that a mean latency can bear."""
_RARE_LOSS = 1e-3
_LATENCY_ERROR, _LATENCY_ERROR_WINDOWS = 0.1, 0.15
_LATENCY_ERROR_SET_UPS, _LATENCY_ERROR_INTERRUPTED = 0.25, 0.5
"""Error of a mean latency against the simulator's, as a share of it: in general, with windows, and where frames at
equal gaps meet set-ups or interruptions (``benches/fuzz_models.py``; the last two were chosen on its seeds)."""
_LOSS_ERROR, _LOSS_ERROR_BURSTS = 0.01, 0.04
"""Error of a loss by overload against the simulator's in nearly all random routers, as a share of the frames: with one
frame size and no bursts, and otherwise (``benches/fuzz_models.py``)."""
_NOTABLE = 0.01
_LINK = "M/G/1 at the outgoing link (approximation)"
_IDLE_LINK = 0.01
_JUST_FULL = 1e-3
_KNOWN = 1e-5


def completion_times(mix: ServiceMix, cost: Cost, interruptions: Interruptions | None = None) -> ServiceMix:
    """Return the completion times of interrupted services; ``mix`` contains their means already.

    ``interruptions``: those of the one unit that serves; None where it needs several units.

    ``E[C²] = E[S²]·s² + E[S]·r·E[D²]`` with ``s = 1 + r·E[D]`` at rate r (Avi-Itzhak and Naor, Operations Research
    11(3), 1963); one variation for all sizes gives the two moments of the mix.
    """
    if cost.scatter_s <= 0.0:
        return mix
    second = math.fsum(share * time**2 for share, time in zip(mix.shares, mix.times_s, strict=True))
    if second <= 0.0:
        return mix
    completion = Completion(law=mix.law, scv=mix.scv, interruptions=interruptions) if interruptions else None
    scv = mix.scv + cost.scatter_s / cost.stretch * mix.mean_s / second
    return replace(mix, scv=scv, law="other", completion=completion)


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


class ServiceTimes:
    """Service times under the contention of a fluid state."""

    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        share_by_bytes = fluid.load.frames.share_by_bytes
        self.sizes_bytes = tuple(share_by_bytes)
        self.shares = tuple(share_by_bytes.values())
        """Shares of the frame sizes of the load, smallest first."""
        self._mixes: dict[tuple[object, ...], ServiceMix] = {}

    def of(self, index: int, shares: tuple[float, ...] = ()) -> ServiceMix:
        """Return the service times of a task unit for these shares of the frame sizes, or for those of the load."""
        fluid = self.fluid
        task, cost = fluid.graph.tasks[index], fluid.costs[index]
        # The interrupt that begins a busy period is its set-up, not a part of its services.
        is_frame_alone = cost.drains and cost.batch_s <= 0.0
        mean_s = cost.frame_s * float(fluid.factor[index]) if is_frame_alone else float(fluid.service_s[index])
        pool = task.needs[0].pool if task.needs else ""
        key = (task.service, pool, task.batch_frames, mean_s, cost.scatter_s, cost.stretch, shares)
        if key not in self._mixes:
            self._mixes[key] = self._mix(task, cost, mean_s, shares or self.shares)
        return self._mixes[key]

    def _mix(self, task: TaskUnit, cost: Cost, mean_s: float, shares: tuple[float, ...]) -> ServiceMix:
        frequency_hz = self.fluid.model.pool(task.needs[0].pool).frequency_hz if task.needs else None
        times = [
            task.service.mean_s(size, frequency_hz=frequency_hz, batch_frames=task.batch_frames)
            for size in self.sizes_bytes
        ]
        load_mean_s = math.fsum(share * time for share, time in zip(self.shares, times, strict=True))
        scale = mean_s / load_mean_s if load_mean_s > 0.0 else 1.0
        law = task.service.variation
        mix = ServiceMix(
            shares=shares, times_s=tuple(time * scale for time in times), scv=task.service.squared_cv, law=law
        )
        is_single = len(task.needs) == 1 and task.needs[0].units == 1
        return completion_times(
            mix, cost, self.fluid.model.pool(task.needs[0].pool).interruptions if is_single else None
        )


_NOTE = re.compile(r'("[^"]*")(.*)', re.DOTALL)


def total_delay(
    graph: FlowGraph, rates: Vector, admitted: Vector, queues: Mapping[int, Queue], port_wait_s: Mapping[int, float]
) -> tuple[Delay, Delay]:
    """Return latency and waiting time of the forwarded frames.

    ``rates``: arriving rate by node and stream; ``admitted``: share of the arriving frames that each node serves;
    ``queues``: queue by station; ``port_wait_s``: wait for the outgoing link by port node.
    """
    through, forwarded, port_s = _through(graph, rates, admitted, queues, port_wait_s)
    sojourn_s = sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in queues.items()) + port_s
    waiting_s = sum(through[i] / forwarded * queue.waiting_mean_s for i, queue in queues.items()) + port_s
    chain = _chain(rates, queues, forwarded, port_s)
    if chain is not None:
        return chain.sojourn(), chain.waiting()
    method = ", ".join(dict.fromkeys(queue.method for queue in queues.values()))
    one_each = math.isclose(sum(through.values()), forwarded, rel_tol=1e-6) and _parallel_only(graph, queues)
    series = len(queues) > 1 and not one_each

    def delay(mean_s: float, tails: list[tuple[float, Callable[[float], float]]]) -> Delay:
        behind = port_s > _NOTABLE * mean_s
        method_text = ", ".join(filter(None, [method, _LINK if behind else ""])) or "no station takes time"
        if behind or not one_each:
            return Delay(mean_s=mean_s, method=method_text + ("; means add up, percentiles do not" if series else ""))
        return delay_of(mean_s, lambda time_s: math.fsum(share * tail(time_s) for share, tail in tails), method_text)

    shares: dict[Queue, float] = {}  # stations with equal queues have one tail
    for i, queue in queues.items():
        shares[queue] = shares.get(queue, 0.0) + through[i] / forwarded
    return (
        delay(sojourn_s, [(share, queue.sojourn_tail) for queue, share in shares.items()]),
        delay(waiting_s, [(share, queue.waiting_tail) for queue, share in shares.items()]),
    )


def link_matters(
    graph: FlowGraph, rates: Vector, admitted: Vector, queues: Mapping[int, Queue], port_wait_s: Mapping[int, float]
) -> bool:
    """Whether the wait for outgoing links exceeds one per cent of the latency."""
    through, forwarded, port_s = _through(graph, rates, admitted, queues, port_wait_s)
    inside_s = sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in queues.items())
    return port_s > _NOTABLE * (inside_s + port_s)


def _through(
    graph: FlowGraph, rates: Vector, admitted: Vector, queues: Mapping[int, Queue], port_wait_s: Mapping[int, float]
) -> tuple[dict[int, float], float, float]:
    """Return the rate of finally forwarded frames by station and in total, and their mean wait for a link."""
    survive = graph.surviving(admitted, rates)
    through = {i: float(rates[i].sum()) * float(admitted[i]) * float(survive[i]) for i in queues}
    out = {node: float(rates[node].sum()) * float(admitted[node]) for node in range(len(graph.tasks), graph.exit + 1)}
    forwarded = sum(out.values())
    return through, forwarded, sum(wait * out[node] / forwarded for node, wait in port_wait_s.items())


def _parallel_only(graph: FlowGraph, queues: Mapping[int, Queue]) -> bool:
    """Whether no station lies behind another one."""
    behind: set[int] = set()
    for index in range(len(graph.tasks)):
        if index in behind and index in queues:
            return False
        if index in behind or index in queues:
            behind.update(node for node, _ in graph.edges[index])
    return True


def _chain(rates: Vector, queues: Mapping[int, Queue], forwarded: float, port_s: float) -> Tandem | None:
    """Return the stations as a Jackson tandem, if every frame passes all of them in one order."""
    stations = [queue for queue in queues.values() if isinstance(queue, MMc)]
    if len(stations) < 2 or len(stations) != len(queues) or port_s > 0.0:
        return None
    all_pass = all(math.isclose(float(rates[i].sum()), forwarded, rel_tol=1e-9) for i in queues)
    return Tandem(stations=tuple(stations)) if all_pass else None


def joined_notes(notes: list[str]) -> tuple[str, ...]:
    """Return the notes, with equal notes on several task units joined: ``"core 0" and 3 more: …``."""
    places: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        match = _NOTE.fullmatch(note)
        name, text = (match[1], match[2]) if match else ("", note)
        places.setdefault(text, []).append(name)
    return tuple(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}{text}" for text, names in places.items()
    )


@value
class DelayAnswer:
    """Loss by place, served work, latency and waiting where known, queue lengths, and notes."""

    drops_pps: Mapping[str, float]
    work_pps: Mapping[str, float] = field("Served rate by task unit, in frames/s of the load's mean size")
    forwarded_bytes: float = field("Mean size of the frames that leave by a port")
    offered_pps: float = field("Offered rate, frames/s, where not that of the fluid state", default=math.nan)
    in_flight_pps: float = field(
        "Frames of a trace that are inside the router at its end, over its length", default=0.0
    )
    latency: Delay | None = None
    waiting: Delay | None = None
    queue_frames: Mapping[str, float] = dataclasses.field(default_factory=dict)
    arriving: Mapping[str, str] = field(
        'Arrival process by task unit: ``"poisson"``, ``"regular"``, …', default_factory=dict
    )
    notes: tuple[str, ...] = ()
    loss_unknown: str = field("Reason why the loss by chance is unknown; empty if it is known", default="")
    latency_error_s: tuple[float, float] = field(
        "Bounds of the error of the mean latency, below and above, s", default=(0.0, 0.0)
    )
    loss_error_ratio: float = field("Bound of the error of the loss ratio by overload, where known", default=0.0)
    forwarded_range_pps: tuple[float, float] = field(
        "Bounds of the forwarded rate where frames are inside at the end, frames/s; NaN where not computed",
        default=(math.nan, math.nan),
    )
    chance_loss_ratio: float = field("Upper bound of the loss by chance, where known", default=0.0)
    middle_loss_ratio: float = field(
        "Part of the loss by chance that the loss ratio states, where notable", default=0.0
    )
    possible_losses: tuple[str, ...] = field("Task units and links that may lose a notable share by chance", default=())


def delays(fluid: Fluid) -> DelayAnswer:
    """Return delays and losses: each task unit in the order of the graph as a queue."""
    walk = _DelayComputation(fluid)
    for index in range(len(fluid.graph.tasks)):
        walk.station(index)
    for number in range(fluid.graph.ports):
        walk.port_out(number)
    return walk.answer()


_Parts = tuple[FlowGraph, Vector, Vector, Mapping[int, Queue], Mapping[int, float]]


def _units(fluid: Fluid, index: int) -> int:
    """Return the number of frames that may be in service at a time."""
    task = fluid.graph.tasks[index]
    if not fluid.uses[index]:
        return task.parallel
    part, units = fluid.uses[index][0]
    return served_at_once(task, len(part.units) // units)


def _exact(fluid: Fluid, index: int) -> bool:
    """Whether the service time is exact, not a mean over contention."""
    return abs(float(fluid.factor[index]) - 1.0) <= _KNOWN


def _obstacle(fluid: Fluid, index: int) -> str:
    """Return the reason why a task unit is not a queue of its own; empty if it is one."""
    task, cost = fluid.graph.tasks[index], fluid.costs[index]
    if fluid.steady is not None:
        threaded = task.thread or task.holds_back or task.activation.kind == "thread"
        if threaded or fluid.steady.machine.propagation.is_looked_at(index):
            return "is a thread, for whose turns and rings no closed form is known"
    if len(task.needs) > 1:
        return "needs units of several pools at once"
    if task.needs and slowest_over_mean(task, fluid.model, cost) > 1.0 + _KNOWN:
        pool = fluid.model.pool(task.needs[0].pool)
        differ = "differ in speed" if pool.unit_speed_ratio else "are changed at a cost"
        return f'uses units of pool "{pool.name}" that {differ}'
    costs = cost.interrupt_s > 0.0 and not cost.drains
    if task.activation.kind == "interrupt" and (costs or cost.moderation_s > 0.0):
        return "is activated by interrupts"
    if cost.batch_s > 0.0:
        return "pays a cost per batch"
    if _units(fluid, index) == 0:
        return "can have fewer frames in service than it asks for"
    for part, _ in fluid.uses[index]:
        if len(part.members) > 1:
            other = next(member for member, _ in part.members if member != index)
            return f'shares units of pool "{part.pool.name}" with "{fluid.graph.tasks[other].name}"'
    return ""


def _size_dependence(fluid: Fluid, index: int, mix: ServiceMix) -> str:
    """Return why the loss of an overloaded queue at shared units depends on frame sizes; empty if it does not."""
    shared = any(len(part.members) > 1 for part, _ in fluid.uses[index])
    if not shared or fluid.admitted_ratio[index] >= 1.0 or max(mix.times_s) <= min(mix.times_s):
        return ""
    return "and large frames find room more often than small frames, which follow each other more closely"


def _fluid_ratio(fluid: Fluid, index: int, rate: float) -> float:
    """Return the share of frames that the fluid state serves after the upstream losses by queueing theory."""
    if fluid.admitted_ratio[index] >= 1.0:
        return 1.0
    served = float(fluid.rates[index].sum() * fluid.admitted_ratio[index])
    return min(1.0, served / rate)


def _unknown_shares(fluid: Fluid) -> list[str]:
    """Return by task unit why its share of common units is unknown; empty where known."""
    tasks = fluid.graph.tasks
    rates, factor = fluid.rates.sum(axis=1).tolist(), fluid.factor.tolist()
    reasons = [""] * len(tasks)
    for part in fluid.components:
        threads = fluid.steady is not None
        why = why_unknown(part, tasks, fluid.costs, rates, factor, threads=threads)
        for index, _ in part.members:
            reasons[index] = reasons[index] or why or _unknown_switches(fluid, part, index)
    return reasons


def _unknown_switches(fluid: Fluid, part: Component, index: int) -> str:
    """Return why the switches of an overloaded task unit are not known; empty if they are, or cost little.

    Every grant switches where task units that serve one frame at a time take turns on one unit, and all of them
    have frames all the time. Elsewhere a unit may be granted to the same task unit again.
    """
    tasks = fluid.graph.tasks
    if fluid.steady is not None:
        return ""  # the fixed point of threads counts their switches
    cost = part.pool.switch_cost_s / fluid.costs[index].batch_frames
    if cost <= _LOSS_ERROR / 2.0 * fluid.costs[index].busy_s or fluid.admitted_ratio[index] >= 1.0:
        return ""
    members = [tasks[member] for member, _ in part.members]
    takes_turns = len(part.units) == 1 and all(
        task.parallel == 1 and task.request == "task" and task.weight == members[0].weight for task in members
    )
    if takes_turns and all(fluid.admitted_ratio[member] < 1.0 for member, _ in part.members):
        return ""
    return "and how often grants switch its units is not known"


def _min_service_s(fluid: Fluid, index: int, mix: ServiceMix) -> float:
    """Return the least uninterrupted service time of a task unit, s; 0 where unknown."""
    constant = fluid.graph.tasks[index].service.variation == "deterministic" and _exact(fluid, index)
    return min(mix.times_s) / fluid.costs[index].stretch if constant else 0.0


class _SharedQueues:
    """The queues of task units that share units, under the losses that are computed so far.

    ``rates`` and ``admitted``: arriving rates and served shares by node, which go on to change.
    """

    def __init__(
        self, fluid: Fluid, service: ServiceTimes, rates: Vector, admitted: Vector, on_note: Callable[[str], None]
    ) -> None:
        self._fluid, self._service, self._rates, self._admitted = fluid, service, rates, admitted
        self._on_note = on_note
        self._rates_under_loss: RatesUnderLoss | None = None
        """Task units that share units may follow later on the path, where losses are not computed yet."""
        self._lost: list[int] = []
        """Task units whose losses the rates do not contain yet."""
        self._units: dict[int, SharedUnits] = {}
        self._queue_of_component: dict[int, MeanQueue | None] = {}
        """By number of a shared component: its queue, valid until a loss changes its arrivals."""

    def note_loss(self, index: int) -> None:
        """Note that a task unit loses frames."""
        self._lost.append(index)

    def load(self, index: int) -> tuple[float, float]:
        """Return the load of the shared units of a task unit, and the squared variation of their services."""
        (part, _), *_ = self._fluid.uses[index]
        under_loss = self._rates_under_loss
        return self._units[part.number].load(under_loss.total if under_loss is not None else self._rates.sum(axis=1))

    def queue(self, index: int, arriving: ArrivalProcess) -> Queue | None:
        """Return the queue of a task unit on shared units; None where none is known."""
        fluid = self._fluid
        parts = [part for part, _ in fluid.uses[index]]
        if len(parts) != 1 or arriving.kind == "unknown" or fluid.load.arrivals.kind != "poisson":
            return None
        queue = self._common_queue(parts[0])
        if queue is not None and "approximat" in queue.method:
            name = parts[0].pool.name
            self._on_note(f'pool "{name}" is taken as one queue of the frames of all its task units, an approximation')
        if queue is None:
            return None
        # A task unit that serves fewer frames at once than there are units also waits for itself.
        mix, servers = self._service.of(index), _units(fluid, index)
        waiting_s = queue.waiting_s
        if servers < len(parts[0].units):
            rate = float(np.add.reduce(self._rates[index]))
            if rate * mix.mean_s >= servers:
                return None
            own = GIGc(
                arrival_pps=rate, arrival_scv=1.0, service_s=mix.mean_s, service_scv=mix.squared_cv, servers=servers
            )
            waiting_s = max(waiting_s, own.waiting_mean_s)
        return replace(queue, service_s=mix.mean_s, waiting_s=waiting_s)

    def _common_queue(self, part: Component) -> MeanQueue | None:
        if part.number not in self._units:
            self._units[part.number] = SharedUnits(part, self._fluid, self._service.of)
        units = self._units[part.number]
        if not units.plain:
            return None
        if self._rates_under_loss is None:
            self._rates_under_loss = RatesUnderLoss(self._fluid.graph, self._fluid.offered, self._admitted)
        elif self._rates_under_loss.apply_losses(self._lost):
            self._queue_of_component.clear()
        self._lost.clear()
        if part.number not in self._queue_of_component:
            self._queue_of_component[part.number] = units.queue(self._rates_under_loss.total)
        return self._queue_of_component[part.number]


class _DelayComputation:
    def __init__(self, fluid: Fluid) -> None:
        self.fluid = fluid
        self.graph = fluid.graph
        self.arriving: dict[int, list[ArrivalProcess]] = {}
        self.admitted = np.ones(self.graph.exit + 1)
        self.queues: dict[int, Queue] = {}
        self.rates = self.graph.entering(fluid.offered)
        """Complete for a node after all nodes before it."""
        self.service = ServiceTimes(fluid)
        self.notes: list[str] = []
        self.latency_unknown = ""
        self.chance = ChanceLoss(fluid)
        self.of_bursts: set[int] = set()
        """Task units whose loss is that of on-off bursts at one server."""
        self.interruptions_overflow = False
        """Whether interruptions overflow a queue, where two moments say little about the loss."""
        self.port_wait_s: dict[int, float] = {}
        self.approximated: list[str] = []
        self.shared = _SharedQueues(fluid, self.service, self.rates, self.admitted, self.notes.append)
        self.sizes: dict[int, tuple[float, ...]] = {}
        self.kinds: dict[str, str] = {}
        for node, arriving in entering_arrivals(fluid).items():
            self.arriving.setdefault(node, []).append(arriving)

    @cached_property
    def unknown_shares(self) -> list[str]:
        """Reason by task unit why its share of common units is unknown; empty where known."""
        return _unknown_shares(self.fluid)

    def station(self, index: int) -> None:
        """Compute one task unit: its queue, its loss, its departures."""
        self._station(index)
        if self.admitted[index] != 1.0:
            self.shared.note_loss(index)
        self.graph.pass_on(index, self.rates, float(self.admitted[index]))

    def _station(self, index: int) -> None:
        fluid = self.fluid
        task, cost = self.graph.tasks[index], fluid.costs[index]
        if index not in self.arriving:
            return
        arriving = merge(self.arriving[index])
        self.kinds[task.name] = arriving.kind
        row = self.rates[index]
        rate = float(np.add.reduce(row))
        if rate <= 0.0:
            return
        departing = arriving
        window_queue = queue_in_window(fluid, index, arriving, rate)
        if window_queue is not None:
            self.queues[index] = window_queue
            self.admitted[index] = 1.0 - window_queue.loss_ratio
            # A frame that waits for room in a window keeps the units that other frames wait for.
            loss_bound = self.chance.in_window(index, rate, arriving, self.service.of(index, arriving.sizes))
            self.chance.record(task.name, rate, loss_bound, f'"{task.name}" is in a window and has little room')
            why = "follows a window, which its frames leave as its units allow"
            departing = ArrivalProcess(kind="unknown", rate_pps=rate, scv=arriving.scv, why=why, sizes=arriving.sizes)
        elif cost.busy_s > 0.0 or cost.interrupt_s > 0.0 or cost.sleep_s > 0.0:
            mix = self.service.of(index, arriving.sizes)
            admitted_sizes = self._admitted_sizes(index, rate, arriving, mix)
            served = replace(mix, shares=admitted_sizes) if admitted_sizes else mix
            queue, reason = self._queue(index, rate, arriving, served)
            if queue is None:
                self.latency_unknown = self.latency_unknown or f'"{task.name}" {reason}'
                of_bursts = None if _obstacle(fluid, index) else self._of_bursts(index, mix)
                self.admitted[index] = 1.0 - of_bursts[0] if of_bursts is not None else _fluid_ratio(fluid, index, rate)
                share_reason = self.unknown_shares[index] or _size_dependence(fluid, index, mix)
                why = f'"{task.name}" {reason}{share_reason and f", {share_reason}"}'
                if of_bursts is not None:
                    self.chance.record_bursts(task.name, rate, of_bursts, why)
                else:
                    loss_bound = 1.0 if share_reason else self.chance.at_task_unit(index, rate, arriving, mix)
                    if loss_bound > 0.0 and self.admitted[index] >= 1.0 and index in self.chance.fitting:
                        loss_bound = 0.0
                    self.chance.record(task.name, rate, loss_bound, why)
            else:
                self.queues[index] = self._polled(index, rate, queue, mix)
                if isinstance(queue, MeanQueue):
                    self._record_loss_of_shared_queue(index, rate, arriving)
                self.interruptions_overflow |= (
                    cost.scatter_s > 0.0 and queue.loss_ratio > _RARE_LOSS and rate * mix.mean_s < 1.0
                )
                self.admitted[index] = min(1.0 - queue.loss_ratio, 1.0)
                if isinstance(queue, FullQueue):
                    of_bursts = self._of_bursts(index, mix)
                    if of_bursts is not None:
                        self.admitted[index] = 1.0 - of_bursts[0]
                        self.chance.record_bursts(task.name, rate, of_bursts, f'"{task.name}" gets long bursts')
                        why = f'"{task.name}" gets bursts that fill its queue at times only'
                        self.latency_unknown = self.latency_unknown or why
                    else:
                        loss_bound = self.chance.at_task_unit(index, rate, arriving, mix)
                        self.chance.record(task.name, rate, loss_bound, f'"{task.name}" gets long bursts')
            servers = max(_units(self.fluid, index), 1)
            departing = departures(
                arriving,
                queue,
                utilisation=min(rate * mix.mean_s / servers, 1.0),
                service=served,
                servers=servers,
                station=index,
                constant=mix.law == "deterministic" and _exact(self.fluid, index),
                min_gap_s=_min_service_s(fluid, index, mix) if servers == 1 else 0.0,
                sizes=admitted_sizes or arriving.sizes,
            )
        self.sizes[index] = departing.sizes
        for node, fraction in self.graph.edges[index]:
            share = float(row.dot(fraction)) / rate
            if share > 0.0:
                self.arriving.setdefault(node, []).append(
                    split(departing, rate * share, share, fluid, index, node, fraction)
                )

    def _of_bursts(self, index: int, mix: ServiceMix) -> tuple[float, float] | None:
        """Return bounds of the loss of on-off bursts at a task unit with units of its own; None where unknown."""
        before = math.prod(float(self.admitted[station]) for station in self.graph.leading_to(index))
        bounds = self.chance.of_bursts(index, mix, _units(self.fluid, index), 1.0 - before)
        if bounds is not None:
            self.of_bursts.add(index)
        return bounds

    def _record_loss_of_shared_queue(self, index: int, rate: float, arriving: ArrivalProcess) -> None:
        """Record the possible loss of a task unit on shared units, whose frames wait in its own, finite queue.

        At most the frames of all task units wait in it.
        """
        load, scv = self.shared.load(index)
        service = ServiceMix(shares=(1.0,), times_s=(1.0,), scv=scv, law="other")
        name, room = self.graph.tasks[index].name, self.graph.tasks[index].queue_frames
        loss_bound = self.chance.overflow(load, room, arriving, service)
        why = f'"{name}" has a queue of {room} frames before shared units, without a known closed form'
        before = self.chance.why_unknown
        self.chance.record(name, rate, loss_bound, why)
        if self.chance.why_unknown and not before:
            self.latency_unknown = self.latency_unknown or why

    def _admitted_sizes(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> tuple[float, ...]:
        """Return the share of each frame size among the frames that an overloaded queue admits; empty if unchanged."""
        fluid, task, servers = self.fluid, self.graph.tasks[index], max(_units(self.fluid, index), 1)
        if fluid.load.frames.is_fixed or rate * mix.mean_s < OVERLOADED * servers or _obstacle(self.fluid, index):
            return ()
        if (
            arriving.spacing is None
            or arriving.spacing.origin < 0
            or fluid.load.arrivals.kind not in {"cbr", "poisson"}
        ):
            self.notes.append(f'"{task.name}": its loss is taken as the same for all frame sizes, an approximation')
            return ()
        from routecast.evaluate.solve._size_dependent_loss import admitted_by_size

        room = servers + task.queue_frames
        ratio = admitted_by_size(fluid, arriving.spacing.origin, rate, mix, servers=servers, room=room)
        admitted = [share * size_ratio for share, size_ratio in zip(mix.shares, ratio, strict=True)]
        return tuple(share / math.fsum(admitted) for share in admitted)

    def _queue(self, index: int, rate: float, arriving: ArrivalProcess, mix: ServiceMix) -> tuple[Queue | None, str]:
        obstacle = _obstacle(self.fluid, index)
        if obstacle:
            return self.shared.queue(index, arriving), obstacle
        task, servers = self.graph.tasks[index], _units(self.fluid, index)
        frames = self.fluid.load.frames
        station = Station(
            rate_pps=rate,
            mix=mix,
            servers=servers,
            room=servers + task.queue_frames,
            independent=mix.is_one_size or frames.order == "random",
            exact=_exact(self.fluid, index),
        )
        if mix.shares != self.service.of(index, arriving.sizes).shares:
            self.notes.append(
                f'"{task.name}" drops more small frames than large frames, because links leave longer gaps before these'
            )
            return station.full_queue, ""
        queue, reason = interrupted_queue(self.fluid, index, station, arriving), ""
        if queue is None:
            queue, reason = law_of(station, arriving, self.notes.append)
        if queue is not None and idle_times_straddle(station, arriving, self.fluid.costs[index]):
            return None, "stays awake or sleeps by how long each frame takes, between arrivals at equal gaps"
        sleep = set_up_of(self.fluid, index, station, arriving)
        if queue is not None and sleep is not None:
            queue, reason = sleeping_queue(station, queue, arriving, sleep)
        elif queue is not None and queue.loss_ratio > 0.0 and arriving.kind == "poisson" and self._empties(index):
            queue = PolledRing(arrival_pps=rate, service=mix, ring_frames=task.queue_frames)
        if queue is not None and arriving.kind == "poisson":
            exact = sleep is None and self._whole_port(rate, arriving, station)
            queue = behind_link(queue, arriving.link_wait_s, exact=exact)
        return queue, reason

    def _polled(self, index: int, rate: float, queue: Queue, mix: ServiceMix) -> Queue:
        """Return an overloaded queue whose polls remove a batch at once."""
        activation, load = self.graph.tasks[index].activation, rate * mix.mean_s / max(_units(self.fluid, index), 1)
        one_by_one = activation.kind == "interrupt" and activation.discipline != "gated"
        batch_frames = self.fluid.costs[index].batch_frames
        if one_by_one or load <= 1.0 or batch_frames <= 1 or isinstance(queue, PolledRing):
            return queue
        return PolledQueue(queue=queue, service_s=mix.mean_s, load=load, batch_frames=batch_frames)

    def _empties(self, index: int) -> bool:
        """Whether each poll of one server takes all frames that wait."""
        task, cost = self.graph.tasks[index], self.fluid.costs[index]
        gated = task.activation.kind != "interrupt" or task.activation.discipline == "gated"
        takes_all = cost.batch_frames > 1 and task.queue_frames <= cost.batch_frames
        return gated and takes_all and _units(self.fluid, index) == 1 and task.queue_frames <= MOST_RING_FRAMES

    def _whole_port(self, rate: float, arriving: ArrivalProcess, station: Station) -> bool:
        """Whether one server of constant time serves all frames of one port, of one size, without loss."""
        spacing, graph = arriving.spacing, self.graph
        if spacing is None or spacing.origin < 0 or station.servers > 1 or station.mix.law != "deterministic":
            return False
        by_port = graph.by_port(self.fluid.offered)
        alone = math.isclose(rate, float(by_port[spacing.origin]), rel_tol=1e-9)
        return alone and station.mix.is_one_size and station.exact and self.fluid.load.frames.is_fixed

    def port_out(self, number: int) -> None:
        """Compute the wait for the outgoing link."""
        fluid = self.fluid
        node = len(self.graph.tasks) + number
        port = fluid.model.ports[number]
        rate = float(np.add.reduce(self.rates[node]))
        if rate <= 0.0:
            return
        times = tuple(1.0 / line_rate_pps(port.link_bps, size) for size in self.service.sizes_bytes)
        arriving = merge(self.arriving.get(node, []))
        self.sizes[node] = arriving.sizes
        mix = ServiceMix(shares=arriving.sizes or self.service.shares, times_s=times)
        load = rate * mix.mean_s
        regular = arriving.kind == "regular" and mix.is_one_size
        spaced = arriving.spacing is not None and arriving.spacing.fits(max(times))
        if load < _IDLE_LINK or spaced or (regular and load <= 1.0 + 1e-9):
            self.port_wait_s[node] = 0.0
            return
        if load >= OVERLOADED:
            self.admitted[node] = 1.0 / load
            self.port_wait_s[node] = (port.tx_ring_frames + 0.5) * mix.mean_s
        elif load > 1.0 - _JUST_FULL:
            self.admitted[node] = min(1.0 / load, 1.0)
            self.latency_unknown = self.latency_unknown or f'"{port.name} out" is just full'
        else:
            # At most the wait through a full ring.
            longest_s = port.tx_ring_frames * mix.mean_s
            self.port_wait_s[node] = min(MG1(arrival_pps=rate, service=mix).waiting_mean_s, longest_s)
            if arriving.kind != "poisson":
                self.approximated.append(port.name)
        before = [at for at in range(len(self.graph.tasks)) if any(to == node for to, _ in self.graph.edges[at])]
        room = port.tx_ring_frames - self.chance.absences.on_link_frames(before, mix.mean_s)
        loss_bound = self.chance.overflow(load, room, arriving, mix)
        if loss_bound > 0.0 and load <= 1.0 + 1e-9:
            loss_bound = 0.0 if node in self.chance.fitting else min(loss_bound, self._behind_equal_links(number))
        self.chance.record(
            f"{port.name} out", rate, loss_bound, f'"{port.name} out" can fill its ring, without a known closed form'
        )

    def _behind_equal_links(self, number: int) -> float:
        node, before = len(self.graph.tasks) + number, {}
        for index in self.graph.leading_to(node):
            rate = float(np.add.reduce(self.rates[index]))
            cost = self.fluid.costs[index]
            if index in self.arriving and rate > 0.0 and cost.busy_s + cost.interrupt_s + cost.sleep_s > 0.0:
                arriving = merge(self.arriving[index])
                before[index] = rate, arriving, self.service.of(index, arriving.sizes)
        return self.chance.at_link(number, before)

    def answer(self) -> DelayAnswer:
        """Return the answer from the results of all task units and ports."""
        graph, fluid = self.graph, self.fluid
        arriving = self.rates.sum(axis=1)
        served: list[float] = (arriving * self.admitted).tolist()
        lost: list[float] = (arriving * (1.0 - self.admitted)).tolist()
        names = [task.name for task in graph.tasks] + [f"{port.name} out" for port in fluid.model.ports]
        least = 1e-12 * float(fluid.offered.sum())
        drops = {name: rate for name, rate in zip(names, lost, strict=False) if rate > least}
        work = {task.name: served[index] * self._work_ratio(index) for index, task in enumerate(graph.tasks)}
        queue_frames = {
            graph.tasks[index].name: queue.waiting_mean_s * served[index] for index, queue in self.queues.items()
        }
        latency = waiting = None
        latency_error = (0.0, 0.0)
        parts = (graph, self.rates, self.admitted, self.queues, self.port_wait_s)
        is_held_up = fluid.windows is not None and self.chance.is_held_up()
        if self.chance.why_unknown and (fluid.windows is None or is_held_up):
            self.latency_unknown = self.latency_unknown or f"what is lost is not known: {self.chance.why_unknown}"
        elif is_held_up:
            self.latency_unknown = self.latency_unknown or "interruptions or services that vary delay units in windows"
        elif self.chance.ratio > MAX_CHANCE_LOSS and not self.chance.why_unknown:
            self.latency_unknown = self.latency_unknown or f"up to {self.chance.ratio:.2g} of the frames may be lost"
        if self.latency_unknown:
            self.notes.append(f"no latency: {self.latency_unknown}")
        else:
            latency, waiting = total_delay(*parts)
            latency_error = self._latency_error(latency.mean_s, parts)
            if self.approximated and link_matters(*parts):
                self.notes.append("the wait for outgoing links takes arrivals at random instants, an approximation")
        return DelayAnswer(
            drops_pps=drops,
            work_pps=work,
            forwarded_bytes=self._forwarded_bytes(served),
            latency=latency,
            waiting=waiting,
            queue_frames=queue_frames,
            arriving=self.kinds,
            notes=joined_notes(self.notes + window_notes(fluid)),
            loss_unknown=self.chance.why_unknown,
            latency_error_s=latency_error,
            loss_error_ratio=self._loss_error(sum(drops.values()) / float(fluid.offered.sum())),
            chance_loss_ratio=self.chance.ratio,
            middle_loss_ratio=self.chance.middle,
            possible_losses=tuple(self.chance.places),
        )

    def _latency_error(self, mean_s: float, parts: _Parts) -> tuple[float, float]:
        """Return the bounds of the error of a mean latency, below and above, s.

        Where frames do not arrive at a link at random instants, its wait is between 0 and that of random arrivals.
        """
        graph, rates, admitted, queues, port_wait_s = parts
        _, _, port_s = _through(graph, rates, admitted, {}, port_wait_s)
        guessed_s = port_s if self.approximated else 0.0
        rest_s = mean_s - guessed_s
        share = _LATENCY_ERROR
        if self.fluid.windows is not None:
            share = _LATENCY_ERROR_WINDOWS
        if self.interruptions_overflow:
            share = _LATENCY_ERROR_INTERRUPTED
        for queue in queues.values():
            sleeps = isinstance(queue, SetUpAdded)
            awake = queue.queue if isinstance(queue, SetUpAdded) else queue
            interrupted_too = isinstance(awake, DD1Interrupted)
            share = max(
                share, _LATENCY_ERROR_SET_UPS if sleeps else 0.0, _LATENCY_ERROR_INTERRUPTED if interrupted_too else 0.0
            )
        return guessed_s + share * rest_s, share * rest_s

    def _loss_error(self, lost_ratio: float) -> float:
        load = self.fluid.load
        is_smooth = load.frames.is_fixed and load.arrivals.kind != "on_off" and not self.interruptions_overflow
        error = _LOSS_ERROR if is_smooth else _LOSS_ERROR_BURSTS
        lost = (self.rates.sum(axis=1) * (1.0 - self.admitted))[: self.graph.exit]
        if self.of_bursts and set(np.flatnonzero(lost > _KNOWN * lost.sum()).tolist()) <= self.of_bursts:
            error = BURSTS_ERROR
        return error * min(1.0, lost_ratio / _LOSS_ERROR)

    def _work_ratio(self, index: int) -> float:
        """Return the mean work of the frames served at a task unit, relative to that of the load's mix."""
        sizes = self.sizes.get(index, ())
        if not sizes or sizes == self.service.shares:
            return 1.0
        whole_s = self.service.of(index).mean_s
        return self.service.of(index, sizes).mean_s / whole_s if whole_s > 0.0 else 1.0

    def _forwarded_bytes(self, served: list[float]) -> float:
        """Return the mean size of the frames that leave by the ports."""
        frames = self.fluid.load.frames
        total, in_all = 0.0, 0.0
        for node in range(len(self.graph.tasks), self.graph.exit):
            rate, shares = served[node], self.sizes.get(node, ())
            mean = (
                math.fsum(share * size for share, size in zip(shares, self.service.sizes_bytes, strict=True))
                if shares
                else frames.mean_bytes
            )
            total, in_all = total + rate, in_all + rate * mean
        return in_all / total if total > 0.0 else frames.mean_bytes
