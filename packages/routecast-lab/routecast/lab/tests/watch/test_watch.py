"""Looks at interfaces of network namespaces: every packet is counted, and every setting is put back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from routecast.cli.run import run
from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.lab.testbed import netns
from routecast.lab.testbed.dut_host import run_command
from routecast.lab.watch import (
    Deferral,
    LookRecord,
    answered,
    instances,
    read_recording,
    restore,
    watch,
    write_recording,
)
from routecast.lab.watch import _deferral as deferral_module

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(not Path("/sys/kernel/btf/vmlinux").exists(), reason="the kernel has no type information (BTF)"),
]

FRAMES = 2000
SEND = """
import errno, socket, sys, time
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((sys.argv[1], 0))
count, gap_s = int(sys.argv[2]), float(sys.argv[3])
plain = b"\\xff" * 6 + b"\\x02" * 6 + b"\\x88\\xb5" + bytes(46)
# IPv4 and UDP, so that the queue is chosen by the flow; ports 1000 and on.
head = b"\\xff" * 6 + b"\\x02" * 6 + bytes.fromhex("0800450000200000000040116ad90a0000010a000002")
flows = [head + (1000 + port).to_bytes(2, "big") + bytes.fromhex("0007000c0000") + bytes(22) for port in range(32)]
frames = flows if len(sys.argv) > 4 else [plain]
begin = time.monotonic()
for number in range(count):
    while time.monotonic() < begin + number * gap_s:
        pass
    while True:
        try:
            wire.send(frames[number % len(frames)])
            break
        except OSError as problem:
            if problem.errno != errno.ENOBUFS:  # the ring is full: its thread waits for a core
                raise
"""
HOLD = """
import sys, time
from routecast.lab.watch import Deferral, instances
one = instances(sys.argv[1], "in")[0]
with Deferral(sys.argv[1], "in", one, limit_s=20.0) as deferral:
    deferral.wait(1_000_000)
    print("set", flush=True)
    time.sleep(60.0)
