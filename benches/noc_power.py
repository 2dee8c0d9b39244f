"""``routecast noc power`` by the size of a mesh: CPU seconds and peak memory of the whole command.

Uniform traffic at two loads: every node sends to every other, a million flows on 32 x 32 routers. Each size is a
process of its own, imports included (about a second).
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

GOAL_CPU_S, GOAL_MIB, GOAL_SIDE = 20.0, 1024.0, 32

_FILE = """
[topology]
columns = {side}
rows = {side}

[traffic]
pattern = "uniform"
load = [0.5, 1.0]
"""


def spent(side: int, policies: str) -> tuple[float, float]:
    """Return CPU seconds and peak MiB of one run of the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mesh.noc.toml")
        path.write_text(_FILE.format(side=side))
        command = [sys.executable, "-m", "routecast", "noc", "power", str(path), "--routing", policies, "--json"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each set of routings and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 24, 32], help="routers on a side")
    parser.add_argument(
        "--routings",
        nargs="+",
        default=["xy,2p_es,2p_rs", "xy,2p_rs,4p_es", "xy,2p_es,adaptive"],
        help="routings of a run, with commas between",
    )
    chosen = parser.parse_args(arguments)
    print(f"{'routings':>20} {'size':>8} {'CPU s':>7} {'MiB':>6}  exponent in routers, from the size before")
    for policies in chosen.routings:
        before: tuple[int, float] | None = None
        for side in chosen.sizes:
            cpu_s, mib = spent(side, policies)
            exponent = "" if before is None else f"{math.log(cpu_s / before[1], (side / before[0]) ** 2):.2f}"
            missed = side == GOAL_SIDE and (cpu_s > GOAL_CPU_S or mib > GOAL_MIB)
            goal = f"  missed: {GOAL_CPU_S:g} s and {GOAL_MIB:g} MiB" if missed else ""
            print(f"{policies:>20} {side:>3} x {side:<2} {cpu_s:>7.2f} {mib:>6.0f}  {exponent}{goal}", flush=True)
            before = side, cpu_s


if __name__ == "__main__":
    main()
