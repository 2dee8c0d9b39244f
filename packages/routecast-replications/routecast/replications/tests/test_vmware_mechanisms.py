"""What moderation and interrupts that bring frames do to a virtual router, apart from any product's costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.evaluate import Simulate, Trial
from routecast.load import Flow, FlowSet, OfferedLoad
from routecast.router.model import Policy, ServiceCost
from routecast.virtual import Machine, Server, Technology, virtual_router

LINUX = Policy(kind="linux", quantum_s=3e-3)

POLLED = Technology(
    name="by hand",
    nic_receive=ServiceCost(per_packet_s=0.2e-6),
    backend="softirq",
    receive=ServiceCost(per_packet_s=0.05e-6),
    send=ServiceCost(per_packet_s=0.05e-6),
    guest_ring_frames=256,
    guest_driver=ServiceCost(per_packet_s=0.5e-6),
    holds_back=False,
    functions={"forward": ServiceCost(per_packet_s=1.5e-6)},
    policy=LINUX,
)
DRIVEN = replace(
    POLLED,
    guest_driver=ServiceCost(),
    interrupt_driven=("forward",),
    guest_interrupt=POLLED.guest_driver,
    guest_backlog_frames=256,
)


def trial(technology: Technology, offered_pps: float) -> Trial:
    server = Server(name="host", cores=2, technology=technology)
    machine = Machine(name="vm", server="host", vcpu_cores=((1,),), backend_cores=((0,),))
    load = OfferedLoad(rate_pps=offered_pps, flows=FlowSet(name="one", flows=(Flow(rss_hash=0, ingress=0, egress=0),)))
    return Simulate(model=virtual_router(server, machine, ports=1), steady_state=False).trial(load, 0.1)


@pytest.mark.parametrize("offered_pps", [100e3, 300e3, 450e3])
def test_who_brings_the_frames_matters_not_below_capacity(offered_pps: float) -> None:
    for technology in (POLLED, DRIVEN):
        assert trial(technology, offered_pps).forwarded_pps == pytest.approx(offered_pps, rel=0.01)


def test_a_machine_that_polls_keeps_its_throughput_in_overload() -> None:
    rates = [trial(POLLED, offered).forwarded_pps for offered in (600e3, 900e3, 1400e3)]
    # 0.5 us of driver and 1.5 us of forwarding: 500 kpps.
    assert rates == pytest.approx([500e3] * 3, rel=0.01)


def test_a_machine_whose_frames_come_by_interrupts_loses_its_throughput_to_them() -> None:
    rates = [trial(DRIVEN, offered).forwarded_pps for offered in (600e3, 900e3, 1400e3)]
    assert rates[0] > rates[1] > rates[2]
    # What the interrupts leave of a second, 1 - 0.5 us x rate, is for frames of 1.5 us.
    assert rates[0] == pytest.approx((1.0 - 0.5e-6 * 600e3) / 1.5e-6, rel=0.02)
    assert rates[1] == pytest.approx((1.0 - 0.5e-6 * 900e3) / 1.5e-6, rel=0.02)


@pytest.mark.parametrize("moderation_s", [50e-6, 125e-6])
def test_a_card_interrupts_no_more_often_than_its_moderation_lets_it(moderation_s: float) -> None:
    moderated = replace(POLLED, nic_moderation_s=moderation_s, backend_moderation_s=2.0 * moderation_s)
    activity = {item.name: item.interrupts_per_s for item in trial(moderated, 400e3).activity}
    card = next(rate for name, rate in activity.items() if name.endswith("softirq"))
    assert card == pytest.approx(1.0 / moderation_s, rel=0.01)
    assert activity["vm receive 0"] == pytest.approx(0.5 / moderation_s, rel=0.01)
    assert activity["vm send 0"] <= 0.5 / moderation_s * 1.01
