"""A function in memory answers like any router: frames are conserved, and what is beyond its capacity is lost."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest

from routecast.errors import EnvironmentProblem, ModelProblem
from routecast.evaluate.protocol import Described, Evaluator
from routecast.lab.benchmark import PlainRig, plan_of, read_profile, run_benchmark
from routecast.lab.testbed import function_run
from routecast.lab.testbed.function_run import InMemory
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep
from routecast.load.popularity import Popularity

CORE_HZ = 2e9
CYCLES = 200.0
CORE_PPS = CORE_HZ / CYCLES  # 10 Mpps


class KnownCore:
    """A fake of the compiled core: a function of 200 cycles on cores of 2 GHz, behind a full queue."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.preempted_frames = 0
        self.lost_frames = 0
        self.denied_ratio = 0.0

    def __call__(self, call: str, request: Any, on_progress: Any = None) -> dict[str, Any]:
        assert call == "run_function"
        self.requests.append(request)
        cores = len(request["cores"])
        capacity = cores * CORE_PPS
        rate = request["offered_pps"] or capacity
        offered = round(rate * request["duration_s"])
        overflow = offered - min(offered, round(capacity * request["duration_s"])) + self.preempted_frames
        denied = round(self.denied_ratio * (offered - overflow))
        forwarded = offered - overflow - denied - self.lost_frames
        core = {"cycles_per_packet": CYCLES, "core_hz": CORE_HZ, "pps": CORE_PPS}
        latency = {"count": forwarded, "hdr_base64": ""}
        latency.update(dict.fromkeys(("mean_s", "min_s", "p50_s", "p90_s", "p99_s", "p999_s", "max_s"), 1e-6))
        return {
            "offered": offered,
            "forwarded": forwarded,
            "dropped": {"queue": overflow, "denied": denied},
            "pass_s": {"min": 4e-4, "p25": 4.1e-4, "median": 4.1e-4, "p75": 4.2e-4},
            "pps": capacity if request["offered_pps"] is None else forwarded / request["duration_s"],
            "per_core": [core] * cores,
            "latency": None if request["offered_pps"] is None else latency,
            "steal_ratio": 0.0,
            "notes": [],
        }


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> KnownCore:
    fake = KnownCore()
    monkeypatch.setattr(function_run, "native", fake)
    return fake


def test_it_is_an_evaluator_that_says_what_it_is() -> None:
    evaluator = InMemory(function="l2_switch", tables={"mac": 1024})
    assert isinstance(evaluator, Evaluator)
    assert isinstance(evaluator, Described)
    assert evaluator.facts()["device"]["tables"] == {"mac": 1024}  # type: ignore[index]  # plain data


@pytest.mark.parametrize("rate_pps", [1e6, 9.9e6, 25e6])
def test_what_is_beyond_the_capacity_is_lost_and_frames_are_conserved(core: KnownCore, rate_pps: float) -> None:
    trial = InMemory(function="l2_switch").trial(OfferedLoad(rate_pps=rate_pps), 0.1)
    assert trial.is_valid
    assert trial.offered_frames == sum(
        count or 0 for count in (trial.forwarded_frames, trial.dropped_frames, trial.in_flight_frames)
    )  # S12
    assert trial.loss_ratio == pytest.approx(max(1.0 - CORE_PPS / rate_pps, 0.0))
    assert trial.resources[0].utilisation_ratio == pytest.approx(min(rate_pps / CORE_PPS, 1.0))
    assert trial.bottleneck.kind == ("load" if rate_pps < 0.95 * CORE_PPS else "pool")


def test_saturated_it_tells_the_capacity_of_its_cores(core: KnownCore) -> None:
    evaluator = InMemory(function="l2_switch", cores=(0, 1))
    trial = replace(evaluator, saturate=True).trial(OfferedLoad(rate_pps=1.0), 0.1)
    assert trial.forwarded_pps == pytest.approx(2 * CORE_PPS)
    assert trial.loss_ratio == 0.0
    assert trial.latency is None
    assert core.requests[0]["offered_pps"] is None


def test_loss_at_idle_cores_is_no_result(core: KnownCore) -> None:
    core.preempted_frames = 1000
    evaluator = InMemory(function="l2_switch")
    trial = evaluator.trial(OfferedLoad(rate_pps=1e6), 0.1)
    assert not trial.is_valid
    assert "something else ran" in trial.invalid[0]
    assert trial.bottleneck.kind == "load"
    assert evaluator.trial(OfferedLoad(rate_pps=20e6), 0.1).is_valid


def test_drops_are_reported_by_their_reason(core: KnownCore) -> None:
    core.denied_ratio = 0.25
    trial = InMemory(function="acl_firewall").trial(OfferedLoad(rate_pps=1e6), 1.0)
    assert trial.drops_pps == {"denied": pytest.approx(0.25e6)}


