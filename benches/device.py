"""Lanes on a graphics processor beside lanes on the processor: equal figures, frames a second, and a day.

Each router runs one trial on both; every figure must be the same. Speed is wall time of the second of two trials on the
device, whose kernel is made by then, beside the CPU time of one core of the processor. ``--day`` runs a day of
traffic with GEANT's shape on four cores that RSS feeds, every frame of it. A program that stands for a device
(llvmpipe) shows that figures are equal, and no rate.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lanes import napi, rss
from workloads import WORKLOADS

from routecast.errors import RoutecastError
from routecast.evaluate import Simulate
from routecast.evaluate.simulate.graphics import Graphics, open_graphics
from routecast.evaluate.trial import Trial
from routecast.load import OfferedLoad
from routecast.router import RouterModel
from routecast.router.files import read_router_and_load

EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True, slots=True)
class Timed:
    """A trial, and the seconds that it took."""

    trial: Trial
    cpu_s: float
    wall_s: float


def routers() -> dict[str, tuple[RouterModel, OfferedLoad]]:
    """Return the routers by name, with their loads."""
    named = {"M/M/1/50": (WORKLOADS[1].variants[0].model, WORKLOADS[1].load), "NAPI, IMIX": napi(), "RSS, IMIX": rss()}
    for name in ("softirq", "green", "multicore"):
        model, load = read_router_and_load(EXAMPLES / f"{name}.router.toml")
        if load is not None:
            named[name] = model, load
    return named


def timed(simulate: Simulate, load: OfferedLoad, duration_s: float) -> Timed:
    """Simulate one trial and time it."""
    cpu_s, wall_s = time.process_time(), time.perf_counter()
    trial = simulate.trial(load, duration_s)
    return Timed(trial, time.process_time() - cpu_s, time.perf_counter() - wall_s)


def is_same(first: Trial, second: Trial) -> bool:
    """Whether every figure is the same."""
    figures = [{name: value for name, value in asdict(trial).items() if name != "notes"} for trial in (first, second)]
    # NaN stands for what there is none of, and is not equal to itself.
    return repr(figures[0]) == repr(figures[1])


def row(name: str, model: RouterModel, load: OfferedLoad, frames: float, graphics: Graphics) -> bool:
    """Print the figures of a router; return whether both ways agree."""
    simulate = Simulate(model, path="lanes", steady_state=False)
    duration_s = frames / load.rate_pps
    on_device = replace(simulate, device=graphics)
    plain = timed(simulate, load, duration_s)
    timed(on_device, load, min(duration_s, 1e4 / load.rate_pps))
    device = timed(on_device, load, duration_s)
    offered = plain.trial.offered_frames or 0
    here = any(note.startswith("in lanes on a graphics processor: ") for note in device.trial.notes)
    same = is_same(plain.trial, device.trial)
    rates = [offered / seconds for seconds in (plain.cpu_s, device.wall_s)]
    verdict = ("equal" if same else "DIFFERENT") if here else f"NOT ON THE DEVICE: {device.trial.notes[-1]}"
    print(f"{name:12} {rates[0]:12.3g} {rates[1]:12.3g} {rates[1] / rates[0]:8.3g}  {verdict}", flush=True)
    return same and here


def day(graphics: Graphics, peak: str, each_s: float | None) -> None:
    """Print how long a day takes on the device, and how many frames it counted."""
    from routecast.plan.day.simulated import day_load, day_steps, simulated_day
    from routecast.plan.power.commands import DayOptions

    model, load = rss()
    series = DayOptions(peak=peak).day("geant", frame_bytes=load.frames.mean_bytes)
    began_s = time.perf_counter()
    simulate = Simulate(model, device=graphics)
    steps = list(day_steps(simulate, day_load(load, series, each_s=each_s), series, each_s=each_s))
    took_s = time.perf_counter() - began_s
    result = simulated_day(model, load, series, steps, each_s=each_s)
    print(f"a day in {took_s:.4g} s, {result.offered_frames / took_s:.3g} frames a second")
    print("\n".join(result.notes))


def main() -> int:
    """Print the table; return 1 where a figure differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=float, default=1e8, help="of a trial (1e8)")
    parser.add_argument("--routers", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--adapter", default="", metavar="NAME", help="a part of the graphics processor's name")
    parser.add_argument("--portable", action="store_true", help="products by words of 32 bits")
    parser.add_argument("--day", metavar="PEAK", help='a day on four RSS cores, with this peak, such as "14.7 Mpps"')
    parser.add_argument("--each", type=float, metavar="SECONDS", help="--day: of each step; all of it without")
    chosen = parser.parse_args()
    try:
        graphics = open_graphics(chosen.adapter, portable=chosen.portable)
    except RoutecastError as error:
        print(f"SKIPPED: {error}", file=sys.stderr)
        return 0
    print(f"{graphics.adapter}; 64-bit products: {'yes' if graphics.has_u64 else 'no'}")
    if chosen.day:
        day(graphics, chosen.day, chosen.each)
        return 0
    print(f"{'':12} {'CPU frames/s':>12} {'device':>12} {'ratio':>8}")
    rows = [
        row(name, model, load, chosen.frames, graphics)
        for name, (model, load) in routers().items()
        if not chosen.routers or name in chosen.routers
    ]
    return 0 if all(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
