"""The closed form by the number of task units that share one pool: CPU seconds to read, check and solve a router.

::

    .venv/bin/python benches/solve.py

A router file of every shape is written for 300, 1,000 and 3,000 task units on four cores; the exponent is the slope of
the logarithms from the least to the greatest.
"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path

from routecast.evaluate.solve import Solve
from routecast.router.files import read_router_and_load

__all__ = ["main"]

GOAL_EXPONENT = 1.2
SIZES = (300, 1000, 3000)
SHAPES = {
    "beside each other": ('{ kind = "fifo" }', ""),
    "one after the other": ('{ kind = "fifo" }', ""),
    "interrupts, fair turns": ('{ kind = "fair", quantum = "3 ms" }', 'activation = { kind = "interrupt" }'),
    "threads under Linux": ('{ kind = "linux", quantum = "3 ms" }', 'activation = { kind = "thread" }'),
    "polling under Linux": ('{ kind = "linux", quantum = "3 ms" }', 'activation = { kind = "polling" }'),
}


def router_file(shape: str, tasks: int) -> str:
    """Return a router file of so many task units on one pool of four units."""
    policy, activation = SHAPES[shape]
    names = [f"work {number}" for number in range(tasks)]
    listed = ", ".join(f'"{name}"' for name in names)
    out = '{ kind = "egress", to = ["port 0", "port 1"] }'
    in_row = shape == "one after the other"
    first = '{ to = ["work 0"] }' if in_row else f'{{ kind = "rss", to = [{listed}] }}'
    rate = "1 kpps" if in_row else "1 Mpps"
    text = [f'[[port]]\nname = "port {port}"\nlink = "100 Gbit/s"\nentry = "in"' for port in range(2)]
    text += [f'[[pool]]\nname = "cpu"\nunits = 4\npolicy = {policy}', f'[[task]]\nname = "in"\nroute = {first}']
    for number, name in enumerate(names):
        onward = f'{{ to = ["work {number + 1}"] }}' if in_row and number + 1 < tasks else out
        text.append(
            f'[[task]]\nname = "{name}"\nneeds = [{{ pool = "cpu" }}]\nservice = {{ per_packet = "1 us" }}\n'
            f"{activation}\nroute = {onward}"
        )
    return "\n".join([*text, f'[load]\nrate = "{rate}"\nflows = {{ count = 64 }}\n'])


def spent_s(shape: str, tasks: int) -> float:
    """Return the CPU seconds of reading, checking and solving, the best of two."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "many.router.toml")
        path.write_text(router_file(shape, tasks))
        spent = []
        for _ in range(2):
            start = time.process_time()
            router, load = read_router_and_load(path)
            assert load is not None
            Solve(model=router).trial(load, 1.0)
            spent.append(time.process_time() - start)
    return min(spent)


def main() -> None:
    """Print a line for each shape."""
    print(f"{'task units':<24}" + "".join(f"{size:>9,}" for size in SIZES) + f"  exponent (goal {GOAL_EXPONENT})")
    for shape in SHAPES:
        seconds = [spent_s(shape, size) for size in SIZES]
        exponent = math.log(seconds[-1] / seconds[0]) / math.log(SIZES[-1] / SIZES[0])
        print(f"{shape:<24}" + "".join(f"{one:>7.2f} s" for one in seconds) + f"{exponent:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
