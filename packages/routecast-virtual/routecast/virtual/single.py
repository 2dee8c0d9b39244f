"""One virtual router on a server (Li 2012, sec. 4.2 and 4.3): the monolithic virtual software router."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import ModelProblem
from routecast.router.model import Route, RouterModel
from routecast.virtual.assembly import Assembly
from routecast.virtual.check import OuterPorts, machine_problems, size_problems
from routecast.virtual.machines import Machine, Server

__all__ = ["add_forwarding", "virtual_router"]


def virtual_router(
    server: Server,
    machine: Machine,
    *,
    ports: int = 2,
    interfaces: int = 1,
    link_bps: float = 1e9,
    tx_ring_frames: int = 512,
    name: str = "",
) -> RouterModel:
    """Build a router in a machine of a server.

    ::

        port 0 ─► softirq ─► backend ─► guest ─► backend ─► egress port
                             receive    forward    send
                             └──────── one thread ──────┘      (one thread for each interface of the machine)

    Parameters
    ----------
    server : Server
    machine : Machine
        On that server.
    ports : int
        Outer interfaces of the server.
    interfaces : int
        Number of interfaces of the machine: frames of port ``i`` enter by interface ``i mod interfaces`` and leave by
        the interface of their outgoing port. Li's virtual router has one (sec. 4.3: "the vhost-net thread").
    link_bps : float
        Rate of each port, each direction.
    tx_ring_frames : int
        Transmit ring of each port.
    name : str

    Raises
    ------
    routecast.errors.ModelProblem
        With all contradictions, such as a thread on a core that the server does not have.
    """
    name = name or f"{machine.name} on {server.name}"
    problems = machine_problems((server,), (machine,))
    problems += size_problems(
        (machine,), OuterPorts(ports=ports, interfaces=interfaces, link_bps=link_bps, tx_ring_frames=tx_ring_frames)
    )
    if problems:
        raise ModelProblem(name, problems)
    assembly = Assembly((server,))
    wires = tuple(f"port {port}" for port in range(ports))
    forward = add_forwarding(assembly, machine, wires, interfaces=interfaces)
    for port, wire in enumerate(wires):
        entry = assembly.from_wire(machine, interface=port % interfaces, wire=wire, to=forward)
        assembly.port(wire, link_bps, entry=entry, tx_ring_frames=tx_ring_frames)
    return assembly.model(name)


def add_forwarding(assembly: Assembly, machine: Machine, wires: Sequence[str], *, interfaces: int) -> str:
    """Add a machine's forwarding and its paths to outer ports; return the task unit that takes the frames.

    ``wires``: names of the outer ports; ``interfaces``: interfaces of the machine: port ``i`` is reached by interface
    ``i mod interfaces``.
    """
    egress = Route(kind="egress", to=tuple(wires))
    leaving = tuple(
        assembly.to_port(machine, interface=port % interfaces, route=egress) or wire for port, wire in enumerate(wires)
    )
    return assembly.function(machine, "forward", Route(kind="by_egress", to=leaving))
