"""Is it safe to send here? What an interface must be before frames of a test leave by it (RFC 6815: in a lab only)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.testbed.addresses import BENCHMARKING_RANGES, is_benchmarking_address
from routecast.testbed.links import Link, LinkReader
from routecast.testbed.netns import FOLDER
from routecast.testbed.site import run_command

__all__ = ["OVERRIDE", "PortFacts", "inspect_ports", "link_bps"]

OVERRIDE = "--i-own-this-network"
"""The option with which a user takes the responsibility."""

_IDLE_S = 0.5
_LINK_LOCAL = ("fe80:", "169.254.")
_UNKNOWN_SPEEDS = (-1, 0, 65_535, 4_294_967_295)


@dataclass(frozen=True, slots=True, kw_only=True)
class PortFacts:
    """What an interface is."""

    interface: str
    netns: str | None
    mac: str
    mtu: int
    is_up: bool
    driver: str


def inspect_ports(
    ports: list[tuple[str | None, str]], *, own_network: bool, idle_s: float = _IDLE_S
) -> tuple[PortFacts, ...]:
    """Look at interfaces before anything is sent.

    Parameters
    ----------
    ports : list of (netns, interface)
    own_network : bool
        The user says that the network is theirs: default routes, addresses and other traffic are no reasons to refuse.
    idle_s : float
        How long counters are watched.

    Raises
    ------
    routecast.errors.FileProblem
        An interface is not there, is used for something else, or carries what does not belong to a test; all reasons.
    """
    problems: list[Problem] = []
    before = _links(ports, problems)
    if problems:
        raise FileProblem("test bed", problems)
    if not own_network:
        time.sleep(idle_s)
        after = _links(ports, problems)
        for number, (port, old, new) in enumerate(zip(ports, before, after, strict=True)):
            for reason in _reasons(port, old, new, idle_s):
                problems.append(Problem(f"port[{number}].interface", f"{port[1]} {reason}"))
    if problems:
        what = f"frames of a test may do harm there (RFC 6815); {OVERRIDE} sends them nevertheless"
        raise FileProblem("test bed", [*problems, Problem("", what)])
    return tuple(
        PortFacts(
            interface=name,
            netns=netns,
            mac=link.mac,
            mtu=link.mtu,
            is_up=link.is_up,
            driver=_driver(netns, name),
        )
        for (netns, name), link in zip(ports, before, strict=True)
    )


def _links(ports: list[tuple[str | None, str]], problems: list[Problem]) -> list[Link]:
    found: list[Link] = []
    for number, (netns, name) in enumerate(ports):
        place = f"port[{number}]"
        if netns is not None and not (FOLDER / netns).exists():
            problems.append(Problem(f"{place}.netns", f"there is no network namespace {netns}"))
            continue
        with LinkReader(netns) as reader:
            links = reader.read()
        if name not in links:
            there = ", ".join(sorted(links)) or "none"
            problems.append(Problem(f"{place}.interface", f"{name} is not there; interfaces are {there}"))
        elif name == "lo":
            problems.append(Problem(f"{place}.interface", "lo is the loopback: it leads to no device"))
        else:
            found.append(links[name])
    return found


def _reasons(port: tuple[str | None, str], old: Link, new: Link, idle_s: float) -> Iterator[str]:
    netns, name = port
    if any(
        route.get("dev") == name
        for version in ("-4", "-6")
        for route in _ip(netns, version, "route", "show", "default")
    ):
        yield "carries the default route"
    if old.is_member:
        yield "is part of a bridge or bond"
    for address in _addresses(netns, name):
        if not address.startswith(_LINK_LOCAL) and not is_benchmarking_address(address):
            yield f"has the address {address}, outside the benchmarking ranges {' and '.join(BENCHMARKING_RANGES)}"
    moved = new.rx_frames - old.rx_frames + new.tx_frames - old.tx_frames
    if moved:
        yield f"carries other traffic: {moved} frames in {idle_s:g} s while routecast was silent"


def _addresses(netns: str | None, interface: str) -> list[str]:
    return [
        f"{entry['local']}/{entry['prefixlen']}"
        for link in _ip(netns, "addr", "show", "dev", interface)
        for entry in link.get("addr_info", [])
        if "local" in entry
    ]


def _ip(netns: str | None, *words: str) -> list[dict[str, Any]]:
    text = run_command(["ip", *(["-n", netns] if netns else []), "-json", *words], check=False)
    found: list[dict[str, Any]] = json.loads(text) if text.strip() else []
    return found


def link_bps(netns: str | None, interface: str) -> float | None:
    """Return the rate of a link as its driver says it, bit/s; None where it does not, or while the link is down."""
    try:
        text = _sysfs(netns, f"/sys/class/net/{interface}/speed")
        speed = int(text)
    except (EnvironmentProblem, ValueError):
        return None
    return None if speed in _UNKNOWN_SPEEDS else speed * 1e6


def _driver(netns: str | None, interface: str) -> str:
    inside = ["ip", "netns", "exec", netns] if netns else []
    text = run_command([*inside, "readlink", f"/sys/class/net/{interface}/device/driver"], check=False)
    return text.strip().rpartition("/")[2] or "virtual"


def _sysfs(netns: str | None, path: str) -> str:
    inside = ["ip", "netns", "exec", netns] if netns else []
    return run_command([*inside, "cat", path]).strip()
