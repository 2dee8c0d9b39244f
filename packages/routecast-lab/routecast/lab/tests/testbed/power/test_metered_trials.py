"""Watts on trials: which part of the meter's interval counts, and what a frame and a bit cost."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from power_fakes import FakeMeter
from testbed_fakes import FakeBed, FakeSnapshotReader, FakeTester

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.exchange import Record, csv_text, read_csv, read_parquet, write_parquet
from routecast.lab.cli.measure import append_trial
from routecast.lab.testbed import parse_testbed
from routecast.lab.testbed._encapsulation import Encapsulation
from routecast.lab.testbed.checks import Limits
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.meters import Metering, Zone, meter_for, with_power
from routecast.lab.testbed.timed import TimedMeasure
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad

LOAD = OfferedLoad(rate_pps=1e5, flows=FlowSet(name="1 flow", flows=(Flow(rss_hash=0),)), frames=FrameMix.fixed(512))


@pytest.fixture(autouse=True)
def fake_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("routecast.lab.testbed.measure.SnapshotReader", FakeSnapshotReader)


def trial(meter: FakeMeter | None, *, loss_ratio: float = 0.0, duration_s: float = 0.5, **values: Any) -> Trial:
    evaluator = Measure(
        FakeBed(),  # type: ignore[arg-type]  # as much of a bed as Measure needs
        tester=FakeTester(loss_ratio=loss_ratio),
        limits=Limits(steal_ratio=1.0),
        retries=0,
        meter=meter,
        **values,
    )
    with evaluator:
        return evaluator.trial(LOAD, duration_s)


def test_only_the_time_in_which_counted_frames_are_sent_is_metered() -> None:
    # The tester that stands in sends from 1.0 s on its clock: warm-up and settling around it do not count.
    meter = FakeMeter(((0.0, 1.0, 10.0), (1.0, 1.5, 80.0), (1.5, 3.0, 20.0)))
    result = trial(meter)
    assert meter.calls == ["start", "stop"]
    assert result.power is not None
    assert (result.power.mean_w, result.power.scope, result.power.source) == (80.0, "wall", "fake")
    assert result.power.energy_j == pytest.approx(80.0 * 0.5)
    assert result.power.packet_j == pytest.approx(80.0 / 1e5)  # nothing is lost: 100 kpps
    assert result.power.bit_j == pytest.approx(80.0 / (1e5 * 512 * 8))  # S2
    assert not [note for note in result.notes if "power" in note]


def test_lost_frames_make_the_others_dearer() -> None:
    result = trial(FakeMeter(((0.0, 3.0, 80.0),)), loss_ratio=0.5)
    assert result.power is not None
    assert result.power.packet_j == pytest.approx(80.0 / 5e4)
    nothing = trial(FakeMeter(((0.0, 3.0, 80.0),)), loss_ratio=1.0)
    assert nothing.power is not None
    assert math.isnan(nothing.power.packet_j)
    assert math.isnan(nothing.power.bit_j)


def test_energy_per_packet_times_packets_is_the_energy() -> None:
    result = trial(FakeMeter(((0.0, 3.0, 80.0),)), loss_ratio=0.25)
    assert result.power is not None
    assert result.forwarded_frames is not None
    assert result.power.packet_j * result.forwarded_frames == pytest.approx(result.power.energy_j)
    assert result.power.bit_j * result.l2_bps * result.duration_s == pytest.approx(result.power.energy_j)


def test_slices_are_metered_each_and_averaged() -> None:
    # Both slices of the tester that stands in begin at 1.0 s and last 0.5 s.
    result = trial(FakeMeter(((0.0, 1.25, 40.0), (1.25, 3.0, 60.0))), duration_s=1.0, slice_s=0.5)
    assert result.power is not None
    assert result.power.mean_w == pytest.approx(50.0)
    assert result.power.energy_j == pytest.approx(50.0)


def test_without_a_meter_a_trial_has_no_power_and_says_nothing() -> None:
    result = trial(None)
    assert result.power is None
    assert not [note for note in result.notes if "power" in note]


def test_where_a_meter_was_wanted_and_none_is_here_the_run_goes_on_with_a_note() -> None:
    result = trial(None, no_power="no power here, because: rapl: …")
    assert result.is_valid
    assert result.power is None
    assert "no power here, because: rapl: …" in result.notes


def test_a_meter_requested_by_name_that_cannot_be_read_is_a_failure() -> None:
    with pytest.raises(EnvironmentProblem, match="gone"):
        trial(FakeMeter((), refusal="gone"))


def test_a_meter_that_saw_a_part_of_the_trial_stands_for_the_whole_with_a_note() -> None:
    result = trial(FakeMeter(((0.0, 1.2, 30.0),), notes=("zone x could not be read any more",)))
    assert result.power is not None
    assert result.power.mean_w == pytest.approx(30.0)
    assert any("metered for 0.2 s of 0.5 s only" in note for note in result.notes)
    assert any("zone x could not be read any more" in note for note in result.notes)


def test_a_meter_that_saw_nothing_of_the_trial_leaves_a_note_and_no_power() -> None:
    result = trial(FakeMeter(((5.0, 6.0, 30.0),), notes=("it slept",)))
    assert result.power is None
    assert any("gave no figure: it slept" in note for note in result.notes)
    assert result.is_valid


def test_zones_that_are_not_in_the_sum_are_reported() -> None:
    dram = Zone(name="dram", scope="rapl:dram", is_counted=False)
    result = trial(FakeMeter(((0.0, 3.0, 80.0),), others=(dram,)))
    assert result.power is not None
    assert result.power.mean_w == 80.0
    assert any("also read, but not added: dram 1.5 W" in note for note in result.notes)


def test_the_meter_stops_when_the_tester_fails() -> None:
    meter = FakeMeter(((0.0, 3.0, 80.0),))

    def fail() -> None:
        with Metering(meter):
            raise EnvironmentProblem("the tester failed")

    with pytest.raises(EnvironmentProblem, match="the tester failed"):
        fail()
    assert meter.calls == ["start", "stop"]


def test_facts_of_a_measurement_name_the_meter() -> None:
    evaluator = Measure(FakeBed(), tester=FakeTester(), meter=FakeMeter(()))  # type: ignore[arg-type]  # as above
    assert evaluator.facts()["power"] == {"meter": "fake", "scope": "wall"}


def test_views_of_an_evaluator_meter_too() -> None:
    meter = FakeMeter(((0.0, 3.0, 80.0),))
    evaluator = Measure(
        FakeBed(),  # type: ignore[arg-type]  # as above
        tester=FakeTester(),
        limits=Limits(steal_ratio=1.0),
        meter=meter,
    )
    with evaluator:
        result = evaluator.attempted_once().trial(LOAD, 0.5)
    assert result.power is not None


def test_power_of_a_trial_is_in_its_json() -> None:
    plain = with_power(trial(None), FakeMeter(((0.0, 1.0, 5.0),)).stop()).to_json()
    assert isinstance(plain["power"], dict)
    assert plain["power"]["mean_w"] == 5.0


BED = 'name = "b"\nkind = "namespaces"\n'


def test_a_test_bed_file_names_its_meter(tmp_path: Path) -> None:
    bed = parse_testbed(f'{BED}[power]\nmeter = "csv:{tmp_path}/pdu.csv"\nscope = "wall"\ninterval = "2 s"\n')
    meter, why = meter_for(bed.power, None)
    assert meter is not None
    assert (meter.name, meter.scope, why) == (f"csv:{tmp_path}/pdu.csv", "wall", "")
    assert meter_for(bed.power, "none") == (None, "")
    other, _ = meter_for(bed.power, "rapl")
    assert other is not None
    assert other.scope == "rapl:package"  # the file's scope is that of the file's meter
    assert meter_for(None, None) == (None, "")


@pytest.mark.parametrize(
    ("table", "place", "words"),
    [
        ('meter = "rappl"', "power.meter", 'did you mean "rapl"'),
        ('meter = "rapl"\nscope = "wall"', "power.meter", "has its own scope"),
        ('meter = "redfish:https://a:b@bmc"', "power.meter", "ROUTECAST_POWER_PASSWORD"),
        ('meter = "rapl"\npassword = "x"', "power.password", ""),
        ('meter = "rapl"\ninterval = 5', "power.interval", "has no unit"),
        ("verify_tls = true", "power.meter", ""),
    ],
)
def test_wrong_tables_of_power_are_refused_with_their_place(table: str, place: str, words: str) -> None:
    with pytest.raises(FileProblem) as caught:
        parse_testbed(f"{BED}[power]\n{table}\n")
    assert [problem.place for problem in caught.value.problems] == [place]
    assert words in caught.value.problems[0].message
    assert "a:b" not in str(caught.value)


def record_of(result: Trial) -> Record:
    return Record(source="routecast measure", trial=result)


@pytest.mark.parametrize("name", ["trials.csv", "trials.parquet"])
def test_a_table_of_trials_keeps_their_watts(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    records = [record_of(trial(FakeMeter(((0.0, 3.0, 80.0),)), loss_ratio=loss)) for loss in (0.25, 1.0)]
    records.append(record_of(trial(None)))
    if path.suffix == ".csv":
        path.write_text(csv_text(records), encoding="utf-8")
        result = read_csv(path)
    else:
        write_parquet(records, path)
        result = read_parquet(path)
    # As JSON: a NaN, of frames that were all lost, is not equal to itself.
    assert [record.trial.to_json()["power"] for record in result] == [
        record.trial.to_json()["power"] for record in records
    ]


def test_a_row_with_watts_is_appended_to_a_table_that_was_begun_without(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text("offered_pps,forwarded_pps,loss_ratio\n1000000.0,900000.0,0.1\n", encoding="utf-8")
    evaluator = Measure(FakeBed(), tester=FakeTester())  # type: ignore[arg-type]  # as above
    evaluator.bed.device.title = "a router"
    metered = trial(FakeMeter(((0.0, 3.0, 80.0),)))
    for _ in range(2):
        append_trial(path, metered, LOAD, evaluator, {})
    old, *new = read_csv(path)
    assert (old.trial.forwarded_pps, old.trial.power) == (9e5, None)
    assert [record.trial.power for record in new] == 2 * [metered.power]


def test_a_device_that_times_itself_is_not_metered_and_says_so() -> None:
    bed: Any = SimpleNamespace(
        device=None, layer=2, encapsulation=Encapsulation(), placement=SimpleNamespace(tester=0, dut=1)
    )
    meter = FakeMeter(())
    for chosen, words in ((meter, "power is not metered"), (None, "no power here")):
        evaluator = TimedMeasure(bed, meter=chosen, no_power="" if chosen else "no power here, because: …")
        evaluator._seconds_per_frame = lambda load, duration_s: 1e-7  # type: ignore[method-assign]  # no device
        result = evaluator.trial(LOAD, 1.0)
        assert result.power is None
        assert any(words in note for note in result.notes)
    assert meter.calls == []
