"""One interface for every meter of power, the reading of an interval, and its watts on a trial."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol, Self, runtime_checkable

from routecast.errors import EnvironmentProblem
from routecast.evaluate.plain import plain
from routecast.evaluate.trial import Trial, TrialPower
from routecast.quantity.schema import field, value

_EDGE_S = 1e-6
"""Instants that are closer belong to the same call."""

_COMPLETE_RATIO = 0.99
"""Smallest metered share of a trial without a note."""


@value
class Zone:
    """A part of the machine with a power of its own."""

    name: str = field('``"package-0"``, ``"chassis 1U"``')
    scope: str = field(
        "Part of the machine: ``rapl:package``, ``rapl:psys``, ``rapl:dram``, ``bmc``, ``pdu``, ``wall``, …"
    )
    is_counted: bool = field("Whether it is part of the sum; zones within other zones are not", default=True)


@value
class PowerSpan:
    """Mean power between two samples."""

    from_s: float = field("Begin on the monotonic clock")
    to_s: float = field("End on the monotonic clock")
    zones_w: Mapping[str, float] = field("Mean power by zone, of all counted zones at least")
    low_w: float = field("Smallest sum over the counted zones in the span")
    high_w: float = field("Largest sum over the counted zones in the span")


@value
class ZonePower(Zone):
    """One zone's part of a reading."""

    mean_w: float
    energy_j: float


