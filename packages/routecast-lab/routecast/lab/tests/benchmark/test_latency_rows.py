"""Latencies of trials as rows of a table of points: their load, their marks, and the table that they go into."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import exchange_samples as samples
import pytest
from benchmark_fakes import Fluid, profile_with

from routecast.cli.run import run
from routecast.errors import QuantityProblem
from routecast.evaluate.point_table import points_text, read_points
from routecast.evaluate.points import Point
from routecast.evaluate.trial import Delay, Trial
from routecast.lab.benchmark import BenchmarkResult, plan_of, run_benchmark
from routecast.lab.benchmark.latency_rows import LatencyShares, latency_of, latency_row
from routecast.lab.benchmark.points import append_point, points_before, points_of, write_points
from routecast.lab.benchmark.rig import PlainRig
from routecast.load import FlowSet, OfferedLoad
from routecast.load.arrivals import Arrivals

LOAD = OfferedLoad(rate_pps=50e3, flows=FlowSet.crafted(1, ports=1))
POINT = Point(cores=1, frame_bytes=64.0, throughput_pps=1e6, link_bps=10e9, ports=1, series="linux", calibrate=True)
OTHER_WORK = "core 1 (dut): other work took 12 % of the time"


@dataclass(slots=True)
class SometimesDisturbed(Fluid):
    """A router of which every third trial below its capacity is disturbed, and takes a hundred times as long."""

    calm: list[bool] = field(default_factory=list)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        trial = replace(Fluid.trial(self, load, duration_s), evaluator="measure", arrivals=load.arrivals.text)
        if trial.loss_ratio > 0.0:
            return trial
        self.calm.append(len(self.calm) % 3 != 2)
        if self.calm[-1]:
            return trial
        late = Delay(mean_s=2e-4, min_s=1e-4, p50_s=2e-4, p90_s=3e-4, p99_s=4e-4, p999_s=5e-4, max_s=6e-4)
        return replace(trial, latency=late, notes=(OTHER_WORK,))


def measured(router: Fluid, *procedures: str) -> BenchmarkResult:
    rig = PlainRig(evaluator=router, link=10e9, kind="measure")
    profile = profile_with(latency={"rates": (1.0, 0.1), "repeats": 3})
    return run_benchmark(plan_of(profile, procedures=procedures, frame_bytes=[64]), rig)


def sized(path: Path, bound: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    capsys.readouterr()
    run(["size", str(path), "--target", "150 kpps", "--latency", bound, "--cores", "1..4", "--json"])
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    return dict(answer)


def test_each_trial_of_the_latency_procedure_is_a_row_that_size_answers_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = measured(SometimesDisturbed(capacity_pps=1e6), "throughput", "latency", "frame_loss")
    points, reasons = points_of(result, cores=1)
    assert reasons == ()
    table = write_points(points, tmp_path)
    assert points_text(read_points(table)) == points_text(points)
    rate, *rows = points
    assert rate.calibrate
    assert rate.latency is None
    assert result.latency is not None
    loads_pps = {row.rate_pps for row in result.latency.rows}
    trials = [
        record.trial for record in result.trials if record.procedure == "latency" and record.rate_pps in loads_pps
    ]
    assert len(rows) == len(trials) == 6
    for row, trial in zip(rows, trials, strict=True):
        assert row.latency is not None
        assert (row.latency.load_pps, row.latency.arrivals) == (trial.offered_pps, "cbr")
        assert row.disturbed == "; ".join(trial.notes)
        assert math.isnan(row.throughput_pps)
        assert not row.calibrate
        assert replace(row, throughput_pps=1.0).conditions == rate.conditions
    assert len([row for row in rows if row.disturbed]) == 2
    answer = sized(table, "p50 < 1 ms", capsys)
    # The rows without a mark took 2 us, those with one 200 us.
    assert answer["latency_s"] == pytest.approx(2e-6, rel=0.2)
    assert answer["latency_arrivals"] == "evenly spaced arrivals"


def test_latencies_without_a_rate_that_calibrates_give_no_table() -> None:
    points, reasons = points_of(measured(Fluid(capacity_pps=30e6), "throughput", "latency", "frame_loss"), cores=1)
    assert points == ()
    assert any("no forwarding rate of it calibrates" in reason for reason in reasons)


def test_rows_of_latency_are_appended_to_a_table_that_has_none(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    append_point(table, POINT)
    before = table.read_text()
    table.write_text(f"# the lab's own remark\n{before}")
    trial = replace(Fluid(capacity_pps=1e6).trial(LOAD.at(1e5), 0.5), arrivals=Arrivals.poisson().text)
    row = latency_row(POINT, trial)
    assert row is not None
    append_point(table, row)
    append_point(table, replace(POINT, cores=2, throughput_pps=1.9e6))
    append_point(table, row)
    assert table.read_text().startswith("# the lab's own remark\n" + before.partition("\n")[0] + ",latency_min_us")
    points = read_points(table)
    assert [(point.cores, point.calibrate) for point in points] == [(1, True), (1, False), (2, True), (1, False)]
    assert [point.latency and point.latency.arrivals for point in points] == [None, "poisson", None, "poisson"]
    assert len(points_before(table, POINT, command="measure")) == 2
    # A column of latency that somebody added stays.
    heads, *lines = table.read_text().splitlines()[1:]
    table.write_text("\n".join([f"{heads},latency_tester_us", *(f"{line}," for line in lines)]) + "\n")
    append_point(table, row)
    assert len(read_points(table)) == 5


def test_a_latency_has_the_percentiles_and_samples_of_its_histogram() -> None:
    # 90 of 100 frames took 20 units, five 30, five 80: the unit is that of the median.
    histogram = samples.hdr_text({20: 90, 30: 5, 80: 5})
    trial = replace(
        Fluid(capacity_pps=1e6).trial(LOAD.at(1e5), 0.5),
        latency=Delay(mean_s=2.35e-5, min_s=2e-5, p50_s=2e-5, p99_s=8.1e-5, max_s=8e-5, hdr_base64=histogram),
    )
    latency = latency_of(trial)
    assert latency is not None
    assert latency.p95_s == pytest.approx(3e-5)
    assert latency.samples == 100
    assert latency.p99_s == latency.max_s == 8e-5  # the upper end of a class may lie beyond the greatest time
    assert latency_of(replace(trial, offered_pps=math.nan)) is None
    assert latency_of(replace(trial, latency=Delay(mean_s=math.nan))) is None
    assert latency_row(POINT, replace(trial, invalid=("the tester sent too few",))) is None


def test_shares_of_a_rate_are_offered_in_turns() -> None:
    router = Fluid(capacity_pps=1e6)
    shares = LatencyShares.parse("10%, 90%", repeats=2)
    assert [ratio for ratio, _ in shares.trials(router, LOAD, 1e6, 0.5)] == [0.1, 0.9, 0.1, 0.9]
    assert [rate for rate, _ in router.trials] == pytest.approx([1e5, 9e5, 1e5, 9e5])
    for text in ("", "0", "2000%", "some"):
        with pytest.raises(QuantityProblem):
            LatencyShares.parse(text)


def exported(document: object, tmp_path: Path, *arguments: str) -> tuple[Point, ...]:
    """Import a document, and return the points that its table of trials is read as."""
    path, trials, table = tmp_path / "document.json", tmp_path / "trials.csv", tmp_path / "points.csv"
    path.write_text(json.dumps(document))
    assert run(["import", str(path), "--out", str(trials), *arguments]) == 0
    assert run(["export", str(trials), "--format", "validate", "--out", str(table)]) == 0
    return read_points(table)


def test_latencies_of_csit_become_rows_with_their_loads_and_steps(tmp_path: Path) -> None:
    rate, *rows = exported(samples.uti_ndrpdr(), tmp_path)
    assert rate.calibrate
    assert rate.rate_kind == "no_loss"
    assert rows
    pdr_pps = samples.uti_ndrpdr()["result"]["pdr"]["lower"]["rate"]["value"]
    for row in rows:
        assert row.latency is not None
        assert row.latency.resolution_s == 1e-6
        assert row.latency.load_pps <= pdr_pps
        assert row.rate_kind == "no_loss"
    loads = {row.latency.load_pps / pdr_pps for row in rows if row.latency}
    assert {0.1, 0.5, 0.9} <= {round(load, 6) for load in loads}


def test_latencies_at_the_rates_of_a_search_become_rows(tmp_path: Path) -> None:
    _, *rows = exported(samples.nfvbench(), tmp_path, "--cores", "2")
    assert [row.latency and row.latency.load_pps for row in rows] == [2e6, 2.5e6]
    assert [row.latency and row.latency.p50_s for row in rows] == pytest.approx([20e-6] * 2)


HGRM = """       Value     Percentile TotalCount 1/(1-Percentile)

      10.000 0.000000000000          1           1.00
      20.000 0.500000000000         90           2.00
      80.000 0.990000000000         99         100.00
     100.000 1.000000000000        100
