"""A multistage router as a router document, for studies that vary it and for users who begin with a measured one."""

from __future__ import annotations

from typing import Any

from routecast.router.multistage.li2012_scenarios import Scenario
from routecast.router.virtual.machines import Machine, Server

__all__ = ["router_document"]


def router_document(scenario: Scenario, technology: str) -> dict[str, Any]:
    """Return what a router file says of a scenario; what is as by default is left out.

    Parameters
    ----------
    scenario : Scenario
    technology : str
        Name or file of the technique that its servers have.

    Examples
    --------
    >>> from routecast.router.files import build_router
    >>> from routecast.router.multistage.li2012_scenarios import table_3_2
    >>> from routecast.router.virtual.catalogue import technology
    >>> scenario = table_3_2(technology("vmware-esxi-4.0"))["C.2"]
    >>> document = router_document(scenario, "vmware-esxi-4.0")
    >>> document["interconnect"]
    {'kind': 'vlan', 'links': 2}
    >>> build_router(document, subject="C.2.router.toml")[0] == scenario.model()
    True
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
    said: dict[str, Any] = {"name": server.name, "cores": server.cores, "interrupt_cores": list(server.interrupt_cores)}
    if server.speed_ratio != 1.0:
        said["speed"] = server.speed_ratio
    return said


def _machine(machine: Machine) -> dict[str, Any]:
    said: dict[str, Any] = {"name": machine.name, "server": machine.server}
    if machine.vcpus != 1:
        said["vcpus"] = machine.vcpus
    for key, pins in (("vcpu_cores", machine.vcpu_cores), ("backend_cores", machine.backend_cores)):
        if pins:
            said[key] = [list(cores) for cores in pins]
    return said
