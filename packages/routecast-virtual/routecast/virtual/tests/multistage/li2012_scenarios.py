"""The multistage routers that Li (2012) measured, as builders and as router documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel
from routecast.virtual.machines import Cores, Machine, Server
from routecast.virtual.multistage.builder import multistage_router
from routecast.virtual.multistage.check import Balancing, Interconnect
from routecast.virtual.technology import Technology

SECOND_SERVER_SPEED = 2.66 / 3.0
"""Clock of a Core 2 Duo E6750 over that of a Xeon E3110 (sec. 3.3: alike "except for the CPU"), taken as speed."""

INTERRUPT_CORES: Cores = (1, 0)
"""Cores that the cards of a VMware server interrupt, in turn, the first outer port first: an assumption.

Li (2012) does not state them. It found that one balancer on core 0 and one router on core 1 forward more than both on
either core (sec. 3.4.2, "1L1R"). With the costs of ``vmware-esxi-4.0`` as they were when this was chosen, the simulator
agrees at all loads that were tried if the only port interrupts the router's core; if it interrupts the balancer's, not
in overload. That favours this choice and proves nothing: other costs may allow the others.
"""

_CORES = 2
_BOTH: Cores = (0, 1)


@value
class Scenario:
    """A multistage router that was measured, as arguments of :func:`multistage_router`, and how it was loaded.

    The multistage routers that Li (2012) measured: Table 3.2, affinities of figs. 3.12 and 3.14, bindings of fig. 4.5.

    What the text leaves open is said where it is decided. Costs are none of this: they come with the technology.
    """

    name: str = field("As Li (2012) calls it")
    note: str
    servers: tuple[Server, ...]
    balancers: tuple[Machine, ...]
    routers: tuple[Machine, ...]
    interconnect: Interconnect
    balancing: Balancing = "round_robin"
    ports_per_balancer: int = 1
    # The text does not state the traffic matrix.
    flows: int = field("Flow ``i`` comes in by port ``i`` and leaves by the next one", default=0)

    @property
    def ports(self) -> int:
        """Outer interfaces."""
        return len(self.balancers) * self.ports_per_balancer

    def model(self) -> RouterModel:
        """Return the router."""
        return multistage_router(
            self.servers,
            self.balancers,
            self.routers,
            interconnect=self.interconnect,
            balancing=self.balancing,
            ports_per_balancer=self.ports_per_balancer,
            name=self.name,
        )

    def load(self, rate_pps: float, frame_bytes: int = 64) -> OfferedLoad:
        """Return a load of so many frames per second over all ports."""
        flows = FlowSet.crafted(self.flows or self.ports, ports=self.ports)
        return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(frame_bytes), flows=flows)


@value
class Affinity:
    """Which cores the virtual cores of one, two or four machines may use (fig. 3.12)."""

    name: str = field("``4VM-1v2p``: four machines of one virtual core each, which may use two physical cores")
    cores: tuple[tuple[Cores, ...], ...] = field(
        "For each machine, for each of its virtual cores. Balancers come first.", default=()
    )

    def of(self, number: int, name: str, server: str) -> Machine:
        """Return machine ``number``, pinned; its backend may use the cores of all of its virtual cores.

        VMware's affinity holds for a machine's virtual cores and all its other threads (vSphere Resource Management,
        "Using CPU Affinity").
        """
        mine = self.cores[number]
        backend = tuple(sorted({core for cores in mine for core in cores}))
        return Machine(name=name, server=server, vcpus=len(mine), vcpu_cores=mine, backend_cores=(backend,))


_FIRST: tuple[Cores, ...] = ((0,),)
_SECOND: tuple[Cores, ...] = ((1,),)
_EITHER: tuple[Cores, ...] = (_BOTH,)
_EACH: tuple[Cores, ...] = ((0,), (1,))

FIGURE_3_12: Mapping[str, Affinity] = {
    affinity.name: affinity
    for affinity in (
        Affinity(name="1VM-1v1p", cores=(_FIRST,)),
        Affinity(name="1VM-1v2p", cores=(_EITHER,)),
        Affinity(name="1VM-2v2p", cores=(_EACH,)),
        Affinity(name="2VM-1v1p", cores=(_FIRST, _SECOND)),
        Affinity(name="2VM-1v2p", cores=(_EITHER,) * 2),
        Affinity(name="2VM-2v2p", cores=(_EACH,) * 2),
        Affinity(name="4VM-1v1p", cores=(_FIRST, _SECOND, _FIRST, _SECOND)),
        Affinity(name="4VM-unbalanced", cores=(_FIRST, _SECOND, _SECOND, _SECOND)),
        Affinity(name="4VM-1v2p", cores=(_EITHER,) * 4),
    )
}
"""The nine affinities on a server of two cores.

