"""A router of many machines, in namespaces: one hop to its neighbours; what fails, what changes, what it leaves."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.lab.testbed import netns, state
from routecast.lab.testbed.netns import inside
from routecast.multistage._model import FlowChoices
from routecast.multistage.appliance import Appliance
from routecast.multistage.prediction import predicted_death
from routecast.multistage.tests.multistage_hosts import (
    HOST,
    Hosts,
    Steady,
    flows,
    hosts_of,
    icmp_errors,
    states,
    wait_for,
)

pytestmark = pytest.mark.wire


def counted(router: Appliance, name: str, key: str) -> int:
    return next(int(row[key]) for row in router.status()["routers"] if row["name"] == name)


def active(router: Appliance) -> str:
    return next(row["name"] for row in router.status()["balancers"] if row["is_chosen"])


def during(hosts: Hosts, duration_s: float, change: Callable[[], object]) -> dict[str, Any]:
    """A trial with a change in it; ``late_s`` says by how much the change's end missed the first half of the trial."""
    ended_s = []

    def work() -> None:
        change()
        ended_s.append(time.monotonic())

    timer = threading.Timer(0.2 * duration_s, work)
    began_s = time.monotonic()
    timer.start()
    result = hosts.send(duration_s)
    timer.join()
    result["late_s"] = max(ended_s[0] - began_s - 0.5 * duration_s, 0.0)
    return result


def echoes(router: Appliance, address: str) -> int:
    """How many answers one echo request of the host on the left gets."""
    is_4 = ":" not in address

    def work() -> int:
        family, protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if is_4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
        with socket.socket(family, socket.SOCK_RAW, protocol) as handle:
            handle.settimeout(0.5)
            body = struct.pack("!BBHHH", 8 if is_4 else 128, 0, 0, 4711, 1)
            if is_4:  # the kernel fills in the checksum of ICMPv6 alone
                total = sum(struct.unpack("!4H", body))
                body = struct.pack("!BBHHH", 8, 0, ~(total + (total >> 16)) & 0xFFFF, 4711, 1)
            handle.sendto(body, (address, 0))
            answers = 0
            while True:
                try:
                    data = handle.recv(2000)
                except TimeoutError:
                    return answers
                answer = data[20:] if is_4 else data
                answers += answer[0] in (0, 129) and answer[4:6] == body[4:6]

    return inside(router.layout.netns("left"), work)


def test_it_is_one_hop_and_one_router(router: Appliance, hosts: Hosts) -> None:
    # What traceroute sees: the router, then the host.
    assert icmp_errors(router, HOST[1], limit=1) == [("198.18.1.1", 11, 0)]
    assert icmp_errors(router, HOST[1], limit=2) == [(HOST[1], 3, 3)]
    assert icmp_errors(router, "203.0.113.1") == [("198.18.1.1", 3, 0)]
    for address in ("198.18.1.1", "198.19.1.1", "2001:2:0:1::1", "2001:2:0:8001::1", HOST[1], "2001:2:0:8001::2"):
        assert echoes(router, address) == 1, address


def test_a_path_mtu_is_found(router: Appliance) -> None:
    assert icmp_errors(router, HOST[1], octets=1450) == [("198.18.1.1", 3, 4)]

    def path_mtu() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
            handle.connect((HOST[1], 9))
            return handle.getsockopt(socket.IPPROTO_IP, 14)  # IP_MTU

    assert inside(router.layout.netns("left"), path_mtu) == 1400


def test_fragments_arrive_whole(router: Appliance) -> None:
    """Of sixty packets from as many ports, each in three fragments: all of one go to one back-end router."""

    def open_right() -> socket.socket:
        handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        handle.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
        handle.bind((HOST[1], 7777))
        handle.settimeout(2.0)
        return handle

    def send() -> None:
        for port in range(60):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
                handle.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: the router may fragment
                handle.bind((HOST[0], 20_000 + port))
                handle.sendto(bytes(3500), (HOST[1], 7777))

    with inside(router.layout.netns("right"), open_right) as heard:
        inside(router.layout.netns("left"), send)
        assert [len(heard.recv(4000)) for _ in range(60)] == [3500] * 60


