"""Runs routecast and its peers on the same work, in turns, and prints the ratio: what ``make bench`` calls.

Speed is frames per second of CPU time, which other work on the machine disturbs less than wall time. Ratios compare
neighbours in time: each repetition runs every contender once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from dataclasses import asdict
from pathlib import Path

from agreement import FIELDS, disagreements, finding
from contenders import Contender, Missing, Peer, Sample, find_peers, ours
from startup import import_times_s, spread, study_times_s
from workloads import WORKLOADS, Workload

IMPORT_TARGET_S = 0.150
STUDY_TARGET_S = 10.0

Samples = dict[str, list[Sample]]


def main() -> int:
    """Return 0, or 1 where a contender did other work than the rest."""
    arguments = _arguments()
    peers, missing = find_peers()
    for peer in missing:
        print(f"SKIPPED {peer.name}: {peer.reason}. To install it: {peer.remedy}", file=sys.stderr)
    wanted = [workload for workload in WORKLOADS if workload.name in arguments.workload]
    document: dict[str, object] = {"environment": _environment(), "skipped": [_skipped(peer) for peer in missing]}
    if not arguments.json:
        print("\n".join(f"{key}: {value}" for key, value in _environment().items()))
        print(f"{arguments.repetitions} repetitions in turns; million frames per CPU second\n")
    wrong, reports = [], {}
    for workload in wanted:
        samples = _race(workload, peers, arguments.repetitions)
        result = disagreements(workload.theory, samples)
        wrong += [f"{workload.name}: {line}" for line in result]
        reports[workload.name] = _report(workload, samples, result)
        if not arguments.json:
            _print_table(workload, samples, result, {peer.title: peer.name for peer in peers})
    document["workloads"] = reports
    if arguments.user_times:
        imports, studies = import_times_s(arguments.repetitions), study_times_s(min(arguments.repetitions, 3))
        document["user_times"] = {"import_s": imports, "study_meyer2014_s": studies}
        if not arguments.json:
            print("Wall time, median (least to most)")
            for title, times_s, target_s in (
                ("import routecast", imports, IMPORT_TARGET_S),
                ("routecast study meyer2014", studies, STUDY_TARGET_S),
            ):
                met = _met(statistics.median(times_s) <= target_s)
                print(f"  {title:<28} {spread(times_s):<28} target <= {target_s:g} s: {met}")
    if arguments.json:
        print(json.dumps(document, indent=2))
    for line in wrong:
        print(f"NOT THE SAME WORK {line}", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--workload", nargs="+", choices=names, default=names, help="only these")
    parser.add_argument("--repetitions", type=int, default=5, help="of every contender, at least 3 (default 5)")
    parser.add_argument("--json", action="store_true", help="one document with every repetition")
    parser.add_argument(
        "--no-user-times",
        dest="user_times",
        action="store_false",
        help="leave out import and study, which are wall time",
    )
    arguments = parser.parse_args()
    if arguments.repetitions < 3:
        parser.error("--repetitions: fewer than 3 have no spread to judge agreement by")
    return arguments


def _race(workload: Workload, peers: list[Peer], repetitions: int) -> Samples:
    contenders: list[Contender] = [ours(workload, variant) for variant in workload.variants]
    contenders += [peer.on(workload) for peer in peers]
    samples: Samples = {contender.name: [] for contender in contenders}
    for repetition in range(repetitions):
        for contender in contenders:
            samples[contender.name].append(contender.run(repetition + 1))
    return samples


def _ratios(samples: Samples, name: str) -> list[float]:
    """How many times faster routecast's first variant is than ``name``, by repetition."""
    first = next(iter(samples.values()))
    pairs = zip(first, samples[name], strict=True)
    return [mine.frames_per_s / its.frames_per_s for mine, its in pairs]


def _print_table(workload: Workload, samples: Samples, disagreements: list[str], peers: dict[str, str]) -> None:
    theory = workload.theory
    print(f"{workload.name}: {workload.title}")
    print(f"  {'':<42} {'min':>8} {'median':>8} {'max':>8} {'ratio':>8}   {'Mpps':>8} {'loss':>8} {'latency':>11}")
    for name, runs in samples.items():
        speeds = [run.frames_per_s / 1e6 for run in runs]
        row = "".join(f" {speed:>8.3g}" for speed in (min(speeds), statistics.median(speeds), max(speeds)))
        print(f"  {name:<42}{row} {statistics.median(_ratios(samples, name)):>8.3g}   {_figures(runs)}")
    exact = (theory.throughput_pps / 1e6, theory.loss_ratio, theory.latency_mean_s * 1e6)
    print(f"  {theory.law:<42} {'':>35}   {exact[0]:>8.5f} {exact[1]:>8.5f} {exact[2]:>8.3f} us")
    same = "differ, see below" if disagreements else "agree with each other and with theory"
    print(f"  throughput, loss and mean latency {same}")
    if workload.target is not None:
        name = next(iter(samples))
        middle = statistics.median(run.frames_per_s for run in samples[name])
        met = _met(middle >= workload.target.frames_per_s)
        print(f"  target >= {workload.target.frames_per_s / 1e6:g} million frames per CPU second: {met}")
        rivals = [title for title, short in peers.items() if short == workload.target.peer]
        target = f"target >= {workload.target.times:g} times {workload.target.peer}"
        if rivals:
            met = _met(statistics.median(_ratios(samples, rivals[0])) >= workload.target.times)
            print(f"  {target}: {met}")
        else:
            print(f"  {target}: not known, {workload.target.peer} was skipped")
    print(flush=True)


def _figures(runs: list[Sample]) -> str:
    throughput, loss, latency = (finding(runs, field).value for field in FIELDS)
    return f"{throughput / 1e6:>8.5f} {loss:>8.5f} {latency * 1e6:>8.3f} us"


def _met(yes: bool) -> str:
    return "met" if yes else "MISSED"


def _report(workload: Workload, samples: Samples, disagreements: list[str]) -> dict[str, object]:
    return {
        "title": workload.title,
        "theory": asdict(workload.theory),
        "target": asdict(workload.target) if workload.target else None,
        "disagreements": disagreements,
        "contenders": {
            name: {
                "frames_per_s": [run.frames_per_s for run in runs],
                "times_slower": _ratios(samples, name),
                "runs": [asdict(run) for run in runs],
            }
            for name, runs in samples.items()
        },
    }


def _skipped(peer: Missing) -> dict[str, str]:
    return {"name": peer.name, "reason": peer.reason, "remedy": peer.remedy}


def _environment() -> dict[str, str]:
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    governor = _lines("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return {
        "CPU": f"{models[0] if models else platform.processor()}, {os.cpu_count()} visible",
        "governor": governor[0] if governor else "unknown",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
