"""The parts of a router as data: ports, task units with their work and routes, and pools of resources."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

from routecast.contention import LAWS, PARAMETERS, mixed_factors
from routecast.contention.laws import coherent_factor
from routecast.quantity.fields import (
    BitRate,
    CostCycles,
    CostPerByteCycles,
    CostPerByteSeconds,
    CostSeconds,
    Count,
    Duration,
    Energy,
    FrameCount,
    Frequency,
    Natural,
    Number,
    Power,
    Share,
    Span,
    Voltage,
    WaitingFrames,
    Within,
)
from routecast.quantity.schema import field, value
from routecast.router.bounds import (
    CONTENTION_FACTORS,
    FREQUENCIES_HZ,
    LINK_RATES_BPS,
    LONGEST_BYTE_S,
    LONGEST_S,
    MAX_CONTENTION,
    MAX_FRAMES,
    MAX_INTERRUPTIONS_HZ,
    MAX_QUANTILES,
    MAX_SCV,
    MAX_UNITS,
    SHORTEST_SLICE_S,
    SPEED_RATIOS,
)

__all__ = [
    "Activation",
    "Contention",
    "Interruptions",
    "NamedLaw",
    "Need",
    "PerformanceState",
    "Policy",
    "Port",
    "PowerDraw",
    "RandomTime",
    "ResourcePool",
    "Route",
    "ServiceCost",
    "SleepState",
    "TaskUnit",
    "Variation",
    "WeightedLaw",
]


@value
class SleepState:
    """A C-state of an idle unit: a depth of sleep, by ACPI's name (semantics S11).

    ::

        working ── no work ──► idle ── after_s ──► asleep in C1 ── after_s ──► asleep in C6
           ▲                    │                      │                          │
           └────────────────────┴──── exit_s ──────────┴───────── exit_s ─────────┘
    """

    name: str = field("Name of the state, such as C1 or C6")
    power_w: Power = field("Power of a unit in this state, W")
    # During this time the unit draws active power, and frames wait.
    exit_s: Span = field("Time from the first work until the unit works, s", default=0.0, le=LONGEST_S)
    # 0 for a governor that enters at once. States of a pool rise in ``after_s``; before the first, an idle unit draws
    # :attr:`PowerDraw.idle_w`.
    after_s: Span = field("Idle time after which a unit enters the state, s", default=0.0, le=LONGEST_S)
    # Caches are flushed and filled again.
    wake_energy_j: Energy = field("Energy of entering and leaving in addition to the powers, J", default=0.0)


@value
class PerformanceState:
    """A P-state at which a unit may run (ACPI): its clock, and its watts there (Bolla et al. 2009, eq. 2)."""

    frequency_hz: Frequency = field("Cycles per second of a unit, Hz", within=FREQUENCIES_HZ)
    active_w: Power = field("Power of a unit at work, W")
    idle_w: Power = field("Power of a unit that is neither at work nor asleep, W")
    voltage_v: Voltage | None = field("Supply voltage, V", default=None)


@value
class PowerDraw:
    """Watts of one unit of a pool by state (S11)."""

    active_w: Power = field("Power while it works, W")
    idle_w: Power = field("Power while it does not, W")
    # Memory, fans, the board; counted once.
    base_w: Power = field("Power of the whole pool, independent of its units, W", default=0.0)
    scope: str = field("Scope of the figures: package, server, wall", default="package")
    sleep: tuple[SleepState, ...] = field(
        "C-states of idle units, in rising idle time; none: they stay awake", default=()
    )
    # The pool runs at :attr:`ResourcePool.frequency_hz` with ``active_w`` and ``idle_w``;
    # :func:`routecast.router.performance.at_frequency` returns the model at another P-state.
    performance: tuple[PerformanceState, ...] = field(
        "P-states that the pool could run at, in rising frequency", default=()
    )


Variation = Literal["deterministic", "exponential", "gamma", "hyperexponential", "lognormal", "uniform"]


@value
class RandomTime:
    """A random time: a mean with its variation, or a table of measured quantiles.

    Examples
    --------
    >>> round(RandomTime(quantiles_s=(10e-6, 20e-6, 60e-6)).average_s, 9)
    2.75e-05
    """

    mean_s: Span = field("Mean, s", default=0.0, le=LONGEST_S)
    variation: Variation = field("Distribution around the mean", default="deterministic")
    # ``deterministic`` (0) and ``exponential`` (1) need none.
    scv: Number | None = field(
        "Squared coefficient of variation (gamma, lognormal, …)", default=None, ge=0.0, le=MAX_SCV
    )
    # The first is the least time, the last the greatest; between them the distribution function is linear. A single
    # quantile is a constant time.
    quantiles_s: tuple[Annotated[Span, Within(le=LONGEST_S)], ...] = field(
        "Instead of a mean: quantiles at equally spaced probabilities from 0 to 1, in rising order, s",
        default=(),
        max_length=MAX_QUANTILES,
    )

    @property
    def average_s(self) -> float:
        """Mean of the law or of the table, seconds."""
        table = self.quantiles_s
        if len(table) < 2:
            return table[0] if table else self.mean_s
        return math.fsum(0.5 * (low + high) for low, high in pairwise(table)) / (len(table) - 1)

    @property
    def second_moment_s2(self) -> float:
        """Mean of the square, s²."""
        table = self.quantiles_s
        if not table:
            return (1.0 + self.squared_cv) * self.mean_s**2
        if len(table) == 1:
            return table[0] ** 2
        squares = (low * low + low * high + high * high for low, high in pairwise(table))
        return math.fsum(squares) / 3.0 / (len(table) - 1)

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation."""
        if self.quantiles_s:
            mean_s = self.average_s
            return max(self.second_moment_s2 / mean_s**2 - 1.0, 0.0) if mean_s > 0.0 else 0.0
        return _squared_cv(self.variation, self.scv)

    @property
    def is_constant(self) -> bool:
        """Whether it never varies."""
        return self.squared_cv == 0.0

    def quantile_s(self, ratio: float) -> float:
        """Return the time that a share ``ratio`` (0 to 1) does not exceed, seconds."""
        table = self.quantiles_s
        if table:
            position = ratio * (len(table) - 1)
            low = min(int(position), max(len(table) - 2, 0))
            high = min(low + 1, len(table) - 1)
            return table[low] + (position - low) * (table[high] - table[low])
        return self.mean_s * _factor_quantile(self.variation, self.squared_cv, ratio)


