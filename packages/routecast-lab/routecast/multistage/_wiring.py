"""Namespaces, wires, switches and settings of a router of many machines, managed with iproute2."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

from routecast.lab.testbed.devices.nftables import rule_set
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import inside
from routecast.lab.testbed.state import set_offload
from routecast.multistage._layout import Layout, Wire

_OFFLOADS = ("rx", "tx", "tso", "gso")


def ip(netns: str | None, lines: Iterable[str]) -> None:
    """Run commands of iproute2 in a namespace, in a single process."""
    run_command(["ip", *(["-n", netns] if netns else []), "-batch", "-"], stdin="\n".join(lines) + "\n")


def _configure_namespace(netns: str, *, ipv4_forwards: bool, ipv6_forwards: bool, is_without_ipv6: bool) -> None:
    """Set whether a namespace forwards, and stop it from sending frames without a request."""
    ipv4 = {"rp_filter": "0", "send_redirects": "0", "accept_redirects": "0", "arp_ignore": "1"}

    def write() -> None:
        for folder in ("all", "default"):
            for key, value in ipv4.items():
                _write(f"net/ipv4/conf/{folder}/{key}", value)
        _write("net/ipv4/ip_forward", str(int(ipv4_forwards)))
        if not Path("/proc/sys/net/ipv6").is_dir():
            return  # a kernel without IPv6
        # addr_gen_mode 1: without a link-local address there is no router solicitation and no redirect.
        ipv6 = {"accept_dad": "0", "dad_transmits": "0", "accept_ra": "0", "autoconf": "0", "addr_gen_mode": "1"}
        for key, value in ipv6.items():
            _write(f"net/ipv6/conf/default/{key}", value)
        for folder in ("all", "default"):
            _write(f"net/ipv6/conf/{folder}/accept_redirects", "0")
        for folder in ("all", "default"):
            _write(f"net/ipv6/conf/{folder}/forwarding", str(int(ipv6_forwards)))
            _write(f"net/ipv6/conf/{folder}/disable_ipv6", str(int(is_without_ipv6)))

    inside(netns, write)


def _write(key: str, text: str) -> None:
    Path("/proc/sys", key).write_text(text, encoding="utf-8")


def _make_wires(wires: Iterable[Wire]) -> None:
    wires = list(wires)
    lines = []
    for wire in wires:
        near, far = (
            f"{name} netns {netns} mtu {wire.mtu} numtxqueues {wire.queues} numrxqueues {wire.queues}"
            + (f" address {mac}" if mac else "")
            for netns, name, mac in (wire.near, wire.far)
        )
        lines.append(f"link add {near} type veth peer name {far}")
    ip(None, lines)
    for wire in wires:
        for netns, name, _ in (wire.near, wire.far):
            for offload in _OFFLOADS:
                set_offload(netns, name, offload, on=False)
            # Frames that an eBPF program sends arrive only at an end with NAPI, which GRO switches on.
            set_offload(netns, name, "gro", on=True)


def make_base(layout: Layout) -> None:
    """Make all elements except the back-end routers; all load balancers are standbys."""
    file = layout.file
    ip(None, [f"netns add {name}" for name in layout.base_namespaces()])
    balancers = [*map(layout.netns, layout.balancers())]
    for name in dict.fromkeys([*layout.base_namespaces(), *balancers]):
        _configure_namespace(name, ipv4_forwards=False, ipv6_forwards=False, is_without_ipv6=name in balancers)
    _make_wires(layout.wires())
    if layout.outside is not None and layout.has_standby:
        # A bridge would keep frames to the router if its port had the router's MAC address.
        lines = [f"link set {name} address {layout.host_mac(s)}" for s, name in enumerate(layout.outside.interfaces)]
        ip(layout.outside.netns, lines)
    for netns, bridge, ports in layout.bridges():
        lines = [f"link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0", f"link set {bridge} up"]
        for port in ports:
            lines += [f"link set {port} master {bridge}", f"link set {port} up"]
        ip(netns, lines)
    if layout.outside is None:
        for s, segment in enumerate(file.segment):
            ip(layout.netns(segment.name), layout.host_commands(s, segment))
    for name in layout.balancers():
        lines = [
            "link set lo up",
            "link set i0 up",
            *(f"link set {layout.port(s)} up" for s in range(len(file.segment))),
        ]
        ip(layout.netns(name), lines)


def clear_outside(layout: Layout) -> None:
    """Restore existing interfaces: remove the switches and addresses, and set their own MAC addresses."""
    outside = layout.outside
    assert outside is not None
    for netns, bridge, ports in layout.bridges():
        if netns == outside.netns:
            for name in [bridge, *ports[1:]]:  # the first port is the interface itself
                run_command(["ip", "-n", netns, "link", "del", name], check=False)
    lines = []
    for name, mac in zip(outside.interfaces, outside.macs, strict=True):
        lines += [f"address flush dev {name}", f"link set {name} address {mac}"]
    ip(outside.netns, lines)


def add_addresses(layout: Layout, balancer: str) -> None:
    """Add the router's addresses to a load balancer, whose kernel then answers for them."""
    netns = layout.netns(balancer)
    _configure_namespace(netns, ipv4_forwards=False, ipv6_forwards=False, is_without_ipv6=False)

    def enable() -> None:
        for s in range(len(layout.file.segment)):
            path = f"net/ipv6/conf/{layout.port(s)}/disable_ipv6"
            if Path("/proc/sys", path).exists():
                _write(path, "0")

    inside(netns, enable)
    ip(netns, layout.balancer_commands())


