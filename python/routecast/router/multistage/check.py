"""Whether servers, elements and their interconnect make a multistage router, with every fault at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_numbers import LINK_RATES_BPS, within
from routecast.router.multistage.control import Control, control_problems
from routecast.router.multistage.interconnect import Interconnect, interconnect_problems
from routecast.router.virtual.check import machine_problems
from routecast.router.virtual.machines import Machine, Server

__all__ = ["Balancing", "balance_function", "check_multistage"]

Balancing = Literal["round_robin", "flow_hash", "local"]

_MOST_PORTS = 1024


def balance_function(balancer: Machine, server: Server, balancing: str) -> str:
    """Return the name of what a balancer does on the way in: simpler if it balances locally, and that has a cost."""
    known = {*server.technology.functions, *balancer.functions}
    return "balance_local" if balancing == "local" and "balance_local" in known else "balance"


def check_multistage(
    subject: str,
    servers: Sequence[Server],
    balancers: Sequence[Machine],
    routers: Sequence[Machine],
    *,
    interconnect: Interconnect,
    balancing: str,
    ports_per_balancer: int,
    link_bps: float,
    control: Control | None,
) -> None:
    """Check what a multistage router is made of.

    Raises
    ------
    ModelProblem
        With all problems: no balancer or no router, what :func:`~routecast.router.virtual.check.machine_problems`
        finds, a local balancer without a router on its server, a hub that cannot flood, numbers out of range.
    """
    machines = (*balancers, *routers)
    by_name = {server.name: server for server in servers}
    problems = [
        Problem(place, f"there is no {what}: a multistage router needs at least one")
        for place, what, there in (
            ("balancers", "load balancer", balancers),
            ("routers", "back-end router", routers),
        )
        if not there
    ]

    def add(place: str, message: str) -> None:
        problems.append(Problem(place, message))

    functions = {router.name: ("forward",) for router in routers} | {
        one.name: (balance_function(one, by_name[one.server], balancing), "return")
        for one in balancers
        if one.server in by_name
    }
    if machines:
        found = machine_problems(servers, machines, functions=functions)
        problems += [Problem(*(_staged(text, len(balancers)) for text in one)) for one in found]
    if balancing not in get_args(Balancing):
        meant = did_you_mean(str(balancing), get_args(Balancing))
        problems.append(Problem("balancing", f'got "{balancing}": {meant}'))
    elif balancing == "local" and routers:
        problems += _local_problems(balancers, routers)
    most = _MOST_PORTS // max(len(balancers), 1)
    if not isinstance(ports_per_balancer, int) or not 1 <= ports_per_balancer <= most:
        message = f"got {ports_per_balancer}: a whole number from 1 to {most}"
        problems.append(Problem("ports_per_balancer", message))
    within("link_bps", link_bps, LINK_RATES_BPS, "a link rate", "bit/s", add)
    problems += interconnect_problems(interconnect)
    if interconnect.kind == "shared_hub":
        problems += _hub_problems(machines, by_name)
    if control is not None:
        problems += control_problems(control, servers, machines)
    if problems:
        raise ModelProblem(subject, problems)


def _staged(text: str, balancers: int) -> str:
    """Name machines as those of their stage: ``machine[2].vcpus`` is ``routers[0].vcpus`` behind two balancers."""

    def named(found: re.Match[str]) -> str:
        number = int(found[2])
        if found[1] == "server":
            return f"servers[{number}]"
        return f"balancers[{number}]" if number < balancers else f"routers[{number - balancers}]"

    return re.sub(r"\b(server|machine)\[(\d+)\]", named, text)


def _local_problems(balancers: Sequence[Machine], routers: Sequence[Machine]) -> list[Problem]:
    homes = {router.server for router in routers}
    return [
        Problem(
            f"balancers[{index}]",
            f'"{balancer.name}" balances locally, but no router is on "{balancer.server}": '
            "put one there, or balance by round_robin",
        )
        for index, balancer in enumerate(balancers)
        if balancer.server not in homes
    ]


def _hub_problems(machines: Sequence[Machine], servers: dict[str, Server]) -> list[Problem]:
    return [
        Problem(
            "interconnect.kind",
            f'"{machine.name}" on "{machine.server}" is on no virtual switch that could flood '
            f'({servers[machine.server].technology.name}): use "switch", "vlan" or "hub"',
        )
        for machine in machines
        if machine.server in servers and servers[machine.server].technology.backend == "none"
    ]
