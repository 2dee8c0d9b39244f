"""Where a file says what is wrong with the technique of a server: with the server, or once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import Problem
from routecast.router.virtual.file_models import ServerTable

__all__ = ["at_technology"]


def at_technology(problems: Sequence[Problem], tables: Sequence[ServerTable]) -> list[Problem]:
    """Return problems of servers that name no technique of their own where the file says that of all, each once."""
    shared = {
        f"server[{number}].technology": "technology"
        for number, table in enumerate(tables)
        if table.technology is None
    }
    moved = []
    for place, message in problems:
        own = next((one for one in shared if place == one or place.startswith(f"{one}.")), None)
        moved.append(Problem(place if own is None else shared[own] + place.removeprefix(own), message))
    return list(dict.fromkeys(moved))
