"""The file ``*.multistage.toml``: its tables, and the checks that report all faults at once with their places."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from routecast.errors import FileProblem, Problem
from routecast.lab.testbed.document import Ipv4, Ipv4Interface, Ipv4Network, Ipv6, Ipv6Interface, Ipv6Network, Mac
from routecast.quantity.bounded_file import read_text
from routecast.quantity.fields import Duration, FrameCount, FrameRate
from routecast.quantity.file_model import FileTable
from routecast.quantity.toml_file import parse_toml, validated

__all__ = [
    "INSIDE",
    "BackEndTable",
    "BalancerTable",
    "DetectorTable",
    "MultistageFile",
    "NeighbourTable",
    "RouteTable",
    "SegmentTable",
    "multistage_schema",
    "parse_multistage",
    "problems_of_router",
    "read_multistage",
]

_MAX_ROUTERS = 64

ElementName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9]{0,7}$")]
ApplianceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,11}$")]
Weight = Annotated[float, Field(gt=0.0, le=1e6)]
Mtu = Annotated[int, Field(ge=1280, le=3400, strict=True)]
Rules = Annotated[int, Field(ge=0, le=20_000, strict=True)]
Forwarding = Literal["linux", "nftables", "xdp"]
Queues = Annotated[int, Field(ge=1, le=64, strict=True)]
FewFrames = Annotated[int, Field(ge=1, le=1000, strict=True)]


class SegmentTable(FileTable):
    """``[[segment]]``: an outside network of the router, with one host in a namespace of its own."""

    name: ElementName = Field(description="Name of the network.")
    ipv4: Ipv4Interface = Field(description="The router's address on the network.", examples=["198.18.1.1/24"])
    ipv6: Ipv6Interface | None = Field(default=None, description="The router's IPv6 address on the network.")
    host_ipv4: Ipv4 = Field(description="Address of the host.", examples=["198.18.1.2"])
    host_ipv6: Ipv6 | None = Field(default=None, description="IPv6 address of the host.")
    mtu: Mtu = Field(default=1500, description="Longest IP packet, in bytes; XDP on veth limits it to a page.")
    local: ElementName | None = Field(
        default=None, description="Back-end router for frames of the network, with the scheme local_only."
    )


class BalancerTable(FileTable):
    """``[[balancer]]``: a load balancer, Linux with eBPF programs in a namespace of its own."""

    name: ElementName = Field(description="Name of the load balancer.")
    queues: Queues = Field(default=1, description="Receive queues of each interface; a flow stays in one queue.")


class BackEndTable(FileTable):
    """``[[router]]``: a back-end router, Linux in a namespace of its own."""

    name: ElementName = Field(description="Name of the back-end router.")
    weight: Weight = Field(default=1.0, description="Relative share of the flows.")
    cap: FrameRate | None = Field(
        default=None, description="Highest forwarding rate, which XDP emulates by drops; no cap if not given."
    )
    queue: FrameCount = Field(default=256, description="Frames that the emulated machine queues before it drops.")
    forwarding: Forwarding = Field(
        default="linux",
        description="Forwarding by Linux, by Linux behind nftables rules, or by XDP with the kernel's tables.",
    )
    rules: Rules | None = Field(
        default=None, description="Number of nftables rules without a match before the accepting rule; 24 if not given."
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        description="A *.router.toml that says what the machine forwards, for predictions; beside this file.",
        examples=["calibrated.router.toml"],
    )


class RouteTable(FileTable):
    """``[[route]]``: a network behind a neighbour."""

    to: Ipv4Network | Ipv6Network = Field(description="Network.")
    via: Ipv4 | Ipv6 = Field(description="Address of the neighbour.")


class NeighbourTable(FileTable):
    """``[[neighbour]]``: a neighbour that is stated, and therefore never asked for and never changed."""

    address: Ipv4 | Ipv6 = Field(description="Address of the neighbour, on the network of a segment.")
    mac: Mac = Field(description="Its MAC address.", examples=["02:00:00:00:00:0a"])


class DetectorTable(FileTable):
    """``[detector]``: when a back-end router counts as dead."""

    silence: Duration = Field(default=0.05, description="T: time without a returned frame while others return frames.")
    alone: Duration = Field(default=0.2, description="Time without a returned frame while no other returns frames.")
    unanswered: FewFrames = Field(default=64, description="N: frames without an answer before the time is measured.")
    probes: FewFrames = Field(default=3, description="Probe frames without an answer before a verdict.")
    returns: FewFrames = Field(default=3, description="Probe frames answered before it is alive again.")
    hold: Duration = Field(default=0.1, description="Shortest time dead; doubled if it dies soon after its return.")
    verdicts: FewFrames = Field(default=8, description="Highest number of verdicts in a second.")


class MultistageFile(FileTable):
    """A whole ``*.multistage.toml``."""

    name: ApplianceName = Field(description="Name of the router: a-z, 0-9 and -, up to 12 characters.")
    description: str = Field(default="", description="The router in words.")
    scheme: Literal["flow_hash", "round_robin", "local_only"] = Field(
        default="flow_hash",
        description="Choice of the back-end router: by the flow of the frame, in turn, or by the network of the frame.",
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)] = Field(
        default=1, description="Seed of the table of flows."
    )
    segment: Annotated[tuple[SegmentTable, ...], Field(min_length=2, max_length=16)]
    balancer: Annotated[tuple[BalancerTable, ...], Field(min_length=1, max_length=2)] = Field(
        description="The active load balancer, and the standby."
    )
    router: Annotated[tuple[BackEndTable, ...], Field(min_length=1, max_length=_MAX_ROUTERS)]
    route: tuple[RouteTable, ...] = ()
    neighbour: tuple[NeighbourTable, ...] = ()
    detector: DetectorTable = DetectorTable()


INSIDE = ipaddress.ip_network("100.127.255.0/24")
"""Network of the addresses of probe frames (shared address space, RFC 6598)."""


def read_multistage(path: str | Path) -> MultistageFile:
    """Read a router of many machines.

    Raises FileProblem: the file cannot be read, is not TOML, or is not valid; all faults with their places.
    """
    return parse_multistage(read_text(Path(path), kind="multistage router"), subject=str(path))


def parse_multistage(text: str, *, subject: str = "multistage router") -> MultistageFile:
    """Read a router of many machines from the text of its file; see :func:`read_multistage`."""
    file = validated(MultistageFile, parse_toml(text, subject), subject)
    problems = [*_repetition_problems(file), *_address_problems(file), *_name_problems(file)]
    if problems:
        raise FileProblem(subject, problems)
    return file


def multistage_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of files of multistage routers."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **MultistageFile.model_json_schema(),
        "title": "routecast multistage router file",
        "description": "Outside networks, back-end routers and the failure detector of a router of many machines.",
    }


def _repetitions(what: str, named: Iterable[tuple[str, object]]) -> Iterator[Problem]:
    seen: dict[object, str] = {}
    for place, name in named:
        if name in seen:
            yield Problem(place, f"{name} is {seen[name]} already: each {what} has its own")
        seen.setdefault(name, place)


def _repetition_problems(file: MultistageFile) -> Iterator[Problem]:
    # The command line names elements of all kinds, so their names differ.
    names = [(f"segment[{n}].name", segment.name) for n, segment in enumerate(file.segment)]
    names += [(f"balancer[{n}].name", balancer.name) for n, balancer in enumerate(file.balancer)]
    names += [(f"router[{n}].name", router.name) for n, router in enumerate(file.router)]
    yield from _repetitions("element", names)
    addresses = []
    for number, segment in enumerate(file.segment):
        for key in ("ipv4", "host_ipv4", "ipv6", "host_ipv6"):
            if (text := getattr(segment, key)) is not None:
                addresses.append((f"segment[{number}].{key}", ipaddress.ip_interface(text).ip))
    yield from _repetitions("address", addresses)


def _address_problems(file: MultistageFile) -> Iterator[Problem]:
    networks: list[tuple[str, Any]] = [("the load balancer's own network", INSIDE)]
    for number, segment in enumerate(file.segment):
        if (segment.ipv6 is None) != (segment.host_ipv6 is None):
            missing = "host_ipv6" if segment.host_ipv6 is None else "ipv6"
            yield Problem(f"segment[{number}].{missing}", "is missing: give the router's and the host's, or neither")
        for key, host in (("ipv4", segment.host_ipv4), ("ipv6", segment.host_ipv6)):
            if (text := getattr(segment, key)) is None:
                continue
            network = ipaddress.ip_interface(text).network
            place = f"segment[{number}].{key}"
            for other, there in networks:
                if there.version == network.version and there.overlaps(network):
                    yield Problem(place, f"{network} overlaps {there} ({other}): each segment has its own network")
            networks.append((place, network))
            if host is not None and ipaddress.ip_address(host) not in network:
                yield Problem(f"segment[{number}].host_{key}", f"{host} is not in {network}")
    for number, route in enumerate(file.route):
        via = ipaddress.ip_address(route.via)
        if ipaddress.ip_network(route.to).version != via.version:
            yield Problem(f"route[{number}].via", f"{via} is of the other version of IP than {route.to}")
        elif not any(there.version == via.version and via in there for _, there in networks[1:]):
            yield Problem(f"route[{number}].via", f"{via} is on no segment")
    yield from _repetitions(
        "address", ((f"neighbour[{n}].address", row.address) for n, row in enumerate(file.neighbour))
    )
    own = {ipaddress.ip_interface(text).ip for wire in file.segment for text in (wire.ipv4, wire.ipv6) if text}
    for number, neighbour in enumerate(file.neighbour):
        address = ipaddress.ip_address(neighbour.address)
        if address in own:
            yield Problem(f"neighbour[{number}].address", f"{address} is the router's own")
        elif not any(there.version == address.version and address in there for _, there in networks[1:]):
            yield Problem(f"neighbour[{number}].address", f"{address} is on no segment")


def problems_of_router(place: str, table: BackEndTable) -> Iterator[Problem]:
    """Yield the contradictions in the table of a back-end router."""
    if table.rules is not None and table.forwarding != "nftables":
        yield Problem(f"{place}rules", 'is for forwarding = "nftables"')


def _name_problems(file: MultistageFile) -> Iterator[Problem]:
    for number, table in enumerate(file.router):
        yield from problems_of_router(f"router[{number}].", table)
    known = [router.name for router in file.router]
    for number, segment in enumerate(file.segment):
        place = f"segment[{number}].local"
        if segment.local is not None and segment.local not in known:
            yield Problem(place, f"there is no back-end router {segment.local!r}; there are: {', '.join(known)}")
        elif file.scheme == "local_only" and segment.local is None:
            yield Problem(place, "is missing: the scheme local_only needs the back-end router of each segment")
        elif file.scheme != "local_only" and segment.local is not None:
            yield Problem(place, 'is for scheme = "local_only"')
