"""Evaluators: one protocol, several ways to answer what happens at a load."""

from routecast.evaluate.protocol import Described, Evaluator, Resettable
from routecast.evaluate.simulate import FrameFate, Message, Simulate, Trace
from routecast.evaluate.solve import Solve, capacity_pps, lossless_pps
from routecast.evaluate.trial import (
    Bottleneck,
    Delay,
    FlowOutcome,
    Moment,
    Resource,
    TaskActivity,
    Trial,
    TrialPower,
)

__all__ = [
    "Bottleneck",
    "Delay",
    "Described",
    "Evaluator",
    "FlowOutcome",
    "FrameFate",
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
