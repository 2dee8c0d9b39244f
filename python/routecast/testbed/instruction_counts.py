"""Instructions and memory accesses per packet of a real function, as valgrind's cachegrind counts them.

PacketBench (Ramaswamy & Wolf 2003) and CommBench (Wolf & Franklin 2000) describe network functions so. A count of a
whole process holds the interpreter, the making of tables and the filling of rings; two runs that differ only in how
many packets they process differ by the packets alone::

    per packet = (count(many) − count(few)) / (many − few)

An instruction that reads a place of memory and writes it back counts as one read (cachegrind's manual, "Dr").
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from routecast.errors import EnvironmentProblem
from routecast.load.offered import OfferedLoad
from routecast.testbed.in_memory import InMemory

__all__ = ["PacketCounts", "count_instructions"]

FEW_PACKETS = 1024
MANY_PACKETS = 4096
_CHILD = "import sys\nfrom routecast import _core\n_core.run_function(sys.argv[1])\n"
_CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
"""Some caches, so that those of a host that cachegrind does not know need no guess; counts do not depend on them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketCounts:
    """What one packet takes on average.

    Parameters
    ----------
    instructions, reads, writes : float
        Executed instructions, and those of them that read or write memory.
    packets : int
        Over how many the counts are a mean.
    """

    instructions: float
    reads: float
    writes: float
    packets: int


def count_instructions(
    function: InMemory, load: OfferedLoad, *, progress: Callable[[float], object] | None = None
) -> PacketCounts:
    """Count what a packet of ``load`` takes; runs the function twice under cachegrind, some fifty times slower.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        valgrind is missing, or it fails.
    """
    if shutil.which("valgrind") is None:
        raise EnvironmentProblem("counting instructions needs valgrind: apt install valgrind")
    few = _counts(function.request(load, 1.0, FEW_PACKETS))
    if progress is not None:
        progress(0.5)
    many = _counts(function.request(load, 1.0, MANY_PACKETS))
    if progress is not None:
        progress(1.0)
    packets = MANY_PACKETS - FEW_PACKETS
    return PacketCounts(
        instructions=(many["Ir"] - few["Ir"]) / packets,
        reads=(many["Dr"] - few["Dr"]) / packets,
        writes=(many["Dw"] - few["Dw"]) / packets,
        packets=packets,
    )


def _counts(request: Mapping[str, object]) -> dict[str, int]:
    """Return cachegrind's sums of a run, by event."""
    with tempfile.TemporaryDirectory(prefix="routecast-counts-") as folder:
        out = Path(folder) / "cachegrind.out"
        command = [
            "valgrind",
            "--tool=cachegrind",
            "--cache-sim=yes",
            *_CACHES,
            f"--cachegrind-out-file={out}",
            sys.executable,
            "-c",
            _CHILD,
            json.dumps(request, allow_nan=False),
        ]
        # One order of dictionaries and sets, so that both runs do the same before and after the packets.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise EnvironmentProblem(f"valgrind failed: {_last_words(done.stderr)}")
        return _sums(out.read_text(encoding="utf-8"))


def _sums(text: str) -> dict[str, int]:
    """Read the names and sums of the events from cachegrind's output file."""
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    summary = re.search(r"^summary: (.*)$", text, re.MULTILINE)
    if events is None or summary is None:
        raise EnvironmentProblem(
            "valgrind wrote a file that is not cachegrind's: its version is unknown here"
        )
    return {name: int(count) for name, count in zip(events[1].split(), summary[1].split(), strict=False)}


def _last_words(text: str) -> str:
    """Return the last line that valgrind did not write itself, else its last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("==")]
    return (said or lines or ["it said nothing"])[-1]
