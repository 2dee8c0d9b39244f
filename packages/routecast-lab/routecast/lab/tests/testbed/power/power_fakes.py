"""Fakes of a meter, a source and a clock."""

from __future__ import annotations

from collections.abc import Callable

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.meters._meter import PowerReading, PowerSpan, Zone, reading_of


class Clock:
    """A clock that moves when a test calls ``wait``."""

    def __init__(self, now_s: float = 1000.0) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s

    def wait(self, time_s: float) -> None:
        self.now_s += time_s


class FakeMeter:
    """A meter whose power is constant within given spans of time."""

    name = "fake"
    scope = "wall"
    interval_s = 0.1

    def __init__(
        self,
        spans: tuple[tuple[float, float, float], ...],
        *,
        refusal: str = "",
        notes: tuple[str, ...] = (),
        others: tuple[Zone, ...] = (),
    ) -> None:
        self.spans = spans
        self.refusal = refusal
        self.notes = notes
        self.others = others
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")
        if self.refusal:
            raise EnvironmentProblem(f"power meter fake: {self.refusal}")

    def stop(self) -> PowerReading:
        self.calls.append("stop")
        zone = Zone(name="all", scope=self.scope)
        spans = [
            PowerSpan(from_s=a, to_s=b, zones_w={"all": w, **{z.name: 1.5 for z in self.others}}, low_w=w, high_w=w)
            for a, b, w in self.spans
        ]
        window = (spans[0].from_s, spans[-1].to_s) if spans else (0.0, 0.0)
        return reading_of(
            spans,
            [window],
            meter=self.name,
            scope=self.scope,
            zones=(zone, *self.others),
            quantum_j=0.001,
            notes=self.notes,
        )

    def latest_w(self) -> float:
        return self.spans[-1][2] if self.spans else float("nan")


class FakeSource:
    """A source whose watts, or errors, come from a function."""

    name = "source"
    scope = "pdu"
    quantum_j = float("nan")
    is_gauge = True
    zones = (Zone(name="power", scope="pdu"),)

    def __init__(self, watts: Callable[[], float]) -> None:
        self.watts = watts
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def read(self) -> dict[str, float]:
        return {"power": self.watts()}

    def power_w(self, zone: str, before: object, after: object) -> float:
        return 0.5 * (before.values[zone] + after.values[zone])  # type: ignore[attr-defined]

    def notes(self, samples: object) -> tuple[str, ...]:
        del samples
        return ()