def test_frames_that_vanish_are_a_fault(core: KnownCore) -> None:
    core.lost_frames = 5000  # more than the queue can hold at the end
    with pytest.raises(EnvironmentProblem, match="does not conserve frames"):
        InMemory(function="l2_switch").trial(OfferedLoad(rate_pps=1e6), 1.0)


def test_the_load_reaches_the_function(core: KnownCore) -> None:
    load = OfferedLoad(rate_pps=1e6, frames=FrameMix.table([(7, 64), (4, 594), (1, 1518)]), flows=FlowSet.crafted(12))
    InMemory(function="l2_switch").trial(load, 0.5)
    InMemory(function="l2_switch", popularity=Popularity(kind="zipf", exponent=0.9)).trial(load, 0.5)
    first, second = core.requests
    assert first["mix"] == [[64, 7], [594, 4], [1518, 1]]
    assert (first["flows"], first["popularity"]) == (12, "uniform")
    assert (second["flows"], second["popularity"], second["exponent"]) == (None, "zipf", 0.9)


@pytest.mark.parametrize(
    ("load", "place"),
    [
        (OfferedLoad(rate_pps=1e6, steps=(RateStep(at_s=0.5, rate_pps=5e5),)), "steps"),
        (OfferedLoad(rate_pps=1e6, arrivals=Arrivals.poisson()), "arrivals"),
    ],
)
def test_loads_that_memory_cannot_offer_are_refused(load: OfferedLoad, place: str) -> None:
    with pytest.raises(ModelProblem, match=place):
        InMemory(function="l2_switch").trial(load, 1.0)


class TestForReal:
    """The functions of the core themselves, small and short."""

    @pytest.mark.parametrize("rate_pps", [1e5, 1e12])
    def test_frames_are_conserved_below_and_far_above_the_capacity(self, rate_pps: float) -> None:
        if rate_pps > 1e9:
            load, duration_s = OfferedLoad(rate_pps=1e9), 0.01  # ten million frames, nearly all lost
        else:
            load, duration_s = OfferedLoad(rate_pps=rate_pps), 0.05
        trial = InMemory(function="l2_switch", tables={"mac": 1024}, queue_frames=512).trial(load, duration_s)
        counts = (trial.forwarded_frames, trial.dropped_frames, trial.in_flight_frames)
        assert trial.offered_frames == round(load.rate_pps * duration_s)
        assert trial.offered_frames == sum(count or 0 for count in counts)  # S12
        assert trial.latency is not None
        assert trial.latency.min_s > 0.0
        if rate_pps > 1e9:
            assert trial.loss_ratio > 0.5

    @pytest.mark.slow
    def test_saturated_it_loses_nothing(self) -> None:
        trial = InMemory(function="ipv4_router", tables={"fib": 1000}, cores=_one_core(), saturate=True).trial(
            OfferedLoad(rate_pps=1.0), 0.02
        )
        assert trial.loss_ratio == 0.0
        assert trial.forwarded_pps > 1e4  # an interpreter would be slower
        assert trial.forwarded_frames == trial.offered_frames

    def test_frames_too_short_for_the_headers_are_refused(self) -> None:
        with pytest.raises(ModelProblem, match="frame"):
            InMemory(function="bng", direction="core").trial(OfferedLoad(rate_pps=1e5, frames=FrameMix.fixed(64)), 0.01)

    def test_an_unknown_function_or_table_is_refused_with_those_there_are(self) -> None:
        load = OfferedLoad(rate_pps=1e5)
        with pytest.raises(ModelProblem, match="l2_switch"):
            InMemory(function="l9_switch").trial(load, 0.01)
        with pytest.raises(ModelProblem, match="mac"):
            InMemory(function="l2_switch", tables={"hops": 5}).trial(load, 0.01)

    @pytest.mark.slow
    def test_the_throughput_search_of_rfc_2544_runs_over_it(self) -> None:
        profile = read_profile("quick")
        goals = profile.throughput.goal
        short = tuple(replace(goal, initial_trial=0.02, final_trial=0.02, duration_sum=0.04) for goal in goals)
        quick = profile.changed("throughput", repeats=1, goal=short)
        # A long queue: other work on the core for a few milliseconds fills it, but does not overflow it.
        function = InMemory(function="l2_switch", tables={"mac": 1024}, queue_frames=1 << 17)
        rig = PlainRig(evaluator=function, link=50e9)
        result = run_benchmark(plan_of(quick, procedures=("throughput",), frame_bytes=(64,)), rig)
        answer = [row for row in result.throughput.rows if row.lower_pps > 0.0] if result.throughput else []
        if not answer:
            pytest.skip(f"other work took the core in too many trials: {'; '.join(result.notes)}")
        for row in answer:
            # What the tester reached while the machine was busy may be a rate that the function keeps: no upper bound.
            upper_pps = row.lower_pps if row.outcome == "maximum" else row.upper_pps
            assert row.lower_pps <= upper_pps
            assert upper_pps <= row.theoretical_pps * (1.0 + 1e-9)


def _one_core() -> tuple[int, ...]:
    return (min(os.sched_getaffinity(0)),)
