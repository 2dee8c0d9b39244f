"""Reading ``*.multistage.toml``: every fault at once, each with its place."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml, validated

if TYPE_CHECKING:
    from routecast.multistage.document import BackEndTable, MultistageFile

__all__ = ["INSIDE", "multistage_schema", "parse_multistage", "problems_of_router", "read_multistage"]

INSIDE = ipaddress.ip_network("100.127.255.0/24")
"""Where the load balancer's own frames come from and go to (shared address space, RFC 6598)."""


def read_multistage(path: str | Path) -> MultistageFile:
    """Read a router of many machines.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, or says something wrong; all faults with their places.
    """
    return parse_multistage(read_text(Path(path), kind="multistage router"), subject=str(path))


def parse_multistage(text: str, *, subject: str = "multistage router") -> MultistageFile:
    """Read a router of many machines from the text of its file; see :func:`read_multistage`."""
    from routecast.multistage.document import MultistageFile

    file = validated(MultistageFile, parse_toml(text, subject), subject)
    problems = [*_twice(file), *_addresses(file), *_names(file)]
    if problems:
        raise FileProblem(subject, problems)
    return file


def multistage_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of files of multistage routers."""
    from routecast.multistage.document import MultistageFile

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **MultistageFile.model_json_schema(),
        "title": "routecast multistage router file",
        "description": "Outside networks, back-end routers and the failure detector of a router of many machines.",
    }


def _repeated(what: str, named: Iterable[tuple[str, object]]) -> Iterator[Problem]:
    seen: dict[object, str] = {}
    for place, name in named:
        if name in seen:
            yield Problem(place, f"{name} is {seen[name]} already: each {what} has its own")
        seen.setdefault(name, place)


def _twice(file: MultistageFile) -> Iterator[Problem]:
    # Names of elements stand for each of them on the command line.
    names = [(f"segment[{n}].name", one.name) for n, one in enumerate(file.segment)]
    names += [(f"balancer[{n}].name", one.name) for n, one in enumerate(file.balancer)]
    names += [(f"router[{n}].name", one.name) for n, one in enumerate(file.router)]
    yield from _repeated("element", names)
    addresses = []
    for number, one in enumerate(file.segment):
        for key in ("ipv4", "host_ipv4", "ipv6", "host_ipv6"):
            if (text := getattr(one, key)) is not None:
                addresses.append((f"segment[{number}].{key}", ipaddress.ip_interface(text).ip))
    yield from _repeated("address", addresses)


def _addresses(file: MultistageFile) -> Iterator[Problem]:
    networks: list[tuple[str, Any]] = [("the load balancer's own network", INSIDE)]
    for number, one in enumerate(file.segment):
        if (one.ipv6 is None) != (one.host_ipv6 is None):
            missing = "host_ipv6" if one.host_ipv6 is None else "ipv6"
            yield Problem(f"segment[{number}].{missing}", "is missing: give the router's and the host's, or neither")
        for key, host in (("ipv4", one.host_ipv4), ("ipv6", one.host_ipv6)):
            if (text := getattr(one, key)) is None:
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


def problems_of_router(place: str, table: BackEndTable) -> Iterator[Problem]:
    """Yield what a back-end router says against itself."""
    if table.rules is not None and table.forwarding != "nftables":
        yield Problem(f"{place}rules", 'is for forwarding = "nftables"')


def _names(file: MultistageFile) -> Iterator[Problem]:
    for number, table in enumerate(file.router):
        yield from problems_of_router(f"router[{number}].", table)
    known = [one.name for one in file.router]
    for number, one in enumerate(file.segment):
        place = f"segment[{number}].local"
        if one.local is not None and one.local not in known:
            yield Problem(place, f"there is no back-end router {one.local!r}; there are: {', '.join(known)}")
        elif file.scheme == "local_only" and one.local is None:
            yield Problem(place, "is missing: the scheme local_only needs the back-end router of each segment")
        elif file.scheme != "local_only" and one.local is not None:
            yield Problem(place, 'is for scheme = "local_only"')
