"""What this process may do, and what it lacks for a task (capabilities(7))."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from routecast.errors import EnvironmentProblem

__all__ = ["FOR_NAMESPACES", "FOR_SENDING", "missing", "require"]

_NUMBERS = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21, "CAP_SYS_NICE": 23}

FOR_SENDING = ("CAP_NET_RAW", "CAP_NET_ADMIN")
"""To send and receive frames: raw sockets on interfaces.

The tester's eBPF programs need CAP_BPF and CAP_PERFMON as well; without them it uses sockets alone.
"""

FOR_NAMESPACES = (*FOR_SENDING, "CAP_SYS_ADMIN")
"""To make network namespaces as well."""


def missing(wanted: Iterable[str]) -> tuple[str, ...]:
    """Return those of the capabilities that this process does not have in effect."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    has = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return tuple(name for name in wanted if not has >> _NUMBERS[name] & 1)


def require(wanted: Iterable[str], purpose: str) -> None:
    """Refuse to go on without capabilities.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        Names what is missing, and how to get it.
    """
    lacking = missing(wanted)
    if lacking:
        names = ", ".join(lacking)
        raise EnvironmentProblem(
            f"{purpose} needs {names}, which this process does not have: run it as root (sudo), "
            "or give the capabilities with setpriv or ambient capabilities of a service"
        )
