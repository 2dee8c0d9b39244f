"""What the checks look at: the files of a machine under a root folder, and what its programs print.

The root is ``/`` for the machine itself. For a recorded one it is a folder with the same files; what programs print
stands in ``commands/``, named by the command with ``_`` for what is no letter, and the readings of ``proc/stat`` a
second later in ``proc/stat.later``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from enum import StrEnum
from pathlib import Path

from routecast.quantity.schema import field, value


class State(StrEnum):
    """How it stands with what a check looked at."""

    FINE = "fine"
    DISTORTS = "distorts"
    MISSING = "missing"
    UNSEEN = "unseen"


@value
class Finding:
    """One thing that a check looked at."""

    check: str = field(
        'Name of the check, ``"governor"``; with the interface where it is about one: ``"offloads eth1"``'
    )
    # ``fine``; ``distorts``: measurements come out otherwise than they would; ``missing``: something cannot be done;
    # ``unseen``: this process may not look, or the machine does not say.
    state: State
    found: str = field("What is so")
    effect: str = field("What it does to measurements; may say something where all is fine, too", default="")
    remedy: str = field("The command that mends it. It is printed, never executed.", default="")
    advice: str = field("What mends it where no command does", default="")


_COMMAND_S = 10.0
_MOST_CORES = 65_536


class ExaminedMachine:
    """A machine to be examined.

    ``root``: where its files are; ``interfaces``: interfaces that measure; empty: all that are no loopback, bridge or
    virtual pair; ``cores``: cores that measure; empty: they are not chosen yet.
    """

    def __init__(
        self, root: Path = Path("/"), *, interfaces: tuple[str, ...] = (), cores: tuple[int, ...] = ()
    ) -> None:
        self.root = root
        self.cores = cores
        self.named_interfaces = interfaces
        self.interfaces = interfaces or self._physical()
        self._stat: tuple[str, str, float] | None = None

    @property
    def is_live(self) -> bool:
        """Whether this is the machine that routecast runs on."""
        return self.root == Path("/")

    def text(self, path: str) -> str | None:
        """Return what a file says, without the space around it; None where it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        """Return the whole number in a file; None where there is none."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def exists(self, path: str) -> bool:
        """Whether a path is there at all, readable or not."""
        return os.path.lexists(self.root / path.lstrip("/"))

    def may_read(self, path: str) -> bool:
        """Whether this process may read a file."""
        return os.access(self.root / path.lstrip("/"), os.R_OK)

    def may_write(self, path: str) -> bool:
        """Whether this process may write to a file or into a folder."""
        return os.access(self.root / path.lstrip("/"), os.W_OK)

    def names(self, folder: str, pattern: str = "*") -> tuple[str, ...]:
        """Return the names in a folder that match a pattern, numbers in their order."""
        try:
            names_ = [path.name for path in (self.root / folder.lstrip("/")).glob(pattern)]
        except OSError:
            return ()
        return tuple(sorted(names_, key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]))

    def target(self, link: str) -> str:
        """Return the last part of what a symbolic link points to; empty where it is none."""
        try:
            return Path(os.readlink(self.root / link.lstrip("/"))).name
        except OSError:
            return ""

    def printed(self, *command: str) -> str | None:
        """Return what a program prints; None where it is not there, fails, or takes too long."""
        if not self.is_live:
            return self.text("commands/" + re.sub(r"[^A-Za-z0-9]+", "_", " ".join(command)))
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=_COMMAND_S,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    def back_ends(self) -> str | None:
        """Return what :func:`routecast._core.back_ends` says of the machine; None where nobody recorded it."""
        if not self.is_live:
            return self.text("commands/back_ends")
        from routecast import _core

        return _core.back_ends()

    def finds(self, program: str) -> bool:
        """Whether a program can be called, from the folders of the administrator too."""
        folders = [
            *os.environ.get("PATH", "").split(os.pathsep),
            "/usr/local/sbin",
            "/usr/sbin",
            "/sbin",
            "/usr/lib/frr",
        ]
        if self.is_live:
            return shutil.which(program, path=os.pathsep.join(folders)) is not None
        return any(
            self.exists(f"{folder}/{program}") for folder in ("usr/bin", "usr/sbin", "usr/local/bin", "usr/lib/frr")
        )

    def stat(self, seconds: float = 1.0) -> tuple[str, str, float]:
        """Return two readings of ``/proc/stat`` and the seconds between them; taken once."""
        if self._stat is None:
            first, start = self.text("proc/stat") or "", time.monotonic()
            if self.is_live:
                time.sleep(seconds)
                self._stat = (first, self.text("proc/stat") or "", time.monotonic() - start)
            else:
                self._stat = (first, self.text("proc/stat.later") or first, seconds)
        return self._stat

    @property
    def online(self) -> tuple[int, ...]:
        """Cores that are online."""
        return cores_of(self.text("sys/devices/system/cpu/online") or "")

    def _physical(self) -> tuple[str, ...]:
        names = self.names("sys/class/net")
        return tuple(name for name in names if self.exists(f"sys/class/net/{name}/device"))


def cores_of(text: str) -> tuple[int, ...]:
    """Read a list of cores as the kernel writes it; what is no such list gives none.

    Examples
    --------
    >>> cores_of("0-2,7")
    (0, 1, 2, 7)
    """
    cores: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or int(last or first) >= _MOST_CORES:
            continue
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)
