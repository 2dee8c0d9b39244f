"""Checks of servers and the machines on them; all faults are reported together.

Places are written as in a router file: ``server[0].cores``, ``machine[1].vcpu_cores[0]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Count, FrameCount
from routecast.quantity.schema import faults_in, field, field_faults, is_faulty, value
from routecast.router.bounds import LINK_RATES_BPS, MAX_FRAMES
from routecast.router.check import check_contention, check_policy, check_time, check_variation
from routecast.router.model import ServiceCost
from routecast.virtual.machines import Cores, Machine, Server
from routecast.virtual.technology import Technology

__all__ = ["OuterPorts", "machine_problems", "size_problems"]


_WORK_CYCLES = ("per_packet_cycles", "per_byte_cycles", "per_batch_cycles")
_IN_THE_GUEST = "add it to guest_driver"
_UNUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {"nic_receive": _IN_THE_GUEST, "nic_send": _IN_THE_GUEST, "switch": _IN_THE_GUEST},
    "thread": {"nic_send": "add it to send"},
    "softirq": {"nic_send": "add it to send"},
}
"""Costs that no task unit has, by backend, and where to put them."""

_COSTS = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")


def technology_problems(place: str, technology: Technology, cores: int) -> list[Problem]:
    """Return the problems of a technique on a server with ``cores`` cores."""
    problems: list[Problem] = []

    def add(at: str, message: str) -> None:
        problems.append(Problem(at, message))

    if technology.backend == "thread" and technology.backend_threads == "server":
        add(
            f"{place}.backend_threads",
            'only a vSwitch that polls has threads of the server: give "interface" or "machine"',
        )
    for key in _COSTS:
        problems += _cost_problems(f"{place}.{key}", getattr(technology, key))
    for key, instead in _UNUSED.get(technology.backend, {}).items():
        if getattr(technology, key) != ServiceCost():
            add(f"{place}.{key}", f'no thread does this work with backend "{technology.backend}": {instead}')
    for function, cost in technology.functions.items():
        problems += _cost_problems(f"{place}.functions.{function}", cost)
    if technology.guest_wakeup is not None:
        check_time(f"{place}.guest_wakeup", technology.guest_wakeup, add)
    check_policy(f"{place}.policy", technology.policy, add)
    check_contention(f"{place}.contention", technology.contention, cores, add)
    return problems


def _cost_problems(place: str, cost: ServiceCost) -> list[Problem]:
    """Return the problems of the work of a step."""
    problems = [
        Problem(
            f"{place}.{name}", "is in cycles, and servers state no frequency: give seconds on the reference machine"
        )
        for name in _WORK_CYCLES
        if getattr(cost, name)
    ]
    check_variation(place, cost.variation, cost.scv, lambda at, message: problems.append(Problem(at, message)))
    return problems


MAX_PORTS: Final = 1024
"""Most ports of a server, or interfaces of a machine."""

MAX_THREADS: Final = 4096
"""Greatest number of threads of all machines of a router; more is probably a typing error."""


@value
class OuterPorts:
    """Ports of a server, and the interfaces by which its machines reach them."""

    interfaces: Count = field("Interfaces of each machine; ports take them in turn", default=1, ge=1, le=MAX_PORTS)
    ports: Count = field("Interfaces of the server", default=2, ge=1, le=MAX_PORTS)
    link_bps: BitRate = field("Rate of each link in each direction, bit/s", default=1e9, within=LINK_RATES_BPS)
    tx_ring_frames: FrameCount = field("Transmit ring of each port, frames", default=512, le=MAX_FRAMES)


def machine_problems(
    servers: Sequence[Server],
    machines: Sequence[Machine],
    *,
    functions: Sequence[str] | Mapping[str, Sequence[str]] = ("forward",),
    places: Sequence[str] = (),
) -> list[Problem]:
    """Return the problems of servers and the machines on them.

    Problems are empty or repeated names, impossible numbers of cores, pins to missing cores, machines on no server,
    priorities that Linux does not have, functions without a cost, and technologies with impossible numbers. More pinned
    threads than cores are allowed: the threads share the cores.

    ``functions``: required functions of every machine, or by name of the machine; ``places``: places of the machines in
    messages, by default ``machine[0]``, ``machine[1]``, ….
    """
    places = places or [f"machine[{number}]" for number in range(len(machines))]
    problems = [
        *_name_problems("server", {f"server[{number}]": server.name for number, server in enumerate(servers)}),
        *_name_problems("machine", {place: machine.name for place, machine in zip(places, machines, strict=True)}),
    ]
    if not servers:
        problems.append(Problem("server", "is missing: machines need a server to run on"))
    if not machines:
        problems.append(Problem("machine", "is missing: frames need a machine that routes them"))
    faults = faults_in("server", servers)
    faults += [fault for place, machine in zip(places, machines, strict=True) for fault in field_faults(machine, place)]
    problems += faults
    by_name = {server.name: server for server in servers}
    for number, server in enumerate(servers):
        place_of_server = f"server[{number}]"
        if not is_faulty(
            faults,
            f"{place_of_server}.cores",
            f"{place_of_server}.interrupt_cores",
            f"{place_of_server}.switch_cores",
            f"{place_of_server}.technology",
        ):
            problems += _server_problems(place_of_server, server)
    servers_of_unknown_size = {
        server.name for n, server in enumerate(servers) if is_faulty(faults, f"server[{n}].cores")
    }
    for place, machine in zip(places, machines, strict=True):
        server_of_machine = by_name.get(machine.server)
        if server_of_machine is None:
            hint = did_you_mean(machine.server, by_name)
            problems.append(Problem(f"{place}.server", f'"{machine.server}" is no server: {hint}'))
            continue
        required = functions.get(machine.name, ()) if isinstance(functions, Mapping) else functions
        if not is_faulty(faults, f"{place}.vcpus", f"{place}.vcpu_cores"):
            problems += _machine_problems(place, machine)
        if not is_faulty(faults, f"{place}.functions"):
            problems += _function_problems(f"{place}.functions", machine, server_of_machine.technology, required)
        if server_of_machine.name not in servers_of_unknown_size and not is_faulty(
            faults, f"{place}.vcpu_cores", f"{place}.backend_cores"
        ):
            problems += _pin_problems(place, machine, server_of_machine)
    return problems


def size_problems(machines: Sequence[Machine], outer_ports: OuterPorts) -> list[Problem]:
    """Return the problems of a router's numbers of ports, interfaces and threads, and of its links."""
    problems = field_faults(outer_ports)
    if not problems and not any(field_faults(machine) for machine in machines):
        threads = sum(machine.vcpus + outer_ports.interfaces for machine in machines)
        if threads > MAX_THREADS:
            message = f"vcpus and interfaces make {threads} threads: at most {MAX_THREADS} are allowed"
            problems.append(Problem("machine", message))
    return problems


