"""Virtual and parallel routers from the tables of router files: servers, machines and techniques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Count
from routecast.quantity.schema import Given, extended, field, value
from routecast.router.model import RouterModel, ServiceCost
from routecast.virtual.catalogue import TechnologyOrName, functions_over, technology_from
from routecast.virtual.check import OuterPorts, machine_problems, size_problems
from routecast.virtual.machines import Machine, Server
from routecast.virtual.parallel import Balancing, parallel_router
from routecast.virtual.single import virtual_router
from routecast.virtual.technology import Technology

__all__ = [
    "MachineTable",
    "ParallelRouter",
    "ServerTable",
    "VirtualRouter",
    "at_technology",
    "further_problems",
    "machine_from",
    "servers_from",
]

_SERVER_TECHNOLOGY = field("What its machines run on, where that is not the router's technology", default=None)
ServerTable = Annotated[
    Mapping[str, Any], Given(extended(Server, (("technology", TechnologyOrName | None, _SERVER_TECHNOLOGY),)))
]
MachineTable = Annotated[Mapping[str, Any], Given(Machine)]


@value
class _OneServerRouter(OuterPorts):
    """The common part of virtual and parallel routers: one server, its ports, and the technique of its machines."""

    name: str = field("Name of the router; without it the file's", default="")
    technology: TechnologyOrName | None = field(
        "Technology of machines: a name, a *.virtualisation.toml, or a table with a base", default=None
    )
    server: tuple[ServerTable, ...] = field("The server, one")

    def _outer_arguments(self) -> dict[str, Any]:
        return {
            "ports": self.ports,
            "interfaces": self.interfaces,
            "link_bps": self.link_bps,
            "tx_ring_frames": self.tx_ring_frames,
            "name": self.name,
        }

    def _check(self, problems: list[Problem], servers: Sequence[Server], machines: Sequence[Machine]) -> None:
        """Raise all problems, including those of servers and machines, in the order of the file."""
        faulty = machine_problems(servers, machines)
        faulty += size_problems(machines, self)
        if any(problem.place == "machines" for problem in problems):
            faulty = [problem for problem in faulty if problem.place != "machine"]
        problems += further_problems(at_technology(faulty, self.server), problems, servers)
        if problems:
            raise ModelProblem(self.name, problems)


@value
class VirtualRouter(_OneServerRouter):
    """A router in a virtual machine, a container, or on the server itself."""

    machine: tuple[MachineTable, ...] = field("The machine, one")

    def model_in(self, folder: Path | None, frames: FrameMix | None) -> RouterModel:
        """Return the router; techniques that are files are looked for in ``folder``.

        Raises ModelProblem: with all faults, their places those of the file.
        """
        servers, problems = servers_from(self.server, self.technology, folder)
        machines = [machine_from(table, servers) for table in self.machine]
        problems += _one_of("server", len(servers), "virtual")
        if len(machines) > 1:
            problems.append(
                Problem("machine", f'has {len(machines)} entries: builder "virtual" takes one, "parallel" several')
            )
        self._check(problems, servers, machines)
        return virtual_router(servers[0], machines[0], **self._outer_arguments())


@value
class ParallelRouter(_OneServerRouter):
    """Equal routers in several machines; the host spreads the frames over them."""

    machines: Count | None = field(
        "Number of machines; a single machine table then describes all of them", default=None, ge=1, le=4096
    )
    machine: tuple[MachineTable, ...] = field("The machines", default=())
    balancing: Balancing = field("Distribution of frames over the machines", default="flow_hash")

    def model_in(self, folder: Path | None, frames: FrameMix | None) -> RouterModel:
        """Return the parallel router; arguments and errors are those of :meth:`VirtualRouter.model_in`."""
        servers, problems = servers_from(self.server, self.technology, folder)
        machines = [machine_from(table, servers) for table in self.machine]
        problems += _one_of("server", len(servers), "parallel")
        if self.machines is not None:
            if len(machines) > 1:
                problems.append(
                    Problem("machines", f"is given beside {len(machines)} machines: leave it out, or all but one")
                )
            else:
                alike = machines[0] if machines else machine_from({"name": "router"}, servers)
                machines = [replace(alike, name=f"{alike.name} {number}") for number in range(self.machines)]
        elif not machines:
            problems.append(Problem("machines", "is missing: say how many machines, or give a [[machine]] for each"))
        self._check(problems, servers, machines)
        return parallel_router(servers[0], machines, balancing=self.balancing, **self._outer_arguments())


def at_technology(problems: Sequence[Problem], tables: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Return each problem once; problems of a technique that servers share get the file's ``technology`` as place."""
    shared = {
        f"server[{number}].technology": "technology" for number, table in enumerate(tables) if "technology" not in table
    }
    moved = []
    for place, message in problems:
        server_place = next((core for core in shared if place == core or place.startswith(f"{core}.")), None)
        moved.append(
            Problem(place if server_place is None else shared[server_place] + place.removeprefix(server_place), message)
        )
    return list(dict.fromkeys(moved))


