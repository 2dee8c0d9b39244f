"""What trials say of resources agrees with what they say of the load, in overload too."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve, lossless_pps
from routecast.evaluate.trial import Trial
from routecast.evaluate.views import resources_table
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import Activation, Contention, RouterModel, ServiceCost, multicore
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parents[2] / "examples"
MS = 1e-3


def agrees(trial: Trial) -> None:
    """Check that no resource carries less than passes, and that the bottleneck has the least left."""
    assert trial.resources
    for resource in trial.resources:
        assert resource.capacity_pps >= trial.forwarded_pps
        assert resource.margin_ratio >= 0.0
    assert min(resource.margin_ratio for resource in trial.resources) == 0.0
    left = [row[3] for row in resources_table(trial).rows]
    assert all(item is None or (isinstance(item, float) and item >= 0.0) for item in left)
    if trial.loss_ratio == 0.0 and trial.offered_pps >= trial.intended_pps:
        assert not trial.bottleneck.reason.startswith("limits")


def evaluators(model: RouterModel) -> tuple[Evaluator, Evaluator]:
    return Solve(model=model), Simulate(model, seed=1, steady_state=False)


@settings(derandomize=True)
@given(
    cores=st.integers(1, 6),
    flows=st.integers(1, 30),
    seed=st.integers(0, 50),
    sigma=st.floats(0.0, 0.3),
    queue_frames=st.integers(1, 128),
    batch_frames=st.integers(1, 32),
    bus_bytes_per_s=st.one_of(st.none(), st.floats(1e8, 1e9)),
    nic_cap_pps=st.one_of(st.none(), st.floats(1e6, 1e7)),
    frame_bytes=st.sampled_from([64, 512, 1518]),
    arrivals=st.sampled_from([Arrivals.cbr(), Arrivals.poisson()]),
    rate_pps=st.floats(1e4, 3e7),
)
@pytest.mark.slow
def test_nothing_carries_less_than_a_router_forwards(
    cores: int,
    flows: int,
    seed: int,
    sigma: float,
    queue_frames: int,
    batch_frames: int,
    bus_bytes_per_s: float | None,
    nic_cap_pps: float | None,
    frame_bytes: int,
    arrivals: Arrivals,
    rate_pps: float,
) -> None:
    model = multicore(
        cores,
        ServiceCost(per_packet_s=0.3e-6, per_batch_s=1e-6 if batch_frames > 1 else 0.0),
        queue_frames=queue_frames,
        batch_frames=batch_frames,
        contention=Contention(sigma=sigma),
        bus_bytes_per_s=bus_bytes_per_s,
        nic_cap_pps=nic_cap_pps,
    )
    load = OfferedLoad(
        rate_pps=rate_pps, frames=FrameMix.fixed(frame_bytes), flows=FlowSet.random(flows, seed=seed), arrivals=arrivals
    )
    for evaluator in evaluators(model):
        agrees(evaluator.trial(load, MS))


@pytest.mark.parametrize("times", [0.5, 0.99, 1.05, 1.3, 2.0, 10.0])
@pytest.mark.parametrize("file", sorted(path.name for path in EXAMPLES.glob("*.router.toml")))
def test_nothing_carries_less_than_a_shipped_router_forwards(file: str, times: float) -> None:
    model, load = read_router_and_load(EXAMPLES / file)
    load = replace(load, rate_pps=times * lossless_pps(model, load))
    agrees(Solve(model=model).trial(load, MS))


def test_unequal_flows_pass_more_in_overload_than_without_loss_and_the_words_say_which_is_which() -> None:
    # Each core forwards 1 Mpps. Of 4 Mpps the one gets 3 and loses 2, the other carries its 1: 2 Mpps pass in all,
    # and 4/3 Mpps is where the fuller core starts to lose.
    flows = FlowSet.crafted(2)
    unequal = replace(flows, flows=(replace(flows.flows[0], weight=3.0), flows.flows[1]))
    load = OfferedLoad(rate_pps=4e6, flows=unequal, arrivals=Arrivals.cbr())
    model = multicore(2, ServiceCost(per_packet_s=1e-6), link_bps=100e9)
    trial = Solve(model=model).trial(load, 1.0)
    assert trial.forwarded_pps == pytest.approx(2e6)
    cpu = next(resource for resource in trial.resources if resource.name == "cpu")
    assert (cpu.capacity_pps, cpu.margin_ratio) == (pytest.approx(2e6), 0.0)
    assert trial.bottleneck.name == "cpu"
    assert "limits, without loss up to 1.333 Mpps" in trial.bottleneck.reason
    assert lossless_pps(model, load) == pytest.approx(4e6 / 3.0)


def test_where_a_short_queue_loses_the_queue_limits_and_not_a_core_that_is_half_idle() -> None:
    # One frame served and one waiting, an M/D/1/2: departures leave none behind with probability pi_0 = e^-rho, and
    # 1 - 1/(pi_0 + rho) of the frames are lost (Gross and Harris, Fundamentals of Queueing Theory, M/G/1/K).
    rho = 0.8
    lost_ratio = 1.0 - 1.0 / (math.exp(-rho) + rho)
    model = multicore(1, ServiceCost(per_packet_s=1e-6), queue_frames=1, link_bps=100e9)
    load = OfferedLoad(rate_pps=rho * 1e6, flows=FlowSet.crafted(1), arrivals=Arrivals.poisson())
    solved, simulated = (evaluator.trial(load, 20 * MS) for evaluator in evaluators(model))
    assert simulated.loss_ratio == pytest.approx(lost_ratio, abs=0.01)
    for trial in (solved, simulated):
        assert trial.loss_ratio == pytest.approx(lost_ratio, abs=0.01)
        assert (trial.bottleneck.name, trial.bottleneck.kind) == ("core 0", "task")
        assert "too few frames may wait there" in trial.bottleneck.reason
        assert "cpu" in trial.bottleneck.others
    # Twice what the core serves is too much for any queue.
    over = Simulate(model, seed=1).trial(replace(load, rate_pps=2e6), 20 * MS)
    assert over.bottleneck.name == "cpu"


@pytest.mark.parametrize("rate_pps", [2e5, 1e6, 1.5e6])
def test_a_core_that_polls_could_carry_what_it_forwards_in_overload(rate_pps: float) -> None:
    # At low loads its polls and interrupts cost much and take few frames: it is busy, and not full.
    service = ServiceCost(per_packet_s=0.4e-6, per_batch_s=1e-6)
    woken = multicore(1, service, activation=Activation(kind="interrupt", budget_frames=64, interrupt_cost_s=2e-6))
    for model in (woken, multicore(1, service, activation=Activation(kind="polling"), batch_frames=64)):

        def trial(pps: float, model: RouterModel = model) -> Trial:
            load = OfferedLoad(rate_pps=pps, frames=FrameMix.fixed(64), flows=FlowSet.crafted(2, ports=2))
            return Simulate(model, seed=1, steady_state=False).trial(load, 0.05)

        cpu = next(resource for resource in trial(rate_pps).resources if resource.name == "cpu")
        assert cpu.capacity_pps == pytest.approx(trial(4e6).forwarded_pps, rel=0.02)
