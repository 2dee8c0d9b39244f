"""Simulated failures and floods: what is lost while nobody knows, and what copies cost, counted by hand."""

from dataclasses import replace

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load.flows import Flow, FlowSet
from routecast.load.offered import OfferedLoad
from routecast.router.events import Reroute
from routecast.virtual import Machine, Server
from routecast.virtual.multistage import (
    TAKEOVER_S,
    Interconnect,
    balancers,
    events_of,
    failed,
    failover,
    multistage_router,
    switched,
    with_takeovers,
)

RATE_PPS = 150e3
ROUTERS = 3
HELD_FRAMES = 10
"""More than an element holds at this load, when it fails."""


def model(kvm, **kinds):
    """Return a balancer and three routers with a core for each thread and to spare."""
    cores = iter(range(1, 10))
    balancer = Machine(
        name="lb 1", server="server 1", vcpu_cores=((next(cores),),), backend_cores=((next(cores),), (next(cores),))
    )
    routers = [
        Machine(name=f"br {n}", server="server 1", vcpu_cores=((next(cores),),), backend_cores=((next(cores),),))
        for n in range(1, ROUTERS + 1)
    ]
    server = Server(name="server 1", cores=10, technology=kvm, interrupt_cores=(0,))
    return multistage_router([server], [balancer], routers, ports_per_balancer=2, **kinds)


def load(flows=6):
    flow_set = tuple(Flow(rss_hash=n, ingress=0, egress=1) for n in range(flows))
    return OfferedLoad(rate_pps=RATE_PPS, flows=FlowSet(name="one way", flows=flow_set))


@pytest.mark.parametrize("detection_s", [0.0, 5e-3, 30e-3])
@pytest.mark.parametrize("until_s", [25e-3, 60e-3, float("inf")])
def test_a_failed_router_costs_its_share_of_the_frames_until_it_is_detected_or_back(kvm, detection_s, until_s):
    """Li 2012, sec. 1.2: the router recovers from the failure of an element by itself; the loss is up to then."""
    router = model(kvm)
    events = failover(router, "br 2", at_s=20e-3, until_s=until_s, detection_s=detection_s)
    trial = Simulate(router, seed=1, events=events).trial(load(), 0.1)
    by_hand = RATE_PPS / ROUTERS * min(detection_s, until_s - 20e-3)
    assert trial.dropped_frames == pytest.approx(by_hand, abs=HELD_FRAMES)
    assert trial.offered_frames == trial.forwarded_frames + trial.dropped_frames + trial.in_flight_frames


def test_a_failure_that_nobody_notices_costs_its_share_to_the_end(kvm):
    router = model(kvm)
    events = failover(router, "br 1", at_s=50e-3, detection_s=float("inf"))
    trial = Simulate(router, seed=1, events=events).trial(load(), 0.1)
    assert trial.dropped_frames == pytest.approx(RATE_PPS / ROUTERS * 50e-3, abs=HELD_FRAMES)


def test_a_router_that_is_switched_off_by_plan_and_on_again_loses_nothing(kvm):
    router = model(kvm)
    events = switched(router, "br 3", off_s=20e-3, on_s=60e-3, drain_s=5e-3)
    trial = Simulate(router, seed=1, events=events).trial(load(), 0.1)
    assert trial.dropped_frames == 0
    during = [entry for entry in trial.over_time if 30e-3 < entry.time_s < 55e-3]
    mean_pps = sum(item.forwarded_pps for item in during) / len(during)
    assert mean_pps == pytest.approx(RATE_PPS, rel=0.01)


def test_by_flow_hash_only_the_flows_of_the_failed_router_lose_frames(kvm):
    router = model(kvm, balancing="flow_hash")
    events = failover(router, "br 2", at_s=0.0, detection_s=50e-3)
    trial = Simulate(router, seed=1, events=events).trial(load(6), 0.1)
    for flow in trial.flows:
        # Flows 1 and 4 of hashes 1 and 4 are those of router 1, counted from 0; half of the trial they lose all.
        assert flow.loss_ratio == pytest.approx(0.5 if flow.number % ROUTERS == 1 else 0.0, abs=0.01)


def test_a_balancer_that_fails_takes_all_its_traffic_with_it(kvm):
    router = model(kvm)
    events = failover(router, "lb 1", at_s=60e-3, until_s=80e-3, detection_s=1e-3)
    trial = Simulate(router, seed=1, events=events).trial(load(), 0.1)
    assert trial.dropped_frames == pytest.approx(RATE_PPS * 20e-3, abs=HELD_FRAMES)


def several_balancers(kvm, count=2, ports=1):
    """Return a router whose load balancers have a server and ports each, and that take over from each other."""
    names = [f"lb {n}" for n in range(1, count + 1)]
    servers = [Server(name=f"server {n}", cores=12, technology=kvm, interrupt_cores=(0,)) for n in range(1, count + 1)]
    first = [
        Machine(name=name, server=server.name, vcpu_cores=((1,),), backend_cores=((2,), (3,)))
        for name, server in zip(names, servers, strict=True)
    ]
    last = [Machine(name=f"br {n}", server=f"server {n}", vcpu_cores=((4,),), backend_cores=((5,),)) for n in (1, 2)]
    interconnect = Interconnect(link_bps=10e9)
    return with_takeovers(
        multistage_router(servers, first, last, interconnect=interconnect, ports_per_balancer=ports, link_bps=10e9)
    )


def both_ways(rate_pps, ports=2):
    flows = tuple(Flow(rss_hash=n, ingress=n, egress=(n + 1) % ports) for n in range(ports))
    return OfferedLoad(rate_pps=rate_pps, flows=FlowSet(name="both ways", flows=flows))


