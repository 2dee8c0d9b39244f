"""Flit-level simulation: latency, throughput, energy and link loads, with their confidence intervals."""

from routecast.noc.simulate._design import (
    AdaptiveRouting,
    Allocator,
    Bernoulli,
    Injection,
    OnOff,
    Packets,
    RouterDesign,
    SimulationPhases,
)
from routecast.noc.simulate._fabric import Fabric, SimulatedPlane, allocated, single
from routecast.noc.simulate._result import Latency, MeanEstimate, PlaneResult, Simulated
from routecast.noc.simulate._simulator import scenario_texts, simulate, simulate_all, sweep
from routecast.noc.simulate.saturation import Saturation, overload_throughput, saturation

__all__ = [
    "AdaptiveRouting",
    "Allocator",
    "Bernoulli",
    "Fabric",
    "Injection",
    "Latency",
    "MeanEstimate",
    "OnOff",
    "Packets",
    "PlaneResult",
    "RouterDesign",
    "Saturation",
    "Simulated",
    "SimulatedPlane",
    "SimulationPhases",
    "allocated",
    "overload_throughput",
    "saturation",
    "scenario_texts",
    "simulate",
    "simulate_all",
    "single",
    "sweep",
]
