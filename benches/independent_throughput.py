"""RFC 2544 throughput as routecast finds it, beside a generator and a receiver that are not routecast's.

::

    routecast:    tester ───── d0  device  d1 ───── tester's XDP program on s0
    independent:  tcpreplay ── d0  device  d1 ───── s0: the kernel drops frames for a foreign MAC address, and counts

Both search in turns, on the same test bed of namespaces, for the greatest rate without loss: 64 B frames of one flow,
the same binary search, interval, trial length, width and loss verification (most of three trials decide). Only who
sends, who counts and who receives differ. tcpreplay spaces frames by the clock; trafgen sleeps between frames, which
takes 30 us and more on a virtual machine, too long for these rates.

What tcpreplay says it sent must be what d0 received, and what d1 sent must be what s0 received; a trial of which that
is not true, or that was sent at another rate, is left out, run again and counted. tcpreplay sends a frame again for
which the device's ring had no room: each such frame is a loss here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import random
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.lab.benchmark.overload import measure_forwarding_rate
from routecast.lab.benchmark.search import Probe, binary_search, verified
from routecast.lab.benchmark.settings import GoalProfile
from routecast.lab.benchmark.stage import Counts, InvalidTrial, counts_of
from routecast.lab.benchmark.streams import Stream, load_of
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.links import LinkReader, LinkState
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.opening import make_bed
from routecast.load.offered import OfferedLoad

__all__ = ["Generator", "main", "offered", "probe_of"]

FRAME_BYTES = 64
FCS_BYTES = 4
SLOWDOWNS = (10_000, 5_000, 2_850)
"""Iterations per frame: about 80, 150 and 250 kpps at 2.3 GHz."""
GOAL_RATIO = 0.05
_STREAM = Stream(name="IPv4")
_FOREIGN_MAC = "02:00:00:00:02:99"
_VERIFY_LOSSES = 2
_VERIFY_BELOW_RATIO = 0.1
_RATE_RATIO = 0.01
"""How far tcpreplay's own rate may be from the intended one in a trial without loss."""
_ATTEMPTS = 8
_KERNELS_OWN_FRAMES = 4
"""ARP requests of the device among the frames of a trial."""
_RESIDUAL_S = 0.05
_OVERLOAD_S = 0.3
_SENT = re.compile(r"Actual: (\d+) packets \(\d+ bytes\) sent in ([\d.]+) seconds")
_FAILED = re.compile(r"Failed packets:\s+(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Both throughputs of one device, a pair for each repetition."""

    slowdown: int
    forwarding_rate_pps: float
    ours_pps: list[float] = field(default_factory=list)
    theirs_pps: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The independent throughput over routecast's, of medians."""
        return _median(self.theirs_pps) / _median(self.ours_pps)

    @property
    def repeatability_ratio(self) -> float:
        """Half the range of routecast's own repetitions in the same minutes, over their median."""
        return 0.5 * _range_ratio(self.ours_pps)

    @property
    def verdict(self) -> str:
        """Whether the two agree."""
        off = abs(self.ratio - 1.0)
        if off <= GOAL_RATIO:
            return f"within {GOAL_RATIO:.0%}"
        if off <= self.repeatability_ratio:
            return "within the repeatability of the same minutes"
        return "MISSED"


class Generator:
    """tcpreplay on the generator's port of a bed, and the kernel's counters of all four ports."""

    def __init__(self, bed: Bed, folder: Path, links: dict[str, LinkReader]) -> None:
        self._bed, self._links = bed, links
        self._capture = folder / "frame.pcap"
        self._capture.write_bytes(_capture(_frame(bed)))
        self.trials = 0
        self.left_out: dict[str, int] = {}

    @classmethod
    @contextlib.contextmanager
    def on(cls, bed: Bed) -> Iterator[Generator]:
        """Yield the generator of a bed that is up."""
        gen, sink = bed.ports
        with contextlib.ExitStack() as stack:
            places = {gen.interface: gen.netns, "d0": bed.site.netns, "d1": bed.site.netns, sink.interface: sink.netns}
            links = {name: stack.enter_context(LinkReader(netns)) for name, netns in places.items()}
            yield cls(bed, Path(stack.enter_context(tempfile.TemporaryDirectory())), links)

    @contextlib.contextmanager
    def receiving(self) -> Iterator[None]:
        """Let the kernel drop test frames at s0, as those of another host, as long as the context lasts."""
        sink = self._bed.ports[1]
        self._bed.bind_replaced_threads()
        _set_address(sink.netns or "", sink.interface, _FOREIGN_MAC)
        try:
            yield
        finally:
            _set_address(sink.netns or "", sink.interface, sink.mac)

    def probe(self, rate_pps: float, duration_s: float, purpose: str) -> Counts:
        """Send frames at a rate and count them.

        Raises
        ------
        routecast.errors.EnvironmentProblem
            tcpreplay failed, or its trials are left out again and again.
        """
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(0.2 * attempt)
            self.trials += 1
            counts, reason = self._attempt(rate_pps, duration_s)
            if counts is not None:
                return counts
            self.left_out[reason] = self.left_out.get(reason, 0) + 1
        raise EnvironmentProblem(f"{purpose}: {_ATTEMPTS} trials of tcpreplay were left out, the last because {reason}")

    def _attempt(self, rate_pps: float, duration_s: float) -> tuple[Counts | None, str]:
        gen, sink = self._bed.ports
        frames = round(rate_pps * duration_s)
        before = self._read()
        sent, took_s = self._send(rate_pps, frames)
        time.sleep(_RESIDUAL_S)
        after = self._read()

        def new(name: str, counter: str) -> int:
            return int(getattr(after[name], counter) - getattr(before[name], counter))

        if not 0 <= new("d0", "rx_frames") + new("d0", "rx_dropped_frames") - sent <= _KERNELS_OWN_FRAMES:
            return None, "d0 did not receive what tcpreplay counted as sent"
        if abs(new("d1", "tx_frames") - new(sink.interface, "rx_frames")) > _KERNELS_OWN_FRAMES:
            return None, "s0 did not receive what d1 sent"
        refused = new(gen.interface, "tx_dropped_frames")
        lost = max(sent - new(sink.interface, "rx_frames"), 0) + refused
        if not lost and abs(sent / took_s / rate_pps - 1.0) > _RATE_RATIO:
            return None, "it was sent at another rate"
        # Refused frames were sent again: beside the intended ones, not of them.
        return Counts(offered=sent + refused, lost=lost), ""

    def _read(self) -> dict[str, LinkState]:
        return {name: reader.read()[name] for name, reader in self._links.items()}

    def _send(self, rate_pps: float, frames: int) -> tuple[int, float]:
        gen = self._bed.ports[0]
        prefix = ["ip", "netns", "exec", gen.netns or "", "taskset", "-c", str(self._bed.placement.tester)]
        if self._bed.priority > 0:
            prefix += ["chrt", "-f", str(self._bed.priority)]
        options = ["--preload-pcap", "--timer=gtod", "--loop", str(frames), "--pps", f"{rate_pps:.2f}"]
        done = subprocess.run(
            [*prefix, "tcpreplay", "--intf1", gen.interface, *options, str(self._capture)],
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
        text = done.stdout + done.stderr
        sent, failed = _SENT.search(text), _FAILED.search(text)
        if done.returncode != 0 or sent is None or failed is None or int(failed[1]):
            raise EnvironmentProblem(f"tcpreplay failed: {(text.strip() or 'it printed nothing').splitlines()[-1]}")
        return int(sent[1]), float(sent[2])


def offered(rate_pps: float) -> OfferedLoad:
    """Return the load: 64 B frames of one flow, evenly spaced."""
    return load_of(_STREAM, FRAME_BYTES, rate_pps)


def probe_of(evaluator: Measure) -> Probe:
    """Return routecast's own trials as a probe."""

    def probe(rate_pps: float, duration_s: float, purpose: str) -> Counts:
        trial = evaluator.trial(offered(rate_pps), duration_s)
        if not trial.is_valid:
            raise InvalidTrial(trial.invalid, trial, trial.attempts)
        return counts_of(trial, duration_s)

    return probe


def throughput_pps(probe: Probe, goal: GoalProfile, max_pps: float) -> float:
    """Return the greatest rate without loss below one that the device cannot forward."""
    result = binary_search(
        verified(probe, repeats=_VERIFY_LOSSES, below_ratio=_VERIFY_BELOW_RATIO),
        goal,
        min_pps=0.05 * max_pps,
        max_pps=max_pps,
        misses_at_max=True,
        doubts=1,
    )
    if not math.isfinite(result.lower_pps):
        print(f"no throughput: {result.outcome} {result.reason}", file=sys.stderr)
    return result.lower_pps


def compare(slowdown: int, repetitions: int, goal: GoalProfile, stream: random.Random) -> tuple[Row, Generator]:
    """Search by both in turns on one device."""
    options = {"slowdown": slowdown}
    with (
        make_bed("namespaces", device="linux", options=options, on_remark=_remark) as bed,
        Generator.on(bed) as generator,
    ):
        bed.begin_measuring()
        with Measure(bed, retries=_ATTEMPTS - 1) as evaluator:
            rate = measure_forwarding_rate(evaluator, offered(50e3), duration_s=_OVERLOAD_S)
        row = Row(slowdown=slowdown, forwarding_rate_pps=rate.trial.forwarded_pps)
        for number in range(repetitions):
            # Another grid of rates in each repetition, or a width would hide differences that are less.
            max_pps = row.forwarding_rate_pps * stream.uniform(1.2, 1.4)
            with Measure(bed, retries=_ATTEMPTS - 1) as evaluator:
                row.ours_pps.append(throughput_pps(probe_of(evaluator), goal, max_pps))
            with generator.receiving():
                row.theirs_pps.append(throughput_pps(generator.probe, goal, max_pps))
            _remark(
                f"slowdown {slowdown}, {number + 1} of {repetitions}: routecast {row.ours_pps[-1] / 1e3:.1f} kpps, "
                f"independent {row.theirs_pps[-1] / 1e3:.1f} kpps"
            )
        return row, generator


def main() -> int:
    """Return 0; what cannot run is named on stderr."""
    arguments = _arguments()
    if shutil.which("tcpreplay") is None:
        print("SKIPPED: tcpreplay is not installed. To mend it: apt install tcpreplay", file=sys.stderr)
        return 0
    length_s = arguments.duration
    goal = GoalProfile(
        name="no loss",
        width=arguments.width,
        initial_trial=length_s,
        final_trial=length_s,
        duration_sum=length_s,
        preceding_targets=0,
    )
    stream = random.Random(arguments.seed)
    rows: list[Row] = []
    trials, left_out = 0, dict[str, int]()
    try:
        for slowdown in arguments.slowdowns:
            row, generator = compare(slowdown, arguments.repetitions, goal, stream)
            rows.append(row)
            trials += generator.trials
            for reason, count in generator.left_out.items():
                left_out[reason] = left_out.get(reason, 0) + count
    except RoutecastError as problem:
        print(f"SKIPPED the rest: {problem}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"rows": [_plain(row) for row in rows], "trials": trials, "left_out": left_out}, indent=2))
    else:
        _print(rows, arguments, trials, left_out)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5, help="searches of each side (default 5)")
    parser.add_argument("--duration", type=float, default=0.5, help="of each trial, in seconds (default 0.5)")
    parser.add_argument(
        "--width", type=float, default=0.005, help="of the search, over its upper bound (default 0.005)"
    )
    parser.add_argument(
        "--slowdowns", type=int, nargs="+", default=SLOWDOWNS, metavar="N", help="iterations per frame of each device"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the rates that are tried (default 1)")
    parser.add_argument("--quick", action="store_true", help="two searches of each side, trials of 0.2 s, width 0.02")
    parser.add_argument("--json", action="store_true", help="one document with every repetition")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions, arguments.duration, arguments.width = 2, 0.2, 0.02
    return arguments


def _print(rows: list[Row], arguments: argparse.Namespace, trials: int, left_out: dict[str, int]) -> None:
    print(
        f"Throughput without loss, {FRAME_BYTES} B: trials of {arguments.duration:g} s, width {arguments.width:.1%}, "
        f"{arguments.repetitions} searches of each side in turns; kpps; range over the median"
    )
    head = ("slowdown", "overload", "routecast", "range", "tcpreplay", "range", "ratio")
    print("  " + "".join(f"{name:>11}" for name in head) + "  verdict")
    for row in rows:
        cells = (
            f"{row.slowdown}",
            f"{row.forwarding_rate_pps / 1e3:.1f}",
            f"{_median(row.ours_pps) / 1e3:.1f}",
            f"{_range_ratio(row.ours_pps):.1%}",
            f"{_median(row.theirs_pps) / 1e3:.1f}",
            f"{_range_ratio(row.theirs_pps):.1%}",
            f"{row.ratio:.3f}",
        )
        print("  " + "".join(f"{cell:>11}" for cell in cells) + f"  {row.verdict}")
    reasons = "".join(f"; {count}: {reason}" for reason, count in left_out.items())
    print(f"  {trials} trials of tcpreplay, {sum(left_out.values())} of them left out{reasons}\n", flush=True)


def _plain(row: Row) -> dict[str, object]:
    return {
        "slowdown": row.slowdown,
        "forwarding_rate_pps": row.forwarding_rate_pps,
        "routecast_pps": row.ours_pps,
        "independent_pps": row.theirs_pps,
        "ratio": row.ratio,
        "verdict": row.verdict,
    }


def _median(rates: list[float]) -> float:
    known = [rate for rate in rates if math.isfinite(rate)]
    return statistics.median(known) if known else math.nan


def _range_ratio(rates: list[float]) -> float:
    known = [rate for rate in rates if math.isfinite(rate)]
    return (max(known) - min(known)) / _median(known) if known else math.nan


def _remark(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _set_address(netns: str, interface: str, mac: str) -> None:
    subprocess.run(["ip", "-n", netns, "link", "set", interface, "address", mac], check=True)


def _frame(bed: Bed) -> bytes:
    """Return a UDP frame from the tester's first port to its second, without FCS; its UDP checksum is 0, for none."""
    gen, sink = bed.ports
    macs = b"".join(bytes.fromhex(mac.replace(":", "")) for mac in (gen.device_mac, gen.mac))
    addresses = socket.inet_aton(gen.ipv4) + socket.inet_aton(sink.ipv4)
    payload = bytes(FRAME_BYTES - FCS_BYTES - 14 - 20 - 8)
    before, after = struct.pack(">BBHHHBB", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, socket.IPPROTO_UDP), addresses
    total = sum(struct.unpack(">9H", before[:10] + after))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = struct.pack(">H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF)
    udp = struct.pack(">HHHH", 49152, 7, 8 + len(payload), 0)
    return macs + b"\x08\x00" + before + checksum + after + udp + payload


def _capture(frame: bytes) -> bytes:
    """Return a capture file (pcap) of one frame."""
    return (
        struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1)
        + struct.pack("<IIII", 0, 0, len(frame), len(frame))
        + frame
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
