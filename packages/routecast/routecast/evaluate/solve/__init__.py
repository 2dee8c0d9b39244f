"""The closed-form evaluator: fluid rates, bottleneck laws, queueing theory."""

from routecast.evaluate.solve._closed_form import Solve, capacity_pps, lossless_pps, rates_of

__all__ = ["Solve", "capacity_pps", "lossless_pps", "rates_of"]
