"""The arrival process at each task unit: Poisson, equal gaps, gaps of known variation, or unknown to theory."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from routecast.evaluate._general_queues import DD1, MG1, ServiceMix
from routecast.evaluate._queue import MeanQueue, MMc, Queue
from routecast.evaluate._server_vacations import DD1SetUp, MG1SetUp, SetUpAdded
from routecast.evaluate.solve._unknown_shares import arrivals_behind_links
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.load.flows import FlowSet, rss_index
from routecast.load.offered import line_rate_pps
from routecast.quantity.schema import field, value
from routecast.router.model import Route

_ROUNDING = 1.0 + 1e-9
_ALL = 1.0 - 1e-12
_EVEN_GAPS = 0.1
_BUSY_LINK = 0.3
_MAX_FLOWS = 4096


@value
class Spacing:
    """The least gap between frames that passed one link or server and have had only constant delays since.

    A link separates frames by at least their time on the wire (S1), a server with constant times by at least its
    service time. The least gap stays as long as all frames have the same constant delay, even over parallel stations
    with equal delays. A station whose longest service is shorter than that gap has no queue, whatever the arrival
    process, because two frames never meet.
    """

    # Number of the port that they entered by; ``-1 - index`` for the task unit that last served them one by one.
    origin: int
    min_gap_s: float = field("Least time between two frames, s")
    delay_s: float = field("Delay since the origin, equal for all frames, s", default=0.0)

    def fits(self, longest_s: float) -> bool:
        """Whether a service or transmission of at most ``longest_s`` ends before the next frame arrives."""
        return longest_s <= self.min_gap_s * _ROUNDING

    def later(self, delay_s: float) -> Spacing:
        """Return the same frames after another constant delay."""
        return replace(self, delay_s=self.delay_s + delay_s)


def spacing_of_link(port: int, wire_s: Sequence[float], even_gap_s: float | None) -> Spacing:
    """Return the spacing behind a link with frames of these durations; ``even_gap_s`` is the gap of a constant rate.

    Equal gaps stay equal only where the longest frame fits into one.
    """
    min_gap_s = min(wire_s)
    if even_gap_s is not None and max(wire_s) <= even_gap_s * _ROUNDING:
        min_gap_s = even_gap_s
    return Spacing(origin=port, min_gap_s=min_gap_s)


def common_spacing(streams: Sequence[tuple[Spacing, ...]]) -> tuple[Spacing, ...]:
    """Return the common spacings of streams that meet; empty where one stream has no spacing or delays differ."""
    first_by_origin: dict[int, Spacing] = {}
    for spacings in streams:
        if not spacings:
            return ()
        for spacing in spacings:
            first = first_by_origin.setdefault(spacing.origin, spacing)
            if not math.isclose(spacing.delay_s, first.delay_s, rel_tol=1e-9, abs_tol=1e-15):
                return ()
    return tuple(first_by_origin.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class NoWaiting(Queue):
    """Frames that find a server free: no frame waits. Exact for every arrival process."""

    service: ServiceMix
    why: str = "links space frames further apart than a service lasts"

    @property
    def method(self) -> str:
        return f"no waiting, as {self.why}"

    @property
    def waiting_mean_s(self) -> float:
        return 0.0

    @property
    def sojourn_mean_s(self) -> float:
        """Mean service time."""
        return self.service.mean_s

    def waiting_tail(self, time_s: float) -> float:
        """No frame waits."""
        return 1.0 if time_s < 0.0 else 0.0

    def sojourn_tail(self, time_s: float) -> float:
        """Share of the frames whose service is longer."""
        pairs = zip(self.service.shares, self.service.times_s, strict=True)
        return math.fsum(share for share, service_s in pairs if service_s > time_s)


_ArrivalKind = Literal["poisson", "regular", "renewal", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalProcess:
    """An arrival process at a node: kind, rate, squared coefficient of variation of the gaps, why it is unknown."""

    kind: _ArrivalKind
    rate_pps: float
    scv: float
    why: str = ""
    link_wait_s: float = 0.0
    """Mean wait of Poisson arrivals for the incoming link. It shortens the wait at later stations by a part of it, and
    at a single server that gets all frames of one port by exactly this time."""
    is_from_ports: bool = False
    """Whether the frames come directly from the ports: no station has delayed them yet."""
    spacings: tuple[Spacing, ...] = ()
    """Spacing by link or server whose frames still have its least gap; empty if some frames have lost theirs."""
    sizes: tuple[float, ...] = ()
    """Share of each frame size, smallest first."""

    @property
    def spacing(self) -> Spacing | None:
        """Spacing of all frames, if all of them come from one link or server."""
        return self.spacings[0] if len(self.spacings) == 1 else None


def entering_arrivals(fluid: Fluid) -> dict[int, ArrivalProcess]:
    """Return the arrivals from the ports at each entry node."""
    load, graph = fluid.load, fluid.graph
    rates: dict[int, float] = defaultdict(float)
    ports: dict[int, list[int]] = defaultdict(list)
    by_port = graph.by_port(fluid.offered)
    for port, rate in enumerate(by_port):
        if rate > 0.0:
            rates[graph.entry[port]] += float(rate)
            ports[graph.entry[port]].append(port)
    busiest = float(np.max(by_port / graph.ingress_cap))
    cut = float(fluid.offered.sum()) < fluid.intended_pps * (1.0 - 1e-9)
    arrivals = arrivals_behind_links(fluid) if cut else load.arrivals
    entering: dict[int, ArrivalProcess] = {}
    for node, rate in rates.items():
        kind: _ArrivalKind = "unknown"
        scv, why = arrivals.interarrival_scv, ""
        if load.arrivals.kind == "poisson" and busiest <= _BUSY_LINK:
            kind = "poisson"
        elif load.arrivals.kind == "poisson":
            why = f"gets Poisson arrivals that links filled to {busiest:.0%} have smoothed"
        elif load.arrivals.kind == "cbr":
            equal_gaps = len(ports[node]) == 1 or np.ptp(by_port[ports[node]]) <= 1e-9 * rate
            kind = "regular" if equal_gaps and (load.frames.is_fixed or not cut) else "unknown"
            why = (
                "" if kind == "regular" else "gets several periodic streams, whose waiting times depend on their phases"
            )
            if kind == "regular" and _jitter(fluid, ports[node], rate) > _EVEN_GAPS:
                kind, why = "unknown", "gets frames of mixed sizes, whose times on the link make their gaps uneven"
        elif load.arrivals.kind == "on_off" and len(ports[node]) == 1 and not cut:
            kind = "renewal"
        else:
            why = f"gets {load.arrivals.kind} arrivals, without a known closed form"
        entering[node] = ArrivalProcess(
            kind=kind,
            rate_pps=rate,
            scv=scv,
            why=why,
            is_from_ports=True,
            spacings=tuple(_behind_link(fluid, port) for port in ports[node]),
            sizes=tuple(load.frames.share_by_bytes.values()),
            link_wait_s=max(_link_wait_s(fluid, port, float(by_port[port])) for port in ports[node]),
        )
    return entering


def _jitter(fluid: Fluid, ports: list[int], rate_pps: float) -> float:
    """Return the spread of the transmission times of the frame sizes, as a share of the mean gap of the frames."""
    sizes = fluid.load.frames.share_by_bytes
    times = [1.0 / line_rate_pps(fluid.model.ports[port].link_bps, size) for port in ports for size in sizes]
    return (max(times) - min(times)) * rate_pps


def _behind_link(fluid: Fluid, port: int) -> Spacing:
    load, link_bps = fluid.load, fluid.model.ports[port].link_bps
    wire_s = [1.0 / line_rate_pps(link_bps, size) for size in set(load.frames.sequence_bytes)]
    # The intended gap, which the link may stretch.
    intended = float(fluid.graph.by_port(fluid.graph.share)[port])
    gap_s = 1.0 / (intended * fluid.intended_pps) if load.arrivals.kind == "cbr" else None
    return spacing_of_link(port, wire_s, gap_s)


def _link_wait_s(fluid: Fluid, port: int, rate_pps: float) -> float:
    """Return the mean wait of Poisson arrivals for their link (M/G/1), s."""
    if fluid.load.arrivals.kind != "poisson":
        return 0.0
    frames = fluid.load.frames.share_by_bytes
    times = tuple(1.0 / line_rate_pps(fluid.model.ports[port].link_bps, size) for size in frames)
    mix = ServiceMix(shares=tuple(frames.values()), times_s=times)
    if rate_pps * mix.mean_s >= 1.0 - 1e-9:
        return 0.0
    return MG1(arrival_pps=rate_pps, service=mix).waiting_mean_s


def merge(streams: list[ArrivalProcess]) -> ArrivalProcess:
    """Return the sum of independent streams: Poisson stays Poisson, else the mean variation (Whitt 1983, sec. 4.3)."""
    if not streams:
        return ArrivalProcess(kind="unknown", rate_pps=0.0, scv=0.0)
    if len(streams) == 1:
        return streams[0]
    rate = sum(stream.rate_pps for stream in streams)
    scv = sum(stream.rate_pps * stream.scv for stream in streams) / rate
    kinds = {stream.kind for stream in streams}
    kind: _ArrivalKind = "renewal"
    why = ""
    if kinds == {"poisson"}:
        kind, scv = "poisson", 1.0
    elif kinds & {"unknown", "regular"}:
        kind = "unknown"
        first = next(stream for stream in streams if stream.kind in {"unknown", "regular"})
        why = first.why or "gets several periodic streams, whose waiting times depend on their phases"
    return ArrivalProcess(
        kind=kind,
        rate_pps=rate,
        scv=scv,
        why=why,
        is_from_ports=all(stream.is_from_ports for stream in streams),
        spacings=common_spacing([stream.spacings for stream in streams]),
        sizes=_mixed(streams),
        link_wait_s=max(stream.link_wait_s for stream in streams),
    )


def _mixed(streams: list[ArrivalProcess]) -> tuple[float, ...]:
    """Return the shares of the frame sizes over all streams."""
    rate = sum(stream.rate_pps for stream in streams)
    shares_by_size = zip(*(stream.sizes for stream in streams), strict=True)
    return tuple(
        sum(share * stream.rate_pps for share, stream in zip(shares, streams, strict=True)) / rate
        for shares in shares_by_size
    )


def departures(
    arriving: ArrivalProcess,
    queue: Queue | None,
    *,
    utilisation: float,
    service: ServiceMix,
    servers: int,
    constant: bool,
    min_gap_s: float,
    station: int,
    sizes: tuple[float, ...],
) -> ArrivalProcess:
    """Return the departures of a station: Burke's theorem, equal gaps kept, else Whitt's eq. 39 for the variation.

    ``constant``: whether all frames of one size have the same delay where no frame waits; ``min_gap_s``: least time
    between two departures of one server, 0 if unknown; ``sizes``: share of each frame size among the served frames;
    ``station``: number of the task unit.
    """
    rate = arriving.rate_pps
    if queue is None:
        why = "follows a station that theory does not cover"
        return ArrivalProcess(kind="unknown", rate_pps=rate, scv=1.0, why=why, sizes=sizes)
    is_poisson = isinstance(queue, MMc) or (isinstance(queue, MeanQueue) and queue.product_form)
    if arriving.kind == "poisson" and is_poisson:
        return ArrivalProcess(kind="poisson", rate_pps=rate, scv=1.0, sizes=sizes)
    is_undelayed = queue.loss_ratio <= 0.0 and queue.waiting_mean_s <= 0.0 and service.is_one_size and constant
    spacings = tuple(spacing.later(service.mean_s) for spacing in arriving.spacings) if is_undelayed else ()
    if min_gap_s > 0.0 and not is_undelayed:
        spacings = (Spacing(origin=-1 - station, min_gap_s=min_gap_s),)
    if isinstance(queue, DD1):
        return ArrivalProcess(kind="regular", rate_pps=rate, scv=0.0, spacings=spacings, sizes=sizes)
    if isinstance(queue, NoWaiting) and is_undelayed:
        return replace(arriving, is_from_ports=False, spacings=spacings, sizes=sizes)
    if isinstance(queue, NoWaiting) and arriving.kind == "unknown":
        return ArrivalProcess(kind="unknown", rate_pps=rate, scv=1.0, why=arriving.why, spacings=spacings, sizes=sizes)
    if isinstance(queue, DD1SetUp | MG1SetUp | SetUpAdded):
        why = "follows a task unit that sleeps, which sends frames in bursts"
        return ArrivalProcess(kind="unknown", rate_pps=rate, scv=1.0, why=why, spacings=spacings, sizes=sizes)
    used = min(utilisation, 1.0) ** 2
    scv = 1.0 + (1.0 - used) * (arriving.scv - 1.0) + used / servers**0.5 * (service.squared_cv - 1.0)
    return ArrivalProcess(kind="renewal", rate_pps=rate, scv=max(scv, 0.0), spacings=spacings, sizes=sizes)


def split(
    stream: ArrivalProcess, rate_pps: float, share: float, fluid: Fluid, index: int, node: int, fraction: Vector
) -> ArrivalProcess:
    """Return the part of a stream that a route sends to a node, a share of all and a fraction of each flow.

    A part chosen independently frame by frame has ``c² = p·c² + 1 - p`` and stays Poisson (Whitt 1983, eq. 36); every
    n-th frame in turn has ``c²/n``. Equal gaps split by flow stay equal where the node's flows are evenly spaced in the
    cycle. The least gap of a part is at least that of the whole stream.
    """
    if share >= _ALL:
        return stream if rate_pps == stream.rate_pps else replace(stream, rate_pps=rate_pps)
    kind, scv, why = _part_of_stream(stream, share, fluid, index, node)
    spacings = stream.spacings
    if any(spacing.origin >= 0 for spacing in spacings):
        by_port = fluid.graph.by_port(fluid.offered * fraction).tolist()
        spacings = tuple(spacing for spacing in spacings if spacing.origin < 0 or by_port[spacing.origin] > 0.0)
    return ArrivalProcess(
        kind=kind,
        rate_pps=rate_pps,
        scv=scv,
        why=why,
        link_wait_s=stream.link_wait_s,
        is_from_ports=kind == "poisson" and stream.is_from_ports and fluid.graph.tasks[index].route.kind != "random",
        spacings=spacings,
        sizes=stream.sizes,
    )


def _part_of_stream(
    stream: ArrivalProcess, share: float, fluid: Fluid, index: int, node: int
) -> tuple[_ArrivalKind, float, str]:
    """Return kind and variation of a part of a stream, and the reason if they are unknown."""
    route = fluid.graph.tasks[index].route
    if route.kind == "round_robin" and stream.kind != "unknown":
        return "regular" if stream.kind == "regular" else "renewal", stream.scv * share, ""
    if route.kind == "random" and stream.kind != "unknown":
        return "poisson" if stream.kind == "poisson" else "renewal", share * stream.scv + 1.0 - share, ""
    if stream.kind == "poisson":
        return "poisson", 1.0, ""
    if fluid.load.arrivals.kind == "cbr" and stream.is_from_ports:
        names = tuple(port.name for port in fluid.model.ports)
        if _name_of(fluid, node) in _evenly_spaced(fluid.load.flows, route, names):
            return "regular", 0.0, ""
        why = "gets flows that are not evenly spaced, whose waiting times depend on their order"
        return "unknown", stream.scv, why
    if stream.kind == "renewal" and fluid.load.arrivals.kind != "on_off":
        return "renewal", share * stream.scv + 1.0 - share, ""
    why = stream.why or "gets a part of a stream whose frames are not chosen independently"
    return "unknown", stream.scv, why


def _name_of(fluid: Fluid, node: int) -> str:
    tasks = fluid.graph.tasks
    return tasks[node].name if node < len(tasks) else fluid.model.ports[node - len(tasks)].name


@lru_cache(maxsize=64)
def _evenly_spaced(flow_set: FlowSet, route: Route, ports: tuple[str, ...]) -> frozenset[str]:
    """Return the nodes to which a route by flow sends the flows of one port, every n-th frame of its cycle."""
    flows = flow_set.flows
    if len(flows) > _MAX_FLOWS or any(flow.weight != flows[0].weight for flow in flows):
        return frozenset()
    places: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    cycle: dict[int, int] = defaultdict(int)
    for number, flow in enumerate(flows):
        position = cycle[flow.ingress]
        cycle[flow.ingress] += 1
        if route.kind == "rss":
            target = route.to[rss_index(flow.rss_hash, len(route.to), route.indirection)]
        elif route.kind == "per_flow":
            target = route.to[number % len(route.to)]
        elif route.kind == "by_egress":
            target = route.to[flow.egress]
        else:
            target = ports[flow.egress]
        places[target][flow.ingress].append(position)
    return frozenset(
        target
        for target, by_port in places.items()
        if len(by_port) == 1 and all(_every_nth(taken, cycle[port]) for port, taken in by_port.items())
    )


def _every_nth(taken: list[int], length: int) -> bool:
    if length % len(taken):
        return False
    step = length // len(taken)
    return all(place == taken[0] + step * number for number, place in enumerate(taken))
