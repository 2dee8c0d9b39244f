"""A router model and a load as the scenario of the compiled core: indices for names, picoseconds for seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from routecast.load.arrivals import Arrivals
from routecast.load.offered import OfferedLoad
from routecast.router.events import Event, Outage
from routecast.router.model import Need, Port, RandomTime, ResourcePool, Route, RouterModel, TaskUnit

__all__ = ["load_of", "model_of", "ports_in", "run_of", "scenario_of"]

_PS = 1e12


def scenario_of(model: RouterModel, load: OfferedLoad) -> dict[str, Any]:
    """Return ``model`` and ``load`` in the format of ``crates/sim/src/scenario.rs``; the caller adds the run."""
    return {"model": model_of(model), "load": load_of(load)}


def model_of(model: RouterModel) -> dict[str, Any]:
    """Return a router in the format of ``crates/sim/src/scenario/model.rs``."""
    tasks = {task.name: index for index, task in enumerate(model.tasks)}
    pools = {pool.name: index for index, pool in enumerate(model.pools)}
    ports = {port.name: index for index, port in enumerate(model.ports)}
    thread_names = dict.fromkeys(task.thread for task in model.tasks if task.thread)
    threads = {name: index for index, name in enumerate(thread_names)}
    return {
        "ports": [_port(port, tasks) for port in model.ports],
        "tasks": [_task(task, model, tasks, pools, ports, threads) for task in model.tasks],
        "pools": [_pool(pool) for pool in model.pools],
    }


def run_of(
    model: RouterModel,
    duration_s: float,
    *,
    seed: int,
    path: str,
    keep_frames: bool,
    per_flow: bool,
    over_time: bool,
    message_limit: int,
    steady_state: bool,
    is_whole: bool,
    events: Sequence[Event],
) -> dict[str, Any]:
    """Return the run of a scenario, and the events of the router during it."""
    tasks = {task.name: index for index, task in enumerate(model.tasks)}
    ports = {port.name: index for index, port in enumerate(model.ports)}
    return {
        "duration_ps": max(round(duration_s * _PS), 1),
        "seed": seed,
        "path": path,
        "record_frames": keep_frames,
        "message_limit": message_limit,
        "need_steady_state": steady_state,
        "whole": is_whole,
        "per_flow": per_flow,
        "over_time": over_time,
        "events": [_event(event, tasks, ports) for event in events],
    }


def _event(event: Event, tasks: dict[str, int], ports: dict[str, int]) -> dict[str, Any]:
    if isinstance(event, Outage):
        until_ps = None if math.isinf(event.until_s) else event.until_s * _PS
        return {"kind": "outage", "task": tasks[event.task], "from_ps": event.from_s * _PS, "until_ps": until_ps}
    return {
        "kind": "reroute",
        "task": tasks[event.task],
        "at_ps": event.at_s * _PS,
        "route": _route(event.route, tasks, ports),
        "copies": [tasks[name] for name in event.route.copies],
    }


def _port(port: Port, tasks: dict[str, int]) -> dict[str, Any]:
    entry = tasks[port.entry] if port.entry else None
    return {"link_bps": port.link_bps, "tx_ring": port.tx_ring_frames, "entry": entry}


def _pool(pool: ResourcePool) -> dict[str, Any]:
    quantum_ps = (pool.policy.quantum_s or 0.0) * _PS
    policy: dict[str, Any] = {"kind": pool.policy.kind}
    if pool.policy.kind == "fair":
        policy["slice_ps"] = quantum_ps
    elif pool.policy.kind in {"round_robin", "linux"}:
        policy["quantum_ps"] = quantum_ps
    if pool.policy.kind == "linux":
        policy["wakeup_granularity_ps"] = pool.policy.wakeup_granularity_s * _PS
    contention = pool.contention
    interruptions = pool.interruptions
    return {
        "speed": list(pool.unit_speed_ratio) or [1.0] * pool.units,
        "policy": policy,
        "switch_ps": pool.switch_cost_s * _PS,
        "migration_ps": pool.migration_cost_s * _PS,
        "contention": [] if contention.is_none else list(contention.factors(pool.units)),
        "interruptions": None
        if interruptions is None
        else {"rate_hz": interruptions.rate_hz, "duration": _time(interruptions.duration)},
        "sleep": [
            {"after_ps": state.after_s * _PS, "exit_ps": state.exit_s * _PS}
            for state in (pool.power.sleep if pool.power else ())
        ],
    }


def _time(time: RandomTime) -> dict[str, Any]:
    if time.quantiles_s:
        return {"kind": "quantiles", "quantiles_ps": [quantile_s * _PS for quantile_s in time.quantiles_s]}
    return {"kind": "mean", "mean_ps": time.mean_s * _PS, "variation": _variation(time.variation, time.squared_cv)}


def _variation(kind: str, scv: float) -> dict[str, Any]:
    return {"kind": kind} if kind in {"deterministic", "exponential"} else {"kind": kind, "scv": scv}


def _task(
    task: TaskUnit,
    model: RouterModel,
    tasks: dict[str, int],
    pools: dict[str, int],
    ports: dict[str, int],
    threads: dict[str, int],
) -> dict[str, Any]:
    service = task.service
    frequency_hz = model.pool(task.needs[0].pool).frequency_hz if task.needs else None
    cycle_ps = _PS / frequency_hz if frequency_hz else 0.0
    activation: dict[str, Any] = {"kind": task.activation.kind}
    if task.activation.kind in {"interrupt", "thread"}:
        activation["budget"] = task.activation.budget_frames
        activation["cost_ps"] = task.activation.interrupt_cost_s * _PS
        activation["exhaustive"] = task.activation.discipline == "exhaustive"
    if task.activation.kind == "interrupt":
        activation["moderation_ps"] = task.activation.moderation_s * _PS
        activation["linger_ps"] = task.activation.linger_s * _PS
    if task.activation.wakeup is not None:
        activation["wakeup"] = _time(task.activation.wakeup)
    memory_s = service.memory_accesses * service.memory_latency_s
    return {
        "needs": [_need(need, tasks, pools) for need in task.needs],
        "per_frame_ps": (service.per_packet_s + memory_s) * _PS + service.per_packet_cycles * cycle_ps,
        "per_byte_ps": service.per_byte_s * _PS + service.per_byte_cycles * cycle_ps,
        "per_batch_ps": service.per_batch_s * _PS + service.per_batch_cycles * cycle_ps,
        "variation": _variation(service.variation, service.squared_cv),
        "queue": task.queue_frames,
        "activation": activation,
        "batch": task.batch_frames,
        "parallel": None if task.request == "frame" else task.parallel,
        "priority": task.priority,
        "weight": task.weight,
        "pin": list(task.pin),
        "thread": threads.get(task.thread),
        "holds_back": task.holds_back,
        "route": _route(task.route, tasks, ports),
        "copies": [tasks[name] for name in task.route.copies],
    }


def _need(need: Need, tasks: dict[str, int], pools: dict[str, int]) -> dict[str, int]:
    units = {"pool": pools[need.pool], "units": need.units}
    return {**units, "until": tasks[need.until]} if need.until else units


def _route(route: Route, tasks: dict[str, int], ports: dict[str, int]) -> dict[str, Any]:
    return {
        "kind": route.kind,
        "to": [{"task": tasks[name]} if name in tasks else {"port": ports[name]} for name in route.to],
        "weights": list(route.weights),
        "indirection": list(route.indirection),
    }


def ports_in(load: OfferedLoad) -> tuple[int, ...]:
    """Return the ports that the load uses, one source each, in the order of the outcome's sources."""
    return tuple(sorted({flow.ingress for flow in load.flows.flows}))