@value
class Interruptions:
    """Interruptions of a unit at work by the host's preemption, its ticks and other interrupts (S5).

    They arrive at a busy unit as a Poisson process, ``rate_hz`` times per second of its work, and the work resumes
    after each. They are breakdowns of a busy server with preemptive resumption (Avi-Itzhak and Naor, Operations
    Research 11(3), 1963): a service that takes T without interruptions completes after T and the durations of
    Poisson(rate·T) interruptions.
    """

    rate_hz: Frequency = field("Interruptions per second of a unit's work, Hz", le=MAX_INTERRUPTIONS_HZ)
    duration: RandomTime = field("Time of one interruption")

    @property
    def stretch(self) -> float:
        """Mean completion time over service time, ``1 + rate·mean``."""
        return 1.0 + self.rate_hz * self.duration.average_s

    @property
    def scatter_s(self) -> float:
        """Variance that interruptions add per second of service, ``rate·E[D²]``, seconds."""
        return self.rate_hz * self.duration.second_moment_s2


def _squared_cv(variation: Variation, scv: float | None) -> float:
    if variation == "deterministic":
        return 0.0
    return 1.0 if variation == "exponential" or scv is None else scv


def _factor_quantile(variation: Variation, scv: float, ratio: float) -> float:
    """Quantile of a factor of mean 1."""
    if scv == 0.0:
        return 1.0
    if variation == "uniform":
        return 1.0 + math.sqrt(3.0 * scv) * (2.0 * ratio - 1.0)
    if not 0.0 < ratio < 1.0:
        return 0.0 if ratio <= 0.0 else math.inf
    if variation == "exponential":
        return -math.log1p(-ratio)
    if variation == "lognormal":
        variance = math.log1p(scv)
        return math.exp(math.sqrt(variance) * NormalDist().inv_cdf(ratio) - 0.5 * variance)
    if variation == "gamma":
        from scipy.special import gammaincinv  # a heavy import that few models need

        return scv * float(gammaincinv(1.0 / scv, ratio))
    # Two phases with balanced means, as the simulator draws them.
    p = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
    low, high = 0.0, 1.0

    def share_above(factor: float) -> float:
        return p * math.exp(-2.0 * p * factor) + (1.0 - p) * math.exp(-2.0 * (1.0 - p) * factor)

    while share_above(high) > 1.0 - ratio:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share_above(middle) > 1.0 - ratio else (low, middle)
    return high


