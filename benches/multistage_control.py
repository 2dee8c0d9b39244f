"""What the control side of a router of many machines does when it is lied to, scanned or partly dead; in namespaces.

Forged frames on every port, a scan of addresses while a load balancer dies, hosts that change their MAC address in
silence, elements that die, and routes that somebody removes. Each part prints a line.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from routecast.lab.testbed.netns import inside
from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_frames import (
    HOST_IPV6,
    Pings,
    all_pings,
    forged,
    raw,
    said,
    set_mac,
    up_in_metrics,
)
from routecast.multistage.tests.multistage_hosts import HOST, HOST_MAC, ROUTER_MAC

EXAMPLE = Path(__file__).parents[1] / "examples" / "demo.multistage.toml"
PARTS = ["forged", "scan", "silent", "dead", "routes"]
_NOT_ANSWERING = {"dead", "not seen"}


def waited_s(is_so: Callable[[], bool], within_s: float = 60.0) -> float:
    """Wait until something is so, and return how long it took; infinity if it did not become so."""
    began_s = time.monotonic()
    while not is_so():
        if time.monotonic() - began_s > within_s:
            return float("inf")
        time.sleep(0.01)
    return time.monotonic() - began_s


def forge(text: str, duration_s: float) -> None:
    """Send forged ARP, solicitations and advertisements on both ports; count the pings that are lost."""
    with Appliance(text) as router:
        pings = all_pings(router)
        frames = [forged(side) for side in (0, 1)]
        sent = 0
        with raw(router, 0) as left, raw(router, 1) as right:
            end_s = time.monotonic() + duration_s
            while time.monotonic() < end_s:
                for handle, of_side in zip((left, right), frames, strict=True):
                    for frame in of_side:
                        handle.send(frame)
                        sent += 1
                time.sleep(0.02)
        lost, of = sum(ping.end() for ping in pings), sum(len(ping.sent) for ping in pings)
        is_equal = router.audit()["is_equal"]
    print(
        f"forged: {sent} frames in {duration_s:g} s on both ports: {lost} of {of} pings lost; audit equal: {is_equal}"
    )


def scan(text: str, rate_pps: float, rounds: int) -> None:
    """Scan addresses of a large network through the router while its active load balancer dies."""
    wide = text.replace("198.19.1.1/24", "198.19.1.1/16")
    gaps, answers, rates = [], [], []
    for _ in range(rounds):
        with Appliance(wide) as router:
            ends, sent = threading.Event(), [0]
            work = partial(_scan, sent, rate_pps, ends)
            scanner = threading.Thread(target=partial(inside, router.layout.netns("left"), work))
            began_s = time.monotonic()
            scanner.start()
            time.sleep(1.0)
            ping = Pings(router, 0, HOST[1], rate_pps=250.0)
            time.sleep(0.5)
            router.fail("lb0", "hang")
            for _ in range(20):
                asked_s = time.monotonic()
                router.status()
                answers.append(time.monotonic() - asked_s)
                time.sleep(0.05)
            ping.end()
            ends.set()
            scanner.join()
            rates.append(sent[0] / (time.monotonic() - began_s))
            gaps.append(ping.longest_gap_s())
    print(
        f"scan: {min(rates):.0f} to {max(rates):.0f} addresses/s, {rounds} deaths of the active load balancer: gap "
        f"{1e3 * statistics.median(gaps):.0f} ms median, {1e3 * max(gaps):.0f} maximum; "
        f"status {1e3 * statistics.median(answers):.0f} ms median, {1e3 * max(answers):.0f} maximum"
    )


def _scan(sent: list[int], rate_pps: float, ends: threading.Event) -> None:
    """Send frames to one address after the other of a /16 network."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as handle:
        handle.bind(("h0", 0))
        ethernet = bytes.fromhex((ROUTER_MAC[0] + HOST_MAC[0]).replace(":", "")) + b"\x08\x00"
        began_s = time.monotonic()
        while not ends.is_set():
            while sent[0] < (time.monotonic() - began_s) * rate_pps:
                number = sent[0] % 60_000
                to = socket.inet_aton(f"198.19.{2 + number // 250}.{1 + number % 250}")
                header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 1, 0, 64, 17, 0, socket.inet_aton(HOST[0]), to)
                total = sum(struct.unpack("!10H", header))
                total = (total & 0xFFFF) + (total >> 16)
                header = header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]
                try:
                    handle.send(ethernet + header + struct.pack("!HHHH", 4000, 4001, 8, 0))
                except OSError:
                    time.sleep(0.001)
                sent[0] += 1
            time.sleep(0.0005)


