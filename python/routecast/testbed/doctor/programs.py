"""Checks of which programs are there: for test beds, for devices under test, other testers to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from routecast.testbed.doctor.machine import Finding, Machine, State

__all__ = ["devices", "other_testers", "tools"]

_TOOLS: Final = {"ip": "iproute2", "ethtool": "ethtool", "sysctl": "procps"}
_DEVICES: Final = {
    "bridge": "iproute2",
    "nft": "nftables",
    "ovs-vswitchd": "openvswitch-switch",
    "dpdk-testpmd": "dpdk-dev",
    "zebra": "frr",
}
_TESTERS: Final = {"trafgen": "netsniff-ng", "iperf3": "iperf3", "xdp-trafficgen": "xdp-tools", "t-rex-64": ""}


def _programs(machine: Machine, check: str, wanted: Mapping[str, str], effect: str) -> Finding:
    there = [program for program in wanted if machine.finds(program)]
    absent = [program for program in wanted if program not in there]
    if not absent:
        return Finding(check=check, state=State.FINE, found=", ".join(there))
    packages = sorted({wanted[program] for program in absent if wanted[program]})
    return Finding(
        check=check,
        state=State.MISSING,
        found=f"not {', '.join(absent)}" + (f"; {', '.join(there)} are there" if there else ""),
        effect=effect,
        remedy=f"apt install {' '.join(packages)}" if packages else "",
    )


def tools(machine: Machine) -> Finding:
    """Look for what test beds are made with."""
    return _programs(machine, "tools", _TOOLS, "a test bed of namespaces cannot be made, interfaces not be examined")


def devices(machine: Machine) -> Finding:
    """Look for what devices under test are made of."""
    return _programs(machine, "devices", _DEVICES, "these devices under test cannot be started; the others can")


def other_testers(machine: Machine) -> Finding:
    """Look for testers to compare with: a measurement that two tools agree on is worth more."""
    return _programs(machine, "other testers", _TESTERS, "no comparison with them; routecast's own tester needs none")