PolicyKind = Literal["fifo", "priority", "preemptive", "round_robin", "fair", "linux"]
ActivationKind = Literal["dedicated", "polling", "interrupt", "thread"]
RouteKind = Literal["single", "rss", "per_flow", "round_robin", "random", "egress", "by_egress"]
SLICED = ("round_robin", "fair", "linux")
"""Policies under which units are granted for at most a time slice."""

PollDiscipline = Literal["gated", "exhaustive"]
if TYPE_CHECKING:
    LawName: TypeAlias = str
else:
    LawName = Literal[tuple(LAWS)]
_Table = TypeVar("_Table")
ContentionFactor = Annotated[Number, Within(ge=CONTENTION_FACTORS[0], le=CONTENTION_FACTORS[1])]
_TABLE_BITS = 6
"""A law becomes a table of 64 entries, doubled until the table covers all units."""


def _with_parameters(declared: type[_Table]) -> type[_Table]:
    """Declare a number for each parameter of any law that the table does not declare itself."""
    for name in PARAMETERS:
        if name not in declared.__annotations__:
            shapes = [(law.name, shape) for law in LAWS.values() for shape in law.shapes if shape.name == name]
            meanings = [
                f"{shape.meaning}{' over the rate shapes one unit' if shape.in_frames_per_s else ''}, of law {law}"
                for law, shape in shapes
            ]
            meaning = "; ".join(meanings)
            declared.__annotations__[name] = "Number | None"
            limits = min(shape.minimum for _, shape in shapes), max(shape.maximum for _, shape in shapes)
            setattr(declared, name, field(meaning[0].upper() + meaning[1:], default=None, within=limits))
    return declared


@value
@_with_parameters
class NamedLaw:
    """A law of contention and its parameters."""

    law: LawName = field("Name of the law; its parameters are the other keys", default="coherent")
    sigma: Number = field("Contention, dimensionless", default=0.0, ge=0.0, le=MAX_CONTENTION)
    kappa: Number = field("Coherence, dimensionless", default=0.0, ge=0.0, le=MAX_CONTENTION)

    @property
    def values(self) -> tuple[float, ...]:
        """Parameters of the law, in its order."""
        return tuple(getattr(self, shape.name) for shape in LAWS[self.law].shapes)


@value
class WeightedLaw(NamedLaw):
    """A law of contention that may hold, and its weight."""

    weight: Number = field("Weight, relative to the sum of all", gt=0.0)


