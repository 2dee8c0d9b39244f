"""The compiled core of routecast: the packet-level simulator, HDR histograms and captures."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TypedDict, type_check_only

__all__ = [
    "CaptureError",
    "SimulationError",
    "__version__",
    "hdr_classes",
    "hdr_merged",
    "hdr_quantiles_s",
    "is_capture",
    "polled_starts",
    "queue_starts",
    "read_recording",
    "simulate",
]

__version__: str

class SimulationError(Exception):
    """A scenario that cannot be simulated. Arguments: kind, message, duration_s, needed_s."""

def hdr_classes(hdr_base64: str) -> list[tuple[int, int, int]]:
    """Return the classes of an HDR histogram that hold something: least value, greatest value, count, in its unit.

    Raises
    ------
    ValueError
        The text is no histogram.
    """

def hdr_merged(hdr_base64: Sequence[str]) -> str:
    """Return the histogram of all values of several HDR histograms; of none, an empty text.

    Raises
    ------
    ValueError
        A text is no histogram.
    """

def hdr_quantiles_s(hdr_base64: str, probabilities: Sequence[float]) -> list[float]:
    """Return times in seconds read out of an HDR histogram, one per probability (0..1).

    Parameters
    ----------
    hdr_base64 : str
        Base64 of the compressed V2 form, in nanoseconds, as ``Delay.hdr_base64`` carries it.
    probabilities : sequence of float

    Raises
    ------
    ValueError
        The text is no histogram, or the histogram is empty.
    """

def polled_starts(
    at_ps: bytes,
    work_ps: bytes,
    room: int,
    until_ps: int,
    polls: tuple[int, int, int, int, int, int],
    *,
    exhaustive: bool,
    sleep_ps: list[tuple[int, int]],
) -> tuple[bytes, bytes, int, int]:
    """Return starts and ends of service of recorded frames at a server with interrupts, its work and its interrupts.

    ``at_ps``, ``work_ps``, ``room``: those of :func:`queue_starts`; ``until_ps``: work after it is not counted;
    ``polls``: budget in frames, then cost of an interrupt, cost of a batch, moderation, wake-up and lingering, all in
    picoseconds; ``sleep_ps``: sleep states of the idle unit, by the idle time before each and the time to leave it. The
    work is in picoseconds, without lingering and waking.

    Raises ValueError: as :func:`queue_starts`, or the budget or the room is 0.
    """

def queue_starts(at_ps: bytes, work_ps: bytes, servers: int, room: int) -> bytes:
    """Return the starts of service of recorded frames at one queue, first come, first served.

    ``at_ps``, ``work_ps``: arrivals in order and services as native 64-bit unsigned numbers, picoseconds; ``servers``:
    frames served at a time; ``room``: frames that may wait besides. The result has one number for each frame, 2^64 - 1
    for a frame that finds no room.

    Raises ValueError: the lengths differ or are no multiple of 8 bytes, or there is no server.
    """

def simulate(
    scenario: str,
    *,
    replications: int = 1,
    target_relative_half_width: float | None = None,
    most: int = 64,
    progress: Callable[[float], object] | None = None,
    device: object | None = None,
) -> str:
    """Simulate a scenario, given and answered as JSON; see :mod:`routecast.evaluate.simulate` for the public way.

    Parameters
    ----------
    scenario : str
        Router, load and run with indices for names; ``crates/sim/src/scenario.rs`` documents each field.
    replications : int
        Independent replications, run in parallel.
    target_relative_half_width : float, optional
        Go on, up to ``most`` replications, until the 95 % half-width of the mean latency is this share of it.
    most : int
        Most replications.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1.
    device : object, optional
        A graphics processor, :class:`routecast.evaluate.simulate.graphics.Graphics`, in whose lanes the trial runs.

    Returns
    -------
    str
        The outcome.

    Raises
    ------
    SimulationError
        The scenario is wrong, or its transient did not end.
    """

class CaptureError(Exception):
    """A capture that cannot be read. Arguments: kind, message.

    Kinds: ``file``, ``interrupted``, ``panic``.
    """

@type_check_only
class _Recording(TypedDict):
    time_s: bytes
    frame_bytes: bytes
    flow: bytes
    flows: list[tuple[bytes, int, int, str]]
    notes: list[str]
    counts: dict[str, int]

def read_recording(path: str | PathLike[str], inner: bool = False, split_mtu: int = 0) -> _Recording:
    """Read times, sizes and flows of the frames of a capture (pcap, pcapng), packed or not.

    Parameters
    ----------
    path : str or path
        The file, or a pipe; ``-`` is the standard input.
    inner : bool
        Whether flows are those of the innermost packets of tunnels.
    split_mtu : int
        MTU in bytes to which super-packets of TCP and UDP are split; 0 splits none.

    Returns
    -------
    dict
        By frame, in order of time, as bytes in the order of this machine: ``time_s`` (float64) since the earliest,
        ``frame_bytes`` (uint32) on the wire with FCS, ``flow`` (uint32). By flow: what receive-side scaling hashes,
        side, frames, words. Notes in sentences, and counts by name.

    Raises
    ------
    CaptureError
        The capture cannot be read, is damaged, has no packets, or packets without time or of an unknown link.
    """

def is_capture(path: str | PathLike[str]) -> bool:
    """Return whether a file is a capture, packed or not, by its first bytes.

    Raises
    ------
    CaptureError
        The file cannot be read.
    """