def test_a_flow_goes_where_trace_says(router: Appliance, hosts: Hosts) -> None:
    foretold = FlowChoices.of(router.file, flows())
    for port, order in zip(range(1024, 1036), foretold.choices, strict=False):
        chosen = router.trace("udp", f"{HOST[0]}:{port}", f"{HOST[1]}:7")["router"]
        assert chosen == order[0]
        before = counted(router, chosen, "sent_frames")
        hosts.send(0.02, rate_pps=2e3, flows=[flow for flow in flows() if flow["source_port"] == port])
        assert counted(router, chosen, "sent_frames") - before >= 40


@pytest.mark.parametrize("kind", ["link", "hang"])
def test_a_death_costs_its_own_flows_what_was_predicted(
    router: Appliance, hosts: Hosts, steady: Steady, kind: str
) -> None:
    share = []

    def run() -> dict[str, Any]:
        before = {name: counted(router, name, "sent_frames") for name in states(router)}
        hosts.send(0.2)
        sent = {name: counted(router, name, "sent_frames") - before[name] for name in before}
        share[:] = [sent["br1"] / sum(sent.values())]
        result = during(hosts, 1.0, lambda: router.fail("br1", kind))
        wait_for(lambda: states(router)["br1"] == "dead")
        router.restore("br1")
        wait_for(lambda: states(router)["br1"] == "active")
        result["back"] = hosts.send(0.2)
        return result

    def judge(result: dict[str, Any]) -> None:
        detector = router.file.detector
        predicted = predicted_death(
            rate_pps=share[0] * 20e3, silence_s=detector.silence, unanswered_frames=detector.unanswered
        )
        assert result["lost_frames"] == pytest.approx(predicted.lost_frames, rel=0.05)
        assert result["reordered_frames"] == 0
        assert result["back"]["lost_frames"] == 0

    steady(run, judge)


def test_two_may_die_at_once(router: Appliance, hosts: Hosts, steady: Steady) -> None:
    def run() -> dict[str, Any]:
        result = during(hosts, 0.8, lambda: [router.fail(name, "hang") for name in ("br0", "br1")])
        wait_for(lambda: states(router) == {"br0": "dead", "br1": "dead", "br2": "active"})
        result["after"] = hosts.send(0.2)
        for name in ("br0", "br1"):
            router.restore(name)
        wait_for(lambda: set(states(router).values()) == {"active"})
        return result

    def judge(result: dict[str, Any]) -> None:
        assert result["after"]["lost_frames"] == 0

    steady(run, judge)


def test_where_all_are_dead_frames_are_counted_and_it_recovers_by_itself(router: Appliance, hosts: Hosts) -> None:
    for name in states(router):
        router.fail(name, "hang")
    hosts.send(1.0)
    assert set(states(router).values()) == {"dead"}
    before = router.status()["balancers"][0]["dropped"]["no_member"]
    result = hosts.send(0.1)
    assert result["received_frames"] == 0
    balancer = router.status()["balancers"][0]
    assert balancer["dropped"]["no_member"] - before == result["sent_frames"]
    assert balancer["dropped_by_port"]["left"]["no_member"] == balancer["dropped"]["no_member"]
    assert balancer["dropped_by_port"]["right"]["no_member"] == 0
    for name in states(router):
        router.restore(name)
    wait_for(lambda: set(states(router).values()) == {"active"})
    assert hosts.send(0.1)["received_frames"] > 0


def test_without_traffic_silence_is_found_by_own_frames(router: Appliance) -> None:
    router.fail("br1", "hang")
    wait_for(lambda: states(router)["br1"] == "dead")
    router.restore("br1")
    wait_for(lambda: states(router)["br1"] == "active")


@pytest.mark.parametrize("what", ["time to live of 1", "no route", "too long"])
def test_what_a_router_rightly_drops_is_no_death(router: Appliance, hosts: Hosts, what: str) -> None:
    """A flood of one flow that no back-end router forwards, beside traffic that all of them do."""

    def flood() -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as handle:
            length, ttl = (1450, 64) if what == "too long" else (40, 1 if what == "time to live of 1" else 64)
            to = "203.0.113.9" if what == "no route" else HOST[1]
            addresses = socket.inet_aton(HOST[0]), socket.inet_aton(to)
            header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 1, 0x4000, ttl, 17, 0, *addresses)
            packet = header + struct.pack("!HHHH", 5000, 9, length - 20, 0) + bytes(length - 28)
            sent = 0
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                handle.sendto(packet, (to, 0))
                sent += 1
            return sent

    sent: list[int] = []
    thread = threading.Thread(target=lambda: sent.append(inside(router.layout.netns("left"), flood)))
    thread.start()
    result = hosts.send(1.5)
    thread.join()
    assert sent[0] > 1_000
    assert result["received_frames"] > 0
    assert sum(counted(router, name, "deaths") for name in states(router)) == 0


