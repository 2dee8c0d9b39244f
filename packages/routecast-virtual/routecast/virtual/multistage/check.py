"""Checks of the servers, elements and interconnect of a multistage router; all faults are reported together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.quantity.fields import BitRate, Count, Duration, FrameCount, FrameRate, Span
from routecast.quantity.schema import field, field_faults, is_faulty, value
from routecast.router.bounds import LINK_RATES_BPS, LONGEST_S, MAX_FRAMES
from routecast.router.model import Interruptions, RandomTime, RouterModel
from routecast.virtual.check import MAX_PORTS, machine_problems
from routecast.virtual.machines import Machine, Server

__all__ = [
    "Balancing",
    "Connections",
    "Control",
    "Filtered",
    "Interconnect",
    "InterconnectKind",
    "Joined",
    "balance_function",
    "check_multistage",
    "with_control",
]


@value
class Control:
    """Messages that every element handles in addition to the frames that it forwards.

    They represent the load of the control plane on the elements, such as the messages of DIST (Li 2012, sec. 1.2). They
    take time of the cores but are not frames of the load: they count neither as offered nor as forwarded. Their work is
    spread over all cores of an element's server. A core that is busy all the time handles exactly ``rate_pps``; a core
    with idle time handles the rest in its idle time.
    """

    rate_pps: FrameRate = field("Messages to and from each element, messages/s")
    # On the technology's reference machine.
    message_s: Duration = field("Work of a message, through host and machine, s", le=LONGEST_S)


def control_problems(control: Control, servers: Sequence[Server], machines: Sequence[Machine]) -> list[Problem]:
    """Return the problems of control traffic."""
    problems = []
    for server in servers:
        rate_hz, message_s = _on_core(control, server, machines)
        if rate_hz * message_s >= 1.0:
            message = f'messages would take {rate_hz * message_s:.3g} of each core of "{server.name}": less than 1 can'
            problems.append(Problem("control.rate_pps", message))
    return problems


def with_control(
    model: RouterModel, servers: Sequence[Server], machines: Sequence[Machine], control: Control
) -> RouterModel:
    """Return the router with control messages that interrupt its servers' cores."""
    interruptions = {}
    for server in servers:
        rate_hz, message_s = _on_core(control, server, machines)
        if rate_hz:
            # Interruptions are counted per second of work, and a busy core works in the time without messages.
            per_work_hz = rate_hz / (1.0 - rate_hz * message_s)
            interruptions[server.name] = Interruptions(rate_hz=per_work_hz, duration=RandomTime(mean_s=message_s))
    pools = tuple(replace(pool, interruptions=interruptions.get(pool.name, pool.interruptions)) for pool in model.pools)
    return replace(model, pools=pools)


def _on_core(control: Control, server: Server, machines: Sequence[Machine]) -> tuple[float, float]:
    """Return the messages per second of each core of a server, and the time of a message on that core, s."""
    elements = sum(1 for machine in machines if machine.server == server.name)
    return control.rate_pps * elements / server.cores, control.message_s / server.speed_ratio


InterconnectKind = Literal["switch", "vlan", "hub", "shared_hub"]
Joined = Literal["cable", "switch"]
Filtered = Literal["guest", "backend"]

VLAN_TAG_BYTES = 4.0
"""A VLAN tag (IEEE 802.1Q), on wires between servers."""


@value
class Interconnect:
    """The interconnect of balancers and routers: virtual switches within servers, links and a switch between them.

    The second stage of Li 2012, sec. 1.2 and 3.2. ``switch``: an Ethernet switch, virtual within a server. ``vlan``: a
    VLAN for each pair of balancer and router on a virtual switch, with the additional work of a tag. ``hub``: a hub
    with two ports for each pair, with the work of a switch. ``shared_hub``: one hub (a virtual switch in promiscuous
    mode) for all: it copies every frame "to every port except the receiving one", and the receivers of the copies
    spend work to discard them.
    """

    kind: InterconnectKind = field(
        "switch: an Ethernet switch; vlan: a VLAN for each pair; hub: a hub for each pair; "
        "shared_hub: one hub for all, which floods",
        default="switch",
    )
    # To add and to remove the tag together, on the technology's reference machine.
    tag_s: Span = field(
        "Work of a virtual switch for the tag of a frame, s", default=0.0, le=LONGEST_S, only_where={"kind": ("vlan",)}
    )
    # ``guest``: the copy wakes the machine and costs work of its driver (a bridge that floods taps; a Click balancer,
    # which must receive all frames). ``backend``: the backend discards the copy.
    filtered_by: Filtered = field("Filter of the copies of a shared hub: the guest, or its backend", default="guest")
    joined: Joined = field("Connection of servers: a cable for each pair, or a physical switch", default="cable")
    link_bps: BitRate = field(
        "Rate of each link between servers, each direction, bit/s", default=1e9, within=LINK_RATES_BPS
    )
    # A virtual switch shares its uplinks by originating port (Li 2012, scenario C.1: one link, C.2: two links).
    links: Count = field("Number of parallel links; elements use them in turn", default=1, ge=1, le=MAX_PORTS)
    # Over all paths that use the link.
    link_queue_frames: FrameCount = field("Frames that wait for a link, frames", default=512, le=MAX_FRAMES)
    switch_bps: BitRate | None = field(
        "Capacity of the physical switch; none: its links limit, bit/s",
        default=None,
        only_where={"joined": ("switch",)},
        within=LINK_RATES_BPS,
    )

    @property
    def tag_bytes(self) -> float:
        """Bytes that a tag adds to a frame between servers."""
        return VLAN_TAG_BYTES if self.kind == "vlan" else 0.0


