"""What becomes of each flow, and routes that ask where a flow leaves by."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate import Simulate, Solve, Trial
from routecast.lab.benchmark.journal import read_trial
from routecast.load import Flow, FlowSet, OfferedLoad
from routecast.router import Need, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit
from routecast.router.files import parse_router

CORE_PPS = 1e6


def fork(to: tuple[str, ...] = ("left", "right")) -> RouterModel:
    """A distributor by egress in front of two cores of 1 Mpps, each before its port."""
    return RouterModel(
        name="fork",
        ports=(
            Port(name="port 0", link_bps=1e12, entry="distributor"),
            Port(name="port 1", link_bps=1e12, entry="distributor"),
        ),
        tasks=(
            TaskUnit(name="distributor", route=Route(kind="by_egress", to=to)),
            *(
                TaskUnit(
                    name=name,
                    needs=(Need(pool=name),),
                    service=ServiceCost(per_packet_s=1.0 / CORE_PPS),
                    queue_frames=64,
                    route=Route(to=(port,)),
                )
                for name, port in (("left", "port 0"), ("right", "port 1"))
            ),
        ),
        pools=(ResourcePool(name="left"), ResourcePool(name="right")),
    )


def load(rate_pps: float, *egress: int) -> OfferedLoad:
    flows = tuple(Flow(rss_hash=0, egress=port) for port in egress)
    return OfferedLoad(rate_pps=rate_pps, flows=FlowSet(name="flows", flows=flows))


def busy(trial: Trial, name: str) -> float:
    return next(task.busy_ratio for task in trial.activity if task.name == name)


def test_simulator_and_solver_send_flows_to_the_task_unit_of_their_port() -> None:
    offered = load(0.8e6, 1, 0, 1, 1)
    for trial in (
        Simulate(fork()).trial(offered, 0.01),
        Simulate(fork(), path="events").trial(offered, 0.01),
        Solve(fork()).trial(offered, 0.01),
    ):
        assert busy(trial, "left") == pytest.approx(0.2, abs=1e-3)
        assert busy(trial, "right") == pytest.approx(0.6, abs=1e-3)
        assert trial.loss_ratio == 0.0


def test_each_flow_loses_what_its_own_core_cannot_do() -> None:
    # Three of four flows want the right core: 1.5 Mpps, of which a third is too much; the left one gets 0.5 Mpps.
    trial = Simulate(fork(), per_flow=True).trial(load(2e6, 1, 0, 1, 1), 0.02)
    assert [flow.number for flow in trial.flows] == [0, 1, 2, 3]
    assert all(flow.offered_pps == pytest.approx(0.5e6, rel=1e-3) for flow in trial.flows)
    assert trial.flows[1].loss_ratio == 0.0
    right = [trial.flows[number] for number in (0, 2, 3)]
    assert sum(flow.forwarded_pps for flow in right) == pytest.approx(CORE_PPS, rel=1e-3)
    assert sum(flow.forwarded_pps for flow in trial.flows) == pytest.approx(trial.forwarded_pps, rel=1e-12)
    lost_pps = sum(flow.loss_ratio * flow.offered_pps for flow in trial.flows)
    assert lost_pps == pytest.approx(sum(trial.drops_pps.values()), rel=1e-9)


def test_counting_flows_changes_nothing_else_and_outlives_a_journal() -> None:
    offered = load(2e6, 1, 0, 1, 1)
    plain, counted = (Simulate(fork(), per_flow=counting).trial(offered, 0.01) for counting in (False, True))
    assert plain.flows == ()
    assert replace(counted, flows=()).to_json() == plain.to_json()
    assert read_trial(json.dumps(counted.to_json())).flows == counted.flows


def test_replications_report_the_mean_of_each_flow() -> None:
    trial = Simulate(fork(), per_flow=True, replications=3).trial(load(0.8e6, 1, 0), 0.005)
    assert [flow.offered_pps for flow in trial.flows] == pytest.approx([0.4e6, 0.4e6], rel=1e-2)
    assert math.fsum(flow.forwarded_pps for flow in trial.flows) == pytest.approx(trial.forwarded_pps, rel=1e-9)


def test_a_route_by_egress_names_a_target_for_each_port_and_flows_name_ports_that_exist() -> None:
    with pytest.raises(ModelProblem, match="has 1 targets for 2 ports: by_egress needs one for each port"):
        fork(to=("left",))
    with pytest.raises(ModelProblem, match="names port 2"):
        Simulate(fork()).trial(load(1e5, 2), 0.01)


def test_router_files_know_routes_by_egress() -> None:
    text = """
        port = [{ name = "a", link = "10 Gbit/s", entry = "in" }, { name = "b", link = "10 Gbit/s", entry = "in" }]
        [[task]]
        name = "in"
        route = { kind = "by_egress", to = ["a", "core"] }
        [[task]]
        name = "core"
        route = { to = ["b"] }
    """
    model, _ = parse_router(text)
    assert model.task("in").route == Route(kind="by_egress", to=("a", "core"))
    with pytest.raises(FileProblem, match="one for each port"):
        parse_router(text.replace('["a", "core"]', '["a", "core", "b"]'))
