"""The tester at the hosts of a router of many machines."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import routecast
from routecast.lab.testbed.netns import inside
from routecast.lab.testbed.tester import open_tester
from routecast.multistage.appliance import Appliance

EXAMPLE = (Path(routecast.__file__).parents[3] / "examples" / "demo.multistage.toml").read_text()
HOST_MAC = ("02:52:43:00:00:02", "02:52:43:00:01:02")
ROUTER_MAC = ("02:52:43:00:00:01", "02:52:43:00:01:01")
HOST = ("198.18.1.2", "198.19.1.2")
RATE_PPS = 20e3


def flows(count: int = 64, **values: Any) -> list[dict[str, Any]]:
    """Flows from the host on the left to the one on the right."""
    return [
        {
            "source_mac": HOST_MAC[0],
            "destination_mac": ROUTER_MAC[0],
            "source_address": HOST[0],
            "destination_address": HOST[1],
            "source_port": 1024 + number,
            "destination_port": 7,
            **values,
        }
        for number in range(count)
    ]


Steady = Callable[..., Any]
"""The fixture of that name."""


class Hosts:
    """The tester on both hosts."""

    def __init__(self, router: Appliance) -> None:
        ports = [
            {"name": name, "interface": "h0", "netns": f"/run/netns/{router.layout.netns(name)}"}
            for name in ("left", "right")
        ]
        self._tester = open_tester({"ports": ports, "send_cpu": None})

    def send(self, duration_s: float, *, rate_pps: float = RATE_PPS, **values: Any) -> dict[str, Any]:
        """Send a stream from left to right, and return its result."""
        stream = {"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": flows(), **values}
        (result,) = self.send_all(duration_s, [stream])
        return result

    def send_all(self, duration_s: float, streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send several streams at once, and return the result of each."""
        request = {"duration_s": duration_s, "trial_id": 7, "wait_s": 0.1, "streams": streams}
        result: list[dict[str, Any]] = json.loads(self._tester.trial(json.dumps(request)))["streams"]
        assert all(stream["sent_frames"] == stream["received_frames"] + stream["lost_frames"] for stream in result)
        return result

    def close(self) -> None:
        """Release the interfaces of the hosts."""
        self._tester.close()


@contextmanager
def hosts_of(router: Appliance) -> Iterator[Hosts]:
    """The tester on the hosts of a router."""
    result = Hosts(router)
    try:
        yield result
    finally:
        result.close()


def states(router: Appliance) -> dict[str, str]:
    """Return the state of each back-end router."""
    return {row["name"]: row["state"] for row in router.status()["routers"]}


def wait_for(is_so: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def icmp_errors(router: Appliance, to: str, *, limit: int = 64, octets: int = 0) -> list[tuple[str, int, int]]:
    """Address, type and code of each error that answers a datagram of the host on the left, which none may fragment.

    ``limit`` is its TTL or hop limit.
    """
    is_4 = ":" not in to
    family, protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if is_4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
    level, hops, discover = (
        (socket.IPPROTO_IP, socket.IP_TTL, 10) if is_4 else (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 23)
    )

    def work() -> list[tuple[str, int, int]]:
        with (
            socket.socket(family, socket.SOCK_RAW, protocol) as receiver,
            socket.socket(family, socket.SOCK_DGRAM) as sender,
        ):
            receiver.settimeout(0.5)
            sender.setsockopt(level, hops, limit)
            sender.setsockopt(level, discover, 2)  # IP_MTU_DISCOVER, IPV6_MTU_DISCOVER: never fragment
            sender.sendto(bytes(octets), (to, 33_434))
            results = []
            while True:
                try:
                    data, (address, *_) = receiver.recvfrom(2000)
                except TimeoutError:
                    return results
                kind, code = data[20:22] if is_4 else data[:2]
                if is_4 or kind < 128:  # the others are neighbour discovery
                    results.append((address, kind, code))

    return inside(router.layout.netns("left"), work)
