"""Sends 64 B frames over a veth pair with every back end of the tester and with trafgen, and prints received Mpps.

The receiver is the same for all: the tester's XDP program, on the sender's core. It judges, stamps and counts the
frames of routecast; those of trafgen carry the number of another trial and are dropped after a look at their
signature, which favours trafgen. More is asked for than can be sent; the best of the repetitions is what the machine
allows, the rest is other work on it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routecast.errors import EnvironmentProblem
from routecast.lab import _lab
from routecast.lab.testbed.document import NamespacesFile
from routecast.lab.testbed.links import LinkReader
from routecast.lab.testbed.selftest import BackToBack, Wire

__all__ = ["main"]

FRAME_BYTES = 64
FCS_BYTES = 4
TRIAL = 1
OTHER_TRIAL = 126
"""Frames of trafgen carry it: the receiver drops them unjudged."""
_ASKED_PPS = {"live": 20e6, "af_xdp": 4e6, "af_packet": 4e6}
_TITLES = {"live": "routecast, live frames", "af_xdp": "routecast, AF_XDP", "af_packet": "routecast, AF_PACKET"}
_TRAFGEN = {"trafgen": (), "trafgen, sendto": ("--gap", "0")}
_TRAFGEN_PPS = 1.5e6
_SENT = re.compile(r"(\d+) sec, (\d+) usec on CPU\d+ \((\d+) packets\)")


@dataclass(frozen=True, slots=True)
class Missing(Exception):
    """A contender that cannot run here, why, and what mends it."""

    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One short run: how many frames were sent and received, and how many were received per second of sending."""

    sent: int
    received: int
    received_pps: float


def main() -> int:
    """Return 0; what cannot run is named on stderr."""
    arguments = _arguments()
    try:
        runs, skipped, facts = _race(arguments.repetitions, arguments.duration)
    except EnvironmentProblem as problem:
        print(f"SKIPPED the tester on a veth pair: {problem}", file=sys.stderr)
        return 0
    for name, missing in skipped.items():
        print(f"SKIPPED {name}: {missing.reason}. To mend it: {missing.remedy}", file=sys.stderr)
    if arguments.json:
        contenders = {
            name: [{"sent": run.sent, "received": run.received, "received_pps": run.received_pps} for run in done]
            for name, done in runs.items()
        }
        print(json.dumps({"frame_bytes": FRAME_BYTES, "contenders": contenders, "facts": facts}, indent=2))
    else:
        _print(runs, arguments)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="of every contender (default 5)")
    parser.add_argument("--duration", type=float, default=0.5, help="of each run, in seconds (default 0.5)")
    parser.add_argument("--json", action="store_true", help="one document with every repetition")
    return parser.parse_args()


def _race(repetitions: int, duration_s: float) -> tuple[dict[str, list[Run]], dict[str, Missing], dict[str, Any]]:
    file = NamespacesFile(kind="namespaces", name="bench-tester")
    runs: dict[str, list[Run]] = {}
    skipped: dict[str, Missing] = {}
    facts: dict[str, Any] = {}
    with BackToBack(file, Wire()) as bed:
        contenders = _ours(bed, duration_s) | _trafgens(bed, duration_s)
        for _ in range(repetitions):
            for name, run in contenders.items():
                if name in skipped:
                    continue
                try:
                    runs.setdefault(name, []).append(run(facts))
                except Missing as missing:
                    skipped[name] = missing
                    runs.pop(name, None)
    return runs, skipped, facts


def _ours(bed: BackToBack, duration_s: float) -> dict[str, Callable[[dict[str, Any]], Run]]:
    gen, sink = bed.ports

    def run(back_end: str, facts: dict[str, Any]) -> Run:
        flow = {
            "source_mac": gen.mac,
            "destination_mac": sink.mac,
            "source_address": "198.18.1.2",
            "destination_address": "198.19.1.2",
            "source_port": 49152,
            "destination_port": 7,
        }
        request = {
            "duration_s": duration_s,
            "wait_s": 0.05,
            "trial_id": TRIAL,
            "streams": [
                {
                    "port": 0,
                    "to_port": 1,
                    "rate_pps": _ASKED_PPS[back_end],
                    "sizes": [{"bytes": FRAME_BYTES}],
                    "flows": [flow],
                }
            ],
        }
        try:
            with _lab.Tester(json.dumps(_configuration(bed, back_end))) as tester:
                stream = json.loads(tester.trial(json.dumps(request)))["streams"][0]
                facts[back_end] = json.loads(tester.facts())
        except _lab.TesterError as error:
            _, message = error.args
            raise Missing(message, "routecast doctor says what it needs") from error
        took_s = stream["last_sent_s"] - stream["first_sent_s"]
        received = stream["received_frames"]
        return Run(sent=stream["sent_frames"], received=received, received_pps=received / took_s)

    def bound(back_end: str) -> Callable[[dict[str, Any]], Run]:
        return lambda facts: run(back_end, facts)

    return {title: bound(back_end) for back_end, title in _TITLES.items()}


