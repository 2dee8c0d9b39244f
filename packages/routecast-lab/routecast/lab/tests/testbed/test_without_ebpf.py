"""A machine whose kernel permits no eBPF: the tester takes sockets by itself, and says so wherever it matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import without_ebpf

from routecast.lab.testbed import netns

pytestmark = [
    pytest.mark.wire,
    pytest.mark.skipif(not without_ebpf.IS_KNOWN, reason="the number of bpf(2) is not known for this architecture"),
]

LAUNCHER = (sys.executable, without_ebpf.__file__)
REFUSED = "the kernel does not permit bpf(2)"


def run(
    *arguments: str, before: tuple[str, ...] = LAUNCHER, program: tuple[str, ...] = ("-m", "routecast")
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, *program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "COLUMNS": "400"},
    )


@pytest.fixture
def bed(tmp_path: Path) -> str:
    path = tmp_path / "bed.testbed.toml"
    path.write_text(f'name = "n{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"\nkind = "namespaces"\n')
    return str(path)


def measure(bed: str, *more: str) -> subprocess.CompletedProcess[str]:
    load = ("--load", "20 kpps", "--duration", "200 ms", "--retries", "7")
    return run("measure", "--testbed", bed, *load, "--json", *more)


@pytest.mark.parametrize("back_end", ["auto", "af_packet"])
def test_frames_are_sent_and_received_through_sockets_and_the_result_says_why(bed: str, back_end: str) -> None:
    done = measure(bed, "--dut", "linux", "--back-end", back_end)
    assert done.returncode in {0, 1}, done.stderr  # 1: a busy machine held the tester up, which its own checks found
    trial = json.loads(done.stdout)
    if done.returncode == 0:
        assert trial["offered_frames"] == 4_000
        assert trial["forwarded_frames"] > 0
    assert trial["offered_frames"] == trial["forwarded_frames"] + trial["dropped_frames"]  # S12
    tester = trial["facts"]["tester"]
    assert REFUSED in tester["no_ebpf"]
    assert [[sender["back_end"] for sender in port["send"]] for port in tester["ports"]] == [["af_packet"]] * 2
    assert [port["receive"]["back_end"] for port in tester["ports"]] == ["af_packet"] * 2
    (note,) = [note for note in trial["notes"] if "eBPF" in note]
    assert note.startswith("frames were sent through af_packet and received through af_packet")
    assert REFUSED in note


def test_a_back_end_that_needs_ebpf_is_refused_and_another_advised(bed: str) -> None:
    done = measure(bed, "--dut", "linux", "--back-end", "live")
    assert done.returncode == 3
    assert REFUSED in done.stderr
    assert "back end auto" in done.stderr


@pytest.mark.parametrize("device", [("--dut", "xdp"), ("--dut", "linux", "--dut-option", "slowdown=10")])
def test_a_device_that_needs_ebpf_is_no_defect_of_routecast(bed: str, device: tuple[str, ...]) -> None:
    done = measure(bed, *device, "--back-end", "af_packet")
    assert done.returncode == 3
    assert "needs eBPF" in done.stderr
    assert REFUSED in done.stderr


SHORT = """
import sys
from routecast.cli.run import run
from routecast.lab.testbed import selftest
selftest.FRAME_BYTES, selftest.RATES_PPS, selftest._MAXIMUM_S, selftest._FLOOR_S = (64,), (1e3,), 0.05, 0.05
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "program",
    [("-c", SHORT), pytest.param(("-m", "routecast"), marks=pytest.mark.thorough)],
    ids=["one size and rate", "whole"],
)
def test_the_selftest_measures_the_back_ends_that_are_left_and_says_why_others_are_not(
    bed: str, program: tuple[str, ...]
) -> None:
    done = run("testbed", "selftest", "--testbed", bed, "--json", program=program)
    result = json.loads(done.stdout)
    missing = {check["back_end"]: check["reason"] for check in result["checks"] if check["trial"] is None}
    assert set(missing) == {"live"}
    assert REFUSED in missing["live"]
    assert {check["back_end"] for check in result["checks"] if check["trial"]} == {"af_xdp", "af_packet", "auto"}
    assert REFUSED in result["facts"]["tester"]["no_ebpf"]


