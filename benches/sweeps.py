"""Sweeps of the multi-core router: 10,000 solved points, 1,000 simulated ones, and what executors add to the work.

The first table is whole experiments, from the file to answers on disk. ``CPU`` is user and system time of this process
and its workers, which other work on the machine disturbs less than wall time; ``CPU / cores`` is what an idle machine
could come near. In the second the executors answer the same runs in turns, after each has answered them once; the
cluster is a Dask scheduler and its workers on this machine, a process each.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from routecast.evaluate.executor import Workers, chosen_executor, cores, open_executor
from routecast.experiment import read_experiment, run_experiment
from routecast.experiment.answer import answer
from routecast.experiment.model import Answer, Experiment, Run
from routecast.experiment.runs import runs_of
from routecast.experiment.sweep import sweep

__all__ = ["main"]

ROUTER = Path(__file__).resolve().parents[1] / "examples" / "multicore.router.toml"

SOLVED_S, SIMULATED_S = 5.0, 10.0
"""What 10,000 solved points and 1,000 simulated ones of 1e5 packets may take on two cores."""

CUBE = """
name = "cube"
router = {router}
evaluator = "{evaluator}"
duration = "{duration}"

[set]
"load.rate" = "{rate}"

[design]
kind = "latin_hypercube"
points = {points}

[[factor]]
name = "work for a frame"
path = "service.per_packet"
between = ["200 ns", "800 ns"]

[[factor]]
name = "work for a byte"
path = "service.per_byte"
between = ["5 ps/B", "100 ps/B"]
log = true

[[factor]]
name = "contention"
path = "contention.sigma"
between = [0.0, 0.1]

[[factor]]
name = "frame size"
path = "load.frames"
between = ["64 B", "1518 B"]

[[factor]]
name = "cores"
path = "cores"
levels = [2, 4, 8]

[[response]]
name = "throughput"
of = "l2_bps"
"""


@dataclass(frozen=True, slots=True)
class Took:
    """What a piece of work took."""

    wall_s: float
    cpu_s: float


def cpu_s() -> float:
    """Return user and system time of this process and its children, those that have ended included."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used) + sum(map(_child_s, Path("/proc").glob("[0-9]*")))


def _child_s(process: Path) -> float:
    try:
        # proc(5): after the name in parentheses state, parent, …; user and system time are fields 14 and 15.
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    if int(fields[1]) != os.getpid():
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], object]) -> Took:
    """Call and return what it took."""
    wall, cpu = time.perf_counter(), cpu_s()
    work()
    return Took(time.perf_counter() - wall, cpu_s() - cpu)


def experiment_of(evaluator: str, points: int, *, rate: str, duration: str) -> Experiment:
    """Return a Latin hypercube of the multi-core router."""
    text = CUBE.format(router=json.dumps(str(ROUTER)), evaluator=evaluator, points=points, rate=rate, duration=duration)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cube.experiment.toml"
        path.write_text(text)
        return read_experiment(path)


