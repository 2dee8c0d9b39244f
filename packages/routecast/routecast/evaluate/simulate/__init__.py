"""The simulating evaluator: the compiled core behind the evaluator protocol."""

from routecast.evaluate.simulate._simulator import FrameFate, Message, Simulate, Trace

__all__ = ["FrameFate", "Message", "Simulate", "Trace"]
