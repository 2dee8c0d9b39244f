"""The ports of a device in the kernel: settings, addresses, neighbours, routes, counters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.dut_host import DevicePort, DeviceSite
from routecast.lab.testbed.netns import inside

__all__ = [
    "clear_ports",
    "disable_ipv6",
    "extra_routes",
    "interface_counters",
    "ip_batch",
    "ip_counters",
    "port_lines",
    "ports_down",
    "ports_up",
    "release_ports",
    "router_settings",
    "steer_packets",
    "switch_counters",
    "wait_until_up",
    "write_settings",
]

_SETTINGS = Path("/proc/sys")
_STATISTICS = Path("/proc/thread-self/net")
_ROUTES_PER_OCTET = 256
_LINK_TIMEOUT_S = 5.0
_POLL_S = 0.02
_IP_DROPS = ("InHdrErrors", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes", "FragFails")
_IP6_DROPS = ("InHdrErrors", "InTooBigErrors", "InNoRoutes", "InAddrErrors", "InDiscards", "OutDiscards", "OutNoRoutes")


def write_settings(site: DeviceSite, settings: Mapping[str, int]) -> list[str]:
    """Write settings below ``/proc/sys`` and return them as lines of ``sysctl.conf``.

    Raises EnvironmentProblem: a setting does not exist, or may not be written.
    """

    def write() -> None:
        for name, value in settings.items():
            if name.endswith("/disable_ipv6") and value and not (_SETTINGS / name).exists():
                continue  # a kernel without IPv6
            try:
                (_SETTINGS / name).write_text(f"{value}\n", encoding="utf-8")
            except OSError as problem:
                raise EnvironmentProblem(f"{_SETTINGS / name}: {problem.strerror}") from problem

    inside(site.netns, write)  # without a new process, whose start would lengthen a reset
    return [f"{name.replace('/', '.')} = {value}" for name, value in settings.items()]


def ip_batch(site: DeviceSite, lines: Sequence[str]) -> list[str]:
    """Run lines of ``ip`` in one process and return them as commands."""
    if lines:
        site.run("ip", "-batch", "-", stdin="\n".join(lines) + "\n")
    return [f"ip {line}" for line in lines]


def router_settings(site: DeviceSite, *, ipv6: bool) -> dict[str, int]:
    """Return the settings that make the namespace a router without traffic of its own."""
    settings = {"net/ipv4/ip_forward": 1, "net/ipv4/conf/all/rp_filter": 0, "net/ipv4/conf/all/send_redirects": 0}
    if ipv6:
        settings["net/ipv6/conf/all/forwarding"] = 1
    for port in site.ports:
        settings[f"net/ipv4/conf/{port.interface}/rp_filter"] = 0
        settings[f"net/ipv4/conf/{port.interface}/send_redirects"] = 0
        settings |= _port_ipv6_settings(port.interface, on=ipv6)
    return settings


def port_lines(site: DeviceSite, *, ipv6: bool) -> list[str]:
    """Return the ``ip`` lines that bring ports up with addresses, neighbours and routes."""
    lines = []
    for port in site.ports:
        lines += [f"link set {port.interface} up", f"address replace {port.ipv4} dev {port.interface}"]
        lines.append(_neighbour_line(port, port.neighbour_ipv4))
        if ipv6:
            lines += [f"address replace {port.ipv6} dev {port.interface} nodad"]
            lines.append(_neighbour_line(port, port.neighbour_ipv6))
    for port in site.ports:
        lines += [f"route replace {net} via {port.neighbour_ipv4} dev {port.interface}" for net in port.networks_ipv4]
        if ipv6:
            lines += [
                f"route replace {net} via {port.neighbour_ipv6} dev {port.interface}" for net in port.networks_ipv6
            ]
    return lines


def extra_routes(site: DeviceSite, number: int, *, ipv6: bool) -> list[str]:
    """Return ``number`` routes to networks without test frames, over both ports in turn.

    They fill the forwarding table: /24 networks of 10.0.0.0/8 (RFC 1918) and, with ``ipv6``, as many /64 networks of
    2001:db8::/32 (RFC 3849).
    """
    lines = []
    for index in range(number):
        port = site.ports[index % len(site.ports)]
        high, low = divmod(index, _ROUTES_PER_OCTET)
        lines.append(f"route replace 10.{high}.{low}.0/24 via {port.neighbour_ipv4} dev {port.interface}")
        if ipv6:
            network = f"2001:db8:0:{index:x}::/64"
            lines.append(f"route replace {network} via {port.neighbour_ipv6} dev {port.interface}")
    return lines


def disable_ipv6(site: DeviceSite) -> list[str]:
    """Switch off IPv6 of the ports, since it sends frames of its own; return the settings."""
    return write_settings(site, {f"net/ipv6/conf/{port.interface}/disable_ipv6": 1 for port in site.ports})


def ports_up(site: DeviceSite, *, bridged: bool = False) -> list[str]:
    """Bring the ports up, wait for them and return the commands."""
    lines = ip_batch(site, [f"link set {port.interface} up" for port in site.ports])
    wait_until_up(site, bridged=bridged)
    return lines


def ports_down(site: DeviceSite) -> None:
    """Take the ports down, which also removes their neighbours, routes and IPv6 addresses."""
    ip_batch(site, [f"link set {port.interface} down" for port in site.ports])


def wait_until_up(site: DeviceSite, *, bridged: bool = False) -> None:
    """Wait until the ports have a carrier and, with ``bridged``, until their bridge forwards between them.

    The kernel notifies a bridge of a carrier up to a second late.

    Raises EnvironmentProblem: a port does not come up: the tester's port at its other end is down.
    """
    names = {port.interface for port in site.ports}
    deadline_s = time.monotonic() + _LINK_TIMEOUT_S
    while True:
        links = json.loads(site.run("ip", "-json", "link", "show"))
        up = {link["ifname"] for link in links if link.get("operstate") == "UP"} & names
        if bridged:
            links = json.loads(site.run("bridge", "-json", "link", "show"))
            up &= {link["ifname"] for link in links if link.get("state") == "forwarding"}
        if up == names:
            return
        if time.monotonic() > deadline_s:
            down = ", ".join(sorted(names - up))
            raise EnvironmentProblem(f"port {down}: does not come up; is the tester's port at its other end up?")
        time.sleep(_POLL_S)


def steer_packets(site: DeviceSite, cores: Sequence[int]) -> list[str]:
    """Spread the flows that each port receives over cores by receive packet steering; return the commands.

    The core that polls a port hands each frame to the core that its flow's hash picks
    (Documentation/networking/scaling.rst).

    Raises EnvironmentProblem: the kernel has no receive packet steering (CONFIG_RPS), or refuses the cores.
    """
    words: list[str] = []
    bits = sum(1 << core for core in cores)
    while bits:
        words.insert(0, f"{bits & 0xFFFF_FFFF:08x}")
        bits >>= 32
    lines = [f"echo {','.join(words)} > /sys/class/net/{port.interface}/queues/rx-0/rps_cpus" for port in site.ports]
    site.run("sh", "-c", " && ".join(lines))
    return lines


def clear_ports(site: DeviceSite) -> None:
    """Take the ports down and remove their addresses; missing ports are no problem."""
    for port in site.ports:
        site.run("ip", "link", "set", port.interface, "down", check=False)
        site.run("ip", "address", "flush", "dev", port.interface, check=False)


def release_ports(site: DeviceSite) -> None:
    """Detach what a killed process left on the ports, then clear them."""
    for port in site.ports:
        site.run("ip", "link", "set", port.interface, "xdp", "off", check=False)
        site.run("ip", "link", "set", port.interface, "promisc", "off", check=False)
    clear_ports(site)


def interface_counters(site: DeviceSite) -> dict[str, int]:
    """Return the kernel's counts at the ports: ``rx``, ``tx``, ``drop`` and those of each port.

    Raises EnvironmentProblem: a port is gone.
    """
    counts = {"rx": 0, "tx": 0, "drop": 0}
    lines = inside(site.netns, (_STATISTICS / "dev").read_text).splitlines()
    numbers = {name.strip(): values.split() for name, _, values in (line.partition(":") for line in lines)}
    for port in site.ports:
        if port.interface not in numbers:
            raise EnvironmentProblem(f"port {port.interface}: is not in namespace {site.netns} any more")
        # bytes packets errs drop fifo frame compressed multicast, received and then sent (drop has the missed ones)
        columns = [int(number) for number in numbers[port.interface]]
        received, sent = columns[:8], columns[8:]
        drop_counts = {"rx_errors": received[2], "rx_dropped": received[3], "tx_errors": sent[2], "tx_dropped": sent[3]}
        counts[f"{port.interface}_rx"] = received[1]
        counts[f"{port.interface}_tx"] = sent[1]
        counts |= {f"{port.interface}_{name}": number for name, number in drop_counts.items()}
        counts["rx"] += received[1]
        counts["tx"] += sent[1]
        counts["drop"] += sum(drop_counts.values())
    return counts


def switch_counters(site: DeviceSite, before: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of a device that forwards every frame; its ``drop`` is received minus sent frames.

    ``process_drop`` is the part that the kernel did not drop at a port: frames lost in an overflowing packet socket,
    which the reading program does not count, and frames still in the device. ``before`` holds the counts before the
    device started.
    """
    counts = interface_counters(site)
    received, sent, at_ports = (counts[name] - before.get(name, 0) for name in ("rx", "tx", "drop"))
    return counts | {"drop": max(received - sent, 0), "process_drop": max(received - sent - at_ports, 0)}


