"""The tables of a ``*.testbed.toml`` file as pydantic models: ports of the tester, wires, and the device under test.

Quantities are texts with units; unknown keys are errors.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, RootModel
from pydantic_core import PydanticCustomError

from routecast.lab.testbed._encapsulation import Encapsulation, parse_encapsulation
from routecast.lab.testbed.addresses import MAX_NETWORKS
from routecast.quantity.fields import BitRate, Duration, Parsed
from routecast.quantity.file_model import FileTable

__all__ = [
    "Cores",
    "DeviceTable",
    "InterfacePort",
    "InterfacesFile",
    "MeterSettings",
    "MeterTable",
    "NamespacesFile",
    "TestbedFile",
]

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")


def _problem(text: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("value", "{message}", {"message": f"got {text!r}: {message}"})


def _mac(text: str) -> str:
    mac = text.lower().replace("-", ":")
    if not _MAC.fullmatch(mac):
        raise _problem(text, "a MAC address is like 02:00:00:00:01:02")
    if int(mac[:2], 16) & 1:
        raise _problem(text, "is a group address, a port has a unicast one")
    return mac


def _ip(noun: Literal["address", "network"], example: str) -> AfterValidator:
    """Return the check that a text is like an example: its IP version and, for an address, the prefix length."""
    parse = ipaddress.ip_network if noun == "network" else ipaddress.ip_interface
    version = parse(example).version

    def check(text: str) -> str:
        try:
            is_right = parse(text).version == version and (noun == "network" or ("/" in text) == ("/" in example))
        except ValueError:
            is_right = False
        if not is_right:
            raise _problem(text, f"write an IPv{version} {noun} like {example}")
        return text

    return AfterValidator(check)


Mac = Annotated[str, AfterValidator(_mac)]
Ipv4 = Annotated[str, _ip("address", "198.18.1.2")]
Ipv6 = Annotated[str, _ip("address", "2001:2:0:1::2")]
Ipv4Interface = Annotated[str, _ip("address", "198.18.1.1/24")]
Ipv6Interface = Annotated[str, _ip("address", "2001:2:0:1::1/64")]
Ipv4Network = Annotated[str, _ip("network", "198.18.64.0/24")]
Ipv6Network = Annotated[str, _ip("network", "2001:2:0:40::/64")]
BedName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,15}$")]
Interface = Annotated[str, Field(pattern=r"^[^\s/:]{1,15}$")]
Namespace = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Core = Annotated[int, Field(ge=0, le=4095, strict=True)]
Priority = Annotated[int, Field(ge=0, le=98, strict=True)]
Networks = Annotated[int, Field(ge=1, le=MAX_NETWORKS, strict=True)]
Mtu = Annotated[int, Field(ge=68, le=65_535, strict=True)]


class DeviceTable(FileTable):
    """``[dut]``: the device under test; its options are further keys of the table."""

    model_config = ConfigDict(extra="allow")

    device: str = Field(
        default="linux", min_length=1, description="Kind of device, as `routecast testbed devices` lists them."
    )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the device: every other key of the table."""
        return dict(self.model_extra or {})


class Cores(FileTable):
    """``[cores]``: the cores of tester, receiver and device; routecast chooses the missing ones."""

    tester: Core | None = Field(default=None, description="Core of the frame generator.")
    receiver: Core | None = Field(default=None, description="Core of the receiver; the device's core if not given.")
    dut: Core | None = Field(default=None, description="Core of the device under test.")


class MeterSettings(FileTable):
    """How a meter is read."""

    scope: str | None = Field(
        default=None,
        pattern=r"^[a-z][a-z0-9:+-]{0,31}$",
        description="Part of the machine that the figures of a file or a web address cover: pdu (default), wall, …",
    )
    interval: Duration | None = Field(
        default=None, description="Time between samples; 0.1 s for the processor's counters, else 1 s."
    )
    verify_tls: bool = Field(default=True, description="Whether the certificate of a host must be valid.")
    timeout: Duration = Field(default=5.0, description="Timeout of each answer of a host.")


