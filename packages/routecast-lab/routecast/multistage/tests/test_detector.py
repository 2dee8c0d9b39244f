"""The failure detector where it is harder: flapping, both directions at once, frames on several cores at once."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from routecast.lab.testbed.netns import inside
from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_hosts import (
    HOST,
    HOST_MAC,
    ROUTER_MAC,
    Hosts,
    Steady,
    flows,
    hosts_of,
    states,
    wait_for,
)

pytestmark = pytest.mark.wire


def deaths(router: Appliance) -> dict[str, int]:
    return {row["name"]: row["deaths"] for row in router.status()["routers"]}


def wait_until_all_are_active(router: Appliance) -> None:
    wait_for(lambda: set(states(router).values()) == {"active"})


def test_one_that_flaps_stays_away_for_longer_each_time(text: str) -> None:
    hold_s = 0.2
    with Appliance(text.replace("[detector]", f'[detector]\nhold = "{hold_s} s"')) as router, hosts_of(router) as hosts:
        for times in range(3):
            began_s = time.monotonic()
            router.fail("br1", "hang")
            hosts.send(0.15)
            router.restore("br1")
            if deaths(router)["br1"] == times:  # the fault came late: it is found by own frames, or was too short
                pytest.skip("the fault was made later than the frames were sent: this machine is busy")
            wait_until_all_are_active(router)
            assert time.monotonic() - began_s >= hold_s * 2**times
        assert deaths(router) == {"br0": 0, "br1": 3, "br2": 0}
        result = hosts.send(0.1)
        assert result["received_frames"] == result["sent_frames"]


def both_ways(hosts: Hosts, duration_s: float, rate_pps: float) -> list[dict[str, Any]]:
    """Send from each host to the other."""
    back = flows(
        source_mac=HOST_MAC[1], destination_mac=ROUTER_MAC[1], source_address=HOST[1], destination_address=HOST[0]
    )
    there = {"port": 0, "to_port": 1, "rate_pps": rate_pps, "sizes": [{"bytes": 64}], "flows": flows()}
    return hosts.send_all(duration_s, [there, {**there, "port": 1, "to_port": 0, "flows": back}])


def together(streams: list[dict[str, Any]]) -> dict[str, Any]:
    counts = ("sent_frames", "received_frames", "lost_frames", "unsent_frames")
    return {
        **{name: sum(stream[name] for stream in streams) for name in counts},
        "latest_s": max(stream["latest_s"] for stream in streams),
    }


def test_with_frames_of_both_directions_at_once_only_the_dead_are_found(
    router: Appliance, hosts: Hosts, steady: Steady
) -> None:
    def most_arrive(result: dict[str, Any]) -> None:
        assert result["received_frames"] > 0.9 * result["sent_frames"]

    def all_arrive(result: dict[str, Any]) -> None:
        assert result["lost_frames"] == 0

    steady(lambda: together(both_ways(hosts, 0.3, 40e3)), most_arrive)
    assert sum(deaths(router).values()) == 0
    router.fail("br1", "hang")
    both_ways(hosts, 0.3, 40e3)
    assert states(router) == {"br0": "active", "br1": "dead", "br2": "active"}
    steady(lambda: together(both_ways(hosts, 0.2, 5e3)), all_arrive)
    router.restore("br1")
    wait_until_all_are_active(router)
    assert deaths(router) == {"br0": 0, "br1": 1, "br2": 0}


def test_frames_on_two_cores_at_once_are_counted_and_a_death_is_found(router: Appliance) -> None:
    """Each host sends on a core of its own, where the load balancer then works too: they share its tables."""
    cpus = sorted(os.sched_getaffinity(0))
    left, right = router.layout.netns("left"), router.layout.netns("right")
    ways = ((left, HOST[0], HOST[1], cpus[0]), (right, HOST[1], HOST[0], cpus[-1]))
    count, sockets = 20_000, 16

    def open_receiver(address: str) -> socket.socket:
        handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        handle.bind((address, 9))  # nobody reads: what is over its buffer is dropped without a word
        return handle

    def blast(netns: str, to: str, cpu: int) -> None:
        def work() -> None:
            os.sched_setaffinity(0, {cpu})  # of this thread
            senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(sockets)]
            for sender in senders:
                sender.connect((to, 9))
            for number in range(count):
                senders[number % sockets].send(b"")
            for sender in senders:
                sender.close()

        inside(netns, work)

    def blast_both() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda way: blast(way[0], way[2], way[3]), ways))

    receivers = [inside(netns, partial(open_receiver, address)) for netns, address, _, _ in ways]
    try:
        blast_both()
        status = router.status()
        came = sum(port["in_frames"] for port in status["balancers"][0]["ports"].values())
        assert came == sum(row["sent_frames"] for row in status["routers"]) > 0.5 * 2 * count
        assert deaths(router) == {"br0": 0, "br1": 0, "br2": 0}
        router.fail("br2", "hang")
        blast_both()
    finally:
        for receiver in receivers:
            receiver.close()
    assert states(router) == {"br0": "active", "br1": "active", "br2": "dead"}
    assert deaths(router) == {"br0": 0, "br1": 0, "br2": 1}


def test_frames_in_several_queues_are_counted_and_a_death_is_found(text: str) -> None:
    """The kernel puts flows into queues; the program of each queue shares the tables with the others."""
    text = re.sub(r'(\[\[balancer\]\].*\nname = "\w+"\n)', r"\1queues = 4\n", text)
    with Appliance(text) as router, hosts_of(router) as hosts:
        result = hosts.send(0.3)
        assert result["lost_frames"] == 0
        assert result["reordered_frames"] == 0  # a flow stays in its queue
        if shutil.which("ethtool"):
            command = ["ip", "netns", "exec", router.layout.netns("lb0"), "ethtool", "-S", "e0"]
            counted = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            frames = [int(item) for item in re.findall(r"rx_queue_\d+_xdp_packets: (\d+)", counted)]
            assert len(frames) == 4
            assert min(frames) > 0
        router.fail("br1", "hang")
        hosts.send(0.4)
        assert states(router) == {"br0": "active", "br1": "dead", "br2": "active"}
        assert hosts.send(0.2)["lost_frames"] == 0
        assert deaths(router) == {"br0": 0, "br1": 1, "br2": 0}