def servers_from(
    tables: Sequence[Mapping[str, Any]], technology: Mapping[str, Any] | None, folder: Path | None = None
) -> tuple[list[Server], list[Problem]]:
    """Return a server for each table, and the problems of their techniques.

    ``technology`` applies to servers without their own; ``folder`` holds techniques that are files. A server whose
    technique has faults gets a technique without costs, so that the rest of the file can be checked.
    """
    problems: list[Problem] = []
    common = _technology(technology, "technology", folder, problems) if technology is not None else None
    servers = []
    for number, table in enumerate(tables):
        own = common
        if "technology" in table:
            own = _technology(table["technology"], f"server[{number}].technology", folder, problems)
        elif technology is None:
            place = "technology" if len(tables) == 1 else f"server[{number}].technology"
            problems.append(Problem(place, "is missing: say what the machines run on"))
        servers.append(Server(**{**table, "technology": own or _UNKNOWN}))
    return servers, problems


def machine_from(table: Mapping[str, Any], servers: Sequence[Server]) -> Machine:
    """Return the machine of a table; a machine that names no server runs on the only server."""
    server = table.get("server") or (servers[0].name if len(servers) == 1 else "")
    known = next((known_server.technology.functions for known_server in servers if known_server.name == server), {})
    functions = functions_over(known, table.get("functions", {}))
    return Machine(**{**table, "server": server, "functions": functions})


def further_problems(
    problems: Sequence[Problem], reported: Sequence[Problem], servers: Sequence[Server]
) -> list[Problem]:
    """Return the builder's problems that the file's own checks did not report.

    A machine on a technique that could not be read may have a backend, so the cores of its backend are no problem.
    """
    places = {problem.place for problem in reported}
    unread = any(server.technology is _UNKNOWN for server in servers)
    return [
        problem
        for problem in problems
        if problem.place not in places and not (unread and ".backend_cores" in problem.place)
    ]


_BUILDER_FUNCTIONS = ("forward", "balance", "balance_local", "return")
"""Functions that the builders of router files use."""

_UNKNOWN = Technology(
    name="unknown",
    backend="polling",  # with this backend, a server may have any of its keys
    functions={function: ServiceCost() for function in ("forward", "balance", "return")},
)


def _technology(
    table: Mapping[str, Any], place: str, folder: Path | None, problems: list[Problem]
) -> Technology | None:
    try:
        base = technology_from({"base": table.get("base", "")}, folder=folder).functions
        known = (*_BUILDER_FUNCTIONS, *base)
        for function in table.get("functions", ()):
            if function not in known:
                message = f"is no function that builders use or the base knows: {did_you_mean(function, known)}"
                problems.append(Problem(f"{place}.functions.{function}", message))
        return technology_from(table, name=place, folder=folder)
    except FileProblem as problem:
        for fault in problem.problems:
            inside = f"{fault.place}: " if fault.place else ""
            problems.append(Problem(place, f"{problem.subject}: {inside}{fault.message}"))
        return None


def _one_of(kind: str, number: int, builder: str) -> list[Problem]:
    if number < 2:
        return []
    return [Problem(kind, f'has {number} entries: builder "{builder}" takes one, "multistage" several')]
