"""The simulated fabric: a topology, its routers, and planes that carry the traffic at their own clocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from routecast.errors import ModelProblem, Problem
from routecast.noc.planes.model import Allocation
from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.scaling import Scaling
from routecast.noc.simulate._design import AdaptiveRouting, Bernoulli, Injection, Packets, RouterDesign
from routecast.noc.topology import Topology
from routecast.noc.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulatedPlane:
    """A plane with its traffic, routing and clock, independent of the other planes.

    ``demand``: shape (nodes, nodes), in capacities of a link of the first plane at full clock, that is in its flits per
    cycle of the nodes; the diagonal crosses its router and no link; ``routing``: paths of the flows, or adaptive
    routing; ``alpha``: expansion factor: clock and voltage are 1/alpha of the highest; ``width``: width of its links
    relative to the first plane's.
    """

    demand: NDArray[np.float64]
    routing: Routes | AdaptiveRouting
    alpha: float = 1.0
    width: float = 1.0

    def bottleneck(self, topology: Topology) -> float:
        """Return the load of the most loaded link at the flow level, in capacities of the plane at full clock.

        NaN for adaptive routing, whose link loads the flow level does not give.
        """
        if isinstance(self.routing, AdaptiveRouting):
            return math.nan
        demand = Traffic(name="", demand=self.demand).between_routers(topology)
        return float(link_loads(self.routing, demand).max(initial=0.0)) / self.width


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fabric:
    """A network on chip at one load: the input of the simulator.

    ``topology`` and ``design``: of every plane; ``packets``: in flits of the first plane; ``node_hz``: clock of the
    nodes, for times in seconds. Raises ModelProblem: all sizes, demands, alphas and widths that do not fit.
    """

    topology: Topology
    planes: tuple[SimulatedPlane, ...]
    design: RouterDesign
    packets: Packets
    injection: Injection = field(default_factory=Bernoulli)
    node_hz: float | None = None

    def __post_init__(self) -> None:
        problems = [] if self.planes else [Problem("planes", "got none: give at least one")]
        nodes = self.topology.node_count
        for number, plane in enumerate(self.planes):
            place = f"planes[{number}]"
            if plane.demand.shape != (nodes, nodes):
                problems.append(
                    Problem(f"{place}.demand", f"got the shape {plane.demand.shape} for a topology of {nodes} nodes")
                )
            elif not np.all(np.isfinite(plane.demand) & (plane.demand >= 0)):
                problems.append(Problem(f"{place}.demand", "got a negative or infinite entry: rates are 0 or more"))
            if not (math.isfinite(plane.alpha) and plane.alpha >= 1):
                problems.append(
                    Problem(f"{place}.alpha", f"got {plane.alpha:g}: at least 1, which is the nodes' clock")
                )
            if not (math.isfinite(plane.width) and plane.width > 0):
                problems.append(Problem(f"{place}.width", f"got {plane.width:g}: above 0"))
            if plane.routing.topology != self.topology:
                problems.append(Problem(f"{place}.routing", "its paths are those of another topology"))
        if self.node_hz is not None and not (math.isfinite(self.node_hz) and self.node_hz > 0):
            problems.append(Problem("node_hz", f"got {self.node_hz:g}: above 0"))
        if problems:
            raise ModelProblem("network on chip", problems)

    @property
    def offered_flits_node_cycle(self) -> float:
        """Flits of the first plane that a node creates per cycle, the mean over all nodes."""
        return math.fsum(float(plane.demand.sum()) for plane in self.planes) / self.topology.node_count

    def scaled(self, factor: float) -> Fabric:
        """Return the same fabric with ``factor`` times the traffic; clocks stay."""
        planes = tuple(replace(plane, demand=plane.demand * factor) for plane in self.planes)
        return replace(self, planes=planes)

    def slowed(self, scaling: Scaling, *, busy_ratio: float = 1.0) -> Fabric:
        """Return the same fabric with every plane at the slowest clock that its flows allow (DVFS).

        ``busy_ratio``: largest load of a link at that clock, up to 1. At 1, Li's rule alpha = min(1/rho, alpha_max),
        the most loaded link is always busy wherever alpha is below alpha_max, and latency is unbounded. Raises
        RoutecastError: a plane is over capacity at full clock; ModelProblem: the ratio is out of range, or a plane is
        routed adaptively, so that its link loads are unknown.
        """
        _check_busy_ratio(busy_ratio)
        slowed = []
        for number, plane in enumerate(self.planes):
            bottleneck = plane.bottleneck(self.topology)
            if math.isnan(bottleneck):
                problem = Problem(f"planes[{number}]", "is routed adaptively: give its alpha")
                raise ModelProblem("network on chip", [problem])
            slowed.append(replace(plane, alpha=_alpha(scaling, bottleneck, busy_ratio)))
        return replace(self, planes=tuple(slowed))


def single(
    topology: Topology,
    traffic: Traffic,
    routing: Routes | AdaptiveRouting,
    *,
    design: RouterDesign,
    packets: Packets,
    injection: Injection | None = None,
    alpha: float = 1.0,
    node_hz: float | None = None,
) -> Fabric:
    """Return a fabric of one plane.

    Raises ModelProblem: sizes do not fit, a negative rate, or alpha below 1.
    """
    return Fabric(
        topology=topology,
        planes=(SimulatedPlane(demand=traffic.demand, routing=routing, alpha=alpha),),
        design=design,
        packets=packets,
        injection=injection or Bernoulli(),
        node_hz=node_hz,
    )


def allocated(
    topology: Topology,
    traffic: Traffic,
    allocation: Allocation,
    *,
    design: RouterDesign,
    packets: Packets,
    injection: Injection | None = None,
    busy_ratio: float = 1.0,
    node_hz: float | None = None,
) -> Fabric:
    """Return a fabric whose planes carry the flows of an allocation, each at the slowest clock that they allow.

    Traffic between nodes of one router loads no link and is in no allocation: it crosses the first plane.

    ``topology`` and ``traffic``: those of the allocation; ``busy_ratio``: as :meth:`Fabric.slowed`. Raises
    ModelProblem: the planes do not carry the traffic, or a size does not fit; RoutecastError: a plane is over capacity
    at full clock.
    """
    _check_busy_ratio(busy_ratio)
    shares = _plane_shares(topology, traffic, allocation)
    planes = tuple(
        SimulatedPlane(
            demand=traffic.demand * share,
            routing=plane.routes,
            alpha=_alpha(plane.scaling, float(plane.link_loads.max(initial=0.0)), busy_ratio),
            width=plane.width,
        )
        for plane, share in zip(allocation.planes, shares, strict=True)
    )
    return Fabric(
        topology=topology,
        planes=planes,
        design=design,
        packets=packets,
        injection=injection or Bernoulli(),
        node_hz=node_hz,
    )


def _plane_shares(topology: Topology, traffic: Traffic, allocation: Allocation) -> Sequence[NDArray[np.float64]]:
    """Return the part of each flow between nodes on each plane."""
    routers, concentration = topology.router_count, topology.concentration
    total = traffic.between_routers(topology)
    carried = np.array([plane.demand for plane in allocation.planes])
    if carried.shape[1:] != total.shape:
        message = f"is for {carried.shape[-1]} routers; the topology has {routers}"
        raise ModelProblem("network on chip", [Problem("allocation", message)])
    differences = np.argwhere(~np.isclose(np.sum(carried, axis=0), total, rtol=1e-6, atol=1e-12))
    if differences.size:
        source, target = (int(end) for end in differences[0])
        message = (
            f"its planes carry {carried[:, source, target].sum():.6g} from {topology.router_name(source)} to "
            f"{topology.router_name(target)}, the traffic is {total[source, target]:.6g}: allocate this traffic"
        )
        raise ModelProblem("network on chip", [Problem("allocation", message)])
    shares = np.divide(carried, total, out=np.zeros_like(carried), where=total > 0)
    shares[0][np.eye(routers, dtype=bool)] = 1.0
    return [share.repeat(concentration, axis=0).repeat(concentration, axis=1) for share in shares]


def _alpha(scaling: Scaling, bottleneck: float, busy_ratio: float) -> float:
    # Where the flows need the full clock, no slack is left.
    return max(1.0, min(scaling.alpha(bottleneck), busy_ratio / bottleneck if bottleneck > 0 else math.inf))


def _check_busy_ratio(busy_ratio: float) -> None:
    if not 0 < busy_ratio <= 1:
        problem = Problem("busy_ratio", f"got {busy_ratio:g}: above 0, up to 1")
        raise ModelProblem("network on chip", [problem])