The text names six. That the two-machine row repeats the one-machine row, and the name of the one that gives a balancer
a core of its own (sec. 3.4.2, "unbalanced mapping"), follow from its description. How ``4VM-1v1p`` spreads machines it
does not say: here a balancer and a router share each core; both balancers might share one.
"""

_Where = Sequence[Literal[1, 2]]


def table_3_2(technology: Technology, *, interrupt_cores: Cores = INTERRUPT_CORES) -> dict[str, Scenario]:
    """Return the scenarios of Table 3.2, by name: mappings of elements to servers.

    ``technology``: of both servers, with server 1 (Xeon E3110) as reference; ``interrupt_cores``: cores that the cards
    interrupt, in turn.

    Notes
    -----
    Server 2 has the slower processor, and the hub is used where one balancer and one router share a server, VLANs
    elsewhere (sec. 3.3.3). Which of the two machines Li (2012) called server 1 in Table 3.2 is not stated.
    """
    hub, vlan = Interconnect(kind="hub"), Interconnect(kind="vlan")
    cases = (
        _mapped("A.1", "1 ext. NIC", [1], [1], hub),
        replace(_mapped("A.2", "2 ext. NICs", [1], [1], hub), ports_per_balancer=2),
        _mapped("B.1", "Round robin", [1, 2], [1, 2], vlan),
        replace(_mapped("B.2", "local only", [1, 2], [1, 2], vlan), balancing="local"),
        _mapped("C.1", "bottleneck", [1, 1], [2, 2], vlan),
        _mapped("C.2", "no bottleneck", [1, 1], [2, 2], replace(vlan, links=2)),
        _mapped("D.1", "1 LB, 2 BRs | 1 LB", [1, 2], [1, 1], vlan),
        _mapped("D.2", "2 LBs, 1 BR | 1 BR", [1, 1], [1, 2], vlan),
    )
    return {case.name: _on(case, technology, interrupt_cores) for case in cases}


def figure_3_14(technology: Technology, *, interrupt_cores: Cores = INTERRUPT_CORES) -> dict[str, Scenario]:
    """Return the affinity tests of whole multistage routers (sec. 3.4.2), by name; arguments as :func:`table_3_2`."""
    hub, vlan = Interconnect(kind="hub"), Interconnect(kind="vlan")
    cases = []
    for affinity in ("1v1p", "1v2p"):
        pins = FIGURE_3_12[f"2VM-{affinity}"]
        cases.append(_pinned(_mapped(f"1L1R-{affinity}", pins.name, [1], [1], hub), (pins,)))
    for affinity in ("1v1p", "unbalanced", "1v2p"):
        pins = FIGURE_3_12[f"4VM-{affinity}"]
        cases.append(_pinned(_mapped(f"2L2R-{affinity}", pins.name, [1, 1], [1, 1], vlan), (pins,)))
    for affinity in ("1v1p", "1v2p"):
        pins = FIGURE_3_12[f"2VM-{affinity}"]
        note = f"{pins.name} on each server"
        cases.append(_pinned(_mapped(f"2S-2L2R-{affinity}", note, [1, 2], [1, 2], vlan), (pins, pins)))
    return {case.name: _on(case, technology, interrupt_cores) for case in cases}


def figure_4_5(technology: Technology) -> dict[str, Scenario]:
    """Return one balancer and one router on one KVM server, threads free and bound (sec. 4.5.3), by name.

    Frames come in by one card and leave by another, as sec. 4.3 has it for a single router. Of the binding on four
    cores the text says only that it helps: here the balancer's vcpu has a core of its own, each of its vhost threads
    one that cards interrupt, and the router the fourth.
    """
    free: tuple[tuple[Cores, ...], ...] = ((), (), (), ())
    cases: tuple[tuple[str, int, tuple[tuple[Cores, ...], ...]], ...] = (
        ("1 core", 1, free),
        ("2 cores", 2, free),
        ("2 cores, bind A", 2, (_FIRST, _SECOND, _FIRST, _SECOND)),
        ("2 cores, bind B", 2, (_SECOND, _FIRST, _FIRST, _SECOND)),
        ("4 cores", 4, free),
        ("4 cores, bind", 4, (((3,),), ((0,), (1,)), ((2,),), ((2,),))),
    )
    return {
        name: Scenario(
            name=name,
            note="vcpu, vhost of the balancer; vcpu, vhost of the router",
            servers=(
                Server(name="server 1", cores=cores, technology=technology, interrupt_cores=_BOTH[: min(cores, 2)]),
            ),
            balancers=(Machine(name="lb 1", server="server 1", vcpu_cores=pins[0], backend_cores=pins[1]),),
            routers=(Machine(name="br 1", server="server 1", vcpu_cores=pins[2], backend_cores=pins[3]),),
            interconnect=Interconnect(kind="switch"),
            ports_per_balancer=2,
            flows=1,
        )
        for name, cores, pins in cases
    }


def _mapped(name: str, note: str, balancers: _Where, routers: _Where, interconnect: Interconnect) -> Scenario:
    """Put balancers and routers on the servers of these numbers."""
    return Scenario(
        name=name,
        note=note,
        servers=(),
        balancers=tuple(Machine(name=f"lb {n}", server=f"server {at}") for n, at in enumerate(balancers, 1)),
        routers=tuple(Machine(name=f"br {n}", server=f"server {at}") for n, at in enumerate(routers, 1)),
        interconnect=interconnect,
    )


def _pinned(case: Scenario, affinities: Sequence[Affinity]) -> Scenario:
    """Pin a scenario's machines, balancers first on each server."""
    taken: dict[str, int] = {}

    def pinned(machine: Machine) -> Machine:
        number = taken.get(machine.server, 0)
        taken[machine.server] = number + 1
        affinity = affinities[int(machine.server.removeprefix("server ")) - 1]
        return affinity.of(number, machine.name, machine.server)

    balancers = tuple(pinned(balancer) for balancer in case.balancers)
    return replace(case, balancers=balancers, routers=tuple(pinned(router) for router in case.routers))