#[Mean    =       24.500, StdDeviation   =       12.000]
#[Max     =      100.000, Total count    =          100]
#[Buckets =            4, SubBuckets     =         2048]
"""


def test_a_histogram_gets_its_load_from_the_command_and_joins_the_rates_of_its_series(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates, histogram = tmp_path / "rates.csv", tmp_path / "low.hgrm"
    rates.write_text("cores,frame_bytes,forwarding_rate_pps,series\n1,64,1e6,mine\n2,64,1.9e6,mine\n")
    histogram.write_text(HGRM)
    stated = ["--latency-unit", "us", "--frame", "64 B", "--cores", "1", "--series", "mine"]
    late, both, table = (tmp_path / name for name in ("late.csv", "both.csv", "points.csv"))
    assert run(["import", str(histogram), *stated, "--load", "100 kpps", "--out", str(late)]) == 0
    assert run(["import", str(rates), str(late), "--out", str(both)]) == 0
    assert run(["export", str(both), "--format", "validate", "--out", str(table)]) == 0
    *_, row = read_points(table)
    assert row.latency is not None
    assert (row.latency.load_pps, row.latency.p50_s, row.latency.p99_s) == pytest.approx((1e5, 20e-6, 80e-6))
    assert 10e-6 < float(str(sized(both, "p50 < 1 ms", capsys)["latency_s"])) < 40e-6
    # Without its load it is left out, and a remark says so.
    assert run(["import", str(histogram), *stated, "--out", str(late)]) == 0
    assert run(["import", str(rates), str(late), "--out", str(both)]) == 0
    assert run(["export", str(both), "--format", "validate", "--out", str(table)]) == 0
    assert "the load at which it was measured is not known" in capsys.readouterr().err
    assert all(point.latency is None for point in read_points(table))


def test_the_counters_of_trex_become_a_row_at_their_rate(tmp_path: Path) -> None:
    document = {
        "0": {"opackets": 900_000, "ipackets": 0},
        "1": {"opackets": 0, "ipackets": 900_000},
        "total": {"opackets": 900_000, "ipackets": 900_000, "obytes": 57_600_000, "tx_pps": 90_000.0},
        "global": {"queue_full": 0},
        "latency": {"5": {"latency": {"average": 31.0, "total_max": 120, "total_min": 8, "histogram": {"20": 100}}}},
    }
    rate, row = exported(document, tmp_path, "--cores", "1", "--series", "mine")
    assert rate.throughput_pps == 90_000.0
    assert row.latency is not None
    assert row.latency.load_pps == 90_000.0
    assert row.latency.mean_s == pytest.approx(31e-6)


def test_a_table_of_points_keeps_its_latencies_on_its_way_through_import(tmp_path: Path) -> None:
    table, trials, again = (tmp_path / name for name in ("points.csv", "trials.csv", "again.csv"))
    table.write_text(
        "cores,frame_bytes,forwarding_rate_pps,latency_load_pps,latency_p50_us,latency_p95_us,latency_p99_us,"
        "latency_arrivals,latency_samples,latency_devices,latency_tester_us,disturbed\n"
        "1,64,1e6,,,,,,,,,\n1,64,,1e5,20,30,40,poisson,1000,2,4,\n1,64,,1e5,90,95,99,poisson,,,,yes\n"
    )
    assert run(["import", str(table), "--out", str(trials)]) == 0
    assert run(["export", str(trials), "--format", "validate", "--out", str(again)]) == 0
    before, after = read_points(table)[1:], read_points(again)[1:]
    assert [point.latency for point in after] == [point.latency for point in before]
    assert [bool(point.disturbed) for point in after] == [False, True]
