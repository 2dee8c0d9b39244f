"""What a core draws by how it waits for frames: it polls, it is interrupted, or it lingers between the two.

::

    frame served ── nothing waits ──► spin (active power) ── linger_s ──► idle, interrupts on (idle power)
         ▲                              │ a frame comes                       │ a frame comes: an interrupt
         └──────────────────────────────┴─────────────────────────────────────┘

A polling core lingers for ever, an interrupted one not at all. A model here is of one kind of core; how many of them,
and what the rest of the machine draws, :class:`~routecast.router.model.PowerDraw` says.
"""

from __future__ import annotations

import math
from typing import Literal

from routecast.errors import ModelProblem, Problem
from routecast.power.form import FormFunction
from routecast.power.model import OperatingPoint
from routecast.quantity.schema import field, value
from routecast.router.model import PowerDraw

__all__ = ["AdaptivePower", "CoreTime", "InterruptPower", "PollingPower", "lingering_core"]

Arrivals = Literal["poisson", "cbr"]


@value
class CoreTime:
    """How a core spends its time: shares that sum to 1, and how often it is interrupted."""

    busy_ratio: float = field("At work on frames and interrupts")
    spin_ratio: float = field("Polling an empty queue, at active power")
    idle_ratio: float = field("Neither; the core may sleep")
    interrupts_per_s: float


def lingering_core(
    rate_pps: float, service_s: float, *, linger_s: float, interrupt_cost_s: float = 0.0, arrivals: Arrivals = "poisson"
) -> CoreTime:
    r"""Return how a core that serves frames one by one spends its time, by closed form.

    Poisson arrivals: a period without work lasts, whatever the distribution of service times, until the next arrival,
    so it is exponential with mean 1/lambda (M/G/1). Of it the core spins for :math:`(1 - e^{-\lambda L}) / \lambda` on
    average, and with probability :math:`e^{-\lambda L}` it is idle at the end and pays an interrupt of cost c. With
    :math:`a = c \lambda e^{-\lambda L}` the busy share solves :math:`b = \rho + a (1 - b)`.

    Constant rate: one cycle from an interrupt to the next repeats. Its work may delay frames so long that the core
    then spins until the next one and idles only a frame later.

    Parameters
    ----------
    rate_pps : float
        Frames that it forwards; at or above ``1 / service_s`` it is always busy.
    service_s : float
        Mean service time of a frame.
    linger_s : float
        How long it spins before it waits for an interrupt; may be infinite.
    interrupt_cost_s : float
        Work of an interrupt.
    arrivals : {"poisson", "cbr"}
    """
    rho = rate_pps * service_s
    if rate_pps <= 0.0:
        spins = math.isinf(linger_s)
        return CoreTime(busy_ratio=0.0, spin_ratio=float(spins), idle_ratio=float(not spins), interrupts_per_s=0.0)
    if rho >= 1.0:
        return CoreTime(busy_ratio=1.0, spin_ratio=0.0, idle_ratio=0.0, interrupts_per_s=0.0)
    if arrivals == "poisson":
        sleeps = math.exp(-rate_pps * linger_s)
        extra = interrupt_cost_s * rate_pps * sleeps
        busy = (rho + extra) / (1.0 + extra)
        spin = (1.0 - busy) * (1.0 - sleeps)
        return CoreTime(
            busy_ratio=busy,
            spin_ratio=spin,
            idle_ratio=(1.0 - busy) * sleeps,
            interrupts_per_s=(1.0 - busy) * rate_pps * sleeps,
        )
    return _constant_rate(rate_pps, service_s, linger_s, interrupt_cost_s)


def _constant_rate(rate_pps: float, service_s: float, linger_s: float, interrupt_s: float) -> CoreTime:
    """Follow one cycle, from an interrupt to the next."""
    period = 1.0 / rate_pps
    gap = period - service_s  # without work, after a frame that found the core awake
    if gap <= linger_s:
        return CoreTime(busy_ratio=service_s / period, spin_ratio=gap / period, idle_ratio=0.0, interrupts_per_s=0.0)
    # The interrupt's work delays the frames after it; so many it takes until the core runs out of work again.
    frames = max(math.ceil(interrupt_s / gap), 1)
    first_gap = frames * gap - interrupt_s
    spin = linger_s
    if first_gap <= linger_s:  # it spins until the next frame comes, and falls asleep only after that one
        frames += 1
        spin += first_gap
    cycle = frames * period
    busy = (frames * service_s + interrupt_s) / cycle
    return CoreTime(
        busy_ratio=busy,
        spin_ratio=spin / cycle,
        idle_ratio=max(1.0 - busy - spin / cycle, 0.0),
        interrupts_per_s=1.0 / cycle,
    )


@value
class PollingPower:
    """Cores that poll: each burns its active power at any load, also without any."""

    draw: PowerDraw = field("Of one core and of the pool that it belongs to")
    cores: int = field("Cores of the pool; a point that names fewer leaves the others idle", default=1)

    @property
    def scope(self) -> str:
        """What the watts cover."""
        return self.draw.scope

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power, whatever the load."""
        return _pool_w(self.draw, self.cores, _working(point, self.cores), 1.0)


@value
class InterruptPower:
    """Cores that are interrupted: active for the share of time that a form function says (Bolla 2009, eqs. 5, 8)."""

    draw: PowerDraw
    form: FormFunction
    cores: int = 1

    @property
    def scope(self) -> str:
        """What the watts cover."""
        return self.draw.scope

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's load, equal on all working cores."""
        return _pool_w(self.draw, self.cores, _working(point, self.cores), self.form.at(point.load_ratio))


@value
class AdaptivePower:
    """Cores that spin for a while before they wait for an interrupt (``Activation.linger_s``)."""

    draw: PowerDraw
    service_s: float = field("Mean service time of a frame")
    linger_s: float = field(
        "As in :class:`~routecast.router.model.Activation`; an infinite ``linger_s`` is polling, 0 interrupts"
    )
    interrupt_cost_s: float = field("As in :class:`~routecast.router.model.Activation`", default=0.0)
    arrivals: Arrivals = field("At each core", default="poisson")
    cores: int = 1

    @property
    def scope(self) -> str:
        """What the watts cover."""
        return self.draw.scope

    def power_w(self, point: OperatingPoint) -> float:
        """Return the power at the point's rate, or at its load where it names no rate."""
        working = _working(point, self.cores)
        if working == 0:
            return _pool_w(self.draw, self.cores, 0, 0.0)
        rate = point.rate_pps / working if point.rate_pps > 0.0 else point.load_ratio / self.service_s
        time = lingering_core(
            rate, self.service_s, linger_s=self.linger_s, interrupt_cost_s=self.interrupt_cost_s, arrivals=self.arrivals
        )
        return _pool_w(self.draw, self.cores, working, time.busy_ratio + time.spin_ratio)


def _working(point: OperatingPoint, cores: int) -> int:
    working = cores if point.cores is None else point.cores
    if not 0 <= working <= cores:
        raise ModelProblem("power", [Problem("cores", f"got {working}: the pool has {cores}")])
    return working


def _pool_w(draw: PowerDraw, cores: int, working: int, active_ratio: float) -> float:
    """Return the power of a pool of which ``working`` cores are active for a share of the time."""
    active = working * active_ratio
    return draw.base_w + active * draw.active_w + (cores - active) * draw.idle_w
