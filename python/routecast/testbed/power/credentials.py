"""Who asks: user and password, or a token, from the environment or a netrc file; never from a command line."""

from __future__ import annotations

import netrc
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from routecast.errors import EnvironmentProblem

__all__ = ["ENVIRONMENT", "Credentials", "credentials_for"]

ENVIRONMENT = ("ROUTECAST_POWER_USER", "ROUTECAST_POWER_PASSWORD", "ROUTECAST_POWER_TOKEN")
"""User, password and token of a power meter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A user with a password, or a token; neither is shown when this is printed."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.user or self.token)


def credentials_for(
    host: str, *, environment: Mapping[str, str] | None = None, home: Path | None = None
) -> Credentials:
    """Return what to log in with at a host; nothing where nobody said.

    The variables ``ROUTECAST_POWER_TOKEN``, or ``ROUTECAST_POWER_USER`` and ``ROUTECAST_POWER_PASSWORD``, go first;
    then the line of ``$NETRC`` or ``~/.netrc`` for the host: ``machine HOST login USER password PASSWORD``.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A user without a password; a netrc file that others may read, or that is none.
    """
    given = os.environ if environment is None else environment
    user, password, token = (given.get(name, "") for name in ENVIRONMENT)
    if token:
        return Credentials(token=token)
    if user or password:
        if not (user and password):
            raise EnvironmentProblem(f"give both {ENVIRONMENT[0]} and {ENVIRONMENT[1]}, or neither")
        return Credentials(user=user, password=password)
    path = Path(given["NETRC"]) if given.get("NETRC") else (home or Path.home()) / ".netrc"
    try:
        mode = path.stat().st_mode
    except OSError:
        return Credentials()
    try:
        entry = netrc.netrc(str(path)).hosts.get(host)
    except (netrc.NetrcParseError, UnicodeDecodeError, OSError) as problem:
        # The parser's message holds the word it stumbled over, which may be the password.
        line = f" in line {problem.lineno}" if isinstance(problem, netrc.NetrcParseError) else ""
        raise EnvironmentProblem(f"{path}: cannot be read as a netrc file{line}") from None
    if entry is None:
        return Credentials()
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise EnvironmentProblem(f"{path}: holds passwords and may be read by others: chmod 600 {path}")
    return Credentials(user=entry[0], password=entry[2] or "")