@value
class Contention(NamedLaw):
    """Slowdown of a unit by other busy units of its pool (semantics S5).

    The factor on the service time for ``k`` busy units comes from a law of :mod:`routecast.contention`, by default ``1
    + σ(k−1) + κk(k−1)`` (Gunther's universal scalability law); or it is the weighted geometric mean of several laws; or
    it is ``table[k−1]``, where the last step of the table continues past its end.
    """

    # Factors for 1, 2, … busy units; the first is normally 1. Empty: the law is used.
    table: tuple[ContentionFactor, ...] = field(
        "Factors for 1, 2, … busy units instead of a law", default=(), max_length=MAX_UNITS
    )
    mixture: tuple[WeightedLaw, ...] = field("Several laws to average over, instead of one", default=())
    # Deviation of a measured router from the law or the mixture; the last factor holds past the end.
    discrepancy: tuple[ContentionFactor, ...] = field(
        "Additional factors for 1, 2, … busy units on the law or mixture", default=()
    )

    @property
    def is_none(self) -> bool:
        """Whether the factor is 1 for every number of busy units."""
        if self.is_usl:
            return self.sigma == 0.0 and self.kappa == 0.0
        if self.table:
            return all(entry == 1.0 for entry in self.table)
        return not self.discrepancy and all(weighted_law.law == "free" for weighted_law in self.mixture or (self,))

    @property
    def is_usl(self) -> bool:
        """Whether it is ``1 + σ(k−1) + κk(k−1)``, a convex function that is known between whole numbers too."""
        return self.law == "coherent" and not (self.table or self.mixture or self.discrepancy)

    def factor(self, busy_units: float) -> float:
        """Factor on the service time for a (possibly average, hence fractional) number of busy units >= 1.

        Between whole numbers the factor is linear, except for :attr:`is_usl`.
        """
        k = 1.0 if busy_units < 1.0 else busy_units
        if self.is_usl:
            return coherent_factor(k, self.sigma, self.kappa)
        table = self.table or self._law_factors(int(k) + 1)
        last = len(table) - 1
        if last == 0:
            return table[0]
        low = min(int(k) - 1, last - 1)
        return table[low] + (k - 1.0 - low) * (table[low + 1] - table[low])

    def factors(self, units: int) -> tuple[float, ...]:
        """Return the factors for 1, 2, … busy units."""
        if self.is_usl or self.table:
            return tuple(self.factor(k) for k in range(1, units + 1))
        return self._law_factors(units)[:units]

    def least_factor(self, units: int) -> float:
        """Return the least factor for up to ``units`` units, at most 1."""
        return 1.0 if self.is_usl else min(1.0, *self.table, *self.factors(units))

    def _law_factors(self, units: int) -> tuple[float, ...]:
        """Return the factors of the law, or of the mixture, for at least ``units`` units."""
        parts = tuple(
            (weighted_law.weight, weighted_law.law, weighted_law.values) for weighted_law in self.mixture
        ) or ((1.0, self.law, self.values),)
        return mixed_factors(parts, 1 << max(_TABLE_BITS, units.bit_length()), self.discrepancy)


@value
class Policy:
    """How a resource manager grants units (S4).

    ``fifo``: in order of request. ``priority``: highest :attr:`TaskUnit.priority` first, without revoking.
    ``preemptive``: highest first, and a higher request revokes a unit from the lowest (preempt-resume).
    ``round_robin``: in turn, each for at most ``quantum_s``. ``fair``: the task unit with the least service
    received per :attr:`TaskUnit.weight` first, each for at most ``quantum_s`` (the slice).

    ``linux``: both of Linux's schedulers. A priority above 0 is real time (``SCHED_FIFO``; interrupts are above all
    threads): a higher priority revokes the unit of a lower one, equal priorities are served in order of request, and no
    slice ends a grant. Task units of priority 0 share the rest as under ``fair`` (CFS); a waking thread revokes the
    unit of a thread of priority 0 whose received service per weight is ahead of its own by more than
    ``wakeup_granularity_s``.
    """

    kind: PolicyKind = field("Order in which task units get units", default="fifo")
    quantum_s: Duration | None = field(
        "Longest grant while others wait, s",
        default=None,
        only_where={"kind": SLICED},
        ge=SHORTEST_SLICE_S,
        le=LONGEST_S,
    )
    wakeup_granularity_s: Span = field(
        "Lead in service from which a waking thread takes the unit of another, s",
        default=0.0,
        only_where={"kind": ("linux",)},
        le=LONGEST_S,
    )


