"""Threads on shared units in closed form: hand calculations, linear programmes, conservation."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps, rates_of
from routecast.evaluate.solve._scheduling_shares import UnitGroup, limiting_groups, pin_sets
from routecast.evaluate.solve._throughput import Steady
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Need,
    Policy,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
)

US = 1e-6


def steady_under(model: RouterModel, load: OfferedLoad) -> Steady:
    steady = rates_of(model, load).steady
    assert steady is not None
    return steady


def step(name, cost_us, to, *, kind="thread", notify_us=0.0, **given):
    """A task unit of pool "cpu" that sends its frames to one place."""
    return TaskUnit(
        name=name,
        needs=(Need(pool="cpu"),),
        service=ServiceCost(per_packet_s=cost_us * US),
        activation=Activation(kind=kind, interrupt_cost_s=notify_us * US),
        route=to if isinstance(to, Route) else Route(to=(to,)),
        **given,
    )


def router(*tasks, cores=1, **pool):
    """Ports 0 and 1, whose frames enter the first task unit."""
    policy = Policy(kind="linux", quantum_s=3e-3, wakeup_granularity_s=1e-3)
    return RouterModel(
        name="threads",
        ports=tuple(Port(name=f"p{i}", link_bps=10e9, entry=tasks[0].name) for i in range(2)),
        tasks=tasks,
        pools=(ResourcePool(name="cpu", units=cores, policy=policy, **pool),),
    )


def frames(rate_pps, flows=1):
    return OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(flows), frames=FrameMix.fixed(64))


def forwarding(rx_us, forward_us, tx_us, *, vhost=(0,), vcpu=(1,), cores=2, **pool):
    """A virtual router: one thread receives and sends, another forwards."""
    return router(
        step("rx", rx_us, "forward", thread="vhost", pin=vhost, holds_back=True),
        step("forward", forward_us, "tx", pin=vcpu, holds_back=True),
        step("tx", tx_us, "p1", thread="vhost", pin=vhost),
        cores=cores,
        **pool,
    )


def test_a_thread_that_receives_and_sends_carries_one_over_the_sum_of_both():
    model = forwarding(0.4, 0.3, 0.6)
    assert lossless_pps(model, frames(1e5)) == pytest.approx(1.0 / (1.0 * US))
    assert capacity_pps(model, frames(1e5)) == pytest.approx(1e6, rel=1e-4)


def test_two_threads_on_one_core_carry_one_over_all_their_work_where_they_wait_for_room():
    model = forwarding(1.0, 3.0, 1.0, vcpu=(0,), cores=1)
    trial = Solve(model).trial(frames(2e6), 1.0)
    assert trial.forwarded_pps == pytest.approx(1.0 / (5.0 * US), rel=1e-4)
    # Nothing was done in vain: all is lost where frames come in.
    assert set(trial.drops_pps) == {"rx"}


def test_without_room_ahead_work_on_frames_that_are_dropped_later_is_lost():
    def model(hold):
        return router(step("receive", 1.0, "forward", holds_back=hold), step("forward", 3.0, "p1"))

    careful, careless = (Solve(model(hold)).trial(frames(2e6), 1.0) for hold in (True, False))
    assert careful.forwarded_pps == pytest.approx(1.0 / (4.0 * US), rel=1e-4)
    # Half the core each: 500,000 are received, 166,667 of them forwarded.
    assert careless.forwarded_pps == pytest.approx(0.5 / (3.0 * US), rel=1e-4)
    assert careless.drops_pps["forward"] == pytest.approx(500e3 - 0.5 / (3.0 * US), rel=1e-4)


@pytest.mark.parametrize("rate", [0.3e6, 0.6e6, 0.9e6, 1.5e6])
def test_softirqs_leave_what_they_do_not_use(rate):
    """Receive livelock (Mogul and Ramakrishnan, ACM TOCS 15(3), 1997): ``min(λ, (1 - λ·c_irq)/c_rest)``."""
    model = router(step("softirq", 1.0, "rest", kind="interrupt", priority=50), step("rest", 1.0, "p1"))
    expected = max(min(rate, (1.0 - rate * US) / US), 0.0)
    assert Solve(model).trial(frames(rate), 1.0).forwarded_pps == pytest.approx(expected, rel=1e-4, abs=1.0)


def test_shares_follow_weights_and_what_one_leaves_goes_to_the_others():
    split = Route(kind="per_flow", to=("a", "b", "c"))
    model = router(
        TaskUnit(name="card", route=split),
        step("a", 1.0, "p1", weight=3.0),
        step("b", 1.0, "p1", weight=1.0),
        step("c", 1.0, "p1"),
    )
    # Three flows of different shares; c asks for 0.1 of the core, a and b for all of it.
    load = OfferedLoad(
        rate_pps=4.1e6,
        flows=FlowSet(
            name="three",
            flows=tuple(
                flow
                for flow, weight in zip(FlowSet.crafted(6).flows[::2], (20.0, 20.0, 1.0), strict=True)
                for flow in [type(flow)(rss_hash=flow.rss_hash, ingress=0, egress=1, weight=weight)]
            ),
        ),
        frames=FrameMix.fixed(64),
    )
    trial = Solve(model).trial(load, 1.0)
    served = {name: 2e6 - trial.drops_pps[name] for name in ("a", "b")}
    assert "c" not in trial.drops_pps
    assert served["a"] == pytest.approx(0.75 * 0.9e6, rel=1e-4)
    assert served["b"] == pytest.approx(0.25 * 0.9e6, rel=1e-4)


def test_the_bottleneck_is_the_thread_that_fills_a_core_while_others_idle():
    trial = Solve(forwarding(0.6, 0.3, 0.5, vhost=(3,), vcpu=(2,), cores=4)).trial(frames(2e6), 1.0)
    assert trial.bottleneck.name == "vhost"
    assert "unit 3" in trial.bottleneck.reason
    assert "units 0, 1, 2" in trial.bottleneck.reason


def test_a_thread_works_on_one_unit_at_a_time_however_many_it_may_use():
    model = router(step("only", 2.0, "p1"), cores=8)
    assert lossless_pps(model, frames(1e5)) == pytest.approx(0.5e6)


def test_copies_cost_work_and_are_no_frames():
    hub = router(
        TaskUnit(name="hub", route=Route(kind="by_egress", to=("a", "b"), copies=("a", "b"))),
        step("a", 1.0, "p0", pin=(0,)),
        step("b", 1.0, "p1", pin=(1,)),
        cores=2,
    )
    # Each of two flows goes to one, and its copy to the other: both see all frames.
    trial = Solve(hub).trial(frames(0.8e6, flows=2), 1.0)
    assert trial.forwarded_pps == pytest.approx(0.8e6)
    used = next(resource.utilisation_ratio for resource in trial.resources if resource.kind == "pool")
    assert used == pytest.approx(0.8)
    over = Solve(hub).trial(frames(2e6, flows=2), 1.0)
    assert over.forwarded_pps == pytest.approx(1e6, rel=1e-4)
    assert over.offered_pps == pytest.approx(over.forwarded_pps + sum(over.drops_pps.values()), rel=1e-6)


def test_contention_slows_threads_that_work_at_the_same_time():
    plain = forwarding(1.0, 2.0, 1.0)
    slowed = forwarding(1.0, 2.0, 1.0, contention=Contention(sigma=0.25))
    # Both threads work all the time at capacity: each 25 % slower.
    assert lossless_pps(plain, frames(1e5)) == pytest.approx(0.5e6)
    assert lossless_pps(slowed, frames(1e5)) == pytest.approx(0.4e6, rel=1e-3)


def _random_chain(seed):
    draw = random.Random(seed)
    cores = draw.randint(1, 4)
    names = [f"t{i}" for i in range(draw.randint(2, 7))]
    threads = [f"thread {draw.randrange(4)}" if draw.random() < 0.6 else "" for _ in names]
    pins = {thread: tuple(draw.sample(range(cores), draw.randint(1, cores))) for thread in set(threads)}
    tasks = [
        step(
            name,
            draw.uniform(0.2, 3.0),
            names[i + 1] if i + 1 < len(names) else "p1",
            thread=threads[i],
            pin=pins[threads[i]] if threads[i] else tuple(draw.sample(range(cores), draw.randint(1, cores))),
        )
        for i, name in enumerate(names)
    ]
    return router(*tasks, cores=cores)


@pytest.mark.parametrize("seed", range(40))
def test_the_loss_free_rate_is_the_optimum_of_the_linear_programme(seed):
    """Time of each thread on each core: a core has one second a second, a thread works on one core at a time."""
    model = _random_chain(seed)
    cores = model.pools[0].units
    threads: dict[str, list[TaskUnit]] = {}
    for task in model.tasks:
        threads.setdefault(task.thread or task.name, []).append(task)
    work = [sum(task.service.per_packet_s for task in tasks) / US for tasks in threads.values()]
    pins = [tasks[0].pin for tasks in threads.values()]
    count = len(threads)
    # Variables: the rate in frames per microsecond, then time by thread and core.
    same = np.zeros((count, 1 + count * cores))
    share = np.zeros((cores + count, 1 + count * cores))
    for thread in range(count):
        same[thread, 0] = -work[thread]
        for core in range(cores):
            at = 1 + thread * cores + core
            same[thread, at] = 1.0
            share[core, at] = share[cores + thread, at] = 1.0
    bounds = [(0.0, None)] + [(0.0, 1.0 if core in pin else 0.0) for pin in pins for core in range(cores)]
    best = linprog(
        c=np.eye(1 + count * cores)[0] * -1.0,
        A_eq=same,
        b_eq=np.zeros(count),
        A_ub=share,
        b_ub=np.ones(cores + count),
        bounds=bounds,
    )
    assert lossless_pps(model, frames(1e5)) == pytest.approx(best.x[0] / US, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_shares_under_pins_are_max_min_fair(seed):
    """Nobody can get more without taking from one who has no more, by weight: asked of a linear programme."""
    draw = random.Random(seed)
    cores, count = draw.randint(1, 4), draw.randint(2, 6)
    pins = [frozenset(draw.sample(range(cores), draw.randint(1, cores))) for _ in range(count)]
    demand = np.array([draw.uniform(0.05, 1.0) for _ in range(count)])
    weight = np.array([draw.choice([1.0, 1.0, 2.0]) for _ in range(count)])
    sets, complete = pin_sets(pins)
    assert complete
    members = [tuple((t, 1.0) for t in range(count) if pins[t] <= item) for item in sets]
    groups = limiting_groups(
        [UnitGroup(pool=0, units=tuple(sorted(entry)), members=own) for entry, own in zip(sets, members, strict=True)],
        np.ones(count),
    )
    got = groups.divide(demand, weight, (np.arange(count),))
    assert np.all(got <= demand + 1e-9)
    for thread in range(count):
        kept = [s for s in range(count) if s != thread and got[s] / weight[s] <= got[thread] / weight[thread] + 1e-9]
        limits = np.zeros((cores + count + len(kept), count * cores))
        for t in range(count):
            for core in range(cores):
                limits[core, t * cores + core] = 1.0
                limits[cores + t, t * cores + core] = 1.0
        right = [*np.ones(cores), *demand]
        for row, s in enumerate(kept):
            limits[cores + count + row, s * cores : (s + 1) * cores] = -1.0
            right.append(-got[s] + 1e-9)
        aim = np.zeros(count * cores)
        aim[thread * cores : (thread + 1) * cores] = -1.0
        bounds = [(0.0, None if core in pins[t] else 0.0) for t in range(count) for core in range(cores)]
        best = linprog(c=aim, A_ub=limits, b_ub=right, bounds=bounds)
        assert best.status == 0
        assert got[thread] == pytest.approx(-best.fun, abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("over", [0.7, 1.5, 5.0])
def test_frames_are_conserved_and_no_core_does_more_than_it_can(seed, over):
    model = _random_chain(seed)
    load = frames(over * lossless_pps(model, frames(1e5)))
    steady = steady_under(model, load)
    machine = steady.machine
    assert steady.settled
    offered_pps, lost_pps = steady.offered.sum(), steady.lost_pps.sum()
    forwarded_pps = steady.node_rates.forwarded[machine.propagation.position[len(model.tasks) :]].sum()
    assert offered_pps == pytest.approx(forwarded_pps + lost_pps, rel=1e-5)
    assert steady.busy.sum() <= model.pools[0].units + 1e-5
    assert steady.busy.max() <= 1.0 + 1e-6
    if over < 1.0:
        assert lost_pps <= 1e-9 * offered_pps


def test_each_frame_wakes_a_thread_in_a_light_load_and_none_does_in_overload():
    model = router(step("only", 1.0, "p1", notify_us=2.0))
    light, full = (steady_under(model, frames(rate)) for rate in (1e5, 2e6))
    assert light.wakes.per_s[0] == pytest.approx(1e5)
    assert light.busy[0] == pytest.approx(1e5 * 3.0 * US)
    assert full.wakes.per_s[0] == pytest.approx(0.0, abs=1e-3)
    assert full.offered.sum() - full.lost_pps.sum() == pytest.approx(1e6, rel=1e-4)


@pytest.mark.parametrize("arrivals", [Arrivals(), Arrivals.poisson()], ids=["equal gaps", "poisson"])
@pytest.mark.parametrize("switch_us", [0.0, 0.2])
def test_each_frame_from_below_wakes_a_more_urgent_thread_on_the_same_unit_at_any_load(arrivals, switch_us):
    # The one below runs only while the urgent one sleeps, so its frames never come in batches.
    model = router(
        step("receive", 0.3, "forward", pin=(0,)),
        step("forward", 0.5, "p1", notify_us=1.0, priority=1, pin=(0,)),
        switch_cost_s=switch_us * US,
    )
    load = replace(frames(1e5), arrivals=arrivals)
    most_pps = 1.0 / ((0.3 + 0.5 + 1.0 + 2.0 * switch_us) * US)
    assert lossless_pps(model, load) == pytest.approx(most_pps, rel=5e-3)
    near = steady_under(model, load.at(0.9 * most_pps))
    assert near.wakes.per_s[1] == pytest.approx(0.9 * most_pps, rel=1e-3)
    trial = Simulate(model, seed=1).trial(load.at(0.97 * most_pps), 0.1)
    busy = {unit.name: unit.busy_ratio for unit in trial.activity}
    assert sum(busy.values()) == pytest.approx(0.97, abs=0.01)
    over = Simulate(model, seed=1, steady_state=False).trial(load.at(1.1 * most_pps), 0.1)
    assert over.forwarded_pps == pytest.approx(most_pps, rel=0.01)


def test_latency_of_threads_is_not_guessed():
    trial = Solve(forwarding(0.4, 0.3, 0.6)).trial(frames(3e5), 1.0)
    assert trial.latency is None
    assert any("no closed form is known" in note for note in trial.notes)
