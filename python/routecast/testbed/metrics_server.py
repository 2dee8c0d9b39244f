"""Figures for Prometheus: a page of text on a port of this machine (text format 0.0.4)."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable

from routecast.errors import EnvironmentProblem

__all__ = ["MetricsServer"]


class MetricsServer:
    """Serves ``/metrics`` on 127.0.0.1 until it is closed.

    Parameters
    ----------
    port : int
        0 for any free one.
    text : callable
        Returns the page as it is now.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The port is in use.
    """

    def __init__(self, port: int, text: Callable[[], str]) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = text().encode()
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