def load_of(load: OfferedLoad) -> dict[str, Any]:
    """Return a load in the format of ``crates/sim/src/scenario/load.rs``."""
    flows = load.flows.flows
    by_port: dict[int, list[int]] = {port: [] for port in ports_in(load)}
    for number, flow in enumerate(flows):
        by_port[flow.ingress].append(number)
    sources = []
    for order, (port, members) in enumerate(by_port.items()):
        share = sum(flows[number].weight for number in members) / load.flows.total_weight
        process = _process(load.arrivals, members, order / len(by_port))
        steps = [{"at_ps": step.at_s * _PS, "rate_pps": step.rate_pps * share} for step in load.steps]
        sources.append(
            {"port": port, "rate_pps": load.rate_pps * share, "process": process, "flows": members, "steps": steps}
        )
    return {
        "sources": sources,
        "flows": [{"hash": flow.rss_hash & 0xFFFFFFFF, "egress": flow.egress, "weight": flow.weight} for flow in flows],
        "sizes": list(load.frames.sequence_bytes),
        "random_sizes": load.frames.order == "random",
    }


def _process(arrivals: Arrivals, members: list[int], phase: float) -> dict[str, Any]:
    if arrivals.kind == "cbr":
        return {"kind": "cbr", "phase": phase}
    if arrivals.kind == "on_off":
        return {"kind": "on_off", "burst_frames": arrivals.burst_frames, "peak_ratio": arrivals.peak_ratio}
    if arrivals.kind == "bursts":
        return {"kind": "bursts", "burst_frames": round(arrivals.burst_frames)}
    if arrivals.trace is not None:
        trace = arrivals.trace
        is_member = np.zeros(max(members) + 1, bool)
        is_member[members] = True
        rows = np.flatnonzero((trace.flow < len(is_member)) & is_member[np.minimum(trace.flow, max(members))])
        return {
            "kind": "trace",
            "time_ps": np.rint(trace.time_s[rows] * _PS).astype(np.uint64).tolist(),
            "bytes": trace.frame_bytes[rows].tolist(),
            "flow": trace.flow[rows].tolist(),
        }
    return {"kind": "poisson"}