def test_planned_changes_lose_nothing(router: Appliance, hosts: Hosts, steady: Steady) -> None:
    def nothing_is_lost(change: Callable[[], object]) -> None:
        def judge(result: dict[str, Any]) -> None:
            assert result["lost_frames"] == 0

        # Late or not, a change loses nothing.
        steady(lambda: {**during(hosts, 0.8, change), "late_s": 0.0}, judge, attempts=1)

    nothing_is_lost(lambda: router.add("br3"))
    nothing_is_lost(lambda: router.set_weight("br3", 3.0))
    nothing_is_lost(lambda: router.drain("br0", idle_s=0.1, deadline_s=0.3))
    wait_for(lambda: states(router)["br0"] == "drained")
    nothing_is_lost(lambda: router.remove("br0"))
    assert set(states(router)) == {"br1", "br2", "br3"}
    assert router.audit()["problems"] == []


def test_a_hundred_tables_switched_under_load_lose_nothing(router: Appliance, hosts: Hosts, steady: Steady) -> None:
    def switched() -> dict[str, Any]:
        epoch, worker = router.status()["epoch"], threading.Thread(target=lambda: _switch(router, 100))
        worker.start()
        trials = []
        while worker.is_alive() or not trials:
            trials.append(hosts.send(0.5))
        worker.join()
        assert router.status()["epoch"] == epoch + 100
        return {
            "lost_frames": sum(trial["lost_frames"] for trial in trials),
            "unsent_frames": sum(trial["unsent_frames"] for trial in trials),
            "latest_s": max(trial["latest_s"] for trial in trials),
        }

    def judge(result: dict[str, Any]) -> None:
        assert result["lost_frames"] == 0

    steady(switched, judge)
    assert router.audit()["problems"] == []


def _switch(router: Appliance, times: int) -> None:
    for number in range(times):
        router.set_weight("br1", 1.0 + number % 3)


def test_a_drain_keeps_flows_that_have_frames(router: Appliance, hosts: Hosts) -> None:
    hosts.send(0.1)
    timer = threading.Timer(0.1, lambda: router.drain("br2", idle_s=2.0, deadline_s=60.0))
    timer.start()
    before = counted(router, "br2", "sent_frames")
    result = hosts.send(1.5)
    timer.join()
    kept_frames = counted(router, "br2", "sent_frames") - before
    assert kept_frames > 0.3 * result["sent_frames"], "half of the flows are its own, and have frames all the time"
    with pytest.raises(QuantityProblem, match="br2 drains for"):
        router.set_weight("br0", 2.0)
    time.sleep(2.2)
    before = counted(router, "br2", "sent_frames")
    hosts.send(0.2)
    assert counted(router, "br2", "sent_frames") == before, "idle rows have left it"


@pytest.mark.parametrize("kind", ["link", "hang"])
def test_the_second_load_balancer_takes_over(router: Appliance, hosts: Hosts, kind: str) -> None:
    first = active(router)
    router.fail(first, kind)
    wait_for(lambda: active(router) != first)
    wait_for(lambda: hosts.send(0.1)["lost_frames"] == 0)
    router.restore(first)
    wait_for(lambda: router.audit()["problems"] == [])
    assert hosts.send(0.1)["received_frames"] > 0
    assert active(router) != first


def test_the_router_outlives_its_process(text: str, steady: Steady) -> None:
    first = Appliance(text)
    first.__enter__()
    first.set_weight("br0", 3.0)
    epoch = first.status()["epoch"]
    again: list[Appliance] = []
    try:
        with hosts_of(first) as hosts:

            def run() -> dict[str, Any]:
                def restart() -> None:
                    first.leave()
                    second = Appliance(text)
                    second.__enter__()
                    again.append(second)

                timer = threading.Timer(0.2, restart)
                timer.start()
                result = hosts.send(1.5)
                timer.join()
                return result

            def judge(result: dict[str, Any]) -> None:
                assert result["lost_frames"] == 0

            steady(run, judge, attempts=1)
            assert again[0].status()["epoch"] == epoch
            assert again[0].audit()["problems"] == []
    finally:
        for router in again or [Appliance(text).__enter__()]:
            router.end()


