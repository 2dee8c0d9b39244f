"""A load balancer and one back-end router, wired without a switch, for tests of the eBPF programs alone.

::

    p0 ── e0  namespace of the load balancer  i0 ── b0  namespace of the back-end router
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routecast.lab._lab import LoadBalancer
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.netns import FOLDER, inside

PORT_MAC, NEIGHBOUR_MAC = b"\x02\0\0\0\0\1", b"\x02\0\0\0\0\2"
INSIDE_MAC, MEMBER_MAC = b"\x02\0\0\0\1\0", b"\x02\0\0\0\2\3"
MEMBER = 3
PROBE, OTHER_PROBE = "100.127.255.101", "100.127.255.102"
PROBE6, OTHER_PROBE6 = "2001:db8:ffff::65", "2001:db8:ffff::66"
NEIGHBOURS = ("198.18.1.2", "2001:db8:1::2")
TRIAL_PROTOCOL = 253


class SmallRouter:
    """Its two namespaces and the load balancer's programs."""

    def __init__(self, name: str) -> None:
        self.balancer, self.member = f"{name}-lb", f"{name}-br"
        run_command(["ip", "netns", "add", self.balancer])
        run_command(["ip", "netns", "add", self.member])
        mac = [":".join(f"{octet:02x}" for octet in mac) for mac in (PORT_MAC, NEIGHBOUR_MAC, INSIDE_MAC, MEMBER_MAC)]
        self.ip(self.balancer, f"link add e0 address {mac[0]} type veth peer name p0")
        self.ip(
            self.balancer, f"link add i0 address {mac[2]} type veth peer name b0 netns {self.member} address {mac[3]}"
        )
        inside(self.member, self._forward)
        # Without a link-local address the kernel sends nothing of its own (router solicitations, multicast listener
        # reports), so that every counted frame is one of the test's.
        for netns, interface in (*((self.balancer, name) for name in ("e0", "p0", "i0")), (self.member, "b0")):
            self.ip(netns, f"link set {interface} addrgenmode none")
            self.ip(netns, f"link set {interface} up")
        for address, network in zip(NEIGHBOURS, ("198.18.1.0/24", "2001:db8:1::/64"), strict=True):
            self.ip(self.member, f"route add {network} dev b0")
            self.ip(self.member, f"neighbour add {address} lladdr {mac[1]} dev b0 nud permanent")
        self.plane = LoadBalancer(json.dumps(self._configuration()))
        self.plane.set_member(MEMBER, list(MEMBER_MAC))
        self.plane.publish([(MEMBER, 1.0)], 1, 1)
        self.plane.set_neighbour(list(NEIGHBOUR_MAC), "e0")

    @staticmethod
    def ip(netns: str, command: str) -> None:
        """Run a command of iproute2 in a namespace."""
        run_command(["ip", "-n", netns, *command.split()])

    @staticmethod
    def _forward() -> None:
        settings = ("ipv4/ip_forward=1", "ipv6/conf/all/forwarding=1", "ipv4/conf/all/rp_filter=0")
        for setting in (*settings, "ipv4/conf/b0/rp_filter=0", "ipv4/conf/all/send_redirects=0"):
            key, _, value = setting.partition("=")
            Path("/proc/sys/net", key).write_text(value)

    def _configuration(self) -> dict[str, Any]:
        detector = {"silence_s": 0.05, "alone_s": 0.2, "unanswered": 64, "probes": 3, "returns": 3, "hold_s": 0.1}
        return {
            "netns": str(FOLDER / self.balancer),
            "scheme": "flow_hash",
            "detector": detector | {"verdicts_per_s": 8},
            "outside": [{"interface": "e0", "mac": list(PORT_MAC)}],
            "inside": "i0",
            "inside_mac": list(INSIDE_MAC),
            "inside_mtu": 1500,
            "probe": [list(socket.inet_aton(PROBE)), [100, 127, 255, 1]],
            "probe6": list(socket.inet_pton(socket.AF_INET6, PROBE6)),
            "other_probe": list(socket.inet_aton(OTHER_PROBE)),
            "other_probe6": list(socket.inet_pton(socket.AF_INET6, OTHER_PROBE6)),
        }

    def send(self, interface: str, frame: bytes, count: int = 1, netns: str = "") -> None:
        """Send a raw frame some times on an interface of the load balancer's namespace, or another one."""

        def work() -> None:
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as handle:
                handle.bind((interface, 0))
                for _ in range(count):
                    handle.send(frame.ljust(60, b"\0"))

        inside(netns or self.balancer, work)

    def member_status(self) -> dict[str, Any]:
        """Return the load balancer's counts of the back-end router."""
        (member,) = json.loads(self.plane.status())["members"]
        return dict(member)

    def port(self) -> dict[str, Any]:
        """Return the counts of the outside interface."""
        return dict(json.loads(self.plane.status())["ports"]["e0"])

    def close(self) -> None:
        """Remove everything."""
        self.plane.close()
        for netns in (self.balancer, self.member):
            run_command(["ip", "netns", "del", netns], check=False)


def packet(source: str, to: str, *, path: int = 0, protocol: int = TRIAL_PROTOCOL) -> bytes:
    """Return an IPv4 packet with a path number in its identification, or an IPv6 packet with it in its flow label."""
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    addresses = socket.inet_pton(family, source) + socket.inet_pton(family, to)
    if family == socket.AF_INET6:
        return struct.pack("!IHBB", 6 << 28 | path, 8, protocol, 64) + addresses + bytes(8)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 28, path, 0x4000, 64, protocol, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:] + bytes(8)


def frame(to: bytes, source: bytes, body: bytes) -> bytes:
    """Return an Ethernet frame with an IP packet."""
    return to + source + (b"\x08\0" if body[0] >> 4 == 4 else b"\x86\xdd") + body


def wait_for(is_so: Callable[[], bool], within_s: float = 5.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)
