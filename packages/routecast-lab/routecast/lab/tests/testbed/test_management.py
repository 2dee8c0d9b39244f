"""SNMP queries during a trial (RFC 2544 sec. 11.2): their bytes, answers, and an agent beside the device."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from testbed_fakes import FakeBed, FakeSnapshotReader, FakeTester

from routecast.errors import DeviceEnded
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark import plan_of, read_profile, run_benchmark
from routecast.lab.benchmark.bed_rig import BedRig
from routecast.lab.benchmark.streams import BROADCAST, MANAGEMENT, ROUTING_UPDATES, Stream, load_of
from routecast.lab.testbed.devices.frr import Frr, FrrOptions
from routecast.lab.testbed.management import SNMPD, ManagementQueries, answered_request_id, get_request, is_answered
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.netns import process_ids
from routecast.lab.testbed.opening import open_testbed

# RFC 3416 sec. 3 in BER: Response-PDU [2], request id 1, no error, sysUpTime.0 = TimeTicks 100.
ANSWER = bytes.fromhex("302702010104067075626c6963a21a020101020100020100300f300d06082b06010201010300430164")
PPS = 2_000.0


def test_an_answer_names_its_request_and_nothing_else_does() -> None:
    assert answered_request_id(ANSWER) == 1
    assert answered_request_id(get_request(1)) is None
    for length in range(len(ANSWER)):
        assert answered_request_id(ANSWER[:length]) is None
    with_error = ANSWER.replace(bytes.fromhex("020100020100"), bytes.fromhex("020105020100"))
    assert answered_request_id(with_error) is None


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 0x7FFF_FFFF])
def test_every_request_id_is_a_positive_integer_of_asn1(number: int) -> None:
    answer = get_request(number).replace(b"\xa0", b"\xa2", 1)
    assert answered_request_id(answer) == number


def test_no_agent_answers_where_none_is() -> None:
    assert not is_answered(None, "127.0.0.1") or shutil.which("snmpd")


def test_a_trial_without_the_queries_that_were_due_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)
    monkeypatch.setattr("routecast.lab.testbed.management._ANSWER_TIMEOUT_S", 0.0)
    with Measure(FakeBed(), tester=FakeTester()) as evaluator:  # type: ignore[arg-type]  # fakes
        trial: Trial = evaluator.trial(load_of(Stream(name="one"), 64, PPS), 0.5)
    with closing(ManagementQueries(None, "127.0.0.1")) as queries:
        queries.begin()
        queries.each_second()
        result = queries.annotate(trial, 60)
    assert result.invalid == ("the tester sent 1 of 60 SNMP queries",)
    assert "1 SNMP queries were sent to 127.0.0.1" in result.notes[-1]


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Path]:
    if not Path(SNMPD.program).exists():
        pytest.skip(f"needs {SNMPD}")
    file, name = tmp_path / "snmp.testbed.toml", f"m{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    file.write_text(f'name = "{name}"\nkind = "namespaces"\nwire = "100 Mbit/s"\nnetworks = 8\n', "utf-8")
    yield file
    namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout
    assert f"rc-{name}-" not in namespaces
    assert not (Path("/run/routecast") / name).exists()
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"/run/routecast/{name}/" not in running


@pytest.mark.wire
@pytest.mark.parametrize("device", ["linux", "nftables", "frr"])
def test_a_device_with_an_agent_answers_the_queries_of_a_trial(bed: Path, device: str) -> None:
    if (device == "nftables" and shutil.which("nft") is None) or (device == "frr" and Frr().missing()):
        pytest.skip(f"needs {device}")
    with open_testbed(bed, device=device, options={"snmp": True}, retries=5) as evaluator:
        netns, address = evaluator.bed.ports[0].netns, "198.18.1.1"
        for reset in evaluator.reset_kinds:
            evaluator.bed.device.restart(reset)
            assert is_answered(netns, address), f"after a reset of the {reset}"
        with closing(ManagementQueries(netns, address)) as queries:
            trial = evaluator.with_condition(queries).trial(load_of(Stream(name="one"), 64, PPS), 1.2)
    assert any("2 SNMP queries were sent" in note and "answered 2 (" in note for note in trial.notes)
    assert trial.forwarded_frames == trial.offered_frames


@pytest.mark.wire
def test_an_agent_that_is_gone_ends_the_measurement(bed: Path) -> None:
    with open_testbed(bed, device="linux", options={"snmp": True}) as evaluator:
        for process in process_ids(str(evaluator.bed.site.netns)):
            os.kill(process, 9)
        time.sleep(0.2)
        with pytest.raises(DeviceEnded, match="snmpd: ended by itself"):
            evaluator.trial(load_of(Stream(name="one"), 64, PPS), 0.2)


@pytest.mark.wire
def test_a_benchmark_with_all_conditions_has_no_deviation_of_their_sections(bed: Path) -> None:
    lacking = Frr(FrrOptions(routing="bgp", snmp=True)).missing()
    if lacking:
        pytest.skip(f"needs {', '.join(map(str, lacking))}")
    profile = read_profile("quick")
    profile = replace(profile, trial=replace(profile.trial, attempts=10))
    streams = [Stream(name=f"one{text}", modifier=text) for text in ("", BROADCAST, MANAGEMENT, ROUTING_UPDATES)]
    plan = plan_of(profile, procedures=["throughput"], streams=streams)
    result = run_benchmark(plan, BedRig(bed, device="frr", options={"snmp": "true"}))
    assert [stream.modifier for stream in result.setup.streams] == ["", BROADCAST, MANAGEMENT, ROUTING_UPDATES]
    assert not {deviation.section for deviation in result.compliance.deviations} & {"11.1", "11.2", "11.3", "13"}
    assert not {skipped.section for skipped in result.not_run} & {
        f"RFC 2544 sec. {n}" for n in ("11.1", "11.2", "11.3")
    }
