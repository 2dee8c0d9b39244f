"""Times that a user waits for: importing the package, the whole study meyer2014. Wall time, medians."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

__all__ = ["import_times_s", "study_times_s"]

_IMPORT = "import time; begin = time.perf_counter(); import routecast; print(time.perf_counter() - begin)"


def import_times_s(repetitions: int) -> list[float]:
    """Import routecast in a fresh interpreter, several times; the first, which may find a cold disk, is left out."""
    command = [sys.executable, "-c", _IMPORT]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(repetitions + 1)]
    return [float(run.stdout) for run in runs[1:]]


def study_times_s(repetitions: int) -> list[float]:
    """Run the study meyer2014 into a fresh folder, several times."""
    times = []
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            begin = time.perf_counter()
            command = [sys.executable, "-m", "routecast", "study", "meyer2014", "--out", f"{folder}/study"]
            subprocess.run(command, capture_output=True, check=True)
            times.append(time.perf_counter() - begin)
    return times


def spread(times_s: list[float]) -> str:
    """Return min, median and max in words."""
    middle = statistics.median(times_s)
    return f"{middle:.3g} s ({min(times_s):.3g} to {max(times_s):.3g})"
