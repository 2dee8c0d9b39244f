"""Conditions under which trials are repeated: frames that go to the device itself each second (RFC 2544 sec. 11)."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from routecast.evaluate.trial import Trial

__all__ = ["Condition", "RoutingDevice", "Ticks", "during"]

_PERIOD_S = 1.0


class Condition(Protocol):
    """Frames to the device besides the test frames, at the start of each second of a trial."""

    def begin(self) -> None:
        """Prepare a trial: the counts start at zero."""
        ...

    def each_second(self) -> None:
        """Send the frames that are due now, without waiting for an answer."""
        ...

    def annotate(self, trial: Trial, due: int) -> Trial:
        """Add a note of how many of the ``due`` frames were sent and how the device answered."""
        ...


@runtime_checkable
class RoutingDevice(Protocol):
    """A device under test that can learn its routes from neighbours (RFC 2544 sec. 13)."""

    @property
    def learns_routes(self) -> bool:
        """Whether its neighbours run in the tester's namespaces."""
        ...

    def announce(self) -> None:
        """Send a routing update with all networks, and return when the device has the routes."""
        ...

    def routing_updates(self) -> Condition:
        """Return the condition of sec. 11.3: an update each second, which alternates between two states."""
        ...


@dataclass(slots=True)
class Ticks:
    """How often a condition was due while it ran."""

    due: int = 0


@contextmanager
def during(condition: Condition | None) -> Iterator[Ticks]:
    """Call a condition at once and then each second, until the context ends.

    The first call returns before the context begins: its frames go before the first test frame.
    """
    ticks = Ticks()
    if condition is None:
        yield ticks
        return
    done = threading.Event()
    errors: list[BaseException] = []
    condition.begin()
    began_s = time.monotonic()
    condition.each_second()

    def run() -> None:
        number = 1
        try:
            while not done.wait(max(began_s + number * _PERIOD_S - time.monotonic(), 0.0)):
                condition.each_second()
                # A missed second stays missed: two updates at once would be another load.
                number = max(number + 1, math.floor((time.monotonic() - began_s) / _PERIOD_S) + 1)
        except BaseException as problem:  # raised again below, in the thread that measures
            errors.append(problem)

    thread = threading.Thread(target=run, name="condition")
    thread.start()
    try:
        yield ticks
    finally:
        ended_s = time.monotonic()
        done.set()
        thread.join()
    ticks.due = math.ceil((ended_s - began_s) / _PERIOD_S)
    if errors:
        raise errors[0]
