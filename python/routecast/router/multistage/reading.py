"""Multistage routers from what router files say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field

from routecast.errors import ModelProblem, Problem
from routecast.quantity.fields import BitRate, Count, FrameCount, FrameRate, Span
from routecast.quantity.file_model import FileModel
from routecast.router.load_table import LoadTable
from routecast.router.model import RouterModel
from routecast.router.multistage.builder import multistage_router
from routecast.router.multistage.check import Balancing, Control, Filtered, Interconnect, InterconnectKind, Joined
from routecast.router.virtual.catalogue import MachineTable, ServerTable, TechnologyOrName
from routecast.router.virtual.reading import at_technology, further_problems, machine_from, servers_from

__all__ = ["MultistageRouter", "multistage_from"]


# What a router file says of a multistage router: the tables, their keys, units and meanings.


class InterconnectTable(FileModel):
    """What joins balancers and routers: virtual switches within servers, links and a switch between them."""

    kind: InterconnectKind = Field(
        default="switch",
        description="switch: an Ethernet switch; vlan: a VLAN for each pair; hub: a hub for each pair; "
        "shared_hub: one for all, which floods",
    )
    tag: Span = Field(default=0.0, description="Work of a virtual switch for the tag of a frame, for vlan, s")
    filtered_by: Filtered = Field(
        default="guest", description="Who throws away what a shared hub copies: the guest, or its backend"
    )
    joined: Joined = Field(
        default="cable", description="Servers are joined by a cable for each two, or by a physical switch"
    )
    link: BitRate = Field(default=1e9, description="Rate of each link between servers, each direction, bit/s")
    links: Count = Field(default=1, description="Such links side by side; elements take them in turn")
    link_queue: FrameCount = Field(default=512, description="Frames that wait for a link, frames")
    switch: BitRate | None = Field(
        default=None, description="What the physical switch carries; none: as much as its links bring, bit/s"
    )


class ControlTable(FileModel):
    """Messages of the control plane, which take cores away from frames."""

    rate: FrameRate = Field(description="Messages to and from each element, messages/s")
    message: Span = Field(description="Work of one, through host and machine, s")


class MultistageRouter(FileModel):
    """A multistage router: load balancers, an interconnect, back-end routers."""

    builder: Literal["multistage"] = Field(description="Name of the builder")
    name: str = Field(default="", description="Name of the router; without it the file's")
    technology: TechnologyOrName | None = Field(
        default=None,
        description="What machines run on: a name, a *.virtualisation.toml, or a table with a base",
    )
    server: list[ServerTable] = Field(description="The servers")
    balancer: list[MachineTable] = Field(default=[], description="The load balancers")
    router: list[MachineTable] = Field(default=[], description="The back-end routers")
    interconnect: InterconnectTable = Field(default=InterconnectTable(), description="What joins balancers and routers")
    balancing: Balancing = Field(
        default="round_robin",
        description="How balancers choose: frame by frame, by the flow's hash, or frame by frame among the "
        "routers on their own server",
    )
    ports_per_balancer: Count = Field(default=1, description="Outer interfaces of each balancer")
    link: BitRate = Field(default=1e9, description="Rate of each outer link in each direction, bit/s")
    tx_ring: FrameCount = Field(default=512, description="Transmit ring of each port, frames")
    control: ControlTable | None = Field(default=None, description="Messages of the control plane")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")

    @property
    def ports(self) -> int:
        """Outer interfaces of the router."""
        return len(self.balancer) * self.ports_per_balancer


_NUMBERED = re.compile(r"\b(server|balancer|router)s(?=\[)")


def multistage_from(router: MultistageRouter, name: str, folder: Path | None = None) -> RouterModel:
    """Build the multistage router that a file says.

    Parameters
    ----------
    router : MultistageRouter
    name : str
    folder : Path or None
        Where techniques that are files are looked for.

    Raises
    ------
    routecast.errors.ModelProblem
        With all faults, their places those of the file.
    """
    servers, problems = servers_from(router.server, router.technology, folder)
    between, control = router.interconnect, router.control
    model = None
    try:
        model = multistage_router(
            servers,
            [machine_from(table, servers) for table in router.balancer],
            [machine_from(table, servers) for table in router.router],
            interconnect=Interconnect(
                kind=between.kind,
                tag_s=between.tag,
                filtered_by=between.filtered_by,
                joined=between.joined,
                link_bps=between.link,
                links=between.links,
                link_queue_frames=between.link_queue,
                switch_bps=between.switch,
            ),
            balancing=router.balancing,
            ports_per_balancer=router.ports_per_balancer,
            link_bps=router.link,
            tx_ring_frames=router.tx_ring,
            control=Control(rate_pps=control.rate, message_s=control.message) if control else None,
            name=name,
        )
    except ModelProblem as problem:
        found = at_technology([_placed(one) for one in problem.problems], router.server)
        problems += further_problems(found, problems, servers)
    if problems or model is None:
        raise ModelProblem(name, problems)
    return model


def _placed(problem: Problem) -> Problem:
    """Return a problem with the places of a file."""
    place, message = (_NUMBERED.sub(r"\1", text) for text in problem)
    return Problem(place.removesuffix("s") if place in {"servers", "balancers", "routers"} else place, message)