def _on(case: Scenario, technology: Technology, interrupt_cores: Cores) -> Scenario:
    """Give a scenario the servers that its machines are on."""
    names = sorted({machine.server for machine in (*case.balancers, *case.routers)})
    servers = tuple(
        Server(
            name=name,
            cores=_CORES,
            technology=technology,
            speed_ratio=1.0 if number == 0 else SECOND_SERVER_SPEED,
            interrupt_cores=interrupt_cores,
        )
        for number, name in enumerate(names)
    )
    return replace(case, servers=servers)


def router_document(scenario: Scenario, technology: str) -> dict[str, Any]:
    """Return what a router file says of a scenario; what is as by default is left out.

    ``technology``: name or file of the technique that its servers have.
    """
    between: dict[str, Any] = {"kind": scenario.interconnect.kind}
    if scenario.interconnect.links > 1:
        between["links"] = scenario.interconnect.links
    return {
        "builder": "multistage",
        "technology": technology,
        "balancing": scenario.balancing,
        "ports_per_balancer": scenario.ports_per_balancer,
        "server": [_server(server) for server in scenario.servers],
        "balancer": [_machine(machine) for machine in scenario.balancers],
        "router": [_machine(machine) for machine in scenario.routers],
        "interconnect": between,
    }


def _server(server: Server) -> dict[str, Any]:
    table: dict[str, Any] = {
        "name": server.name,
        "cores": server.cores,
        "interrupt_cores": list(server.interrupt_cores),
    }
    if server.speed_ratio != 1.0:
        table["speed"] = server.speed_ratio
    return table


def _machine(machine: Machine) -> dict[str, Any]:
    table: dict[str, Any] = {"name": machine.name, "server": machine.server}
    if machine.vcpus != 1:
        table["vcpus"] = machine.vcpus
    for key, pins in (("vcpu_cores", machine.vcpu_cores), ("backend_cores", machine.backend_cores)):
        if pins:
            table[key] = [list(cores) for cores in pins]
    return table
