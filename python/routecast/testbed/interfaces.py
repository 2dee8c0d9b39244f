"""A test bed of real interfaces, joined by cables to a device under test that stands there already."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Literal

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.testbed.addresses import PortAddresses, port_addresses
from routecast.testbed.bed import Bed, TesterPort
from routecast.testbed.capabilities import FOR_SENDING, require
from routecast.testbed.document import InterfacePort, InterfacesFile
from routecast.testbed.links import LinkReader
from routecast.testbed.safety import PortFacts, inspect_ports, link_bps
from routecast.testbed.settings import change_link
from routecast.testbed.site import Device, DevicePort, DeviceSite
from routecast.testbed.state import BedState

__all__ = ["Interfaces"]

_LINK_UP_WITHIN_S = 10.0
_NO_NETWORKS = PortAddresses(
    router_ipv4="", router_ipv6="", tester_ipv4="", tester_ipv6="", networks_ipv4=(), networks_ipv6=()
)


class Interfaces(Bed):
    """The test bed of a ``kind = "interfaces"`` file; see :class:`routecast.testbed.bed.Bed`.

    Parameters
    ----------
    file : InterfacesFile
    device : Device
    own_network : bool
        The user says that the network is theirs: see :func:`routecast.testbed.safety.inspect_ports`.
    said : callable, optional
        Told what the user should know.
    """

    def __init__(
        self,
        file: InterfacesFile,
        device: Device,
        *,
        own_network: bool = False,
        said: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(file, device, said=said)
        self._file = file
        self._own_network = own_network
        self._facts: tuple[PortFacts, ...] = ()

    @property
    def layer(self) -> Literal[2, 3]:
        """Whether the device routes (3) or bridges (2), as the file says."""
        return self._file.layer

    def facts(self) -> Mapping[str, object]:
        """Return what the bed is, as plain data."""
        return {
            **super().facts(),
            "kind": "interfaces",
            "layer": self._file.layer,
            "drivers": {fact.interface: fact.driver for fact in self._facts},
        }

    def _require(self) -> None:
        require(FOR_SENDING, "sending on interfaces")

    def _make(self, noted: BedState) -> None:
        self._facts = inspect_ports(
            [(port.netns, port.interface) for port in self._file.port], own_network=self._own_network
        )
        for port, fact in zip(self._file.port, self._facts, strict=True):
            change_link(noted, port.netns, port.interface, "up", on=True)
            if port.mac is not None and port.mac != fact.mac:
                change_link(noted, port.netns, port.interface, "promiscuous", on=True)
        for port in self._file.port:
            _wait_for_link(port)
        problems: list[Problem] = []
        self.ports = tuple(
            _tester_port(number, port, fact, problems)
            for number, (port, fact) in enumerate(zip(self._file.port, self._facts, strict=True))
        )
        if problems:
            raise FileProblem(f"test bed {self.name!r}", problems)

    def _make_site(self, noted: BedState) -> DeviceSite:
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
            on_spawn=noted.add_process,
        )


def _tester_port(number: int, port: InterfacePort, fact: PortFacts, problems: list[Problem]) -> TesterPort:
    of_link_bps = link_bps(port.netns, port.interface)
    wire_bps = port.wire or of_link_bps
    place = f"port[{number}].wire"
    if wire_bps is None:
        problems.append(Problem(place, f"is missing: the driver of {port.interface} does not say its rate"))
    elif port.wire and of_link_bps and port.wire > of_link_bps * (1.0 + 1e-9):
        what = f"is {port.wire / 1e9:g} Gbit/s, the link of {port.interface} has {of_link_bps / 1e9:g} Gbit/s"
        problems.append(Problem(place, f"{what}: a tester cannot send faster"))
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
        # A wire that is slower than its link, or a link without a rate of its own, is kept by the tester.
        is_virtual=fact.driver == "virtual" or port.wire is not None,
        mtu=fact.mtu,
    )


def _wait_for_link(port: InterfacePort) -> None:
    with LinkReader(port.netns) as reader:
        deadline = time.monotonic() + _LINK_UP_WITHIN_S
        while not reader.read()[port.interface].has_carrier:
            if time.monotonic() > deadline:
                raise EnvironmentProblem(
                    f"{port.interface}: the link is down for {_LINK_UP_WITHIN_S:g} s: check the cable and the "
                    "device's port"
                )
            time.sleep(0.1)
