"""CPU time and memory of reading a large capture, beside capinfos (package wireshark-common) on the same file.

A capture of frames of 64 B to 1518 B in 1,000 flows is written into a temporary folder. Each reader is a process of its
own: CPU time is that of its user and system time, memory its greatest resident set, the interpreter included.
capinfos counts packets and times (``-c -u -m -T``) and computes no digest of the file.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

CPU_RATIO = 2.0
MEMORY_MB = 300
"""Goals for ten million frames."""

FLOWS = 1000
BLOCK_FRAMES = 100_000
READ = "from routecast.load.capture import read_recording; import sys; print(len(read_recording(sys.argv[1]).time_s))"


def _frame(number: int, cut_bytes: int) -> tuple[bytes, int]:
    """Captured bytes and length without FCS of a packet of UDP."""
    size_bytes = (60, 60, 60, 590, 590, 1514)[number % 6]
    address = (number * 7919) % FLOWS
    header = struct.pack(">BBHHHBBHII", 0x45, 0, size_bytes - 14, 0, 0, 64, 17, 0, 0xC6120000 + address, 0xC6130001)
    ports = struct.pack(">HHHH", 1024 + address, 80, size_bytes - 34, 0)
    data = (bytes(12) + b"\x08\x00" + header + ports).ljust(size_bytes, b"\0")
    return data[:cut_bytes], size_bytes


def write(path: Path, frames: int, cut_bytes: int) -> None:
    """Write the capture: 1 Mpps, microseconds."""
    parts = [_frame(number, cut_bytes) for number in range(6 * FLOWS)]
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1))
        for start in range(0, frames, BLOCK_FRAMES):
            block = []
            for number in range(start, min(frames, start + BLOCK_FRAMES)):
                data, size_bytes = parts[number % len(parts)]
                second, microsecond = divmod(number, 1_000_000)
                block.append(struct.pack("<IIII", 1_700_000_000 + second, microsecond, len(data), size_bytes) + data)
            file.write(b"".join(block))


def cost(command: Sequence[str | Path]) -> tuple[float, float, str]:
    """CPU seconds, greatest resident megabytes and output of a command."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    shown = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6, shown


def main() -> None:
    """Write, read with both, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--captured", type=int, default=96, help="bytes of a packet in the file (snaplen)")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.pcap"
        write(path, arguments.frames, arguments.captured)
        print(
            f"{arguments.frames} frames, {path.stat().st_size / 1e6:.0f} MB, each reader {arguments.repetitions} times"
        )
        ratios = []
        for _ in range(arguments.repetitions):
            peer_s, peer_mb, _ = cost(["capinfos", "-c", "-u", "-m", "-T", path])
            ours_s, ours_mb, shown = cost([sys.executable, "-c", READ, path])
            assert int(shown) == arguments.frames
            ratios.append(ours_s / peer_s)
            print(
                f"capinfos {peer_s:.2f} s CPU, {peer_mb:.0f} MB; read_recording {ours_s:.2f} s CPU, {ours_mb:.0f} MB; "
                f"CPU ratio {ratios[-1]:.2f} (goal {CPU_RATIO})"
            )
        print(f"median of the CPU ratio {sorted(ratios)[len(ratios) // 2]:.2f}; goals {CPU_RATIO} and {MEMORY_MB} MB")


if __name__ == "__main__":
    main()