def _name_problems(kind: str, names: Mapping[str, str]) -> Iterator[Problem]:
    taken: dict[str, str] = {}
    for place, name in names.items():
        if not name.strip():
            yield Problem(f"{place}.name", f"is empty: a {kind} needs a name")
        elif name in taken:
            yield Problem(f"{place}.name", f'"{name}" is already the name of {taken[name]}')
        taken.setdefault(name, place)


def _server_problems(place: str, server: Server) -> Iterator[Problem]:
    yield from _core_problems(f"{place}.interrupt_cores", server.interrupt_cores, server)
    yield from _core_problems(f"{place}.switch_cores", server.switch_cores, server)
    if server.switch_cores and server.technology.backend != "polling":
        yield Problem(
            f"{place}.switch_cores", f'technology "{server.technology.name}" has no vSwitch that polls: leave them out'
        )
    yield from technology_problems(f"{place}.technology", server.technology, server.cores)


def _machine_problems(place: str, machine: Machine) -> Iterator[Problem]:
    if len(machine.vcpu_cores) > machine.vcpus:
        given = len(machine.vcpu_cores)
        yield Problem(
            f"{place}.vcpu_cores",
            f"has {given} entries for {machine.vcpus} vcpu{'s' * (machine.vcpus > 1)}: give one list of cores for"
            f" each vcpu, such as [[0, 1]] for one that may use both",
        )


def _function_problems(
    place: str, machine: Machine, technology: Technology, required: Sequence[str]
) -> Iterator[Problem]:
    known = {*machine.functions, *technology.functions}
    for function in required:
        if function not in known:
            yield Problem(place, f'no cost of "{function}" is given, here or in technology "{technology.name}"')
    expected = {*technology.functions, *required}
    for function, cost in machine.functions.items():
        if function not in expected:
            hint = did_you_mean(function, sorted(expected))
            yield Problem(f"{place}.{function}", f"is no function that is known here: {hint}")
        yield from _cost_problems(f"{place}.{function}", cost)


def _pin_problems(place: str, machine: Machine, server: Server) -> Iterator[Problem]:
    for key in ("vcpu_cores", "backend_cores"):
        for number, cores in enumerate(getattr(machine, key)):
            yield from _core_problems(f"{place}.{key}[{number}]", cores, server)
    technology = server.technology
    if machine.backend_cores and technology.backend == "polling":
        yield Problem(
            f"{place}.backend_cores",
            f'the vSwitch of technology "{technology.name}" polls: give its cores as switch_cores of the server',
        )
    if machine.backend_cores and technology.backend == "none":
        yield Problem(f"{place}.backend_cores", f'technology "{technology.name}" has no backend: leave them out')


def _core_problems(place: str, cores: Cores, server: Server) -> Iterator[Problem]:
    for core in dict.fromkeys(cores):
        if not 0 <= core < server.cores:
            yield Problem(place, f'core {core} does not exist: "{server.name}" has cores 0 to {server.cores - 1}')
    if len(set(cores)) < len(cores):
        yield Problem(place, f"names a core twice: {_listed(cores)}")


def _listed(cores: Cores) -> str:
    return ("core " if len(cores) == 1 else "cores ") + ", ".join(str(core) for core in cores)
