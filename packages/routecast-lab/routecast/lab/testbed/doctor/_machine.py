"""The machine that checks examine: its files under a root folder and the output of its programs.

The root is ``/`` for this machine. For a recorded machine it is a folder with the same files: ``commands/`` holds the
output of programs, in files named by the command with ``_`` for every other character than letters and digits, and
``proc/stat.later`` holds ``proc/stat`` as it was a second later.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

from routecast.lab.testbed.placement import cores_of
from routecast.quantity.schema import field, value

_COMMAND_S = 10.0
_STAT_S = 1.0


class State(StrEnum):
    """The verdict of a check."""

    FINE = "fine"
    DISTORTS = "distorts"
    MISSING = "missing"
    UNSEEN = "unseen"


@value
class Finding:
    """The result of one check."""

    check: str = field('Name of the check: ``"governor"``, or with its interface ``"offloads eth1"``')
    state: State = field(
        "``fine``; ``distorts``: measurements are wrong; ``missing``: something cannot be done; ``unseen``: this "
        "process may not look, or the machine does not report it"
    )
    observation: str = field("Observation of the check")
    effect: str = field("Effect on measurements", default="")
    remedy: str = field("Command that fixes it; routecast prints it and never executes it", default="")
    advice: str = field("Advice where no command fixes it", default="")


def fine(check: str, observation: str, effect: str = "") -> Finding:
    """Return the finding that nothing is wrong; ``effect`` is a remark."""
    return Finding(check=check, state=State.FINE, observation=observation, effect=effect)


def distorts(check: str, observation: str, effect: str, *, remedy: str = "", advice: str = "") -> Finding:
    """Return the finding that measurements are wrong on this machine."""
    return Finding(
        check=check, state=State.DISTORTS, observation=observation, effect=effect, remedy=remedy, advice=advice
    )


def missing(check: str, observation: str, effect: str, *, remedy: str = "", advice: str = "") -> Finding:
    """Return the finding that something cannot be done on this machine."""
    return Finding(
        check=check, state=State.MISSING, observation=observation, effect=effect, remedy=remedy, advice=advice
    )


def unseen(check: str, observation: str, effect: str = "") -> Finding:
    """Return the finding that the check could not see the state of the machine."""
    return Finding(check=check, state=State.UNSEEN, observation=observation, effect=effect)


class ExaminedMachine:
    """A machine to examine.

    ``root`` is the folder of its files. ``interfaces`` are the interfaces that measure (empty: all that have a device
    behind them), ``cores`` the cores that measure (empty: not chosen yet).
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
        """Return the text of a file without surrounding space; None if it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text(encoding="utf-8", errors="replace").strip()
        except (OSError, ValueError):
            return None

    def number(self, path: str) -> int | None:
        """Return the integer in a file; None if there is none."""
        text = self.text(path)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def exists(self, path: str) -> bool:
        """Whether a path exists, readable or not."""
        return os.path.lexists(self.root / path.lstrip("/"))

    def names(self, folder: str, pattern: str = "*") -> tuple[str, ...]:
        """Return the names in a folder that match a pattern, in natural order: ``cpu2`` before ``cpu10``."""

        def natural(name: str) -> list[int | str]:
            return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]

        try:
            return tuple(sorted((path.name for path in (self.root / folder.lstrip("/")).glob(pattern)), key=natural))
        except OSError:
            return ()

    def link_target(self, link: str) -> str:
        """Return the last part of the target of a symbolic link; empty if it is none."""
        try:
            return Path(os.readlink(self.root / link.lstrip("/"))).name
        except OSError:
            return ""

    def output(self, *command: str) -> str | None:
        """Return the output of a program; None if it is missing, fails, or takes too long."""
        if not self.is_live:
            return self.text("commands/" + re.sub(r"[^A-Za-z0-9]+", "_", " ".join(command)))
        try:
            completed = subprocess.run(
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
        return completed.stdout if completed.returncode == 0 else None

    def back_ends(self) -> str | None:
        """Return the JSON of :func:`routecast.lab._lab.back_ends`; None if it was not recorded."""
        if not self.is_live:
            return self.text("commands/back_ends")
        from routecast.lab import _lab

        return _lab.back_ends()

    def graphics(self) -> str | None:
        """Return JSON of the graphics processors for lanes, or of why there are none; None: not recorded."""
        if not self.is_live:
            return self.text("commands/graphics")
        from routecast.evaluate.simulate.graphics import GraphicsProblem, adapters

        try:
            return json.dumps([{"text": str(adapter), **asdict(adapter)} for adapter in adapters()])
        except GraphicsProblem as problem:
            return json.dumps(str(problem))

    def has_program(self, program: str) -> bool:
        """Whether a program can be called, from ``PATH`` or the administrator's folders."""
        if self.is_live:
            folders = (os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/frr")
            return shutil.which(program, path=os.pathsep.join(folders)) is not None
        return any(
            self.exists(f"{folder}/{program}") for folder in ("usr/bin", "usr/sbin", "usr/local/bin", "usr/lib/frr")
        )

    def stat(self) -> tuple[str, str, float]:
        """Return two readings of ``/proc/stat`` and the seconds between them; further calls return the same."""
        if self._stat is None:
            first, start = self.text("proc/stat") or "", time.monotonic()
            if self.is_live:
                time.sleep(_STAT_S)
                self._stat = (first, self.text("proc/stat") or "", time.monotonic() - start)
            else:
                self._stat = (first, self.text("proc/stat.later") or first, _STAT_S)
        return self._stat

    @property
    def online(self) -> tuple[int, ...]:
        """Cores that are online."""
        return cores_of(self.text("sys/devices/system/cpu/online") or "")

    def _physical(self) -> tuple[str, ...]:
        names = self.names("sys/class/net")
        return tuple(name for name in names if self.exists(f"sys/class/net/{name}/device"))
