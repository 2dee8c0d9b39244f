"""What all stations together make of a frame's delay, and the answer about loss, latency and queues."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping

from routecast.evaluate._queue import MMc, Queue, Tandem, delay_of
from routecast.evaluate._server_vacations import DD1Interrupted, SetUpAdded
from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.evaluate.trial import Delay
from routecast.quantity.schema import field, value

_LATENCY_ERROR, _LATENCY_ERROR_WINDOWS = 0.1, 0.15
_LATENCY_ERROR_SET_UPS, _LATENCY_ERROR_INTERRUPTED = 0.25, 0.5
"""Error of a mean latency against the simulator's, as a share of it: in general, with windows, and where frames at
equal gaps meet set-ups or interruptions (``benches/fuzz_models.py``; the last two were chosen on its seeds)."""
_NOTABLE = 0.01
_LINK = "M/G/1 at the outgoing link (approximation)"
_NOTE = re.compile(r'("[^"]*")(.*)', re.DOTALL)


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


def total_delay(
    graph: FlowGraph, rates: Vector, admitted: Vector, queues: Mapping[int, Queue], port_wait_s: Mapping[int, float]
) -> tuple[Delay, Delay]:
    """Return latency and waiting time of the forwarded frames.

    ``rates``: arriving rate by node and stream; ``admitted``: share of the arriving frames that each node serves;
    ``queues``: queue by station; ``port_wait_s``: wait for the outgoing link by port node.
    """
    through, forwarded, port_s = through_stations(graph, rates, admitted, queues, port_wait_s)
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


def latency_error_s(
    mean_s: float, guessed_s: float, queues: Iterable[Queue], *, in_windows: bool, interruptions_overflow: bool
) -> tuple[float, float]:
    """Return the bounds of the error of a mean latency, below and above, s.

    ``guessed_s``: part of the latency that may be 0 as well; ``interruptions_overflow``: whether interruptions overflow
    a queue.
    """
    rest_s = mean_s - guessed_s
    share = _LATENCY_ERROR
    if in_windows:
        share = _LATENCY_ERROR_WINDOWS
    if interruptions_overflow:
        share = _LATENCY_ERROR_INTERRUPTED
    for queue in queues:
        sleeps = isinstance(queue, SetUpAdded)
        awake = queue.queue if isinstance(queue, SetUpAdded) else queue
        interrupted_too = isinstance(awake, DD1Interrupted)
        share = max(
            share, _LATENCY_ERROR_SET_UPS if sleeps else 0.0, _LATENCY_ERROR_INTERRUPTED if interrupted_too else 0.0
        )
    return guessed_s + share * rest_s, share * rest_s


def link_matters(
    graph: FlowGraph, rates: Vector, admitted: Vector, queues: Mapping[int, Queue], port_wait_s: Mapping[int, float]
) -> bool:
    """Whether the wait for outgoing links exceeds one per cent of the latency."""
    through, forwarded, port_s = through_stations(graph, rates, admitted, queues, port_wait_s)
    inside_s = sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in queues.items())
    return port_s > _NOTABLE * (inside_s + port_s)


def through_stations(
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
