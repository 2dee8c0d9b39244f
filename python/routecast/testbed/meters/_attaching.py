"""Watts onto a trial: what the meter saw while frames were sent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from routecast.evaluate.trial import Trial, TrialPower
from routecast.testbed.meters.meter import PowerMeter, PowerReading

_WHOLE_RATIO = 0.99
"""Share of a trial that must have figures, or a note says how much has."""


def with_power(trial: Trial, reading: PowerReading) -> Trial:
    """Return a trial with what a meter read in its time.

    ``packet_j = mean_w / forwarded_pps`` and ``bit_j = mean_w / l2_bps`` (S2): the whole power is charged to the
    traffic, idle power included. Where the meter saw only a part of the trial, its mean stands for the whole.

    ``reading``: of the interval in which the trial's frames were sent.
    """
    name = f"{reading.meter} ({reading.scope})"
    if not math.isfinite(reading.mean_w):
        why = "; ".join(reading.notes) or "it had no two readings in the time of the trial"
        return replace(trial, notes=(*trial.notes, f"power: {name} told nothing: {why}"))
    notes = [f"power, {name}: {note}" for note in reading.notes]
    if reading.metered_s < _WHOLE_RATIO * reading.interval_s:
        notes.append(
            f"power, {name}: metered for {reading.metered_s:.3g} s of {reading.interval_s:.3g} s only; its mean "
            "stands for the whole"
        )
    others = [zone for zone in reading.zones if not zone.is_counted and math.isfinite(zone.mean_w)]
    if others:
        shown = ", ".join(f"{zone.name} {zone.mean_w:.4g} W" for zone in others)
        notes.append(f"power, {name}: read as well and not added: {shown}")
    power = TrialPower(
        mean_w=reading.mean_w,
        scope=reading.scope,
        energy_j=reading.mean_w * trial.duration_s,
        packet_j=reading.mean_w / trial.forwarded_pps if trial.forwarded_pps > 0.0 else math.nan,
        bit_j=reading.mean_w / trial.l2_bps if trial.l2_bps > 0.0 else math.nan,
        source=reading.meter,
    )
    return replace(trial, power=power, notes=(*trial.notes, *notes))


class MeteredTrial:
    """A context in which a trial's frames are sent, and a meter runs; without a meter it does nothing.

    ``why_none``: why there is no meter, for the note of the trial; empty where nobody asked for one.
    """

    def __init__(self, meter: PowerMeter | None, why_none: str = "") -> None:
        self._meter = meter
        self._why_none = why_none
        self._reading: PowerReading | None = None

    def __enter__(self) -> Self:
        """Start the meter; raises EnvironmentProblem where it cannot be read."""
        if self._meter is not None:
            self._meter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._meter is not None:
            self._reading = self._meter.stop()

    def onto(self, trial: Trial, windows: Sequence[tuple[float, float]]) -> Trial:
        """Return the trial with the power in the windows in which its frames were sent.

        ``windows``: begin and end on the monotonic clock.
        """
        if self._reading is None:
            note = (self._why_none,) if self._why_none else ()
            return replace(trial, notes=(*trial.notes, *note))
        return with_power(trial, _together([self._reading.between(*window) for window in windows]))


def _together(parts: Sequence[PowerReading]) -> PowerReading:
    """Return one reading of several windows of one interval."""
    first = parts[0]
    metered_s = math.fsum(part.metered_s for part in parts)
    energy_j = math.fsum(part.energy_j for part in parts)
    known = [part for part in parts if part.metered_s]
    zones = tuple(
        replace(
            zone,
            energy_j=sum(part.zones[number].energy_j for part in parts),
            mean_w=math.fsum(
                part.zones[number].mean_w * part.metered_s for part in known if math.isfinite(part.zones[number].mean_w)
            )
            / metered_s
            if metered_s
            else math.nan,
        )
        for number, zone in enumerate(first.zones)
    )
    return replace(
        first,
        mean_w=energy_j / metered_s if metered_s else math.nan,
        min_w=min((part.min_w for part in known), default=math.nan),
        max_w=max((part.max_w for part in known), default=math.nan),
        energy_j=energy_j,
        interval_s=math.fsum(part.interval_s for part in parts),
        metered_s=metered_s,
        samples=sum(part.samples for part in parts),
        zones=zones,
        spans=(),
    )