class MeterTable(MeterSettings):
    """``[power]``: the meter that is read while frames are sent. The file never holds passwords."""

    meter: str = Field(
        min_length=1,
        description="auto, rapl, rapl:psys, rapl:dram, perf, ipmi, redfish:URL, csv:FILE, http:URL.",
        examples=["auto", "redfish:https://bmc.lab", "csv:pdu.csv"],
    )


class _Bed(FileTable):
    """The keys of every kind of test bed."""

    name: BedName = Field(description="Name of the test bed: a-z, 0-9 and -, up to 16 characters.")
    description: str = Field(default="", description="The test bed in words, for the report.")
    cores: Cores = Cores()
    priority: Priority = Field(
        default=40, description="SCHED_FIFO priority of the generator and of the device's kernel threads; 0 for none."
    )
    idle: Literal["poll", "sleep"] = Field(
        default="poll", description="Behaviour of idle cores: poll, so that they work at once, or sleep as usual."
    )
    power: MeterTable | None = Field(default=None, description="The power meter; none if not given.")
    encapsulation: Annotated[
        Encapsulation, Parsed(parse_encapsulation, "VLAN tags, tunnel", "vlan:10", parsed_type=Encapsulation)
    ] = Field(
        default_factory=Encapsulation,
        description="VLAN tags and tunnel of every test frame: vlan:10, vlan:100.10, vxlan:42, gre, vlan:10+gre.",
    )


class NamespacesFile(_Bed):
    """Tester, device under test and their wires in network namespaces of this machine; routecast makes them."""

    kind: Literal["namespaces"]
    wire: BitRate = Field(
        default=10e9, description="Rate of each wire; the tester enforces it, since a veth pair has no rate."
    )
    mtu: Mtu = Field(default=1500, description="Longest IP packet of every port, in bytes.")
    ipv6: bool = Field(default=True, description="Whether the device routes IPv6 as well.")
    networks: Networks = Field(
        default=MAX_NETWORKS, description="Networks at each side, including that of the link (RFC 2544 sec. 12)."
    )
    dut: DeviceTable = DeviceTable()


class InterfacePort(FileTable):
    """``[[port]]``: an interface of the tester, and the port of the device under test at the other end of its cable."""

    interface: Interface = Field(description="Name of the tester's interface.")
    netns: Namespace | None = Field(default=None, description="Network namespace; that of routecast if not given.")
    mac: Mac | None = Field(default=None, description="Source address of frames; the interface's own if not given.")
    ipv4: Ipv4 | None = Field(default=None, description="The tester's address; 198.18.1.2 and 198.19.1.2 by default.")
    ipv6: Ipv6 | None = Field(default=None, description="The tester's IPv6 address, for tests with IPv6.")
    dut_mac: Mac = Field(description="MAC address of the device's port: frames to be routed are sent to it.")
    dut_ipv4: Ipv4Interface | None = Field(default=None, description="The device's address at this port.")
    dut_ipv6: Ipv6Interface | None = Field(default=None, description="The device's IPv6 address at this port.")
    networks_ipv4: tuple[Ipv4Network, ...] = Field(
        default=(), description="Networks that the device routes to this port of the tester."
    )
    networks_ipv6: tuple[Ipv6Network, ...] = Field(
        default=(), description="IPv6 networks that the device routes to this port of the tester."
    )
    wire: BitRate | None = Field(default=None, description="Rate of the wire; that of the link if not given.")


class InterfacesFile(_Bed):
    """Interfaces of this machine, joined by cables to a device under test."""

    kind: Literal["interfaces"]
    port: Annotated[tuple[InterfacePort, ...], Field(min_length=2, max_length=64)]
    layer: Literal[2, 3] = Field(
        default=3, description="3: the device routes, frames are sent to its MAC. 2: it bridges."
    )
    dut: DeviceTable = DeviceTable(device="external")


class TestbedFile(RootModel[Annotated[NamespacesFile | InterfacesFile, Field(discriminator="kind")]]):
    """A whole ``*.testbed.toml``."""

    __test__ = False  # pytest would take the name for a test's
