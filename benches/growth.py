"""CPU time of ``routecast solve`` by the number of task units: reading the file, checking the model, the closed form.

Imports are left out, and so is a first small router that warms up. Each repetition has names of its own, so that none
finds what the one before has kept. The exponent is the slope of log time over log size, 1 for time that grows with the
work.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from routecast.evaluate.solve import Solve
from routecast.router.files import read_router_and_load

__all__ = ["main"]

EXPONENT = 1.2
"""Goal for each shape."""

HEAD = """
[[port]]
name = "in"
link = "100 Gbit/s"
entry = "split"

[[port]]
name = "out"
link = "100 Gbit/s"
entry = "split"

[[pool]]
name = "cpu"
units = 4
policy = {policy}

[load]
rate = "{rate}"
frames = "64 B"
flows = {{ kind = "crafted", count = 4 }}
arrivals = {{ kind = "poisson" }}

[[task]]
name = "split"
route = {{ kind = "{route}", to = [{to}] }}
"""

TASK = """
[[task]]
name = "{name}"
needs = [{{ pool = "cpu" }}]
service = {{ per_packet = "{cost}", variation = "exponential" }}
activation = {{ kind = "{activation}" }}
route = {route}
"""

FIFO, FAIR = '{ kind = "fifo" }', '{ kind = "fair", quantum = "1 ms" }'
LINUX = '{ kind = "linux", quantum = "3 ms" }'
OUT = '{ kind = "egress", to = ["in", "out"] }'


def parallel(tasks: int, word: str, *, policy: str = FIFO, rate: str = "1 Mpps", activation: str = "dedicated") -> str:
    """Return a router whose task units all work side by side on one pool."""
    names = [f"{word} {number}" for number in range(tasks - 1)]
    head = HEAD.format(policy=policy, rate=rate, route="round_robin", to=", ".join(f'"{name}"' for name in names))
    return head + "".join(TASK.format(name=name, cost="1 us", route=OUT, activation=activation) for name in names)


def pairs(tasks: int, word: str, *, policy: str = FIFO, rate: str = "1 Mpps") -> str:
    """Return a router of pairs, receive and work, all on one pool."""
    numbers = range((tasks - 1) // 2)
    to = ", ".join(f'"{word} rx {number}"' for number in numbers)
    text = HEAD.format(policy=policy, rate=rate, route="round_robin", to=to)
    for number in numbers:
        route = f'{{ to = ["{word} work {number}"] }}'
        text += TASK.format(name=f"{word} rx {number}", cost="200 ns", activation="dedicated", route=route)
        text += TASK.format(name=f"{word} work {number}", cost="1 us", activation="dedicated", route=OUT)
    return text


def row(tasks: int, word: str) -> str:
    """Return a router whose task units stand one behind the other on one pool."""
    names = [f"{word} {number}" for number in range(tasks - 1)]
    text = HEAD.format(policy=FIFO, rate="1 kpps", route="single", to=f'"{names[0]}"')
    for name, after in zip(names, [*names[1:], ""], strict=True):
        text += TASK.format(
            name=name, cost="200 ns", activation="dedicated", route=f'{{ to = ["{after}"] }}' if after else OUT
        )
    return text


def multicore(tasks: int, word: str) -> str:
    """Return the multi-core router in short form, each core with a unit of its own."""
    return f"""
builder = "multicore"
name = "{word}"
cores = {tasks - 1}
distribution = "round_robin"
service = {{ per_packet = "1 us" }}

[load]
rate = "1 Mpps"
arrivals = {{ kind = "poisson" }}
"""


SHAPES: dict[str, Callable[[int, str], str]] = {
    "parallel, fifo": parallel,
    "parallel, fifo, overload": lambda tasks, word: parallel(tasks, word, rate="9 Mpps"),
    "parallel, fair": lambda tasks, word: parallel(tasks, word, policy=FAIR),
    "parallel, fair, overload": lambda tasks, word: parallel(tasks, word, policy=FAIR, rate="9 Mpps"),
    "pairs, fifo": pairs,
    "pairs, fifo, overload": lambda tasks, word: pairs(tasks, word, rate="9 Mpps"),
    "pairs, fair": lambda tasks, word: pairs(tasks, word, policy=FAIR),
    "threads, linux": lambda tasks, word: parallel(tasks, word, policy=LINUX, activation="thread"),
    "polling, linux": lambda tasks, word: parallel(tasks, word, policy=LINUX, activation="polling"),
    "row, fifo": row,
    "multicore": multicore,
}


def solve_s(text: str, folder: Path) -> float:
    """Return the CPU time from a router file to its trial."""
    path = folder / "big.router.toml"
    path.write_text(text)
    gc.collect()
    begin = time.process_time()
    model, load = read_router_and_load(path)
    assert load is not None
    Solve(model=model).trial(load, 1.0)
    return time.process_time() - begin


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each shape: least time of the repetitions by size, and the exponent beside the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="+", default=[300, 1000, 3000])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    chosen = parser.parse_args(arguments)
    print(f"{'CPU s by task units':<26}" + "".join(f"{tasks:>9}" for tasks in chosen.tasks) + "  exponent")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for shape in chosen.shapes:
            make = SHAPES[shape]
            solve_s(make(10, "warm"), folder)
            # Sizes in turns: other work on the machine comes and goes.
            turns = [
                [solve_s(make(tasks, f"take {turn}"), folder) for tasks in chosen.tasks]
                for turn in range(chosen.repetitions)
            ]
            taken = [min(of_size) for of_size in zip(*turns, strict=True)]
            line = f"{shape:<26}" + "".join(f"{one_s:>9.3f}" for one_s in taken)
            if len(taken) > 1:
                slope = float(np.polyfit(np.log(chosen.tasks), np.log(taken), 1)[0])
                line += f"  {slope:.2f} {'meets' if slope <= EXPONENT else 'misses'} {EXPONENT}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
