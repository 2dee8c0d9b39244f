"""A Linux forwarder: NAPI threads on cores of a machine that it may share with others."""

from __future__ import annotations

import math
from typing import Literal, get_args

from routecast.errors import ModelProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check import check_interruptions, check_time
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
from routecast.router.multicore import multicore

__all__ = ["NAPI_WEIGHT", "VETH_RING_FRAMES", "softirq"]

NAPI_WEIGHT = 64
"""Frames that a NAPI poll takes at most (Linux: ``NAPI_POLL_WEIGHT``)."""

VETH_RING_FRAMES = 256
"""Receive ring of a veth (Linux: ``VETH_RING_SIZE``)."""


def softirq(
    *,
    per_packet_s: float,
    cores: int = 1,
    per_byte_s: float = 0.0,
    work_iterations: float = 0.0,
    work_s_per_iteration: float = 0.0,
    rules: float = 0.0,
    rule_s: float = 0.0,
    variation: Variation = "deterministic",
    scv: float | None = None,
    ring_frames: int = VETH_RING_FRAMES,
    budget_frames: int = NAPI_WEIGHT,
    interrupt_cost_s: float = 0.0,
    linger_s: float = 0.0,
    wakeup: RandomTime | None = None,
    interruptions: Interruptions | None = None,
    contention: Contention | None = None,
    distribution: Literal["rss", "per_flow"] = "rss",
    ports: int = 2,
    link_bps: float = 10e9,
    tx_ring_frames: int = 512,
    power: PowerDraw | None = None,
    name: str = "",
) -> RouterModel:
    """Build a router whose cores each run the NAPI thread of a receive ring, woken by the first frame.

    ::

        port 0 ─┐          ┌─► ring ─► core 0, asleep or polling ─┐
        port 1 ─┼─► flows ─┼─► ring ─► core 1                     ─┼─► egress port
                           └─► …                                  ─┘

    A frame that finds its core asleep raises an interrupt, and after a wake-up the core polls, frame by frame,
    until its ring is empty. So a frame takes its work, and at low load the wake-up before it; those that come
    meanwhile find a backlog that drains. Everything after the receive ring (bridge or route, transmission) is
    done in the same poll and is in the cost of the frame.

    Where gaps are longer than a wake-up and a service, a frame's latency is just these two: the quantiles of a wake-up
    are those of the latency measured at a low constant rate, less the service.

    The work for a frame of ``S`` bytes is ``per_packet_s + per_byte_s·S + work_iterations·work_s_per_iteration +
    rules·rule_s`` (S5).

    Parameters
    ----------
    per_packet_s : float
        Work for a frame, seconds.
    cores : int
        Cores that forward, each with a ring of its own.
    per_byte_s : float
        Work for a byte of a frame, seconds.
    work_iterations, work_s_per_iteration : float
        Deliberate slow-down: iterations for a frame, and seconds for each.
    rules, rule_s : float
        Rules that a frame is matched with one after the other, and seconds for each.
    variation, scv
        How the work for a frame varies around its mean.
    ring_frames : int
        Receive ring of each core, frames; a veth has 256.
    budget_frames : int
        Frames of a poll, at most.
    interrupt_cost_s : float
        Work of an interrupt, seconds.
    linger_s : float
        How long a core goes on polling an empty ring before it enables interrupts, seconds (busy polling); it draws
        active power meanwhile.
    wakeup : RandomTime or None
        From the interrupt until the thread runs; on a virtual machine that of an idle core's inter-processor
        interrupt and the scheduler, some 20 µs. None: at once, as where frames are forwarded on the sender's core.
    interruptions : Interruptions or None
        What takes a core away while it works: the host's preemption, timer ticks.
    contention : Contention or None
        Factor on the work by the number of busy cores.
    distribution : {"rss", "per_flow"}
        How flows get to cores: by their hash, or flow ``i`` to core ``i mod cores``.
    ports, link_bps, tx_ring_frames
        Interfaces, as of :func:`routecast.router.multicore.multicore`.
    power : PowerDraw or None
        Of one core.
    name : str

    Raises
    ------
    ModelProblem
        A parameter is out of range; all of them at once.

    Examples
    --------
    >>> router = softirq(per_packet_s=0.8e-6, work_iterations=1000, work_s_per_iteration=2.4e-9)
    >>> round(1 / router.task("core 0").service.mean_s(64))
    312500
    """
    title = name or f"softirq, {cores} core{'s' if cores != 1 else ''}"
    problems: list[Problem] = []
    given = {
        "per_packet_s": per_packet_s,
        "work_iterations": work_iterations,
        "work_s_per_iteration": work_s_per_iteration,
        "rules": rules,
        "rule_s": rule_s,
    }
    for place, value in given.items():
        if not (math.isfinite(value) and value >= 0.0):
            problems.append(Problem(place, f"got {value}: allowed is a finite number >= 0"))
    if distribution not in get_args(Literal["rss", "per_flow"]):
        problems.append(
            Problem(
                "distribution",
                f'got "{distribution}": {did_you_mean(str(distribution), ("rss", "per_flow"))}',
            )
        )
    if wakeup is not None:
        check_time("wakeup", wakeup, lambda place, message: problems.append(Problem(place, message)))
    if interruptions is not None:
        check_interruptions(
            "interruptions", interruptions, lambda place, message: problems.append(Problem(place, message))
        )
    if problems:
        raise ModelProblem(f"router {title!r}", problems)
    return multicore(
        cores,
        ServiceCost(
            per_packet_s=per_packet_s + work_iterations * work_s_per_iteration + rules * rule_s,
            per_byte_s=per_byte_s,
            variation=variation,
            scv=scv,
        ),
        queue_frames=ring_frames,
        ports=ports,
        link_bps=link_bps,
        tx_ring_frames=tx_ring_frames,
        distribution=distribution,
        contention=contention,
        interruptions=interruptions,
        power=power,
        activation=Activation(
            kind="interrupt",
            budget_frames=budget_frames,
            interrupt_cost_s=interrupt_cost_s,
            linger_s=linger_s,
            wakeup=wakeup,
            discipline="exhaustive",
        ),
        name=title,
    )
