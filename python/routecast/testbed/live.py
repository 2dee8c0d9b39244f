"""A trial while it runs: the rates, loss and latency of each slice as it ends, in words and for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.quantity.schema import value
from routecast.testbed.counted import Counted, Slice, counted

__all__ = ["Live", "Second"]

_QUANTILES = {"0.5": "p50_s", "0.99": "p99_s", "0.999": "p999_s"}


@value
class Second:
    """What a slice of a trial counted; rates in frames/s."""

    until_s: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    counts: Counted

    @classmethod
    def of(cls, part: Slice) -> Second:
        """Read a slice that has just ended."""
        counts = counted([part])
        return cls(
            until_s=part.from_s + part.duration_s,
            offered_pps=counts.sent_frames / part.duration_s,
            forwarded_pps=counts.received_frames / part.duration_s,
            loss_ratio=counts.lost_frames / counts.sent_frames if counts.sent_frames else 0.0,
            counts=counts,
        )

    @property
    def words(self) -> str:
        """Rates, loss and latency on one line."""
        latency = self.counts.latency
        times = (
            f", latency p50 {format_duration(latency.p50_s)}, p99 {format_duration(latency.p99_s)}" if latency else ""
        )
        return (
            f"{format_duration(self.until_s)}: {format_pps(self.offered_pps)} offered, "
            f"{format_pps(self.forwarded_pps)} forwarded, {format_ratio(self.loss_ratio)} lost{times}"
        )


class Live:
    """Sums of a running measurement, and its last slice; safe to read from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = {"sent": 0, "received": 0, "lost": 0}
        self._last: Second | None = None
        self.began_again = False
        """Whether the slice that was taken in last begins a trial anew that was invalid before."""

    def add(self, part: Slice) -> Second:
        """Take in a slice that has ended."""
        second = Second.of(part)
        with self._lock:
            self._sums["sent"] += second.counts.sent_frames
            self._sums["received"] += second.counts.received_frames
            self._sums["lost"] += second.counts.lost_frames
            self.began_again = self._last is not None and second.until_s <= self._last.until_s
            self._last = second
        return second

    def exposition(self) -> str:
        """Return the text that Prometheus reads: counters since the start, gauges of the last slice."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        for name, count in self._sums.items():
            yield f"# TYPE routecast_measure_{name}_frames_total counter"
            yield f"routecast_measure_{name}_frames_total {count}"
        if self._last is None:
            return
        for name in ("offered_pps", "forwarded_pps", "loss_ratio"):
            yield f"# TYPE routecast_measure_{name} gauge"
            yield f"routecast_measure_{name} {getattr(self._last, name)!r}"
        latency = self._last.counts.latency
        if latency is not None:
            yield "# TYPE routecast_measure_latency_seconds gauge"
            for quantile, name in _QUANTILES.items():
                yield f'routecast_measure_latency_seconds{{quantile="{quantile}"}} {getattr(latency, name)!r}'
