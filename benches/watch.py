"""Looks at a router in service beside overload trials of it, on network namespaces: error, coverage, frames lost.

Before and after each look the router is overloaded, three times; the truth is the mean of the two medians, and how
much they differ is the floor. Beside the watch: what the busy share alone would say. As root, on two cores that nobody
else uses. ::

    PYTHONPATH=packages/routecast python benches/watch.py [--device linux] [--looks 24] [--json]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import threading
import time
from statistics import median
from typing import Any

from routecast.evaluate.trial import Trial
from routecast.lab.testbed import Measure, make_bed
from routecast.load import Arrivals, FlowSet, FrameMix, OfferedLoad

LOADS = (0.05, 0.1, 0.2, 0.4)
OVERLOAD_S, LOOK_S, AROUND_S = 0.3, 0.4, 0.4
WATCH_PRIORITY = 45
SENDING_S = LOOK_S + 1.0 + 2 * AROUND_S + 1.5


LOOKER = """
import json, sys
from routecast.lab.watch import watch
interface, netns, duration_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    print(json.dumps(watch(interface, netns=netns, duration_s=duration_s, probe=True).to_json()), flush=True)
"""


class Looker:
    """A process that looks when it is told to, beside the generator and ahead of it.

    What runs on the router's core in between makes its polls colder, and a program that starts there or here keeps the
    generator from sending, which then sends what is late at once: so it has started before, and sleeps.
    """

    def __init__(self, interface: str, netns: str, cpu: int) -> None:
        here = ["taskset", "-c", str(cpu), "chrt", "-f", str(WATCH_PRIORITY), sys.executable, "-c", LOOKER]
        command = [*here, interface, netns, str(LOOK_S)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._line()

    def look(self) -> dict[str, Any]:
        assert self._process.stdin is not None
        print("look", file=self._process.stdin, flush=True)
        document: dict[str, Any] = json.loads(self._line())
        return document

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that looks has ended")
        return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="linux", help="linux, nftables, bridge or xdp (linux)")
    parser.add_argument("--looks", type=int, default=24)
    parser.add_argument(
        "--back-end", default="af_packet", help="of the tester (af_packet: frames are those of the stack)"
    )
    parser.add_argument("--seed", type=int, default=5, help="of the order of the looks")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each look")
    chosen = parser.parse_args()
    rows = []
    with make_bed("namespaces", device=chosen.device) as bed:
        measure, port = Measure(bed, back_end=chosen.back_end), bed.site.ports[0]

        def trial(rate_pps: float, duration_s: float, arrivals: Arrivals) -> Trial:
            flows = FlowSet.crafted(1, ports=2)
            load = OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(64), flows=flows, arrivals=arrivals)
            return measure.trial(load, duration_s)

        def overload() -> float:
            return median(trial(3e6, OVERLOAD_S, Arrivals()).forwarded_pps for _ in range(3))

        looker = Looker(port.interface, bed.site.netns or "", bed.placement.tester)
        order = random.Random(chosen.seed)
        overload()
        before = overload()
        cells = [(load, kind) for load in LOADS for kind in ("poisson", "cbr")]
        for number in range(chosen.looks):
            if number % len(cells) == 0:
                order.shuffle(cells)
            load, kind = cells[number % len(cells)]
            arrivals = Arrivals.poisson() if kind == "poisson" else Arrivals()
            found: list[Trial] = []
            rate_pps = load * before

            def send(rate_pps: float = rate_pps, arrivals: Arrivals = arrivals, found: list[Trial] = found) -> None:
                found.append(trial(rate_pps, SENDING_S, arrivals))

            sending = threading.Thread(target=send)
            sending.start()
            time.sleep(AROUND_S)
            seen = looker.look()
            sending.join()
            after = overload()
            truth = 0.5 * (before + after)
            rows.append(
                {
                    "load": load,
                    "arrivals": kind,
                    "truth_pps": truth,
                    "floor": abs(after / before - 1.0),
                    "lost": found[0].offered_frames - found[0].forwarded_frames if found else None,
                    **seen,
                }
            )
            before = after
            saturation = seen["saturation"]
            if chosen.json:
                print(json.dumps(rows[-1]), flush=True)
            else:
                pps, low, high = (saturation[name] or math.nan for name in ("pps", "low_pps", "high_pps"))
                print(
                    f"{load:4.0%} ({seen['rate_pps'] / truth:4.0%}) {kind:8} truth {truth / 1e3:6.0f} kpps "
                    f"(floor {rows[-1]['floor']:5.1%})  watch "
                    f"{pps / 1e3:6.0f} [{low / 1e3:.0f}, {high / 1e3:.0f}] {pps / truth - 1.0:+6.1%}  busy share "
                    f"{seen['by_busy_share_pps'] / truth - 1.0:+6.1%}  {saturation['source']} {saturation['polls']}; "
                    f"share {saturation['share_ratio'] or math.nan:.2f}; lost {rows[-1]['lost']}",
                    flush=True,
                )
        looker.close()
    known = [row for row in rows if row["saturation"]["pps"]]
    errors = sorted(
        abs(row["saturation"]["pps"] / row["truth_pps"] - 1.0) if row["saturation"]["pps"] else 1.0 for row in rows
    )
    held = [row["saturation"]["low_pps"] <= row["truth_pps"] <= row["saturation"]["high_pps"] for row in known]
    busy = [abs(row["by_busy_share_pps"] / row["truth_pps"] - 1.0) for row in rows if row["by_busy_share_pps"]]
    near = sum(error <= 0.1 for error in errors) / len(errors)
    print(
        f"{chosen.device}: {len(rows)} looks, {len(known)} answered; absolute error: median {median(errors):.1%}, 90th "
        f"percentile {errors[math.ceil(0.9 * len(errors)) - 1]:.1%}, within 10 % {near:.0%}; 95 % intervals hold "
        f"{sum(held) / max(len(held), 1):.0%}; busy share: median {median(busy):.1%}; floor: median "
        f"{median(row['floor'] for row in rows):.1%}"
    )


if __name__ == "__main__":
    main()
