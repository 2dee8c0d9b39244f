"""No field of a router file passes the closed form in silence: each is used, bounded or named, and the docs say which.

The table stands in docs/semantics.md. For each field that has an effect on frames or watts, a router with and one
without it get answers that differ, or a note.
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routecast.evaluate.solve import Solve
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    Need,
    Policy,
    Port,
    PowerDraw,
    RandomTime,
    ResourcePool,
    Route,
    RouterModel,
    ServiceCost,
    SleepState,
    TaskUnit,
    WeightedLaw,
)

DOCS = Path(__file__).parents[2] / "docs" / "semantics.md"
_ROW = re.compile(r"^\| `(\w+\.\w+)` \| (\w+) \|.*\|$", re.MULTILINE)


def stated() -> dict[str, str]:
    """What the table says of each field."""
    return {match[1]: match[2] for match in _ROW.finditer(DOCS.read_text(encoding="utf-8"))}


def declared(kind: type, seen: set[type]) -> Iterator[str]:
    """The fields of a dataclass and of those that it holds; variants of a law are fields of ``Contention``."""
    seen.add(kind)
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        yield f"{kind.__name__}.{field.name}"
        for inner in parts_of(hints[field.name]):
            if dataclasses.is_dataclass(inner) and inner not in seen and inner is not WeightedLaw:
                yield from declared(inner, seen)


def parts_of(hint: Any) -> Iterator[Any]:
    """The types that a hint is made of."""
    yield hint
    for inner in typing.get_args(hint):
        yield from parts_of(inner)


def test_the_table_has_every_field_of_a_router_file_and_no_other() -> None:
    assert list(stated()) == list(dict.fromkeys(stated()))
    assert set(stated()) == set(declared(RouterModel, set()))
    assert set(stated().values()) <= {"used", "bounded", "named", "none"}


def worker(name: str = "a", **changes: Any) -> TaskUnit:
    plain = {
        "needs": (Need(pool="cpu"),),
        "service": ServiceCost(per_packet_s=1e-6),
        "route": Route(kind="egress", to=()),
    }
    return TaskUnit(name=name, **{**plain, "route": Route(), **changes})


def router(
    *tasks: TaskUnit,
    pool: Mapping[str, Any] | None = None,
    port: Mapping[str, Any] | None = None,
    second_entry: str = "",
) -> RouterModel:
    tasks = tasks or (worker(),)
    entries = (tasks[0].name, second_entry or tasks[0].name)
    ports = tuple(
        Port(**{"name": f"port {number}", "link_bps": 10e9, "entry": entry, **(port or {})})
        for number, entry in enumerate(entries)
    )
    pools = (ResourcePool(**{"name": "cpu", "units": 2, **(pool or {})}),)
    used = any(need.pool == "cpu" for task in tasks for need in task.needs)
    return RouterModel(name="x", ports=ports, tasks=tasks, pools=pools if used else ())


def pair(**pool: Any) -> RouterModel:
    """Two task units that share one unit in overload."""
    return shared({}, {}, **pool)


def shared(first: Mapping[str, Any], second: Mapping[str, Any], **pool: Any) -> RouterModel:
    split = TaskUnit(name="split", route=Route(kind="round_robin", to=("a", "b")))
    return router(split, worker("a", **first), worker("b", **second), pool={"units": 1, **pool})


def with_law(**law: Any) -> RouterModel:
    return router(worker(parallel=2), pool={"contention": Contention(**law)})


def with_service(**costs: Any) -> RouterModel:
    return router(worker(service=ServiceCost(**{"per_packet_s": 0.5e-6, **costs})), pool={"frequency_hz": 2e9})


def with_activation(**activation: Any) -> RouterModel:
    return router(worker(activation=Activation(**{"kind": "interrupt", **activation})))


def polls_of(frames: int) -> RouterModel:
    activation = Activation(kind="interrupt", budget_frames=frames)
    return router(worker(activation=activation, service=ServiceCost(per_packet_s=0.5e-6, per_batch_s=1e-6)))


def with_power(**power: Any) -> RouterModel:
    return router(pool={"power": PowerDraw(**{"active_w": 10.0, "idle_w": 5.0, **power})})


def with_sleep(**state: Any) -> RouterModel:
    return with_power(sleep=(SleepState(**{"name": "C1", "power_w": 1.0, "exit_s": 2e-6, "after_s": 1e-6, **state}),))


def with_interruptions(**interruptions: Any) -> RouterModel:
    values = {"rate_hz": 1000.0, "duration": RandomTime(mean_s=20e-6), **interruptions}
    return router(pool={"interruptions": Interruptions(**values)})


def with_wakeup(**wakeup: Any) -> RouterModel:
    return with_activation(interrupt_cost_s=0.0, discipline="exhaustive", wakeup=RandomTime(**wakeup))


def with_route(**route: Any) -> RouterModel:
    """Frames of one port are routed, those of the other go to the second of two task units."""
    split = TaskUnit(name="split", route=Route(**{"to": ("a", "b"), **route}))
    return router(split, worker("a"), worker("b", service=ServiceCost(per_packet_s=2e-6)), second_entry="b")


def linux(**policy: Any) -> Policy:
    return Policy(kind="linux", quantum_s=1e-3, **policy)


def threads(*, granularity_s: float = 0.0, thread: str = "", **task: Any) -> RouterModel:
    unit = {"activation": Activation(kind="thread"), "thread": thread, **task}
    return shared(unit, unit, policy=linux(wakeup_granularity_s=granularity_s))


def in_a_row(**first: Any) -> RouterModel:
    polls = {"activation": Activation(kind="polling")}
    slow = worker("b", service=ServiceCost(per_packet_s=3e-6), **polls)
    return router(worker(route=Route(to=("b",)), **polls, **first), slow)


def with_ring(tx_ring_frames: int) -> RouterModel:
    """A fast link in, and a slow link out."""
    fast = worker(needs=(), service=ServiceCost(per_packet_s=1e-9), route=Route(kind="egress", to=("port 0", "port 1")))
    model = router(fast)
    slow = replace(model.ports[1], link_bps=0.3e9, tx_ring_frames=tx_ring_frames)
    return replace(model, ports=(model.ports[0], slow))


def in_turns(quantum_s: float) -> RouterModel:
    batches = {"batch_frames": 32}
    quick = {"service": ServiceCost(per_packet_s=0.5e-6), **batches}
    return shared(batches, quick, policy=Policy(kind="round_robin", quantum_s=quantum_s))


IN_OVERLOAD = 3e6
ROUTED_A = with_route(kind="single", to=("a",))
ROUTED_B = replace(ROUTED_A, tasks=(replace(ROUTED_A.tasks[0], route=Route(to=("b",))), ROUTED_A.tasks[2]))
SPREAD = with_route(kind="round_robin")
COPIED = with_route(kind="single", to=("a",), copies=("b",))
PROBES: dict[str, tuple[RouterModel, RouterModel] | tuple[RouterModel, RouterModel, float]] = {
    "RouterModel.ports": (router(), router(port={"link_bps": 1e9})),
    "RouterModel.tasks": (router(), router(worker(service=ServiceCost(per_packet_s=2e-6)))),
    "RouterModel.pools": (router(worker(parallel=2)), router(worker(parallel=1), pool={"units": 1})),
    "Port.link_bps": (router(), router(port={"link_bps": 1e9})),
    "Port.tx_ring_frames": (with_ring(512), with_ring(1)),
    "Port.entry": (SPREAD, replace(SPREAD, ports=(SPREAD.ports[0], replace(SPREAD.ports[1], entry="split")))),
    "TaskUnit.needs": (pair(), shared({"needs": ()}, {}), IN_OVERLOAD),
    "TaskUnit.service": (router(), router(worker(service=ServiceCost(per_packet_s=2e-6)))),
    "TaskUnit.queue_frames": (router(), router(worker(queue_frames=1))),
    "TaskUnit.activation": (router(), with_activation(interrupt_cost_s=1e-6)),
    "TaskUnit.batch_frames": (
        with_service(per_batch_s=1e-6),
        router(
            worker(service=ServiceCost(per_packet_s=0.5e-6, per_batch_s=1e-6), batch_frames=32),
            pool={"frequency_hz": 2e9},
        ),
        IN_OVERLOAD,
    ),
    "TaskUnit.parallel": (router(), router(worker(parallel=2))),
    "TaskUnit.request": (pair(), shared({"request": "frame", "queue_frames": 64}, {}), IN_OVERLOAD),
    "TaskUnit.priority": (
        pair(policy=Policy(kind="priority")),
        shared({"priority": 1}, {}, policy=Policy(kind="priority")),
        IN_OVERLOAD,
    ),
    "TaskUnit.weight": (
        pair(policy=Policy(kind="fair", quantum_s=1e-5)),
        shared({"weight": 3.0}, {}, policy=Policy(kind="fair", quantum_s=1e-5)),
        IN_OVERLOAD,
    ),
    "TaskUnit.pin": (shared({}, {}, units=2), shared({"pin": (0,)}, {"pin": (0,)}, units=2), IN_OVERLOAD),
    "TaskUnit.thread": (threads(), threads(thread="t"), IN_OVERLOAD),
    "TaskUnit.holds_back": (in_a_row(), in_a_row(holds_back=True)),
    "TaskUnit.route": (ROUTED_A, with_route(kind="round_robin")),
    "Need.pool": (
        router(),
        replace(
            router(), tasks=(worker(needs=(Need(pool="bus"),)),), pools=(ResourcePool(name="bus", frequency_hz=1e9),)
        ),
    ),
    "Need.units": (pair(), shared({"needs": (Need(pool="cpu", units=2),)}, {}, units=2), IN_OVERLOAD),
    "Need.until": (
        router(worker(request="frame", parallel=2, route=Route(to=("b",))), worker("b", needs=())),
        router(
            worker(request="frame", parallel=2, needs=(Need(pool="cpu", until="b"),), route=Route(to=("b",))),
            worker("b", needs=()),
        ),
    ),
    "Route.kind": (ROUTED_A, with_route(kind="round_robin")),
    "Route.to": (ROUTED_A, ROUTED_B),
    "Route.weights": (with_route(kind="random", weights=(1.0, 1.0)), with_route(kind="random", weights=(1.0, 9.0))),
    "Route.indirection": (with_route(kind="rss"), with_route(kind="rss", indirection=(1,) * 128)),
    "Route.copies": (ROUTED_A, COPIED),
    "Activation.kind": (router(), with_activation(interrupt_cost_s=1e-6)),
    "Activation.budget_frames": (polls_of(64), polls_of(1), IN_OVERLOAD),
    "Activation.interrupt_cost_s": (with_activation(), with_activation(interrupt_cost_s=2e-6)),
    "Activation.moderation_s": (with_activation(), with_activation(moderation_s=50e-6)),
    "Activation.linger_s": (
        with_wakeup(mean_s=5e-6),
        replace(
            with_wakeup(mean_s=5e-6),
            tasks=(
                worker(
                    activation=Activation(
                        kind="interrupt", discipline="exhaustive", wakeup=RandomTime(mean_s=5e-6), linger_s=2e-6
                    )
                ),
            ),
        ),
    ),
    "Activation.wakeup": (with_wakeup(), with_wakeup(mean_s=5e-6)),
    "Activation.discipline": (
        with_activation(interrupt_cost_s=1e-6),
        with_activation(interrupt_cost_s=1e-6, discipline="exhaustive"),
    ),
    "ServiceCost.per_packet_cycles": (with_service(), with_service(per_packet_cycles=500.0)),
    "ServiceCost.per_byte_cycles": (with_service(), with_service(per_byte_cycles=5.0)),
    "ServiceCost.per_batch_cycles": (with_service(), with_service(per_batch_cycles=500.0)),
    "ServiceCost.per_packet_s": (with_service(), with_service(per_packet_s=1e-6)),
    "ServiceCost.per_byte_s": (with_service(), with_service(per_byte_s=2e-9)),
    "ServiceCost.per_batch_s": (with_service(), with_service(per_batch_s=0.3e-6)),
    "ServiceCost.memory_accesses": (
        with_service(memory_latency_s=1e-7),
        with_service(memory_latency_s=1e-7, memory_accesses=2.0),
    ),
    "ServiceCost.memory_latency_s": (
        with_service(memory_accesses=2.0),
        with_service(memory_accesses=2.0, memory_latency_s=1e-7),
    ),
    "ServiceCost.variation": (with_service(), with_service(variation="exponential")),
    "ServiceCost.scv": (with_service(variation="gamma", scv=0.2), with_service(variation="gamma", scv=2.0)),
    "ResourcePool.units": (router(worker(parallel=2)), router(worker(parallel=1), pool={"units": 1})),
    "ResourcePool.frequency_hz": (
        router(worker(service=ServiceCost(per_packet_cycles=1000.0)), pool={"frequency_hz": 2e9}),
        router(worker(service=ServiceCost(per_packet_cycles=1000.0)), pool={"frequency_hz": 1e9}),
    ),
    "ResourcePool.unit_speed_ratio": (
        router(worker(parallel=2)),
        router(worker(parallel=2), pool={"unit_speed_ratio": (0.5, 1.5)}),
    ),
    "ResourcePool.policy": (
        shared({"priority": 1}, {}),
        shared({"priority": 1}, {}, policy=Policy(kind="priority")),
        IN_OVERLOAD,
    ),
    "ResourcePool.switch_cost_s": (pair(), pair(switch_cost_s=1e-6), IN_OVERLOAD),
    "ResourcePool.migration_cost_s": (
        router(worker(parallel=2)),
        router(worker(parallel=2), pool={"migration_cost_s": 1e-6}),
    ),
    "ResourcePool.contention": (with_law(), with_law(sigma=0.3)),
    "ResourcePool.interruptions": (router(), with_interruptions()),
    "ResourcePool.power": (router(), with_power()),
    "Policy.kind": (
        shared({"priority": 1}, {}),
        shared({"priority": 1}, {}, policy=Policy(kind="priority")),
        IN_OVERLOAD,
    ),
    "Policy.quantum_s": (in_turns(2e-6), in_turns(64e-6), IN_OVERLOAD),
    "Contention.law": (with_law(sigma=0.3), with_law(law="power", alpha=0.5)),
    "Contention.sigma": (with_law(), with_law(sigma=0.3)),
    "Contention.kappa": (with_law(), with_law(kappa=0.3)),
    "Contention.alpha": (with_law(law="power", alpha=0.9), with_law(law="power", alpha=0.5)),
    "Contention.top": (
        with_law(law="ceiling", top=1.9, sharpness=4.0),
        with_law(law="ceiling", top=1.1, sharpness=4.0),
    ),
    "Contention.sharpness": (
        with_law(law="ceiling", top=1.2, sharpness=8.0),
        with_law(law="ceiling", top=1.2, sharpness=1.5),
    ),
    "Contention.share": (with_law(law="lock", share=0.1, handover=2.0), with_law(law="lock", share=0.8, handover=2.0)),
    "Contention.handover": (
        with_law(law="lock", share=0.6, handover=0.5),
        with_law(law="lock", share=0.6, handover=5.0),
    ),
    "Contention.knee": (
        with_law(law="kinked", knee=1.1, slope=0.2, sharpness=6.0),
        with_law(law="kinked", knee=1.9, slope=0.2, sharpness=6.0),
    ),
    "Contention.slope": (
        with_law(law="kinked", knee=1.1, slope=0.2, sharpness=6.0),
        with_law(law="kinked", knee=1.1, slope=0.9, sharpness=6.0),
    ),
    "Contention.table": (with_law(), with_law(table=(1.0, 1.5))),
    "Contention.mixture": (with_law(), with_law(mixture=(WeightedLaw(sigma=0.3, weight=1.0),))),
    "Contention.discrepancy": (with_law(sigma=0.1), with_law(sigma=0.1, discrepancy=(1.0, 1.3))),
    "Interruptions.rate_hz": (with_interruptions(), with_interruptions(rate_hz=5000.0)),
    "Interruptions.duration": (with_interruptions(), with_interruptions(duration=RandomTime(mean_s=60e-6))),
    "RandomTime.mean_s": (with_wakeup(mean_s=2e-6), with_wakeup(mean_s=5e-6)),
    "RandomTime.variation": (with_wakeup(mean_s=5e-6), with_wakeup(mean_s=5e-6, variation="exponential")),
    "RandomTime.scv": (
        with_wakeup(mean_s=5e-6, variation="gamma", scv=0.1),
        with_wakeup(mean_s=5e-6, variation="gamma", scv=2.0),
    ),
    "RandomTime.quantiles_s": (with_wakeup(quantiles_s=(1e-6, 2e-6)), with_wakeup(quantiles_s=(1e-6, 9e-6))),
    "PowerDraw.active_w": (with_power(), with_power(active_w=20.0)),
    "PowerDraw.idle_w": (with_power(), with_power(idle_w=1.0)),
    "PowerDraw.base_w": (with_power(), with_power(base_w=50.0)),
    "PowerDraw.sleep": (with_power(), with_sleep()),
    "SleepState.power_w": (with_sleep(), with_sleep(power_w=3.0)),
    "SleepState.exit_s": (with_sleep(), with_sleep(exit_s=9e-6)),
    "SleepState.after_s": (with_sleep(), with_sleep(after_s=9e-6)),
    "SleepState.wake_energy_j": (with_sleep(), with_sleep(wake_energy_j=1e-6)),
}


def answer(model: RouterModel, rate_pps: float) -> dict[str, object]:
    load = OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(8, ports=2), arrivals=Arrivals.poisson())
    trial = Solve(model=model).trial(load, 1.0)
    latency = None if trial.latency is None else trial.latency.mean_s
    numbers = (trial.forwarded_pps, repr(trial.loss_ratio), latency, trial.energy_j, trial.interval)
    resources = [(each.name, each.utilisation_ratio, each.capacity_pps) for each in trial.resources]
    return {"numbers": numbers, "resources": resources, "notes": trial.notes}


@pytest.mark.parametrize("name", [name for name, kind in stated().items() if kind != "none"])
def test_a_field_changes_the_answer_or_is_named(name: str) -> None:
    if name == "Policy.wakeup_granularity_s":
        for granularity_s in (0.0, 1e-3):
            assert "loss is not known" in " ".join(answer(threads(granularity_s=granularity_s), IN_OVERLOAD)["notes"])  # type: ignore[arg-type]
        return
    without, changed, *rate = PROBES[name]
    rate_pps = rate[0] if rate else 0.45e6
    assert answer(without, rate_pps) != answer(changed, rate_pps)  # type: ignore[arg-type]
