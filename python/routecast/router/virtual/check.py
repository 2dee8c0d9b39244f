"""Whether servers, and the machines on them, contradict themselves or each other, with every fault at once.

Places are written as in a router file: ``server[0].cores``, ``machine[1].vcpu_cores[0]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final, get_args

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check import check_contention, check_policy, check_time, check_variation
from routecast.router.check_numbers import (
    LINK_RATES_BPS,
    LONGEST_BYTE_S,
    LONGEST_S,
    MAX_FRAMES,
    MOST_CONTENTION,
    SPEED_RATIOS,
    duration,
    known,
    not_negative,
    within,
)
from routecast.router.model import ServiceCost
from routecast.router.virtual.machines import MAX_CORES, MAX_VCPUS, Cores, Machine, Server
from routecast.router.virtual.technology import Backend, BackendThreads, Guest, Technology

__all__ = ["MAX_PRIORITY", "machine_problems", "size_problems"]


# Whether the costs and mechanisms of a virtualisation technique can be, with every fault at once.


_MAX_QUEUES: Final = 128
_FRAMES = tuple(field.name for field in fields(Technology) if field.name.endswith("_frames"))
_TIMES = tuple(field.name for field in fields(Technology) if field.name.endswith("_s"))
_WORK = tuple(field.name for field in fields(ServiceCost) if field.name.startswith(("per_", "memory_")))
_IN_THE_GUEST = "add it to guest_driver"
_UNUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {"nic_receive": _IN_THE_GUEST, "nic_send": _IN_THE_GUEST, "switch": _IN_THE_GUEST},
    "thread": {"nic_send": "add it to send"},
    "softirq": {"nic_send": "add it to send"},
}
"""Costs that no task unit has, by backend, and where to put them."""

_COSTS = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")


def technology_problems(place: str, technology: Technology, cores: int) -> list[Problem]:
    """Return what is wrong with a technique on a server of so many cores."""
    problems: list[Problem] = []

    def add(at: str, message: str) -> None:
        problems.append(Problem(at, message))

    for key, allowed in (("backend", Backend), ("backend_threads", BackendThreads), ("guest", Guest)):
        known(f"{place}.{key}", getattr(technology, key), get_args(allowed), add)
    if technology.backend == "thread" and technology.backend_threads == "server":
        add(
            f"{place}.backend_threads",
            'only a vSwitch that polls has threads of the server: "interface" or "machine" is wanted',
        )
    for key in _FRAMES:
        least = 0 if key == "guest_queue_frames" else 1
        if not is_whole(getattr(technology, key), least, MAX_FRAMES):
            wanted = "0 frames or more are wanted" if least == 0 else "at least 1 frame is wanted"
            add(f"{place}.{key}", f"got {getattr(technology, key)}: {wanted}")
    if not is_whole(technology.nic_queues, 1, _MAX_QUEUES):
        add(f"{place}.nic_queues", f"got {technology.nic_queues}: between 1 and {_MAX_QUEUES} queues are wanted")
    for key in _TIMES:
        duration(f"{place}.{key}", getattr(technology, key), add)
    for key in _COSTS:
        _check_cost(f"{place}.{key}", getattr(technology, key), add)
    for key, instead in _UNUSED.get(technology.backend, {}).items():
        if getattr(technology, key) != ServiceCost():
            add(f"{place}.{key}", f'nobody does this work with backend "{technology.backend}": {instead}')
    for function, cost in technology.functions.items():
        _check_cost(f"{place}.functions.{function}", cost, add)
    if technology.guest_wakeup is not None:
        check_time(f"{place}.guest_wakeup", technology.guest_wakeup, add)
    check_policy(f"{place}.policy", technology.policy, add)
    check_contention(f"{place}.contention", technology.contention, cores, add)
    if not 1.0 <= technology.smp_factor <= MOST_CONTENTION:
        add(
            f"{place}.smp_factor",
            f"got {technology.smp_factor}: a finite number >= 1 is wanted, at most {MOST_CONTENTION:g}",
        )
    return problems


def cost_problems(place: str, cost: ServiceCost) -> list[Problem]:
    """Return what is wrong with the work of a step."""
    problems: list[Problem] = []
    _check_cost(place, cost, lambda at, message: problems.append(Problem(at, message)))
    return problems


def is_whole(value: object, least: int, most: int) -> bool:
    """Return whether a value is a whole number, and neither less nor more than allowed."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _check_cost(place: str, cost: ServiceCost, add: Callable[[str, str], None]) -> None:
    for name in _WORK:
        at, value = f"{place}.{name}", getattr(cost, name)
        if name.endswith("_s"):
            duration(at, value, add, most_s=LONGEST_BYTE_S if name == "per_byte_s" else LONGEST_S)
        elif not_negative(at, value, add) and value and name.endswith("_cycles"):
            add(at, "is in cycles, and servers state no frequency: give seconds on the reference machine")
    check_variation(place, cost.variation, cost.scv, add)


MAX_PRIORITY: Final = 99
"""Highest real-time priority of Linux's ``SCHED_FIFO`` (sched(7))."""

MAX_PORTS: Final = 1024
"""Most ports of a server, or interfaces of a machine."""

MAX_THREADS: Final = 4096
"""Most threads of all machines of a router; more is taken for a typing error."""


