"""Results of a simulation at one load, in cycles of the nodes; and the busiest channel that the flow level expects."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.plain import plain
from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.simulate._fabric import Fabric, SimulatedPlane
from routecast.noc.traffic import Traffic
from routecast.quantity.schema import value

__all__ = ["Channel", "Latency", "MeanEstimate", "PlaneResult", "Simulated", "busiest_channel", "estimate"]


@value
class Channel:
    """A link, or a channel between a node and its router: its name, and its offered load in its own capacities."""

    name: str
    load: float


def busiest_channel(fabric: Fabric, plane: SimulatedPlane) -> Channel:
    """Return the channel of a plane with the highest load at the plane's clock.

    The flow level considers links alone, but a hot spot can receive more flits than the channels to its node carry.
    Links of adaptive routings are left out: the flow level does not give their loads.
    """
    per_flit = plane.alpha / plane.width
    received = plane.demand.sum(axis=0) * (per_flit / fabric.design.ejection_channels)
    sent = plane.demand.sum(axis=1) * per_flit
    to_node, from_node = int(np.argmax(received)), int(np.argmax(sent))
    channels = [
        Channel(name=f"the channel to node {to_node}", load=float(received[to_node])),
        Channel(name=f"the channel from node {from_node}", load=float(sent[from_node])),
    ]
    if isinstance(plane.routing, Routes):
        demand = Traffic(name="", demand=plane.demand).between_routers(fabric.topology)
        loads = link_loads(plane.routing, demand) * per_flit
        link = int(np.argmax(loads))
        channels.append(Channel(name=f"the link {fabric.topology.link_name(link)}", load=float(loads[link])))
    return max(channels, key=lambda channel: channel.load)


@value
class MeanEstimate:
    """A mean and the half-width of its 95 % interval, NaN without an interval."""

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
        """Return the estimate in another unit."""
        return MeanEstimate(value=self.value * factor, half_width=self.half_width * abs(factor))


def estimate(values: Sequence[float]) -> MeanEstimate:
    """Return the mean of independent values and its 95 % interval by Student's t.

    A single value has no interval; no value, or a NaN, gives NaN.
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
    """A latency in cycles of the nodes: mean and percentiles are means over replications, the maximum is over all."""

    mean_cycles: MeanEstimate
    p50_cycles: MeanEstimate
    p95_cycles: MeanEstimate
    p99_cycles: MeanEstimate
    max_cycles: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlaneResult:
    """Results of a plane.

    ``packet_latency``: from the creation of a packet in its node's queue until its tail arrives, None where it is
    unbounded or nothing is sent; ``network_latency``: from the time when the head leaves the queue; ``flit_latency``:
    from the time when a flit leaves the queue until its arrival; ``mean_routers``: routers on the path of a packet;
    ``offered_flits_node_cycle`` and ``accepted_flits_node_cycle``: flits of this plane per node and cycle of the nodes,
    created and arrived in the measurement; ``link_loads`` and ``link_half_widths``: shape (links,): flits per cycle of
    the nodes, that is in capacities of this plane at full clock, and half-widths of their 95 % intervals;
    ``router_loads``: shape (routers,): flits through each router per cycle of the nodes; ``power``: flits over links
    per cycle of the nodes, times width, over alpha squared (eq. 6.2 with the carried flows); ``overload``: signs of
    saturation in words, empty for a plane that carries its traffic.
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
        """Whether the plane is offered more than it carries."""
        return bool(self.overload)

    @property
    def busy_ratios(self) -> NDArray[np.float64]:
        """Part of its own cycles in which each link carries a flit, shape (links,)."""
        return self.link_loads * self.alpha

    def to_json(self) -> dict[str, object]:
        """Return plain data; NaN becomes None, an array a list."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: plain(value.tolist() if isinstance(value, np.ndarray) else value) for name, value in values}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """Results of a fabric at one load, over all planes and replications; flits are those of the first plane.

    ``load``: its name, such as the factor of a sweep; ``demand_flits_node_cycle``: of the traffic matrix, per node and
    cycle of the nodes; ``offered_flits_node_cycle`` and ``accepted_flits_node_cycle``: created and arrived in the
    measurement; latencies: means over all packets of all planes, None where a plane is saturated or nothing is sent;
    ``power``: sum over planes, in links that are always busy at full voltage, as ``Allocation.power`` and
    :meth:`routecast.noc.scaling.Scaling.power`; ``energy_per_flit``: power over accepted flits, 1 for a flit over
    a link at full voltage; ``node_hz``: clock of the nodes, if known.
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
        """Whether some plane is offered more than it carries; latency is unbounded then."""
        return any(plane.is_saturated for plane in self.planes)

    @property
    def overload(self) -> tuple[str, ...]:
        """Signs of saturation in words, with the number of the plane where there are several."""
        if len(self.planes) == 1:
            return self.planes[0].overload
        return tuple(
            f"plane {number}: {sign}" for number, plane in enumerate(self.planes, 1) for sign in plane.overload
        )

    @property
    def packet_latency_s(self) -> MeanEstimate | None:
        """Mean packet latency in seconds; None where it is unbounded or the clock of the nodes is unknown."""
        if self.packet_latency_cycles is None or self.node_hz is None:
            return None
        return self.packet_latency_cycles.scaled(1 / self.node_hz)

    @property
    def packet_percentiles(self) -> Latency | None:
        """Percentiles of packet latency of a single plane; None with several planes, or where latency is unbounded."""
        return self.planes[0].packet_latency if len(self.planes) == 1 else None

    def to_json(self) -> dict[str, object]:
        """Return plain data; NaN and unbounded values become None."""
        return plain(
            {
                "load": self.load,
                "demand_flits_node_cycle": self.demand_flits_node_cycle,
                "offered_flits_node_cycle": self.offered_flits_node_cycle,
                "accepted_flits_node_cycle": self.accepted_flits_node_cycle,
                "packet_latency_cycles": self.packet_latency_cycles,
                "network_latency_cycles": self.network_latency_cycles,
                "flit_latency_cycles": self.flit_latency_cycles,
                "packet_latency_s": self.packet_latency_s,
                "power": self.power,
                "energy_per_flit": self.energy_per_flit,
                "is_saturated": self.is_saturated,
                "overload": self.overload,
                "replications": self.replications,
                "node_hz": self.node_hz,
            }
        ) | {"planes": [plane.to_json() for plane in self.planes]}
