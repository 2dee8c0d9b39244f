"""Simulation of fabrics flit by flit, with the compiled simulator (``crates/noc``): one load, or many at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from routecast.errors import ModelProblem, Problem
from routecast.noc.routing._mesh_paths import MeshPaths
from routecast.noc.routing.deadlock import channel_cycle, describe_cycle
from routecast.noc.routing.model import Routes, hops
from routecast.noc.simulate._design import AdaptiveRouting, Packets, RouterDesign, SimulationPhases
from routecast.noc.simulate._fabric import Fabric, SimulatedPlane
from routecast.noc.simulate._result import Latency, MeanEstimate, PlaneResult, Simulated, busiest_channel, estimate
from routecast.noc.topology import Topology, links
from routecast.noc.traffic import Traffic
from routecast.progress import ShareProgress
from routecast.quantity import format_ratio

__all__ = ["scenario_texts", "signs_of_overload", "simulate", "simulate_all", "sweep"]


# This part of the offered flits, or so many packets for each node, may be in flight when the measurement begins and
# ends. The second limit matters in short runs.
_TOLERATED_SHARE = 0.01
_TOLERATED_PACKETS = 2.0
# Tolerated rise of latency from the first to the last third of the measurement, relative to its mean.
_TOLERATED_RISE = 0.5


def signs_of_overload(outcomes: Sequence[dict[str, Any]], *, nodes: int, packet_flits: float) -> tuple[str, ...]:
    """Return the signs of saturation in the replications of a plane, in words.

    * fewer flits arrive than are created;
    * the queues at the nodes grow;
    * measured packets have not arrived at the end of the longest drain;
    * latency rises by more than half its mean from the first to the last third of the measurement;
    * no flit moves any more.

    The first three count above 1 % of the created flits and above two packets for each node. The first, second and
    fourth are means of the replications, which must be above 0 at 95 % (one-sided, Student's t), so that chance alone
    gives no sign.

    ``nodes``: their number; ``packet_flits``: mean length of a packet.
    """
    created = [sum(outcome["offered_flits"]) for outcome in outcomes]
    if not any(created):
        return ()
    tolerated = max(_TOLERATED_SHARE, _TOLERATED_PACKETS * packet_flits * nodes * len(created) / sum(created))
    signs = []
    lost = [flits - sum(outcome["accepted_flits"]) for flits, outcome in zip(created, outcomes, strict=True)]
    if share := _significant_mean(_shares(lost, created), tolerated):
        signs.append(f"accepts {format_ratio(1 - share)} of the offered flits")
    grown = [outcome["source_flits"][1] - outcome["source_flits"][0] for outcome in outcomes]
    if share := _significant_mean(_shares(grown, created), tolerated):
        signs.append(f"the queues of the nodes grow by {format_ratio(share)} of the offered flits")
    if rise := _significant_mean(_rises(outcomes), _TOLERATED_RISE):
        signs.append(f"latency rises by {format_ratio(rise)} of its mean during the measurement")
    missing = sum(outcome["undelivered_flits"] for outcome in outcomes)
    if missing > tolerated * sum(created):
        signs.append(f"{missing} flits of measured packets had not arrived at the end")
    if any(outcome["deadlocked"] for outcome in outcomes):
        signs.append("nothing moved any more: packets waited for each other")
    return tuple(signs)


def _shares(parts: Sequence[float], totals: Sequence[float]) -> list[float]:
    return [part / total for part, total in zip(parts, totals, strict=True) if total]


def _significant_mean(values: Sequence[float], tolerated: float) -> float | None:
    """Return the mean if it is above the tolerance and significantly above 0; None otherwise."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if mean <= tolerated:
        return None
    if len(values) == 1:
        return mean
    from scipy.special import stdtrit  # scipy is loaded where it is used

    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    return mean if mean > float(stdtrit(len(values) - 1, 0.95)) * spread else None


def _rises(outcomes: Sequence[dict[str, Any]]) -> list[float]:
    rises = []
    for outcome in outcomes:
        batches, mean = outcome["batch_latency"], outcome["packet_latency"]["mean"]
        third = len(batches) // 3
        if third and mean:
            rises.append((sum(batches[-third:]) - sum(batches[:third])) / third / mean)
    return rises


# Queues on one side of a router are bits of a word (crates/noc/src/network.rs).
_MAX_QUEUES = 64

# Shares are sums of floating point numbers.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class RoutingText:
    """A checked routing as text, and the pairs of routers that have paths; None for all pairs."""

    text: str
    has_path: NDArray[np.bool_] | None


def scenario_texts(fabric: Fabric, run: SimulationPhases) -> list[str]:
    """Return the scenarios of all planes of the first replication, then of the next (``crates/noc/src/scenario.rs``).

    Parts of the text are written once: all loads of a sweep share network and routing, all replications everything but
    the run. Raises ModelProblem: a routing can deadlock, needs more virtual channels than there are, or has no path for
    a flow.
    """
    parts = [_plane_text(fabric, number) for number in range(len(fabric.planes))]
    count = len(parts)
    return [
        # Planes are independent networks: each has its own random streams.
        f'{part},"run":{json.dumps(run.scenario(replication * count + number))}}}'
        for replication in range(run.replications)
        for number, part in enumerate(parts)
    ]


def plane_packets(fabric: Fabric, plane: SimulatedPlane) -> Packets:
    """Return the packets in flits of the plane."""
    return fabric.packets.in_wider_flits(plane.width)


def packets_a_cycle(fabric: Fabric, plane: SimulatedPlane) -> NDArray[np.float64]:
    """Return the packets that each node would have to create in a cycle in which it is on, shape (nodes,)."""
    flits: NDArray[np.float64] = np.sum(plane.demand, axis=1)
    return flits / (fabric.packets.mean_flits * fabric.injection.on_share)


def _plane_text(fabric: Fabric, number: int) -> str:
    plane = fabric.planes[number]
    packets = plane_packets(fabric, plane)
    routing = checked_routing(plane.routing, fabric.design)
    # As many packets as on the first plane's links, in flits of this plane.
    demand = plane.demand * (packets.mean_flits / fabric.packets.mean_flits)
    if routing.has_path is not None:
        between = Traffic(name="", demand=demand).between_routers(fabric.topology)
        unrouted = np.argwhere((between > 0) & ~routing.has_path)
        if unrouted.size:
            source, target = (fabric.topology.router_name(int(end)) for end in unrouted[0])
            message = f"no path leads from {source} to {target}, {len(unrouted)} flows have none: route them"
            raise ModelProblem("network on chip", [Problem(f"planes[{number}].routing", message)])
    # A node creates at most a packet in a cycle; more is an overload (packets_a_cycle).
    created = demand / np.maximum(packets_a_cycle(fabric, plane), 1.0)[:, None]
    load = {
        "demand": _demand_stretches(created, fabric.design.ejection_channels),
        "packet_flits": packets.flits,
        "weights": packets.shares,
        "injection": fabric.injection.scenario(),
        "clock_ratio": 1 / plane.alpha,
    }
    return (
        f'{{"network":{_network_text(fabric.topology, fabric.design)},"router":{json.dumps(fabric.design.scenario())},'
        f'"routing":{routing.text},"load":{json.dumps(load)}'
    )


def _demand_stretches(demand: NDArray[np.float64], channels: int) -> list[list[tuple[int, int, float]]]:
    """Return the demand of each node as stretches ``(first, count, rate)`` of target nodes with the same rate.

    Channels to a node share its traffic evenly; the nodes added for them send nothing.
    """
    nodes = len(demand)
    begins = np.ones(demand.shape, dtype=np.bool_)
    begins[:, 1:] = demand[:, 1:] != demand[:, :-1]
    sources, first = np.nonzero(begins)
    rates = demand[sources, first] / channels
    # A row begins at 0, where the last stretch of the row before ends.
    after = np.append(first[1:], 0)
    counts = np.where(after == 0, nodes, after) - first
    sending = rates > 0
    rows: list[list[tuple[int, int, float]]] = [[] for _ in range(nodes * channels)]
    for channel in range(channels):
        columns = (sources, first + channel * nodes, counts, rates)
        for source, *stretch in zip(*(column[sending].tolist() for column in columns), strict=True):
            rows[source].append((stretch[0], stretch[1], stretch[2]))
    return rows


@lru_cache(maxsize=8)
def _network_text(topology: Topology, design: RouterDesign) -> str:
    return json.dumps(
        {
            "routers": topology.router_count,
            "links": [
                {"from": link.source, "to": link.target, "cycles": design.link_cycles} for link in links(topology)
            ],
            # A further channel to a node is a node of the simulator that only receives.
            "nodes": [topology.router_of(node) for node in range(topology.node_count)] * design.ejection_channels,
            "node_link_cycles": design.node_link_cycles,
        }
    )


# A sweep uses the same few routings again and again; they compare by identity and do not change.
@lru_cache(maxsize=4)
def checked_routing(routing: Routes | AdaptiveRouting, design: RouterDesign) -> RoutingText:
    """Return the routing as text if routers of this design can run it.

    Raises ModelProblem: it can deadlock, has more classes than there are virtual channels, or the shares of a flow do
    not sum to 1.
    """
    _check_classes(routing, design)
    cycle = routing.channel_cycle() if isinstance(routing, AdaptiveRouting) else channel_cycle(routing)
    if cycle is not None:
        message = (
            f'"{routing.policy}" can deadlock: packets can wait for each other round '
            f"{describe_cycle(routing.topology, cycle)}; give it virtual-channel classes "
            "(routecast.noc.routing.deadlock) or take another policy"
        )
        raise ModelProblem("network on chip", [Problem("routing", message)])
    if isinstance(routing, AdaptiveRouting):
        return _adaptive_text(routing)
    if isinstance(routing.paths, MeshPaths) and routing.paths.rule.is_simulated:
        return _grid_text(routing.paths)
    return _table_text(routing) or _paths_text(routing)


def _check_classes(routing: Routes | AdaptiveRouting, design: RouterDesign) -> None:
    classes, channels = routing.layer_count, design.virtual_channels
    ports = _max_ports(routing.topology, design)
    problems = []
    if channels is not None and classes > channels:
        message = (
            f'"{routing.policy}" uses {classes} classes of virtual channels, routers have {channels}: '
            f"give them at least {classes} virtual channels"
        )
        problems.append(Problem("virtual_channels", message))
    queues = ports * (ports * classes if channels is None else channels)
    if queues > _MAX_QUEUES:
        per_port = f"{ports} outputs and {classes} classes" if channels is None else f"{channels} virtual channels"
        message = (
            f"routers of {ports} ports with {per_port} have {queues} queues; at most {_MAX_QUEUES} are simulated: "
            "take fewer virtual channels, ejection channels or nodes at a router"
        )
        problems.append(Problem("virtual_channels", message))
    if problems:
        raise ModelProblem("network on chip", problems)


def _max_ports(topology: Topology, design: RouterDesign) -> int:
    """Return the most outputs of a router, links and channels to nodes; inputs are as many."""
    leaving = [0] * topology.router_count
    for link in links(topology):
        leaving[link.source] += 1
    return max(leaving) + topology.concentration * design.ejection_channels


def _adaptive_text(routing: AdaptiveRouting) -> RoutingText:
    count, routers = len(links(routing.topology)), routing.topology.router_count
    # Turn models lead every allowed hop on to the target, so that a first hop is a path.
    has_path = np.array([[bool(allowed) for allowed in row] for row in routing.choices[count:]], dtype=bool)
    if len(routing.choices) != count + routers or has_path.shape != (routers, routers):
        message = f"choices of {len(routing.choices)} arrivals for {count} links and {routers} routers"
        raise ModelProblem("network on chip", [Problem("routing", message)])
    text = json.dumps({"kind": "adaptive", "classes": 1, "choices": routing.choices})
    return RoutingText(text=text, has_path=has_path)


def _grid_text(paths: MeshPaths) -> RoutingText:
    rule = {"kind": "grid", "columns": paths.topology.columns, "way": paths.rule}
    return RoutingText(text=json.dumps(rule), has_path=None)


def _table_text(routes: Routes) -> RoutingText | None:
    """Return routes whose next hop depends on router and target alone as a table, which is fast.

    None for other routes, and for those that do not join all pairs of routers.
    """
    routers, flat = routes.topology.router_count, hops(routes)
    pairs = flat.source * routers + flat.target
    if len(pairs) != routers * (routers - 1) or len(np.unique(pairs)) != len(pairs):
        return None
    if not np.allclose(flat.share, 1.0, atol=_ROUNDING):
        return None
    starts = np.array([link.source for link in links(routes.topology)])
    entries = starts[flat.link] * routers + flat.target[flat.path]
    next_link = np.zeros(routers * routers, dtype=np.intp)
    next_layer = np.zeros(routers * routers, dtype=np.intp)
    next_link[entries], next_layer[entries] = flat.link, flat.layer
    if not (np.array_equal(next_link[entries], flat.link) and np.array_equal(next_layer[entries], flat.layer)):
        return None
    table = {
        "kind": "table",
        "classes": routes.layer_count,
        "links": next_link.reshape(routers, routers).tolist(),
        "class": next_layer.reshape(routers, routers).tolist() if next_layer.any() else [],
    }
    return RoutingText(text=json.dumps(table), has_path=None)


def _paths_text(routes: Routes) -> RoutingText:
    routers, flat = routes.topology.router_count, hops(routes)
    shares = np.zeros((routers, routers))
    np.add.at(shares, (flat.source, flat.target), flat.share)
    has_path = shares > 0
    uneven = np.argwhere(has_path & (np.abs(shares - 1) > _ROUNDING))
    if uneven.size:
        source, target = (int(end) for end in uneven[0])
        ends = f"{routes.topology.router_name(source)} to {routes.topology.router_name(target)}"
        message = f"the paths from {ends} have shares of {shares[source, target]:.6g}; they must sum to 1"
        raise ModelProblem("network on chip", [Problem("routing", message)])
    rows = (
        f'{{"source":{path.source},"target":{path.target},"links":{_integers(path.links)},'
        f'"layers":{_integers(path.layers)},"share":{float(path.share)!r}}}'
        for path in routes.paths
        if path.share > 0
    )
    text = f'{{"kind":"paths","classes":{routes.layer_count},"paths":[{",".join(rows)}]}}'
    return RoutingText(text=text, has_path=has_path)


def _integers(values: Sequence[int]) -> str:
    return f"[{','.join(map(str, values))}]"


Outcome = dict[str, Any]

_OUTCOME_ROUNDING = 1e-9
_PACKET, _NETWORK, _FLIT = "packet_latency", "network_latency", "flit_latency"


def simulated(fabric: Fabric, run: SimulationPhases, outcomes: Sequence[Outcome], *, load: float) -> Simulated:
    """Return the outcomes of the scenarios of a fabric as the result of one load, in cycles of the nodes.

    ``outcomes``: of :func:`scenario_texts` (``crates/noc/src/outcome.rs``); ``load``: its name in the result.
    """
    count = len(fabric.planes)
    by_replication = [outcomes[first : first + count] for first in range(0, len(outcomes), count)]
    planes = tuple(
        _plane(fabric, plane, run, [row[number] for row in by_replication])
        for number, plane in enumerate(fabric.planes)
    )
    is_bounded = not any(plane.is_saturated for plane in planes)
    nodes = fabric.topology.node_count
    # Flits of each plane in those of the first plane.
    first_flits = [fabric.packets.mean_flits / plane_packets(fabric, plane).mean_flits for plane in fabric.planes]

    def over_planes(value: Callable[[Outcome, SimulatedPlane, float], float]) -> list[float]:
        """Return the sum of a value over the planes, by replication; its last argument turns counts into flit rates."""
        return [
            math.fsum(
                value(outcome, plane, factor / _node_cycles(run, plane))
                for outcome, plane, factor in zip(row, fabric.planes, first_flits, strict=True)
            )
            for row in by_replication
        ]

    accepted = over_planes(lambda outcome, _, rate: sum(outcome["accepted_flits"]) * rate / nodes)
    power = over_planes(lambda outcome, plane, _: _power(outcome, plane, run))
    return Simulated(
        load=load,
        demand_flits_node_cycle=fabric.offered_flits_node_cycle,
        offered_flits_node_cycle=estimate(
            over_planes(lambda outcome, _, rate: sum(outcome["offered_flits"]) * rate / nodes)
        ),
        accepted_flits_node_cycle=estimate(accepted),
        packet_latency_cycles=_mean_over_planes(fabric, run, by_replication, _PACKET) if is_bounded else None,
        network_latency_cycles=_mean_over_planes(fabric, run, by_replication, _NETWORK) if is_bounded else None,
        flit_latency_cycles=_mean_over_planes(fabric, run, by_replication, _FLIT) if is_bounded else None,
        power=estimate(power),
        energy_per_flit=estimate(
            [watts / flits / nodes if flits > 0 else math.nan for watts, flits in zip(power, accepted, strict=True)]
        ),
        planes=planes,
        replications=run.replications,
        node_hz=fabric.node_hz,
    )


def _plane(fabric: Fabric, plane: SimulatedPlane, run: SimulationPhases, outcomes: Sequence[Outcome]) -> PlaneResult:
    overload = signs_of_overload(
        outcomes, nodes=fabric.topology.node_count, packet_flits=plane_packets(fabric, plane).mean_flits
    )
    channel = busiest_channel(fabric, plane)
    if overload and channel.load > 1:
        overload = (f"{channel.name} is offered {channel.load:.3g} times what it carries", *overload)
    max_packets = float(packets_a_cycle(fabric, plane).max(initial=0.0))
    if max_packets > 1 + _OUTCOME_ROUNDING:
        overload = (
            f"a node would have to create {max_packets:.3g} packets in a cycle, and it creates at most one",
            *overload,
        )
    cycles, nodes = _node_cycles(run, plane), fabric.topology.node_count
    links = np.array([outcome["link_flits"] for outcome in outcomes], dtype=np.float64) / cycles
    routers = np.array([outcome["router_flits"] for outcome in outcomes], dtype=np.float64) / cycles
    per_node = cycles * nodes

    def latency(name: str) -> Latency | None:
        return None if overload else _latency(outcomes, name, plane.alpha)

    return PlaneResult(
        alpha=plane.alpha,
        width=plane.width,
        packet_latency=latency(_PACKET),
        network_latency=latency(_NETWORK),
        flit_latency=latency(_FLIT),
        mean_routers=estimate([outcome["mean_routers"] for outcome in outcomes if outcome[_PACKET]["count"]]),
        offered_flits_node_cycle=estimate([sum(outcome["offered_flits"]) / per_node for outcome in outcomes]),
        accepted_flits_node_cycle=estimate([sum(outcome["accepted_flits"]) / per_node for outcome in outcomes]),
        link_loads=links.mean(axis=0),
        link_half_widths=np.array([estimate(column).half_width for column in links.T.tolist()]),
        router_loads=routers.mean(axis=0),
        power=estimate([_power(outcome, plane, run) for outcome in outcomes]),
        overload=overload,
    )


def _node_cycles(run: SimulationPhases, plane: SimulatedPlane) -> float:
    """Return the length of the measurement in cycles of the nodes."""
    return run.measure_cycles * plane.alpha


def _power(outcome: Outcome, plane: SimulatedPlane, run: SimulationPhases) -> float:
    hop_flow = sum(outcome["link_flits"]) * plane.width / _node_cycles(run, plane)
    return float(hop_flow / plane.alpha**2)


def _latency(outcomes: Sequence[Outcome], name: str, alpha: float) -> Latency | None:
    moments = [outcome[name] for outcome in outcomes if outcome[name]["count"]]
    if not moments:
        return None

    def mean_of(part: str) -> MeanEstimate:
        return estimate([moment[part] for moment in moments]).scaled(alpha)

    mean = mean_of("mean")
    if len(outcomes) == 1 and name == _PACKET:
        mean = MeanEstimate(value=mean.value, half_width=_batch_half_width(outcomes[0]) * alpha)
    return Latency(
        mean_cycles=mean,
        p50_cycles=mean_of("p50"),
        p95_cycles=mean_of("p95"),
        p99_cycles=mean_of("p99"),
        max_cycles=max(moment["max"] for moment in moments) * alpha,
    )


def _batch_half_width(outcome: Outcome) -> float:
    return estimate(outcome["batch_latency"]).half_width


def _mean_over_planes(
    fabric: Fabric, run: SimulationPhases, by_replication: Sequence[Sequence[Outcome]], name: str
) -> MeanEstimate | None:
    """Return the mean over the packets or flits of all planes, weighted by the rate that each plane carries."""
    means = []
    shares: list[float] = []
    for row in by_replication:
        rates = [
            outcome[name]["count"] / _node_cycles(run, plane) for outcome, plane in zip(row, fabric.planes, strict=True)
        ]
        if not any(rates):
            continue
        shares = [rate / math.fsum(rates) for rate in rates]
        means.append(
            math.fsum(
                share * outcome[name]["mean"] * plane.alpha
                for share, outcome, plane in zip(shares, row, fabric.planes, strict=True)
                if share
            )
        )
    if not means:
        return None
    mean = estimate(means)
    if len(by_replication) == 1 and name == _PACKET:
        # Planes are independent: variances of their batch means add.
        parts = [
            share * plane.alpha * _batch_half_width(outcome)
            for share, plane, outcome in zip(shares, fabric.planes, by_replication[0], strict=True)
            if share
        ]
        mean = MeanEstimate(value=mean.value, half_width=math.hypot(*parts))
    return mean


# Limit of the characters of scenarios that are simulated at once: the paths of a large mesh take tens of millions for
# each load, and some hundred scenarios keep all cores busy.
_MAX_CHARACTERS = 200_000_000


def simulate(
    fabric: Fabric, run: SimulationPhases | None = None, *, on_progress: ShareProgress | None = None
) -> Simulated:
    """Simulate a fabric at its load: planes times replications, on all cores.

    A load over saturation is simulated and marked: :attr:`Simulated.is_saturated`, with latencies of None.

    Parameters
    ----------
    fabric : Fabric
        See :func:`routecast.noc.simulate.single` and :func:`~routecast.noc.simulate.allocated`.
    run : SimulationPhases, optional
    on_progress : callable, optional
        Is called with the finished share.

    Raises
    ------
    ModelProblem
        The routing can deadlock (with the cycle), needs more virtual channels than there are, or has no path for a
        flow.

    Examples
    --------
    Packets of 4 flits that hardly meet need 4 cycles for each router, a cycle for the first channel and one for each
    flit. Between two of 2 x 2 routers they pass 7/3 routers on average: 4 * 7/3 + 1 + 4 = 14.3.

    >>> from routecast.noc.routing.policies import routes
    >>> from routecast.noc.simulate import Packets, RouterDesign, single
    >>> from routecast.noc.topology import Topology, TopologyKind
    >>> from routecast.noc.patterns import uniform
    >>> mesh = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
    >>> traffic = uniform(mesh).scaled(0.002)
    >>> packets = Packets(flits=(4,))
    >>> fabric = single(mesh, traffic, routes("xy", mesh), design=RouterDesign.booksim(), packets=packets)
    >>> answer = simulate(fabric, SimulationPhases(replications=4, measure_cycles=100_000))
    >>> round(answer.packet_latency_cycles.value)
    14
    """
    return simulate_all([fabric], run, on_progress=on_progress)[0]


def sweep(
    fabric: Fabric,
    factors: Sequence[float],
    run: SimulationPhases | None = None,
    *,
    on_progress: ShareProgress | None = None,
) -> tuple[Simulated, ...]:
    """Simulate a fabric at several loads at once; clocks stay as they are.

    All loads have the same random streams, so that curves are smooth.

    Parameters
    ----------
    fabric : Fabric
    factors : sequence of float
        Multiples of the fabric's traffic, 0 or more; a result for each.
    run, on_progress
        As in :func:`simulate`.

    Raises
    ------
    ModelProblem
        As :func:`simulate`.
    """
    return simulate_all([fabric.scaled(factor) for factor in factors], run, names=factors, on_progress=on_progress)


def simulate_all(
    fabrics: Sequence[Fabric],
    run: SimulationPhases | None = None,
    *,
    names: Sequence[float] | None = None,
    on_progress: ShareProgress | None = None,
) -> tuple[Simulated, ...]:
    """Simulate fabrics at once: all their planes and replications share the cores.

    ``names``: :attr:`Simulated.load` of each, 1 by default. Raises ModelProblem: as :func:`simulate`.
    """
    run = run or SimulationPhases()
    loads = [1.0] * len(fabrics) if names is None else names
    total = sum(len(fabric.planes) for fabric in fabrics) * run.replications
    results: list[Simulated] = []
    waiting: list[tuple[Fabric, float, list[str]]] = []
    done = 0
    for number, (fabric, load) in enumerate(zip(fabrics, loads, strict=True), start=1):
        waiting.append((fabric, load, scenario_texts(fabric, run)))
        if number < len(fabrics) and sum(len(text) for _, _, texts in waiting for text in texts) < _MAX_CHARACTERS:
            continue
        count = sum(len(texts) for _, _, texts in waiting)
        answers = iter(
            _outcome_texts([text for _, _, texts in waiting for text in texts], on_progress, done, count, total)
        )
        for simulated_fabric, name, texts in waiting:
            outcomes = [json.loads(answer) for answer in islice(answers, len(texts))]
            results.append(simulated(simulated_fabric, run, outcomes, load=name))
        waiting.clear()
        done += count
    return tuple(results)


def _outcome_texts(texts: list[str], on_progress: ShareProgress | None, done: int, count: int, total: int) -> list[str]:
    from routecast.noc import _noc  # the compiled part is loaded where it is used

    report = None if on_progress is None else lambda share: on_progress((done + share * count) / total)
    try:
        return _noc.noc_simulate(texts, progress=report)
    except _noc.NocError as error:
        raise ModelProblem("network on chip", [Problem("", error.args[1])]) from None
