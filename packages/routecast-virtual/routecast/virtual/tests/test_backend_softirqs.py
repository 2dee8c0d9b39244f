"""A backend that works in softirqs runs where the cards interrupt, and leaves pinned vcpus alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.evaluate import Simulate
from routecast.load import FlowSet, OfferedLoad
from routecast.router.model import RouterModel
from routecast.virtual import Machine, Server, virtual_router
from routecast.virtual.catalogue import technology

XEN = Server(name="host", cores=4, technology=technology("xen-3.3-bridged"), interrupt_cores=(0, 1))
DOM_U = Machine(name="domU", server="host")


def built(server: Server = XEN, machine: Machine = DOM_U) -> RouterModel:
    return virtual_router(server, machine, link_bps=10e9)


def backend_pins(model: RouterModel) -> set[tuple[int, ...]]:
    return {model.task(name).pin for name in ("domU receive 0", "domU send 0")}


@pytest.mark.parametrize(
    ("server", "machine", "pin"),
    [
        (XEN, DOM_U, (0, 1)),
        (replace(XEN, interrupt_cores=()), DOM_U, (0,)),
        (replace(XEN, interrupt_cores=(3, 1, 0, 2)), DOM_U, ()),
        (XEN, replace(DOM_U, backend_cores=((2,),)), (2,)),
        (replace(XEN, technology=technology("kvm-vhost-2012")), DOM_U, ()),
    ],
    ids=["the cards'", "the first", "all", "its own", "threads: anywhere"],
)
def test_softirqs_of_a_backend_run_on_the_interrupt_cores_by_default(
    server: Server, machine: Machine, pin: tuple[int, ...]
) -> None:
    assert backend_pins(built(server, machine)) == {pin}


@pytest.mark.parametrize("rate_pps", [300e3, 450e3])
@pytest.mark.parametrize("core", [2, 3])
def test_a_vcpu_pinned_to_a_core_without_interrupts_forwards_as_much_as_a_free_one(core: int, rate_pps: float) -> None:
    load = OfferedLoad(rate_pps=rate_pps, flows=FlowSet.random(64))
    free, pinned = (
        Simulate(built(machine=machine), steady_state=False).trial(load, 0.05).forwarded_pps
        for machine in (DOM_U, replace(DOM_U, vcpu_cores=((core,),)))
    )
    assert pinned == pytest.approx(free, rel=0.01)
