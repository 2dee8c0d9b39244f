"""A study of latencies: predictions are written down first, and only trials that nothing disturbed count."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars
import pytest

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Bottleneck, Delay, Trial
from routecast.lab.study.latency.document import LatencyStudy
from routecast.lab.study.latency.run import LatencyStudyResult, LatencyTestbed, verdict_on
from routecast.lab.study.measure import SlowedBy
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.load.offered import OfferedLoad
from routecast.study.document import StudyFile
from routecast.study.engine import run_study, terminal_summary
from routecast.study.reading import find_study, read_study

STUDY = """
kind = "latency"
name = "small"
title = "A small study of latencies"

[testbed]
duration = "100 ms"
repeats = 3

[loads]
row_repeats = 2

[[device]]
name = "first"
device = "linux"

[[device]]
name = "second"
device = "bridge"

[[device]]
name = "third"
device = "testpmd"

[criteria]
trials = 20
devices = 2
p50_median = 0.5
p50_coverage = 0.88
"""

CAPACITY_PPS = 430_000.0
TOOK = "core 1 (dut): other work took 43.5 % of the time"
Change = Callable[[Trial, float], Trial]


def is_predicted(load_ratio: float) -> bool:
    """Whether a trial is at a predicted load; those of the search for an overload are elsewhere."""
    return any(abs(load_ratio - load) < 0.003 for load in (0.3, 0.5, 0.7, 0.9))


def as_it_is(trial: Trial, load_ratio: float) -> Trial:
    return trial


@dataclass
class EvenDevice:
    """A device whose median latency grows from 10 us with the load; ``change`` is what the world does to a trial."""

    change: Change = as_it_is

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        ratio = load.rate_pps / CAPACITY_PPS
        forwarded_pps = min(load.rate_pps, CAPACITY_PPS)
        p50_s = 10e-6 * (1.0 + ratio) if ratio < 0.99 else 200e-6
        trial = Trial(
            evaluator="measure",
            duration_s=duration_s,
            intended_pps=load.rate_pps,
            offered_pps=load.rate_pps,
            forwarded_pps=forwarded_pps,
            loss_ratio=1.0 - forwarded_pps / load.rate_pps,
            l1_bps=0.0,
            l2_bps=0.0,
            bottleneck=Bottleneck(name="even", kind="pool", reason="it is one"),
            arrivals="cbr",
            latency=Delay(mean_s=1.1 * p50_s, min_s=0.9 * p50_s, p50_s=p50_s, p99_s=2.0 * p50_s, max_s=4.0 * p50_s),
        )
        return self.change(trial, ratio)


class EvenBench:
    """Three devices of which this place cannot run the third."""

    def __init__(self, change: Change = as_it_is) -> None:
        self.change = change
        self.opened: list[str] = []
        self.closed: list[str] = []

    def lacks(self, name: str, options: Mapping[str, object]) -> str:
        return "needs dpdk-testpmd" if name == "testpmd" else ""

    def slowed_by(self, name: str, options: Mapping[str, object]) -> SlowedBy:
        return "nobody"

    @contextmanager
    def device(self, name: str, options: Mapping[str, object]) -> Iterator[Evaluator]:
        self.opened.append(name)
        try:
            yield EvenDevice(self.change)
        finally:
            self.closed.append(name)


def study_file(text: str = STUDY) -> StudyFile[LatencyStudy]:
    return StudyFile(study=LatencyStudy.model_validate(tomllib.loads(text)), path=Path("x.study.toml"))


def run(folder: Path, bench: EvenBench, text: str = STUDY) -> LatencyStudyResult:
    result = run_study(study_file(text), folder, bench=bench)
    assert isinstance(result, LatencyStudyResult)
    return result


def ledger_of(folder: Path) -> polars.DataFrame:
    return polars.read_parquet(folder / "results.parquet")


def test_enough_undisturbed_trials_are_judged_and_a_device_that_cannot_run_is_named(tmp_path: Path) -> None:
    bench = EvenBench()
    result = run(tmp_path, bench)
    assert (result.trials, result.undisturbed, result.judged_devices) == (24, 24, 2)
    assert result.verdict.endswith("in 24 undisturbed trials over 2 devices")
    assert "third: not run: needs dpdk-testpmd" in (result.notes or ())
    assert bench.opened == bench.closed == ["linux", "bridge"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["verdict"] == result.verdict
    assert [device["undisturbed"] for device in summary["devices"]] == [12, 12, 0]
    assert (tmp_path / "figures" / "latency-first.svg").is_file()
    assert result.verdict[1:] in terminal_summary(result).closing
    load = result.devices[0].loads[1]
    # 15 us at half the capacity, as the device states; the error is that of the written prediction.
    assert load.repeats.values == pytest.approx((15e-6,) * 3)
    assert load.errors == pytest.approx((load.predicted / 15e-6 - 1.0,) * 3)


def test_every_prediction_is_on_disk_before_its_load_is_measured(tmp_path: Path) -> None:
    seen: list[tuple[float, int]] = []

    def look(trial: Trial, load_ratio: float) -> Trial:
        if is_predicted(load_ratio):
            parts = [polars.read_parquet(path) for path in (tmp_path / "results.parts").glob("*.parquet")]
            rows = polars.concat(parts)
            seen.append((load_ratio, len(rows.filter(polars.col("kind") == "prediction"))))
        return trial

    run(tmp_path, EvenBench(look))
    assert len(seen) == 24
    assert [count for _, count in seen] == [4] * 12 + [8] * 12
    kinds = ledger_of(tmp_path).filter(polars.col("device") == "linux")["kind"].to_list()
    assert kinds == ["overload"] * 2 + ["row"] * 4 + ["prediction"] * 4 + ["judged"] * 12


def test_disturbed_and_invalid_trials_do_not_count_whatever_they_measured(tmp_path: Path) -> None:
    number = 0

    def disturb(trial: Trial, load_ratio: float) -> Trial:
        nonlocal number
        if not is_predicted(load_ratio):
            return trial
        number += 1
        # The first of each load would be far off, the second is invalid, the third counts.
        late = Delay(mean_s=1.0, min_s=0.5, p50_s=1.0, p99_s=2.0, max_s=3.0)
        changes = [
            {"latency": late, "notes": (TOOK,)},
            {"latency": late, "invalid": ("port d0 (gen0): the link is down",)},
            {},
        ]
        return replace(trial, **changes[(number - 1) // 4 % 3])  # type: ignore[arg-type]  # fields of a trial

    result = run(tmp_path, EvenBench(disturb))
    assert (result.trials, result.undisturbed) == (24, 8)
    assert all(load.repeats.most < 100e-6 for load in result.loads)
    assert result.loads[0].disturbed == (TOOK, "port d0 (gen0): the link is down")
    assert result.verdict == (
        "not reached: only 8 undisturbed trials over 2 devices (24 trials in all); a judgement needs 20 over 2"
    )
    assert [criterion.name for criterion in result.criteria if not criterion.is_met] == ["missing undisturbed trials"]
    assert len(result.criteria) == 2  # no bound on an error is judged


def test_a_disturbed_trial_is_followed_by_another_until_one_counts(tmp_path: Path) -> None:
    number = 0

    def disturb(trial: Trial, load_ratio: float) -> Trial:
        nonlocal number
        if not is_predicted(load_ratio):
            return trial
        number += 1
        return replace(trial, notes=(TOOK,) if number % 2 else ())

    result = run(tmp_path, EvenBench(disturb), STUDY.replace("row_repeats = 2", "row_repeats = 2\nattempts = 2"))
    assert (result.trials, result.undisturbed) == (48, 24)
    assert set(ledger_of(tmp_path).filter(polars.col("attempt") == 0)["disturbed"]) == {TOOK, ""}
    assert result.provenance.trials == 12 + 48


def test_a_disturbed_row_calibrates_nothing(tmp_path: Path) -> None:
    def disturb(trial: Trial, load_ratio: float) -> Trial:
        return replace(trial, notes=(TOOK,)) if abs(load_ratio - 1.0) < 0.01 else trial

    result = run(tmp_path, EvenBench(disturb))
    assert result.trials == 0
    assert {device.reason for device in result.devices[:2]} == {"disturbed: not calibrated, no trial at 100% counts"}
    assert result.verdict.startswith("not reached: only 0 undisturbed trials over 0 devices")
    assert {row["kind"] for row in ledger_of(tmp_path).to_dicts()} == {"setup", "overload", "row"}


def test_a_bound_that_is_exceeded_is_not_reached(tmp_path: Path) -> None:
    def slower(trial: Trial, load_ratio: float) -> Trial:
        if not is_predicted(load_ratio) or trial.latency is None:
            return trial
        return replace(trial, latency=replace(trial.latency, p50_s=1e-3, p99_s=2e-3, mean_s=1e-3, max_s=3e-3))

    result = run(tmp_path, EvenBench(slower))
    assert result.is_enough
    assert result.verdict.startswith("not reached: median error of the median latency")
    assert result.coverage_ratio < 0.88


def test_an_interrupted_study_keeps_its_trials_and_its_predictions(tmp_path: Path) -> None:
    count = 0

    def interrupt(trial: Trial, load_ratio: float) -> Trial:
        nonlocal count
        count += is_predicted(load_ratio)
        if is_predicted(load_ratio) and count == 6:
            raise KeyboardInterrupt
        return trial

    bench = EvenBench(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, bench)
    assert bench.opened == bench.closed == ["linux"]
    kept = ledger_of(tmp_path)
    assert kept["kind"].to_list().count("judged") == 5
    result = run(tmp_path, EvenBench())
    assert result.provenance.resumed_trials == 2 + 4 + 5
    assert ledger_of(tmp_path)[: len(kept)].equals(kept)
    # The positive control: a run from its start has the same answer.
    assert run(tmp_path / "whole", EvenBench()).verdict == result.verdict


def test_what_every_device_lacks_is_an_error(tmp_path: Path) -> None:
    class NoRights(EvenBench):
        def lacks(self, name: str, options: Mapping[str, object]) -> str:
            return ""

        def device(self, name, options):  # type: ignore[no-untyped-def]  # as the class above
            raise EnvironmentProblem("a test bed of namespaces needs CAP_SYS_ADMIN")

    with pytest.raises(EnvironmentProblem, match="CAP_SYS_ADMIN"):
        run(tmp_path, NoRights())


def test_a_tester_that_overloads_no_device_leaves_it_out_with_the_remedy(tmp_path: Path) -> None:
    def lossless(trial: Trial, load_ratio: float) -> Trial:
        most_pps = 300_000.0
        offered_pps = min(trial.intended_pps, most_pps)
        return replace(trial, offered_pps=offered_pps, forwarded_pps=offered_pps, loss_ratio=0.0)

    result = run(tmp_path, EvenBench(lossless))
    assert result.devices[0].reason.startswith("not measured: the tester reaches no overload")


def test_a_verdict_names_what_disturbed() -> None:
    trial = EvenDevice().trial(OfferedLoad(rate_pps=1e5), 0.1)
    assert verdict_on(trial) == ""
    assert verdict_on(replace(trial, notes=(TOOK, "idle cores sleep: refused"))) == TOOK
    assert verdict_on(replace(trial, latency=None)) == "no frame was timed"
    assert verdict_on(replace(trial, invalid=("the trial was stopped before its end",))) != ""


@pytest.mark.parametrize(
    ("text", "new", "place"),
    [
        ("row_repeats = 2", "predict = [0.1]", r"loads\.predict: 0\.1 calibrates"),
        ("row_repeats = 2", "predict = [0.99]", r"loads\.predict"),
        ('name = "second"', 'name = "first"', r"device\[1\]\.name.*taken"),
        ("[testbed]", '[testbed]\nfile = "nowhere.testbed.toml"', r"testbed\.file: there is no file"),
    ],
)
def test_a_wrong_study_of_latencies_is_refused_with_its_place(tmp_path: Path, text: str, new: str, place: str) -> None:
    path = tmp_path / "wrong.study.toml"
    assert text in STUDY
    path.write_text(STUDY.replace(text, new, 1))
    with pytest.raises(FileProblem, match=place):
        read_study(path)


def test_trials_that_meet_real_time_throttling_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = study_file().study.device[0]
    bench = LatencyTestbed("namespaces", tmp_path)
    throttle = RealTimeThrottle(runtime_us=950_000)
    monkeypatch.setattr(RealTimeThrottle, "of_machine", classmethod(lambda _: throttle))
    bench.refuse_throttled(device, 0.3)
    with pytest.raises(EnvironmentProblem, match=r"real-time throttling .*shorter than 950 ms, or .*runtime_us=-1"):
        bench.refuse_throttled(device, 1.0)
    monkeypatch.setattr(RealTimeThrottle, "of_machine", classmethod(lambda _: None))
    bench.refuse_throttled(device, 1.0)


def test_the_shipped_study_measures_five_devices() -> None:
    study = read_study(find_study("local_latency")).study
    assert isinstance(study, LatencyStudy)
    assert [device.device for device in study.device] == ["linux", "nftables", "xdp", "bridge", "testpmd"]
    assert len(study.device) * len(study.loads.predict) * study.testbed.repeats >= study.criteria.trials


WIRE = """
kind = "latency"
name = "brief"
title = "One device, briefly"

