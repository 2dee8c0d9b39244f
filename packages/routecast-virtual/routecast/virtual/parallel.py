"""Parallel virtual routers: equal machines behind a multi-queue macvtap (Li 2012, sec. 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.router.model import Route, RouterModel
from routecast.virtual.assembly import Assembly
from routecast.virtual.check import OuterPorts, machine_problems, size_problems
from routecast.virtual.machines import Machine, Server
from routecast.virtual.single import add_forwarding

__all__ = ["Balancing", "parallel_router"]

Balancing = Literal["flow_hash", "round_robin"]

_ROUTES: dict[Balancing, Literal["rss", "round_robin"]] = {"flow_hash": "rss", "round_robin": "round_robin"}


def parallel_router(
    server: Server,
    machines: Sequence[Machine],
    *,
    balancing: Balancing = "flow_hash",
    ports: int = 2,
    interfaces: int = 1,
    link_bps: float = 1e9,
    tx_ring_frames: int = 512,
    name: str = "",
) -> RouterModel:
    """Build n equal routers that form one router: the host spreads frames over their queues.

    ::

                           ┌─► queue 0 ─► backend ─► guest ─► backend ─┐
        port 0 ─► softirq ─┼─► queue 1 ─► backend ─► guest ─► backend ─┼─► egress port
                           └─► queue 2 ─► backend ─► guest ─► backend ─┘

    A macvtap spreads frames by the flow's hash; sec. 4.4 changes it to round robin. Each machine sends directly to the
    ports. Without threads of a backend, the cores of the vSwitch or the queues of the card do the work of the softirq.

    Parameters
    ----------
    server : Server
    machines : sequence of Machine
        On that server.
    balancing : {"flow_hash", "round_robin"}
        Distribution of frames over the machines' queues.
    ports : int
        Outer interfaces of the server.
    interfaces : int
        Number of interfaces of each machine; ports use them in turn.
    link_bps : float
        Rate of each port, each direction.
    tx_ring_frames : int
        Transmit ring of each port.
    name : str

    Raises
    ------
    routecast.errors.ModelProblem
        With all contradictions: no machine, a machine on another server, a thread on a missing core, and others.
    """
    name = name or f"{len(machines)} routers on {server.name}"
    problems = machine_problems((server,), machines)
    if balancing not in _ROUTES:
        problems.append(Problem("balancing", f'got "{balancing}": give "flow_hash" or "round_robin"'))
    problems += size_problems(
        machines, OuterPorts(ports=ports, interfaces=interfaces, link_bps=link_bps, tx_ring_frames=tx_ring_frames)
    )
    if problems:
        raise ModelProblem(name, problems)
    assembly = Assembly((server,))
    wires = tuple(f"port {port}" for port in range(ports))
    forwards = [add_forwarding(assembly, machine, wires, interfaces=interfaces) for machine in machines]
    for port, wire in enumerate(wires):
        entry = _spread(assembly, server, machines, forwards, port % interfaces, wire, _ROUTES[balancing])
        assembly.port(wire, link_bps, entry=entry, tx_ring_frames=tx_ring_frames)
    return assembly.model(name)


def _spread(
    assembly: Assembly,
    server: Server,
    machines: Sequence[Machine],
    forwards: Sequence[str],
    interface: int,
    wire: str,
    kind: Literal["rss", "round_robin"],
) -> str:
    """Add the path of frames from a wire to all machines; return its first task unit."""
    if server.technology.backend in ("thread", "softirq"):
        inside = [
            assembly.into(machine, interface=interface, to=forward)
            for machine, forward in zip(machines, forwards, strict=True)
        ]
        return assembly.off_wire(server.name, wire, Route(kind=kind, to=tuple(inside)))
    entries = [
        assembly.from_wire(machine, interface=interface, wire=wire, to=forward)
        for machine, forward in zip(machines, forwards, strict=True)
    ]
    return assembly.spread(f"{wire} queues", kind, entries)
