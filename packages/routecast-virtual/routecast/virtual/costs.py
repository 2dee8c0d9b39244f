"""Sums and multiples of the costs of steps."""

from __future__ import annotations

from dataclasses import fields, replace

from routecast.router.model import ServiceCost

__all__ = ["FREE", "added", "scaled"]

FREE = ServiceCost()
"""A step that costs nothing."""


def added(*costs: ServiceCost) -> ServiceCost:
    """Return the cost of several steps of one task unit, with the variation of the first varying step.

    Memory accesses are added as time, so that costs with different latencies add up.
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
    """Return a cost with the work for each packet, byte and batch multiplied by a factor.

    Memory accesses do not change: :func:`added` has turned them into time.
    """
    numbers = {
        field.name: getattr(cost, field.name) * factor for field in fields(ServiceCost) if field.name.startswith("per_")
    }
    return replace(cost, **numbers)
