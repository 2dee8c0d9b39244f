"""On the wire: forged frames harm nobody elsewhere, moves are followed, a scan holds up nothing, state is evidence."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from routecast.multistage._discovery import solicitation
from routecast.multistage._layout import octets
from routecast.multistage._tables import metrics
from routecast.multistage.appliance import Appliance
from routecast.multistage.protocol.neighbours import MOVE_S
from routecast.multistage.tests.multistage_hosts import HOST, HOST_MAC, ROUTER_MAC, Hosts, states, wait_for
from routecast.testbed.netns import inside

pytestmark = pytest.mark.wire

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


@pytest.mark.parametrize("side", [0, 1])
def test_forged_frames_harm_nobody(router: Appliance, side: int) -> None:
    pings = all_pings(router)
    frames = forged(side)
    with raw(router, side) as handle:
        end = time.monotonic() + 4.0
        while time.monotonic() < end:
            for frame in frames:
                handle.send(frame)
            time.sleep(0.02)
    assert [ping.end() for ping in pings] == [0, 0, 0, 0]
    status = router.status()
    assert status["neighbours"][HOST[0]] == HOST_MAC[0]
    assert status["neighbours"][HOST_IPV6[1]] == HOST_MAC[1]
    dropped = status["claims_dropped"][SIDES[side]]
    assert dropped["foreign"] > 0
    assert dropped["own"] > 0
    assert dropped["refused"] > 0
    assert any(event["what"] == "claim dropped" and FORGER in event["detail"] for event in router.events())
    assert router.audit()["problems"] == []


def set_mac(router: Appliance, side: int, mac: str) -> None:
    """Change the MAC address of a host without a word: it announces nothing and asks for nothing."""
    # Its neighbour entries stay, so that it can answer without asking; the kernel forgets them with the address.
    lines = [f"link set h0 address {mac}"]
    for address in (("198.18.1.1", "2001:2:0:1::1"), ("198.19.1.1", "2001:2:0:8001::1"))[side]:
        lines.append(f"neighbour replace {address} lladdr {ROUTER_MAC[side]} dev h0 nud permanent")
    command = ["ip", "-n", router.layout.netns(SIDES[side]), "-batch", "-"]
    subprocess.run(command, input="\n".join(lines), text=True, check=True)


def test_a_host_that_changes_its_address_in_silence_is_found(router: Appliance) -> None:
    pings = [Pings(router, 0, HOST[1]), Pings(router, 0, HOST_IPV6[1])]
    time.sleep(0.5)
    set_mac(router, 1, "02:00:00:00:00:77")
    wait_for(lambda: router.status()["neighbours"].get(HOST[1]) == "02:00:00:00:00:77", within_s=3 * MOVE_S)
    wait_for(lambda: router.status()["neighbours"].get(HOST_IPV6[1]) == "02:00:00:00:00:77", within_s=3 * MOVE_S)
    time.sleep(0.5)
    for ping in pings:
        ping.end()
        assert ping.longest_gap_s() <= 5.0
        assert max(ping.answered) >= max(ping.sent) - 5, "it is reached again"
    moved = [event for event in router.events() if event["what"] == "neighbour moved"]
    assert {HOST_MAC[1] in event["detail"] and "02:00:00:00:00:77" in event["detail"] for event in moved} == {True}


def test_a_move_that_is_announced_takes_a_second_at_most(router: Appliance) -> None:
    """As VRRP, or a new card: the address is announced from another MAC, and the former owner is gone."""
    set_mac(router, 1, "02:00:00:00:00:78")
    began_s = time.monotonic()
    with raw(router, 1) as handle:
        for _ in range(3):
            handle.send(
                arp(operation=1, mac="02:00:00:00:00:78", address=HOST[1], to_mac="ff:ff:ff:ff:ff:ff", to=HOST[1])
            )
    wait_for(lambda: router.status()["neighbours"].get(HOST[1]) == "02:00:00:00:00:78", within_s=5.0)
    assert time.monotonic() - began_s <= 1.5


def test_a_scan_holds_up_neither_status_nor_a_takeover(router: Appliance) -> None:
    ends = threading.Event()

    def scan() -> int:
        sent = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            handle.setblocking(False)
            while not ends.is_set() and sent < 200_000:
                for _ in range(200):
                    sent += 1
                    # Addresses of the other network that nobody has.
                    try:
                        handle.sendto(b"", (f"198.19.1.{3 + sent % 250}", 4000 + sent % 50_000))
                    except OSError:
                        continue
                time.sleep(0.01)
        return sent

    sent: list[int] = []
    thread = threading.Thread(target=lambda: sent.append(inside(router.layout.netns("left"), scan)))
    thread.start()
    try:
        time.sleep(0.5)
        ping = Pings(router, 0, HOST[1], rate_pps=100.0)
        time.sleep(0.5)
        first = next(row["name"] for row in router.status()["balancers"] if row["state"] == "active")
        router.fail(first, "hang")
        wait_for(lambda: any(row["state"] == "active" for row in router.status()["balancers"] if row["name"] != first))
        time.sleep(1.0)
        ping.end()
    finally:
        ends.set()
        thread.join()
    assert sent[0] > 1_000
    assert ping.answered, "it was reached before and after"
    assert max(ping.answered) > 0.8 * max(ping.sent)
    assert any(event["what"] == "takes over" for event in router.events())


def said(router: Appliance) -> dict[str, str]:
    """What ``status`` says of every element."""
    status = router.status()
    return {row["name"]: row["state"] for row in (*status["balancers"], *status["routers"])}


def up_in_metrics(router: Appliance) -> dict[str, bool]:
    """What the metrics say of every element."""
    lines = [line for line in metrics(router.status()).splitlines() if line.startswith("routecast_multistage_up{")]
    return {line.split('element="')[1].split('"')[0]: line.endswith(" 1") for line in lines}


@pytest.mark.parametrize("kind", ["link", "hang"])
@pytest.mark.parametrize("who", [("lb0", "lb1"), ("lb0",), ("lb1",), ("br0", "br1", "br2")], ids="-".join)
def test_who_is_dead_is_said(router: Appliance, who: tuple[str, ...], kind: str) -> None:
    time.sleep(0.5)
    for name in who:
        router.fail(name, kind)
    wait_for(lambda: all(said(router)[name] in ("dead", "not seen") for name in who), within_s=10.0)
    assert not any(up_in_metrics(router)[name] for name in who)
    audit = router.audit()
    assert not audit["is_equal"]
    for name in who:
        assert any(problem.startswith(f"{name}:") for problem in audit["problems"])
    if who == ("lb0", "lb1"):
        wait_for(lambda: "active" not in said(router).values(), within_s=5.0)
    for name in who:
        router.restore(name)
    wait_for(lambda: not {"dead", "not seen"} & {*said(router).values()}, within_s=10.0)
    wait_for(lambda: router.audit()["problems"] == [], within_s=10.0)


def test_a_route_removed_under_load_is_repaired_and_no_death(router: Appliance, hosts: Hosts) -> None:
    subprocess.run(["ip", "-n", router.layout.netns("br1"), "route", "del", "198.19.1.0/24"], check=True)
    wait_for(lambda: hosts.send(0.3, rate_pps=5e3)["lost_frames"] == 0, within_s=20.0)
    wait_for(lambda: set(states(router).values()) == {"active"})
    assert router.audit()["problems"] == []
    assert sum(row["deaths"] for row in router.status()["routers"]) == 0


@pytest.mark.parametrize("version", [4, 6])
def test_a_route_removed_at_a_low_rate_is_repaired(router: Appliance, version: int) -> None:
    network, to = (("198.19.1.0/24", HOST[1]), ("2001:2:0:8001::/64", HOST_IPV6[1]))[version == 6]
    pings = [Pings(router, 0, to, rate_pps=10.0)]
    time.sleep(0.3)
    began_s = time.monotonic()
    for name in states(router):
        command = ["ip", "-n", router.layout.netns(name), f"-{version}", "route", "del", network]
        subprocess.run(command, check=True)
    wait_for(lambda: router.audit()["problems"] == [], within_s=20.0)
    assert time.monotonic() - began_s <= 8.0
    time.sleep(0.5)
    ping = pings[0]
    ping.end()
    assert max(ping.answered) >= max(ping.sent) - 2
    assert {"differs", "repaired"} <= {event["what"] for event in router.events()}


@pytest.mark.parametrize(
    "command",
    [
        ["-4", "route", "add", "blackhole", "198.19.1.2/32"],
        ["-4", "route", "add", "198.19.1.2/32", "via", "198.18.1.77", "dev", "b0"],
        ["-6", "route", "add", "unreachable", "2001:2:0:8001::2/128"],
        ["neighbour", "replace", "198.19.1.2", "lladdr", FORGER, "dev", "b0", "nud", "permanent"],
        ["neighbour", "del", "198.19.1.2", "dev", "b0"],
        ["address", "del", "198.18.1.1/24", "dev", "b0"],
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_what_somebody_changes_in_a_back_end_router_is_mended(router: Appliance, command: list[str]) -> None:
    subprocess.run(["ip", "-n", router.layout.netns("br1"), *command], check=True)
    if command[:2] == ["neighbour", "del"]:  # the kernel itself asks for it at once, and gets it
        wait_for(lambda: router.audit()["problems"] == [], within_s=10.0)
        return
    wait_for(lambda: any(event["what"] == "repaired" for event in router.events()), within_s=10.0)
    assert router.audit()["problems"] == []


def test_a_stated_neighbour_is_never_changed(text: str) -> None:
    stated = f'\n[[neighbour]]\naddress = "198.19.1.9"\nmac = "{HOST_MAC[1]}"\n'
    with Appliance(text + stated) as router:
        assert router.status()["neighbours"]["198.19.1.9"] == HOST_MAC[1]
        with raw(router, 1) as handle:
            for _ in range(5):
                handle.send(arp(operation=2, mac=FORGER, address="198.19.1.9", to_mac=ROUTER_MAC[1], to="198.19.1.1"))
                time.sleep(0.2)
        assert router.status()["neighbours"]["198.19.1.9"] == HOST_MAC[1]
        assert router.status()["claims_dropped"]["right"]["refused"] == 5
        assert json.loads(json.dumps(router.status()))["neighbour_states"]["198.19.1.9"] == "static"
