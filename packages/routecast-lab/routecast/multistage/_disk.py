"""What a router keeps on disk: its file, its members, its events, and what a later process must take down."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import state
from routecast.multistage._layout import Layout
from routecast.multistage._membership import Membership
from routecast.quantity.whole_file import write_whole

__all__ = ["FOLDER_ENDING", "Disk", "Events", "NotWritten"]

FOLDER_ENDING = ".multistage"
_MAX_EVENTS = 10_000
_KEPT_EVENTS = 5_000


class NotWritten(EnvironmentProblem):
    """The members cannot be written to disk, so that a change of them must not be made."""


class Disk:
    """The files of a router of this name."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.name = layout.file.name
        self.bed = state.BedState(bed=self.name)
        self.folder = state.FOLDER / f"{self.name}{FOLDER_ENDING}"

    @property
    def pins(self) -> Path:
        """Folder of the programs of all elements, in a BPF file system."""
        return self.folder / "pins"

    def left(self) -> state.BedState | None:
        """Return what an earlier process left; None if nothing."""
        return state.BedState.read(self.name)

    def has_membership(self) -> bool:
        """Whether an earlier process finished the router."""
        return self._membership.exists()

    @property
    def _membership(self) -> Path:
        return self.folder / "membership.json"

    def begin(self) -> None:
        """Record that this process makes the router."""
        self.bed.pid_start_ticks = state.start_ticks(self.bed.pid)
        self.bed.folder = str(self.folder)
        self.bed.mounts = [str(self.pins)]

    def adopt(self, left: state.BedState) -> None:
        """Record that this process goes on with what an earlier one left."""
        left.pid, left.pid_start_ticks = self.bed.pid, state.start_ticks(self.bed.pid)
        self.bed = left

    def write_namespaces(self, membership: Membership) -> None:
        """Record the namespaces of all elements."""
        routers = [self._layout.netns(name) for name in membership.members]
        self.bed.namespaces = [*self._layout.base_namespaces(), *routers]
        self.bed.write()

    def write_membership(self, membership: Membership) -> None:
        """Write the members to disk before this returns.

        Raises NotWritten: it cannot be written; the file that is there stays whole.
        """
        try:
            membership.write(self._membership)
        except OSError as problem:
            raise NotWritten(
                f"{self._membership}: cannot be written: {problem.strerror}; the change is not made"
            ) from problem

    def read_membership(self) -> Membership:
        """Return the members on disk.

        Raises EnvironmentProblem: the file is damaged.
        """
        try:
            return Membership.read(self._membership)
        except (OSError, ValueError, TypeError, KeyError) as problem:
            raise EnvironmentProblem(
                f"{self._membership}: cannot be read ({problem}); `routecast multistage down {self.name}` takes it down"
            ) from problem

    @property
    def text(self) -> Path:
        """The file that the router is up from."""
        return self.folder / "router.multistage.toml"

    def events(self) -> Events:
        """Return the events, with those of earlier processes."""
        return Events(self.folder / "events.jsonl")


class Events:
    """Events with their times and numbers, in memory and in a file of a line each; the oldest go first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[dict[str, Any]] = []
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        for line in text.splitlines():
            try:
                row = json.loads(line)
                self._rows.append({**row, "number": int(row["number"])})
            except (ValueError, KeyError, TypeError):
                continue
        self._ends_cut = bool(text) and not text.endswith("\n")  # a killed process was writing
        self._number = self._rows[-1]["number"] if self._rows else 0

    def add(self, element: str, what: str, detail: str) -> dict[str, Any]:
        """Keep an event, and return it with its number and its time, s since 1970."""
        self._number += 1
        row = {"number": self._number, "time_unix_s": time.time(), "element": element, "what": what, "detail": detail}
        self._rows.append(row)
        try:
            if len(self._rows) > _MAX_EVENTS or self._ends_cut:
                self._ends_cut = False
                self._rows = self._rows[-_KEPT_EVENTS:]
                write_whole(self._path, "".join(json.dumps(kept) + "\n" for kept in self._rows))
            else:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        except OSError:
            pass  # a full disk keeps no events; the router goes on
        return row

    def after(self, number: int) -> list[dict[str, Any]]:
        """Return the events after this number."""
        return [row for row in self._rows if row["number"] > number]