def ip_counters(site: DeviceSite) -> dict[str, int]:
    """Return frames forwarded and dropped by IPv4 and IPv6: ``ip_forwarded``, ``ip6_in_discards``, …"""

    def read() -> tuple[str, str]:
        files = (_STATISTICS / "snmp", _STATISTICS / "snmp6")
        snmp, snmp6 = (file.read_text(encoding="utf-8") if file.exists() else "" for file in files)
        return snmp, snmp6

    snmp, snmp6 = inside(site.netns, read)
    table, table6 = _parse_snmp(snmp.splitlines()), _parse_snmp6(snmp6.splitlines())
    counts = {"ip_forwarded": table["ForwDatagrams"], "ip6_forwarded": table6.get("OutForwDatagrams", 0)}
    counts |= {f"ip_{_snake_case(name)}": table[name] for name in _IP_DROPS if name in table}
    return counts | {f"ip6_{_snake_case(name)}": table6[name] for name in _IP6_DROPS if name in table6}


def _port_ipv6_settings(interface: str, *, on: bool) -> dict[str, int]:
    folder = f"net/ipv6/conf/{interface}"
    if not on:
        return {f"{folder}/disable_ipv6": 1}
    # The port gets its addresses before IPv6 starts, so that it neither makes nor announces one of its own.
    return {
        f"{folder}/addr_gen_mode": 1,
        f"{folder}/accept_ra": 0,
        f"{folder}/autoconf": 0,
        f"{folder}/dad_transmits": 0,
        f"{folder}/disable_ipv6": 0,
    }


def _neighbour_line(port: DevicePort, address: str) -> str:
    return f"neighbour replace {address} lladdr {port.neighbour_mac} dev {port.interface} nud permanent"


def _parse_snmp(lines: Iterable[str]) -> dict[str, int]:
    rows = [line.split() for line in lines if line.startswith("Ip:")]
    return {name: int(value) for name, value in zip(rows[0][1:], rows[1][1:], strict=True)}


def _parse_snmp6(lines: Iterable[str]) -> dict[str, int]:
    rows = (line.split() for line in lines)
    return {row[0].removeprefix("Ip6"): int(row[1]) for row in rows if len(row) == 2 and row[0].startswith("Ip6")}


def _snake_case(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_")
