"""A back-end router that answers but lacks a route is found; one that rightly drops is left alone."""

from __future__ import annotations

import subprocess
import time

import pytest

from routecast.multistage._balancer import RouteComparison
from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_hosts import Hosts, states


def after(looks: list[dict[str, tuple[int, int]]], digests: dict[str, str]) -> RouteComparison:
    comparison = RouteComparison(digests.__getitem__)
    for counts in looks:
        comparison.compare(counts)
        comparison.wait()
    return comparison


def looks(returned: dict[str, int], times: int = 4) -> list[dict[str, tuple[int, int]]]:
    """Counts of several looks: 1,000 frames more are sent to each, so many more come back."""
    return [{name: (1000 * n, back * n) for name, back in returned.items()} for n in range(times)]


def test_who_drops_and_differs_is_found() -> None:
    result = after(looks({"br0": 1000, "br1": 700, "br2": 1000}), {"br0": "a", "br1": "b", "br2": "a"})
    assert [result.differs(name) for name in ("br0", "br1", "br2")] == [False, True, False]


def test_who_drops_and_is_as_the_others_is_left_alone() -> None:
    result = after(looks({"br0": 1000, "br1": 0}), {"br0": "a", "br1": "a"})
    assert not result.differs("br1")


def test_a_flood_of_what_is_rightly_dropped_is_compared_less_and_less() -> None:
    compared: list[str] = []

    def digest(name: str) -> str:
        compared.append(name)
        return "a"

    comparison = RouteComparison(digest)
    for counts in looks({"br0": 1000, "br1": 0}, times=64):
        comparison.compare(counts)
        comparison.wait()
    assert 2 <= compared.count("br1") <= 8
    assert not comparison.differs("br1")


def test_who_differs_and_drops_nothing_is_left_alone() -> None:
    result = after(looks({"br0": 1000, "br1": 990}), {"br0": "a", "br1": "b"})
    assert not result.differs("br1")


def test_one_look_decides_nothing_and_one_that_is_mended_is_back() -> None:
    digests = {"br0": "a", "br1": "b"}
    counts = looks({"br0": 1000, "br1": 500}, times=5)
    comparison = after(counts[:2], digests)
    assert not comparison.differs("br1")
    for count in counts[2:4]:
        comparison.compare(count)
        comparison.wait()
    assert comparison.differs("br1")
    digests["br1"] = "a"
    comparison.compare(counts[4])
    comparison.wait()
    assert not comparison.differs("br1")


def test_where_all_drop_most_are_right_or_nobody_is() -> None:
    result = after(looks(dict.fromkeys(("br0", "br1", "br2"), 500)), {"br0": "a", "br1": "b", "br2": "a"})
    assert [result.differs(name) for name in ("br0", "br1", "br2")] == [False, True, False]
    result = after(looks(dict.fromkeys(("br0", "br1"), 500)), {"br0": "a", "br1": "b"})
    assert not result.differs("br0")
    assert not result.differs("br1")


@pytest.mark.wire
def test_on_the_wire_its_flows_go_to_others_until_it_is_mended(router: Appliance, hosts: Hosts) -> None:
    def send_until(state: str) -> None:
        deadline = time.monotonic() + 30.0
        while states(router)["br1"] != state:
            assert time.monotonic() < deadline, router.status()
            hosts.send(0.3, rate_pps=5e3)

    route = ["ip", "-n", router.layout.netns("br1"), "route"]
    route_text = subprocess.run([*route, "show", "198.19.1.0/24"], check=True, capture_output=True, text=True).stdout
    subprocess.run([*route, "del", "198.19.1.0/24"], check=True)
    assert hosts.send(0.2, rate_pps=5e3)["lost_frames"] > 0
    send_until("differs")
    assert hosts.send(0.2, rate_pps=5e3)["lost_frames"] == 0
    assert sum(row["deaths"] for row in router.status()["routers"]) == 0
    subprocess.run([*route, "add", *route_text.split()], check=True)
    send_until("active")
    assert hosts.send(0.2, rate_pps=5e3)["lost_frames"] == 0
