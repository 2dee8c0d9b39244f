"""Arrival processes: constant bit rate, Poisson, bursts, and recorded traces."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.load.flows import MICROSOFT_KEY, Flow, toeplitz_of_many
from routecast.load.trace import RecordedFrames
from routecast.quantity.schema import value

__all__ = ["Arrivals", "read_trace"]


@value
class Arrivals:
    """The arrival process of the frames of one port; the offered load gives the mean rate.

    Raises
    ------
    routecast.errors.ModelProblem
        A burst is shorter than one frame, the peak rate is not above the mean rate, or a trace is missing.
    """

    # ``cbr``: equal gaps; the ports are staggered evenly. ``poisson``: exponential gaps. ``on_off``: bursts of a
    # geometric length with mean ``burst_frames``, at ``peak_ratio`` times the mean rate, with exponential pauses.
    # ``bursts``: bursts of exactly ``burst_frames`` at the rate of the link, at equal intervals (RFC 2544 sec. 21).
    # ``trace``: the given instants, sizes and flows, once.
    kind: Literal["cbr", "poisson", "on_off", "bursts", "trace"] = "cbr"
    burst_frames: float = 1.0
    peak_ratio: float = 1.0
    trace: RecordedFrames | None = None

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise ModelProblem("arrivals", problems)

    @classmethod
    def cbr(cls) -> Arrivals:
        """Constant bit rate."""
        return cls(kind="cbr")

    @classmethod
    def poisson(cls) -> Arrivals:
        """Poisson process."""
        return cls(kind="poisson")

    @classmethod
    def on_off(cls, *, burst_frames: float, peak_ratio: float) -> Arrivals:
        """Bursts of geometric length (mean ``burst_frames``) at ``peak_ratio`` times the mean rate."""
        return cls(kind="on_off", burst_frames=burst_frames, peak_ratio=peak_ratio)

    @classmethod
    def bursts(cls, burst_frames: int) -> Arrivals:
        """Bursts of a number of frames at the rate of the link, at equal intervals (RFC 2544 sec. 21)."""
        return cls(kind="bursts", burst_frames=burst_frames)

    @classmethod
    def recorded(cls, frames: RecordedFrames) -> Arrivals:
        """Return the process of recorded frames, which come once."""
        return cls(kind="trace", trace=frames)

    @classmethod
    def from_trace(
        cls, path: str | Path, *, inner: bool = False, split_mtu: int = 0, rss_key: bytes = MICROSOFT_KEY
    ) -> Arrivals:
        """Read a recorded trace: a capture, recognised by its content, or a CSV file.

        The columns of CSV are ``time_s, frame_bytes, flow``, and ``port`` by which the flow enters, if that is known; a
        list of packets of Wireshark or tshark, or the text of tcpdump, is read too. ``-`` and pipes whose names do not
        end in ``.csv``, ``.tsv``, ``.txt`` or ``.log`` are captures. ``inner``, ``split_mtu``, ``rss_key``: those of
        :func:`read_capture`.

        Raises
        ------
        routecast.errors.FileProblem
            The file cannot be read; every wrong line of CSV is listed.
        """
        from routecast.load.capture import is_capture

        is_text = str(path) != "-" and Path(path).suffix.lower() in _TEXT_SUFFIXES
        if not is_text or is_capture(path):
            return read_capture(path, inner=inner, split_mtu=split_mtu, rss_key=rss_key)
        return read_trace(path)

    @property
    def text(self) -> str:
        """The process in words, for the reader of a latency.

        Examples
        --------
        >>> Arrivals.cbr().text, Arrivals.on_off(burst_frames=32, peak_ratio=8).text
        ('evenly spaced arrivals', 'bursts of 32 frames in the mean at 8 times the mean rate')
        """
        return {
            "cbr": "evenly spaced arrivals",
            "poisson": "Poisson arrivals",
            "on_off": f"bursts of {self.burst_frames:g} frames in the mean at {self.peak_ratio:g} times the mean rate",
            "bursts": f"bursts of {self.burst_frames:g} frames at the rate of the link",
            "trace": "the arrivals of the trace",
        }[self.kind]

    @property
    def interarrival_scv(self) -> float:
        """Squared coefficient of variation of the gaps between frames of one port.

        For ``on_off``, the gaps within a burst are ``p`` = 1/``peak_ratio`` of the mean gap. After each frame the burst
        of mean length ``B`` ends with probability 1/B, and an exponential pause with mean ``B(1 - p)`` follows. The
        mean is therefore 1 and the variance ``(2B - 1)(1 - p)²``. The gaps are independent. For ``trace``, this is the
        value of the sample, whose gaps may depend on each other.
        """
        if self.kind == "poisson":
            return 1.0
        if self.kind == "on_off":
            return (2.0 * self.burst_frames - 1.0) * (1.0 - 1.0 / self.peak_ratio) ** 2
        return self.trace.interarrival_scv if self.trace is not None else 0.0


def _problems(arrivals: Arrivals) -> list[Problem]:
    problems = []
    kinds = ("cbr", "poisson", "on_off", "bursts", "trace")
    if arrivals.kind not in kinds:
        return [Problem("kind", f"got {arrivals.kind!r}: allowed are {', '.join(kinds)}")]
    if arrivals.kind == "bursts" and arrivals.burst_frames != int(arrivals.burst_frames):
        problems.append(Problem("burst_frames", f"got {arrivals.burst_frames}: bursts have whole frames"))
    if not (math.isfinite(arrivals.burst_frames) and arrivals.burst_frames >= 1.0):
        problems.append(Problem("burst_frames", f"got {arrivals.burst_frames}: the mean burst is a number >= 1"))
    if not (math.isfinite(arrivals.peak_ratio) and arrivals.peak_ratio >= 1.0):
        problems.append(Problem("peak_ratio", f"got {arrivals.peak_ratio}: peak over mean rate is a number >= 1"))
    elif arrivals.kind == "on_off" and arrivals.peak_ratio == 1.0:
        problems.append(
            Problem("peak_ratio", "is 1: bursts at the mean rate leave no pause; give a number > 1 or use cbr")
        )
    if (arrivals.kind == "trace") != (arrivals.trace is not None):
        message = "is missing: the kind trace has one" if arrivals.trace is None else f"is given for {arrivals.kind}"
        problems.append(Problem("trace", message))
    return problems


def read_capture(
    path: str | Path, *, inner: bool = False, split_mtu: int = 0, rss_key: bytes = MICROSOFT_KEY
) -> Arrivals:
    """Read arrivals from the packets of a capture; see :func:`routecast.load.capture.read_recording`.

    A flow enters by the port of its side of the capture and leaves by the next; ``rss_key`` hashes its addresses and
    ports. What a card cannot hash goes to the queue of the hash 0.

    Raises FileProblem: as that function.
    """
    from routecast.load.capture import read_recording

    recording = read_recording(path, inner=inner, split_mtu=split_mtu)
    hashes = toeplitz_of_many([flow.rss_input for flow in recording.flows], rss_key)
    flows = [
        Flow(rss_hash=hash_value, ingress=flow.side, egress=flow.side + 1)
        for flow, hash_value in zip(recording.flows, hashes, strict=True)
    ]
    trace = RecordedFrames(
        time_s=recording.time_s,
        frame_bytes=recording.frame_bytes,
        flow=recording.flow,
        flows=tuple(flows),
        notes=recording.notes,
    )
    return Arrivals.recorded(trace)


_TEXT_SUFFIXES = frozenset({".csv", ".tsv", ".txt", ".log"})
_COLUMNS, _PORT = ("time_s", "frame_bytes", "flow"), "port"
_SAME_COLUMN = dict.fromkeys(("frame", "frames", "frame_size"), "frame_bytes")
_LARGEST_BYTES = 500_000_000
"""About twenty million frames, which take one or two gigabytes of memory."""


def read_trace(path: str | Path) -> Arrivals:
    """Read arrivals from a CSV file with the columns ``time_s, frame_bytes, flow``.

    Lists of packets are read too (:mod:`routecast.load.packet_list`). Raises FileProblem: the file cannot be read or a
    line is wrong; up to twenty wrong lines are listed.
    """
    # What most routers are solved without is loaded where it is used.
    from routecast.load.packet_list import is_packet_list, packet_list
    from routecast.load.tcpdump_text import is_tcpdump_text, tcpdump_text
    from routecast.quantity.table_file import read_table_text

    path = Path(path)
    text = read_table_text(path, kind="trace", max_file_bytes=_LARGEST_BYTES)
    if is_tcpdump_text(text):
        return Arrivals.recorded(tcpdump_text(str(path), text))
    if not _is_own(text) and is_packet_list(text):
        return Arrivals.recorded(packet_list(str(path), text))
    try:
        return Arrivals.recorded(_own_frames(str(path), text))
    except csv.Error as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read as CSV: {problem}")]) from problem
    except ModelProblem as problem:
        raise FileProblem(str(path), problem.problems) from problem


def _own_frames(path: str, text: str) -> RecordedFrames:
    """Read a trace with the columns of routecast, and perhaps the port that each flow enters by."""
    from routecast.load.packet_list import columns_of

    rows = csv.reader(io.StringIO(text, newline=""))
    header = [_SAME_COLUMN.get(name.strip(), name.strip()) for name in next(rows, [])]
    if not _has_own_columns(header):
        got = ", ".join(header)[:200] or "nothing"
        message = (
            f"got the columns {got}: a trace has {', '.join(_COLUMNS)}, and perhaps {_PORT}; a list of packets has "
            "a time and a length, as tshark -T fields -E header=y -e frame.time_epoch -e frame.len -e ip.src "
            "-e ip.dst writes it"
        )
        raise FileProblem(path, [Problem("line 1", message)])
    column = {name: header.index(name) for name in header}
    port_of_flow: dict[int, int] = {}

    def read(row: Sequence[str]) -> tuple[float, int, int]:
        if len(row) != len(header):
            raise ValueError(f"has {len(row)} fields")
        time_s = float(row[column["time_s"]])
        size_bytes = int(row[column["frame_bytes"]])
        flow = int(row[column["flow"]])
        if not math.isfinite(time_s):
            raise ValueError(f"time_s is {time_s}: instants are finite")
        if not 64 <= size_bytes <= 65_535:
            raise ValueError(f"frame_bytes is {size_bytes}: frames have 64 to 65535 bytes")
        if flow < 0:
            raise ValueError(f"flow is {flow}: flows are numbered 0, 1, …")
        port = int(row[column[_PORT]]) if _PORT in column else None
        if port is not None and port_of_flow.setdefault(flow, port) != port:
            raise ValueError(f"flow {flow} enters by port {port}, and before by {port_of_flow[flow]}")
        if port is not None and port < 0:
            raise ValueError(f"port is {port}: ports are numbered 0, 1, …")
        return time_s, size_bytes, flow

    numbered = ((f"line {rows.line_num}", row) for row in rows if row)
    times_s, sizes_bytes, flows = columns_of(numbered, read, path=path)
    return RecordedFrames.of(times_s, sizes_bytes, flows, flows=_entering(port_of_flow))


def _has_own_columns(header: Sequence[str]) -> bool:
    return sorted(header) in (sorted(_COLUMNS), sorted((*_COLUMNS, _PORT)))


def _is_own(text: str) -> bool:
    head = text[:10_000].split("\n", maxsplit=1)[0]
    return _has_own_columns([_SAME_COLUMN.get(name.strip(), name.strip()) for name in head.split(",")])


def _entering(port_of_flow: Mapping[int, int]) -> list[Flow]:
    """Return the flows of a trace with ports, with hash values in turn; none if it has no ports."""
    numbers = range(max(port_of_flow, default=-1) + 1)
    ports = [port_of_flow.get(number, 0) for number in numbers]
    return [Flow(rss_hash=number, ingress=port, egress=port + 1) for number, port in zip(numbers, ports, strict=True)]
