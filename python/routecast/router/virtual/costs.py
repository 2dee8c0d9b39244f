"""Costs of several steps that one task unit takes, and of steps that take longer than stated."""

from __future__ import annotations

from dataclasses import fields, replace

from routecast.router.model import ServiceCost

__all__ = ["FREE", "added", "scaled"]

FREE = ServiceCost()
"""A step that costs nothing."""


def added(*costs: ServiceCost) -> ServiceCost:
    """Return the cost of several steps that one task unit takes; the first that varies lends its variation.

    Memory accesses are added as the time that they take, so costs of different latencies add up rightly.
    """
    numbers = {
        field.name: sum(getattr(cost, field.name) for cost in costs)
        for field in fields(ServiceCost)
        if field.name.startswith("per_")
    }
    numbers["per_packet_s"] += sum(cost.memory_accesses * cost.memory_latency_s for cost in costs)
    varying = next((cost for cost in costs if cost.variation != "deterministic"), FREE)
    return ServiceCost(**numbers, variation=varying.variation, scv=varying.scv)


def scaled(cost: ServiceCost, factor: float) -> ServiceCost:
    """Return a cost whose work for each packet, byte and batch is so many times as much.

    Memory accesses stay as they are: :func:`added` has none, it gives them as time.
    """
    numbers = {
        field.name: getattr(cost, field.name) * factor for field in fields(ServiceCost) if field.name.startswith("per_")
    }
    return replace(cost, **numbers)
