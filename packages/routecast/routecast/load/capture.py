"""Recorded traffic: times, sizes and flows of the frames of a capture, as arrays.

A capture is recognised by its content, not by its name: pcap (micro- and nanoseconds, both orders of bytes, the
modified record of Kuznetzov) and pcapng, packed by gzip or zstd or not. It is read as a stream; a frame takes 16 bytes
of memory. ``docs/captures.md`` says which links, tags and tunnels are read.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from routecast.errors import FileProblem, Problem

__all__ = ["RecordedFlow", "Recording", "is_capture", "read_recording"]

SPLIT_MTU_BYTES = (576, 65_535)
"""Least and greatest MTU to which super-packets are split: what every host of IPv4 takes (RFC 791), and its longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedFlow:
    """A flow of a recording."""

    rss_input: bytes
    """What receive-side scaling hashes, source first: addresses and ports of TCP and UDP (12 or 36 B), addresses of
    other packets and of fragments (8 or 32 B). Empty where a card cannot hash, so that the flow stays on one queue."""
    side: int
    """Direction, 0 or 1, or the number of the interface, as the notes of the recording say."""
    frames: int
    """Packets of the flow; frames, where super-packets are split."""
    text: str
    """The flow in words: ``198.18.0.1:5000 > 198.19.0.1:80 udp``, or ``not hashed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The frames of a capture in the order of their times. Arrays are read-only and have one entry per frame."""

    time_s: npt.NDArray[np.float64]
    """Time since the earliest frame, s; never goes back."""
    frame_bytes: npt.NDArray[np.uint32]
    """Length on the wire with FCS, bytes, at least 64."""
    flow: npt.NDArray[np.uint32]
    """Index into ``flows``, which are in the order of their first frames."""
    flows: tuple[RecordedFlow, ...]
    """The flows; beyond the first 1,000,000, one for all others."""
    notes: tuple[str, ...]
    """What a reader of the recording must know, in sentences."""
    counts: dict[str, int]
    """Numbers of packets and frames by name: ``packets``, ``frames``, ``flows``, ``out_of_order``, ``not_hashed``,
    ``fragments``, ``cut``, ``without_ethernet``, ``super_packets``, ``super_bytes``, ``split_packets``,
    ``segments``."""


def read_recording(path: str | Path, *, inner: bool = False, split_mtu: int = 0) -> Recording:
    """Read the frames of a capture; ``-`` is the standard input.

    Parameters
    ----------
    path : str or path
        A file or a pipe: pcap or pcapng, packed by gzip or zstd or not. A packed one may unpack to 64 GiB.
    inner : bool
        Flows are those of the innermost packets of IP, inside tags, MPLS, PPPoE, GRE, IP in IP, VXLAN, Geneve and
        GTP-U, for cards that hash them. Otherwise flows are those of the outer packets.
    split_mtu : int
        MTU in bytes, 576 to 65,535: longer packets of TCP and UDP are split into frames of one time. 0 splits none.

    Raises
    ------
    FileProblem
        The file cannot be read, is no capture, has no packets or more than 100,000,000 frames, is damaged, or has
        packets without times or on a link that is not read. The message names the packet and a remedy.
    """
    from routecast import _core

    least_bytes, most_bytes = SPLIT_MTU_BYTES
    if split_mtu != 0 and not least_bytes <= split_mtu <= most_bytes:
        message = f"got {split_mtu}: super-packets are split to an MTU of {least_bytes} to {most_bytes:,} bytes"
        raise FileProblem(str(path), [Problem("split_mtu", message)])
    try:
        answer = _core.read_recording(path, inner, split_mtu)
    except _core.CaptureError as problem:
        raise _file_problem(path, problem) from problem
    flows = answer["flows"]
    return Recording(
        time_s=np.frombuffer(answer["time_s"], dtype=np.float64),
        frame_bytes=np.frombuffer(answer["frame_bytes"], dtype=np.uint32),
        flow=np.frombuffer(answer["flow"], dtype=np.uint32),
        flows=tuple(RecordedFlow(rss_input=a, side=b, frames=c, text=d) for a, b, c, d in flows),
        notes=tuple(answer["notes"]),
        counts=answer["counts"],
    )


def is_capture(path: str | Path) -> bool:
    """Whether a file is a capture that can be read, packed or not, by its first bytes.

    A pipe and ``-`` are not looked at, for what is read from them is gone: the answer is no.

    Raises FileProblem: the file does not exist or cannot be read.
    """
    from routecast import _core

    try:
        if str(path) == "-" or not stat.S_ISREG(Path(path).stat().st_mode):
            return False
        return _core.is_capture(path)
    except _core.CaptureError as problem:
        raise _file_problem(path, problem) from problem
    except OSError as problem:
        raise FileProblem(str(path), [Problem("", problem.strerror or str(problem))]) from problem
    except ValueError as problem:
        raise FileProblem(str(path), [Problem("", str(problem))]) from problem


def _file_problem(path: str | Path, problem: Exception) -> FileProblem:
    return FileProblem(str(path), [Problem("", str(problem.args[-1]).rpartition(f"{path}: ")[2])])
