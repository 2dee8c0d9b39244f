"""Outages, changes of routes and copies in the simulator: counted by hand, refused where they cannot be."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.errors import ModelProblem
from routecast.evaluate import Simulate, Trial
from routecast.lab.benchmark.journal import read_trial
from routecast.load import Arrivals, Flow, FlowSet, OfferedLoad
from routecast.router import Event, Need, Outage, Port, Reroute, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit

CORE_PPS = 1e6
DURATION_S = 0.02


def balanced(queue: int = 64) -> RouterModel:
    """A balancer in front of two cores of 1 Mpps, by turns."""
    return RouterModel(
        name="balanced",
        ports=(Port(name="port 0", link_bps=1e12, entry="balancer"),),
        tasks=(
            TaskUnit(name="balancer", route=Route(kind="round_robin", to=("core 0", "core 1"))),
            *(
                TaskUnit(
                    name=f"core {core}",
                    needs=(Need(pool="cpu"),),
                    pin=(core,),
                    service=ServiceCost(per_packet_s=1.0 / CORE_PPS),
                    queue_frames=queue,
                    route=Route(to=("port 0",)),
                )
                for core in (0, 1)
            ),
        ),
        pools=(ResourcePool(name="cpu", units=2),),
    )


def load(rate_pps: float, kind: str = "cbr") -> OfferedLoad:
    flows = FlowSet(name="two", flows=(Flow(rss_hash=0, egress=0), Flow(rss_hash=1, egress=0)))
    return OfferedLoad(rate_pps=rate_pps, flows=flows, arrivals=Arrivals(kind=kind))  # type: ignore[arg-type]


def simulated(rate_pps: float, *events: Event, kind: str = "cbr", seed: int = 1) -> Trial:
    return Simulate(balanced(), events=events, seed=seed).trial(load(rate_pps, kind), DURATION_S)


def rate(trial: Trial, what: str, from_s: float, until_s: float) -> float:
    rates = [getattr(item, what) for item in trial.over_time if from_s <= item.time_s < until_s - 1e-12]
    return sum(rates) / len(rates)


@settings(derandomize=True)
@given(rho=st.floats(0.1, 0.9), from_s=st.floats(0.002, 0.008), lasts_s=st.floats(0.001, 0.01), seed=st.integers(1, 99))
def test_an_outage_loses_its_rate_times_its_length_and_what_the_core_held(
    rho: float, from_s: float, lasts_s: float, seed: int
) -> None:
    until_s = from_s + lasts_s
    trial = simulated(
        2 * rho * CORE_PPS, Outage(task="core 0", from_s=from_s, until_s=until_s), kind="poisson", seed=seed
    )
    expected = rho * CORE_PPS * lasts_s
    # What comes meanwhile is a Poisson count; what the core held is a queue of M/D/1, with a ring of 64.
    assert trial.dropped_frames is not None
    assert -6.0 * math.sqrt(expected) <= trial.dropped_frames - expected <= 6.0 * math.sqrt(expected) + 65
    assert set(trial.drops_pps) <= {"core 0", "core 1"}
    # The core serves again at once: nothing is lost after the end of the outage, and rates are what they were.
    assert trial.last_loss_s <= until_s
    after_s = DURATION_S - until_s
    assert rate(trial, "forwarded_pps", until_s, DURATION_S) == pytest.approx(
        2 * rho * CORE_PPS, abs=(6 * math.sqrt(2 * rho * CORE_PPS * after_s) + 80) / after_s
    )


def test_rates_over_time_add_up_to_the_counts_of_the_trial_and_show_the_outage() -> None:
    trial = simulated(1.6e6, Outage(task="core 1", from_s=0.005, until_s=0.010))
    part_s = DURATION_S / len(trial.over_time)
    for what, frames in (
        ("offered_pps", trial.offered_frames),
        ("forwarded_pps", trial.forwarded_frames),
        ("dropped_pps", trial.dropped_frames),
    ):
        assert sum(getattr(item, what) for item in trial.over_time) * part_s == pytest.approx(frames, abs=1e-6)
    assert rate(trial, "forwarded_pps", 0.001, 0.005) == pytest.approx(1.6e6, rel=1e-3)
    assert rate(trial, "forwarded_pps", 0.005, 0.010) == pytest.approx(0.8e6, rel=2e-3)
    assert rate(trial, "dropped_pps", 0.005, 0.010) == pytest.approx(0.8e6, rel=2e-3)
    assert rate(trial, "forwarded_pps", 0.010, 0.020) == pytest.approx(1.6e6, rel=1e-3)
    # The whole trial counts, and no interval is given for what is no steady state.
    assert trial.measured_s == DURATION_S
    assert "forwarded_pps" not in trial.interval
    assert any("no steady state is claimed" in note for note in trial.notes)


def test_a_balancer_that_notices_a_failure_late_loses_until_then_and_no_longer() -> None:
    # Down from 5 ms on; the balancer leaves the core out from 6 ms on and takes it back at 12 ms: half a rate of loss
    # for 1 ms, then the other core has all of 0.8 Mpps, which it can carry.
    trial = simulated(
        0.8e6,
        Outage(task="core 0", from_s=0.005, until_s=0.012),
        Reroute(task="balancer", at_s=0.006, route=Route(to=("core 1",))),
        Reroute(task="balancer", at_s=0.012, route=Route(kind="round_robin", to=("core 0", "core 1"))),
    )
    assert trial.dropped_frames == pytest.approx(400, abs=2)
    assert 0.005 - 2e-6 <= trial.first_loss_s <= 0.005 + 3e-6
    assert 0.006 - 4e-6 <= trial.last_loss_s < 0.006
    assert rate(trial, "forwarded_pps", 0.007, 0.020) == pytest.approx(0.8e6, rel=1e-3)


def test_a_route_changes_for_the_frames_from_its_instant_on() -> None:
    # A frame each 2 us, 10,000 in all: those before 5 ms and from there on.
    event = Reroute(task="balancer", at_s=0.005, route=Route(to=("core 1",)))
    model = replace(
        balanced(),
        tasks=(
            replace(balanced().tasks[0], route=Route(kind="per_flow", to=("core 0", "core 1"))),
            *balanced().tasks[1:],
        ),
    )
    one_flow = OfferedLoad(rate_pps=0.5e6, flows=FlowSet(name="one", flows=(Flow(rss_hash=0, egress=0),)))
    trial = Simulate(model, events=(event,)).trial(one_flow, DURATION_S)
    busy = {task.name: task.busy_ratio * DURATION_S * CORE_PPS for task in trial.activity}
    assert busy["core 0"] == pytest.approx(2500, abs=1e-3)
    assert busy["core 1"] == pytest.approx(7500, abs=1.001)


def test_one_seed_gives_one_answer_whichever_way_it_is_computed() -> None:
    events = (
        Outage(task="core 0", from_s=0.004, until_s=0.006),
        Reroute(task="balancer", at_s=0.01, route=Route(to=("core 1",))),
    )
    auto, by_events = (
        Simulate(balanced(), events=events, path=path).trial(load(1.2e6, "poisson"), DURATION_S).to_json()  # type: ignore[arg-type]
        for path in ("auto", "events")
    )
    for kept in (auto, by_events):
        for task in kept["activity"]:  # type: ignore[attr-defined]
            assert task.pop("polls_per_s") is None
    assert auto == by_events
    assert auto != simulated(1.2e6, *events, kind="poisson", seed=2).to_json()
    with pytest.raises(ModelProblem, match="something happens to it"):
        Simulate(balanced(), events=events, path="recursion").trial(load(1e5), DURATION_S)


def test_flows_are_counted_apart_during_events_and_outlive_a_journal() -> None:
    trial = simulated(0.8e6, Outage(task="core 0", from_s=0.0, until_s=0.010))
    # Frames take turns, so do the flows: the first one is lost for half of the trial.
    assert trial.flows[0].loss_ratio == pytest.approx(0.5, abs=1e-3)
    assert trial.flows[1].loss_ratio == 0.0
    copy = read_trial(json.dumps(trial.to_json()))
    assert (copy.flows, copy.over_time) == (trial.flows, trial.over_time)


def test_without_events_rates_over_time_are_kept_on_request() -> None:
    router = balanced()
    assert Simulate(router).trial(load(0.5e6), DURATION_S).over_time == ()
    trial = Simulate(router, over_time=True).trial(load(0.5e6), DURATION_S)
    assert len(trial.over_time) == 1000
    assert trial.over_time[0].time_s == 0.0
    assert trial.over_time[-1].time_s == pytest.approx(DURATION_S * 0.999)
    assert rate(trial, "forwarded_pps", 0.0, DURATION_S) == pytest.approx(0.5e6, rel=1e-3)


def test_copies_cost_their_task_unit_its_time_and_change_nothing_else() -> None:
    def hub(*copies: str) -> RouterModel:
        balancer, first, second = balanced().tasks
        return replace(balanced(), tasks=(replace(balancer, route=Route(to=("core 0",), copies=copies)), first, second))

    offered = load(0.6e6, "poisson")
    with pytest.raises(ModelProblem, match='"core 1" is never reached'):
        hub()
    flooding = Simulate(hub("core 1")).trial(offered, DURATION_S)
    # A copy to the one that gets the frame itself is none.
    plain = Simulate(hub("core 0", "core 1")).trial(offered, DURATION_S)
    assert flooding == plain
    busy = {task.name: task for task in flooding.activity}
    assert busy["core 1"].busy_ratio == pytest.approx(busy["core 0"].busy_ratio, rel=1e-3)
    assert busy["core 1"].busy_ratio == pytest.approx(0.6, abs=0.03)
    assert busy["core 1"].copies_per_s == pytest.approx(flooding.forwarded_pps, rel=2e-3)
    assert busy["core 1"].copies_lost_per_s == busy["core 0"].copies_per_s == 0.0
    assert flooding.offered_frames == flooding.forwarded_frames + flooding.in_flight_frames  # type: ignore[operator]
    assert flooding.in_flight_frames <= 65  # type: ignore[operator]


def test_every_fault_of_events_is_named_at_once() -> None:
    events = (
        Outage(task="core 7", from_s=0.001),
        Outage(task="core 0", from_s=0.5),
        Outage(task="core 0", from_s=0.004, until_s=0.003),
        Reroute(task="core 1", at_s=-1.0, route=Route(to=("core 9",))),
        Reroute(task="core 1", at_s=0.001, route=Route(to=("balancer",))),
        Reroute(task="balancer", at_s=0.001, route=Route(to=("core 0",), copies=("port 0", "core1"))),
    )
    with pytest.raises(ModelProblem) as raised:
        simulated(1e5, *events)
    result = {problem.place: problem.message for problem in raised.value.problems}
    assert result.keys() == {
        "events[0].task",
        "events[1].from_s",
        "events[2].until_s",
        "events[3].at_s",
        "events[3].route.to[0]",
        "events[5].route.copies[0]",
        "events[5].route.copies[1]",
        "events",
    }
    assert 'did you mean "core 0"?' in result["events[0].task"] or 'did you mean "core 1"?' in result["events[0].task"]
    assert "0 to 20 ms" in result["events[1].from_s"]
    assert "is a port" in result["events[5].route.copies[0]"]
    assert 'did you mean "core 1"?' in result["events[5].route.copies[1]"]
    assert "balancer → core 1" in result["events"] or "core 1 → balancer" in result["events"]


def test_flows_need_the_ports_of_routes_that_come_later() -> None:
    model = replace(balanced(), ports=(*balanced().ports, Port(name="port 1", link_bps=1e12, entry="balancer")))
    later = Reroute(task="core 0", at_s=0.001, route=Route(kind="egress", to=("port 0",)))
    wanting = OfferedLoad(rate_pps=1e5, flows=FlowSet(name="one", flows=(Flow(rss_hash=0, egress=1),)))
    assert Simulate(model).trial(wanting, DURATION_S).loss_ratio == 0.0
    with pytest.raises(ModelProblem, match='wants "port 1", which the egress route of "core 0" leaves out'):
        Simulate(model, events=(later,)).trial(wanting, DURATION_S)
