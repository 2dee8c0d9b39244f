"""A device that learns its routes from BGP neighbours in the tester's namespaces (RFC 2544 sec. 13 and 11.3)."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from testbed_fakes import FakeBed, FakeSnapshotReader, FakeTester

from routecast.errors import DeviceEnded, EnvironmentProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import plan_of, read_profile, run_benchmark
from routecast.lab.benchmark.bed_rig import BedRig
from routecast.lab.benchmark.streams import ROUTING_UPDATES, Stream, load_of
from routecast.lab.testbed.devices.frr import Frr, FrrOptions, RoutingUpdates
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.netns import process_ids
from routecast.lab.testbed.opening import open_testbed
from routecast.lab.testbed.state import BedState

PPS = 2_000.0


def trial_of(load: Any) -> Trial:
    with Measure(FakeBed(), tester=FakeTester()) as evaluator:  # type: ignore[arg-type]  # fakes
        return evaluator.trial(load, 0.5)


class FakeNeighbour:
    """Records whether it announces or withdraws the network."""

    def __init__(self) -> None:
        self.states: list[bool] = []

    def announce_phantom(self, *, is_announced: bool) -> None:
        self.states.append(is_announced)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.devices.frr._ARRIVAL_TIMEOUT_S", 0.0)
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)


@pytest.mark.usefixtures("quick")
def test_updates_alternate_between_two_states_and_say_what_arrived() -> None:
    neighbour = FakeNeighbour()
    condition = RoutingUpdates(
        neighbour,  # type: ignore[arg-type]  # a fake
        lambda: 10 + len(neighbour.states),
        lambda: {"192.0.2.0/24"} if neighbour.states[-1] else set(),
    )
    condition.begin()
    for _ in range(3):
        condition.each_second()
    assert neighbour.states == [True, False, True]
    trial = condition.annotate(trial_of(load_of(Stream(name="one"), 64, PPS)), 3)
    assert (
        "3 routing updates were sent, one each second, and the device received 3; its table followed" in trial.notes[-1]
    )
    assert not trial.invalid


@pytest.mark.usefixtures("quick")
def test_a_trial_without_the_updates_that_were_due_is_no_result() -> None:
    neighbour = FakeNeighbour()
    condition = RoutingUpdates(neighbour, lambda: 0, set)  # type: ignore[arg-type]  # a fake
    condition.begin()
    condition.each_second()
    trial = condition.annotate(trial_of(load_of(Stream(name="one"), 64, PPS)), 60)
    assert trial.invalid == ("the neighbour sent 1 of 60 routing updates",)
    assert "received 0; its table did not follow (192.0.2.0/24)" in trial.notes[-1]


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Path]:
    lacking = Frr(FrrOptions(routing="bgp")).missing()
    if lacking:
        pytest.skip(f"needs {', '.join(map(str, lacking))}")
    file, name = tmp_path / "bgp.testbed.toml", f"g{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    file.write_text(
        f'name = "{name}"\nkind = "namespaces"\nwire = "100 Mbit/s"\nnetworks = 8\n[dut]\ndevice = "frr"\n', "utf-8"
    )
    yield file
    namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"rc-{name}-" not in namespaces
    assert not (Path("/run/routecast") / name).exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"/run/routecast/{name}/" not in running


def routes(netns: str, *family: str) -> list[str]:
    command = ["ip", "-n", netns, *family, "route", "show", "proto", "bgp"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.wire
def test_a_device_learns_its_routes_from_neighbours_and_forwards_by_them(bed: Path) -> None:
    with open_testbed(bed, options={"routing": "bgp"}, retries=5) as evaluator:
        netns = evaluator.bed.site.netns
        assert netns is not None
        assert len(routes(netns)) == len(routes(netns, "-6")) == 2 * 7
        state = BedState.read(evaluator.bed.name)
        assert state is not None
        recorded = {process["pid"] for process in state.processes}
        for port in evaluator.bed.ports:
            assert port.netns is not None
            assert set(process_ids(port.netns)) <= recorded, "a killed run leaves nothing that the next does not find"
            assert process_ids(port.netns)
        for stream in (Stream(name="one"), Stream(name="8", networks=8), Stream(name="6", protocol="IPv6")):
            view = evaluator.with_ip(6 if stream.protocol == "IPv6" else 4).over_networks(stream.networks)
            trial = view.trial(load_of(stream, 84, PPS), 0.2)
            assert trial.forwarded_frames == trial.offered_frames == PPS * 0.2
        for reset in evaluator.reset_kinds:
            evaluator.bed.device.restart(reset)
            assert len(routes(netns)) == 2 * 7, f"after a reset of the {reset}"


@pytest.mark.wire
def test_a_neighbour_that_is_gone_fails_the_trial(bed: Path) -> None:
    with open_testbed(bed, options={"routing": "bgp"}) as evaluator:
        device, gen = evaluator.bed.device, evaluator.bed.ports[0].netns
        assert isinstance(device, Frr)
        assert gen is not None
        for process in process_ids(gen):
            os.kill(process, 9)
        time.sleep(0.2)
        with pytest.raises(DeviceEnded, match="bgpd: ended by itself with signal 9"):
            evaluator.trial(load_of(Stream(name="one"), 64, PPS), 0.2)


@pytest.mark.wire
def test_a_route_that_is_not_learnt_fails_the_trial(bed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.devices.frr._UPDATE_TIMEOUT_S", 0.5)
    with open_testbed(bed, options={"routing": "bgp"}) as evaluator:
        device = evaluator.bed.device
        assert isinstance(device, Frr)
        device._neighbours[0]._daemons.run_bgpd(
            "configure terminal", "router bgp 64512", "no neighbor 198.18.1.1", "end"
        )
        with pytest.raises(EnvironmentProblem, match=r"have no route, the first is .*\(RFC 2544 sec. 13\)"):
            evaluator.trial(load_of(Stream(name="one"), 64, PPS), 0.2)


@pytest.mark.wire
def test_a_bed_without_networks_behind_its_links_has_nothing_to_learn(bed: Path) -> None:
    bed.write_text(bed.read_text("utf-8").replace("networks = 8", "networks = 1"), "utf-8")
    with pytest.raises(EnvironmentProblem, match="routing = bgp needs"), open_testbed(bed, options={"routing": "bgp"}):
        pass


@pytest.mark.wire
def test_a_benchmark_with_routing_updates_has_no_deviation_of_their_sections(bed: Path) -> None:
    profile = read_profile("quick")
    profile = replace(profile, trial=replace(profile.trial, attempts=10))
    streams = [Stream(name="plain"), Stream(name="updates", modifier=ROUTING_UPDATES)]
    result = run_benchmark(plan_of(profile, procedures=["throughput"], streams=streams), BedRig(bed))
    deviations = {deviation.section for deviation in result.compliance.deviations}
    assert not deviations & {"11.3", "13"}
    assert {"11.1", "23 a and b"} <= deviations
    device_records = [record for record in result.trials if record.procedure != "floor"]
    notes = [record.trial.notes for record in device_records if record.stream == "updates"]
    assert notes
    assert all(any("routing updates were sent" in note for note in trial_notes) for trial_notes in notes)
