"""A Linux forwarder: NAPI threads on cores of a machine that it may share with other programs."""

from __future__ import annotations

from typing import Any, Literal

from routecast.errors import ModelProblem, Problem
from routecast.quantity.fields import BitRate, Count, FrameCount, Number, Span, TimePerByte
from routecast.quantity.schema import field, field_faults, is_faulty, value
from routecast.router.bounds import LINK_RATES_BPS, LONGEST_BYTE_S, LONGEST_S, MAX_FRAMES, MAX_SCV
from routecast.router.check import check_time
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    PowerDraw,
    RandomTime,
    RouterModel,
    ServiceCost,
    Variation,
)
from routecast.router.multicore import MAX_CORES, MAX_PORTS, multicore

__all__ = ["NAPI_WEIGHT", "VETH_RING_FRAMES", "Softirq", "softirq"]

NAPI_WEIGHT = 64
"""Greatest number of frames of a NAPI poll (Linux: ``NAPI_POLL_WEIGHT``)."""

VETH_RING_FRAMES = 256
"""Receive ring of a veth (Linux: ``VETH_RING_SIZE``)."""


@value
class Softirq:
    """A Linux forwarder: each core runs the NAPI thread of a receive ring, which the first frame wakes.

    ::

        port 0 ─┐          ┌─► ring ─► core 0, asleep or polling ─┐
        port 1 ─┼─► flows ─┼─► ring ─► core 1                     ─┼─► egress port
                           └─► …                                  ─┘

    A frame that finds its core asleep raises an interrupt, and after a wake-up the core polls, frame by frame, until
    its ring is empty. At low load a frame therefore takes its wake-up and its work; frames that arrive during a wake-up
    find a backlog that drains. The same poll does everything after the receive ring (bridge or route, transmission),
    so the cost of the frame contains it.

    Where gaps are longer than a wake-up and a service, a frame's latency is the sum of these two: the quantiles of a
    wake-up are those of the latency measured at a low constant rate, less the service.

    The work for a frame of ``S`` bytes is ``per_packet_s + per_byte_s·S + work_iterations·work_s_per_iteration +
    rules·rule_s`` (S5).
    """

    name: str = field("Name of the router; without it the file's", default="")
    cores: Count = field("Cores that forward", default=1, ge=1, le=MAX_CORES)
    per_packet_s: Span = field("Work for a frame, without slow-down and rules, s", le=LONGEST_S)
    per_byte_s: TimePerByte = field("Work for a byte of a frame, s/B", default=0.0, le=LONGEST_BYTE_S)
    work_iterations: Number = field("Iterations of slow-down for a frame", default=0.0, ge=0.0)
    work_s_per_iteration: Span = field(
        "Work of one iteration of slow-down, s", default=0.0, key="work_per_iteration", le=LONGEST_S
    )
    rules: Number = field("Rules that a frame is matched with, in sequence", default=0.0, ge=0.0)
    rule_s: Span = field("Work of one rule, s", default=0.0, le=LONGEST_S)
    variation: Variation = field("Distribution of the work for a frame", default="deterministic")
    scv: Number | None = field("Squared coefficient of variation of that work", default=None, ge=0.0, le=MAX_SCV)
    ring_frames: FrameCount = field("Receive ring of each core, frames", default=VETH_RING_FRAMES, le=MAX_FRAMES)
    budget_frames: FrameCount = field("Most frames of a poll (NAPI weight), frames", default=NAPI_WEIGHT, le=MAX_FRAMES)
    interrupt_cost_s: Span = field("Work of an interrupt, s", default=0.0, le=LONGEST_S)
    linger_s: Span = field("Time of polling an empty ring, at active power, s", default=0.0, le=LONGEST_S)
    # In a virtual machine about 20 µs, for the inter-processor interrupt to an idle core and the scheduler. None: no
    # time, as where the sender's core forwards its frames.
    wakeup: RandomTime | None = field("Time from an interrupt until a sleeping NAPI thread runs", default=None)
    interruptions: Interruptions | None = field("Interruptions of a core at work", default=None)
    contention: Contention = field("Slowdown of cores by other busy cores", default=Contention())
    distribution: Literal["rss", "per_flow"] = field("Distribution of flows over cores", default="rss")
    ports: Count = field("Interfaces", default=2, ge=1, le=MAX_PORTS)
    link_bps: BitRate = field("Rate of each link in each direction, bit/s", default=10e9, within=LINK_RATES_BPS)
    tx_ring_frames: FrameCount = field("Transmit ring of each port, frames", default=512, le=MAX_FRAMES)
    power: PowerDraw | None = field("Watts of one core", default=None)

    def model(self) -> RouterModel:
        """Build the router.

        Raises ModelProblem: with all parameters that are out of range.
        """
        title = self.name or f"softirq, {self.cores} core{'s' if self.cores != 1 else ''}"
        problems = field_faults(self)

        def add(path: str, message: str) -> None:
            problems.append(Problem(path, message))

        if self.wakeup is not None and not is_faulty(problems, "wakeup"):
            check_time("wakeup", self.wakeup, add)
        if self.interruptions is not None and not is_faulty(problems, "interruptions"):
            check_time("interruptions.duration", self.interruptions.duration, add)
        if problems:
            raise ModelProblem(f"router {title!r}", problems)
        return multicore(
            self.cores,
            ServiceCost(
                per_packet_s=self.per_packet_s
                + self.work_iterations * self.work_s_per_iteration
                + self.rules * self.rule_s,
                per_byte_s=self.per_byte_s,
                variation=self.variation,
                scv=self.scv,
            ),
            queue_frames=self.ring_frames,
            ports=self.ports,
            link_bps=self.link_bps,
            tx_ring_frames=self.tx_ring_frames,
            distribution=self.distribution,
            contention=self.contention,
            interruptions=self.interruptions,
            power=self.power,
            activation=Activation(
                kind="interrupt",
                budget_frames=self.budget_frames,
                interrupt_cost_s=self.interrupt_cost_s,
                linger_s=self.linger_s,
                wakeup=self.wakeup,
                discipline="exhaustive",
            ),
            name=title,
        )


def softirq(**given: Any) -> RouterModel:
    """Build a Linux forwarder; the arguments are the fields of :class:`Softirq`.

    Examples
    --------
    >>> router = softirq(per_packet_s=0.8e-6, work_iterations=1000, work_s_per_iteration=2.4e-9)
    >>> round(1 / router.task("core 0").service.mean_s(64))
    312500
    """
    return Softirq(**given).model()
