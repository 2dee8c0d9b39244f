"""Multistage routers from router files."""

from __future__ import annotations

from pathlib import Path

from routecast.errors import ModelProblem
from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.virtual.catalogue import TechnologyOrName
from routecast.virtual.multistage.builder import multistage_router
from routecast.virtual.multistage.check import Connections
from routecast.virtual.reading import (
    MachineTable,
    ServerTable,
    at_technology,
    further_problems,
    machine_from,
    servers_from,
)

__all__ = ["MultistageRouter"]


@value
class MultistageRouter(Connections):
    """A multistage router: load balancers, an interconnect, back-end routers."""

    name: str = field("Name of the router; without it the file's", default="")
    technology: TechnologyOrName | None = field(
        "Technology of machines: a name, a *.virtualisation.toml, or a table with a base", default=None
    )
    server: tuple[ServerTable, ...] = field("The servers")
    balancer: tuple[MachineTable, ...] = field("The load balancers", default=())
    router: tuple[MachineTable, ...] = field("The back-end routers", default=())

    @property
    def ports(self) -> int:
        """Outer interfaces of the router."""
        return len(self.balancer) * self.ports_per_balancer

    def model_in(self, folder: Path | None, frames: FrameMix | None) -> RouterModel:
        """Return the router; techniques that are files are looked for in ``folder``.

        Raises ModelProblem: with all faults, their places those of the file.
        """
        servers, problems = servers_from(self.server, self.technology, folder)
        model = None
        try:
            model = multistage_router(
                servers,
                [machine_from(table, servers) for table in self.balancer],
                [machine_from(table, servers) for table in self.router],
                interconnect=self.interconnect,
                balancing=self.balancing,
                ports_per_balancer=self.ports_per_balancer,
                link_bps=self.link_bps,
                tx_ring_frames=self.tx_ring_frames,
                control=self.control,
                name=self.name,
            )
        except ModelProblem as problem:
            problems += further_problems(at_technology(problem.problems, self.server), problems, servers)
        if problems or model is None:
            raise ModelProblem(self.name, problems)
        return model