def _configuration(bed: BackToBack, back_end: str) -> dict[str, Any]:
    configuration = bed.tester_configuration(back_end)
    configuration["ports"][1]["send"] = "none"
    configuration["ports"][0]["receive"] = "none"
    return configuration


def _trafgens(bed: BackToBack, duration_s: float) -> dict[str, Callable[[dict[str, Any]], Run]]:
    gen, sink = bed.ports
    frames = round(_TRAFGEN_PPS * duration_s)

    def run(options: tuple[str, ...]) -> Run:
        program = shutil.which("trafgen")
        if program is None:
            raise Missing("trafgen is not installed", "apt install netsniff-ng")
        command = [program, "--dev", gen.interface, "--num", str(frames), "--cpus", "1", "--no-sock-mem"]
        prefix = ["ip", "netns", "exec", gen.netns or "", "taskset", "-c", str(bed.placement.tester)]
        if os.sched_get_priority_max(os.SCHED_FIFO) >= bed.priority > 0:
            prefix += ["chrt", "-f", str(bed.priority)]
        with tempfile.TemporaryDirectory() as folder:
            frame = Path(folder) / "frame.cfg"
            octets = ", ".join(f"0x{octet:02x}" for octet in _frame(gen.mac, sink.mac))
            frame.write_text(f"{{ {octets} }}\n", encoding="utf-8")
            # The receiver is attached as long as the tester is open.
            with _lab.Tester(json.dumps(_configuration(bed, "none"))), LinkReader(sink.netns) as links:
                before = links.read()[sink.interface].rx_frames
                done = subprocess.run(
                    [*prefix, *command, "--conf", str(frame), *options],
                    capture_output=True,
                    text=True,
                    timeout=60.0,
                    check=False,
                )
                received = links.read()[sink.interface].rx_frames - before
        message = _SENT.search(done.stdout + done.stderr)
        if done.returncode != 0 or message is None:
            raise Missing((done.stderr.strip() or "it said nothing").splitlines()[-1], "run it by hand")
        took_s = int(message[1]) + int(message[2]) / 1e6
        return Run(sent=int(message[3]), received=received, received_pps=received / took_s)

    def bound(options: tuple[str, ...]) -> Callable[[dict[str, Any]], Run]:
        return lambda _facts: run(options)

    return {name: bound(options) for name, options in _TRAFGEN.items()}


def _frame(source_mac: str, destination_mac: str) -> bytes:
    """Return a frame with a signature, as ``crates/tester/src/frame.rs`` lays it out; its checksums are 0."""
    octets = [bytes.fromhex(mac.replace(":", "")) for mac in (destination_mac, source_mac)]
    addresses = bytes((198, 18, 1, 2, 198, 19, 1, 2))
    payload = struct.pack(">HIQHBB", 0x5243, 0, 0, 0, OTHER_TRIAL, 0)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0) + addresses
    udp = struct.pack(">HHHH", 49152, 7, 8 + len(payload), 0)
    frame = octets[0] + octets[1] + b"\x08\x00" + ip + udp + payload
    return frame.ljust(FRAME_BYTES - FCS_BYTES, b"\0")


def _print(runs: dict[str, list[Run]], arguments: argparse.Namespace) -> None:
    print(f"Tester on a veth pair: {FRAME_BYTES} B frames, sent and received on one core, received Mpps")
    print(f"{arguments.repetitions} runs of {arguments.duration:g} s in turns; lost: of all that were sent")
    print(f"  {'':<26} {'min':>8} {'median':>8} {'best':>8} {'ratio':>8} {'lost':>10}")
    if not runs:
        return
    first = max(run.received_pps for run in next(iter(runs.values())))
    for name, done in runs.items():
        rates = [run.received_pps / 1e6 for run in done]
        row = "".join(f" {rate:>8.3f}" for rate in (min(rates), statistics.median(rates), max(rates)))
        lost = sum(run.sent - run.received for run in done)
        print(f"  {name:<26}{row} {first / 1e6 / max(rates):>8.2f} {lost:>10}")
    best = max(run.received_pps for done in runs.values() for run in done)
    print(f"  target >= 3 Mpps received with time stamps: {'met' if best >= 3e6 else 'MISSED'}\n", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
