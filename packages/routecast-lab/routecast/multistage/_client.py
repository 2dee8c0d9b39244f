"""Requests to the process that holds a router: a line of JSON each way over a local socket.

Commands import this module at each start, so it imports no package that is slow to import.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem, FileProblem, Problem, QuantityProblem

RUN_FOLDER = Path("/run/routecast")
"""That of :mod:`routecast.lab.testbed.state`, whose package is slow to import."""
SOCKET = "control.sock"

_ANSWERS_WITHIN_S = 30.0
_FOLDER = ".multistage"
_LARGEST_FILE_BYTES = 1 << 20


def standing_routers() -> list[str]:
    """Return the names of the routers on this machine, with or without a process that holds them."""
    folders = RUN_FOLDER.glob(f"*{_FOLDER}") if RUN_FOLDER.is_dir() else ()
    return sorted(folder.name.removesuffix(_FOLDER) for folder in folders)


def name_in_file(path: Path) -> str:
    """Return the name of the router of a ``*.multistage.toml``, without a check of the rest of the file.

    Raises FileProblem: it is no TOML, or has no name; OSError: it cannot be read.
    """
    import tomllib

    with path.open("rb") as handle:
        content = handle.read(_LARGEST_FILE_BYTES + 1)
    if len(content) > _LARGEST_FILE_BYTES:
        raise FileProblem(str(path), [Problem("", f"has more than {_LARGEST_FILE_BYTES} bytes: no file of a router")])
    try:
        name = tomllib.loads(content.decode()).get("name")
    except ValueError as problem:  # of the decoder, or of TOML
        raise FileProblem(str(path), [Problem("", f"is no TOML: {problem}")]) from None
    if not isinstance(name, str) or not name:
        raise FileProblem(str(path), [Problem("name", 'is missing: the file of a router names it, name = "demo"')])
    return name


def chosen_router(text: str | None) -> str:
    """Return the name of the router that a command is for.

    ``text``: its name or its file; None chooses the only router. Raises QuantityProblem: there is no router, no router
    of this name, or no name although there are several; FileProblem, OSError: as :func:`name_in_file`.
    """
    routers = standing_routers()
    name, of_file = text, ""
    # A name has neither a dot nor a slash.
    if text is not None and text not in routers and ("." in text or "/" in text or Path(text).is_file()):
        name = name_in_file(Path(text))
        of_file = f" ({text})"
    if name is None and len(routers) == 1:
        return routers[0]
    if not routers:
        raise QuantityProblem("", "there is no router on this machine: `sudo routecast multistage up FILE` makes one")
    listed = ", ".join(routers)
    if name is None:
        raise QuantityProblem("", f"name the router with --name, by its name or its file; there are: {listed}")
    if name not in routers:
        raise QuantityProblem(name, f"there is no router {name!r}{of_file}; there are: {listed}")
    return name


def send_request(name: str, request: str, **arguments: Any) -> Any:
    """Send a request to the process that holds a router, and return the result.

    Raises EnvironmentProblem: no process holds it; QuantityProblem: it refuses.
    """
    path = RUN_FOLDER / f"{name}{_FOLDER}" / SOCKET
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
            f"`sudo routecast multistage down {name}` takes it down"
        ) from problem
    if answer is None:
        raise EnvironmentProblem(f"{name}: the process that holds the router ended before it answered")
    if "refused" in answer:
        if answer["exit_code"] == QuantityProblem.exit_code:
            raise QuantityProblem("", answer["refused"])
        raise EnvironmentProblem(answer["refused"])
    return answer["result"]


def with_rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second of two statuses of a router with rates ``in_pps`` and ``out_pps`` since the first, frames/s.

    ``before`` and ``after``: results of :meth:`routecast.multistage.appliance.Appliance.status`.
    """
    time_s = after["time_s"] - before["time_s"]
    old_routers = {router["name"]: router for router in before["routers"]}
    old_balancers = {balancer["name"]: balancer for balancer in before["balancers"]}

    def rate(new: Mapping[str, Any], old: Mapping[str, Any] | None, key: str) -> float:
        # A replaced element counts from 0.
        return max(new[key] - (old or new)[key], 0) / time_s if time_s > 0 else 0.0

    routers = [
        {
            **router,
            "in_pps": rate(router, old_routers.get(router["name"]), "sent_frames"),
            "out_pps": rate(router, old_routers.get(router["name"]), "returned_frames"),
        }
        for router in after["routers"]
    ]
    balancers = []
    for balancer in after["balancers"]:
        ports = {}
        for name, counted in balancer["ports"].items():
            old = old_balancers.get(balancer["name"], balancer)["ports"].get(name)
            ports[name] = {
                **counted,
                "in_pps": rate(counted, old, "in_frames"),
                "out_pps": rate(counted, old, "out_frames"),
            }
        balancers.append({**balancer, "ports": ports})
    return {**after, "interval_s": time_s, "routers": routers, "balancers": balancers}


def clock_text(time_unix_s: float, now_unix_s: float) -> str:
    """Return a local time to the millisecond, with the date if it is another day."""
    time_unix_s = round(time_unix_s, 3)
    at, now = time.localtime(time_unix_s), time.localtime(now_unix_s)
    clock = time.strftime("%H:%M:%S" if at[:3] == now[:3] else "%Y-%m-%d %H:%M:%S", at)
    return f"{clock}.{round(time_unix_s * 1e3) % 1000:03d}"


def event_line(event: Mapping[str, Any], now_unix_s: float) -> str:
    """Return an event as a line: element, what happened, local time with the date if it is another day, details."""
    clock = clock_text(event["time_unix_s"], now_unix_s)
    words = " ".join(filter(None, (event["element"], event["what"], clock)))
    return f"{words}, {event['detail']}" if event["detail"] else words


def state_text(row: Mapping[str, Any]) -> str:
    """Return the state of an element of a status; of one that does not answer, with the time when it was seen last."""
    is_gone = row["state"] in ("dead", "not seen")
    return f"{row['state']} since {clock_text(row['seen_unix_s'], time.time())}" if is_gone else row["state"]
