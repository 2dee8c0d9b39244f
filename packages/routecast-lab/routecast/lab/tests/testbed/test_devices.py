"""Devices under test forward real frames, count them, come back from resets and leave nothing behind."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import device_chain
import pytest
from device_chain import D0_MAC, D1_MAC, GEN_MAC, SINK_MAC, Chain, udp4, udp6

from routecast.errors import DeviceEnded, EnvironmentProblem, FileProblem
from routecast.lab import _lab
from routecast.lab.testbed.devices import frr, make_device, openvswitch, testpmd
from routecast.lab.testbed.dut_host import Device
from routecast.lab.testbed.throttling import RealTimeThrottle

pytestmark = pytest.mark.wire
FRAMES = 200

KINDS: dict[str, tuple[str, dict[str, object]]] = {
    "linux": ("linux", {}),
    "linux-routes": ("linux", {"routes": 300}),
    "linux-slowed": ("linux", {"slowdown": 100}),
    "bridge": ("bridge", {}),
    "bridge-learning": ("bridge", {"learning": True}),
    "xdp": ("xdp", {}),
    "nftables": ("nftables", {"rules": 25}),
    "nftables-conntrack": ("nftables", {"conntrack": True}),
    "openvswitch": ("openvswitch", {}),
    "openvswitch-normal": ("openvswitch", {"flows": "normal"}),
    "openvswitch-afxdp": ("openvswitch", {"ports": "afxdp"}),
    "testpmd": ("testpmd", {}),
    "testpmd-af_xdp": ("testpmd", {"driver": "af_xdp"}),
    "frr": ("frr", {"routes": 20}),
}
PLAIN = ("linux", "bridge", "xdp", "nftables", "openvswitch", "testpmd", "frr")


def thorough(*kinds: str) -> list[Any]:
    """Return further configurations of devices, for thorough runs."""
    return [pytest.param(kind, marks=pytest.mark.thorough) for kind in kinds]


@pytest.fixture
def chain() -> Iterator[Chain]:
    if which("ethtool") is None:
        pytest.skip("needs ethtool: apt install ethtool")
    with device_chain.chain() as namespaces:
        yield namespaces


@pytest.fixture
def device() -> Iterator[list[Device]]:
    """Yield a list of devices, which the fixture stops after the test."""
    made: list[Device] = []
    yield made
    for under_test in made:
        under_test.stop()


def make(made: list[Device], name: str, options: dict[str, object]) -> Any:
    under_test = make_device(name, options)
    lacking = [f"{program.program} ({program.package})" for program in under_test.missing()]
    if lacking:
        pytest.skip(f"device {name} needs {', '.join(lacking)}")
    if (name == "xdp" or options.get("slowdown")) and not _can_load_programs():
        pytest.skip("needs eBPF programs: this kernel or this build has none")
    made.append(under_test)
    return under_test


def _can_load_programs() -> bool:
    if not hasattr(_lab, "attach_xdp"):
        return False
    request = json.dumps({"program": "pass", "interface": "lo", "netns": None})
    try:
        _lab.attach_xdp(request).close()
    except _lab.TesterError as problem:
        return "already" in str(problem)
    return True


def ipv4(layer: int, *, reverse: bool = False, length: int = 60, arriving: bool = False, **more: Any) -> list[bytes]:
    """Return frames as they are sent to a device of a layer, or as they must come out at its far side."""
    return _frames(udp4, layer, reverse, arriving, ("198.18.1.2", "198.19.1.2"), length=length, **more)


def ipv6(layer: int, *, reverse: bool = False, length: int = 80, arriving: bool = False, **more: Any) -> list[bytes]:
    ends = ("2001:2:0:1::2", "2001:2:0:8001::2")
    return _frames(udp6, layer, reverse, arriving, ends, length=length, **more)


def _frames(build: Any, layer: int, reverse: bool, arriving: bool, ends: tuple[str, str], **more: Any) -> list[bytes]:
    hosts = (GEN_MAC, SINK_MAC)
    router = (D0_MAC, D1_MAC)
    if reverse:
        ends, hosts, router = ends[::-1], hosts[::-1], router[::-1]
    fields: dict[str, Any] = {"source": ends[0], "destination": ends[1], **more}
    fields |= {"source_mac": hosts[0], "destination_mac": hosts[1]}
    if layer == 3 and arriving:
        fields |= {"source_mac": router[1], "hops": 63}  # RFC 1812 sec. 5.3.1, RFC 8200 sec. 3: one hop less
    elif layer == 3:
        fields |= {"destination_mac": router[0]}
    return [build(number, **fields) for number in range(FRAMES)]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_arrive_in_order_and_as_its_layer_demands(kind: str, chain: Chain, device: list[Device]) -> None:
    under_test = make(device, *KINDS[kind])
    under_test.start(chain.site)
    layer = under_test.layer
    before = under_test.counters()
    assert chain.forward(ipv4(layer)) == ipv4(layer, arriving=True)
    assert chain.forward(ipv4(layer, reverse=True), reverse=True) == ipv4(layer, reverse=True, arriving=True)
    assert chain.forward(ipv4(layer, length=1514)) == ipv4(layer, length=1514, arriving=True)
    assert chain.forward(ipv6(layer)) == ipv6(layer, arriving=True)
    counts = under_test.counters()
    assert counts["rx"] - before["rx"] >= 4 * FRAMES  # and a few of the kernels' own
    assert counts["tx"] - before["tx"] >= 4 * FRAMES
    assert counts["drop"] == before["drop"]
    facts = json.loads(json.dumps(under_test.facts()))
    assert facts["version"]
    assert facts["configuration"]
    assert facts["options"].keys() >= KINDS[kind][1].keys()


@pytest.mark.parametrize("kind", ["linux", "xdp", "nftables", "frr"])
def test_networks_behind_the_hosts_are_routed(kind: str, chain: Chain, device: list[Device]) -> None:
    make(device, *KINDS[kind]).start(chain.site)
    far = {"destination": "198.19.64.7"}
    assert chain.forward(ipv4(3, **far)) == ipv4(3, arriving=True, **far)
    far = {"destination": "2001:2:0:8040::7"}
    assert chain.forward(ipv6(3, **far)) == ipv6(3, arriving=True, **far)


@pytest.mark.parametrize("kind", [*PLAIN, *thorough("openvswitch-afxdp", "testpmd-af_xdp")])
def test_a_device_forwards_again_after_each_reset(kind: str, chain: Chain, device: list[Device]) -> None:
    under_test = make(device, *KINDS[kind])
    under_test.start(chain.site)
    assert under_test.reset_kinds == ("process", "system", "link")
    layer = under_test.layer
    for reset in under_test.reset_kinds:
        under_test.restart(reset)
        assert chain.forward(ipv4(layer)) == ipv4(layer, arriving=True), f"after a reset of {reset}"
    assert chain.forward(ipv6(layer)) == ipv6(layer, arriving=True)
    with pytest.raises(FileProblem, match=r"power.* is not run: RFC 6201 sec. 4.3"):
        under_test.restart("power")
    with pytest.raises(FileProblem, match=r'did you mean "link"'):
        under_test.restart("links")


@pytest.mark.parametrize("kind", [*PLAIN, "linux-slowed", *thorough("openvswitch-afxdp", "testpmd-af_xdp")])
def test_nothing_is_left_when_a_device_is_stopped(kind: str, chain: Chain, device: list[Device]) -> None:
    before = state_of(chain)
    under_test = make(device, *KINDS[kind])
    under_test.start(chain.site)
    if under_test.data_path == "process" or kind == "frr":
        pids = {int(line) for line in device_chain.run("ip", "netns", "pids", chain.site.netns).split()}
        assert pids
        assert pids <= chain.spawned.keys(), "every process is recorded"
    under_test.stop()
    under_test.stop()
    assert state_of(chain) == before
    with pytest.raises(EnvironmentProblem, match="is not started"):
        under_test.counters()


def state_of(chain: Chain) -> dict[str, object]:
    """Return what a device could leave behind in its namespace and beside it."""
    netns = chain.site.netns
    assert netns is not None
    inside = ("ip", "netns", "exec", netns)
    links = json.loads(device_chain.run("ip", "-n", netns, "-json", "address"))
    return {
        "processes": device_chain.run("ip", "netns", "pids", netns).split(),
        "alive": [pid for pid in chain.spawned if Path(f"/proc/{pid}").exists()],
        "files": sorted(path.name for path in chain.site.folder.rglob("*")),
        "links": sorted(link["ifname"] for link in links),
        "programs": [link["ifname"] for link in links if "xdp" in link],
        "promiscuous": [link["ifname"] for link in links if "PROMISC" in link["flags"]],
        "addresses": [address["local"] for link in links for address in link["addr_info"] if link["ifname"] != "lo"],
        "neighbours": device_chain.run("ip", "-n", netns, "neighbour", "show", "nud", "permanent"),
        "routes": device_chain.run("ip", "-n", netns, "route") + device_chain.run("ip", "-n", netns, "-6", "route"),
        "rules": device_chain.run(*inside, "nft", "list", "ruleset") if which("nft") else "",
        "forwarding": device_chain.run(*inside, "cat", "/proc/sys/net/ipv4/ip_forward"),
        "forwarding6": device_chain.run(*inside, "cat", "/proc/sys/net/ipv6/conf/all/forwarding"),
    }


def _fail(*arguments: object, **more: object) -> Any:
    raise EnvironmentProblem("on purpose")


@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [
        ("openvswitch", openvswitch, "make_real_time"),
        ("testpmd", testpmd, "make_real_time"),
        ("frr", frr.Frr, "_wait_for_routes"),
    ],
)
def test_nothing_is_left_of_a_start_that_fails_half_way(
    kind: str, module: Any, name: str, chain: Chain, device: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    under_test = make(device, *KINDS[kind])
    before = state_of(chain)
    monkeypatch.setattr(module, name, _fail)
    with pytest.raises(EnvironmentProblem, match="on purpose"):
        under_test.start(chain.site)
    assert chain.spawned, "it failed after its processes were started"
    assert state_of(chain) == before


@pytest.mark.parametrize("kind", PLAIN)
def test_a_port_that_is_not_there_is_reported_and_nothing_is_left(
    kind: str, chain: Chain, device: list[Device]
) -> None:
    under_test = make(device, *KINDS[kind])
    before = state_of(chain)
    wrong = dataclasses.replace(chain.site.ports[1], interface="d7")
    with pytest.raises(EnvironmentProblem, match="d7"):
        under_test.start(dataclasses.replace(chain.site, ports=(chain.site.ports[0], wrong)))
    assert state_of(chain) == {**before, "links": before["links"]}


def test_a_device_is_started_once_and_only_in_a_namespace(chain: Chain, device: list[Device]) -> None:
    under_test = make(device, "linux", {})
    with pytest.raises(EnvironmentProblem, match="runs in a network namespace only"):
        under_test.start(dataclasses.replace(chain.site, netns=None))
    with pytest.raises(EnvironmentProblem, match="needs two ports, got 1"):
        under_test.start(dataclasses.replace(chain.site, ports=chain.site.ports[:1]))
    under_test.start(chain.site)
    with pytest.raises(EnvironmentProblem, match="runs already"):
        under_test.start(chain.site)


@pytest.mark.parametrize("kind", ["openvswitch", "testpmd", *thorough("openvswitch-afxdp", "testpmd-af_xdp")])
def test_what_a_process_cannot_take_in_time_is_counted_as_dropped(
    kind: str, chain: Chain, device: list[Device], until: Callable[..., None]
) -> None:
    under_test = make(device, *KINDS[kind])
    under_test.start(chain.site)
    process = max(pid for pid in chain.spawned if Path(f"/proc/{pid}").exists())
    frames = ipv4(2, length=1514) * 20  # more than any of the rings between wire and process holds
    with device_chain.packet_socket(chain.sink, "s0") as receiver:
        os.kill(process, signal.SIGSTOP)
        try:
            with device_chain.packet_socket(chain.gen, "g0") as sender:
                for frame in frames:
                    sender.send(frame)
        finally:
            os.kill(process, signal.SIGCONT)
        arrived: list[bytes] = []
        receiver.settimeout(0.3)

        def all_arrived() -> bool:
            device_chain.collect(receiver, arrived, len(frames))
            return 0 < len(arrived) == under_test.counters()["tx"]

        until(all_arrived, "what was sent on arrived")
    counts = under_test.counters()
    assert 0 < len(arrived) < len(frames)
    assert (counts["rx"], counts["tx"]) == (len(frames), len(arrived))
    assert counts["drop"] == len(frames) - len(arrived)


@pytest.mark.parametrize("kind", ["openvswitch", "testpmd", "frr"])
def test_a_process_that_dies_is_reported_with_what_it_printed(kind: str, chain: Chain, device: list[Device]) -> None:
    under_test = make(device, *KINDS[kind])
    before = state_of(chain)
    under_test.start(chain.site)
    os.kill(max(chain.spawned), signal.SIGKILL)
    with pytest.raises(DeviceEnded, match=r"ended by itself with signal 9: \S+"):
        read_counters_for_a_while(under_test)
    under_test.stop()
    assert state_of(chain) == before


def read_counters_for_a_while(under_test: Device) -> None:
    """A process is gone some time after it was killed."""
    for _ in range(500):
        under_test.counters()
        time.sleep(0.02)


def test_rules_are_looked_at_and_counted(chain: Chain, device: list[Device]) -> None:
    under_test = make(device, "nftables", {"rules": 25})
    under_test.start(chain.site)
    for frames in (ipv4(3), ipv6(3)):
        assert len(chain.forward(frames)) == FRAMES
    counts = under_test.counters()
    assert (counts["nft_accepted"], counts["nft_filtered"]) == (2 * FRAMES, 0)
    # The 25th rule is the last: what comes from its address is dropped, what comes from the next address is not.
    assert chain.forward(ipv4(3, source="10.1.0.25")[:50], wait_s=0.3) == []
    assert len(chain.forward(ipv4(3, source="10.1.0.26"))) == FRAMES
    counts = under_test.counters()
    assert (counts["nft_accepted"], counts["nft_filtered"]) == (3 * FRAMES, 50)
    assert counts["drop"] == 50


def test_connections_are_tracked_only_on_request(chain: Chain, device: list[Device]) -> None:
    tracked = {}
    for conntrack in (False, True):
        under_test = make(device, "nftables", {"conntrack": conntrack, "rules": 1})
        under_test.start(chain.site)
        assert len(chain.forward(ipv4(3))) == FRAMES
        tracked[conntrack] = int(chain.site.run("cat", "/proc/sys/net/netfilter/nf_conntrack_count"))
        under_test.stop()
    assert tracked == {False: 0, True: 1}  # all frames are of one flow


def test_ipv6_is_off_where_it_is_not_wanted(chain: Chain, device: list[Device]) -> None:
    make(device, "linux", {"ipv6": False}).start(chain.site)
    assert chain.forward(ipv6(3), wait_s=0.3) == []
    assert len(chain.forward(ipv4(3))) == FRAMES


def test_a_slowed_device_takes_longer_for_each_frame(chain: Chain, device: list[Device]) -> None:
    quickest_s = {}
    # A veth port hands a frame to the device within the sender's own call, so that the call lasts as long as the work:
    # 100 000 iterations are some hundred microseconds on any processor, a frame without them takes a few.
    for slowdown in (0, 100_000):
        under_test = make(device, "linux", {"slowdown": slowdown})
        under_test.start(chain.site)
        with device_chain.packet_socket(chain.gen, "g0") as sender:
            times_s = []
            for frame in ipv4(3):
                began_s = time.perf_counter()
                sender.send(frame)
                times_s.append(time.perf_counter() - began_s)
        quickest_s[slowdown] = min(times_s)
        under_test.stop()
    assert quickest_s[100_000] > 4 * quickest_s[0]


@pytest.mark.parametrize(
    ("retain", "destination", "all_arrive"),
    [(False, "198.19.1.2", True), (True, "198.19.64.7", True), (False, "198.19.64.7", False)],
)
def test_forwarding_while_zebra_restarts_depends_on_who_owns_the_route(
    retain: bool, destination: str, all_arrive: bool, chain: Chain, device: list[Device]
) -> None:
    under_test = make(device, "frr", {"retain": retain})
    under_test.start(chain.site)
    frames = [udp4(number, destination=destination) for number in range(20_000)]
    sent: list[bytes] = []
    done = threading.Event()

    def keep_sending() -> None:
        with device_chain.packet_socket(chain.gen, "g0") as sender:
            for frame in frames:
                sender.send(frame)
                sent.append(frame)
                if done.wait(0.002):
                    return

    receiver = device_chain.packet_socket(chain.sink, "s0")
    thread = threading.Thread(target=keep_sending)
    thread.start()
    try:
        under_test.restart("process")
    finally:
        done.set()
        thread.join()
    arrived: list[bytes] = []
    with receiver:
        receiver.settimeout(60.0 if all_arrive else 1.0)
        device_chain.collect(receiver, arrived, len(sent))
    assert (len(arrived) == len(sent)) is all_arrive
    far = {"destination": destination}
    assert chain.forward(ipv4(3, **far)) == ipv4(3, arriving=True, **far)


def real_time_threads(chain: Chain) -> list[int]:
    """Return the threads of the device's process that have a real-time class."""
    (process,) = [pid for pid in chain.spawned if Path(f"/proc/{pid}").exists()]
    tasks = [int(task.name) for task in Path(f"/proc/{process}/task").iterdir()]
    return [task for task in tasks if os.sched_getscheduler(task) == os.SCHED_FIFO]


