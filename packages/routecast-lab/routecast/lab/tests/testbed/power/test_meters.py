"""The other meters: energy events, IPMI, logs; which one is found; passwords; the interface itself."""

from __future__ import annotations

import datetime
import math
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from power_fakes import Clock, FakeMeter, FakeSource
from rapl_trees import AMD, write_tree

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem
from routecast.lab.testbed.meters import (
    CsvMeter,
    IpmiSource,
    Metering,
    MeterSettings,
    PerfSource,
    PowerMeter,
    PowerReading,
    SampledMeter,
    choose_meter,
    describe_no_power,
    find_meters,
    meter_of,
)
from routecast.lab.testbed.meters._ipmi import parse_dcmi
from routecast.lab.testbed.meters._perf import energy_events, open_event
from routecast.lab.testbed.meters._web import Credentials, credentials_for

SCALE = "2.3283064365386962890625e-10"
"""2^-32 J: the unit of all energy events (arch/x86/events/rapl.c)."""


def write_pmu(root: Path, events: Mapping[str, str], cpumask: str = "0") -> Path:
    """Write /sys/bus/event_source/devices/power as arch/x86/events/rapl.c shows it."""
    pmu = root / "sys/bus/event_source/devices/power"
    (pmu / "events").mkdir(parents=True)
    (pmu / "type").write_text("23\n")
    (pmu / "cpumask").write_text(f"{cpumask}\n")
    for event, number in events.items():
        (pmu / "events" / event).write_text(f"event={number}\n")
        (pmu / "events" / f"{event}.scale").write_text(f"{SCALE}\n")
        (pmu / "events" / f"{event}.unit").write_text("Joules\n")
    return root


CLIENT = {
    "energy-cores": "0x01",
    "energy-pkg": "0x02",
    "energy-ram": "0x03",
    "energy-gpu": "0x04",
    "energy-psys": "0x05",
}


class Counters:
    """Files in place of the kernel's counters."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[tuple[int, int, int]] = []

    def __call__(self, kind: int, number: int, cpu: int) -> int:
        self.opened.append((kind, number, cpu))
        path = self.folder / f"{number}-{cpu}"
        path.write_bytes(struct.pack("=q", 0))
        # Each read of a perf event starts anew; that of a pipe end or a file goes on, so hand out one that starts anew.
        return os.open(path, os.O_RDONLY)

    def set_j(self, number: int, cpu: int, energy_j: float) -> None:
        count = round(energy_j / float(SCALE))
        (self.folder / f"{number}-{cpu}").write_bytes(struct.pack("=q", count))


@pytest.fixture
def rereading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file be read from its start each time, as a perf event is."""
    monkeypatch.setattr("routecast.lab.testbed.meters._perf.os.read", lambda handle, size: os.pread(handle, size, 0))


@pytest.mark.usefixtures("rereading")
def test_energy_events_of_each_package_add_up_and_the_platform_counts_once(tmp_path: Path) -> None:
    root, counters, clock = write_pmu(tmp_path, CLIENT, "0,18"), Counters(tmp_path), Clock()
    source = PerfSource(root, opener=counters)
    with Metering(SampledMeter(source, interval_s=math.inf, clock=clock)) as metered:
        assert (23, 2, 0) in counters.opened
        assert (23, 2, 18) in counters.opened
        assert [cpu for _, number, cpu in counters.opened if number == 5] == [0]
        clock.wait(4.0)
        for number, cpu, energy_j in ((2, 0, 200.0), (2, 18, 100.0), (1, 0, 150.0), (3, 0, 20.0), (5, 0, 500.0)):
            counters.set_j(number, cpu, energy_j)
    reading = metered.reading
    assert (reading.scope, reading.meter) == ("rapl:package", "perf")
    assert reading.mean_w == pytest.approx(75.0, rel=1e-9)
    assert {zone.scope for zone in reading.zones if zone.is_counted} == {"rapl:package"}
    assert next(zone.mean_w for zone in reading.zones if zone.scope == "rapl:psys") == pytest.approx(125.0)


def test_energy_events_that_the_kernel_refuses_say_what_to_do(tmp_path: Path) -> None:
    def refuse(kind: int, number: int, cpu: int) -> int:
        raise OSError(13, "Permission denied")

    source = PerfSource(write_pmu(tmp_path, {"energy-pkg": "0x02"}), opener=refuse)
    with pytest.raises(EnvironmentProblem, match=r"CAP_PERFMON, or after sysctl -w kernel\.perf_event_paranoid=0"):
        source.open()


