"""The multistage router: load balancers, an interconnect, back-end routers (Li 2012, sec. 1.2)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from routecast.quantity.schema import field, value
from routecast.router.model import Route, RouteKind, RouterModel, ServiceCost
from routecast.virtual.assembly import Assembly
from routecast.virtual.machines import Machine, Server
from routecast.virtual.multistage.check import (
    Balancing,
    Connections,
    Control,
    Interconnect,
    balance_function,
    check_multistage,
    with_control,
)

__all__ = ["multistage_router"]


FILTER = "filter"
"""Name of a machine's work on a frame of another machine."""

_SWITCH = "switch"


@value
class Element:
    """A machine of the multistage router and its interface to the other elements."""

    machine: Machine = dataclasses.field(compare=False)
    interface: int = field("Interface on the interconnect")
    takes: str = field("Task unit that receives the frames of that interface; each element has its own")


class Paths:
    """Adds the paths between elements to an assembly.

    ``pairs``: all senders with their receivers; the paths over a ring or link share it evenly.
    """

    def __init__(
        self, assembly: Assembly, interconnect: Interconnect, pairs: Sequence[tuple[Element, Element]]
    ) -> None:
        self._assembly = assembly
        self._interconnect = interconnect
        self._elements = tuple(dict.fromkeys(end for pair in pairs for end in pair))
        self._sharing_ring = Counter(sender for sender, _ in pairs)
        self._on_server: dict[str, list[str]] = {}
        for element in self._elements:
            self._on_server.setdefault(element.machine.server, []).append(element.machine.name)
        self._sharing_wire = Counter(wire for pair in pairs for wire in self.wires(*pair))
        arriving = {(self.wires(*pair)[-1], pair[1]) for pair in pairs if self.wires(*pair)}
        self._sharing_card = Counter(wire for wire, _ in arriving)

    def wires(self, sender: Element, receiver: Element) -> tuple[str, ...]:
        """Return the pools that frames from one element to another cross between servers, in that order."""
        source, target = sender.machine, receiver.machine
        if source.server == target.server:
            return ()
        if self._interconnect.joined == "cable":
            return (f"{source.server} to {target.server}{self._link(source)}",)
        up = f"{source.server} to {_SWITCH}{self._link(source)}"
        down = f"{_SWITCH} to {target.server}{self._link(target)}"
        return (up, down) if self._interconnect.switch_bps is None else (up, _SWITCH, down)

    def add(self, sender: Element, receiver: Element) -> str:
        """Add the path from one element to another; return its first task unit."""
        source, target = sender.machine, receiver.machine
        extra = ServiceCost(per_packet_s=self._interconnect.tag_s)
        copies = self._copies(sender, receiver)
        if source.server == target.server:
            return self._assembly.to_machine(
                source,
                interface=sender.interface,
                receiver=target,
                receiver_interface=receiver.interface,
                to=receiver.takes,
                extra=extra,
                ring_share=self._sharing_ring[sender],
                copies=copies,
            )
        wires = self.wires(sender, receiver)
        after = self._assembly.from_wire(
            target,
            interface=receiver.interface,
            wire=wires[-1],
            to=receiver.takes,
            card_share=self._sharing_card[wires[-1]],
        )
        for wire in reversed(wires):
            after = self._wire(wire, f"({source.name} to {target.name})", after)
        out = self._assembly.to_port(
            source,
            interface=sender.interface,
            route=Route(to=(after,), copies=copies),
            label=f"{source.name} send {sender.interface} to {target.name}",
            extra=extra,
            ring_share=self._sharing_ring[sender],
        )
        return out or after

    def _wire(self, name: str, label: str, to: str = "") -> str:
        rate_bps = self._interconnect.switch_bps if name == _SWITCH else None
        return self._assembly.wire(
            name,
            rate_bps or self._interconnect.link_bps,
            to=to,
            label=label,
            queue_frames=max(self._interconnect.link_queue_frames // max(self._sharing_wire[name], 1), 1),
            tag_bytes=self._interconnect.tag_bytes,
        )

    def _link(self, machine: Machine) -> str:
        """Name the link that an element uses, where there are several."""
        links = self._interconnect.links
        return f" link {self._on_server[machine.server].index(machine.name) % links}" if links > 1 else ""

    def _copies(self, sender: Element, receiver: Element) -> tuple[str, ...]:
        """Add the cost of a shared hub's copies of a frame; return the task units that get a copy.

        A virtual switch in promiscuous mode sends each frame to all its ports, including the port to the outside. A
        cable carries it to the other servers' hubs; a physical switch knows the port of the receiver.
        """
        if self._interconnect.kind != "shared_hub":
            return ()
        here, there = sender.machine.server, receiver.machine.server
        cabled = self._interconnect.joined == "cable"
        reached = list(self._on_server) if cabled else [here, there]
        copies: list[str] = []
        for server in self._on_server:
            if server not in (here, there) or (server != here and here == there):
                copies += self._flooded_links(sender, server)
        for element in self._elements:
            if element not in (sender, receiver) and element.machine.server in reached:
                copies += self._discarded_copies(element)
        return tuple(dict.fromkeys(copies))

    def _flooded_links(self, sender: Element, server: str) -> list[str]:
        """Add a hub's copies on the path to a server that the frame itself does not go to."""
        here, link = sender.machine.server, self._link(sender.machine)
        if self._interconnect.joined == "switch":
            return [self._wire(f"{here} to {_SWITCH}{link}", "(copies)")]
        cable = f"{here} to {server}{link}"
        return [self._wire(cable, "(copies)"), self._assembly.off_wire(server, cable, Route(), label=f"{cable} copies")]

    def _discarded_copies(self, element: Element) -> list[str]:
        """Add the work of an element that discards a frame of another element."""
        machine = element.machine
        tasks = [self._assembly.into(machine, interface=element.interface, to=element.takes)]
        if self._interconnect.filtered_by == "guest":
            listener = replace(machine, vcpus=1, functions={FILTER: ServiceCost()})
            tasks.append(self._assembly.function(listener, FILTER, Route()))
        return tasks


_OUTSIDE, _INSIDE = 0, 1
"""A balancer's interfaces."""

_KINDS: dict[str, RouteKind] = {"round_robin": "round_robin", "flow_hash": "rss", "local": "round_robin"}


def multistage_router(
    servers: Sequence[Server],
    balancers: Sequence[Machine],
    routers: Sequence[Machine],
    *,
    interconnect: Interconnect | None = None,
    balancing: Balancing = "round_robin",
    ports_per_balancer: int = 1,
    link_bps: float = 1e9,
    tx_ring_frames: int = 512,
    control: Control | None = None,
    name: str = "",
) -> RouterModel:
    """Build a multistage router.

    ::

        port ─► balancer i ────► interconnect ────► router k ────► interconnect ────► balancer j ─► port
                balance          virtual switch     forward        and back           return
                (which k)        or link            (which port)

    The same thread of a balancer does both passes. An element is a machine, virtual or physical, on the technology of
    its server; servers may differ.

    Parameters
    ----------
    servers : sequence of Server
        Their cards interrupt their cores in turn, first the cards of outer ports, then those of links between servers.
    balancers : sequence of Machine
        Load balancers. Each has an interface to the outside (0) and one to the interconnect (1).
    routers : sequence of Machine
        Back-end routers, with one interface each.
    interconnect : Interconnect or None
        None: virtual switches, and cables of 1 Gbit/s between servers.
    balancing : {"round_robin", "flow_hash", "local"}
        ``round_robin``: frame by frame to all routers. ``flow_hash``: by the flow's hash. ``local``: frame by frame to
        the routers on the balancer's own server, at the cost of ``balance_local`` where it is given (Li 2012, sec.
        3.4.1, scenario B.2: "the LB configuration is much simpler").
    ports_per_balancer : int
        Outer interfaces of each balancer: ``port n`` is one of balancer ``n // ports_per_balancer``.
    link_bps : float
        Rate of each port, each direction.
    tx_ring_frames : int
        Transmit ring of each port.
    control : Control or None
        Messages of the control plane.
    name : str

    Raises
    ------
    routecast.errors.ModelProblem
        With all problems: no balancer or router, an unknown name, a missing core, a number out of range.
    """
    interconnect = interconnect or Interconnect()
    title = name or _title(balancers, routers, servers)
    check_multistage(
        f"router {title!r}",
        servers,
        balancers,
        routers,
        Connections(
            interconnect=interconnect,
            balancing=balancing,
            ports_per_balancer=ports_per_balancer,
            link_bps=link_bps,
            tx_ring_frames=tx_ring_frames,
            control=control,
        ),
    )
    assembly = Assembly(servers)
    first = [Element(machine=balancer, interface=_INSIDE, takes=f"{balancer.name} return") for balancer in balancers]
    last = [Element(machine=router, interface=0, takes=f"{router.name} forward") for router in routers]
    served = {
        stage: [other for other in last if balancing != "local" or other.machine.server == stage.machine.server]
        for stage in first
    }
    to_routers = [(stage, other) for stage in first for other in served[stage]]
    paths = Paths(assembly, interconnect, [*to_routers, *((other, stage) for other in last for stage in first)])
    ports = tuple(f"port {number}" for number in range(len(balancers) * ports_per_balancer))

    for number, port in enumerate(ports):
        # Outer ports take interrupt cores before the links between servers do.
        assembly.card(first[number // ports_per_balancer].machine.server, port)
    for stage in first:
        out = assembly.to_port(stage.machine, interface=_OUTSIDE, route=Route(kind="egress", to=ports))
        route = Route(to=(out,)) if out else Route(kind="egress", to=ports)
        assembly.function(stage.machine, "return", route)
    for other in last:
        back = tuple(paths.add(other, stage) for stage in first for _ in range(ports_per_balancer))
        assembly.function(other.machine, "forward", Route(kind="by_egress", to=back))
    for number, stage in enumerate(first):
        targets = tuple(paths.add(stage, other) for other in served[stage])
        balance = assembly.function(
            stage.machine,
            balance_function(stage.machine, assembly.servers[stage.machine.server], balancing),
            Route(to=targets) if len(targets) == 1 else Route(kind=_KINDS[balancing], to=targets),
            label="balance",
        )
        for port in ports[number * ports_per_balancer : (number + 1) * ports_per_balancer]:
            entry = assembly.from_wire(stage.machine, interface=_OUTSIDE, wire=port, to=balance)
            assembly.port(port, link_bps, entry=entry, tx_ring_frames=tx_ring_frames)
    model = assembly.model(title)
    return model if control is None else with_control(model, servers, (*balancers, *routers), control)


def _title(balancers: Sequence[Machine], routers: Sequence[Machine], servers: Sequence[Server]) -> str:
    where = f"{len(servers)} server{'s' if len(servers) != 1 else ''}"
    return f"{len(balancers)} LB + {len(routers)} BR on {where}"
