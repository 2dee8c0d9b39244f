"""Random scenarios of the simulator: routers of all builders, with random laws, policies, queues and loads."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from routecast.errors import RoutecastError
from routecast.evaluate.simulate.scenario import run_of, scenario_of
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad
from routecast.router import (
    Activation,
    Contention,
    Interruptions,
    Need,
    Outage,
    Policy,
    Port,
    RandomTime,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    TaskUnit,
    check_load,
    multicore,
    softirq,
)
from routecast.router.events import check_events
from routecast.router.files import read_router_and_load
from routecast.router.model import ActivationKind, Variation

__all__ = ["random_router", "random_scenarios"]

EXAMPLES = Path(__file__).parents[2] / "examples"

LAWS = ("deterministic", "exponential", "gamma", "hyperexponential", "lognormal", "uniform")

FAMILIES: dict[str, tuple[str, ...]] = {
    "parallel": ("parallel",),
    "virtual": ("virtual", "vhost-user", "shared_core"),
    "multistage": ("multistage", "multistage_kvm", "multistage_mixed"),
    "network_processor": ("ixp2850-parallel", "ixp2850-pipelined", "diversified", "slices"),
    "file": ("bus", "dpdk-pipeline", "dpdk-run-to-completion", "green", "napi", "powersave", "smartnic", "two_pools"),
}
"""Builders, and the files of ``examples`` that they build."""


def random_scenarios(count: int, *, seed: int, frames: int) -> list[tuple[str, str]]:
    """Return scenarios as JSON, each with the name of its builder; builders take turns.

    Parameters
    ----------
    count : int
    seed : int
    frames : int
        How many frames are offered to each, about.
    """
    rng = random.Random(seed)
    builders = ("multicore", "softirq", *FAMILIES)
    return [
        (builder, _scenario(builder, rng, frames)) for builder in (builders[i % len(builders)] for i in range(count))
    ]


def random_router(seed: int, builder: str = "") -> tuple[str, RouterModel, OfferedLoad]:
    """Return a random router that is valid, with a load for it, and the name of its builder, which the seed chooses."""
    rng = random.Random(seed)
    builders = ("multicore", "softirq", *FAMILIES)
    builder = builder or builders[seed % len(builders)]
    refused: RoutecastError | None = None
    for _ in range(200):
        try:
            model = _model(builder, rng)
            load = _load(rng, model)
            check_load(model, load)
        except RoutecastError as error:
            refused = error
            continue
        return builder, model, load
    raise AssertionError(f"{builder}: nothing fits together") from refused


def _model(builder: str, rng: random.Random) -> RouterModel:
    return _MADE[builder](rng) if builder in _MADE else _from_file(builder, rng)


def _scenario(builder: str, rng: random.Random, frames: int) -> str:
    refused: RoutecastError | None = None
    for _ in range(200):
        try:
            model = _model(builder, rng)
            load = _load(rng, model)
            scenario = scenario_of(model, load)
            duration_s = frames / load.rate_pps
            events = _events(rng, model, duration_s)
            check_load(model, load, events)
            check_events(model, events, duration_s)
        except RoutecastError as error:
            refused = error  # what does not fit together is no router
            continue
        scenario["run"] = run_of(
            model,
            duration_s,
            seed=rng.getrandbits(64),
            path=rng.choice(("auto", "auto", "events")),
            keep_frames=rng.random() < 0.1,
            per_flow=rng.random() < 0.5,
            over_time=rng.random() < 0.3,
            message_limit=rng.choice((0, 0, 0, 50)),
            is_whole=load.arrivals.kind == "trace",
            steady_state=False,
            events=events,
        )
        return json.dumps(scenario)
    raise AssertionError(f"{builder}: nothing fits together") from refused


def _law(rng: random.Random) -> dict[str, Any]:
    law = rng.choice(LAWS)
    scv = {
        "gamma": rng.uniform(0.1, 4.0),
        "hyperexponential": rng.uniform(1.1, 8.0),
        "lognormal": rng.uniform(0.1, 4.0),
        "uniform": rng.uniform(0.01, 0.33),
    }
    return {"variation": law, "scv": scv.get(law)}


def _time(rng: random.Random, mean_s: float) -> RandomTime:
    if rng.random() < 0.4:
        return RandomTime(quantiles_s=tuple(sorted(rng.expovariate(1.0 / mean_s) for _ in range(5))))
    return RandomTime(mean_s=mean_s, **_law(rng))


def _interruptions(rng: random.Random) -> Interruptions | None:
    if rng.random() < 0.6:
        return None
    return Interruptions(rate_hz=rng.uniform(1e3, 1e5), duration=_time(rng, rng.uniform(1e-6, 2e-5)))


def _contention(rng: random.Random) -> Contention:
    return Contention(sigma=rng.choice((0.0, 0.05)), kappa=rng.choice((0.0, 0.01)))


def _multicore(rng: random.Random) -> RouterModel:
    kind = rng.choice(("dedicated", "polling", "interrupt"))
    return multicore(
        rng.randint(1, 8),
        ServiceCost(per_packet_s=rng.uniform(0.2e-6, 2e-6), per_byte_s=rng.choice((0.0, 0.5e-9)), **_law(rng)),
        queue_frames=rng.choice((8, 64, 512, 4096)),
        ports=2,
        link_bps=rng.choice((1e9, 10e9, 100e9)),
        tx_ring_frames=rng.choice((16, 512)),
        distribution=rng.choice(("rss", "round_robin", "per_flow")),
        contention=_contention(rng),
        interruptions=_interruptions(rng),
        activation=Activation(kind=kind),  # type: ignore[arg-type]
        batch_frames=rng.choice((1, 1, 32)),
        nic_cap_pps=rng.choice((None, None, 3e6)),
        bus_bytes_per_s=rng.choice((None, None, 1.5e9)),
    )


def _softirq(rng: random.Random) -> RouterModel:
    return softirq(
        cores=rng.randint(1, 4),
        per_packet_s=rng.uniform(0.5e-6, 3e-6),
        per_byte_s=rng.choice((0.0, 0.5e-9)),
        **_law(rng),
        ring_frames=rng.choice((16, 256, 1024)),
        budget_frames=rng.choice((8, 64)),
        interrupt_cost_s=rng.choice((0.0, 1e-6)),
        linger_s=rng.choice((0.0, 5e-6)),
        wakeup=rng.choice((None, _time(rng, 20e-6))),
        interruptions=_interruptions(rng),
        contention=_contention(rng),
        distribution=rng.choice(("rss", "per_flow")),
        link_bps=rng.choice((1e9, 10e9)),
    )


def _mixed(rng: random.Random) -> RouterModel:
    """Build a few task units of any activation, side by side or one after the other, that share one or two units."""
    count, units = rng.randint(2, 4), rng.choice((1, 1, 2))
    names = [f"task {number}" for number in range(count)]
    policy = Policy() if rng.random() < 0.2 else _policy(rng)
    tasks = tuple(
        TaskUnit(
            name=name,
            service=ServiceCost(
                per_packet_s=rng.uniform(0.2e-6, 2e-6), per_batch_s=rng.choice((0.0, 0.0, 1e-6)), **_law(rng)
            ),
            needs=(Need(pool="cpu"),),
            queue_frames=rng.choice((16, 128, 512)),
            activation=_activation(rng),
            batch_frames=rng.choice((1, 1, 1, 32)),
            priority=rng.randint(0, 1),
            pin=(rng.randrange(units),) if rng.random() < 0.3 else (),
            route=Route(to=(names[number + 1],)) if number + 1 < count and rng.random() < 0.4 else Route(),
        )
        for number, name in enumerate(names)
    )
    ports = tuple(
        Port(name=f"port {number}", link_bps=100e9, entry=rng.choice(names) if number else names[0])
        for number in range(2)
    )
    return RouterModel(
        name="mixed", ports=ports, tasks=tasks, pools=(ResourcePool(name="cpu", units=units, policy=policy),)
    )


def _costly(rng: random.Random) -> RouterModel:
    """Build task units on units of unequal speed, with costs of migrations and switches, and short queues."""
    count, units = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 2, 3, 4))
    names = [f"task {number}" for number in range(count)]
    quantum_s = rng.choice((5e-6, 50e-6))
    kinds: tuple[Policy, ...] = (
        Policy(),
        Policy(kind="fair", quantum_s=quantum_s),
        Policy(kind="round_robin", quantum_s=quantum_s),
    )
    speeds = tuple(rng.choice((0.5, 1.0, 1.0, 1.5, 2.0)) for _ in range(units)) if rng.random() < 0.4 else ()
    pool = ResourcePool(
        name="cpu",
        units=units,
        unit_speed_ratio=speeds,
        policy=rng.choice(kinds),
        migration_cost_s=rng.choice((0.0, 0.1e-6, 0.5e-6)),
        switch_cost_s=rng.choice((0.0, 0.1e-6, 0.5e-6)),
    )
    variation: Variation = rng.choice(("deterministic", "exponential"))
    same_s = rng.uniform(0.5e-6, 2e-6)
    workers = tuple(
        TaskUnit(
            name=name,
            service=ServiceCost(
                per_packet_s=same_s if rng.random() < 0.6 else rng.uniform(0.5e-6, 2e-6), variation=variation
            ),
            needs=(Need(pool="cpu"),),
            queue_frames=rng.choice((2, 4, 16, 64, 512)),
            request=rng.choice(("task", "frame")),
            parallel=rng.choice((1, 1, 2, units)),
            weight=rng.choice((1.0, 1.0, 3.0)),
        )
        for name in names
    )
    spread = Route(kind=rng.choice(("round_robin", "rss")), to=tuple(names)) if count > 1 else Route(to=(names[0],))
    tasks = (TaskUnit(name="spread", route=spread), *workers)
    ports = tuple(Port(name=f"port {number}", link_bps=100e9, entry="spread") for number in range(2))
    return RouterModel(name="costly", ports=ports, tasks=tasks, pools=(pool,))


def _activation(rng: random.Random) -> Activation:
    kinds: tuple[ActivationKind, ...] = ("dedicated", "interrupt", "interrupt", "polling", "thread")
    kind = rng.choice(kinds)
    if kind != "interrupt":
        return Activation(kind=kind)
    return Activation(
        kind=kind,
        budget_frames=rng.choice((8, 64)),
        interrupt_cost_s=rng.choice((0.0, 1e-6, 3e-6)),
        moderation_s=rng.choice((0.0, 0.0, 50e-6)),
    )


_MADE: dict[str, Callable[[random.Random], RouterModel]] = {
    "multicore": _multicore,
    "softirq": _softirq,
    "mixed": _mixed,
    "costly": _costly,
}


@cache
def _example(name: str) -> RouterModel:
    return read_router_and_load(EXAMPLES / f"{name}.router.toml")[0]


def _from_file(builder: str, rng: random.Random) -> RouterModel:
    """Build a router of a file of examples, and change what frames cost, how they wait and who goes first."""
    model = _example(rng.choice(FAMILIES[builder]))
    # What a thread runs has one priority; units that frames carry on are granted in the order of arrival.
    priority = {task.thread: rng.randint(0, 3) for task in model.tasks if task.thread}
    carried = {need.pool for task in model.tasks for need in task.needs if need.until}
    tasks = tuple(
        replace(
            task,
            service=replace(task.service, **_law(rng)) if rng.random() < 0.7 else task.service,
            queue_frames=max(1, round(task.queue_frames * rng.choice((0.1, 1.0, 1.0, 2.0)))),
            priority=priority.get(task.thread, rng.choice((task.priority, rng.randint(0, 3)))),
        )
        for task in model.tasks
    )
    pools = tuple(
        replace(pool, policy=_policy(rng), interruptions=_interruptions(rng))
        if pool.name not in carried and rng.random() < 0.4
        else pool
        for pool in model.pools
    )
    ports = tuple(replace(port, tx_ring_frames=rng.choice((16, port.tx_ring_frames))) for port in model.ports)
    return replace(model, tasks=tasks, pools=pools, ports=ports)


def _policy(rng: random.Random) -> Policy:
    kind = rng.choice(("fifo", "priority", "preemptive", "round_robin", "fair", "linux"))
    if kind in {"fifo", "priority", "preemptive"}:
        return Policy(kind=kind)  # type: ignore[arg-type]
    return Policy(kind=kind, quantum_s=rng.uniform(5e-6, 1e-3))  # type: ignore[arg-type]


def _load(rng: random.Random, model: RouterModel) -> OfferedLoad:
    ports = len(model.ports)
    flows = rng.choice((FlowSet.crafted, FlowSet.random))(rng.randint(1, 64), ports=ports)
    frames = rng.choice(
        (FrameMix.fixed(64), FrameMix.fixed(1518), FrameMix.imix(), FrameMix.parse("5x64, 3x594, 2x1518"))
    )
    arrivals = rng.choice(
        (
            Arrivals.poisson(),
            Arrivals.cbr(),
            Arrivals.on_off(burst_frames=rng.uniform(1.0, 50.0), peak_ratio=rng.uniform(1.5, 8.0)),
            Arrivals.bursts(rng.randint(2, 64)),
        )
    )
    if rng.random() < 0.3:
        frames = replace(frames, order="random")
    return OfferedLoad(rate_pps=10.0 ** rng.uniform(5.0, 6.6), frames=frames, flows=flows, arrivals=arrivals)


def _events(rng: random.Random, model: RouterModel, duration_s: float) -> tuple[Outage, ...]:
    if rng.random() < 0.85:
        return ()
    start, end = sorted((rng.uniform(0.1, 0.9), rng.uniform(0.1, 0.9)))
    return (Outage(task=rng.choice(model.tasks).name, from_s=start * duration_s, until_s=end * duration_s),)
