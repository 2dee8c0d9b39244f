"""Parallel virtual routers: which way frames take, what they forward in the fluid limit, and what simulation says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.errors import ModelProblem
from routecast.evaluate import lossless_pps
from routecast.evaluate.simulate import Simulate
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.router import ServiceCost
from routecast.virtual import Machine, Server, Technology, virtual_router
from routecast.virtual.catalogue import technology
from routecast.virtual.parallel import parallel_router

FLOWS = FlowSet.crafted(128)


def cost(microseconds: float) -> ServiceCost:
    return ServiceCost(per_packet_s=microseconds * 1e-6)


def load(rate_pps: float = 1e5, *, frame_bytes: int = 64) -> OfferedLoad:
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(frame_bytes), flows=FLOWS)


def kvm(softirq: float, receive: float, send: float, forward: float) -> Technology:
    return Technology(
        name="kvm",
        nic_receive=cost(softirq),
        receive=cost(receive),
        send=cost(send),
        functions={"forward": cost(forward)},
    )


def machines(number: int, **pins: tuple[tuple[int, ...], ...]) -> list[Machine]:
    return [Machine(name=f"vm {item}", server="host", **pins) for item in range(number)]


def test_each_machine_sends_to_the_egress_port_itself() -> None:
    host = Server(name="host", cores=4, technology=kvm(0.1, 0.5, 0.5, 0.6))
    model = parallel_router(host, machines(3), ports=2)
    for port in model.ports:
        softirq = model.task(port.entry)
        assert softirq.route.kind == "rss"
        assert softirq.route.to == ("vm 0 receive 0", "vm 1 receive 0", "vm 2 receive 0")
    for number in range(3):
        assert model.task(f"vm {number} receive 0").route.to == (f"vm {number} forward",)
        assert model.task(f"vm {number} forward").route.to == (f"vm {number} send 0",) * 2
        out = model.task(f"vm {number} send 0")
        assert (out.route.kind, out.route.to) == ("egress", ("port 0", "port 1"))
        assert out.thread == model.task(f"vm {number} receive 0").thread


def test_one_machine_in_parallel_is_a_virtual_router() -> None:
    host = Server(name="host", cores=4, technology=kvm(0.1, 0.5, 0.5, 0.6))
    item = machines(1)
    assert lossless_pps(parallel_router(host, item), load()) == lossless_pps(virtual_router(host, item[0]), load())


@given(
    number=st.sampled_from([1, 2, 4, 8]),
    cores=st.integers(1, 6),
    microseconds=st.tuples(*(st.floats(0.05, 2.0),) * 4),
    frame_bytes=st.sampled_from([64, 512, 1518]),
)
def test_the_fluid_limit_is_that_of_threads_cores_or_lines(number, cores, microseconds, frame_bytes) -> None:
    softirq, receive, send, forward = microseconds
    host = Server(
        name="host", cores=cores, technology=kvm(softirq, receive, send, forward), interrupt_cores=tuple(range(cores))
    )
    model = parallel_router(host, machines(number), ports=2, link_bps=1e9)
    threads_pps = number / max(receive + send, forward) * 1e6
    cores_pps = cores / (softirq + receive + send + forward) * 1e6
    softirqs_pps = min(cores, 2) / softirq * 1e6  # each of two ports interrupts one core
    line_pps = 2 * 1e9 / 8 / (frame_bytes + 20)
    expected = min(threads_pps, cores_pps, softirqs_pps, line_pps)
    assert lossless_pps(model, load(frame_bytes=frame_bytes)) == pytest.approx(expected, rel=1e-6)


def test_round_robin_spreads_a_single_flow_and_the_flow_hash_does_not() -> None:
    host = Server(name="host", cores=4, technology=kvm(0.1, 0.5, 0.5, 0.6))
    one_flow = OfferedLoad(rate_pps=1e5, frames=FrameMix.fixed(64), flows=FlowSet.crafted(1))
    pinned = [
        Machine(name=f"vm {item}", server="host", vcpu_cores=((item + 1,),), backend_cores=((item + 1,),))
        for item in range(2)
    ]
    hashed = lossless_pps(parallel_router(host, pinned), one_flow)
    turns = lossless_pps(parallel_router(host, pinned, balancing="round_robin"), one_flow)
    assert hashed == pytest.approx(1 / 1.6e-6)
    assert turns == pytest.approx(min(2 / 1.6e-6, 1e9 / 8 / 84))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_simulated_routers_on_cores_of_their_own_forward_the_fluid_limit(number: int) -> None:
    host = Server(name="host", cores=number + 1, technology=kvm(0.05, 0.5, 0.5, 0.6))
    pinned = [
        Machine(name=f"vm {item}", server="host", vcpu_cores=((item + 1,),), backend_cores=((item + 1,),))
        for item in range(number)
    ]
    model = parallel_router(host, pinned, balancing="round_robin", link_bps=10e9)
    fluid = lossless_pps(model, load())
    assert fluid == pytest.approx(number / 1.6e-6)
    trial = Simulate(model, seed=1, steady_state=False).trial(load(0.97 * fluid), 0.05)
    assert trial.loss_ratio == 0.0
    over = Simulate(model, seed=1, steady_state=False).trial(load(1.1 * fluid), 0.05)
    assert over.loss_ratio > 0.03


@pytest.mark.parametrize("name", ["container", "sr-iov", "physical-linux"])
def test_without_a_backend_the_cards_queues_spread(name: str) -> None:
    host = Server(name="host", cores=4, technology=replace(technology(name), contention=Technology(name="").contention))
    pinned = [Machine(name=f"nf {number}", server="host", vcpu_cores=((number,),)) for number in range(4)]
    item = technology(name)
    each_s = sum(part.mean_s(64) for part in (item.functions["forward"], item.receive, item.send, item.guest_driver))
    model = parallel_router(host, pinned, link_bps=100e9)
    assert lossless_pps(model, load()) == pytest.approx(4 / each_s)
    assert all(model.task(port.entry).needs == () for port in model.ports)


def test_machines_behind_a_vswitch_share_its_core() -> None:
    item = technology("memif")
    host = Server(name="host", cores=4, technology=item, switch_cores=(0,))
    pinned = [Machine(name=f"nf {n}", server="host", vcpu_cores=((n + 1,),)) for n in range(3)]
    visits = (item.nic_receive, item.switch, item.receive, item.send, item.switch, item.nic_send)
    model = parallel_router(host, pinned, link_bps=25e9)
    assert lossless_pps(model, load()) == pytest.approx(1 / sum(part.mean_s(64) for part in visits))


def test_there_must_be_a_machine_and_all_on_the_server() -> None:
    host = Server(name="host", cores=4, technology=kvm(0.1, 0.5, 0.5, 0.6))
    with pytest.raises(ModelProblem, match="is missing"):
        parallel_router(host, ())
    with pytest.raises(ModelProblem, match='"other" is no server'):
        parallel_router(host, [Machine(name="vm", server="other")])
