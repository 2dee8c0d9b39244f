"""A small router with power states, for tests; its figures are round and measured nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from routecast.load.offered import OfferedLoad
from routecast.plan.power.operating._search import BoundCalculator, BoundedCandidate, SimulationEvaluator
from routecast.plan.power.operating.optimise import TunableRouter, tunable_router
from routecast.quantity.toml_file import parse_toml
from routecast.router.variants import vary

__all__ = ["bounded_candidates", "document", "load_at", "machine"]

_TEXT = """
builder = "multicore"
name = "small"
cores = 2
frequency = "2 GHz"
queue = "256 frames"
service = { per_packet = "1000 cycles", memory_accesses = 1, memory_latency = "100 ns" }
activation = { kind = "interrupt", interrupt_cost = "1 us" }
[power]
base = "4 W"
active = "6 W"
idle = "2 W"
sleep = [
  { name = "C1", power = "1 W", exit = "2 us" },
  { name = "C6", power = "0.1 W", exit = "60 us", after = "50 us", wake_energy = "20 uJ" },
]
performance = [
  { frequency = "1 GHz", active = "2.5 W", idle = "1.2 W" },
  { frequency = "2 GHz", active = "6 W", idle = "2 W" },
]
[load]
rate = "400 kpps"
flows = { kind = "random", count = 64 }
arrivals = { kind = "poisson" }
"""


def document(overrides: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Return the document of the small router, with parts overridden."""
    return vary(parse_toml(_TEXT, "small"), overrides or {})


def machine(overrides: Mapping[str, object] | None = None, *, lingers_s: tuple[float, ...] = (20e-6,)) -> TunableRouter:
    """Return the small router with its choices."""
    return tunable_router(document(overrides), lingers_s=lingers_s)


def load_at(rate_pps: float) -> OfferedLoad:
    """Return the small router's load at another rate."""
    load = machine().load
    assert load is not None
    return load.at(rate_pps)


def bounded_candidates(
    router: TunableRouter, load: OfferedLoad, simulating: SimulationEvaluator, *, loss_ratio: float = 0.0
) -> list[BoundedCandidate]:
    """Return the candidates with their bounds."""
    bounds_of = BoundCalculator(load, loss_ratio=loss_ratio, noise_ratio=simulating.noise_ratio)
    return [BoundedCandidate(candidate=item, bounds=bounds_of(item, load.rate_pps)) for item in router.candidates]
