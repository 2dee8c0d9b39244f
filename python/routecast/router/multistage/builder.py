"""The multistage router: load balancers, an interconnect, back-end routers (thesis, sec. 1.2)."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.router.model import Route, RouteKind, RouterModel
from routecast.router.multistage.check import Balancing, balance_function, check_multistage
from routecast.router.multistage.control import Control, with_control
from routecast.router.multistage.interconnect import Interconnect
from routecast.router.multistage.ways import Element, Ways
from routecast.router.virtual.assembly import Assembly
from routecast.router.virtual.machines import Machine, Server

__all__ = ["multistage_router"]

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

    The two passes of a balancer are work of the same thread. An element is a machine, virtual or physical: what it runs
    on is its server's technology, and servers may differ.

    Parameters
    ----------
    servers : sequence of Server
        Their cards interrupt their cores in turn, those of outer ports first, then those of links between servers.
    balancers : sequence of Machine
        Load balancers. Each has an interface to the outside (0) and one to the interconnect (1).
    routers : sequence of Machine
        Back-end routers, with one interface each.
    interconnect : Interconnect or None
        None: virtual switches, and cables of 1 Gbit/s between servers.
    balancing : {"round_robin", "flow_hash", "local"}
        ``round_robin``: frame by frame to all routers. ``flow_hash``: by the flow's hash. ``local``: frame by frame to
        the routers on the balancer's own server, at the cost of ``balance_local`` where it is given (thesis, sec.
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
        There is no balancer or router, a name is unknown, a core is not there, a number is out of range: all at once.
    """
    interconnect = interconnect or Interconnect()
    title = name or _title(balancers, routers, servers)
    check_multistage(
        f"router {title!r}",
        servers,
        balancers,
        routers,
        interconnect=interconnect,
        balancing=balancing,
        ports_per_balancer=ports_per_balancer,
        link_bps=link_bps,
        control=control,
    )
    assembly = Assembly(servers)
    first = [Element(machine=one, interface=_INSIDE, takes=f"{one.name} return") for one in balancers]
    last = [Element(machine=one, interface=0, takes=f"{one.name} forward") for one in routers]
    served = {
        one: [other for other in last if balancing != "local" or other.machine.server == one.machine.server]
        for one in first
    }
    to_routers = [(one, other) for one in first for other in served[one]]
    ways = Ways(assembly, interconnect, [*to_routers, *((other, one) for other in last for one in first)])
    ports = tuple(f"port {number}" for number in range(len(balancers) * ports_per_balancer))

    for number, port in enumerate(ports):
        # Outer ports take interrupt cores before the links between servers do.
        assembly.card(first[number // ports_per_balancer].machine.server, port)
    for one in first:
        out = assembly.to_port(one.machine, interface=_OUTSIDE, route=Route(kind="egress", to=ports))
        route = Route(to=(out,)) if out else Route(kind="egress", to=ports)
        assembly.function(one.machine, "return", route)
    for other in last:
        back = tuple(ways.lay(other, one) for one in first for _ in range(ports_per_balancer))
        assembly.function(other.machine, "forward", Route(kind="by_egress", to=back))
    for number, one in enumerate(first):
        there = tuple(ways.lay(one, other) for other in served[one])
        balance = assembly.function(
            one.machine,
            balance_function(one.machine, assembly.servers[one.machine.server], balancing),
            Route(to=there) if len(there) == 1 else Route(kind=_KINDS[balancing], to=there),
            label="balance",
        )
        for port in ports[number * ports_per_balancer : (number + 1) * ports_per_balancer]:
            entry = assembly.from_wire(one.machine, interface=_OUTSIDE, wire=port, to=balance)
            assembly.port(port, link_bps, entry=entry, tx_ring_frames=tx_ring_frames)
    model = assembly.model(title)
    return model if control is None else with_control(model, servers, (*balancers, *routers), control)


def _title(balancers: Sequence[Machine], routers: Sequence[Machine], servers: Sequence[Server]) -> str:
    where = f"{len(servers)} server{'s' if len(servers) != 1 else ''}"
    return f"{len(balancers)} LB + {len(routers)} BR on {where}"