@value
class PowerReading:
    """Power and energy of an interval."""

    meter: str = field("Name of the meter on the command line")
    scope: str = field("Part of the machine that the figures cover")
    mean_w: float = field("Mean over the metered time")
    min_w: float = field("Smallest power between samples; a counter of energy shows no shorter peaks")
    max_w: float = field("Largest power between samples")
    energy_j: float = field("Energy in the metered time: ``mean_w * metered_s``")
    interval_s: float = field("Length of the interval")
    metered_s: float = field("Part of the interval with figures; shorter if the meter failed on the way")
    samples: int = field("Samples behind the figures")
    quantum_w: float = field("Smallest step of ``mean_w``; NaN if the meter does not report it")
    zones: tuple[ZonePower, ...] = field("All zones, counted or not")
    notes: tuple[str, ...] = field("Notes on the reading", default=())
    spans: tuple[PowerSpan, ...] = field("Power over time, for :meth:`between`", default=())

    @property
    def is_partial(self) -> bool:
        """Whether a part of the interval was not metered."""
        return self.interval_s - self.metered_s > max(_EDGE_S, 1e-6 * self.interval_s)

    def between(self, from_s: float, to_s: float) -> PowerReading:
        """Return the reading of a part of the interval, if power is constant within a span.

        ``from_s`` and ``to_s`` are times of ``time.monotonic``.
        """
        return self.within([(from_s, to_s)])

    def within(self, windows: Sequence[tuple[float, float]]) -> PowerReading:
        """Return the reading of several parts of the interval, as begin and end of each; see :meth:`between`."""
        return reading_of(
            self.spans,
            windows,
            meter=self.meter,
            scope=self.scope,
            zones=self.zones,
            quantum_j=self.quantum_w * self.metered_s,
            notes=self.notes,
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data without the spans; NaN becomes null."""
        document = plain(replace(self, spans=()))
        assert isinstance(document, dict)
        del document["spans"]
        return {**document, "is_partial": self.is_partial}


def reading_of(
    spans: Sequence[PowerSpan],
    windows: Sequence[tuple[float, float]],
    *,
    meter: str,
    scope: str,
    zones: Sequence[Zone],
    quantum_j: float,
    notes: Sequence[str] = (),
) -> PowerReading:
    """Return the reading of windows of the monotonic clock from spans in order and without overlap.

    ``quantum_j`` is the smallest step of the sum's energy; NaN if unknown.
    """
    overlaps = [
        [(span, overlap_s) for span in spans if (overlap_s := min(span.to_s, to_s) - max(span.from_s, from_s)) > 0.0]
        for from_s, to_s in windows
    ]
    parts = list(chain.from_iterable(overlaps))
    metered_s = math.fsum(overlap_s for _, overlap_s in parts)
    readings = []
    for zone in zones:
        zone_spans = [(span.zones_w[zone.name], overlap_s) for span, overlap_s in parts if zone.name in span.zones_w]
        zone_s = math.fsum(overlap_s for _, overlap_s in zone_spans)
        energy_j = math.fsum(power_w * overlap_s for power_w, overlap_s in zone_spans)
        readings.append(
            ZonePower(
                name=zone.name,
                scope=zone.scope,
                is_counted=zone.is_counted,
                mean_w=energy_j / zone_s if zone_s else math.nan,
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
        interval_s=math.fsum(max(to_s - from_s, 0.0) for from_s, to_s in windows),
        metered_s=metered_s,
        samples=sum(len(overlap) + 1 for overlap in overlaps if overlap),
        quantum_w=quantum_j / metered_s if metered_s else math.nan,
        zones=tuple(readings),
        notes=tuple(notes),
        spans=tuple(spans),
    )


@runtime_checkable
class PowerMeter(Protocol):
    """Meters power from :meth:`start` to :meth:`stop`, and may be started again."""

    @property
    def name(self) -> str:
        """Name of the meter on the command line: ``rapl``, ``redfish:https://…``."""
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

        Raises EnvironmentProblem: the meter cannot be read; the message names the reason and the remedy.
        """
        ...

    def stop(self) -> PowerReading:
        """End the interval and return its reading; the notes hold failures on the way."""
        ...

    def latest_w(self) -> float:
        """Return the newest power of the running interval; NaN before there is one."""
        ...


class PeriodicThread:
    """Calls a function at intervals in a thread of its own, from :meth:`start` to :meth:`stop`; never if infinite."""

    def __init__(self, work: Callable[[], object], interval_s: float) -> None:
        self._work = work
        self._interval_s = interval_s
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None

    def start(self, name: str) -> None:
        """Start the thread."""
        self._done.clear()
        if math.isfinite(self._interval_s):
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for its end."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        while not self._done.wait(self._interval_s):
            self._work()


def checked_meter(meter: PowerMeter) -> PowerMeter:
    """Return a meter after a first reading, so that a failure shows before a test bed is up.

    Raises EnvironmentProblem: it cannot be read.
    """
    meter.start()
    meter.stop()
    return meter


def with_power(trial: Trial, reading: PowerReading) -> Trial:
    """Return a trial with the reading of the interval in which its frames were sent.

    ``packet_j = mean_w / forwarded_pps`` and ``bit_j = mean_w / l2_bps`` (S2): the whole power, idle power included, is
    charged to the traffic. If the meter saw only a part of the trial, its mean stands for all of it.
    """
    name = f"{reading.meter} ({reading.scope})"
    if not math.isfinite(reading.mean_w):
        reason = "; ".join(reading.notes) or "it had no two readings in the time of the trial"
        return replace(trial, notes=(*trial.notes, f"power: {name} gave no figure: {reason}"))
    notes = [f"power, {name}: {note}" for note in reading.notes]
    if reading.metered_s < _COMPLETE_RATIO * reading.interval_s:
        notes.append(
            f"power, {name}: metered for {reading.metered_s:.3g} s of {reading.interval_s:.3g} s only; its mean "
            "stands for the whole"
        )
    uncounted_zones = [zone for zone in reading.zones if not zone.is_counted and math.isfinite(zone.mean_w)]
    if uncounted_zones:
        uncounted = ", ".join(f"{zone.name} {zone.mean_w:.4g} W" for zone in uncounted_zones)
        notes.append(f"power, {name}: also read, but not added: {uncounted}")
    power = TrialPower(
        mean_w=reading.mean_w,
        scope=reading.scope,
        energy_j=reading.mean_w * trial.duration_s,
        packet_j=reading.mean_w / trial.forwarded_pps if trial.forwarded_pps > 0.0 else math.nan,
        bit_j=reading.mean_w / trial.l2_bps if trial.l2_bps > 0.0 else math.nan,
        source=reading.meter,
    )
    return replace(trial, power=power, notes=(*trial.notes, *notes))


class Metering:
    """A context that meters power, and has its ``reading`` when it has ended; without a meter it does nothing.

    ``why_no_meter`` goes into the notes of the trial; it is empty if no meter is wanted. Raises EnvironmentProblem: the
    meter cannot be read.
    """

    def __init__(self, meter: PowerMeter | None, why_no_meter: str = "") -> None:
        self._meter = meter
        self._why_no_meter = why_no_meter
        self._reading: PowerReading | None = None

    def __enter__(self) -> Self:
        if self._meter is not None:
            self._meter.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._meter is not None:
            self._reading = self._meter.stop()

    @property
    def reading(self) -> PowerReading:
        """The reading of the interval.

        Raises EnvironmentProblem: the interval has not ended, or there is no meter.
        """
        if self._reading is None:
            name = "none" if self._meter is None else self._meter.name
            raise EnvironmentProblem(f"power meter {name}: there is no reading before its context has ended")
        return self._reading

    def add_power(self, trial: Trial, windows: Sequence[tuple[float, float]]) -> Trial:
        """Return the trial with the power in the windows of the monotonic clock in which its frames were sent."""
        if self._meter is None:
            note = (self._why_no_meter,) if self._why_no_meter else ()
            return replace(trial, notes=(*trial.notes, *note))
        return with_power(trial, self.reading.within(windows))
