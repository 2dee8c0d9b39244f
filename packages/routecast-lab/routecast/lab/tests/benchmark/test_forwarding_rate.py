"""The maximum forwarding rate in overload, where the tester limits, and the tables of points that are made of it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from benchmark_fakes import Fluid, profile_with

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.evaluate.point_table import read_points
from routecast.evaluate.points import Point
from routecast.evaluate.trial import Moment, Trial
from routecast.lab.benchmark import BenchmarkResult, plan_of, run_benchmark
from routecast.lab.benchmark.overload import (
    NoOverload,
    find_overload_pps,
    measure_forwarding_rate,
    standard_error_ratio,
)
from routecast.lab.benchmark.points import (
    append_point,
    measured_point,
    points_before,
    points_of,
    series_of,
    write_points,
)
from routecast.lab.benchmark.rig import PlainRig
from routecast.lab.benchmark.streams import BROADCAST
from routecast.load import FlowSet, OfferedLoad

LOAD = OfferedLoad(rate_pps=50e3, flows=FlowSet.crafted(1, ports=1))


@dataclass(slots=True)
class Limited(Fluid):
    """A router whose tester sends no more than ``reach_pps``; a trial that wants more is invalid."""

    reach_pps: float = 1e9

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        if load.rate_pps <= self.reach_pps:
            return Fluid.trial(self, load, duration_s)
        short = Fluid.trial(self, load.at(self.reach_pps), duration_s)
        return replace(short, intended_pps=load.rate_pps, invalid=("the tester sent too few",))


def test_the_forwarding_rate_is_what_passes_in_overload() -> None:
    rate = measure_forwarding_rate(Fluid(capacity_pps=1e6), LOAD, duration_s=0.5)
    assert rate.is_maximum
    assert rate.lower_bound == ""
    assert rate.trial.forwarded_pps == pytest.approx(1e6, rel=1e-4)
    assert rate.trial.offered_pps == pytest.approx(1.5e6, rel=1e-4)


def test_where_the_tester_limits_the_rate_is_a_lower_bound() -> None:
    rate = measure_forwarding_rate(Limited(capacity_pps=4e6, reach_pps=2.5e6), LOAD, duration_s=0.5)
    assert not rate.is_maximum
    assert "no overload" in rate.lower_bound
    assert rate.trial.is_valid
    assert 0.9 * 2.5e6 <= rate.trial.forwarded_pps <= 2.5e6  # the bound is close to what the tester reaches


def test_an_overload_just_below_what_the_tester_reaches_is_used() -> None:
    # Doubling goes from 1.6 Mpps, which passes, to 3.2 Mpps, which the tester does not reach.
    router = Limited(capacity_pps=1.7e6, reach_pps=2.8e6)
    rate = measure_forwarding_rate(router, LOAD, duration_s=0.5)
    assert rate.is_maximum
    assert rate.trial.forwarded_pps == pytest.approx(1.7e6, rel=1e-4)
    assert rate.trial.offered_pps <= 2.8e6


@dataclass(slots=True)
class StalledOnce(Fluid):
    """A router on a machine whose first trial is held up for half of its time."""

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        trial = Fluid.trial(self, load, duration_s)
        if len(self.trials) > 1:
            return trial
        half = (trial.forwarded_frames or 0) // 2
        return replace(
            trial,
            forwarded_pps=half / duration_s,
            forwarded_frames=half,
            dropped_frames=(trial.offered_frames or 0) - half,
            loss_ratio=0.5,
        )


def test_a_stall_that_looks_like_an_overload_does_not_end_the_search() -> None:
    rate = measure_forwarding_rate(StalledOnce(capacity_pps=1e6), LOAD, duration_s=0.5)
    assert rate.is_maximum
    assert rate.trial.forwarded_pps == pytest.approx(1e6, rel=1e-4)


def test_a_device_that_forwards_nothing_is_no_lower_bound_of_zero() -> None:
    with pytest.raises(EnvironmentProblem, match="does the device forward at all"):
        measure_forwarding_rate(Fluid(capacity_pps=0.0), LOAD, duration_s=0.5)


def test_no_overload_carries_what_was_reached_across_processes() -> None:
    with pytest.raises(NoOverload) as problem:
        find_overload_pps(Limited(capacity_pps=4e6, reach_pps=2.5e6), LOAD)
    again = pickle.loads(pickle.dumps(problem.value))
    assert (again.forwarded_pps, str(again)) == (problem.value.forwarded_pps, str(problem.value))
    assert again.intended_pps <= 2.5e6


POINT = Point(cores=1, frame_bytes=64.0, throughput_pps=1e6, link_bps=10e9, ports=1, series="linux", calibrate=True)


def test_rows_are_appended_to_a_table_of_the_same_columns_alone(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    assert points_before(table, POINT, command="measure") == []
    append_point(table, POINT)
    append_point(table, replace(POINT, cores=2, throughput_pps=1.9e6))
    assert [(point.cores, point.throughput_pps) for point in read_points(table)] == [(1, 1e6), (2, 1.9e6)]
    assert len(points_before(table, POINT, command="measure")) == 2
    with pytest.raises(FileProblem, match="has other columns than the rows that measure appends"):
        points_before(table, replace(POINT, series=""), command="measure")
    in_mpps = tmp_path / "mpps.csv"
    in_mpps.write_text("cores,throughput (Mpps)\n1,1\n")
    with pytest.raises(FileProblem, match="has other columns"):
        points_before(in_mpps, POINT, command="--until")
    with pytest.raises(FileProblem, match=r"ends in \.csv"):
        points_before(tmp_path / "points.parquet", POINT, command="measure")
    with pytest.raises(FileProblem, match="there is no folder"):
        points_before(tmp_path / "nowhere" / "points.csv", POINT, command="measure")


def test_a_series_is_named_for_the_device_and_the_options_that_change_its_work() -> None:
    defaults = {"rules": 0, "cores": 1, "ipv6": True}
    assert series_of("nftables", {"rules": 0, "cores": 4, "ipv6": True}, defaults) == "nftables"
    assert series_of("nftables", {"rules": 25, "cores": 4, "ipv6": False}, defaults) == "nftables rules=25 ipv6=False"


def measured(router: Fluid, *procedures: str) -> BenchmarkResult:
    rig = PlainRig(evaluator=router, link=10e9, kind="measure")
    return run_benchmark(plan_of(profile_with(), procedures=procedures or ("frame_loss",), frame_bytes=[64, 1518]), rig)


def test_points_of_a_benchmark_are_forwarding_rates_at_maximum_offered_load(tmp_path: Path) -> None:
    points, reasons = points_of(measured(Fluid(capacity_pps=1e6)), cores=2)
    assert [(point.frame_bytes, point.cores, point.ports, point.calibrate) for point in points] == [(64.0, 2, 1, True)]
    assert points[0].throughput_pps == pytest.approx(1e6, rel=1e-3)
    # 10 Gbit/s carry 812,744 frames of 1518 bytes: fewer than the router forwards.
    assert len(reasons) == 1
    assert "1518 B: ≥ 812,7" in reasons[0]
    assert read_points(write_points(points, tmp_path)) == points


DISTURBANCE = "other work took 12 % of the device's core"


def course(*rates: float) -> tuple[Moment, ...]:
    return tuple(
        Moment(time_s=0.1 * number, offered_pps=1.5e6, forwarded_pps=rate, dropped_pps=1.5e6 - rate)
        for number, rate in enumerate(rates)
    )


@dataclass(slots=True)
class Disturbed(Fluid):
    """A router whose trials other work disturbs: the rate falls by half in some parts."""

    evaluator: str = "measure"

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        trial = Fluid.trial(self, load, duration_s)
        over_time = course(*(trial.forwarded_pps * share for share in (1.0, 1.0, 0.5, 1.0, 0.5, 1.0, 1.0)))
        return replace(trial, evaluator="measure", notes=(DISTURBANCE,), over_time=over_time)


def test_the_row_of_a_disturbed_trial_has_its_mark_and_its_standard_error(tmp_path: Path) -> None:
    points, _ = points_of(measured(Disturbed(capacity_pps=1e6)), cores=2)
    (point,) = points
    assert DISTURBANCE in point.disturbed
    # Five inner parts of 1, 0.5, 1, 0.5, 1: their standard deviation over the root of five, by hand.
    assert point.standard_error_ratio == pytest.approx(0.27386 / 5**0.5, rel=0.01)
    table = write_points(points, tmp_path)
    head = table.read_text().partition("\n")[0].split(",")
    assert {"forwarding_rate_pps", "standard_error_ratio", "disturbed"} <= set(head)
    assert read_points(table) == points
    calm, _ = points_of(measured(Fluid(capacity_pps=1e6)), cores=2)
    assert (calm[0].disturbed, calm[0].standard_error_ratio, calm[0].rate_kind) == ("", None, "overload")


def test_disturbed_and_calm_rows_go_into_one_table(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    bare = replace(POINT, throughput_pps=float("nan"), calibrate=False)
    trials = [router.trial(LOAD.at(2e6), 0.5) for router in (Fluid(1e6), Disturbed(1e6), Fluid(1e6))]
    for count, trial in enumerate(trials, start=1):
        assert len(points_before(table, bare, command="measure")) == count - 1
        append_point(table, measured_point(replace(bare, cores=count), trial))
    rows = read_points(table)
    assert [bool(row.disturbed) for row in rows] == [False, True, False]
    assert {row.rate_kind for row in rows} == {"overload"}


def test_the_standard_error_of_a_rate_is_that_of_its_interval_or_its_parts() -> None:
    trial = Fluid(capacity_pps=1e6).trial(LOAD.at(2e6), 0.5)
    assert standard_error_ratio(trial) is None  # nothing tells of it
    spread = replace(trial, interval={"forwarded_pps": (0.98e6, 1.02e6)})
    assert standard_error_ratio(spread) == pytest.approx(0.02 / 1.96, rel=0.01)
    assert standard_error_ratio(replace(trial, over_time=course(1e6, 1e6, 1e6))) is None  # too few parts
    edges = replace(trial, over_time=course(0.0, 0.99e6, 1.01e6, 0.99e6, 1.01e6, 2e6))
    assert standard_error_ratio(edges) == pytest.approx(0.01155 / 2.0, rel=0.01)  # without the first and the last


def test_a_stream_with_broadcast_frames_gives_no_point() -> None:
    result = measured(Fluid(capacity_pps=1e6))
    streams = tuple(replace(stream, modifier=BROADCAST) for stream in result.setup.streams)
    points, reasons = points_of(replace(result, setup=replace(result.setup, streams=streams)), cores=2)
    assert points == ()
    assert "other frames as well (1 % broadcast frames)" in reasons[0]


def test_a_benchmark_without_overload_or_number_of_cores_gives_no_points_and_says_why() -> None:
    assert "only its procedure overloads the device" in points_of(measured(Fluid(1e6), "throughput"), cores=1)[1][0]
    assert "give them with --cores" in points_of(measured(Fluid(1e6)), cores=None)[1][0]
    predicted = run_benchmark(
        plan_of(profile_with(), procedures=["frame_loss"], frame_bytes=[64]), PlainRig(evaluator=Fluid(1e6), link=10e9)
    )
    assert points_of(predicted, cores=1) == ((), ("its rates are predictions",))