def test_the_forwarding_thread_gets_its_core_and_priority(
    chain: Chain, device: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RealTimeThrottle, "of_machine", classmethod(lambda _: None))
    under_test = make(device, "testpmd", {})
    cpu = max(os.sched_getaffinity(0))
    under_test.start(dataclasses.replace(chain.site, cpu=cpu, priority=1))
    assert under_test.facts()["threads"] == [f"thread rte-worker-1: core {cpu}, SCHED_FIFO 1"]
    assert [os.sched_getaffinity(task) for task in real_time_threads(chain)] == [{cpu}]


def test_a_thread_that_polls_is_in_real_time_only_where_the_kernel_does_not_stop_it(
    chain: Chain, device: list[Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With real-time priority it stands still for 50 ms of each second, in which it loses what comes."""
    throttle = RealTimeThrottle(runtime_us=950_000)
    monkeypatch.setattr(RealTimeThrottle, "of_machine", classmethod(lambda _: throttle))
    under_test = make(device, "testpmd", {})
    cpu = max(os.sched_getaffinity(0))
    under_test.start(dataclasses.replace(chain.site, cpu=cpu, priority=1))
    (line,) = under_test.facts()["threads"]
    assert line == (
        f"thread rte-worker-1: core {cpu}, SCHED_FIFO 1 in trials of up to 855 ms, else the ordinary class with nice "
        f"-20, because of {throttle.text}"
    )
    assert isinstance(under_test, testpmd.Testpmd)
    for duration_s, count in ((0.5, 1), (1.0, 0)):
        assert real_time_threads(chain) == []
        with under_test.in_trial(duration_s):
            assert len(real_time_threads(chain)) == count
    assert real_time_threads(chain) == []


def test_a_device_that_makes_its_frames_itself_pays_for_their_bytes(chain: Chain, device: list[Device]) -> None:
    under_test = make(device, "testpmd", {"driver": "null", "forward": "macswap"})
    under_test.start(chain.site)
    assert under_test.times_itself
    cost_s = {size: min(under_test.self_timed(size, 0.1).seconds_per_frame for _ in range(3)) for size in (64, 1518)}
    # Copied in and out: 1518 bytes take about 2.5 times as long as 64 on the machines seen.
    assert cost_s[1518] > 1.2 * cost_s[64]
    # Between two readings of counters the reader may be held up.
    results = [under_test.self_timed(1518, 0.1) for _ in range(3)]
    counts = min(results, key=lambda counts: abs(counts.received_frames - counts.forwarded_frames))
    assert counts.frame_bytes == 1518
    assert counts.forwarded_pps == pytest.approx(counts.forwarded_frames / counts.busy_s)
    # Of one core; the kernel charges processor time in ticks of up to 10 ms.
    assert 0.0 < counts.busy_s <= counts.duration_s + 0.02
    # A burst may be on its way at either reading.
    assert abs(counts.received_frames - counts.forwarded_frames) <= 4 * 32
    with pytest.raises(FileProblem, match="50 is not in 64 to 2048"):
        under_test.self_timed(50, 0.1)
    with pytest.raises(FileProblem, match="driver null has no link"):
        under_test.restart("link")


def test_a_device_on_a_wire_does_not_time_itself() -> None:
    with pytest.raises(FileProblem, match='only "null" times itself'):
        testpmd.Testpmd().self_timed(64, 0.1)
