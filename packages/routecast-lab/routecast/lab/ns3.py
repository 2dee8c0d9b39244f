"""A router model as JSON that the ns-3 module ``router-resources`` reads (``ResourceHelper::InstallFromFile``)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from routecast.errors import ModelProblem, Problem
from routecast.router.model import Contention, ResourcePool, Route, RouterModel, TaskUnit

__all__ = ["NS3_FORMAT", "NS3_VERSION", "ns3_document"]

NS3_FORMAT = "routecast router for ns-3"
NS3_VERSION = 1

_MAX_UNITS = 64
"""Greatest number of units of a pool in the module."""

_POLICIES = ("fifo", "priority", "preemptive", "round_robin", "fair")
_ACTIVATIONS = ("dedicated", "polling", "interrupt")
_ROUTES = ("single", "rss", "round_robin", "random")
_VARIATIONS = ("deterministic", "exponential", "gamma", "lognormal", "uniform")


def ns3_document(model: RouterModel) -> dict[str, Any]:
    """Return a router as plain data for ns-3, in seconds and watts.

    Raises ModelProblem: with every property that ns-3 cannot express, and its place.

    Examples
    --------
    >>> from routecast.router import ServiceCost, multicore
    >>> document = ns3_document(multicore(2, ServiceCost(per_packet_s=1e-6)))
    >>> [task["name"] for task in document["tasks"]]
    ['distributor', 'core 0', 'core 1']
    """
    problems = [*_problems_of_pools(model), *_problems_of_tasks(model)]
    if problems:
        raise ModelProblem(f"router {model.name!r}", problems)
    return {
        "format": NS3_FORMAT,
        "version": NS3_VERSION,
        "name": model.name,
        "pools": [_pool(pool) for pool in model.pools],
        "tasks": [_task(task, model) for task in model.tasks],
        "ports": [
            {"name": port.name, "link_bps": port.link_bps, "tx_ring": port.tx_ring_frames, "entry": port.entry}
            for port in model.ports
        ],
    }


def _problems_of_pools(model: RouterModel) -> Iterator[Problem]:
    for number, pool in enumerate(model.pools):
        place = f"pool[{number}]"
        if pool.units > _MAX_UNITS:
            yield Problem(f"{place}.units", f"got {pool.units}: the ns-3 module has at most {_MAX_UNITS}")
        if pool.policy.kind not in _POLICIES:
            yield Problem(f"{place}.policy", f'got "{pool.policy.kind}": the ns-3 module has {", ".join(_POLICIES)}')
        if any(ratio != 1.0 for ratio in pool.unit_speed_ratio):
            yield Problem(f"{place}.unit_speed_ratio", "units of a pool are alike in the ns-3 module")
        if pool.interruptions is not None:
            yield Problem(f"{place}.interruptions", "the ns-3 module has no interruptions")
        if pool.power is not None and pool.power.sleep:
            yield Problem(
                f"{place}.power.sleep",
                "units do not sleep in the ns-3 module; leave it out for active, idle and base power",
            )


def _problems_of_tasks(model: RouterModel) -> Iterator[Problem]:
    names = {task.name for task in model.tasks}
    for number, task in enumerate(model.tasks):
        place, activation = f"task[{number}]", task.activation
        if task.queue_frames == 0:
            yield Problem(f"{place}.queue_frames", "is 0: a queue of the ns-3 module holds 1 frame or more")
        if activation.kind not in _ACTIVATIONS:
            got = f'got "{activation.kind}": the ns-3 module has {", ".join(_ACTIVATIONS)}'
            yield Problem(f"{place}.activation.kind", got)
        if activation.kind == "interrupt":
            if activation.linger_s > 0.0:
                yield Problem(f"{place}.activation.linger", "interrupts do not linger in the ns-3 module")
            if activation.wakeup is not None:
                yield Problem(f"{place}.activation.wakeup", "task units wake up at once in the ns-3 module")
            if activation.discipline != "gated":
                yield Problem(
                    f"{place}.activation.discipline",
                    f'got "{activation.discipline}": polls of the ns-3 module are gated',
                )
        if task.thread:
            yield Problem(f"{place}.thread", "the ns-3 module has no threads that several task units share")
        if task.holds_back:
            yield Problem(f"{place}.holds_back", "task units of the ns-3 module do not hold frames back")
        if any(need.until for need in task.needs):
            yield Problem(f"{place}.needs", "frames in the ns-3 module do not hold units beyond service (until)")
        if task.service.variation not in _VARIATIONS:
            got = f'got "{task.service.variation}": ns-3 draws {", ".join(_VARIATIONS)}'
            yield Problem(f"{place}.service.variation", got)
        yield from _problems_of_route(f"{place}.route", task.route, names)


def _problems_of_route(place: str, route: Route, names: set[str]) -> Iterator[Problem]:
    if route.copies:
        yield Problem(f"{place}.copies", "the ns-3 module copies no frames")
    if not route.to or route.kind == "egress":
        return
    if route.kind not in _ROUTES:
        got = f'got "{route.kind}": the ns-3 module has {", ".join(_ROUTES)}, and egress, which is the routing of ns-3'
        yield Problem(f"{place}.kind", got)
    ports = [name for name in route.to if name not in names]
    if ports:
        yield Problem(f"{place}.to", f'got port "{ports[0]}": the routing of ns-3 chooses ports; say kind = "egress"')


def _pool(pool: ResourcePool) -> dict[str, Any]:
    power = pool.power
    return {
        "name": pool.name,
        "units": pool.units,
        "policy": pool.policy.kind,
        "quantum_s": pool.policy.quantum_s or 0.0,
        "switch_cost_s": pool.switch_cost_s,
        "migration_cost_s": pool.migration_cost_s,
        "contention": _factors(pool.contention, pool.units),
        "active_w": power.active_w if power else 0.0,
        "idle_w": power.idle_w if power else 0.0,
        "base_w": power.base_w if power else 0.0,
    }


def _factors(contention: Contention, units: int) -> list[float]:
    return [] if contention.is_none else list(contention.factors(units))


def _task(task: TaskUnit, model: RouterModel) -> dict[str, Any]:
    service = task.service
    frequency_hz = model.pool(task.needs[0].pool).frequency_hz if task.needs else None
    cycle_s = 1.0 / frequency_hz if frequency_hz else 0.0
    units = sum(model.pool(need.pool).units for need in task.needs[:1])
    return {
        "name": task.name,
        "needs": [
            {"pool": need.pool, "units": need.units, "pin": list(task.pin) if number == 0 else []}
            for number, need in enumerate(task.needs)
        ],
        "per_packet_s": service.per_packet_s
        + service.memory_accesses * service.memory_latency_s
        + service.per_packet_cycles * cycle_s,
        "per_byte_s": service.per_byte_s + service.per_byte_cycles * cycle_s,
        "per_batch_s": service.per_batch_s + service.per_batch_cycles * cycle_s,
        "variation": _variation(service.variation, service.squared_cv),
        "queue": task.queue_frames,
        # Every waiting frame requests its own unit: as many requests as frames that wait or are in service.
        "parallel": task.queue_frames + units if task.request == "frame" else task.parallel,
        "batch": task.batch_frames,
        "priority": task.priority,
        "weight": task.weight,
        "activation": task.activation.kind,
        "budget": task.activation.budget_frames,
        "interrupt_cost_s": task.activation.interrupt_cost_s,
        "moderation_s": task.activation.moderation_s,
        "route": _route(task.route),
    }


def _variation(kind: str, scv: float) -> str:
    """Return the ns-3 attributes of a random factor of mean 1; empty for none."""
    if kind == "deterministic" or scv == 0.0:
        return ""
    if kind == "exponential":
        return "ns3::ExponentialRandomVariable[Mean=1]"
    if kind == "gamma":
        return f"ns3::GammaRandomVariable[Alpha={1.0 / scv!r}|Beta={scv!r}]"
    if kind == "lognormal":
        variance = math.log1p(scv)
        return f"ns3::LogNormalRandomVariable[Mu={-0.5 * variance!r}|Sigma={math.sqrt(variance)!r}]"
    half = math.sqrt(3.0 * scv)
    return f"ns3::UniformRandomVariable[Min={1.0 - half!r}|Max={1.0 + half!r}]"


def _route(route: Route) -> dict[str, Any]:
    if not route.to or route.kind == "egress":
        return {"kind": "out", "to": [], "weights": [], "indirection": []}
    return {
        "kind": route.kind,
        "to": list(route.to),
        "weights": list(route.weights),
        "indirection": list(route.indirection) if route.kind == "rss" else [],
    }
