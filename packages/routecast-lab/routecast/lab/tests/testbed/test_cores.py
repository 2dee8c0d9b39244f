"""Devices on several cores: which are chosen, what cannot be given, and receive packet steering."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import device_chain
import pytest
from device_chain import Chain, udp4

from routecast.errors import EnvironmentProblem, FileProblem, QuantityProblem
from routecast.lab.testbed import placement
from routecast.lab.testbed.core_counts import device_options, possible_counts
from routecast.lab.testbed.devices import make_device
from routecast.lab.testbed.devices.interfaces import steer_packets
from routecast.lab.testbed.dut_host import DeviceSite
from routecast.lab.testbed.reading import read_testbed


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(placement, "_CPU_FOLDER", tmp_path)  # no core has a sibling


@pytest.mark.usefixtures("eight_cores")
def test_a_device_of_several_cores_never_gets_those_of_the_tester() -> None:
    assert placement.assign_cores().device_cores == (7,)
    assert placement.assign_cores(cores=3).device_cores == (7, 6, 5)
    assignment = placement.assign_cores(tester=7, receiver=2, dut=1, cores=6)
    assert assignment.device_cores == (1, 6, 5, 4, 3, 0)
    with pytest.raises(EnvironmentProblem, match=r"8 cores for the device: routecast may use 8 .* at most 7"):
        placement.assign_cores(cores=8)


@pytest.mark.usefixtures("eight_cores")
def test_cores_beside_the_generators_sibling_come_first(tmp_path: Path) -> None:
    for core in range(8):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n")
    assert placement.assign_cores(cores=6).device_cores == (7, 6, 5, 3, 2, 1)
    last = placement.assign_cores(cores=7)
    assert last.device_cores[-1] == 4
    assert last.notes == ("generator (core 0) and device (core 4) share a physical core: each slows the other down",)


@pytest.mark.usefixtures("eight_cores")
def test_numbers_of_cores_that_cannot_be_given_are_reported_before_anything_is_measured() -> None:
    file = read_testbed("namespaces", device="linux")
    assert possible_counts(file, (1, 2, 4)) == ((1, 2, 4), ())
    possible, refusals = possible_counts(file, (4, 16))
    assert possible == (4,)
    assert refusals[0].startswith("16 cores for the device: routecast may use 8 cores here")
    with pytest.raises(EnvironmentProblem, match="16 cores for the device"):
        possible_counts(file, (16,))
    assert device_options(file, 4) == {"cores": 4}


def test_a_device_that_forwards_on_one_core_takes_no_further_ones(tmp_path: Path) -> None:
    bridge = read_testbed("namespaces", device="bridge")
    assert possible_counts(bridge, (1,)) == ((1,), ())
    assert device_options(bridge, 1) == {}
    with pytest.raises(QuantityProblem, match="bridge forwards on one core here; several can be given to frr, linux"):
        possible_counts(bridge, (1, 2))
    with_option = read_testbed("namespaces", device="linux", options={"cores": "1"})
    with pytest.raises(QuantityProblem, match="the option cores = 1: give one of them"):
        possible_counts(with_option, (1,))
    bench = tmp_path / "bench.testbed.toml"
    bench.write_text(
        'name = "bench"\nkind = "interfaces"\n'
        '[[port]]\ninterface = "eth1"\ndut_mac = "02:00:00:00:01:01"\n'
        '[[port]]\ninterface = "eth2"\ndut_mac = "02:00:00:00:02:01"\n'
    )
    external = read_testbed(bench)
    assert possible_counts(external, (4,)) == ((4,), ())
    with pytest.raises(QuantityProblem, match="write the one number that it has now"):
        possible_counts(external, (1, 2))


def test_known_work_of_one_core_cannot_be_spread() -> None:
    with pytest.raises(FileProblem, match="slowdown: is spent on the core that receives"):
        make_device("linux", {"cores": 2, "slowdown": 100})


def test_the_mask_of_more_than_32_cores_has_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceSite, "run", lambda *_, **__: "")
    site = DeviceSite(netns="none", ports=device_chain.PORTS, cpu=None, priority=0, folder=Path())
    assert steer_packets(site, (0, 33))[0] == "echo 00000002,00000001 > /sys/class/net/d0/queues/rx-0/rps_cpus"


@pytest.fixture
def chain() -> Iterator[Chain]:
    if shutil.which("ethtool") is None:
        pytest.skip("needs ethtool: apt install ethtool")
    with device_chain.chain() as namespaces:
        yield namespaces


@pytest.mark.wire
def test_receive_packet_steering_is_set_on_the_devices_ports_and_every_flow_is_forwarded(chain: Chain) -> None:
    first, *more = sorted(os.sched_getaffinity(0))[:2]
    if not more:
        pytest.skip("needs two cores")
    device = make_device("linux", {"cores": 2})
    site = dataclasses.replace(chain.site, cpu=first, more_cpus=tuple(more))
    device.start(site)
    try:
        for _ in range(2):
            for interface in ("d0", "d1"):
                mask = site.run("cat", f"/sys/class/net/{interface}/queues/rx-0/rps_cpus")
                assert int(mask.replace(",", ""), 16) == 1 << first | 1 << more[0]
            frames = [udp4(number) for number in range(100)]
            assert len(chain.forward(frames)) == len(frames)
            device.restart("link")
        assert any("rps_cpus" in str(line) for line in device.facts()["configuration"])  # type: ignore[attr-defined]
    finally:
        device.stop()
