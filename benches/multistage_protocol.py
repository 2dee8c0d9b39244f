"""The protocol of a multistage router in simulated worlds: hours under faults, and whether planted defects are found.

``--hours`` of simulated time in worlds of one hour each, whose seeds count up from ``--seed``; ``--replay SEED`` prints
what happens in one world. ``--defects`` plants the changes of :mod:`routecast.multistage.tests.protocol_defects` one by
one into a copy of the package and looks for the first violation.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from routecast.multistage.tests.protocol_world import Violation, World

HOUR_S = 3600.0


def world_of(seed: int) -> tuple[float, Counter[str], list[Violation]]:
    """Return the simulated time, the faults and the violations of one world."""
    world = World(seed)
    violations = world.run(HOUR_S)
    return world.now_s, world.faults, violations


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; return 1 if there are violations, or defects that are not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--replay", type=int)
    parser.add_argument("--defects", action="store_true")
    options = parser.parse_args(arguments)
    if options.replay is not None:
        world = World(options.replay, on_event=lambda now_s, text: print(f"{now_s:10.3f} {text}"))
        return bool(world.run(HOUR_S))
    if options.defects:
        from routecast.multistage.tests.protocol_defects import search_all

        return search_all(options.processes)
    began_s = time.monotonic()
    simulated_s, faults, violations = 0.0, Counter[str](), []
    with ProcessPoolExecutor(options.processes) as pool:
        futures = [pool.submit(world_of, seed) for seed in range(options.seed, options.seed + options.hours)]
        for future in as_completed(futures):
            time_s, of_world, found = future.result()
            simulated_s += time_s
            faults += of_world
            violations += found
            for violation in found:
                print(f"seed {violation.seed}, {violation.time_s:.3f} s: {violation.what}", flush=True)
    took_s = time.monotonic() - began_s
    for name, count in sorted(faults.items()):
        print(f"{count:8d} {name}")
    per_minute = 60.0 * faults.total() / simulated_s
    print(f"{simulated_s / HOUR_S:.1f} simulated hours, {faults.total()} faults, {per_minute:.2f} a simulated minute")
    print(
        f"{len(violations)} violations; {took_s:.1f} s, {simulated_s / HOUR_S / took_s * 600:.0f} hours in 10 minutes"
    )
    return bool(violations)


if __name__ == "__main__":
    raise SystemExit(main())
