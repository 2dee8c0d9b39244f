"""Threads of an operating system, simulated from Python: shares, turns, room ahead, and what is booked of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate.simulate import Simulate
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import (
    Activation,
    Need,
    Policy,
    Port,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
)
from routecast.router.station import FAST_LINK_BPS

LINUX = Policy(kind="linux", quantum_s=3e-3, wakeup_granularity_s=1e-3)


def thread(name, work_us, *to, **fields):
    given_fields = {"activation": Activation(kind="thread"), "queue_frames": 256, "needs": (Need(pool="cpu"),)}
    work = ServiceCost(per_packet_s=work_us * 1e-6)
    return TaskUnit(name=name, service=work, route=Route(to=to), **(given_fields | fields))


def router(*tasks, units=1, policy=LINUX, **pool):
    """Return a router whose frames enter at the first task and may leave by a fast port ``p``."""
    cores = ResourcePool(name="cpu", units=units, policy=policy, **pool)
    port = Port(name="p", link_bps=FAST_LINK_BPS, entry=tasks[0].name)
    return RouterModel(name="r", ports=(port,), tasks=tasks, pools=(cores,))


def trial(model, rate_pps, duration_s=0.2, arrivals=None, flows=1, **options):
    flow_set = FlowSet.crafted(flows, ports=1)
    load = OfferedLoad(rate_pps=rate_pps, flows=flow_set, arrivals=arrivals or Arrivals.poisson())
    return Simulate(model=model, steady_state=False, **options).trial(load, duration_s)


def spread(*tasks, **pool):
    """Return a router that sends flow after flow to one of the tasks."""
    split = TaskUnit(name="split", route=Route(kind="per_flow", to=tuple(task.name for task in tasks)))
    return router(split, *tasks, **pool)


def busy(result):
    return {item.name: item.busy_ratio for item in result.activity}


def test_weights_share_a_unit_and_real_time_comes_before_them():
    fair = spread(thread("a", 1.0, weight=3.0), thread("b", 2.0))
    assert busy(trial(fair, 4e6, flows=2))["a"] == pytest.approx(0.75, rel=0.02)
    urgent = spread(thread("a", 1.0, priority=1), thread("b", 2.0))
    shares = busy(trial(urgent, 1.2e6, flows=2))
    assert shares["a"] == pytest.approx(0.6, rel=0.02)
    assert shares["b"] == pytest.approx(0.4, rel=0.02)


def test_a_vhost_thread_that_receives_and_sends_stays_graceful_in_overload():
    def forwarded_pps(rate_pps):
        rx = thread("rx", 1.0, "tx", thread="vhost")
        return trial(router(rx, thread("tx", 2.0, "p", thread="vhost")), rate_pps).forwarded_pps

    for rate_pps in (0.5e6, 1e6, 4e6):
        assert forwarded_pps(rate_pps) == pytest.approx(1e6 / 3.0, rel=0.01)


def virtual_router(holds_back):
    return router(
        thread("rx", 1.0, "guest", holds_back=holds_back),
        thread("guest", 2.0, "tx", queue_frames=64, holds_back=holds_back),
        thread("tx", 1.0, "p", queue_frames=64),
    )


def test_holding_back_loses_frames_before_work_is_put_into_them():
    held, tail = trial(virtual_router(True), 1.5e6), trial(virtual_router(False), 1.5e6)
    assert set(held.drops_pps) == {"rx"}
    assert held.forwarded_pps == pytest.approx(0.25e6, rel=0.03)
    assert set(tail.drops_pps) > {"rx"}
    assert tail.loss_ratio > held.loss_ratio + 0.02


def test_a_full_transmit_ring_is_waited_for():
    model = router(thread("rx", 1.0, "p", holds_back=True))
    # The link out carries 0.2 million frames of 64 bytes a second: its ring never overflows, the queue before it does.
    slow = Port(name="out", link_bps=84 * 8 * 0.2e6, tx_ring_frames=4, entry="rx")
    held = replace(model.tasks[0], route=Route(to=("out",)))
    model = replace(model, ports=(*model.ports, slow), tasks=(held,))
    assert not trial(model, 0.15e6).drops_pps
    over = trial(model, 0.4e6)
    assert set(over.drops_pps) == {"rx"}
    assert over.forwarded_pps == pytest.approx(0.2e6, rel=0.01)


def test_waking_takes_its_time_and_its_work():
    quick = router(thread("a", 1.0))
    costly = Activation(kind="thread", interrupt_cost_s=4e-6, wakeup=RandomTime(mean_s=10e-6))
    late = router(thread("a", 1.0, activation=costly))
    rare = Arrivals.cbr()
    first, second = trial(quick, 1e3, arrivals=rare), trial(late, 1e3, arrivals=rare)
    assert first.latency is not None
    assert second.latency is not None
    assert second.latency.mean_s - first.latency.mean_s == pytest.approx(14e-6, rel=1e-3)
    assert second.activity[0].interrupts_per_s == pytest.approx(1e3, rel=0.02)
    assert second.activity[0].polls_per_s == pytest.approx(1e3, rel=0.02)
    assert busy(second)["a"] == pytest.approx(5e-3, rel=0.02)


def test_a_core_that_polls_several_queues_is_active_all_the_time():
    spin = {"activation": Activation(kind="polling"), "batch_frames": 32, "thread": "pmd"}
    watts = PowerDraw(idle_w=1.0, active_w=5.0)
    model = spread(thread("a", 1.0, **spin), thread("b", 3.0, **spin), policy=Policy(), power=watts)
    overload, quiet = trial(model, 4e6, flows=2), trial(model, 1e4, flows=2)
    assert busy(overload)["a"] == pytest.approx(0.25, rel=0.02)
    assert busy(overload)["b"] == pytest.approx(0.75, rel=0.02)
    for result in (overload, quiet):
        assert result.power is not None
        assert result.power.mean_w == pytest.approx(5.0, rel=1e-3)


@given(
    works=st.lists(st.floats(0.1, 3.0), min_size=3, max_size=3),
    queues=st.lists(st.integers(1, 64), min_size=3, max_size=3),
    units=st.integers(1, 3),
    budget=st.integers(1, 64),
    holds_back=st.booleans(),
    shared=st.booleans(),
    urgent=st.integers(0, 2),
    rate_pps=st.floats(1e5, 3e6),
)
def test_frames_are_conserved_and_cores_are_busy_at_most_always(
    works, queues, units, budget, holds_back, shared, urgent, rate_pps
):
    names = ("rx", "guest", "tx")
    wakes = Activation(kind="thread", budget_frames=budget, interrupt_cost_s=1e-6)
    tasks = [
        thread(
            name,
            work,
            target,
            activation=wakes,
            queue_frames=queue,
            holds_back=holds_back,
            thread="vhost" if shared and name != "guest" else "",
            priority=urgent if name != "guest" else 0,
        )
        for name, target, work, queue in zip(names, ("guest", "tx", "p"), works, queues, strict=True)
    ]
    model = router(*tasks, units=units, switch_cost_s=0.5e-6, migration_cost_s=1e-6)
    result = trial(model, rate_pps, duration_s=2e-3, seed=3)
    assert result.offered_frames == result.forwarded_frames + result.dropped_frames + result.in_flight_frames
    assert all(resource.utilisation_ratio <= 1.0 for resource in result.resources)
    assert sum(busy(result).values()) <= units + 1e-9
    again = trial(model, rate_pps, duration_s=2e-3, seed=3)
    assert again.forwarded_frames == result.forwarded_frames
    assert again.latency == result.latency