Balancing = Literal["round_robin", "flow_hash", "local"]


@value
class Connections:
    """The connections of the servers of a multistage router with each other and with the outside."""

    interconnect: Interconnect = field("Interconnect of balancers and routers", default=Interconnect())
    balancing: Balancing = field(
        "Choice of the balancers: frame by frame, by the flow's hash, or frame by frame among the "
        "routers on their own server",
        default="round_robin",
    )
    ports_per_balancer: Count = field("Outer interfaces of each balancer", default=1, ge=1, le=MAX_PORTS)
    link_bps: BitRate = field("Rate of each outer link in each direction, bit/s", default=1e9, within=LINK_RATES_BPS)
    tx_ring_frames: FrameCount = field("Transmit ring of each port, frames", default=512, le=MAX_FRAMES)
    control: Control | None = field("Messages of the control plane", default=None)


def balance_function(balancer: Machine, server: Server, balancing: str) -> str:
    """Return a balancer's function for arriving frames: ``balance_local`` if it balances locally and has that cost."""
    known = {*server.technology.functions, *balancer.functions}
    return "balance_local" if balancing == "local" and "balance_local" in known else "balance"


def check_multistage(
    subject: str,
    servers: Sequence[Server],
    balancers: Sequence[Machine],
    routers: Sequence[Machine],
    connections: Connections,
) -> None:
    """Check the parts of a multistage router.

    Raises ModelProblem with all problems: no balancer or no router, the problems of
    :func:`~routecast.virtual.check.machine_problems`, a local balancer without a router on its server, a hub
    that cannot flood, values out of range.
    """
    machines = (*balancers, *routers)
    by_name = {server.name: server for server in servers}
    problems = [
        Problem(place, f"there is no {kind_text}: a multistage router needs at least one")
        for place, kind_text, machines_of_kind in (
            ("balancer", "load balancer", balancers),
            ("router", "back-end router", routers),
        )
        if not machines_of_kind
    ]

    functions = {router.name: ("forward",) for router in routers} | {
        balancer.name: (balance_function(balancer, by_name[balancer.server], connections.balancing), "return")
        for balancer in balancers
        if balancer.server in by_name
    }
    if machines:
        places = [
            f"{kind}[{n}]"
            for kind, machines_of_kind in (("balancer", balancers), ("router", routers))
            for n in range(len(machines_of_kind))
        ]
        problems += machine_problems(servers, machines, functions=functions, places=places)
    faults = field_faults(connections)
    problems += faults
    if connections.balancing == "local" and routers:
        problems += _local_problems(balancers, routers)
    max_ports = MAX_PORTS // max(len(balancers), 1)
    if not is_faulty(faults, "ports_per_balancer") and connections.ports_per_balancer > max_ports:
        message = f"got {connections.ports_per_balancer}: {len(balancers)} balancers have at most {max_ports} each"
        problems.append(Problem("ports_per_balancer", message))
    if connections.interconnect.kind == "shared_hub":
        problems += _hub_problems(machines, by_name)
    if connections.control is not None and not problems:
        problems += control_problems(connections.control, servers, machines)
    if problems:
        raise ModelProblem(subject, problems)


def _local_problems(balancers: Sequence[Machine], routers: Sequence[Machine]) -> list[Problem]:
    homes = {router.server for router in routers}
    return [
        Problem(
            f"balancer[{index}]",
            f'"{balancer.name}" balances locally, but no router is on "{balancer.server}": '
            "put one there, or balance by round_robin",
        )
        for index, balancer in enumerate(balancers)
        if balancer.server not in homes
    ]


def _hub_problems(machines: Sequence[Machine], servers: dict[str, Server]) -> list[Problem]:
    return [
        Problem(
            "interconnect.kind",
            f'"{machine.name}" on "{machine.server}" is on no virtual switch that could flood '
            f'({servers[machine.server].technology.name}): use "switch", "vlan" or "hub"',
        )
        for machine in machines
        if machine.server in servers and servers[machine.server].technology.backend == "none"
    ]
