"""Simulated failures and floods: what is lost while nobody knows, and what copies cost, counted by hand."""

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.load.flows import Flow, FlowSet
from routecast.load.offered import OfferedLoad
from routecast.router.multistage import Interconnect, failover, multistage_router, switched
from routecast.router.virtual import Machine, Server

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
