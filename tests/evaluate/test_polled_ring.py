"""Rings that polls empty, and interrupts whose work is interrupted: against textbook queues and the simulator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routecast.evaluate._general_queues import MG1K, ServiceMix
from routecast.evaluate._queue import MMcK
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.evaluate.solve._stations import PolledRing
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.quantity.toml_file import parse_toml
from routecast.router import RouterModel
from routecast.router.files import build_router

FILE = """
name = "one core"

[[port]]
name = "in"
link = "100 Gbit/s"
entry = "core"

[[port]]
name = "out"
link = "100 Gbit/s"
entry = "core"

[[pool]]
name = "cpu"
units = 1
POOL

[[task]]
name = "core"
needs = [{ pool = "cpu" }]
queue = "QUEUE frames"
batch = "BATCH frames"
service = { per_packet = "1 us", variation = "VARIATION" }
activation = ACTIVATION
route = { kind = "egress", to = ["in", "out"] }

[load]
rate = "1 Mpps"
frames = "64 B"
"""


def router(**words: str) -> RouterModel:
    """Return the router of the file with words in place of those in capitals."""
    text = FILE
    defaults = {"POOL": "", "QUEUE": "256", "BATCH": "1", "VARIATION": "deterministic"}
    for word, value in {**defaults, **words}.items():
        text = text.replace(word, value)
    return build_router(parse_toml(text, "file"), subject="file")[0]


def load_of(rate_pps: float, arrivals: Arrivals | None = None) -> OfferedLoad:
    """Return frames of 64 B in two flows, from both ports."""
    return OfferedLoad(
        rate_pps=rate_pps, frames=FrameMix.fixed(64), flows=FlowSet.crafted(2), arrivals=arrivals or Arrivals.poisson()
    )


@pytest.mark.parametrize("load_ratio", [0.3, 0.9, 1.0, 1.5, 4.0])
@pytest.mark.parametrize(("law", "scv"), [("deterministic", 0.0), ("exponential", 1.0), ("gamma", 0.4)])
def test_a_ring_of_one_frame_is_a_queue_with_room_for_two(load_ratio: float, law: str, scv: float) -> None:
    service = ServiceMix(shares=(1.0,), times_s=(1e-6,), scv=scv, law=law)  # type: ignore[arg-type]
    ring = PolledRing(arrival_pps=load_ratio * 1e6, service=service, ring_frames=1)
    queue = MG1K(arrival_pps=load_ratio * 1e6, service=service, capacity_frames=2)
    assert ring.loss_ratio == pytest.approx(queue.loss_ratio, rel=1e-9)
    assert ring.sojourn_mean_s == pytest.approx(queue.sojourn_mean_s, rel=1e-9)


def test_a_ring_that_never_fills_is_a_queue_without_limit() -> None:
    service = ServiceMix(shares=(1.0,), times_s=(1e-6,), scv=1.0, law="exponential")
    ring = PolledRing(arrival_pps=0.5e6, service=service, ring_frames=200)
    queue = MMcK(arrival_pps=0.5e6, service_s=1e-6, servers=1, capacity_frames=400)
    assert ring.loss_ratio == pytest.approx(0.0, abs=1e-12)
    assert ring.sojourn_mean_s == pytest.approx(queue.sojourn_mean_s, rel=1e-9)


@pytest.mark.parametrize("activation", ['{ kind = "polling" }', '{ kind = "interrupt", budget = "32 frames" }'])
@pytest.mark.parametrize("variation", ["exponential", "deterministic"])
@pytest.mark.parametrize("load_ratio", [0.8, 0.95, 1.3])
def test_polls_that_empty_a_ring_lose_and_delay_what_the_simulator_says(
    load_ratio: float, variation: str, activation: str
) -> None:
    batch = "32" if "polling" in activation else "1"
    model = router(QUEUE="8", BATCH=batch, VARIATION=variation, ACTIVATION=activation)
    solved = Solve(model=model).trial(load_of(load_ratio * 1e6), 1.0)
    simulated = Simulate(model, replications=8).trial(load_of(load_ratio * 1e6), 0.2)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.loss_ratio == pytest.approx(simulated.loss_ratio, abs=1.5e-3)
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.01)


@pytest.mark.parametrize("arrivals", [Arrivals.cbr(), Arrivals.poisson()])
def test_frames_that_enter_during_a_poll_wait_for_it(arrivals: Arrivals) -> None:
    for batch in ("16", "64"):
        model = router(QUEUE="64", BATCH=batch, ACTIVATION='{ kind = "polling" }')
        solved = Solve(model=model).trial(load_of(1.3e6, arrivals), 1.0)
        simulated = Simulate(model).trial(load_of(1.3e6, arrivals), 0.3)
        assert solved.latency is not None
        assert simulated.latency is not None
        assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.02)


@pytest.mark.parametrize("more", ["", ', wakeup = { mean = "5 us", variation = "exponential" }'])
def test_the_work_of_an_interrupt_is_interrupted_as_a_service_is(more: str) -> None:
    interruptions = 'interruptions = { rate = "50 kHz", duration = { mean = "20 us", variation = "exponential" } }'
    activation = '{ kind = "interrupt", interrupt_cost = "2 us", discipline = "exhaustive"' + more + " }"
    model = router(POOL=interruptions, QUEUE="4096", ACTIVATION=activation)
    load = load_of(0.1e6)
    solved = Solve(model=model).trial(load, 1.0)
    # Welch 1964: M/G/1 whose first service after an idle time takes D longer, with the moments of interrupted times.
    rate, strikes, added_s, added_s2 = 0.1e6, 50e3, 20e-6, 2.0 * 20e-6**2
    stretch = 1.0 + strikes * added_s
    service = 1e-6 * stretch, (1e-6 * stretch) ** 2 + 1e-6 * strikes * added_s2
    start = 2e-6 * stretch, (2e-6 * stretch) ** 2 + 2e-6 * strikes * added_s2
    if more:
        start = start[0] + 5e-6, start[1] + 2.0 * start[0] * 5e-6 + 2.0 * 5e-6**2
    waits_s = rate * service[1] / (2.0 * (1.0 - rate * service[0]))
    waits_s += (2.0 * start[0] + rate * start[1]) / (2.0 * (1.0 + rate * start[0]))
    assert solved.latency is not None
    assert solved.latency.mean_s == pytest.approx(waits_s + service[0], rel=1e-6)
    simulated = Simulate(model, replications=8).trial(load, 1.0)
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=0.03)


def test_services_that_begin_together_slow_each_other_in_their_order() -> None:
    text = FILE.replace("units = 1\nPOOL", "units = 2\ncontention = { sigma = 0.1 }")
    text = text.replace(
        "[[task]]", '[[task]]\nname = "spread"\nroute = { kind = "rss", to = ["core 1", "core 2"] }\n\n[[task]]'
    )
    first, last = text.split('[[task]]\nname = "core"')
    core, load = last.split("[load]")
    cores = "".join(
        f'[[task]]\nname = "core {number + 1}"' + core.replace('pool = "cpu" }]', f'pool = "cpu" }}]\npin = [{number}]')
        for number in range(2)
    )
    text = first.replace('entry = "core"', 'entry = "spread"') + cores + "[load]" + load
    for word, value in {"QUEUE": "64", "BATCH": "1", "VARIATION": "deterministic"}.items():
        text = text.replace(word, value)
    model = build_router(parse_toml(text.replace("activation = ACTIVATION\n", ""), "file"), subject="file")[0]
    # Two flows, one from each port, to a core each: bursts that come at once.
    load_ = replace(load_of(0.4e6), arrivals=Arrivals.bursts(4))
    solved = Solve(model=model).trial(load_, 1.0)
    simulated = Simulate(model).trial(load_, 0.1)
    assert solved.latency is not None
    assert simulated.latency is not None
    assert solved.latency.mean_s == pytest.approx(simulated.latency.mean_s, rel=1e-3)
