"""What starting costs: CPU time of a command over that of importing numpy and pydantic, both in fresh interpreters.

The bytecode of routecast and of its libraries is written first, as it is where they are installed.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GOALS = {"--help": 1.0, "solve examples/multicore.router.toml": 2.5}
REPETITIONS = 15
ROOT = Path(__file__).parents[1]


def cpu_s(arguments: list[str], environment: dict[str, str]) -> float:
    """Return the CPU time of a run of Python, user and system."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=None, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Run all of them in turns and print the ratio of each command, and its goal."""
    libraries = ["-c", "import numpy, pydantic"]
    commands = {command: ["-m", "routecast", *command.split()] for command in GOALS}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        for arguments in (libraries, *commands.values()):
            cpu_s(arguments, environment)
        ratios: dict[str, list[float]] = {command: [] for command in commands}
        for _ in range(REPETITIONS):
            of_libraries_s = cpu_s(libraries, environment)
            for command, arguments in commands.items():
                ratios[command].append(cpu_s(arguments, environment) / of_libraries_s)
    for command, result in ratios.items():
        spread = f"{statistics.median(result):.2f} ({min(result):.2f} to {max(result):.2f})"
        print(f"routecast {command}: {spread} times `import numpy, pydantic`; goal {GOALS[command]:g}")


if __name__ == "__main__":
    main()