def machine_problems(
    servers: Sequence[Server],
    machines: Sequence[Machine],
    *,
    functions: Sequence[str] | Mapping[str, Sequence[str]] = ("forward",),
    places: Sequence[str] = (),
) -> list[Problem]:
    """Return what is wrong with servers and the machines on them.

    Names that are empty or taken, numbers of cores that cannot be, pins to cores that are not there, machines on no
    server, priorities that Linux does not have, functions without a cost, and technologies whose numbers cannot be.
    More pinned threads than cores is no fault: they share.

    Parameters
    ----------
    servers, machines : sequences
    functions : sequence of str, or mapping of str to sequence of str
        What each machine must be able to do; or for each machine, by its name.
    places : sequence of str
        Of the machines; ``()``: ``machine[0]``, ``machine[1]``, …
    """
    places = places or [f"machine[{number}]" for number in range(len(machines))]
    problems = [
        *_name_problems("server", {f"server[{number}]": server.name for number, server in enumerate(servers)}),
        *_name_problems("machine", {place: machine.name for place, machine in zip(places, machines, strict=True)}),
    ]
    if not servers:
        problems.append(Problem("server", "there is none: machines need one to run on"))
    if not machines:
        problems.append(Problem("machine", "there is none: frames need one to be routed by"))
    for number, server in enumerate(servers):
        problems += _server_problems(f"server[{number}]", server)
    by_name = {server.name: server for server in servers}
    for place, machine in zip(places, machines, strict=True):
        problems += _machine_problems(place, machine)
        on = by_name.get(machine.server)
        if on is None:
            hint = did_you_mean(machine.server, by_name)
            problems.append(Problem(f"{place}.server", f'"{machine.server}" is no server: {hint}'))
            continue
        wanted = functions.get(machine.name, ()) if isinstance(functions, Mapping) else functions
        problems += _function_problems(f"{place}.functions", machine, on.technology, wanted)
        problems += _pin_problems(place, machine, on)
    return problems


def size_problems(machines: Sequence[Machine], *, ports: int, interfaces: int, link_bps: float) -> list[Problem]:
    """Return what is wrong with how many ports, interfaces and threads a router has, and with its links' rate.

    Parameters
    ----------
    machines : sequence of Machine
    ports : int
        Of the server.
    interfaces : int
        Of each machine.
    link_bps : float
        Rate of each port, each direction.
    """
    problems = [
        Problem(place, f"got {number}: a whole number from 1 to {MAX_PORTS} is wanted")
        for place, number in (("ports", ports), ("interfaces", interfaces))
        if not is_whole(number, 1, MAX_PORTS)
    ]
    within("link_bps", link_bps, LINK_RATES_BPS, "a link rate", "bit/s", _into(problems))
    threads = sum(machine.vcpus + interfaces for machine in machines)
    if not problems and threads > MAX_THREADS:
        problems.append(
            Problem("machine", f"vcpus and interfaces make {threads} threads: at most {MAX_THREADS} are allowed")
        )
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
    if not is_whole(server.cores, 1, MAX_CORES):
        yield Problem(f"{place}.cores", f"got {server.cores}: a server has 1 to {MAX_CORES} cores")
    speed: list[Problem] = []
    within(f"{place}.speed_ratio", server.speed_ratio, SPEED_RATIOS, "a relative speed", "", _into(speed))
    yield from speed
    yield from _core_problems(f"{place}.interrupt_cores", server.interrupt_cores, server)
    yield from _core_problems(f"{place}.switch_cores", server.switch_cores, server)
    if server.switch_cores and server.technology.backend != "polling":
        yield Problem(
            f"{place}.switch_cores", f'technology "{server.technology.name}" has no vSwitch that polls: leave them out'
        )
    cores = min(max(server.cores, 1), MAX_CORES)
    yield from technology_problems(f"{place}.technology", server.technology, cores)


def _machine_problems(place: str, machine: Machine) -> Iterator[Problem]:
    if not is_whole(machine.vcpus, 1, MAX_VCPUS):
        yield Problem(f"{place}.vcpus", f"got {machine.vcpus}: a machine has 1 to {MAX_VCPUS} vcpus")
    elif len(machine.vcpu_cores) > machine.vcpus:
        given = len(machine.vcpu_cores)
        yield Problem(
            f"{place}.vcpu_cores",
            f"has {given} entries for {machine.vcpus} vcpu{'s' * (machine.vcpus > 1)}: give one list of cores for"
            f" each vcpu, such as [[0, 1]] for one that may use both",
        )
    for key in ("vcpu_priority", "backend_priority"):
        priority = getattr(machine, key)
        if not is_whole(priority, 0, MAX_PRIORITY):
            yield Problem(
                f"{place}.{key}", f"got {priority}: 0 shares fairly, 1 to {MAX_PRIORITY} are real time (SCHED_FIFO)"
            )
    if not (math.isfinite(machine.weight) and machine.weight > 0.0):
        yield Problem(f"{place}.weight", f"got {machine.weight}: a finite number > 0 is wanted")


def _function_problems(
    place: str, machine: Machine, technology: Technology, wanted: Sequence[str]
) -> Iterator[Problem]:
    known = {*machine.functions, *technology.functions}
    for function in wanted:
        if function not in known:
            yield Problem(place, f'no cost of "{function}" is given, here or in technology "{technology.name}"')
    expected = {*technology.functions, *wanted}
    for function, cost in machine.functions.items():
        if function not in expected:
            hint = did_you_mean(function, sorted(expected))
            yield Problem(f"{place}.{function}", f"is no function that is known here: {hint}")
        yield from cost_problems(f"{place}.{function}", cost)


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
        if not is_whole(core, 0, max(server.cores, 1) - 1):
            yield Problem(place, f'core {core} is not there: "{server.name}" has cores 0 to {max(server.cores, 1) - 1}')
    if len(set(cores)) < len(cores):
        yield Problem(place, f"names a core twice: {_listed(cores)}")


def _into(problems: list[Problem]) -> Callable[[str, str], None]:
    return lambda place, message: problems.append(Problem(place, message))


def _listed(cores: Cores) -> str:
    return ("core " if len(cores) == 1 else "cores ") + ", ".join(str(core) for core in cores)
