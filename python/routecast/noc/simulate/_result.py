"""What a simulation of one load says, in cycles of the nodes.

Which channel of a plane is asked for most, before anything is simulated.

Power of a simulated fabric by a table of router power (Li 2012, eq. 7.14), with the loads that were simulated.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from routecast.errors import RoutecastError
from routecast.evaluate.plain import plain
from routecast.noc.power.router_table import RouterTable
from routecast.noc.power.table_power import PlanePower
from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.simulate._fabric import Fabric, SimulatedPlane
from routecast.noc.traffic.model import Traffic
from routecast.quantity.schema import value


def simulated_power(table: RouterTable, simulated: Simulated) -> tuple[PlanePower, ...]:
    """Return the power of every plane: the sum over its routers of eq. 7.14 at the clock that it was simulated at.

    The nodes' clock is the fastest of the table; a plane runs at 1/alpha of it. A router's load is what passed it, over
    its ports. A plane that carried nothing idles.

    ``table``: of the routers of all planes; ``simulated``: a load. Raises RoutecastError: planes of several widths, or
    the table states too little, such as no power at so slow a clock.
    """
    if len({plane.width for plane in simulated.planes}) > 1:
        msg = f'one table, "{table.name}", for planes of several widths: their routers are not alike'
        raise RoutecastError(msg)
    return tuple(_plane_power(table, plane) for plane in simulated.planes)


def _plane_power(table: RouterTable, plane: PlaneResult) -> PlanePower:
    frequency = table.fastest_hz / plane.alpha
    # A slower clock has fewer cycles for the same flits.
    loads = plane.router_loads * (plane.alpha / table.ports)
    bounds = np.array([table.power_bounds_w(float(load), frequency) for load in loads])
    least, greatest = bounds.sum(axis=0)
    return PlanePower(
        frequency_hz=frequency, asleep=False, router_loads=loads, least_w=float(least), greatest_w=float(greatest)
    )


@value
class Channel:
    """A channel in words, and what it is offered in its capacities at the clock of its plane."""

    name: str
    load: float


def busiest(fabric: Fabric, plane: SimulatedPlane) -> Channel:
    """Return the channel of a plane with the highest load: a link, or one between a node and its router.

    The flow level looks at links alone. A hot spot, though, can be sent more than the channels to its node take.
    Links of adaptive routings are left out: no flow level knows their loads.
    """
    per_flit = plane.alpha / plane.width
    received = plane.demand.sum(axis=0) * (per_flit / fabric.design.ejection_channels)
    sent = plane.demand.sum(axis=1) * per_flit
    to_node, from_node = int(np.argmax(received)), int(np.argmax(sent))
    nodes = [
        Channel(name=f"the channel to node {to_node}", load=float(received[to_node])),
        Channel(name=f"the channel from node {from_node}", load=float(sent[from_node])),
    ]
    if isinstance(plane.routing, Routes):
        demand = Traffic(name="", demand=plane.demand).between_routers(fabric.topology)
        loads = link_loads(plane.routing, demand) * per_flit
        link = int(np.argmax(loads))
        nodes.append(Channel(name=f"the link {fabric.topology.link_name(link)}", load=float(loads[link])))
    return max(nodes, key=lambda channel: channel.load)


@value
class MeanEstimate:
    """A mean and the half-width of its 95 % interval, which is NaN where there is none."""

    value: float
    half_width: float = math.nan

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean where there is no interval."""
        return self.value if math.isnan(self.half_width) else self.value - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean where there is no interval."""
        return self.value if math.isnan(self.half_width) else self.value + self.half_width

    def scaled(self, factor: float) -> MeanEstimate:
        """Return the same in another unit."""
        return MeanEstimate(value=self.value * factor, half_width=self.half_width * abs(factor))


def estimate(values: Sequence[float]) -> MeanEstimate:
    """Return the mean of independent values and its 95 % interval by Student's t.

    One value has no interval; no value, or one that is NaN, gives NaN.
    """
    count = len(values)
    if not count or any(math.isnan(value) for value in values):
        return MeanEstimate(value=math.nan)
    mean = math.fsum(values) / count
    if count < 2:
        return MeanEstimate(value=mean)
    from scipy.special import stdtrit  # scipy is loaded where it is used

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    quantile = float(stdtrit(count - 1, 0.975))
    return MeanEstimate(value=mean, half_width=quantile * math.sqrt(variance / count))


@value
class Latency:
    """A latency in cycles of the nodes: its mean over all measured, and its percentiles as the mean of replications.

    ``max_cycles`` is the largest of all replications.
    """

    mean_cycles: MeanEstimate
    p50_cycles: MeanEstimate
    p95_cycles: MeanEstimate
    p99_cycles: MeanEstimate
    max_cycles: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneResult:
    """One plane.

    ``alpha`` and ``width``: as simulated; ``packet_latency``: from the making of a packet in its node's queue until its
    tail has arrived; None where it is unbounded, or nothing was sent; ``network_latency``: from the head's leaving of
    the queue; ``flit_latency``: from each flit's leaving of the queue until it has arrived; ``mean_routers``: routers
    on the way of a packet; ``offered_flits_node_cycle`` and ``accepted_flits_node_cycle``: flits of this plane per node
    and cycle of the nodes, made and arrived in the measurement; ``link_loads`` and ``link_half_widths``: shape
    (links,): flits per cycle of the nodes, that is in capacities of this plane at full clock, and half the width of
    their 95 % intervals; ``router_loads``: shape (routers,): flits through each router per cycle of the nodes;
    ``power``: flits over links per cycle of the nodes, times width, over alpha squared (eq. 6.2 with what was carried);
    ``overload``: signs of saturation in words; none for a plane that carries its traffic.
    """

    alpha: float
    width: float
    packet_latency: Latency | None
    network_latency: Latency | None
    flit_latency: Latency | None
    mean_routers: MeanEstimate
    offered_flits_node_cycle: MeanEstimate
    accepted_flits_node_cycle: MeanEstimate
    link_loads: NDArray[np.float64]
    link_half_widths: NDArray[np.float64]
    router_loads: NDArray[np.float64]
    power: MeanEstimate
    overload: tuple[str, ...]

    @property
    def is_saturated(self) -> bool:
        """Whether it got more than it carries."""
        return bool(self.overload)

    @property
    def busy_ratios(self) -> NDArray[np.float64]:
        """Part of its own cycles in which each link carries a flit, shape (links,)."""
        return self.link_loads * self.alpha

    @property
    def flit_hops_node_cycle(self) -> float:
        """Flits through all routers per cycle of the nodes; a flit over h links passes h + 1 routers."""
        return float(self.router_loads.sum())

    def to_json(self) -> dict[str, object]:
        """Return plain data: NaN becomes null, arrays lists."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: plain(value.tolist() if isinstance(value, np.ndarray) else value) for name, value in values}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """A fabric at one load, over all planes and replications. Flits are those of the first plane.

    ``load``: what the load is called: the factor of a sweep, 1 elsewhere; ``demand_flits_node_cycle``: what the traffic
    matrix asks for per node and cycle of the nodes; ``offered_flits_node_cycle`` and ``accepted_flits_node_cycle``:
    what was made and what arrived in the measurement; ``packet_latency_cycles``, ``network_latency_cycles`` and
    ``flit_latency_cycles``: means over all packets of all planes; None where a plane is saturated (unbounded), or
    nothing was sent; ``power``: sum over planes, in links that are always busy at full voltage: compares with
    ``Allocation.power`` and :meth:`routecast.noc.power.Scaling.power`; ``energy_per_flit``: power over all accepted
    flits: 1 is one flit over one link at full voltage; ``planes``: each plane; ``replications``: independent runs;
    ``node_hz``: clock of the nodes, if it was given.
    """

    load: float
    demand_flits_node_cycle: float
    offered_flits_node_cycle: MeanEstimate
    accepted_flits_node_cycle: MeanEstimate
    packet_latency_cycles: MeanEstimate | None
    network_latency_cycles: MeanEstimate | None
    flit_latency_cycles: MeanEstimate | None
    power: MeanEstimate
    energy_per_flit: MeanEstimate
    planes: tuple[PlaneResult, ...] = dataclasses.field(repr=False)
    replications: int
    node_hz: float | None = None

    @property
    def is_saturated(self) -> bool:
        """Whether some plane got more than it carries; latency is unbounded then."""
        return any(plane.is_saturated for plane in self.planes)

    @property
    def overload(self) -> tuple[str, ...]:
        """Signs of saturation in words, with the plane's number where there are more."""
        if len(self.planes) == 1:
            return self.planes[0].overload
        return tuple(
            f"plane {number}: {sign}" for number, plane in enumerate(self.planes, 1) for sign in plane.overload
        )

    @property
    def packet_latency_s(self) -> MeanEstimate | None:
        """Mean packet latency in seconds; None where it is unbounded or the clock of the nodes is not given."""
        if self.packet_latency_cycles is None or self.node_hz is None:
            return None
        return self.packet_latency_cycles.scaled(1 / self.node_hz)

    @property
    def packet_percentiles(self) -> Latency | None:
        """Percentiles of packet latency with one plane; None with more (look at each), or where it is unbounded."""
        return self.planes[0].packet_latency if len(self.planes) == 1 else None

    def to_json(self) -> dict[str, object]:
        """Return plain data for ``--json``: NaN and what is unbounded become null, arrays lists."""
        row: dict[str, object] = {
            name: plain(getattr(self, name))
            for name in (
                "load",
                "demand_flits_node_cycle",
                "offered_flits_node_cycle",
                "accepted_flits_node_cycle",
                "packet_latency_cycles",
                "network_latency_cycles",
                "flit_latency_cycles",
                "packet_latency_s",
                "power",
                "energy_per_flit",
                "is_saturated",
                "overload",
                "replications",
                "node_hz",
            )
        }
        row["planes"] = [plane.to_json() for plane in self.planes]
        return row
