"""Repeated bursts as recorded frames: all frames of a burst at once, at equal intervals (RFC 2544 sec. 21).

The instants are known, so the queues of the frames need no law (:mod:`routecast.evaluate.solve._recorded`). A run of
bursts that is long beside the queues stands for the repetition; its first half fills them and does not count.
"""

from __future__ import annotations

import math

import numpy as np

from routecast.evaluate.solve.fluid import Fluid
from routecast.load.trace import RecordedFrames

__all__ = ["recorded_bursts", "why_not_recorded"]

_MIN_FRAMES, _MAX_FRAMES = 20_000, 400_000
_MIN_BURSTS = 20
_PER_PLACE = 60


def why_not_recorded(fluid: Fluid) -> str:
    """Return why the bursts of a load are not known frame by frame; empty if they are."""
    weights = {flow.weight for flow in fluid.load.flows.flows}
    if len(weights) > 1:
        return "the flow of each burst is drawn at random"
    if fluid.load.frames.order == "random" and not fluid.load.frames.is_fixed:
        return "the size of each frame is drawn at random"
    if fluid.steady is not None:
        return "threads take turns"
    bursts = math.ceil(_frames_of(fluid) / fluid.load.arrivals.burst_frames)
    return "" if bursts >= _MIN_BURSTS else "the bursts are too long to follow some of them"


def _frames_of(fluid: Fluid) -> int:
    longest = max((task.queue_frames for task in fluid.graph.tasks), default=0)
    longest = max([longest, *(port.tx_ring_frames for port in fluid.model.ports)])
    wanted = max(_PER_PLACE * longest, _MIN_BURSTS * 2 * math.ceil(fluid.load.arrivals.burst_frames))
    return min(max(wanted, _MIN_FRAMES), _MAX_FRAMES)


def recorded_bursts(fluid: Fluid) -> tuple[RecordedFrames, float]:
    """Return some of the bursts of a load as recorded frames, and the length of time that they fill, s."""
    load, flows = fluid.load, fluid.load.flows.flows
    burst = round(load.arrivals.burst_frames)
    ports = sorted({entry.ingress for entry in flows})
    members_of = {port: [number for number, entry in enumerate(flows) if entry.ingress == port] for port in ports}
    interval_of_s = {
        port: burst * len(flows) / (fluid.intended_pps * len(members)) for port, members in members_of.items()
    }
    # Both halves have whole bursts of the slowest port.
    half_s = max(interval_of_s.values())
    half_s *= math.ceil(_frames_of(fluid) / fluid.intended_pps / 2.0 / half_s)
    length_s = 2.0 * half_s
    sizes = np.array(load.frames.sequence_bytes)
    at_s, size_bytes, flow = [], [], []
    for port, numbers_of_flows in members_of.items():
        members, interval_s = np.array(numbers_of_flows), interval_of_s[port]
        numbers = np.arange(burst * math.ceil(length_s / interval_s - 1e-9))
        at_s.append(numbers // burst * interval_s)
        size_bytes.append(sizes[numbers % len(sizes)])
        flow.append(members[numbers % len(members)])
    columns = (np.concatenate(parts) for parts in (at_s, size_bytes, flow))
    return RecordedFrames.of(*columns), length_s