def remove_addresses(layout: Layout, balancer: str) -> None:
    """Remove the router's addresses from a load balancer."""
    ip(layout.netns(balancer), layout.standby_commands(layout.balancers().index(balancer)))


def add_router(layout: Layout, router: str, number: int) -> None:
    """Make a back-end router and connect it to the switch; :func:`set_router_up` sets it up."""
    netns = layout.netns(router)
    # The kernel removes a namespace some time after its name, so an earlier wire of this number may still exist.
    run_command(["ip", "-n", layout.inside_switch, "link", "del", f"p{number}"], check=False)
    ip(None, [f"netns add {netns}"])
    _configure_namespace(netns, ipv4_forwards=True, ipv6_forwards=True, is_without_ipv6=False)
    _make_wires([layout.wire_of(router, number)])
    inside(netns, _report_neighbour_lookups)
    port = f"p{number}"
    ip(layout.inside_switch, [f"link set {port} master sw0", f"link set {port} up"])
    # The switch knows the routers from the start, and they neither get each other's frames nor exchange frames.
    flags = ("flood off", "mcast_flood off", "bcast_flood off", "isolated on", "learning off")
    lines = [f"link set dev {port} {' '.join(flags)}"]
    lines.append(f"fdb replace {layout.member_mac(number)} dev {port} master static")
    run_command(["bridge", "-n", layout.inside_switch, "-batch", "-"], stdin="\n".join(lines) + "\n")


def _report_neighbour_lookups() -> None:
    """Make the kernel report by netlink when it looks for a neighbour, and ask nobody itself.

    A look-up without an answer soon ends, so that a scan does not fill the kernel's table, which all namespaces share.
    """
    for version in (4, 6):
        for key, value in (("app_solicit", "1"), ("mcast_solicit", "0"), ("retrans_time_ms", "500")):
            path = f"net/ipv{version}/neigh/b0/{key}"
            if Path("/proc/sys", path).exists():
                _write(path, value)


def set_router_up(layout: Layout, router: str, neighbours: dict[str, str]) -> None:
    """Set up the addresses, routes and neighbours of a back-end router; ``neighbours``: address to MAC address."""
    entries = [f"neighbour replace {address} lladdr {mac} dev b0 nud permanent" for address, mac in neighbours.items()]
    ip(layout.netns(router), [*layout.router_commands(), *entries])


def set_rules(netns: str, rules: int) -> None:
    """Replace the nftables rules of a back-end router."""
    lines = []
    for family in ("ip", "ip6"):
        table = rule_set(family, rules)
        name = table[0].removesuffix(" {")
        lines += [f"{name} {{}}", f"delete {name}", *table]
    run_command(["ip", "netns", "exec", netns, "nft", "--file", "-"], stdin="\n".join(lines) + "\n")


def set_links(netns: str, interfaces: Iterable[str], state: str) -> None:
    """Set interfaces ``up`` or ``down``."""
    ip(netns, [f"link set {interface} {state}" for interface in interfaces])


def mount_pins(folder: Path) -> None:
    """Mount a BPF file system for pinned programs and tables."""
    folder.mkdir(parents=True, exist_ok=True)
    run_command(["mount", "-t", "bpf", "-o", "mode=0700", "bpf", str(folder)])


def repair_router(layout: Layout, router: str, extra: Iterable[str], neighbours: dict[str, str]) -> None:
    """Take from a back-end router's tables what they should not have, and set it up again.

    ``extra``: lines of ``NamespaceNetlink.contents``.
    """
    kept = {line.split()[1] for line in layout.router_lines() if line.startswith("route ")}
    lines = []
    for line in extra:
        kind, *words = line.split()
        if kind == "address":
            lines.append(f"address del {' '.join(words)}")
        elif kind == "route" and (words[0] not in kept or "metric" in words):
            # A route to a network that has one is replaced.
            lines.append(f"route del {' '.join(words)}")
    if lines:
        command = ["ip", "-n", layout.netns(router), "-force", "-batch", "-"]
        run_command(command, stdin="\n".join(lines) + "\n", check=False)
    set_router_up(layout, router, neighbours)


def raw_socket(netns: str, interface: str) -> socket.socket:
    """Return a socket that sends raw frames on an interface of a namespace."""

    def make() -> socket.socket:
        handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
        handle.bind((interface, 0))
        handle.setblocking(False)
        return handle

    return inside(netns, make)


class _Closes(Protocol):
    def close(self) -> None: ...


def close_at_once(handles: Iterable[_Closes]) -> None:
    """Close sockets and what holds sockets, all at once.

    The kernel waits for a grace period at each, which takes 0.1 s and more where packets keep its cores busy.
    """
    closes = [handle.close for handle in handles]
    if closes:
        with ThreadPoolExecutor(len(closes)) as pool:
            for result in [pool.submit(close) for close in closes]:
                result.result()
