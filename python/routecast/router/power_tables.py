"""What a router file may say of watts: the tables, their keys, units and meanings."""

from __future__ import annotations

from pydantic import Field

from routecast.quantity.fields import Energy, FileModel, Frequency, Power, Span, Voltage
from routecast.router.model import PerformanceState, PowerDraw, SleepState

__all__ = ["PerformanceTable", "PowerTable", "SleepTable", "power_draw"]


class SleepTable(FileModel):
    """A C-state that an idle unit falls into."""

    name: str = Field(description="Name of the state, such as C1 or C6")
    power: Power = Field(description="Of a unit asleep in it, W")
    exit: Span = Field(default=0.0, description="From the first work until the unit works, s")
    after: Span = Field(default=0.0, description="Idle time after which the unit enters it, s")
    wake_energy: Energy | None = Field(
        default=None, description="Energy of entering and leaving beyond what the powers say, J"
    )


class PerformanceTable(FileModel):
    """A P-state that a pool may run at."""

    frequency: Frequency = Field(description="Cycles per second of a unit, Hz")
    active: Power = Field(description="Of a unit at work, W")
    idle: Power = Field(description="Of a unit that is neither at work nor asleep, W")
    voltage: Voltage | None = Field(default=None, description="Supply voltage, V")


class PowerTable(FileModel):
    """Watts of one unit by state (S11)."""

    active: Power = Field(description="While it works, W")
    idle: Power = Field(description="While it does not, W")
    base: Power = Field(default=0.0, description="Of the whole pool whatever its units do, W")
    scope: str = Field(default="package", description="What the figures cover: package, server, wall")
    sleep: list[SleepTable] = Field(
        default=[], description="C-states of idle units, in rising idle time; none: they stay awake"
    )
    performance: list[PerformanceTable] = Field(
        default=[], description="P-states that the pool could run at, in rising frequency"
    )


def power_draw(power: PowerTable | None) -> PowerDraw | None:
    """Return the power states that a table gives; None where there is none."""
    if power is None:
        return None
    return PowerDraw(
        active_w=power.active,
        idle_w=power.idle,
        base_w=power.base,
        scope=power.scope,
        sleep=tuple(
            SleepState(
                name=state.name,
                power_w=state.power,
                exit_s=state.exit,
                after_s=state.after,
                wake_energy_j=state.wake_energy or 0.0,
            )
            for state in power.sleep
        ),
        performance=tuple(
            PerformanceState(
                frequency_hz=state.frequency,
                active_w=state.active,
                idle_w=state.idle,
                voltage_v=state.voltage,
            )
            for state in power.performance
        ),
    )
