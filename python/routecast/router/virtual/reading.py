"""Virtual and parallel routers from what router files say of servers, machines and techniques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.model import RouterModel, ServiceCost
from routecast.router.parallel import parallel_router
from routecast.router.virtual.catalogue import (
    MachineTable,
    ParallelRouter,
    ServerTable,
    TechnologyTable,
    VirtualRouter,
    cost_over,
    technology_from,
)
from routecast.router.virtual.check import machine_problems, size_problems
from routecast.router.virtual.machines import Machine, Server
from routecast.router.virtual.single import virtual_router
from routecast.router.virtual.technology import Technology

__all__ = ["at_technology", "further_problems", "machine_from", "parallel_from", "servers_from", "virtual_from"]


# Where a file says what is wrong with the technique of a server: with the server, or once for all of them.


def at_technology(problems: Sequence[Problem], tables: Sequence[ServerTable]) -> list[Problem]:
    """Return problems of servers that name no technique of their own where the file says that of all, each once."""
    shared = {
        f"server[{number}].technology": "technology" for number, table in enumerate(tables) if table.technology is None
    }
    moved = []
    for place, message in problems:
        own = next((one for one in shared if place == one or place.startswith(f"{one}.")), None)
        moved.append(Problem(place if own is None else shared[own] + place.removeprefix(own), message))
    return list(dict.fromkeys(moved))


def virtual_from(router: VirtualRouter, name: str, folder: Path | None = None) -> RouterModel:
    """Build the virtual router that a file says.

    Parameters
    ----------
    router : VirtualRouter
    name : str
    folder : Path or None
        Where techniques that are files are looked for.

    Raises
    ------
    routecast.errors.ModelProblem
        With all faults, their places those of the file.
    """
    servers, problems = servers_from(router.server, router.technology, folder)
    machines = [machine_from(table, servers) for table in router.machine]
    problems += _one_of("server", len(servers), "virtual")
    if len(machines) > 1:
        problems.append(
            Problem("machine", f'has {len(machines)} entries: builder "virtual" takes one, "parallel" several')
        )
    _raise(name, router, problems, servers, machines)
    return virtual_router(
        servers[0],
        machines[0],
        ports=router.ports,
        interfaces=router.interfaces,
        link_bps=router.link,
        tx_ring_frames=router.tx_ring,
        name=name,
    )


def parallel_from(router: ParallelRouter, name: str, folder: Path | None = None) -> RouterModel:
    """Build the parallel routers that a file says; arguments and errors as for :func:`virtual_from`."""
    servers, problems = servers_from(router.server, router.technology, folder)
    machines = [machine_from(table, servers) for table in router.machine]
    problems += _one_of("server", len(servers), "parallel")
    if router.machines is not None:
        if len(machines) > 1:
            problems.append(
                Problem("machines", f"is given beside {len(machines)} machines: leave it out, or all but one")
            )
        else:
            alike = machines[0] if machines else machine_from(MachineTable(name="router"), servers)
            machines = [replace(alike, name=f"{alike.name} {number}") for number in range(router.machines)]
    elif not machines:
        problems.append(Problem("machines", "is missing: say how many machines, or give a [[machine]] for each"))
    _raise(name, router, problems, servers, machines)
    return parallel_router(
        servers[0],
        machines,
        balancing=router.balancing,
        ports=router.ports,
        interfaces=router.interfaces,
        link_bps=router.link,
        tx_ring_frames=router.tx_ring,
        name=name,
    )


def servers_from(
    tables: Sequence[ServerTable], technology: TechnologyTable | None, folder: Path | None = None
) -> tuple[list[Server], list[Problem]]:
    """Return the servers that tables say, and what is wrong with their techniques.

    Parameters
    ----------
    tables : sequence of ServerTable
    technology : TechnologyTable or None
        Of servers that name none.
    folder : Path or None
        Where techniques that are files are looked for.

    Returns
    -------
    servers : list of Server
        One for each table; where a technique is wrong, with one that costs nothing, so that the rest can be checked.
    problems : list of Problem
        Faults of the techniques.
    """
    problems: list[Problem] = []
    common = _technology(technology, "technology", folder, problems) if technology is not None else None
    servers = []
    for number, table in enumerate(tables):
        own = common
        if table.technology is not None:
            own = _technology(table.technology, f"server[{number}].technology", folder, problems)
        elif technology is None:
            place = "technology" if len(tables) == 1 else f"server[{number}].technology"
            problems.append(Problem(place, "is missing: say what the machines run on"))
        servers.append(
            Server(
                name=table.name,
                cores=table.cores,
                technology=own or _UNKNOWN,
                speed_ratio=table.speed,
                interrupt_cores=tuple(table.interrupt_cores),
                switch_cores=tuple(table.switch_cores),
                power=table.power,
            )
        )
    return servers, problems


def machine_from(table: MachineTable, servers: Sequence[Server]) -> Machine:
    """Return the machine that a table says; one that names no server is on the only one."""
    server = table.server or (servers[0].name if len(servers) == 1 else "")
    known = next((one.technology.functions for one in servers if one.name == server), {})
    return Machine(
        name=table.name,
        server=server,
        vcpus=table.vcpus,
        vcpu_cores=tuple(tuple(cores) for cores in table.vcpu_cores),
        backend_cores=tuple(tuple(cores) for cores in table.backend_cores),
        vcpu_priority=table.vcpu_priority,
        backend_priority=table.backend_priority,
        weight=table.weight,
        functions={
            function: cost_over(known.get(function, ServiceCost()), cost) for function, cost in table.functions.items()
        },
    )


def further_problems(found: Sequence[Problem], told: Sequence[Problem], servers: Sequence[Server]) -> list[Problem]:
    """Return the problems of a builder that those of the file do not tell already, and that do not follow from them.

    Parameters
    ----------
    found : sequence of Problem
        Of the builder.
    told : sequence of Problem
        Of the file.
    servers : sequence of Server
        As :func:`servers_from` returns them: a machine on a technique that could not be read may well have a backend.
    """
    places = {one.place for one in told}
    unread = any(server.technology is _UNKNOWN for server in servers)
    return [one for one in found if one.place not in places and not (unread and ".backend_cores" in one.place)]


_BUILT = ("forward", "balance", "balance_local", "return")
"""Functions that the builders of router files lay."""

_UNKNOWN = Technology(
    name="unknown",
    backend="polling",  # the one for which any of the server's keys may be given
    functions={function: ServiceCost() for function in ("forward", "balance", "return")},
)


def _technology(table: TechnologyTable, place: str, folder: Path | None, problems: list[Problem]) -> Technology | None:
    try:
        base = technology_from(TechnologyTable(base=table.base), folder=folder).functions
        known = (*_BUILT, *base)
        for function in table.functions:
            if function not in known:
                message = f"is no function that builders lay or the base knows: {did_you_mean(function, known)}"
                problems.append(Problem(f"{place}.functions.{function}", message))
        return technology_from(table, name=place, folder=folder)
    except FileProblem as problem:
        for one in problem.problems:
            inside = f"{one.place}: " if one.place else ""
            problems.append(Problem(place, f"{problem.subject}: {inside}{one.message}"))
        return None


def _one_of(kind: str, number: int, builder: str) -> list[Problem]:
    if number < 2:
        return []
    return [Problem(kind, f'has {number} entries: builder "{builder}" takes one, "multistage" several')]


def _raise(
    name: str,
    router: VirtualRouter | ParallelRouter,
    problems: list[Problem],
    servers: Sequence[Server],
    machines: Sequence[Machine],
) -> None:
    """Raise all problems, those of servers and machines included, in the order in which files give them."""
    found = machine_problems(servers, machines)
    found += size_problems(machines, ports=router.ports, interfaces=router.interfaces, link_bps=router.link)
    if any(one.place == "machines" for one in problems):
        found = [one for one in found if one.place != "machine"]
    problems += further_problems(at_technology(found, router.server), problems, servers)
    if problems:
        raise ModelProblem(name, problems)
