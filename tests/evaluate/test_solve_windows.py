"""Windows in closed form: laws of closed networks, exact theory, and the simulator beside it."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate._closed_networks import bound_pps, constant_pps, exponential_pps
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve, lossless_pps
from routecast.load import Arrivals, OfferedLoad
from routecast.router import Need, Port, ResourcePool, Route, RouterModel, ServiceCost, TaskUnit

NS = 1e-9
visits = st.lists(st.tuples(st.sampled_from([-1, 0, 1]), st.floats(1.0, 100.0)), min_size=1, max_size=6).map(tuple)


def cost(ns, **more):
    return ServiceCost(per_packet_s=ns * NS, **more)


def chain(prefix, steps, threads, then, *, queue=64):
    """Task units of one window: ``steps`` are (pool, nanoseconds), pool "" for a delay."""
    names = [f"{prefix} {number}" for number in range(len(steps))]
    tasks = [
        TaskUnit(
            name=f"{prefix} thread",
            needs=(Need(pool=f"{prefix} threads", until=names[-1]),),
            request="frame",
            queue_frames=queue,
            route=Route(to=(names[0],)),
        )
    ]
    for number, (pool, ns) in enumerate(steps):
        service = ns if isinstance(ns, ServiceCost) else cost(ns)
        tasks.append(
            TaskUnit(
                name=names[number],
                needs=(Need(pool=pool),) if pool else (),
                service=service,
                request="frame" if pool else "task",
                parallel=1 if pool else threads,
                queue_frames=max(threads, 1),
                route=Route(to=(names[number + 1],) if number + 1 < len(names) else then),
            )
        )
    return tasks, ResourcePool(name=f"{prefix} threads", units=threads)


def one_engine(steps, threads, **more):
    tasks, pool = chain("a", steps, threads, ("out",), **more)
    pools = [ResourcePool(name=name) for name in dict.fromkeys(name for name, _ in steps if name)]
    return router(tasks, [pool, *pools], "a thread")


def router(tasks, pools, entry):
    ports = (Port(name="in", link_bps=1e12, entry=entry), Port(name="out", link_bps=1e12, entry=entry))
    return RouterModel(name="windows", ports=ports, tasks=tuple(tasks), pools=tuple(pools))


def load(pps, **more):
    return OfferedLoad(rate_pps=pps, **more)


@pytest.mark.parametrize(("customers", "ratio"), [(1, 4.0), (3, 2.0), (8, 0.5)])
def test_exponential_customers_who_think_and_queue_are_the_machine_repair_model(customers, ratio):
    # Kleinrock vol. 1, sec. 3.8 (M/M/1//M): p_0 from the birth-death chain, rate μ(1 - p_0).
    service, think = 1.0, ratio
    weights = [
        math.factorial(customers) / math.factorial(customers - k) * (service / think) ** k for k in range(customers + 1)
    ]
    exact = (1.0 - weights[0] / sum(weights)) / service
    assert exponential_pps(((0, service), (-1, think)), (1,), customers) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("servers", [2, 3, 5])
def test_exponential_customers_at_several_servers_are_the_birth_death_chain(servers):
    customers, service, think = 7, 1.0, 1.5
    weights = [1.0]
    for k in range(1, customers + 1):
        weights.append(weights[-1] * (customers - k + 1) / think / (min(k, servers) / service))
    whole = sum(weights)
    exact = sum(min(k, servers) / service * weight / whole for k, weight in enumerate(weights))
    assert exponential_pps(((0, service), (-1, think)), (servers,), customers) == pytest.approx(exact, rel=1e-12)


@given(visits, st.integers(1, 6))
def test_no_law_of_service_times_goes_beyond_the_asymptotic_bounds(way, customers):
    highest = bound_pps(way, (1, 2), customers)
    assert exponential_pps(way, (1, 2), customers) <= highest * (1.0 + 1e-12)
    assert constant_pps(way, (1, 2), customers, 0.0) <= highest * (1.0 + 1e-12)


@given(visits, st.integers(1, 6))
def test_another_thread_never_makes_exponential_customers_slower(way, customers):
    assert exponential_pps(way, (1, 2), customers + 1) >= exponential_pps(way, (1, 2), customers) * (1.0 - 1e-12)


@pytest.mark.parametrize(("threads", "pps"), [(1, 1 / 400e-9), (2, 2 / 400e-9), (4, 4 / 400e-9), (8, 1 / 90e-9)])
def test_threads_hide_latency_until_the_engine_is_busy_all_the_time(threads, pps):
    model = one_engine([("engine", 90.0), ("", 310.0)], threads)
    trial = Solve(model=model).trial(load(2e7), 1.0)
    assert trial.forwarded_pps == pytest.approx(pps, rel=1e-6)
    assert lossless_pps(model, load(1e6)) == pytest.approx(pps, rel=1e-3)
    limit = "a threads" if threads < 5 else "engine"
    assert trial.bottleneck.name == limit
    assert trial.drops_pps["a thread"] == pytest.approx(2e7 - pps, rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5, 8])
def test_one_engine_in_overload_is_as_fast_as_its_packet_simulation(threads):
    # Runs and accesses alternate, so that threads meet at the engine again and again.
    steps = [
        ("engine", 60.0),
        ("sram", 10.0),
        ("", 90.0),
        ("engine", 35.0),
        ("sram", 10.0),
        ("", 90.0),
        ("engine", 20.0),
    ]
    model = one_engine(steps, threads)
    offered = load(1.2e7)
    solved = Solve(model=model).trial(offered, 1.0).forwarded_pps
    simulated = Simulate(model=model).trial(offered, 4e-3).forwarded_pps
    assert solved == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_exponential_services_are_as_fast_as_their_packet_simulation(threads):
    law = {"variation": "exponential"}
    steps = [("engine", cost(90.0, **law)), ("sram", cost(40.0, **law)), ("", cost(200.0, **law))]
    model = one_engine(steps, threads, queue=2000)
    offered = load(2e7)
    solved = Solve(model=model).trial(offered, 1.0).forwarded_pps
    exact = exponential_pps(((0, 90e-9), (1, 40e-9), (-1, 200e-9)), (1, 1), threads)
    simulated = Simulate(model=model).trial(offered, 20e-3).forwarded_pps
    assert solved == pytest.approx(exact, rel=1e-6)
    assert simulated == pytest.approx(exact, rel=0.02)


def two_engines(memory_ns, threads=4, engines=2):
    tasks, pools = [], []
    for number in range(engines):
        more, pool = chain(
            f"e{number}", [(f"engine {number}", 50.0), ("sram", memory_ns), ("", 100.0)], threads, ("out",)
        )
        tasks += more
        pools += [pool, ResourcePool(name=f"engine {number}")]
    entries = tuple(f"e{number} thread" for number in range(engines))
    ring = TaskUnit(name="ring", route=Route(kind="round_robin", to=entries))
    return router([ring, *tasks], [*pools, ResourcePool(name="sram")], "ring")


def test_a_memory_that_engines_share_serves_what_it_can_and_is_named():
    model = two_engines(60.0)
    trial = Solve(model=model).trial(load(4e7), 1.0)
    simulated = Simulate(model=model).trial(load(4e7), 3e-3)
    assert trial.forwarded_pps == pytest.approx(1 / 60e-9, rel=1e-4)
    assert simulated.forwarded_pps == pytest.approx(1 / 60e-9, rel=0.01)
    assert trial.bottleneck.name == "sram" == simulated.bottleneck.name
    assert trial.drops_pps["e0 thread"] == pytest.approx(trial.drops_pps["e1 thread"], rel=1e-6)
    assert any('"sram"' in note and "approximate mean value analysis" in note for note in trial.notes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_unlike_engines_that_share_a_memory_are_about_as_fast_as_simulated(seed):
    # Drawn with other seeds than those that the approximation was calibrated on.
    chance = random.Random(100 + seed)
    tasks, pools = [], [ResourcePool(name="sram")]
    for number in range(chance.randint(2, 5)):
        steps = []
        for _ in range(chance.randint(1, 4)):
            run, delay = chance.randint(20, 100), chance.randint(50, 150)
            steps += [(f"engine {number}", float(run)), ("sram", chance.choice([10.0, 20.0, 30.0])), ("", float(delay))]
        more, pool = chain(f"e{number}", steps, chance.randint(1, 8), ("out",))
        tasks += more
        pools += [pool, ResourcePool(name=f"engine {number}")]
    entries = tuple(task.name for task in tasks if task.name.endswith("thread"))
    ring = TaskUnit(name="ring", route=Route(kind="round_robin", to=entries))
    model = router([ring, *tasks], pools, "ring")
    solved = Solve(model=model).trial(load(6e7), 1.0).forwarded_pps
    simulated = Simulate(model=model).trial(load(6e7), 2e-3).forwarded_pps
    assert solved == pytest.approx(simulated, rel=0.08)


@pytest.mark.parametrize("seed", [19, 24, 27, 33, 34, 37])
@pytest.mark.slow
def test_engines_in_a_row_that_share_a_full_memory_come_to_one_rate(seed):
    # Drawn with seeds at which two engines can take turns in what they let through, round after round.
    chance = random.Random(seed)
    count = chance.randint(2, 4)
    tasks, pools = [], [ResourcePool(name="sram")]
    for number in range(count):
        steps = []
        for _ in range(chance.randint(1, 3)):
            steps += [
                (f"engine {number}", float(chance.randint(20, 100))),
                ("sram", chance.choice([20.0, 40.0, 80.0])),
                ("", float(chance.randint(50, 150))),
            ]
        then = (f"e{number + 1} thread",) if number + 1 < count else ("out",)
        more, pool = chain(f"e{number}", steps, chance.randint(1, 8), then)
        tasks += more
        pools += [pool, ResourcePool(name=f"engine {number}")]
    model = router(tasks, pools, "e0 thread")
    solved = Solve(model=model).trial(load(2e7), 1.0).forwarded_pps
    simulated = Simulate(model=model).trial(load(2e7), 2e-3).forwarded_pps
    assert solved == pytest.approx(simulated, rel=0.08)


def test_below_overload_frames_stay_as_long_as_their_steps_take():
    steps = [("engine", 90.0), ("sram", 10.0), ("", 310.0)]
    trial = Solve(model=one_engine(steps, 8)).trial(load(1e5), 1.0)
    assert trial.loss_ratio == 0.0
    assert trial.latency is not None
    assert trial.latency.mean_s == pytest.approx(410 * NS, rel=1e-6)


def test_in_overload_frames_wait_for_a_thread_behind_a_full_ring():
    model = one_engine([("engine", 90.0), ("", 310.0)], 2, queue=50)
    trial = Solve(model=model).trial(load(1e7), 1.0)
    simulated = Simulate(model=model).trial(load(1e7), 4e-3)
    assert trial.latency is not None
    assert simulated.latency is not None
    assert trial.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.03)


def test_the_later_of_two_windows_gets_only_what_the_first_lets_through():
    first, pool_a = chain("a", [("engine 0", 50.0), ("", 450.0)], 2, ("b thread",))
    second, pool_b = chain("b", [("engine 1", 50.0), ("", 150.0)], 2, ("out",))
    pools = [pool_a, pool_b, ResourcePool(name="engine 0"), ResourcePool(name="engine 1")]
    trial = Solve(model=router([*first, *second], pools, "a thread")).trial(load(8e6), 1.0)
    assert trial.forwarded_pps == pytest.approx(2 / 500e-9, rel=1e-6)
    assert list(trial.drops_pps) == ["a thread"]
    held = {resource.name: resource.utilisation_ratio for resource in trial.resources}
    assert held["a threads"] == pytest.approx(1.0)
    assert held["b threads"] == pytest.approx(2 / 500e-9 * 200e-9 / 2, rel=1e-6)


def test_a_window_inside_another_one_holds_its_frames_up():
    inner = [
        TaskUnit(
            name="outer",
            needs=(Need(pool="buffers", until="last"),),
            request="frame",
            queue_frames=64,
            route=Route(to=("inner",)),
        ),
        TaskUnit(
            name="inner",
            needs=(Need(pool="credits", until="slow"),),
            request="frame",
            queue_frames=64,
            route=Route(to=("slow",)),
        ),
        TaskUnit(name="slow", service=cost(400.0), parallel=64, queue_frames=64, route=Route(to=("last",))),
        TaskUnit(name="last", service=cost(100.0), parallel=64, queue_frames=64, route=Route(to=("out",))),
    ]
    pools = [ResourcePool(name="buffers", units=8), ResourcePool(name="credits", units=2)]
    model = router(inner, pools, "outer")
    solved = Solve(model=model).trial(load(3e7), 1.0)
    simulated = Simulate(model=model).trial(load(3e7), 2e-3)
    assert solved.forwarded_pps == pytest.approx(2 / 400e-9, rel=1e-4)
    assert simulated.forwarded_pps == pytest.approx(2 / 400e-9, rel=0.01)
    assert solved.bottleneck.name == "credits"


def test_poisson_arrivals_below_overload_all_come_through():
    model = one_engine([("engine", 90.0), ("", 310.0)], 8, queue=512)
    offered = load(4e6, arrivals=Arrivals.poisson())
    trial = Solve(model=model).trial(offered, 1.0)
    assert trial.loss_ratio == 0.0
    assert trial.forwarded_pps == pytest.approx(4e6)
