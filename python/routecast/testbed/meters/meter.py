"""One interface for whatever tells watts: a counter of energy, a sensor, a file, a web page."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from routecast.errors import EnvironmentProblem
from routecast.evaluate.plain import plain
from routecast.quantity.schema import field, value

__all__ = [
    "Metering",
    "PowerMeter",
    "PowerReading",
    "PowerSpan",
    "Zone",
    "ZonePower",
    "metering",
    "reading_of",
    "tried",
]


_EDGE_S = 1e-6
"""Instants that are closer are the same: they come from one clock, at different moments of one call."""


@value
class Zone:
    """A part of the machine with a figure of its own."""

    name: str = field('``"package-0"``, ``"chassis 1U"``')
    scope: str = field("What it covers: ``rapl:package``, ``rapl:psys``, ``rapl:dram``, ``bmc``, ``pdu``, ``wall``, …")
    # Zones within other zones are not, or watts would count twice.
    is_counted: bool = field("Whether it is part of the sum", default=True)


@value
class PowerSpan:
    """Mean power between two samples."""

    from_s: float = field("Begin on the monotonic clock")
    to_s: float = field("End on the monotonic clock")
    zones_w: Mapping[str, float] = field("Mean power by zone; all counted zones are there")
    low_w: float = field("Least sum over the counted zones in the span")
    high_w: float = field("Greatest sum over the counted zones in the span")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZonePower:
    """One zone's part of a reading."""

    name: str
    scope: str
    is_counted: bool
    mean_w: float
    energy_j: float


@value
class PowerReading:
    """Power and energy of an interval."""

    meter: str = field("Which meter, as it is named on the command line")
    scope: str = field("What the figures cover")
    # A counter of energy shows no peaks within a sampling interval.
    mean_w: float = field("Mean over the metered time")
    min_w: float = field("Least power that was seen")
    max_w: float = field("Greatest power that was seen")
    energy_j: float = field("Energy in the metered time: ``mean_w * metered_s``")
    interval_s: float = field("Length of the interval that was asked for")
    metered_s: float = field(
        "Time of it for which there are figures; less than ``interval_s`` where the meter failed on the way"
    )
    samples: int = field("Readings that the figures are made of")
    quantum_w: float = field("Least step that ``mean_w`` can show; NaN where the meter does not say")
    zones: tuple[ZonePower, ...] = field("All zones, those not part of the sum included")
    notes: tuple[str, ...] = field("What the reader must know", default=())
    spans: tuple[PowerSpan, ...] = field("Power over time, for :meth:`between`", default=())

    @property
    def is_partial(self) -> bool:
        """Whether a part of the interval has no figures."""
        return self.interval_s - self.metered_s > max(_EDGE_S, 1e-6 * self.interval_s)

    def between(self, from_s: float, to_s: float) -> PowerReading:
        """Return the reading of a part of the interval; power is taken as constant within a span.

        ``from_s`` and ``to_s``: on the monotonic clock, as ``time.monotonic`` tells it.
        """
        return reading_of(
            self.spans,
            (from_s, to_s),
            meter=self.meter,
            scope=self.scope,
            zones=tuple(Zone(name=z.name, scope=z.scope, is_counted=z.is_counted) for z in self.zones),
            quantum_j=self.quantum_w * self.metered_s,
            notes=self.notes,
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data: NaN becomes null, field names stay; the spans stay out."""
        document = plain(replace(self, spans=()))
        assert isinstance(document, dict)
        del document["spans"]
        return {**document, "is_partial": self.is_partial}


def reading_of(
    spans: Sequence[PowerSpan],
    window: tuple[float, float],
    *,
    meter: str,
    scope: str,
    zones: Sequence[Zone],
    quantum_j: float,
    notes: Sequence[str] = (),
) -> PowerReading:
    """Add up what lies within a window.

    ``spans``: in their order, without overlap; ``window``: its begin and end on the monotonic clock; ``quantum_j``:
    least step of the energy of the sum; NaN if unknown.
    """
    from_s, to_s = window
    parts = [
        (span, overlap_s) for span in spans if (overlap_s := min(span.to_s, to_s) - max(span.from_s, from_s)) > 0.0
    ]
    metered_s = math.fsum(overlap_s for _, overlap_s in parts)
    readings = []
    for zone in zones:
        known = [(span.zones_w[zone.name], overlap_s) for span, overlap_s in parts if zone.name in span.zones_w]
        known_s = math.fsum(overlap_s for _, overlap_s in known)
        energy_j = math.fsum(power_w * overlap_s for power_w, overlap_s in known)
        readings.append(
            ZonePower(
                name=zone.name,
                scope=zone.scope,
                is_counted=zone.is_counted,
                mean_w=energy_j / known_s if known_s else math.nan,
                energy_j=energy_j,
            )
        )
    energy_j = math.fsum(zone.energy_j for zone in readings if zone.is_counted)
    return PowerReading(
        meter=meter,
        scope=scope,
        mean_w=energy_j / metered_s if metered_s else math.nan,
        min_w=min((span.low_w for span, _ in parts), default=math.nan),
        max_w=max((span.high_w for span, _ in parts), default=math.nan),
        energy_j=energy_j,
        interval_s=max(to_s - from_s, 0.0),
        metered_s=metered_s,
        samples=len(parts) + 1 if parts else 0,
        quantum_w=quantum_j / metered_s if metered_s else math.nan,
        zones=tuple(readings),
        notes=tuple(notes),
        spans=tuple(spans),
    )


@runtime_checkable
class PowerMeter(Protocol):
    """Tells power from :meth:`start` to :meth:`stop`; it may be started again after that."""

    @property
    def name(self) -> str:
        """The meter as it is named on the command line: ``rapl``, ``redfish:https://…``."""
        ...

    @property
    def scope(self) -> str:
        """What its watts cover: ``rapl:package``, ``rapl:psys``, ``rapl:dram``, ``bmc``, ``pdu``, ``wall``."""
        ...

    @property
    def interval_s(self) -> float:
        """Time between its samples."""
        ...

    def start(self) -> None:
        """Begin an interval.

        Raises EnvironmentProblem: the meter cannot be read; says why and what to do.
        """
        ...

    def stop(self) -> PowerReading:
        """End the interval and return what was metered in it; what failed on the way is in the notes."""
        ...

    def latest_w(self) -> float:
        """Return the newest power while the interval runs; NaN before there is one."""
        ...


class Metering:
    """An interval that runs; ``reading`` is there when it has ended."""

    def __init__(self, meter: PowerMeter) -> None:
        self.meter = meter
        self._reading: PowerReading | None = None

    @property
    def reading(self) -> PowerReading:
        """What was metered.

        Raises EnvironmentProblem: the interval has not ended.
        """
        if self._reading is None:
            raise EnvironmentProblem(f"power meter {self.meter.name}: there is no reading before its context has ended")
        return self._reading

    def end(self) -> None:
        """Stop the meter."""
        self._reading = self.meter.stop()


def tried(meter: PowerMeter) -> PowerMeter:
    """Return a meter that can be read: what it needs is better known before a test bed is up than after.

    Raises EnvironmentProblem: it cannot be read.
    """
    meter.start()
    meter.stop()
    return meter


@contextlib.contextmanager
def metering(meter: PowerMeter) -> Iterator[Metering]:
    """Meter the body of the context.

    Raises EnvironmentProblem: the meter cannot be read.
    """
    meter.start()
    running = Metering(meter)
    try:
        yield running
    finally:
        running.end()