_CHANGES = """
import sys
from routecast.multistage.appliance import Appliance
router = Appliance(sys.argv[1])
router.__enter__()
print("up", flush=True)
while True:
    router.add("extra")
    router.set_weight("br0", 2.0)
    router.remove("extra")
    router.set_weight("br0", 1.0)
"""


def test_what_is_killed_during_changes_heals(text: str) -> None:
    for moment_s in (0.05, 0.19, 0.37):
        process = subprocess.Popen([sys.executable, "-c", _CHANGES, text], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        time.sleep(moment_s)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with Appliance(text) as router:
            audit = router.audit()
            assert audit["problems"] == []
            with hosts_of(router) as hosts:
                assert hosts.send(0.05)["received_frames"] > 0
            router.leave()
    with Appliance(text):
        pass


def test_nothing_is_left_behind(text: str) -> None:
    programs = _programs()
    with Appliance(text) as router:
        assert set(router.layout.base_namespaces()) <= set(netns.names())
        with pytest.raises(EnvironmentProblem, match="in use by"):
            Appliance(text).__enter__()
        router.fail("br0", "link")
        router.fail("lb0", "hang")
    # Other tests put up and take down their own at the same time.
    left = [name for name in (*netns.names(), *state.beds(), *_mounts()) if router.name in name]
    assert left == []
    wait_for(lambda: _programs() <= programs)


def test_one_that_stands_from_another_file_is_refused_and_goes_on(text: str) -> None:
    with Appliance(text) as router:
        router.leave()
        with pytest.raises(EnvironmentProblem, match="is up from another file"):
            Appliance(text.replace("weight = 2.0", "weight = 3.0")).__enter__()
        assert router.name in state.beds()
    with Appliance(text) as router:
        assert router.audit()["problems"] == []
    assert router.name not in state.beds()


@pytest.mark.parametrize("element", ["inside-switch", "br1"])
def test_one_that_cannot_come_up_leaves_nothing(text: str, element: str) -> None:
    router = Appliance(text)
    name = router.layout.netns(element)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        with pytest.raises(EnvironmentProblem, match="exists and is no router's"):
            Appliance(text).__enter__()
        left = [name for name in (*netns.names(), *state.beds(), *_mounts()) if router.name in name]
        assert left == [name]
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def test_what_cannot_be_done_is_reported(router: Appliance) -> None:
    for ask, message in (
        (lambda: router.fail("br9"), "there is no element 'br9'; there are: br0, br1, br2, lb0, lb1"),
        (lambda: router.fail("br0", "fire"), "a fault is one of link, hang"),
        (lambda: router.add("br0"), "br0 is a member already"),
        (lambda: router.add("left"), "an element has this name"),
        (lambda: router.set_weight("br0", -1.0), "above 0"),
        (lambda: router.set_weight("br0", float("nan")), "above 0"),
        (lambda: router.trace("udp", "198.18.1.2:99999", HOST[1]), "write ADDRESS:PORT"),
        (lambda: router.trace("carp", HOST[0], HOST[1]), "got protocol 'carp'"),
        (lambda: router.trace("udp", HOST[0], "2001:2::1"), "two versions of IP"),
        (lambda: router.drain("br0", idle_s=-1.0), "idle time"),
        (lambda: router.drain("br0", deadline_s=float("inf")), "deadline"),
    ):
        with pytest.raises(QuantityProblem, match=message):
            ask()


def test_the_last_router_stays(router: Appliance) -> None:
    router.remove("br0")
    router.remove("br1")
    with pytest.raises(QuantityProblem, match="the last back-end router"):
        router.remove("br2")


def _mounts() -> list[str]:
    return sorted(line for line in Path("/proc/mounts").read_text().splitlines() if "routecast" in line)


def _programs() -> set[str]:
    """File descriptors of eBPF links that this process holds."""
    result = set()
    for item in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(item)
        except OSError:
            continue
        if "bpf" in target:
            result.add(f"{item.name} {target}")
    return result


def test_a_status_is_plain_data(router: Appliance) -> None:
    assert json.loads(json.dumps(router.status()))["name"] == router.name
