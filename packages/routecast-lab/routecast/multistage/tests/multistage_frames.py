"""Frames of forgers and of hosts that move, pings in the background, and what a router says of its elements."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from prometheus_client.parser import text_string_to_metric_families

from routecast.lab.testbed.netns import inside
from routecast.multistage._discovery import solicitation
from routecast.multistage._layout import octets
from routecast.multistage._metrics import metrics
from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_hosts import HOST, HOST_MAC, ROUTER_MAC

HOST_IPV6 = ("2001:2:0:1::2", "2001:2:0:8001::2")
FORGER = "02:00:00:00:00:66"
SIDES = ("left", "right")


class Pings:
    """Echo requests from one host to another in the background, a number each; ``answered``: those with an answer."""

    def __init__(self, router: Appliance, side: int, to: str, rate_pps: float = 20.0) -> None:
        self.sent: dict[int, float] = {}
        self.answered: dict[int, float] = {}
        self._to, self._gap_s = to, 1.0 / rate_pps
        self._ends = threading.Event()
        self._identifier = 0x5200 + side * 16 + (":" in to)
        self._thread = threading.Thread(target=lambda: inside(router.layout.netns(SIDES[side]), self._work))
        self._thread.start()

    def _work(self) -> None:
        is_4 = ":" not in self._to
        family, protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if is_4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
        with socket.socket(family, socket.SOCK_RAW, protocol) as handle:
            handle.settimeout(self._gap_s / 4)
            next_s = time.monotonic()
            number = 0
            # Answers to the last ones are waited for.
            while not self._ends.is_set() or time.monotonic() < self._ended_s + 0.5:
                if not self._ends.is_set() and time.monotonic() >= next_s:
                    number += 1
                    next_s += self._gap_s
                    body = struct.pack("!BBHHH", 8 if is_4 else 128, 0, 0, self._identifier, number)
                    if is_4:
                        total = sum(struct.unpack("!4H", body))
                        total = (total & 0xFFFF) + (total >> 16)
                        body = body[:2] + struct.pack("!H", ~total & 0xFFFF) + body[4:]
                    self.sent[number] = time.monotonic()
                    try:
                        handle.sendto(body, (self._to, 0))
                    except OSError:
                        continue
                try:
                    data = handle.recv(2000)
                except TimeoutError:
                    continue
                answer = data[20:] if is_4 else data
                kind, _, _, identifier, sequence = struct.unpack("!BBHHH", answer[:8])
                if kind in (0, 129) and identifier == self._identifier:
                    self.answered[sequence] = time.monotonic()

    def end(self) -> int:
        """End, and return how many had no answer."""
        self._ended_s = time.monotonic()
        self._ends.set()
        self._thread.join()
        return len(self.sent.keys() - self.answered.keys())

    def longest_gap_s(self) -> float:
        """Return the longest time between requests that were answered, s."""
        times = sorted(self.sent[number] for number in self.answered)
        return max((after - before for before, after in pairwise(times)), default=float("inf"))


@contextmanager
def raw(router: Appliance, side: int) -> Iterator[socket.socket]:
    """A socket for raw frames at a host."""

    def make() -> socket.socket:
        handle = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        handle.bind(("h0", 0))
        return handle

    with inside(router.layout.netns(SIDES[side]), make) as handle:
        yield handle


def arp(*, operation: int, mac: str, address: str, to_mac: str, to: str) -> bytes:
    """An ARP frame in which ``mac`` says that it has ``address``."""
    body = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + bytes(octets(mac)) + socket.inet_aton(address)
    body += bytes(6 if operation == 1 else octets(to_mac)) + socket.inet_aton(to)
    return bytes(octets(to_mac)) + bytes(octets(mac)) + b"\x08\x06" + body


def advertisement(*, mac: str, address: str, to_mac: str, flags: int = 0x60) -> bytes:
    """A neighbour advertisement to all nodes; with the flags of one that was solicited and overrides."""
    frame = bytearray(solicitation(mac=mac, own=address, address=address, to=to_mac))
    message = bytearray(frame[54:])
    message[0], message[4], message[24] = 136, flags, 2
    message[2:4] = b"\0\0"
    packed = socket.inet_pton(socket.AF_INET6, address)
    all_nodes = socket.inet_pton(socket.AF_INET6, "ff02::1")
    pseudo = packed + all_nodes + struct.pack("!II", len(message), 58)
    total = sum(struct.unpack(f"!{(len(pseudo) + len(message)) // 2}H", pseudo + bytes(message)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    message[2:4] = struct.pack("!H", ~total & 0xFFFF)
    return bytes(frame[:38]) + all_nodes + bytes(message)


def forged(side: int) -> list[bytes]:
    """Frames of a forger beside the host of a side: claims of everybody's addresses, in every kind of frame."""
    victims = [HOST[0], HOST[1], "198.18.1.1", "198.19.1.1"]
    victims_ipv6 = [*HOST_IPV6, "2001:2:0:1::1", "2001:2:0:8001::1"]
    router_address = ("198.18.1.1", "198.19.1.1")[side]
    router_ipv6 = ("2001:2:0:1::1", "2001:2:0:8001::1")[side]
    everybody = "ff:ff:ff:ff:ff:ff"
    frames = []
    for mac in (FORGER, HOST_MAC[1 - side]):
        for victim in victims:
            if victim == HOST[side]:
                continue  # the forger's own network is told apart below
            frames += [
                arp(operation=1, mac=mac, address=victim, to_mac=everybody, to=router_address),
                arp(operation=2, mac=mac, address=victim, to_mac=ROUTER_MAC[side], to=router_address),
                arp(operation=1, mac=mac, address=victim, to_mac=everybody, to=victim),
            ]
        for victim in victims_ipv6:
            if victim == HOST_IPV6[side]:
                continue
            frames += [
                solicitation(mac=mac, own=victim, address=router_ipv6, to=None),
                advertisement(mac=mac, address=victim, to_mac=ROUTER_MAC[side]),
                advertisement(mac=mac, address=victim, to_mac=ROUTER_MAC[side], flags=0x20),
            ]
    # Within its own network: the owner answers, and is kept.
    frames += [
        arp(operation=1, mac=FORGER, address=HOST[side], to_mac=everybody, to=router_address),
        arp(operation=2, mac=FORGER, address=HOST[side], to_mac=ROUTER_MAC[side], to=router_address),
        solicitation(mac=FORGER, own=HOST_IPV6[side], address=router_ipv6, to=None),
        advertisement(mac=FORGER, address=HOST_IPV6[side], to_mac=ROUTER_MAC[side]),
    ]
    return frames


