"""Answers to the requests of :mod:`routecast.multistage._client`, in the process that holds a router."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.lab._lab import TesterError
from routecast.lab.testbed.tester import error_text
from routecast.multistage._client import SOCKET
from routecast.multistage.appliance import Appliance

_REQUEST_WITHIN_S = 5.0
_MAX_REQUEST_BYTES = 1 << 16
_MAX_UNREAD_BYTES = 1 << 24
_REQUESTS = ("status", "fail", "restore", "drain", "add", "remove", "set_weight", "trace", "audit", "events")


class ControlServer:
    """Serves requests to a router until it is closed.

    ``on_down`` is called when a request takes the router down.
    """

    def __init__(self, router: Appliance, on_down: Callable[[], None]) -> None:
        calls: dict[str, Callable[..., Any]] = {name: getattr(router, name) for name in _REQUESTS}

        class Handler(socketserver.StreamRequestHandler):
            timeout = _REQUEST_WITHIN_S

            def handle(self) -> None:
                with contextlib.suppress(ConnectionError, TimeoutError):
                    line = self.rfile.readline(_MAX_REQUEST_BYTES)
                    self.wfile.write(json.dumps(_reply(line, calls, on_down)).encode() + b"\n")
                    # A socket that is closed with octets unread would take the answer along.
                    self.connection.shutdown(socket.SHUT_WR)
                    for _ in range(_MAX_UNREAD_BYTES // _MAX_REQUEST_BYTES):
                        if not self.rfile.read1(_MAX_REQUEST_BYTES):
                            break

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        path = router.folder / SOCKET
        path.unlink(missing_ok=True)
        self._server = Server(str(path), Handler)
        path.chmod(0o600)
        self._path: Path = path
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the socket."""
        self._server.shutdown()
        self._server.server_close()
        self._path.unlink(missing_ok=True)


def _reply(line: bytes, calls: dict[str, Callable[..., Any]], on_down: Callable[[], None]) -> dict[str, Any]:
    try:
        if len(line) >= _MAX_REQUEST_BYTES:
            raise ValueError(f"it has more than {_MAX_REQUEST_BYTES} bytes")
        request = json.loads(line)
        if not isinstance(request, dict) or not isinstance(request.get("arguments", {}), dict):
            raise ValueError('write {"request": NAME, "arguments": {…}}')
        if request["request"] == "down":
            on_down()
            return {"result": None}
        if request["request"] not in calls:
            reason = f"the process that holds the router has no request {request['request']!r}"
            return {"refused": f"{reason}: it is of another version", "exit_code": EnvironmentProblem.exit_code}
        return {"result": calls[request["request"]](**request.get("arguments", {}))}
    except RoutecastError as problem:
        return {"refused": str(problem), "exit_code": problem.exit_code}
    except TesterError as problem:
        return {"refused": error_text(problem), "exit_code": EnvironmentProblem.exit_code}
    except (KeyError, TypeError, ValueError, RecursionError) as problem:
        return {"refused": f"the request is not valid: {problem}", "exit_code": EnvironmentProblem.exit_code}
