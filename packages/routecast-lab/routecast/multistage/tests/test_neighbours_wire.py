"""On the wire: forged frames harm nobody elsewhere, moves are followed, a scan holds up nothing, state is evidence."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time

import pytest

from routecast.lab.testbed.netns import inside
from routecast.multistage.appliance import Appliance
from routecast.multistage.protocol.neighbours import MOVE_S
from routecast.multistage.tests.multistage_frames import (
    FORGER,
    HOST_IPV6,
    SIDES,
    Pings,
    all_pings,
    arp,
    forged,
    raw,
    said,
    set_mac,
    up_in_metrics,
)
from routecast.multistage.tests.multistage_hosts import HOST, HOST_MAC, ROUTER_MAC, Hosts, hosts_of, states, wait_for

pytestmark = pytest.mark.wire


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
    ("version", "network"), [(4, "198.19.1.0/24"), (4, "198.18.1.0/24"), (6, "2001:2:0:8001::/64")]
)
def test_a_black_hole_that_no_table_shows_is_found_without_traffic(
    router: Appliance, version: int, network: str
) -> None:
    """A rule in one back-end router: own frames on every path find it, and the others get its flows."""
    command = ["ip", "-n", router.layout.netns("br1"), f"-{version}", "rule"]
    rule = ["to", network, "blackhole", "priority", "10"]
    time.sleep(0.5)
    subprocess.run([*command, "add", *rule], check=True)
    wait_for(lambda: states(router)["br1"] == "differs", within_s=20.0)
    ping = Pings(router, 0, HOST[1] if version == 4 else HOST_IPV6[1], rate_pps=50.0)
    back = Pings(router, 1, HOST[0] if version == 4 else HOST_IPV6[0], rate_pps=50.0)
    time.sleep(0.5)
    assert [ping.end(), back.end()] == [0, 0]
    assert states(router) == {"br0": "active", "br1": "differs", "br2": "active"}
    assert any(problem.startswith("br1: it returns nothing to ") for problem in router.audit()["problems"])
    subprocess.run([*command, "del", *rule], check=True)
    wait_for(lambda: states(router)["br1"] == "active", within_s=20.0)
    assert router.audit()["problems"] == []


def test_rightly_dropped_packets_and_overload_are_no_black_hole(text: str) -> None:
    capped = text.replace('[[router]]\nname = "br0"', '[[router]]\nname = "br0"\ncap = "2 kpps"')
    with Appliance(capped) as router, hosts_of(router) as hosts:
        for _ in range(10):
            hosts.send(0.5, rate_pps=20e3)
            assert states(router)["br0"] == "active"
        assert not any(event["what"] == "partly dead" for event in router.events())


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