"""


@pytest.fixture
def wire() -> Iterator[str]:
    """A namespace with an interface ``in`` whose NAPI instance a kernel thread polls; its peer is ``out``."""
    with veth(queues=1) as name:
        yield name


@pytest.fixture
def two_queues() -> Iterator[str]:
    """The same with two receive queues, and a thread each."""
    with veth(queues=2) as name:
        yield name


@contextmanager
def veth(queues: int) -> Iterator[str]:
    name = f"rcw{os.getpid()}"
    run_command(["ip", "netns", "add", name])
    try:
        # No packets but the test's own: IPv6 sends some as soon as an interface is up.
        run_command(netns.command_inside(name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1"), check=False)
        run_command(netns.command_inside(name, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"), check=False)
        both = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        run_command(["ip", "-n", name, "link", "add", "in", *both, "type", "veth", "peer", "name", "out", *both])
        # GRO gives a veth interface a NAPI instance, which frames pass only from a peer that does not segment itself.
        run_command(netns.command_inside(name, "ethtool", "-K", "in", "gro", "on"))
        run_command(netns.command_inside(name, "ethtool", "-K", "out", "tso", "off", "gso", "off"))
        for interface in ("in", "out"):
            run_command(["ip", "-n", name, "link", "set", interface, "up"])
        run_command(netns.command_inside(name, "sh", "-c", "echo 1 > /sys/class/net/in/threaded"))
        yield name
    finally:
        run_command(["ip", "netns", "del", name], check=False)


def settings(name: str) -> tuple[int, int]:
    (one,) = instances(name, "in")
    return one.settings


def send(name: str, count: int, gap_s: float, *more: str) -> subprocess.Popen[bytes]:
    command = netns.command_inside(name, sys.executable, "-c", SEND, "out", str(count), str(gap_s), *more)
    return subprocess.Popen(command)


@contextmanager
def holder(name: str) -> Iterator[subprocess.Popen[str]]:
    """A process that lets packets gather."""
    with subprocess.Popen([sys.executable, "-c", HOLD, name], stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "set\n"
            yield started
        finally:
            started.kill()


def guardians(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]


def wait_until(name: str, wanted: tuple[int, int]) -> None:
    until_s = time.monotonic() + 10.0
    while settings(name) != wanted and time.monotonic() < until_s:
        time.sleep(0.01)
    assert settings(name) == wanted


def test_a_look_counts_every_packet_that_came_in(wire: str) -> None:
    senders: list[subprocess.Popen[bytes]] = []

    def begin(share: float) -> None:
        if not senders:
            senders.append(send(wire, FRAMES, 100e-6))

    try:
        seen = watch("in", netns=wire, duration_s=6.0, on_progress=begin)
        assert senders[0].poll() == 0, "the sender had time enough"
    finally:
        senders[0].kill()
        senders[0].wait()
    # The first poll, of a packet or some that came together, makes the thread known.
    assert FRAMES - 20 <= round(seen.rate_pps * seen.duration_s) <= FRAMES
    assert 1.0 <= seen.packets_per_poll <= 64.0
    assert seen.instances[0].thread_pid is not None
    assert settings(wire) == (0, 0)


def test_queues_are_told_apart_and_add_up(two_queues: str, tmp_path: Path) -> None:
    queues = instances(two_queues, "in")
    assert len({queue.thread_pid for queue in queues}) == len(queues) == 2
    recordings: list[LookRecord] = []
    sender = send(two_queues, 20_000, 200e-6, "flows")
    try:
        seen = watch("in", netns=two_queues, duration_s=0.5, probe=True, on_recording=recordings.append)
    finally:
        sender.kill()
        sender.wait()
    assert len(seen.cores) == 2
    assert sum(core.rate_pps for core in seen.cores) == pytest.approx(seen.rate_pps)
    assert {napi_id for core in seen.cores for napi_id in core.napi_ids} == {queue.id for queue in queues}
    assert seen.cores[0].rate_pps >= seen.cores[1].rate_pps > 0.0
    # Queues are probed one after the other, those of cores that may limit; all settings are as before.
    probed = [step.napi_id for step in seen.steps]
    assert probed == sorted(probed, key=probed.index)
    assert probed[0] == seen.cores[0].napi_ids[0]
    assert [queue.settings for queue in instances(two_queues, "in")] == [(0, 0), (0, 0)]
    # What was recorded answers the same.
    path = tmp_path / "look.json"
    write_recording(recordings[0], path)
    assert answered(read_recording(path)).to_json() == seen.to_json()


def test_a_probe_says_how_long_packets_wait_and_puts_the_settings_back(wire: str) -> None:
    asked: list[float] = []

    def consent(wait_s: float) -> bool:
        asked.append(wait_s)
        assert settings(wire) == (0, 0)
        return len(asked) > 1

    sender = send(wire, 20_000, 200e-6)
    try:
        declined = watch("in", netns=wire, duration_s=0.5, probe=True, consent=consent)
        assert "not probed: no consent" in declined.notes
        assert declined.steps == ()
        probed = watch("in", netns=wire, duration_s=0.5, probe=True, consent=consent)
    finally:
        sender.kill()
        sender.wait()
    assert all(0.0 < wait_s <= 5e-3 for wait_s in asked)
    assert probed.steps
    assert all(step.wait_s <= asked[1] + 1e-9 for step in probed.steps)
    assert probed.is_restored
    assert settings(wire) == (0, 0)


def test_settings_of_somebody_else_are_left_alone(wire: str) -> None:
    with holder(wire):
        with pytest.raises(EnvironmentProblem, match="packets gather there already"):
            Deferral(wire, "in", instances(wire, "in")[0], limit_s=1.0).__enter__()
        # What a living watch has set is not put back by another one.
        assert restore() == ()
        assert settings(wire) == (10, 1_000_000)
    wait_until(wire, (0, 0))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_guardian_puts_back_what_a_killed_watch_had_set(wire: str, number: signal.Signals) -> None:
    with holder(wire) as one:
        one.send_signal(number)
        one.wait()
    wait_until(wire, (0, 0))


def test_the_next_watch_puts_back_what_was_left_when_the_guardian_died_too(
    wire: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with holder(wire) as one:
        for pid in guardians(one.pid):
            os.kill(pid, signal.SIGKILL)
        one.kill()
        one.wait()
    assert settings(wire) == (10, 1_000_000)
    assert run(["watch", "--restore", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"restored": [f"in of {wire}"]}
    assert settings(wire) == (0, 0)
    assert not list(deferral_module._LEFT.glob(f"{wire}-*"))


def test_a_guardian_ends_a_deferral_that_lasts_too_long(wire: str) -> None:
    with Deferral(wire, "in", instances(wire, "in")[0], limit_s=0.3) as held:
        held.wait(500_000)
        assert settings(wire) == (10, 500_000)
        wait_until(wire, (0, 0))
        with pytest.raises(EnvironmentProblem, match="time of the probe is up"):
            held.wait(500_000)


def test_the_command_says_what_is_not_known_and_leaves_no_trace(wire: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "in", "--netns", wire, "--for", "200ms", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["saturation"]["pps"] is None
    assert answer["headroom_ratio"] is None
    assert "no packet came in" in answer["saturation"]["reason"]
    assert run(["watch", "in", "--netns", wire, "--for", "200ms"]) == 0
    assert "not known" in capsys.readouterr().out


def test_bad_input_is_named(wire: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "eth99", "--netns", wire]) == 3
    assert "there is no interface eth99 here, but lo" in capsys.readouterr().err
    assert run(["watch", "in", "--netns", "nowhere"]) == 3
    assert "nowhere" in capsys.readouterr().err
    assert run(["watch"]) == 2
    assert "name the interface" in capsys.readouterr().err
    assert run(["watch", "in", "--netns", wire, "--for", "0s"]) == 2
    with pytest.raises(QuantityProblem, match="give more than 0"):
        watch("in", netns=wire, duration_s=0.0)
    with pytest.raises(QuantityProblem, match="1 or more"):
        watch("in", netns=wire, ring_frames=0)
