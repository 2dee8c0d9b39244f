"""Residency of lines in the levels of the memory, by Che's approximation of least-recently-used caches.

A cache of C lines keeps the lines of the last T packets, where T, its *characteristic time*, is the time in which C
different lines are used (Che, Tung & Wang 2002, "Hierarchical web caching systems", eqs. 1-5)::

    Σ_streams D(T) = C              D(T)  different lines that the stream uses in T packets

    table   D(T) = Σ_i (1 − e^(−λ_i T))          hit if the line was used in T,              1 − e^(−λ_i T)
    keys    D(T) = M (1 − Π_k (1 − s_k / M))     hit if any key of the line was used in T,   s_k = 1 − e^(−λ_k T)
    frames  D(T) = min(L, a T)                   hit if the ring is used once within T,      a T >= L

All streams of a core compete for its caches and therefore have the same T. A line is found in the smallest level that
would hold it, because a cache of C2 > C1 lines also holds the lines of a cache of C1 lines for the same requests
(Mattson et al. 1970).

The approximation assumes independent requests, a steady state, and many more lines than ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.hardware.model import AccessKind, LevelName, MemoryLevel
from routecast.load.popularity import Popularity
from routecast.quantity.schema import field, value

__all__ = ["LINE_BYTES", "Stream", "batch_waiting_cycles", "distinct_lines", "residency"]


def batch_waiting_cycles(
    levels: Sequence[MemoryLevel],
    shares: Mapping[LevelName, float],
    *,
    lines: float,
    batch_frames: int,
    frequency_hz: float,
) -> Mapping[LevelName, float]:
    """Return the cycles that a packet waits for its lines, by level, if a core requests a batch of lines together.

    A line in a far level delays the whole batch, and the other lines of that level arrive one after the other
    meanwhile::

        all n lines in level l     n · batched(l)  =  first(l) + (n − 1) · next(l),     first(l) = dependent(l) at most
        mixed levels               Σ_l  P(l is the farthest with a line) · first(l) + (lines in l beyond one) · next(l)

    A probe measures ``batched`` and ``dependent`` with all lines in one level (:class:`MemoryLevel`), in batches of n
    lines. The mean over the levels, Σ shares · batched, would be wrong: if a tenth of the lines is in DRAM, nearly
    every batch waits a whole latency.

    ``levels``: the fastest first; ``shares``: share of the lines in each level; ``lines``: lines per packet;
    ``batch_frames``: packets that request a line together, as in the probe; ``frequency_hz``: clock of the core.

    Examples
    --------
    >>> near = MemoryLevel(name="L1", size_bytes=32768.0)
    >>> far = MemoryLevel(name="DRAM", dependent_cycles=320.0, batched_cycles=20.0)
    >>> batch = dict(lines=1.0, batch_frames=32, frequency_hz=1e9)
    >>> round(batch_waiting_cycles([near, far], {"DRAM": 1.0}, **batch)["DRAM"], 6)
    20.0
    >>> round(batch_waiting_cycles([near, far], {"L1": 0.9, "DRAM": 0.1}, **batch)["DRAM"], 2)
    10.38
    """
    rounds = max(1.0, lines)
    requested = batch_frames * lines / rounds
    waited: dict[LevelName, float] = {}
    within = 0.0
    for level in levels:
        share = shares.get(level.name, 0.0)
        nearer, within = within, min(1.0, within + share)
        if share <= 0.0 or requested <= 0.0:
            continue
        all_in_level = batch_frames * (level.batched_cycles + level.batched_s * frequency_hz)
        first = min(level.dependent_cycles + level.dependent_s * frequency_hz, all_in_level)
        following = (all_in_level - first) / max(batch_frames - 1, 1)
        farthest_probability = within**requested - nearer**requested
        used_probability = 1.0 - (1.0 - min(share, 1.0)) ** requested
        further_lines = max(requested * share - used_probability, 0.0)
        waited[level.name] = rounds * (farthest_probability * first + further_lines * following) / batch_frames
    return waited


LINE_BYTES = 64

_BISECTIONS = 60


@value
class Stream:
    """The accesses of a core to lines of one kind while it forwards packets."""

    name: str = field("Name; streams with the same name use the same lines, so their accesses are added")
    kind: AccessKind = field(
        "``table``: the line depends on the packet's flow. ``frame``: all lines in turn, cyclically"
    )
    accesses: float = field("Lines used per packet")
    lines: float = field("Lines of the table, or of all frames together")
    popularity: Popularity = field("Popularity of the keys of a table", default_factory=Popularity)
    # Keys in the table. A hash spreads them, so several may share a line, and some lines have none. At most
    # ``popularity.flows`` keys are used. None: the flows are the keys, or, without a number of flows, every line has
    # one key and all lines are used.
    keys: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers out of range."""
        problems = [
            Problem(name, f"got {value!r}: give a finite number of at least {least:g}")
            for name, value, least in (
                ("accesses", self.accesses, 0.0),
                ("lines", self.lines, 0.0),
                ("keys", 1.0 if self.keys is None else self.keys, 1.0),
            )
            if not (math.isfinite(value) and value >= least)
        ]
        if problems:
            raise ModelProblem(f'stream "{self.name}"', problems)

    @property
    def keys_used(self) -> int | None:
        """Number of different keys of the packets; None if each line has one key."""
        known = [count for count in (self.popularity.flows, self.keys) if count is not None]
        return max(1, round(min(known))) if known else None


