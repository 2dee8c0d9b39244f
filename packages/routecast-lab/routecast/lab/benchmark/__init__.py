"""Benchmarks by the procedures of RFC 2544 and its updates, on any evaluator."""

from routecast.lab.benchmark.plan import Plan, plan_of
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.profile import read_profile, shipped_profiles
from routecast.lab.benchmark.rig import ModelRig, Outage, PlainRig, Rig
from routecast.lab.benchmark.run import run_benchmark
from routecast.lab.benchmark.streams import Stream
from routecast.lab.benchmark.values import BenchmarkResult, Profile

__all__ = [
    "PROCEDURES",
    "BenchmarkResult",
    "ModelRig",
    "Outage",
    "PlainRig",
    "Plan",
    "Profile",
    "Rig",
    "Stream",
    "plan_of",
    "read_profile",
    "run_benchmark",
    "shipped_profiles",
]
