"""One interface for whatever tells watts: a counter of energy, a sensor, a file, a web page."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from routecast.errors import EnvironmentProblem
from routecast.testbed.power.reading import PowerReading

__all__ = ["Metering", "PowerMeter", "metering", "tried"]


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

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The meter cannot be read; says why and what to do.
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

        Raises
        ------
        routecast.errors.EnvironmentProblem
            The interval has not ended.
        """
        if self._reading is None:
            raise EnvironmentProblem(
                f"power meter {self.meter.name}: there is no reading before its context has ended"
            )
        return self._reading

    def end(self) -> None:
        """Stop the meter."""
        self._reading = self.meter.stop()


def tried(meter: PowerMeter) -> PowerMeter:
    """Return a meter that can be read: what it needs is better known before a test bed is up than after.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        It cannot be read.
    """
    meter.start()
    meter.stop()
    return meter


@contextlib.contextmanager
def metering(meter: PowerMeter) -> Iterator[Metering]:
    """Meter the body of the context.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The meter cannot be read.
    """
    meter.start()
    running = Metering(meter)
    try:
        yield running
    finally:
        running.end()