@value
class ResourcePool:
    """Like resource units under one resource manager: cores, hardware threads, buses, memory channels."""

    name: str = field("Name of the pool")
    units: Count = field("Number of units", default=1, ge=1, le=MAX_UNITS)
    # Required where a task unit of the pool has costs in cycles.
    frequency_hz: Frequency | None = field("Cycles per second of a unit, Hz", default=None, within=FREQUENCIES_HZ)
    unit_speed_ratio: tuple[Annotated[Number, Within(ge=SPEED_RATIOS[0], le=SPEED_RATIOS[1])], ...] = field(
        "Speed of each unit relative to the frequency; none: all 1", default=()
    )
    policy: Policy = field("Scheduler of the units", default=Policy())
    # Under ``linux`` an interrupt uses the unit of the thread that it interrupts: neither the interrupt nor the resumed
    # thread pays the switch cost.
    switch_cost_s: Span = field(
        "Work lost when a unit turns to another task unit or thread, s", default=0.0, le=LONGEST_S
    )
    migration_cost_s: Span = field("Work lost when a task unit moves to another unit, s", default=0.0, le=LONGEST_S)
    contention: Contention = field("Slowdown of units by other busy units", default=Contention())
    interruptions: Interruptions | None = field("Interruptions of units at work", default=None)
    power: PowerDraw | None = field("Watts of one unit", default=None)


