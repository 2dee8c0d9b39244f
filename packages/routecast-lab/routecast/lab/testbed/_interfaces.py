"""A test bed of real interfaces, cabled to an external device under test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.lab.testbed.addresses import BENCHMARKING_RANGES, PortAddresses, is_benchmarking_address, port_addresses
from routecast.lab.testbed.bed import Bed, TesterPort
from routecast.lab.testbed.checks import SENDING_CAPABILITIES, require
from routecast.lab.testbed.document import InterfacePort, InterfacesFile
from routecast.lab.testbed.dut_host import Device, DevicePort, DeviceSite, run_command
from routecast.lab.testbed.links import LinkReader, LinkState
from routecast.lab.testbed.netns import FOLDER, command_inside
from routecast.lab.testbed.state import BedState, change_link

OWN_NETWORK_OPTION = "--i-own-this-network"
"""The option by which a user takes responsibility for the network."""

_IDLE_S = 0.5
_LINK_LOCAL = ("fe80:", "169.254.")
_UNKNOWN_SPEEDS = (-1, 0, 65_535, 4_294_967_295)

_LINK_TIMEOUT_S = 10.0
_NO_NETWORKS = PortAddresses(
    router_ipv4="", router_ipv6="", tester_ipv4="", tester_ipv6="", networks_ipv4=(), networks_ipv6=()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """An interface that passed the checks of :func:`inspect_ports`: sending on it is safe (RFC 6815: in a lab only)."""

    interface: str
    netns: str | None
    mac: str
    mtu: int
    is_up: bool
    driver: str


def inspect_ports(
    ports: list[tuple[str | None, str]], *, own_network: bool, idle_s: float = _IDLE_S
) -> tuple[PortFacts, ...]:
    """Check interfaces, given by namespace and name, before anything is sent.

    With ``own_network``, the function accepts interfaces with default routes, addresses and other traffic. Otherwise it
    checks that their counters do not change for ``idle_s`` seconds. Raises FileProblem: interfaces are missing or in
    other use; the error holds all reasons.
    """
    problems: list[Problem] = []
    before = _links(ports, problems)
    if problems:
        raise FileProblem("test bed", problems)
    if not own_network:
        time.sleep(idle_s)
        after = _links(ports, problems)
        for number, (port, state_before, state_after) in enumerate(zip(ports, before, after, strict=True)):
            for reason in _refusal_reasons(port, state_before, state_after, idle_s):
                problems.append(Problem(f"port[{number}].interface", f"{port[1]} {reason}"))
    if problems:
        message = f"test frames may disturb other users there (RFC 6815); {OWN_NETWORK_OPTION} sends them anyway"
        raise FileProblem("test bed", [*problems, Problem("", message)])
    return tuple(
        PortFacts(
            interface=name, netns=netns, mac=link.mac, mtu=link.mtu, is_up=link.is_up, driver=_driver(netns, name)
        )
        for (netns, name), link in zip(ports, before, strict=True)
    )


def _links(ports: list[tuple[str | None, str]], problems: list[Problem]) -> list[LinkState]:
    states: list[LinkState] = []
    for number, (netns, name) in enumerate(ports):
        key = f"port[{number}]"
        if netns is not None and not (FOLDER / netns).exists():
            problems.append(Problem(f"{key}.netns", f"there is no network namespace {netns}"))
            continue
        with LinkReader(netns) as reader:
            links = reader.read()
        if name not in links:
            names = ", ".join(sorted(links)) or "none"
            problems.append(Problem(f"{key}.interface", f"there is no interface {name}; the interfaces are {names}"))
        elif name == "lo":
            problems.append(Problem(f"{key}.interface", "lo is the loopback: it leads to no device"))
        else:
            states.append(links[name])
    return states


def _refusal_reasons(port: tuple[str | None, str], before: LinkState, after: LinkState, idle_s: float) -> Iterator[str]:
    netns, name = port
    if any(
        route.get("dev") == name
        for version in ("-4", "-6")
        for route in _ip_json(netns, version, "route", "show", "default")
    ):
        yield "carries the default route"
    if before.is_member:
        yield "is part of a bridge or bond"
    for address in _addresses(netns, name):
        if not address.startswith(_LINK_LOCAL) and not is_benchmarking_address(address):
            yield f"has the address {address}, outside the benchmarking ranges {' and '.join(BENCHMARKING_RANGES)}"
    frames = after.rx_frames - before.rx_frames + after.tx_frames - before.tx_frames
    if frames:
        yield f"carries other traffic: {frames} frames in {idle_s:g} s while routecast was silent"


def _addresses(netns: str | None, interface: str) -> list[str]:
    return [
        f"{entry['local']}/{entry['prefixlen']}"
        for link in _ip_json(netns, "addr", "show", "dev", interface)
        for entry in link.get("addr_info", [])
        if "local" in entry
    ]


def _ip_json(netns: str | None, *words: str) -> list[dict[str, Any]]:
    text = run_command(["ip", *(["-n", netns] if netns else []), "-json", *words], check=False)
    objects: list[dict[str, Any]] = json.loads(text) if text.strip() else []
    return objects


def link_bps(netns: str | None, interface: str) -> float | None:
    """Return the rate of a link in bit/s; None if its driver reports none, or while the link is down."""
    try:
        speed = int(run_command(command_inside(netns, "cat", f"/sys/class/net/{interface}/speed")))
    except (EnvironmentProblem, ValueError):
        return None
    return None if speed in _UNKNOWN_SPEEDS else speed * 1e6


def _driver(netns: str | None, interface: str) -> str:
    command = command_inside(netns, "readlink", f"/sys/class/net/{interface}/device/driver")
    return run_command(command, check=False).strip().rpartition("/")[2] or "virtual"


class Interfaces(Bed):
    """The test bed of a ``kind = "interfaces"`` file; see :class:`routecast.lab.testbed.bed.Bed`.

    :func:`inspect_ports` explains ``own_network``; ``on_remark`` receives remarks for the user.
    """

    def __init__(
        self,
        file: InterfacesFile,
        device: Device,
        *,
        own_network: bool = False,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(file, device, on_remark=on_remark)
        self._file = file
        self._own_network = own_network
        self._facts: tuple[PortFacts, ...] = ()

    @property
    def layer(self) -> Literal[2, 3]:
        """Whether the device routes (3) or bridges (2), according to the file."""
        return self._file.layer

    def facts(self) -> Mapping[str, object]:
        """Return the facts of the bed as plain data."""
        return {
            **super().facts(),
            "kind": "interfaces",
            "layer": self._file.layer,
            "drivers": {fact.interface: fact.driver for fact in self._facts},
        }

    def _require_capabilities(self) -> None:
        require(SENDING_CAPABILITIES, "sending on interfaces")

    def _make(self, bed_state: BedState) -> None:
        self._facts = inspect_ports(
            [(port.netns, port.interface) for port in self._file.port], own_network=self._own_network
        )
        for port, fact in zip(self._file.port, self._facts, strict=True):
            change_link(bed_state, port.netns, port.interface, "up", on=True)
            if port.mac is not None and port.mac != fact.mac:
                change_link(bed_state, port.netns, port.interface, "promiscuous", on=True)
        for port in self._file.port:
            _wait_for_link(port)
        problems: list[Problem] = []
        self.ports = tuple(
            _tester_port(number, port, fact, problems)
            for number, (port, fact) in enumerate(zip(self._file.port, self._facts, strict=True))
        )
        if problems:
            raise FileProblem(f"test bed {self.name!r}", problems)

    def _make_site(self, bed_state: BedState) -> DeviceSite:
        return DeviceSite(
            netns=None,
            ports=tuple(
                DevicePort(
                    interface=f"port {number}",
                    mac=port.dut_mac,
                    ipv4=port.dut_ipv4 or "",
                    ipv6=port.dut_ipv6 or "",
                    neighbour_mac=tester.mac,
                    neighbour_ipv4=tester.ipv4,
                    neighbour_ipv6=tester.ipv6,
                    networks_ipv4=tester.networks_ipv4,
                    networks_ipv6=tester.networks_ipv6,
                )
                for number, (port, tester) in enumerate(zip(self._file.port, self.ports, strict=True))
            ),
            cpu=None,
            priority=0,
            folder=self.folder,
            on_spawn=bed_state.add_process,
        )


def _tester_port(number: int, port: InterfacePort, fact: PortFacts, problems: list[Problem]) -> TesterPort:
    driver_bps = link_bps(port.netns, port.interface)
    wire_bps = port.wire or driver_bps
    key = f"port[{number}].wire"
    if wire_bps is None:
        problems.append(Problem(key, f"is missing: the driver of {port.interface} reports no rate"))
    elif port.wire and driver_bps and port.wire > driver_bps * (1.0 + 1e-9):
        message = f"is {port.wire / 1e9:g} Gbit/s, the link of {port.interface} has {driver_bps / 1e9:g} Gbit/s"
        problems.append(Problem(key, f"{message}: a tester cannot send faster"))
    default = port_addresses(number) if number < 2 else _NO_NETWORKS
    return TesterPort(
        name=f"port{number}",
        interface=port.interface,
        netns=port.netns,
        mac=port.mac or fact.mac,
        ipv4=port.ipv4 or default.tester_ipv4,
        ipv6=port.ipv6 or "",
        device_mac=port.dut_mac,
        networks_ipv4=port.networks_ipv4,
        networks_ipv6=port.networks_ipv6,
        wire_bps=wire_bps or 1.0,
        # The tester keeps the rate of a wire slower than its link, or of a link without a rate of its own.
        is_virtual=fact.driver == "virtual" or port.wire is not None,
        mtu=fact.mtu,
    )


def _wait_for_link(port: InterfacePort) -> None:
    with LinkReader(port.netns) as reader:
        deadline = time.monotonic() + _LINK_TIMEOUT_S
        while not reader.read()[port.interface].has_carrier:
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"{port.interface}: the link is down after {_LINK_TIMEOUT_S:g} s: check the cable and the "
                    "device's port"
                )
            time.sleep(0.1)
