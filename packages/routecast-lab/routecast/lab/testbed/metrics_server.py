"""Rates, loss and latency of a running trial, slice by slice, as a sentence and as a page for Prometheus."""

from __future__ import annotations

import http.server
import socket
import threading
from collections.abc import Callable

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed._counts import Slice, TrialCounts, trial_counts
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.quantity.schema import value

__all__ = ["MetricsServer", "RunningMeasurement", "SliceRates"]

_MAX_SILENCE_S = 10.0
"""A reader that sends nothing for so long is left."""


@value
class SliceRates:
    """The rates of a slice of a trial."""

    end_s: float
    offered_pps: float
    forwarded_pps: float
    loss_ratio: float
    counts: TrialCounts

    @classmethod
    def of(cls, trial_slice: Slice) -> SliceRates:
        """Return the rates of a slice."""
        counts = trial_counts([trial_slice])
        return cls(
            end_s=trial_slice.from_s + trial_slice.duration_s,
            offered_pps=counts.sent_frames / trial_slice.duration_s,
            forwarded_pps=counts.received_frames / trial_slice.duration_s,
            loss_ratio=counts.lost_frames / counts.sent_frames if counts.sent_frames else 0.0,
            counts=counts,
        )

    def describe(self) -> str:
        """Return a line with rates, loss and latency."""
        latency = self.counts.latency
        times = (
            f", latency p50 {format_duration(latency.p50_s)}, p99 {format_duration(latency.p99_s)}" if latency else ""
        )
        return (
            f"{format_duration(self.end_s)}: {format_pps(self.offered_pps)} offered, "
            f"{format_pps(self.forwarded_pps)} forwarded, {format_ratio(self.loss_ratio)} lost{times}"
        )


class RunningMeasurement:
    """Sums and last slice of a running measurement; another thread may read them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums = {"sent": 0, "received": 0, "lost": 0}
        self._last: SliceRates | None = None
        self.is_repetition = False
        """Whether the last slice begins the repetition of an invalid trial."""

    def add(self, trial_slice: Slice) -> SliceRates:
        """Add a slice that has ended."""
        rates = SliceRates.of(trial_slice)
        with self._lock:
            self._sums["sent"] += rates.counts.sent_frames
            self._sums["received"] += rates.counts.received_frames
            self._sums["lost"] += rates.counts.lost_frames
            self.is_repetition = self._last is not None and rates.end_s <= self._last.end_s
            self._last = rates
        return rates

    def exposition(self) -> str:
        """Return the page for Prometheus: counters since the start, gauges of the last slice."""
        from routecast.lab.testbed.exposition import measurement_text  # loads prometheus_client

        with self._lock:
            return measurement_text(self._sums, self._last)


class MetricsServer:
    """Serves ``/metrics`` on an address until it is closed.

    ``port`` 0 takes any free port; ``text`` returns the current page. Raises EnvironmentProblem: the port is in use, or
    the address is none of this machine.
    """

    def __init__(self, port: int, text: Callable[[], str], *, address: str = "127.0.0.1") -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            timeout = _MAX_SILENCE_S

            def do_GET(self) -> None:
                if self.path.partition("?")[0] != "/metrics":
                    self.send_error(404)
                    return
                body = text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        class OfFamily(http.server.ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

        try:
            self._server = OfFamily((address, port), Handler)
        except OSError as problem:
            raise EnvironmentProblem(f"port {port} of {address}: {problem.strerror}") from problem
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
