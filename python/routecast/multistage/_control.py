"""Requests to the process that holds a router: a line of JSON each way over a local socket."""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from routecast._core import TesterError
from routecast.errors import EnvironmentProblem, QuantityProblem, RoutecastError
from routecast.multistage.appliance import Appliance
from routecast.testbed import state
from routecast.testbed.tester import error_text

_ANSWERS_WITHIN_S = 30.0
_SOCKET = "control.sock"
_FOLDER = ".multistage"


def standing_routers() -> list[str]:
    """Return the names of the routers on this machine, with or without a process that holds them."""
    folders = state.FOLDER.glob(f"*{_FOLDER}") if state.FOLDER.is_dir() else ()
    return sorted(folder.name.removesuffix(_FOLDER) for folder in folders)


def chosen_router(name: str | None) -> str:
    """Return the name of the router that a command is for; ``name``: None chooses the only router.

    Raises QuantityProblem: there is no router, no router of this name, or no name although there are several.
    """
    routers = standing_routers()
    if name is None and len(routers) == 1:
        return routers[0]
    if not routers:
        raise QuantityProblem("", "there is no router on this machine: `sudo routecast multistage up FILE` makes one")
    listed = ", ".join(routers)
    if name is None:
        raise QuantityProblem("", f"name the router with --name; there are: {listed}")
    if name not in routers:
        raise QuantityProblem(name, f"there is no router {name!r}; there are: {listed}")
    return name


def send_request(name: str, request: str, **arguments: Any) -> Any:
    """Send a request to the process that holds a router, and return the result.

    Raises EnvironmentProblem: no process holds it; QuantityProblem: it refuses.
    """
    path = state.FOLDER / f"{name}{_FOLDER}" / _SOCKET
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as handle:
            handle.settimeout(_ANSWERS_WITHIN_S)
            handle.connect(str(path))
            handle.sendall(json.dumps({"request": request, "arguments": arguments}).encode() + b"\n")
            with handle.makefile("rb") as answers:
                answer = json.loads(answers.readline() or b"null")
    except (OSError, ValueError) as problem:
        raise EnvironmentProblem(
            f"no process holds {name!r} ({path}: {problem}): `sudo routecast multistage up FILE` takes it over, and "
            f"`sudo routecast multistage down` takes it down"
        ) from problem
    if answer is None:
        raise EnvironmentProblem(f"{name}: the process that holds the router ended before it answered")
    if "refused" in answer:
        if answer["exit_code"] == QuantityProblem.exit_code:
            raise QuantityProblem("", answer["refused"])
        raise EnvironmentProblem(answer["refused"])
    return answer["result"]


class ControlServer:
    """Serves requests to a router until it is closed.

    ``on_down`` is called when a request takes the router down.
    """

    def __init__(self, router: Appliance, on_down: Callable[[], None]) -> None:
        calls: dict[str, Callable[..., Any]] = {
            name: getattr(router, name)
            for name in ("status", "fail", "restore", "drain", "add", "remove", "set_weight", "trace", "audit")
        }

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(BrokenPipeError, ConnectionError):
                    self.wfile.write(json.dumps(_reply(self.rfile.readline(), calls, on_down)).encode() + b"\n")

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        path = router.folder / _SOCKET
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
        request = json.loads(line)
        if request["request"] == "down":
            on_down()
            return {"result": None}
        return {"result": calls[request["request"]](**request["arguments"])}
    except RoutecastError as problem:
        return {"refused": str(problem), "exit_code": problem.exit_code}
    except TesterError as problem:
        return {"refused": error_text(problem), "exit_code": EnvironmentProblem.exit_code}
    except (KeyError, TypeError, ValueError) as problem:
        return {"refused": f"the request is not valid: {problem}", "exit_code": EnvironmentProblem.exit_code}
