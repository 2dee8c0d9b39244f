"""Without places to wait, what is lost is Erlang's B formula, for every law of the service time."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from routecast.errors import ModelProblem
from routecast.evaluate._queue import erlang_b
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, OfferedLoad
from routecast.router.files import read_router_and_load
from routecast.router.model import (
    Activation,
    Need,
    Policy,
    Port,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    Variation,
)


def ports(entry: str) -> tuple[Port, ...]:
    return tuple(Port(name=f"port {number}", link_bps=1e15, entry=entry) for number in range(2))


def loss_system(servers: int, variation: Variation = "exponential", **task: object) -> RouterModel:
    values = {"queue_frames": 0, "parallel": servers, **task}
    worker = TaskUnit(
        name="w",
        needs=(Need(pool="cpu"),),
        service=ServiceCost(per_packet_s=1e-6, variation=variation),
        **values,  # type: ignore[arg-type]
    )
    return RouterModel(name="x", ports=ports("w"), tasks=(worker,), pools=(ResourcePool(name="cpu", units=servers),))


@pytest.mark.parametrize("path", ["recursion", "events"])
@pytest.mark.parametrize("variation", ["deterministic", "exponential"])
@pytest.mark.parametrize(("servers", "offered"), [(1, 0.5), (1, 2.0), (4, 3.0), (20, 18.0)])
def test_solver_and_both_engines_lose_what_erlang_says(
    servers: int, offered: float, variation: Variation, path: Literal["recursion", "events"]
) -> None:
    model = loss_system(servers, variation)
    load = OfferedLoad(rate_pps=offered * 1e6, arrivals=Arrivals.poisson())
    expected = erlang_b(offered, servers)
    solved = Solve(model=model).trial(load, 1.0)
    assert solved.loss_ratio == pytest.approx(expected)
    assert solved.latency is not None
    assert solved.latency.mean_s == pytest.approx(1e-6)
    simulated = Simulate(model, seed=4, path=path).trial(load, 0.2 / offered)
    assert simulated.loss_ratio == pytest.approx(expected, abs=0.01)
    assert simulated.waiting is not None
    assert simulated.waiting.mean_s == pytest.approx(0.0, abs=1e-12)


def test_equal_gaps_that_fit_lose_nothing_without_a_place_to_wait() -> None:
    model = loss_system(1, "deterministic")
    for rate_pps, lost in ((0.9e6, 0.0), (2e6, 0.5)):
        load = OfferedLoad(rate_pps=rate_pps)
        assert Simulate(model, seed=1).trial(load, 0.01).loss_ratio == pytest.approx(lost, abs=0.01)
        assert Solve(model=model).trial(load, 1.0).loss_ratio == pytest.approx(lost, abs=0.01)


@pytest.mark.parametrize(
    "task",
    [
        {"activation": Activation(kind="interrupt")},
        {"activation": Activation(kind="polling")},
        {"batch_frames": 8},
        {"request": "frame", "parallel": 1},
    ],
)
def test_only_who_serves_a_frame_at_once_needs_no_place_to_wait(task: dict[str, object]) -> None:
    with pytest.raises(ModelProblem, match="places to wait"):
        loss_system(2, **task)


def test_a_router_file_may_have_no_queue(tmp_path: Path) -> None:
    path = tmp_path / "x.router.toml"
    path.write_text('builder = "multicore"\ncores = 1\nqueue = "0 frames"\nservice = { per_packet = "1 us" }\n')
    model, _ = read_router_and_load(path)
    load = OfferedLoad(rate_pps=0.5e6, arrivals=Arrivals.poisson())
    assert Solve(model=model).trial(load, 1.0).loss_ratio == pytest.approx(0.5 / 1.5)  # B(1, a) = a/(1 + a)


@pytest.mark.parametrize("units", [129, 200, 384, 512])
def test_pools_of_the_largest_servers_are_simulated_with_every_policy(units: int) -> None:
    """Two sockets of 192 cores: priorities are granted by the manager, which once knew 128 units."""
    split = TaskUnit(name="split", route=Route(kind="round_robin", to=("a", "b")))
    workers = tuple(
        TaskUnit(
            name=name,
            needs=(Need(pool="cpu"),),
            service=ServiceCost(per_packet_s=10e-6),
            parallel=units,
            priority=priority,
        )
        for priority, name in enumerate(("a", "b"))
    )
    pool = ResourcePool(name="cpu", units=units, policy=Policy(kind="preemptive"))
    model = RouterModel(name="x", ports=ports("split"), tasks=(split, *workers), pools=(pool,))
    full_pps = units / 10e-6
    for rate_pps, forwarded_pps in ((0.95 * full_pps, 0.95 * full_pps), (1.25 * full_pps, full_pps)):
        trial = Simulate(model, seed=1).trial(OfferedLoad(rate_pps=rate_pps), 0.004)
        assert trial.forwarded_pps == pytest.approx(forwarded_pps, rel=0.02)