def all_pings(router: Appliance) -> list[Pings]:
    """Pings between the hosts and from each to the router, of both versions."""
    return [
        Pings(router, 0, HOST[1]),
        Pings(router, 0, HOST_IPV6[1]),
        Pings(router, 1, HOST[0]),
        Pings(router, 1, HOST_IPV6[0]),
    ]


def set_mac(router: Appliance, side: int, mac: str) -> None:
    """Change the MAC address of a host without a word: it announces nothing and asks for nothing."""
    # Its neighbour entries stay, so that it can answer without asking; the kernel forgets them with the address.
    lines = [f"link set h0 address {mac}"]
    for address in (("198.18.1.1", "2001:2:0:1::1"), ("198.19.1.1", "2001:2:0:8001::1"))[side]:
        lines.append(f"neighbour replace {address} lladdr {ROUTER_MAC[side]} dev h0 nud permanent")
    command = ["ip", "-n", router.layout.netns(SIDES[side]), "-batch", "-"]
    subprocess.run(command, input="\n".join(lines), text=True, check=True)


def said(router: Appliance) -> dict[str, str]:
    """What ``status`` says of every element."""
    status = router.status()
    return {row["name"]: row["state"] for row in (*status["balancers"], *status["routers"])}


def up_in_metrics(router: Appliance) -> dict[str, bool]:
    """What the metrics say of every element."""
    families = text_string_to_metric_families(metrics(router.status()))
    up = next(family for family in families if family.name == "routecast_multistage_up")
    return {sample.labels["element"]: sample.value == 1.0 for sample in up.samples}