def test_a_selftest_without_a_row_is_no_success(bed: str) -> None:
    # Neither kind of socket either: the filter of sockets that systemd's RestrictAddressFamilies= makes.
    done = run("testbed", "selftest", "--testbed", bed, before=(*LAUNCHER, "--no-sockets"))
    assert done.returncode == 3
    assert "the tester cannot test itself" in done.stderr
    assert "AF_PACKET" in done.stderr


def test_the_devices_are_listed_with_the_back_ends_that_are_left() -> None:
    done = run("testbed", "devices")
    assert done.returncode == 0
    rows = {tuple(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert REFUSED in rows["live", "send"]
    assert REFUSED in rows["xdp", "receive"]
    assert "nothing" in rows["af_packet", "send"]
    assert "nothing" in rows["af_packet", "receive"]
    devices = {device["name"]: device["missing"] for device in json.loads(run("testbed", "devices", "--json").stdout)}
    assert [program["program"] for program in devices["xdp"] if program["why"]] == ["eBPF"]
    assert not any(program["why"] for program in devices["linux"])


def test_the_doctor_finds_the_back_ends_that_are_left() -> None:
    result = {finding["check"]: finding for finding in json.loads(run("doctor", "--json").stdout)["findings"]}[
        "back ends"
    ]
    assert result["state"] == "missing"
    usable, _, unusable = result["observation"].partition("; not ")
    assert "af_packet (send)" in usable
    assert "af_packet (receive)" in usable
    assert "live (send), xdp (receive)" in unusable
    assert REFUSED in unusable


@pytest.fixture
def wire() -> Iterator[str]:
    """A namespace with both ends of a veth pair, and nothing between them."""
    name = f"rc-caps{os.getpid() % 100_000}"
    commands = (
        f"ip netns add {name}",
        f"ip -n {name} link add g0 address 02:00:00:00:01:02 type veth peer name s0 address 02:00:00:00:02:02",
        f"ip -n {name} link set g0 up",
        f"ip -n {name} link set s0 up",
    )
    try:
        for command in commands:
            subprocess.run(command.split(), check=True)
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)
    assert name not in netns.names()


TRIAL = """
import json, sys
from routecast.lab import _lab
ports = [{"name": name, "interface": name} for name in ("g0", "s0")]
flow = {
    "source_mac": "02:00:00:00:01:02", "destination_mac": "02:00:00:00:02:02",
    "source_address": "198.18.1.2", "destination_address": "198.19.1.2",
    "source_port": 1024, "destination_port": 7,
}
stream = {"port": 0, "to_port": 1, "rate_pps": 20e3, "sizes": [{"bytes": 64}], "flows": [flow]}
with _lab.Tester(json.dumps({"ports": ports, "priority": 0})) as tester:
    request = {"duration_s": 0.1, "trial_id": 7, "wait_s": 0.05, "streams": [stream]}
    outcome = json.loads(tester.trial(json.dumps(request)))
    print(json.dumps({"stream": outcome["streams"][0], "facts": json.loads(tester.facts())}))
"""


def test_without_the_right_to_load_programs_frames_go_through_sockets(wire: str) -> None:
    # capabilities(7): CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, so all three go.
    done = subprocess.run(
        [
            "ip",
            "netns",
            "exec",
            wire,
            "setpriv",
            "--bounding-set=-bpf,-perfmon,-sys_admin",
            sys.executable,
            "-c",
            TRIAL,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["facts"]["no_ebpf"] == "eBPF cannot be used here: this process lacks CAP_BPF, CAP_PERFMON"
    assert [port["receive"]["back_end"] for port in result["facts"]["ports"]] == ["af_packet"] * 2
    stream = result["stream"]
    assert stream["received_frames"] > 0 or stream["late_frames"] > 0
    assert stream["sent_frames"] == stream["received_frames"] + stream["lost_frames"]
