"""Queues that hold all frames that may be before them: textbook tails, full links, and the simulator."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._closed_form import rates_of
from routecast.evaluate.solve._longest_delays import places_with_room
from routecast.evaluate.sweep import trial_past_transient
from routecast.load import Arrivals, OfferedLoad
from routecast.load.offered import line_rate_pps
from routecast.router import RouterModel, ServiceCost, multicore
from routecast.router.model import Activation, Need, Policy, Port, ResourcePool, Route, TaskUnit

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
from scenarios import random_router

SERVICE_S = 1e-6


def loss_of_mm1k(load: float, room: int) -> float:
    return (1.0 - load) * load**room / (1.0 - load ** (room + 1))


def core(queue_frames: int) -> RouterModel:
    cost = ServiceCost(per_packet_s=SERVICE_S, variation="exponential")
    return multicore(1, cost, queue_frames=queue_frames, link_bps=100e9)


def has_room(queue_frames: int, load: float) -> bool:
    offered = OfferedLoad(rate_pps=load / SERVICE_S, arrivals=Arrivals.poisson())
    fluid = rates_of(core(queue_frames), offered)
    return [task.name for task in fluid.graph.tasks].index("core 0") in places_with_room(fluid)


@pytest.mark.parametrize("load", [0.05, 0.2, 0.4])
def test_a_queue_said_to_have_room_loses_next_to_nothing_by_theory(load: float) -> None:
    rooms = [frames for frames in (8, 16, 32, 64, 128, 256, 512, 1024, 4096) if has_room(frames, load)]
    assert rooms, "in light load some queue is long enough"
    assert rooms[0] > 8, "a short queue is not"
    assert loss_of_mm1k(load, rooms[0] + 1) < 1e-5


def test_a_task_unit_that_costs_nothing_shares_a_core_in_light_load() -> None:
    tasks = (
        TaskUnit(name="mark", needs=(Need(pool="cpu"),), route=Route(to=("work",)), queue_frames=64),
        TaskUnit(name="work", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=SERVICE_S), queue_frames=64),
    )
    router = RouterModel(
        name="free",
        ports=(Port(name="port", link_bps=100e9, entry="mark"),),
        tasks=tasks,
        pools=(ResourcePool(name="cpu", units=1),),
    )
    solved = Solve(model=router).trial(OfferedLoad(rate_pps=0.3 / SERVICE_S, arrivals=Arrivals.poisson()), 1.0)
    assert solved.loss_ratio == 0.0


def test_threads_that_take_turns_on_a_core_have_room_for_what_a_round_brings() -> None:
    """A start of 12 µs for a frame of 1 µs: a frame a turn would overload the core, but turns take what waits."""
    threads = tuple(
        TaskUnit(
            name=f"thread {number}",
            needs=(Need(pool="cpu"),),
            service=ServiceCost(per_packet_s=SERVICE_S),
            activation=Activation(kind="thread", budget_frames=256, interrupt_cost_s=10e-6),
            queue_frames=256,
        )
        for number in range(2)
    )
    router = RouterModel(
        name="turns",
        ports=tuple(Port(name=f"port {number}", link_bps=10e9, entry=f"thread {number}") for number in range(2)),
        tasks=threads,
        pools=(ResourcePool(name="cpu", units=1, policy=Policy(kind="linux", quantum_s=1e-3), switch_cost_s=1e-6),),
    )
    load = OfferedLoad(rate_pps=0.5 / SERVICE_S, arrivals=Arrivals.poisson())
    assert Solve(model=router).trial(load, 1.0).loss_ratio == 0.0
    assert Simulate(router, seed=1).trial(load, 0.2).loss_ratio == 0.0
    short = replace(router, tasks=tuple(replace(task, queue_frames=8) for task in router.tasks))
    assert Simulate(short, seed=1).trial(load, 0.2).loss_ratio > 0.0
    assert math.isnan(Solve(model=short).trial(load, 1.0).loss_ratio)


def test_no_queue_is_long_enough_for_an_overloaded_core() -> None:
    assert not has_room(1 << 20, 1.5)


@pytest.mark.parametrize("seed", [27, 45, 101, 136, 203, 205, 214, 237, 254, 266])
def test_light_routers_lose_what_the_closed_form_says(seed: int) -> None:
    """Threads, units of several pools, links behind full links: the loss is known, and is the simulator's."""
    _, model, load = random_router(seed)
    solved = Solve(model=model).trial(load, 1.0)
    assert not math.isnan(solved.loss_ratio)
    simulated = trial_past_transient(Simulate(model, seed=3), load, max(20_000 / load.rate_pps, 2e-3))
    low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
    assert low - 0.005 <= simulated.loss_ratio <= high + 0.005


@pytest.mark.parametrize("kind", ["poisson", "on_off"])
def test_links_that_are_always_full_bring_equal_gaps_whatever_was_intended(kind: str) -> None:
    router = multicore(2, ServiceCost(per_packet_s=0.4e-6), link_bps=1e9, queue_frames=16)
    random = Arrivals.poisson() if kind == "poisson" else Arrivals.on_off(burst_frames=40.0, peak_ratio=5.0)
    line_pps = line_rate_pps(1e9, 64)
    loads = [OfferedLoad(rate_pps=4.0 * line_pps, arrivals=arrivals) for arrivals in (random, Arrivals.cbr())]
    solved = [Solve(model=router).trial(load, 1.0).loss_ratio for load in loads]
    assert solved[0] == pytest.approx(solved[1], abs=1e-4)
    assert Simulate(router, seed=1).trial(loads[0], 0.05).loss_ratio == pytest.approx(solved[0], abs=1e-3)
    # Below line rate the gaps matter: the same core loses frames of bursts.
    partly = OfferedLoad(rate_pps=0.7 * line_pps, arrivals=Arrivals.on_off(burst_frames=400.0, peak_ratio=8.0))
    slow = multicore(1, ServiceCost(per_packet_s=0.9e-6), link_bps=1e9, queue_frames=16)
    assert Simulate(slow, seed=1).trial(partly, 0.2).loss_ratio > 0.01
    bursty = Solve(model=slow).trial(partly, 1.0)
    assert math.isnan(bursty.loss_ratio) or bursty.interval["loss_ratio"][1] > 0.01
