"""Whether servers, elements and their interconnect make a multistage router, with every fault at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Count, FrameCount, FrameRate, Span
from routecast.quantity.schema import field, value
from routecast.router.check_numbers import LINK_RATES_BPS, duration, within
from routecast.router.model import Interruptions, RandomTime, RouterModel
from routecast.router.virtual.check import MAX_PORTS, machine_problems
from routecast.router.virtual.machines import Machine, Server

__all__ = [
    "Balancing",
    "Control",
    "Filtered",
    "Interconnect",
    "InterconnectKind",
    "Joined",
    "balance_function",
    "check_multistage",
    "with_control",
]


# What the control plane takes from the elements: the messages of DIST (Li 2012, sec. 1.2).


@value
class Control:
    """Messages that every element handles besides the frames that it forwards.

    They take cores away from frames and are themselves no frames of the load: they count neither as offered nor as
    forwarded. Their work is spread over all cores of an element's server; a core that is busy all the time handles just
    ``rate_pps``, one that idles handles the rest beside.
    """

    rate_pps: FrameRate = field("Messages to and from each element, messages/s")
    # On the technology's reference machine.
    message_s: Span = field("Work of one, through host and machine, s")


def control_problems(control: Control, servers: Sequence[Server], machines: Sequence[Machine]) -> list[Problem]:
    """Return what is wrong with control traffic, each with its place."""
    problems = [
        Problem(f"control.{place}", f"got {value}: {what} is a finite number > 0")
        for place, value, what in (
            ("rate_pps", control.rate_pps, "a rate of messages"),
            ("message_s", control.message_s, "the work of a message"),
        )
        if not (math.isfinite(value) and value > 0.0)
    ]
    if problems:
        return problems
    for server in servers:
        if server.cores < 1 or not server.speed_ratio > 0.0:
            continue
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
            # Interruptions come in a second of work, and a core at its limit works for what they leave of a second.
            per_work_hz = rate_hz / (1.0 - rate_hz * message_s)
            interruptions[server.name] = Interruptions(rate_hz=per_work_hz, duration=RandomTime(mean_s=message_s))
    pools = tuple(replace(pool, interruptions=interruptions.get(pool.name, pool.interruptions)) for pool in model.pools)
    return replace(model, pools=pools)


def _on_core(control: Control, server: Server, machines: Sequence[Machine]) -> tuple[float, float]:
    """Return messages per second of each core of a server, and what one takes there."""
    elements = sum(1 for machine in machines if machine.server == server.name)
    return control.rate_pps * elements / server.cores, control.message_s / server.speed_ratio


# What joins a multistage router's elements: virtual switches within servers, links and a switch between them.


InterconnectKind = Literal["switch", "vlan", "hub", "shared_hub"]
Joined = Literal["cable", "switch"]
Filtered = Literal["guest", "backend"]

VLAN_TAG_BYTES = 4.0
"""A VLAN tag (IEEE 802.1Q), on wires between servers."""


@value
class Interconnect:
    """What joins balancers and routers: virtual switches within servers, links and a switch between them.

    The second stage (Li 2012, sec. 1.2, 3.2). ``switch``: an Ethernet switch, virtual within a server. ``vlan``: one
    VLAN for each pair of balancer and router on a virtual switch; a tag's work more. ``hub``: a hub with two ports for
    each pair: the work of a switch. ``shared_hub``: one hub (a virtual switch in promiscuous mode) for all: every frame
    is copied "to every port except the receiving one", and the copies cost those who throw them away.
    """

    kind: InterconnectKind = field(
        "switch: an Ethernet switch; vlan: a VLAN for each pair; hub: a hub for each pair; "
        "shared_hub: one for all, which floods",
        default="switch",
    )
    # On and off together, on the technology's reference machine.
    tag_s: Span = field("Work of a virtual switch for the tag of a frame, for vlan, s", default=0.0)
    # ``guest``: the copy wakes the machine and costs its driver (a bridge that floods taps; a Click balancer, which
    # must listen to all). ``backend``: it gets no farther.
    filtered_by: Filtered = field(
        "Who throws away what a shared hub copies: the guest, or its backend", default="guest"
    )
    joined: Joined = field("Servers are joined by a cable for each two, or by a physical switch", default="cable")
    link_bps: BitRate = field("Rate of each link between servers, each direction, bit/s", default=1e9)
    # As a virtual switch's uplinks are shared by originating port (Li 2012, scenario C.1: one, C.2: two).
    links: Count = field("Such links side by side; elements take them in turn", default=1, ge=1, le=MAX_PORTS)
    # Over all that use it.
    link_queue_frames: FrameCount = field("Frames that wait for a link, frames", default=512)
    switch_bps: BitRate | None = field(
        "What the physical switch carries; none: as much as its links bring, bit/s", default=None
    )

    @property
    def tag_bytes(self) -> float:
        """Bytes that a frame is longer between servers."""
        return VLAN_TAG_BYTES if self.kind == "vlan" else 0.0


def interconnect_problems(interconnect: Interconnect) -> list[Problem]:
    """Return what is wrong with an interconnect, each with its place."""
    problems: list[Problem] = []

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    for place, got, allowed in (
        ("kind", interconnect.kind, get_args(InterconnectKind)),
        ("filtered_by", interconnect.filtered_by, get_args(Filtered)),
        ("joined", interconnect.joined, get_args(Joined)),
    ):
        if got not in allowed:
            problems.append(Problem(f"interconnect.{place}", f'got "{got}": {did_you_mean(str(got), allowed)}'))
    within("interconnect.link_bps", interconnect.link_bps, LINK_RATES_BPS, "a link rate", "bit/s", add)
    for place, count in (("links", interconnect.links), ("link_queue_frames", interconnect.link_queue_frames)):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            problems.append(Problem(f"interconnect.{place}", f"got {count}: a whole number from 1 on"))
    right = duration("interconnect.tag_s", interconnect.tag_s, add)
    if right and interconnect.tag_s and interconnect.kind != "vlan":
        problems.append(
            Problem("interconnect.tag_s", f"is given, but a {interconnect.kind} tags no frames: leave it out")
        )
    switch_bps = interconnect.switch_bps
    if switch_bps is not None:
        within("interconnect.switch_bps", switch_bps, LINK_RATES_BPS, "a rate", "bit/s", add)
    if switch_bps is not None and interconnect.joined == "cable":
        message = 'is given, but the servers are joined by cables: leave it out, or join them by "switch"'
        problems.append(Problem("interconnect.switch_bps", message))
    return problems


Balancing = Literal["round_robin", "flow_hash", "local"]


def balance_function(balancer: Machine, server: Server, balancing: str) -> str:
    """Return the name of what a balancer does on the way in: simpler if it balances locally, and that has a cost."""
    known = {*server.technology.functions, *balancer.functions}
    return "balance_local" if balancing == "local" and "balance_local" in known else "balance"


def check_multistage(
    subject: str,
    servers: Sequence[Server],
    balancers: Sequence[Machine],
    routers: Sequence[Machine],
    *,
    interconnect: Interconnect,
    balancing: str,
    ports_per_balancer: int,
    link_bps: float,
    control: Control | None,
) -> None:
    """Check what a multistage router is made of.

    Raises
    ------
    ModelProblem
        With all problems: no balancer or no router, what :func:`~routecast.router.virtual.check.machine_problems`
        finds, a local balancer without a router on its server, a hub that cannot flood, numbers out of range.
    """
    machines = (*balancers, *routers)
    by_name = {server.name: server for server in servers}
    problems = [
        Problem(place, f"there is no {what}: a multistage router needs at least one")
        for place, what, there in (("balancer", "load balancer", balancers), ("router", "back-end router", routers))
        if not there
    ]

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    functions = {router.name: ("forward",) for router in routers} | {
        balancer.name: (balance_function(balancer, by_name[balancer.server], balancing), "return")
        for balancer in balancers
        if balancer.server in by_name
    }
    if machines:
        places = [
            f"{kind}[{n}]" for kind, ones in (("balancer", balancers), ("router", routers)) for n in range(len(ones))
        ]
        problems += machine_problems(servers, machines, functions=functions, places=places)
    if balancing not in get_args(Balancing):
        meant = did_you_mean(str(balancing), get_args(Balancing))
        problems.append(Problem("balancing", f'got "{balancing}": {meant}'))
    elif balancing == "local" and routers:
        problems += _local_problems(balancers, routers)
    most = MAX_PORTS // max(len(balancers), 1)
    if not isinstance(ports_per_balancer, int) or not 1 <= ports_per_balancer <= most:
        message = f"got {ports_per_balancer}: a whole number from 1 to {most}"
        problems.append(Problem("ports_per_balancer", message))
    within("link_bps", link_bps, LINK_RATES_BPS, "a link rate", "bit/s", add)
    problems += interconnect_problems(interconnect)
    if interconnect.kind == "shared_hub":
        problems += _hub_problems(machines, by_name)
    if control is not None:
        problems += control_problems(control, servers, machines)
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