[testbed]
file = "bed.testbed.toml"
duration = "100 ms"
repeats = 1

[loads]
row_repeats = 1
predict = [0.5]

[[device]]
name = "slow"
device = "linux"
options = { slowdown = 20000 }
"""


@pytest.mark.wire
def test_a_device_is_measured_in_namespaces_that_are_gone_afterwards(tmp_path: Path) -> None:
    """At 20,000 iterations a frame the device forwards some ten thousand frames a second: a few thousand in all."""
    name = f"y{os.getpid() % 100_000}"
    (tmp_path / "bed.testbed.toml").write_text(f'name = "{name}"\nkind = "namespaces"\nwire = "100 Gbit/s"\n')
    path = tmp_path / "brief.study.toml"
    path.write_text(WIRE)
    try:
        result = run_study(read_study(path), tmp_path / "out")
    except EnvironmentProblem as problem:  # other work leaves no valid trial
        pytest.skip(str(problem))
    finally:
        assert not [netns for netns in os.listdir("/run/netns") if netns.startswith(f"rc-{name}-")]
    assert isinstance(result, LatencyStudyResult)
    (device,) = result.devices
    assert result.verdict.startswith("not reached: only ")
    rows = ledger_of(tmp_path / "out").to_dicts()
    sent = [row["offered_pps"] * 0.1 for row in rows if row["offered_pps"]]
    assert 0.0 < sum(sent) < 100_000.0
    kinds = [row["kind"] for row in rows]
    if device.reason:  # other work disturbed the rows, or an overload: then nothing was predicted
        assert device.reason.startswith(("disturbed: not calibrated", "not measured: no trial in overload"))
        assert set(kinds) <= {"setup", "overload", "row"}
    else:
        assert kinds == ["setup", "overload", "row", "row", "prediction", "judged"]
        assert device.loads[0].predicted > 0.5 / device.capacity_pps  # no frame is faster than its work
