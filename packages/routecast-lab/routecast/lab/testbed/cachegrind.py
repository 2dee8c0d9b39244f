"""Counts of a program's instructions and memory accesses by valgrind's cachegrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.progress import ShareProgress

__all__ = ["CACHES", "added_events", "require_valgrind"]

CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
"""Fixed cache sizes, since cachegrind would otherwise guess those of the host; counts do not depend on them."""


def require_valgrind() -> None:
    """Raise EnvironmentProblem if valgrind is missing."""
    if shutil.which("valgrind") is None:
        raise EnvironmentProblem("counting instructions needs valgrind: apt install valgrind")


def added_events(
    baseline: Sequence[str], extended: Sequence[str], *options: str, on_progress: ShareProgress | None = None
) -> dict[str, int]:
    """Run two commands under cachegrind and return how many more events the second one has, by event.

    The events are ``Ir`` instructions, ``Dr`` reads, ``Dw`` writes, …. A command takes some fifty times longer under
    cachegrind.

    Raises EnvironmentProblem: valgrind is missing, or it fails.
    """
    require_valgrind()
    sums = []
    for number, command in enumerate((baseline, extended)):
        sums.append(_event_sums(command, *options))
        if on_progress is not None:
            on_progress(0.5 * (number + 1))
    return {event: count - sums[0][event] for event, count in sums[1].items()}


def _event_sums(command: Sequence[str], *options: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="routecast-counts-") as folder:
        out = Path(folder) / "cachegrind.out"
        counting = ["valgrind", "--tool=cachegrind", *options, f"--cachegrind-out-file={out}", *command]
        # A fixed order of dictionaries and sets, so that two runs differ by the packets alone.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        completed = subprocess.run(
            counting, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        if completed.returncode != 0:
            raise EnvironmentProblem(f"valgrind failed: {_last_line(completed.stderr)}")
        return _parse_sums(out.read_text(encoding="utf-8"))


def _parse_sums(text: str) -> dict[str, int]:
    """Read the names and sums of the events from cachegrind's output file."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    summary = re.search(r"^summary: (.*)$", text, re.MULTILINE)
    if events is None or summary is None:
        raise EnvironmentProblem("valgrind wrote a file that is not cachegrind's: its version is unknown here")
    return {name: int(count) for name, count in zip(events[1].split(), summary[1].split(), strict=False)}


def _last_line(text: str) -> str:
    """Return the last line of the program's errors, or valgrind's last line if the program wrote none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    program_lines = [line for line in lines if not line.startswith("==")]
    return (program_lines or lines or ["it printed nothing"])[-1]