def phase_pps(trial, start_s, end_s):
    during = [moment.forwarded_pps for moment in trial.over_time if start_s < moment.time_s < end_s]
    return sum(during) / len(during)


@pytest.mark.parametrize("name", ["lb 1", "lb 2"])
@pytest.mark.parametrize(("detection_s", "until_s"), [(TAKEOVER_S, float("inf")), (50e-3, 0.3), (0.2, 0.15)])
def test_a_failed_balancer_costs_all_frames_until_another_takes_over_or_it_is_back(kvm, name, detection_s, until_s):
    """Both directions pass both load balancers, so that all frames are lost: rate times time."""
    router = several_balancers(kvm)
    events = failover(router, name, at_s=0.1, until_s=until_s, detection_s=detection_s)
    trial = Simulate(router, seed=1, events=events).trial(both_ways(100e3), 0.6)
    away_s = min(detection_s, until_s - 0.1)
    assert trial.dropped_frames == pytest.approx(100e3 * away_s, abs=2 * HELD_FRAMES)
    assert trial.offered_frames == trial.forwarded_frames + trial.dropped_frames + trial.in_flight_frames
    assert phase_pps(trial, 0.11, 0.09 + away_s) == 0.0
    assert phase_pps(trial, 0.15 + away_s, 0.6) == pytest.approx(100e3, rel=0.01)


def test_a_balancer_that_is_switched_off_by_plan_loses_nothing_and_idles(kvm):
    router = several_balancers(kvm)
    events = switched(router, "lb 1", off_s=20e-3, drain_s=5e-3)
    trial = Simulate(router, seed=1, events=events).trial(both_ways(100e3), 0.1)
    assert trial.dropped_frames == 0
    assert phase_pps(trial, 40e-3, 0.1) == pytest.approx(100e3, rel=0.01)


def test_the_next_balancer_that_is_up_takes_over(kvm):
    router = several_balancers(kvm, count=3, ports=2)
    assert balancers(router) == ("lb 1", "lb 2", "lb 3")
    absences = [failed(name, at_s=0.0, detection_s=0.0) for name in ("lb 1", "lb 2")]
    routes = {event.task: event.route for event in events_of(router, absences) if isinstance(event, Reroute)}
    assert routes["port 0 segment"].to == ("port 4 to lb 3 softirq",)
    assert routes["port 3 segment"].to == ("port 5 to lb 3 softirq",)
    assert "port 4 segment" not in routes
    assert all("to lb 3" in target for target in routes["br 1 forward"].to)


def test_without_another_balancer_all_is_lost(kvm):
    router = several_balancers(kvm)
    absences = [failed(name, at_s=20e-3, detection_s=5e-3) for name in ("lb 1", "lb 2")]
    trial = Simulate(router, seed=1, events=events_of(router, absences)).trial(both_ways(100e3), 0.1)
    assert trial.dropped_frames == pytest.approx(100e3 * 80e-3, abs=2 * HELD_FRAMES)
    assert with_takeovers(model(kvm)) == model(kvm)  # one load balancer with two ports


def test_a_router_of_which_nobody_fails_is_the_same_with_takeovers(kvm):
    with_segments = several_balancers(kvm)
    without = replace(
        with_segments,
        tasks=tuple(task for task in with_segments.tasks if not task.name.endswith("segment")),
        ports=tuple(replace(port, entry=with_segments.task(port.entry).route.to[0]) for port in with_segments.ports),
    )
    trials = [Simulate(router, seed=1).trial(both_ways(100e3), 0.05) for router in (with_segments, without)]
    assert trials[0].forwarded_frames == trials[1].forwarded_frames
    assert trials[0].latency.mean_s == pytest.approx(trials[1].latency.mean_s, rel=1e-9)


def test_after_a_takeover_the_closed_form_and_the_simulator_forward_the_same(kvm):
    """One load balancer does the work of two, more than it can: the closed form of the routes after the takeover."""
    router = several_balancers(kvm)
    events = failover(router, "lb 1", at_s=0.0, detection_s=0.0)
    routes = {event.task: event.route for event in events if isinstance(event, Reroute)}
    after = {task.name: replace(task, route=routes.get(task.name, task.route)) for task in router.tasks}
    reached = {port.entry for port in router.ports}
    for _ in after:
        reached |= {target for name in reached if name in after for target in after[name].route.to}
    after = replace(router, tasks=tuple(task for task in after.values() if task.name in reached))
    load = both_ways(800e3)
    both = Solve(router).trial(load, 1.0).forwarded_pps
    alone = Solve(after).trial(load, 1.0).forwarded_pps
    assert alone < 0.95 * both
    trial = Simulate(router, seed=1, events=events).trial(load, 0.3)
    assert phase_pps(trial, 0.1, 0.3) == pytest.approx(alone, rel=0.02)


def test_a_shared_hub_makes_every_element_work_for_the_frames_of_the_others(kvm):
    """Each frame crosses the hub twice; each of the two elements that it is not for gets a copy each time."""
    work = {}
    for kind in ("hub", "shared_hub"):
        router = model(kvm, interconnect=Interconnect(kind=kind, filtered_by="backend"))
        trial = Simulate(router, seed=1).trial(load(), 0.1)
        assert trial.dropped_frames == 0
        work[kind] = {item.name: item.busy_ratio for item in trial.activity}
    receive_s = kvm.receive.per_packet_s
    for n in range(1, ROUTERS + 1):
        # A third of the frames is its own; it hears both crossings of the other two thirds.
        name = f"br {n} receive 0"
        assert work["hub"][name] == pytest.approx(RATE_PPS / 3 * receive_s, rel=0.02)
        assert work["shared_hub"][name] == pytest.approx(RATE_PPS * (1 / 3 + 2 * 2 / 3) * receive_s, rel=0.02)
