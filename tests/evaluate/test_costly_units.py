"""Units of unequal speed, migrations, switches and short queues before shared units: no loss without a word."""

from __future__ import annotations

import importlib
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.errors import RoutecastError
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router.model import Need, Port, ResourcePool, RouterModel, ServiceCost, TaskUnit

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
random_router = importlib.import_module("scenarios").random_router

LOAD = OfferedLoad(rate_pps=0.9e6, flows=FlowSet.random(64, ports=2), arrivals=Arrivals.poisson())


def one_task(**pool: object) -> RouterModel:
    worker = TaskUnit(name="w", needs=(Need(pool="cpu"),), service=ServiceCost(per_packet_s=1e-6))
    ports = tuple(Port(name=f"port {number}", link_bps=100e9, entry="w") for number in range(2))
    return RouterModel(
        name="x",
        ports=ports,
        tasks=(worker,),
        pools=(ResourcePool(name="cpu", **{"units": 2, **pool}),),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("speeds", [(0.5, 1.5), (1.5, 0.5), (0.8, 2.0)])
def test_one_frame_at_a_time_stays_on_its_first_unit(speeds: tuple[float, float]) -> None:
    """It returns to the unit that it used last, and the simulator's unit is the closed form's."""
    model = one_task(unit_speed_ratio=speeds, migration_cost_s=1e-6)
    solved = Solve(model=model).trial(LOAD, 1.0)
    capacity_pps = 1e6 * speeds[0]
    assert solved.forwarded_pps == pytest.approx(min(LOAD.rate_pps, capacity_pps), rel=1e-3)
    simulated = Simulate(model, seed=3).trial(LOAD, 0.2)
    assert solved.loss_ratio == pytest.approx(simulated.loss_ratio, abs=0.006)
    assert not any("mean speed" in note or "migration" in note for note in solved.notes)


def test_several_frames_at_once_on_unequal_units_have_a_note_and_no_sure_loss() -> None:
    model = one_task(unit_speed_ratio=(0.5, 1.5))
    model = replace(model, tasks=(replace(model.tasks[0], parallel=2, queue_frames=4),))
    solved = Solve(model=model).trial(replace(LOAD, rate_pps=1.7e6), 1.0)
    assert math.isnan(solved.loss_ratio)
    assert any("unequal speed" in note for note in solved.notes)
    light = Solve(model=model).trial(replace(LOAD, rate_pps=1e4), 1.0)
    assert light.loss_ratio == pytest.approx(0.0, abs=1e-3)  # even the slowest unit has room


def test_no_random_router_with_costly_units_loses_without_a_word() -> None:
    judged = 0
    for seed in range(120):
        _, model, load = random_router(seed, "costly")
        try:
            solved = Solve(model=model).trial(load, 1.0)
        except RoutecastError:
            continue  # bursts whose flows are drawn at random have no closed form
        if math.isnan(solved.loss_ratio):
            continue
        simulated = Simulate(model, seed=1).trial(load, 30_000 / load.rate_pps)
        low, high = solved.interval.get("loss_ratio", (solved.loss_ratio, solved.loss_ratio))
        in_flight = (simulated.in_flight_frames or 0) / max(simulated.offered_frames or 1, 1)
        assert low - in_flight - 0.01 <= simulated.loss_ratio <= high + 0.01, seed
        judged += 1
    assert judged >= 25