def whole(evaluator: str, points: int, *, rate: str, duration: str, workers: int) -> None:
    """Run an experiment from its file to answers on disk."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = experiment_of(evaluator, points, rate=rate, duration=duration)
        results = run_experiment(experiment, Path(folder), workers=workers)
    failed = sum(bool(item.problem) for item in results.answers)
    if failed:
        first = next(answer.problem for answer in results.answers if answer.problem)
        raise SystemExit(f"{failed} runs have no answer: {first}")


def answered(runs: Sequence[Run], executor: Workers) -> tuple[Answer, ...]:
    """Sweep runs as an experiment does, answers on disk."""
    with tempfile.TemporaryDirectory() as folder:
        return sweep(runs, answer, executor=executor, out=Path(folder))


def alone(runs: Sequence[Run]) -> tuple[Answer, ...]:
    """Answer runs one after the other, without any executor."""
    return tuple(map(answer, runs))


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Run a Dask scheduler and its workers on this machine; yield what the executor is called."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        scheduler_file = folder / "scheduler.json"
        where = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(scheduler_file)]
        stack.enter_context(started("distributed.cli.dask_scheduler", *where))
        while not scheduler_file.exists() or not scheduler_file.read_text().rstrip().endswith("}"):
            time.sleep(0.05)
        address = json.loads(scheduler_file.read_text())["address"].removeprefix("tcp://")
        how = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
        for _ in range(workers):
            stack.enter_context(started("distributed.cli.dask_worker", address, *how))
        with open_executor(f"dask://{address}") as executor:
            while executor.workers < workers:
                time.sleep(0.2)
        yield f"dask://{address}"


@contextmanager
def started(*arguments: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def goals(workers: int) -> None:
    """Print the two sweeps that have a goal."""
    print(f"{'whole experiment':45}{'executor':>11}{'wall':>9}{'CPU':>9}{'CPU / cores':>13}   goal on two cores")
    for name, evaluator, points, rate, duration, goal_s in (
        ("10,000 points, solved", "solve", 10_000, "8 Mpps", "10 ms", SOLVED_S),
        ("1,000 points, 1e5 packets each, simulated", "simulate", 1000, "1 Mpps", "100 ms", SIMULATED_S),
    ):
        run = partial(whole, evaluator, points, rate=rate, duration=duration, workers=workers)
        took = timed(run)
        missed = "" if took.wall_s <= goal_s else ", missed"
        spec = chosen_executor("solve" if evaluator == "solve" else "simulate", points)
        times = f"{took.wall_s:7.2f} s{took.cpu_s:7.2f} s{took.cpu_s / workers:11.2f} s"
        print(f"{name:45}{spec:>11}{times}   {goal_s:g} s{missed}")


def overheads(workers: int, points: int, repetitions: int) -> None:
    """Print what each executor takes for the same runs, beside none; all are open, with everything imported."""
    runs = runs_of(experiment_of("solve", points, rate="8 Mpps", duration="10 ms"))
    expected = alone(runs)
    with ExitStack() as stack:
        dask = stack.enter_context(cluster(workers))
        ways: dict[str, Callable[[], object]] = {"none": partial(alone, runs)}
        starts = {"none": 0.0}
        for spec in ("threads", "processes", dask):
            name = spec.partition(":")[0]
            before = time.perf_counter()
            executor = stack.enter_context(open_executor(spec, workers))
            sweep(runs[:1], answer, executor=executor)
            starts[name] = time.perf_counter() - before
            ways[name] = partial(answered, runs, executor)
            if ways[name]() != expected:
                raise SystemExit(f"{name}: other answers")
        taken: dict[str, list[Took]] = {name: [] for name in ways}
        for _ in range(repetitions):
            for name, way in ways.items():
                taken[name].append(timed(way))
    print(f"\n{points:,} solved points, {workers} workers, {repetitions} times in turns; the same answers")
    print(f"{'executor':12}{'first run':>11}{'wall':>9}{'CPU':>9}   CPU to none, to processes")
    for name, mine in taken.items():
        ratios = [
            median(item.cpu_s / other.cpu_s for item, other in zip(mine, taken[base], strict=True))
            for base in ("none", "processes")
        ]
        wall, cpu = median(entry.wall_s for entry in mine), median(entry.cpu_s for entry in mine)
        print(f"{name:12}{starts[name]:9.2f} s{wall:7.2f} s{cpu:7.2f} s{ratios[0]:14.2f}{ratios[1]:14.2f}")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--points", type=int, default=3000, help="of the comparison of executors")
    parser.add_argument("--repetitions", type=int, default=3)
    wanted = parser.parse_args()
    print(f"{cores()} cores, {wanted.workers} workers, load of the machine before {os.getloadavg()[0]:.1f}\n")
    goals(wanted.workers)
    overheads(wanted.workers, wanted.points, wanted.repetitions)


if __name__ == "__main__":
    main()