def distinct_lines(keys: float, lines: float) -> float:
    """Return the number of lines with a key, if a hash spreads ``keys`` keys over ``lines`` lines: M (1 − (1 − 1/M)^K).

    Examples
    --------
    >>> distinct_lines(1, 1000)
    1.0
    >>> round(distinct_lines(1000, 1000))
    632
    """
    if lines <= 1.0:
        return min(lines, keys)
    return -lines * math.expm1(keys * math.log1p(-1.0 / lines))


def residency(levels: Sequence[MemoryLevel], streams: Iterable[Stream]) -> Mapping[str, Mapping[LevelName, float]]:
    """Return the share of each stream's accesses that is found at each level; the shares of a stream sum to 1.

    Parameters
    ----------
    levels : sequence of MemoryLevel
        The fastest first; the last one holds everything.
    streams : iterable of Stream
        All streams of the core.

    Raises
    ------
    routecast.errors.ModelProblem
        Streams with the same name differ in their lines or their popularity.

    Examples
    --------
    A quarter of a table fits into L1, and all its lines are used equally often:

    >>> from routecast.hardware.model import MemoryLevel
    >>> levels = [MemoryLevel(name="L1", size_bytes=64 * 256), MemoryLevel(name="DRAM")]
    >>> shares = residency(levels, [Stream(name="mac", kind="table", accesses=1, lines=1024)])
    >>> round(shares["mac"]["L1"], 6)
    0.25
    """
    merged = _merged(streams)
    uses = {name: _use(stream) for name, stream in merged.items()}
    by_use: dict[str, dict[LevelName, float]] = {name: {} for name in uses}
    above = dict.fromkeys(uses, 0.0)
    for number, level in enumerate(levels):
        last = number == len(levels) - 1
        time = math.inf if last else _characteristic_time(uses.values(), level.size_bytes / LINE_BYTES)
        for name, use in uses.items():
            within = 1.0 if last else max(above[name], use.found(time))
            by_use[name][level.name] = within - above[name]
            above[name] = within
    return by_use


class _TableUsage:
    """The use of the lines of a table, which follows the popularity of the keys."""

    def __init__(self, stream: Stream) -> None:
        lines = max(1.0, stream.lines)
        keys = stream.keys_used
        self._hashed_over = None if keys is None else lines
        self._counts, probabilities = stream.popularity.bins(round(lines) if keys is None else keys)
        self._mass = self._counts * probabilities
        self._rates = stream.accesses * probabilities
        self.lines = lines if keys is None else distinct_lines(keys, lines)

    def used(self, time: float) -> float:
        """Return the number of different lines used in ``time`` packets."""
        import numpy as np

        seen = -np.expm1(-self._rates * time)
        if self._hashed_over is None:
            return float(self._counts @ seen)
        with np.errstate(divide="ignore"):
            unused = float(self._counts @ np.log1p(-seen / self._hashed_over))
        return -self._hashed_over * math.expm1(unused)

    def found(self, time: float) -> float:
        """Return the share of accesses to lines that were used in the last ``time`` packets."""
        import numpy as np

        if math.isinf(time):
            return 1.0
        seen = -np.expm1(-self._rates * time)
        if self._hashed_over is None:
            return float(self._mass @ seen)
        with np.errstate(divide="ignore", invalid="ignore"):
            unused_logs = np.log1p(-seen / self._hashed_over)
            missed = np.where(seen < 1.0, (1.0 - seen) * np.exp(self._counts @ unused_logs - unused_logs), 0.0)
        return 1.0 - float(self._mass @ missed)


class _RingUsage:
    """The use of lines in turn, as in a ring of frame buffers."""

    def __init__(self, stream: Stream) -> None:
        self._accesses = stream.accesses
        self.lines = stream.lines

    def used(self, time: float) -> float:
        """Return the number of different lines used in ``time`` packets."""
        return min(self.lines, self._accesses * time)

    def found(self, time: float) -> float:
        """Return 1 if every line of the ring is used within ``time`` packets, else 0."""
        return 1.0 if self._accesses * time >= self.lines else 0.0


def _use(stream: Stream) -> _TableUsage | _RingUsage:
    return _RingUsage(stream) if stream.kind == "frame" else _TableUsage(stream)


def _merged(streams: Iterable[Stream]) -> dict[str, Stream]:
    merged: dict[str, Stream] = {}
    for stream in streams:
        known = merged.setdefault(stream.name, replace(stream, accesses=0.0))
        if replace(stream, accesses=known.accesses) != known:
            message = "occurs twice with different lines: give the same number of lines and the same popularity"
            raise ModelProblem("residency", [Problem(stream.name, message)])
        merged[stream.name] = replace(stream, accesses=known.accesses + stream.accesses)
    return merged


def _characteristic_time(uses: Iterable[_TableUsage | _RingUsage], lines: float) -> float:
    """Return the number of packets in which ``lines`` different lines are used; infinite if all lines fit."""
    used = [use for use in uses if use.used(1.0) > 0.0]
    if sum(use.lines for use in used) <= lines:
        return math.inf

    def excess(time: float) -> float:
        return sum(use.used(time) for use in used) - lines

    low = high = 1.0
    while excess(high) < 0.0 and high < 1e300:
        high *= 4.0
    while excess(low) > 0.0 and low > 1e-300:
        low /= 4.0
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        if excess(middle) < 0.0:
            low = middle
        else:
            high = middle
        if high / low - 1.0 < 1e-12:
            break
    return high
