"""Which channel of a plane is asked for most, before anything is simulated."""

from __future__ import annotations

import numpy as np

from routecast.noc.routing.model import Routes, link_loads
from routecast.noc.simulate.fabric import Fabric, SimulatedPlane
from routecast.noc.traffic.model import Traffic
from routecast.quantity.schema import value

__all__ = ["Channel", "busiest"]


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
    found = [
        Channel(name=f"the channel to node {to_node}", load=float(received[to_node])),
        Channel(name=f"the channel from node {from_node}", load=float(sent[from_node])),
    ]
    if isinstance(plane.routing, Routes):
        demand = Traffic(name="", demand=plane.demand).between_routers(fabric.topology)
        loads = link_loads(plane.routing, demand) * per_flit
        link = int(np.argmax(loads))
        found.append(Channel(name=f"the link {fabric.topology.link_name(link)}", load=float(loads[link])))
    return max(found, key=lambda channel: channel.load)
