"""What a router counts, for Prometheus (text format 0.0.4)."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from routecast.errors import EnvironmentProblem

__all__ = ["MetricsServer", "metrics"]

_COUNTERS = {
    "sent_frames": "Frames sent to a back-end router.",
    "sent_octets": "Octets sent to a back-end router.",
    "returned_frames": "Frames that a back-end router returned.",
    "returned_octets": "Octets that a back-end router returned.",
    "over_the_cap": "Frames dropped by the emulated capacity.",
    "deaths": "Times that it was found dead.",
    "revivals": "Times that it came back.",
}


def metrics(status: Mapping[str, Any]) -> str:
    """Return a status as the text that Prometheus reads."""
    return "\n".join(_lines(status)) + "\n"


def _lines(status: Mapping[str, Any]) -> Iterator[str]:
    of = f'router="{status["name"]}"'
    for key, meaning in _COUNTERS.items():
        yield f"# HELP routecast_multistage_{key}_total {meaning}"
        yield f"# TYPE routecast_multistage_{key}_total counter"
        for one in status["routers"]:
            yield f'routecast_multistage_{key}_total{{{of},element="{one["name"]}"}} {one[key]}'
    yield "# HELP routecast_multistage_up Whether an element takes frames."
    yield "# TYPE routecast_multistage_up gauge"
    for one in [*status["routers"], *status["balancers"]]:
        up = int(one["state"] in ("active", "draining"))
        yield f'routecast_multistage_up{{{of},element="{one["name"]}",state="{one["state"]}"}} {up}'
    yield "# HELP routecast_multistage_dropped_frames_total Frames that a load balancer did not forward, by port."
    yield "# TYPE routecast_multistage_dropped_frames_total counter"
    for one in status["balancers"]:
        for port, dropped in one["dropped_by_port"].items():
            labels = f'{of},element="{one["name"]}",port="{port}"'
            for reason, count in dropped.items():
                yield f'routecast_multistage_dropped_frames_total{{{labels},reason="{reason}"}} {count}'
    yield "# HELP routecast_multistage_epoch Of the table that is in force."
    yield "# TYPE routecast_multistage_epoch gauge"
    yield f"routecast_multistage_epoch{{{of}}} {status['epoch']}"


class MetricsServer:
    """Serves ``/metrics`` on 127.0.0.1 until it is closed.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The port is in use.
    """

    def __init__(self, port: int, status: Callable[[], Mapping[str, Any]]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = metrics(status()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        except OSError as problem:
            raise EnvironmentProblem(f"port {port} of 127.0.0.1: {problem.strerror}") from problem
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
