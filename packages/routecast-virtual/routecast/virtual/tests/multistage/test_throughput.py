"""What multistage routers forward, against the smallest capacity on the frames' way, counted by hand."""

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, line_rate_pps
from routecast.virtual import Machine, Server
from routecast.virtual.multistage import Control, Interconnect, multistage_router
from routecast.virtual.tests.multistage.li2012_scenarios import table_3_2

BALANCER_S = (1024 + 512) * 1e-9
"""Both passes of a frame through a balancer's vcpu thread; every other thread has less to do."""


def elements(kvm, *, routers=2, speed=1.0, **kinds):
    """Return a router each of whose threads has a core of its own, so that none waits for another."""
    cores = iter(range(1, 4 + 2 * routers))
    balancer = Machine(
        name="lb 1", server="server 1", vcpu_cores=((next(cores),),), backend_cores=((next(cores),), (next(cores),))
    )
    behind = [
        Machine(name=f"br {n}", server="server 1", vcpu_cores=((next(cores),),), backend_cores=((next(cores),),))
        for n in range(1, routers + 1)
    ]
    server = Server(name="server 1", cores=4 + 2 * routers, technology=kvm, speed_ratio=speed, interrupt_cores=(0,))
    return multistage_router([server], [balancer], behind, ports_per_balancer=2, link_bps=10e9, **kinds)


def load(rate_pps, *flows, frame_bytes=64):
    return OfferedLoad(
        rate_pps=rate_pps,
        frames=FrameMix.fixed(frame_bytes),
        flows=FlowSet(name="flows", flows=flows or (Flow(rss_hash=0, ingress=0, egress=1),)),
    )


def trial(model, offered, duration_s=0.1):
    return Simulate(model, seed=1).trial(offered, duration_s)


def test_below_the_capacity_of_its_fullest_thread_nothing_is_lost_and_above_it_limits(kvm):
    model = elements(kvm)
    capacity_pps = 1.0 / BALANCER_S
    below = trial(model, load(0.98 * capacity_pps))
    assert below.dropped_frames == 0
    assert below.forwarded_pps == pytest.approx(0.98 * capacity_pps, rel=1e-3)
    above = trial(model, load(1.05 * capacity_pps))
    assert above.forwarded_pps == pytest.approx(capacity_pps, rel=0.02)


def test_the_work_of_each_thread_in_a_trial_is_what_a_frame_costs_it_times_the_frames(kvm, passing):
    model = elements(kvm, routers=3)
    offered_pps = 200e3
    flow = Flow(rss_hash=0, ingress=0, egress=1)
    answer = trial(model, load(offered_pps, flow))
    busy = {item.name: item.busy_ratio for item in answer.activity}
    for pin, seconds in passing.work_s(model, flow, 64.0).items():
        measured = sum(busy[task.name] for task in model.tasks if (task.needs[0].pool, task.pin) == pin)
        assert measured == pytest.approx(offered_pps * seconds, rel=0.01), pin


def test_a_server_at_half_the_speed_forwards_half_as_much(kvm):
    answer = trial(elements(kvm, speed=0.5), load(1.0 / BALANCER_S))
    assert answer.forwarded_pps == pytest.approx(0.5 / BALANCER_S, rel=0.03)


@pytest.mark.slow
def test_control_messages_take_their_part_of_the_fullest_core(kvm):
    """500 messages a second for each of 3 elements, spread over 8 cores: 187.5 messages of 400 us a second, 7.5 %."""
    model = elements(kvm, control=Control(rate_pps=500.0, message_s=400e-6))
    left = 1.0 - 500.0 * 3 / 8 * 400e-6
    answer = trial(model, load(1.02 / BALANCER_S), 0.5)
    assert answer.forwarded_pps == pytest.approx(left / BALANCER_S, rel=0.03)


def test_one_link_between_servers_limits_what_two_carry(kvm):
    """Scenarios C.1 and C.2 of Table 3.2, with costs low enough for the link to matter: two full ports, one link."""
    forwarded = {}
    for name in ("C.1", "C.2"):
        scenario = table_3_2(kvm)[name]
        offered = scenario.load(2 * line_rate_pps(1e9, 1500) * 0.99, 1500)
        answer = trial(scenario.model(), offered)
        forwarded[name] = answer.forwarded_pps
    assert forwarded["C.1"] == pytest.approx(1e9 / (8 * (1500 + 24)), rel=0.01)
    assert forwarded["C.2"] == pytest.approx(2 * line_rate_pps(1e9, 1500) * 0.99, rel=0.01)


def test_a_physical_switch_carries_no_more_than_its_rate(kvm):
    """Half of the frames cross between the servers on the way there, and half on the way back: one crossing each."""
    model = multistage_router(
        [Server(name=f"server {n}", cores=8, technology=kvm) for n in (1, 2)],
        [Machine(name=f"lb {n}", server=f"server {n}") for n in (1, 2)],
        [Machine(name=f"br {n}", server=f"server {n}") for n in (1, 2)],
        interconnect=Interconnect(joined="switch", switch_bps=0.5e9),
    )
    flows = (Flow(rss_hash=0, ingress=0, egress=1), Flow(rss_hash=1, ingress=1, egress=0))
    answer = trial(model, load(60e3, *flows, frame_bytes=1500))
    assert answer.forwarded_pps == pytest.approx(line_rate_pps(0.5e9, 1500), rel=0.02)


def test_all_frames_are_accounted_for_in_every_scenario_of_li_2012(kvm):
    for name, scenario in table_3_2(kvm).items():
        answer = trial(scenario.model(), scenario.load(600e3), 0.02)
        counted = answer.forwarded_frames + answer.dropped_frames + answer.in_flight_frames
        assert answer.offered_frames == counted, name
        assert answer.forwarded_frames > 0, name
