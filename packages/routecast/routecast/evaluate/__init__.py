"""Evaluators: one protocol for closed form, simulation and measurement. Each is imported at its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from routecast.evaluate.protocol import Described, Evaluator, Resettable
from routecast.evaluate.trial import Bottleneck, Delay, FlowOutcome, Moment, Resource, TaskActivity, Trial, TrialPower

if TYPE_CHECKING:
    from routecast.evaluate._queue import MMc, MMcK
    from routecast.evaluate.simulate import FrameFate, Message, Simulate, Trace
    from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps

__all__ = [
    "Bottleneck",
    "Delay",
    "Described",
    "Evaluator",
    "FlowOutcome",
    "FrameFate",
    "MMc",
    "MMcK",
    "Message",
    "Moment",
    "Resettable",
    "Resource",
    "Simulate",
    "Solve",
    "TaskActivity",
    "Trace",
    "Trial",
    "TrialPower",
    "capacity_pps",
    "lossless_pps",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = {"Solve": "solve", "capacity_pps": "solve", "lossless_pps": "solve", "MMc": "_queue", "MMcK": "_queue"}
    return getattr(import_module(f"routecast.evaluate.{module.get(name, 'simulate')}"), name)
