"""What joins a multistage router's elements: virtual switches within servers, links and a switch between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_numbers import LINK_RATES_BPS, duration, within

__all__ = ["Filtered", "Interconnect", "InterconnectKind", "Joined", "interconnect_problems"]

InterconnectKind = Literal["switch", "vlan", "hub", "shared_hub"]
Joined = Literal["cable", "switch"]
Filtered = Literal["guest", "backend"]

VLAN_TAG_BYTES = 4.0
"""A VLAN tag (IEEE 802.1Q), on wires between servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interconnect:
    """The second stage (thesis, sec. 1.2, 3.2).

    Parameters
    ----------
    kind : {"switch", "vlan", "hub", "shared_hub"}
        ``switch``: an Ethernet switch, virtual within a server. ``vlan``: one VLAN for each pair of balancer and
        router on a virtual switch; a tag's work more. ``hub``: a hub with two ports for each pair: the work of a
        switch. ``shared_hub``: one hub (a virtual switch in promiscuous mode) for all: every frame is copied "to every
        port except the receiving one", and the copies cost those who throw them away.
    tag_s : float
        ``vlan`` only: work of a virtual switch for a frame's tag, on and off together, on the technology's reference
        machine.
    filtered_by : {"guest", "backend"}
        ``shared_hub`` only: who sees that a copy is for another. ``guest``: the copy wakes the machine and costs its
        driver (a bridge that floods taps; a Click balancer, which must listen to all). ``backend``: it gets no farther.
    joined : {"cable", "switch"}
        ``cable``: links from each server to each other one. ``switch``: links from each server to a physical Ethernet
        switch.
    link_bps : float
        Rate of each such link, each direction.
    links : int
        How many, side by side: each element of a server uses one of them, in turn, as a virtual switch's uplinks are
        shared by originating port (thesis, scenario C.1: one, C.2: two).
    link_queue_frames : int
        Frames that wait for a link, over all that use it.
    switch_bps : float or None
        What the physical switch carries over all its links; None: as much as they bring.
    """

    kind: InterconnectKind = "switch"
    tag_s: float = 0.0
    filtered_by: Filtered = "guest"
    joined: Joined = "cable"
    link_bps: float = 1e9
    links: int = 1
    link_queue_frames: int = 512
    switch_bps: float | None = None

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
            problems.append(
                Problem(f"interconnect.{place}", f'got "{got}": {did_you_mean(str(got), allowed)}')
            )
    within("interconnect.link_bps", interconnect.link_bps, LINK_RATES_BPS, "a link rate", "bit/s", add)
    for place, count in (
        ("links", interconnect.links),
        ("link_queue_frames", interconnect.link_queue_frames),
    ):
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
