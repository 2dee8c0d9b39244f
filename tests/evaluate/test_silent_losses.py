"""The closed form names what it does not know of losses: random routers, solved and simulated (make fuzz-models)."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve, lossless_pps
from routecast.evaluate.trial import Trial
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import (
    Activation,
    Need,
    Policy,
    Port,
    RandomTime,
    ResourcePool,
    RouterModel,
    ServiceCost,
    TaskUnit,
    multicore,
)
from routecast.router.files import read_router_and_load
from routecast.router.model import PolicyKind

sys.path[:0] = [str(Path(__file__).parents[2] / "benches"), str(Path(__file__).parents[1] / "page")]
judge = importlib.import_module("fuzz_models").judge

SILENT = {
    2: "a thread",
    12: "slices in windows",
    91: "on-off bursts that fill a link",
    105: "on-off bursts, batches",
    438: "threads that revoke each other: far less is lost than the fluid state says",
    448: "eight places for services that are interrupted",
    580: "units shared by a policy",
    922: "services in windows that vary",
    1862: "a link that is just full",
}
"""Seeds that lost frames without a word once, or are likely to: what each is for."""


def unknown(trial: Trial) -> bool:
    """Whether a trial says in a number and in words that its loss is not known, and only then in words."""
    is_noted = any(note.startswith("the loss is not known") for note in trial.notes)
    assert is_noted == math.isnan(trial.loss_ratio)
    return is_noted


LATENCIES = {
    253: "set-ups at equal gaps",
    455: "on-off bursts in overload",
    987: "interruptions at equal gaps",
    1442: "polls of a full ring",
    300076: "polls of a full ring behind a bus",
    300888: "on-off bursts of mixed sizes",
    301063: "polls of a full ring, services that vary",
    301386: "mixed sizes at equal gaps, and an interrupt that lingers",
    600509: "interruptions that overflow a ring of eight",
    10319: "services that decide, at equal gaps, whether a lingering unit sleeps",
}
"""Seeds whose latency lay outside what the closed form stated."""

MIXED = {
    18: "interrupts above a plain task unit",
    172: "interrupts after a plain task unit",
    224: "polling that may take the unit of others",
    389: "a pin that fills one unit of two",
    487: "two that poll, one of them bound to a unit that the other may have",
    709: "a thread bound to a unit that is polled on",
    754: "the same under priorities",
    928: "interrupts of three task units on one unit",
    963: "a cost per batch behind interrupts",
}
"""The same for routers whose task units of any activation share one or two units."""


@pytest.mark.slow
def test_no_random_router_loses_without_a_word() -> None:
    verdicts = [judge(seed) for seed in (*SILENT, *LATENCIES, 500591, *range(3000, 3100))]
    verdicts += [judge(seed, "mixed") for seed in (*MIXED, *range(3000, 3050))]
    assert [verdict for verdict in verdicts if "silent loss" in verdict.kinds] == []
    assert [verdict for verdict in verdicts if "loss off" in verdict.kinds] == []
    assert [verdict for verdict in verdicts if "latency off" in verdict.kinds] == []
    assert sum("loss known" in verdict.kinds for verdict in verdicts) > 15


def test_a_short_ring_behind_moderation_is_named_and_a_long_one_is_not() -> None:
    moderated = Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=1e-6, moderation_s=40e-6)
    load = OfferedLoad(rate_pps=0.6e6, arrivals=Arrivals.poisson())
    for room, is_named in ((32, True), (4096, False)):
        router = multicore(1, ServiceCost(per_packet_s=1e-6), activation=moderated, queue_frames=room)
        solved = Solve(model=router).trial(load, 1.0)
        assert unknown(solved) == is_named
        simulated = Simulate(router, steady_state=False).trial(load, 0.2)
        assert (simulated.loss_ratio > 0.0) == is_named


def test_threads_with_room_to_spare_lose_nothing_and_those_in_overload_are_not_known() -> None:
    router, load = read_router_and_load(Path(__file__).parents[2] / "examples" / "virtual.router.toml")
    assert load is not None
    half = Solve(model=router).trial(replace(load, rate_pps=200e3), 1.0)
    assert not unknown(half)
    assert Simulate(router, seed=1).trial(replace(load, rate_pps=200e3), 0.1).loss_ratio == half.loss_ratio == 0.0
    assert unknown(Solve(model=router).trial(replace(load, rate_pps=1.4e6), 1.0))


def beside(activation: Activation, *, policy: PolicyKind = "fifo", pins: tuple[int, ...] = ()) -> RouterModel:
    """Return a router of two task units on one pool: one of this activation, one that serves a frame a turn."""
    first = TaskUnit(
        name="first", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=1e-6), activation=activation
    )
    second = TaskUnit(name="second", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=0.5e-6), pin=pins)
    return RouterModel(
        name="beside",
        ports=tuple(Port(name=f"to {name}", link_bps=100e9, entry=name) for name in ("first", "second")),
        tasks=(first, second),
        pools=(
            ResourcePool(
                name="cpu",
                units=2 if pins else 1,
                policy=Policy(kind=policy, quantum_s=50e-6 if policy == "fair" else None),
            ),
        ),
    )


@pytest.mark.parametrize(("policy", "low_ratio"), [("fifo", 0.6), ("fair", 0.95)])
def test_polls_beside_a_plain_task_unit_carry_what_the_closed_form_says(policy: PolicyKind, low_ratio: float) -> None:
    router = beside(Activation(kind="interrupt", interrupt_cost_s=2e-6), policy=policy)
    load = OfferedLoad(rate_pps=1e5, flows=FlowSet.crafted(2), arrivals=Arrivals.poisson())
    carried_pps = lossless_pps(router, load)

    def lost(rate_pps: float) -> float:
        return Simulate(router, seed=1).trial(replace(load, rate_pps=rate_pps), 0.1).loss_ratio

    assert lost(0.98 * carried_pps) == 0.0
    assert lost(carried_pps / low_ratio) > 0.01
    above = Solve(model=router).trial(replace(load, rate_pps=carried_pps / low_ratio), 1.0)
    assert unknown(above)
    assert "it may carry up to 1.333 Mpps" in above.bottleneck.reason


def test_one_that_polls_may_take_the_unit_of_another() -> None:
    load = OfferedLoad(rate_pps=1e5, flows=FlowSet.crafted(2), arrivals=Arrivals.poisson())
    assert unknown(Solve(model=beside(Activation(kind="polling"), pins=(0,))).trial(load, 1.0))
    apart = beside(Activation(kind="polling"), pins=(0,))
    apart = replace(apart, tasks=(replace(apart.tasks[0], pin=(1,)), apart.tasks[1]))
    assert not unknown(Solve(model=apart).trial(load, 1.0))


def test_one_that_polls_leaves_only_the_other_units() -> None:
    router = beside(Activation(kind="polling"), pins=(0, 1))
    load = OfferedLoad(rate_pps=6e6, flows=FlowSet.crafted(2), arrivals=Arrivals.poisson())
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 0.02)
    assert solved.forwarded_pps == pytest.approx(simulated.forwarded_pps, rel=0.01)


@pytest.mark.parametrize("load", [1.3, 2.9])
def test_frames_wait_behind_polls_that_empty_a_full_ring(load: float) -> None:
    """A poll takes its frames out of the ring at once, so that the ring fills again behind it."""
    router = multicore(
        1, ServiceCost(per_packet_s=1e-6), activation=Activation(kind="interrupt", budget_frames=64), queue_frames=64
    )
    offered = OfferedLoad(rate_pps=load * 1e6, arrivals=Arrivals.poisson())
    solved, simulated = Solve(model=router).trial(offered, 1.0), Simulate(router, seed=1).trial(offered, 0.1)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.02)
    # By the algebra of one cycle: 64 places fill in 64/rate, and the poll lasts 64 services.
    assert simulated.latency.mean_s == pytest.approx((64 + 32 * (1 - 1 / load)) * 1e-6, rel=0.02)


def test_the_loss_of_bursts_is_that_of_a_modulated_queue_and_the_latency_is_not_known() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=64)
    for rate_pps in (0.6e6, 1.5e6):
        bursts = OfferedLoad(rate_pps=rate_pps, arrivals=Arrivals.on_off(burst_frames=40.0, peak_ratio=3.0))
        solved = Solve(model=router).trial(bursts, 1.0)
        assert solved.loss_ratio == pytest.approx(Simulate(router).trial(bursts, 0.5).loss_ratio, abs=0.01)
        assert solved.latency is None


def test_where_the_loss_of_bursts_is_not_known_neither_is_the_latency() -> None:
    # Each burst is of one flow, so a core gets whole bursts; meanwhile it sleeps.
    activation = Activation(kind="interrupt", wakeup=RandomTime(mean_s=10e-6))
    router = multicore(2, ServiceCost(per_packet_s=1e-6), queue_frames=16, activation=activation)
    bursts = OfferedLoad(
        rate_pps=1e6, arrivals=Arrivals.on_off(burst_frames=40.0, peak_ratio=3.0), flows=FlowSet.random(8)
    )
    solved = Solve(model=router).trial(bursts, 1.0)
    assert unknown(solved)
    assert solved.latency is None


def test_mixed_sizes_at_equal_gaps_do_not_come_at_equal_gaps() -> None:
    """On a link of 1 Gbit/s a frame of 1518 bytes takes twice the mean gap: what comes behind it is late."""
    router = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e9)
    load = OfferedLoad(rate_pps=160e3, frames=replace(FrameMix.imix(), order="random"), arrivals=Arrivals.cbr())
    assert Solve(model=router).trial(load, 1.0).latency is None


def test_in_overload_sizes_do_not_find_room_alike_at_shared_units() -> None:
    router = beside(Activation())
    service = ServiceCost(per_byte_s=2e-9)
    router = replace(router, tasks=tuple(replace(task, service=service) for task in router.tasks))
    load = OfferedLoad(rate_pps=3e6, frames=FrameMix.imix(), flows=FlowSet.crafted(2), arrivals=Arrivals.poisson())
    assert unknown(Solve(model=router).trial(load, 1.0))
    assert not unknown(Solve(model=router).trial(replace(load, frames=FrameMix.fixed(340)), 1.0))


def test_a_queue_that_is_too_short_is_named_by_both_evaluators() -> None:
    router = multicore(1, ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=4)
    load = OfferedLoad(rate_pps=0.7e6, arrivals=Arrivals.poisson())
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 0.1)
    assert solved.bottleneck.name == simulated.bottleneck.name == "core 0"
    assert "too few frames may wait" in solved.bottleneck.reason
    assert "cpu" in solved.bottleneck.others


def test_resources_that_are_as_full_are_named_beside_the_one_that_limits() -> None:
    router = multicore(4, ServiceCost(per_packet_s=1e-7), link_bps=1e9)
    load = OfferedLoad(rate_pps=1e6, flows=FlowSet.crafted(4))
    for trial in (Solve(model=router).trial(load, 1.0), Simulate(router, seed=1).trial(load, 0.05)):
        assert {trial.bottleneck.name, *trial.bottleneck.others} == {
            "port 0 in",
            "port 0 out",
            "port 1 in",
            "port 1 out",
        }
        assert "instead" in trial.bottleneck.words


def test_what_a_law_covers_is_not_called_unknown() -> None:
    router = multicore(2, ServiceCost(per_packet_s=1e-6))
    load = OfferedLoad(rate_pps=1.2e6, arrivals=Arrivals.poisson())
    assert not unknown(Solve(model=router).trial(load, 1.0))
    # What is lost in overload is known as far as it matters.
    over = Solve(model=router).trial(replace(load, rate_pps=4e6), 1.0)
    assert over.loss_ratio > 0.4
    assert not unknown(over)


def test_a_link_that_is_just_full_loses_what_the_interval_says() -> None:
    # Poisson arrivals at 1.5 times line rate leave their links back to back, and fill another link to the brim.
    router = multicore(4, ServiceCost(per_packet_s=0.1e-6))
    load = OfferedLoad(rate_pps=10e6, arrivals=Arrivals.poisson(), flows=FlowSet.random(6), frames=FrameMix.fixed(512))
    solved = Solve(model=router).trial(load, 1.0)
    low, high = solved.interval.get("loss_ratio", (0.0, 0.0))
    assert 0.0 <= low <= solved.loss_ratio <= high <= 0.01
    simulated = Simulate(router, steady_state=False).trial(load, 0.02)
    assert low <= simulated.loss_ratio <= high


def test_who_decides_by_loss_takes_what_overload_alone_takes_where_it_is_not_known() -> None:
    moderated = Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=1e-6, moderation_s=40e-6)
    router = multicore(1, ServiceCost(per_packet_s=1e-6), activation=moderated, queue_frames=32)
    below, beyond = (Solve(model=router).trial(OfferedLoad(rate_pps=rate), 1.0) for rate in (0.9e6, 2e6))
    assert math.isnan(below.loss_ratio)
    assert below.min_loss_ratio == 0.0
    assert beyond.min_loss_ratio == pytest.approx(0.5, abs=0.02)
    assert below.to_json()["loss_ratio"] is None


def test_a_task_unit_that_lingers_wakes_up_though_its_interrupt_takes_no_time() -> None:
    lingers = Activation(kind="interrupt", linger_s=5e-6, wakeup=RandomTime(mean_s=20e-6), discipline="exhaustive")
    router = multicore(1, ServiceCost(per_packet_s=1e-6), activation=lingers, link_bps=1e12)
    load = OfferedLoad(rate_pps=0.05e6, arrivals=Arrivals.poisson())
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=2).trial(load, 2.0)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.03)
    low, high = solved.interval["latency.mean_s"]
    assert low <= simulated.latency.mean_s <= high


@pytest.mark.parametrize(("gap_s", "is_known"), [(6.05e-6, False), (3.0e-6, True), (40e-6, True)])
def test_at_equal_gaps_varying_services_decide_whether_a_lingering_unit_sleeps(gap_s: float, *, is_known: bool) -> None:
    # Idle for the gap less the service: on both sides of 5 us of lingering, always shorter, always longer.
    lingers = Activation(kind="interrupt", linger_s=5e-6, wakeup=RandomTime(mean_s=11e-6), discipline="exhaustive")
    service = ServiceCost(per_packet_s=1.6e-6, variation="uniform", scv=0.3)
    router = multicore(1, service, activation=lingers, link_bps=1e12)
    load = OfferedLoad(rate_pps=1.0 / gap_s)
    solved, simulated = Solve(model=router).trial(load, 1.0), Simulate(router, seed=2).trial(load, 1.0)
    assert simulated.latency is not None
    assert (solved.latency is not None) == is_known
    if solved.latency is None:
        assert any("stays awake or sleeps by how long each frame takes" in note for note in solved.notes)
        assert simulated.latency.mean_s > 1.5 * 1.6e-6  # the unit does sleep, which the mean idle time denies
        return
    low, high = solved.interval["latency.mean_s"]
    assert low <= simulated.latency.mean_s <= high
