"""Watts of a unit of a pool by state: active at a performance state, idle, asleep, waking (semantics S11).

::

    working ── no work ──► idle ── after_s ──► asleep in C1 ── after_s ──► asleep in C6
       ▲                    │                      │                          │
       └────────────────────┴──── exit_s ──────────┴───────── exit_s ─────────┘

ACPI's names: a P-state is a frequency (and voltage) at which a unit works, a C-state a depth of sleep of an idle one.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PerformanceState", "PowerDraw", "SleepState"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepState:
    """A C-state of an idle unit.

    Parameters
    ----------
    name : str
        ``"C1"``, ``"C6"``, …
    power_w : float
        Of a unit asleep in it.
    exit_s : float
        From the first work until the unit works; it draws active power meanwhile, and frames wait.
    after_s : float
        Idle time after which the unit enters it; 0 for a governor that enters at once. States of a pool rise in
        ``after_s``; before the first, an idle unit draws :attr:`PowerDraw.idle_w`.
    wake_energy_j : float
        Energy of entering and leaving beyond what the powers say (caches flushed and filled again).
    """

    name: str
    power_w: float
    exit_s: float = 0.0
    after_s: float = 0.0
    wake_energy_j: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceState:
    """A P-state that a unit may be run at: its clock, and what it draws there (paper 003, eq. 2)."""

    frequency_hz: float
    active_w: float
    idle_w: float
    voltage_v: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerDraw:
    """Watts of one unit of a pool by state (S11). Its scope (package, server, wall) is said by :attr:`scope`.

    Parameters
    ----------
    active_w : float
        Working, spinning in a poll, or waking.
    idle_w : float
        Neither working nor asleep.
    base_w : float
        Of the whole pool whatever its units do (memory, fans, the board), once.
    scope : str
    sleep : tuple of SleepState
        C-states that idle units enter, in rising ``after_s``.
    performance : tuple of PerformanceState
        P-states that the pool could be run at, in rising frequency; the pool runs at
        :attr:`~routecast.router.model.ResourcePool.frequency_hz` with ``active_w`` and ``idle_w``.
        :func:`routecast.router.performance.at_frequency` returns the model at another one.
    """

    active_w: float
    idle_w: float
    base_w: float = 0.0
    scope: str = "package"
    sleep: tuple[SleepState, ...] = ()
    performance: tuple[PerformanceState, ...] = ()
