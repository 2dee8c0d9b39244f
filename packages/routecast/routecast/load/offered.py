"""Offered load: the frames that arrive at a router's ports (RFC 2285 "intended" and "offered" load).

An :class:`OfferedLoad` is a rate, a mix of frame sizes, a set of flows and an arrival process. It does not depend on
the router: ports are numbers, in the order in which the model lists them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.load.arrivals import Arrivals
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.trace import RecordedFrames
from routecast.quantity import parse_rate
from routecast.quantity.schema import field, value

__all__ = ["WIRE_OVERHEAD_BYTES", "IntendedRate", "OfferedLoad", "RateStep", "line_rate_pps", "recorded_load"]

WIRE_OVERHEAD_BYTES = 20
"""Preamble (7), start of frame delimiter (1) and inter-frame gap (12): Meyer et al. 2014, eq. 8; S1."""


_MAX_TRACE_S = 1e6
"""Longest time to which a trace is stretched: that of a simulation."""


def line_rate_pps(link_bps: float, frame_bytes: float) -> float:
    """Return the frames per second that fill a link (S1; RFC 2544 sec. 20).

    Examples
    --------
    >>> round(line_rate_pps(10e9, 64))
    14880952
    """
    return link_bps / (8.0 * (frame_bytes + WIRE_OVERHEAD_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class IntendedRate:
    """An intended load in frames/s, or in bit/s on the links including gap and preamble (S1).

    For a bit rate, the number of frames/s depends on the frame sizes.
    """

    amount: float
    unit: Literal["frames/s", "bit/s"]

    @classmethod
    def parse(cls, text: str) -> IntendedRate:
        """Read a rate in frames/s or bit/s.

        Raises QuantityProblem: the text is neither a frame rate nor a bit rate.
        """
        rate_pps, rate_bps = parse_rate(text)
        if rate_pps is not None:
            return cls(amount=rate_pps, unit="frames/s")
        assert rate_bps is not None
        return cls(amount=rate_bps, unit="bit/s")

    def pps(self, frames: FrameMix) -> float:
        """Return the rate in frames/s for these frame sizes.

        Examples
        --------
        >>> round(IntendedRate.parse("10 Gbit/s").pps(FrameMix.fixed(64)))
        14880952
        >>> IntendedRate.parse("2 Mpps").pps(FrameMix.imix())
        2000000.0
        """
        return self.amount if self.unit == "frames/s" else line_rate_pps(self.amount, frames.mean_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateStep:
    """A change of the intended load to ``rate_pps``, over all ports, ``at_s`` seconds after the start of the trial."""

    at_s: float
    rate_pps: float


@value
class OfferedLoad:
    """The load that is offered to a router.

    Raises
    ------
    routecast.errors.ModelProblem
        The rate is not a finite number > 0, a trace names a missing flow, or the steps are not in order.

    A trace is the load: rate, frames and the weights of the flows are those of its frames, whatever is given for them.
    The given rate counts only where all frames of the trace come at one instant.
    """

    # The intended load over all ports in frames/s, divided among the flows by their weights. A port carries at most its
    # line rate, so the offered load can be smaller.
    rate_pps: float
    frames: FrameMix = field("Frame sizes in bytes, FCS included", default_factory=lambda: FrameMix.fixed(64))
    flows: FlowSet = field(
        "The flows, the ports that they enter and leave by, and their RSS hash values",
        default_factory=lambda: FlowSet.crafted(1),
    )
    arrivals: Arrivals = field("The arrival process of each port's frames", default_factory=Arrivals.cbr)
    steps: tuple[RateStep, ...] = field(
        "Changes of the intended load during the trial, in order of time (RFC 2544 sec. 26.5)", default=()
    )

    def __post_init__(self) -> None:
        problems = []
        if not (math.isfinite(self.rate_pps) and self.rate_pps > 0.0):
            problems.append(Problem("rate_pps", f"got {self.rate_pps}: an intended load is a finite number > 0"))
        if self.steps and self.arrivals.kind == "trace":
            problems.append(Problem("steps", "a trace has fixed instants: its rate cannot change"))
        problems.extend(self._step_problems())
        if problems:
            raise ModelProblem("offered load", problems)
        if self.arrivals.trace is not None:
            self._take_trace(self.arrivals.trace)

    def _take_trace(self, trace: RecordedFrames) -> None:
        flows, trace = trace.flows_of(self.flows)
        # Frames of one instant have no rate of their own: theirs is that of the trial that has them all.
        rate_pps = trace.rate_pps if math.isfinite(trace.rate_pps) else len(trace) / trace.length_s
        taken = {"arrivals": Arrivals.recorded(trace), "flows": flows, "frames": trace.mix, "rate_pps": rate_pps}
        for name, part in taken.items():
            object.__setattr__(self, name, part)

    def _step_problems(self) -> list[Problem]:
        problems = []
        previous_s = 0.0
        for number, step in enumerate(self.steps):
            if not (math.isfinite(step.at_s) and step.at_s > previous_s):
                message = f"got {step.at_s} after {previous_s}: steps are in order of time, later than the start"
                problems.append(Problem(f"steps[{number}].at_s", message))
            if not (math.isfinite(step.rate_pps) and step.rate_pps > 0.0):
                message = f"got {step.rate_pps}: an intended load is a finite number > 0"
                problems.append(Problem(f"steps[{number}].rate_pps", message))
            previous_s = step.at_s
        return problems

    def at(self, rate_pps: float) -> OfferedLoad:
        """Return the same load at another intended rate; the instants of a trace are scaled to it.

        A trace that would take longer than 1e6 s becomes evenly spaced frames of its sizes and flows.
        """
        trace = self.arrivals.trace
        if trace is not None and rate_pps * _MAX_TRACE_S < len(trace):
            return replace(self, rate_pps=rate_pps, arrivals=Arrivals.cbr())
        if trace is None or not math.isfinite(trace.rate_pps):
            return replace(self, rate_pps=rate_pps)
        if rate_pps == trace.rate_pps:
            return self
        return replace(self, arrivals=Arrivals.recorded(trace.scaled(trace.rate_pps / rate_pps)))

    def trial_s(self, duration_s: float) -> float:
        """Return the length of a trial that offers the mean rate: all of a trace, else the given one, s."""
        trace = self.arrivals.trace
        return duration_s if trace is None else trace.length_s

    def mean_pps(self, duration_s: float) -> float:
        """Return the mean intended rate over a trial, with its steps.

        Examples
        --------
        >>> OfferedLoad(rate_pps=4e6, steps=(RateStep(at_s=1.0, rate_pps=1e6),)).mean_pps(3.0)
        2000000.0
        """
        frames, rate_pps, since_s = 0.0, self.rate_pps, 0.0
        for step in self.steps:
            if step.at_s >= duration_s:
                break
            frames += rate_pps * (step.at_s - since_s)
            rate_pps, since_s = step.rate_pps, step.at_s
        return rate_pps if since_s == 0.0 else (frames + rate_pps * (duration_s - since_s)) / duration_s


def recorded_load(trace: RecordedFrames, *, ports: int) -> OfferedLoad:
    """Return the load of a trace on a number of ports; flows of which only numbers are known are crafted ones.

    A port that the router does not have stands for that of its number modulo the ports.
    """
    flows = FlowSet.crafted(len(trace.frames_by_flow), ports=ports)
    if trace.flows:
        placed = [replace(flow, ingress=flow.ingress % ports, egress=flow.egress % ports) for flow in trace.flows]
        trace = replace(trace, flows=tuple(placed))
    return OfferedLoad(rate_pps=1.0, flows=flows, arrivals=Arrivals.recorded(trace))