def _is_at(router: Appliance, mac: str) -> bool:
    """Whether the host on the right is known by a MAC address, in both versions of IP."""
    neighbours = router.status()["neighbours"]
    return all(neighbours.get(address) == mac for address in (HOST[1], HOST_IPV6[1]))


def silent(text: str, times: int) -> None:
    """Change a host's MAC address without a word; how long it cannot be reached."""
    black = []
    with Appliance(text) as router:
        for number in range(times):
            ping = [Pings(router, 0, HOST[1], rate_pps=50.0), Pings(router, 0, HOST_IPV6[1], rate_pps=50.0)]
            time.sleep(0.3 + 0.37 * number % 2.0)
            mac = f"02:00:00:00:77:{number:02x}"
            set_mac(router, 1, mac)
            waited_s(partial(_is_at, router, mac))
            time.sleep(0.3)
            for one in ping:
                one.end()
                black.append(one.longest_gap_s())
    print(
        f"silent: {times} changes of a host's MAC address, IPv4 and IPv6: black for {statistics.median(black):.2f} s "
        f"median, {max(black):.2f} maximum"
    )


def _in_status(router: Appliance, who: tuple[str, ...]) -> bool:
    states = said(router)
    return all(states[name] in _NOT_ANSWERING for name in who)


def _in_metrics(router: Appliance, who: tuple[str, ...]) -> bool:
    up = up_in_metrics(router)
    return not any(up[name] for name in who)


def _in_audit(router: Appliance, who: tuple[str, ...]) -> bool:
    named = {problem.partition(":")[0] for problem in router.audit()["problems"]}
    return named >= {*who}


_SAYS = {"status": _in_status, "metrics": _in_metrics, "audit": _in_audit}


def dead(text: str) -> None:
    """Let elements die; how long until status, metrics and audit say so."""
    took: dict[str, list[float]] = {what: [] for what in _SAYS}
    with Appliance(text) as router:
        for who in (("lb0", "lb1"), ("lb0",), ("lb1",), ("br0", "br1", "br2")):
            for kind in ("link", "hang"):
                time.sleep(1.0)
                for name in who:
                    router.fail(name, kind)
                began_s = time.monotonic()
                for what, is_said in _SAYS.items():
                    waited_s(partial(is_said, router, who))
                    took[what].append(time.monotonic() - began_s)
                for name in who:
                    router.restore(name)
                waited_s(lambda: not _NOT_ANSWERING & {*said(router).values()})
    print("dead: said after " + ", ".join(f"{max(times):.2f} s at most by {what}" for what, times in took.items()))


def routes(text: str, times: int) -> None:
    """Remove a route in a back-end router at 10 frames/s; how long until it is mended, and how many pings are lost."""
    for version, network, to in ((4, "198.19.1.0/24", HOST[1]), (6, "2001:2:0:8001::/64", HOST_IPV6[1])):
        took, lost = [], 0
        with Appliance(text) as router:
            for number in range(times):
                ping = Pings(router, 0, to, rate_pps=10.0)
                time.sleep(0.3 + 0.37 * number % 1.0)
                command = ["ip", "-n", router.layout.netns("br1"), f"-{version}", "route", "del", network]
                subprocess.run(command, check=True)
                took.append(waited_s(lambda: router.audit()["is_equal"]))
                time.sleep(0.5)
                lost += ping.end()
        print(
            f"routes: IPv{version}, {times} times removed in one back-end router at 10 frames/s: mended after "
            f"{statistics.median(took):.2f} s median, {max(took):.2f} maximum; {lost} pings lost in all"
        )


def main() -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--seconds", type=float, default=60.0, help="of forged frames")
    parser.add_argument("--rate", type=float, default=20_000.0, help="addresses a second of a scan")
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    parts = options.only or PARTS
    text = EXAMPLE.read_text(encoding="utf-8").replace('"demo"', '"bench"')
    if "forged" in parts:
        forge(text, options.seconds)
    if "scan" in parts:
        scan(text, options.rate, options.times)
    if "silent" in parts:
        silent(text, options.times)
    if "dead" in parts:
        dead(text)
    if "routes" in parts:
        routes(text, options.times)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
