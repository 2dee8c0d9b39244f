"""Sending on interfaces: what is refused, what is set back, and that it measures. Everything runs inside namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.lab.testbed import make_bed, netns
from routecast.lab.testbed._interfaces import inspect_ports
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.testbed.links import LinkReader

pytestmark = pytest.mark.wire


@pytest.fixture
def lab() -> Iterator[str]:
    """A namespace "lab" with e0 and e1, cabled to a router in the namespace "lab-dut"."""
    for name in netns.names():  # left by a test run that was killed
        owner = name.removeprefix("rct-").partition("-")[0] if name.startswith("rct-") else ""
        if owner.isdecimal() and not Path("/proc", owner).exists():
            run_command(["ip", "netns", "del", name], check=False)
    lab = f"rct-{os.getpid()}-{time.monotonic_ns() % 100_000}"
    dut = f"{lab}-dut"
    for name in (lab, dut):
        run_command(["ip", "netns", "add", name])
        netns.inside(name, lambda: Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1"))
    try:
        for side in (0, 1):
            run_command(
                f"ip link add e{side} netns {lab} address 02:00:00:00:0{side + 1}:02 type veth "
                f"peer name r{side} netns {dut} address 02:00:00:00:0{side + 1}:01".split()
            )
            run_command(["ip", "netns", "exec", dut, "ethtool", "-K", f"r{side}", "gro", "on"], check=False)
            router = [
                f"link set r{side} up",
                f"address add 198.{18 + side}.1.1/24 dev r{side}",
                f"neighbour add 198.{18 + side}.1.2 lladdr 02:00:00:00:0{side + 1}:02 dev r{side} nud permanent",
            ]
            run_command(["ip", "-n", dut, "-batch", "-"], stdin="\n".join(router) + "\n")
            run_command(["ip", "-n", lab, "link", "set", f"e{side}", "up"])
        netns.inside(dut, lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("1"))
        yield lab
    finally:
        for name in (lab, dut):
            run_command(["ip", "netns", "del", name], check=False)


@pytest.fixture
def file_of(tmp_path: Path) -> Callable[..., str]:
    def write(lab: str | None, *, more: str = "", first: str = "e0", second: str = "e1", wire: str = "") -> str:
        netns_line = f'netns = "{lab}"\n' if lab else ""
        wire_line = f'wire = "{wire}"\n' if wire else ""
        path = tmp_path / "lab.testbed.toml"
        path.write_text(
            f'name = "i{os.getpid() % 100_000}"\nkind = "interfaces"\n{more}\n'
            f'[[port]]\ninterface = "{first}"\ndut_mac = "02:00:00:00:01:01"\n{netns_line}{wire_line}'
            f'[[port]]\ninterface = "{second}"\ndut_mac = "02:00:00:00:02:01"\n{netns_line}{wire_line}'
        )
        return str(path)

    return write


def refusal(lab: str, *ports: str, own_network: bool = False, idle_s: float = 0.2) -> str:
    with pytest.raises(FileProblem) as caught:
        inspect_ports([(lab, port) for port in ports], own_network=own_network, idle_s=idle_s)
    return str(caught.value)


def test_quiet_interfaces_with_benchmarking_addresses_are_taken(lab: str) -> None:
    run_command(["ip", "-n", lab, "address", "add", "198.18.1.2/24", "dev", "e0"])
    facts = inspect_ports([(lab, "e0"), (lab, "e1")], own_network=False, idle_s=0.2)
    assert [fact.mac for fact in facts] == ["02:00:00:00:01:02", "02:00:00:00:02:02"]
    assert all(fact.is_up and fact.mtu == 1500 for fact in facts)


def test_an_interface_with_the_default_route_is_refused(lab: str) -> None:
    run_command(["ip", "-n", lab, "address", "add", "198.18.1.2/24", "dev", "e0"])
    run_command(["ip", "-n", lab, "route", "add", "default", "via", "198.18.1.1"])
    text = refusal(lab, "e0", "e1")
    assert "e0 carries the default route" in text
    assert "--i-own-this-network" in text
    assert "e1" not in text
    assert inspect_ports([(lab, "e0"), (lab, "e1")], own_network=True)


def test_an_address_outside_the_benchmarking_ranges_is_refused(lab: str) -> None:
    run_command(["ip", "-n", lab, "address", "add", "192.0.2.1/24", "dev", "e1"])
    text = refusal(lab, "e0", "e1")
    assert "e1 has the address 192.0.2.1/24" in text
    assert "198.18.0.0/15" in text  # RFC 6815 sec. 3


def test_an_interface_with_other_traffic_is_refused(
    lab: str, start: Callable[..., subprocess.Popen[str]], until: Callable[..., None]
) -> None:
    ping = (
        "import socket, time\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
        "s.bind(('e0', 0))\n"
        "s.send(bytes(60)); print('sends', flush=True)\n"
        "while True:\n    s.send(bytes(60)); time.sleep(0.01)\n"
    )
    other = start(["ip", "netns", "exec", lab, sys.executable, "-c", ping], stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == "sends\n"

    refusals: list[str] = []

    def is_refused() -> bool:  # on a busy machine the sender may get no core while the check listens
        try:
            inspect_ports([(lab, "e0"), (lab, "e1")], own_network=False, idle_s=0.2)
        except FileProblem as problem:
            refusals.append(str(problem))
        return bool(refusals)

    until(is_refused, "the sender was heard", other)
    assert "carries other traffic" in refusals[0]


def test_missing_interfaces_loopback_and_bridge_members_are_refused_all_at_once(lab: str) -> None:
    text = refusal(lab, "e7", "lo")
    assert "there is no interface e7; the interfaces are e0, e1, lo" in text
    assert "loopback" in text
    run_command(["ip", "-n", lab, "link", "add", "b0", "type", "bridge"])
    run_command(["ip", "-n", lab, "link", "set", "e0", "master", "b0"])
    assert "part of a bridge" in refusal(lab, "e0", "e1")


def test_a_namespace_that_is_not_there_is_named(file_of: Callable[..., str]) -> None:
    with pytest.raises(FileProblem, match="no network namespace nowhere"), make_bed(file_of("nowhere")):
        pass


def test_a_wire_faster_than_its_link_is_refused(lab: str, file_of: Callable[..., str]) -> None:
    with (
        pytest.raises(FileProblem, match="has 10 Gbit/s: a tester cannot send faster"),
        make_bed(file_of(lab, wire="40 Gbit/s")),
    ):
        pass


def test_a_link_that_stays_down_is_an_error(
    lab: str, file_of: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("routecast.lab.testbed._interfaces._LINK_TIMEOUT_S", 0.3)
    run_command(["ip", "-n", f"{lab}-dut", "link", "set", "r1", "down"])
    with pytest.raises(EnvironmentProblem, match="e1: the link is down"), make_bed(file_of(lab)):
        pass


def test_interfaces_are_set_up_and_afterwards_as_they_were(lab: str, file_of: Callable[..., str]) -> None:
    run_command(["ip", "-n", lab, "link", "set", "e1", "down"])
    with make_bed(file_of(lab)) as bed, LinkReader(lab) as links:
        assert links.read()["e1"].is_up
        assert bed.ports[0].wire_bps == 10e9  # what a veth says of itself
    with LinkReader(lab) as links:
        assert not links.read()["e1"].is_up
        assert links.read()["e0"].is_up


ALL_RIGHTS: tuple[str, ...] = ()
FEWEST_RIGHTS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all,+net_raw,+net_admin,+bpf,+perfmon")


@pytest.mark.wire
@pytest.mark.parametrize("rights", [ALL_RIGHTS, FEWEST_RIGHTS], ids=["all rights", "fewest rights"])
def test_the_whole_command_runs_inside_a_namespace_of_its_own(
    lab: str, file_of: Callable[..., str], rights: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [
            *("ip", "netns", "exec", lab, *rights, sys.executable, "-m", "routecast", "measure"),
            *("--testbed", file_of(None), "--load", "20 kpps", "--duration", "200 ms", "--json", "--retries", "7"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in {0, 1}, done.stderr
    trial = json.loads(done.stdout)
    # Without CAP_SYS_NICE the generator is an ordinary thread, which a busy machine may keep from its rate.
    assert trial["offered_frames"] <= 4_000
    assert trial["offered_frames"] == 4_000 or trial["invalid"]
    assert trial["offered_frames"] == trial["forwarded_frames"] + trial["dropped_frames"]
    assert trial["forwarded_frames"] > 0 or trial["invalid"]
    assert trial["facts"]["bed"]["kind"] == "interfaces"
    # The command announces each stream before it sends it.
    assert "sending from e0 (02:00:00:00:01:02, 198.18.1.2) to 02:00:00:00:01:01, 198.19.1.2" in done.stderr