def test_energy_events_are_read_from_their_description(tmp_path: Path) -> None:
    assert energy_events(write_pmu(tmp_path, {"energy-pkg": "0x02"})) == {"energy-pkg": (2, 2.0**-32)}
    assert energy_events(tmp_path / "nowhere") == {}
    (tmp_path / "sys/bus/event_source/devices/power/events/energy-pkg.unit").write_text("Wh\n")
    with pytest.raises(EnvironmentProblem, match="in Joules is known here"):
        energy_events(tmp_path)
    with pytest.raises(EnvironmentProblem, match="no event for rapl:dram"):
        PerfSource(write_pmu(tmp_path / "b", {"energy-pkg": "0x02"}), covers="dram").open()


def test_the_system_call_opens_a_counter_that_the_kernel_has_everywhere() -> None:
    """A software event, the CPU clock (type 1, number 0 in linux/perf_event.h), goes the same way as energy."""
    try:
        handle = open_event(1, 0, 0)
    except OSError as problem:
        pytest.skip(f"the kernel refuses: {problem}")
    try:
        first, second = (struct.unpack("=q", os.read(handle, 8))[0] for _ in range(2))
    finally:
        os.close(handle)
    assert 0 <= first < second


DCMI = """
    Instantaneous power reading:                   192 Watts
    Minimum during sampling period:                  4 Watts
    Maximum during sampling period:                410 Watts
    Average power reading over sample period:      188 Watts
    IPMI timestamp:                           Sun Mar  1 12:00:00 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""
"""As ipmitool 1.8.18 prints it (lib/ipmi_dcmi.c, ipmi_print_dcmi_power_reading)."""


def test_what_ipmitool_prints_is_watts() -> None:
    assert parse_dcmi(DCMI) == 192.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DCMI.replace("activated", "deactivated"), "ipmitool dcmi power activate"),
        (DCMI.replace("192", "  0"), "no sensor"),
        ("Could not open device at /dev/ipmi0 or /dev/ipmi/0: No such file", "modprobe ipmi_devintf"),
        ("DCMI request failed because: Invalid command (c1)", "redfish:https://"),
        ("", "has no output"),
    ],
)
def test_a_controller_that_tells_no_power_says_why(text: str, words: str) -> None:
    with pytest.raises(EnvironmentProblem, match=words):
        parse_dcmi(text)


def test_the_password_of_a_controller_is_not_on_the_command_line() -> None:
    runs: list[tuple[Sequence[str], Mapping[str, str]]] = []

    def run(command: Sequence[str], environment: Mapping[str, str]) -> str:
        runs.append((command, environment))
        return DCMI

    source = IpmiSource("bmc", credentials=Credentials(user="admin", password="hunter2"), run=run)
    assert source.read() == {"server": 192.0}
    command, environment = runs[0]
    assert "hunter2" not in " ".join(command)
    assert environment == {"IPMI_PASSWORD": "hunter2"}
    assert IpmiSource(run=run).read() == {"server": 192.0}
    assert runs[1] == (("ipmitool", "dcmi", "power", "reading"), {})


def test_a_missing_ipmitool_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="apt install ipmitool"):
        IpmiSource().read()


def from_log(path: Path, begin_s: float, end_s: float, more: str, wall_s: float = 1_772_366_400.0) -> PowerReading:
    """Meter a log to which lines are appended; the clock of trials shows 0 when it is ``wall_s``."""
    clock = Clock(begin_s)
    meter = CsvMeter(path, interval_s=math.inf, wait_s=0.0, clock=clock, wall_clock=lambda: clock.now_s + wall_s)
    assert isinstance(meter, PowerMeter)
    with Metering(meter) as metered:
        clock.now_s = end_s
        with path.open("a") as file:
            file.write(more)
    return metered.reading


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("time,watts\n", "{unix:.1f},{w}\n"),
        ("outlet;power_w;timestamp\n", "3;{w};{iso}\n"),
        ("", "{unix:.1f},{w}\n"),
        ("# a log\ntime_s\tpower\n", "{iso}Z\t{w}\n"),
    ],
)
def test_a_log_is_integrated_along_its_own_times(tmp_path: Path, head: str, row: str) -> None:
    wall_s = 1_772_366_400.0

    def line(at_s: float, watts: float) -> str:
        instant = datetime.datetime.fromtimestamp(wall_s + at_s, datetime.UTC).replace(tzinfo=None)
        return row.format(unix=wall_s + at_s, iso=instant.isoformat(), w=watts)

    path = tmp_path / "pdu.csv"
    path.write_text(head + line(-10, 999) + line(0, 100))
    reading = from_log(path, 1.0, 4.0, line(2, 100) + line(3, 300) + line(4, 300))
    # 1 s at 100 W, a slope to 300 W, 1 s at 300 W
    assert reading.energy_j == pytest.approx(100 + 200 + 300)
    assert (reading.metered_s, reading.max_w, reading.scope) == (pytest.approx(3.0), 300.0, "pdu")
    assert reading.notes == ()


def test_a_log_of_a_clock_of_its_own_has_its_newest_row_now(tmp_path: Path) -> None:
    path = tmp_path / "pdu.csv"
    path.write_text("time_s,power_w\n16,100\n17,100\n")
    reading = from_log(path, 5.0, 7.0, "18,200\n19,200\n")
    assert reading.energy_j == pytest.approx(150 + 200)
    assert "of another clock" in reading.notes[0]


def test_bad_lines_of_a_log_are_counted_and_a_half_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "pdu.csv"
    path.write_text("time,watts\n")
    t = 1_772_366_400
    more = f"{t + 1},50\n{t + 2},nan\nrubbish\n{t + 1},70\n{t + 3},50\n{t + 4},9"
    reading = from_log(path, 0.0, 3.0, more)
    assert (reading.mean_w, reading.max_w) == (50.0, 50.0)
    assert "3 lines of" in reading.notes[-1]


def test_a_log_that_stands_still_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pdu.csv"
    path.write_text("time,watts\n1772366300,50\n")
    reading = from_log(path, 0.0, 3.0, "")
    assert math.isnan(reading.mean_w)
    assert "newest row is 103 s old" in reading.notes[0]


def test_a_log_that_begins_anew_or_goes_away_is_reported(tmp_path: Path) -> None:
    path, clock = tmp_path / "pdu.csv", Clock(0.0)
    path.write_text("time,watts\n" + "1772366300,50\n" * 9)
    meter = CsvMeter(path, interval_s=math.inf, wait_s=0.0, clock=clock, wall_clock=lambda: clock.now_s + 1_772_366_400)
    meter.start()
    clock.wait(2.0)
    path.write_text("time,watts\n1772366401,50\n1772366402,70\n")
    reading = meter.stop()
    assert "restarted meanwhile" in reading.notes[0]
    assert reading.between(1.0, 2.0).mean_w == 60.0
    meter.start()
    path.unlink()
    assert "could not be read any more" in meter.stop().notes[0]


@pytest.mark.parametrize("text", ["volts,amperes\n1,2\n", "a line of words\n", "1772366400\n"])
def test_a_file_that_is_no_log_of_watts_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(EnvironmentProblem, match="give the columns time and watts"):
        CsvMeter(path).start()
    with pytest.raises(EnvironmentProblem, match="No such file"):
        CsvMeter(tmp_path / "absent.csv").start()


def test_here_is_what_is_here_in_order_of_preference(tmp_path: Path) -> None:
    result = find_meters(write_tree(tmp_path, AMD))
    names = ["rapl", "perf", "ipmi", "redfish:URL", "csv:FILE", "http:URL"]
    assert [entry.name for entry in result] == names
    assert [entry.is_readable for entry in result] == [True] + 5 * [False]
    assert all(entry.why_not for entry in result[1:])
    chosen, why = choose_meter("auto", root=tmp_path)
    assert chosen is not None
    assert (chosen.name, why) == ("rapl", "")


def test_where_there_is_none_each_absent_meter_says_why(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("flags\t: hypervisor\n")
    chosen, why = choose_meter("auto", root=tmp_path)
    assert chosen is None
    assert why == describe_no_power(find_meters(tmp_path))
    assert why.startswith("no power here, because: rapl: this is a virtual machine")
    assert "perf: this is a virtual machine" in why
    assert "ipmi:" in why


def test_energy_events_of_a_recorded_machine_are_not_opened_on_this_machine(tmp_path: Path) -> None:
    perf = find_meters(write_pmu(tmp_path, {"energy-pkg": "0x02"}))[1]
    assert (perf.name, perf.is_readable) == ("perf", False)
    assert "files of another machine" in perf.why_not


def test_a_controller_is_found_by_running_ipmitool(tmp_path: Path) -> None:
    result = find_meters(tmp_path, run=lambda command, environment: DCMI)
    assert [entry.name for entry in result if entry.is_readable] == ["ipmi"]


@pytest.mark.parametrize(
    ("text", "name", "scope"),
    [
        ("rapl", "rapl", "rapl:package"),
        ("rapl:package+dram", "rapl:package+dram", "rapl:package+dram"),
        ("perf:psys", "perf:psys", "rapl:psys"),
        ("ipmi", "ipmi", "bmc"),
        ("redfish:https://bmc", "redfish:https://bmc", "bmc"),
        ("csv:a.csv", "csv:a.csv", "pdu"),
        ("https://plug/x#/w", "https://plug/x#/w", "pdu"),
        ("http:http://plug/x", "http://plug/x", "pdu"),
    ],
)
def test_meters_have_the_names_that_people_write(text: str, name: str, scope: str) -> None:
    meter = meter_of(text)
    assert isinstance(meter, PowerMeter)
    assert (meter.name, meter.scope) == (name, scope)


@pytest.mark.parametrize(
    ("text", "settings", "words"),
    [
        ("rappl", MeterSettings(), 'did you mean "rapl"'),
        ("redfish:", MeterSettings(), "redfish:https://HOST"),
        ("csv", MeterSettings(), "write csv:FILE"),
        ("rapl:gpu", MeterSettings(), "allowed are rapl:package"),
        ("perf:gpu", MeterSettings(), "allowed are perf:package"),
        ("rapl", MeterSettings(scope="wall"), "has its own scope"),
    ],
)
def test_what_is_no_meter_is_refused(text: str, settings: MeterSettings, words: str) -> None:
    with pytest.raises(FileProblem, match=words):
        meter_of(text, settings)


def test_passwords_come_from_the_environment_or_a_netrc_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    nobody: dict[str, str] = {}
    assert not credentials_for("bmc", environment=nobody, home=tmp_path)
    variables = {"ROUTECAST_POWER_USER": "a", "ROUTECAST_POWER_PASSWORD": "b"}
    assert credentials_for("bmc", environment=variables) == Credentials(user="a", password="b")
    assert credentials_for("bmc", environment={**variables, "ROUTECAST_POWER_TOKEN": "t"}).token == "t"
    with pytest.raises(EnvironmentProblem, match="or neither"):
        credentials_for("bmc", environment={"ROUTECAST_POWER_USER": "a"})
    path = tmp_path / ".netrc"
    path.write_text("machine bmc login admin password hunter2\n")
    path.chmod(0o600)
    assert credentials_for("bmc", environment=nobody, home=tmp_path).password == "hunter2"
    assert not credentials_for("other", environment=nobody, home=tmp_path)
    path.chmod(0o644)
    with pytest.raises(EnvironmentProblem, match="chmod 600"):
        credentials_for("bmc", environment=nobody, home=tmp_path)
    path.write_text("machine bmc login admin passwort hunter2\n")
    with pytest.raises(EnvironmentProblem, match="netrc") as caught:
        credentials_for("bmc", environment={"NETRC": str(path)})
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(Credentials(user="admin", password="hunter2"))


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1e4)), min_size=1, max_size=20),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_the_parts_of_an_interval_add_up_to_the_whole(
    steps: list[tuple[float, float]], first: float, second: float
) -> None:
    clock, watts = Clock(0.0), iter([0.0, *(power_w for _, power_w in steps), 0.0])
    meter = SampledMeter(FakeSource(lambda: next(watts)), interval_s=math.inf, clock=clock)
    with Metering(meter) as metered:
        for time_s, _ in steps:
            clock.wait(time_s)
            meter.sample()
        clock.wait(1.0)
    whole = metered.reading
    a, b = sorted((first * clock.now_s, second * clock.now_s))
    parts = [whole.between(0.0, a), whole.between(a, b), whole.between(b, clock.now_s)]
    assert math.fsum(part.energy_j for part in parts) == pytest.approx(whole.energy_j, rel=1e-9, abs=1e-9)
    assert math.fsum(part.metered_s for part in parts) == pytest.approx(clock.now_s)
    assert whole.min_w <= whole.mean_w * (1 + 1e-12) + 1e-12
    assert whole.mean_w <= whole.max_w * (1 + 1e-12) + 1e-12


def test_a_meter_that_fails_at_the_start_is_closed_and_can_be_started_again() -> None:
    answers = iter([EnvironmentProblem("not yet"), 5.0, 5.0])

    def watts() -> float:
        answer = next(answers)
        if isinstance(answer, EnvironmentProblem):
            raise answer
        return answer

    source, clock = FakeSource(watts), Clock()
    meter = SampledMeter(source, interval_s=math.inf, clock=clock)
    with pytest.raises(EnvironmentProblem, match="not yet"):
        meter.start()
    assert not source.is_open
    with Metering(meter) as metered:
        clock.wait(2.0)
        with pytest.raises(EnvironmentProblem, match="before its context has ended"):
            _ = metered.reading
    assert metered.reading.energy_j == 10.0
    assert not source.is_open


def test_a_reading_as_json_has_no_nan_and_no_spans() -> None:
    document = FakeMeter(((0.0, 2.0, 50.0),)).stop().to_json()
    assert document["mean_w"] == 50.0
    assert "spans" not in document
    assert FakeMeter(()).stop().to_json()["mean_w"] is None


def test_an_interval_between_samples_is_a_time() -> None:
    with pytest.raises(ModelProblem, match="a time > 0 s"):
        SampledMeter(FakeSource(lambda: 1.0), interval_s=0.0)
    with pytest.raises(ModelProblem, match="a time > 0 s"):
        CsvMeter(Path("x"), interval_s=-1.0)
