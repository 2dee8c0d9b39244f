"""Parts of a router model from the tables of a router file."""

from __future__ import annotations

from typing import overload

from routecast.router.file_models import (
    ActivationTable,
    ContentionTable,
    InterruptionsTable,
    PolicyTable,
    PoolTable,
    RandomTimeTable,
    ServiceTable,
    TaskTable,
)
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    Need,
    Policy,
    RandomTime,
    ResourcePool,
    Route,
    ServiceCost,
    TaskUnit,
)
from routecast.router.power_tables import power_draw

__all__ = [
    "activation",
    "contention",
    "interruptions",
    "policy",
    "random_time",
    "resource_pool",
    "service_cost",
    "task_unit",
]


def task_unit(table: TaskTable) -> TaskUnit:
    """Return the task unit that a table says."""
    return TaskUnit(
        name=table.name,
        needs=tuple(Need(pool=need.pool, units=need.units, until=need.until) for need in table.needs),
        service=service_cost(table.service),
        queue_frames=table.queue,
        activation=activation(table.activation),
        batch_frames=table.batch,
        parallel=table.parallel,
        request=table.request,
        priority=table.priority,
        weight=table.weight,
        pin=tuple(table.pin),
        thread=table.thread,
        holds_back=table.holds_back,
        route=Route(
            kind=table.route.kind,
            to=tuple(table.route.to),
            weights=tuple(table.route.weights),
            indirection=tuple(table.route.indirection),
            copies=tuple(table.route.copies),
        ),
    )


def resource_pool(table: PoolTable) -> ResourcePool:
    """Return the pool that a table says."""
    return ResourcePool(
        name=table.name,
        units=table.units,
        frequency_hz=table.frequency,
        unit_speed_ratio=tuple(table.unit_speed),
        policy=policy(table.policy),
        switch_cost_s=table.switch_cost,
        migration_cost_s=table.migration_cost,
        contention=contention(table.contention),
        interruptions=interruptions(table.interruptions),
        power=power_draw(table.power),
    )


def policy(table: PolicyTable) -> Policy:
    """Return how units are granted, as a table says."""
    return Policy(kind=table.kind, quantum_s=table.quantum, wakeup_granularity_s=table.wakeup_granularity)


def service_cost(table: ServiceTable) -> ServiceCost:
    """Return the work for a frame that a table says."""
    return ServiceCost(
        per_packet_cycles=table.per_packet[0],
        per_packet_s=table.per_packet[1],
        per_byte_cycles=table.per_byte[0],
        per_byte_s=table.per_byte[1],
        per_batch_cycles=table.per_batch[0],
        per_batch_s=table.per_batch[1],
        memory_accesses=table.memory_accesses,
        memory_latency_s=table.memory_latency,
        variation=table.variation,
        scv=table.scv,
    )


def contention(table: ContentionTable) -> Contention:
    """Return how units slow each other down, as a table says."""
    return Contention(sigma=table.sigma, kappa=table.kappa, table=tuple(table.table))


def activation(table: ActivationTable) -> Activation:
    """Return when a task unit works, as a table says."""
    return Activation(
        kind=table.kind,
        budget_frames=table.budget,
        interrupt_cost_s=table.interrupt_cost,
        moderation_s=table.moderation,
        linger_s=table.linger,
        wakeup=random_time(table.wakeup),
        discipline=table.discipline,
    )


@overload
def random_time(time: RandomTimeTable) -> RandomTime: ...
@overload
def random_time(time: RandomTimeTable | None) -> RandomTime | None: ...
def random_time(time: RandomTimeTable | None) -> RandomTime | None:
    """Return the random time that a table says; None where there is none."""
    if time is None:
        return None
    return RandomTime(mean_s=time.mean, variation=time.variation, scv=time.scv, quantiles_s=tuple(time.quantiles))


def interruptions(table: InterruptionsTable | None) -> Interruptions | None:
    """Return what takes a unit away, as a table says; None where there is none."""
    return None if table is None else Interruptions(rate_hz=table.rate, duration=random_time(table.duration))