@value
class ServiceCost:
    """Work for one frame of ``S`` bytes (S5), in cycles, in seconds, or both (they add up).

    ``cycles = per_packet + per_byte·S + per_batch/batch``; seconds = cycles / frequency, plus
    ``memory_accesses·memory_latency``; the pool's contention factor multiplies the sum. Meyer et al. 2014, eq. 3 (``x =
    T_c + S·T_d``) is ``per_packet_s=T_c, per_byte_s=T_d``.

    ``variation`` multiplies each frame's time by a random factor of mean 1 whose squared coefficient of
    variation is ``scv`` (fixed by the kind for ``deterministic`` (0) and ``exponential`` (1)).
    """

    per_packet_cycles: CostCycles = field("Cost of a frame, cycles", default=0.0, key="per_packet")
    per_byte_cycles: CostPerByteCycles = field("Cost of a byte of a frame, cycles/B", default=0.0, key="per_byte")
    per_batch_cycles: CostCycles = field("Cost of a batch, shared by its frames, cycles", default=0.0, key="per_batch")
    per_packet_s: CostSeconds = field("Cost of a frame, s", default=0.0, key="per_packet", le=LONGEST_S)
    per_byte_s: CostPerByteSeconds = field(
        "Cost of a byte of a frame, s/B", default=0.0, key="per_byte", le=LONGEST_BYTE_S
    )
    per_batch_s: CostSeconds = field(
        "Cost of a batch, shared by its frames, s", default=0.0, key="per_batch", le=LONGEST_S
    )
    memory_accesses: Number = field("Memory accesses of a frame that the cache does not serve", default=0.0, ge=0.0)
    memory_latency_s: Span = field("Latency of one memory access, s", default=0.0, le=LONGEST_S)
    variation: Variation = field("Distribution of the service time around its mean", default="deterministic")
    scv: Number | None = field(
        "Squared coefficient of variation of the service time (gamma, lognormal, …)", default=None, ge=0.0, le=MAX_SCV
    )

    def mean_s(self, frame_bytes: float, *, frequency_hz: float | None = None, batch_frames: float = 1.0) -> float:
        """Mean service time in seconds of a frame, without contention, in batches of ``batch_frames``."""
        cycles = self.per_packet_cycles + self.per_byte_cycles * frame_bytes + self.per_batch_cycles / batch_frames
        seconds = self.per_packet_s + self.per_byte_s * frame_bytes + self.per_batch_s / batch_frames
        seconds += self.memory_accesses * self.memory_latency_s
        return seconds + (cycles / frequency_hz if cycles and frequency_hz else 0.0)

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation of the service time of frames of one size."""
        return _squared_cv(self.variation, self.scv)


@value
class Activation:
    """The activation of a task unit: when it works (S6).

    ``dedicated``: when it has work. ``polling``: always; it never releases its unit. ``interrupt`` (NAPI): an interrupt
    costs ``interrupt_cost_s``, then the task unit polls batches of at most ``budget_frames`` until a poll finds fewer;
    two interrupts are at least ``moderation_s`` apart. ``thread``: a thread of an operating system. A frame that it can
    serve wakes the thread; the notification (eventfd, VM exit, injected interrupt) costs ``interrupt_cost_s`` once the
    thread has its unit. As far as the policy allows, the thread keeps the unit until none of its task units
    (:attr:`TaskUnit.thread`) can continue, turns from one task unit to the next after ``budget_frames``, and then
    blocks.
    """

    kind: ActivationKind = field("dedicated, polling, interrupt (NAPI), or thread", default="dedicated")
    budget_frames: FrameCount = field("Most frames of a poll, frames", default=64, le=MAX_FRAMES)
    interrupt_cost_s: Span = field(
        "Cost of an interrupt, or of the notification that wakes a thread, s", default=0.0, le=LONGEST_S
    )
    moderation_s: Span = field("Least time between two interrupts, s", default=0.0, le=LONGEST_S)
    # For adaptive activation: busy polling of sockets, DPDK's l3fwd-power. NAPI has 0: it enables interrupts at once.
    linger_s: Span = field(
        "Time of polling after a poll that found fewer frames than its budget, at active power, s",
        default=0.0,
        only_where={"kind": ("interrupt",)},
        le=LONGEST_S,
    )
    # The wake-up occupies no unit; frames that arrive during it wait in the queue. A task unit whose interrupt arrives
    # as its poll ends is still awake.
    wakeup: RandomTime | None = field(
        "Time from an interrupt, or from the frame that wakes a thread, until it requests its unit",
        default=None,
        only_where={"kind": ("interrupt", "thread")},
    )
    # The terms are those of vacation models (Takagi 1991). ``exhaustive``: Linux's veth and most drivers.
    discipline: PollDiscipline = field(
        "Frames of a poll: the frames that it finds (gated), or also those that arrive during it (exhaustive)",
        default="gated",
    )


@value
class Need:
    """``units`` units of the pool named ``pool``, all granted at once with the task unit's other needs.

    ``until`` names a later task unit: the frame carries its units there and releases them when it is served there (or
    dropped before), so that no more frames are between the two task units than the pool has units. This is a window:
    hardware threads of an engine, credits, a pool of frame buffers. Every path from this task unit leads through
    ``until``. Such a task unit requests units frame by frame (``request = "frame"``) and has no other need. If
    ``until`` is empty, the frame releases its units after its service.
    """

    pool: str = field("Name of the pool")
    units: Count = field("Units at once", default=1, ge=1, le=MAX_UNITS)
    until: str = field(
        "Name of a later task unit to which frames carry the units; none: they release them after service", default=""
    )


@value
class Route:
    """Route of served frames: the task units or ports that ``to`` names; frames leave the router where it is empty.

    ``single``: always ``to[0]``. ``rss``: ``to[indirection[hash & 127] % len(to)]`` by the flow's hash (equal
    indirection: ``hash % 128 % len(to)``). ``per_flow``: flow number ``i`` of the load to ``to[i %
    len(to)]``. ``round_robin``: in turn. ``random``: by ``weights``. ``egress``: the port that the flow
    leaves by (``to`` then lists the ports allowed, normally all). ``by_egress``: ``to[p]`` for flows that leave by
    port ``p`` in the end (one entry for each port), a task unit or that port.

    ``copies`` names task units that get a copy of every frame, as from a hub that floods. A copy costs its task unit as
    much as a frame and ends there; it counts neither as offered nor as dropped.
    """

    kind: RouteKind = field("Choice of the target", default="single")
    to: tuple[str, ...] = field("Names of task units or ports; for kind by_egress one for each port", default=())
    weights: tuple[Share, ...] = field("Weights of the targets", default=(), only_where={"kind": ("random",)})
    indirection: tuple[Natural, ...] = field(
        "128 target numbers; none: the targets in turn", default=(), only_where={"kind": ("rss",)}
    )
    copies: tuple[str, ...] = field(
        "Names of task units that get a copy of every frame; the copy ends there", default=()
    )


@value
class TaskUnit:
    """A function with a queue, needs for resources, a service cost and a route (Meyer et al. 2014, sec. IV-C.1)."""

    name: str = field("Name of the task unit")
    # Empty: it works without a resource manager, on its own processor (Meyer et al. 2014: ⊗).
    needs: tuple[Need, ...] = field("Units of pools, all granted at once; none: its own processor", default=())
    service: ServiceCost = field("Cost of a frame", default=ServiceCost())
    # Frames in service do not count; a frame that finds the queue full is dropped (S7).
    # 0: a frame that is not served at once is lost (Erlang's loss system).
    queue_frames: WaitingFrames = field("Frames that can wait, frames", default=512, le=MAX_FRAMES)
    activation: Activation = field("When it works", default=Activation())
    # A burst of DPDK, a vector of VPP. 1: a request and a release for each frame. Interrupts and threads use
    # :attr:`Activation.budget_frames` instead.
    batch_frames: FrameCount = field("Most frames served per grant, frames", default=1, le=MAX_FRAMES)
    # Frames or batches, each on its own units: 1 for a thread, the number of units for a pool that serves one common
    # queue (M/M/c).
    parallel: Count = field("Frames in service at once", default=1, ge=1, le=MAX_UNITS)
    # ``task``: for the frame at the head of its queue. ``frame``: frames of several task units share a FIFO pool in
    # order of arrival.
    request: Literal["task", "frame"] = field(
        "Requester of units: the task unit, or every waiting frame", default="task"
    )
    priority: Count = field(
        "Urgency under the policies priority, preemptive and linux; larger is more urgent", default=0
    )
    weight: Number = field("Share under the policies fair and linux", default=1.0, gt=0.0)
    pin: tuple[Natural, ...] = field("Units of its first pool that it may use; none: all", default=())
    # Task units of one thread share one grant at a time and one account under ``fair`` and ``linux``, without switch
    # cost between them. They agree in needs, pin, priority, weight and kind of activation (``thread``, ``polling``).
    thread: str = field("Name of the thread that it shares with other task units; none: its own thread", default="")
    # Blocking before service (Perros, Queueing Networks with Blocking, 1994, ch. 1); otherwise the next queue drops a
    # frame that finds no room (S7).
    holds_back: bool = field("Serves a frame only while the next queue has room for it", default=False)
    route: Route = field("Route of served frames", default=Route())


@value
class Port:
    """An interface: frames arrive at up to line rate and leave at line rate through a ring of finite length.

    A frame occupies the link for ``(frame_bytes + 20)·8 / link_bps`` seconds (S1).
    """

    name: str = field("Name of the port")
    link_bps: BitRate = field("Rate of the link in each direction, bit/s", within=LINK_RATES_BPS)
    tx_ring_frames: FrameCount = field("Transmit ring, frames", default=512, le=MAX_FRAMES)
    entry: str = field("Name of the task unit that receives its frames")
