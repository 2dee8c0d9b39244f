"""The tester at the hosts of a router of many machines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from routecast.multistage.appliance import Appliance
from routecast.testbed.tester import open_tester

EXAMPLE = (Path(__file__).parents[2] / "examples" / "demo.multistage.toml").read_text()
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


class Hosts:
    """The tester on both hosts."""

    def __init__(self, router: Appliance) -> None:
        ports = [
            {"name": name, "interface": "h0", "netns": f"/run/netns/{router.layout.netns(name)}"}
            for name in ("left", "right")
        ]
        self._tester = open_tester({"ports": ports, "send_cpu": None})

    def send(self, duration_s: float, *, rate_pps: float = RATE_PPS, **values: Any) -> dict[str, Any]:
        """Send from left to right; what became of it."""
        stream = {"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": flows(), **values}
        (found,) = self.send_all(duration_s, [stream])
        return found

    def send_all(self, duration_s: float, streams: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send several streams at once; what became of each."""
        request = {"duration_s": duration_s, "trial_id": 7, "wait_s": 0.1, "streams": streams}
        found: list[dict[str, Any]] = json.loads(self._tester.trial(json.dumps(request)))["streams"]
        assert all(one["sent_frames"] == one["received_frames"] + one["lost_frames"] for one in found)
        return found

    def close(self) -> None:
        """Let go of the hosts' interfaces."""
        self._tester.close()


@contextmanager
def hosts_of(router: Appliance) -> Iterator[Hosts]:
    """The tester on the hosts of a router."""
    found = Hosts(router)
    try:
        yield found
    finally:
        found.close()
