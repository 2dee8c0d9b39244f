"""The closed-form evaluator: fluid rates, bottleneck laws, queueing theory."""

from routecast.evaluate.solve.closed_form import Solve, capacity_pps, lossless_pps
from routecast.evaluate.solve.throughput import Throughput, throughput

__all__ = ["Solve", "Throughput", "capacity_pps", "lossless_pps", "throughput"]
